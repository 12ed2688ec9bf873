"""`limit`: only the first samples are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstone import Dataset, Sample, evaluate, load
from tests.refusals import refused

SAMPLES: list[dict[str, Any]] = [{"id": str(number), "output": "a"} for number in range(3)]


def ids(samples: Any, limit: int | None) -> list[str]:
    run = evaluate(samples, "exact_match(expected=a)", judge=None, ledger=None, limit=limit)
    return [record.sample_id for record in run.records]


def test_the_first_samples_are_scored_from_every_source(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    file.write_text("".join(f'{{"id": "{number}", "output": "a"}}\n' for number in range(3)))
    for source in (SAMPLES, [Sample(**row) for row in SAMPLES], load(SAMPLES), file):
        assert ids(source, 2) == ["0", "1"]
        assert ids(source, None) == ids(source, 3) == ids(source, 9) == ["0", "1", "2"]


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "2"])
def test_a_limit_is_a_whole_number_of_samples(limit: Any) -> None:
    with refused("limit"):
        ids(SAMPLES, limit)


def test_the_first_samples_of_a_dataset_are_a_dataset_of_the_same_file() -> None:
    dataset = Dataset(tuple(Sample(**row) for row in SAMPLES), "cases.jsonl", ignored=("topic",))
    first = dataset.first(1)
    assert ([sample.id for sample in first], first.name, first.ignored) == (["0"], "cases.jsonl", ("topic",))
    assert first.version != dataset.version
    assert dataset.first(None) is dataset
