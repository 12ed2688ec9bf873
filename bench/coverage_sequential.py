"""Comparisons of two systems that stop once they are decided: error over all looks, coverage, and samples saved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from coverage_looks import error
from populations import Floats, judged_again, pairs
from tables import Table, percent

from evalstone.stats.comparison import compare_pairs
from evalstone.stats.gates import alpha_at_look
from evalstone.stats.pilot import Pilot
from evalstone.stats.power import Changes, samples_needed
from evalstone.stats.sequential import SequentialComparison, SequentialCriterion, SequentialGate

MOST = 1000
DrawPairs: TypeAlias = Callable[[np.random.Generator, int], tuple[Floats, Floats]]


def similarities(rise: float, most: float = 0.19) -> DrawPairs:
    """Similarities of answers that were reworded, with a difference of this mean and a deviation of 0.05."""

    def draw(source: np.random.Generator, n: int) -> tuple[Floats, Floats]:
        a = source.uniform(0.3, 0.7, n)
        return a, a + rise + np.clip(source.normal(0, 0.05, n), rise - most, most - rise)

    return draw


def passes(gained: float, lost: float) -> DrawPairs:
    """Pass/fail pairs, of which these shares changed."""
    return lambda source, n: pairs(source, n, gained, lost)


class Ended(NamedTuple):
    """How a comparison ended."""

    verdict: str
    samples: int
    covered: bool
    """Whether the confidence sequence contained the truth at every sample."""


def ended(
    comparison: SequentialComparison,
    a: Sequence[float | None],
    b: Sequence[float | None],
    truth: float,
    *,
    go_on: bool = True,
) -> Ended:
    """A comparison that is looked at after every sample. go_on: whether it goes on after the verdict."""
    verdict, stopped = "inconclusive", len(a)
    for count, (before, after) in enumerate(zip(a, b, strict=True), start=1):
        comparison.add(before, after)
        if verdict == "inconclusive" and comparison.settled:
            verdict, stopped = comparison.verdict, count
            if not go_on:
                break
    low, high = comparison.bounds  # it only ever shrinks, so what it holds at the end it held all along
    return Ended(verdict, stopped, low <= truth <= high)


EQUAL: dict[str, tuple[DrawPairs, float, float | None, float | None]] = {
    "pass/fail, 5% gained, 5% lost": (passes(0.05, 0.05), 0.0, None, None),
    "pass/fail, 20% gained, 20% lost": (passes(0.2, 0.2), 0.0, None, None),
    "shares of claims, 3 in 10 changed": (judged_again, 0.0, None, None),
    "similarities, deviation 0.05": (similarities(0.0), 0.0, None, None),
    "similarities, largest change 0.2": (similarities(0.0), 0.0, None, 0.2),
    "pass/fail, 10% gained, 5% lost, margin 0.05": (passes(0.1, 0.05), 0.05, 0.05, None),
    "pass/fail, 5% gained, 10% lost, margin 0.05": (passes(0.05, 0.1), -0.05, 0.05, None),
    "similarities + 0.02, margin 0.02, largest change 0.2": (similarities(0.02), 0.02, 0.02, 0.2),
}
"""Name to how pairs are drawn, the true difference, the margin, and the largest change. No difference of 0, and none at
the margin, should get a verdict, but for "better" and "worse" with a margin, which are then right."""


def sequential_comparisons(replications: int) -> Iterator[Table]:
    """Looked at after each of up to 1,000 samples: wrong verdicts ever, and coverage throughout."""
    rows: list[list[str]] = []
    for name, (draw, truth, margin, most) in EQUAL.items():
        source = np.random.default_rng(31)
        found: list[Ended] = []
        for _ in range(replications // 8):
            a, b = draw(source, MOST)
            found.append(ended(SequentialComparison(margin=margin, max_change=most), a.tolist(), b.tolist(), truth))
        right = "better" if truth > 0 else "worse" if truth < 0 else ""
        wrong = [one.verdict not in ("inconclusive", right) for one in found]
        rows.append([name, f"{truth:g}", f"**{error(wrong)}**", f"**{error([one.covered for one in found])}**"])
    head = ["", "true difference", "wrong verdict, ever", "confidence sequence covers throughout"]
    yield Table("Sequential comparisons", head, rows, replications // 8)


def missing_in_sequence(replications: int) -> Iterator[Table]:
    """Equal systems, of which the second one's bad answers lose their scores more often."""
    rows: list[list[str]] = []
    for bad, good in ((0.3, 0.01), (0.1, 0.02)):
        source = np.random.default_rng(32)
        wrong: dict[bool, list[bool]] = {True: [], False: []}
        for _ in range(replications // 8):
            a, b = pairs(source, MOST, 0.1, 0.1)
            lost = source.random(MOST) < np.where(b == 1, good, bad)
            after = [None if is_lost else value for value, is_lost in zip(b.tolist(), lost.tolist(), strict=True)]
            for ignored in (True, False):
                kept = [(x, y) for x, y in zip(a.tolist(), after, strict=True) if y is not None or not ignored]
                found = ended(SequentialComparison(), [x for x, _ in kept], [y for _, y in kept], 0.0)
                wrong[ignored].append(found.verdict != "inconclusive")
        rows.append([f"{bad:g}", f"{good:g}", error(wrong[True]), f"**{error(wrong[False])}**"])
    head = ["bad ones missing", "good ones missing", "ignored: wrong verdict", "default: wrong verdict"]
    yield Table("Sequential comparisons with missing scores", head, rows, replications // 8)


def compared_after_stop(replications: int) -> Iterator[Table]:
    """Equal systems compared after a gate on a maximum regression has watched the run, and perhaps stopped it."""
    rows: list[list[str]] = []
    for name, draw in {"5% gained, 5% lost": passes(0.05, 0.05), "20% gained, 20% lost": passes(0.2, 0.2)}.items():
        for margin in (0.0, 0.02):
            source = np.random.default_rng(34)
            stopped: list[bool] = []
            rejected: dict[bool, list[bool]] = {True: [], False: []}
            for _ in range(replications // 8):
                a, b = (scores.tolist() for scores in draw(source, MOST))
                gate = SequentialGate(
                    [SequentialCriterion("a", -margin, "max_regression", -1, 1)], alpha=alpha_at_look(0.05, 1)
                )
                count = next((n for n, (x, y) in enumerate(zip(a, b, strict=True), 1) if adds(gate, y - x)), MOST)
                stopped.append(gate.settled)
                for fixed in (True, False):
                    found = compare_pairs(a[:count], b[:count], stopped=gate.settled and not fixed)
                    assert found is not None
                    rejected[fixed].append(found.p_value <= 0.05)
            row = [name, f"{margin:g}", percent(stopped), error(rejected[True]), f"**{error(rejected[False])}**"]
            rows.append(row)
    head = ["", "maximum regression", "stopped", "fixed-n test: p <= 0.05", "default: p <= 0.05"]
    yield Table("Comparisons after a gate stopped the run", head, rows, replications // 8)


def adds(gate: SequentialGate, value: float) -> bool:
    """Whether a gate is settled with one more value."""
    gate.add({"a": value})
    return gate.settled


SAVED: dict[str, tuple[Callable[[float], DrawPairs], float, float | None]] = {
    "pass/fail, 5% lost": (lambda d: passes(0.05 + d, 0.05), 0.05, None),
    "pass/fail, 2% lost": (lambda d: passes(0.02 + d, 0.02), 0.03, None),
    "similarities": (similarities, 0.03, None),
    "similarities, largest change 0.2": (similarities, 0.03, 0.2),
    "similarities, 0.01, largest change 0.2": (similarities, 0.01, 0.2),
}
"""Name to how pairs with a difference are drawn, the difference that the fixed size is planned for, and the largest
change."""


def samples_saved(replications: int) -> Iterator[Table]:
    """How many samples a comparison takes that stops once it is decided, beside a fixed size planned for 80% power.

    It may take twice the fixed size.
    """
    rows: list[list[str]] = []
    for name, (draw, planned, most) in SAVED.items():
        source = np.random.default_rng(33)
        a, b = draw(planned)(source, 2000)
        is_pass_fail = name.startswith("pass/fail")
        changed = int(np.count_nonzero(a - b)) / a.size
        pilot = Pilot.of((b - a).tolist(), scale=most or 1.0)
        assert pilot is not None
        fixed = samples_needed(Changes(round(changed, 3)) if is_pass_fail else pilot.population(), planned)
        assert fixed is not None
        for times in (1, 2, 3):
            found: list[Ended] = []
            for _ in range(replications // 8):
                before, after = draw(times * planned)(source, 2 * fixed)
                comparison = SequentialComparison(max_change=most)
                found.append(ended(comparison, before.tolist(), after.tolist(), times * planned, go_on=False))
            used = [one.samples for one in found]
            rows.append(
                [
                    name,
                    f"{planned:g}",
                    f"{fixed}",
                    f"{times * planned:g}",
                    error([one.verdict == "better" for one in found]),
                    f"{np.median(used):.0f}",
                    f"{np.mean(used):.0f}",
                    f"**{100 * (1 - float(np.mean(used)) / fixed):+.0f}%**",
                ]
            )
    head = ["", "planned for", "fixed size", "true difference", "better", "median samples", "mean", "saved on average"]
    yield Table("Samples saved by stopping early", head, rows, replications // 8)


SECTIONS = (sequential_comparisons, missing_in_sequence, compared_after_stop, samples_saved)
