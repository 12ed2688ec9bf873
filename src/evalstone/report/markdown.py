"""Markdown for a pull request or a page of notes: tables of numbers, and judged text in code spans.

Within a code span nothing is a link, a picture, a mention or HTML, so that no judged text can act in a discussion.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence

from evalstone.report.phrases import absences, ending, footing, heading, notes
from evalstone.report.results import results_of
from evalstone.report.terminal import money, safe
from evalstone.results.power_analysis import detectable_note
from evalstone.results.run import Run, numbers
from evalstone.types import Score

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$@:&-])")


def literal(text: str, width: int = 160) -> str:
    """Judged text as a code span on one line."""
    line = safe(text, width) or " "
    ticks = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def literal_cell(text: str, width: int = 160) -> str:
    """Judged text as a code span within a table, where a bar must be escaped and nowhere else."""
    return literal(text, width).replace("|", "\\|")


def prose(text: str) -> str:
    """Text of ours that may hold a name of someone else's: every sign that Markdown reads is escaped."""
    return _SPECIAL.sub(r"\\\1", safe(text, 2000))


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """A table whose first `left` columns are set to the left and whose others to the right. Cells are Markdown."""
    yield "| " + " | ".join(header) + " |"
    yield "|" + "|".join([" :-- "] * left + [" --: "] * (len(header) - left)) + "|"
    yield from ("| " + " | ".join(row) + " |" for row in rows)


def run_markdown(run: Run, *, worst: int = 3, sections: Iterable[str] = ()) -> Iterator[str]:
    """A run as lines of Markdown. worst: how many of the least good samples are shown. sections: further lines."""
    yield f"### {literal(run.dataset_name)}"
    yield ""
    yield prose(
        heading(run) + (f". {run.judge_note[0].upper()}{run.judge_note[1:].rstrip('.')}." if run.judge_note else "")
    )
    yield ""
    if told := ending(run):
        yield from (f"**{prose(told)}**", "")
    rows = [
        (prose(run.titles[line.info.signature]), *numbers(line), "lower" if line.info.lower_is_better else "higher")
        for line in run.summary
    ]
    yield from table(("scorer", "mean", "95 % interval", "scored", "skipped", "failed", "better"), rows)
    yield ""
    yield from (f"- {prose(told)}" for told in notes(run))
    for line in run.summary:
        title = prose(run.titles[line.info.signature])
        yield from (f"- {title}: {count} × {literal(reason, 240)}" for reason, count in absences(line))
    yield from sections
    yield from _worst(run, worst)
    yield ""
    told = (f"{run.seconds:.1f} s, cost {money(run.cost)}", detectable_note(run), footing(run))
    yield "<sub>" + prose(". ".join(line.rstrip(".") for line in told if line)) + ".</sub>"


def _worst(run: Run, count: int) -> Iterator[str]:
    imperfect = (result for result in results_of(run) if result.goodness is not None and result.goodness < 1)
    chosen = heapq.nsmallest(count, imperfect, key=lambda result: result.goodness or 0.0)
    if not chosen:
        return
    yield from ("", "<details><summary>Worst samples</summary>", "")
    for result in chosen:
        yield f"- {literal(result.id, 80)}"
        if result.sample is not None:
            held = (("question", result.sample.input), ("answer", result.sample.output))
            yield from (f"  - {name} {literal(text)}" for name, text in held if text)
        for record in result.records:
            if isinstance(record.outcome, Score):
                title = prose(run.titles[record.scorer])
                yield f"  - {title} **{record.outcome.value:.3g}** {literal(record.outcome.reason, 240)}"
    yield from ("", "</details>")
