from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone._core.prompts import Prompt
from evalstone.errors import QuestionTooLong
from evalstone.questions import (
    AgreesWithContext,
    CheckCriteria,
    ClaimSupported,
    CompareStatements,
    FindUsefulPassages,
    JudgePassageStatements,
    ListClaims,
    ListQuestions,
    MiniCheck,
    RatePassages,
)
from evalstone.questions.base import Ask, Question
from evalstone.questions.custom import AnswerAs, AnswerForm
from evalstone.questions.parts import FEWEST_TOKENS, MOST_PARTS, Chunk, Space, chunks_of, overhead, space_for
from evalstone.questions.relevance import PassageRating, PassageRatings, PassageVerdict
from evalstone.questions.statements import Contradiction, StatementComparison, StatementMatch
from evalstone.questions.verdict import YesNoVerdict
from evalstone.types.context_limits import DEFAULT_LIMITS, ContextLimits, narrowest
from tests.fakes import QUESTION_KINDS, material_fields, question_of

A = TypeVar("A")

SMALL = ContextLimits.of_window(4096)
SENTENCES = [f"Museum {n} in Aarhus opened on 4 May 1921, and {n} visitors paid two crowns each. " for n in range(400)]


def asked(question: Question[A], answer: Callable[[Any], Any], limits: ContextLimits = SMALL) -> tuple[A, list[Any]]:
    """What a question comes to in parts that a function answers, and the parts."""
    parts: list[Any] = []

    async def ask(part: Question[Any]) -> Any:
        assert part.fits(limits)
        parts.append(part)
        return answer(part)

    assert not question.fits(limits)
    return asyncio.run(question.in_parts(cast(Ask, ask), limits)), parts


def _unasked(part: Question[Any]) -> Any:
    raise AssertionError(f"{part.kind} was asked")


def chunks(texts: list[str], longest: int) -> list[Chunk]:
    return Space(longest, measure=len).chunks(texts)


def test_passages_that_fit_are_one_chunk() -> None:
    assert chunks(["one", "two"], 6) == [Chunk(("one", "two"), (1, 2))]
    assert chunks([], 6) == [Chunk()]


def test_each_text_takes_its_own_and_what_every_text_takes_beside() -> None:
    space = Space(7, extra=2, measure=len)
    assert space.size("one", "two") == 10
    assert space.holds("12345")
    assert not space.holds("123456")
    assert [chunk.texts for chunk in space.chunks(["a", "b", "c"])] == [("a", "b"), ("c",)]


def test_whole_passages_stay_together_as_long_as_they_fit() -> None:
    assert chunks(["aaaa", "bb", "cccc"], 6) == [Chunk(("aaaa", "bb"), (1, 2)), Chunk(("cccc",), (3,))]


@pytest.mark.parametrize(
    ("texts", "longest", "expected"),
    [
        (
            ["Short.", "One is here. Two is here. Three is here."],
            26,
            [("Short.", 1), ("One is here. Two is here.", 2), (" Three is here.", 2)],
        ),
        (["aaa bbb ccc ddd"], 8, [("aaa bbb ", 1), ("ccc ddd", 1)]),
    ],
)
def test_a_long_passage_is_cut_between_sentences_or_at_a_blank_and_keeps_its_number(
    texts: list[str], longest: int, expected: list[tuple[str, int]]
) -> None:
    assert chunks(texts, longest) == [Chunk((text,), (number,)) for text, number in expected]


def test_a_word_that_is_too_long_is_cut_anywhere() -> None:
    assert all(len(chunk.texts[0]) <= 10 for chunk in chunks(["x" * 25], 10))


def test_a_chunk_has_no_more_sentences_than_it_may() -> None:
    space = Space(math.inf, sentences=2)
    assert [chunk.texts for chunk in space.chunks(["A is. B is. C is.", "D is."])] == [
        ("A is. B is.",),
        (" C is.", "D is."),
    ]


@given(st.lists(st.text(alphabet="ab. \n", max_size=60), max_size=6), st.integers(min_value=1, max_value=40))
def test_no_chunk_is_longer_than_allowed_and_nothing_but_blanks_is_lost(passages: list[str], longest: int) -> None:
    found = chunks(passages, longest)
    assert all(sum(map(len, chunk.texts)) <= longest for chunk in found)
    assert all(len(chunk.texts) == len(chunk.numbers) for chunk in found)
    letters = "".join("".join("".join(chunk.texts) for chunk in found).split())
    assert letters == "".join("".join(passages).split())


