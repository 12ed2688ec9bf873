"""A run on a terminal: the table, the worst samples with their reasons, and what went wrong.

Judged text is shown as text: no markup of it is read, and control and direction characters are made visible.
"""

from __future__ import annotations

import heapq
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from evalstone._core.json import to_jsonable
from evalstone.report.phrases import notes
from evalstone.results.run import Run, numbers
from evalstone.results.summary import ScorerInfo, ScorerSummary
from evalstone.types import Record, Sample, Score

LONGEST = 240
MOST_CLAIMS = 4


def show_run(run: Run, console: Console, *, dataset: Iterable[Sample] | None = None, worst: int = 3) -> None:
    """Print a run. dataset: where the samples' questions and answers are shown from, if the run has none at hand."""
    console.print(_heading(run))
    console.print(_table(run))
    for told in notes(run):
        console.print(Text(safe(told, 1000), style="dim"))
    console.print(_footing(run))
    if shown := _worst(run, run.dataset if dataset is None else dataset, worst):
        console.print(Text("\nWorst samples", style="bold"))
        for item in shown:
            console.print(item)
    for line in run.summary:
        if line.reasons:
            console.print(_absences(line))


def safe(text: str, width: int = LONGEST) -> str:
    """Text on one line of at most `width` characters, with control, format and direction characters made visible."""
    line = " ".join(text[: 4 * width].split())
    cut = line if len(line) <= width and len(text) <= 4 * width else line[: width - 1] + "…"
    return "".join(_visible(c) for c in cut)


def _visible(character: str) -> str:
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return f"\\u{ord(character):04x}"
    return character


def money(cost: float | None) -> str:
    """US dollars for people."""
    if cost is None:
        return "unknown"
    return f"${cost:.2f}" if cost >= 1 or cost == 0 else f"${cost:.4f}"


def _heading(run: Run) -> RenderableType:
    judged = f"{len({record.sample for record in run.records})} of " if run.stop_reason else ""
    count = f": {judged}{run.samples} samples, judged by "
    line = Text.assemble((safe(run.dataset_name), "bold"), count, (safe(run.judge, 500), "bold"))
    return Group(line, Text(safe(run.judge_note, 1000), style="dim")) if run.judge_note else line


def _table(run: Run) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("scorer")
    for name in ("mean", "95 % interval", "scored", "skipped", "failed"):
        table.add_column(name, justify="right")
    table.add_column("better", justify="left")
    for line in run.summary:
        mean, spread, scored, skipped, failed = numbers(line)
        table.add_row(
            Text(_title(line.info, run.titles)),
            Text(mean, style="bold"),
            spread,
            scored,
            Text(skipped, style="yellow" if line.skipped else "dim"),
            Text(failed, style="red" if line.failed else "dim"),
            "lower" if line.info.lower_is_better else "higher",
        )
    return table


def _title(info: ScorerInfo, titles: Mapping[str, str]) -> str:
    title = titles[info.signature]
    return title if info.scale == 1 else f"{title} (of {info.scale:g})"


def _footing(run: Run) -> Text:
    questions = sum(line.questions for line in run.summary)
    cached = sum(line.cached for line in run.summary)
    told = f"{questions - cached} questions asked, {cached} cached, {run.seconds:.1f} s, cost {money(run.cost)}"
    if run.warnings:
        told += "; met " + ", ".join(f"{count} {what}" for what, count in run.warnings.items())
    if run.resumed:
        told += f"; {run.resumed} outcomes taken over from an unfinished run"
    return Text(told, style="dim")


def _goodness(record: Record, info: ScorerInfo) -> float:
    fraction = record.outcome.fraction if isinstance(record.outcome, Score) else 0.0
    return 1 - fraction if info.lower_is_better else fraction


def _worst(run: Run, dataset: Iterable[Sample] | None, count: int) -> list[RenderableType]:
    """The samples with the lowest mean over their scores, each with its scores and reasons."""
    if not count:
        return []
    scorers = {info.signature: replace(info, name=run.titles[info.signature]) for info in run.scorers}
    lowest = heapq.nsmallest(count, _imperfect(run.records, scorers), key=lambda item: item[0])
    names = {records[0].sample for _, records in lowest}
    samples = {s.id: s for s in dataset if s.id in names} if dataset is not None and names else {}
    return [_sample(records, scorers, samples.get(records[0].sample)) for _, records in lowest]


def _imperfect(records: Iterable[Record], scorers: Mapping[str, ScorerInfo]) -> Iterator[tuple[float, list[Record]]]:
    """Each sample's scored records with their mean goodness, where that is not perfect; records come by sample."""
    for _, group in itertools.groupby(records, key=lambda record: record.sample):
        scored = [record for record in group if isinstance(record.outcome, Score)]
        if scored and (mean := sum(_goodness(r, scorers[r.scorer]) for r in scored) / len(scored)) < 1:
            yield mean, scored


def _sample(records: Sequence[Record], scorers: Mapping[str, ScorerInfo], sample: Sample | None) -> RenderableType:
    lines: list[RenderableType] = []
    if sample is not None and sample.input:
        lines.append(Text.assemble(("question  ", "dim"), safe(sample.input, 160)))
    if sample is not None and sample.output:
        lines.append(Text.assemble(("answer    ", "dim"), safe(sample.output)))
    fallen: dict[str, RenderableType] = {}
    for record in records:
        if isinstance(record.outcome, Score):
            claims = _fallen(record.outcome.evidence)
            told = re.split("[;:]", record.outcome.reason)[0] if claims else record.outcome.reason.rstrip(".")
            title = f"{scorers[record.scorer].name} {record.outcome.value:.3g}"
            lines.append(Text.assemble((title, "bold"), f"  {safe(told, 400)}"))
            fallen.update(claims)
    lines.extend(list(fallen.values())[:MOST_CLAIMS])
    if len(fallen) > MOST_CLAIMS:
        lines.append(Text(f"  and {len(fallen) - MOST_CLAIMS} more claims", style="dim"))
    return Group(Text(safe(records[0].sample, 80), style="cyan"), Padding(Group(*lines), (0, 0, 1, 2)))


def _fallen(evidence: Any) -> dict[str, RenderableType]:
    """The claims that no passage supports, with the judge's word on each."""
    shown: dict[str, RenderableType] = {}
    for item in cast("Sequence[object]", evidence) if isinstance(evidence, list | tuple) else ():
        made = to_jsonable(item)
        data = cast("dict[str, Any]", made) if isinstance(made, dict) else {}
        if data.get("verdict") in ("contradicted", "not_mentioned"):
            claim, reason = safe(str(data.get("claim", "")), 160), safe(str(data.get("reason", "")), 200)
            verdict = str(data["verdict"]).replace("_", " ")
            shown[claim] = Padding(Text.assemble((f"{verdict}: ", "red"), claim, (f"  {reason}", "dim")), (0, 0, 0, 2))
    return shown


def _absences(line: ScorerSummary) -> Text:
    text = Text(f"\n{line.info.name}: {line.skipped} skipped, {line.failed} failed\n", style="bold")
    for reason, count in line.reasons:
        text.append(f"  {count} x {safe(reason)}\n", style="")
    text.rstrip()
    return text
