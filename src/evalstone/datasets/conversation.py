"""Messages as other tools write them, read as Message values.

Understood are OpenAI's messages (content as text or parts, `tool_calls`, role `tool`), Anthropic's parts (`tool_use`,
`tool_result`), Mastra's messages and the AI SDK's (`{format: 2, parts, content}`, `tool-invocation`), ragas' and
LangChain's (`type: human`), ShareGPT's (`from`, `value`), and plain Message values. The reply of a tool becomes the
result of the call that it answers; a call that nothing answers stays in state "call".
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

_NAMES = ("name", "toolname", "tool")
_ARGUMENTS = ("arguments", "args", "inputparameters", "input", "parameters")
_RESULTS = ("result", "output")
_IDS = ("toolcallid", "callid", "id")
_ERRORS = ("error", "errortext")
_State: TypeAlias = Literal["result", "call", "error", "partial"]
_STATES: Mapping[str, _State] = {
    "result": "result",
    "output-available": "result",
    "call": "call",
    "partial-call": "partial",
    "input-streaming": "partial",
    "input-available": "call",
    "error": "error",
    "output-error": "error",
}


@dataclass(frozen=True)
class Returned:
    """What a tool gave back, and the id of the call. Without an id it answers the latest message whose call waits."""

    id: str
    result: Any
    failed: bool = False

    @classmethod
    def read(cls, part: Mapping[str, Any]) -> Returned:
        """The part of a message that carries a tool's result."""
        by_name = {normal(key): value for key, value in part.items()}
        result = _first(by_name, ("content", *_RESULTS))
        if isinstance(result, list):
            items = [cast("dict[str, Any]", item) for item in cast("list[Any]", result) if isinstance(item, dict)]
            texts = [item["text"] for item in items if isinstance(item.get("text"), str)]
            result = "\n".join(texts) if texts else cast("list[Any]", result)
        given = _first(by_name, ("tooluseid", "toolcallid", "callid"))
        return cls(str(given or ""), result, bool(by_name.get("iserror")))

    @property
    def text(self) -> str:
        """The result as the content of a message."""
        return self.result if isinstance(self.result, str) else json.dumps(self.result, ensure_ascii=False, default=str)


def is_calls(items: list[Any]) -> bool:
    """Whether a list holds tool calls, to tell it from one of messages: its first item names a tool, and no role."""
    first = items[0] if items else None
    if not isinstance(first, dict):
        return isinstance(first, ToolCall)
    keys = {normal(key) for key in cast("dict[str, Any]", first)}
    return "role" not in keys and not keys.isdisjoint((*_NAMES, "function"))


def read_call(item: Any) -> ToolCall:
    """One tool call. Raises DataError when it names no tool.

    Arguments may be an object or, as OpenAI has it, a JSON text; a text that is no object is kept under `raw`, because
    what a model got wrong is what is to be judged.
    """
    if isinstance(item, ToolCall):
        return item
    if not isinstance(item, dict):
        raise DataError(f"a tool call must be an object, not {type(item).__name__}: {excerpt(item)}")
    entries = cast("dict[str, Any]", item)
    by_name = {normal(key): value for key, value in entries.items()}
    if isinstance(by_name.get("function"), dict):
        by_name |= {normal(key): value for key, value in cast("dict[str, Any]", by_name["function"]).items()}
    name = _first(by_name, _NAMES)
    if not isinstance(name, str) or not name:
        raise DataError(f"a tool call must have a name, not only {listed(entries) or 'nothing'}")
    result, error = _first(by_name, _RESULTS), _first(by_name, _ERRORS)
    return ToolCall(
        name=name,
        arguments=_arguments(_first(by_name, _ARGUMENTS)),
        result=result,
        id=str(_first(by_name, _IDS) or ""),
        state=_state(by_name.get("state"), result, error),
        error=None if error is None else str(error),
    )


def attach(messages: list[Message], returned: Returned, own: list[ToolCall] | None = None) -> bool:
    """Gives a result to the call that waits for it, the latest with that id; False when none does.

    own: calls of the message that is being read, looked at first.
    """
    for calls, store in _waiting(messages, own):
        for place, call in enumerate(calls):
            if call.state in ("call", "partial") and returned.id in ("", call.id):
                state: Literal["result", "error"] = "error" if returned.failed else "result"
                error = returned.text if returned.failed else None
                calls[place] = replace(call, result=returned.result, state=state, error=error)
                if store is not None:
                    messages[store] = replace(messages[store], tool_calls=calls)
                return True
    return False


def _waiting(messages: list[Message], own: list[ToolCall] | None) -> Iterator[tuple[list[ToolCall], int | None]]:
    if own:
        yield own, None
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].tool_calls:
            yield list(messages[place].tool_calls), place


def _first(by_name: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((by_name[name] for name in names if by_name.get(name) is not None), None)


def _arguments(value: Any) -> Mapping[str, Any]:
    if value is None or value == "":
        return {}
    parsed: Any = value
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            parsed = json.loads(value)
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {"raw": value}


def _state(state: Any, result: Any, error: Any) -> _State:
    if isinstance(state, str) and state in _STATES:
        return _STATES[state]
    if error is not None:
        return "error"
    return "call" if result is None else "result"


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
