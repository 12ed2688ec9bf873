"""Replies whose form isn't that of the schema, but can mean only one thing."""

import json
from typing import Any

import pytest

from evalstone._core.prompts import Prompt
from evalstone.errors import ReplyError
from evalstone.questions import ComparePair, GradeGrounding, ListClaims, VerifyClaims
from evalstone.questions.custom import Choose
from evalstone.questions.rating import RateByCriterion
from evalstone.questions.verdict import AgreesWithContext

TEXT = "The museum opened in 1921. It is free on Sundays. 1. FC Cologne plays next door."
ASKED = VerifyClaims(
    claims=("It opened in 1921.", "It has a café."), context=("It opened in 1921.", "Free on Sundays.")
)
FIRST: dict[str, Any] = {"reason": "Passage 1 says so.", "passages": [1], "verdict": "supported"}
SECOND: dict[str, Any] = {"reason": "No café is named.", "passages": [], "verdict": "not_mentioned"}


def verdicts(**second: Any) -> dict[str, Any]:
    return {"verdicts": {"1": FIRST, "2": {**SECOND, **second}}}


def without(key: str) -> dict[str, Any]:
    return {"verdicts": {"1": FIRST, "2": {name: value for name, value in SECOND.items() if name != key}}}


@pytest.mark.parametrize(
    "reply",
    [
        verdicts(verdict="not mentioned"),
        verdicts(verdict="Not-Mentioned"),
        verdicts(verdict="**not_mentioned**"),
        verdicts(verdict="“NOT MENTIONED.”"),
        verdicts(passages=None),
        verdicts(reason=None),
        without("passages"),
        without("reason"),
        {"verdicts": {"1": {**FIRST, "passages": 1}, "2": SECOND}},
        {"verdicts": {"1": {**FIRST, "passages": "1"}, "2": SECOND}},
        {"verdicts": {"1": {**FIRST, "passages": "passage 1"}, "2": SECOND}},
        {"verdicts": {"1": {**FIRST, "passages": ["[1]", "Passage 1"]}, "2": SECOND}},
        {"verdicts": {"1": {**FIRST, "passages": [1.0]}, "2": SECOND}},
        {"Verdicts": {"1.": FIRST, "2.": SECOND}},
        {"verdicts": {"claim 1": FIRST, "Claim #2": SECOND}},
        {"verdicts": {"1": {key.title(): value for key, value in FIRST.items()}, "2": SECOND}},
        {"1": FIRST, "2": SECOND},
        [FIRST, SECOND],
        {"verdicts": [FIRST, {**SECOND, "verdict": "not mentioned"}]},
        [{"verdicts": {"1": FIRST, "2": SECOND}}],
        [{"claim": "It opened in 1921.", "id": 1, **FIRST}, {"claim": "It has a café!", "id": "2", **SECOND}],
        [{"index": 0, **FIRST}, {"index": 1, **SECOND}],
        [{"claim": 1, **FIRST}, {"claim": "claim 2", **SECOND}],
        [{"claim": "1. It opened in 1921", **FIRST}, {"claim": "It has a café, they say", **SECOND}],
        [{"claim": "It opened in 1921", "statement_id": 7, **FIRST}, {"confidence": 1, **SECOND}],
        verdicts(verdict="Not mentioned!"),
        verdicts(passages="none"),
        verdicts(passages="N/A"),
        verdicts(passages=""),
        verdicts(verdict="❌ not mentioned"),
        {"verdicts": {"1": {**FIRST, "verdict": "✅ Supported"}, "2": SECOND}},
        {"verdicts": {"1": {**FIRST, "passages": "passage 1, 1 and 1"}, "2": SECOND}},
        {"verdicts": {"1": {"passage": 1, "verdict": "supported"}, "2": SECOND}},
        {"verdicts": {"1": FIRST, "2": "Not mentioned."}},
        {"response": {"verdicts": {"1": FIRST, "2": SECOND}}},
        {"result": {"Verdicts": [FIRST, SECOND]}},
        {"verdicts": {"It opened in 1921.": FIRST, "it has a café": SECOND}},
        {"verdicts": {"It has a café.": SECOND, "It opened in 1921.": FIRST}},
    ],
)
def test_what_can_mean_only_one_thing_is_read(reply: Any) -> None:
    first, second = ASKED.parse(json.dumps(reply))
    assert (first.verdict, first.passages, second.verdict, second.passages) == ("supported", (1,), "not_mentioned", ())


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (verdicts(verdict="not_supported"), "verdict 2.verdict"),
        (verdicts(verdict="supported or not mentioned"), "verdict 2.verdict"),
        (without("verdict"), "verdict 2.verdict"),
        (verdicts(verdict=None), "verdict 2.verdict"),
        ({"verdicts": {"1": {**FIRST, "passages": None}, "2": SECOND}}, "passages is empty"),
        ({"verdicts": {"1": {**FIRST, "passages": "1 to 2"}, "2": SECOND}}, "verdict 1.passages"),
        ({"verdicts": {"1": FIRST, "1.": SECOND}}, "2 claims, 2 verdicts; missing: 2"),
        ({"verdicts": {"claim 1": FIRST, "claim 3": SECOND}}, "missing: 2"),
        ({"1": FIRST}, "'verdicts' was expected"),
        ([FIRST], "2 claims, 1 verdict"),
        ([{"verdicts": {"1": FIRST, "2": SECOND}}] * 2, "verdict 1"),
        ({"verdicts": {"1": {**FIRST, "passages": "not passage 1"}, "2": SECOND}}, "verdict 1.passages"),
        ({"verdicts": {"1": {**FIRST, "passages": ["-1"]}, "2": SECOND}}, "verdict 1.passages"),
        ({"verdicts": {"1": {**FIRST, "passages": "passage 1 does not say so"}, "2": SECOND}}, "verdict 1.passages"),
        ({"verdicts": {"1": FIRST, "-2": SECOND}}, "missing: 2"),
        ({"verdicts": {"1": FIRST, "not 2": SECOND}}, "missing: 2"),
        # Verdicts that are given in another order than that of the items.
        ([{"claim": "It has a café.", **SECOND}, {"claim": "It opened in 1921.", **FIRST}], "names another item"),
        ({"verdicts": [{"number": 2, **SECOND}, {"number": 1, **FIRST}]}, "names another item"),
        ({"verdicts": {"1": {"index": "2", **SECOND}, "2": {"index": "1", **FIRST}}}, "names another item"),
        ([{"claim": 2, **SECOND}, {"claim": 1, **FIRST}], "verdict 1 names another item"),
        ([{"claim_id": "Claim 2", **SECOND}, {"claim_id": "Claim 1", **FIRST}], "verdict 1 names another item"),
        ([{"Statement": 1, **FIRST}, {"Statement": 1, **SECOND}], "verdict 2 names another item"),
        ([{"claim": "it has a CAFÉ", **SECOND}, {"claim": "It opened in 1921", **FIRST}], "names another item"),
        ([{"claim": "2. It has a café.", **SECOND}, {"claim": "1. It opened.", **FIRST}], "names another item"),
        ({"verdicts": {"1": FIRST, "2": "supported"}}, "passages is empty"),
        ({"verdicts": {"1": FIRST, "2": "not supported"}}, "verdict 2"),
        (verdicts(verdict="!not_mentioned"), "verdict 2.verdict"),
        (verdicts(verdict="✅ not_mentioned"), "verdict 2.verdict"),
        ({"verdicts": {"1": {**FIRST, "verdict": "❌ supported"}, "2": SECOND}}, "verdict 1.verdict"),
        ({"first": {"verdicts": {"1": FIRST, "2": SECOND}}, "second": {}}, "'verdicts' was expected"),
        ({"first": {"1": FIRST}}, "'verdicts' was expected"),
        ({"verdicts": {"1": {**FIRST, "passage": [2]}, "2": {**SECOND, "verdict": "no"}}}, "verdict 2.verdict"),
        ({"verdicts": {"1": {**FIRST, "passages": "1 or 2"}, "2": SECOND}}, "verdict 1.passages"),
        ({"verdicts": {"1": {**FIRST, "passages": "1 and not 2"}, "2": SECOND}}, "verdict 1.passages"),
        ({"verdicts": {"1": {**FIRST, "passages": True}, "2": SECOND}}, "verdict 1.passages"),
        ({"verdicts": {"1": {**FIRST, "passages": [1.5]}, "2": SECOND}}, "verdict 1.passages"),
        ({"verdict": [FIRST, SECOND]}, "'verdicts' was expected"),
        ({"verdicts": {"It opened in 1921.": FIRST, "It has a terrace.": SECOND}}, "missing: 1, 2"),
        ({"verdicts": {"It opened in 1921.": FIRST, "it opened in 1921": SECOND}}, "missing: 1, 2"),
        ({"verdicts": {"It opened in 1921.": FIRST, "2": SECOND}}, "missing: 1"),
    ],
)
def test_a_verdict_is_never_guessed(reply: Any, told: str) -> None:
    with pytest.raises(ReplyError, match=told):
        ASKED.parse(json.dumps(reply))


