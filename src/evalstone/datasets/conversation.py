"""Messages and tool calls as other tools write them, read as Message and ToolCall values.

Supported are OpenAI's messages (content as text or parts, `tool_calls`, role `tool`), Anthropic's parts (`tool_use`,
`tool_result`), Mastra's messages and the AI SDK's (`{format: 2, parts, content}`, `tool-invocation`), ragas' and
LangChain's (`type: human`), ShareGPT's (`from`, `value`), and plain Message values. The reply of a tool becomes the
result of the call that it answers; a call without an answer stays in state "call".
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from evalstone.agents.messages import merge_tool_calls
from evalstone.datasets.columns import normal
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
_THOUGHT_PARTS = ("reasoning", "thinking")
_CALL_PARTS = ("tool_use", "tool-call", "tool_call", "function_call", "dynamic-tool")
_RESULT_PARTS = ("tool_result", "tool-result")

_CALL_LISTS = ("toolcalls", "toolinvocations", "toolscalled")
_CALL_NAMES = ("name", "toolname", "tool")
_CALL_ARGUMENTS = ("arguments", "args", "inputparameters", "input", "parameters")
_CALL_RESULTS = ("result", "output")
_CALL_IDS = ("toolcallid", "callid", "id")
_CALL_ERRORS = ("error", "errortext")
_State: TypeAlias = Literal["result", "call", "error", "partial"]
_CALL_STATES: Mapping[str, _State] = {
    "result": "result",
    "output-available": "result",
    "call": "call",
    "partial-call": "partial",
    "input-streaming": "partial",
    "input-available": "call",
    "error": "error",
    "output-error": "error",
}


def is_conversation(items: list[Any]) -> bool:
    """Whether a list has messages: its first item is one, or an object with a role."""
    first = items[0] if items else None
    return isinstance(first, Message) or (isinstance(first, dict) and _role(cast("dict[str, Any]", first)) is not None)


def is_parts(items: list[Any]) -> bool:
    """Whether a list has the parts of one message: objects with a `type`, at least one of them with a text."""
    parts = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict) and "type" in item]
    return len(parts) == len(items) and any(isinstance(part.get("text"), str) for part in parts)


def is_calls(items: list[Any]) -> bool:
    """Whether a list has tool calls and not messages: its first item names a tool and has no role."""
    first = items[0] if items else None
    if not isinstance(first, dict):
        return isinstance(first, ToolCall)
    keys = {normal(key) for key in cast("dict[str, Any]", first)}
    return "role" not in keys and not keys.isdisjoint((*_CALL_NAMES, "function"))


def read_messages(items: Iterable[Any]) -> tuple[Message, ...]:
    """Messages in their order. Raises DataError for an item that is not a message or has an unknown role."""
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


def read_call(item: Any) -> ToolCall:
    """One tool call. Raises DataError when it names no tool.

    Arguments may be an object or, as OpenAI has it, a JSON text; a text that is not an object is kept under `raw`,
    because a model's malformed arguments are what is to be judged.
    """
    if isinstance(item, ToolCall):
        return item
    if not isinstance(item, dict):
        raise DataError(f"a tool call must be an object, not {type(item).__name__}: {excerpt(item)}")
    entries = cast("dict[str, Any]", item)
    by_name = {normal(key): value for key, value in entries.items()}
    if isinstance(by_name.get("function"), dict):
        by_name |= {normal(key): value for key, value in cast("dict[str, Any]", by_name["function"]).items()}
    name = _first(by_name, _CALL_NAMES)
    if not isinstance(name, str) or not name:
        raise DataError(f"a tool call must have a name, not only {listed(entries) or 'nothing'}")
    result, error, state = _first(by_name, _CALL_RESULTS), _first(by_name, _CALL_ERRORS), by_name.get("state")
    if not isinstance(state, str) or state not in _CALL_STATES:
        state = "error" if error is not None else "call" if result is None else "result"
    return ToolCall(
        name=name,
        arguments=_arguments(_first(by_name, _CALL_ARGUMENTS)),
        result=result,
        id=str(_first(by_name, _CALL_IDS) or ""),
        state=_CALL_STATES[state],
        error=None if error is None else str(error),
    )


def _first(by_name: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((by_name[name] for name in names if by_name.get(name) is not None), None)


def _arguments(value: Any) -> Mapping[str, Any]:
    if value is None or value == "":
        return {}
    arguments: Any = value
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            arguments = json.loads(value)
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {"raw": value}


@dataclass(frozen=True)
class _ToolResult:
    """The reply of a tool, and the id of the call. Without an id it answers the latest message with an open call."""

    id: str
    result: Any
    failed: bool = False

    @property
    def text(self) -> str:
        """The result as the content of a message."""
        return self.result if isinstance(self.result, str) else json.dumps(self.result, ensure_ascii=False, default=str)


def _tool_result(part: Mapping[str, Any]) -> _ToolResult:
    """The part of a message that carries a tool's result."""
    by_name = {normal(key): value for key, value in part.items()}
    result = _first(by_name, ("content", *_CALL_RESULTS))
    if isinstance(result, list):
        items = [cast("dict[str, Any]", item) for item in cast("list[Any]", result) if isinstance(item, dict)]
        texts = [item["text"] for item in items if isinstance(item.get("text"), str)]
        result = "\n".join(texts) if texts else cast("list[Any]", result)
    call_id = _first(by_name, ("tooluseid", "toolcallid", "callid"))
    return _ToolResult(str(call_id or ""), result, bool(by_name.get("iserror")))


