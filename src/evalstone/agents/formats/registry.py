"""The registry of formats, which all readers use: of transcripts, of lists of messages, of data files and of traces."""

from __future__ import annotations

from evalstone.agents.formats import (
    ai_sdk,
    anthropic,
    atif,
    autogen,
    bedrock,
    claude_code,
    gemini,
    instrumentations,
    langchain,
    mastra,
    openai,
    pydantic_ai,
    sharegpt,
    smolagents,
    strands,
)
from evalstone.agents.formats.format import Format, Run, Whole
from evalstone.agents.formats.roles import role_of
from evalstone.agents.formats.values import Entries


def _has_role(item: Entries) -> bool:
    return role_of(item) is not None


FORMATS: tuple[Format, ...] = (
    Format(
        name="Claude Code",
        reads="a session; `--output-format stream-json` and `json`; the messages that `query` of the Claude Agent SDK "
        "(0.2.189) yields",
        whole=Whole(claude_code.is_session, claude_code.read_session),
    ),
    Format(
        name="ATIF",
        reads="a trajectory of Harbor, versions 1.0 to 1.8",
        whole=Whole(atif.is_trajectory, atif.read_trajectory),
    ),
    Format(
        name="OpenInference",
        reads="spans; attributes alone, flat or as a tree",
        is_trace=instrumentations.is_openinference,
    ),
    Format(
        name="LangGraph",
        reads="a state with `messages`",
        whole=Whole(langchain.is_state, langchain.read_state),
    ),
    Format(
        name="LangChain",
        reads="lists of messages, as objects, by `messages_to_dict`, by `dumpd` or with `content_blocks`; ragas' "
        "messages",
        is_message=langchain.is_message,
        messages=langchain.messages,
    ),
    Format(
        name="pydantic-ai",
        reads="the result of a run; `all_messages()`, `all_messages_json()`",
        is_message=pydantic_ai.is_message,
        messages=pydantic_ai.messages,
        run=Run("pydantic_ai", "all_messages_json", pydantic_ai.read_run),
    ),
    Format(
        name="AutoGen",
        reads="the result of a team or an agent of AgentChat (`TaskResult`); lists of messages and events; what "
        "`save_state` returns",
        is_message=autogen.is_message,
        messages=autogen.messages,
        whole=Whole(autogen.is_state, autogen.read_state),
    ),
    Format(
        name="OpenAI Responses",
        reads="a response; lists of items, with calls of MCP servers and of OpenAI's own tools",
        is_message=openai.is_item,
        whole=Whole(openai.is_response, openai.read_response),
    ),
    Format(
        name="Gemini",
        reads="a response; a request; lists of contents",
        is_message=gemini.is_message,
        whole=Whole(gemini.is_exchange, gemini.read_exchange),
    ),
    Format(
        name="Mastra",
        reads="the result of `generate`, and of a workflow's `start`; stored messages",
        is_message=mastra.is_message,
        whole=Whole(mastra.is_result, mastra.read_result),
    ),
    Format(
        name="OpenTelemetry",
        reads="spans, log records and events with `gen_ai.*` attributes; lists of messages with `parts`; results under "
        "`response` or `result`",
        is_message=instrumentations.is_opentelemetry_message,
        is_trace=instrumentations.is_opentelemetry,
    ),
    Format(
        name="AI SDK",
        reads="the result of `generateText`; UI messages, also of version 4; model messages",
        is_message=ai_sdk.is_message,
        whole=Whole(ai_sdk.is_result, ai_sdk.read_result),
    ),
    Format(
        name="Anthropic",
        reads="a message; lists of messages, with calls and results of server tools",
        is_message=anthropic.is_message,
        whole=Whole(anthropic.is_response, anthropic.read_response),
    ),
    Format(
        name="Bedrock Converse",
        reads="a response; a request; lists of messages; a record of the invocation log",
        is_message=bedrock.is_message,
        whole=Whole(bedrock.is_converse, bedrock.read_converse),
    ),
    Format(
        name="smolagents",
        reads="an agent's memory, by `write_memory_to_messages()`",
        is_message=smolagents.is_message,
        messages=smolagents.messages,
    ),
    Format(
        name="ShareGPT",
        reads="lists of turns with `from` and `value`",
        is_message=sharegpt.is_message,
    ),
    Format(
        name="OpenAI Agents",
        reads="the result of a run",
        run=Run("agents", "to_input_list", openai.read_agents_run),
    ),
    Format(
        name="Strands",
        reads="the result of an agent's call; for its messages, see Bedrock Converse",
        run=Run("strands", "to_dict", strands.read_run),
        part=strands.PART,
    ),
    Format(
        name="OpenAI chat",
        reads="messages; a completion; the same from other providers with this API",
        is_message=_has_role,
        whole=Whole(openai.is_chat_completion, openai.read_chat_completion),
    ),
)
"""The known formats. The first one that matches is used: a whole transcript or a trace before a list of messages."""

_TRANSLATED = tuple(known for known in FORMATS if known.messages is not None)


def translated(item: Entries) -> Format | None:
    """The format of a message that isn't in the common form; None for any other object."""
    return next((known for known in _TRANSLATED if known.is_message is not None and known.is_message(item)), None)
