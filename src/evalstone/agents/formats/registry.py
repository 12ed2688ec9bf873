"""The registry of formats, which all readers use: of transcripts, of lists of messages, of data files and of traces."""

from __future__ import annotations

from evalstone.agents.formats import (
    ai_sdk,
    anthropic,
    atif,
    bedrock,
    claude_code,
    gemini,
    instrumentations,
    langchain,
    mastra,
    openai,
    pydantic_ai,
    sharegpt,
    strands,
)
from evalstone.agents.formats.format import Format, Run, Whole
from evalstone.agents.formats.roles import role_of
from evalstone.agents.formats.values import Entries


def _has_role(item: Entries) -> bool:
    return role_of(item) is not None


FORMATS: tuple[Format, ...] = (
    Format(name="Claude Code", whole=Whole(claude_code.is_session, claude_code.read_session)),
    Format(name="ATIF", whole=Whole(atif.is_trajectory, atif.read_trajectory)),
    Format(name="OpenInference", is_trace=instrumentations.is_openinference),
    Format(name="LangGraph", whole=Whole(langchain.is_state, langchain.read_state)),
    Format(name="LangChain", is_message=langchain.is_message, messages=langchain.messages),
    Format(
        name="pydantic-ai",
        is_message=pydantic_ai.is_message,
        messages=pydantic_ai.messages,
        run=Run("pydantic_ai", "all_messages_json", pydantic_ai.read_run),
    ),
    Format(
        name="OpenAI Responses",
        is_message=openai.is_item,
        whole=Whole(openai.is_response, openai.read_response),
    ),
    Format(name="Gemini", is_message=gemini.is_message, whole=Whole(gemini.is_exchange, gemini.read_exchange)),
    Format(name="Mastra", is_message=mastra.is_message, whole=Whole(mastra.is_result, mastra.read_result)),
    Format(
        name="OpenTelemetry",
        is_message=instrumentations.is_opentelemetry_message,
        is_trace=instrumentations.is_opentelemetry,
    ),
    Format(name="AI SDK", is_message=ai_sdk.is_message, whole=Whole(ai_sdk.is_result, ai_sdk.read_result)),
    Format(
        name="Anthropic",
        is_message=anthropic.is_message,
        whole=Whole(anthropic.is_response, anthropic.read_response),
    ),
    Format(
        name="Bedrock Converse",
        is_message=bedrock.is_message,
        whole=Whole(bedrock.is_converse, bedrock.read_converse),
    ),
    Format(name="ShareGPT", is_message=sharegpt.is_message),
    Format(name="OpenAI Agents", run=Run("agents", "to_input_list", openai.read_agents_run)),
    Format(name="Strands", run=Run("strands", "to_dict", strands.read_run), part=strands.PART),
    Format(
        name="OpenAI chat",
        is_message=_has_role,
        whole=Whole(openai.is_chat_completion, openai.read_chat_completion),
    ),
)
"""The known formats. The first one that matches is used: a whole transcript or a trace before a list of messages."""

_TRANSLATED = tuple(known for known in FORMATS if known.messages is not None)


def translated(item: Entries) -> Format | None:
    """The format of a message that isn't in the common form; None for any other object."""
    return next((known for known in _TRANSLATED if known.is_message is not None and known.is_message(item)), None)
