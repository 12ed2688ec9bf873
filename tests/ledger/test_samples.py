"""The samples of runs: stored once per content, read back as they were, and gone with the last run that has them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone import Message, Sample, ToolCall, Usage
from evalstone.datasets.blocks import SampleBlock, sample_blocks
from evalstone.ledger import AsyncLedger, async_ledger
from evalstone.ledger.copy import recover
from evalstone.ledger.maintenance import info, prune, verify
from evalstone.ledger.store import Ledger, LedgerSamples
from tests.ledger.rows import DATASET, run, samples
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


def keep(ledger: Ledger, dataset: str, those: Iterable[Sample]) -> None:
    ledger.write_blocks(dataset, list(sample_blocks(those)))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstone.datasets.blocks._FEWEST_IN_BLOCK", 4)
    monkeypatch.setattr("evalstone.datasets.blocks._MORE_IN_BLOCK", 8)


def test_samples_are_read_back_as_they_were_in_their_order(url: str) -> None:
    kept = [FULL, *samples(5)]
    with Ledger(url) as ledger:
        keep(ledger, DATASET, kept)
        assert ledger.samples(DATASET) == 6
    stored = LedgerSamples(url, DATASET)
    assert list(stored) == list(stored) == kept
    assert next(iter(stored)).messages == FULL.messages
    assert verify(url).sound


def test_a_large_dataset_is_stored_and_read_in_blocks(url: str, small_blocks: None) -> None:
    with Ledger(url) as ledger:
        keep(ledger, DATASET, samples(500))
        assert info(ledger).counts["block"] == info(ledger).counts["item"] > 10
        place, first = ledger.samples_after(DATASET)
        assert (place, first) == (0, samples(len(first)))
        assert ledger.samples_after(DATASET, place)[0] == len(first)
    assert list(LedgerSamples(url, DATASET)) == samples(500)


def test_a_block_ends_when_it_is_large() -> None:
    large = [Sample(id=str(n), output="x" * 200_000) for n in range(5)]
    assert [(block.place, block.size) for block in sample_blocks(large)] == [(0, 2), (2, 2), (4, 1)]


def test_what_datasets_have_in_common_is_stored_once(url: str, small_blocks: None) -> None:
    added = [*samples(100), Sample(output="another"), *samples(500)[100:]]
    with Ledger(url) as ledger:
        keep(ledger, "a", samples(500))
        before = info(ledger).counts["block"]
        keep(ledger, "b", added)
        assert info(ledger).counts["block"] <= before + 2
    assert list(LedgerSamples(url, "b")) == added


def test_samples_are_pruned_with_the_last_run_that_has_them(url: str, small_blocks: None) -> None:
    def row(name: str, dataset: str) -> Any:
        made = run(name)
        made.metadata["dataset"]["version"] = dataset
        return made

    with Ledger(url) as ledger:
        for name, dataset, number in (("r1", "a", 500), ("r2", "b", 400)):
            ledger.start_run(row(name, dataset))
            keep(ledger, dataset, samples(number))
        ledger.finish_run("r2", "2026-01-01T00:01:00+00:00", row("r2", "b").metadata)
        ledger.leases.release_all()
        own = prune(ledger, unfinished=True, delete=False).samples
        assert 100 <= own < 200
        assert (ledger.samples("a"), ledger.samples("b")) == (500, 400)
        assert prune(ledger, unfinished=True, delete=True).samples == own
        assert (ledger.samples("a"), ledger.samples("b")) == (0, 400)
        assert prune(ledger, older_than=timedelta(days=1), delete=True).samples == 400
        assert not any(info(ledger).counts.values())


def test_samples_are_written_in_a_few_transactions_and_not_again(
    url: str, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_ledger, "BLOCKS_PER_WRITE", 4)
    writes: list[list[int]] = []
    write = Ledger.write_blocks

    def counted(ledger: Ledger, dataset: str, part: Collection[SampleBlock]) -> None:
        writes.append([block.place for block in part])
        write(ledger, dataset, part)

    monkeypatch.setattr(Ledger, "write_blocks", counted)

    async def keep_all() -> int:
        async with AsyncLedger(url) as ledger:
            await ledger.keep_samples(DATASET, samples(500))
            return ledger.store.samples(DATASET)

    assert asyncio.run(keep_all()) == 500
    assert asyncio.run(keep_all()) == 500
    assert max(map(len, writes)) == 4
    assert [place for part in writes for place in part] == [block.place for block in sample_blocks(samples(500))]


def test_a_dataset_that_was_written_in_part_is_completed(url: str, small_blocks: None) -> None:
    async def keep_all() -> None:
        async with AsyncLedger(url) as ledger:
            await ledger.keep_samples(DATASET, samples(500))

    with Ledger(url) as ledger:
        ledger.write_blocks(DATASET, list(sample_blocks(samples(500)))[:3])
        assert 0 < ledger.samples(DATASET) < 500
    asyncio.run(keep_all())
    assert list(LedgerSamples(url, DATASET)) == samples(500)


def test_processes_that_write_the_same_samples_at_once_all_succeed(url: str) -> None:
    async def keep_all(kept: list[Sample], dataset: str) -> None:
        async with AsyncLedger(url) as ledger:
            await ledger.keep_samples(dataset, kept)

    async def all_at_once() -> None:
        kept = samples(300)
        await asyncio.gather(*(keep_all(kept[:: (-1) ** n], f"d{n % 2}") for n in range(6)))

    Ledger(url).close()
    asyncio.run(all_at_once())
    assert list(LedgerSamples(url, "d0")) == list(LedgerSamples(url, "d1"))[::-1] == samples(300)


def test_readable_samples_of_a_damaged_ledger_are_recovered(tmp_path: Path, small_blocks: None) -> None:
    bad, good = tmp_path / "bad.db", tmp_path / "good.db"
    with Ledger(bad) as ledger:
        ledger.start_run(run())
        keep(ledger, DATASET, samples(2000))
        ledger.leases.release_all()
        counts = info(ledger).counts
    damage(bad, *page_of(bad, "blocks")[1:3])
    recovered = recover(bad, good)
    assert 0 < recovered["block"].copied < counts["block"]
    assert recovered["item"].copied == counts["item"]
    with Ledger(good) as ledger:
        # An item without its block doesn't count, so that nobody takes a part of the samples for all.
        assert 0 < ledger.samples(DATASET) < 2000
