"""Comparisons of runs as views: the differences, what they rest on, and the samples that changed most."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING

from evalstone._core.display import by_text, count, digits_for, limits, listed, number, p_value, signed, tests_used
from evalstone._core.front_ends import PYTHON, FrontEnd, Hint, Setting
from evalstone._core.word_diff import LEAST_SHARED, Piece, word_diff
from evalstone.report.notes import clause_of, sentence_of
from evalstone.report.view import (
    FOOTER,
    Block,
    Cell,
    Column,
    DifferenceChart,
    Examples,
    Fact,
    OutcomeView,
    SampleView,
    Section,
    Table,
    Tone,
    View,
    direction,
    table,
    words,
)
from evalstone.results.corrections import judged_only
from evalstone.results.run_notes import sample_notes
from evalstone.results.views.samples import score_text, scored_answer, with_texts
from evalstone.types import Record, Sample, Score

if TYPE_CHECKING:
    from evalstone.results.compare import Change, Comparison, ScorerComparison
    from evalstone.results.corrections import CorrectedDifference
    from evalstone.results.of_scorer import OfScorer
    from evalstone.results.run import Run
    from evalstone.stats.comparison import ComparisonVerdict, PairedComparison
    from evalstone.stats.ppi import PPIEstimate
    from evalstone.stats.unpaired import UnpairedComparison

VERDICTS: Mapping[ComparisonVerdict, str] = {
    "better": "▲ better",
    "worse": "▼ worse",
    "equivalent": "= equivalent",
    "inconclusive": "no significant difference",
}


LONGEST_CHANGES = 400
"""About the most characters of each answer where the changes are shown on a few lines."""
LONGEST_TEXT = 50_000
"""About the most characters of an answer that is shown in full. Browsers take minutes to lay out megabytes."""
TONES: Mapping[str, Tone] = {"better": "good", "worse": "bad", "equivalent": "good", "inconclusive": "dim"}


def comparison_view(comparison: Comparison, front_end: FrontEnd = PYTHON, *, most: int = 3) -> View:
    """Runs compared with the first one. most: how many of the most changed samples to show for each scorer."""
    reach = reach_of((line.info.scale, line.result) for line in comparison.scorers)
    sections: list[Section] = []
    details: list[Section] = []
    for name in [*comparison.runs][1:]:
        lines = [line for line in comparison.scorers if line.b == name]
        people = [line for line in comparison.corrected if line.b == name]
        tables = (_table(lines, name, reach), *([_people_table(people, name)] if people else []))
        sections.append(Section(f"{name} vs. A", tables=tables))
        if sliced := [line for line in comparison.slices if line.b == name]:
            details.append(_sliced(sliced, name, reach, slices_text(comparison.slice_correction_text)))
    sections[-1] = replace(sections[-1], notes=tuple(comparison_notes(comparison, front_end)))
    names = comparison.names
    return View(
        name="Comparison",
        lead=listed(f"{name}: {names.get(name) or run.id}" for name, run in comparison.runs.items()),
        warnings=tuple(sentence_of(note, front_end) for note in comparison.notes if note.severity == "warning"),
        sections=tuple(sections),
        examples=tuple(_changes(comparison, most)),
        details=tuple(details),
        facts=tuple(
            run_fact(letter, run, names.get(letter, ""), run.dataset_name) for letter, run in comparison.runs.items()
        ),
        footer=FOOTER,
    )


def run_fact(title: str, run: Run, *names: str) -> Fact:
    named = [name for name in names if name not in ("", run.id)]
    text = " · ".join([*named, run.samples_and_judge, f"run {run.id}"])
    return Fact(title, text, f"{title}: {text}")


def _table(lines: Sequence[ScorerComparison], name: str, reach: Mapping[float, float]) -> Table:
    columns = (words("scorer"), *_columns(lines, name), words("direction", under=True))
    rows = [(Cell(line.title), *line_cells(line, reach), _direction(line)) for line in lines]
    return table(f"{name} compared with A", columns, rows)


def _slice_table(title: str, lines: Sequence[ScorerComparison], name: str, reach: Mapping[float, float]) -> Table:
    """The slices of one scorer."""
    direction = Column("direction", numeric=False, informative=False)
    columns = (words(f"{title} by slice"), *_columns(lines, name), direction)
    rows = [
        (Cell(f"{line.field}={line.key}", quoted=True), *line_cells(line, reach), _direction(line)) for line in lines
    ]
    return table(f"{title} by slice, {name} compared with A", columns, rows)


def _columns(lines: Sequence[ScorerComparison], name: str) -> Sequence[Column]:
    level = f"{100 * lines[0].result.difference.confidence:g}% CI" if lines else "95% CI"
    return (
        Column("n", informative=False),
        Column("A"),
        Column(name),
        Column("difference"),
        Column(level, numeric=False, interval=True),
        Column("p"),
        Column("win/tie/loss"),
        words("verdict"),
    )


def _people_table(lines: Sequence[CorrectedDifference], name: str) -> Table:
    """The differences according to human labels, next to those of the judge's scores."""
    columns = [
        Column(title) if title in ("judge only", "corrected", "p") else words(title) for title in people_header(lines)
    ]
    rows: list[Sequence[Cell]] = []
    for line in lines:
        title, raw, corrected, *others, verdict = map(Cell, people_cells(line))
        corrected, verdict = replace(corrected, tone="strong"), replace(verdict, tone=TONES[line.verdict])
        rows.append((title, raw, corrected, *others, verdict))
    return table(f"{name} compared with A, corrected by human labels", columns, rows)


