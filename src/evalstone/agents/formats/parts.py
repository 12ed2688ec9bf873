"""The parts of a message: texts, reasoning, tool calls and their results, attachments, and retrieved passages.

Parts are told apart by their type, whichever tool wrote them: OpenAI's (also the items of its Responses API),
Anthropic's blocks, Gemini's parts, Bedrock's blocks, those of OpenTelemetry, the AI SDK, Mastra and LangChain. A part
of an unknown type is named in the attachments, with a note.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from evalstone._core.display import excerpt, shortlist
from evalstone._core.files import check_containers
from evalstone._core.literals import written_value
from evalstone.agents.formats.values import (
    Entries,
    PlacedError,
    by_normal_name,
    entries_of,
    first,
    normal,
    objects_in,
    placed,
)
from evalstone.errors import DataError
from evalstone.types import ToolCall
from evalstone.types.accounts import first_shown, is_hidden, merged_call, merged_calls, same_value

CONTENT_KEYS = ("content", "parts", "value", "text")
CALL_NAMES = ("name", "toolname", "tool")
# Types of parts, by their normal names.
_TEXTS = frozenset(("", "text", "inputtext", "outputtext", "summarytext", "reasoningtext", "textplain"))
_THOUGHTS = frozenset(("reasoning", "thinking", "thought", "compaction", "reasoningcontent"))
_CALLS = frozenset(
    (
        *("tooluse", "toolcall", "functioncall", "dynamictool", "servertooluse", "servertoolcall", "mcptooluse"),
        *("customtoolcall", "mcpcall", "mcpapprovalrequest", "invalidtoolcall"),
    )
)
_PARTIAL_CALLS = frozenset(("toolcallchunk", "servertoolcallchunk"))
_RESULTS = frozenset(
    (
        *("toolcallresponse", "functionresponse", "toolresponse", "servertoolresult", "servertoolcallresponse"),
        *("functioncalloutput", "customtoolcalloutput", "computercalloutput", "localshellcalloutput"),
        *("shellcalloutput", "applypatchcalloutput", "toolsearchoutput", "programoutput", "toolerror"),
    )
)
# Calls of OpenAI's own tools: the tool's name, the entries that are its arguments, and those that are its result.
_OWN_CALLS: Mapping[str, tuple[str, tuple[str, ...], str]] = {
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
_ATTACHMENTS: Mapping[str, str] = {
    **dict.fromkeys(("image", "imageurl", "inputimage"), "image"),
    **dict.fromkeys(("audio", "audiourl", "inputaudio", "outputaudio"), "audio"),
    **dict.fromkeys(("video", "videourl", "inputvideo"), "video"),
    **dict.fromkeys(("file", "fileurl", "inputfile", "filedata", "document", "documenturl"), "file"),
    **dict.fromkeys(("inlinedata", "blob", "binary", "uri", "media", "reasoningfile", "containerupload"), "file"),
}
UNKNOWN_PART = "a part of an unknown type"
_IGNORED = frozenset(
    (
        *("stepstart", "stepfinish", "custom", "toolapprovalrequest", "mcplisttools"),
        *("additionaltools", "configurationupdate", "compactiontrigger", "tooladdition", "toolremoval"),
    )
)
_INVISIBLE = frozenset(("source", "sourceurl", "sourcedocument", "cachepoint", "cachecontrol", "redactedthinking"))
"""Parts that may stand between two pieces of a text, as reasoning may."""
BLOCKS = frozenset(
    (
        *("tooluse", "toolresult", "image", "document", "video", "audio", "reasoningcontent", "cachepoint"),
        *("guardcontent", "citationscontent", "searchresult", "tooladdition", "toolremoval"),
    )
)
"""The blocks of Bedrock's Converse API besides text, by their normal names."""
# Gemini's and Bedrock's parts have no type; their one entry names it.
_UNTYPED = BLOCKS | frozenset(
    (
        *("functioncall", "functionresponse", "toolcall", "toolresponse", "inlinedata", "filedata"),
        *("executablecode", "codeexecutionresult"),
    )
)
ITEM_ROLES: Mapping[str, Literal["assistant", "tool"]] = {
    **dict.fromkeys(("reasoning", "functioncall", "customtoolcall", "mcpcall", "mcpapprovalrequest"), "assistant"),
    **dict.fromkeys(
        (*_OWN_CALLS, "mcplisttools", "compaction", "compactiontrigger", "configurationupdate"), "assistant"
    ),
    **dict.fromkeys(("additionaltools", "itemreference"), "assistant"),
    **dict.fromkeys((kind for kind in _RESULTS if kind.endswith("output")), "tool"),
    "mcpapprovalresponse": "assistant",
}
"""Items of OpenAI's Responses API that stand between messages, without a role."""