def _attach(messages: list[Message], result: _ToolResult, own: list[ToolCall] | None = None) -> bool:
    """Give a result to the open call it answers, the latest with that id; False when there is none.

    own: calls of the message that is being read, searched first.
    """
    for calls, at in _calls(messages, own):
        for place, call in enumerate(calls):
            if call.state in ("call", "partial") and result.id in ("", call.id):
                error = result.text if result.failed else None
                calls[place] = replace(
                    call, result=result.result, state="error" if result.failed else "result", error=error
                )
                if at is not None:
                    messages[at] = replace(messages[at], tool_calls=calls)
                return True
    return False


def _calls(messages: list[Message], own: list[ToolCall] | None) -> Iterator[tuple[list[ToolCall], int | None]]:
    """The calls of each message, the latest first, and its position."""
    if own:
        yield own, None
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].tool_calls:
            yield list(messages[at].tool_calls), at


def _role(item: Mapping[str, Any]) -> Role | None:
    for key in _ROLE_KEYS:
        name = item.get(key) if item.get(key) != "signal" else _signal_role(item)
        if isinstance(name, str) and name.lower() in (_ROLE_TYPES if key == "type" else _ROLE_NAMES):
            return _ROLE_NAMES[name.lower()]
    return None


def _signal_role(item: Mapping[str, Any]) -> Any:
    """The role of a message with Mastra's role `signal`: its tag, else its type."""
    content: Any = item.get("content")
    in_content: Any = cast("dict[str, Any]", content).get("metadata") if isinstance(content, dict) else None
    metadata: Any = item.get("metadata") or in_content
    signal: Any = cast("dict[str, Any]", metadata).get("signal") if isinstance(metadata, dict) else None
    tags = cast("dict[str, Any]", signal) if isinstance(signal, dict) else {}
    return tags.get("tagName") or tags.get("type") or item.get("type")


def _append(messages: list[Message], item: dict[str, Any], number: int) -> None:
    """Read one message and append it, or attach the tool results in it to the calls that they answer."""
    role = _role(item)
    if role is None:
        name = next((item[key] for key in _ROLE_KEYS if key in item), None)
        problem = f"role {excerpt(name)}" if name is not None else f"no role; it has {listed(item) or 'no entries'}"
        raise DataError(f"must be a list of messages; message {number} has {problem}, expected {', '.join(ROLES)}")
    content = _Content()
    try:
        content.read(next((item[key] for key in _CONTENT_KEYS if item.get(key) is not None), None))
        content.read_calls(item)
    except DataError as error:
        raise DataError(f"must be a list of messages; in message {number}, {error}") from None
    text, calls = "\n".join(content.texts), content.calls
    if role == "tool" and not content.results:
        call_id = next((item[key] for key in ("tool_call_id", "toolCallId") if isinstance(item.get(key), str)), "")
        if _attach(messages, _ToolResult(call_id, text)):
            return
    unanswered = [result for result in content.results if not _attach(messages, result, own=calls)]
    if text or calls or not content.results:
        reasoning = "\n".join(content.thoughts) or None
        messages.append(Message(role=role, content=text, tool_calls=calls, reasoning=reasoning))
    messages.extend(Message(role="tool", content=result.text) for result in unanswered)


@dataclass
class _Content:
    """What is collected from one message."""

    texts: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[_ToolResult] = field(default_factory=list[_ToolResult])

    def read(self, content: Any) -> None:
        if isinstance(content, str):
            self.texts.append(content)
        elif isinstance(content, list):
            for part in cast("list[Any]", content):
                self._read_part(part)
        elif isinstance(content, dict):
            body = cast("dict[str, Any]", content)
            self.read(body.get("parts"))
            if isinstance(body.get("content"), str) and body["content"]:
                # Mastra repeats the text of the parts here; where the two differ, this is the text that it judges.
                self.texts[:] = [body["content"]]
            self.read_calls(body)
        elif content is not None:
            raise DataError(
                f"content must be text or a list of parts, not {type(content).__name__}: {excerpt(content)}"
            )

    def _read_part(self, part: Any) -> None:
        if isinstance(part, str):
            self.texts.append(part)
            return
        if not isinstance(part, dict):
            raise DataError(f"a part of the content must be an object, not {type(part).__name__}: {excerpt(part)}")
        item = cast("dict[str, Any]", part)
        kind = str(item.get("type", "text"))
        if kind in _THOUGHT_PARTS:
            self._read_thought(item.get("text") or item.get("reasoning") or item.get("thinking"))
        elif kind == "tool-invocation":
            self.calls.append(read_call(item.get("toolInvocation")))
        elif kind in _RESULT_PARTS:
            self.results.append(_tool_result(item))
        elif kind in _CALL_PARTS:
            self.calls.append(read_call(item))
        elif kind.startswith("tool-"):
            self.calls.append(read_call({"toolName": kind.removeprefix("tool-"), **item}))
        elif isinstance(item.get("text"), str):
            self.texts.append(item["text"])

    def _read_thought(self, thought: Any) -> None:
        if isinstance(thought, str) and thought:
            self.thoughts.append(thought)

    def read_calls(self, item: dict[str, Any]) -> None:
        """The reasoning and the tool calls beside the content."""
        by_name = {normal(key): value for key, value in item.items()}
        if not self.thoughts:
            self._read_thought(by_name.get("reasoning") or by_name.get("reasoningcontent"))
        lists = [by_name[name] for name in _CALL_LISTS if by_name.get(name)]
        calls: Any = lists[0] if lists else [by_name["functioncall"]] if by_name.get("functioncall") else []
        if not isinstance(calls, list):
            raise DataError(f"tool calls must be a list, not {type(calls).__name__}: {excerpt(calls)}")
        beside = [read_call(call) for call in cast("list[Any]", calls)]
        # The same call may be in a part and in the list beside; without ids the parts are complete.
        if not self.calls or all(call.id for call in (*self.calls, *beside)):
            self.calls[:] = merge_tool_calls(self.calls, beside)
