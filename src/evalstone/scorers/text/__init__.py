"""Shared by the code scorers: scoring whole columns, comparing two texts, and text as JavaScript counts it.

In JavaScript, a string is a sequence of UTF-16 code units, so an emoji counts as two, and white space is a different
set of characters than in Python. Scorers that must give the same numbers as JavaScript packages use these functions.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set, Sized
from operator import add
from typing import Any, Literal, TypeAlias, cast

from evalstone.errors import ConfigError, OutcomeError
from evalstone.scorers.base import Scorer
from evalstone.scorers.needs import root_of
from evalstone.scorers.sources import TextSource
from evalstone.types import Sample, Score, Skipped

CompareTo: TypeAlias = Literal["input", "reference"]

WHITE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_SPACE = re.compile(f"[{WHITE}]+")
_OTHER_SPACE = re.compile(f"[{WHITE.replace(' ', '')}]+")
_PIECE = re.compile(f"[^{WHITE}]+")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")

TEXT_FIELDS = ("input", "output", "reference", "instructions")
_ABSENT = ("NAType", "NaTType")  # by name, since pandas is optional


class CodeScorer(Scorer, ABC):
    """A scorer in plain code: its `score` asks no judge."""

    @property
    def is_immediate(self) -> bool:
        return not (self._runs_user_code or self.explain)

    def score_columns(self, **columns: Iterable[Any]) -> list[Score | Skipped]:
        """Score many samples at once, each field a column: `scorer.score_columns(input=[…], output=[…])`.

        Same as calling `score` for each sample, outside of a run. None in a column is an absent field, and so are the
        NaN and NA of data frames.

        Raises:
            ConfigError: A column is unknown or missing, columns differ in length, or a cell has the wrong type.
        """
        if unexpected := [name for name in columns if name not in self._fields]:
            raise ConfigError(f"{self.name} takes the columns {', '.join(self._fields)}, not {', '.join(unexpected)}")
        if absent := [root_of(need.field) for need in self.needs if not need.within(columns)]:
            raise ConfigError(f"{self.name} needs the column {' and the column '.join(dict.fromkeys(absent))}")
        try:
            cells = {name: column_of(name, column) for name, column in columns.items()}
        except ConfigError as error:
            raise ConfigError(f"{self.name}: ", error) from None
        if len({len(column) for column in cells.values()}) > 1:
            lengths = ", ".join(f"{name} {len(column)}" for name, column in cells.items())
            raise ConfigError(f"{self.name}: the columns differ in length: {lengths}")
        names = tuple(cells)
        return [self._row(dict(zip(names, row, strict=True))) for row in zip(*cells.values(), strict=True)]

    def _row(self, fields: Mapping[str, Any]) -> Score | Skipped:
        if None in fields.values():
            present = self.present(fields)
            if not isinstance(present, dict):
                return self.scaled(present)
            fields = present
        return self.scaled(cast("Score | Skipped", self.score(**fields)))


def column_of(name: str, column: object) -> Sequence[Any]:
    """A column's cells as values of this sample field, None for an empty cell.

    Raises ConfigError if it is not a column, and for a cell of the wrong type, with its row number from 1.
    """
    if isinstance(column, str | bytes | Mapping | Set) or not isinstance(column, Iterable):
        kind = type(cast(object, column)).__name__
        raise ConfigError(f"column {name} must be a list with one cell per sample, not {kind}")
    cells = list(cast("Iterable[Any]", column))
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
        raise ConfigError(f"column {name}, row {row}: ", error) from None


class PairScorer(CodeScorer, TextSource, ABC):
    """A scorer in code that compares the answer with another text of its sample.

    Attributes:
        compare_to: The other text: "input" or "reference".
    """

    required_fields = ("input", "output")

    compare_to: CompareTo = "input"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "required_fields", (self.compare_to, "output"))

    @abstractmethod
    def compare(self, text: str, output: str) -> Score | Skipped:
        """Return the score of one pair of texts, neither of them blank."""

    def score(self, *, output: str, input: str | None = None, reference: str | None = None) -> Score | Skipped:
        text = input if self.compare_to == "input" else reference
        present = self.present({self.compare_to: text, "output": output})
        return self.compare(present[self.compare_to], output) if isinstance(present, dict) else present


class ReferenceScorer(CodeScorer, TextSource, ABC):
    """A scorer in code that compares the answer with the reference. A blank answer is scored like any other."""

    required_fields = ("reference", "output")
    reads_blank = ("output",)

    @abstractmethod
    def compare(self, reference: str, output: str) -> Score | Skipped:
        """Return the score of an answer against a reference that is not blank."""

    def score(self, *, output: str, reference: str) -> Score | Skipped:
        present = self.present({"reference": reference, "output": output})
        return self.compare(reference, output) if isinstance(present, dict) else present


def units(text: str) -> str:
    """The text with one character per UTF-16 code unit: a character above U+FFFF becomes its two surrogates."""
    return text if text.isascii() else _ASTRAL.sub(_surrogates, text)


def _surrogates(match: re.Match[str]) -> str:
    offset = ord(match.group()) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))


def pieces(text: str) -> list[str]:
    """The parts of a text that white space separates, in order."""
    return text.split() if _has_plain_spaces_only(text) else _PIECE.findall(text)


def spaced(text: str) -> str:
    """The text with each run of white space other than spaces replaced by one space."""
    return text if _has_plain_spaces_only(text) else _OTHER_SPACE.sub(" ", text)


def unspaced(text: str) -> str:
    """The text without any white space."""
    return text.replace(" ", "") if _has_plain_spaces_only(text) else _SPACE.sub("", text)


def _has_plain_spaces_only(text: str) -> bool:
    # Python's fast string methods work for most texts. Beyond ASCII, its white space differs from JavaScript's.
    return text.isascii() and text.isprintable()


def check_lengths(left: Sized, right: Sized, most: int, what: str = "characters") -> None:
    """Raise OutcomeError for texts that would take too long to compare, in time proportional to the product of their
    lengths. most: the highest product allowed."""
    if len(left) * len(right) > most:
        raise OutcomeError(
            f"texts of {len(left):,} and {len(right):,} {what} are too long to compare; the product of the lengths may "
            f"be at most {most:,}"
        )


def dice(left: str, right: str) -> float:
    """2 · common bigrams / (bigrams of one text + bigrams of the other), without white space. Equal texts have 1."""
    left, right = units(unspaced(left)), units(unspaced(right))
    if left == right:
        return 1.0
    if len(left) < 2 or len(right) < 2:
        return 0.0
    ours, theirs = Counter(map(add, left, left[1:])), Counter(map(add, right, right[1:]))
    return 2.0 * (ours & theirs).total() / (len(left) + len(right) - 2)