# What LangChain keeps of a provider's message in `additional_kwargs` alone.
_EXTRA = ("refusal", "reasoning", "reasoningcontent", "audio", "functioncall")
_CALL_LISTS = ("toolcalls", "toolinvocations", "toolscalled")
_CALL_ARGUMENTS = ("arguments", "args", "inputparameters", "input", "parameters", "servertoolcall")
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
    """One tool call. Raises DataError when it names no tool.

    Arguments may be an object or, as OpenAI has it, a JSON text; a text that is not an object is kept under `raw`,
    because a model's malformed arguments are what is to be judged.
    """
    if isinstance(item, ToolCall):
        return item
    if not isinstance(item, dict):
        raise DataError(f"a tool call must be an object, not {type(item).__name__}: {excerpt(item)}")
    entries = cast("Entries", item)
    by_name = by_normal_name(entries)
    for nested in ("function", "custom"):
        if isinstance(by_name.get(nested), dict):
            by_name |= by_normal_name(by_name[nested])
    name = first(by_name, CALL_NAMES)
    if not isinstance(name, str) or not name:
        raise DataError(f"a tool call must have a name, not only {shortlist(entries) or 'nothing'}")
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


def _read_calls(calls: Any, place: str) -> list[ToolCall]:
    if not isinstance(calls, list):
        raise PlacedError(f"tool calls must be a list, not {type(calls).__name__}: {excerpt(calls)}", place)
    read: list[ToolCall] = []
    for number, call in enumerate(cast("list[Any]", calls)):
        try:
            read.append(read_call(call))
        except DataError as error:
            raise placed(error, f"{place}[{number}]") from None
    return read


def _own_call(kind: str, item: Entries) -> ToolCall:
    """A call of one of OpenAI's own tools. What the item says of its outcome is the result."""
    name, arguments, result_key = _OWN_CALLS[kind]
    given = {key: item[key] for key in arguments if item.get(key) is not None}
    if len(given) == 1 and isinstance(inner := next(iter(given.values())), dict):
        given = cast("Entries", inner)
    status, result = item.get("status"), item.get(result_key) if result_key else None
    logs = [entry.get("logs") for entry in objects_in(result)]
    if logs and all(isinstance(log, str) for log in logs):
        result = "\n".join(cast("list[str]", logs))
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
    """The arguments of a call. What is no object, or no JSON text of one, is under `raw`."""
    if value is None or value == "":
        return {}
    arguments: Any = value
    if isinstance(value, str):
        check_containers(value)
        with contextlib.suppress(DataError):  # what a model wrote need not be an object
            arguments = written_value(value)
    return cast("Entries", arguments) if isinstance(arguments, dict) else {"raw": value}