def test_a_grade_may_be_written_as_text() -> None:
    def graded(score: str) -> Any:
        return GRADE.parse(f'{{"reason": "It says so.", "score": {score}}}')

    assert graded('"0.75"').score == 0.75
    for other in ('"0,75"', '"high"', '"7"', '"nan"', "true", '"0_5"'):
        with pytest.raises(ReplyError, match="score: a number from"):
            graded(other)


def test_a_fraction_of_the_highest_number_is_that_number() -> None:
    rating = RateByCriterion(values=(("output", "So."),), prompt=PROMPT, levels=5)
    for text in ("4/5", "4 / 5", "4 out of 5", "4.0/5"):
        assert rating.parse(json.dumps({"reason": "Nearly.", "score": text})).score == 4
    for text in ("4/10", "40/50", "4-5", "3.5/5", "6/5", "4 of 5", "1/4/5", "-4/5"):
        with pytest.raises(ReplyError, match="whole number from 1"):
            rating.parse(json.dumps({"reason": "Nearly.", "score": text}))


PROMPT = Prompt("Which?", "{{output}}")
CHOOSE = Choose(values=(("output", "Money back!"),), prompt=PROMPT, choices=("refund", "shipping", "not relevant"))
RATE = RateByCriterion(values=(("output", "So."),), prompt=PROMPT, levels=5)
COMPARE = ComparePair(question="Where?", first_answer="Here.", second_answer="There.", criterion="")
GRADE = GradeGrounding(answer="In France.", context=("Paris is in France.",))
YES_OR_NO = AgreesWithContext(question="Where?", answer="Yes.", context=("Here.",))
CHOOSE_YES = Choose(values=(("output", "So."),), prompt=PROMPT, choices=("yes", "no"))


