"""Judges that log another one, or limit how much it is asked."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import field
from pathlib import Path
from typing import Any

import pytest

from evalstone import Limits, LoggingJudge, ModelJudge, Panel, ReplayJudge, evaluate
from evalstone.errors import ConfigError, ProviderError, RequestLimitReached
from evalstone.judges import ScriptedJudge
from evalstone.judges.base import Judge
from evalstone.questions import ListClaims
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from tests.fakes import Load, claims
from tests.serving import Response, completion, serving

ONE, TWO = ListClaims(text="one"), ListClaims(text="two")
KEY = 'sk-"secret"-\\key'


class Slow(Judge, eq=False):
    """Answers after a while, and notes how many questions were under way at once."""

    limits: Limits = Limits()
    load: Load = field(default_factory=Load)

    @property
    def identity(self) -> str:
        return "slow"

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        async with self.limits.admitted(self.identity):
            with self.load:
                await asyncio.sleep(0.01)
            return JudgeAnswer(value=("a",), judge="slow", reply='{"claims": ["a"]}')


def asked(judge: Judge, *questions: Question[Any]) -> list[Any]:
    async def work() -> list[Any]:
        async with judge.opened():
            return await asyncio.gather(*(judge.answer(question) for question in questions), return_exceptions=True)

    return asyncio.run(work())


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_every_answer_and_every_error_is_a_line_of_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    judge = LoggingJudge(ScriptedJudge([claims("a")], retries=0), path)
    asked(judge, ONE, TWO)
    first, second = lines(path)
    assert (first["judge"], first["calls"][0]["answer"], first["calls"][0]["question"]) == (
        "scripted",
        ["a"],
        "list_claims",
    )
    assert second["calls"][0]["answer"] is None
    assert "no answer" in second["calls"][0]["detail"]["error"]
    assert "inputs" not in first


def test_a_log_is_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    members = (ScriptedJudge([claims("a")], name="a"), ScriptedJudge([claims("b")], name="b"))
    asked(LoggingJudge(Panel(*members), path, include_inputs=True), ONE)
    assert lines(path)[0]["inputs"] == {"text": "one", "question": ""}
    (answer,) = asked(ReplayJudge.from_records(path), ONE)
    assert answer.value == ("a",)


def test_a_log_holds_what_was_asked_and_not_what_was_reused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    judge = LoggingJudge(Slow(), path)
    for _ in range(2):
        evaluate([{"output": "o", "context": ["o"]}], ["faithfulness"], judge=judge, ledger=tmp_path / "l.db")
    assert [line["calls"][0]["question"] for line in lines(path)].count("list_claims") == 1


def test_a_key_is_never_written(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    refusal = Response(400, {"error": {"message": f"this key is not liked: {KEY} and s3cret"}})
    with serving(lambda _, __: refusal) as server:
        model = ModelJudge("vllm/x", base_url=server.url, api_key=KEY, headers={"X-Key": "s3cret"}, total_timeout=2)
        (error,) = asked(LoggingJudge(model, path, include_inputs=True), ONE)
    assert isinstance(error, ProviderError)
    assert "secret" not in path.read_text("utf-8") + str(error)
    assert "*** and ***" in lines(path)[0]["calls"][0]["detail"]["error"]


def test_text_of_a_judge_cannot_begin_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    asked(LoggingJudge(ScriptedJudge([claims("a\n\u2028\x1b[31m{}")]), path), ONE)
    assert len(path.read_bytes().splitlines()) == 1
    assert b"\x1b" not in path.read_bytes()


def test_a_log_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="write the log"):
        LoggingJudge(Slow(), tmp_path / "none" / "log.jsonl").check()


def test_no_more_questions_are_in_flight_than_allowed() -> None:
    slow = Slow(limits=Limits(max_concurrency=2))
    asked(slow, *(ListClaims(text=str(number)) for number in range(9)))
    assert (slow.load.most, slow.load.count) == (2, 9)


def test_a_composite_has_limits_of_its_own_beside_its_members() -> None:
    one, two = Slow(limits=Limits(max_concurrency=3)), ScriptedJudge(lambda _: claims("b"))
    panel = Panel(one, two, limits=Limits(max_concurrency=2))
    answers = asked(panel, *(ListClaims(text=str(number)) for number in range(9)))
    assert [answer.value for answer in answers] == [("a",)] * 9
    assert one.load.most == 2


def test_a_model_has_no_more_requests_in_flight_than_allowed() -> None:
    with serving(lambda _, __: Response(body=completion('{"claims": ["a"]}'), delay=0.02)) as server:
        judge = ModelJudge("vllm/x", base_url=server.url, limits=Limits(max_concurrency=2))
        asked(judge, *(ListClaims(text=str(number)) for number in range(9)))
    assert (server.most_at_once, len(server.requests)) == (2, 9)


def test_no_more_questions_begin_in_a_minute_than_allowed() -> None:
    started = time.monotonic()
    # 1200 a minute are 20 a second, and a second's worth may be saved up.
    asked(Slow(limits=Limits(requests_per_minute=1200)), *(ListClaims(text=str(number)) for number in range(26)))
    assert 0.2 < time.monotonic() - started < 2


def test_max_requests_ends_a_run_and_the_next_run_has_its_own() -> None:
    slow = Slow(limits=Limits(max_requests=3))
    answers = asked(slow, *(ListClaims(text=str(number)) for number in range(5)))
    assert [type(answer) for answer in answers] == [JudgeAnswer] * 3 + [RequestLimitReached] * 2
    assert slow.load.count == 3
    samples = [{"id": str(number), "output": str(number), "context": ["p"]} for number in range(6)]
    members = (ScriptedJudge(lambda _: claims(), name="a"), ScriptedJudge(lambda _: claims(), name="b"))
    panel = Panel(*members, limits=Limits(max_requests=2))
    runs = [evaluate(samples, ["faithfulness"], judge=panel, ledger=None) for _ in range(2)]
    assert all(run.stop_reason == f"max_requests=2 of {panel.identity} is reached" for run in runs)
    assert all(len(run.records) == 2 for run in runs)


def test_max_requests_of_a_model_counts_its_http_requests_and_not_questions_that_wait() -> None:
    with serving(lambda _, number: completion("?" if number == 1 else '{"claims": ["a"]}')) as server:
        judge = ModelJudge("vllm/x", base_url=server.url, limits=Limits(max_requests=3, max_concurrency=1))
        answers = [asked(judge, ONE, TWO, ListClaims(text="three")) for _ in range(2)]
    # The first run corrects its first reply.
    assert [sum(isinstance(each, RequestLimitReached) for each in run) for run in answers] == [1, 0]
    assert len(server.requests) == 6


def test_a_wrapper_answers_under_the_name_of_its_judge() -> None:
    judge = LoggingJudge(ModelJudge("vllm/x", seed=1), "l.jsonl")
    assert judge.identity == ModelJudge("vllm/x", seed=1).identity
    assert LoggingJudge("vllm/x(seed=1)", "l.jsonl") == judge
    with pytest.raises(ConfigError, match="not 1"):
        LoggingJudge(1)  # pyright: ignore[reportArgumentType]
