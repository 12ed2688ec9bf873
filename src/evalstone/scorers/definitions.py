"""Definitions: what other systems compute under a scorer's name, from the same judge answers."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from evalstone.agents.sides import run_request, run_side
from evalstone.errors import ConfigError, unknown
from evalstone.scorers.base import Scorer
from evalstone.scorers.sources import TextSource
from evalstone.types import Message, Sample, Score, Skipped

OURS: Final = "evalstone"


@dataclass(frozen=True)
class Sides:
    """The messages that a system takes as the input and the output of a conversation.

    Attributes:
        messages: The messages of one of these fields; None for the sample's own text.
        separator: The text between the texts of two messages, blank ones included.
    """

    messages: Callable[[Sample, str], Sequence[Message] | None]
    separator: str = ""


REQUEST = Sides(run_request)
"""The first message of the user as the input, and the last of the assistant as the output."""
COMMA = Sides(run_side, ", ")
SPACE = Sides(run_side, " ")
UNSPACED = Sides(run_side)


@dataclass(frozen=True)
class Definition:
    """What a system computes under a scorer's name.

    Attributes:
        formula: The formula in words.
        compute: The function of this definition; None if all definitions of the scorer compute the same way.
        undefined: What that system returns if its formula is undefined; empty if it has no rule of its own.
        otherwise: The score, as a share of the scale, if the formula is undefined; None skips the sample.
        blank: The fields whose blank text that system scores. In any other field, blank text is absent.
        sides: The messages that are the input and the output; None leaves the choice to `text`.
    """

    formula: str
    compute: Callable[..., Any] | None = None
    undefined: str = ""
    otherwise: float | None = None
    blank: tuple[str, ...] = ()
    sides: Sides | None = None


class Defined(Scorer, ABC):
    """A scorer that can apply another system's formula to the same judge answers.

    Comparing several definitions takes no more judge calls than one, except that prompt alignment by "mastra" has its
    own call. A measure that needs different questions is not offered under that system's name; see docs/definitions.md.

    Attributes:
        definition: The formula: ours ("evalstone"), or that of another system in `definitions`.
    """

    definitions: ClassVar[Mapping[str, Definition]] = {}
    """The definitions by the name of the system that uses them."""

    definition: str = OURS  # scorers declare it again as the `Literal` of the names in `definitions`

    def __post_init__(self) -> None:
        if self.definition not in tuple(self.definitions):
            raise ConfigError(f"{self.name}: ", unknown("definition", str(self.definition), self.definitions))
        super().__post_init__()
        object.__setattr__(self, "reads_blank", self.definitions[self.definition].blank)

    def description(self) -> str:
        ours = super().description()
        formula = self.definitions[self.definition].formula
        return ours if self.definition == OURS else f"{ours} As {self.definition} counts: {formula}."

    def compute(self, *args: Any) -> Any:
        """Return the result of the chosen definition's formula."""
        return cast("Callable[..., Any]", self.definitions[self.definition].compute)(*args)

    def undefined(self, reason: str) -> Score | Skipped:
        """Return the outcome if the formula is undefined: Skipped, unless the definition has a number for it."""
        chosen = self.definitions[self.definition]
        if chosen.otherwise is not None:
            reason = f"{reason[:1].upper()}{reason[1:]}: {chosen.otherwise:g} by {self.definition}."
            return Score(chosen.otherwise * self.scale, reason)
        return Skipped(f"{reason}; {self.definition} gives {chosen.undefined} here" if chosen.undefined else reason)


class DefinedText(Defined, TextSource, ABC):
    """A scorer of texts with definitions. A definition that chooses its own messages takes no `text`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._sides is not None and self.text != type(self).text:
            raise ConfigError(f"{self.name}: {self.definition} chooses the messages itself; leave out text")

    @property
    def _sides(self) -> Sides | None:
        return self.definitions[self.definition].sides

    def side(self, sample: Sample, field: str) -> Sequence[Message] | None:
        return super().side(sample, field) if self._sides is None else self._sides.messages(sample, field)

    def joined(self, messages: Sequence[Message]) -> str:
        if self._sides is None:
            return super().joined(messages)
        return self._sides.separator.join(message.content for message in messages)
