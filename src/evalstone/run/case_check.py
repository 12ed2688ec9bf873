"""Checks what answers are held against, such as rubrics, before anything is asked, and says where a wrong one is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalstone._core.display import excerpt
from evalstone.datasets import Dataset, Samples
from evalstone.datasets.reading import AS_FOUND, Reading
from evalstone.errors import DataError
from evalstone.scorers import Scorer
from evalstone.types import Sample


def check_cases(dataset: Dataset, scorers: Iterable[Scorer], data: Samples, reading: Reading) -> None:
    """Raise DataError, with its place in the data, for the first sample whose metadata a scorer can't use.

    Args:
        dataset: The samples.
        scorers: The scorers.
        data: What the samples were loaded from.
        reading: How they were.
    """
    if (found := wrong_case(dataset, _checking(scorers))) is not None:
        raise placed(*found, dataset, data, reading)


async def acheck_cases(dataset: Dataset, scorers: Iterable[Scorer], data: Samples, reading: Reading = AS_FOUND) -> None:
    """`check_cases` on a loop, which it doesn't hold up to find the place."""
    if (found := wrong_case(dataset, _checking(scorers))) is not None:
        raise await asyncio.to_thread(placed, *found, dataset, data, reading)


def _checking(scorers: Iterable[Scorer]) -> list[Callable[[Mapping[str, Any]], object]]:
    """The checks of the scorers that check samples."""
    return [scorer.check_case for scorer in scorers if scorer.checks_cases]


def wrong_case(
    samples: Iterable[Sample], checks: Sequence[Callable[[Mapping[str, Any]], object]]
) -> tuple[Sample, DataError] | None:
    """The first sample whose metadata doesn't pass a check, and why; None if all pass. Those of a large dataset are on
    disk: they are read once for all checks, and not at all without one."""
    for sample in samples if checks else ():
        try:
            for check_case in checks:
                check_case(sample.metadata)
        except DataError as error:
            return sample, error
    return None


def placed(sample: Sample, error: DataError, dataset: Dataset, data: Samples, reading: Reading) -> DataError:
    """The error of a sample with its place in the data; with the ID of the sample if they are a dataset, which doesn't
    know the lines, or can be read only once."""
    from evalstone.run.data_check import check  # noqa: PLC0415 - only errors need it

    problems = check(data, **reading.to_dict()).problems if _can_be_read_again(data) else ()
    place = next((each.place for each in problems if each.message == str(error)), f"sample {excerpt(sample.id)}")
    return DataError(f"{dataset.name}: {place}: ", error)


def _can_be_read_again(data: Samples) -> bool:
    if isinstance(data, str | os.PathLike):
        path = Path(data)
        return path != Path("-") and not path.is_fifo()
    return not isinstance(data, Dataset)
