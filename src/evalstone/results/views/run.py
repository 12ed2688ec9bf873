"""A run as a report: scores, the worst samples and why, what is missing, trials, slices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evalstone._core.display import (
    by_text,
    count,
    joined,
    limits,
    listed,
    percent,
    percents,
    safe,
    shortlist,
)
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.times import iso_time, local_time
from evalstone.report.notes import by_scorer, clause_of, sentence_of, sentences_of, short_judge
from evalstone.report.view import (
    Cell,
    Column,
    Examples,
    Fact,
    HistogramChart,
    IntervalChart,
    SampleList,
    SampleView,
    ScoreColumn,
    Section,
    View,
    bare_judge,
    bare_judges,
    direction,
    interval_cells,
    table,
    words,
)
from evalstone.results.grounding_labels import check_grounding
from evalstone.results.losses import loss_note
from evalstone.results.run_notes import MALFORMED, NOTED, TIMEOUTS, doubts_of, scores_note
from evalstone.results.run_pilots import detectable_note
from evalstone.results.stored_records import missing_in
from evalstone.results.views.calibration import calibration_notes
from evalstone.results.views.ranking import Ranking
from evalstone.results.views.samples import goodness, sample_view, with_texts
from evalstone.results.views.slices import slices_section
from evalstone.results.views.spending import calls_text, corrections_text, cost_text, duration_text
from evalstone.results.views.trials import trials_section

if TYPE_CHECKING:
    from evalstone.results.calibration import Calibration
    from evalstone.results.corrections import PPIResult, RoganGladenResult
    from evalstone.results.run import Run
    from evalstone.results.slices import ScorerSlices
    from evalstone.results.summary import ScorerSummary

MOST_SAMPLES = 2_000
"""The number of samples that a page lists: a browser lays out each of them."""
FIRST_MISSING = 2
"""The number of samples to name for each reason without a score."""
LONGEST_ID = 30
SHOWN_FILES = 4
"""The number of files of a resumed run's code to name, if there are more."""


def run_view(
    run: Run,
    front_end: FrontEnd = PYTHON,
    *,
    worst: int = 3,
    corrected: Sequence[PPIResult | RoganGladenResult] = (),
    slices: Sequence[ScorerSlices] = (),
    calibrations: Mapping[str, Sequence[Calibration]] | None = None,
    brief: bool = False,
    reasons: bool = True,
) -> View:
    """A run as a report.

    Args:
        run: The run.
        front_end: How it writes the settings that it names.
        worst: The number of worst samples to show.
        corrected: Means and rates corrected with labels.
        slices: Means by slice.
        calibrations: The judge's calibrations by scorer signature, best first; None leaves them out.
        brief: Leave out samples, and the differences that a run of this size can detect.
        reasons: List why results are missing.
    """
    ranking = None if brief else Ranking.of(run)
    lowest = {} if ranking is None else ranking.worst(worst)
    order = {name: place for place, name in enumerate(lowest)}
    examples = sorted(_samples(run, lowest), key=lambda view: order[view.id])
    return View(
        name=run.dataset_name,
        lead=f"{_done(run)}{run.samples_and_judge}",
        notice=run.judge_note,
        warnings=tuple(sentences_of((each for each in doubts_of(run) if each.severity != "fact"), front_end)),
        sections=(_scores(run, calibrations or {}, {result.info.signature for result in corrected}),),
        examples=(Examples("Worst samples", tuple(examples)),) if examples else (),
        details=(
            *trials_section(run),
            *(_missing(run) if reasons else ()),
            *_corrected(corrected, front_end),
            *([slices_section(slices)] if slices else []),
        ),
        samples=None
        if ranking is None
        else SampleList(
            columns=tuple(ScoreColumn(run.titles[i.signature], i.scale, i.lower_is_better) for i in run.scorers),
            samples=_Lazy(lambda: _samples(run, ranking.listed(MOST_SAMPLES))),
            size=min(len(ranking.means), MOST_SAMPLES),
            total=len(ranking.means),
            noun="samples" if run.trials == 1 else "trials",
        ),
        facts=tuple(_facts(run)),
        footer=tuple(filter(None, ("" if brief else detectable_note(run), f"Made by evalstone from run {run.id}."))),
    )


