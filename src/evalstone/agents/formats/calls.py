"""Tool calls and what they returned, in the notations of models, libraries and protocols."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from evalstone._core.display import excerpt, shortlist
from evalstone._core.files import check_containers
from evalstone._core.guards import is_array, is_object, is_texts
from evalstone._core.literals import written_value
from evalstone.agents.formats.values import (
    Entries,
    PlacedError,
    by_normal_name,
    entries_of,
    first,
    objects_in,
    part_text,
    placed,
)
from evalstone.errors import DataError, invalid
from evalstone.types import ToolCall
from evalstone.types.accounts import is_hidden, merged_call, same_value
from evalstone.types.tool_results import is_only_error, returned_object

CALL_NAMES = ("name", "toolname", "tool")
# Calls of OpenAI's own tools: the tool's name, the entries that are its arguments, and those that are its result.
OWN_CALLS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
    "filesearchcall": ("file_search", ("queries",), "results"),
    "websearchcall": ("web_search", ("action",), ""),
    "codeinterpretercall": ("code_interpreter", ("code",), "outputs"),
    "imagegenerationcall": ("image_generation", ("revised_prompt",), ""),
    "computercall": ("computer", ("action", "actions"), ""),
    "localshellcall": ("local_shell", ("action",), ""),
    "shellcall": ("shell", ("action",), ""),
    "applypatchcall": ("apply_patch", ("operation",), ""),
    "toolsearchcall": ("tool_search", ("arguments",), ""),
    "program": ("program", ("code",), ""),
}
_ANSWERED_BY_ITEM = frozenset(
    ("computercall", "localshellcall", "shellcall", "applypatchcall", "toolsearchcall", "program")
)
_CALL_ARGUMENTS = ("arguments", "args", "inputparameters", "input", "parameters", "servertoolcall")
_WRITTEN_ARGUMENTS = ("arguments", "args")
"""Arguments that a model writes as JSON. Those of other names may be free text, such as the input of a custom tool."""
NO_OBJECT = "arguments of a tool call that are no JSON object, kept as text"
_CALL_RESULTS = ("result", "output", "response", "servertoolcallresponse")
_CALL_IDS = ("toolcallid", "callid", "tooluseid", "id")
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


def read_call(item: Any) -> ToolCall:
    """One tool call. Raises DataError if it has no tool name.

    Arguments can be an object or, as in OpenAI's format, a JSON text. A text that isn't an object is kept under `raw`,
    because malformed arguments of a model are to be judged.
    """
    if isinstance(item, ToolCall):
        return item
    if not is_object(item):
        raise DataError(invalid("a tool call", "an object", item, f"{type(item).__name__}: {excerpt(item)}"))
    by_name = by_normal_name(item)
    for nested in ("function", "custom"):
        if isinstance(by_name.get(nested), dict):
            by_name |= by_normal_name(by_name[nested])
    name = first(by_name, CALL_NAMES)
    if not isinstance(name, str) or not name:
        raise DataError(f"a tool call must have a name, not only {shortlist(item) or 'nothing'}")
    result, failed = plain_result(first(by_name, _CALL_RESULTS))
    error, state = first(by_name, _CALL_ERRORS), by_name.get("state")
    if failed or says_failed(by_name):
        error, state = text_of(result) if error is None else error, "error"
    if state == "output-denied":
        reason = entries_of(by_name.get("approval")).get("reason")
        error, state = error or reason or "the call was not approved", "error"
    if not isinstance(state, str) or state not in _CALL_STATES:
        state = "error" if error is not None else "call" if result is None else "result"
    return ToolCall(
        name=name,
        arguments=arguments_of(first(by_name, _CALL_ARGUMENTS)),
        result=result,
        id=str(first(by_name, _CALL_IDS) or ""),
        state=_CALL_STATES[state],
        error=None if error is None else error_text(error),
    )


def read_calls(calls: Any, place: str) -> list[ToolCall]:
    if not is_array(calls):
        raise PlacedError(f"tool calls must be a list, not {type(calls).__name__}: {excerpt(calls)}", place)
    read: list[ToolCall] = []
    for number, call in enumerate(calls):
        try:
            read.append(read_call(call))
        except DataError as error:
            raise placed(error, f"{place}[{number}]") from None
    return read


def malformed_arguments(items: Iterable[Any], calls: Iterable[ToolCall]) -> Iterator[str]:
    """A note for each call whose arguments a model has written, and not as a JSON object.

    Args:
        items: The calls as they came.
        calls: The same, read.
    """
    for item, call in zip(items, calls, strict=True):
        if {*call.arguments} != {"raw"} or call.state == "partial":  # as nearly all are
            continue
        by_name = by_normal_name(entries_of(item))
        text = first(by_name | by_normal_name(entries_of(by_name.get("function"))), _WRITTEN_ARGUMENTS)
        if isinstance(text, str) and call.arguments["raw"] == text:
            yield f"{NO_OBJECT}: {excerpt(call.name)} was called with {excerpt(text)}"


def own_call(kind: str, item: Entries) -> ToolCall:
    """A call of one of OpenAI's own tools. The result is what the item says of its outcome."""
    name, arguments, result_key = OWN_CALLS[kind]
    given = {key: item[key] for key in arguments if item.get(key) is not None}
    if len(given) == 1 and is_object(inner := next(iter(given.values()))):
        given = inner
    status, result = item.get("status"), item.get(result_key) if result_key else None
    logs = [entry.get("logs") for entry in objects_in(result)]
    if logs and is_texts(logs):
        result = "\n".join(logs)
    failed = status in ("failed", "incomplete")
    done = (status == "completed" and kind not in _ANSWERED_BY_ITEM) or result is not None
    error = error_text(item.get("error") or f"the call is {status}") if failed else None
    return ToolCall(
        name=name,
        arguments=given,
        result=result,
        id=str(item.get("call_id") or item.get("id") or ""),
        state="error" if failed else "result" if done else "call",
        error=error,
    )


