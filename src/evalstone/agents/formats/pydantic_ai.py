"""pydantic-ai's messages, as `all_messages_json()` writes them: requests and responses with parts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalstone._core.display import excerpt, shortlist
from evalstone._core.guards import is_array, is_object
from evalstone.agents.formats.format import Layout, Placed
from evalstone.agents.formats.parts import Content
from evalstone.agents.formats.steps import in_steps
from evalstone.agents.formats.values import (
    Entries,
    PlacedError,
    entries_of,
    objects_in,
    plain,
    read_cost,
    read_usage,
)
from evalstone.types.messages import Message

_BOOKKEEPING = ("tool-availability-delta", "capability-load-delta", "model-settings-delta", "instruction-digest")
_FAILED = ("failed", "denied", "retried", "error")
_USER_CONTENT: Mapping[str, str] = {
    "image-url": "image_url",
    "audio-url": "audio_url",
    "video-url": "video_url",
    "document-url": "file",
    "uploaded-file": "file",
    "binary": "file",
}
_ASKED = "(?:return text|include your response in a tool call|call a tool|return an image)"
_FEEDBACK = re.compile(
    r"Your previous response failed the application's validation [^\n]*\n"
    r"<pyai:(?P<tag>retry_feedback|validation_errors)>\n(?P<said>.*)\n</pyai:(?P=tag)>"
    rf"|(?P<open><system>)?(?P<asked>Please {_ASKED}(?:(?:,|,? or) {_ASKED})*\.)(?(open)</system>)"
    r"|(?:Validation feedback:\n|[0-9]+ validation errors?:\n```json\n).*\n\nFix the errors and try again\.",
    re.DOTALL,
)
"""Messages of the library to a model in the user's name; the last alternative is from older versions."""


def is_message(item: Mapping[str, Any]) -> bool:
    """Whether an object is a request or a response."""
    return item.get("kind") in ("request", "response") and is_array(item.get("parts"))


def messages(items: Sequence[Entries], at: int) -> Iterator[Placed]:
    """The messages in a request or a response, in the common form.

    Instructions are said when they change. Feedback on an answer that the library or a validator refused is a tool's
    message without a call, and so is what comes after the result of a tool in one request.

    Raises PlacedError for a part that is no object or has no kind.
    """
    item = items[at]
    parts = item["parts"]
    instructions = item.get("instructions")
    earlier = (items[before].get("instructions") for before in range(at - 1, -1, -1))
    if instructions is not None and instructions != next((each for each in earlier if each is not None), None):
        yield ".instructions", {"role": "system", "content": instructions}
    if item["kind"] == "response":
        read = [_response_part(part, f".parts[{number}]") for number, part in enumerate(parts)]
        for _, step in in_steps({"role": "assistant", "parts": read, "usage": item.get("usage")}):
            yield "", step
        return
    returned = False
    for number, part in enumerate(parts):
        place = f".parts[{number}]"
        message = _request_part(_object(part, place), place)
        if is_object(message) and message["role"] == "user" and returned:
            message = _beside_result(message)
        returned = returned or part["part_kind"] == "tool-return"
        if message is not None:
            yield place, message


def read_run(run: Any) -> Layout:
    """The result of a run."""
    usage = getattr(run, "usage", None)
    if not hasattr(usage, "input_tokens") and callable(usage):  # a method before version 2
        usage = usage()
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "requests")
    counts = {name: getattr(usage, name, None) for name in names}
    cost, output = getattr(usage, "cost", None), getattr(run, "output", None)
    layout = Layout(
        usage=read_usage(counts),
        cost=None if cost is None else read_cost(float(cost)),
        output=None if is_waiting(plain(output)) else output,
    )
    layout.extend(json.loads(run.all_messages_json()), "all_messages()")
    return layout


def _object(part: Any, place: str) -> Entries:
    if not is_object(part):
        raise PlacedError(f"a part must be an object, not {excerpt(part)}", place)
    return part


def is_waiting(output: Any) -> bool:
    """Whether this is no answer, but the calls that a run waits for: that they are approved, or made elsewhere."""
    entries = entries_of(output)
    lists = [entries.get(name) for name in ("calls", "approvals")]
    calls = [call for each in lists if is_array(each) for call in objects_in(each)]
    return all(is_array(each) for each in lists) and any(c.get("part_kind") == "tool-call" for c in calls)


