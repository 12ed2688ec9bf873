"""Items of a list that are not from the judged text: all are named, and a few of many can be left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone.errors import ReplyError
from evalstone.questions import CompareStatements, FindToxicity, ListClaims, ListStatements, VerifyClaims
from evalstone.questions.base import Question
from evalstone.questions.statements import StatementComparison
from evalstone.questions.ungrounded import MOST_EXPLAINED, UngroundedItems

NUMBERS = range(1, 41)
FLEET = " ".join(f"Ship {number} sails to harbor {number}." for number in NUMBERS)
INVENTED = "Pirates live in Brazil."


def claims(total: int, bad: int) -> dict[str, Any]:
    return {"claims": [INVENTED.replace("Pir", f"{'x' * n}Pir") for n in range(bad)] + ships(total - bad)}


def ships(count: int) -> list[str]:
    return [f"Ship {number} sails to harbor {number}." for number in NUMBERS[:count]]


def refused(question: Question[Any], reply: Any) -> UngroundedItems:
    with pytest.raises(UngroundedItems) as error:
        question.parse(json.dumps(reply))
    return error.value


def places(error: UngroundedItems) -> list[str]:
    return [problem.partition(":")[0] for problem in error.problems]


def part(text: str) -> dict[str, str]:
    return {"reason": "Harmless.", "part": text, "verdict": "no"}


@pytest.mark.parametrize(
    ("question", "reply", "told"),
    [
        (
            ListClaims(text=FLEET),
            {"claims": ["It sank in 1902.", *ships(1), INVENTED, *ships(1)]},
            "claims.1: 'It sank in 1902.' is not from the text, which doesn't have: 1902; claims.3: 'Pirates live in "
            "Brazil.' is not from the text, which doesn't have: Brazil; take only what it says",
        ),
        (
            FindToxicity(text=FLEET),
            {"verdicts": [part("Ship 1 sails"), part("Ship 1 sinks"), part("Ship 2 sinks")]},
            "verdicts.2.part: 'Ship 1 sinks' is not in the text; verdicts.3.part: 'Ship 2 sinks' is not in the text; "
            "quote its words",
        ),
    ],
)
def test_the_error_names_every_item_that_is_not_from_the_text(
    question: Question[Any], reply: dict[str, Any], told: str
) -> None:
    assert str(refused(question, reply)) == told


def test_the_error_names_all_quotations_of_a_reply() -> None:
    match = {"reason": "It says so.", "answer": "It is old.", "match": "exact"}
    conflict = {"reason": "The year.", "answer": "It is odd.", "reference": "It is nil."}
    error = refused(
        CompareStatements(reference=("It is new.", "It is big."), answer=("It is red.",)),
        {"matches": {"1": match, "2": match}, "extra": ["It is red.", "It is raw."], "contradictions": [conflict]},
    )
    assert sorted(places(error)) == [
        "contradictions.1.answer", "contradictions.1.reference", "extra.2", "match 1.answer", "match 2.answer",
    ]  # fmt: skip


def test_a_long_error_explains_the_first_items_and_names_the_others() -> None:
    error = refused(ListClaims(text=FLEET), claims(20, 15))
    assert str(error).count("which doesn't have") == MOST_EXPLAINED
    assert str(error).rpartition("; ")[0].endswith("".join(f"; claims.{number}" for number in range(11, 16)))


@pytest.mark.parametrize(
    ("total", "bad", "is_few"),
    [
        (1, 1, False), (2, 1, False), (3, 1, True), (3, 2, False), (19, 1, True), (19, 2, False), (20, 2, True),
        (29, 3, False), (30, 3, True), (40, 4, True), (40, 5, False),
    ],
)  # fmt: skip
def test_one_of_three_items_or_a_tenth_can_be_left_out(total: int, bad: int, is_few: bool) -> None:
    question, reply = ListClaims(text=FLEET), claims(total, bad)
    assert (refused(question, reply).kept is not None) == is_few
    if is_few:
        answer, detail = question.parse_grounded(json.dumps(reply))
        assert answer == tuple(ships(total - bad))
        assert detail == {"dropped": list(refused(question, reply).problems)}
        assert len(refused(question, reply).problems) == bad
    else:
        with pytest.raises(UngroundedItems):
            question.parse_grounded(json.dumps(reply))


def test_a_quoted_statement_and_a_judged_part_can_be_left_out() -> None:
    parts = ["Ship 1 sails", "to harbor 1", "Ship 2 sinks"]
    assert ListStatements(answer=FLEET).parse_grounded(json.dumps({"statements": parts}))[0] == tuple(parts[:2])
    found, detail = FindToxicity(text=FLEET).parse_grounded(json.dumps({"verdicts": [part(text) for text in parts]}))
    assert [verdict.part for verdict in found] == parts[:2]
    (dropped,) = (detail or {})["dropped"]
    assert dropped.startswith(f"verdicts.3.part: {parts[2]!r} ")


def test_nothing_is_left_out_of_a_reply_with_parts_besides_its_list() -> None:
    compared = {
        "matches": {"1": {"reason": "No.", "answer": "", "match": "missing"}},
        "extra": ["It is red.", "It is big.", "It is raw."],
        "contradictions": [],
    }
    question = CompareStatements(reference=("It is new.",), answer=("It is red.", "It is big."))
    with pytest.raises(UngroundedItems, match=r"raw.* answer; ") as error:
        question.parse_grounded(json.dumps(compared))
    assert places(error.value) == ["extra.3"]
    compared["extra"].pop()  # type: ignore[attr-defined]
    answer, detail = question.parse_grounded(json.dumps(compared))
    assert isinstance(answer, StatementComparison)
    assert (answer.extra, detail) == (("It is red.", "It is big."), None)


def test_other_errors_of_a_reply_are_never_forgiven() -> None:
    long = f"{ships(1)[0]} " * 60
    repeated = [{"reason": "R.", "part": part, "verdict": "no"} for part in [*["Ship 1"] * 19, "x"]]
    cases: list[tuple[Question[Any], Any]] = [
        (ListClaims(text=FLEET), {"claims": [*ships(3), long]}),
        (ListClaims(text=FLEET), {"claims": [*ships(3), "<claim>"]}),
        (ListStatements(answer=FLEET), {"statements": [*ships(1) * 9, INVENTED]}),
        (FindToxicity(text=FLEET), {"verdicts": repeated}),
        (VerifyClaims(claims=("Ship 1 sails.",), context=(FLEET,)), {"verdicts": {}}),
    ]
    for question, reply in cases:
        with pytest.raises(ReplyError) as error:
            question.parse_grounded(json.dumps(reply))
        assert not isinstance(error.value, UngroundedItems)
