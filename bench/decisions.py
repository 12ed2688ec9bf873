"""Error rates of gates, confidence sequences and slices, by simulation: sections of bench/coverage.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from populations import POPULATIONS, Floats, judged_again, passes
from tables import percent, table

from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.gates import AtLeast, MaxRegression, PassRate, decide
from evalstone.stats.sequential import ConfidenceSequence, SequentialGate, Target
from evalstone.stats.slices import slice_by, worst_slices


def gates(replications: int) -> None:
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
    table("Gate, one criterion, the truth at the threshold", head, rows)


def regressions(replications: int) -> None:
    """Wrong decisions on a largest regression of 0.02 where the truth is a regression of 0.02."""
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
    table("Gate on the largest regression, the truth at the margin", head, rows)


def missing(replications: int) -> None:
    """Wrong passes where bad samples fail to be scored more often than good ones, the truth at the threshold."""
    rows: list[list[str]] = []
    for good, bad in ((0.0, 0.0), (0.05, 0.05), (0.0, 0.3), (0.02, 0.5)):
        row = [f"{good:.0%} of the good, {bad:.0%} of the bad"]
        for n in (30, 100, 300):
            source = np.random.default_rng(15)
            worst: list[bool] = []
            ignored: list[bool] = []
            for _ in range(replications // 2):
                passed = source.random(n) < 0.9
                gone = source.random(n) < np.where(passed, good, bad)
                values = [None if out else float(ok) for ok, out in zip(passed, gone, strict=True)]
                worst.append(decide([AtLeast("a", values, 0.9)])[0].verdict == "pass")
                left = [value for value in values if value is not None]
                ignored.append(BoundedMean.of(left, 0, 1).p_value(0.9, 1) <= 0.05)
            row += [percent(ignored), f"**{percent(worst)}**"]
        rows.append(row)
    head = ["missing", *(f"{n}: {kind}" for n in (30, 100, 300) for kind in ("left out", "as worst"))]
    table("Gate on a pass rate of 0.9 with missing scores: wrong passes", head, rows)


def families(replications: int) -> None:
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
    table("Gate, four criteria at their thresholds", ["n", "any wrong pass", "any wrong fail"], rows)


def sequential(replications: int) -> None:
    """Looked at after each of up to 1,000 samples: wrong decisions ever, and when a true one comes."""
    rows: list[list[str]] = []
    for name in ("pass rate 0.9", "share of 1 to 5 claims", "90% at 1, 2% at 0"):
        draw, truth = POPULATIONS[name]
        for gap in (0.0, 0.05, -0.03):
            source = np.random.default_rng(9)
            ended: list[tuple[str, int]] = []
            for _ in range(replications // 10):
                gate = SequentialGate([Target("a", truth - gap)])
                ended.append(stops(gate, draw(source, 1000).tolist()))
            shares = [percent([verdict == kind for verdict, _ in ended]) for kind in ("pass", "fail", "inconclusive")]
            median = f"{np.median([count for _, count in ended]):.0f}"
            rows.append([name, f"{truth - gap:.3f}", f"{truth:.3f}", *shares, median])
    head = ["", "threshold", "truth", "pass", "fail", "open after 1,000", "median samples"]
    table("Sequential gate, looked at after every sample", head, rows)


def stops(gate: SequentialGate, values: Sequence[float]) -> tuple[str, int]:
    """The verdict of a gate that stops when it is settled, and after how many samples."""
    for count, value in enumerate(values, start=1):
        gate.add({"a": value})
        if gate.settled:
            return gate.decisions()[0].verdict, count
    return "inconclusive", len(values)


def anytime(replications: int) -> None:
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
    table("Confidence sequences over 1,000 samples", ["", "held throughout", "width at 1,000"], rows)


def slices(replications: int) -> None:
    """Ten slices of which none is worse: how often one is said to be, unadjusted and after Holm."""
    rows: list[list[str]] = []
    for name in ("pass rate 0.9", "share of 1 to 5 claims", "90% at 1, 2% at 0"):
        source = np.random.default_rng(11)
        plain: list[bool] = []
        adjusted: list[bool] = []
        for _ in range(replications // 4):
            values = POPULATIONS[name][0](source, 300).tolist()
            found = worst_slices(values, {"topic": slice_by(values, [place % 10 for place in range(300)])})
            plain.append(min(f.p_value for f in found) <= 0.05)
            adjusted.append(min(f.adjusted_p for f in found) <= 0.05)
        rows.append([name, percent(plain), f"**{percent(adjusted)}**"])
    table("Ten slices of 30, none worse: any found", ["", "unadjusted", "Holm"], rows)