def arguments_of(value: Any) -> Mapping[str, Any]:
    """The arguments of a call. Anything but an object or the JSON text of one is under `raw`."""
    if value is None or value == "":
        return {}
    arguments: Any = value
    if isinstance(value, str):
        check_containers(value)
        with contextlib.suppress(DataError):  # what a model wrote need not be an object
            arguments = written_value(value)
    return arguments if is_object(arguments) else {"raw": value}


def text_of(result: Any) -> str:
    """A tool's result as text; as JSON if it isn't a text."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


def error_text(error: Any) -> str:
    """The text in an error; otherwise the whole error as JSON."""
    error = plain_result(error)[0]
    inner = first(returned_object(error), ("message", "error", "content"))
    return error_text(inner) if inner is not None else text_of(error)


def plain_result(value: Any) -> tuple[Any, bool]:
    """A tool's result without what formats put around it, and whether this says that the call failed.

    The AI SDK has `{"type": "text", "value": …}`; Anthropic's own tools return an object whose type ends in "error";
    MCP's results of failed calls have `isError`; pydantic-ai's `ToolReturn` has what the model gets beside what it
    doesn't. A list of texts becomes one text, Bedrock's `[{"json": …}]` the JSON in it; a list with anything else, such
    as images, stays as it is.
    """
    if is_object(value):
        kind = value.get("type")
        if isinstance(kind, str):
            if kind == "execution-denied":
                return value.get("reason") or "the call was not approved", True
            if {"type", "value"} <= value.keys() <= {"type", "value", "providerOptions"}:
                return plain_result(value["value"])[0], kind.startswith("error")
            if kind.endswith("_error"):
                return value, True
        if is_array(value.get("content")) and by_normal_name(value).get("iserror") is True:
            return plain_result(value["content"])[0], True
        if value.get("kind") == "tool-return" and "return_value" in value:
            return plain_result(value["return_value"])
    if is_array(value) and value:
        if all(is_object(item) and item.keys() in ({"json"}, {"text"}) for item in value):
            said = [next(iter(item.values())) for item in value]
            if len(said) == 1 or not all(isinstance(each, str) for each in said):
                return said[0] if len(said) == 1 else said, False
        texts = [part_text(item) for item in value if is_object(item)]
        if len(texts) == len(value) and None not in texts:
            return "\n".join(filter(None, texts)), False
    return value, False


@dataclass(frozen=True)
class ToolResult:
    """The reply of a tool, and the id or the name of the call that it answers. Without both, it answers the first open
    call of the latest message that has one."""

    id: str
    result: Any
    failed: bool = False
    name: str = ""
    otherwise: ToolCall | None = None
    """The call to add if the result answers no known call."""

    def answers(self, call: ToolCall) -> bool:
        """Whether this may be the result of a call."""
        if call.state not in ("call", "partial"):
            return False
        return self.id == call.id if self.id else self.name in ("", call.name)

    def repeats(self, call: ToolCall) -> bool:
        """Whether this repeats the result or the error of the call with its ID."""
        if not self.id or self.id != call.id or call.state not in ("result", "error"):
            return False
        known = call.result if call.result is not None else call.error
        return is_hidden(known) or is_hidden(self.result) or same_value(known, self.result)

    def of(self, call: ToolCall) -> ToolCall:
        """The call with this result."""
        error = error_text(self.result) if self.failed else None
        answered = replace(call, result=self.result, state="error" if self.failed else "result", error=error)
        return answered if call.state in ("call", "partial") else merged_call(call, answered)[0]


def tool_result(part: Mapping[str, Any]) -> ToolResult:
    """The part of a message with a tool's result."""
    by_name = by_normal_name(part)
    result, failed = plain_result(first(by_name, ("content", *_CALL_RESULTS, "tools", "error")))
    failed = failed or says_failed(by_name) or part.get("type") == "tool-error"
    failed = failed or is_only_error(result)
    call_id = first(by_name, _CALL_IDS)
    return ToolResult(str(call_id or ""), result, failed, str(first(by_name, (*CALL_NAMES, "tooltype")) or ""))


