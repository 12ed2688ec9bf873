"""The content of a transcript: its messages in their order, with each tool result in its call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalstone._core.display import excerpt, shortlist
from evalstone.agents.formats import pydantic_ai
from evalstone.agents.formats.calls import ToolResult, says_failed, text_of
from evalstone.agents.formats.parts import Content
from evalstone.agents.formats.roles import ROLE_KEYS, role_of
from evalstone.agents.formats.values import Entries, by_normal_name, entries_of, placed, read_usage
from evalstone.errors import DataError
from evalstone.types import Trajectory
from evalstone.types.messages import ORIGINS, ROLES, Message, ToolCall, Usage
from evalstone.types.tool_results import is_only_error


class NoMessageError(DataError):
    """An item in a list of messages that isn't a message."""


@dataclass
class Conversation:
    """Messages in their order, and the passages in them that were retrieved."""

    messages: list[Message] = field(default_factory=list[Message])
    passages: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, item: Any) -> None:
        """Read one message and append it, or attach the tool results in it to the calls that they answer."""
        if isinstance(item, Message):
            self.messages.append(item)
            return
        role = role_of(item)
        if role is None:
            name = next((item[key] for key in ROLE_KEYS if key in item), None)
            known, has = f"expected {', '.join(ROLES)}", shortlist(item) or "no entries"
            raise NoMessageError(
                f"has no role ({known}); it has {has}" if name is None else f"has role {excerpt(name)}, {known}"
            )
        content = Content(role=role)
        content.read_message(item)
        self.passages |= dict.fromkeys(passage for passage in content.passages if passage.strip())
        text = content.text if content.returned is None else text_of(content.returned)
        calls = [call for call in content.calls if not self._repeats(call, content)]
        if role == "user" and not content.attachments and (feedback := pydantic_ai.feedback_in(text)) is not None:
            self.messages.append(feedback)
            return
        if role == "tool" and not content.results:
            if content.is_approval and not text:
                return
            if not content.is_approval and self._answer(item, text, content):
                return
        unanswered: list[ToolResult] = []
        for result in content.results:
            if not self.attach(result, own=calls):
                if result.otherwise is None:
                    unanswered.append(result)
                else:
                    calls.append(result.otherwise)
        if text or calls or content.thoughts or content.attachments or content.notes or not content.results:
            self.messages.append(
                Message(
                    role=role,
                    content=text,
                    tool_calls=calls,
                    reasoning="\n".join(content.thoughts) or None,
                    attachments=tuple(dict.fromkeys(content.attachments)),
                    usage=_usage(item),
                    origin=item["origin"] if item.get("origin") in ORIGINS else None,
                    continued=item.get("continued") is True,
                    notes=tuple(dict.fromkeys(content.notes)),
                )
            )
        self.messages.extend(Message(role="tool", content=text_of(result.result)) for result in unanswered)

    def _repeats(self, call: ToolCall, content: Content) -> bool:
        """Whether an earlier message already has a call that was approved."""
        return (
            call.id != ""
            and call.id in content.approved
            and any(call in message.tool_calls for message in self.messages)
        )

    def read(self, item: Any, place: str) -> None:
        """Add one message. Raises PlacedError that names the place."""
        try:
            self.add(item)
        except DataError as error:
            raise placed(error, place) from None

    def _answer(self, item: Entries, text: str, content: Content) -> bool:
        """Attach a tool's message to the call that it answers; one with more than text as it is."""
        call_id = next((item[key] for key in ("tool_call_id", "toolCallId") if isinstance(item.get(key), str)), "")
        name = item.get("name") if not call_id and isinstance(item.get("name"), str) else ""
        returned = item.get("content")
        result: Any = returned if content.attachments or returned == [] else text  # an empty list has no text
        result = result if content.returned is None else content.returned
        failed = any(says_failed(by_normal_name(each)) for each in (item, entries_of(returned)))
        failed = failed or is_only_error(result)
        return self.attach(ToolResult(call_id, result, failed, name or ""), notes=content.notes)

    def attach(self, result: ToolResult, own: list[ToolCall] | None = None, *, notes: Sequence[str] = ()) -> bool:
        """Attach a result to the open call that it answers, the latest one with its id, or to an answered call with its
        id whose result it repeats. Returns False if there is none.

        own: calls of the message that is being read, searched first. notes: those on the result.
        """
        for answers in (result.answers, result.repeats):
            for calls, at in self._calls(own):
                for place, call in enumerate(calls):
                    if answers(call):
                        calls[place] = result.of(call)
                        if at is not None:
                            known = self.messages[at]
                            self.messages[at] = replace(known, tool_calls=calls, notes=(*known.notes, *notes))
                        return True
        return False

    def _calls(self, own: list[ToolCall] | None) -> Iterator[tuple[list[ToolCall], int | None]]:
        """The calls of each message, the latest first, and its position."""
        if own:
            yield own, None
        for at in range(len(self.messages) - 1, -1, -1):
            if self.messages[at].tool_calls:
                yield list(self.messages[at].tool_calls), at


@dataclass(frozen=True)
class Reading:
    """The content of a whole transcript.

    output: the answer, if it is separate from the messages. usage: the tokens of everything, likewise. cost: US
    dollars. trajectory: the steps, if they aren't tool calls in the messages. error: why the run failed. retrieved:
    whether the passages are known, even if there are none.
    """

    conversation: Conversation
    usage: Usage | None = None
    cost: float | None = None
    output: Any = None
    trajectory: Trajectory | None = None
    error: str = ""
    retrieved: bool = False


def _usage(item: Mapping[str, Any]) -> Any:
    """The tokens in a message's `usage` or `usage_metadata`; None without any."""
    by_name = by_normal_name(item)
    return read_usage(by_name.get("usagemetadata") or by_name.get("usage"))
