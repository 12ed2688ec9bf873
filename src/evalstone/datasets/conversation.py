"""Messages and tool calls as other tools write them, read as Message and ToolCall values.

Supported are OpenAI's messages (content as text or parts, `tool_calls`, role `tool`) and the items of its Responses API
(`function_call`, `function_call_output`, `reasoning`), Anthropic's parts (`tool_use`, `tool_result`), Gemini's
(`functionCall`, `functionResponse`), OpenTelemetry's (`parts` with `tool_call_response`), Mastra's messages and the AI
SDK's (`{format: 2, parts, content}`, `tool-invocation`), ragas' and LangChain's (`type: human`, `messages_to_dict`,
`dumpd`), ShareGPT's (`from`, `value`), and plain Message values. The reply of a tool is the result of the call that it
answers; a call without an answer stays in state "call". Images, audio and files are named in `Message.attachments`. A
part of an unknown type is an error.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from evalstone._core.display import excerpt, shortlist
from evalstone._core.files import check_containers
from evalstone.agents.messages import merge_tool_calls
from evalstone.datasets.columns import normal
from evalstone.errors import DataError
from evalstone.types import ROLES, Message, Role, ToolCall, Usage

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
# Types of parts, by their normal names.
_THOUGHT_PARTS = frozenset(("reasoning", "thinking", "thought"))
_CALL_PARTS = frozenset(
    (
        *("tooluse", "toolcall", "functioncall", "dynamictool", "servertooluse", "servertoolcall", "mcptooluse"),
        *("customtoolcall", "mcpcall"),
    )
)
_RESULT_PARTS = frozenset(
    ("toolcallresponse", "functionresponse", "servertoolresult", "functioncalloutput", "customtoolcalloutput")
)
# Items of OpenAI's Responses API that stand between messages, without a role.
_ITEM_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("reasoning", "functioncall", "customtoolcall", "mcpcall"), "assistant"),
    **dict.fromkeys(("functioncalloutput", "customtoolcalloutput"), "tool"),
}
_ATTACHMENT_PARTS: Mapping[str, str] = {
    **dict.fromkeys(("image", "imageurl", "inputimage"), "image"),
    **dict.fromkeys(("audio", "audiourl", "inputaudio"), "audio"),
    **dict.fromkeys(("video", "videourl", "inputvideo"), "video"),
    **dict.fromkeys(("file", "fileurl", "inputfile", "filedata", "document", "containerupload"), "file"),
    **dict.fromkeys(("inlinedata", "blob", "uri", "media"), "file"),
}
_IGNORED_PARTS = frozenset(("stepstart", "stepfinish", "source", "sourceurl", "sourcedocument", "redactedthinking"))
# Gemini's parts have no type; their one entry names it.
_UNTYPED_PARTS = frozenset(
    ("functioncall", "functionresponse", "inlinedata", "filedata", "executablecode", "codeexecutionresult")
)

_NOTHING = Message(role="assistant", content="")

_CALL_LISTS = ("toolcalls", "toolinvocations", "toolscalled")
_CALL_NAMES = ("name", "toolname", "tool")
_CALL_ARGUMENTS = ("arguments", "args", "inputparameters", "input", "parameters")
_CALL_RESULTS = ("result", "output", "response")
_CALL_IDS = ("toolcallid", "callid", "id")
_USAGE_NAMES: Mapping[str, tuple[str, ...]] = {
    "input": ("input", "inputtokens", "prompttokens", "prompttokencount"),
    "output": ("output", "outputtokens", "completiontokens", "candidatestokencount"),
    "cached": ("cached", "cachereadinputtokens", "cachedcontenttokencount"),
    "requests": ("requests",),
}
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
    """Whether a list has messages: the first item that may not be a part of one is a message, or has a role."""
    for item in items:
        if not isinstance(item, dict):
            return isinstance(item, Message)
        entries = _unwrapped(cast("dict[str, Any]", item))
        role = _role(entries)
        if role is not None or _item_role(entries) != "assistant":
            return (role or _item_role(entries)) is not None
    return False


def is_parts(items: list[Any]) -> bool:
    """Whether a list has the parts of one message: objects with a `type`, at least one of them with a text."""
    parts = [cast("dict[str, Any]", item) for item in items if isinstance(item, dict) and "type" in item]
    return len(parts) == len(items) and any(_part_text(part) is not None for part in parts)


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
            entries = _unwrapped(cast("dict[str, Any]", item))
            role = _item_role(entries)
            _append(messages, entries if role is None else {"role": role, "content": [entries]}, number)
            if role is not None and messages[-1:] == [_NOTHING]:
                messages.pop()  # reasoning that the API keeps to itself
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
        raise DataError(f"a tool call must have a name, not only {shortlist(entries) or 'nothing'}")
    result, failed = _plain_result(_first(by_name, _CALL_RESULTS))
    error, state = _first(by_name, _CALL_ERRORS), by_name.get("state")
    if failed and error is None:
        error, state = _text_of(result), "error"
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
        check_containers(value)
        with contextlib.suppress(ValueError):
            arguments = json.loads(value)
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {"raw": value}


def _text_of(result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


def _plain_result(value: Any) -> tuple[Any, bool]:
    """A tool's result without the AI SDK's `{"type": "text", "value": …}` around it, and whether this says it failed.

    A list of texts becomes one text; a list with anything else, such as images, stays as it is.
    """
    if isinstance(value, dict):
        item = cast("dict[str, Any]", value)
        kind = item.get("type")
        if item.keys() == {"type", "value"} and isinstance(kind, str):
            return _plain_result(item["value"])[0], kind.startswith("error")
    if isinstance(value, list) and value:
        items = cast("list[Any]", value)
        texts = [_part_text(cast("dict[str, Any]", item)) for item in items if isinstance(item, dict)]
        if len(texts) == len(items) and None not in texts:
            return "\n".join(filter(None, texts)), False
    return cast(Any, value), False


def _part_text(part: Mapping[str, Any]) -> str | None:
    """The text of a part: under `text`, or where OpenTelemetry has it, under `content`."""
    text = part.get("content") if part.get("text") is None and part.get("type") == "text" else part.get("text")
    return text if isinstance(text, str) else None


@dataclass(frozen=True)
class _ToolResult:
    """The reply of a tool, and the id or the name of the call that it answers.

    Without either it answers the first open call of the latest message that has one.
    """

    id: str
    result: Any
    failed: bool = False
    name: str = ""

    def answers(self, call: ToolCall) -> bool:
        """Whether this may be the result of a call."""
        if call.state not in ("call", "partial"):
            return False
        return self.id == call.id if self.id else self.name in ("", call.name)


def _tool_result(part: Mapping[str, Any]) -> _ToolResult:
    """The part of a message with a tool's result."""
    by_name = {normal(key): value for key, value in part.items()}
    result, failed = _plain_result(_first(by_name, ("content", *_CALL_RESULTS)))
    failed = failed or bool(by_name.get("iserror")) or by_name.get("status") == "error"
    call_id = _first(by_name, ("tooluseid", *_CALL_IDS))
    return _ToolResult(str(call_id or ""), result, failed, str(_first(by_name, _CALL_NAMES) or ""))


