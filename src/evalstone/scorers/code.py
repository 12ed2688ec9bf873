"""What a scorer is that asks nothing: it takes a sample, or whole columns of them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from evalstone.errors import UsageError
from evalstone.scorers.base import Scorer
from evalstone.scorers.units import is_blank
from evalstone.types import Sample, Score, Skipped

Against: TypeAlias = Literal["input", "reference"]
AGAINST: tuple[Against, ...] = ("input", "reference")


@dataclass(frozen=True, kw_only=True)
class CodeScorer(Scorer, ABC):
    """A scorer in plain code: its `score` is a plain function that asks nothing and is given just what it needs."""

    def values(self, sample: Sample) -> dict[str, Any]:
        return {name: getattr(sample, name) for name in self.needs}

    def score_columns(self, **columns: Sequence[Any]) -> list[Score | Skipped]:
        """The scores of many samples, each field a column: `scorer.score_columns(input=[…], output=[…])`.

        Sample by sample the same as `score`, without a run around it. None in a column is an absent field. Raises
        UsageError for columns of different lengths, one that the scorer does not take, and a needed one left out.
        """
        taken = [name for name in inspect.signature(type(self).score).parameters if name != "self"]
        if foreign := [name for name in columns if name not in taken]:
            raise UsageError(f"{self.name} takes the columns {', '.join(taken)}, not {', '.join(foreign)}")
        if absent := [name for name in self.needs if name not in columns]:
            raise UsageError(f"{self.name} needs the column {' and the column '.join(absent)}")
        if len({len(column) for column in columns.values()}) > 1:
            told = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
            raise UsageError(f"{self.name}: the columns differ in length: {told}")
        names = tuple(columns)
        return [self._row(dict(zip(names, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    def _row(self, fields: dict[str, Any]) -> Score | Skipped:
        if None in fields.values() and (absent := [name for name in self.needs if fields[name] is None]):
            return Skipped(f"{self.name} needs {' and '.join(absent)}")
        return cast("Score | Skipped", self.score(**fields))


@dataclass(frozen=True, kw_only=True)
class PairScorer(CodeScorer, ABC):
    """A scorer in code that compares the answer with another text of its sample.

    against: which one, "input" or "reference". A pair in which either text is blank has no score.
    """

    against: Against = "input"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "against", AGAINST)

    @abstractmethod
    def compare(self, text: str, output: str) -> Score | Skipped:
        """The score of one pair of texts, neither of them blank."""

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.against, "output")

    @classmethod
    def required(cls) -> tuple[str, ...]:
        return (cls.against, "output")

    def score(self, *, output: str, input: str | None = None, reference: str | None = None) -> Score | Skipped:
        text = input if self.against == "input" else reference
        if text is None:
            return Skipped(f"{self.name} needs {self.against}")
        if is_blank(text) or is_blank(output):
            return Skipped(f"the {self.against if is_blank(text) else 'answer'} is blank")
        return self.compare(text, output)


def one_of(scorer: Scorer, field: str, allowed: Sequence[object]) -> None:
    """Raise UsageError for a field whose value is none of those allowed."""
    value = cast(object, getattr(scorer, field))
    if value not in allowed:
        told = " or ".join(repr(choice) for choice in allowed)
        raise UsageError(f"{scorer.name}: {field} must be {told}, not {value!r}")


def yes_or_no(scorer: Scorer, *names: str) -> None:
    """Raise UsageError for a field that is neither True nor False."""
    for name in names:
        value = cast(object, getattr(scorer, name))
        if not isinstance(value, bool):
            raise UsageError(f"{scorer.name}: {name} must be True or False, not {value!r}")
