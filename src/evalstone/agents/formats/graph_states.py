"""The state that a graph of LangGraph returned, in the span of its chain: another account of its messages.

It has the whole conversation without the instructions, whether each tool failed, the structured answer, and documents.
"""

from __future__ import annotations

from typing import Any, cast

from evalstone.agents.formats.dialects import ANSWER
from evalstone.agents.formats.messages import Reading, is_conversation
from evalstone.agents.formats.results import is_state, read_state
from evalstone.agents.formats.values import Entries, entries_of, parsed
from evalstone.agents.messages import answer_text, structured_text


def state_in(attributes: Entries) -> Reading | None:
    """The state in the attributes of a chain; None if it returned none, or an update of one without its question.

    Raises PlacedError when its messages can't be read.
    """
    returned = entries_of(parsed(attributes.get(ANSWER)))
    state: Any = entries_of(returned.get("outputs")) or returned
    if not is_state(state) or not is_conversation(cast("list[Any]", state["messages"])):
        return None
    reading = read_state(state)
    return reading if any(message.role == "user" for message in reading.conversation.messages) else None


def answer_in(state: Reading) -> str | None:
    """The structured answer of a state, else the text of its last message."""
    messages = state.conversation.messages
    return answer_text(messages) if state.output is None else structured_text(state.output, messages)
