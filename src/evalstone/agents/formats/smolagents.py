"""smolagents' memory as messages: what `agent.write_memory_to_messages()` returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalstone._core.literals import written_value
from evalstone.agents.formats.calls import read_call, text_of
from evalstone.agents.formats.format import Placed
from evalstone.agents.formats.values import Entries, objects_in, part_text

_ROLES = ("tool-call", "tool-response")
_CALLING, _LAST_OUTPUT = "Calling tools:\n", "Last output from code snippet:\n"
_PREFIXES = ("New task:\n", "Observation:\n")
_PROCEED = "Now proceed and carry out this plan."
_ANSWER = "final_answer"


def is_message(item: Entries) -> bool:
    """Whether this is a message of an agent's memory."""
    return item.get("role") in _ROLES or {"role", "content", "raw", "token_usage"} <= item.keys()


def messages(items: Sequence[Entries], at: int) -> Iterator[Placed]:
    """The message in the common form. The call of `final_answer` is the answer, as is the output of code with it."""
    item, before = items[at], items[at - 1] if at else Entries()
    role, text = item.get("role"), _text(item)
    if role == "tool-call":
        calls = [read_call(call) for call in written_value(text.removeprefix(_CALLING))]
        answers = [call.arguments.get("answer", call.arguments) for call in calls if call.name == _ANSWER]
        others = [call for call in calls if call.name != _ANSWER]
        yield "", {"role": "assistant", "content": "\n".join(map(text_of, answers)), "tool_calls": others}
    elif role == "tool-response":
        failed = {"status": "error"} if "Error:\n" in text[:60] else {}
        if f"'name': '{_ANSWER}'" not in _text(before) or failed:
            yield "", {"role": "tool", "content": text, **failed}
        if f"{_ANSWER}(" in _text(before) and at + 1 == len(items) and not failed:
            yield "", {"role": "assistant", "content": text.rpartition(_LAST_OUTPUT)[2]}
    else:
        parts = [{**part, "text": _text({"content": [part]})} if "text" in part else part for part in _parts(item)]
        said_by, usage = "system" if text == _PROCEED else role, item.get("token_usage")
        yield "", {**item, "role": said_by, "content": parts or item.get("content"), "usage": usage}


def _parts(item: Entries) -> list[Entries]:
    return objects_in(item.get("content"))


def _text(item: Entries) -> str:
    """The text of a message, without what smolagents puts in front of it."""
    text = "".join(filter(None, map(part_text, _parts(item))))
    return next((text.removeprefix(each) for each in _PREFIXES if text.startswith(each)), text)