def text_of(result: Any) -> str:
    """A tool's result as text: JSON, if it is none."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


def error_text(error: Any) -> str:
    """What an error says: the text in it, else all of it as JSON."""
    error = plain_result(error)[0]
    inner = first(entries_of(error), ("message", "error", "content"))
    return error_text(inner) if inner is not None else text_of(error)


def plain_result(value: Any) -> tuple[Any, bool]:
    """A tool's result without what formats put around it, and whether this says that the call failed.

    The AI SDK has `{"type": "text", "value": …}`; Anthropic's own tools return an object whose type ends in "error";
    MCP's results of failed calls have `isError`; pydantic-ai's `ToolReturn` has what the model gets beside what it
    doesn't. A list of texts becomes one text, Bedrock's `[{"json": …}]` the JSON in it; a list with anything else, such
    as images, stays as it is.
    """
    if isinstance(value, dict):
        item = cast("Entries", value)
        kind = item.get("type")
        if isinstance(kind, str):
            if kind == "execution-denied":
                return item.get("reason") or "the call was not approved", True
            if {"type", "value"} <= item.keys() <= {"type", "value", "providerOptions"}:
                return plain_result(item["value"])[0], kind.startswith("error")
            if kind.endswith("_error"):
                return item, True
        if isinstance(item.get("content"), list) and by_normal_name(item).get("iserror") is True:
            return plain_result(item["content"])[0], True
        if item.get("kind") == "tool-return" and "return_value" in item:
            return plain_result(item["return_value"])
    if isinstance(value, list) and value:
        items = cast("list[Any]", value)
        if all(isinstance(item, dict) and item.keys() in ({"json"}, {"text"}) for item in items):
            said = [next(iter(cast("Entries", item).values())) for item in items]
            if len(said) == 1 or not all(isinstance(each, str) for each in said):
                return said[0] if len(said) == 1 else said, False
        texts = [part_text(cast("Entries", item)) for item in items if isinstance(item, dict)]
        if len(texts) == len(items) and None not in texts:
            return "\n".join(filter(None, texts)), False
    return cast(Any, value), False


def part_text(part: Mapping[str, Any]) -> str | None:
    """The text of a part: under `text`, or where OpenTelemetry has it, under `content`."""
    text = part.get("content") if part.get("text") is None and part.get("type") == "text" else part.get("text")
    return text if isinstance(text, str) else None


def _kind_of_attachment(part: Mapping[str, Any]) -> str | None:
    """The kind of an attachment by its modality or media type: `image`, `audio`, `video`; None for others."""
    by_name = by_normal_name(part)
    inner = [by_normal_name(by_name[key]) for key in ("file", "source") if isinstance(by_name.get(key), dict)]
    named = next(
        (
            name
            for each in (by_name, *inner)
            if (name := first(each, ("modality", "mimetype", "mediatype", "contenttype")))
        ),
        None,
    )
    kind = str(named or "").partition("/")[0]
    return kind if kind in ("image", "audio", "video") else None


@dataclass(frozen=True)
class ToolResult:
    """The reply of a tool, and the id or the name of the call that it answers.

    Without either it answers the first open call of the latest message that has one.
    """

    id: str
    result: Any
    failed: bool = False
    name: str = ""
    otherwise: ToolCall | None = None
    """The call to add where none is answered."""

    def answers(self, call: ToolCall) -> bool:
        """Whether this may be the result of a call."""
        if call.state not in ("call", "partial"):
            return False
        return self.id == call.id if self.id else self.name in ("", call.name)

    def repeats(self, call: ToolCall) -> bool:
        """Whether this says again what the call with its ID returned, or failed with."""
        if not self.id or self.id != call.id or call.state not in ("result", "error"):
            return False
        known = call.result if call.result is not None else call.error
        return is_hidden(known) or is_hidden(self.result) or same_value(known, self.result)

    def of(self, call: ToolCall) -> ToolCall:
        """The call with this result."""
        error = error_text(self.result) if self.failed else None
        answered = replace(call, result=self.result, state="error" if self.failed else "result", error=error)
        return answered if call.state in ("call", "partial") else merged_call(call, answered)[0]


def _tool_result(part: Mapping[str, Any]) -> ToolResult:
    """The part of a message with a tool's result."""
    by_name = by_normal_name(part)
    result, failed = plain_result(first(by_name, ("content", *_CALL_RESULTS, "tools", "error")))
    failed = failed or says_failed(by_name) or part.get("type") == "tool-error"
    failed = failed or (isinstance(result, dict) and result.keys() == {"error"})
    call_id = first(by_name, _CALL_IDS)
    return ToolResult(str(call_id or ""), result, failed, str(first(by_name, (*CALL_NAMES, "tooltype")) or ""))


