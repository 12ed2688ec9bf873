"""Comparisons of runs as reports: differences between runs, drift of a judge, and sample sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from evalstone._core.display import (
    digits_for,
    listed,
    number,
    p_value,
    percent,
    percents,
    sentences,
    signed,
)
from evalstone.report.view import (
    FOOTER,
    Block,
    Cell,
    Column,
    DifferenceChart,
    Examples,
    Fact,
    Outcome,
    SampleView,
    Section,
    Table,
    Tone,
    View,
    direction,
    table,
    words,
)
from evalstone.results.compare import Change, Comparison, ScorerComparison
from evalstone.results.comparison_text import (
    VERDICTS,
    comparison_notes,
    difference,
    people_cells,
    people_header,
    sizes,
    slices_text,
    wins,
)
from evalstone.results.drift import DriftResult, ScorerDrift, drift_notes
from evalstone.results.human_labels import CorrectedDifference
from evalstone.results.of_scorer import OfScorer
from evalstone.results.power_analysis import PowerAnalysis
from evalstone.results.quality_text import power_notes, power_table
from evalstone.results.run import Run
from evalstone.results.views.samples import score_text, scored_answer
from evalstone.stats.comparison import Comparison as PairedComparison
from evalstone.stats.unpaired import UnpairedComparison
from evalstone.types import Record, Sample, Score

TONES: Mapping[str, Tone] = {"better": "good", "worse": "bad", "equivalent": "good", "inconclusive": "dim"}


# ---- Differences between runs ----


def comparison_view(comparison: Comparison, *, most: int = 3) -> View:
    """Runs compared with the first one. most: how many of the most changed samples to show for each scorer."""
    reach = _reach(comparison.scorers)
    sections: list[Section] = []
    details: list[Section] = []
    for name in [*comparison.runs][1:]:
        lines = [line for line in comparison.scorers if line.b == name]
        people = [line for line in comparison.corrected if line.b == name]
        tables = (_table(lines, name, reach), *([_people_table(people, name)] if people else []))
        sections.append(Section(f"{name} vs. A", tables=tables))
        if sliced := [line for line in comparison.slices if line.b == name]:
            details.append(_sliced(sliced, name, reach, slices_text(comparison)))
    sections[-1] = replace(sections[-1], notes=tuple(comparison_notes(comparison)))
    names = comparison.names
    return View(
        name="Comparison",
        lead=listed(f"{name}: {names.get(name) or run.id}" for name, run in comparison.runs.items()),
        warnings=sentences(*comparison.warnings),
        sections=tuple(sections),
        examples=tuple(_changes(comparison, most)),
        details=tuple(details),
        facts=tuple(
            _run_fact(letter, run, names.get(letter, ""), run.dataset_name) for letter, run in comparison.runs.items()
        ),
        footer=FOOTER,
    )


def _run_fact(title: str, run: Run, *names: str) -> Fact:
    named = [name for name in names if name not in ("", run.id)]
    text = " · ".join([*named, run.samples_and_judge, f"run {run.id}"])
    return Fact(title, text, f"{title}: {text}")


def _table(lines: Sequence[ScorerComparison], name: str, reach: Mapping[float, float]) -> Table:
    level = f"{100 * lines[0].result.difference.confidence:g}% CI" if lines else "95% CI"
    columns = (
        words("scorer"),
        words("slice"),
        Column("n", informative=False),
        Column("A"),
        Column(name),
        Column("difference"),
        words(level),
        Column("p"),
        Column("win/tie/loss"),
        words("verdict"),
        words("direction", under=True),
    )
    slices = " by slice" if any(line.field for line in lines) else ""
    return table(f"{name} compared with A{slices}", columns, [_row(line, reach[line.info.scale]) for line in lines])


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


def _row(line: ScorerComparison, reach: float) -> Sequence[Cell]:
    result, verdict, tone = line.result, VERDICTS[line.verdict], TONES[line.verdict]
    return (
        Cell(line.title),
        Cell(f"{line.field}={line.key}" if line.field else "", quoted=bool(line.field)),
        Cell(sizes(result)),
        *_difference_cells(line, result, "difference", verdict, tone, reach),
        Cell(p_value(line.adjusted_p_value), under=f"unadjusted {p_value(result.p_value)}"),
        Cell(wins(line)),
        Cell(verdict, tone),
        Cell(direction(line.info.lower_is_better), "dim"),
    )


def _difference_cells(
    one: OfScorer, result: PairedComparison | UnpairedComparison, noun: str, verdict: str, tone: Tone, reach: float
) -> Iterator[Cell]:
    """Both means, their difference and its interval, with a chart."""
    a, b, change, limits_text = difference(one, result)
    label, interval = f"{one.title}: {noun} {change}, interval {limits_text}, {verdict}", result.difference
    chart = DifferenceChart(label, interval.mean, interval.low, interval.high, reach, tone)
    yield from (Cell(a), Cell(b), Cell(change, "strong"), Cell(limits_text, chart=chart))


def _ends(result: PairedComparison | UnpairedComparison) -> Iterator[float]:
    difference = result.difference
    yield from (abs(end) for end in (difference.mean, difference.low, difference.high) if end is not None)


def _reach(lines: Iterable[ScorerComparison]) -> Mapping[float, float]:
    """The end of the axis for each scale. All tables of a comparison share it, so that their charts are comparable."""
    farthest: dict[float, float] = {}
    for line in lines:
        farthest[line.info.scale] = max(farthest.get(line.info.scale, 0.0), *_ends(line.result))
    return {scale: _rounded_up(end) if end else scale for scale, end in farthest.items()}


def _rounded_up(value: float) -> float:
    """The next of 1, 2 or 5 times a power of ten, with a margin for the marker."""
    power = 10.0 ** math.floor(math.log10(value * 1.02))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 1.02)


def _sliced(lines: Sequence[ScorerComparison], name: str, reach: Mapping[float, float], note: str) -> Section:
    lead = [
        f"{line.title}, {line.field}={line.key}: {VERDICTS[line.verdict]}, {signed(line.result.difference.mean)} "
        f"(n = {sizes(line.result)}, p {p_value(line.adjusted_p_value)})."
        for line in lines
        if line.verdict != "inconclusive"
    ]
    lead = lead or ["No significant difference in any slice."]
    legend = "The axes are those of the comparison above; intervals that exceed them are cut off."
    tables = (_table(lines, name, reach),)
    return Section(f"{name} vs. A by slice", tuple(lead), tables, notes=(note,), legend=(legend,), folded=True)


def _changes(comparison: Comparison, most: int) -> Iterator[Examples]:
    """The samples that changed most, with the answers and reasons of both runs."""
    shown: dict[str, set[str]] = {}
    for line in comparison.scorers:
        for change in line.changes[:most]:
            shown.setdefault(line.a, set()).add(change.sample)
            shown.setdefault(line.b, set()).add(change.sample_b)
    texts: dict[str, dict[tuple[str, int | None], Sample]] = {}
    records: dict[str, dict[tuple[str, str], list[Record]]] = {}
    for name, run in comparison.runs.items():
        names = shown.get(name, set())
        keeps = bool(run.keeps_reasoning)
        texts[name] = {
            (s.id, s.trial): replace(s, output=s.output and scored_answer(s, keeps_reasoning=keeps).answer)
            for s in run.dataset or ()
            if s.id in names
        }
        records[name] = {}
        for record in run.records:
            if record.sample in names:
                records[name].setdefault((record.sample, record.scorer), []).append(record)
    for line in comparison.scorers:
        if line.changes[:most]:
            changes = tuple(_change(line, change, texts, records) for change in line.changes[:most])
            yield Examples(f"Most changed: {line.title}, {line.a} to {line.b}", changes)


def _change(
    line: ScorerComparison,
    change: Change,
    texts: Mapping[str, Mapping[tuple[str, int | None], Sample]],
    records: Mapping[str, Mapping[tuple[str, str], Sequence[Record]]],
) -> SampleView:
    """A changed sample. Of several trials, it shows the one that illustrates the change best: for the run with the
    lower mean, the one with the lowest score."""
    question = ""
    gain = (change.a - change.b) if line.info.lower_is_better else (change.b - change.a)
    both: list[Block] = []
    sides = (
        (line.a, line.info, change.sample, change.a, change.b),
        (line.b, line.info_b, change.sample_b, change.b, change.a),
    )
    for name, info, id, value, other in sides:
        scored = [r for r in records[name].get((id, info.signature), ()) if isinstance(r.outcome, Score)]
        pick = min if value < other else max
        record = pick(scored, key=lambda record: record.value or 0.0, default=None)
        sample = texts[name].get((id, None if record is None else record.trial))
        answer = sample.output if sample is not None and sample.output is not None else "The text is not available."
        question = question or (sample.input if sample is not None and sample.input else "")
        score = score_text(value, line.info.scale)
        title = f"{name} · {score}"
        if record is not None and record.trial is not None and record.value is not None:
            shown = score_text(record.value, line.info.scale)
            title = f"{name} in trial {record.trial} · {shown}; mean of the trials {score}"
        reason = "" if record is None else getattr(record.outcome, "reason", "")
        both.append(Block("passage", title, answer, why=reason))
    values = f"{score_text(change.a, line.info.scale)} → {score_text(change.b, line.info.scale)}"
    panel = (Block("part", "Question", question),) if question else ()
    tone: Tone = "good" if gain > 0 else "bad"
    outcomes = (Outcome(line.title, change.b, values, tone, ""),)
    return SampleView(change.sample, question, "", None, outcomes, panel=(*panel, Block("columns", items=tuple(both))))


# ---- Drift of a judge ----

DRIFT: Mapping[str, tuple[str, Tone]] = {
    "drifted": ("drifted", "bad"),
    "stable": ("stable", "good"),
    "inconclusive": ("inconclusive", "unsure"),
}


def drift_view(result: DriftResult) -> View:
    """Whether a judge's scores of the same anchors changed."""
    confidence = result.confidence
    columns = (
        words("scorer"),
        *map(Column, ("n", "before", "now", "change")),
        words(f"{100 * confidence:g}% CI"),
        *map(Column, ("p", "changed", f"{100 * confidence:g}% CI", "largest change")),
        words("drift"),
    )
    reach = max((end for one in result.scorers for end in _ends(one.drift.comparison)), default=0.0)
    rows = [_drift_row(one, _rounded_up(reach) if reach else 1.0) for one in result.scorers]
    scores = table("Scores of the same anchors, then and now", columns, rows)
    runs = {"Before": result.before, "Now": result.now}
    return View(
        name="Judge drift",
        lead=listed(dict.fromkeys(run.dataset_name for run in runs.values())),
        sections=(Section("Drift", tables=(scores,), notes=tuple(drift_notes(result))),),
        facts=tuple(_run_fact(name, run) for name, run in runs.items()),
        footer=FOOTER,
    )


