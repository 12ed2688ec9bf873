"""What a very weak real model does to scores: nothing. Nothing here is about how good its verdicts are.

The model is SmolLM2-135M-Instruct. About 70 requests, five minutes on an idle core.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bench.llama import MODEL, WINDOW, Change, Exchange, proxy
from bench.real_model import SAMPLES, SCORERS, share_ended, unmeasured
from evalstone import Failed, LexicalJudge, ModelJudge, Record, Sample, Score, Skipped, evaluate
from evalstone._core.parsing import choice_schema, member, object_schema
from evalstone._core.prompts import Prompt
from evalstone.errors import JudgeDeclined
from evalstone.judges.model import opening_messages
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.probabilities import LabelProbabilities

A = TypeVar("A")

REPLY = 400
LONG = Sample(
    id="long",
    input="When does the library close?",
    output=" ".join(f"Branch {n} closes at {n % 12 + 1} pm on day {n}." for n in range(60)),
    context=[
        " ".join(f"The branch in street {n}, house {m}, is open until {m % 12 + 1} pm." for m in range(20))
        for n in range(40)
    ],
    reference=" ".join(f"Branch {n} closes at {n % 11 + 1} pm." for n in range(60)),
)


def judge(url: str, **settings: Any) -> ModelJudge:
    settings = {"max_tokens": REPLY, "context_window": WINDOW, "retries": 1, **settings}
    return ModelJudge(MODEL, base_url=url, **settings)


@dataclass(frozen=True)
class Measured:
    """A run, and what its judge was sent and said."""

    records: list[Record]
    exchanges: list[Exchange]


def measured(url: str, samples: list[Sample], *scorers: str, change: Change | None = None, **settings: Any) -> Measured:
    with proxy(url, change) as between:
        asked = judge(between.url, **settings)
        run = evaluate(samples, scorers, judge=asked, ledger=None, concurrency=1, progress=False)
        return Measured(list(run.records), between.exchanges)


@pytest.fixture(scope="module")
def usual(server: str) -> Measured:
    return measured(server, [SAMPLES[1]], *SCORERS)


def test_every_outcome_is_a_score_or_says_why_it_is_none_and_keeps_the_reply(usual: Measured) -> None:
    assert len(usual.records) == len(SCORERS)
    replies = [exchange.text for exchange in usual.exchanges]
    for record in usual.records:
        match record.outcome:
            case Score():
                assert all(call.reply in replies for call in record.calls)
            case Failed(error=error, reply=reply):
                assert error
                assert reply in replies
            case Skipped(reason=reason):
                assert reason


def of_nothing(got: Measured) -> list[str]:
    """What is wrong with the scores. A reason in words of the instructions may yet be about the sample."""
    found = [(record.signature, why) for record, reasons in unmeasured(got.records, got.exchanges) for why in reasons]
    return [f"{scorer}: {why}" for scorer, why in found if not why.startswith("reason copied")]


def test_no_score_is_from_a_placeholder_an_invented_claim_or_a_verdict_without_a_passage(usual: Measured) -> None:
    assert of_nothing(usual) == []


def test_most_first_replies_end_within_the_schema(usual: Measured) -> None:
    assert {exchange.status for exchange in usual.exchanges} == {200}
    assert share_ended(usual.exchanges) >= 0.6


def test_no_request_is_sent_again_as_it_was(usual: Measured) -> None:
    sent = [json.dumps(exchange.request, sort_keys=True) for exchange in usual.exchanges]
    assert len(set(sent)) == len(sent)


MARKS = ("1", "2", "3", "4", "5")
PICK_MARK = Prompt("Give the text a mark from 1 to 5.", "{{text}}")


class PickMark(Question[str]):
    """A mark from 1 to 5, and how probable each of them was."""

    kind = "pick_mark"
    text: str
    prompt: Prompt = PICK_MARK

    @property
    def label_probabilities(self) -> LabelProbabilities:
        return LabelProbabilities("mark", MARKS)

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return object_schema({"mark": choice_schema(MARKS)})

    def from_json(self, data: Any) -> str:
        return str(member(data, "mark"))


def test_the_probabilities_of_real_tokens_are_those_of_the_words_to_choose_from(server: str) -> None:
    answer = asyncio.run(judge(server, logprobs=True).answer(PickMark(text="Ships are large boats.")))
    assert answer.value in MARKS
    assert answer.probability is not None
    assert 0 < answer.probability <= 1
    assert answer.alternatives is not None
    assert set(answer.alternatives) <= set(MARKS)
    assert 0 < sum(answer.alternatives.values()) <= 1 + 1e-6
    assert max(answer.alternatives, key=lambda word: (answer.alternatives or {})[word]) == answer.value


def post(url: str, data: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(data).encode(), {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
        return json.load(response)


class Sized(ModelJudge):
    """Has the server count the tokens of each question, and answers in its place."""

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        root = (self.base_url or "").removesuffix("/v1")
        messages = [vars(message) for message in opening_messages(question, self.instructions)]
        prompt = (await asyncio.to_thread(post, f"{root}/apply-template", {"messages": messages}))["prompt"]
        tokens = len((await asyncio.to_thread(post, f"{root}/tokenize", {"content": prompt}))["tokens"])
        SIZES.append((question.kind, tokens))
        try:
            return replace(await LexicalJudge().answer(question), judge=self.identity)
        except JudgeDeclined:
            return JudgeAnswer(value=question.parse(json.dumps(question.example())), judge=self.identity)


SIZES: list[tuple[str, int]] = []


@pytest.mark.parametrize("scorer", [*SCORERS, "bias", "context_usage", "context_statement_relevancy", "summarization"])
def test_a_long_sample_is_asked_about_in_parts_that_the_window_holds(server: str, scorer: str) -> None:
    SIZES.clear()
    asked = Sized(MODEL, base_url=server, max_tokens=REPLY, context_window=WINDOW)
    (record,) = evaluate([LONG], scorer, judge=asked, ledger=None, progress=False).records
    assert [(kind, tokens) for kind, tokens in SIZES if tokens + REPLY > WINDOW] == []
    if isinstance(record.outcome, Failed):
        assert "context_window" in record.outcome.error


def without_schema(request: dict[str, Any], send: Callable[[Mapping[str, Any]], tuple[int, Any]]) -> tuple[int, Any]:
    request.pop("response_format", None)
    return send(request)


def empty(request: dict[str, Any], send: object) -> tuple[int, Any]:
    choice = {"message": {"role": "assistant", "content": ""}, "finish_reason": "length"}
    return 200, {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": request["max_tokens"]}}


def broken(request: dict[str, Any], send: object) -> tuple[int, Any]:
    return 500, {"error": {"message": "the model is gone", "type": "server_error"}}


def slow(request: dict[str, Any], send: object) -> tuple[int, Any]:
    time.sleep(1.5)
    return broken(request, send)


QUICK = {"timeout": 0.5, "total_timeout": 1.2, "retries": 0}


@pytest.mark.parametrize(
    ("change", "settings", "named", "most"),
    [
        (without_schema, {"max_tokens": 20, "retries": 0}, ("max_tokens",), 1),
        (empty, {"retries": 1}, ("max_tokens",), 2),
        (broken, QUICK, ("500", "timeout"), 9),
        (slow, QUICK, ("timeout", "max_tokens"), 1),
    ],
)
def test_what_goes_wrong_before_the_server_names_the_setting_that_helps(
    server: str, change: Change, settings: dict[str, Any], named: tuple[str, ...], most: int
) -> None:
    got = measured(server, [SAMPLES[1]], "answer_correctness", change=change, **settings)
    (outcome,) = (record.outcome for record in got.records)
    assert isinstance(outcome, Failed)
    assert all(name in outcome.error for name in named), outcome.error
    assert len(got.exchanges) <= most


def test_without_a_schema_the_prompt_alone_gives_no_score_that_measures_nothing(server: str) -> None:
    got = measured(server, [SAMPLES[1]], "faithfulness", change=without_schema)
    assert of_nothing(got) == []
    assert all(record.outcome.reply for record in got.records if isinstance(record.outcome, Failed))


def test_a_text_that_no_window_holds_and_that_is_judged_as_a_whole_names_the_setting(server: str) -> None:
    long = Sample(
        id="long", input="What are ships?", output="ships are large boats, " * 2000, context=("Ships float.",)
    )
    got = measured(server, [long], "relevancy_check", context_window=None)
    (outcome,) = (record.outcome for record in got.records)
    assert isinstance(outcome, Failed)
    assert "context_window" in outcome.error
    assert [exchange.status for exchange in got.exchanges] in ([], [400])


THINGS = (
    ("ferry", "takes 45 minutes", "takes 90 minutes"),
    ("library", "closes at 4 pm", "closes at 8 pm"),
    ("bridge", "was built in 1894", "was built in 1949"),
    ("museum", "is free on Fridays", "is free on Mondays"),
    ("bakery", "sells rye bread", "sells no bread"),
    ("river", "is 640 kilometres long", "is 460 kilometres long"),
    ("hotel", "has 12 rooms", "has 120 rooms"),
    ("market", "opens at dawn", "opens at noon"),
    ("tower", "is 90 metres high", "is 19 metres high"),
    ("school", "teaches French", "teaches Greek only"),
    ("bus", "leaves every hour", "leaves once a day"),
    ("garden", "grows tulips", "grows cacti"),
    ("theatre", "seats 300 people", "seats 30 people"),
    ("harbor", "freezes in winter", "never freezes"),
    ("mill", "grinds wheat", "saws timber"),
)


def test_a_calibration_of_the_judge_says_that_it_is_not_shown_to_beat_chance(server: str, tmp_path: Path) -> None:
    rows = [
        {"id": f"{thing}-{label}", "input": f"What about the {thing}?", "label": label}
        | {"output": f"The {thing} {said}.", "reference": f"The {thing} {right}."}
        for thing, right, wrong in THINGS
        for said, label in ((right, "yes"), (wrong, "no"))
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    spec = f"{MODEL}({server}, max_tokens=150, context_window={WINDOW}, retries=0)"

    def evalstone(*arguments: str) -> str:
        command = [sys.executable, "-m", "evalstone", *arguments, "--judge", spec, "--scorer", "answer_correctness"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode in (0, 3), done.stderr
        assert "Traceback" not in done.stderr
        return " ".join(done.stdout.split())

    assert re.search("not shown to be better than chance", evalstone("calibrate", "--labels", "rows.jsonl"))
    # The answers are in the ledger: nothing but what failed is asked again.
    assert re.search("not shown to be better than chance", evalstone("run", "two.jsonl"))