def people_header(lines: Sequence[CorrectedDifference]) -> tuple[str, ...]:
    """The columns of `people_cells`."""
    return "scorer", "judge only", "corrected", f"{100 * lines[0].confidence:g}% CI", "p", "labeled", "verdict"


def people_cells(line: CorrectedDifference) -> tuple[str, ...]:
    """The difference according to human labels, next to that of the judge's scores."""
    result, digits = line.result, digits_for(line.info.scale)
    raw, estimate = result.raw if result.n else None, result.estimate
    missing = "too few labels" if result.n else "same outputs"
    return (
        line.title,
        "-" if raw is None else signed(raw.estimate, digits),
        "-" if estimate is None else signed(estimate.estimate, digits),
        "-" if estimate is None else limits(estimate.low, estimate.high, digits, sign=True),
        "-" if line.adjusted_p_value is None else p_value(line.adjusted_p_value),
        f"{result.labeled:,} of {result.n:,}",
        VERDICTS[line.verdict] if estimate is not None else missing,
    )


def line_cells(line: ScorerComparison, reach: Mapping[float, float]) -> Sequence[Cell]:
    """The size, both means, the difference, its interval with a chart, p, wins, ties and losses, and the verdict.

    reach: the end of the axis for each scale.
    """
    result, verdict, tone = line.result, VERDICTS[line.verdict], TONES[line.verdict]
    return (
        Cell(sizes(result)),
        *difference_cells(line, result, "difference", verdict, tone, reach[line.info.scale]),
        Cell(p_value(line.adjusted_p_value), under=f"unadjusted {p_value(result.p_value)}"),
        Cell(wins(line)),
        Cell(verdict, tone),
    )


def _direction(line: ScorerComparison) -> Cell:
    return Cell(direction(line.info.lower_is_better), "dim")


def difference_cells(
    one: OfScorer, result: PairedComparison | UnpairedComparison, noun: str, verdict: str, tone: Tone, reach: float
) -> Iterator[Cell]:
    """Both means, their difference and its interval, with a chart."""
    a, b, change, limits_text = difference(one, result)
    label, interval = f"{one.title}: {noun} {change}, interval {limits_text}, {verdict}", result.difference
    chart = DifferenceChart(label, interval.estimate, interval.low, interval.high, reach, tone)
    yield from (Cell(a), Cell(b), Cell(change, "strong"), Cell(limits_text, chart=chart))


def reach_of(results: Iterable[tuple[float, PairedComparison | UnpairedComparison]]) -> Mapping[float, float]:
    """The end of the axis for each scale, which no difference exceeds. All tables of a comparison share it, so that
    their charts are comparable.

    results: Each after the scale of its scorer.
    """
    farthest: dict[float, float] = {}
    for scale, result in results:
        ends = result.difference.estimate, result.difference.low, result.difference.high
        farthest[scale] = max(farthest.get(scale, 0.0), *(abs(end) for end in ends if end is not None))
    return {scale: min(_rounded_up(end), scale) if end else scale for scale, end in farthest.items()}


def _rounded_up(value: float) -> float:
    """The next of 1, 2 or 5 times a power of ten, with a margin for the marker."""
    power = 10.0 ** math.floor(math.log10(value * 1.02))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 1.02)


