"""AutoGen AgentChat's messages and events, its agents' model contexts, and the saved states of both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from evalstone._core.guards import is_array
from evalstone.agents.formats.format import Layout, Placed
from evalstone.agents.formats.values import Entries, PlacedError, checked_entries, checked_objects, entries_of

_SPOKEN = ("TextMessage", "MultiModalMessage", "StopMessage", "HandoffMessage", "ToolCallSummaryMessage")
_MODEL_ROLES = {"SystemMessage": "system", "UserMessage": "user", "AssistantMessage": "assistant"}
_RESULTS = ("ToolCallExecutionEvent", "FunctionExecutionResultMessage")
_BOOKKEEPING = (
    *("UserInputRequestedEvent", "ModelClientStreamingChunkEvent"),  # a piece of the message that follows
    *("SelectSpeakerEvent", "SelectorEvent"),
)
_TYPES = frozenset(
    (
        *(*_SPOKEN, *_MODEL_ROLES, *_RESULTS, *_BOOKKEEPING),
        *("StructuredMessage", "ToolCallRequestEvent", "ThoughtEvent", "MemoryQueryEvent"),
        *("CodeGenerationEvent", "CodeExecutionEvent"),
    )
)
_CODE = "code_execution"


def is_message(item: Entries) -> bool:
    """Whether this is a message or an event of a team or an agent, or a message in an agent's model context."""
    known = _type(item) in _TYPES and not item.keys().isdisjoint(("content", "result"))
    return "role" not in item and (known or {"source", "models_usage"} <= item.keys() or _is_result(item))


def messages(items: Sequence[Entries], at: int) -> Iterator[Placed]:
    """The message of an agent or a user, with the preceding thought as its reasoning. The text of a handoff is left out
    if it is the result of the call that handed over."""
    item, before = items[at], items[at - 1] if at else Entries()
    kind, content = _type(item), item.get("content")
    if kind in _BOOKKEEPING or (kind == "HandoffMessage" and _repeats_result(item, before)):
        return
    if _is_result(item) and at:
        return  # the end of a stream, which has all messages again
    if kind in _RESULTS:
        yield "", {"role": "tool", "content": [{"type": "tool_result", **each} for each in _objects(item)]}
        return
    if kind == "CodeExecutionEvent":
        result = checked_entries(item.get("result"), ".result")
        failed = result.get("exit_code") != 0
        part = {"type": "tool_result", "name": _CODE, "content": result.get("output"), "is_error": failed}
        yield "", {"role": "tool", "content": [part]}
        return
    if kind == "MemoryQueryEvent":
        texts = [{"type": "text", "text": each.get("content")} for each in _objects(item)]
        found = [{"type": "search_result", "content": [text]} for text in texts]
        yield "", {"role": "system", "content": [*texts, *found]}
        return
    if kind == "ThoughtEvent":
        if at + 1 == len(items) or _thought(items[at + 1], item) is None:
            yield "", {"role": "assistant", "content": "", "reasoning": content}
        return
    thought = item.get("thought") or _thought(item, before)
    message: Entries = {"role": _role(item, before), "reasoning": thought, "usage": item.get("models_usage")}
    if kind == "ToolCallRequestEvent" or (kind == "AssistantMessage" and is_array(content)):
        yield "", {**message, "content": None, "tool_calls": content}
    elif kind == "CodeGenerationEvent":
        call = {"name": _CODE, "arguments": {"code_blocks": item.get("code_blocks")}}
        yield "", {**message, "content": content, "tool_calls": [call]}
    elif kind == "StructuredMessage":
        yield "", {**message, "content": json.dumps(content, ensure_ascii=False)}
    elif is_array(content) and kind in _TYPES:
        yield "", {**message, "content": [each if isinstance(each, str) else _image(each) for each in _list(content)]}
    else:
        yield "", {**message, "content": content if isinstance(content, str) else [item]}


def is_state(value: Any) -> bool:
    """Whether this is what `save_state` of a team or an agent returns."""
    return entries_of(value).get("type") in ("TeamState", "AssistantAgentState")


def read_state(value: Any) -> Layout:
    """The thread of a team, or the model context of an agent."""
    state, layout = entries_of(value), Layout()
    if state["type"] == "AssistantAgentState":
        context = checked_entries(state.get("llm_context"), "llm_context")
        layout.extend(context.get("messages"), "llm_context.messages")
        return layout
    states = checked_entries(state.get("agent_states"), "agent_states")
    name = next((name for name, each in states.items() if "message_thread" in entries_of(each)), None)
    if name is None:
        raise PlacedError("the state of a team must have that of its manager, with a message_thread", "agent_states")
    layout.extend(states[name]["message_thread"], f"agent_states.{name}.message_thread")
    return layout


def _is_result(item: Entries) -> bool:
    """Whether this is the result of a run."""
    return {"messages", "stop_reason"} <= item.keys()


def _type(item: Entries) -> str:
    """The type of a message, without the type parameter of a StructuredMessage."""
    return str(item.get("type")).partition("[")[0]


def _role(item: Entries, before: Entries) -> str:
    """The role of a message's author. AutoGen calls the task's author `user`; a user agent may have any name."""
    if (role := _MODEL_ROLES.get(_type(item))) is not None:
        return role
    asked = _type(before) == "UserInputRequestedEvent" and before.get("source") == item.get("source")
    return "user" if asked or item.get("source") == "user" else "assistant"


def _thought(item: Entries, before: Entries) -> Any:
    """The thought that belongs to a message; None if the item before the message isn't its thought."""
    takes = _type(item) in (*_SPOKEN, "StructuredMessage", "ToolCallRequestEvent", "CodeGenerationEvent")
    own = _type(before) == "ThoughtEvent" and before.get("source") == item.get("source")
    return before.get("content") if takes and own else None


def _repeats_result(item: Entries, before: Entries) -> bool:
    results = _objects(before) if _type(before) in _RESULTS else []
    return any(each.get("content") == item.get("content") for each in results)


def _objects(item: Entries) -> list[Entries]:
    return checked_objects(item.get("content"), ".content")


def _list(value: Any) -> list[Any]:
    return value


def _image(part: Any) -> Entries:
    return {"type": "image"} if "data" in entries_of(part) else entries_of(part)