def _attach(messages: list[Message], result: _ToolResult, own: list[ToolCall] | None = None) -> bool:
    """Give a result to the open call it answers, the latest with that id; False when there is none.

    own: calls of the message that is being read, searched first.
    """
    for calls, at in _calls(messages, own):
        for place, call in enumerate(calls):
            if result.answers(call):
                error = _text_of(result.result) if result.failed else None
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


def _item_role(item: Mapping[str, Any]) -> Role | None:
    """The role that stands for an item of OpenAI's Responses API that has none; None for messages."""
    return None if _role(item) else _ITEM_ROLES.get(normal(str(item.get("type", ""))))


def _signal_role(item: Mapping[str, Any]) -> Any:
    """The role of a message with Mastra's role `signal`: its tag, else its type."""
    content: Any = item.get("content")
    in_content: Any = cast("dict[str, Any]", content).get("metadata") if isinstance(content, dict) else None
    metadata: Any = item.get("metadata") or in_content
    signal: Any = cast("dict[str, Any]", metadata).get("signal") if isinstance(metadata, dict) else None
    tags = cast("dict[str, Any]", signal) if isinstance(signal, dict) else {}
    return tags.get("tagName") or tags.get("type") or item.get("type")


def _unwrapped(item: dict[str, Any]) -> dict[str, Any]:
    """The message inside LangChain's `{"type": "human", "data": {…}}` or `{"lc": 1, "kwargs": {…}}`, or the item."""
    inner: Any = item.get("kwargs") if "lc" in item else item.get("data")
    if not isinstance(inner, dict) or not item.keys().isdisjoint(_CONTENT_KEYS):
        return item
    return {**({"type": item["type"]} if "lc" not in item else {}), **cast("dict[str, Any]", inner)}


