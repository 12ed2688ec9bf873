"""The state that a graph of LangGraph returned, in the span of its chain: a second source of its messages.

It has the whole conversation without the instructions, whether each tool failed, the structured answer, and documents.
Other model calls of its nodes, such as those of a router, a grader or a summary, are not part of the conversation.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalstone.agents.formats.conversation import Reading
from evalstone.agents.formats.dialects import ANSWER
from evalstone.agents.formats.known_messages import KnownMessages
from evalstone.agents.formats.langchain import has_messages, read_state
from evalstone.agents.formats.messages import is_conversation, read_layout
from evalstone.agents.formats.values import Entries, entries_of, parsed
from evalstone.agents.messages import answer_text, structured_text
from evalstone.types import Message, ToolCall
from evalstone.types.accounts import call_key, merged_call


def state_in(attributes: Entries) -> Reading | None:
    """The state in the attributes of a chain; None if it returned none, or an update of one without its question.

    Raises PlacedError when its messages can't be read.
    """
    returned = entries_of(parsed(attributes.get(ANSWER)))
    state: Any = entries_of(returned.get("outputs")) or returned
    if not has_messages(state) or not is_conversation(state["messages"]):
        return None
    reading = read_layout(read_state(state))
    return reading if any(message.role == "user" for message in reading.conversation.messages) else None


def answer_in(state: Reading) -> str | None:
    """The structured answer of a state, else the text of its last message."""
    messages = state.conversation.messages
    return answer_text(messages) if state.output is None else structured_text(state.output, messages)


def has_answer(state: Reading) -> bool:
    """Whether the messages of a state are the whole conversation. A graph can also keep its answer elsewhere."""
    messages = state.conversation.messages
    return messages[-1].role != "user"


@dataclass
class BesideState:
    """Messages of a graph's model calls that its state lacks: instructions, and tool calls that a node made on its
    own."""

    _calls: dict[Hashable, ToolCall] = field(default_factory=dict[Hashable, ToolCall])
    _instructions: list[Message] = field(default_factory=list[Message])
    _answering: list[Message] = field(default_factory=list[Message])
    """The instructions of the calls whose answer is in the state."""

    @property
    def instructions(self) -> list[Message]:
        """Those of the model calls whose answer is in the state; of all, if none is."""
        return self._answering or self._instructions

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls that models made and that are not in the state."""
        return [*self._calls.values()]

    def read(
        self, said: Sequence[Message], known: KnownMessages, messages: Sequence[Message]
    ) -> list[tuple[int, Message]]:
        """Read the messages of a model call, its answer last.

        Args:
            said: They.
            known: Where the messages of the state are.
            messages: Those of the state.

        Returns:
            The messages that the state has too, with their places in it.
        """
        found, at = list[tuple[int, Message]](), 0
        instructions = list[Message]()
        for number, message in enumerate(said):
            places = (_place(message, known, messages, start) for start in (at, 0))
            place = next((each for each in places if each is not None), None)
            if place is not None:
                found.append((place, message))
                at = place + 1
            elif message.role == "system":
                instructions.append(message)
            for call in message.tool_calls if place is None else ():
                key = call_key(call)
                if key in self._calls:
                    self._calls[key] = merged_call(self._calls[key], call)[0]
                elif number == len(said) - 1:
                    self._calls[key] = call
        self._instructions += instructions
        if found and found[-1][1] is said[-1] and said[-1].role == "assistant":
            self._answering += instructions
        return found


def _place(message: Message, known: KnownMessages, messages: Sequence[Message], start: int) -> int | None:
    place = known.find(message, messages, start)
    return known.find_calls(message, messages, start) if place is None else place
