"""Transcripts as other tools write them: nothing in them may be lost silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalstone.agents.transcripts import read_transcript
from evalstone.datasets import load, sample_from, write_jsonl
from evalstone.datasets.stored import sample_row
from evalstone.errors import DataError
from evalstone.types import Message, ToolCall, Usage

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
SYSTEM = Message(role="system", content="Be brief.")
WEATHER = ToolCall(name="weather", arguments={"city": "Bern"}, result="sunny", id="c1")
ANSWER = Message(role="assistant", content="Sunny.")

# As langchain-core 1.x writes them.
LANGCHAIN: list[tuple[str, dict[str, Any]]] = [
    ("SystemMessage", {"content": "Be brief.", "type": "system"}),
    ("HumanMessage", {"content": [{"type": "text", "text": "Weather?"}, IMAGE], "type": "human"}),
    (
        "AIMessage",
        {
            "content": "",
            "type": "ai",
            "tool_calls": [{"name": "weather", "args": {"city": "Bern"}, "id": "c1", "type": "tool_call"}],
            "invalid_tool_calls": [],
            "usage_metadata": {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13},
        },
    ),
    ("ToolMessage", {"content": "sunny", "type": "tool", "tool_call_id": "c1", "status": "success"}),
    ("AIMessage", {"content": "Sunny.", "type": "ai", "tool_calls": [], "usage_metadata": None}),
]
MESSAGES_TO_DICT = [{"type": data["type"], "data": {"name": None, **data}} for _, data in LANGCHAIN]
DUMPD = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": data}
    for name, data in LANGCHAIN
]

# As google-genai's types.Content writes them.
GEMINI: list[Any] = [
    {"parts": [{"text": "Weather?"}, {"inlineData": {"data": "YQ==", "mimeType": "image/png"}}], "role": "user"},
    {
        "parts": [
            {"text": "think", "thought": True},
            {"functionCall": {"args": {"city": "Bern"}, "name": "weather"}},
            {"functionCall": {"args": {}, "name": "clock"}},
        ],
        "role": "model",
    },
    {
        "parts": [
            {"functionResponse": {"name": "clock", "response": {"result": "12:00"}}},
            {"functionResponse": {"name": "weather", "response": {"result": "sunny"}}},
        ],
        "role": "user",
    },
    {"parts": [{"text": "Sunny."}], "role": "model"},
]

OPENTELEMETRY: list[Any] = [
    {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
    {
        "role": "user",
        "parts": [
            {"type": "text", "content": "Weather?"},
            {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "AA"},
        ],
    },
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Bern"}}],
        "finish_reason": "tool_call",
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "sunny"}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "Sunny."}], "finish_reason": "stop"},
]


@pytest.mark.parametrize("messages", [MESSAGES_TO_DICT, DUMPD], ids=["messages_to_dict", "dumpd"])
def test_langchain_s_serialized_messages_are_read(messages: list[Any]) -> None:
    assert sample_from({"messages": messages}).messages == (
        SYSTEM,
        Message(role="user", content="Weather?", attachments=("image",)),
        Message(role="assistant", tool_calls=[WEATHER], usage=Usage(10, 3)),
        ANSWER,
    )


def test_a_tool_s_failure_and_a_malformed_call_of_langchain_are_read() -> None:
    call = {"name": "f", "args": "{broken", "id": "c1", "error": "no JSON", "type": "invalid_tool_call"}
    messages = sample_from(
        {
            "messages": [
                {"type": "ai", "data": {"content": "", "tool_calls": [], "invalid_tool_calls": [call]}},
                {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "g", "args": {}, "id": "c2"}]}},
                {"type": "tool", "data": {"content": "no such city", "tool_call_id": "c2", "status": "error"}},
            ]
        }
    ).messages
    assert messages[0].tool_calls == (
        ToolCall(name="f", arguments={"raw": "{broken"}, id="c1", state="error", error="no JSON"),
    )
    assert messages[1].tool_calls == (
        ToolCall(name="g", id="c2", result="no such city", state="error", error="no such city"),
    )


@pytest.mark.parametrize("snake", [False, True])
def test_gemini_s_parts_are_read(snake: bool) -> None:
    text = json.dumps(GEMINI)
    if snake:
        text = text.replace("functionC", "function_c").replace("functionR", "function_r").replace("inlineD", "inline_d")
    messages = sample_from({"messages": json.loads(text)}).messages
    assert messages == (
        Message(role="user", content="Weather?", attachments=("image",)),
        Message(
            role="assistant",
            reasoning="think",
            tool_calls=[
                ToolCall(name="weather", arguments={"city": "Bern"}, result={"result": "sunny"}),
                ToolCall(name="clock", result={"result": "12:00"}),
            ],
        ),
        ANSWER,
    )


def test_a_system_prompt_in_parts_is_the_instructions() -> None:
    gemini: dict[str, Any] = {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    anthropic: list[dict[str, Any]] = [
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": "Be kind.", "cache_control": {}},
    ]
    rows: list[dict[str, Any]] = [{"system_instruction": gemini}, {"system": anthropic}]
    for row in rows:
        assert sample_from({"input": "q", **row}).instructions == "\n".join(("Be brief.", "Be kind."))
    sample = sample_from({"input": {"role": "user", "parts": [{"text": "q"}]}, "output": {"parts": [{"text": "a"}]}})
    assert (sample.input, sample.output) == ("q", "a")


CALL = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "weather", "arguments": '{"city": "Bern"}'}
ITEMS: list[dict[str, Any]] = [
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "x"},
    {"type": "reasoning", "id": "r2", "summary": [{"type": "summary_text", "text": "I look."}]},
    CALL,
    {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
    {"type": "custom_tool_call", "call_id": "c2", "name": "note", "input": "dry"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "noted"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]},
]


def test_items_of_openai_s_responses_api_are_read() -> None:
    turns = (
        Message(role="assistant", reasoning="I look."),
        Message(role="assistant", tool_calls=[WEATHER]),
        Message(
            role="assistant", tool_calls=[ToolCall(name="note", arguments={"raw": "dry"}, result="noted", id="c2")]
        ),
        ANSWER,
    )
    question = Message(role="user", content="Weather?")
    sample = sample_from({"messages": [{"role": "user", "content": "Weather?"}, *ITEMS]})
    assert (sample.input, sample.output, sample.messages) == ("Weather?", "Sunny.", (question, *turns))
    assert sample_from({"input": "Weather?", "output": ITEMS}).messages == (question, *turns)
    assert sample_from({"messages": ITEMS[2:]}).messages == turns[1:]
    assert sample_from({"messages": ITEMS[2:4]}).messages == turns[1:2]
    assert sample_from({"output": "a", "tool_calls": [CALL]}).messages[-1].tool_calls[0].name == "weather"


def test_code_that_gemini_executes_is_a_tool_call() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "print(2)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "no"}},
    ]
    (message,) = sample_from({"messages": [{"role": "model", "parts": parts}]}).messages
    assert message.tool_calls == (
        ToolCall(
            name="code_execution",
            arguments={"language": "PYTHON", "code": "print(2)"},
            result="no",
            state="error",
            error="no",
        ),
    )


@pytest.mark.parametrize("key", ["response", "result"])
def test_opentelemetry_s_parts_are_read(key: str) -> None:
    messages = json.loads(json.dumps(OPENTELEMETRY).replace('"response"', f'"{key}"'))
    assert sample_from({"messages": messages}).messages == (
        SYSTEM,
        Message(role="user", content="Weather?", attachments=("image",)),
        Message(role="assistant", tool_calls=[WEATHER]),
        ANSWER,
    )


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"type": "text", "value": "sunny"}, ToolCall(name="weather", result="sunny", id="c1")),
        ({"type": "json", "value": {"sky": "blue"}}, ToolCall(name="weather", result={"sky": "blue"}, id="c1")),
        (
            {"type": "content", "value": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            ToolCall(name="weather", result="a\nb", id="c1"),
        ),
        (
            {"type": "error-text", "value": "no"},
            ToolCall(name="weather", result="no", id="c1", state="error", error="no"),
        ),
        ({"type": "sun"}, ToolCall(name="weather", result={"type": "sun"}, id="c1")),
    ],
)
def test_a_result_of_the_ai_sdk_is_unwrapped(output: Any, expected: ToolCall) -> None:
    part: dict[str, Any] = {"type": "tool-call", "toolCallId": "c1", "toolName": "weather", "input": {}}
    result = {"type": "tool-result", "toolCallId": "c1", "toolName": "weather", "output": output}
    messages: Any = [{"role": "assistant", "content": [part]}, {"role": "tool", "content": [result]}]
    assert sample_from({"messages": messages}).messages[0].tool_calls == (expected,)
    ui: Any = {"type": "tool-weather", "toolCallId": "c1", "state": "output-available", "input": {}, "output": output}
    (call,) = sample_from({"messages": [{"role": "assistant", "parts": [ui]}]}).messages[0].tool_calls
    assert (call.result, call.state, call.error) == (expected.result, expected.state, expected.error)


def test_mastra_s_reasoning_in_details_is_read() -> None:
    part = {
        "type": "reasoning",
        "reasoning": "",
        "details": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
    }
    content = {"format": 2, "parts": [{"type": "step-start"}, part, {"type": "text", "text": "Sunny."}]}
    (message,) = sample_from({"messages": [{"role": "assistant", "content": content}]}).messages
    assert message == Message(role="assistant", content="Sunny.", reasoning="a\nb")


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (IMAGE, "image"),
        ({"type": "input_image", "image_url": "https://x"}, "image"),
        ({"type": "image", "source": {"type": "base64", "data": "AA"}}, "image"),
        ({"type": "input_audio", "input_audio": {"data": "AA"}}, "audio"),
        ({"type": "file", "mediaType": "image/png", "url": "https://x"}, "image"),
        ({"type": "file", "mediaType": "application/pdf", "url": "https://x"}, "file"),
        ({"type": "document", "source": {}}, "file"),
        ({"fileData": {"fileUri": "gs://x", "mimeType": "video/mp4"}}, "video"),
    ],
)
def test_what_is_no_text_is_named_on_the_message(part: Any, kind: str) -> None:
    (message,) = sample_from(
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "q"}, part]}]}
    ).messages
    assert message == Message(role="user", content="q", attachments=(kind,))
    (message,) = sample_from({"messages": [{"role": "user", "content": [part]}], "output": "a"}).messages
    assert message == Message(role="user", attachments=(kind,))


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "refusal": "I can't."},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]},
    ],
)
def test_a_refusal_is_what_was_said(message: Any) -> None:
    assert sample_from({"messages": [message]}).output == "I can't."


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "user", "parts": [{"data": 1}]}, "in message 1, a part with no type is not understood; it has data"),
        ({"role": "user", "body": "hi"}, "in message 1, there is no content; it has role, body"),
        ({"role": "user", "content": {"body": "hi"}}, "in message 1, content must have text, content or parts; it has"),
    ],
)
def test_what_is_not_understood_is_an_error_that_names_it(message: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        sample_from({"messages": [message]})


def test_a_tool_s_result_with_an_image_is_kept_whole() -> None:
    content: Any = [{"type": "text", "text": "a map"}, {"type": "image", "source": {}}]
    messages: Any = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "map", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": content}]},
    ]
    assert sample_from({"messages": messages}).messages[0].tool_calls[0].result == content


def test_attachments_and_usage_survive_writing_and_reading(tmp_path: Any) -> None:
    message = Message(role="user", content="q", attachments=("image",), usage=Usage(1, 2))
    sample = sample_from({"messages": [message], "output": "a"})
    write_jsonl(tmp_path / "s.jsonl", [sample])
    assert list(load(tmp_path / "s.jsonl")) == [sample]


FOLDER = Path(__file__).parents[1] / "agents" / "transcripts"
TRANSCRIPTS = {path.stem: json.loads(path.read_text("utf-8"))["transcript"] for path in FOLDER.glob("*.json")}


@pytest.mark.parametrize("name", sorted(TRANSCRIPTS))
@pytest.mark.parametrize("as_text", [False, True])
def test_a_format_of_transcripts_is_one_of_data_files(name: str, as_text: bool, tmp_path: Path) -> None:
    value = TRANSCRIPTS[name]
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps({"id": "a", "messages": json.dumps(value) if as_text else value}) + "\n")
    (sample,) = load(path).samples
    transcript = read_transcript(value)
    assert sample.messages == transcript.messages
    assert (sample.output or None) == (transcript.output or None)


@pytest.mark.parametrize(
    "name", ["atif", "claude_code_session", "gemini_response", "bedrock_response", "openai_chat_response"]
)
def test_a_transcript_as_output_is_the_answer_and_its_messages(name: str) -> None:
    transcript = read_transcript(TRANSCRIPTS[name])
    asked = [message.content for message in transcript.messages if message.role == "user"]
    sample = sample_from({"input": asked[0] if asked else "q", "output": TRANSCRIPTS[name]})
    assert sample.output == transcript.output
    questions = () if asked else (Message(role="user", content="q"),)
    assert sample.messages == (*questions, *transcript.messages)


def test_what_a_reader_has_to_say_of_messages_is_said_of_the_dataset(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": [{"type": "scent", "x": 1}, {"type": "text", "text": "a"}]}
    row = {"id": "s1", "messages": [{"role": "user", "content": "q"}, message]}
    note = "2 × a part of an unknown type; first in sample 's1', 'scent', with x"
    rows = [row, {**row, "id": "s2"}]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    for source in (rows, path, load(rows).samples):
        assert load(source).notes == (note,)
    again = tmp_path / "again.jsonl"
    again.write_text("".join(json.dumps(sample_row(sample)) + "\n" for sample in load(rows)))
    assert load(again).notes == (note,)
    assert load(again).samples == load(rows).samples
