"""What a scorer is that asks nothing: it takes a sample, or whole columns of them."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from evalstone.errors import ConfigError
from evalstone.scorers.base import Scorer
from evalstone.scorers.text.units import is_blank
from evalstone.types import Sample, Score, Skipped

Against: TypeAlias = Literal["input", "reference"]
AGAINST: tuple[Against, ...] = ("input", "reference")


@dataclass(frozen=True, kw_only=True)
class CodeScorer(Scorer, ABC):
    """A scorer in plain code: its `score` is a plain function that asks nothing and is given just what it needs."""

    def values(self, sample: Sample) -> dict[str, Any]:
        return {name: getattr(sample, name) for name in self.needs}

    def score_columns(self, **columns: Iterable[Any]) -> list[Score | Skipped]:
        """The scores of many samples, each field a column: `scorer.score_columns(input=[…], output=[…])`.

        Sample by sample the same as `score`, without a run around it. None in a column is an absent field, and so is
        what data frames have for it (NaN, NA). Raises ConfigError for columns of different lengths, one that the scorer
        does not take, a needed one left out, and a cell that no sample could have in that field.
        """
        taken = [name for name in inspect.signature(type(self).score).parameters if name != "self"]
        if foreign := [name for name in columns if name not in taken]:
            raise ConfigError(f"{self.name} takes the columns {', '.join(taken)}, not {', '.join(foreign)}")
        if absent := [name for name in self.needs if name not in columns]:
            raise ConfigError(f"{self.name} needs the column {' and the column '.join(absent)}")
        try:
            read = {name: column_of(name, given) for name, given in columns.items()}
        except ConfigError as error:
            raise ConfigError(f"{self.name}: {error}") from None
        if len({len(column) for column in read.values()}) > 1:
            told = ", ".join(f"{name} {len(column)}" for name, column in read.items())
            raise ConfigError(f"{self.name}: the columns differ in length: {told}")
        names = tuple(read)
        return [self._row(dict(zip(names, row, strict=True))) for row in zip(*read.values(), strict=True)]

    def _row(self, fields: dict[str, Any]) -> Score | Skipped:
        if None in fields.values():
            if absent := [name for name in self.needs if fields[name] is None]:
                return Skipped(f"{self.name} needs {' and '.join(absent)}")
            fields = {name: value for name, value in fields.items() if value is not None}
        return cast("Score | Skipped", self.score(**fields))


TEXT_FIELDS = ("input", "output", "reference", "instructions")
_ABSENT = ("NAType", "NaTType")  # pandas' own; it need not be installed for telling them


def column_of(name: str, given: object) -> Sequence[Any]:
    """A column's cells as a sample has them in this field, None where there is none.

    Raises ConfigError for what is no column, and for a cell of the wrong type, with its row, counted from 1.
    """
    if isinstance(given, str | bytes | Mapping | Set) or not isinstance(given, Iterable):
        kind = type(cast(object, given)).__name__
        raise ConfigError(f"column {name}: a list with a cell for each sample was expected, not {kind}")
    cells = list(cast("Iterable[Any]", given))
    if name in TEXT_FIELDS and all(type(cell) is str for cell in cells):
        return cells
    return [_cell(name, row, cell) for row, cell in enumerate(cells, start=1)]


def _cell(name: str, row: int, cell: object) -> Any:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)) or type(cell).__name__ in _ABSENT:
        return None
    field: dict[str, Any] = {name: cell}
    try:
        return getattr(Sample(id="cell", **field), name)
    except ConfigError as error:
        raise ConfigError(f"column {name}, row {row}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class PairScorer(CodeScorer, ABC):
    """A scorer in code that compares the answer with another text of its sample.

    compare_to: which one, "input" or "reference". A pair in which either text is blank has no score.
    """

    compare_to: Against = "input"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "compare_to", AGAINST)

    @abstractmethod
    def compare(self, text: str, output: str) -> Score | Skipped:
        """The score of one pair of texts, neither of them blank."""

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.compare_to, "output")

    @classmethod
    def required(cls) -> tuple[str, ...]:
        return (cls.compare_to, "output")

    def score(self, *, output: str, input: str | None = None, reference: str | None = None) -> Score | Skipped:
        text = input if self.compare_to == "input" else reference
        if text is None:
            return Skipped(f"{self.name} needs {self.compare_to}")
        if is_blank(text) or is_blank(output):
            return Skipped(f"the {self.compare_to if is_blank(text) else 'answer'} is blank")
        return self.compare(text, output)


def one_of(scorer: Scorer, field: str, allowed: Sequence[object]) -> None:
    """Raise ConfigError for a field whose value is none of those allowed."""
    value = cast(object, getattr(scorer, field))
    if value not in allowed:
        told = " or ".join(repr(choice) for choice in allowed)
        raise ConfigError(f"{scorer.name}: {field} must be {told}, not {value!r}")


def yes_or_no(scorer: Scorer, *names: str) -> None:
    """Raise ConfigError for a field that is neither True nor False."""
    for name in names:
        value = cast(object, getattr(scorer, name))
        if not isinstance(value, bool):
            raise ConfigError(f"{scorer.name}: {name} must be True or False, not {value!r}")
