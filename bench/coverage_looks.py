"""Runs that their gate stopped, repeated looks, and scores missing not at random: sections of bench/coverage.py."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from populations import POPULATIONS, Draw, passes
from tables import Table, percent

from evalstone.stats.betting import Bettors, sequence_bounds
from evalstone.stats.gates import AtLeast, alpha_at_look, decide
from evalstone.stats.intervals import mean_interval

RARE_ZEROS: tuple[Draw, float] = (
    lambda source, n: np.where((u := source.random(n)) < 0.05, 0.0, np.where(u < 0.5, 0.95, 1.0)),
    0.45 * 0.95 + 0.5,
)
STOPPED: dict[str, tuple[Draw, float, float]] = {
    "pass rate 0.85, threshold 0.85": (passes(0.85), 0.85, 0.85),
    "pass rate 0.88, threshold 0.85": (passes(0.88), 0.88, 0.85),
    "pass rate 0.9, threshold 0.85": (passes(0.9), 0.9, 0.85),
    "pass rate 0.82, threshold 0.85": (passes(0.82), 0.82, 0.85),
    "share of 1 to 5 claims, threshold 0.9": (*POPULATIONS["share of 1 to 5 claims"], 0.9),
    "5% at 0, threshold 0.9": (*RARE_ZEROS, 0.9),
}
MOST = 600
LOOKS = 6
LARGEST_STEP = 5000


def error(shares: Sequence[bool]) -> str:
    """A share in percent, with two standard errors of the simulation."""
    share = sum(shares) / len(shares)
    return f"{percent(list(shares))} ± {200 * math.sqrt(max(share * (1 - share), 1 / len(shares)) / len(shares)):.1f}"


def drawn_until_decided(values: Sequence[float], threshold: float) -> tuple[int, bool]:
    """After how many of the values a gate that looks at each stops, and whether it was decided by then."""
    bettors, limit = Bettors(np.array([threshold])), -math.log(alpha_at_look(0.05, 1))
    for count, value in enumerate(values, start=1):
        bettors.add(value, value)
        if max(float(best[0]) for best in bettors.best) >= limit:
            return count, True
    return len(values), False


def stopped(replications: int) -> Iterator[Table]:
    """What a run that its gate stopped says of the true mean, and a gate at it."""
    rows: list[list[str]] = []
    for name, (draw, truth, threshold) in STOPPED.items():
        source = np.random.default_rng(21)
        fixed: list[bool] = []
        sequences: list[bool] = []
        watched: list[bool] = []
        passed: list[bool] = []
        passed_fixed: list[bool] = []
        for _ in range(replications // 4):
            values = draw(source, MOST).tolist()
            count, decided = drawn_until_decided(values, threshold)
            low, high = sequence_bounds(values[:count], 0.0, 1.0, 0.95) if decided else (0.0, 1.0)
            interval = mean_interval(values[:count], low=0.0, high=1.0)
            assert interval is not None
            assert interval.low is not None
            assert interval.high is not None
            covered = interval.low <= truth <= interval.high
            watched.append(low <= truth <= high if decided else covered)
            alpha = alpha_at_look(0.05, 1)
            at_fixed, at_stop = (
                decide([AtLeast("a", values[:count], truth, stopped=one)], alpha=alpha)[0].verdict == "pass"
                for one in (False, decided)
            )
            passed_fixed.append(at_fixed)
            passed.append(at_stop)
            if decided:
                fixed.append(covered)
                sequences.append(low <= truth <= high)
        ended = percent([True] * len(fixed) + [False] * (len(watched) - len(fixed)))
        rows.append([name, ended, *map(error, (fixed, sequences, watched, passed_fixed, passed))])
    head = ["", "stopped", "fixed-n interval", "confidence sequence", "all watched runs", "fixed-n gate", "gate"]
    yield Table("Intervals and gates of stopped runs", head, rows, replications // 4)


def advice(replications: int) -> Iterator[Table]:
    """Gate, add as many samples as the gate says, gate again, the truth at the threshold: wrong decisions."""
    rows: list[list[str]] = []
    for name in ("pass rate 0.8", "pass rate 0.9", "share of 1 to 5 claims", "90% at 1, 2% at 0"):
        draw, truth = POPULATIONS[name]
        for first in (30, 100):
            source = np.random.default_rng(22)
            ended: list[tuple[str, int]] = []
            for _ in range(replications // 4):
                ended.append(looked_at(draw, truth, source, first))
            row = [name, str(first)]
            for kind in ("pass", "fail"):
                row += [error([verdict == kind and look <= last for verdict, look in ended]) for last in (1, 2, LOOKS)]
            rows.append(row)
    head = ["", "first n", *(f"wrong {kind}, {looks}" for kind in ("pass", "fail") for looks in ("1 look", "2", "6"))]
    yield Table("Repeated looks at a gate", head, rows, replications // 4)


def looked_at(draw: Draw, truth: float, source: np.random.Generator, first: int) -> tuple[str, int]:
    """The verdict of a gate that is repeated as its advice says, and the look that gave it."""
    values = draw(source, first).tolist()
    for look in range(1, LOOKS + 1):
        now, later = alpha_at_look(0.05, look), alpha_at_look(0.05, look + 1)
        decision = decide([AtLeast("a", values, truth)], alpha=now, next_alpha=later)[0]
        if decision.verdict != "inconclusive":
            return decision.verdict, look
        values += draw(source, min(decision.more_samples or LARGEST_STEP, LARGEST_STEP)).tolist()
    return "inconclusive", LOOKS


def missing(replications: int) -> Iterator[Table]:
    """Bad samples fail more often: wrong passes with the truth at the threshold, and how often a good system passes."""
    rows: list[list[str]] = []
    for lost_bad, lost_good in ((0.3, 0.02), (0.1, 0.02), (0.05, 0.05)):
        for n in (100, 1000):
            row = [f"{lost_bad:.0%} of bad, {lost_good:.0%} of good", str(n)]
            for rate, threshold in ((0.9, 0.9), (0.97, 0.9)):
                source = np.random.default_rng(23)
                found: dict[str, list[bool]] = {"ignore": [], "worst": []}
                for _ in range(replications // 2):
                    values = passes(rate)(source, n)
                    lost = source.random(n) < np.where(values == 1, lost_good, lost_bad)
                    scores = [None if gone else value for value, gone in zip(values.tolist(), lost, strict=True)]
                    for option, those in (("ignore", [x for x in scores if x is not None]), ("worst", scores)):
                        verdict = decide([AtLeast("a", those, threshold)], alpha=alpha_at_look(0.05, 1))[0].verdict
                        found[option].append(verdict == "pass")
                row += [error(found["ignore"]), error(found["worst"])]
            rows.append(row)
    head = ["missing", "n", "wrong pass, ignored", "wrong pass, worst", "0.97 passes, ignored", "0.97 passes, worst"]
    yield Table("Gates with missing scores", head, rows, replications // 2)
