"""Messages as other tools write them, read as Message values.

Understood are OpenAI's messages (content as text or parts, `tool_calls`, role `tool`), Anthropic's parts (`tool_use`,
`tool_result`), Mastra's messages and the AI SDK's (`{format: 2, parts, content}`, `tool-invocation`), ragas' and
LangChain's (`type: human`), ShareGPT's (`from`, `value`), and plain Message values. The reply of a tool becomes the
result of the call that it answers; a call that nothing answers stays in state "call".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from evalstone.agents.messages import merge_tool_calls
from evalstone.datasets.names import normal
from evalstone.datasets.tool_calls import Returned, attach, read_call
from evalstone.datasets.wording import excerpt, listed
from evalstone.errors import DataError
from evalstone.types import ROLES, Message, Role, ToolCall

_ROLE_NAMES: Mapping[str, Role] = {
    **{role: role for role in ROLES},
    "human": "user",
    "ai": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "developer": "system",
    "function": "tool",
}
_ROLE_KEYS = ("role", "from", "type")
_ROLE_TYPES = ("human", "ai", "system", "tool")
_CONTENT_KEYS = ("content", "parts", "value", "text")
_CALL_LISTS = ("toolcalls", "toolinvocations", "toolscalled")
_THOUGHTS = ("reasoning", "thinking")
_CALL_PARTS = ("tool_use", "tool-call", "tool_call", "function_call", "dynamic-tool")
_RESULT_PARTS = ("tool_result", "tool-result")


def is_conversation(items: list[Any]) -> bool:
    """Whether a list holds messages: its first item is one, or an object that names who speaks."""
    first = items[0] if items else None
    return isinstance(first, Message) or (isinstance(first, dict) and _role(cast("dict[str, Any]", first)) is not None)


def is_parts(items: list[Any]) -> bool:
    """Whether a list holds the parts of one message: objects with a `type`, one of them with a text."""
    parts = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict) and "type" in item]
    return len(parts) == len(items) and any(isinstance(part.get("text"), str) for part in parts)


def read_messages(items: Iterable[Any]) -> tuple[Message, ...]:
    """Messages in their order. Raises DataError for an item that is no message, or has an unknown role."""
    messages: list[Message] = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, Message):
            messages.append(item)
        elif isinstance(item, dict):
            _append(messages, cast("dict[str, Any]", item), number)
        else:
            raise DataError(f"must be a list of messages; message {number} must be an object, not {excerpt(item)}")
    return tuple(messages)


def read_parts(parts: list[Any], role: Role) -> tuple[Message, ...]:
    """The parts of one message, as that message."""
    return read_messages([{"role": role, "content": parts}])


@dataclass
class _Turn:
    """What is gathered from one message."""

    texts: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    returned: list[Returned] = field(default_factory=list[Returned])

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    @property
    def reasoning(self) -> str | None:
        return "\n".join(self.thoughts) or None


def _role(item: Mapping[str, Any]) -> Role | None:
    for key in _ROLE_KEYS:
        name = item.get(key) if item.get(key) != "signal" else _signalled(item)
        if isinstance(name, str) and name.lower() in (_ROLE_TYPES if key == "type" else _ROLE_NAMES):
            return _ROLE_NAMES[name.lower()]
    return None


def _signalled(item: Mapping[str, Any]) -> Any:
    """In whose name a message of Mastra's role `signal` speaks: its tag, else its type."""
    content: Any = item.get("content")
    held: Any = item.get("metadata") or (
        cast("dict[str, Any]", content).get("metadata") if isinstance(content, dict) else None
    )
    signal: Any = cast("dict[str, Any]", held).get("signal") if isinstance(held, dict) else None
    tags = cast("dict[str, Any]", signal) if isinstance(signal, dict) else {}
    return tags.get("tagName") or tags.get("type") or item.get("type")