def _corrected(results: Sequence[PPIResult | RoganGladenResult], front_end: FrontEnd) -> Iterator[Section]:
    if results:
        from evalstone.results.views.corrected import corrected_section  # noqa: PLC0415 - few runs have labels

        yield from (corrected_section(result, front_end) for result in results)


def _done(run: Run) -> str:
    """How much of a run that ended early was scored; "" for any other run."""
    if not run.stop_reason:
        return ""
    answered = run.columns.answered
    if run.trials == 1:
        return f"{answered:,} of "
    return f"{answered:,} of {run.n_samples * run.trials:,} trials · "


class _Lazy:
    """Values that are created anew on each iteration, so that they don't take memory."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def __iter__(self) -> Iterator[SampleView]:
        return self._make()


def _samples(run: Run, shown: Mapping[str, Sequence[int]]) -> Iterator[SampleView]:
    """The samples with these keys, in the order of the data. shown: the places of their records."""
    scorers, keeps = {info.signature: info for info in run.scorers}, bool(run.keeps_reasoning)
    for name, sample in with_texts(run.samples, shown):
        records = [run.records[place] for place in shown[name]]
        values = [value for record in records if (value := goodness(record, scorers[record.signature])) is not None]
        mean = sum(values) / len(values) if values else None
        yield sample_view(name, sample, records, scorers, run.titles, mean, keeps_reasoning=keeps)


# ---- What was run ----


def _facts(run: Run) -> Iterator[Fact]:
    if any(line.asked + line.shared + line.cached for line in run.summary):
        calls = calls_text(run.summary)
        yield Fact("Judge calls", calls.removeprefix("judge calls: "), calls)
    if cost := cost_text(run):
        yield Fact("Cost", cost.removeprefix("cost "), cost)
    if duration := duration_text(run):
        yield Fact("Duration", duration, duration)
    if text := retries(run.warnings):
        yield Fact("Retries", text, text)
    if run.resumed:
        text = f"{count(run.resumed, 'result')} from {_resumed_from(run)}"
        yield Fact("Resumed", text, f"resumed: {text}")
    yield Fact("Started", run.started.replace("T", " ").removesuffix("+00:00") + " UTC")
    yield Fact("Dataset version", run.dataset_version)
    yield Fact("Run", run.id)


def _resumed_from(run: Run) -> str:
    """When the results of a resumed run are from, in local time, and which code is the same since."""
    if not run.resumed_at:
        return "the interrupted run"
    when = local_time(iso_time(run.started))
    is_today = when.date() == local_time(datetime.now(UTC)).date()
    text = f"{when:%H:%M}" if is_today else f"{when:%Y-%m-%d %H:%M}"
    if not run.code:
        return text
    names = joined(run.code) if len(run.code) <= SHOWN_FILES else shortlist(run.code, most=SHOWN_FILES)
    return f"{text}; the code of {names} is unchanged"


def retries(warnings: Mapping[str, int]) -> str:
    """The retried requests and the timeouts: "retried 40 × HTTP 429; 2 timeouts"."""
    others = (*NOTED, MALFORMED, TIMEOUTS)
    retried = [f"{times:,} × {what}" for what, times in warnings.items() if not what.endswith(others)]
    parts = [f"retried {listed(retried)}"] if retried else []
    return "; ".join([*parts, count(warnings[TIMEOUTS], "timeout")] if TIMEOUTS in warnings else parts)


# ---- Scores ----


def _scores(run: Run, calibrations: Mapping[str, Sequence[Calibration]], labeled: Container[str]) -> Section:
    """labeled: The signatures of the scorers whose results are corrected with labels."""
    columns = (
        words("scorer"),
        Column("weighted mean" if weighted(run) else "mean", csv="mean"),
        Column("95% CI", numeric=False, interval=True),
        words("distribution"),
        Column("scores", informative=False, csv="n_score"),
        Column("skipped", informative=False, csv="n_skipped"),
        Column("failed", informative=False, csv="n_failed"),
        words("direction", under=True),
    )
    rows = [_score_row(line, run.titles[line.info.signature]) for line in run.summary]
    bounds = any(line.bounds is not None for line in run.summary)
    legend = ("Bounds in the charts: where the mean would be, whatever the missing scores are.",) if bounds else ()
    scores = table("Mean score of each scorer, with its 95% confidence interval", columns, rows)
    doubts = [(line, clause_of(line.doubt)) for line in run.summary if line.doubt is not None]
    quality: list[tuple[ScorerSummary, str]] = []
    for line in run.summary:
        if line.n_score and (known := calibrations.get(line.info.signature)) is not None:
            imported = bool(line.info.tool)
            if imported and not known and line.info.signature in labeled:
                continue
            for text, doubtful in calibration_notes(known, line.judges, imported=imported):
                (doubts if doubtful else quality).append((line, text))
    facts = sentences_of(each for each in doubts_of(run) if each.severity == "fact")
    notes = (*facts, *run_notes(run), *_by_scorer(run, quality), *_label_notes(run))
    lost = loss_note(run)
    return Section(
        "Scores",
        lead=() if lost is None else (sentence_of(lost),),
        tables=(scores,),
        warnings=tuple(_by_scorer(run, doubts)),
        notes=notes,
        legend=legend,
    )


def _label_notes(run: Run) -> Iterator[str]:
    """How well the scores of grounding agree with the labels that the data has."""
    if (check := check_grounding(run)) is not None:
        labels = f"labels of the data: {check.grounded:,} grounded, {check.ungrounded:,} not"
        lines = [line for line in run.summary if line.info.signature in check.auroc]
        areas = _by_scorer(run, ((line, f"AUROC {check.auroc[line.info.signature]:.2f}") for line in lines))
        yield "; ".join([labels, *areas])


def weighted(run: Run) -> bool:
    """Whether a mean of the run is weighted."""
    return any(line.interval is not None and line.interval.effective is not None for line in run.summary)


def _score_row(line: ScorerSummary, title: str) -> Sequence[Cell]:
    info = line.info
    mean, interval = interval_cells(title, line.interval, info.scale, info.lower_is_better)
    if isinstance(interval.chart, IntervalChart) and line.bounds is not None:
        label = f"{interval.chart.label}; whatever is missing, between {line.bounds[0]:.3g} and {line.bounds[1]:.3g}"
        interval = replace(interval, chart=replace(interval.chart, label=label, bounds=line.bounds))
    histogram = HistogramChart(
        f"{title}: {count(line.n_score, 'score')} from 0 to {info.scale:g}", line.histogram, info.scale
    )
    return (
        Cell(title if info.scale == 1 else f"{title} (of {info.scale:g})"),
        mean,
        interval,
        Cell("", chart=histogram if line.n_score else None),
        Cell(f"{line.n_score:,}"),
        Cell(f"{line.n_skipped:,}", "unsure" if line.n_skipped else "dim"),
        Cell(f"{line.n_failed:,}", "bad" if line.n_failed else "dim"),
        Cell(direction(info.lower_is_better), "dim"),
    )


def run_notes(run: Run) -> list[str]:
    """Notes on the numbers: missing scores, small or clustered samples, corrections, and composite judges."""
    notes = [each for line in run.summary for each in scores_note(line, run.titles[line.info.signature], run.trials)]
    return [
        *by_scorer(notes, len(run.scorers)),
        *filter(None, (corrections_text(run),)),
        *judge_notes(run.judge_stats),
    ]


def _by_scorer(run: Run, texts: Iterable[tuple[ScorerSummary, str]]) -> list[str]:
    """The distinct texts on scorers, each after the titles of its scorers."""
    return by_text(((run.titles[line.info.signature], text) for line, text in texts), len(run.scorers), "all scorers")


def judge_notes(stats: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A line for each composite judge: what it escalated and saved, or how well its members agreed."""
    names = bare_judges(stats)
    for judge, counts in stats.items():
        show = _OF_KINDS.get(counts["kind"])
        said = f"statistics of an unknown kind, {counts['kind']}" if show is None else show(counts)
        yield f"{names[judge]}: {said}"


