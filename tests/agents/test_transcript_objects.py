"""Transcripts as the objects of their libraries; what is refused, and where."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import datetime
import enum
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessagesTypeAdapter, ModelRetry
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel

from evalstone import load
from evalstone.agents.transcripts import Transcript, read_transcript
from evalstone.datasets import sample_from
from evalstone.errors import DataError, TargetError
from evalstone.targets.answers import answer_of
from evalstone.types import NO_USAGE, Message, ToolCall, Usage

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "transcripts"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))


def fixture(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["transcript"]


def library_class(module: str, name: str, **fields: Any) -> Any:
    """An object of a library that is not installed here: its class's module and name, and the attributes read of it."""
    return type(name, (), {"__module__": module, **fields})()


# pydantic-ai


@pytest.fixture(autouse=True)
def _loop_of_run_sync() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """The event loop that pydantic-ai's run_sync uses; one of its own would never be closed."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


def test_a_run_of_pydantic_ai_is_read() -> None:
    agent = Agent(TestModel(custom_output_text="It is sunny."), instructions="Be brief.")

    @agent.tool_plain
    def weather(city: str) -> str:
        return f"sunny in {city}"

    run = agent.run_sync("Weather in Bern?")
    transcript = read_transcript(run)
    assert (transcript.format, transcript.output) == ("pydantic-ai", "It is sunny.")
    assert [message.role for message in transcript.messages] == ["system", "user", "assistant", "assistant"]
    (call,) = transcript.messages[2].tool_calls
    assert (call.name, dict(call.arguments), call.result, call.state) == (
        "weather",
        {"city": "a"},
        "sunny in a",
        "result",
    )
    assert transcript.usage == Usage(run.usage.input_tokens, run.usage.output_tokens, 0, 2)
    assert read_transcript(run.all_messages()) == transcript
    assert read_transcript(run.all_messages_json()) == transcript
    assert read_transcript({"messages": run.all_messages()}).messages == transcript.messages


def test_a_structured_answer_of_pydantic_ai_is_json() -> None:
    class Forecast(BaseModel):
        sky: str
        high: int

    model = TestModel(custom_output_args={"sky": "clear", "high": 21})
    transcript = read_transcript(Agent(model, output_type=Forecast).run_sync("Weather?"))
    assert transcript.output is not None
    assert json.loads(transcript.output) == {"sky": "clear", "high": 21}
    assert transcript.messages[-1].tool_calls[0].arguments == {"sky": "clear", "high": 21}


def test_a_retry_of_pydantic_ai_is_a_failed_call() -> None:
    turns = iter([ToolCallPart("tides", {"harbor": "Basel"}, tool_call_id="c1"), TextPart("There are none.")])

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[next(turns)])

    agent = Agent(FunctionModel(answer))

    @agent.tool_plain
    def tides(harbor: str) -> str:
        raise ModelRetry(f"{harbor}: no sea")

    transcript = read_transcript(agent.run_sync("Tides?"))
    (call,) = transcript.messages[1].tool_calls
    assert call.state == "error"
    assert call.error is not None
    assert "Basel: no sea" in call.error


def test_what_pydantic_ai_says_of_an_answer_is_neither_a_question_nor_an_instruction() -> None:
    replies = iter(("", "bad", "good"))
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent = Agent(
        FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart(next(replies))])),
        retries=3,
        capabilities=[Instrumentation(InstrumentationSettings(tracer_provider=provider))],
    )

    @agent.output_validator
    def check(answer: str) -> str:
        if answer != "good":
            raise ModelRetry(f"not good: {answer}")
        return answer

    result = agent.run_sync("How is it?")
    spans = [json.loads(span.to_json()) for span in exporter.get_finished_spans()]
    stored = json.loads(result.all_messages_json())
    for messages in (
        read_transcript(result).messages,
        read_transcript(stored).messages,
        read_transcript(spans).messages,
    ):
        assert [(message.role, message.content) for message in messages] == [
            ("user", "How is it?"),
            ("assistant", ""),
            ("tool", "Please return text."),
            ("assistant", "bad"),
            ("tool", "not good: bad"),
            ("assistant", "good"),
        ]
    (traced,) = load(spans).samples
    sample = sample_from({"messages": stored})
    assert (sample.input, sample.output, sample.instructions) == ("How is it?", "good", None)
    assert (traced.input, traced.output, traced.instructions) == ("How is it?", "good", None)


@pytest.mark.parametrize(
    "text",
    [
        "Validation feedback:\nnot good\n\nFix the errors and try again.",
        "1 validation error:\n```json\n[]\n```\n\nFix the errors and try again.",
        "<system>Please return text or call a tool.</system>",
        "Please include your response in a tool call, or return an image.",
    ],
)
def test_feedback_of_pydantic_ai_in_the_users_name_is_told_from_questions(text: str) -> None:
    asked = {"role": "user", "content": "How is it?"}
    messages = [asked, {"role": "assistant", "content": "bad"}, {"role": "user", "content": text}]
    assert [message.role for message in read_transcript(messages).messages] == ["user", "assistant", "tool"]
    for question in (f"{text} Now.", "Please return text to the sender.", "<system>Be kind.</system>"):
        assert read_transcript([{"role": "user", "content": question}]).messages[0].role == "user"


def test_pydantic_ai_s_stored_messages_are_those_of_the_objects() -> None:
    stored = fixture("pydantic_ai")
    assert read_transcript(ModelMessagesTypeAdapter.validate_python(stored)) == read_transcript(stored)


PARTS: list[tuple[dict[str, Any], list[Message]]] = [
    ({"part_kind": "retry-prompt", "content": "again"}, [Message(role="tool", content="again")]),
    (
        {"part_kind": "retry-feedback", "content": [{"loc": ["sky"]}]},
        [Message(role="tool", content='[{"loc": ["sky"]}]')],
    ),
    ({"part_kind": "speech", "transcript": "Hello."}, [Message(role="user", content="Hello.")]),
    (
        {"part_kind": "speech", "transcript": "Hello.", "audio": {"data": "AA"}},
        [Message(role="user", content="Hello.", attachments=("audio",))],
    ),
    (
        {"part_kind": "instruction-baseline", "instructions": [{"content": "Be brief."}]},
        [Message(role="system", content="Be brief.")],
    ),
    ({"part_kind": "user-prompt", "content": ["q", {"kind": "cache-point"}]}, [Message(role="user", content="q")]),
    ({"part_kind": "user-prompt", "content": "q"}, [Message(role="user", content="q")]),
    ({"part_kind": "model-settings-delta", "settings": {}}, []),
]


@pytest.mark.parametrize(("part", "expected"), PARTS)
def test_each_part_of_a_request_of_pydantic_ai_is_read(part: dict[str, Any], expected: list[Message]) -> None:
    assert list(read_transcript([{"kind": "request", "parts": [part]}]).messages) == expected


def test_each_part_of_a_response_of_pydantic_ai_is_read() -> None:
    parts = [{"part_kind": "compaction", "content": "In short."}, {"part_kind": "speech", "transcript": "Sunny."}]
    (message,) = read_transcript([{"kind": "response", "parts": parts}]).messages
    assert message == Message(role="assistant", content="Sunny.", reasoning="In short.")
    with pytest.raises(DataError, match=r"\[0\]\.parts\[0\]: .* part_kind;"):
        read_transcript([{"kind": "response", "parts": [{"content": "x"}]}])
    with pytest.raises(DataError, match=r"\[0\]\.parts\[0\]: .* object, not 'x'"):
        read_transcript([{"kind": "response", "parts": ["x"]}])


# the SDKs of providers: imported by the tests that need them, as they take seconds


@pytest.fixture
def anthropic_message() -> Any:
    from anthropic.types import Message  # noqa: PLC0415

    return Message.model_validate(fixture("anthropic_message"))


@pytest.fixture
def gemini() -> Any:
    from google.genai import types  # noqa: PLC0415

    return types


def test_objects_of_the_sdks_of_providers_are_read_like_their_json(anthropic_message: Any, gemini: Any) -> None:
    assert read_transcript(anthropic_message) == read_transcript(fixture("anthropic_message"))
    response = gemini.GenerateContentResponse.model_validate(fixture("gemini_response"))
    assert read_transcript(response) == read_transcript(fixture("gemini_response"))
    contents = [gemini.Content.model_validate(content) for content in fixture("gemini_contents")]
    assert read_transcript(contents) == read_transcript(fixture("gemini_contents"))


def test_a_history_that_mixes_objects_and_data_is_read(anthropic_message: Any) -> None:
    transcript = read_transcript(
        [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": anthropic_message.content}]
    )
    assert transcript.format == "Anthropic"
    assert transcript.messages[1].content == read_transcript(anthropic_message).output


def test_a_prompt_that_gemini_blocked_has_no_answer(gemini: Any) -> None:
    response = gemini.GenerateContentResponse.model_validate(
        {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}
    )
    transcript = read_transcript(response)
    assert (transcript.format, transcript.messages, transcript.output) == ("Gemini", (), None)


def test_a_request_to_gemini_is_read() -> None:
    contents = [{"role": "user", "parts": [{"text": "q"}]}]
    for system in ("Be brief.", {"parts": [{"text": "Be brief."}]}):
        transcript = read_transcript({"systemInstruction": system, "contents": contents})
        assert transcript.messages == (Message(role="system", content="Be brief."), Message(role="user", content="q"))


def test_the_instructions_of_a_response_may_be_items() -> None:
    response = {"object": "response", "instructions": [{"role": "developer", "content": "Be brief."}], "output": []}
    assert read_transcript(response).messages == (Message(role="system", content="Be brief."),)


class Sky(enum.StrEnum):
    CLEAR = "clear"


def test_the_results_of_tools_are_data() -> None:
    result = {"at": datetime.date(2026, 1, 2), "map": b"ab", "sky": Sky.CLEAR, "where": ("Bern", 1)}
    part = {"type": "tool_result", "tool_use_id": "c1", "content": result}
    talk: list[Any] = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
        {"role": "user", "content": [part]},
    ]
    (message,) = read_transcript(talk).messages
    assert message.tool_calls[0].result == {"at": "2026-01-02", "map": "YWI=", "sky": "clear", "where": ["Bern", 1]}


def test_the_content_of_a_response_alone_is_a_transcript(anthropic_message: Any) -> None:
    assert read_transcript(anthropic_message.content).output == read_transcript(fixture("anthropic_message")).output
    items = fixture("openai_responses")["output"]
    assert read_transcript(items).messages == read_transcript(fixture("openai_responses")).messages[1:]
    assert read_transcript(items[:4]).messages == read_transcript(fixture("openai_responses")).messages[1:5]


# frameworks that are not installed here


def _items(_run: object) -> Any:
    return fixture("openai_agents")


def _no_items(_run: object) -> list[Any]:
    return []


def test_a_run_of_the_openai_agents_sdk_is_read() -> None:
    details = library_class("openai.types", "InputTokensDetails", cached_tokens=4)
    usage = library_class(
        "agents.usage", "Usage", requests=3, input_tokens=30, output_tokens=15, input_tokens_details=details
    )
    run = library_class(
        "agents.result",
        "RunResult",
        to_input_list=_items,
        context_wrapper=library_class("agents.run_context", "RunContextWrapper", usage=usage),
        final_output="It will be sunny in Bern.",
    )
    transcript = read_transcript(run)
    assert transcript.format == "OpenAI Agents"
    assert transcript.usage == Usage(30, 15, 4, 3)
    assert transcript.messages == read_transcript(fixture("openai_agents")).messages


def test_a_structured_answer_of_the_openai_agents_sdk_is_json() -> None:
    @dataclasses.dataclass
    class Forecast:
        sky: str

    run = library_class("agents.result", "RunResult", to_input_list=_no_items, final_output=Forecast("clear"))
    assert read_transcript(run) == Transcript(
        messages=(), output='{"sky": "clear"}', context=None, usage=NO_USAGE, cost=None, format="OpenAI Agents"
    )


class HumanMessage(BaseModel):
    content: str
    type: str = "human"


class ToolMessage(BaseModel):
    content: str
    artifact: Any
    tool_call_id: str = "c1"
    type: str = "tool"


class AIMessage(BaseModel):
    content: str
    tool_calls: list[dict[str, Any]] = []
    type: str = "ai"


class Document(BaseModel):
    page_content: str
    type: str = "Document"


def test_the_state_of_a_graph_is_read_with_what_it_retrieved() -> None:
    state = {
        "messages": [
            HumanMessage(content="Umbrella?"),
            AIMessage(content="", tool_calls=[{"name": "handbook", "args": {}, "id": "c1"}]),
            ToolMessage(content="1 passage", artifact=[Document(page_content="Carry one.")]),
            AIMessage(content="Yes."),
        ],
        "documents": [Document(page_content="In April.")],
        "lock": object(),
        "structured_response": {"umbrella": True},
    }
    transcript = read_transcript(state)
    assert transcript.format == "LangGraph"
    assert transcript.context == ("Carry one.", "In April.")
    assert transcript.messages[1].tool_calls == (ToolCall(name="handbook", result="1 passage", id="c1"),)
    assert transcript.output == '{"umbrella": true}'
    del state["structured_response"]
    assert read_transcript(state).output == "Yes."
    assert read_transcript(state["messages"]).format == "LangChain"


def test_messages_of_our_own_are_a_transcript() -> None:
    messages = [Message(role="user", content="q"), Message(role="assistant", content="a", usage=Usage(3, 2, 0, 1))]
    transcript = read_transcript(messages)
    assert (transcript.format, transcript.messages) == ("evalstone", tuple(messages))
    assert (transcript.output, transcript.usage) == ("a", Usage(3, 2, 0, 1))
    assert read_transcript(transcript) is transcript


# the answer, the tokens and the cost


def test_the_answer_is_what_was_said_since_the_user_spoke_last() -> None:
    talk = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}]
    assert read_transcript(talk).output is None
    assert read_transcript([*talk, {"role": "assistant", "content": "b"}]).output == "b"


@pytest.mark.parametrize("encode", [str, str.encode])
def test_a_text_may_have_a_byte_order_mark_and_any_line_separator_inside(encode: Callable[[str], str | bytes]) -> None:
    text = '\ufeff{"role": "user", "content": "q"}\r\n{"role": "assistant", "content": "a\u2028\u0085b"}\n'
    assert read_transcript(encode(text)).output == "a\u2028\u0085b"


def test_what_a_run_says_at_its_end_is_the_answer() -> None:
    stream = fixture("claude_code_stream")
    stream[-1]["result"] = "Done."
    assert read_transcript(stream).output == "Done."
    alone = read_transcript(stream[-1])
    assert (alone.messages, alone.output, alone.cost) == ((), "Done.", 0.0321)


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ({"subtype": "error_max_turns"}, "error_max_turns"),
        ({"subtype": "error_max_budget_usd", "errors": ["it cost 5 US dollars"]}, "it cost 5 US dollars"),
        ({"subtype": "success", "result": "API Error: 529 overloaded"}, "API Error: 529 overloaded"),
    ],
)
def test_a_run_that_failed_has_no_answer(end: dict[str, Any], error: str) -> None:
    *stream, result = fixture("claude_code_stream")
    del result["result"]
    failed = [*stream, {**result, "is_error": True, **end}]
    transcript = read_transcript(failed)
    assert (transcript.output, transcript.error) == (None, error)
    assert transcript.messages == read_transcript(fixture("claude_code_stream")).messages
    for row in ({"messages": failed}, {"input": "Umbrella?", "output": failed}):
        (sample,) = load([row]).samples
        assert (sample.output, sample.messages[-1]) == (None, transcript.messages[-1])
    with pytest.raises(TargetError, match=error):
        answer_of(failed)


def test_the_structured_answer_of_a_run_is_its_answer() -> None:
    stream = fixture("claude_code_stream")
    stream[-1]["structured_output"] = {"umbrella": False}
    assert read_transcript(stream).output == '{"umbrella": false}'


def test_the_messages_of_the_claude_agent_sdk_are_those_of_its_stream() -> None:
    def sdk(kind: str, **fields: Any) -> Any:
        made = library_class("claude_agent_sdk.types", kind)
        for field, value in fields.items():
            setattr(made, field, value)
        return made

    usage = {"input_tokens": 100, "output_tokens": 20}
    thought = sdk("ThinkingBlock", thinking="A city.", signature="s")
    call = sdk("ToolUseBlock", id="toolu_1", name="weather", input={"city": "Oslo"})
    returned = sdk("ToolResultBlock", tool_use_id="toolu_1", content="station offline", is_error=True)
    told = sdk("TextBlock", text="Station is offline.")
    run = [
        sdk("SystemMessage", subtype="init", data={"type": "system", "subtype": "init", "session_id": "s"}),
        sdk("AssistantMessage", content=[thought], model="claude", message_id="m1", usage=usage, error=None),
        sdk("AssistantMessage", content=[call], model="claude", message_id="m1", usage=usage, error=None),
        sdk("UserMessage", content=[returned], parent_tool_use_id=None),
        sdk("StreamEvent", uuid="u", session_id="s", event={"type": "message_start"}),
        sdk("AssistantMessage", content=[told], model="claude", message_id="m2", usage=usage, error=None),
        sdk("ResultMessage", subtype="success", is_error=False, session_id="s", result="Offline.", total_cost_usd=0.01),
    ]
    transcript = read_transcript(run)
    assert (transcript.format, transcript.output, transcript.cost) == ("Claude Code", "Offline.", 0.01)
    assert [(m.role, m.content, m.reasoning) for m in transcript.messages] == [
        ("assistant", "", "A city."),
        ("assistant", "Station is offline.", None),
    ]
    (called,) = transcript.messages[0].tool_calls
    assert (called.name, called.arguments, called.state) == ("weather", {"city": "Oslo"}, "error")
    assert transcript.usage == Usage(200, 40, requests=2)
    assert answer_of(run).messages == transcript.messages
    assert read_transcript(run[-1]).output == "Offline."


@pytest.mark.parametrize("key", ["isApiErrorMessage", "error"])
def test_what_is_said_where_a_model_could_not_be_reached_is_no_answer(key: str) -> None:
    def line(role: str, text: str, **more: Any) -> dict[str, Any]:
        said = {"role": role, "content": [{"type": "text", "text": text}]}
        return {"type": role, "sessionId": "s", "message": said, **more}

    failed = line("assistant", "API Error: 529 overloaded", **{key: True if key.startswith("is") else "server_error"})
    session = [line("user", "Hi?"), failed]
    transcript = read_transcript(session)
    assert ([m.role for m in transcript.messages], transcript.output) == (["user"], None)
    assert transcript.error == "API Error: 529 overloaded"
    again = read_transcript([*session, line("user", "Again?"), line("assistant", "Hello.")])
    assert (again.output, again.error) == ("Hello.", "")


def test_the_lines_of_a_subagent_alone_are_a_transcript() -> None:
    lines = [line for line in fixture("claude_code_session") if line.get("isSidechain")]
    transcript = read_transcript(lines)
    assert [message.role for message in transcript.messages] == ["user", "assistant"]
    assert "Thun leave hourly" in (transcript.output or "")


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, 2, 4)),
        ({"input_tokens": 9, "output_tokens": 2, "input_token_details": {"cache_read": 4}}, Usage(9, 2, 4)),
        (
            {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1},
            Usage(10, 2, 4),
        ),
        ({"inputTokens": 9, "outputTokens": 2, "cachedInputTokens": 4, "cacheCreationInputTokens": 1}, Usage(9, 2, 4)),
        ({"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 3}, Usage(9, 5, 0)),
        ({"input_tokens": True, "output_tokens": -1}, None),
    ],
)
def test_the_tokens_of_each_provider_are_counted_alike(usage: Any, expected: Usage | None) -> None:
    (message,) = read_transcript([{"role": "assistant", "content": "a", "usage": usage}]).messages
    assert message.usage == expected


# what is refused


REFUSED: list[tuple[Any, str]] = [
    (5, "unknown transcript format: int; the known formats are Claude Code, ATIF,"),
    ([], "unknown transcript format: list, empty;"),
    ({"answer": "x", "score": 1}, "unknown transcript format: dict with answer, score;"),
    ([{"a": 1}], "unknown transcript format: list of dict with a;"),
    ("It is sunny.", "a transcript as text must be JSON or JSON Lines, not 'It is sunny.'"),
    (b'{"role": "user", "content": "caf\xe9"}', "a transcript as text must be JSON or JSON Lines, not b'"),
    (
        [{"role": "user", "content": "q"}, {"role": "user", "content": ["a", {"data": 1}]}],
        "OpenAI chat: messages[1].content[1]: a part with no type is not understood; it has data",
    ),
    (
        [{"role": "assistant", "content": None, "tool_calls": [{"name": "f"}, {"id": "c2", "name": 5}]}],
        "OpenAI chat: messages[0].tool_calls[1]: a tool call must have a name, not only id, name",
    ),
    (
        [{"role": "assistant", "content": None, "toolCalls": {"name": "f"}}],
        "OpenAI chat: messages[0].toolCalls: tool calls must be a list, not dict: {'name': 'f'}",
    ),
    (
        [{"role": "user", "content": "q"}, {"role": "alien", "content": "a"}],
        "OpenAI chat: messages[1]: has role 'alien', expected system, user, assistant, tool",
    ),
    ([{"role": "user", "content": "q"}, "a"], "OpenAI chat: messages[1]: must be an object, not 'a'"),
    (
        {"object": "response", "output": [{"type": "scent_call", "content": "x"}]},
        "OpenAI Responses: output[0]: has role 'scent_call', expected system, user, assistant, tool",
    ),
    (
        [{"role": "user", "content": "q"}, {"type": "item_reference", "id": "msg_1"}],
        "OpenAI Responses: messages[1]: it refers to an item that is not here: 'msg_1'",
    ),
    (
        {"choices": [{"message": {}}, {"message": {}}]},
        "OpenAI chat: choices: must have one entry, not 2; pass the one",
    ),
    (
        {"choices": [{"message": {"role": "assistant", "content": [{"scent": "x"}]}}]},
        "OpenAI chat: choices[0].message.content[0]: a part with no type is not understood; it has scent",
    ),
    (
        [{"kind": "request", "parts": [{"content": "x"}]}],
        "pydantic-ai: messages[0].parts[0]: a part must have a part_kind; it has content",
    ),
    (
        [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": ["q", {"scent": 1}]}]}],
        "pydantic-ai: messages[0].parts[0].content[1]: a part must have a kind; it has scent",
    ),
    (
        {"schema_version": "ATIF-v1.4", "steps": [{"source": "ghost", "message": "x"}]},
        "ATIF: steps[0].source: must be system, user or agent, not 'ghost'",
    ),
    (
        {
            "schema_version": "ATIF-v1.4",
            "steps": [{"source": "agent", "message": "", "observation": {"results": "x"}}],
        },
        "ATIF: steps[0].observation.results: must be a list, not str: 'x'",
    ),
    (
        [{"type": "scent", "sessionId": "s", "message": {}}, {"type": "user", "sessionId": "s", "message": {}}],
        "Claude Code: lines[0].type: a line of type 'scent' is not understood; it has type, sessionId, message",
    ),
    (
        [{"attributes": {"gen_ai.input.messages": '[{"role": "user", "parts": [{"scent": 1}]}]'}}],
        "OpenTelemetry: [0].attributes['gen_ai.input.messages'][0].parts[0]: a part with no type is not understood",
    ),
    (
        {"steps": [{"content": [{"type": "text", "text": "a"}, {"scent": 1}]}]},
        "AI SDK: steps[0].content[1]: a part with no type is not understood",
    ),
]


SCENT = "a part of an unknown type: 'scent', with"
UNKNOWN: dict[str, tuple[Any, str, str]] = {
    "beside a text": (
        [{"role": "assistant", "content": ["a", {"type": "scent", "data": 1}]}],
        "a",
        f"{SCENT} data",
    ),
    "with a text of its own": (
        [{"role": "assistant", "content": [{"type": "scent", "text": "a caption"}, {"type": "text", "text": "a"}]}],
        "a",
        f"{SCENT} text",
    ),
    "in OpenAI's Responses": (
        {
            "object": "response",
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "scent"}, {"type": "output_text", "text": "a"}],
                }
            ],
        },
        "a",
        f"{SCENT} nothing else",
    ),
    "an item of OpenAI's Responses": (
        {
            "object": "response",
            "output": [{"type": "scent", "id": "s"}, {"type": "message", "role": "assistant", "content": "a"}],
        },
        "a",
        f"{SCENT} id",
    ),
    "in a request of pydantic-ai": (
        [
            {"kind": "request", "parts": [{"part_kind": "scent", "content": "x"}]},
            {"kind": "response", "parts": [{"part_kind": "text", "content": "a"}]},
        ],
        "a",
        f"{SCENT} content",
    ),
    "in a prompt of pydantic-ai": (
        [
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": ["q", {"kind": "scent", "x": 1}]}]},
            {"kind": "response", "parts": [{"part_kind": "text", "content": "a"}]},
        ],
        "a",
        f"{SCENT} x",
    ),
    "in a response of pydantic-ai": (
        [{"kind": "response", "parts": [{"part_kind": "scent", "x": 1}, {"part_kind": "text", "content": "a"}]}],
        "a",
        f"{SCENT} x",
    ),
    "in OpenTelemetry": (
        [{"attributes": {"gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "scent", "x": 1}, {"type": "text", "content": "a"}]}]
        )}}],
        "a",
        f"{SCENT} x",
    ),
    "in a step of the AI SDK": (
        {"steps": [{"content": [{"type": "text", "text": "a"}, {"type": "scent", "x": 1}]}]},
        "a",
        f"{SCENT} x",
    ),
    "in a tool's message": (
        [
            {"role": "assistant", "content": "a", "tool_calls": [{"id": "c1", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "scent", "x": 1}]},
        ],
        "a",
        f"{SCENT} x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_part_of_an_unknown_type_is_named_and_the_others_are_read(name: str) -> None:
    value, output, note = UNKNOWN[name]
    transcript = read_transcript(value)
    assert transcript.output == output
    assert [each for message in transcript.messages for each in message.notes] == [note]
    attached = [kind for message in transcript.messages for kind in message.attachments]
    results = [call.result for message in transcript.messages for call in message.tool_calls]
    assert attached == ["scent"] or results == [[{"type": "scent", "x": 1}]]


@pytest.mark.parametrize(("value", "text"), REFUSED)
def test_what_is_not_understood_is_refused_with_its_place(value: Any, text: str) -> None:
    with pytest.raises(DataError) as caught:
        read_transcript(value)
    assert str(caught.value).startswith(text)


def test_a_text_that_would_not_fit_into_memory_is_refused() -> None:
    with pytest.raises(DataError, match="lists and objects"):
        read_transcript("[" + "[]," * 3_000_000 + "[]]")


def test_the_place_of_a_part_is_that_in_the_whole_message_of_an_agent() -> None:
    parts: Any = [{"type": "text", "text": "a"}, {"type": "step-start"}, {"type": "text", "text": "b"}, {"scent": 1}]
    with pytest.raises(DataError, match=r"\[0\]\.parts\[3\]: .* no type"):
        read_transcript([{"role": "assistant", "parts": parts}])


def test_an_object_of_an_unknown_class_is_named() -> None:
    with pytest.raises(DataError, match=r"shop\.agents\.Answer;"):
        read_transcript(library_class("shop.agents", "Answer", text="x"))


def test_a_transcript_that_is_nested_too_deeply_is_refused() -> None:
    value: Any = "x"
    for _ in range(sys.getrecursionlimit()):
        value = [value]
    with pytest.raises(DataError, match="nested too deeply"):
        read_transcript([{"role": "user", "content": value}])


JUNK: list[Any] = [
    *(None, 0, True, "", [], {}, "text", [None], [1], ["x"], [[]], [{}], {"a": 1}, 3.5, -1),
    *({"type": "text"}, [{"type": "x"}]),
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every entry and item in a value, with what it is in."""
    if isinstance(value, dict):
        keys: list[Any] = list(cast("dict[str, Any]", value))
    else:
        keys = list(range(len(cast("list[Any]", value)))) if isinstance(value, list) else []
    inside = cast("Any", value)
    return [(inside, key) for key in keys] + [place for key in keys for place in places(inside[key])]


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_transcript_is_read_or_refused(name: str) -> None:
    whole, chance = fixture(name), random.Random(name)
    refused = 0
    for _ in range(120):
        damaged: list[Any] = [copy.deepcopy(whole)]
        for _ in range(chance.choice((1, 1, 2, 5))):
            inside, key = chance.choice(places(damaged))
            if inside is not damaged and chance.random() < 0.5:
                del inside[key]
            else:
                inside[key] = copy.deepcopy(chance.choice(JUNK))
        try:
            assert isinstance(read_transcript(damaged[0]), Transcript)
        except DataError:
            refused += 1
    assert refused


@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_was_cut_off_is_refused(name: str) -> None:
    text = json.dumps(fixture(name))
    for cut in range(1, len(text), max(1, len(text) // 40)):
        with pytest.raises(DataError):
            read_transcript(text[:cut])