def says_failed(by_name: Mapping[str, Any]) -> bool:
    """Whether a call, a result or the message with it says that the call failed. by_name: its entries, by their names
    without case and separators."""
    return by_name.get("iserror") is True or by_name.get("status") in ("error", "failed")


def passages_in(value: Any) -> list[str]:
    """The passages in a tool's result, if their type says that they were retrieved: search results and text documents
    of Anthropic and Bedrock, and LangChain's documents."""
    if is_array(value):
        return [text for item in value for text in passages_in(item)]
    item = entries_of(value)
    if "lc" in item and is_object(item.get("kwargs")):
        item = item["kwargs"]
    for name in ("document", "searchResult"):
        if len(item) == 1 and (block := entries_of(item.get(name))):
            item = {**block, "type": name}
    kind, content = item.get("type"), item.get("content")
    if kind == "Document" and isinstance(item.get("page_content"), str):
        return [item["page_content"]]
    if kind in ("search_result", "searchResult"):
        return ["\n".join(filter(None, map(part_text, objects_in(content))))]
    if kind == "web_fetch_result":
        return passages_in(content)
    source = entries_of(item.get("source")) if kind == "document" else {}
    if source.get("type") == "text" and isinstance(source.get("data"), str):
        return [source["data"]]
    if isinstance(source.get("text"), str):  # Bedrock's
        return [source["text"]]
    if source.get("type", "content") == "content" and source.get("content"):
        inner = source.get("content")
        return [inner] if isinstance(inner, str) else [*filter(None, map(part_text, objects_in(inner)))]
    return []
