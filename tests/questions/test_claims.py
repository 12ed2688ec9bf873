from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import pytest

from evalstone import ScriptedJudge, evaluate
from evalstone.errors import QuestionTooLong
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.questions.answers import JudgeAnswer, judge_call
from evalstone.questions.base import Question
from evalstone.questions.claims import LONGEST_QUESTION, ClaimVerdict, Support
from evalstone.results.views.run import retries, run_view
from evalstone.types.context_limits import ContextLimits

A = TypeVar("A")

FILLER = "Nothing of this is of any use to anyone here or there. " * 5
"""About 100 tokens."""


def limits(claims: list[str], context: list[str]) -> ContextLimits:
    """The limits of a judge that takes a question with these claims and passages, and hardly more."""
    tokens = VerifyClaims(claims=tuple(claims), context=tuple(context)).size() + 60
    return ContextLimits(tokens, longest=tokens)


class Reader:
    """An ask: supports a claim that a passage holds word for word, and contradicts "not" before it."""

    def __init__(self) -> None:
        self.asked: list[VerifyClaims] = []

    async def __call__(self, question: Question[A]) -> A:
        assert isinstance(question, VerifyClaims)
        self.asked.append(question)
        answer: Any = tuple(self._verdict(claim, question.context) for claim in question.claims)
        return answer

    def _verdict(self, claim: str, context: tuple[str, ...]) -> ClaimVerdict:
        verdicts: tuple[tuple[str, Support], ...] = ((f"not {claim}", "contradicted"), (claim, "supported"))
        for wanted, verdict in verdicts:
            for number, passage in enumerate(context, start=1):
                if wanted in passage:
                    return ClaimVerdict(claim, verdict, (number,), f"passage {number}")
        return ClaimVerdict(claim, "not_mentioned")


def read(
    claims: list[str], context: list[str], within: ContextLimits
) -> tuple[tuple[ClaimVerdict, ...], list[VerifyClaims]]:
    ask = Reader()
    question = VerifyClaims(claims=tuple(claims), context=tuple(context))
    assert not question.fits(within)
    found = asyncio.run(question.in_parts(ask, within))
    assert all(part.fits(within) for part in ask.asked)
    return found, ask.asked


def test_a_claim_is_supported_when_a_later_chunk_supports_it_and_cites_the_whole_context() -> None:
    context = [FILLER, f"not X1 {FILLER}", f"X1 {FILLER}"]
    found, asked = read(["X1", "Y1"], context, limits(["X1", "Y1"], [f"not X1 {FILLER}"]))
    assert [(v.claim, v.verdict, v.passages) for v in found] == [("X1", "supported", (3,)), ("Y1", "not_mentioned", ())]
    assert [question.context for question in asked] == [(passage,) for passage in context]


def test_a_contradiction_stands_where_no_chunk_supports() -> None:
    found, _ = read(["X1"], [f"not X1 {FILLER}", FILLER], limits(["X1"], [f"not X1 {FILLER}"]))
    assert (found[0].verdict, found[0].passages) == ("contradicted", (1,))
    found, _ = read(["X1"], [f"not X1 {FILLER}"] * 2, limits(["X1"], [f"not X1 {FILLER}"]))
    assert (found[0].verdict, found[0].passages) == ("contradicted", (1,))


def test_a_later_chunk_is_not_asked_about_what_is_supported_already() -> None:
    context = [f"X1 {FILLER}", f"Y1 {FILLER}", f"Z1 {FILLER}"]
    _, asked = read(["X1", "Y1"], context, limits(["X1", "Y1"], context[:1]))
    assert [question.claims for question in asked] == [("X1", "Y1"), ("Y1",)]


def test_claims_are_verified_so_many_at_a_time_as_the_judge_has_room_for() -> None:
    claims = [str(n) for n in range(7)]
    found, asked = read(claims, ["0 1 2 3 4 5"], ContextLimits(items=3))
    assert [len(question.claims) for question in asked] == [3, 3, 1]
    assert [v.verdict for v in found] == ["supported"] * 6 + ["not_mentioned"]
    assert [v.claim for v in found] == claims


def test_long_claims_leave_less_for_the_passages_and_are_divided_too() -> None:
    claims = [f"Claim {n}: {FILLER}" for n in range(12)]
    found, asked = read(claims, [FILLER] * 9, limits(claims[:3], [FILLER] * 5))
    assert [v.claim for v in found] == claims
    assert max(len(question.claims) for question in asked) < 5
    for count in range(4, 12):
        read(claims[:count], [FILLER] * 9, limits(claims[:3], [FILLER] * 5))
    _, shorter = read(["X1"], [FILLER] * 9, limits(claims[:3], [FILLER] * 5))
    assert len(shorter[0].context) > len(asked[0].context) > 1


