"""The samples of runs: stored once per content, read back as they were, and gone with the last run that has them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from evalstone import Message, Sample, ToolCall, Usage
from evalstone.ledger import AsyncLedger, async_ledger
from evalstone.ledger.copy import recover
from evalstone.ledger.maintenance import info, prune, verify
from evalstone.ledger.schema import items
from evalstone.ledger.store import Ledger, LedgerSamples
from tests.ledger.rows import DATASET, record, run, samples
from tests.ledger.test_upkeep import damage, page_of

FULL = Sample(
    id="bad \ud83d \x00 id",
    input="A question\u2028with \x00 and \udc00 in it",
    output="An answer",
    context=["one", "two"],
    reference="",
    messages=[
        Message(role="user", content="Hi."),
        Message(role="assistant", tool_calls=[ToolCall(name="find", arguments={"q": [1]})], usage=Usage(1, 2, 3, 4)),
    ],
    instructions="Be short.",
    metadata={"n": 1.5, "nested": {"x": [True, None]}},
    trajectory=[{"step_type": "tool_call", "name": "find", "tool_args": {"q": [1]}}],  # type: ignore[arg-type]
    expected_trajectory=["find"],  # type: ignore[arg-type]
)


def test_samples_are_read_back_as_they_were_in_their_order(url: str) -> None:
    kept = [FULL, *samples(5)]
    with Ledger(url) as ledger:
        ledger.write_samples(DATASET, 0, kept[:3])
        ledger.write_samples(DATASET, 3, kept[3:])
        assert ledger.samples(DATASET) == 6
    stored = LedgerSamples(url, DATASET)
    assert list(stored) == list(stored) == kept
    assert next(iter(stored)).messages == FULL.messages
    assert verify(url).sound


def test_a_large_dataset_is_read_in_parts(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.ledger.store.SAMPLES_PER_READ", 2)
    with Ledger(url) as ledger:
        ledger.write_samples(DATASET, 0, samples(5))
    assert list(LedgerSamples(url, DATASET)) == samples(5)


def test_equal_samples_of_several_datasets_are_stored_once(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.write_samples("a", 0, samples(3))
        ledger.write_samples("b", 0, samples(2))
        ledger.write_samples("b", 2, [Sample(id="0", output="other")])
        found = info(ledger).counts
    assert (found["item"], found["sample"]) == (6, 4)


def test_samples_are_pruned_with_the_last_run_that_has_them(url: str) -> None:
    def row(name: str, dataset: str) -> Any:
        made = run(name)
        made.metadata["dataset"]["version"] = dataset
        return made

    with Ledger(url) as ledger:
        for name, dataset, number in (("r1", "a", 3), ("r2", "b", 2)):
            ledger.start_run(row(name, dataset))
            ledger.write_samples(dataset, 0, samples(number))
        ledger.finish_run("r2", "2026-01-01T00:01:00+00:00", row("r2", "b").metadata)
        ledger.release_leases()
        assert prune(ledger, unfinished=True, delete=False).samples == 1
        assert (ledger.samples("a"), ledger.samples("b")) == (3, 2)
        assert prune(ledger, unfinished=True, delete=True).samples == 1
        assert (ledger.samples("a"), ledger.samples("b")) == (0, 2)
        assert prune(ledger, older_than=timedelta(days=1), delete=True).samples == 2
        assert not any(info(ledger).counts.values())


def test_samples_are_written_in_a_few_transactions_and_not_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(async_ledger, "SAMPLES_PER_WRITE", 4)
    writes: list[int] = []
    write = Ledger.write_samples

    def counted(ledger: Ledger, dataset: str, first: int, part: Iterable[Sample]) -> None:
        writes.append(first)
        write(ledger, dataset, first, part)

    monkeypatch.setattr(Ledger, "write_samples", counted)

    async def keep() -> int:
        async with AsyncLedger(url) as ledger:
            await ledger.keep_samples(DATASET, samples(10))
            return ledger.store.samples(DATASET)

    assert asyncio.run(keep()) == 10
    assert asyncio.run(keep()) == 10
    assert writes == [0, 4, 8]


def test_a_dataset_that_was_written_in_part_is_completed(url: str) -> None:
    async def keep() -> None:
        async with AsyncLedger(url) as ledger:
            await ledger.keep_samples(DATASET, samples(3))

    with Ledger(url) as ledger:
        ledger.write_samples(DATASET, 0, samples(2))
    asyncio.run(keep())
    assert list(LedgerSamples(url, DATASET)) == samples(3)


def test_processes_that_write_the_same_samples_at_once_all_succeed(url: str) -> None:
    async def keep(kept: list[Sample], dataset: str) -> None:
        async with AsyncLedger(url) as ledger:
            await ledger.keep_samples(dataset, kept)

    async def all_at_once() -> None:
        kept = samples(300)
        await asyncio.gather(*(keep(kept[:: (-1) ** n], f"d{n % 2}") for n in range(6)))

    Ledger(url).close()
    asyncio.run(all_at_once())
    assert list(LedgerSamples(url, "d0")) == list(LedgerSamples(url, "d1"))[::-1] == samples(300)


def test_records_are_put_in_the_order_of_their_samples_and_scorers(url: str) -> None:
    made = run()
    made.metadata["scorers"].append({**made.metadata["scorers"][0], "signature": "a@1"})
    written = [("2", "a@1"), ("0", "s@1"), (FULL.id, "s@1"), ("0", "a@1"), (FULL.id, "a@1"), ("2", "s@1")]
    with Ledger(url) as ledger:
        ledger.write(records=[(made.id, record(name, scorer=scorer)) for name, scorer in written])
        as_written = [(one.sample, one.scorer) for one in ledger.records_in_order(made)]
        ledger.write_samples(DATASET, 0, [FULL, *samples(3)])
        found = [(one.sample, one.scorer) for one in ledger.records_in_order(made)]
    assert as_written == [(name, scorer) for name in ("2", "0", FULL.id) for scorer in ("s@1", "a@1")]
    assert found == [(name, scorer) for name in (FULL.id, "0", "2") for scorer in ("s@1", "a@1")]


def test_readable_samples_of_a_damaged_ledger_are_recovered(tmp_path: Path) -> None:
    bad, good = tmp_path / "bad.db", tmp_path / "good.db"
    with Ledger(bad) as ledger:
        ledger.start_run(run())
        ledger.write_samples(DATASET, 0, samples(400))
        ledger.release_leases()
    damage(bad, *page_of(bad, "samples")[2:4])
    assert 300 < recover(bad, good)["sample"].copied < 400
    with Ledger(good) as ledger:
        # An item without its sample doesn't count, so that nobody takes a part of the samples for all.
        assert ledger.samples(DATASET) == info(ledger).counts["sample"]
        with ledger.transaction() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(items)) == 400
