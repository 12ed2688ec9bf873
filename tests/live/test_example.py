"""The example application, in a short form of its load test."""

from __future__ import annotations

import pytest

from examples.live import load

pytestmark = pytest.mark.slow


def test_the_example_serves_under_load_and_its_coverage_adds_up() -> None:
    # Other tests keep the processors busy: an idle worker would stand still.
    result, found = load.run(rate=50.0, seconds=1.0, overload=0.5, sampling=0.25, priority="low")
    assert result.requests == 2 * 50 + 250
    assert len(result.plain.values) == len(result.scored.values) == 50
    for one in found.scorers:
        assert (one.seen, one.filtered, one.unaccounted) == (result.requests, 0, 0)
        assert one.seen == one.declined + one.dropped_queue + one.n_score + one.pending
        assert 0.15 < one.sampled / one.eligible < 0.35
    # Limits that a busy machine keeps; bench/live.py measures.
    assert result.scored.percentile(0.5) < result.plain.percentile(0.5) + 20
