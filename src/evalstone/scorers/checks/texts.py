"""Quick checks of the answer's text: includes, excludes, equals, matches, similarity."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, cast

from evalstone.errors import ConfigError
from evalstone.scorers.base import listed, shortened
from evalstone.scorers.checks.base import Check, text_fields
from evalstone.scorers.text.code import yes_or_no
from evalstone.scorers.text.content_similarity import dice
from evalstone.types import Score


@dataclass(frozen=True, kw_only=True)
class _Compared(Check):
    """A check against a text; `ignore_case` compares both in lower case."""

    expected: str
    ignore_case: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        text_fields(self, "expected")
        yes_or_no(self, "ignore_case")

    def both(self, output: str) -> tuple[str, str]:
        """The expected text and the answer as they are compared."""
        return (self.expected.lower(), output.lower()) if self.ignore_case else (self.expected, output)


@dataclass(frozen=True, kw_only=True)
class _Looked(_Compared):
    """A check of whether a text stands in the answer; `wanted` says whether it should."""

    wanted: ClassVar[bool]

    def score(self, *, output: str) -> Score:
        expected, answer = self.both(output)
        found = expected in answer
        where = "in it" if found else "nowhere"
        return self.told(found is self.wanted, f"The answer has {listed([self.expected])} {where}.")


@dataclass(frozen=True, kw_only=True)
class Includes(_Looked):
    """Whether the answer has a text in it.

    1 if `expected` stands anywhere in the answer, else 0. Case is ignored unless `ignore_case` is off. An empty text
    is in every answer.
    """

    name = "includes"
    wanted = True


@dataclass(frozen=True, kw_only=True)
class Excludes(_Looked):
    """Whether the answer is free of a text.

    0 if `expected` stands anywhere in the answer, else 1. Case is ignored unless `ignore_case` is off. An empty text
    is in every answer.
    """

    name = "excludes"
    wanted = False


@dataclass(frozen=True, kw_only=True)
class Equals(_Compared):
    """Whether the answer is a text and nothing else.

    1 if the answer equals `expected`, white space included, else 0. Case is ignored unless `ignore_case` is off.
    """

    name = "equals"

    def score(self, *, output: str) -> Score:
        expected, answer = self.both(output)
        equal = expected == answer
        return self.told(equal, f"The answer {'equals' if equal else 'differs from'} {listed([self.expected])}.")


@dataclass(frozen=True, kw_only=True)
class Similarity(_Compared):
    """How much of its wording the answer shares with a text, or whether that reaches a threshold.

    The Dice coefficient of their bigrams, as in `content_similarity`; with `threshold`, 1 if it is at least that, else
    0. Case is ignored unless `ignore_case` is off.
    """

    name = "similarity"
    bands = ((0.9, "nearly the same wording"), (0.5, "some wording in common"), (0.0, "different wording"))

    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        value = cast(object, self.threshold)
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise ConfigError(f"{self.name}: threshold must be a number in [0, 1], not {value!r}")

    def score(self, *, output: str) -> Score:
        value = dice(*self.both(output))
        if self.threshold is None:
            return Score(value * self.scale, self.scale, f"Bigrams in common with {listed([self.expected])}.")
        met = value >= self.threshold
        return self.told(met, f"A similarity of {value:.3g}; at least {self.threshold:g} was asked for.")


@dataclass(frozen=True, kw_only=True)
class Matches(Check):
    """Whether the answer matches a regular expression.

    1 if `pattern` matches somewhere in the answer, or with `exact` the whole of it, else 0. The syntax is that of
    Python's `re`; case counts unless `ignore_case` is on, and inline flags such as `(?s)` are understood. The pattern
    is yours to keep fast: one with a repetition inside a repetition may take for ever on an answer made for it.
    """

    name = "matches"

    pattern: str
    exact: bool = False
    ignore_case: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        text_fields(self, "pattern")
        yes_or_no(self, "exact", "ignore_case")
        try:
            self.compiled()
        except (re.error, RecursionError, OverflowError) as error:
            raise ConfigError(f"{self.name}: {self.pattern!r} is no regular expression: {error}") from None

    def compiled(self) -> re.Pattern[str]:
        """The pattern, compiled; `re` keeps the last ones."""
        return re.compile(self.pattern, re.IGNORECASE if self.ignore_case else 0)

    def score(self, *, output: str) -> Score:
        pattern = self.compiled()
        found = pattern.fullmatch(output) if self.exact else pattern.search(output)
        where = "The whole answer" if self.exact else "Part of the answer"
        missed = "The answer as a whole does not match" if self.exact else "No part of the answer matches"
        told = f"{where} matches" if found else missed
        return self.told(found is not None, f"{told} {shortened(self.pattern)}.")


def includes(expected: str, *, ignore_case: bool = True) -> Includes:
    """The answer has this text in it."""
    return Includes(expected=expected, ignore_case=ignore_case)


def excludes(expected: str, *, ignore_case: bool = True) -> Excludes:
    """The answer is free of this text."""
    return Excludes(expected=expected, ignore_case=ignore_case)


def equals(expected: str, *, ignore_case: bool = True) -> Equals:
    """The answer is this text and nothing else."""
    return Equals(expected=expected, ignore_case=ignore_case)


def similarity(expected: str, *, threshold: float | None = None, ignore_case: bool = True) -> Similarity:
    """How much of its wording the answer shares with this text, or whether that reaches the threshold."""
    return Similarity(expected=expected, threshold=threshold, ignore_case=ignore_case)


def matches(pattern: str, *, exact: bool = False, ignore_case: bool = False) -> Matches:
    """The answer, or with `exact` the whole of it, matches this regular expression."""
    return Matches(pattern=pattern, exact=exact, ignore_case=ignore_case)
