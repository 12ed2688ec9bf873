"""One name, several formulas: what other systems compute, under the same name, from the same answers of a judge.

A definition differs in arithmetic only. So comparing five of them asks no more than one does. What another system asks
otherwise (other questions, embeddings) is not offered under its name: docs/definitions.md says what that is.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from evalstone.errors import ConfigError, unknown
from evalstone.scorers.base import Scorer

OURS = "evalstone"


@dataclass(frozen=True)
class Definition:
    """A formula. told: in words. value: as a function. undefined: what that system gives where the formula has none."""

    told: str
    value: Callable[..., float]
    undefined: str = ""


@dataclass(frozen=True, kw_only=True)
class Defined(Scorer, ABC):
    """A scorer whose formula can be another system's. Where that is undefined the sample is Skipped, in all of them."""

    defined: ClassVar[Mapping[str, Definition]] = {}

    definition: str = OURS

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.definitions = {name: _told(definition) for name, definition in cls.defined.items()}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.definition not in tuple(self.defined):
            raise ConfigError(f"{self.name}: {unknown('definition', str(self.definition), self.defined)}")

    def meaning(self) -> str:
        told = super().meaning()
        return told if self.definition == OURS else f"{told} As {self.definition} counts: {self.formula.told}."

    @property
    def formula(self) -> Definition:
        """The definition that is taken."""
        return self.defined[self.definition]

    def undefined(self, why: str) -> str:
        """Why there is no score, and what the system whose definition is taken would give."""
        other = self.formula.undefined
        return f"{why}; {self.definition} gives {other} here" if other else why


def _told(definition: Definition) -> str:
    there = f" (where it is undefined: {definition.undefined} there, skipped here)" if definition.undefined else ""
    return definition.told + there
