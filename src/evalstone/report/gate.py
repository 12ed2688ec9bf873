"""A gate on a terminal, in Markdown and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evalstone.report.comparison import p_told, signed
from evalstone.report.junit import Case, junit
from evalstone.report.markdown import prose, table
from evalstone.report.terminal import safe
from evalstone.results.gate import Gate
from evalstone.stats.gates import Decision

MARKS = {"pass": "✓ pass", "fail": "✕ fail", "inconclusive": "? inconclusive"}
STYLES = {"pass": "green", "fail": "red", "inconclusive": "yellow"}
HEADER = ("estimate", "one-sided limits", "wanted", "n", "verdict")


def wanted(decision: Decision) -> str:
    """What the criterion asks for."""
    match decision.kind:
        case "at_most":
            return f"at most {decision.threshold:g}"
        case "no_worse":
            return f"no worse than {signed(decision.threshold)}"
        case _:
            return f"at least {decision.threshold:g}"


def limits(decision: Decision) -> str:
    """The one-sided limits of the estimate."""
    if decision.low is None or decision.high is None:
        return "-"
    return f"{_number(decision, decision.low)} to {_number(decision, decision.high)}"


def _number(decision: Decision, value: float) -> str:
    return signed(value) if decision.kind == "no_worse" else f"{value:.3f}"


def ending(decision: Decision, *, planned: bool = True) -> str:
    """The verdict in words, with what would decide it. planned: whether it was reckoned how many more samples would."""
    if decision.verdict != "inconclusive" or not planned:
        return MARKS[decision.verdict]
    if decision.more is None:
        return f"{MARKS['inconclusive']}; no number of samples in sight would decide it"
    return f"{MARKS['inconclusive']}; about {decision.more:,} more samples would decide it"


def _cells(decision: Decision, *, planned: bool = True) -> Sequence[str]:
    estimate = "-" if decision.estimate is None else _number(decision, decision.estimate)
    return (estimate, limits(decision), wanted(decision), str(decision.n), ending(decision, planned=planned))


def notes(gate: Gate) -> Iterator[str]:
    """What a reader must know besides the verdicts."""
    yield from (f"{told}." for told in gate.notes)
    yield from (f"{decision.name}: {decision.caution}." for decision in gate.decisions if decision.caution)
    yield (
        f"The chance that anything passes that is not met is at most {100 * gate.alpha:g} %, and so is the chance that "
        "anything fails that is met (one-sided tests, Holm over the criteria)."
    )


def show_gate(gate: Gate, console: Console) -> None:
    """Print a gate."""
    show_decisions(gate.decisions, console)
    for told in notes(gate):
        console.print(Text(safe(told, 600), style="dim"))
    console.print(Text(f"The gate: {MARKS[gate.verdict]}", style=f"bold {STYLES[gate.verdict]}"))


def show_decisions(decisions: Sequence[Decision], console: Console, *, planned: bool = True) -> None:
    """Print what became of each criterion. planned: as in `ending`; a gate that watches a run does not reckon it."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    made.add_column("criterion")
    for title in HEADER:
        made.add_column(title, justify="left" if title == "verdict" else "right")
    for decision in decisions:
        *numbers, told = _cells(decision, planned=planned)
        made.add_row(Text(safe(decision.name)), *numbers, Text(told, style=STYLES[decision.verdict]))
    console.print(made)


def gate_markdown(gate: Gate) -> Iterator[str]:
    """A gate as lines of Markdown, for a pull request."""
    yield f"### evalstone gate: {MARKS[gate.verdict]}"
    yield ""
    yield from table(("criterion", *HEADER), ((prose(d.name), *_cells(d)) for d in gate.decisions))
    yield ""
    yield from (f"- {prose(told)}" for told in notes(gate))


def gate_junit(gate: Gate, *, inconclusive_fails: bool) -> Iterator[str]:
    """A gate as JUnit XML, one case a criterion; an inconclusive one is skipped, or a failure where it counts so."""
    return junit("evalstone", {"gate": [_case(decision, inconclusive_fails) for decision in gate.decisions]})


def _case(decision: Decision, inconclusive_fails: bool) -> Case:
    estimate, found, asked, n, told = _cells(decision)
    message = f"{estimate} ({found}, n = {n}), {asked}: {told}"
    # A build server takes two cases of one name for one: a scorer may have a minimum and a margin.
    name = f"{decision.name} {asked}"
    properties = {"estimate": estimate, "p_pass": p_told(decision.p_pass), "p_fail": p_told(decision.p_fail)}
    match decision.verdict:
        case "pass":
            return Case(name, "gate", properties=properties)
        case "fail":
            return Case(name, "gate", "failure", message, properties=properties)
        case _:
            ended = "failure" if inconclusive_fails else "skipped"
            return Case(name, "gate", ended, message, properties=properties)
