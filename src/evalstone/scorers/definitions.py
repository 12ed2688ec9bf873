"""Definitions: what other systems compute under a scorer's name, from the same judge answers."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from evalstone.errors import ConfigError, unknown
from evalstone.scorers.base import Scorer
from evalstone.types import Score, Skipped

OURS = "evalstone"


@dataclass(frozen=True)
class Definition:
    """What a system computes under a scorer's name.

    Attributes:
        formula: The formula in words.
        compute: The function of this definition; None if all definitions of the scorer compute the same way.
        undefined: What that system returns if its formula is undefined; empty if it has no rule of its own.
        otherwise: The score, as a share of the scale, if the formula is undefined; None skips the sample.
        blank: The fields whose blank text that system scores. In any other field, blank text is absent.
    """

    formula: str
    compute: Callable[..., Any] | None = None
    undefined: str = ""
    otherwise: float | None = None
    blank: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Defined(Scorer, ABC):
    """A scorer that can apply another system's formula to the same judge answers.

    Comparing several definitions takes no more judge calls than one, except that prompt alignment by "mastra" has its
    own call. A measure that needs different questions is not offered under that system's name; see docs/definitions.md.

    Attributes:
        definition: The formula: ours ("evalstone"), or that of another system in `definitions`.
    """

    definitions: ClassVar[Mapping[str, Definition]] = {}
    """The definitions by the name of the system that uses them."""

    definition: str = OURS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.definition not in tuple(self.definitions):
            raise ConfigError(f"{self.name}: {unknown('definition', str(self.definition), self.definitions)}")
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
            return Score(chosen.otherwise * self.scale, self.scale, reason)
        return Skipped(f"{reason}; {self.definition} gives {chosen.undefined} here" if chosen.undefined else reason)