@pytest.mark.parametrize("kind", QUESTION_KINDS)
@pytest.mark.parametrize(
    "text", ["".join(SENTENCES[:100]), "A. <<x>> \x00«b»\ud800 " * 600, "日本語の文章です。" * 900]
)
def test_parts_fit_or_the_question_is_refused_whatever_is_long(kind: type[Question[Any]], text: str) -> None:
    short = question_of(kind, "Ada.", items=3)
    for name, is_list in material_fields(kind).items():
        values = [tuple(text[n : n + 90] for n in range(0, len(text), 90)), (text,) * 3] if is_list else [text]
        for question in (replace(short, **{name: value}) for value in values):  # type: ignore[type-var]
            parts: list[Question[Any]] = []

            async def ask(part: Question[Any], parts: list[Question[Any]] = parts) -> Any:
                parts.append(part)
                raise KeyError

            assert not question.fits(SMALL)
            with contextlib.suppress(KeyError, QuestionTooLong):
                asyncio.run(question.in_parts(cast(Ask, ask), SMALL))
            assert all(part.fits(SMALL) and type(part) is kind and part.size() <= 3072 for part in parts)


def test_short_questions_are_not_rendered_to_see_whether_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Prompt, "render")
    assert all(question_of(kind, "Ada was born.").fits(DEFAULT_LIMITS) for kind in QUESTION_KINDS)


@pytest.mark.parametrize("kind", QUESTION_KINDS)
def test_the_quick_estimate_is_never_below_the_close_one(kind: type[Question[Any]]) -> None:
    for text in ("", "<<", "日本\U0001f600" * 9, "\ud800\x00" * 9):
        question = question_of(kind, text, items=9)
        assert not question.within(question.size() - 1)


def test_a_form_that_is_longer_than_the_window_does_not_fit() -> None:
    words = Literal[tuple(f"department number {number} of the ministry" for number in range(400))]
    question = AnswerAs(values=(("output", "Help."),), prompt=Prompt("", "{{output}}"), answer=AnswerForm(words))
    assert question.size() > 8192
    assert not question.fits(ContextLimits.of_window(8192))


WHOLE = AgreesWithContext(question="q", answer="a", context=("".join(SENTENCES) * 9,))


def test_a_whole_answer_fits_where_the_window_is_not_known() -> None:
    assert WHOLE.fits(DEFAULT_LIMITS)
    assert not WHOLE.fits(SMALL)


@pytest.mark.parametrize(
    ("question", "window", "told"),
    [
        (WHOLE, 4096, r"^agrees_with_context: the question has about 1\d\d,\d{3} tokens, and the judge takes 3,072 "),
        (WHOLE, 100_000, r"the judge takes 95,904 \(context_window 100,000, less the reply\)"),
        (
            CheckCriteria(criteria=("a", "b"), task="", answer="".join(SENTENCES) * 9),
            4096,
            "tokens without its criteria",
        ),
        (
            CheckCriteria(criteria=("a", "".join(SENTENCES)), task="", answer=""),
            4096,
            "item 2 of its criteria alone has about",
        ),
        (
            CompareStatements(reference=("".join(SENTENCES),), answer=("a",)),
            4096,
            "item 1 of its reference alone has about",
        ),
    ],
)
def test_what_can_not_be_divided_is_refused_with_what_the_judge_takes(
    question: Question[Any], window: int, told: str
) -> None:
    with pytest.raises(QuestionTooLong, match=told):
        asked(question, _unasked, ContextLimits.of_window(window))


def test_long_inputs_that_are_not_divided_are_no_reason_to_refuse_where_the_window_is_large() -> None:
    question = CheckCriteria(criteria=("a", "b"), task="", answer="".join(SENTENCES) * 9)
    parts = asked_with_any_answer(question, DEFAULT_LIMITS)
    assert [part.criteria for part in parts] == [("a", "b")]
    assert [part.criteria for part in asked_with_any_answer(question, ContextLimits.of_window(1_000_000))] == [
        ("a", "b")
    ]


def asked_with_any_answer(question: Any, limits: ContextLimits) -> list[Any]:
    parts: list[Any] = []

    async def ask(part: Any) -> Any:
        parts.append(part)
        return part.criteria

    asyncio.run(question.in_parts(cast(Ask, ask), limits))
    return parts


