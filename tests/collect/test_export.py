"""The real SDK of OpenTelemetry and pydantic-ai's instrumentation, exporting over loopback."""

from __future__ import annotations

import asyncio
import functools
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Status, StatusCode, set_span_in_context
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from evalstone.collect.server import Receiver
from evalstone.collect.spool import Spool
from evalstone.datasets import load
from evalstone.errors import DataError
from tests.serving import on_a_thread
from tests.traced import chat, message

ANSWER = "It will be sunny in Bern."


@contextmanager
def receiving(path: Path) -> Generator[str]:
    """A receiver on a thread of its own; its URL."""
    urls: list[str] = []

    async def serve(ready: Callable[[], None], stop: asyncio.Event) -> None:
        receiver = Receiver(Spool(path))
        urls.append(await receiver.start("127.0.0.1", 0))
        ready()
        await stop.wait()
        await receiver.stop()

    with on_a_thread(serve):
        yield urls[0]


@contextmanager
def tracing(url: str, compression: Compression = Compression.Gzip) -> Generator[TracerProvider]:
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    exporter = OTLPSpanExporter(endpoint=f"{url}/v1/traces", compression=compression)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    try:
        yield provider
    finally:
        provider.shutdown()


class Forecast(BaseModel):
    """A structured answer."""

    sky: str


def weather_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if info.output_tools and isinstance(messages[-1].parts[-1], ToolReturnPart):
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"sky": "clear"}, tool_call_id="c2")])
    if isinstance(messages[-1].parts[-1], ToolReturnPart):
        return ModelResponse(parts=[TextPart(ANSWER)])
    return ModelResponse(parts=[ToolCallPart("weather", {"city": "Bern"}, tool_call_id="c1")])


def agent(
    provider: TracerProvider, version: Literal[2, 3, 4, 5, 6], output: Any = str, **more: Any
) -> Agent[None, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions that are deprecated
        settings = InstrumentationSettings(tracer_provider=provider, version=version, **more)
    made = Agent(FunctionModel(weather_model), output_type=output, name="guide", instructions="Be brief.")
    made.instrument = settings

    @made.tool_plain
    def weather(city: str) -> str:  # pyright: ignore[reportUnusedFunction]
        return f"clear over {city}"

    return made


@pytest.mark.parametrize("version", [2, 3, 4, 5, 6])
def test_pydantic_ai_exports_what_becomes_a_sample(tmp_path: Path, version: Literal[2, 3, 4, 5, 6]) -> None:
    compression = Compression.Gzip if version % 2 else Compression.NoCompression
    with receiving(tmp_path / "t.jsonl") as url, tracing(url, compression) as provider:
        asyncio.run(agent(provider, version).run("Weather in Bern?"))
    dataset = load(tmp_path / "t.jsonl")
    assert dataset.notes == ()
    (sample,) = dataset.samples
    assert (sample.input, sample.output) == ("Weather in Bern?", ANSWER)
    assert (sample.instructions, sample.context) == ("Be brief.", None)
    assert [each.role for each in sample.messages] == ["system", "user", "assistant", "assistant"]
    (call,) = sample.messages[2].tool_calls
    assert (call.name, call.arguments, call.result) == ("weather", {"city": "Bern"}, "clear over Bern")
    assert sample.trajectory is not None
    (step,) = sample.trajectory.steps
    assert step.data["tool_args"] == {"city": "Bern"}
    assert step.seconds is not None
    assert sample.metadata["trace"]["entity"] == "guide"
    assert sample.metadata["trace"]["service"] == "shop"
    assert sample.metadata["target"]["usage"]["requests"] == 2
    assert sample.metadata["target"]["seconds"] > 0


def test_a_structured_answer_of_pydantic_ai_is_the_output(tmp_path: Path) -> None:
    with receiving(tmp_path / "t.jsonl") as url, tracing(url) as provider:
        asyncio.run(agent(provider, 5, Forecast).run("Weather in Bern?"))
    (sample,) = load(tmp_path / "t.jsonl").samples
    assert sample.output == '{"sky": "clear"}'


def test_content_that_is_not_captured_is_said(tmp_path: Path) -> None:
    with receiving(tmp_path / "t.jsonl") as url, tracing(url) as provider:
        asyncio.run(agent(provider, 5, include_content=False).run("Weather in Bern?"))
    with pytest.raises(DataError, match="1 × a trace without content"):
        load(tmp_path / "t.jsonl")


def test_spans_events_and_log_records_of_the_sdk_become_one_sample(tmp_path: Path) -> None:
    with receiving(tmp_path / "t.jsonl") as url, tracing(url) as provider:
        logging = LoggerProvider(resource=Resource({"service.name": "shop"}))
        logging.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{url}/v1/logs")))
        tracer = provider.get_tracer("test")
        with tracer.start_as_current_span("POST /ask"):
            with tracer.start_as_current_span("retrieval handbook") as found:
                found.set_attribute("gen_ai.operation.name", "retrieval")
                found.set_attribute("gen_ai.retrieval.documents", '[{"id": "d1", "content": "Carry an umbrella."}]')
            with tracer.start_as_current_span("chat gpt-5.1") as model:
                model.set_attribute("gen_ai.operation.name", "chat")
                model.set_status(Status(StatusCode.ERROR, "cut short"))
                logging.get_logger("test").emit(
                    LogRecord(
                        event_name="gen_ai.client.inference.operation.details",
                        severity_number=SeverityNumber.INFO,
                        attributes=chat([message("user", "Umbrella?")], "Yes."),
                        context=set_span_in_context(model),
                    )
                )
        logging.shutdown()
    (sample,) = load(tmp_path / "t.jsonl").samples
    assert (sample.input, sample.output, sample.context) == ("Umbrella?", "Yes.", ("Carry an umbrella.",))
    assert sample.metadata["error"] == "cut short"


def test_exports_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    with receiving(tmp_path / "t.jsonl") as url:

        def export(number: int) -> None:
            with tracing(url) as provider:
                for each in range(20):
                    call = chat([message("user", f"question {number} {each}")], "a")
                    provider.get_tracer("test").start_span("chat", attributes=call).end()

        async def main() -> None:
            await asyncio.gather(*(asyncio.to_thread(functools.partial(export, number)) for number in range(5)))

        asyncio.run(main())
    questions = {sample.input for sample in load(tmp_path / "t.jsonl")}
    assert questions == {f"question {number} {each}" for number in range(5) for each in range(20)}
