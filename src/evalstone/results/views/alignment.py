"""An alignment as a view: whether it is better, what was chosen, and what was tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from evalstone._core.display import count, excerpt, limits, money, number, signed
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.notes import sentences_of
from evalstone.report.view import FOOTER, Cell, Column, Fact, Section, Table, View, bare_judge, table, words

if TYPE_CHECKING:
    from evalstone.results.alignment import Alignment, AlignmentEstimate
    from evalstone.stats.intervals import Interval
    from evalstone.types import AlignedQuestion


JUDGED = ("output", "answer", "claim", "response", "text")
"""What questions call the text that is judged."""
MEASURES = {
    "accuracy": "accuracy",
    "balanced accuracy": "balanced_accuracy",
    "Brier score (lower is better)": "brier",
    "AUROC": "auroc",
}
NAMED = ("default", "strict", "lenient")
"""The wordings that have a name."""


def alignment_view(alignment: Alignment, front_end: FrontEnd = PYTHON) -> View:
    """Whether the aligned judge is better, what was chosen, and what was tried."""
    sections = [Section("Verdict", tuple(sentences_of([alignment.verdict], front_end)))]
    if alignment.gain is not None:
        sections.append(
            Section(
                "Held-out labels",
                tables=(_measures(alignment),),
                notes=("Each label was judged by a choice in which it had no part.",),
            )
        )
    if alignment.chosen is not None:
        title = "Chosen" if alignment.passed else "Chosen, but not shown to be better"
        sections += _chosen(title, alignment.chosen, alignment.wording)
    if alignment.tried:
        notes = ["Chosen: how often, of ten choices, each without a tenth of the labels."]
        if alignment.default is not None and alignment.default.brier is not None:
            notes.append("In each way, thresholds and mappings of the judge's probabilities were tried, too.")
        elif alignment.tried_thresholds:
            notes.append("In each way, thresholds of the judge's probabilities were tried, too.")
        sections.append(Section("Tried", tables=(_tried(alignment),), notes=tuple(notes)))
    labels = alignment.n_pool + alignment.n_compared
    return View(
        name=f"Alignment on {alignment.dataset_name}",
        lead=f"{count(labels, 'label')} · {alignment.scorer} · judge {bare_judge(alignment.judge)}",
        warnings=tuple(sentences_of(alignment.notes, front_end)),
        sections=tuple(sections),
        facts=(
            Fact("Created", alignment.created.replace("T", " ").removesuffix("+00:00") + " UTC"),
            Fact("Judge", alignment.judge),
            Fact("Scorer", alignment.signature),
            Fact("Dataset version", alignment.dataset_version),
            Fact("Hash of the labels", alignment.labels_hash),
        ),
        footer=FOOTER,
    )


def _measures(alignment: Alignment) -> Table:
    columns = (
        words("measure"),
        Column("as it is"),
        Column("95% CI", interval=True),
        Column("aligned"),
        Column("95% CI", interval=True),
    )
    rows: list[list[Cell]] = []
    default, aligned, gain = alignment.default, alignment.aligned, alignment.gain
    for title, name in MEASURES.items():
        pair = (getattr(default, name, None), getattr(aligned, name, None))
        if any(each is not None for each in pair):
            rows.append([Cell(title), *(cell for each in pair for cell in _estimate(each))])
    if gain is not None:
        of = "accuracy" if alignment.objective == "accuracy" else "Brier score"
        cells = Cell(signed(gain.estimate)), Cell(limits(gain.low, gain.high, sign=True))
        rows.append([Cell(f"gain in {of}"), Cell(""), Cell(""), *cells])
    return table("The judge as it is, and aligned", columns, rows)


def _estimate(interval: Interval | None) -> tuple[Cell, Cell]:
    if interval is None or interval.low is None:
        return Cell(number(None if interval is None else interval.estimate)), Cell("")
    return Cell(number(interval.estimate)), Cell(limits(interval.low, interval.high))


def _chosen(title: str, chosen: AlignedQuestion, wording: str) -> Iterator[Section]:
    parts = [
        f"Wording: {wording if wording in NAMED else excerpt(wording)}."
        if chosen.wording is not None
        else "Wording: that of the scorer."
    ]
    if chosen.maps:
        labels = " or ".join(chosen.positive)
        if chosen.corners:
            parts.append(f"The probability of {labels} is mapped by isotonic regression; it is {labels} from 0.5.")
        else:
            parts.append(f"The label is {labels} if its probability is at least {chosen.threshold:.4g}.")
        if chosen.temperature != 1:
            parts.append(f"Temperature {chosen.temperature:.4g}: above 1 makes probabilities less certain.")
    if not chosen.examples:
        yield Section(title, tuple(parts))
        return
    rows = [
        [Cell(str(number)), Cell(example.label), Cell(_shown(example.inputs), quoted=True)]
        for number, example in enumerate(chosen.examples, start=1)
    ]
    columns = (Column("example"), words("right label"), words("material"))
    yield Section(title, tuple(parts), (table("Examples that the judge is shown", columns, rows),))


def _shown(inputs: Mapping[str, object]) -> str:
    """What is judged in an example, shortened: its text, or else its last input."""
    texts = [value for value in inputs.values() if isinstance(value, str) and value]
    judged = next((value for name in JUDGED if isinstance(value := inputs.get(name), str)), texts[-1] if texts else "")
    return excerpt(judged)


def _tried(alignment: Alignment) -> Table:
    columns = (
        words("wording"),
        Column("examples"),
        Column("accuracy"),
        Column("without a score"),
        Column("chosen"),
    )
    rows = [
        [
            Cell(each.wording if each.wording in NAMED else excerpt(each.wording), quoted=each.wording not in NAMED),
            Cell(str(each.examples)),
            Cell(number(each.accuracy)),
            Cell(str(each.unscored), "unsure" if each.unscored else "dim"),
            Cell(str(each.picked)),
        ]
        for each in alignment.tried
    ]
    return table(f"Ways to ask, on {count(alignment.n_compared, 'label')}", columns, rows)


def alignment_estimate_view(work: AlignmentEstimate) -> View:
    """The calls, tokens and cost."""
    return View(
        name="Alignment",
        lead=f"{count(work.samples, 'labeled sample')} · {work.scorer} · judge {bare_judge(work.judge)} · dry run",
        sections=(Section("Judge calls and cost", (estimate_text(work),), (_calls(work),)),),
    )


def estimate_text(work: AlignmentEstimate) -> str:
    """The calls, tokens and cost in a sentence."""
    if not work.calls:
        return f"No judge calls: the answers on all {count(work.samples, 'labeled sample')} are in the ledger."
    cost = ", cost unknown" if work.cost is None else f", about {money(work.cost)}" if work.cost else ""
    others = (
        "" if work.ways < 2 else f", and in {count(work.ways - 1, 'other way')} on {count(work.compared, 'sample')}"
    )
    return (
        f"At most {count(work.calls, 'judge call')}{cost}: the judge is asked as it is on "
        f"{count(work.samples, 'labeled sample')}{others}."
    )


def _calls(work: AlignmentEstimate) -> Table:
    columns = (words("judge"), Column("calls"), Column("input tokens"), Column("output tokens"), Column("cost"))
    cost = "unknown" if work.cost is None else money(work.cost)
    cells = [bare_judge(work.judge), f"{work.calls:,}", f"{work.input_tokens:,}", f"{work.output_tokens:,}", cost]
    return table("Calls at most", columns, [[Cell(text) for text in cells]])
