from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone.questions import VerifyClaims
from evalstone.questions.base import ContextLimits, Question
from evalstone.questions.claims import Chunk, ClaimVerdict, Support, chunked, verified

A = TypeVar("A")


class Reader:
    """An ask with little room: supports a claim that a passage holds word for word, and contradicts "not" before it."""

    def __init__(self, room: ContextLimits) -> None:
        self.context_limits = room
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
    claims: list[str], context: list[str], room: ContextLimits
) -> tuple[tuple[ClaimVerdict, ...], list[VerifyClaims]]:
    ask = Reader(room)
    return asyncio.run(verified(ask, claims, context)), ask.asked


def test_passages_that_fit_are_one_chunk() -> None:
    assert chunked(["one", "two"], 6) == (Chunk(("one", "two"), (1, 2)),)
    assert chunked([], 6) == (Chunk(),)


def test_a_sentence_that_is_too_long_is_cut_anywhere_and_what_has_no_word_is_left_out() -> None:
    assert [chunk.texts for chunk in chunked(["x" * 25], 10)] == [("x" * 10,), ("x" * 10,), ("x" * 5,)]
    assert chunked(["." * 25], 10) == (Chunk(),)


def test_whole_passages_stay_together_as_long_as_they_fit() -> None:
    assert chunked(["aaaa", "bb", "cccc"], 6) == (Chunk(("aaaa", "bb"), (1, 2)), Chunk(("cccc",), (3,)))


def test_a_long_passage_is_cut_between_sentences_and_keeps_its_number() -> None:
    made = chunked(["Short.", "One is here. Two is here. Three is here."], 26)
    assert made == (
        Chunk(("Short.",), (1,)),
        Chunk(("One is here. Two is here.",), (2,)),
        Chunk(("Three is here.",), (2,)),
    )


@given(st.lists(st.text(alphabet="ab. ", max_size=60), max_size=6), st.integers(min_value=1, max_value=40))
def test_no_chunk_is_longer_than_allowed_and_no_word_is_lost(passages: list[str], longest: int) -> None:
    made = chunked(passages, longest)
    assert all(sum(map(len, chunk.texts)) <= longest for chunk in made)
    assert all(len(chunk.texts) == len(chunk.numbers) for chunk in made)
    letters = "".join("".join(chunk.texts) for chunk in made).replace(" ", "").replace(".", "")
    assert letters == "".join(passages).replace(" ", "").replace(".", "")


def test_a_claim_is_supported_when_a_later_chunk_supports_it_and_cites_the_whole_context() -> None:
    found, asked = read(["x", "y"], ["aaaa aaaa", "not x bbbb", "x cccc cc"], ContextLimits(tokens=3))
    assert [(v.claim, v.verdict, v.passages) for v in found] == [("x", "supported", (3,)), ("y", "not_mentioned", ())]
    assert [question.context for question in asked] == [("aaaa aaaa",), ("not x bbbb",), ("x cccc cc",)]


def test_a_contradiction_stands_where_no_chunk_supports() -> None:
    found, _ = read(["x"], ["not x here", "nothing"], ContextLimits(tokens=3))
    assert (found[0].verdict, found[0].passages) == ("contradicted", (1,))


def test_a_later_chunk_is_not_asked_about_what_is_supported_already() -> None:
    _, asked = read(["x", "y"], ["x here now", "y here now", "z here now"], ContextLimits(tokens=3))
    assert [question.claims for question in asked] == [("x", "y"), ("y",)]


def test_a_long_passage_without_a_word_supports_nothing() -> None:
    found, asked = read(["x"], ["." * 100], ContextLimits(tokens=3))
    assert [v.verdict for v in found] == ["not_mentioned"]
    assert asked[0].context == ()


def test_claims_are_verified_so_many_at_a_time_as_the_judge_has_room_for() -> None:
    claims = [str(n) for n in range(7)]
    found, asked = read(claims, ["0 1 2 3 4 5"], ContextLimits(items=3))
    assert [len(question.claims) for question in asked] == [3, 3, 1]
    assert [v.verdict for v in found] == ["supported"] * 6 + ["not_mentioned"]
    assert [v.claim for v in found] == claims


@pytest.mark.parametrize(
    ("passages", "expected"), [(["a" * 400], 400), (["é" * 400], 200), (["日本" * 200], 133), ([""], 100), ([], 100)]
)
def test_room_in_characters_follows_the_bytes_that_they_take(passages: list[str], expected: int) -> None:
    assert ContextLimits(tokens=100).characters(passages) == expected
