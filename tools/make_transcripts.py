"""Writes fixtures of tests/agents/transcripts with the libraries whose formats they are.

    pip install openai openai-agents anthropic google-genai pydantic-ai-slim langchain-core langgraph \
        opentelemetry-sdk openinference-instrumentation-langchain
    python tools/make_transcripts.py tests/agents/transcripts

The fixtures of the AI SDK and of Mastra come from tools/make_transcripts.mjs. The others are written by hand, after the
schemas that docs/transcripts.md names; that of ATIF was validated with harbor's models.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# ruff: noqa: PLC0415 - each format needs its own library
from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

SYSTEM = "Be brief and cite the handbook."
QUESTION = "What is the weather in Bern tomorrow?"
THOUGHT = "The forecast has to be looked up."
ARGUMENTS = {"city": "Bern, Switzerland"}
RESULT = "clear all afternoon, 21 degrees"
PASSAGE = "Handbook, page 3: carry an umbrella in April."
ANSWER = "It will be sunny in Bern."
PNG = "iVBORw0KGgo="


def openai_chat() -> Any:
    from openai.types.chat import ChatCompletionMessage

    call = {"id": "call_w", "type": "function"}
    first = ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{**call, "function": {"name": "weather", "arguments": json.dumps(ARGUMENTS)}}],
        }
    )
    spoken = ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "audio": {"id": "audio_1", "data": PNG, "expires_at": 1, "transcript": "I am looking at the map now."},
        }
    )
    refused = ChatCompletionMessage.model_validate(
        {"role": "assistant", "content": "", "refusal": "I can't forecast next year."}
    )
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    return [
        {"role": "developer", "content": SYSTEM},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}, image]},
        first.model_dump(mode="json"),
        {
            "role": "tool",
            "tool_call_id": "call_w",
            "content": [
                {"type": "text", "text": "clear all afternoon"},
                {"type": "text", "text": "21 degrees at noon"},
            ],
        },
        spoken.model_dump(mode="json"),
        {"role": "user", "content": "And what about next year?"},
        refused.model_dump(mode="json"),
    ]


def openai_chat_response() -> Any:
    from openai.types.chat import ChatCompletion

    message = {
        "role": "assistant",
        "content": ANSWER,
        "refusal": None,
        "reasoning_content": THOUGHT,
        "tool_calls": [
            {"id": "call_n", "type": "custom", "custom": {"name": "note", "input": "bring the umbrella"}},
            {"id": "call_w", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Be'}},
        ],
    }
    usage = {
        "prompt_tokens": 30,
        "completion_tokens": 12,
        "total_tokens": 42,
        "prompt_tokens_details": {"cached_tokens": 20},
    }
    choice = {"index": 0, "finish_reason": "tool_calls", "logprobs": None, "message": message}
    data = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5.1", "choices": [choice]}
    return ChatCompletion.model_validate({**data, "usage": usage}).model_dump(mode="json")


def openai_responses() -> Any:
    from openai.types.responses import Response

    output = [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]},
        {
            "id": "fs_1",
            "type": "file_search_call",
            "status": "completed",
            "queries": ["umbrella in April"],
            "results": [
                {"file_id": "file_1", "filename": "handbook.pdf", "score": 0.9, "text": PASSAGE},
                {"file_id": "file_2", "filename": "trains.pdf", "score": 0.4, "text": "Trains to Thun leave hourly."},
            ],
        },
        {
            "id": "mcp_1",
            "type": "mcp_call",
            "name": "weather",
            "server_label": "meteo",
            "arguments": json.dumps(ARGUMENTS),
            "output": RESULT,
        },
        {
            "id": "mcp_2",
            "type": "mcp_call",
            "name": "tides",
            "server_label": "meteo",
            "arguments": '{"harbor": "Port of Basel"}',
            "output": None,
            "error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no such tide table"}]},
        },
        {
            "id": "mcpl_1",
            "type": "mcp_list_tools",
            "server_label": "meteo",
            "tools": [{"name": "weather", "description": "The forecast of a city", "input_schema": {"type": "object"}}],
        },
        {
            "id": "mcpr_1",
            "type": "mcp_approval_request",
            "name": "book_train",
            "server_label": "rail",
            "arguments": '{"to": "Interlaken Ost"}',
        },
        {
            "id": "ws_1",
            "type": "web_search_call",
            "status": "completed",
            "action": {"type": "search", "query": "weather Bern tomorrow"},
        },
        {
            "id": "ci_1",
            "type": "code_interpreter_call",
            "status": "completed",
            "container_id": "cntr_1",
            "code": "print((21 * 9 / 5) + 32)",
            "outputs": [{"type": "logs", "logs": "69.8 degrees Fahrenheit"}],
        },
        {
            "id": "ig_1",
            "type": "image_generation_call",
            "status": "completed",
            "result": PNG,
            "revised_prompt": "a sunny skyline of Bern",
        },
        {
            "id": "cu_1",
            "type": "computer_call",
            "call_id": "call_c",
            "status": "completed",
            "pending_safety_checks": [],
            "action": {"type": "type", "text": "meteo.example.org"},
        },
        {
            "id": "ls_1",
            "type": "local_shell_call",
            "call_id": "call_l",
            "status": "completed",
            "action": {"type": "exec", "command": ["date", "--iso-8601"], "env": {}},
        },
        {
            "id": "ap_1",
            "type": "apply_patch_call",
            "call_id": "call_p",
            "status": "completed",
            "operation": {"type": "create_file", "path": "notes/bern.md", "diff": "+sunny tomorrow"},
        },
        {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAAAencrypted"},
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {
                    "type": "output_text",
                    "text": ANSWER,
                    "annotations": [
                        {"type": "file_citation", "file_id": "file_1", "filename": "handbook.pdf", "index": 3}
                    ],
                },
                {"type": "refusal", "refusal": "I can't forecast next year."},
            ],
        },
    ]
    data = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5.1",
        "instructions": SYSTEM,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 50,
            "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 0},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 70,
        },
    }
    return Response.model_validate(data).model_dump(mode="json")


def openai_responses_items() -> Any:
    from openai.types.responses import ResponseInputItem
    from pydantic import TypeAdapter

    items = [
        {"role": "developer", "content": SYSTEM},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": QUESTION},
                {"type": "input_image", "detail": "auto", "image_url": "https://example.org/map.png"},
                {"type": "input_file", "filename": "plan.pdf", "file_url": "https://example.org/plan.pdf"},
            ],
        },
        {"type": "function_call", "call_id": "call_w", "name": "weather", "arguments": json.dumps(ARGUMENTS)},
        {"type": "function_call_output", "call_id": "call_w", "output": RESULT},
        {"type": "custom_tool_call", "call_id": "call_n", "name": "note", "input": "sunny tomorrow"},
        {
            "type": "custom_tool_call_output",
            "call_id": "call_n",
            "output": [{"type": "input_text", "text": "the note was saved"}],
        },
        {
            "type": "shell_call",
            "call_id": "call_s",
            "action": {"commands": ["cat notes/bern.md"]},
            "status": "completed",
        },
        {
            "type": "shell_call_output",
            "call_id": "call_s",
            "output": [
                {
                    "stdout": "sunny, says the file",
                    "stderr": "warning: old file",
                    "outcome": {"type": "exit", "exit_code": 0},
                }
            ],
        },
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "call_c",
            "status": "completed",
            "pending_safety_checks": [],
            "action": {"type": "type", "text": "meteo.example.org"},
        },
        {
            "type": "computer_call_output",
            "call_id": "call_c",
            "output": {"type": "computer_screenshot", "image_url": "https://example.org/screen.png"},
        },
        {
            "type": "apply_patch_call",
            "call_id": "call_p",
            "status": "completed",
            "operation": {"type": "update_file", "path": "notes/bern.md", "diff": "-rainy\n+sunny tomorrow"},
        },
        {
            "type": "apply_patch_call_output",
            "call_id": "call_p",
            "status": "failed",
            "output": "the patch doesn't apply",
        },
        {
            "type": "mcp_approval_request",
            "id": "mcpr_1",
            "name": "book_train",
            "server_label": "rail",
            "arguments": '{"to": "Interlaken Ost"}',
        },
        {
            "type": "mcp_approval_response",
            "approval_request_id": "mcpr_1",
            "approve": False,
            "reason": "the budget is spent",
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": THOUGHT}],
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
        },
    ]
    adapter = TypeAdapter(list[ResponseInputItem])
    adapter.validate_python(items)
    return items


def agents_result() -> Any:
    from agents import Agent, ModelResponse, Runner, Usage, function_tool, handoff, set_tracing_disabled
    from agents.models.interface import Model
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

    set_tracing_disabled(True)
    said = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    turns = [
        [ResponseFunctionToolCall(type="function_call", call_id="call_h", name="transfer_to_guide", arguments="{}")],
        [
            ResponseFunctionToolCall(
                type="function_call", call_id="call_w", name="weather", arguments=json.dumps(ARGUMENTS)
            )
        ],
        [
            ResponseOutputMessage.model_validate(
                {**said, "content": [{"type": "output_text", "text": ANSWER, "annotations": []}]}
            )
        ],
    ]

    class Scripted(Model):
        async def get_response(self, *args: Any, **options: Any) -> Any:
            usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
            return ModelResponse(output=turns.pop(0), usage=usage, response_id=None)

        def stream_response(self, *args: Any, **options: Any) -> Any:
            raise NotImplementedError

    @function_tool
    def weather(city: str) -> str:
        return RESULT

    guide = Agent(name="guide", instructions=SYSTEM, model=Scripted(), tools=[weather])
    desk = Agent(name="desk", instructions=SYSTEM, model=guide.model, handoffs=[handoff(guide)])
    return Runner.run_sync(desk, QUESTION)


def openai_agents() -> Any:
    return agents_result().to_input_list()


def anthropic_message() -> Any:
    from anthropic.types import Message

    location = {
        "type": "char_location",
        "cited_text": PASSAGE,
        "document_index": 0,
        "document_title": "Handbook",
        "start_char_index": 0,
        "end_char_index": 9,
        "file_id": None,
    }
    page = {"type": "web_search_result", "title": "Weather page", "url": "https://example.org/w", "page_age": None}
    content = [
        {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZW5jcnlwdGVk"},
        {"type": "text", "text": "Let me check the weather.", "citations": None},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "weather Bern tomorrow"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srv_1",
            "content": [{**page, "encrypted_content": "ZW5jcnlwdGVk"}],
        },
        {"type": "server_tool_use", "id": "srv_2", "name": "web_fetch", "input": {"url": "https://example.org/w"}},
        {
            "type": "web_fetch_tool_result",
            "tool_use_id": "srv_2",
            "content": {
                "type": "web_fetch_result",
                "url": "https://example.org/w",
                "retrieved_at": None,
                "content": {
                    "type": "document",
                    "title": "Weather page",
                    "citations": None,
                    "source": {"type": "text", "media_type": "text/plain", "data": "Tomorrow: sun over the Aare."},
                },
            },
        },
        {
            "type": "server_tool_use",
            "id": "srv_3",
            "name": "code_execution",
            "input": {"code": "print(21 * 9 / 5 + 32)"},
        },
        {
            "type": "code_execution_tool_result",
            "tool_use_id": "srv_3",
            "content": {
                "type": "code_execution_result",
                "stdout": "69.8 degrees Fahrenheit",
                "stderr": "",
                "return_code": 0,
                "content": [],
            },
        },
        {"type": "text", "text": "The handbook says ", "citations": None},
        {"type": "text", "text": "to carry an umbrella", "citations": [location]},
        {"type": "text", "text": ", but it will be sunny.", "citations": None},
    ]
    usage = {
        "input_tokens": 7,
        "output_tokens": 9,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
    }
    data = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": content}
    message = Message.model_validate({**data, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage})
    return message.model_dump(mode="json")


def anthropic_messages() -> Any:
    from anthropic.types import MessageParam
    from pydantic import TypeAdapter

    passage = {
        "type": "search_result",
        "source": "handbook.md",
        "title": "Handbook",
        "content": [{"type": "text", "text": PASSAGE}],
    }
    document = {
        "type": "document",
        "title": "Timetable of trains",
        "source": {"type": "text", "media_type": "text/plain", "data": "Trains to Thun leave hourly."},
    }
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    pdf = {"type": "document", "source": {"type": "url", "url": "https://example.org/plan.pdf"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": QUESTION}, image, pdf, document]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"},
                {"type": "text", "text": "Let me check the weather."},
                {"type": "tool_use", "id": "toolu_w", "name": "weather", "input": ARGUMENTS},
                {"type": "tool_use", "id": "toolu_h", "name": "handbook", "input": {"query": "umbrella in April"}},
                {"type": "tool_use", "id": "toolu_t", "name": "tides", "input": {"harbor": "Port of Basel"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_w",
                    "content": [{"type": "text", "text": RESULT}, image],
                },
                {"type": "tool_result", "tool_use_id": "toolu_h", "content": [passage]},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_t",
                    "content": "no tide table for this harbor",
                    "is_error": True,
                },
                {"type": "text", "text": "Answer in one sentence."},
            ],
        },
        {"role": "assistant", "content": ANSWER},
    ]
    TypeAdapter(list[MessageParam]).validate_python(messages)
    return messages


def gemini_contents() -> Any:
    from google.genai import types

    contents = [
        {
            "role": "user",
            "parts": [
                {"text": QUESTION},
                {"inline_data": {"data": b"png", "mime_type": "image/png"}},
                {"file_data": {"file_uri": "gs://bucket/radar.mp4", "mime_type": "video/mp4"}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": THOUGHT, "thought": True},
                {"function_call": {"id": "fc_1", "name": "weather", "args": ARGUMENTS}},
                {"function_call": {"name": "tides", "args": {"harbor": "Port of Basel"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"function_response": {"name": "tides", "response": {"error": "no tide table for this harbor"}}},
                {"function_response": {"id": "fc_1", "name": "weather", "response": {"result": RESULT}}},
            ],
        },
        {"role": "model", "parts": [{"text": "It will be sunny "}, {"text": "in Bern."}]},
    ]
    return [types.Content.model_validate(each).model_dump(mode="json", exclude_none=True) for each in contents]


def gemini_response() -> Any:
    from google.genai import types

    parts = [
        {"text": THOUGHT, "thought": True},
        {"executableCode": {"language": "PYTHON", "code": "print(21 * 9 / 5 + 32)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "69.8 degrees Fahrenheit"}},
        {"text": ANSWER},
    ]
    grounding = {
        "retrievalQueries": ["umbrella in April"],
        "groundingChunks": [
            {"retrievedContext": {"title": "Handbook", "uri": "gs://bucket/handbook.md", "text": PASSAGE}},
            {"web": {"title": "Weather page", "uri": "https://example.org/w"}},
        ],
    }
    candidate = {
        "content": {"role": "model", "parts": parts},
        "finishReason": "STOP",
        "index": 0,
        "groundingMetadata": grounding,
    }
    usage = {
        "promptTokenCount": 30,
        "cachedContentTokenCount": 20,
        "candidatesTokenCount": 12,
        "thoughtsTokenCount": 5,
        "toolUsePromptTokenCount": 3,
        "totalTokenCount": 50,
    }
    data = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-3", "responseId": "r1"}
    response = types.GenerateContentResponse.model_validate(data)
    return response.model_dump(mode="json", by_alias=True, exclude_none=True)


def pydantic_ai_messages() -> Any:
    from pydantic_ai import BinaryContent, ImageUrl, messages, usage

    kept = messages
    made = [
        kept.ModelRequest(
            parts=[
                kept.SystemPromptPart(content="You know all trains."),
                kept.UserPromptPart(
                    content=[
                        QUESTION,
                        ImageUrl(url="https://example.org/map.png"),
                        BinaryContent(data=b"wave", media_type="audio/wav"),
                        kept.TextContent(content="The guests arrive at noon."),
                    ]
                ),
            ],
            instructions=SYSTEM,
        ),
        kept.ModelResponse(
            parts=[
                kept.ThinkingPart(content=THOUGHT),
                kept.TextPart(content="Let me check the weather."),
                kept.ToolCallPart(tool_name="weather", args=ARGUMENTS, tool_call_id="call_w"),
                kept.ToolCallPart(tool_name="tides", args='{"harbor": "Port of Basel"}', tool_call_id="call_t"),
                kept.NativeToolCallPart(tool_name="web_search", args={"query": "weather Bern"}, tool_call_id="call_s"),
                kept.NativeToolReturnPart(
                    tool_name="web_search", content={"summary": "sun over the Aare"}, tool_call_id="call_s"
                ),
            ],
            usage=usage.RequestUsage(input_tokens=50, cache_read_tokens=40, output_tokens=20),
            model_name="test",
        ),
        kept.ModelRequest(
            parts=[
                kept.ToolReturnPart(tool_name="weather", content={"sky": "clear all afternoon"}, tool_call_id="call_w"),
                kept.ToolReturnPart(
                    tool_name="tides",
                    content="no tide table for this harbor",
                    tool_call_id="call_t",
                    outcome="failed",
                ),
                kept.UserPromptPart(content="Answer in one sentence."),
            ],
            instructions=SYSTEM,
        ),
        kept.ModelResponse(
            parts=[
                kept.FilePart(content=BinaryContent(data=b"png", media_type="image/png")),
                kept.TextPart(content=ANSWER),
            ],
            usage=usage.RequestUsage(input_tokens=60, output_tokens=10),
            model_name="test",
        ),
    ]
    return kept.ModelMessagesTypeAdapter.dump_python(made, mode="json")


def langgraph_state() -> Any:
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
    from langchain_core.tools import tool
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    @tool
    def weather(city: str) -> str:
        """The forecast of a city."""
        return RESULT

    @tool(response_format="content_and_artifact")
    def handbook(query: str) -> tuple[str, list[Any]]:
        """Passages of the handbook."""
        return "found one passage", [Document(page_content=PASSAGE, metadata={"source": "handbook.md"})]

    def counted(number: int) -> Any:
        details = {"input_token_details": {"cache_read": 4}}
        return {"input_tokens": 10, "output_tokens": number, "total_tokens": 10 + number, **details}

    calls = [
        {"name": "weather", "args": ARGUMENTS, "id": "call_w"},
        {"name": "handbook", "args": {"query": "umbrella in April"}, "id": "call_h"},
    ]
    broken = {"name": "tides", "args": '{"harbor": "Port', "id": "call_t", "error": "not a JSON object"}
    turns = [
        AIMessage(
            content=[
                {"type": "reasoning", "reasoning": THOUGHT},
                {"type": "text", "text": "Let me check the weather."},
            ],
            tool_calls=calls,
            invalid_tool_calls=[{**broken, "type": "invalid_tool_call"}],
            usage_metadata=counted(5),
        ),
        AIMessage(content=ANSWER, usage_metadata=counted(3)),
    ]
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [turns.pop(0)]})
    graph.add_node("tools", ToolNode([weather, handbook]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    graph.add_edge("tools", "model")
    image = {"type": "image", "base64": PNG, "mime_type": "image/png"}
    question = HumanMessage(content=[{"type": "text", "text": QUESTION}, image])
    return graph.compile().invoke({"messages": [SystemMessage(SYSTEM), question]})


def langchain_messages() -> Any:
    from langchain_core.messages import messages_to_dict

    return _plain(messages_to_dict(langgraph_state()["messages"]))


def langchain_dumpd() -> Any:
    from langchain_core.load import dumpd

    return dumpd(langgraph_state())


def langchain_content_blocks() -> Any:
    from langchain_core.messages import AIMessage, HumanMessage

    note = {"type": "text-plain", "text": "The guests arrive at noon.", "mime_type": "text/plain"}
    asked = HumanMessage(content_blocks=[{"type": "text", "text": QUESTION}, note, {"type": "audio", "base64": PNG}])
    answered = AIMessage(
        content_blocks=[
            {"type": "reasoning", "reasoning": THOUGHT},
            {"type": "server_tool_call", "name": "web_search", "args": {"query": "weather Bern"}, "id": "srv_1"},
            {
                "type": "server_tool_result",
                "tool_call_id": "srv_1",
                "status": "success",
                "output": "sun over the Aare",
            },
            {"type": "tool_call", "name": "weather", "args": ARGUMENTS, "id": "call_w"},
            {"type": "text", "text": ANSWER},
        ]
    )
    each = [asked, answered]
    return [{"type": message.type, "content_blocks": _plain(message.content_blocks)} for message in each]


def opentelemetry_spans() -> Any:
    """The spans of a run of pydantic-ai, and the span of a retriever."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from pydantic_ai import Agent, BinaryContent, InstrumentationSettings
    from pydantic_ai.capabilities import Instrumentation
    from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    turns = [
        [ThinkingPart(content=THOUGHT), ToolCallPart(tool_name="weather", args=ARGUMENTS, tool_call_id="call_w")],
        [TextPart(content=ANSWER)],
    ]
    model = FunctionModel(lambda messages, info: ModelResponse(parts=turns.pop(0)))
    settings = InstrumentationSettings(tracer_provider=provider)
    agent = Agent(model, instructions=SYSTEM, capabilities=[Instrumentation(settings)])

    @agent.tool_plain
    def weather(city: str) -> str:
        documents = [{"id": "doc_1", "score": 0.9, "content": PASSAGE}]
        with provider.get_tracer("shop").start_as_current_span("retrieval handbook") as span:
            span.set_attribute("gen_ai.operation.name", "retrieval")
            span.set_attribute("gen_ai.retrieval.query.text", "umbrella in April")
            span.set_attribute("gen_ai.retrieval.documents", json.dumps(documents))
        return RESULT

    agent.run_sync([QUESTION, BinaryContent(data=b"png", media_type="image/png")])
    return [json.loads(span.to_json()) for span in exporter.get_finished_spans()]