def says_failed(by_name: Mapping[str, Any]) -> bool:
    """Whether a call, a result or the message with it says that the call failed. by_name: its entries, by their names
    without case and separators."""
    return by_name.get("iserror") is True or by_name.get("status") in ("error", "failed")


def passages_in(value: Any) -> list[str]:
    """The passages in a tool's result, where their type says that they were retrieved.

    These are search results and documents in text of Anthropic and of Bedrock, and LangChain's documents.
    """
    if isinstance(value, list):
        return [text for item in cast("list[Any]", value) for text in passages_in(item)]
    item = entries_of(value)
    if "lc" in item and isinstance(item.get("kwargs"), dict):
        item = cast("Entries", item["kwargs"])
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


@dataclass
class Content:
    """What is collected from one message."""

    texts: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[ToolResult] = field(default_factory=list[ToolResult])
    attachments: list[str] = field(default_factory=list[str])
    passages: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    role: str = ""
    approved: set[str] = field(default_factory=set[str])
    """The IDs of calls that waited for approval, which Mastra repeats in the message after it."""
    is_approval: bool = False
    """Whether this is what the user said to a call, which is not its result."""
    _goes_on: bool = False
    """Whether the last part was a text, of which the next one may be a piece."""

    @property
    def text(self) -> str:
        """The texts, each on a line of its own."""
        return "\n".join(self.texts)

    def read_message(self, item: Entries) -> None:
        """Read the content and what stands beside it. Raises PlacedError for what is not understood."""
        present = [key for key in CONTENT_KEYS if key in item]
        key = next((key for key in present if item[key] is not None), None)
        if isinstance(item.get("content"), str) and isinstance(item.get("parts"), list):
            self._read_body(item)  # the AI SDK 4 has the texts of the parts in the content
        elif key is not None:
            try:
                self._read(item[key])
            except DataError as error:
                raise placed(error, f".{key}") from None
        self._read_beside(item)
        if not present and not (self.texts or self.thoughts or self.calls or self.attachments or self.notes):
            raise DataError(f"there is no content; it has {shortlist(item)}")

    def _read(self, content: Any) -> None:
        if isinstance(content, str):
            self.texts.append(content)
        elif isinstance(content, list):
            for number, part in enumerate(cast("list[Any]", content)):
                try:
                    self._read_part(part)
                except DataError as error:
                    raise placed(error, f"[{number}]") from None
        elif isinstance(content, dict):
            body = cast("Entries", content)
            if body and body.keys().isdisjoint(("parts", "content", "text", "toolInvocations")):
                raise DataError(f"content must have text, content or parts; it has {shortlist(body)}")
            self._read_body(body)
            self._read_beside(body)
        elif content is not None:
            raise DataError(
                f"content must be text or a list of parts, not {type(content).__name__}: {excerpt(content)}"
            )

    def _read_body(self, body: Entries) -> None:
        """Parts, and a text that repeats those of the parts; where the two differ, it is the one that Mastra judges."""
        try:
            self._read(body.get("parts"))
        except DataError as error:
            raise placed(error, ".parts") from None
        if isinstance(body.get("content"), str) and body["content"]:
            self.texts[:] = [body["content"]]
        elif not self.texts and isinstance(body.get("text"), str):
            self.texts.append(body["text"])

    def _read_part(self, part: Any) -> None:
        if isinstance(part, str):
            self._read_text(part)
            return
        if not isinstance(part, dict):
            raise DataError(f"a part of the content must be an object, not {type(part).__name__}: {excerpt(part)}")
        item = cast("Entries", part)
        name = str(item.get("type", ""))
        if name == "non_standard" and isinstance(item.get("value"), dict):  # LangChain's, around a provider's own
            item = cast("Entries", item["value"])
            name = str(item.get("type", ""))
        if name == "generic" and isinstance(item.get("generic_type"), str):  # OpenTelemetry's, around a provider's own
            name = item["generic_type"]
            item = {**item, "type": name}
        untyped = not name
        inner = [key for key in item if normal(key) in _UNTYPED and isinstance(item[key], dict)] if untyped else []
        if not inner and untyped and len(item) == 1 and isinstance(next(iter(item.values())), dict):
            inner = list(item)  # a block of Bedrock's that isn't known
        if inner:
            name, item = inner[0], {**item[inner[0]], "type": inner[0]}
        elif normal(name) in BLOCKS and (body := entries_of(item.get("content"))):  # in OpenTelemetry's generic part
            # The content of these two may be an object of their own.
            item = {**body, "type": name} if "toolUseId" in body or "tool" not in normal(name) else item
        kind, text = normal(name), part_text(item)
        if kind in _THOUGHTS or (item.get("thought") is True and text):
            self._read_thought(item)
            return
        if kind in _ATTACHMENTS:
            self._read_attachment(kind, item)
        elif kind in _OWN_CALLS:
            self._read_own_call(kind, item)
        elif kind == "toolinvocation":
            call = read_call(item.get("toolInvocation"))
            self.calls.append(call)
            if entries_of(item.get("toolInvocation")).get("approval"):
                self.approved.add(call.id)
        elif kind in _RESULTS or kind.endswith("toolresult"):
            result = _tool_result(item)
            self.results.append(result)
            self.passages += passages_in(result.result)
        elif kind == "mcpapprovalresponse":
            if item.get("approve") is False:
                reason = str(item.get("reason") or "the call was not approved")
                self.results.append(ToolResult(str(item.get("approval_request_id", "")), reason, failed=True))
        elif kind in _CALLS:
            self._read_call(kind, item)
        elif kind == "executablecode":
            code = {key: item[key] for key in ("language", "code") if item.get(key) is not None}
            self.calls.append(read_call({"name": "code_execution", "arguments": code, "id": item.get("id")}))
        elif kind == "codeexecutionresult":
            failed = item.get("outcome") not in (None, "OUTCOME_OK")
            self.results.append(ToolResult(str(item.get("id") or ""), item.get("output"), failed, "code_execution"))
        elif name.startswith("tool-") and kind not in ("toolapprovalrequest", "toolapprovalresponse"):
            self.calls.append(read_call({"toolName": name.removeprefix("tool-"), **item}))
        elif kind in _PARTIAL_CALLS:
            self.calls.append(read_call({**item, "state": "partial-call"}))
        elif kind == "searchresult":
            self.passages += passages_in(item)
        elif kind == "guardcontent":
            for key in ("text", "image"):
                if block := entries_of(item.get(key)):
                    self._read_part({**block, "type": key})
            return
        elif kind == "citationscontent":
            self._read_text("".join(filter(None, map(part_text, objects_in(item.get("content"))))))
            return
        elif text is not None and kind in _TEXTS:
            self._read_text(text)
            return
        elif isinstance(item.get("refusal"), str):
            self.texts.append(item["refusal"])
        elif kind == "toolapprovalresponse":
            self.is_approval = True
            self.texts += [item["reason"]] if isinstance(item.get("reason"), str) else []
        elif kind == "itemreference":
            raise DataError(f"it refers to an item that is not here: {excerpt(item.get('id'))}")
        elif not name:
            raise PlacedError(f"a part with no type is not understood; it has {shortlist(item) or 'nothing'}")
        elif kind in _INVISIBLE:
            return
        elif kind not in _IGNORED and not name.startswith("data-"):
            self.attachments.append(name)
            entries = shortlist(key for key in item if key != "type")
            self.notes.append(f"{UNKNOWN_PART}: {excerpt(name)}, with {entries or 'nothing else'}")
        self._goes_on = False

    def _read_text(self, text: str) -> None:
        """One text. In an answer, texts that follow each other are pieces of one, as providers' libraries join them:
        where a citation begins or a block of a stream ends. Those of others are texts that someone put side by side."""
        if self._goes_on and self.role == "assistant":
            self.texts[-1] += text
        else:
            self.texts.append(text)
        self._goes_on = True

    def read_texts(self, parts: Any) -> None:
        """Read no more than the texts of a list of parts."""
        for part in objects_in(parts):
            text = part_text(part)
            if text:
                self._read_text(text)
            else:
                self._goes_on = False

    def _read_call(self, kind: str, item: Entries) -> None:
        """A tool call. One that was approved before it was made is the result of the call that asked for approval."""
        call = read_call({"name": item.get("toolType"), **item} if "toolType" in item else item)
        asked = item.get("approval_request_id")
        if kind == "mcpcall" and asked and call.state in ("result", "error"):
            outcome = call.error if call.state == "error" else call.result
            answer = ToolResult(str(asked), outcome, call.state == "error", otherwise=call)
            self.results.append(answer)
            return
        if kind == "mcpcall" and call.state == "call" and item.get("status") == "completed":
            call = replace(call, state="result")
        self.calls.append(call)

    def _read_own_call(self, kind: str, item: Entries) -> None:
        self.calls.append(_own_call(kind, item))
        if kind == "filesearchcall":
            self.passages += [text for each in objects_in(item.get("results")) if (text := part_text(each))]
        if kind == "imagegenerationcall" and item.get("result"):
            self.attachments.append("image")

    def _read_attachment(self, kind: str, item: Entries) -> None:
        """What is no text, and the text that it has: the transcript of speech, a document in text."""
        self.attachments.append(_kind_of_attachment(item) or _ATTACHMENTS[kind])
        self.passages += passages_in(item)
        if isinstance(item.get("transcript"), str):
            self.texts.append(item["transcript"])

    def _read_thought(self, thought: Any) -> None:
        """The text of a part or an entry with reasoning; Mastra splits it into `details`, OpenAI into two lists."""
        if isinstance(thought, dict):
            part = cast("Entries", thought)
            names = ("text", "reasoning", "thinking", "content", "reasoningText", "reasoning_text", "reasoning_content")
            text = next((part[key] for key in names if part.get(key)), None)
            if isinstance(text, dict):  # Bedrock's
                self._read_thought(text)
                return
            if not isinstance(text, str):
                lists = (part.get("details"), part.get("summary"), part.get("content"))
                items = [item for each in lists for item in objects_in(each)]
                text = "\n".join(inner for item in items if (inner := part_text(item)))
            thought = text
        if isinstance(thought, str) and thought:
            self.thoughts.append(thought)

    def _read_beside(self, item: Entries) -> None:
        """The attachments, the refusal, the reasoning and the tool calls beside the content."""
        by_name = by_normal_name(item)
        extra = by_normal_name(entries_of(by_name.get("additionalkwargs")))
        by_name |= {key: extra[key] for key in _EXTRA if extra.get(key) and not by_name.get(key)}
        attachments: Any = by_name.get("attachments") or by_name.get("experimentalattachments") or ()
        if not isinstance(attachments, list | tuple):
            raise DataError(f"attachments must be a list, not {type(attachments).__name__}: {excerpt(attachments)}")
        for each in cast("list[Any]", attachments):
            self.attachments.append(each if isinstance(each, str) else _kind_of_attachment(entries_of(each)) or "file")
        self.attachments += ["image"] * len(objects_in(by_name.get("images")))
        audio = by_name.get("audio")
        if isinstance(audio, dict):
            self._read_attachment("audio", cast("Entries", audio))
        refusal = by_name.get("refusal")
        if isinstance(refusal, str) and refusal and refusal not in self.texts:
            self.texts[:] = [*filter(None, self.texts), refusal]
        if not self.thoughts:
            self._read_thought(first_shown(by_name.get("reasoning"), by_name.get("reasoningcontent")))
        self.passages += passages_in(by_name.get("artifact"))
        noted = cast("list[Any]", by_name["notes"]) if isinstance(by_name.get("notes"), list) else []
        self.notes += [each for each in noted if isinstance(each, str)]  # our own
        names = {normal(key): key for key in item}
        lists: Entries = {name: by_name[name] for name in (*_CALL_LISTS, "invalidtoolcalls") if by_name.get(name)}
        if by_name.get("functioncall"):
            lists["functioncall"] = [by_name["functioncall"]]
        for name, calls in lists.items():  # each of them may have the calls of the parts again
            merged, notes = merged_calls(self.calls, _read_calls(calls, f".{names.get(name, name)}"))
            self.calls[:] = merged
            self.notes += notes
