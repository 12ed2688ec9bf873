"""Runs stopped by their gate: the order in which samples were drawn, and intervals valid under optional stopping.

The number of samples of such a run depends on their scores. A fixed-sample interval then under-covers (at most two
thirds instead of 95%), and the mean is biased away from the threshold. A confidence sequence remains valid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from evalstone.errors import ConfigError
from evalstone.results.columns import Columns
from evalstone.results.summary import ScorerSummary
from evalstone.stats.intervals import Interval
from evalstone.types import Drawn, note

METHOD = "confidence sequence"
"""`Interval.method` of a run that its gate stopped."""


def place_in_order(seed: str, sample: str) -> bytes:
    """A sort key that puts samples in random order. It depends only on the seed and the sample, so any subset of the
    samples has the same relative order."""
    return hashlib.sha256(f"{seed}\0{sample}".encode("utf-8", "surrogatepass")).digest()


def in_order(columns: Columns, signature: str, drawn: Drawn) -> Sequence[int]:
    """The rows of a scorer's entries that count, in the order in which their samples were drawn.

    Records after the first sample without a record don't count, because samples that take long may score differently.
    """
    if signature not in drawn.tested:
        return ()
    rows = columns.rows(signature)
    keys = dict(zip(rows, columns.keys(rows), strict=True))
    return sorted(rows, key=lambda row: place_in_order(drawn.seed, keys[row]))[: drawn.tested[signature]]


def check_one_order(first: Drawn | None, second: Drawn | None) -> None:
    """Raise ConfigError if gates stopped both of two runs and the samples were drawn in different orders."""
    if first is not None and second is not None and first.seed != second.seed:
        raise ConfigError(
            "both runs were stopped by their gates, with samples in different orders, so their difference can't be "
            "tested; run one of them again without its gate"
        )


def with_sequences(summary: Sequence[ScorerSummary], columns: Columns, drawn: Drawn) -> tuple[ScorerSummary, ...]:
    """The summaries of a run stopped by its gate, with confidence sequences as intervals."""
    return tuple(replace(line, interval=_sequence(line, columns, drawn)) for line in summary)


def _sequence(line: ScorerSummary, columns: Columns, drawn: Drawn) -> Interval | None:
    from evalstone.stats.betting import sequence_bounds  # noqa: PLC0415 - numpy, which other runs don't need

    interval = line.interval
    if interval is None:
        return None
    rows = in_order(columns, line.info.signature, drawn)
    values = [value for value in columns.values(rows) if value is not None]
    low, high = sequence_bounds(values, 0.0, line.info.scale, interval.confidence)
    # The mean is over all scores, including those few after the ones that count.
    return replace(
        interval, low=min(low, interval.estimate), high=max(high, interval.estimate), method=METHOD, notes=STOPPED_NOTES
    )


STOPPED_NOTES = (note("stopped_sequence", "caution"),)
"""The notes of its intervals."""
