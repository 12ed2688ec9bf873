"""The parts of a message: texts, reasoning, tool calls and their results, attachments, and retrieved passages.

Parts are told apart by their type, whichever tool wrote them: OpenAI's (also the items of its Responses API),
Anthropic's blocks, Gemini's parts, Bedrock's blocks, those of OpenTelemetry, the AI SDK, Mastra and LangChain. A part
of an unknown type is named in the attachments, with a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evalstone._core.display import excerpt, shortlist
from evalstone._core.guards import is_array, is_list, is_object
from evalstone.agents.formats.calls import (
    OWN_CALLS,
    ToolResult,
    malformed_arguments,
    own_call,
    passages_in,
    read_call,
    read_calls,
    tool_result,
)
from evalstone.agents.formats.values import (
    Entries,
    PlacedError,
    by_normal_name,
    entries_of,
    first,
    normal,
    objects_in,
    part_text,
    placed,
)
from evalstone.errors import DataError, invalid
from evalstone.types import ToolCall
from evalstone.types.accounts import first_shown, merged_calls

CONTENT_KEYS = ("content", "parts", "value", "text")
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
        (*OWN_CALLS, "mcplisttools", "compaction", "compactiontrigger", "configurationupdate"), "assistant"
    ),
    **dict.fromkeys(("additionaltools", "itemreference"), "assistant"),
    **dict.fromkeys((kind for kind in _RESULTS if kind.endswith("output")), "tool"),
    "mcpapprovalresponse": "assistant",
}
"""Items of OpenAI's Responses API that stand between messages, without a role."""

# What LangChain keeps of a provider's message in `additional_kwargs` alone.
_EXTRA = ("refusal", "reasoning", "reasoningcontent", "audio", "functioncall")
_CALL_LISTS = ("toolcalls", "toolinvocations", "toolscalled")


def types_in(item: Entries) -> set[str]:
    """The types of a message's parts."""
    body = entries_of(item.get("content")) or item
    parts = body.get("parts") if "parts" in body else item.get("content")
    return {str(part.get("type")) for part in objects_in(parts)}


def _is_returned(content: Any) -> bool:
    """Whether the content of a tool's message is what the tool returned, and not text or parts that hold it."""
    if not is_object(content):
        return isinstance(content, int | float)
    has_parts = "parts" in content or "toolInvocations" in content or is_array(content.get("content"))
    return bool(content) and not has_parts and not content.keys() <= {"type", "text", "content"}


