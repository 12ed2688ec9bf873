"""A plan of sample sizes as a view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalstone._core.display import number, percent
from evalstone._core.front_ends import PYTHON, FrontEnd, Hint, Setting
from evalstone.report.notes import sentences_of
from evalstone.report.view import FOOTER, Cell, Column, Section, Table, View
from evalstone.types import of_scorer

if TYPE_CHECKING:
    from evalstone.results.power_analysis import PowerAnalysis
    from evalstone.stats.pilot import SampleSizePlan


RANGE = "80% range"


def power_view(analysis: PowerAnalysis, front_end: FrontEnd = PYTHON) -> View:
    """How many samples two runs need: one row per scorer."""
    (_, *titles), *rows = power_table(analysis)
    columns = (Column("scorer", numeric=False), *(Column(title, interval=title == RANGE) for title in titles))
    cells = tuple((Cell(name), Cell(needed, "strong"), *map(Cell, others)) for name, needed, *others in rows)
    return View(
        name="Sample size",
        lead=f"to detect a true difference of {analysis.difference:g} with a power of {percent(analysis.power)}",
        sections=(
            Section(
                "", tables=(Table("Samples needed", columns, cells),), notes=tuple(power_notes(analysis, front_end))
            ),
        ),
        footer=FOOTER,
    )


def power_table(analysis: PowerAnalysis) -> list[tuple[str, ...]]:
    """The header, and the plan of each scorer."""
    return [
        ("scorer", "samples needed", RANGE, "pilot samples", "std. deviation", "minimum detectable difference"),
        *(
            (
                one.title,
                *_samples_needed(one.plan),
                f"{one.plan.n:,}",
                number(one.plan.deviation),
                number(one.plan.detectable),
            )
            for one in analysis
        ),
    ]


def _samples_needed(plan: SampleSizePlan) -> tuple[str, str]:
    low, needed, high = (
        "-" if number is None else f"{number:,}" for number in (plan.needed_low, plan.needed, plan.needed_high)
    )
    if plan.needed is None:
        needed = "no number is enough"
    return needed, low if low == high else f"{low} to {high}"


def power_notes(analysis: PowerAnalysis, front_end: FrontEnd) -> Iterator[str]:
    """What the plan assumes, what it is for, and why to doubt it."""
    if analysis.baseline is not None:
        yield "Both runs score the same samples; the deviation is that of the differences between the two pilot runs."
    else:
        second = Hint.of("; add ", Setting("baseline", ...), " with a second pilot run")
        yield (
            "Both runs score the same samples. Their scores are assumed to be uncorrelated, which usually gives far "
            f"too many samples{front_end.written([second])}."
        )
    yield "80% range: contains the number that is actually needed in at least 80% of pilots."
    tests: dict[str, list[str]] = {}
    for one in analysis:
        tests.setdefault(one.plan.test, []).append(one.title)
    for test, titles in tests.items():
        yield f"Planned for the {test}: {', '.join(titles)}."
    for one in analysis:
        if one.plan.groups is not None:
            yield f"{one.title}: clustered samples; the plan is for {one.plan.groups:,} clusters like the pilot's."
        yield from sentences_of(of_scorer(one.plan.notes, one.title), front_end)