def test_more_passages_than_a_reply_has_room_for_are_rated_in_parts() -> None:
    assert RatePassages(question="q", answer="a", context=("x",) * SMALL.items).fits(SMALL)
    assert not RatePassages(question="q", answer="a", context=("x",) * (SMALL.items + 1)).fits(SMALL)


def test_a_list_is_drawn_from_the_pieces_of_a_text() -> None:
    found, parts = asked(ListClaims(text="".join(SENTENCES)), lambda part: (part.text[:9].strip(), "x"))
    assert "".join(part.text for part in parts) == "".join(SENTENCES)
    assert found[::2] == tuple(part.text[:9].strip() for part in parts)
    assert all(part.text.count(".") <= SMALL.items * 8 // 5 for part in parts)


def test_a_list_that_would_have_too_many_items_is_drawn_in_parts_however_large_the_window() -> None:
    assert ListClaims(text="Yes. " * 40).fits(DEFAULT_LIMITS)
    found, parts = asked(ListClaims(text="Yes. " * 41), lambda part: (part.text,), DEFAULT_LIMITS)
    assert len(parts) == len(found) == 2


def test_the_limit_of_questions_is_spread_over_the_pieces() -> None:
    text = "".join(SENTENCES)
    found, parts = asked(ListQuestions(text=text, limit="10"), lambda part: ("q?",) * int(part.limit))
    assert len(found) == 10
    assert sum(int(part.limit) for part in parts) == 10
    few, parts = asked(ListQuestions(text=text, limit="2"), lambda part: ("q?",) * int(part.limit))
    assert (len(few), len(parts)) == (2, 2)
    assert text.index(parts[0].text) < len(text) / 2 < text.index(parts[1].text) + len(parts[1].text)
    assert len(asked(ListQuestions(text=text, limit="10.0"), lambda part: ("q?",) * int(part.limit))[0]) == 10
    for limit in ("ten", "0", "inf"):
        with pytest.raises(QuestionTooLong):
            asked(ListQuestions(text=text, limit=limit), _unasked)


def test_useful_passages_are_numbered_through_and_one_in_pieces_is_useful_when_a_piece_is() -> None:
    context = ("Of no use.", "".join(SENTENCES[:150]), "Of use, too.")

    def answer(part: FindUsefulPassages) -> Any:
        useful = ["Museum 149 " in text or "use, too" in text for text in part.context]
        return tuple(PassageVerdict(n, each) for n, each in enumerate(useful, start=1))

    found, parts = asked(FindUsefulPassages(question="q", answer="a", context=context), answer)
    assert len(parts) > 2
    assert [(verdict.passage, verdict.useful) for verdict in found] == [(1, False), (2, True), (3, True)]


def test_rated_passages_in_pieces_have_the_best_level_and_the_least_is_missing() -> None:
    context = ("First.", "".join(SENTENCES[:150]), "Last.")

    def answer(part: RatePassages) -> Any:
        best = ["Museum 149 " in text for text in part.context]
        ratings = [PassageRating(n, "high" if one else "low", used=not one) for n, one in enumerate(best, start=1)]
        return PassageRatings(tuple(ratings), ("a",) if any(best) else ("a", "b"))

    found, _ = asked(RatePassages(question="q", answer="a", context=context), answer)
    assert [(one.passage, one.level, one.used) for one in found.passages] == [
        (1, "low", True),
        (2, "high", True),
        (3, "low", True),
    ]
    assert found.missing == ("a",)


def test_a_long_blank_passage_keeps_its_place() -> None:
    context = ("First.", " " * 20_000, "Useful.")

    def answer(part: FindUsefulPassages) -> Any:
        return tuple(PassageVerdict(n, text == "Useful.") for n, text in enumerate(part.context, start=1))

    found, _ = asked(FindUsefulPassages(question="q", answer="a", context=context), answer)
    assert [(verdict.passage, verdict.useful) for verdict in found] == [(1, False), (2, False), (3, True)]


def test_statements_of_passages_are_listed_one_group_after_the_other() -> None:
    found, parts = asked(JudgePassageStatements(question="q", context=tuple(SENTENCES)), lambda part: part.context)
    assert found == tuple(SENTENCES)
    assert all(len(part.context) <= SMALL.items for part in parts)


def test_a_claim_is_supported_by_the_chunk_that_supports_it_most() -> None:
    context = tuple(SENTENCES[:120])

    def answer(part: ClaimSupported) -> YesNoVerdict:
        if context[60] in part.context:
            return YesNoVerdict("yes", probability=0.6)
        return YesNoVerdict("undecided" if context[0] in part.context else "no")

    assert asked(ClaimSupported(claim="c", context=context), answer)[0] == YesNoVerdict("yes", probability=0.6)
    assert asked(ClaimSupported(claim="c", context=context[:60]), answer)[0] == YesNoVerdict("undecided")
    bare, parts = asked(
        MiniCheck(document="".join(SENTENCES), claim="c"),
        lambda part: YesNoVerdict("yes" if "Museum 399 " in part.document else "no"),
    )
    assert bare.verdict == "yes"
    assert "".join(part.document for part in parts) == "".join(SENTENCES)


def test_extra_is_what_is_extra_beside_every_part_of_the_reference() -> None:
    reference = tuple(f"Statement {n}." for n in range(30))

    def answer(part: CompareStatements) -> StatementComparison:
        matches = tuple(StatementMatch(text, "exact") for text in part.reference)
        first = reference[0] in part.reference
        return StatementComparison(
            matches, ("Both.", "Here.") if first else ("both. ",), (Contradiction(str(first), "a", "r"),)
        )

    found, parts = asked(CompareStatements(reference=reference, answer=("a",)), answer, DEFAULT_LIMITS)
    assert [len(part.reference) for part in parts] == [25, 5]
    assert tuple(match.statement for match in found.matches) == reference
    assert found.extra == ("Both.",)
    assert [one.reason for one in found.contradictions] == ["True", "False"]


@pytest.mark.parametrize(
    ("window", "max_tokens", "limits"),
    [
        (None, None, ContextLimits()),
        (None, 400, ContextLimits(items=5)),
        (4096, None, ContextLimits(3072, 12, longest=3072, window=4096)),
        (4096, 400, ContextLimits(3696, 5, longest=3696, window=4096)),
        (100_000, None, ContextLimits(50_000, 25, longest=95_904, window=100_000)),
        (100, 500, ContextLimits(1, 6, longest=1, window=100)),
        (100, None, ContextLimits(75, 1, longest=75, window=100)),
    ],
)
def test_the_limits_of_a_window_leave_room_for_the_reply(
    window: int | None, max_tokens: int | None, limits: ContextLimits
) -> None:
    assert ContextLimits.of_window(window, max_tokens) == limits


def test_several_judges_take_what_each_of_them_takes() -> None:
    one, two = ContextLimits(900, 5, whole=True), ContextLimits(800, 7, longest=850, window=1000)
    assert narrowest(one, two) == ContextLimits(800, 5, longest=850, window=1000)
    assert narrowest(two, ContextLimits(longest=840, window=990)) == ContextLimits(800, 7, longest=840, window=990)
    assert narrowest(one, one) == one


def test_next_to_no_room_for_what_is_divided_is_refused() -> None:
    question = ClaimSupported(claim="c", context=("x",))
    fixed, extra = overhead(question, "context")
    least = fixed + extra + FEWEST_TOKENS
    assert space_for(question, "context", ContextLimits(least, longest=least)).longest == FEWEST_TOKENS + extra
    with pytest.raises(QuestionTooLong, match="without its context"):
        space_for(question, "context", ContextLimits(least - 1, longest=least - 1))


def test_as_many_parts_as_are_allowed_are_asked_and_no_more() -> None:
    most = RatePassages(question="q", answer="a", context=("x",) * MOST_PARTS)
    assert len(chunks_of(most, "context", Space(math.inf, texts=1), DEFAULT_LIMITS)) == MOST_PARTS
    for space in (Space(math.inf, texts=1), Space(1, measure=len)):
        with pytest.raises(QuestionTooLong, match=f"needs {MOST_PARTS + 1} parts"):
            chunks_of(replace(most, context=("x",) * (MOST_PARTS + 1)), "context", space, DEFAULT_LIMITS)


def test_fifty_thousand_passages_are_refused_at_once() -> None:
    question = RatePassages(question="q", answer="a", context=("".join(SENTENCES[:4]),) * 50_000)
    started = time.process_time()
    with pytest.raises(QuestionTooLong, match=rf"2,000 parts, .* {MOST_PARTS} "):
        asked(question, _unasked, DEFAULT_LIMITS)
    assert time.process_time() - started < 2