def _cascade(counts: Mapping[str, Any]) -> str:
    saved, cost = counts["saved_calls"], counts["saved_cost"]
    questions, share = count(counts["questions"], "question"), percent(counts["share"])
    ends = counts.get("share_interval")  # absent from results of earlier versions
    interval = "" if ends is None else f", 95% CI {percents(*ends)}"
    # A question with several verdicts may have escalated in part.
    escalated = float(counts["escalated"])
    number_of = f"{escalated:,.0f}" if escalated.is_integer() else f"about {escalated:,.1f}"
    text = f"{number_of} of {questions} escalated ({share}{interval}), "
    text += f"{count(saved, 'call')} of {bare_judge(counts['fallback'])} saved"
    return f"{text}, about ${cost:.4f}" if cost else text


def _vote(counts: Mapping[str, Any]) -> str:
    text = count(counts["questions"], "question")
    if counts["verdicts"]:
        low, high = counts["agreement_interval"]
        text += f", {count(counts['verdicts'], 'verdict')} with a mean agreement of {counts['agreement']:.3f}"
        text += f" (95% CI {limits(low, high)})"
        if "flip_rate" in counts:
            text += f", flip rate {counts['flip_rate']:.3f} ({limits(1 - high, 1 - low)})"
    if counts["no_answer"]:
        text += "; no answer from " + listed(
            f"{short_judge(name)} ({times})" for name, times in counts["no_answer"].items()
        )
    return text


