"""What a model is asked after a reply that can't be used, and what the error says in the end."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from evalstone import Failed, ModelJudge, ScriptedJudge, evaluate
from evalstone.errors import ReplyError
from evalstone.judges.corrections import MOST_STORED, SEED_STEP, correction, repetition
from evalstone.models.provider import ChatMessage, RequestSettings
from evalstone.questions import ClaimSupported, ListClaims, MiniCheck
from evalstone.questions.answers import JudgeAnswer, failed_call
from evalstone.questions.base import Ask
from evalstone.results.views.spending import corrections_text
from evalstone.scorers.base import Scorer
from evalstone.types import Score
from tests.serving import Behaviour, Response, completion, serving

QUESTION = ListClaims(text="Ada was born in 1815.")
GOOD = completion('{"claims": ["Ada was born in 1815."]}')
VERDICT = completion('{"reason": "It says so.", "verdict": "no"}')


def one_after_another(*answers: Any) -> Behaviour:
    return lambda _, number: answers[min(number, len(answers)) - 1]


def asked(*replies: Any, question: Any = QUESTION, **settings: Any) -> tuple[JudgeAnswer[Any] | ReplyError, list[Any]]:
    """The answer or the last error of a model that gives these replies, and the requests it got."""
    with serving(one_after_another(*replies)) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=5.0, **settings)
        try:
            return asyncio.run(judge.answer(question)), server.requests
        except ReplyError as error:
            return error, server.requests


TOO_LONG = Response(400, {"error": {"message": "This model's maximum context length is 2048 tokens."}})


def test_a_correction_beyond_the_window_is_followed_by_one_that_starts_afresh() -> None:
    prose = completion("prose " * 900)
    answer, requests = asked(prose, TOO_LONG, GOOD)
    assert isinstance(answer, JudgeAnswer)
    assert [len(request["messages"]) for request in requests] == [2, 4, 2]
    assert answer.usage.requests == 2
    error, requests = asked(prose, TOO_LONG, retries=1)
    assert isinstance(error, ReplyError)
    assert "no complete JSON" in str(error)
    assert len(requests) == 2


def test_a_correction_beyond_the_window_divides_no_question() -> None:
    def behave(request: dict[str, Any], _: int) -> Any:
        return TOO_LONG if len(request["messages"]) > 2 else completion("prose " * 900)

    text = "Ada was born in 1815. " * 20
    with serving(behave) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, retries=1, total_timeout=5.0)
        run = evaluate([{"id": "1", "output": text, "context": [text]}], "faithfulness", judge=judge, ledger=None)
    outcome = run.records[0].outcome
    assert isinstance(outcome, Failed)
    assert "no complete JSON" in outcome.error
    assert len(server.requests) == 2


def test_a_reply_that_was_cut_off_names_its_limit_and_is_asked_for_shorter() -> None:
    cut = completion('{"claims": ["Ada was', finish="length")
    answer, requests = asked(cut, GOOD, max_tokens=200)
    assert isinstance(answer, JudgeAnswer)
    shown, request = requests[1]["messages"][-2:]
    assert shown["content"] == '{"claims": ["Ada was'
    assert "limit of 200 tokens" in request["content"]
    assert "Write shorter" in request["content"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"max_tokens": 200}, r"at the limit of 200 tokens \(max_tokens; raise it for longer replies\)$"),
        ({}, r"after 20 tokens at a limit of the endpoint \(set max_tokens\)$"),
    ],
)
def test_the_last_error_of_replies_that_are_cut_off_names_max_tokens(settings: dict[str, Any], told: str) -> None:
    error, requests = asked(completion('{"claims": ["Ada was', finish="length"), **settings)
    assert len(requests) == 4
    assert isinstance(error, ReplyError)
    with pytest.raises(ReplyError, match=f"^the reply .* {told}"):
        raise error


def test_of_a_long_reply_that_was_cut_off_the_beginning_is_shown() -> None:
    reply = '{"claims": ["' + "".join(chr(97 + n * n % 26) for n in range(3000))
    _, requests = asked(completion(reply, finish="length"), GOOD)
    assert requests[1]["messages"][-2]["content"] == f"{reply[:300]}\n[…]"


@pytest.mark.parametrize("between", [", ", ",\n    "])
def test_the_beginning_of_a_reply_that_was_cut_off_ends_with_a_whole_item(between: str) -> None:
    reply = '{"claims": [' + between.join(f'"Ada was born in {1815 + n}."' for n in range(40))
    _, requests = asked(completion(reply, finish="length"), GOOD)
    shown = requests[1]["messages"][-2]["content"].removesuffix("\n[…]")
    assert reply.startswith(shown)
    assert shown.endswith('."' + between.rstrip())
    assert len(shown) > 250


DEGENERATE = [
    '{"claims": ["' + "Ada was born. " * 100,
    '{"claims": [' + '"Ada was born in 1815.", ' * 40,
    '{"claims": [' + '"Ada was born in 1815.", "Ada lived in London.", ' * 20 + '"Ada"',
    '{"claims": ' + " " * 500,
    '{"claims": ' + "\n\t" * 300,
    '{"claims": [' + "".join(f'"{n}. Ada was born in 1815.", ' for n in range(40)),
    '{"claims": [' + ", ".join(['"Ada was born"'] * 60) + "], ]}",
    "".join(f"{n}. The claim is supported by the text.\n" for n in range(30)),
]


@pytest.mark.parametrize("reply", DEGENERATE, ids=range(len(DEGENERATE)))
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_reply_that_repeats_itself_is_left_out_but_for_its_beginning(reply: str, finish: str) -> None:
    answer, requests = asked(completion(reply, finish=finish), GOOD, max_tokens=900)
    assert isinstance(answer, JudgeAnswer)
    shown, request = requests[1]["messages"][-2:]
    beginning, _, rest = shown["content"].rpartition("\n[…]")
    assert not rest
    assert reply.startswith(beginning)
    assert len(beginning) <= 300
    assert "repeats itself. Reply" in request["content"]  # without what it repeats
    error, _ = asked(completion(reply, finish=finish), max_tokens=900, retries=0)
    assert "it repeats itself" in str(error)
    assert len(str(error)) < 400
    assert isinstance(error, ReplyError)
    assert error.reply == reply


SOUND = [
    "",
    "no",
    '{"claims": ["Ada was born in 1815.", "Ada was born in 1815."]}',
    json.dumps(
        {"verdicts": {str(n): {"reason": f"{n * n}", "passages": [1], "verdict": "supported"} for n in range(30)}}
    ),
    "".join(f"The claim number {n} speaks of {n * 7} and of {chr(97 + n)}. " for n in range(25)),
    "a" * 50,
    "-" * 60 + "\n" + "".join(f"{n}: {n * n}\n" for n in range(200)),
]


SENTENCE = "Ada was born in 1815.\n"


@pytest.mark.parametrize(
    ("reply", "repeats"),
    [
        (SENTENCE * 5, False),
        (SENTENCE * 6, True),
        ("It is so.\n" * 7, False),
        (SENTENCE * 6 + "".join(f"Line {chr(97 + n)} of many others here.\n" for n in range(6)), False),
        ("".join(map(chr, range(300, 500))) * 8, True),
        ("".join(map(chr, range(300, 501))) * 8, False),
    ],
    ids=range(6),
)
def test_what_repeats_itself_does_so_often_and_for_half_of_the_reply(reply: str, repeats: bool) -> None:
    assert bool(repetition(reply)) == repeats


@pytest.mark.parametrize("reply", SOUND, ids=range(len(SOUND)))
def test_a_reply_with_lists_of_like_things_does_not_repeat_itself(reply: str) -> None:
    assert repetition(reply) == ""


def test_other_replies_are_shown_up_to_four_thousand_characters() -> None:
    text = "".join(f"{n} " for n in range(3000))
    _, requests = asked(completion(text), GOOD)
    shown = requests[1]["messages"][-2]["content"]
    assert shown == f"{text[:2000]}\n[…]\n{text[-2000:]}"


@pytest.mark.parametrize(("given", "drawn"), [(0.0, 0.5), (0.9, 0.9), (None, None)])
def test_a_correction_afresh_keeps_a_higher_temperature_and_what_is_unset(
    given: float | None, drawn: float | None
) -> None:
    opening = [ChatMessage("user", "Which claims?")]
    messages, settings = correction(opening, RequestSettings(temperature=given), QUESTION, "no", "no JSON", 2)
    assert (settings.temperature, settings.seed) == (drawn, None)
    assert "Write shorter" not in messages[-1].content


def test_the_second_correction_starts_afresh_without_the_replies_so_far() -> None:
    wrong = [completion(f"blunder {n}") for n in range(3)]
    answer, requests = asked(*wrong, GOOD, seed=7)
    assert isinstance(answer, JudgeAnswer)
    opening = requests[0]["messages"]
    assert [len(request["messages"]) for request in requests] == [2, 4, 2, 2]
    for request in requests[2:]:
        assert "blunder" not in json.dumps(request["messages"])
        *before, last = request["messages"]
        assert before == opening[:-1]
        assert last["content"].startswith(f"{opening[-1]['content']}\n\nAn earlier reply ")
    seeds = [request["seed"] for request in requests]
    assert seeds == [7, 7, 7 + SEED_STEP, 7 + 2 * SEED_STEP]
    assert [request["temperature"] for request in requests] == [0, 0, 0.5, 0.5]
    assert drawn(answer) == {"temperature": 0.5, "seed": seeds[-1]}
    assert answer.usage.requests == 4


def test_a_temperature_above_that_of_a_fresh_start_stays_and_none_is_left_to_the_provider() -> None:
    wrong = completion("wrong")
    _, requests = asked(wrong, wrong, GOOD, temperature=1.0)
    assert [request["temperature"] for request in requests] == [1, 1, 1]
    answer, requests = asked(wrong, wrong, GOOD, temperature=None)
    assert not any("temperature" in request or "seed" in request for request in requests)
    assert isinstance(answer, JudgeAnswer)
    assert drawn(answer) == {}


def test_an_answer_that_was_not_drawn_afresh_says_nothing_of_it() -> None:
    for replies in ([GOOD], [completion("wrong"), GOOD]):
        answer, _ = asked(*replies, seed=7)
        assert isinstance(answer, JudgeAnswer)
        assert drawn(answer) == {}


LONG = " ".join(map(str, range(2000)))


def test_an_answer_has_the_replies_that_were_corrected_and_why() -> None:
    answer, _ = asked(completion("wrong"), completion(LONG), GOOD)
    assert isinstance(answer, JudgeAnswer)
    why = "the reply holds no complete JSON object; it may be cut off"
    assert (answer.detail or {})["corrections"] == [
        {"reply": "wrong", "error": why},
        {"reply": f"{LONG[:MOST_STORED]}\n[…]", "error": why},
    ]
    error, _ = asked(*[completion("wrong")] * 3, retries=2)
    assert isinstance(error, ReplyError)
    assert failed_call(QUESTION, error, "judge").detail == {
        "error": why,
        "corrections": [{"reply": "wrong", "error": why}] * 2,
    }
    plain, _ = asked(GOOD)
    assert isinstance(plain, JudgeAnswer)
    assert plain.detail is None


def drawn(answer: JudgeAnswer[Any]) -> dict[str, Any]:
    """The detail of an answer without the replies that were corrected."""
    return {name: value for name, value in (answer.detail or {}).items() if name != "corrections"}


CLAIM = ClaimSupported(claim="c", context=("p",))
PROSE = "The passage speaks of something else, so it is hard to say."


def test_prose_in_place_of_a_verdict_is_asked_again_once() -> None:
    answer, requests = asked(completion(PROSE), VERDICT, question=CLAIM)
    assert isinstance(answer, JudgeAnswer)
    assert (answer.value.verdict, answer.usage.requests) == ("no", 2)
    assert requests[1]["messages"][-2]["content"] == PROSE
    assert "neither yes nor" in requests[1]["messages"][-1]["content"]


def test_prose_twice_is_undecided() -> None:
    answer, requests = asked(completion(PROSE), completion(PROSE + " Again."), question=CLAIM)
    assert isinstance(answer, JudgeAnswer)
    assert (answer.value.verdict, len(requests)) == ("undecided", 2)
    assert answer.reply == PROSE + " Again."
    assert list(drawn(answer)) == ["doubt"]
    assert "neither yes nor" in drawn(answer)["doubt"]


@pytest.mark.parametrize(
    ("question", "reply", "settings"),
    [
        (CLAIM, "No, the passage does not say so.", {}),
        (CLAIM, "Yes", {}),
        (CLAIM, '{"reason": "r", "verdict": "undecided"}', {}),
        (CLAIM, PROSE, {"retries": 0}),
        (MiniCheck(document="d", claim="c"), PROSE, {}),
    ],
)
def test_what_is_clear_or_may_not_be_asked_again_is_asked_once(
    question: Any, reply: str, settings: dict[str, Any]
) -> None:
    answer, requests = asked(completion(reply), question=question, **settings)
    assert isinstance(answer, JudgeAnswer)
    assert len(requests) == 1


def test_prose_of_a_script_with_nothing_more_to_say_is_undecided() -> None:
    answer = asyncio.run(ScriptedJudge([PROSE]).answer(CLAIM))
    assert answer.value.verdict == "undecided"


# What a run says of it


class MakesClaims(Scorer):
    """Whether the text makes a claim."""

    name = "makes_claims"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        return Score(float(bool(await ask(ListClaims(text=output)))))


ROWS = [{"id": str(n), "output": f"Zed counts {n} owls."} for n in range(4)]


def test_a_run_counts_its_corrections_those_that_helped_and_the_calls_that_were_lost() -> None:
    def behave(request: dict[str, Any], _: int) -> Any:
        text = json.dumps(request["messages"])
        corrected = "could not be used" in text or "cannot be used" in text
        if "counts 0 owls" in text or ("counts 1 owls" in text and corrected):
            return completion('{"claims": ["Zed counts owls."]}')
        return completion("wrong")

    with serving(behave) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=5.0, retries=2)
        run = evaluate(ROWS, MakesClaims(), judge=judge, ledger=None)
    line = run.summary[0]
    assert (line.corrections, line.corrected, line.lost) == (5, 1, 2)
    assert corrections_text(run)
    assert corrections_text(run) in str(run)
    stored = run.to_dict()["scorers"][0]
    assert (stored["corrections"], stored["corrected"], stored["lost"]) == (5, 1, 2)
    assert sum(isinstance(record.outcome, Failed) for record in run) == 2


def test_a_correction_that_brought_prose_again_did_not_help() -> None:
    rows = [{"input": "q", "output": "Zed.", "context": ["p"]}]
    run = evaluate(rows, "relevancy_check", judge=ScriptedJudge([PROSE, PROSE]), ledger=None)
    line = run.summary[0]
    assert (line.corrections, line.corrected, line.lost) == (1, 0, 0)


def test_a_run_without_corrections_says_nothing_of_them() -> None:
    run = evaluate([{"output": "Ada."}], MakesClaims(), judge=ScriptedJudge([{"claims": ["Ada."]}]), ledger=None)
    assert not {"corrections", "corrected", "lost"} & run.to_dict()["scorers"][0].keys()


def test_a_call_that_had_no_answer_in_time_may_have_been_paid() -> None:
    with serving(lambda _, __: Response(body=GOOD, delay=0.5)) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, timeout=0.1)
        run = evaluate(ROWS[:1], MakesClaims(), judge=judge, ledger=None)
        assert len(server.requests) == 1
    line = run.summary[0]
    assert (line.corrections, line.corrected, line.lost) == (0, 0, 1)
    assert run.warnings == {"timeouts": 1}


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((5, 1, 2), "5 corrections of malformed replies, 1 helped; 2 judge calls were paid and gave no answer"),
        ((1, 0, 0), "1 correction of malformed replies, 0 helped"),
        ((0, 0, 1), "1 judge call was paid and gave no answer"),
        ((0, 0, 0), ""),
    ],
)
def test_what_a_run_says_of_its_corrections(counts: tuple[int, int, int], sentence: str) -> None:
    run = evaluate([{"output": "Ada."}], MakesClaims(), judge=ScriptedJudge([{"claims": ["Ada."]}]), ledger=None)
    corrections, corrected, lost = counts
    line = replace(run.summary[0], corrections=corrections, corrected=corrected, lost=lost)
    assert corrections_text(replace(run, summary=(line,))) == sentence


FLEET = ListClaims(text="The fleet has two ships. They sail at noon. The harbor is small.")
GROUNDED = ["The fleet has two ships.", "The harbor is small."]


def listed(*invented: str) -> dict[str, Any]:
    return completion(json.dumps({"claims": [*GROUNDED, *invented]}))


def test_a_correction_names_every_ungrounded_item_and_one_that_is_left_then_is_dropped() -> None:
    answer, requests = asked(listed("Lost in 1902.", "It flies."), listed("Lost in 1903."), GOOD, question=FLEET)
    assert isinstance(answer, JudgeAnswer)
    shown = requests[1]["messages"][-1]["content"]
    assert "claims.3: 'Lost in 1902.'" in shown
    assert "claims.4: 'It flies.'" in shown
    assert (answer.value, len(requests), answer.usage.requests) == (tuple(GROUNDED), 2, 2)
    why = "claims.3: 'Lost in 1903.' is not from the text, which doesn't have: 1903"
    assert drawn(answer) == {"dropped": [why]}
    assert json.loads(answer.reply or "") == {"claims": [*GROUNDED, "Lost in 1903."]}


def test_nothing_is_dropped_before_a_correction_could_help() -> None:
    answer, requests = asked(listed("Lost in 1902."), listed(), question=FLEET)
    assert isinstance(answer, JudgeAnswer)
    assert (answer.value, drawn(answer), len(requests)) == (tuple(GROUNDED), {}, 2)
    answer, requests = asked(completion("prose"), listed("Lost in 1902."), listed(), question=FLEET)
    assert isinstance(answer, JudgeAnswer)
    assert (answer.value, len(requests)) == (tuple(GROUNDED), 3)
    answer, requests = asked(completion("prose"), listed("Lost in 1902."), question=FLEET, retries=1)
    assert isinstance(answer, JudgeAnswer)
    assert answer.detail is not None
    assert (answer.value, len(answer.detail["dropped"]), len(requests)) == (tuple(GROUNDED), 1, 2)


def test_too_many_ungrounded_items_get_two_fresh_tries() -> None:
    several = listed("Lost in 1902.", "It flies.")
    answer, requests = asked(several, several, several, listed("It flies."), question=FLEET)
    assert isinstance(answer, JudgeAnswer)
    assert answer.value == tuple(GROUNDED)
    assert drawn(answer).keys() == {"temperature", "dropped"}
    assert [len(request["messages"]) for request in requests] == [2, 4, 2, 2]
    error, requests = asked(several, question=FLEET)
    assert isinstance(error, ReplyError)
    assert "claims.3: 'Lost in 1902.'" in str(error)
    assert "claims.4: 'It flies.'" in str(error)
    assert len(requests) == 4


def test_a_reply_that_repeats_itself_loses_no_items() -> None:
    claim = "They sail at noon."
    repeated = json.dumps({"claims": [*[f"{n}. {claim}" for n in range(1, 8)], "It flies."]})
    error, requests = asked(completion(repeated), question=FLEET)
    assert isinstance(error, ReplyError)
    assert len(requests) == 4