def _sliced(lines: Sequence[ScorerComparison], name: str, reach: Mapping[float, float], note: str) -> Section:
    lead = [
        f"{line.title}, {line.field}={line.key}: {VERDICTS[line.verdict]}, {signed(line.difference.estimate)} "
        f"(n = {sizes(line.result)}, p {p_value(line.adjusted_p_value)})."
        for line in lines
        if line.verdict != "inconclusive"
    ]
    lead = lead or ["No significant difference in any slice."]
    legend = "The axes are those of the comparison above; intervals that exceed them are cut off."
    titles = dict.fromkeys(line.title for line in lines)
    tables = [_slice_table(title, [line for line in lines if line.title == title], name, reach) for title in titles]
    return Section(f"{name} vs. A by slice", tuple(lead), tuple(tables), notes=(note,), legend=(legend,), folded=True)


def _changes(comparison: Comparison, most: int) -> Iterator[Examples]:
    """The samples that changed most, with the answers and reasons of both runs."""
    shown: dict[str, set[str]] = {}
    for line in comparison.scorers:
        for change in line.changes[:most]:
            shown.setdefault(line.a, set()).add(change.sample_id)
            shown.setdefault(line.b, set()).add(change.sample_id_b)
    texts: dict[str, dict[tuple[str, int | None], Sample]] = {}
    records: dict[str, dict[tuple[str, str], list[Record]]] = {}
    for name, run in comparison.runs.items():
        of_shown = run.columns.entries_of(run.columns.cases_of(shown.get(name, set())))
        entries = [entry for _, entry in of_shown]
        cases, keeps = [(entry.sample_id, entry.trial) for entry in entries], bool(run.keeps_reasoning)
        texts[name] = {
            case: replace(sample, output=sample.output and scored_answer(sample, keeps_reasoning=keeps).answer)
            for case, sample in with_texts(run.samples, cases, key=attrgetter("id", "trial"))
            if sample is not None
        }
        records[name] = {}
        for entry in entries:
            record = run.records[entry.place]
            records[name].setdefault((record.sample_id, record.signature), []).append(record)
    above: set[tuple[str, str]] = set()
    for line in comparison.scorers:
        if line.changes[:most]:
            changes = [_change(line, change, texts, records) for change in line.changes[:most]]
            # What is shown for another scorer isn't shown again, except where it is folded.
            changes = [replace(view, changes=()) if (line.b, view.id) in above else view for view in changes]
            above |= {(line.b, view.id) for view in changes}
            yield Examples(f"Most changed: {line.title}, {line.a} to {line.b}", tuple(changes))


def _change(
    line: ScorerComparison,
    change: Change,
    texts: Mapping[str, Mapping[tuple[str, int | None], Sample]],
    records: Mapping[str, Mapping[tuple[str, str], Sequence[Record]]],
) -> SampleView:
    """A changed sample. Of several trials, it shows the one that illustrates the change best: for the run with the
    lower mean, the one with the lowest score."""
    question = ""
    answers: list[str] = []
    gain = (change.a - change.b) if line.info.lower_is_better else (change.b - change.a)
    both: list[Block] = []
    sides = (
        (line.a, line.info, change.sample_id, change.a, change.b),
        (line.b, line.info_b, change.sample_id_b, change.b, change.a),
    )
    for name, info, id, value, other in sides:
        scored = [r for r in records[name].get((id, info.signature), ()) if isinstance(r.outcome, Score)]
        pick = min if value < other else max
        record = pick(scored, key=lambda record: record.value or 0.0, default=None)
        sample = texts[name].get((id, None if record is None else record.trial))
        answer = "The text is not available."
        if sample is not None and sample.output is not None:
            answer = sample.output
            answers.append(answer)
        question = question or (sample.input if sample is not None and sample.input else "")
        score = score_text(value, line.info.scale)
        title = f"{name} · {score}"
        if record is not None and record.trial is not None and record.value is not None:
            shown = score_text(record.value, line.info.scale)
            title = f"{name} in trial {record.trial} · {shown}; mean of the trials {score}"
        reason = "" if record is None else getattr(record.outcome, "reason", "")
        both.append(Block("passage", title, answer, why=reason))
    pieces, note = tuple[Piece, ...](), ""
    if len(answers) == 2:
        difference = word_diff(*answers)
        pieces = difference.shortened(LONGEST_CHANGES).pieces
        note = "the answers are the same" if difference.is_same else ""
        if difference.shared >= LEAST_SHARED:
            whole = difference.shortened(LONGEST_TEXT, LONGEST_TEXT)
            both = [replace(both[0], pieces=whole.before), replace(both[1], pieces=whole.after)]
    values = f"{score_text(change.a, line.info.scale)} → {score_text(change.b, line.info.scale)}"
    panel = [Block("part", "Question", question)] if question else []
    panel += [Block("note", text=note)] if note else []
    tone: Tone = "good" if gain > 0 else "bad"
    outcomes = (OutcomeView(line.title, change.b, values, tone, note),)
    return SampleView(
        change.sample_id,
        question,
        "",
        None,
        outcomes,
        changes=pieces,
        panel=(*panel, Block("columns", items=tuple(both))),
    )


