"""What judges cost, as metrics and spans say it: what the records say, whatever became of the calls."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from evalstone import ModelJudge, Run, Score, evaluate
from tests.otel.emitted import DURATION, Emitted, attributes, gen_ai
from tests.run.batch_runs import A_QUESTION, BOTH, Call
from tests.run.conftest import run, server
from tests.serving import Response, Server, completion, obliging, serving

__all__ = ["run", "server"]

SAMPLES = [{"id": f"q{n}", "output": f"Ada was {n}.", "context": [f"Ada was {n}."]} for n in range(12)]


def judge(server: Server, **settings: Any) -> ModelJudge:
    return ModelJudge("vllm/small", base_url=server.url, prices=(1.0, 2.0), **settings)


def exported(emitted: Emitted) -> tuple[float, float]:
    """The cost in the metric, and the one in the spans."""
    metric = sum(point.value for point in emitted.metric("evalstone.judge.cost").values())
    return metric, sum(attributes(span).get("evalstone.cost", 0.0) for span in emitted.named("chat "))


def tokens(emitted: Emitted) -> float:
    names = [f"gen_ai.client.inference.usage.{kind}_tokens" for kind in ("input", "output")]
    return sum(point.value for name in names for point in emitted.metric(name).values())


def recorded(runs: Iterable[Run]) -> int:
    steps = (call for run in runs for record in run.records for call in record.calls)
    return sum(step.usage.input + step.usage.output for step in steps)


def test_what_was_retried_malformed_and_refused_costs_what_the_summary_says(emitted: Emitted, tmp_path: Path) -> None:
    def troubled(request: dict[str, Any], number: int) -> Any:
        said = json.dumps(request)
        if "was 3" in said:
            return Response(status=400, body={"error": {"message": "refused"}})
        if number % 5 == 0:
            return Response(status=503, headers={"Retry-After": "0"})
        return completion("{}") if "was 4" in said or number % 4 == 0 else obliging(request, number)

    options: dict[str, Any] = {"ledger": tmp_path / "ledger.db", "concurrency": 4}
    with serving(troubled) as server, emitted.enabled():
        scorers = ["faithfulness", "hallucination"]
        first = evaluate(SAMPLES, scorers, judge=judge(server, retries=2), **options)
    assert exported(emitted) == (pytest.approx(first.cost), pytest.approx(first.cost))
    assert tokens(emitted) == recorded([first])
    usage = emitted.metric("gen_ai.client.inference.operation.input_tokens").values()
    assert all(point.min > 0 for point in usage)  # calls without an answer have no tokens, not zero
    assert {record.sample_id for record in first.records if not isinstance(record.outcome, Score)} >= {"q3", "q4"}


def test_every_call_of_a_run_that_its_budget_stops_and_that_goes_on_is_counted_once(
    emitted: Emitted, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"ledger": tmp_path / "ledger.db", "concurrency": 2}
    with serving() as server, emitted.enabled():
        stopped = evaluate(SAMPLES, "faithfulness", judge=judge(server), budget=0.0025, **options)
        assert not stopped.complete
        done = evaluate(SAMPLES, "faithfulness", judge=judge(server), **options)
    assert done.complete
    assert len(server.requests) == 24
    assert exported(emitted) == (pytest.approx(24 * 0.00014), pytest.approx(24 * 0.00014))


@BOTH
def test_batches_are_counted_when_their_answers_come(emitted: Emitted, server: Any, run: Call, model: str) -> None:
    with emitted.enabled():
        for _ in range(2):
            run("faithfulness", "hallucination", model=model)
        done = run("faithfulness", "hallucination", model=model)
        run("faithfulness", model=model)
    assert done.cost is not None
    assert exported(emitted) == (pytest.approx(done.cost), 0)
    assert tokens(emitted) == recorded([done])
    assert not emitted.metric(DURATION)


def test_a_batch_that_fails_costs_what_it_cost(emitted: Emitted, server: Any, run: Call) -> None:
    def empty(_: Any) -> str:
        return "{}"

    server.behaviour = empty
    with emitted.enabled():
        done = [run("faithfulness", "hallucination", settings={"retries": 1}) for _ in range(3)][-1]
    assert done.complete
    assert done.cost == pytest.approx(8 * A_QUESTION)
    assert exported(emitted) == (pytest.approx(done.cost), 0)


def test_the_model_that_replied_is_named(emitted: Emitted) -> None:
    def named(request: dict[str, Any], number: int) -> dict[str, Any]:
        return {**obliging(request, number), "model": "small-2026 \x1b[2J"}

    with serving(named) as server, emitted.enabled():
        evaluate(SAMPLES[:1], "faithfulness", judge=judge(server), ledger=None)
    replied = {gen_ai(span.attributes)["response.model"] for span in emitted.named("chat ")}
    assert replied == {"small-2026 \\u001b[2J"}


def test_the_last_reply_of_a_call_that_failed_is_content(emitted: Emitted) -> None:
    def odd(*_: Any) -> Any:
        return completion('{"odd": 1}')

    with serving(odd) as server, emitted.enabled(content=True):
        evaluate(SAMPLES[:1], "faithfulness", judge=judge(server, retries=1), ledger=None)
    (span,) = emitted.named("chat ")
    assert '{\\"odd\\": 1}' in gen_ai(span.attributes)["output.messages"]
