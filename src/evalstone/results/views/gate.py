"""A gate as a report: each check with its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evalstone.report.view import FOOTER, Cell, Column, Fact, Section, Table, Tone, View, table, words
from evalstone.results.gate import Gate
from evalstone.results.gate_text import (
    MARKS,
    MISSES,
    check_cells,
    check_name,
    gate_notes,
    limits_name,
    miss_cells,
    overall_text,
    verdict_text,
)
from evalstone.stats.gates import Decision, Verdict

TONES: Mapping[Verdict, Tone] = {"pass": "good", "fail": "bad", "inconclusive": "unsure"}


def gate_view(gate: Gate) -> View:
    """A gate: each check with its verdict."""
    baseline = () if gate.baseline is None else (Fact("Baseline", gate.baseline.id),)
    tables = (checks_table(gate.decisions, gate.next_look), *_misses(gate.decisions))
    overall = overall_text(gate)
    return View(
        name="evalstone gate",
        lead=f"{gate.run.dataset_name} · {gate.run.samples_and_judge}",
        verdict=Cell(overall, TONES[gate.verdict] if overall == MARKS[gate.verdict] else "unsure"),
        sections=(Section("Checks", tables=tables, notes=tuple(gate_notes(gate))),),
        facts=(Fact("Run", gate.run.id), *baseline),
        footer=FOOTER,
    )


def _misses(decisions: Sequence[Decision]) -> Iterator[Table]:
    """The first samples that don't meet a requirement."""
    rows = [(decision.name, *miss_cells(miss)) for decision in decisions for miss in decision.misses]
    if rows:
        columns = [Column(title) if title == "score" else words(title) for title in MISSES]
        yield table("Samples without the best score", columns, rows)


def decisions_view(decisions: Sequence[Decision]) -> View:
    """The state of the checks of a running evaluation, without the number of samples that they still need."""
    return View("", "", (Section("", tables=(checks_table(decisions),)),))


def checks_table(decisions: Sequence[Decision], next_look: int | None = None) -> Table:
    """One row per check. next_look: the look for which the number of additional samples was computed; None if none."""
    columns = (
        words("check"),
        *(Column(title) for title in ("estimate", limits_name(decisions), "required", "n")),
        words("verdict"),
    )
    rows = [(check_name(d), *check_cells(d), Cell(verdict_text(d, next_look), TONES[d.verdict])) for d in decisions]
    return table("Checks of the gate", columns, rows)
