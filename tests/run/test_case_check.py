"""What is checked of samples before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from evalstone.datasets import Dataset
from evalstone.datasets.reading import AS_FOUND
from evalstone.errors import DataError
from evalstone.questions import Ask
from evalstone.run.case_check import check_cases
from evalstone.scorers import Faithfulness, Repeated, Rubric, Scorer, parse_scorer
from evalstone.types import Sample, Score


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


class Owned(Scorer):
    """Whether an entry is right, which is checked before the run."""

    name = "owned"

    def check_case(self, metadata: Mapping[str, Any]) -> None:
        if metadata.get("own") == "wrong":
            raise DataError("own is wrong")

    async def score(self, ask: Ask, *, output: str) -> Score:
        return Score(1.0)


def test_samples_are_read_once_for_all_scorers_and_the_first_wrong_one_is_named() -> None:
    samples = [Sample(id=f"s{n}", output="x", metadata={"rubric": ["a"]}) for n in range(4)]
    reads: list[str] = []

    class Counted:
        """Samples whose reading is noted."""

        def __iter__(self) -> Iterator[Sample]:
            for sample in samples:
                reads.append(sample.id)
                yield sample

    scorers = [Rubric(), Repeated(Rubric(), repeats=2), Owned()]
    check_cases(cast("Dataset", Counted()), scorers, [], AS_FOUND)
    assert reads == ["s0", "s1", "s2", "s3"]
    wrong = [replace(samples[1], metadata={"own": "wrong"}), replace(samples[2], metadata={"rubric": 5})]
    dataset = Dataset([samples[0], *wrong, samples[3]])
    with pytest.raises(DataError, match="sample 's1': own is wrong"):
        check_cases(dataset, scorers, dataset, AS_FOUND)