def _aligned(counts: Mapping[str, Any]) -> str:
    text = f"{count(counts['questions'], 'question')} asked as aligned"
    if counts["changed"]:
        text += f", {count(counts['changed'], 'answer')} changed by mapped probabilities"
    if counts["left_out"]:
        text += f"; {count(counts['left_out'], 'sample')} judged without the example that it is itself"
    return text


_OF_KINDS = {"aligned": _aligned, "cascade": _cascade, "panel": _vote, "self_consistency": _vote}


def _missing(run: Run) -> Iterator[Section]:
    """The most frequent reasons for skipped and failed results with the first samples, and the number of others."""
    rows: list[Sequence[Cell | str]] = []
    reasons = {line.info.signature: _reasons(line) for line in run.summary}
    first = _first_missing(run, reasons)
    for line in run.summary:
        for reason, times in reasons[line.info.signature].items():
            names = first[line.info.signature, reason]
            more = f" and {times - len(names):,} more" if times > len(names) else ""
            samples = Cell(listed(names) + more, quoted=True)
            cells = f"{times:,}", Cell(reason or "other reasons", quoted=True), samples
            rows.append((run.titles[line.info.signature], *cells))
    if rows:
        columns = (
            words("scorer"),
            Column("results"),
            words("reason"),
            words("samples" if run.trials == 1 else "trials"),
        )
        yield Section("Skipped and failed", tables=(table("Why results are missing", columns, rows),))


def _reasons(line: ScorerSummary) -> dict[str, int]:
    """How often scores are missing by reason, "" for less frequent reasons."""
    rest = line.n_skipped + line.n_failed - sum(times for _, times in line.reasons)
    return {**dict(line.reasons), **({"": rest} if rest > 0 and line.reasons else {})}


def _first_missing(run: Run, reasons: Mapping[str, Mapping[str, int]]) -> Mapping[tuple[str, str], Sequence[str]]:
    """The first samples without a score by scorer and reason. Long IDs are shortened.

    reasons: by scorer, as of `_reasons`.
    """
    first: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    left = sum(min(times, FIRST_MISSING) for of in reasons.values() for times in of.values())
    for signature, key, reason in missing_in(run.columns, run.records) if left else ():
        names = first[signature, reason if reason in reasons[signature] else ""]
        if len(names) < FIRST_MISSING:
            names.append(safe(key, LONGEST_ID))
            left -= 1
            if not left:
                break
    return first
