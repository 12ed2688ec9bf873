"""Runs that their gate stopped: their samples in the order in which they were drawn, and intervals that hold for them.

How many samples such a run has depends on their scores. An interval for a fixed number covers the true mean too rarely
then (66 to 75% instead of 95), and the mean itself lies too far from the threshold. A confidence sequence holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from evalstone.results.summary import ScorerSummary
from evalstone.stats.intervals import Interval
from evalstone.types import Drawn, Record, Score

METHOD = "confidence sequence"
"""`Interval.method` of a run that its gate stopped."""


def place_in_order(seed: str, sample: str) -> bytes:
    """What to sort samples by for a random order. It depends on the seed and the sample alone, so that a part of the
    samples has the same order."""
    return hashlib.sha256(f"{seed}\0{sample}".encode("utf-8", "surrogatepass")).digest()


def in_order(records: Iterable[Record], drawn: Drawn) -> dict[str, list[Record]]:
    """By scorer, the records of the samples that count, in the order in which they were drawn.

    What comes after a sample without a record does not count: what takes long may well score differently.
    """
    found: dict[str, list[Record]] = {signature: [] for signature in drawn.tested}
    for record in records:
        if record.scorer in found:
            found[record.scorer].append(record)
    for signature, those in found.items():
        those.sort(key=lambda record: place_in_order(drawn.seed, record.key))
        del those[drawn.tested[signature] :]
    return found


def with_sequences(
    summary: Sequence[ScorerSummary], records: Iterable[Record], drawn: Drawn
) -> tuple[ScorerSummary, ...]:
    """The summaries of a run that its gate stopped, with confidence sequences instead of intervals."""
    ordered = in_order(records, drawn)
    return tuple(replace(line, interval=_sequence(line, ordered)) for line in summary)


def _sequence(line: ScorerSummary, ordered: Mapping[str, Sequence[Record]]) -> Interval | None:
    from evalstone.stats.betting import sequence_bounds  # noqa: PLC0415 - numpy, which other runs don't need

    interval = line.interval
    if interval is None:
        return None
    records = ordered.get(line.info.signature, ())
    values = [record.outcome.value for record in records if isinstance(record.outcome, Score)]
    low, high = sequence_bounds(values, 0.0, line.info.scale, interval.confidence)
    # The mean is that of all scores, of which a few may come after those that count.
    return replace(interval, low=min(low, interval.mean), high=max(high, interval.mean), method=METHOD, caution=CAUTION)


CAUTION = (
    "the gate stopped the run, so the interval is a confidence sequence, which holds whenever a run stops; the mean "
    "tends to lie too far from the threshold"
)
