"""Records without judge calls are read in a shorter way: with the same result, or the same error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone.errors import EvalstoneError, OutcomeError
from evalstone.types import Record, Score

USUAL = Record(
    sample_id="s", scorer="x", signature="x", outcome=Score(0.5, "half", scale=1.0, evidence=["a", 1]), seconds=0.25
)
ODD: list[Any] = [None, True, 0, 1, -1, 0.75, 2.0, float("nan"), float("inf"), "", "score", "failed", [], {}, [{}]]


def read(data: Any) -> Any:
    try:
        return Record.from_dict(data)
    except EvalstoneError as error:
        return type(error), str(error)


def test_a_usual_record_comes_back() -> None:
    assert read(json.loads(json.dumps(USUAL.to_dict()))) == USUAL


@pytest.mark.parametrize("name", USUAL.to_dict())
def test_whatever_a_field_has_the_record_or_the_error_is_that_of_any_record(name: str) -> None:
    line = USUAL.to_dict()
    for value in ODD:
        # A line with a group is read in full, and one that is null is no group.
        assert repr(read({**line, name: value})) == repr(read({**line, name: value, "group": None}))
    del line[name]
    assert repr(read(line)) == repr(read({**line, "group": None}))


@pytest.mark.parametrize("scale", [0.0, 1e101])
def test_a_scale_that_no_score_may_have_is_refused(scale: float) -> None:
    error, _ = read({**USUAL.to_dict(), "value": 0.0, "scale": scale})
    assert error is OutcomeError
