"""A run as one HTML page that opens offline, in light and dark, and prints.

Its samples lie in blocks of JSON that are read when they are shown.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evalstone._core.json import to_jsonable
from evalstone.report.page import escaped, json_block, page
from evalstone.report.phrases import absences, ending, footing, heading, notes
from evalstone.report.results import SampleResult, results_of
from evalstone.report.svg import histogram, interval_plot
from evalstone.report.terminal import money
from evalstone.results.power_analysis import detectable_note
from evalstone.results.run import Run, numbers
from evalstone.results.summary import ScorerSummary
from evalstone.types import OUTCOME_NAMES, Failed, JudgeCall, Record, Sample, Score

MOST_SAMPLES = 10_000
CHUNK = 100
EXCERPT = 200


def run_page(run: Run, *, most: int = MOST_SAMPLES, sections: Iterable[str] = ()) -> Iterator[str]:
    """A run as an HTML page, in pieces.

    most: how many samples it holds, the least good ones when there are more. sections: further parts of the page, as
    HTML in which judged text is escaped already.
    """
    return page(f"{run.dataset_name} · evalstone", _body(run, most, sections), script="run.js")


def _body(run: Run, most: int, sections: Iterable[str]) -> Iterator[str]:
    yield "<header>\n"
    yield f"<h1>{escaped(run.dataset_name)}</h1>\n<p class='lead'>{escaped(heading(run))}</p>\n"
    yield f"<p class='note'>{escaped(run.judge_note)}</p>\n" if run.judge_note else ""
    yield from (f"<p class='warning' role='note'>{escaped(line)}</p>\n" for line in _warnings(run))
    yield f"<dl class='facts'>{''.join(_fact(name, told) for name, told in _facts(run))}</dl>\n</header>\n<main>\n"
    yield from _scores(run)
    yield from _absences(run.summary, run.titles)
    yield from sections
    yield from _samples(run, most)
    told = "".join(f"<p>{escaped(line)}</p>" for line in (detectable_note(run), footing(run)) if line)
    yield f"</main>\n<footer>{told}</footer>\n"


def _warnings(run: Run) -> Iterator[str]:
    if told := ending(run):
        yield told
    if run.failed:
        yield f"{run.failed} outcomes failed. They are in no mean; why is said below."


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    questions, cached = (sum(getattr(line, name) for line in run.summary) for name in ("questions", "cached"))
    yield "Started", run.started.replace("T", " ").removesuffix("+00:00") + " UTC"
    yield "Took", f"{run.seconds:.1f} s"
    yield "Questions", f"{questions - cached:,} asked, {cached:,} cached"
    yield "Cost", money(run.cost)
    if run.warnings:
        yield "Met", ", ".join(f"{count} {what}" for what, count in run.warnings.items())
    if run.resumed:
        yield "Taken over", f"{run.resumed:,} outcomes of an unfinished run"
    yield "Data set version", run.version
    yield "Run", run.id


def _fact(name: str, told: str) -> str:
    return f"<div><dt>{name}</dt><dd>{escaped(told)}</dd></div>"


def _scores(run: Run) -> Iterator[str]:
    values: dict[str, list[float]] = {info.signature: [] for info in run.scorers}
    for record in run.records:
        if isinstance(record.outcome, Score):
            values[record.scorer].append(record.outcome.value)
    yield "<section aria-labelledby='scores'><h2 id='scores'>Scores</h2>\n<table class='scores'>\n"
    yield (
        "<thead><tr><th scope='col'>scorer</th><th scope='col' class='number'>mean</th>"
        "<th scope='col'>95 % interval</th><th scope='col'>distribution</th>"
        "<th scope='col' class='number'>scored</th><th scope='col' class='number'>skipped</th>"
        "<th scope='col' class='number'>failed</th></tr></thead>\n<tbody>\n"
    )
    for line in run.summary:
        yield _score_row(line, run.titles[line.info.signature], values[line.info.signature])
    yield "</tbody></table>\n"
    drawn = any(line.bounds is not None and line.interval is not None for line in run.summary)
    thin = ("Thin lines with ends: where the mean would lie, whatever the missing scores are.",) if drawn else ()
    yield from (f"<p class='note'>{escaped(told)}</p>\n" for told in (*notes(run), *thin))
    yield "</section>\n"


def _score_row(line: ScorerSummary, title: str, values: Sequence[float]) -> str:
    mean, spread, scored, skipped, failed = numbers(line)
    interval, scale = line.interval, line.info.scale
    plots = ("", "")
    if interval is not None:
        told = f"{title}: mean {mean}, 95 % interval {spread}"
        if line.bounds is not None:
            told += f"; whatever is missing, between {line.bounds[0]:.3g} and {line.bounds[1]:.3g}"
        plots = (
            interval_plot(interval.mean, interval.low, interval.high, scale=scale, title=told, bounds=line.bounds),
            histogram(values, scale=scale, title=f"{title}: distribution of {scored} scores from 0 to {scale:g}"),
        )
    better = "lower is better" if line.info.lower_is_better else "higher is better"
    scored_of = f"{better}, of {scale:g}" if scale != 1 else better
    return (
        f"<tr><th scope='row'>{escaped(title)}<span class='under'>{scored_of}</span></th>"
        f"<td class='number value big'>{mean}</td><td>{plots[0]}<span class='under'>{spread}</span></td>"
        f"<td>{plots[1]}</td><td class='number' data-label='scored'>{scored}</td>"
        f"<td class='number' data-label='skipped'>{skipped}</td>"
        f"<td class='number{' bad' if line.failed else ''}' data-label='failed'>{failed}</td></tr>\n"
    )


def _absences(summary: Iterable[ScorerSummary], titles: Mapping[str, str]) -> Iterator[str]:
    rows = [
        f"<tr><th scope='row'>{escaped(titles[line.info.signature])}</th><td class='number'>{count}</td>"
        f"<td><span class='text'>{escaped(reason)}</span></td></tr>"
        for line in summary
        for reason, count in absences(line)
    ]
    if rows:
        yield "<section aria-labelledby='absent'><h2 id='absent'>Skips and failures</h2><div class='scroll'><table>"
        yield "<thead><tr><th scope='col'>scorer</th><th scope='col' class='number'>outcomes</th>"
        yield f"<th scope='col'>why</th></tr></thead><tbody>{''.join(rows)}</tbody></table></div></section>\n"


def _samples(run: Run, most: int) -> Iterator[str]:
    """The samples, in blocks of JSON: an index of all, and their texts in chunks that are read when they are shown."""
    yield "<section aria-labelledby='samples'><h2 id='samples'>Samples</h2>\n<div id='list'></div>\n"
    yield "<noscript><p>The list of samples needs JavaScript. Everything above does without.</p></noscript></section>\n"
    scorers = [{"title": run.titles[c.signature], "scale": c.scale, "lower": c.lower_is_better} for c in run.scorers]
    columns = {info.signature: number for number, info in enumerate(run.scorers)}
    index: list[list[Any]] = []
    results = results_of(run, most=most)
    for number, chunk in enumerate(iter(lambda: list(itertools.islice(results, CHUNK)), [])):
        index.extend(_entry(result, columns) for result in chunk)
        yield json_block(f"chunk{number}", [_detail(result, columns) for result in chunk])
    judged = len({record.sample for record in run.records})
    about = {"scorers": scorers, "chunk": CHUNK, "judged": len(index), "all": judged}
    yield json_block("about", about) + json_block("index", index)


def _entry(result: SampleResult, columns: Mapping[str, int]) -> list[Any]:
    """What the table shows of a sample: id, beginning of the question, an outcome for each scorer, goodness."""
    cells: list[Any] = [None] * len(columns)
    for record in result.records:
        cells[columns[record.scorer]] = record.value if record.value is not None else _kind(record)
    return [result.id, _question(result.sample)[:EXCERPT], cells, result.goodness]


def _kind(record: Record) -> str:
    return OUTCOME_NAMES[type(record.outcome)]


def _question(sample: Sample | None) -> str:
    if sample is None:
        return ""
    return sample.input or next((m.content for m in sample.messages if m.role == "user"), "") or sample.output or ""


def _detail(result: SampleResult, columns: Mapping[str, int]) -> dict[str, Any]:
    sample = result.sample
    return {
        "sample": None if sample is None else _texts(sample),
        "outcomes": [_outcome(record, columns[record.scorer]) for record in result.records],
    }


def _texts(sample: Sample) -> dict[str, Any]:
    """The texts of a sample under the names that people know."""
    messages = [
        [m.role, m.content, [[c.name, to_jsonable(c.arguments), to_jsonable(c.result), c.error] for c in m.tool_calls]]
        for m in sample.messages
    ]
    held = {
        "question": sample.input,
        "answer": sample.output,
        "reference": sample.reference,
        "instructions": sample.instructions,
        "passages": None if sample.context is None else list(sample.context),
        "messages": messages,
        "metadata": to_jsonable(sample.metadata),
        "trajectory": to_jsonable(sample.trajectory),
        "expected trajectory": to_jsonable(sample.expected_trajectory),
    }
    return {name: value for name, value in held.items() if value not in (None, [], {})}


def _outcome(record: Record, column: int) -> dict[str, Any]:
    outcome = record.outcome
    told: dict[str, Any] = {
        "scorer": column,
        "outcome": _kind(record),
        "reason": outcome.error if isinstance(outcome, Failed) else outcome.reason,
        "steps": [_step(step) for step in record.steps],
    }
    if isinstance(outcome, Score):
        told |= {"value": outcome.value, "evidence": to_jsonable(outcome.evidence)}
    if isinstance(outcome, Failed) and outcome.reply is not None:
        told["reply"] = outcome.reply
    return told


def _step(step: JudgeCall) -> list[Any]:
    return [step.question, step.judge, step.answer is not None, step.cached, step.seconds, step.cost, step.confidence]
