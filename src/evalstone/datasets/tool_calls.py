"""Tool calls as other tools write them, and the results that come in messages of their own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from evalstone.datasets.names import normal
from evalstone.datasets.wording import excerpt, listed
from evalstone.errors import DataError
from evalstone.types import Message, ToolCall

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
