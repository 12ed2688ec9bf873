"""A gate as a view: each check with what is required, the estimate and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstone._core.display import by_text, count, effective_count, ended, number, percent, safe, signed
from evalstone._core.front_ends import NOTHING, PYTHON, FrontEnd, Hint, Setting
from evalstone.report.notes import clause_of, sentences_of
from evalstone.report.view import FOOTER, Cell, Column, Fact, Section, Table, Tone, View, table, words
from evalstone.results.endings import shortfall_of
from evalstone.results.gate_criteria import OF_BASELINE, Inconclusive
from evalstone.types import case_key

if TYPE_CHECKING:
    from evalstone.results.gate import Gate
    from evalstone.stats.gates import Decision, GateVerdict, Miss

MARKS: Mapping[GateVerdict, str] = {"pass": "✓ pass", "fail": "✕ fail", "inconclusive": "? inconclusive"}
LONGEST_REASON = 200
UNTESTED = (
    "Estimates are compared with the thresholds without a test: this is a statement about these samples, and an "
    "estimate just above a threshold may be luck."
)

MISSES = ("check", "sample", "score", "reason")
TONES: Mapping[GateVerdict, Tone] = {"pass": "good", "fail": "bad", "inconclusive": "unsure"}


def overall_text(gate: Gate, inconclusive: Inconclusive = "report") -> str:
    """The verdict of the gate, why a run whose checks pass isn't a success, and what an inconclusive verdict counts
    as."""
    shortfall = shortfall_of(gate.run) if gate.verdict == "pass" else ""
    counted = counted_as(inconclusive) if gate.verdict == "inconclusive" else ""
    return f"{MARKS[gate.verdict]}, but {shortfall}" if shortfall else f"{MARKS[gate.verdict]}{counted}"


def counted_as(inconclusive: Inconclusive) -> str:
    """What an inconclusive verdict counts as; "" if as such."""
    return "" if inconclusive == "report" else f", which counts as a {inconclusive}"


def gate_view(gate: Gate, front_end: FrontEnd = PYTHON, inconclusive: Inconclusive = "report") -> View:
    """A gate: each check with its verdict. inconclusive: what an inconclusive verdict counts as."""
    baseline = () if gate.baseline is None else (Fact("Baseline", gate.baseline.id),)
    return replace(
        checks_view(gate, front_end, inconclusive),
        name="evalstone gate",
        lead=f"{gate.run.dataset_name} · {gate.run.samples_and_judge}",
        facts=(Fact("Run", gate.run.id), *baseline),
        footer=FOOTER,
    )


def checks_view(gate: Gate, front_end: FrontEnd = PYTHON, inconclusive: Inconclusive = "report") -> View:
    """The checks of a run that is shown above."""
    tables = (checks_table(gate.decisions, front_end, gate.next_look), *_misses(gate.decisions))
    overall = overall_text(gate, inconclusive)
    return View(
        name="",
        lead="",
        verdict=Cell(overall, TONES[gate.verdict] if overall == MARKS[gate.verdict] else "unsure"),
        sections=(Section("Checks", tables=tables, notes=tuple(gate_notes(gate, front_end))),),
    )


def _misses(decisions: Sequence[Decision]) -> Iterator[Table]:
    """The first samples that don't meet a requirement."""
    rows = [(decision.name, *miss_cells(miss)) for decision in decisions for miss in decision.misses]
    if rows:
        columns = [Column(title) if title == "score" else words(title) for title in MISSES]
        yield table("Samples without the best score", columns, rows)


def with_checks(report: View, checks: View) -> View:
    """The report of a run with its checks, after the scores."""
    first, *others = report.sections
    return replace(report, verdict=checks.verdict, sections=(first, *checks.sections, *others))


