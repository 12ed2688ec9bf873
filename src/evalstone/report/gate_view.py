"""A gate as a report: each check with its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evalstone._core.display import count, percent, sentence
from evalstone.report.view import FOOTER, Cell, Column, Fact, Section, Table, Tone, View, table, words
from evalstone.results.gate import Gate
from evalstone.results.gate_text import (
    MARKS,
    MISSES,
    NO_VALUES,
    UNTESTED,
    check_cells,
    check_name,
    gate_notes,
    limits_name,
    miss_cells,
    overall_text,
    rate,
    verdict_text,
)
from evalstone.stats.gates import SIMULATED, Decision, Verdict, simulated_error

TONES: Mapping[Verdict, Tone] = {"pass": "good", "fail": "bad", "inconclusive": "unsure"}


def gate_view(gate: Gate) -> View:
    """A gate: each check with its verdict."""
    labels = (
        "With labels, the estimate is of the score that people would give (prediction-powered inference). The labeled "
        "samples must be a random selection."
    )
    notes = (
        *gate_notes(gate),
        *((labels,) if any(decision.labeled is not None for decision in gate.decisions) else ()),
        *(("Estimates are weighted.",) if any(decision.effective is not None for decision in gate.decisions) else ()),
        *_cautions(gate.decisions),
        *_control(gate),
    )
    baseline = () if gate.baseline is None else (Fact("Baseline", gate.baseline.id),)
    tables = (checks_table(gate.decisions, gate.next_look), *_misses(gate.decisions))
    overall = overall_text(gate)
    return View(
        name="evalstone gate",
        lead=f"{gate.run.dataset_name} · {gate.run.samples_and_judge}",
        verdict=Cell(overall, TONES[gate.verdict] if overall == MARKS[gate.verdict] else "unsure"),
        sections=(Section("Checks", tables=tables, notes=notes),),
        facts=(Fact("Run", gate.run.id), *baseline),
        footer=FOOTER,
    )


def _control(gate: Gate) -> Iterator[str]:
    """The error rates that hold, or a note that nothing was tested."""
    tested = [decision for decision in gate.decisions if decision.kind != "require"]
    checks = "checks" if len(tested) == len(gate.decisions) else "tests"
    if tested and gate.alpha is not None and gate.look_alpha is not None:
        yield (
            f"This is look {gate.look}, tested at {rate(gate.look_alpha)}. Over all {checks} and all looks together, "
            f"the chance of a wrong pass is at most {percent(gate.alpha)}, and so is the chance of a wrong fail "
            f"(one-sided tests, corrected by Holm). Each limit is that of its test.{_simulated(gate)}"
        )
    elif tested:
        yield UNTESTED
    if len(tested) < len(gate.decisions):
        yield "Best score in all samples is not a statistical test: it describes only these samples."


def _misses(decisions: Sequence[Decision]) -> Iterator[Table]:
    """The first samples that don't meet a requirement."""
    rows = [(decision.name, *miss_cells(miss)) for decision in decisions for miss in decision.misses]
    if rows:
        columns = [Column(title) if title == "score" else words(title) for title in MISSES]
        yield table("Samples without the best score", columns, rows)


def _simulated(gate: Gate) -> str:
    """How often such a check passed wrongly in simulations; "" if no simulation applies."""
    plain = [
        decision
        for decision in gate.decisions
        if decision.p_pass is not None
        and decision.labeled is None
        and decision.effective is None
        and decision.groups is None
    ]
    sizes = [decision.n for decision in plain if decision.n]
    if not sizes or gate.run.drawn is not None:
        return ""
    if (n := min(sizes)) < min(SIMULATED):
        return ""
    simulated = count(min(n, max(SIMULATED)), "sample")
    return (
        f" In simulations with about {simulated} and the truth at the threshold, a check tested at 5% passed wrongly "
        f"in at most {percent(simulated_error(n))}."
    )


def _cautions(decisions: Sequence[Decision]) -> Iterator[str]:
    """The distinct cautions, each with its checks. That there is no score, the verdicts say."""
    for caution in dict.fromkeys(d.caution for d in decisions if d.caution not in ("", NO_VALUES)):
        yield f"{'; '.join(check_name(d) for d in decisions if d.caution == caution)}: {sentence(caution)}"


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
