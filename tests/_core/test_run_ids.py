"""The IDs of runs tell runs of one second apart."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from evalstone._core.run_ids import run_id


def test_runs_of_one_second_have_ids_of_their_own() -> None:
    began = datetime(2026, 11, 28, 13, 5, tzinfo=UTC)
    ids = {run_id(began, hashlib.sha256(str(number).encode()).hexdigest()) for number in range(10_000)}
    assert len(ids) == 10_000
    assert {one[:16] for one in ids} == {"20261128-130500-"}
    assert {len(one) for one in ids} == {28}