def decided_view(
    decisions: Sequence[Decision], notes: Iterable[str], front_end: FrontEnd, inconclusive: Inconclusive
) -> View:
    """The checks of a run that is shown above, which were decided while it ran."""
    from evalstone.stats.gates import overall  # noqa: PLC0415 - numpy

    verdict = overall(decisions)
    counted = counted_as(inconclusive) if verdict == "inconclusive" else ""
    notes = (*_of_checks(decisions, front_end), *notes)
    return View(
        name="",
        lead="",
        verdict=Cell(f"{MARKS[verdict]}{counted}", TONES[verdict]),
        sections=(Section("Checks", tables=(checks_table(decisions, front_end),), notes=notes),),
    )


def checks_table(decisions: Sequence[Decision], front_end: FrontEnd, next_look: int | None = None) -> Table:
    """One row per check. next_look: the look for which the number of additional samples was computed; None if none."""
    columns = (
        words("check"),
        Column("estimate"),
        Column(limits_name(decisions), interval=True, csv="limits"),
        *map(Column, ("required", "n")),
        words("verdict"),
    )
    rows = [
        (check_name(d), *check_cells(d), Cell(verdict_text(d, next_look, front_end), TONES[d.verdict]))
        for d in decisions
    ]
    return table("Checks of the gate", columns, rows)


def gate_notes(gate: Gate, front_end: FrontEnd = PYTHON) -> list[str]:
    """The gate's notes, those of its checks, and error rates as sentences."""
    decisions = gate.decisions
    labels = (
        "With labels, the estimate is of the score that people would give (prediction-powered inference). The labeled "
        "samples must be a random selection."
    )
    return [
        *sentences_of(gate.notes, front_end),
        *([labels] if any(decision.labeled is not None for decision in decisions) else []),
        *(["Estimates are weighted."] if any(decision.effective is not None for decision in decisions) else []),
        *_of_checks(decisions, front_end),
        *_control(gate, front_end),
    ]


def _of_checks(decisions: Sequence[Decision], front_end: FrontEnd) -> Iterator[str]:
    """The distinct notes on checks, each with its checks. That there is no score, the verdicts say."""
    scored = [decision for decision in decisions if not without_values(decision)]
    said = [(check_name(decision), clause_of(note, front_end)) for decision in scored for note in decision.notes]
    yield from map(ended, by_text(said, 0, "", "; "))


def _without_test(gate: Gate, undecided: Sequence[Decision], front_end: FrontEnd) -> str:
    """What to do about samples that don't decide a check."""
    negated = "doesn't" if gate.run.n_samples == 1 else "don't"
    more = "Score and label" if any(decision.labeled is not None for decision in undecided) else "Score"
    without = front_end.written([Hint.of(": ", Setting("alpha", NOTHING))])
    return (
        f"The {count(gate.run.n_samples, 'sample')} {negated} decide every check. {more} more samples; or, if only "
        f"these count, compare their estimates with the thresholds, without a test{without}."
    )


def _control(gate: Gate, front_end: FrontEnd) -> Iterator[str]:
    """The error rates that hold, or a note that nothing was tested."""
    tested = [decision for decision in gate.decisions if decision.kind != "require"]
    checks = "checks" if len(tested) == len(gate.decisions) else "tests"
    if tested and gate.alpha is not None and gate.look_alpha is not None:
        yield (
            f"This is look {gate.look}, tested at {rate(gate.look_alpha)}. Over all {checks} and all looks together, "
            f"the chance of a wrong pass is at most {percent(gate.alpha)}, and so is the chance of a wrong fail "
            "(one-sided tests, corrected by Holm). Each limit is that of its test."
        )
        undecided = [one for one in tested if one.verdict == "inconclusive" and not without_values(one)]
        if undecided:
            yield _without_test(gate, undecided, front_end)
    elif tested:
        yield UNTESTED
    if len(tested) < len(gate.decisions):
        yield "Best score in all samples is not a statistical test: it describes only these samples."


def without_values(decision: Decision) -> bool:
    """Whether there is nothing to decide it: no sample has a score, or there is no baseline."""
    return any(note.kind in ("no_values", "no_baseline") for note in decision.notes)


def limits_name(decisions: Sequence[Decision]) -> str:
    """The header of the limits: of tests, or of the estimates that missing scores leave possible."""
    tested = any(decision.p_pass is not None for decision in decisions)
    return "one-sided limits" if tested else "possible with missing scores"