def openinference_spans() -> Any:
    """The spans of a LangGraph run with a retriever."""
    from langchain_core.documents import Document
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    LangChainInstrumentor().instrument(tracer_provider=provider)

    class Handbook(BaseRetriever):
        def _get_relevant_documents(self, query: str, **options: Any) -> Any:
            return [Document(page_content=PASSAGE, metadata={"source": "handbook.md"})]

    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_token_details": {"cache_read": 4}}
    call = {"name": "weather", "args": ARGUMENTS, "id": "call_w"}
    turns = [
        AIMessage(content="Let me check the weather.", tool_calls=[call], usage_metadata=usage),
        AIMessage(content=ANSWER, usage_metadata=usage),
    ]
    model = GenericFakeChatModel(messages=iter(turns))
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}

    def run(question: str) -> str:
        Handbook().invoke("umbrella in April")
        messages: list[Any] = [
            SystemMessage(SYSTEM),
            HumanMessage(content=[{"type": "text", "text": question}, image]),
        ]
        messages += [model.invoke(messages), ToolMessage(RESULT, tool_call_id="call_w", name="weather")]
        return str(model.invoke(messages).content)

    RunnableLambda(run).invoke(QUESTION)
    LangChainInstrumentor().uninstrument()
    return [json.loads(span.to_json()) for span in exporter.get_finished_spans()]


