"""The versions of datasets in the ledger, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

import pytest

from evalstone.datasets.blocks import sample_blocks
from evalstone.datasets.stored import sample_line
from evalstone.errors import LedgerError
from evalstone.ledger.datasets import DatasetVersion, StoredLines, dataset_versions, placed_blocks
from evalstone.ledger.store import Ledger
from evalstone.types import Sample
from tests.ledger.rows import DATASET, run

SAMPLES = [Sample(id=f"q{n} \ud800", input="x" * 100) for n in range(1000)]


def test_samples_of_a_version_are_read_by_their_places(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.start_run(run())
        ledger.write_blocks(DATASET, [*sample_blocks(SAMPLES)])
        assert dataset_versions(ledger) == [DatasetVersion(DATASET, "data.jsonl", "2026-01-01T00:00:00+00:00", 3)]
        blocks = placed_blocks(ledger, DATASET)
        assert (len(blocks) > 1, sum(block.samples for block in blocks)) == (True, 1000)
        lines = StoredLines(ledger, DATASET)
        assert [*lines.every()] == [*map(sample_line, SAMPLES)]
        assert [lines.at(place) for place in (999, 0, 500, 1000)] == [
            *(sample_line(SAMPLES[place]) for place in (999, 0, 500)),
            None,
        ]


def test_a_damaged_block_is_an_error_that_names_the_dataset(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.write_blocks(DATASET, [*sample_blocks(SAMPLES)])
        for harm, values in (("'x'", {}), (":body", {"body": b"damaged"})):  # a text isn't bytes in SQLite
            with ledger.transaction(writing=True) as database:
                database.execute(f"UPDATE blocks SET body = {harm}", values)
            lines = StoredLines(ledger, DATASET)
            for read in (lines.at, lines.of_block):
                with pytest.raises(LedgerError, match=f"a sample of dataset {DATASET} in the ledger .* is damaged"):
                    read(0)