def comparison_notes(comparison: Comparison, front_end: FrontEnd) -> Iterator[str]:
    """How p-values are computed, what else differs between the runs, and what is missing or small."""
    paired = [(line, result) for line in comparison.scorers if (result := _paired(line.result)) is not None]
    changed = [line for line, result in paired if result.ties < result.n]
    tests: dict[str, dict[str, None]] = {}
    for line in changed or comparison.scorers:
        tests.setdefault(line.result.test.name, {})[line.title] = None
    p = f"{tests_used(tests)}; {comparison.correction_text}"
    if paired or not comparison.scorers:
        yield f"Differences are paired by sample: each run minus A. p: {p}."
    else:
        yield f"Runs are compared as independent, not by sample: each run's mean minus A's. p: {p}."
    yield from (sentence_of(note, front_end) for note in comparison.notes if note.severity != "warning")
    if comparison.corrected:
        yield (
            "Corrected: the difference of people's scores (prediction-powered inference). Labeled: samples whose "
            "outputs differ and have a label in both runs. They must be a random selection; equal outputs need none."
        )
        yield from (
            f"{_titled(comparison, line)}, corrected: {text}."
            for line in comparison.corrected
            for text in _about_labels(line.result, line.info.scale)
        )
    judged = [line for line in comparison.scorers if judged_only(comparison.runs["A"], line.info)]
    labeled = {(line.title, line.b) for line in comparison.corrected}
    if judged and not all((line.title, line.b) in labeled for line in judged):
        weighted = any(line.difference.effective is not None for line in judged)
        parts = [Hint.of("; ", Setting("labels", ...), " corrects them")] if paired and not weighted else []
        yield f"This compares the judge's means, not what people would say{front_end.written(parts)}."
    if _same_answers_other_judges(comparison):
        yield (
            "All answers are the same, so the differences are of the judges. Which one agrees with people: "
            "evalstone calibrate --labels FILE, with --judge for each."
        )
    yield from ranks_text(comparison)
    if any(result.difference.effective is not None for _, result in paired):
        yield "Means are weighted; wins, ties and losses are counts."
    about = (
        (_titled(comparison, line), text) for line in comparison.scorers for text in about_samples(line, front_end)
    )
    yield from by_text(about, len(comparison.scorers), "All comparisons", "; ")


def _same_answers_other_judges(comparison: Comparison) -> bool:
    """Whether other judges scored the same answers."""
    runs = comparison.runs.values()
    differ = any(note.kind == "judges_differ" for note in comparison.notes)
    return differ and len({run.dataset_version for run in runs}) == 1 and all(run.target is None for run in runs)


def slices_text(correction: str) -> str:
    """How the p-values and intervals of slices are to be read. correction: how the p-values are corrected."""
    return (
        f"Slices: p is {correction}. Each interval is that of its slice alone: of many slices, "
        "some intervals miss the true difference."
    )


def _titled(comparison: Comparison, line: ScorerComparison | CorrectedDifference) -> str:
    """The scorer, and the runs if there are more than two."""
    return line.title if len(comparison.runs) == 2 else f"{line.title}, {line.a} and {line.b}"


def _about_labels(result: PPIEstimate, scale: float) -> Iterator[str]:
    """Whether labels are missing, and how much more labels would help."""
    if not result.n:
        yield "no outputs differ, so people's scores don't either, whatever the labels are"
    elif result.estimate is None:
        yield f"{count(result.labeled, 'sample')} with different outputs labeled in both runs, too few for an estimate"
    else:
        yield from filter(None, (*map(clause_of, result.notes), more_labels(result, scale)))


