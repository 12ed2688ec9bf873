"""What is checked of samples before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from evalstone.datasets import Dataset
from evalstone.datasets.reading import AS_FOUND
from evalstone.run.case_check import check_cases
from evalstone.scorers import Faithfulness, Repeated, Rubric, Scorer, parse_scorer
from evalstone.types import Sample


class Read(Exception):
    """Samples were read."""


class Unread:
    """Samples that must not be read."""

    def __iter__(self) -> Iterator[Sample]:
        raise Read


@pytest.mark.parametrize(
    ("scorers", "reads"),
    [
        ([parse_scorer("exact_match"), Faithfulness(), Repeated(Faithfulness(), repeats=2)], False),
        ([parse_scorer("exact_match"), Rubric()], True),
        ([Repeated(Rubric(), repeats=2)], True),
    ],
)
def test_samples_are_read_only_for_scorers_that_check_them(scorers: list[Scorer], reads: bool) -> None:
    samples = cast("Dataset", Unread())
    if reads:
        with pytest.raises(Read):
            check_cases(samples, scorers, [], AS_FOUND)
    else:
        check_cases(samples, scorers, [], AS_FOUND)
