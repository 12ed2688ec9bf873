"""Scorers of passages and of texts, and where these come from: the scorer, a function of the sample, or the sample."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from evalstone._core.declarations import Rule
from evalstone._core.text import is_blank
from evalstone.agents.sides import SEPARATOR, Text, side
from evalstone.scorers.base import Scorer, as_text
from evalstone.scorers.needs import TOOL_RESULTS, value_of
from evalstone.types import Message, Sample, passages

SIDES = ("input", "output")
OF_ALL_MESSAGES = ("messages", "turns")
"""What may stand in for an input or an output that is read from all messages."""
_CONVERSATION = Sample(messages=(Message(role="user", content="a"), Message(role="assistant", content="b")))
PASSAGES = Rule("a list of passages", lambda _: True, passages)
FUNCTION_OF_SAMPLE = Rule("a function of a sample", callable)


class ContextScorer(Scorer):
    """A scorer that reads passages.

    Attributes:
        context: The passages for every sample, instead of the sample's own.
        context_from: A function of the sample, `def` or `async def`, that returns its passages. It overrides `context`.

    By default, the passages are the sample's `context`, or else the results of the tool calls in its messages, in
    order.
    """

    extractors: ClassVar[Mapping[str, str]] = {"context": "context_from"}
    alternatives: ClassVar[Mapping[str, tuple[str, ...]]] = {"context": (TOOL_RESULTS,)}
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {"context": ("context", "context_from")}

    context: Annotated[Sequence[str] | None, PASSAGES] = None
    context_from: Annotated[Callable[[Sample], Sequence[str] | Awaitable[Sequence[str]]] | None, FUNCTION_OF_SAMPLE] = (
        None
    )

    def values(self, sample: Sample) -> dict[str, Any]:
        values = super().values(sample)
        return {**values, "context": self.passages_for(sample)} if "context" in values else values

    def passages_for(self, sample: Sample) -> tuple[str, ...] | None:
        """Return the passages for this sample; None if it has none."""
        if self.context_from is not None:
            return passages(sample.context)
        for context in (self.context, sample.context):
            if context is not None:
                return tuple(context)
        return tuple(as_text(call.result) for call in value_of(sample, TOOL_RESULTS) or ()) or None


class TextSource(Scorer):
    """A scorer of a sample's texts.

    Attributes:
        text: The text of a conversation: the sample's own input and output, which are the "last" messages of the user
            and the assistant, "all" messages of each, joined by blank lines, or the "first" of each.
    """

    text: Text = "last"

    def __post_init__(self) -> None:
        super().__post_init__()
        own = {name: others for name, others in self.alternatives.items() if others != OF_ALL_MESSAGES}
        read = [name for name in SIDES if self._reads_messages(name)]
        spoken = {name: tuple(dict.fromkeys((*own.get(name, ()), *OF_ALL_MESSAGES))) for name in read}
        object.__setattr__(self, "alternatives", {**own, **spoken})

    def _reads_messages(self, field: str) -> bool:
        """Whether the input or the output is that of the messages."""
        return self.side(_CONVERSATION, field) is not None

    @property
    def separator(self) -> str:
        """The text between the texts of two messages."""
        return SEPARATOR

    def side(self, sample: Sample, field: str) -> Sequence[Message] | None:
        """Return the messages that are the input or the output; None for the sample's own text."""
        return side(sample, field, self.text)

    def joined(self, messages: Sequence[Message]) -> str:
        """Return the texts of some messages as one."""
        return self.separator.join(message.content for message in messages if not is_blank(message.content))

    def values(self, sample: Sample) -> dict[str, Any]:
        values = super().values(sample)
        return values | self._spoken(sample, values)

    def _spoken(self, sample: Sample, values: Mapping[str, Any]) -> dict[str, str]:
        supplied = [field for field, name in self.extractors.items() if getattr(self, name) is not None]
        fields = (field for field in SIDES if field in values and field not in supplied)
        sides = ((field, self.side(sample, field)) for field in fields)
        return {field: self.joined(messages) for field, messages in sides if messages}

    def read_messages(self, sample: Sample, field: str) -> Sequence[Message]:
        messages = self.side(sample, field) if field in SIDES else None
        return super().read_messages(sample, field) if messages is None else messages