def check_name(decision: Decision) -> str:
    """The name of a check."""
    return f"{decision.name}, difference from baseline" if decision.kind in OF_BASELINE else decision.name


def check_cells(decision: Decision) -> tuple[str, str, str, str]:
    """Estimate, limits, requirement and n as text. Pass rates are in percent.

    Limits are those of the test; without a test, the range that missing scores leave possible.
    """
    if decision.kind == "require":
        met = "-" if decision.estimate is None else f"{round(decision.estimate * decision.n):,} of {decision.n:,}"
        return met, "-", required(decision), f"{decision.n:,}"
    show = {**dict.fromkeys(OF_BASELINE, signed), "pass_rate": percent}.get(decision.kind, number)
    estimate, low, high = (None if x is None else show(x) for x in (decision.estimate, decision.low, decision.high))
    certain = decision.p_pass is None and not decision.missing
    between = "-" if low is None or high is None or certain else f"{low} to {high}"
    about = (
        "" if decision.groups is None else count(decision.groups, "cluster"),
        "" if decision.labeled is None else count(decision.labeled, "label"),
        "" if decision.effective is None else f"as about {effective_count(decision.effective)} of equal weight",
    )
    more = "; ".join(filter(None, about))
    return estimate or "-", between, required(decision), f"{decision.n:,} ({more})" if more else f"{decision.n:,}"


def required(decision: Decision) -> str:
    """What a check requires."""
    if decision.kind == "require":
        return "best score in all samples"
    side, threshold = "at most" if decision.lower_is_better else "at least", decision.threshold
    if decision.kind == "max_difference":
        return f"within ±{number(threshold)}"
    if decision.kind == "max_regression":
        return f"{side} {signed(threshold)}"
    return f"{side} {100 * threshold:g}% of samples" if decision.kind == "pass_rate" else f"{side} {threshold:g}"


def verdict_text(decision: Decision, next_look: int | None, front_end: FrontEnd = PYTHON) -> str:
    """The verdict, with the number of further samples that would decide it at the next look."""
    mark = MARKS[decision.verdict]
    if decision.verdict != "inconclusive":
        larger = any(each.kind == "larger_change" for each in decision.notes)
        return f"{mark}; a sample changes by more than declared" if larger else mark
    if decision.broken_off:
        return f"{mark}; the {decision.broken_off} was broken off"
    if without_values(decision):
        return f"{mark}; {_nothing(decision)}"
    if decision.p_pass is None:
        return f"{mark}; {count(decision.missing, 'missing score')} may decide it" if decision.missing else mark
    if next_look is None:
        return mark
    look = front_end.term("look", next_look)
    later = f" at the next look ({look})" if look else ""
    if decision.labeled is not None and not decision.missing:
        if decision.more_labels is None:
            return f"{mark}; labels of all these samples may not decide it"
        more = count(decision.more_labels, "more label")
        return f"{mark}; about {more} would decide it{later}"
    needed = None if decision.labeled is not None else decision.more_samples
    more = None if needed is None else f"about {count(needed, 'more sample')}"
    if decision.missing:
        without = f"{mark}; {count(decision.missing, 'missing score')} may decide it"
        return without if more is None else f"{without}, or {more}{later}"
    if more is None:
        return f"{mark}; the estimate is too close to the threshold to decide"
    return f"{mark}; {more} would decide it{later}"


def _nothing(decision: Decision) -> str:
    """Why there is nothing to decide a check."""
    if any(note.kind == "no_baseline" for note in decision.notes):
        return "there is no baseline"
    return "no sample has a score in both runs" if decision.kind in OF_BASELINE else "no sample has a score"


def miss_cells(miss: Miss) -> tuple[str, str, str]:
    """A sample that misses what is required, its score, and the reason, as text."""
    score = "no score" if miss.value is None else f"{miss.value:.4g}"
    return case_key(miss.sample_id, miss.trial), score, safe(miss.reason, LONGEST_REASON)


def rate(alpha: float) -> str:
    """An error rate in percent, however small."""
    return f"{100 * alpha:.3g}%"
