"""Runs through a provider's batch API: rounds, what is put again, and what is paid."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evalstone import BatchOptions, Failed, ModelJudge, Score, Scorer, Skipped, evaluate
from evalstone.errors import BatchError
from evalstone.models.batch.anthropic import AnthropicBatches
from evalstone.models.batch.openai import OpenAIBatches
from evalstone.questions import ListClaims
from evalstone.questions.base import Ask
from evalstone.run.budget import StopSignal
from tests.batch_serving import BatchServer, schema_of, willing
from tests.run.batch_runs import A_QUESTION, ANTHROPIC, BOTH, OPENAI, SAMPLES, Call
from tests.serving import Response, completion, serving


@BOTH
def test_a_scorer_of_two_questions_takes_two_batches_and_gives_the_numbers_of_a_direct_run(
    server: BatchServer, run: Call, model: str
) -> None:
    first = run(model=model)
    assert (len(first), first.batches) == (0, ("batch_0",))
    assert "batch batch_0 (" in first.stop_reason
    second = run(model=model)
    assert (len(second), second.batches, second.id) == (0, ("batch_1",), first.id)
    third = run(model=model)
    assert third.complete
    assert third.id == first.id
    assert [len(batch.requests) for batch in server.batches] == [4, 4]
    with serving() as direct:
        judge = ModelJudge("vllm/gpt-4o", base_url=direct.url)
        assert (
            third.summary[0].interval == evaluate(SAMPLES, "faithfulness", judge=judge, ledger=None).summary[0].interval
        )
    assert run(model=model).complete
    assert len(server.batches) == 2


def test_what_a_run_paid_is_half_the_price_and_told_once_though_its_rounds_were_separate_calls(
    server: BatchServer, run: Call
) -> None:
    for _ in range(2):
        run("faithfulness", "hallucination")
    done = run("faithfulness", "hallucination")
    assert done.cost == pytest.approx(8 * A_QUESTION)
    assert sum(line.asked for line in done.summary) == 8
    assert sum(line.shared for line in done.summary) == 8
    assert run("faithfulness", "hallucination").cost == 0.0
    assert len(server.requests) == 8


def test_the_turns_of_a_conversation_go_into_one_batch(server: BatchServer, run: Call) -> None:
    talks = [{"id": n, "turns": [{"input": "And?", "output": f"{n}{m}.", "context": [n]} for m in "ab"]} for n in "xy"]
    scorer = {"name": "per_turn", "scorer": "faithfulness"}
    for _ in range(2):
        assert len(run(scorer, samples=talks)) == 0
    done = run(scorer, samples=talks)
    assert done.complete
    assert [len(batch.requests) for batch in server.batches] == [4, 4]
    assert done.cost == pytest.approx(8 * A_QUESTION)


def test_while_a_batch_is_under_way_the_same_call_submits_nothing_and_says_how_far_it_is(
    server: BatchServer, run: Call
) -> None:
    server.holding = True
    run()
    server.batches[0].results = dict.fromkeys(list(server.batches[0].requests)[:3], "{}")
    again = run()
    assert again.stop_reason.endswith("batch_0 (3 of 4 done)")
    assert len(server.batches) == 1


def test_another_run_of_the_same_judge_leaves_the_questions_of_an_open_batch_alone_and_can_read_them(
    server: BatchServer, run: Call
) -> None:
    server.holding = True
    run("faithfulness")
    other = run("hallucination")
    assert other.batches == ("batch_0",)
    assert len(server.batches) == 1
    server.finish()
    assert run("hallucination").batches == ("batch_1",)
    server.finish()
    assert run("hallucination").complete
    server.holding = False
    assert run("faithfulness").complete
    assert len(server.requests) == 8


@pytest.mark.parametrize("is_async", [False, True])
def test_waiting_goes_through_all_rounds_in_one_call_and_tells_what_it_waits_for(
    server: BatchServer, run: Call, is_async: bool
) -> None:
    server.holding = True
    told: list[str] = []

    def on_state(state: str) -> None:
        told.append(state)
        server.finish()

    async def on_state_later(state: str) -> None:
        await asyncio.sleep(0)
        on_state(state)

    done = run(batch=BatchOptions(wait=True, on_state=on_state_later if is_async else on_state))
    assert done.complete
    assert done.cost == pytest.approx(8 * A_QUESTION)
    assert [state.partition(" (")[0].rpartition(" ")[2] for state in told] == ["batch_0", "batch_1"]


def test_what_on_state_raises_ends_the_run_and_the_batches_are_collected_later(server: BatchServer, run: Call) -> None:
    server.holding = True

    def on_state(_: str) -> None:
        raise ZeroDivisionError("no luck")

    with pytest.raises(ZeroDivisionError, match="no luck"):
        run(batch=BatchOptions(wait=True, on_state=on_state))
    server.holding = False
    server.finish()
    assert run(batch=BatchOptions(wait=True)).complete
    assert len(server.requests) == 8


class Together(Scorer):
    """Asks two questions at once."""

    name = "together"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        found = await asyncio.gather(*(ask(ListClaims(text=f"{output} {n}")) for n in range(2)))
        return Score(float(len(found) == 2))


class Grouped(Scorer):
    """Asks two questions in a group of tasks, whose errors come as a group."""

    name = "grouped"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        async with asyncio.TaskGroup() as group:
            for n in range(2):
                group.create_task(ask(ListClaims(text=f"{output} {n}")))
        return Score(1.0)


class Forgiving(Scorer):
    """Takes whatever goes wrong for a 0."""

    name = "forgiving"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        try:
            return Score(float(bool(await ask(ListClaims(text=output)))))
        except Exception:  # noqa: BLE001 - what this scorer is here for
            return Score(0.0)


@pytest.mark.parametrize(("scorer", "questions"), [(Together(), 8), (Grouped(), 8), (Forgiving(), 4)])
def test_all_questions_asked_at_once_go_into_one_batch_and_no_code_of_a_scorer_can_take_waiting_for_an_answer(
    server: BatchServer, run: Call, scorer: Scorer, questions: int
) -> None:
    assert len(run(scorer)) == 0
    assert [len(batch.requests) for batch in server.batches] == [questions]
    assert run(scorer).summary[0].mean == 1.0


def always(said: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda _: said


def user_turns(request: dict[str, Any]) -> list[str]:
    return [turn["content"] for turn in request["messages"] if turn["role"] == "user"]


def corrected_only(request: dict[str, Any]) -> str:
    return willing(request) if len(user_turns(request)) > 1 else "I cannot say"


def test_those_who_wait_for_a_batch_that_another_reads_go_on_and_nothing_is_asked_twice(
    server: BatchServer, run: Call
) -> None:
    stop = StopSignal()
    limit = threading.Timer(20, stop.request, ("it waits for ever",))
    limit.start()
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(run, batch=BatchOptions(wait=True), stop=stop) for _ in range(3)]
        done = [each.result() for each in waiting]
    limit.cancel()
    assert [each["faithfulness"].n_score for each in done] == [len(SAMPLES)] * 3
    assert len(server.requests) == 2 * len(SAMPLES)


@BOTH
def test_a_reply_that_is_no_answer_is_shown_to_the_model_in_the_next_batch(
    server: BatchServer, run: Call, model: str
) -> None:
    server.behaviour = corrected_only
    done = [run(model=model) for _ in range(5)][-1]
    assert done.complete
    assert done.summary[0].mean == 1.0
    assert [len(batch.requests) for batch in server.batches] == [4] * 4
    corrected = next(iter(server.batches[1].requests.values()))
    assert [turn["role"] for turn in corrected["messages"]][-3:] == ["user", "assistant", "user"]
    assert corrected["messages"][-2]["content"] == "I cannot say"
    assert "cannot be used" in corrected["messages"][-1]["content"]
    assert done.warnings["malformed replies"] == 8


def test_an_answer_costs_what_the_attempts_before_it_cost_too(server: BatchServer, run: Call) -> None:
    server.behaviour = corrected_only
    done = [run() for _ in range(5)][-1]
    assert done.complete
    assert done.cost == pytest.approx(16 * A_QUESTION)


def test_what_never_reads_as_an_answer_fails_after_the_retries_with_all_that_it_cost(
    server: BatchServer, run: Call
) -> None:
    server.behaviour = always("no")
    for _ in range(2):
        assert not run("faithfulness", "hallucination", settings={"retries": 1}).complete
    done = run("faithfulness", "hallucination", settings={"retries": 1})
    assert done.complete
    assert [type(record.outcome) for record in done] == [Failed] * 8
    failed = done.records[0].outcome
    assert isinstance(failed, Failed)
    assert ("complete JSON" in failed.error, failed.reply) == (True, "no")
    assert done.cost == pytest.approx(8 * A_QUESTION)
    assert len(server.requests) == 8
    run(settings={"retries": 1})
    assert len(server.requests) == 12


@BOTH
def test_requests_that_expired_are_asked_again_and_those_that_were_answered_are_not(
    server: BatchServer, run: Call, model: str
) -> None:
    server.holding = True
    run(model=model)
    server.finish(status="expired", only=3)
    run(model=model)
    assert [len(batch.requests) for batch in server.batches] == [4, 4]
    asked = [json.dumps(request) for request in server.batches[1].requests.values()]
    assert sum("Passage" not in request for request in asked) == 1
    server.holding = False
    server.finish()
    assert [run(model=model).complete for _ in range(2)] == [False, True]
    assert len(server.requests) == 9


@BOTH
def test_a_setting_that_is_refused_is_left_out_from_then_on_by_later_calls_too(
    server: BatchServer, run: Call, model: str
) -> None:
    def cool(request: dict[str, Any]) -> Any:
        refusal = Response(400, "temperature is not supported by this model")
        return refusal if "temperature" in request else willing(request)

    server.behaviour = cool
    for _ in range(3):
        run(model=model, settings={"retries": 0})
    done = run(model=model, settings={"retries": 0})
    assert done.complete
    assert done.summary[0].n_score == 4
    assert ["temperature" in request for request in server.requests] == [True] * 4 + [False] * 8
    assert {call.refused_settings for record in done.records for call in record.calls} == {("temperature",)}
    assert done.warnings["temperature refused"] == 8


def test_a_request_that_is_refused_for_good_fails_at_once(server: BatchServer, run: Call) -> None:
    server.behaviour = always(Response(400, "too many tokens"))
    run()
    done = run()
    assert done.complete
    failed = done.records[0].outcome
    assert isinstance(failed, Failed)
    assert re.search("gpt-4o .* 400: too many", failed.error)
    assert len(server.batches) == 1


def test_a_reply_without_any_verdict_fails_the_sample(server: BatchServer, run: Call) -> None:
    def without_verdicts(request: dict[str, Any]) -> str:
        return json.dumps({"verdicts": {}}) if "verdicts" in schema_of(request)["properties"] else willing(request)

    server.behaviour = without_verdicts
    for _ in range(2):
        run(settings={"retries": 0})
    assert {type(record.outcome) for record in run(settings={"retries": 0})} == {Failed}


def test_a_batch_that_the_provider_did_not_work_on_ends_the_run_and_is_submitted_again_by_the_same_call(
    server: BatchServer, run: Call
) -> None:
    server.holding = True
    run()
    server.refuse("Your account has reached its billing hard limit")
    with pytest.raises(BatchError, match=r"batch_0 .*: Your account"):
        run()
    assert run().batches == ("batch_1",)
    server.finish()
    assert run().batches == ("batch_2",)


def test_a_batch_that_is_more_than_may_wait_at_a_time_is_put_again_in_parts_one_after_another(
    server: BatchServer, run: Call
) -> None:
    server.holding = True
    run()
    server.refuse("Enqueued token limit reached for gpt-4o in organization x. Limit: 90,000 enqueued tokens.")

    def on_state(_: str) -> None:
        server.finish()

    assert run(batch=BatchOptions(wait=True, on_state=on_state)).complete
    assert [len(batch.requests) for batch in server.batches] == [4, 2, 2, 2, 2]


@BOTH
def test_more_questions_than_a_batch_holds_go_into_several(
    server: BatchServer, run: Call, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = OpenAIBatches if model == OPENAI else AnthropicBatches
    monkeypatch.setattr(kind, "most_requests", 3)
    assert run(model=model).batches == ("batch_0", "batch_1")
    assert [len(batch.requests) for batch in server.batches] == [3, 1]
    monkeypatch.setattr(kind, "most_bytes", 7000)
    run(model=model)
    for batch in server.batches[2:]:
        assert len(batch.requests) < 4
    assert run(model=model).complete
    assert len(server.requests) == 8
    assert len({name for batch in server.batches for name in batch.requests}) == 8


@BOTH
def test_requests_of_more_bytes_than_a_batch_holds_go_into_several(
    server: BatchServer, run: Call, model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kind = OpenAIBatches if model == OPENAI else AnthropicBatches
    request, lengths = kind.request, list[int]()

    def noted(*arguments: Any) -> bytes:
        line = request(*arguments)
        lengths.append(len(line) + 1)
        return line

    monkeypatch.setattr(kind, "request", noted)
    run(model=model)
    assert len(lengths) == 4
    monkeypatch.setattr(kind, "most_bytes", sum(lengths[:2]) + 1000)
    run(model=model, ledger=tmp_path / "other.db")
    assert [len(batch.requests) for batch in server.batches] == [4, 2, 2]


FILTERED = "The response was filtered due to the prompt triggering the content management policy."
ERROR = {"message": FILTERED, "code": "content_filter"}
STOPPED: Any = {"content": [], "stop_reason": "refusal", "usage": {"input_tokens": 60, "output_tokens": 1}}


@pytest.mark.parametrize(
    ("model", "result", "told"),
    [
        (OPENAI, Response(400, {"error": ERROR}), "the provider blocked the text: The response was filtered"),
        (OPENAI, Response(200, {"choices": None, "error": ERROR}), "the provider blocked the text: The response was"),
        (OPENAI, Response(200, completion("", finish="content_filter")), "the provider blocked the text: a content"),
        (
            ANTHROPIC,
            Response(400, "Output blocked by content filtering policy"),
            "the provider blocked the text: Output",
        ),
        (ANTHROPIC, Response(200, STOPPED), "the model declined to reply"),
    ],
)
def test_a_text_that_is_blocked_or_declined_in_a_batch_is_skipped_and_not_sent_again(
    server: BatchServer, run: Call, model: str, result: Response, told: str
) -> None:
    server.behaviour = always(result)
    run(model=model)
    done = run(model=model)
    assert done.complete
    for record in done:
        assert isinstance(record.outcome, Skipped)
        assert record.outcome.reason.startswith(told)
    assert len(server.batches) == 1


@pytest.mark.parametrize(
    ("code", "batches"), [(429, 2), (502, 2), ("rate_limit_exceeded", 2), (400, 1), ("invalid_request", 1)]
)
def test_an_error_inside_a_result_is_what_its_code_says(
    server: BatchServer, run: Call, code: int | str, batches: int
) -> None:
    server.behaviour = always(Response(200, {"choices": None, "error": {"message": "It failed", "code": code}}))
    while not (done := run(settings={"retries": 1})).complete:
        pass
    assert len(server.batches) == batches
    outcome = done.records[0].outcome
    assert isinstance(outcome, Failed)
    assert "It failed" in outcome.error
    assert done.cost == 0


def test_a_model_without_a_system_role_gets_its_instructions_in_the_first_message(
    server: BatchServer, run: Call
) -> None:
    def without_system(request: dict[str, Any]) -> Any:
        has_system = request["messages"][0]["role"] == "system"
        return Response(400, "System role not supported") if has_system else willing(request)

    server.behaviour = without_system
    for _ in range(3):
        run(settings={"retries": 0})
    done = run(settings={"retries": 0})
    assert done.complete
    assert done.summary[0].n_score == 4
    assert [request["messages"][0]["role"] for request in server.requests] == ["system"] * 4 + ["user"] * 8


def test_a_prompt_that_the_server_cuts_is_put_into_the_next_batch_in_parts(server: BatchServer, run: Call) -> None:
    sample = {"output": "Ada was born.", "context": [f"House {n} was built by the old mayor." for n in range(1200)]}

    def cutting(request: dict[str, Any]) -> Any:
        words = sum(len(message["content"].split()) for message in request["messages"])
        usage = {"prompt_tokens": min(4096, round(1.3 * words)), "completion_tokens": 20}
        return Response(200, completion(willing(request)) | {"usage": usage})

    server.behaviour = cutting
    while not (done := run(samples=[sample])).complete:
        pass
    assert done.records[0].value is not None
    assert [len(batch.requests) for batch in server.batches][:2] == [1, 1]
    assert any("cut the prompt" in str(call.detail) for call in done.records[0].calls)


@BOTH
@pytest.mark.parametrize("keep", [False, True])
def test_reasoning_in_front_of_answers_and_of_replies_is_treated_as_in_a_direct_run(
    server: BatchServer, run: Call, model: str, keep: bool
) -> None:
    draft = '<think>Maybe {"reason": "No.", "verdict": "no"}?</think>\n'

    def after_a_draft(request: dict[str, Any]) -> str:
        return draft + '{"reason": "The passage says so.", "verdict": "yes"}'

    server.behaviour = after_a_draft
    samples = [{"id": "a", "input": "Where?", "output": "<think>In Rome?</think>In Bern.", "context": ["In Bern."]}]
    settings: dict[str, Any] = {"model": model, "samples": samples, "keep_reasoning": keep}
    assert not run("relevancy_check", **settings).complete
    done = run("relevancy_check", **settings)
    assert [record.value for record in done.records] == [1]
    assert done.keeps_reasoning is keep
    (request,) = server.requests
    assert ("Rome" in json.dumps(request)) is keep
