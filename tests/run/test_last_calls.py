"""A run that an error ends waits for its calls in flight and keeps them; it opens no more files than it may."""

from __future__ import annotations

import asyncio
import resource
import time
from dataclasses import field
from pathlib import Path
from typing import Any

import pytest

import evalstone
from evalstone import Judge, JudgeAnswer, ModelJudge, evaluate
from evalstone.datasets import write_jsonl
from evalstone.errors import JudgeError, JudgeRefused, JudgeUnavailable, RunAborted, TargetUnavailable
from evalstone.models.limits import Limits
from evalstone.questions.base import Question
from evalstone.results.endings import JUDGE_REFUSED, STOPPED
from evalstone.run import workers
from evalstone.scale import score_shard
from evalstone.targets import FunctionTarget
from tests.serving import Response, obliging, serving

SAMPLES = [{"id": f"s{n}", "input": "q", "output": f"Paris is {n}.", "context": [f"Paris is {n}."]} for n in range(60)]
SLOTS = 20


def first_ones(response: Response) -> Any:
    """Refuse ten requests at once, and answer the others after a while."""

    def behave(request: dict[str, Any], number: int) -> Response:
        return response if number <= 10 else Response(body=obliging(request, number), delay=0.4)

    return behave


@pytest.mark.parametrize(("status", "error"), [(400, JudgeUnavailable), (401, JudgeRefused)])
@pytest.mark.slow
def test_calls_in_flight_are_kept_when_the_judge_ends_the_run(
    status: int, error: type[RunAborted], tmp_path: Path
) -> None:
    with serving(first_ones(Response(status, {"error": {"message": "no"}}))) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        with pytest.raises(error) as ended:
            evaluate(SAMPLES, "context_relevance", judge=judge, ledger=tmp_path / "l.db", concurrency=SLOTS)
        sent = len(server.requests)
        kept = sum(record.value is not None for record in ended.value.run)
        assert sent >= SLOTS
        assert kept == sent - 10
        run = evaluate(SAMPLES, "context_relevance", judge=judge, ledger=tmp_path / "l.db", concurrency=SLOTS)
        assert (run["context_relevance"].n_score, len(server.requests)) == (60, sent + 60 - kept)


class Stuck(Judge, eq=False):
    """Refuses the first question because of its key, and fails on the others after some seconds."""

    seconds: float
    asked: list[str] = field(default_factory=list[str])

    @property
    def identity(self) -> str:
        return "stuck"

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        self.asked.append(question.fingerprint)
        if len(self.asked) == 1:
            await asyncio.sleep(0.05)
            raise JudgeRefused("the key has expired")
        await asyncio.sleep(self.seconds)
        raise JudgeError("no")


@pytest.mark.parametrize(("seconds", "kept"), [(0.3, SLOTS), (60.0, 0)])
def test_calls_in_flight_are_awaited_for_a_limited_time(
    seconds: float, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "LAST_CALLS", 1.0)
    judge = Stuck(seconds=seconds)
    with pytest.raises(JudgeRefused) as ended:
        evaluate(SAMPLES, "context_relevance", judge=judge, ledger=None, concurrency=SLOTS)
    assert ended.value.run.ending is JUDGE_REFUSED
    # One more call took the place of the refused one before the run ended.
    assert (len(judge.asked), len(ended.value.run)) == (SLOTS + 1, kept)


def test_a_block_awaits_calls_in_flight_for_a_limited_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(workers, "LAST_CALLS", 0.2)
    write_jsonl(tmp_path / "d.jsonl", SAMPLES)
    judge, began = Stuck(seconds=60.0), time.monotonic()
    with pytest.raises(JudgeRefused):
        score_shard(
            tmp_path / "d.jsonl", "context_relevance", 1, 1, out=tmp_path / "out", judge=judge, concurrency=SLOTS
        )
    assert len(judge.asked) <= SLOTS + 1
    assert time.monotonic() - began < 30


def test_answers_of_a_target_in_flight_are_kept(tmp_path: Path) -> None:
    calls = list[str]()

    async def agent(*, input: str) -> str:
        calls.append(input)
        if len(calls) <= 10:
            await asyncio.sleep(0.05)
            raise RuntimeError("no database")
        await asyncio.sleep(0.3)
        return "Paris"

    target = FunctionTarget(function=agent, label="agent", limits=Limits(max_concurrency=20))
    rows = [{"id": f"s{n}", "input": f"q{n}", "reference": "Paris"} for n in range(60)]
    with pytest.raises(TargetUnavailable) as ended:
        evaluate(rows, "contains", target=target, ledger=tmp_path / "l.db")
    assert ended.value.run["contains"].n_score == len(calls) - 10 >= 10
    before = len(calls)
    run = evaluate(rows, "contains", target=target, ledger=tmp_path / "l.db")
    assert (run["contains"].n_score, len(calls) - before) == (60, 60 - (before - 10))


def test_an_exception_in_a_callback_ends_the_calls_of_it_and_keeps_the_judges(tmp_path: Path) -> None:
    seen = list[str]()

    def fail(record: evalstone.Record) -> None:
        seen.append(record.sample_id)
        raise RuntimeError("enough")

    with serving(lambda request, n: Response(body=obliging(request, n), delay=0.01 * n)) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        with pytest.raises(RuntimeError, match="enough"):
            evaluate(SAMPLES, "context_relevance", judge=judge, ledger=tmp_path / "l.db", concurrency=8, on_record=fail)
    assert len(seen) == 1
    run = evalstone.read_run("last", ledger=tmp_path / "l.db")
    assert (run.ending, len(run)) == (STOPPED, len(server.requests))


def allow(files: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def limits(_: int) -> tuple[int, int]:
        return files, files

    monkeypatch.setattr(resource, "getrlimit", limits)


@pytest.mark.parametrize(("files", "most"), [(64, 32), (256, 40), (resource.RLIM_INFINITY, 40)])
def test_a_run_opens_no_more_connections_than_files_are_allowed(
    files: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(files, monkeypatch)
    with serving(lambda request, n: Response(body=obliging(request, n), delay=0.2)) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        run = evaluate(SAMPLES, "context_relevance", judge=judge, ledger=None, concurrency=40)
    assert (run.complete, server.most_at_once) == (True, most)


def test_a_target_and_its_judge_share_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(20, monkeypatch)
    calls = [0, 0]

    async def agent(*, input: str) -> str:
        calls[0] += 1
        calls[1] = max(calls)
        await asyncio.sleep(0.02)
        calls[0] -= 1
        return "Paris"

    target = FunctionTarget(function=agent, limits=Limits(max_concurrency=30))
    rows = [{"id": f"s{n}", "input": f"q{n}", "reference": "Paris"} for n in range(60)]
    evaluate(rows, "contains", target=target, ledger=None)
    assert calls[1] == 5