def more_labels(result: PPIEstimate, scale: float) -> str:
    """How much twice as many labels would narrow the interval; "" if it is unknown, or all samples are labeled."""
    if result.doubled is None or result.estimate is None:
        return ""
    low, high, digits = result.estimate.low or 0.0, result.estimate.high or 0.0, digits_for(scale)
    now, then = number((high - low) / 2, digits), number(result.doubled, digits)
    return f"about {count(result.labeled, 'more label')} would narrow ± {now} to ± {then}"


def sizes(result: PairedComparison | UnpairedComparison) -> str:
    """The number of pairs; for unpaired runs, the number of samples of each."""
    from evalstone.stats.unpaired import UnpairedComparison  # noqa: PLC0415 - numpy

    return f"{result.n:,}, {result.n_b:,}" if isinstance(result, UnpairedComparison) else f"{result.n:,}"


def difference(line: OfScorer, result: PairedComparison | UnpairedComparison) -> tuple[str, str, str, str]:
    """Both means, their difference and its interval."""
    digits, interval = digits_for(line.info.scale), result.difference
    means = number(result.mean_a, digits), number(result.mean_b, digits)
    return *means, signed(interval.estimate, digits), limits(interval.low, interval.high, digits, sign=True)


def about_samples(line: ScorerComparison, front_end: FrontEnd) -> Iterator[str]:
    """Sentences on the samples of a comparison: those that are left out, clusters, weights and other notes."""
    yield from (f"{clause_of(note, front_end)}." for note in sample_notes(line.difference))
    if line.unpaired:
        yield left_out(line.unpaired, "sample")
    if line.unscored:
        yield never_scored(line.unscored, line.of_both, "sample")
    if line.result.missing:
        where = listed(f"{number:,} in {name}" for name, number in zip((line.a, line.b), line.without, strict=True))
        open_changes = f"the missing scores of {count(line.result.missing, 'sample')} are ({where})"
        leaving = Hint.of("; ", Setting("missing", "ignore"), " leaves them out, as if they were missing at random")
        yield f"p and the interval hold whatever {open_changes}{front_end.written([leaving])}."
    paired = _paired(line.result)
    if paired is not None:
        yield from _about_declared(line, paired)
    if line.result.notes and line.verdict != "equivalent":
        yield from (f"{clause_of(note, front_end)}." for note in line.result.notes)
    elif line.detectable is not None:
        found = f"{line.detectable:.2g} or more"
        yield f"a true difference of {found} would have been found with a probability of 80%."


def _about_declared(line: ScorerComparison, result: PairedComparison) -> Iterator[str]:
    """The declared largest change, and the test of equivalence within the margin."""
    if result.max_change is not None:
        yield f"p and the interval hold if no sample's score can change by more than {result.max_change:g}."
    if line.adjusted_equivalence is not None and result.margin is not None:
        equivalent = line.verdict == "equivalent"
        within = f"the means {'differ by less than' if equivalent else 'may differ by'} {result.margin:g}"
        shown = f"equivalent: {within}" if equivalent else f"not shown to be equivalent: {within} or more"
        p = p_value(line.adjusted_equivalence)
        tests = f"p {p if p.startswith('<') else f'= {p}'}, two one-sided tests"
        yield f"{shown} ({tests})."


def ranks_text(comparison: Comparison) -> Iterator[str]:
    """With three runs or more, the ranks of each that the differences between all of them leave possible."""
    for title, result in comparison.all_runs.items():
        ranks = (
            f"{name} {best}" if best == worst else f"{name} {best} to {worst}"
            for name, (best, worst) in result.ranks.items()
        )
        yield f"{title}, possible ranks by all pairs of runs ({count(result.n, 'sample')}): {listed(ranks)}."


def left_out(unpaired: int, noun: str) -> str:
    """How many samples were scored in one run only."""
    return f"{count(unpaired, noun)} with a score in only one run {'is' if unpaired == 1 else 'are'} left out."


def never_scored(unscored: int, of: int, noun: str) -> str:
    """How many of the samples that both runs have are without a score in either."""
    verbs = "has no score in either and is" if unscored == 1 else "have no score in either and are"
    return f"{unscored:,} of {count(of, noun)} in both runs {verbs} left out."


def wins(line: ScorerComparison) -> str:
    """Wins/ties/losses: the number of samples in which the other run is better, equal and worse."""
    result = _paired(line.result)
    return "-" if result is None else f"{result.wins}/{result.ties}/{result.losses}"


def _paired(result: PairedComparison | UnpairedComparison) -> PairedComparison | None:
    from evalstone.stats.comparison import PairedComparison  # noqa: PLC0415 - numpy

    return result if isinstance(result, PairedComparison) else None
