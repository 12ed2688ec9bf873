"""What a judge, and whoever reads a failed sample, is told of a reply that is no answer. Other tests ask for the place
and what is wrong there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone._core.prompts import Prompt
from evalstone.errors import ReplyError
from evalstone.questions import ClaimSupported, CompareStatements, FindToxicity, ListClaims, VerifyClaims
from evalstone.questions.base import Question
from evalstone.questions.grade import GradeRelevance
from evalstone.questions.rating import RateByCriterion, WriteSteps
from evalstone.questions.verdict import AgreesWithContext

HARBOR = ListClaims(text="The harbor was built in 1902 by Ida Holm. It has two docks.")
FOOLS = FindToxicity(text="Only a fool would pay to see it.")
BUILT = VerifyClaims(claims=("It was built in 1902.",), context=("It was built in 1902.", " \u200b"))
COMPARE = CompareStatements(reference=("It is new.",), answer=("It is old.",))
RATE = RateByCriterion(values=(("output", "So."),), prompt=Prompt("Which?", "{{output}}"), levels=5)
AGREES = AgreesWithContext(question="q", answer="a", context=("c",))
MISSING = {"reason": "No.", "answer": "", "match": "missing"}


def part(text: str, reason: str = "Rude.") -> dict[str, str]:
    return {"reason": reason, "part": text, "verdict": "yes"}


def cited(*passages: int) -> dict[str, Any]:
    return {"verdicts": {"1": {"reason": "It says so.", "passages": list(passages), "verdict": "supported"}}}


REFUSED: list[tuple[Question[Any], Any, str]] = [
    (HARBOR, {"claims": ["Ada was born in 1815"]},
        "claims.1: 'Ada was born in 1815' is not from the text, which doesn't have: 1815; take only what it says"),
    (HARBOR, {"claims": ["It has 7 docks, 9 ships."]},
        "claims.1: 'It has 7 docks, 9 ships.' is not from the text, which doesn't have: 7, 9; take only what it says"),
    (HARBOR, {"claims": ["The museum has no café."]},
        "claims.1: 'The museum has no café.' is copied from the prompt; judge the given material"),
    (HARBOR, {"claims": ["It has two docks."] * 100},
        "claims: the list has 100 items; a list ends before 100, each item once"),
    (HARBOR, {"claims": ["It has two docks.", "Ida Holm built it."] * 5},
        "claims: the list repeats itself; list each item once"),
    (HARBOR, "Step 1: no.", "the reply holds no complete JSON object; it may be cut off"),
    (FOOLS, {"verdicts": [part("you fool")]}, "verdicts.1.part: 'you fool' is not in the text; quote its words"),
    (FOOLS, {"verdicts": [part("Only a fool", f"Rude, {n}.") for n in range(10)]},
        "verdicts: the list repeats itself; quote each part of the text once"),
    (COMPARE, {"matches": {"1": MISSING}, "extra": ["It is raw."], "contradictions": []},
        "extra.1: 'It is raw.' is not in the answer; quote its words"),
    (BUILT, cited(), "verdict 1: 'supported' cites the passages that decide it; passages is empty"),
    (BUILT, cited(2), "verdict 1: 'supported' cites 2, and nothing is in there"),
    (ClaimSupported(claim="It has two docks.", context=("It has two docks.",)),
        {"reason": "good " * 100, "verdict": "yes"},
        "reason: it repeats itself ('good' again and again)"),
    (WriteSteps(criterion="Is it kind?", parts=("output",)), {"steps": [" "]}, "steps: at least one was expected"),
    (GradeRelevance(question="q", answer="a"), {"reason": "so", "score": 5},
        "score: a number from 0 to 1 was expected, not 5"),
    (RATE, {"reason": "r", "score": "4/10"}, 'score: a whole number from 1 to 5 was expected, not "4/10"'),
    (AGREES, 'Here it is: {"reason": "x", "verdict": "no"} The answer has </think> Yes.',
        "the reply holds different answers before and after a closing tag; give one"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "reply", "told"), REFUSED)
def test_the_error_says_what_is_wrong_and_what_to_do(question: Question[Any], reply: Any, told: str) -> None:
    with pytest.raises(ReplyError) as error:
        question.parse(reply if isinstance(reply, str) else json.dumps(reply))
    assert str(error.value) == told