@pytest.mark.parametrize(
    ("question", "reply", "value"),
    [
        (CHOOSE, "refund", "refund"),
        (CHOOSE, "**Refund.**", "refund"),
        (CHOOSE, '"refund"', "refund"),
        (CHOOSE, "Verdict: not_relevant", "not relevant"),
        (CHOOSE, "**Answer:** Refund", "refund"),
        (CHOOSE, "<think>shipping?</think>\nrefund", "refund"),
        (COMPARE, "First", "first"),
        (COMPARE, "better: second", "second"),
        (RATE, "4", 4),
        (RATE, "Score: 4.", 4),
        (RATE, "**4**", 4),
        (GRADE, "0.75", 0.75),
        (GRADE, "Score: 1", 1),
        (GRADE, ".75", 0.75),
        (GRADE, '{"score": .75}', 0.75),
        (GRADE, '{"rating": 0.75}', 0.75),
        (GRADE, '{"Grade": "0.75", "confidence": 1}', 0.75),
        (GRADE, "Rating: 0.75", 0.75),
        (RATE, "Reason: It is so.\nScore: 4", 4),
        (RATE, "**Reason:** It is so.\n\nScore 5: no gaps.\n\n**Score:** 4", 4),
        (RATE, "Score: 4\nExplanation: It is so.", 4),
        (CHOOSE, "Reason: It is about money.\nAnswer: refund", "refund"),
        (COMPARE, "Reasoning: It says where.\nBetter: second", "second"),
        (YES_OR_NO, "✅ Yes", "yes"),
        (YES_OR_NO, "❌ No", "no"),
        (CHOOSE_YES, "✅ yes", "yes"),
        (CHOOSE_YES, "❌\ufe0f No.", "no"),
    ],
)
def test_a_reply_of_one_word_or_number_is_the_answer_to_a_question_that_needs_no_more(
    question: Any, reply: str, value: Any
) -> None:
    answer = question.parse(reply)
    names = {CHOOSE: "choice", CHOOSE_YES: "choice", COMPARE: "better", YES_OR_NO: "verdict"}
    assert getattr(answer, names.get(question, "score")) == value


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Reason: It is so.\nScore: 4", "It is so."),
        ("**Reason:** It is so.\nIt is.\n**Score:** 4", "It is so.\nIt is."),
        ("Score: 4\nReason: It is so: there.\n", "It is so: there."),
    ],
)
def test_the_reason_beside_a_number_is_kept(reply: str, reason: str) -> None:
    assert RATE.parse(reply).reason == reason


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        (CHOOSE, "relevant"),
        (CHOOSE, "not refund"),
        (CHOOSE, "!refund"),
        (CHOOSE, "refund or shipping"),
        (CHOOSE, "refund, I guess"),
        (CHOOSE, "Not: refund"),
        (CHOOSE, "Verdict:"),
        (COMPARE, "The first is better."),
        (RATE, "4 or 5"),
        (RATE, "4-5"),
        (RATE, "-4"),
        (RATE, "4\n5"),
        (RATE, "3.5"),
        (RATE, "45"),
        (RATE, "Reason: 4"),
        (RATE, "Reason: It is so.\nScore: 4\nScore: 5"),
        (RATE, "Score: 4\nReason: So.\nRating: 5"),
        (RATE, "It is so.\nScore: 4"),
        (RATE, "Reason: It is so.\nScore: 4\nOr 5."),
        (RATE, '{"score": null, "rating": 4}'),
        (RATE, '{"rating": 4, "grade": 5}'),
        (RATE, '{"confidence": 4}'),
        (RATE, '{"score": .4.5}'),
        (CHOOSE_YES, "❌ yes"),
        (CHOOSE_YES, "✅ no"),
        (YES_OR_NO, '{"verdict": "!yes"}'),
        (YES_OR_NO, '{"verdict": "!no"}'),
        (YES_OR_NO, '{"verdict": "¬ yes"}'),
        (YES_OR_NO, '{"verdict": "❌ yes"}'),
        (YES_OR_NO, '{"answer": "yes"}'),
        (RATE, "²"),
        (RATE, "٤"),
        (GRADE, "75%"),
        (GRADE, "0,75"),
        (ASKED, "supported"),
        (ListClaims(text=TEXT), "The museum opened in 1921."),
    ],
)
def test_any_other_reply_without_json_is_refused(question: Any, reply: str) -> None:
    with pytest.raises(ReplyError):
        question.parse(reply)


