"""Votes on answers of a caller's own type, counted by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pydantic
import pytest

from evalstone._core.prompts import Prompt
from evalstone.judges.logprobs import probability_of
from evalstone.judges.voting import Vote, VoteConfig, settle
from evalstone.questions.base import is_votable
from evalstone.questions.custom import AnswerAs, AnswerForm

PROMPT = Prompt("", "{{text}}")
GIVEN = (("text", "x"),)


@dataclass(frozen=True)
class Own:
    colour: Literal["red", "blue"]
    round: bool
    size: float
    note: str


def form(kind: Any) -> AnswerAs:
    return AnswerAs(values=GIVEN, prompt=PROMPT, answer=AnswerForm(kind))


def settled_form(kind: Any, *values: Any, vote: Vote = "majority") -> Any:
    return settle(values, VoteConfig(vote, (None,) * len(values)), form(kind)).value


def test_answers_of_a_callers_type_are_voted_on_along_their_schema() -> None:
    assert settled_form(bool, True, False, True) is True
    assert settled_form(int, 1, 2, 5) == 2
    assert settled_form(Literal["a", "b"], "b", "a", "a") == "a"
    assert settled_form(list[str], ["x"], ["y"]) == ["x"]
    one, two = Own("red", True, 1.0, "a"), Own("blue", True, 4.0, "b")
    assert settled_form(Own, one, two, two) == Own("blue", True, 4.0, "b")


@dataclass(frozen=True)
class Outer:
    inner: Own
    tags: list[str]


def test_objects_within_objects_are_voted_on_too() -> None:
    one = Outer(Own("red", True, 1.0, "a"), ["x"])
    two = Outer(Own("blue", False, 3.0, "b"), ["y"])
    assert settled_form(Outer, one, two, two) == two


@dataclass(frozen=True)
class Tree:
    left: Tree | None
    right: Tree | None
    middle: Tree | None
    text: str


def test_a_type_that_holds_itself_is_gone_into_once() -> None:
    question = form(Tree)
    assert not is_votable(question)
    leaf = Tree(None, None, None, "a")
    assert settled_form(Tree, leaf, Tree(leaf, None, None, "b")) == leaf
    assert probability_of(question, []) is None


def test_parts_that_make_no_value_together_give_way_to_the_judge_that_agrees_most() -> None:
    class Range(pydantic.BaseModel):
        low: int
        high: int

        @pydantic.model_validator(mode="after")
        def ordered(self) -> Range:
            if self.low > self.high:
                raise ValueError("low is above high")
            return self

    ranges = [Range(low=5, high=6), Range(low=5, high=5), Range(low=1, high=2), Range(low=0, high=1)]
    found = settled_form(Range, *ranges, vote="mean")
    assert found == Range(low=3, high=3) or found in ranges
    assert found.low <= found.high


@pytest.mark.parametrize(
    ("kind", "given", "result", "agreements"),
    [
        (int | None, [1, 2, 2], 2, [None]),
        (int | None, [1, None, None], None, [2 / 3]),
        (int | None, [1, None, 4, 3], 3, [3 / 4, None]),
        (bool | None, [True, False, False], False, [2 / 3]),
        (bool | None, [None, None], None, [1.0]),
        (Literal["a", "b"] | None, ["b", "a", None, "a"], "a", [3 / 4, 2 / 3]),
        (int | bool, [2, True, True], True, [2 / 3, 1.0]),
        (str | bool, ["so", "so", True], "so", [2 / 3]),
    ],
)
def test_answers_of_several_forms_are_voted_on_by_form_and_then_within_it(
    kind: Any, given: list[Any], result: Any, agreements: list[float | None]
) -> None:
    found = settle(given, VoteConfig("majority", (None,) * len(given)), form(kind))
    assert found.value == result
    assert [vote.agreement for vote in found.verdicts] == [pytest.approx(one) if one else None for one in agreements]
    assert found.agreeing.index(max(found.agreeing)) == given.index(result)


def test_objects_of_several_forms_are_voted_on_within_the_form_that_most_gave() -> None:
    @dataclass(frozen=True)
    class Refused:
        why: str
        politely: bool

    @dataclass(frozen=True)
    class Answered:
        right: bool

    given = [Refused("x", True), Answered(False), Answered(True), Answered(True)]
    found = settle(given, VoteConfig("majority", (None,) * 4), form(Refused | Answered))
    assert found.value == Answered(True)
    assert [(vote.at, vote.votes) for vote in found.verdicts] == [
        ("", {"form 1": 1, "form 2": 3}),
        ("right", {"False": 1, "True": 2}),
    ]
