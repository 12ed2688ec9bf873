"""Probabilities of the marks that a judge might have given, out of a reply's tokens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalstone._core.prompts import Prompt
from evalstone.api import evaluate
from evalstone.judges import Cascade, ModelJudge, ReplayJudge, ScriptedJudge
from evalstone.judges.logprobs import alternatives_of, geometric_mean, probability_of
from evalstone.ledger import AsyncLedger
from evalstone.models.provider import Completion
from evalstone.models.tokens import readable_tokens
from evalstone.questions import ClaimSupported, GradeGrounding, JudgeToolCalls, ListClaims, MiniCheck, VerifyClaims
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.custom import Choose
from evalstone.questions.probabilities import LabelProbabilities
from evalstone.questions.rating import RateByCriterion, Rating
from evalstone.run.session import Session
from evalstone.scorers import GEval
from tests.serving import Response, Server, completion, serving

FIVE = LabelProbabilities("score", ("1", "2", "3", "4", "5"))
TEN = LabelProbabilities("score", tuple(str(mark) for mark in range(1, 11)))


def token(text: str, probability: float = 0.9, others: Mapping[str, float] | None = None) -> dict[str, Any]:
    """A token as OpenAI gives it, with what might have stood in its place."""
    options = {text: probability, **(others or {})}
    top = [{"token": word, "logprob": math.log(p)} for word, p in options.items()]
    return {"token": text, "logprob": math.log(probability), "top_logprobs": top}


def spelt(*tokens: str | Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [token(one) if isinstance(one, str) else one for one in tokens]


def test_the_probabilities_are_those_at_the_place_of_the_score() -> None:
    tokens = spelt(
        '{"', "reason", '":"', "4", " of 5", '","', "score", '":', token("4", 0.6, {"5": 0.3, "x": 0.1}), "}"
    )
    assert alternatives_of(tokens, FIVE) == pytest.approx({"4": 0.6, "5": 0.3})


def test_a_blank_before_the_number_belongs_to_no_word_and_adds_up() -> None:
    tokens = spelt('{"score', '":', token(" 4", 0.5, {"4": 0.2, " 5": 0.1}), "}")
    assert alternatives_of(tokens, FIVE) == pytest.approx({"4": 0.7, "5": 0.1})


def test_a_score_that_the_reason_mentions_is_passed_over() -> None:
    reply = spelt(
        '{"reason": "', 'he says \\"score\\": ', token("5", 0.9, {"1": 0.1}), '", "score": ', token("2", 0.8), "}"
    )
    assert alternatives_of(reply, FIVE) == pytest.approx({"2": 0.8})


@pytest.mark.parametrize(
    "draft", [("<think>", "no", "</think>"), ("\u00e9 maybe ", '{"verdict": "', "no", '"}', "\n</", "think>")]
)
def test_the_tokens_of_the_reasoning_are_no_part_of_the_answer(draft: tuple[str, ...]) -> None:
    yes, labels = token("Yes", 0.8, {"No": 0.1}), LabelProbabilities("verdict", ("yes", "no"))
    tokens = readable_tokens(spelt(*(token(text, 0.1) for text in draft), "\n\n", yes, "."))
    assert alternatives_of(tokens, labels) == pytest.approx({"yes": 0.8, "no": 0.1})
    assert probability_of(MiniCheck(document="d", claim="c"), tokens) == pytest.approx(0.8)


def test_a_number_of_two_digits_in_one_token_is_one_number() -> None:
    tokens = spelt('{"score": ', token("10", 0.7, {"9": 0.2, "1": 0.05}), "}")
    assert alternatives_of(tokens, TEN) == pytest.approx({"10": 0.7, "9": 0.2, "1": 0.05})


def test_a_number_that_is_spelt_over_two_tokens_gives_none() -> None:
    assert alternatives_of(spelt('{"score": ', token("1", 0.9, {"7": 0.1}), "0", "}"), TEN) is None


def test_a_digit_that_might_begin_another_number_gives_none_when_no_longer_token_is_seen() -> None:
    assert alternatives_of(spelt('{"score": ', token("7", 0.6, {"1": 0.4}), "}"), TEN) is None
    assert alternatives_of(spelt('{"score": ', token("7", 0.6, {"1": 0.3, "10": 0.1}), "}"), TEN) is not None


@pytest.mark.parametrize("text", ['{"score": 7}', '{"score": 4.5}', '{"score": 45}', '{"mark": 4}', "no idea"])
def test_no_place_no_probabilities(text: str) -> None:
    assert alternatives_of(spelt(*text), FIVE) is None


def test_a_reply_in_the_quotes_of_python_has_probabilities_too() -> None:
    labels = LabelProbabilities("verdict", ("yes", "no"))
    reply = spelt("{'reason': 'So.', 'verdict': '", token("yes", 0.8, {"no": 0.1}), "'}")
    assert alternatives_of(reply, labels) == pytest.approx({"yes": 0.8, "no": 0.1})
    assert probability_of(ClaimSupported(claim="It is so.", context=("So.",)), reply) == pytest.approx(0.8)


@pytest.mark.parametrize("word", ["QUOTE", "100%s", "50 %"])
def test_a_choice_may_be_any_word(word: str) -> None:
    question = Choose(values=(("output", "So."),), prompt=Prompt("Which?", "{{output}}"), choices=(word, "other"))
    assert probability_of(question, spelt('{"verdict": "', token(word, 0.8), '"}')) == pytest.approx(0.8)


def test_a_text_that_quotes_a_member_in_single_quotes_is_no_member() -> None:
    labels = LabelProbabilities("verdict", ("yes", "no"))
    quoted = ('", "reason": "it says \'verdict\': \'', token("no", 0.3), "'\"}")
    reply = spelt('{"verdict": "', token("yes", 0.8, {"no": 0.1}), *quoted)
    assert alternatives_of(reply, labels) == pytest.approx({"yes": 0.8, "no": 0.1})
    assert probability_of(ClaimSupported(claim="It is so.", context=("So.",)), reply) == pytest.approx(0.8)


def test_no_tokens_no_probabilities_and_no_mean() -> None:
    assert alternatives_of([], FIVE) is None
    assert geometric_mean([]) is None
    assert alternatives_of([{"token": '{"score": ', "logprob": 0}, {"token": "4", "logprob": 0}], FIVE) is None


def test_letters_of_several_bytes_split_over_tokens_do_not_move_the_place() -> None:
    pieces = '{"reason": "größer ✓", "score": '.encode()
    tokens: list[Mapping[str, Any]] = [
        {"token": "?", "bytes": [byte], "logprob": 0.0, "top_logprobs": []} for byte in pieces
    ]
    assert alternatives_of([*tokens, token("3", 0.5, {"2": 0.5}), token("}")], FIVE) == pytest.approx(
        {"3": 0.5, "2": 0.5}
    )


QUESTION = RateByCriterion(
    values=(("output", "x"),), prompt=Prompt("Rating it.", "{{output}}"), levels=5, by_probability=True
)
PLAIN = RateByCriterion(values=(("output", "x"),), prompt=Prompt("Rating it.", "{{output}}"), levels=5)
TOKENS = spelt('{"reason": "r", "score": ', token("4", 0.6, {"5": 0.3}), "}")
REPLY = completion(json.dumps({"reason": "r", "score": 4}), logprobs={"content": TOKENS})


def answers(server: Server, *questions: RateByCriterion, ledger: Path | None = None) -> list[JudgeAnswer[Rating]]:
    """What a model gives to questions through a session, one after another."""
    judge = ModelJudge("openai/gpt-4o-mini", base_url=server.url, api_key="k", total_timeout=5.0)

    async def work() -> list[JudgeAnswer[Rating]]:
        async with contextlib.AsyncExitStack() as stack:
            book = await stack.enter_async_context(AsyncLedger(ledger)) if ledger else None
            session = Session(judge, ledger=book)
            return [await session.ask(question) for question in questions]

    return asyncio.run(work())


def test_probabilities_are_asked_for_only_where_a_question_wants_them() -> None:
    with serving(lambda _, __: REPLY) as server:
        weighed, plain = answers(server, QUESTION, PLAIN)
    assert (server.requests[0]["logprobs"], server.requests[0]["top_logprobs"]) == (True, 20)
    assert not {"logprobs", "top_logprobs"} & set(server.requests[1])
    assert weighed.value.score == 4
    assert weighed.value.probabilities == pytest.approx({"4": 2 / 3, "5": 1 / 3})
    assert plain.value == Rating(4, "r")
    assert plain.alternatives is None


def test_an_endpoint_that_refuses_probabilities_is_asked_without() -> None:
    refusal = Response(400, {"error": {"message": "Unsupported parameter: logprobs"}})
    answered = completion('{"reason": "r", "score": 4}')
    with serving(lambda asked, _: refusal if "logprobs" in asked else answered) as server:
        (answer,) = answers(server, QUESTION)
    assert answer.value == Rating(4, "r")
    assert "top_logprobs" not in server.requests[-1]


def test_probabilities_are_kept_in_the_ledger(tmp_path: Path) -> None:
    with serving(lambda _, __: REPLY) as server:
        (first,) = answers(server, QUESTION, ledger=tmp_path / "ledger.db")
        (again,) = answers(server, QUESTION, ledger=tmp_path / "ledger.db")
    assert len(server.requests) == 1
    assert first.value.probabilities == pytest.approx({"4": 2 / 3, "5": 1 / 3})
    assert again.value == first.value


def test_a_recorded_run_repeats_the_weighted_score(tmp_path: Path) -> None:
    said = Completion('{"reason": "r", "score": 4}', alternatives={"4": 0.6, "5": 0.3})
    scorer = GEval("Plain.", steps=(), weighted=True, fields=("output",))
    samples = [{"id": "one", "output": "x"}]
    run = evaluate(samples, scorer, judge=ScriptedJudge([said]), ledger=None)
    file = tmp_path / "records.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in run.to_dicts()))
    again = evaluate(samples, scorer, judge=ReplayJudge.from_records(file), ledger=None)
    assert [record.value for record in again] == [record.value for record in run]
    assert next(iter(again)).value == pytest.approx((13 / 3 - 1) / 4)


VERIFY = VerifyClaims(claims=("x", "y"), context=("p",))


def test_the_probability_of_verified_claims_is_that_of_the_least_certain_verdict() -> None:
    tokens = spelt(
        token('{"verdicts": {"1": {"reason": "the \\"verdict\\": \\"supported\\" is clear", "passages": [1], ', 0.01),
        token('"verdict": "', 0.02),
        token("supported", 0.9),
        token('"}, "2": {"reason": "", "passages": [], "verdict": "', 0.03),
        token("not", 0.8),
        token("_mentioned", 0.5),
        token('"}}}', 0.04),
    )
    assert probability_of(VERIFY, tokens) == pytest.approx(0.4)
    # A quote in the token of the word is a part of that token.
    joined = spelt('{"verdicts": {"1": {"verdict": ', token('"supported"', 0.9), '}, "2": {"verdict": ')
    joined += spelt(token('"not', 0.8), token('_mentioned"', 0.7), token("}}}", 0.01))
    assert probability_of(VERIFY, joined) == pytest.approx(0.56)


def test_the_probability_of_a_plain_yes_is_that_of_the_word() -> None:
    question = MiniCheck(document="d", claim="c")
    assert probability_of(question, spelt(token("Yes", 0.83))) == pytest.approx(0.83)
    assert probability_of(question, spelt(token(" No", 0.7), token(".", 0.2))) == pytest.approx(0.7)
    assert probability_of(question, []) is None


def test_truth_values_and_numbers_are_verdicts_and_reasons_are_not() -> None:
    grade = GradeGrounding(answer="a", context=("p",))
    score = (token("0", 0.9), token(".", 0.9), token("75", 0.5))
    tokens = spelt(token('{"reason": "so", "score": ', 0.1), *score, token("}", 0.1))
    assert probability_of(grade, tokens) == pytest.approx(0.9 * 0.9 * 0.5)
    calls = JudgeToolCalls(request="r", answer="a", calls=("c",), tools=())
    said = spelt(token('{"calls": {"1": {"reason": "", "appropriate": ', 0.1), token("true", 0.6), token("}}}", 0.1))
    assert probability_of(calls, said) == pytest.approx(0.6)


def test_a_reply_without_verdicts_has_the_mean_over_its_tokens() -> None:
    tokens = spelt(token('{"claims": ["', 0.5), token("a", 0.9), token('"]}', 0.6))
    assert probability_of(ListClaims(text="t"), tokens) == pytest.approx(geometric_mean(tokens))


def test_a_judge_with_logprobs_gives_its_verdicts_probability_and_a_cascade_takes_it() -> None:
    tokens = spelt('{"reason": "", "verdict": ', token('"yes"', 0.6), "}")
    reply = completion('{"reason": "", "verdict": "yes"}', logprobs={"content": tokens})
    other = completion('{"reason": "", "verdict": "no"}')
    question = ClaimSupported(claim="c", context=("p",))
    with serving(lambda request, _: reply if request["model"] == "cheap" else other) as server:
        cheap = ModelJudge("vllm/cheap", base_url=server.url, logprobs=True)
        dear = ModelJudge("vllm/dear", base_url=server.url)
        kept = asyncio.run(Cascade(cheap, dear, threshold=0.55).answer(question))
        moved = asyncio.run(Cascade(cheap, dear, threshold=0.65).answer(question))
    assert (kept.value.verdict, kept.probability) == ("yes", pytest.approx(0.6))
    assert (moved.value.verdict, moved.probability) == ("no", None)


def test_a_verdict_in_another_spelling_has_its_probability() -> None:
    question = ClaimSupported(claim="c", context=("p",))
    tokens = spelt(token('{"reason": "", "verdict": "', 0.2), token("Yes", 0.7), token('."}', 0.3))
    assert probability_of(question, tokens) == pytest.approx(0.7)


# Yes and no

CLAIM = ClaimSupported(claim="c", context=("p",))
BARE = MiniCheck(document="d", claim="c")
YES_NO = LabelProbabilities("verdict", ("yes", "no"))


def chosen(text: str, tokens: list[Mapping[str, Any]], question: Any = CLAIM, **settings: Any) -> JudgeAnswer[Any]:
    """What a model with these tokens gives to a question."""
    with serving(lambda _, __: completion(text, logprobs={"content": tokens})) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, **settings)
        return asyncio.run(judge.answer(question))


def test_a_yes_or_no_has_its_probability_among_the_two_words() -> None:
    tokens = spelt('{"reason": "", "verdict": "', token("yes", 0.6, {"no": 0.2, "maybe": 0.1}), '"}')
    answer = chosen('{"reason": "", "verdict": "yes"}', tokens)
    assert answer.value.probability == pytest.approx(0.75)
    assert answer.probability == pytest.approx(0.75)
    against = spelt('{"reason": "", "verdict": "', token("no", 0.6, {"yes": 0.2}), '"}')
    answer = chosen('{"reason": "", "verdict": "no"}', against)
    assert (answer.value.probability, answer.probability) == (pytest.approx(0.25), pytest.approx(0.75))


def test_spellings_of_a_word_before_the_grammar_add_up() -> None:
    options = {' "yes': 0.1, " Yes": 0.05, 'yes"}': 0.05, "\u0120no": 0.1, "No": 0.1, "none": 0.3}
    tokens = spelt('{"reason": "", "verdict": "', token("yes", 0.2, options), '"}')
    assert alternatives_of(tokens, YES_NO) == pytest.approx({"yes": 0.4, "no": 0.2})


@pytest.mark.parametrize(("listed", "probability"), [(0.99, 0.99), (0.6, 0.6), (0.02, 0.5)])
def test_a_word_that_is_not_listed_has_what_the_other_leaves_and_no_more_than_that(
    listed: float, probability: float
) -> None:
    yes = chosen('{"verdict": "yes"}', spelt('{"verdict": "', token("yes", listed), '"}'))
    assert (yes.value.probability, yes.probability) == (pytest.approx(probability), pytest.approx(probability))
    no = chosen('{"verdict": "no"}', spelt('{"verdict": "', token("no", listed), '"}'))
    assert (no.value.probability, no.probability) == (pytest.approx(1 - probability), pytest.approx(probability))


def test_a_word_that_was_drawn_though_others_are_likelier_counts_with_its_own_probability() -> None:
    drawn = {**token("yes", 0.1), "top_logprobs": [{"token": "no", "logprob": math.log(0.3)}]}
    assert alternatives_of(spelt('{"verdict": "', drawn, '"}'), YES_NO) == pytest.approx({"yes": 0.1, "no": 0.3})


@pytest.mark.parametrize("options", [{"yes": 0.9, "no": 0.9}, {"yes": 0.6, "Yes": 0.6}, {"yes": 1.0, "no": 0.02}])
def test_probabilities_that_add_up_to_more_than_1_are_none(options: Mapping[str, float]) -> None:
    tokens = spelt('{"verdict": "', token("yes", options["yes"], options), '"}')
    answer = chosen('{"verdict": "yes"}', tokens)
    assert (answer.value.verdict, answer.value.probability, answer.alternatives) == ("yes", None, None)
    rounded = spelt('{"verdict": "', token("yes", 0.99, {"no": 0.015}), '"}')
    assert chosen('{"verdict": "yes"}', rounded).value.probability == pytest.approx(0.985, abs=1e-3)


def test_the_first_word_of_plain_text_is_the_verdict() -> None:
    answer = chosen("Yes.", spelt(token("Yes", 0.3, {"No": 0.1, " yes": 0.1, "\n": 0.4}), "."), BARE)
    assert answer.value.probability == pytest.approx(0.8)
    assert answer.probability == pytest.approx(0.8)
    # Also where a bare word came in place of an object.
    answer = chosen("no", spelt(token("no", 0.6, {"yes": 0.2})))
    assert (answer.value.verdict, answer.value.probability) == ("no", pytest.approx(0.25))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('{"verdict": "yes"}', ['{"verdict": "', token("y", 0.5), token("es", 0.9), '"}']),
        ('{"verdict": "undecided"}', ['{"verdict": "', token("und", 0.5, {"yes": 0.4}), "ecided", '"}']),
        ('{"verdict": "ja"}', ['{"verdict": "', token("ja", 0.5, {"nein": 0.4}), '"}']),
    ],
)
def test_a_verdict_in_other_tokens_has_no_probability(text: str, tokens: Any) -> None:
    assert chosen(text, spelt(*tokens)).value.probability is None


@pytest.mark.parametrize("question", [CLAIM, BARE], ids=["object", "plain text"])
def test_every_yes_or_no_asks_for_few_alternatives(question: Any) -> None:
    with serving(lambda _, __: completion("no")) as server:
        answer = asyncio.run(ModelJudge("vllm/m", base_url=server.url).answer(question))
    assert (server.requests[0]["logprobs"], server.requests[0]["top_logprobs"]) == (True, 5)
    assert (answer.value.probability, answer.refused_settings) == (None, ())


def test_a_refusal_is_named_where_the_caller_asked_for_probabilities() -> None:
    refusal = Response(400, {"error": {"message": "logprobs are not supported with reasoning models"}})

    def behave(request: dict[str, Any], _: int) -> Any:
        said = {"reason": "r", "verdict": "yes", "score": 4}
        return refusal if "logprobs" in request else completion(json.dumps(said))

    with serving(behave) as server:

        async def work() -> list[tuple[str, ...]]:
            plain = ModelJudge("vllm/m", base_url=server.url)
            asking = ModelJudge("vllm/m", base_url=server.url, logprobs=True)
            questions: list[Any] = [CLAIM, QUESTION, PLAIN]
            answers = [await judge.answer(question) for judge in (plain, asking) for question in questions]
            return [answer.refused_settings for answer in answers]

        named = asyncio.run(work())
    assert named == [(), ("logprobs",), (), ("logprobs",), ("logprobs",), ("logprobs",)]
    assert ["logprobs" in request for request in server.requests] == [True, *[False] * 6]


def test_fact_check_is_a_probability_and_a_cascade_escalates_by_it() -> None:
    def behave(request: dict[str, Any], _: int) -> Any:
        tokens = spelt('{"reason": "", "verdict": "', token("yes", 0.6, {"no": 0.4}), '"}')
        cheap = completion('{"reason": "", "verdict": "yes"}', logprobs={"content": tokens})
        return cheap if request["model"] == "cheap" else completion('{"reason": "", "verdict": "no"}')

    rows = [{"id": "1", "output": "Ada was born.", "context": ["Ada was born."]}]
    with serving(behave) as server:
        cheap, dear = (ModelJudge(f"vllm/{name}", base_url=server.url) for name in ("cheap", "dear"))
        values = [
            evaluate(rows, "fact_check", judge=judge, ledger=None)[0].value
            for judge in (cheap, Cascade(cheap, dear, threshold=0.5), Cascade(cheap, dear, threshold=0.7), dear)
        ]
    assert values == pytest.approx([0.6, 0.6, 0.0, 0.0])


@pytest.mark.parametrize("logprob", [None, "-0.1", math.nan, 0.5, -1e301, 2e-3])
def test_tokens_are_read_only_if_all_of_them_have_a_probability(logprob: Any) -> None:
    good = [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": 1e-4}, {"token": "c", "logprob": -math.inf}]
    assert readable_tokens(good) == good
    assert readable_tokens([*good, {"token": "d", "logprob": logprob}]) == ()
    assert readable_tokens([{"token": "d", "logprob": -0.1, "top_logprobs": [{"logprob": logprob}]}]) == ()


def test_a_probability_just_above_1_is_rounded() -> None:
    assert probability_of(MiniCheck(document="d", claim="c"), [{"token": "yes", "logprob": 1e-4}]) == 1.0
    assert geometric_mean([{"token": "yes", "logprob": 1e-4}]) == 1.0