def feedback_in(text: str) -> Message | None:
    """The library's feedback in a text that was sent to a model in the user's name; None for a text of the user."""
    if (framed := _FEEDBACK.fullmatch(text)) is None:
        return None
    return _feedback(framed["said"] or framed["asked"] or text)


def _feedback(content: Any) -> Message:
    """The library's reply to an answer that it refuses. It isn't a question of the user, an instruction or the result
    of a call."""
    return Message(role="tool", content=content if isinstance(content, str) else json.dumps(content))


def _beside_result(message: Entries) -> Message:
    """A text that a tool adds to its result as a message of the user, such as the content of `ToolReturn`."""
    content = Content(role="user")
    content.read_message(message)
    return Message(
        role="tool", content=content.text, attachments=tuple(content.attachments), notes=tuple(content.notes)
    )


def _request_part(part: Entries, place: str) -> Entries | Message | None:
    kind, content = part.get("part_kind"), part.get("content")
    if kind in ("system-prompt", "instruction", "instruction-delta"):
        return {"role": "system", "content": content}
    if kind == "instruction-baseline":
        texts = [entries_of(each).get("content") for each in part.get("instructions") or ()]
        return {"role": "system", "content": [{"type": "text", "text": text} for text in texts]}
    if kind == "user-prompt":
        if not is_array(content):
            return {"role": "user", "content": content}
        items = [_user_content(each, f"{place}.content[{at}]") for at, each in enumerate(content)]
        return {"role": "user", "content": items}
    if kind in ("tool-return", "builtin-tool-return") or (kind == "retry-prompt" and part.get("tool_name")):
        return {"role": "tool", "content": [_result(part)]}
    if kind in ("retry-prompt", "retry-feedback"):
        return _feedback(content)
    if kind == "compaction":
        return {"role": "user", "content": content if isinstance(content, str) else json.dumps(content)}
    if kind == "speech":
        return {"role": "user", "content": [_speech(part)]}
    if kind in _BOOKKEEPING:
        return None
    return {"role": "user", "content": [_unknown(part, "part_kind", place)]}


def _response_part(value: Any, place: str) -> Entries:
    part = _object(value, place)
    kind = part.get("part_kind")
    if kind == "text":
        return {"type": "text", "text": part.get("content"), "citations": part.get("citations")}
    if kind in ("thinking", "compaction"):
        return {"type": "thinking", "thinking": part.get("content")}
    if kind in ("tool-call", "builtin-tool-call"):
        return {"type": "tool_call", "builtin": kind == "builtin-tool-call", **part}
    if kind == "builtin-tool-return":
        return {"builtin": True, **_result(part)}
    if kind == "file":
        return {"type": "file", "media_type": entries_of(part.get("content")).get("media_type")}
    if kind == "speech":
        return _speech(part)
    return _unknown(part, "part_kind", place)


def _result(part: Entries) -> Entries:
    outcome = part.get("outcome") or ("retried" if part.get("part_kind") == "retry-prompt" else "success")
    return {
        "type": "tool_result",
        "tool_call_id": part.get("tool_call_id"),
        "name": part.get("tool_name"),
        "content": part.get("content"),
        "is_error": outcome in _FAILED,
    }


def _speech(part: Entries) -> Entries:
    transcript = part.get("transcript")
    if part.get("audio") is None:
        return {"type": "text", "text": transcript or ""}
    return {"type": "audio", "transcript": transcript}


def _user_content(value: Any, place: str) -> Any:
    if isinstance(value, str):
        return value
    item = _object(value, place)
    kind = str(item.get("kind"))
    if kind in ("text-content", "structured-content"):
        return {"type": "text", "text": item.get("content")}
    if kind == "cache-point":
        return {"type": "cache-point"}
    if kind in _USER_CONTENT:
        return {"type": _USER_CONTENT[kind], "media_type": item.get("media_type")}
    return _unknown(item, "kind", place)


def _unknown(part: Entries, key: str, place: str) -> Entries:
    """A part of an unknown kind, which the message names. Raises PlacedError for one without a kind."""
    if not isinstance(part.get(key), str):
        raise PlacedError(f"a part must have a {key}; it has {shortlist(part) or 'nothing'}", place)
    return {**{name: value for name, value in part.items() if name != key}, "type": part[key]}
