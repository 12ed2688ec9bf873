"""What the metadata of a run must be."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone._core.file_format import RUN_FORMAT
from evalstone.errors import DataError
from evalstone.types import RunMetadata

VOTE: dict[str, Any] = {"kind": "panel", "questions": 1, "verdicts": 1, "agreement": 1.0, "no_answer": {}}


def stored(**more: Any) -> dict[str, Any]:
    return {
        "format": RUN_FORMAT,
        "id": "r",
        "dataset": {"name": "d", "version": "v", "samples": 1},
        "judge": {"identity": "j", "note": ""},
        "scorers": [{"name": "f", "signature": "f@1", "scale": 1.0, "lower_is_better": False}],
        "started": "2026-01-31T12:00:00+00:00",
        "seconds": 0.0,
        "resumed": 0,
        **more,
    }


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (
            {"scorers": [{"name": "f", "signature": "f@1", "scale": 0, "lower_is_better": False}]},
            "the scale of f must be above 0, and ",
        ),
        ({"seconds": -0.5}, "seconds, resumed and the dataset's samples must be 0 or more"),
        ({"resumed_at": "yesterday"}, "resumed_at must be a time, such as 2026-01-31T12:00:00"),
        ({"target": {"identity": "t", "trials": 0}}, "the target's trials must be from 1 to 10000, its answers, "),
        ({"target": {"identity": "t", "trials": 1, "failed": -1}}, "the target's trials must be from 1 to 10000, its "),
        ({"judge_stats": {"j": VOTE}}, "judge_stats.j.agreement and agreement_interval are required with verdicts"),
    ],
)
def test_metadata_out_of_range_are_refused_with_the_field(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError) as raised:
        RunMetadata.of(stored(**more), "summary.json")
    assert problem in str(raised.value)


def test_statistics_of_an_unknown_kind_of_judge_are_kept() -> None:
    stats = {"j": {"kind": "debate", "rounds": 3}}
    assert RunMetadata.of(stored(judge_stats=stats), "summary.json").judge_stats == stats