def test_a_choice_is_read_in_any_case() -> None:
    choice = AgreesWithContext(question="q", answer="a", context=("c",)).parse('{"Reason": "so", "Verdict": "YES"}')
    assert (choice.verdict, choice.reason) == ("yes", "so")


CLAIMS = ("The museum opened in 1921.", "The museum is free on Sundays.")


@pytest.mark.parametrize(
    "claims",
    [
        [f"{number}. {claim}" for number, claim in enumerate(CLAIMS, start=1)],
        [f"{number}) {claim}" for number, claim in enumerate(CLAIMS, start=1)],
        [f"({number}) {claim}" for number, claim in enumerate(CLAIMS, start=1)],
        [f"[{number}] {claim}" for number, claim in enumerate(CLAIMS, start=1)],
        [f"Claim {number}: {claim}" for number, claim in enumerate(CLAIMS, start=1)],
        [f"- {claim}" for claim in CLAIMS],
        [f"• {claim}" for claim in CLAIMS],
        [{"claim": claim} for claim in CLAIMS],
        [{"text": claim, "number": 1} for claim in CLAIMS],
        [f"**{claim}**" for claim in CLAIMS],
        [f"{number}. **{claim}**" for number, claim in enumerate(CLAIMS, start=1)],
        [f'"{claim}"' for claim in CLAIMS],
        [f"“{claim}”" for claim in CLAIMS],
    ],
)
@pytest.mark.parametrize("bare", [False, True])
def test_the_items_of_a_list_are_read_without_their_markers(claims: list[Any], bare: bool) -> None:
    assert ListClaims(text=TEXT).parse(json.dumps(claims if bare else {"claims": claims})) == CLAIMS