def _append(messages: list[Message], item: dict[str, Any], number: int) -> None:
    """Read one message and append it, or attach the tool results in it to the calls that they answer."""
    role = _role(item)
    if role is None:
        name = next((item[key] for key in _ROLE_KEYS if key in item), None)
        known, has = f"expected {', '.join(ROLES)}", shortlist(item) or "no entries"
        problem = f"no role ({known}); it has {has}" if name is None else f"role {excerpt(name)}, {known}"
        raise DataError(f"must be a list of messages; message {number} has {problem}")
    content = _Content()
    try:
        content.read_message(item)
    except DataError as error:
        raise DataError(f"must be a list of messages; in message {number}, {error}") from None
    text, calls = "\n".join(content.texts), content.calls
    if role == "tool" and not content.results:
        call_id = next((item[key] for key in ("tool_call_id", "toolCallId") if isinstance(item.get(key), str)), "")
        if _attach(messages, _ToolResult(call_id, text, item.get("status") == "error")):
            return
    unanswered = [result for result in content.results if not _attach(messages, result, own=calls)]
    if text or calls or content.attachments or not content.results:
        messages.append(
            Message(
                role=role,
                content=text,
                tool_calls=calls,
                reasoning="\n".join(content.thoughts) or None,
                attachments=tuple(dict.fromkeys(content.attachments)),
                usage=_usage(item),
            )
        )
    messages.extend(Message(role="tool", content=_text_of(result.result)) for result in unanswered)


def _usage(item: Mapping[str, Any]) -> Usage | None:
    """The tokens in a message's `usage` or `usage_metadata`, by the names of several providers; None without any."""
    by_name = {normal(key): value for key, value in item.items()}
    usage: Any = by_name.get("usagemetadata") or by_name.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = {normal(key): value for key, value in cast("dict[str, Any]", usage).items() if isinstance(value, int)}
    tokens = {field: _first(counts, names) or 0 for field, names in _USAGE_NAMES.items()}
    return Usage(**tokens) if any(tokens.values()) else None