FIXTURES = {
    "openai_chat": ("OpenAI chat", "openai", openai_chat),
    "openai_chat_response": ("OpenAI chat", "openai", openai_chat_response),
    "openai_responses": ("OpenAI Responses", "openai", openai_responses),
    "openai_responses_items": ("OpenAI Responses", "openai", openai_responses_items),
    "openai_agents": ("OpenAI Responses", "openai-agents", openai_agents),
    "anthropic_message": ("Anthropic", "anthropic", anthropic_message),
    "anthropic_messages": ("Anthropic", "anthropic", anthropic_messages),
    "gemini_contents": ("Gemini", "google-genai", gemini_contents),
    "gemini_response": ("Gemini", "google-genai", gemini_response),
    "pydantic_ai": ("pydantic-ai", "pydantic-ai-slim", pydantic_ai_messages),
    "langchain_messages": ("LangChain", "langchain-core", langchain_messages),
    "langchain_dumpd": ("LangGraph", "langgraph", langchain_dumpd),
    "langchain_content_blocks": ("LangChain", "langchain-core", langchain_content_blocks),
    "opentelemetry_spans": ("OpenTelemetry", "pydantic-ai-slim", opentelemetry_spans),
    "openinference_spans": ("OpenInference", "openinference-instrumentation-langchain", openinference_spans),
}


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda other: other.model_dump(mode="json")))


def main(folder: Path) -> None:
    for name, (kind, library, make) in FIXTURES.items():
        source = f"{library} {importlib.metadata.version(library)}"
        path = folder / f"{name}.json"
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        described = {"format": kind, "source": source, "metadata": known.get("metadata", []), "transcript": make()}
        path.write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
