"""Spans and metrics of runs and judge calls: what is under what, and what is counted once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

import evalstone
import evalstone.otel
from evalstone import Failed, ModelJudge, Panel, Sample, ScriptedJudge, aevaluate, evaluate
from evalstone._core.observe import NOBODY, observer
from evalstone.errors import AnswerPending, RunStopped
from evalstone.judges.embeddings import EmbeddingModel
from evalstone.judges.logging import LoggingJudge
from evalstone.otel.attributes import model_attributes, model_of
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.scorers import parse_scorers
from tests.fakes import claims, verdicts
from tests.otel.emitted import DURATION, Emitted, attributes, gen_ai, ids, parent_of
from tests.serving import Response, Server, completion, obliging, serving

SAMPLES = [
    {"id": f"q{n}", "input": f"Who? {n}", "output": f"Ada was {n}.", "context": [f"Ada was {n}."]} for n in range(8)
]
CONTAINS = "contains(expected=Ada)"


def model(server: Server, **settings: Any) -> ModelJudge:
    return ModelJudge("vllm/small", base_url=server.url, prices=(1.0, 2.0), **settings)


def saying(text: str) -> Callable[..., str]:
    def agent(*, input: str) -> str:
        return text

    return agent


def listener(*, messages: Sequence[Any]) -> str:
    return f"Ada {len(messages)}"


def malformed(*_: Any) -> Any:
    return completion("{}")


def answered(run: evalstone.Run) -> Sample:
    """The first sample of a run, with its answer."""
    return next(iter(run.samples or ()))


def under(emitted: Emitted, span: ReadableSpan) -> ReadableSpan:
    (found,) = [one for one in emitted.spans if ids(one) == parent_of(span)]
    return found


def test_judge_calls_are_under_their_sample_and_scorer_and_those_under_the_run(emitted: Emitted) -> None:
    with serving() as server, emitted.enabled():
        run = evaluate(SAMPLES, ["faithfulness", CONTAINS], judge=model(server), ledger=None)
    (root,) = emitted.named("evaluate ")
    assert root.parent is None
    assert attributes(root)["evalstone.run.id"] == run.id
    assert {ids(under(emitted, span)) for span in emitted.named("score ")} == {ids(root)}
    chats = emitted.named("chat small")
    assert len(chats) == len(server.requests) == 16
    by_sample: dict[str, list[str]] = {}
    for span in chats:
        above = under(emitted, span)
        assert above.name == "score faithfulness"
        by_sample.setdefault(attributes(above)["evalstone.sample.id"], []).append(
            attributes(span)["evalstone.question"]
        )
    assert by_sample == {f"q{n}": ["list_claims", "verify_claims"] for n in range(8)}


def test_a_chat_span_has_the_attributes_of_the_conventions(emitted: Emitted) -> None:
    with serving() as server, emitted.enabled():
        evaluate(SAMPLES[:1], "faithfulness", judge=model(server, seed=7, max_tokens=500), ledger=None)
    span = emitted.named("chat small")[0]
    port = int(server.url.rsplit(":", 1)[1].split("/")[0])
    assert span.kind is SpanKind.CLIENT
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "gen_ai.request.model": "small",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.seed": 7,
        "gen_ai.request.max_tokens": 500,
        "gen_ai.output.type": "json",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "server.address": "127.0.0.1",
        "server.port": port,
        "evalstone.question": "list_claims",
        "evalstone.judge": model(server, seed=7, max_tokens=500).identity,
        "evalstone.repeat": 0,
        "evalstone.source": "asked",
        "evalstone.cost": pytest.approx(0.00014),
    }
    assert attributes(span) == expected


def test_tokens_and_costs_are_counted_once_and_cached_answers_never(emitted: Emitted, tmp_path: Path) -> None:
    options: dict[str, Any] = {"ledger": tmp_path / "ledger.db", "cache": True}
    with serving() as server, emitted.enabled():
        judge = model(server)
        first = evaluate(SAMPLES, ["faithfulness", "hallucination"], judge=judge, **options)
        asked = len(server.requests)
        evaluate(SAMPLES, "faithfulness(scale=10)", judge=judge, **options)
        assert len(server.requests) == asked == 16
    assert len(emitted.named("chat ")) == 16
    for kind, total in {"input": 1600, "output": 320, "cache_read.input": 640}.items():
        ((key, point),) = emitted.metric(f"gen_ai.client.inference.usage.{kind}_tokens").items()
        assert (point.value, gen_ai(dict(key))["token.modality"]) == (total, "unknown")
    for kind, total in {"input": 1600, "output": 320}.items():
        ((key, point),) = emitted.metric(f"gen_ai.client.inference.operation.{kind}_tokens").items()
        assert (point.count, point.sum) == (16, total)
        assert "token.modality" not in gen_ai(dict(key))
    (cost,) = emitted.metric("evalstone.judge.cost").values()
    assert cost.value == pytest.approx(first.cost) == pytest.approx(16 * 0.00014)
    (seconds,) = emitted.metric(DURATION).values()
    assert seconds.count == 16
    reused = [*emitted.named("shared "), *emitted.named("cached ")]
    assert len(reused) == 32
    assert not [span for span in reused if gen_ai(span.attributes)]


NAMED = "gen_ai.evaluation.name"


def test_metrics_of_scores_have_no_ids_and_add_up(emitted: Emitted) -> None:
    with emitted.enabled():
        run = evaluate([*SAMPLES, {"id": "without"}], [CONTAINS, "faithfulness(scale=10)"], ledger=None)
    points = {dict(key)[NAMED]: (set(dict(key)), p) for key, p in emitted.metric("evalstone.score").items()}
    assert set(points) == {CONTAINS, "faithfulness(scale=10)"}
    for summary in run.summary:
        name = next(name for name in points if name.startswith(summary.info.name))
        names, point = points[name]
        assert names == {NAMED}
        assert (point.count, point.max <= 1) == (summary.n_score, True)
        assert point.sum / point.count == pytest.approx((summary.mean or 0) / summary.info.scale)
    outcomes = emitted.metric("evalstone.outcomes")
    assert sum(point.value for point in outcomes.values()) == len(run)
    assert {name for key in outcomes for name, _ in key} == {NAMED, "evalstone.outcome"}


def test_a_call_that_fails_says_how_and_ends(emitted: Emitted) -> None:
    def broken(request: dict[str, Any], number: int) -> Any:
        return Response(400, {"error": {"message": "no such grammar"}}) if number > 1 else obliging(request, number)

    with serving(broken) as server, emitted.enabled():
        evaluate(SAMPLES[:1], "faithfulness", judge=model(server), ledger=None)
    good, bad = emitted.named("chat ")
    assert good.status.status_code is StatusCode.UNSET
    assert bad.status.status_code is StatusCode.ERROR
    assert attributes(bad)["error.type"] == "RequestRefused"
    assert "no such grammar" in (bad.status.description or "")
    (scored,) = emitted.named("score ")
    assert attributes(scored)["error.type"] == "JudgeError"
    timed = {dict(key).get("error.type"): point.count for key, point in emitted.metric(DURATION).items()}
    assert timed == {None: 1, "RequestRefused": 1}


def test_a_shared_failure_is_paid_for_by_one_call(emitted: Emitted) -> None:
    with serving(malformed) as server, emitted.enabled():
        evaluate(SAMPLES[:1], ["faithfulness", "hallucination"], judge=model(server, retries=0), ledger=None)
    assert len(server.requests) == len(emitted.named("chat ")) == len(emitted.named("shared ")) == 1


def test_the_tokens_of_a_malformed_reply_are_counted(emitted: Emitted) -> None:
    with serving(malformed) as server, emitted.enabled():
        evaluate(SAMPLES[:1], "faithfulness", judge=model(server, retries=1), ledger=None)
    (span,) = emitted.named("chat ")
    assert gen_ai(span.attributes)["usage.input_tokens"] == 200
    assert attributes(span)["error.type"] == "ReplyError"


def test_spans_end_when_a_run_is_canceled(emitted: Emitted) -> None:
    asked = threading.Event()

    def slow(*_: Any) -> Response:
        asked.set()
        return Response(body=completion("{}"), delay=30)

    async def canceled(server: Server) -> None:
        task = asyncio.ensure_future(aevaluate(SAMPLES, "faithfulness", judge=model(server), ledger=None))
        await asyncio.to_thread(asked.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert trace.get_current_span() is trace.INVALID_SPAN

    with serving(slow) as server, emitted.enabled():
        asyncio.run(canceled(server))
    for name in ("evaluate ", "score ", "chat "):
        ended = emitted.named(name)
        assert ended
        assert {attributes(span)["error.type"] for span in ended} == {"CancelledError"}
        assert {span.status.status_code for span in ended} == {StatusCode.UNSET}


def test_the_members_of_a_panel_are_under_it(emitted: Emitted) -> None:
    with serving() as server, emitted.enabled():
        panel = Panel(model(server), ModelJudge("vllm/other", base_url=server.url))
        evaluate(SAMPLES[:1], "faithfulness", judge=panel, ledger=None)
    for name in ("chat small", "chat other"):
        for span in emitted.named(name):
            above = under(emitted, span)
            assert above.name.startswith("judge panel(")
            assert under(emitted, above).name == "score faithfulness"
    assert sum(point.count for point in emitted.metric(DURATION).values()) == len(server.requests)


def test_the_content_of_messages_is_there_only_when_asked_for(emitted: Emitted) -> None:
    asked = Emitted()
    with serving() as server:
        for into, content in ((emitted, False), (asked, True)):
            with into.enabled(content=content):
                evaluate(SAMPLES[:1], "faithfulness", judge=model(server), target=saying("Ada did."), ledger=None)
    assert not [name for span in emitted.spans for name in attributes(span) if "messages" in name]
    for span in (*asked.named("chat "), *asked.named("invoke_agent ")):
        sent, replied = (json.loads(attributes(span)[f"gen_ai.{way}.messages"]) for way in ("input", "output"))
        assert sent[-1]["role"] == "user"
        assert replied[0]["finish_reason"] == "stop"
    (call,) = asked.named("invoke_agent ")
    assert "Who? 0" in gen_ai(call.attributes)["input.messages"]
    assert "Ada did." in gen_ai(call.attributes)["output.messages"]


def test_a_resumed_run_emits_only_what_it_scores(emitted: Emitted, tmp_path: Path) -> None:
    stop, records = evalstone.StopSignal(), list[str]()

    def on_record(record: evalstone.Record) -> None:
        records.append(record.sample_id)
        stop.request("enough")

    with emitted.enabled():
        first = evaluate(SAMPLES, CONTAINS, ledger=tmp_path / "l.db", stop=stop, on_record=on_record, concurrency=1)
        assert len(emitted.events) == len(first) < 8
        evaluate(SAMPLES, CONTAINS, ledger=tmp_path / "l.db")
    assert sorted(event.attributes["evalstone.sample.id"] for event in emitted.events) == [f"q{n}" for n in range(8)]


def test_a_run_is_under_the_span_of_its_application(emitted: Emitted) -> None:
    with emitted.enabled(), trace.get_tracer("app", tracer_provider=emitted.tracers).start_as_current_span("job"):
        evaluate(SAMPLES[:1], CONTAINS, ledger=None)
    assert under(emitted, emitted.named("evaluate ")[0]).name == "job"


def test_a_run_has_the_same_records_with_telemetry_and_without(emitted: Emitted) -> None:
    def judge() -> ScriptedJudge:
        return ScriptedJudge([claims("Ada was 0."), verdicts("supported")])

    plain = evaluate(SAMPLES[:1], "faithfulness", judge=judge(), ledger=None)
    with emitted.enabled(content=True):
        traced = evaluate(SAMPLES[:1], "faithfulness", judge=judge(), ledger=None)

    def timeless(run: evalstone.Run) -> Any:
        (record,) = run
        calls = [{**call, "seconds": 0} for call in record.to_dict()["calls"]]
        return {**record.to_dict(), "seconds": 0, "calls": calls}

    assert timeless(plain) == timeless(traced)


def test_a_judge_that_breaks_the_rules_ends_its_span(emitted: Emitted) -> None:
    class Odd(evalstone.Judge):
        @property
        def identity(self) -> str:
            return "odd"

        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            return None  # pyright: ignore[reportReturnType]

    with emitted.enabled(), pytest.raises(evalstone.ConfigError):
        evaluate(SAMPLES[:1], "faithfulness", judge=Odd(), ledger=None)
    (span,) = emitted.named("judge odd")
    assert attributes(span)["error.type"] == "ConfigError"
    (run,) = emitted.named("evaluate ")
    assert run.status.status_code is StatusCode.ERROR


def test_nothing_is_emitted_before_and_after(emitted: Emitted) -> None:
    assert observer() is NOBODY
    evaluate(SAMPLES[:1], CONTAINS, ledger=None)
    with emitted.enabled():
        assert observer() is not NOBODY
    assert observer() is NOBODY
    evalstone.otel.enable(emitted.tracers, emitted.meters, emitted.loggers)
    evalstone.otel.disable()
    evaluate(SAMPLES[:1], CONTAINS, ledger=None)
    assert not emitted.spans
    assert not emitted.events


def test_leaving_an_outer_block_leaves_what_was_enabled_within_it(emitted: Emitted) -> None:
    inner = Emitted()
    with emitted.enabled():
        evalstone.otel.enable(inner.tracers, inner.meters, inner.loggers)
    evaluate(SAMPLES[:1], CONTAINS, ledger=None)
    assert (len(emitted.events), len(inner.events)) == (0, 1)


def test_without_opentelemetry_the_extra_is_named() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
import evalstone, evalstone.otel
for use in (evalstone.otel.enable, evalstone.otel.export_otlp, lambda: evalstone.otel.emit(None, None)):
    try:
        use()
    except evalstone.MissingDependency as error:
        print(error)
evalstone.otel.disable()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("[otel]") == 3


def test_opentelemetry_is_not_imported_until_it_is_enabled() -> None:
    code = "import sys, evalstone, evalstone.otel, evalstone.cli.app; evalstone.evaluate"
    code += "; print('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_failure_of_one_sample_is_no_error_of_the_run(emitted: Emitted) -> None:
    with emitted.enabled():
        run = evaluate([Sample(id="a", input="x", reference="x")], "exact_match", target=saying("y"), ledger=None)
    assert not [record for record in run if isinstance(record.outcome, Failed)]
    (root,) = emitted.named("evaluate ")
    assert "error.type" not in attributes(root)


def test_without_a_tracer_there_are_events_and_metrics_and_no_traces(emitted: Emitted) -> None:
    with evalstone.otel.enable(trace.NoOpTracerProvider(), emitted.meters, emitted.loggers, content=True):
        run = evaluate(SAMPLES[:1], CONTAINS, target=saying("Ada"), ledger=None)
    (event,) = emitted.events
    assert event.parent == (0, 0)
    assert "trace" not in answered(run).metadata
    assert emitted.metric("evalstone.target.duration")


def test_what_is_not_sampled_is_named_by_events_all_the_same(emitted: Emitted) -> None:
    tracers = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    with evalstone.otel.enable(tracers, emitted.meters, emitted.loggers, content=True):
        run = evaluate(SAMPLES[:1], CONTAINS, target=saying("Ada"), ledger=None)
    (event,) = emitted.events
    assert f"{event.span_id:016x}" == answered(run).metadata["trace"]["span_id"]


def test_models_behind_other_endpoints_are_named_as_the_conventions_name_them(tmp_path: Path) -> None:
    logged = LoggingJudge(ModelJudge("mistral/large", api_key="mk-0123456789abc"), tmp_path / "judge.jsonl")
    found = model_of(logged)
    assert found is not None
    own = model_attributes(found)
    assert gen_ai(own) == {"operation.name": "chat", "provider.name": "mistral_ai", "request.model": "large"}
    assert {name: own[name] for name in own if not name.startswith("gen_ai.")} == {
        "server.address": "api.mistral.ai",
        "server.port": 443,
    }
    embeddings = model_attributes(EmbeddingModel("openai/text-embedding-3-small"))
    assert gen_ai(embeddings)["operation.name"] == "embeddings"
    assert model_of(ScriptedJudge([])) is None


@pytest.mark.parametrize("error", [RunStopped("enough"), AnswerPending("later")])
def test_a_score_that_stays_open_is_no_error(emitted: Emitted, error: Exception) -> None:
    (scorer,) = parse_scorers(CONTAINS)
    with emitted.enabled(), pytest.raises(type(error)), observer().score(scorer, Sample(output="Ada")):
        raise error
    (span,) = emitted.spans
    assert (span.status.status_code, attributes(span)["error.type"]) == (StatusCode.UNSET, type(error).__name__)
    assert not emitted.events
