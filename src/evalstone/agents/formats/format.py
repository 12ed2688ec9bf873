"""The declaration of a format of transcripts: how to recognize it, and where its messages are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from evalstone.agents.formats.values import Entries, checked_list
from evalstone.types import Message, Trajectory, Usage

Place: TypeAlias = str | int | None
"""The place of a message in an item of a list: a path such as `.parts[1]`, "" for the item itself, the index of its
first part for a step of an agent, or None for an item that stands between messages."""
Placed: TypeAlias = tuple[Place, Entries | Message]
"""A message with its place. An object is in the common form: a `role`, `content` as text or as a list of parts of known
types, `tool_calls`, `reasoning` and `usage`, as OpenAI and others have them."""


@dataclass(kw_only=True)
class Layout:
    """The places of a transcript's messages, and the data beside them."""

    messages: list[tuple[str, Entries | list[Any]]] = field(default_factory=list[tuple[str, "Entries | list[Any]"]])
    """Single messages in the common form, and lists of messages in any format, each with its place in the
    transcript."""
    passages: list[str] = field(default_factory=list[str])
    """Retrieved passages that no message has."""
    usage: Usage | None = None
    """The tokens of everything, if the messages don't have them."""
    cost: float | None = None
    """US dollars."""
    output: Any = None
    """The answer, as text or data, if it is said apart from the messages."""
    trajectory: Trajectory | None = None
    """The steps, if they are no tool calls in the messages."""
    error: str = ""
    """Why the run failed."""

    def add(self, message: Entries, place: str) -> None:
        """Add one message in the common form."""
        self.messages.append((place, message))

    def extend(self, items: Any, place: str) -> None:
        """Add a list of messages, none for None. Raises PlacedError for anything else."""
        self.messages.append((place, checked_list(items, place)))


class Whole(NamedTuple):
    """A transcript that is no list of messages: a response, a result, a session, a state."""

    matches: Callable[[Any], bool]
    read: Callable[[Any], Layout]
    """Called with a value that matches. May raise PlacedError."""


class Run(NamedTuple):
    """Objects that a library returns and whose data isn't the transcript. The library isn't imported."""

    library: str
    """The name of the package."""
    method: str
    """A method that such objects have."""
    read: Callable[[Any], Layout]
    """May raise DataError."""


@dataclass(frozen=True, kw_only=True)
class Format:
    """The format in which a library, an API or a tool writes a transcript. A row of `registry.FORMATS`."""

    name: str
    reads: str
    """What is read, for docs/transcripts.md."""
    is_message: Callable[[Entries], bool] | None = None
    """Whether an object in a list is a message of this format."""
    messages: Callable[[Sequence[Entries], int], Iterable[Placed]] | None = None
    """The messages in one of the consecutive objects that are messages of this format: those objects, and its index.
    None if they are in the common form. Then they need a known role."""
    whole: Whole | None = None
    is_trace: Callable[[Any], bool] | None = None
    """Whether a value has spans or log records of this format."""
    run: Run | None = None
    part: tuple[str, str] | None = None
    """The `type` of data with only a part of a transcript, and what to pass instead."""