@pytest.mark.parametrize("reply", ["I can't; the text only has {}.", "Step 1: {} and {}"])
def test_a_list_in_a_sentence_is_no_reply(reply: str) -> None:
    with pytest.raises(ReplyError, match="no complete JSON"):
        ListClaims(text=TEXT).parse(reply.format(*(json.dumps([claim]) for claim in CLAIMS)))
    assert ListClaims(text=TEXT).parse(f"Claims: {json.dumps(CLAIMS)} That's all.") == CLAIMS


def test_a_numbered_object_is_a_list_if_it_counts_up() -> None:
    for keys in ("12", ("claim 1", "claim 2"), ("1.", "2.")):
        reply = json.dumps({"claims": dict(zip(keys, CLAIMS, strict=True))})
        assert ListClaims(text=TEXT).parse(reply) == CLAIMS
    for keys in ("21", "13", ("a", "b")):
        with pytest.raises(ReplyError):
            ListClaims(text=TEXT).parse(json.dumps({"claims": dict(zip(keys, CLAIMS, strict=True))}))


def test_a_number_that_is_a_part_of_the_text_stays() -> None:
    asked = ListClaims(text=TEXT)
    for claim in ("1. FC Cologne plays next door.", "7. The museum opened in 1921."):
        assert asked.parse(json.dumps({"claims": [claim]})) == (claim.removeprefix("7. "),)
    with pytest.raises(ReplyError, match="doesn't have: 1922"):
        asked.parse('{"claims": ["1. The museum opened in 1922."]}')
    with pytest.raises(ReplyError, match=r"claims\.0"):
        asked.parse('{"claims": [{"claim": "The museum opened in 1921.", "why": "it says so"}]}')


def test_a_list_may_be_under_another_name_of_what_it_lists() -> None:
    for name in ("facts", "Statements"):
        assert ListClaims(text=TEXT).parse(json.dumps({name: CLAIMS})) == CLAIMS
    for reply in ({"opinions": CLAIMS}, {"facts": CLAIMS, "statements": CLAIMS}, {"claims": None, "facts": CLAIMS}):
        with pytest.raises(ReplyError):
            ListClaims(text=TEXT).parse(json.dumps(reply))


@pytest.mark.parametrize("reply", ["!yes", "Verdict: !yes", "¬yes", "❌ yes", "Answer: ✗ Yes"])
def test_a_word_behind_a_sign_that_denies_it_decides_nothing(reply: str) -> None:
    assert YES_OR_NO.parse(reply).verdict == "undecided"
    assert YES_OR_NO.parse("¡Sí! Wow!").verdict == "yes"
