"""A gate as a report: each check with its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evalstone._core.display import count, effective_count, number, percent, sentence, signed
from evalstone.report.view import FOOTER, Cell, Column, Fact, Section, Table, Tone, View, table, words
from evalstone.results.gate import Gate
from evalstone.stats.gates import Decision, simulated_error

MARKS: Mapping[str, tuple[str, Tone]] = {
    "pass": ("✓ pass", "good"),
    "fail": ("✕ fail", "bad"),
    "inconclusive": ("? inconclusive", "unsure"),
}


def gate_view(gate: Gate) -> View:
    """A gate: each check with its verdict."""
    control = (
        f"This is look {gate.look}, tested at {rate(gate.look_alpha)}. Over all checks and all looks together, the "
        f"chance of a wrong pass is at most {percent(gate.alpha)}, and so is the chance of a wrong fail (one-sided "
        f"tests, corrected by Holm). Each limit is that of its test.{_simulated(gate)}"
    )
    labels = (
        "With labels, the estimate is of what people would say (prediction-powered inference); the labeled samples "
        "must be a random choice."
    )
    scorers = tuple(line.info.name for line in gate.run.summary)
    notes = (
        *(f"{note}." if note.startswith(scorers) else sentence(note) for note in gate.notes),
        *((labels,) if any(decision.labeled is not None for decision in gate.decisions) else ()),
        *(("Estimates are weighted.",) if any(one.effective is not None for one in gate.decisions) else ()),
        *_cautions(gate.decisions),
        control,
    )
    baseline = () if gate.baseline is None else (Fact("Baseline", gate.baseline.id),)
    verdict, tone = MARKS[gate.verdict]
    return View(
        name="evalstone gate",
        lead=f"{gate.run.dataset_name} · {gate.run.samples_and_judge}",
        verdict=Cell(verdict, tone),
        sections=(Section("Checks", tables=(checks_table(gate.decisions, next_look(gate)),), notes=notes),),
        facts=(Fact("Run", gate.run.id), *baseline),
        footer=FOOTER,
    )


def _simulated(gate: Gate) -> str:
    """How often such a check passed wrongly in simulations; "" where none is like it."""
    plain = [one for one in gate.decisions if one.labeled is None and one.effective is None and one.groups is None]
    sizes = [decision.n for decision in plain if decision.n]
    if not sizes or gate.run.drawn is not None:
        return ""
    n = min(sizes)
    return (
        f" In simulations with about {count(n, 'sample')} and the truth at the threshold, a check tested at 5% passed "
        f"wrongly in at most {percent(simulated_error(n))}."
    )


def next_look(gate: Gate) -> int | None:
    """The number of the look after more samples; None if there was no telling how many are needed: the run or its
    baseline was stopped by its own gate."""
    runs = (gate.run, *filter(None, (gate.baseline,)))
    return None if any(run.drawn is not None for run in runs) else gate.look + 1


def _cautions(decisions: Sequence[Decision]) -> Iterator[str]:
    """Why to trust checks less, each caution once."""
    for caution in dict.fromkeys(d.caution for d in decisions if d.caution):
        yield f"{'; '.join(check_name(d) for d in decisions if d.caution == caution)}: {sentence(caution)}"


def decisions_view(decisions: Sequence[Decision]) -> View:
    """Where the checks of a running evaluation stand; nothing is said of how many more samples they need."""
    return View("", "", (Section("", tables=(checks_table(decisions),)),))


def checks_table(decisions: Sequence[Decision], next_look: int | None = None) -> Table:
    """One row a check. next_look: that after more samples, whose number was computed; None if it was not."""
    columns = (
        words("check"),
        *(Column(title) for title in ("estimate", "one-sided limits", "required", "n")),
        words("verdict"),
    )
    rows = [(check_name(d), *check_cells(d), Cell(verdict_text(d, next_look), MARKS[d.verdict][1])) for d in decisions]
    return table("Checks of the gate", columns, rows)


def check_name(decision: Decision) -> str:
    """What a check looks at."""
    return f"{decision.name}, difference from baseline" if decision.kind == "max_regression" else decision.name


def check_cells(decision: Decision) -> tuple[str, str, str, str]:
    """Estimate, one-sided limits, what is required, and n, as text. Pass rates are in percent."""
    show = {"max_regression": signed, "pass_rate": percent}.get(decision.kind, number)
    estimate, low, high = (None if x is None else show(x) for x in (decision.estimate, decision.low, decision.high))
    between = "-" if low is None or high is None else f"{low} to {high}"
    about = (
        "" if decision.groups is None else count(decision.groups, "cluster"),
        "" if decision.labeled is None else count(decision.labeled, "label"),
        "" if decision.effective is None else f"as about {effective_count(decision.effective)} of equal weight",
    )
    more = "; ".join(filter(None, about))
    return estimate or "-", between, required(decision), f"{decision.n:,} ({more})" if more else f"{decision.n:,}"


def required(decision: Decision) -> str:
    """What a check requires."""
    side, threshold = "at most" if decision.lower_is_better else "at least", decision.threshold
    if decision.kind == "max_regression":
        return f"{side} {signed(threshold)}"
    return f"{side} {100 * threshold:g}% of samples" if decision.kind == "pass_rate" else f"{side} {threshold:g}"


def verdict_text(decision: Decision, next_look: int | None) -> str:
    """The verdict, and how many more samples would decide it at the next look."""
    mark = MARKS[decision.verdict][0]
    if decision.verdict != "inconclusive" or next_look is None:
        return mark
    if decision.labeled is not None and not decision.missing:
        if decision.more_labels is None:
            return f"{mark}; labels of all these samples may not decide it"
        more = count(decision.more_labels, "more label")
        return f"{mark}; about {more} would decide it at the next look (--look {next_look})"
    found = None if decision.labeled is not None else decision.more_samples
    more = None if found is None else f"about {count(found, 'more sample')}"
    if decision.missing:
        without = f"{mark}; {count(decision.missing, 'sample')} without a score may decide it"
        return without if more is None else f"{without}, or {more} at the next look (--look {next_look})"
    if more is None and decision.effective is not None:
        return f"{mark}; more samples may decide it at the next look (--look {next_look})"
    if more is None:
        return f"{mark}; no realistic number of samples would decide it"
    return f"{mark}; {more} would decide it at the next look (--look {next_look})"


def rate(alpha: float) -> str:
    """An error rate in percent, however small."""
    return f"{100 * alpha:.3g}%"