@dataclass
class Content:
    """The content collected from one message."""

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
    returned: Any = None
    """What a tool returned, if it is neither text nor parts."""
    is_approval: bool = False
    """Whether this is the user's reply to a call, and not the call's result."""
    _goes_on: bool = False
    """Whether the last part was a text that the next one may continue."""

    @property
    def text(self) -> str:
        """The texts, one per line."""
        return "\n".join(self.texts)

    def read_message(self, item: Entries) -> None:
        """Read the content and what stands beside it. Raises PlacedError for what is not understood."""
        present = [key for key in CONTENT_KEYS if key in item]
        key = next((key for key in present if item[key] is not None), None)
        if isinstance(item.get("content"), str) and is_array(item.get("parts")):
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
        elif self.role == "tool" and _is_returned(content):
            self.returned = content
        elif self.role == "tool" and is_array(inner := entries_of(content).get("content")):  # MCP's result
            self._read(inner)
        elif is_array(content):
            for number, part in enumerate(content):
                try:
                    self._read_part(part)
                except DataError as error:
                    raise placed(error, f"[{number}]") from None
        elif is_object(content):
            if content and content.keys().isdisjoint(("parts", "content", "text", "toolInvocations")):
                raise DataError(f"content must have text, content or parts; it has {shortlist(content)}")
            self._read_body(content)
            self._read_beside(content)
        elif content is not None:
            raise DataError(
                invalid("content", "text or a list of parts", content, f"{type(content).__name__}: {excerpt(content)}")
            )

    def _read_body(self, body: Entries) -> None:
        """Parts, and a text that repeats them. If the two differ, the text counts, because Mastra judges it."""
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
        if not is_object(part):
            raise DataError(
                invalid("a part of the content", "an object", part, f"{type(part).__name__}: {excerpt(part)}")
            )
        name, item = _opened(part)
        kind = normal(name)
        if self._read_said(kind, item) or kind in _INVISIBLE:
            return
        if not (self._read_of_tool(kind, name, item) or self._read_beside_text(kind, item)):
            self._note_unknown(kind, name, item)
        self._goes_on = False

    def _read_said(self, kind: str, item: Entries) -> bool:
        """Read a part that may stand in the middle of a text: a piece of it, or reasoning. False for any other."""
        text = part_text(item)
        if kind in _THOUGHTS or (item.get("thought") is True and text):
            self._read_thought(item)
        elif kind == "guardcontent":
            for key in ("text", "image"):
                if block := entries_of(item.get(key)):
                    self._read_part({**block, "type": key})
        elif kind == "citationscontent":
            self._read_text("".join(filter(None, map(part_text, objects_in(item.get("content"))))))
        elif text is not None and kind in _TEXTS:
            self._read_text(text)
        else:
            return False
        return True

    def _read_of_tool(self, kind: str, name: str, item: Entries) -> bool:
        """Read a call, a result, or what was said to a call that waits for approval. False for any other part."""
        if kind in OWN_CALLS:
            self._read_own_call(kind, item)
        elif kind == "toolinvocation":
            call = read_call(item.get("toolInvocation"))
            self.calls.append(call)
            if entries_of(item.get("toolInvocation")).get("approval"):
                self.approved.add(call.id)
        elif kind in _RESULTS or kind.endswith("toolresult"):
            result = tool_result(item)
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
        else:
            return False
        return True

    def _read_beside_text(self, kind: str, item: Entries) -> bool:
        """Read an attachment, a search result, a refusal or an answer to a call that waits. False for any other part.

        Raises DataError for a reference to an item that is not here.
        """
        if kind in _ATTACHMENTS:
            self._read_attachment(kind, item)
        elif kind == "searchresult":
            self.passages += passages_in(item)
        elif isinstance(item.get("refusal"), str):
            self.texts.append(item["refusal"])
        elif kind == "toolapprovalresponse":
            self.is_approval = True
            self.texts += [item["reason"]] if isinstance(item.get("reason"), str) else []
        elif kind == "itemreference":
            raise DataError(f"it refers to an item that is not here: {excerpt(item.get('id'))}")
        else:
            return False
        return True

    def _note_unknown(self, kind: str, name: str, item: Entries) -> None:
        """Name a part of an unknown type. Raises PlacedError for one without a type."""
        if not name:
            raise PlacedError(f"a part with no type is not understood; it has {shortlist(item) or 'nothing'}")
        if kind not in _IGNORED and not name.startswith("data-"):
            self.attachments.append(name)
            entries = shortlist(key for key in item if key != "type")
            self.notes.append(f"{UNKNOWN_PART}: {excerpt(name)}, with {entries or 'nothing else'}")

    def _read_text(self, text: str) -> None:
        """One text. In an answer, texts that follow each other are pieces of one, as providers' libraries join them:
        where a citation begins or a block of a stream ends. Those of others are texts that someone put side by side."""
        if self._goes_on and self.role == "assistant":
            self.texts[-1] += text
        else:
            self.texts.append(text)
        self._goes_on = True

    def read_texts(self, parts: Any) -> None:
        """Read only the texts of a list of parts."""
        for part in objects_in(parts):
            text = part_text(part)
            if text:
                self._read_text(text)
            else:
                self._goes_on = False

    def _read_call(self, kind: str, item: Entries) -> None:
        """A tool call. One that was approved before it was made is the result of the call that asked for approval."""
        call = read_call({"name": item.get("toolType"), **item} if "toolType" in item else item)
        self.notes += malformed_arguments([item], [call])
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
        self.calls.append(own_call(kind, item))
        if kind == "filesearchcall":
            self.passages += [text for each in objects_in(item.get("results")) if (text := part_text(each))]
        if kind == "imagegenerationcall" and item.get("result"):
            self.attachments.append("image")

    def _read_attachment(self, kind: str, item: Entries) -> None:
        """The attachments of a part, and their text: the transcript of speech, or a text document."""
        self.attachments.append(_kind_of_attachment(item) or _ATTACHMENTS[kind])
        self.passages += passages_in(item)
        if isinstance(item.get("transcript"), str):
            self.texts.append(item["transcript"])

    def _read_thought(self, thought: Any) -> None:
        """The text of a part or an entry with reasoning; Mastra splits it into `details`, OpenAI into two lists."""
        if is_object(thought):
            names = ("text", "reasoning", "thinking", "content", "reasoningText", "reasoning_text", "reasoning_content")
            text = next((thought[key] for key in names if thought.get(key)), None)
            if is_object(text):  # Bedrock's
                self._read_thought(text)
                return
            if not isinstance(text, str):
                lists = (thought.get("details"), thought.get("summary"), thought.get("content"))
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
        if not is_list(attachments):
            raise DataError(
                invalid("attachments", "a list", attachments, f"{type(attachments).__name__}: {excerpt(attachments)}")
            )
        for each in attachments:
            self.attachments.append(each if isinstance(each, str) else _kind_of_attachment(entries_of(each)) or "file")
        self.attachments += ["image"] * len(objects_in(by_name.get("images")))
        audio = by_name.get("audio")
        if is_object(audio):
            self._read_attachment("audio", audio)
        refusal = by_name.get("refusal")
        if isinstance(refusal, str) and refusal and refusal not in self.texts:
            self.texts[:] = [*filter(None, self.texts), refusal]
        if not self.thoughts:
            self._read_thought(first_shown(by_name.get("reasoning"), by_name.get("reasoningcontent")))
        self.passages += passages_in(by_name.get("artifact"))
        noted = by_name.get("notes")
        self.notes += [each for each in noted if isinstance(each, str)] if is_array(noted) else []  # our own
        names = {normal(key): key for key in item}
        lists: Entries = {name: by_name[name] for name in (*_CALL_LISTS, "invalidtoolcalls") if by_name.get(name)}
        if by_name.get("functioncall"):
            lists["functioncall"] = [by_name["functioncall"]]
        for name, calls in lists.items():  # each of them may have the calls of the parts again
            read = read_calls(calls, f".{names.get(name, name)}")
            merged, notes = merged_calls(self.calls, read)
            self.calls[:] = merged
            self.notes += (*notes, *malformed_arguments(calls, read))


def _opened(item: Entries) -> tuple[str, Entries]:
    """The type and the entries of a part, without what LangChain, OpenTelemetry or Bedrock put around it."""
    name = str(item.get("type", ""))
    if name == "non_standard" and is_object(item.get("value")):  # LangChain's, around a provider's own
        item = item["value"]
        name = str(item.get("type", ""))
    if name == "generic" and isinstance(item.get("generic_type"), str):  # OpenTelemetry's, around a provider's own
        name = item["generic_type"]
        item = {**item, "type": name}
    inner = [] if name else [key for key in item if normal(key) in _UNTYPED and is_object(item[key])]
    if not inner and not name and len(item) == 1 and isinstance(next(iter(item.values())), dict):
        inner = list(item)  # a block of Bedrock's that isn't known
    if inner:
        name, item = inner[0], {**item[inner[0]], "type": inner[0]}
    elif normal(name) in BLOCKS and (body := entries_of(item.get("content"))):  # in OpenTelemetry's generic part
        # The content of these two may be an object of their own.
        item = {**body, "type": name} if "toolUseId" in body or "tool" not in normal(name) else item
    return name, item


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