@dataclass
class _Content:
    """What is collected from one message."""

    texts: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[_ToolResult] = field(default_factory=list[_ToolResult])
    attachments: list[str] = field(default_factory=list[str])

    def read_message(self, item: dict[str, Any]) -> None:
        present = [key for key in _CONTENT_KEYS if key in item]
        self._read(next((item[key] for key in present if item[key] is not None), None))
        self._read_beside(item)
        if not present and not (self.texts or self.thoughts or self.calls or self.attachments):
            raise DataError(f"there is no content; it has {shortlist(item)}")

    def _read(self, content: Any) -> None:
        if isinstance(content, str):
            self.texts.append(content)
        elif isinstance(content, list):
            for part in cast("list[Any]", content):
                self._read_part(part)
        elif isinstance(content, dict):
            body = cast("dict[str, Any]", content)
            if body and body.keys().isdisjoint(("parts", "content", "text", "toolInvocations")):
                raise DataError(f"content must have text, content or parts; it has {shortlist(body)}")
            self._read(body.get("parts"))
            if isinstance(body.get("content"), str) and body["content"]:
                # Mastra repeats the text of the parts here; where the two differ, this is the text that it judges.
                self.texts[:] = [body["content"]]
            elif not self.texts and isinstance(body.get("text"), str):
                self.texts.append(body["text"])
            self._read_beside(body)
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
        name = str(item.get("type", ""))
        inner = [key for key in item if normal(key) in _UNTYPED_PARTS and isinstance(item[key], dict)]
        if inner and not name:
            name, item = inner[0], cast("dict[str, Any]", item[inner[0]])
        kind, text = normal(name), _part_text(item)
        if kind in _THOUGHT_PARTS or (item.get("thought") is True and text):
            self._read_thought(item)
        elif kind in _ATTACHMENT_PARTS:
            self.attachments.append(_attachment(item) or _ATTACHMENT_PARTS[kind])
        elif kind == "toolinvocation":
            self.calls.append(read_call(item.get("toolInvocation")))
        elif kind in _RESULT_PARTS or kind.endswith("toolresult"):
            self.results.append(_tool_result(item))
        elif kind in _CALL_PARTS:
            self.calls.append(read_call(item))
        elif kind == "executablecode":
            self.calls.append(read_call({"name": "code_execution", "arguments": item}))
        elif kind == "codeexecutionresult":
            failed = item.get("outcome") not in (None, "OUTCOME_OK")
            self.results.append(_ToolResult("", item.get("output"), failed, "code_execution"))
        elif name.startswith("tool-"):
            self.calls.append(read_call({"toolName": name.removeprefix("tool-"), **item}))
        elif text is not None:
            self.texts.append(text)
        elif isinstance(item.get("refusal"), str):
            self.texts.append(item["refusal"])
        elif kind not in _IGNORED_PARTS and not name.startswith("data-"):
            what = f"type {excerpt(name)}" if name else "no type"
            raise DataError(f"a part with {what} is not understood; it has {shortlist(item) or 'nothing'}")

    def _read_thought(self, thought: Any) -> None:
        """The text of a part or an entry with reasoning; Mastra splits it into `details`."""
        if isinstance(thought, dict):
            part = cast("dict[str, Any]", thought)
            thought = next((part[key] for key in ("text", "reasoning", "thinking", "content") if part.get(key)), None)
            details: Any = part.get("details") or part.get("summary")
            if thought is None and isinstance(details, list):
                items = [cast("dict[str, Any]", item) for item in cast("list[Any]", details) if isinstance(item, dict)]
                thought = "\n".join(text for item in items if (text := _part_text(item)))
        if isinstance(thought, str) and thought:
            self.thoughts.append(thought)

    def _read_beside(self, item: dict[str, Any]) -> None:
        """The attachments, the refusal, the reasoning and the tool calls beside the content."""
        by_name = {normal(key): value for key, value in item.items()}
        attachments: Any = by_name.get("attachments") or by_name.get("experimentalattachments") or ()
        self.attachments += [kind if isinstance(kind, str) else _attachment(kind) or "file" for kind in attachments]
        if isinstance(by_name.get("audio"), dict):
            self.attachments.append("audio")
        if not self.texts and isinstance(by_name.get("refusal"), str):
            self.texts.append(by_name["refusal"])
        if not self.thoughts:
            self._read_thought(by_name.get("reasoning") or by_name.get("reasoningcontent"))
        lists = [by_name[name] for name in _CALL_LISTS if by_name.get(name)]
        calls: Any = lists[0] if lists else [by_name["functioncall"]] if by_name.get("functioncall") else []
        if not isinstance(calls, list):
            raise DataError(f"tool calls must be a list, not {type(calls).__name__}: {excerpt(calls)}")
        beside = [read_call(call) for call in [*cast("list[Any]", calls), *(by_name.get("invalidtoolcalls") or ())]]
        # The same call may be in a part and in the list beside; without ids the parts are complete.
        if not self.calls or all(call.id for call in (*self.calls, *beside)):
            self.calls[:] = merge_tool_calls(self.calls, beside)


def _attachment(part: Mapping[str, Any]) -> str | None:
    """The kind of an attachment by its modality or media type: `image`, `audio`, `video`; None for others."""
    by_name = {normal(key): value for key, value in part.items()}
    named = _first(by_name, ("modality", "mimetype", "mediatype", "contenttype"))
    kind = str(named or "").partition("/")[0]
    return kind if kind in ("image", "audio", "video") else None