def test_claims_have_the_room_that_short_passages_leave() -> None:
    claims = [f"Claim {n}: {FILLER}" for n in range(12)]
    _, asked = read(claims, ["X1"], limits(claims[:9], ["X1"]))
    assert [len(question.claims) for question in asked] == [9, 3]
    _, asked = read(claims[:2], ["X1"], limits(claims[:1], ["X1"]))
    assert [len(question.claims) for question in asked] == [1, 1]


def test_a_long_input_says_nothing_on_how_to_read_an_answer() -> None:
    assert ListClaims.of("t", "q" * LONGEST_QUESTION).question
    assert not ListClaims.of("t", "q" * (LONGEST_QUESTION + 1)).question


@pytest.mark.parametrize(
    ("claims", "context"), [([FILLER * 20], [FILLER]), (["X1"], [FILLER] * 2000), ([FILLER] * 30, [FILLER] * 30)]
)
def test_what_can_not_be_divided_far_enough_is_refused_before_anything_is_asked(
    claims: list[str], context: list[str]
) -> None:
    ask = Reader()
    with pytest.raises(QuestionTooLong, match="verify_claims"):
        asyncio.run(
            VerifyClaims(claims=tuple(claims), context=tuple(context)).in_parts(ask, limits([FILLER] * 2, [FILLER]))
        )
    assert ask.asked == []


# ---- Citations that don't fit ----

BRIDGE, TICKETS, CAFE = "The bridge was built in 1894.", "Tickets cost 8 euros.", "A café opened next to the river."


def noted(*verdicts: tuple[str, str, Sequence[int]], context: Sequence[str] = (BRIDGE, TICKETS, CAFE)) -> str:
    value = tuple(ClaimVerdict(claim, cast("Any", verdict), tuple(cited)) for claim, verdict, cited in verdicts)
    question = VerifyClaims(claims=tuple(claim for claim, _, _ in verdicts), context=tuple(context))
    call = judge_call(question, JudgeAnswer(value=value, judge="j"))
    return (call.detail or {}).get("citations", "")


@pytest.mark.parametrize(
    ("verdicts", "note"),
    [
        (
            [("The ticket costs 9 euros.", "supported", [3])],
            "claim 1 has no word in common with passage 3, which is cited for it, but with passage 2",
        ),
        (
            [(BRIDGE, "supported", [1]), (TICKETS, "contradicted", [1, 3])],
            "claim 2 has no word in common with passage 1, 3, which is cited for it, but with passage 2",
        ),
        (
            [(TICKETS, "supported", [1])],
            "claim 1 has no word in common with passage 1, which is cited for it, but with passage 2; "
            "the judge may count passages from 0",
        ),
    ],
)
def test_a_citation_without_a_word_of_its_claim_is_noted_if_another_passage_has_them(
    verdicts: list[tuple[str, str, list[int]]], note: str
) -> None:
    assert noted(*verdicts) == note


def test_a_note_lists_three_claims() -> None:
    told = noted(*[("Tickets cost 8 euros.", "supported", [3])] * 5)
    assert "claim 3 has" in told
    assert "claim 4 has" not in told
    assert told.endswith("; 2 more such claims")


@pytest.mark.parametrize(
    ("claim", "verdict", "cited"),
    [
        ("The ticket costs 8 euros.", "supported", [2]),
        ("Ticketing is not free.", "contradicted", [2]),  # a part of a word
        ("Entry is free.", "contradicted", [2]),  # no passage has a word of it
        ("Entry for adults and children is paid in euros.", "supported", [1]),  # no passage has half of its words
        ("Die Karten kosten etwas.", "supported", [2]),  # another language
        ("Tickets cost 8 euros.", "not_mentioned", [3]),
        ("Tickets cost 8 euros.", "supported", []),
        ("Tickets cost 8 euros.", "supported", [9]),  # of a judge in code
        ("It is so.", "supported", [3]),
    ],
)
def test_a_citation_that_may_fit_has_no_note(claim: str, verdict: str, cited: Sequence[int]) -> None:
    assert noted((claim, verdict, cited)) == ""


def test_the_note_on_a_citation_is_in_the_record_the_warnings_and_the_report_and_changes_no_score() -> None:
    replies: dict[str, Any] = {
        "list_claims": {"claims": ["Tickets cost 8 euros."]},
        "verify_claims": {"verdicts": {"1": {"reason": "It says so.", "passages": [1], "verdict": "supported"}}},
    }
    sample = {"output": "Tickets cost 8 euros.", "context": [BRIDGE, TICKETS]}
    judge = ScriptedJudge(replies)
    run = evaluate([sample, sample | {"context": [TICKETS, BRIDGE]}], "faithfulness", judge=judge, ledger=None)
    assert [record.value for record in run] == [1.0, 1.0]
    details = [record.calls[1].detail for record in run]
    assert details[0] is not None
    assert "passages from 0" in details[0]["citations"]
    assert details[1] is None
    assert run.warnings == {"doubtful citations": 1}
    for text in (str(run), " ".join(run_view(run).warnings)):
        assert all(part in text for part in ("In 1 result, ", "judge cites a passage"))
    assert retries(run.warnings) == ""
