"""What people write for a label: words for yes and no, and numbers, on a scorer's scale.

"Yes" means what the scorer's full value says: of faithfulness that the answer is supported, of hallucination that it is
not. Words that say good or bad of the answer ("supported", "wrong") are turned round where a lower score is better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evalstone.datasets.wording import excerpt, listed
from evalstone.errors import ConfigError, DataError


def _set(spaced: str) -> frozenset[str]:
    return frozenset(word.replace("_", " ") for word in spaced.split())


YES: Final = _set("yes y true t positive")
NO: Final = _set("no n false f negative")
GOOD: Final = _set(
    "supported grounded faithful factual correct right accurate consistent entailed entailment relevant helpful safe "
    "good pass passed accept accepted acceptable ok okay"
)
BAD: Final = _set(
    "unsupported not_supported ungrounded not_grounded unfaithful not_faithful not_factual hallucinated hallucination "
    "incorrect not_correct wrong inaccurate inconsistent not_consistent contradicted contradiction refuted irrelevant "
    "not_relevant unhelpful unsafe bad fail failed reject rejected unacceptable not_acceptable"
)
ABSENT: Final = _set("n/a na none null nan - ?")
_BLANKS = re.compile(r"[\s_-]+")


@dataclass(frozen=True)
class Cell:
    """One label as it was found, and where: the row's place and the column, for error messages."""

    value: object
    place: str
    column: str


@dataclass(frozen=True)
class LabelReader:
    """Reads labels as numbers on a scorer's scale.

    scale, lower_is_better: the scorer's. positive: words and numbers that mean yes; every other label then
    means no. bounds: the lowest and the highest number that annotators could give, where that is not 0 and the scale.
    Raises ConfigError for bounds that are not two finite numbers in rising order, and for positive words and bounds.
    """

    scale: float
    lower_is_better: bool
    positive: Sequence[str] = ()
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.bounds is not None and not -math.inf < self.bounds[0] < self.bounds[1] < math.inf:
            came = f"{self.bounds[0]:g} and {self.bounds[1]:g}"
            raise ConfigError(f"the label range must be two numbers, the lower one first, not {came}")
        if self.bounds is not None and self.positive:
            raise ConfigError("name the labels that mean yes, or the range of labels that are numbers, not both")

    def read(self, rows: Sequence[Sequence[Cell]]) -> tuple[list[tuple[float | None, ...]], Mapping[str, float]]:
        """The labels of each row, None for an absent one, and what each word was read as, in [0, 1].

        Where every number is 0 or 1 they mean no and yes, whatever the scale; else they are values on the bounds, or on
        the scorer's scale. Raises DataError that names place and column of a label that is neither word nor number, or
        lies outside; and when there are labels, and none is one of the positive words.
        """
        words: dict[str, float] = {}
        found = [[self._cell(cell, words) for cell in row] for row in rows]
        if self.positive and words and not any(words.values()):
            given, came = listed(self.positive), listed(words)
            raise DataError(f"yes is to be {given}, which is no label; the labels are {came}")
        numbers = {part for row in found for part in row if isinstance(part, _Number)}
        binary = self.bounds is None and all(number.value in (0, 1) for number in numbers)
        low, high = (0.0, 1.0) if binary else (self.bounds or (0.0, self.scale))
        read = [
            tuple(
                part.on(low, high, self.scale)
                if isinstance(part, _Number)
                else (None if part is None else part * self.scale)
                for part in row
            )
            for row in found
        ]
        return read, words

    def _cell(self, cell: Cell, words: dict[str, float]) -> float | _Number | None:
        """A word as a share of the scale, a number as it is, None for an absent label."""
        value = cell.value
        if value is None:
            return None
        if not isinstance(value, bool | int | float | str):
            raise _refused(cell, "a word or a number")
        if self.positive:
            return self._own_word(str(value).strip(), words)
        if isinstance(value, bool):
            return float(value)
        if isinstance(value, int | float):
            return _Number(float(value), cell)
        text = value.strip()
        if not text or _normal(text) in ABSENT:
            return None
        number = _number(text)
        return self._word(text, cell, words) if number is None else _Number(number, cell)

    def _own_word(self, text: str, words: dict[str, float]) -> float | None:
        """Whether a label is one of the positive words, among which 1, 1.0 and "1" are one."""
        positive = {_same(word) for word in self.positive}
        if not text or (_normal(text) in ABSENT and _same(text) not in positive):
            return None
        words[text] = float(_same(text) in positive)
        return words[text]

    def _word(self, text: str, cell: Cell, words: dict[str, float]) -> float:
        word = _normal(text)
        if word in YES or word in NO:
            share = float(word in YES)
        elif word in GOOD or word in BAD:
            share = float((word in GOOD) != self.lower_is_better)
        else:
            wanted = "a number, or a word such as yes, no, supported or unsupported (name your own with --positive)"
            raise _refused(cell, wanted)
        words[text] = share
        return share


@dataclass(frozen=True)
class _Number:
    value: float
    cell: Cell

    def on(self, low: float, high: float, scale: float) -> float:
        """The number on [0, scale]. Raises DataError when it is outside of low and high."""
        if not low <= self.value <= high:
            raise _refused(self.cell, f"in [{low:g}, {high:g}] (say what annotators could give with --label-range)")
        return (self.value - low) / (high - low) * scale


def _refused(cell: Cell, wanted: str) -> DataError:
    return DataError(
        f"{cell.place}: the label in column {excerpt(cell.column)} must be {wanted}, not {excerpt(cell.value)}"
    )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def _same(text: str) -> str | float:
    number = _number(text)
    return _normal(text) if number is None else number


def _normal(text: str) -> str:
    folded = text.strip().casefold()
    return folded if folded in ABSENT else _BLANKS.sub(" ", folded).strip()