def _append(messages: list[Message], item: dict[str, Any], number: int) -> None:
    role = _role(item)
    if role is None:
        came = next((item[key] for key in _ROLE_KEYS if key in item), None)
        what = f"role {excerpt(came)}" if came is not None else f"no role; it has {listed(item) or 'no entries'}"
        raise DataError(f"must be a list of messages; message {number} has {what}, expected {', '.join(ROLES)}")
    turn = _Turn()
    try:
        _gather(item, turn)
    except DataError as error:
        raise DataError(f"must be a list of messages; in message {number}, {error}") from None
    if role == "tool" and not turn.returned:
        given = next((item[key] for key in ("tool_call_id", "toolCallId") if isinstance(item.get(key), str)), "")
        if attach(messages, Returned(given, turn.text)):
            return
    strays = [returned for returned in turn.returned if not attach(messages, returned, own=turn.calls)]
    if turn.text or turn.calls or not turn.returned:
        calls, reasoning = turn.calls, turn.reasoning
        messages.append(Message(role=role, content=turn.text, tool_calls=calls, reasoning=reasoning))
    messages.extend(Message(role="tool", content=returned.text) for returned in strays)


def _gather(item: dict[str, Any], turn: _Turn) -> None:
    content = next((item[key] for key in _CONTENT_KEYS if item.get(key) is not None), None)
    _take_content(content, turn)
    _take_extras(item, turn)


def _take_content(content: Any, turn: _Turn) -> None:
    if content is None:
        return
    if isinstance(content, str):
        turn.texts.append(content)
    elif isinstance(content, list):
        for part in cast("list[Any]", content):
            _take_part(part, turn)
    elif isinstance(content, dict):
        body = cast("dict[str, Any]", content)
        _take_content(body.get("parts"), turn)
        if isinstance(body.get("content"), str) and body["content"]:
            # Mastra repeats the text of the parts here; where the two differ this is the text that it judges.
            turn.texts[:] = [body["content"]]
        _take_extras(body, turn)
    else:
        raise DataError(f"content must be text or a list of parts, not {type(content).__name__}: {excerpt(content)}")


def _take_part(part: Any, turn: _Turn) -> None:
    if isinstance(part, str):
        turn.texts.append(part)
        return
    if not isinstance(part, dict):
        raise DataError(f"a part of the content must be an object, not {type(part).__name__}: {excerpt(part)}")
    item = cast("dict[str, Any]", part)
    kind = str(item.get("type", "text"))
    if kind in _THOUGHTS:
        _take_thought(item.get("text") or item.get("reasoning") or item.get("thinking"), turn)
    elif kind == "tool-invocation":
        turn.calls.append(read_call(item.get("toolInvocation")))
    elif kind in _RESULT_PARTS:
        turn.returned.append(Returned.read(item))
    elif kind in _CALL_PARTS or kind.startswith("tool-"):
        name = kind.removeprefix("tool-")
        turn.calls.append(read_call({"toolName": name, **item} if kind not in _CALL_PARTS else item))
    elif isinstance(item.get("text"), str):
        turn.texts.append(item["text"])


def _take_thought(thought: Any, turn: _Turn) -> None:
    if isinstance(thought, str) and thought:
        turn.thoughts.append(thought)


def _take_extras(item: dict[str, Any], turn: _Turn) -> None:
    by_name = {normal(key): value for key, value in item.items()}
    if not turn.thoughts:
        _take_thought(by_name.get("reasoning") or by_name.get("reasoningcontent"), turn)
    lists = [by_name[name] for name in _CALL_LISTS if by_name.get(name)]
    calls: Any = lists[0] if lists else [by_name["functioncall"]] if by_name.get("functioncall") else []
    if not isinstance(calls, list):
        raise DataError(f"tool calls must be a list, not {type(calls).__name__}: {excerpt(calls)}")
    again = [read_call(call) for call in cast("list[Any]", calls)]
    # The same call may stand in a part and in the list beside; without ids the parts are the whole account.
    if not turn.calls or all(call.id for call in (*turn.calls, *again)):
        turn.calls[:] = merge_tool_calls(turn.calls, again)