def _drift_row(one: ScorerDrift, reach: float) -> Sequence[Cell]:
    result, (verdict, tone) = one.drift.comparison, DRIFT[one.drift.verdict]
    mark: Tone = "unsure" if tone == "bad" else "dim"  # drift is neither better nor worse
    return (
        Cell(one.title),
        Cell(f"{result.n:,}"),
        *_difference_cells(one, result, "change", verdict, mark, reach),
        Cell(p_value(one.drift.adjusted_p_value), under=f"unadjusted {p_value(one.drift.p_value)}"),
        Cell(percent(one.drift.changed.mean)),
        Cell(percents(one.drift.changed.low, one.drift.changed.high)),
        Cell(number(one.drift.largest_change, digits_for(one.info.scale))),
        Cell(verdict, tone),
    )


# ---- Sample size ----


def power_view(analysis: PowerAnalysis) -> View:
    """How many samples two runs need: one row per scorer."""
    (_, *titles), *rows = power_table(analysis)
    columns = (Column("scorer", numeric=False), *map(Column, titles))
    cells = tuple((Cell(name), Cell(needed, "strong"), *map(Cell, others)) for name, needed, *others in rows)
    return View(
        name="Sample size",
        lead=f"to detect a true difference of {analysis.difference:g} with a power of {percent(analysis.power)}",
        sections=(Section("", tables=(Table("Samples needed", columns, cells),), notes=tuple(power_notes(analysis))),),
        footer=FOOTER,
    )
