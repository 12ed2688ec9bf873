"""How often a watched mean gives a false alarm, and how soon a change is found: sections of bench/coverage.py.

Each watch has a baseline and a stream of units that are drawn anew, and is looked at after every unit. False alarms
are most frequent with a tolerance of 0, where the stream has exactly the mean that is no fall yet.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from populations import Draw, Floats, claims, kinds, marks, passes, rare_zero, smooth
from tables import Table, percent

from evalstone.stats.mean_watch import watch_mean

LENGTH = 5_000
LATE = 2_000
CYCLE = 1_000
"""Units a day."""
DAYS = 20
BASELINES = (50, 300)
DROPS = (0.05, 0.1, 0.2)


def traces(source: np.random.Generator, n: int) -> Floats:
    """Traces of 1 to 5 scores, pass/fail, which share a rate: the mean of each."""
    count = source.integers(1, 6, n)
    return source.binomial(count, source.beta(1.7, 0.3, n)) / count


def scores_of_traces(source: np.random.Generator, n: int) -> Floats:
    """The scores of the same traces one by one, as if they were independent."""
    count = source.integers(1, 6, n)
    return (source.random(int(count.sum())) < np.repeat(source.beta(1.7, 0.3, n), count))[:n].astype(np.float64)


DRAWS: dict[str, Draw] = {
    "pass rate 0.85": passes(0.85),
    "pass rate 0.97": passes(0.97),
    "share of 1 to 5 claims": claims,
    "90% at 1, 8% between 0.5 and 1, 2% at 0": rare_zero,
    "similarities near 0.9": smooth,
    "ratings from 1 to 5": marks,
    "90% at 0.75, of five grades": kinds([0, 0.25, 0.5, 0.75, 1], [0.01, 0.02, 0.05, 0.9, 0.02])[0],
    "traces of 1 to 5 scores, each trace a unit": traces,
    "the same scores treated as independent": scores_of_traces,
}


def nights(source: np.random.Generator, n: int) -> Floats:
    """Pass/fail of a stream with CYCLE units a day, of which a third come at night, when fewer pass."""
    night = np.arange(n) % CYCLE >= 2 * CYCLE // 3
    return (source.random(n) < np.where(night, 0.75, 0.9)).astype(np.float64)


def waves(source: np.random.Generator, n: int) -> Floats:
    """Pass/fail of a stream with CYCLE units a day, whose pass rate is a wave."""
    rate = 0.85 + 0.1 * np.sin(2 * np.pi * np.arange(n) / CYCLE)
    return (source.random(n) < rate).astype(np.float64)


def bursts(source: np.random.Generator, n: int) -> Floats:
    """The same wave, with four times as many units in the second half of a day as in the first."""
    hour = np.arange(n) % CYCLE / CYCLE
    rate = 0.85 + 0.1 * np.sin(2 * np.pi * np.where(hour < 0.2, hour / 0.4, 0.5 + (hour - 0.2) / 1.6))
    return (source.random(n) < rate).astype(np.float64)


def ratings_at_night(source: np.random.Generator, n: int) -> Floats:
    """Ratings from 1 to 5, a grade lower for half of what comes at night."""
    night = np.arange(n) % CYCLE >= 2 * CYCLE // 3
    return np.maximum(0.0, marks(source, n) - 0.25 * (night & (source.random(n) < 0.5)))


DAILY: dict[str, Draw] = {
    "pass rate 0.9 by day, 0.75 at night": nights,
    "pass rate 0.75 to 0.95, a wave": waves,
    "the same, most units in the bad half": bursts,
    "ratings from 1 to 5, lower at night": ratings_at_night,
}


def daily_cycles(replications: int) -> Iterator[Table]:
    """Streams whose scores vary over a day in the same way in the baseline and in the stream."""
    length = DAYS * CYCLE
    days = [place // CYCLE for place in range(length)]
    rows: list[list[str]] = []
    watches = max(1, replications // 10)
    for name, draw in DAILY.items():
        for size in (CYCLE, 7 * CYCLE):
            source = np.random.default_rng(33)
            alarms = [list[bool](), list[bool]()]
            for _ in range(watches):
                before, now = draw(source, size).tolist(), draw(source, length).tolist()
                for cycles, found in zip((None, days), alarms, strict=True):
                    watch = watch_mean(before, now, tolerance=0.0, cycles=cycles)
                    found.append(watch is not None and watch.verdict == "drifted")
            rows.append([name, f"{size // CYCLE}", *(f"{percent(found)}%" for found in alarms)])
    head = ["units", "days in the baseline", "no cycle", "`--cycle 1d`"]
    yield Table("False alarms with daily cycles", head, rows, watches)


def false_alarms(replications: int) -> Iterator[Table]:
    """Watches of a stream that is like its baseline."""
    rows: list[list[str]] = []
    watches = max(1, replications // 10)
    for name, draw in DRAWS.items():
        row = [name]
        for size in BASELINES:
            source = np.random.default_rng(31)
            alarms = [
                watch is not None and watch.verdict == "drifted"
                for watch in (
                    watch_mean(draw(source, size).tolist(), draw(source, LENGTH).tolist(), tolerance=0.0)
                    for _ in range(watches)
                )
            ]
            row.append(f"{percent(alarms)}%")
        rows.append(row)
    head = ["units", *(f"baseline of {size}" for size in BASELINES)]
    yield Table("False alarms of watched means", head, rows, watches)


def delays(replications: int) -> Iterator[Table]:
    """Streams whose units fall by so much from some unit on: each is moved down, or for pass rates fails more often."""
    rows: list[list[str]] = []
    watches = max(1, replications // 40)
    for name in ("pass rate 0.85", "share of 1 to 5 claims", "similarities near 0.9"):
        for size in (300, 1_000):
            for start in (0, LATE):
                row = [name, f"{size:,}", f"{start:,}"]
                for drop in DROPS:
                    source, found, early = np.random.default_rng(32), list[int](), 0
                    for _ in range(watches):
                        before = DRAWS[name](source, size)
                        now = DRAWS[name](source, start + LENGTH)
                        # A share of what each is worth is lost at random, which keeps values in [0, 1].
                        lost = drop / float(DRAWS[name](np.random.default_rng(0), 100_000).mean())
                        now[start:] *= source.random(LENGTH) >= lost
                        watch = watch_mean(before.tolist(), now.tolist())
                        assert watch is not None
                        if watch.alarm is not None and watch.alarm >= start:
                            found.append(watch.alarm - start + 1)
                        early += watch.alarm is not None and watch.alarm < start
                    every = watches - early
                    share = len(found) / every
                    row.append(f"{np.median(found):,.0f} ({100 * share:.0f}%)" if found else "- (0%)")
                rows.append(row)
    head = ["units", "baseline", "change at unit", *(f"fall of {drop}" for drop in DROPS)]
    yield Table("Delay until an alarm", head, rows, watches)


SECTIONS = (false_alarms, daily_cycles, delays)
