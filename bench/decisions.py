"""Error rates of gates and confidence sequences, by simulation: sections of bench/coverage.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from populations import POPULATIONS, Floats, judged_again, passes
from tables import Table, percent

from evalstone.stats.betting import ConfidenceSequence
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.gates import AtLeast, MaxDifference, MaxRegression, PassRate, decide
from evalstone.stats.sequential import SequentialCriterion, SequentialGate


def gates(replications: int) -> Iterator[Table]:
    """Wrong decisions when the truth stands exactly at the threshold, where they are likeliest; one criterion."""
    rows: list[list[str]] = []
    sizes = (8, 30, 100, 300)
    for name, (draw, truth) in POPULATIONS.items():
        row = [name]
        for n in sizes:
            source = np.random.default_rng(7)
            found = [BoundedMean.of(draw(source, n).tolist(), 0, 1) for _ in range(replications)]
            row += [percent([one.p_value(truth, side) <= 0.05 for one in found]) for side in (1, -1)]
        rows.append(row)
    head = ["", *(f"{n}: {kind}" for n in sizes for kind in ("wrong pass", "wrong fail"))]
    yield Table("Gates at the threshold", head, rows, replications)


def regressions(replications: int) -> Iterator[Table]:
    """Wrong decisions on a maximum regression of 0.02 where the truth is a regression of 0.02."""
    rows: list[list[str]] = []
    cases: dict[str, Callable[[np.random.Generator, int], Floats]] = {
        "pass/fail, 5% gained, 7% lost": lambda s, n: s.choice([1.0, -1.0, 0.0], p=[0.05, 0.07, 0.88], size=n),
        "pass/fail, 2% lost": lambda s, n: s.choice([-1.0, 0.0], p=[0.02, 0.98], size=n),
        "gains of 0.044, 5% lose 0.8": lambda s, n: s.choice([-0.8, 0.02 / 0.45, 0.0], p=[0.05, 0.45, 0.5], size=n),
        "normal, deviation 0.15": lambda s, n: np.clip(s.normal(-0.02, 0.15, n), -1, 1),
    }
    for name, draw in cases.items():
        row = [name]
        for n in (20, 50, 100, 300):
            source = np.random.default_rng(14)
            found = [BoundedMean.of(draw(source, n).tolist(), -1, 1) for _ in range(replications // 2)]
            row += [percent([one.p_value(-0.02, side) <= 0.05 for one in found]) for side in (1, -1)]
        rows.append(row)
    head = ["", *(f"{n}: {kind}" for n in (20, 50, 100, 300) for kind in ("wrong pass", "wrong fail"))]
    yield Table("Gates on a maximum regression", head, rows, replications // 2)


def equivalences(replications: int) -> Iterator[Table]:
    """Wrong decisions on a maximum difference of 0.05: passes where the difference is 0.05, fails where it is below."""
    rows: list[list[str]] = []
    cases: dict[str, tuple[float | None, Callable[[np.random.Generator, int, float], Floats]]] = {
        "pass/fail, 2% change besides": (
            None,
            lambda s, n, d: s.choice([1.0, -1.0, 0.0], p=[0.01 + d, 0.01, 0.98 - d], size=n),
        ),
        "pass/fail, 30% change besides": (
            None,
            lambda s, n, d: s.choice([1.0, -1.0, 0.0], p=[0.15 + d, 0.15, 0.7 - d], size=n),
        ),
        "5% gain 0.76, others lose": (
            None,
            lambda s, n, d: np.where(s.random(n) < 0.05, 0.76, (d - 0.038) / 0.95),
        ),
        "normal, deviation 0.15": (None, lambda s, n, d: np.clip(np.round(s.normal(d, 0.15, n), 2), -1, 1)),
        "normal, deviation 0.05, largest change 0.3": (
            0.3,
            lambda s, n, d: np.clip(np.round(s.normal(d, 0.05, n), 2), -0.3, 0.3),
        ),
    }
    for name, (largest, draw) in cases.items():
        row = [name]
        for n in (30, 100, 400):
            for truth, verdict in ((0.05, "pass"), (0.05 - 1e-6, "fail"), (0.0, "pass")):
                source, count = np.random.default_rng(15), 0
                for _ in range(replications // 4):
                    d = draw(source, n, truth)
                    a, b = np.maximum(-d, 0).tolist(), np.maximum(d, 0).tolist()
                    (found,) = decide([MaxDifference("", b, a, 0.05, max_change=largest)])
                    count += found.verdict == verdict
                row.append(percent([True] * count + [False] * (replications // 4 - count)))
        rows.append(row)
    kinds = ("wrong pass", "wrong fail", "equal ones pass")
    head = ["differences", *(f"{n}: {kind}" for n in (30, 100, 400) for kind in kinds)]
    yield Table("Gates on a maximum difference", head, rows, replications // 4)


def families(replications: int) -> Iterator[Table]:
    """Four criteria at once, all at their thresholds: any wrong pass, any wrong fail."""
    rows: list[list[str]] = []
    for n in (30, 100, 300):
        source = np.random.default_rng(8)
        found: list[set[str]] = []
        for _ in range(replications // 4):
            a, b = judged_again(source, n)
            three = (
                AtLeast("a", a.tolist(), 6 / 7),
                MaxRegression("b", b.tolist(), a.tolist(), 0),
                AtLeast("c", b.tolist(), 6 / 7),
            )
            rate = PassRate("d", passes(0.9)(source, n).tolist(), 0.9)
            found.append({str(decision.verdict) for decision in decide([*three, rate])})
        rows.append([str(n), *(percent([kind in kinds for kinds in found]) for kind in ("pass", "fail"))])
    yield Table("Four checks at once", ["n", "any wrong pass", "any wrong fail"], rows, replications // 4)


def sequential(replications: int) -> Iterator[Table]:
    """Looked at after each of up to 1,000 samples: wrong decisions ever, and when a true one comes."""
    rows: list[list[str]] = []
    for name in ("pass rate 0.9", "share of 1 to 5 claims", "90% at 1, 2% at 0"):
        draw, truth = POPULATIONS[name]
        for gap in (0.0, 0.05, -0.03):
            source = np.random.default_rng(9)
            ended: list[tuple[str, int]] = []
            for _ in range(replications // 10):
                gate = SequentialGate([SequentialCriterion("a", truth - gap)])
                ended.append(stops(gate, draw(source, 1000).tolist()))
            shares = [percent([verdict == kind for verdict, _ in ended]) for kind in ("pass", "fail", "inconclusive")]
            median = f"{np.median([count for _, count in ended]):.0f}"
            rows.append([name, f"{truth - gap:.3f}", f"{truth:.3f}", *shares, median])
    head = ["", "threshold", "truth", "pass", "fail", "open after 1,000", "median samples"]
    yield Table("Sequential gates", head, rows, replications // 10)


def stops(gate: SequentialGate, values: Sequence[float]) -> tuple[str, int]:
    """The verdict of a gate that stops when it is settled, and after how many samples."""
    for count, value in enumerate(values, start=1):
        gate.add({"a": value})
        if gate.settled:
            return gate.decisions()[0].verdict, count
    return "inconclusive", len(values)


def anytime(replications: int) -> Iterator[Table]:
    """Confidence sequences: the share that held the truth at every one of 1,000 samples."""
    rows: list[list[str]] = []
    for name in ("pass rate 0.9", "share of 1 to 5 claims", "similarities, beta(9, 1)"):
        draw, truth = POPULATIONS[name]
        source = np.random.default_rng(10)
        held: list[bool] = []
        wide: list[float] = []
        for _ in range(replications // 10):
            sequence = ConfidenceSequence()
            for value in draw(source, 1000).tolist():
                sequence.add(value)
            low, high = sequence.bounds  # it only ever shrinks, so what it holds at the end it held all along
            held.append(low <= truth <= high)
            wide.append(high - low)
        rows.append([name, percent(held), f"{np.mean(wide):.3f}"])
    yield Table("Confidence sequences", ["", "covered throughout", "width at 1,000"], rows, replications // 10)
