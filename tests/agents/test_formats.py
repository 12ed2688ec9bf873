"""Single messages in which something is easily lost: what stands twice, beside the content, or in an odd place."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone.agents.transcripts import read_transcript
from evalstone.datasets import sample_from
from evalstone.types import Message, ToolCall

IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "https://example.org/map.png"}}
WEATHER = ToolCall(name="weather", arguments={"city": "Bern"}, result="sunny", id="c1")
OPEN = ToolCall(name="weather", arguments={"city": "Bern"}, id="c1", state="call")
INVOCATION: dict[str, Any] = {"toolCallId": "c1", "toolName": "weather", "args": {"city": "Bern"}}
CALL: dict[str, Any] = {"id": "c1", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}

CASES: dict[str, tuple[Any, list[Message]]] = {
    "a refusal beside an empty text": (
        {"role": "assistant", "content": "", "refusal": "I can't."},
        [Message(role="assistant", content="I can't.")],
    ),
    "a refusal beside a text": (
        {"role": "assistant", "content": "Well.", "refusal": "I can't."},
        [Message(role="assistant", content="Well.\nI can't.")],
    ),
    "a refusal, reasoning and a call that LangChain keeps in additional_kwargs": (
        {
            "type": "ai",
            "content": "",
            "additional_kwargs": {
                "refusal": "I can't.",
                "reasoning_content": "Hm.",
                "function_call": {"name": "weather", "arguments": '{"city": "Bern"}'},
            },
        },
        [
            Message(
                role="assistant",
                content="I can't.",
                reasoning="Hm.",
                tool_calls=[ToolCall(name="weather", arguments={"city": "Bern"}, state="call")],
            )
        ],
    ),
    "the calls of LangChain, which additional_kwargs repeats": (
        {
            "type": "ai",
            "content": "",
            "tool_calls": [{"name": "weather", "args": {"city": "Bern"}, "id": "c1"}],
            "additional_kwargs": {"tool_calls": [CALL]},
        },
        [Message(role="assistant", tool_calls=[OPEN])],
    ),
    "a text around reasoning": (
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "It is "},
                {"type": "thinking", "thinking": "Hm."},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "sunny."},
            ],
        },
        [Message(role="assistant", content="It is sunny.", reasoning="Hm.")],
    ),
    "images beside the content": (
        {"role": "assistant", "content": "Here.", "images": [IMAGE]},
        [Message(role="assistant", content="Here.", attachments=("image",))],
    ),
    "speech": (
        {"role": "assistant", "content": None, "audio": {"id": "a", "data": "AA", "transcript": "It is sunny."}},
        [Message(role="assistant", content="It is sunny.", attachments=("audio",))],
    ),
    "speech in the Responses API": (
        {"type": "message", "role": "assistant", "content": [{"type": "output_audio", "transcript": "Sunny."}]},
        [Message(role="assistant", content="Sunny.", attachments=("audio",))],
    ),
    "parts beside a content that repeats their text": (
        {
            "role": "assistant",
            "content": "Sunny.",
            "parts": [
                {"type": "reasoning", "reasoning": "Hm."},
                {"type": "tool-invocation", "toolInvocation": {**INVOCATION, "state": "result", "result": "sunny"}},
                {"type": "file", "mimeType": "image/png", "data": "AA"},
                {"type": "text", "text": "Sunny."},
            ],
            "toolInvocations": [{**INVOCATION, "state": "result", "result": "sunny"}],
        },
        [Message(role="assistant", content="Sunny.", reasoning="Hm.", tool_calls=[WEATHER], attachments=("image",))],
    ),
    "a text that Mastra has before its last one": (
        {
            "role": "assistant",
            "content": {
                "format": 2,
                "content": "Sunny.",
                "parts": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool-invocation", "toolInvocation": {**INVOCATION, "state": "call"}},
                    {"type": "text", "text": "Sunny."},
                ],
                "toolInvocations": [{**INVOCATION, "state": "call"}],
            },
        },
        [
            Message(role="assistant", content="Let me look.", tool_calls=[OPEN]),
            Message(role="assistant", content="Sunny."),
        ],
    ),
    "a text of Mastra that is the sum of its steps": (
        {
            "role": "assistant",
            "content": {
                "format": 2,
                "content": "Let me look.Sunny.",
                "parts": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "step-start"},
                    {"type": "text", "text": "Sunny."},
                ],
            },
        },
        [Message(role="assistant", content="Let me look."), Message(role="assistant", content="Sunny.")],
    ),
    "a text that Mastra judges instead of the last step's": (
        {
            "role": "assistant",
            "content": {
                "format": 2,
                "content": "Sunny!",
                "parts": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "step-start"},
                    {"type": "text", "text": "Sunny."},
                ],
            },
        },
        [Message(role="assistant", content="Let me look."), Message(role="assistant", content="Sunny!")],
    ),
    "code of Gemini after a call": (
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "weather", "args": {"city": "Bern"}}},
                {"executableCode": {"language": "PYTHON", "code": "1 + 1"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
            ],
        },
        [
            Message(
                role="assistant",
                tool_calls=[
                    ToolCall(name="weather", arguments={"city": "Bern"}, state="call"),
                    ToolCall(name="code_execution", arguments={"language": "PYTHON", "code": "1 + 1"}, result="2"),
                ],
            )
        ],
    ),
    "a user who steers an agent of the AI SDK": (
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "text": "I go to Basel."},
                {"type": "steering-message", "id": "s", "parts": [{"type": "text", "text": "To Bern!"}]},
                {"type": "text", "text": "I go to Bern."},
            ],
        },
        [
            Message(role="assistant", content="I go to Basel."),
            Message(role="user", content="To Bern!"),
            Message(role="assistant", content="I go to Bern."),
        ],
    ),
    "a call that the user of the AI SDK denied": (
        {
            "role": "assistant",
            "parts": [
                {
                    "type": "tool-weather",
                    "toolCallId": "c1",
                    "state": "output-denied",
                    "input": {},
                    "approval": {"id": "a", "approved": False, "reason": "not now"},
                }
            ],
        },
        [Message(role="assistant", tool_calls=[ToolCall(name="weather", id="c1", state="error", error="not now")])],
    ),
    "texts of Anthropic with citations": (
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Bern is "},
                {"type": "text", "text": "a city", "citations": [{"type": "char_location"}]},
                {"type": "text", "text": "."},
            ],
        },
        [Message(role="assistant", content="Bern is a city.")],
    ),
    "a search of Anthropic that failed": (
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "c1", "name": "web_search", "input": {}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "c1",
                    "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
                },
            ],
        },
        [
            Message(
                role="assistant",
                tool_calls=[
                    ToolCall(
                        name="web_search",
                        id="c1",
                        state="error",
                        result={"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
                        error='{"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}',
                    )
                ],
            )
        ],
    ),
    "pieces of Gemini's text": (
        {"role": "model", "parts": [{"text": "Bern is "}, {"text": "a city."}]},
        [Message(role="assistant", content="Bern is a city.")],
    ),
    "texts of a user of Gemini": (
        {"role": "user", "parts": [{"text": "One."}, {"text": "Two."}]},
        [Message(role="user", content="One.\nTwo.")],
    ),
    "a tool of Gemini itself": (
        {
            "role": "model",
            "parts": [
                {"toolCall": {"id": "t", "toolType": "GOOGLE_MAPS", "args": {"q": "Bern"}}},
                {"toolResponse": {"id": "t", "toolType": "GOOGLE_MAPS", "response": {"places": 2}}},
            ],
        },
        [
            Message(
                role="assistant",
                tool_calls=[ToolCall(name="GOOGLE_MAPS", arguments={"q": "Bern"}, result={"places": 2}, id="t")],
            )
        ],
    ),
    "reasoning of the Responses API in both lists": (
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "In short."}],
            "content": [{"type": "reasoning_text", "text": "At length."}],
        },
        [Message(role="assistant", reasoning="In short.\nAt length.")],
    ),
    "a block of LangChain around a provider's own": (
        {"type": "ai", "content": [{"type": "non_standard", "value": {"type": "refusal", "refusal": "I can't."}}]},
        [Message(role="assistant", content="I can't.")],
    ),
    "a call of LangChain that was still being written": (
        {
            "type": "AIMessageChunk",
            "content": [{"type": "tool_call_chunk", "name": "weather", "args": '{"ci', "id": "c1"}],
        },
        [
            Message(
                role="assistant",
                tool_calls=[ToolCall(name="weather", arguments={"raw": '{"ci'}, id="c1", state="partial")],
            )
        ],
    ),
    "files of pydantic-ai in a trace": (
        {"role": "user", "parts": [{"type": "text", "content": "q"}, {"type": "document-url", "url": "https://x"}]},
        [Message(role="user", content="q", attachments=("file",))],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_lost_of_a_message(case: str) -> None:
    message, expected = CASES[case]
    assert list(read_transcript([message]).messages) == expected
    assert list(sample_from({"messages": [message], "input": "q"}).messages) == expected


def test_an_image_that_a_tool_returns_is_part_of_the_result() -> None:
    content = [{"type": "text", "text": "a map"}, IMAGE]
    talk: list[Any] = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": content},
    ]
    assert read_transcript(talk).messages[0].tool_calls[0].result == content


def test_results_are_those_of_the_calls_that_they_name() -> None:
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in ("a", "b")]
    talk = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "function", "name": "b", "content": "of b"},
        {"role": "function", "name": "a", "content": "of a"},
    ]
    assert [call.result for call in read_transcript(talk).messages[0].tool_calls] == ["of a", "of b"]


def test_a_call_that_was_approved_is_one_call() -> None:
    asked = {"type": "mcp_approval_request", "id": "r1", "name": "book", "arguments": "{}", "server_label": "rail"}
    made = {
        "type": "mcp_call",
        "id": "m1",
        "name": "book",
        "arguments": "{}",
        "approval_request_id": "r1",
        "output": "ok",
    }
    answer = {"type": "mcp_approval_response", "approval_request_id": "r1", "approve": True}
    (message,) = read_transcript([asked, answer, made]).messages
    assert message.tool_calls == (ToolCall(name="book", id="r1", result="ok"),)
    (message,) = read_transcript([made]).messages
    assert message.tool_calls == (ToolCall(name="book", id="m1", result="ok"),)
    failed = {**made, "output": None, "error": "no seats left"}
    (message,) = read_transcript([asked, answer, failed]).messages
    assert (message.tool_calls[0].state, message.tool_calls[0].error) == ("error", "no seats left")


def test_the_passages_of_a_document_are_the_context() -> None:
    blocks: list[Any] = [
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "One."}]}},
        {"type": "document", "source": {"type": "content", "content": "Two."}},
        {"type": "search_result", "content": [{"type": "text", "text": "Three."}, {"type": "text", "text": "Four."}]},
        {"type": "document", "source": {"type": "url", "url": "https://x"}},
    ]
    transcript = read_transcript([{"role": "user", "content": blocks}])
    assert transcript.context == ("One.", "Two.", "Three.\nFour.")
    assert transcript.messages[0].attachments == ("file",)


def test_the_answer_of_mastra_that_is_an_object_is_json() -> None:
    steps = [{"text": ""}]
    assert (
        read_transcript({"runId": "r", "text": "", "object": {"sky": "clear"}, "steps": steps}).output
        == '{"sky": "clear"}'
    )


def test_the_steps_of_a_result_without_messages_are_read() -> None:
    payload = {"toolCallId": "c1", "toolName": "weather"}
    step: Any = {
        "text": "Sunny.",
        "reasoningText": "Hm.",
        "toolCalls": [{"type": "tool-call", "payload": {**payload, "args": {"city": "Bern"}}}],
        "toolResults": [{"type": "tool-result", "payload": {**payload, "result": "sunny"}}],
        "files": [{"mediaType": "image/png", "base64Data": "AA"}],
    }
    (message,) = read_transcript({"runId": "r", "steps": [step]}).messages
    assert message == Message(
        role="assistant", content="Sunny.", reasoning="Hm.", tool_calls=[WEATHER], attachments=("image",)
    )
    old: Any = {"text": "Sunny.", "toolCalls": [{"type": "tool-call", **INVOCATION}], "toolResults": []}
    assert read_transcript({"steps": [old]}).messages[0].tool_calls == (OPEN,)


PIECES = ("Bern is ", "the capital", ".")


def texts(type: str = "text", key: str = "text") -> list[dict[str, Any]]:
    return [{"type": type, key: piece} for piece in PIECES]


def with_sources(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    source = {"type": "source-url", "sourceId": "s", "url": "https://example.org"}
    return [each for part in parts for each in (part, source)]


ANSWERS: dict[str, Any] = {
    "OpenAI chat": {"role": "assistant", "content": texts()},
    "texts without objects": {"role": "assistant", "content": list(PIECES)},
    "OpenAI Responses": {
        "object": "response",
        "output": [{"type": "message", "role": "assistant", "content": texts("output_text")}],
    },
    "Anthropic": {"type": "message", "role": "assistant", "model": "m", "content": texts(), "stop_reason": "end_turn"},
    "Bedrock": {"role": "assistant", "content": [{"text": each} for each in PIECES]},
    "Gemini": {"role": "model", "parts": [{"text": each} for each in PIECES]},
    "messages of the AI SDK's interface": {"role": "assistant", "parts": with_sources(texts())},
    "messages of the AI SDK's models": {"role": "assistant", "content": with_sources(texts())},
    "Mastra": {"id": "m", "role": "assistant", "content": {"format": 2, "parts": texts()}},
    "pydantic-ai": {"kind": "response", "parts": [{"part_kind": "text", "content": each} for each in PIECES]},
    "LangChain": {"type": "ai", "content": texts()},
    "OpenTelemetry": {"role": "assistant", "parts": texts(key="content")},
    "OpenInference": {
        "openinference.span.kind": "LLM",
        **{
            f"llm.output_messages.0.message.contents.{number}.message_content.{key}": value
            for number, part in enumerate(texts())
            for key, value in part.items()
        },
        "llm.output_messages.0.message.role": "assistant",
    },
}


@pytest.mark.parametrize("name", ANSWERS)
def test_texts_in_a_row_are_the_pieces_of_one_answer_in_every_format(name: str) -> None:
    assert read_transcript(ANSWERS[name]).output == "".join(PIECES)


def test_a_text_after_something_else_begins_a_line() -> None:
    search: dict[str, Any] = {"type": "server_tool_use", "id": "c1", "name": "web_search", "input": {}}
    answer: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, search, *texts()]}
    assert read_transcript([answer]).output == "I look.\n" + "".join(PIECES)


def test_texts_that_a_user_puts_side_by_side_stay_apart() -> None:
    questions: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "Translate:"}, {"type": "text", "text": "Bern"}]},
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": ["Translate:", "Bern"]}]},
        {"role": "user", "parts": [{"type": "text", "content": "Translate:"}, {"type": "text", "content": "Bern"}]},
    ]
    for question in questions:
        assert read_transcript([question]).messages[0].content == "Translate:\nBern"


@pytest.mark.parametrize("called", [{"role": "assistant", "tool_calls": [CALL]}, {"type": "ai", "tool_calls": [CALL]}])
def test_a_tool_that_returned_an_empty_list_returned_something(called: dict[str, Any]) -> None:
    returned: dict[str, Any] = {"role": "tool", "tool_call_id": "c1", "content": []}
    (read,) = read_transcript([{**called, "content": ""}, returned]).messages
    assert [(call.state, call.result) for call in read.tool_calls] == [("result", [])]
