"""Runs of pydantic-ai: their result, their messages and their spans are one sample."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, Tool, ToolReturn
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import (
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from evalstone import evaluate, load
from evalstone.agents.transcripts import read_transcript
from evalstone.datasets import sample_from
from evalstone.targets import Answer

QUESTION = "How is Bern?"


class City(BaseModel):
    name: str


def weather(city: str) -> ToolReturn:
    return ToolReturn(return_value="sunny", content=f"The map of {city} follows.")


def book(city: str) -> str:
    return f"booked {city}"


SEARCH = NativeToolCallPart("web_search", {"query": "Bern"}, tool_call_id="s1", provider_name="openai")
FOUND = NativeToolReturnPart("web_search", {"found": ["sun"]}, tool_call_id="s1", provider_name="openai")
WEATHER = ToolCallPart("weather", {"city": "Bern"}, tool_call_id="c1")
ANSWER = TextPart("It is sunny.")

RUNS: dict[str, tuple[list[list[Any]], Any, str]] = {
    "a text around reasoning": ([[TextPart("It is "), ThinkingPart("hm"), TextPart("sunny.")]], str, "It is sunny."),
    "a text before the call of the provider's tool": (
        [[TextPart("I look."), SEARCH, FOUND, ANSWER]],
        str,
        "It is sunny.",
    ),
    "a text beside the structured answer": (
        [[TextPart("Here."), ToolCallPart("final_result", {"name": "Bern"}, tool_call_id="f1")]],
        City,
        '{"name": "Bern"}',
    ),
    "a tool that has the model told more": ([[WEATHER], [ANSWER]], str, "It is sunny."),
    "a run that waits for an approval": (
        [[ToolCallPart("book", {"city": "Bern"}, tool_call_id="b1")]],
        [str, DeferredToolRequests],
        "",
    ),
}


@pytest.fixture(autouse=True)
def _loop_of_run_sync() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.parametrize("name", RUNS)
def test_every_account_of_a_run_is_the_same_sample(name: str) -> None:
    replies, output_type, output = RUNS[name]
    exporter, provider, said = InMemorySpanExporter(), TracerProvider(), iter(replies)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent: Agent[None, Any] = Agent(
        FunctionModel(lambda messages, info: ModelResponse(parts=next(said))),
        output_type=output_type,
        tools=[Tool(weather), Tool(book, requires_approval=True)],
        capabilities=[Instrumentation(InstrumentationSettings(tracer_provider=provider))],
    )
    result = agent.run_sync(QUESTION)
    spans = exporter.get_finished_spans()
    stored, traced = json.loads(result.all_messages_json()), [json.loads(span.to_json()) for span in spans]
    (in_file,) = load(traced).samples
    accounts = [in_file, sample_from({"messages": stored})]
    for returned in (result, stored, traced, Answer(trace=traced), Answer(trace=spans)):

        def target(*, input: str, returned: Any = returned) -> Any:
            return returned

        run = evaluate([{"input": QUESTION}], "max_tool_calls(limit=9)", target=target, ledger=None)
        accounts += list(run.samples or ())
    transcripts = [read_transcript(each) for each in (result, stored, traced)]
    assert [each.output for each in (*accounts, *transcripts)] == [output] * (len(accounts) + 3)
    assert {each.input for each in accounts} == {QUESTION}
    users = [[message.content for message in each.messages if message.role == "user"] for each in accounts]
    assert users == [[QUESTION]] * len(accounts)
    calls = [[call for message in each.messages for call in message.tool_calls] for each in (*accounts, *transcripts)]
    assert all(each == calls[0] for each in calls)
    texts = [[(m.role, m.content) for m in each.messages if m.content] for each in accounts]
    assert all(each == texts[0] for each in texts)
