"""Checks of the answer's text: what it contains, equals or matches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Annotated, ClassVar, Literal

from evalstone._core.declarations import Range
from evalstone._core.matching import matches
from evalstone.agents.sides import Text
from evalstone.errors import ConfigError, OutcomeError
from evalstone.scorers.checks.base import TextCheck
from evalstone.scorers.definitions import OURS, SPACE, UNSPACED, DefinedText, Definition, Sides
from evalstone.scorers.reasons import listed, shortened
from evalstone.scorers.sources import OF_ALL_MESSAGES
from evalstone.scorers.text import dice, units
from evalstone.types import Score


def as_in_mastra(formula: str, sides: Sides) -> Mapping[str, Definition]:
    """The definitions of a check. A blank answer is checked like any other."""
    return {
        "evalstone": Definition(formula, blank=("output",)),
        "mastra": Definition(f"{formula}; over all messages of the assistant", blank=("output",), sides=sides),
    }


class Contains(DefinedText, TextCheck, kw_only=False):
    """Whether the answer contains a text.

    1 if `expected`, or else the sample's reference, occurs anywhere in the answer, else 0. An empty text is refused:
    every answer contains it. With definition="mastra" it passes.
    """

    name = "contains"
    definitions = as_in_mastra("1 if the answer contains the text, else 0", SPACE)

    expected: str | None = None
    _: KW_ONLY
    definition: Literal["evalstone", "mastra"] = OURS
    ignore_case: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_some(self, self.expected)

    def check(self, output: str, expected: str) -> Score:
        contained = _folded(expected, self.ignore_case) in _folded(output, self.ignore_case)
        return self.passed(contained, _containment(contained, expected))


class NotContains(DefinedText, TextCheck, kw_only=False):
    """Whether the answer does not contain a text.

    0 if `expected` occurs anywhere in the answer, else 1. An empty text is refused: every answer contains it. With
    definition="mastra" it fails.

    Attributes:
        expected: The text that must not occur.
        text: The text of a conversation: "all" messages of the assistant, its "last" one, which is the sample's own
            output, or its "first".
    """

    name = "not_contains"
    version = 2
    required_fields = ("output",)
    alternatives: ClassVar[Mapping[str, tuple[str, ...]]] = {"output": OF_ALL_MESSAGES}
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    definitions = as_in_mastra("0 if the answer contains the text, else 1", SPACE)

    expected: str
    _: KW_ONLY
    definition: Literal["evalstone", "mastra"] = OURS
    ignore_case: bool = True
    text: Text = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_some(self, self.expected)

    def check(self, output: str, expected: str) -> Score:
        contained = _folded(expected, self.ignore_case) in _folded(output, self.ignore_case)
        return self.passed(not contained, _containment(contained, expected))


class ExactMatch(DefinedText, TextCheck, kw_only=False):
    """Whether the answer equals an expected text.

    1 if the answer equals `expected`, or else the sample's reference, including white space, else 0.
    """

    name = "exact_match"
    definitions = as_in_mastra("1 if the answer equals the text, else 0", UNSPACED)

    expected: str | None = None
    _: KW_ONLY
    definition: Literal["evalstone", "mastra"] = OURS
    ignore_case: bool = True

    def check(self, output: str, expected: str) -> Score:
        equal = _folded(expected, self.ignore_case) == _folded(output, self.ignore_case)
        return self.passed(equal, f"The answer {'equals' if equal else 'differs from'} {listed([expected])}.")


class Similarity(DefinedText, TextCheck, kw_only=False):
    """How much wording the answer shares with a text, or whether that reaches a threshold.

    2 · common bigrams / (bigrams of one text + bigrams of the other), as in `content_similarity`. With `threshold`, 1
    if the similarity is at least that, else 0. The text is `expected`, or else the sample's reference.

    Attributes:
        threshold: The lowest similarity that passes, in [0, 1]; None scores the similarity itself.
    """

    name = "similarity"
    interpretation = ((0.9, "nearly the same wording"), (0.5, "some wording in common"), (0.0, "different wording"))
    definitions = as_in_mastra("2 · common bigrams / (bigrams of one text + bigrams of the other)", UNSPACED)

    expected: str | None = None
    _: KW_ONLY
    definition: Literal["evalstone", "mastra"] = OURS
    threshold: Annotated[float | None, Range(0, 1)] = None
    ignore_case: bool = True

    def check(self, output: str, expected: str) -> Score:
        value = dice(_folded(expected, self.ignore_case), _folded(output, self.ignore_case))
        if self.threshold is None:
            return Score(value * self.scale, f"Bigrams in common with {listed([expected])}.")
        return self.passed(
            value >= self.threshold, f"The similarity is {value:.3g}; the threshold is {self.threshold:g}."
        )


class Regex(DefinedText, TextCheck, kw_only=False):
    """Whether the answer matches a regular expression.

    1 if `pattern`, or else the sample's reference, matches anywhere in the answer (with `exact`, all of it), else 0.
    Without `exact`, an empty pattern is refused: it matches every answer. The syntax is that of Python's `re`,
    including inline flags such as `(?s)`. With definition="mastra", pattern and answer are UTF-16 code units, as in
    JavaScript without the flag `u`. Failed if a match takes more than 10 seconds.

    Attributes:
        pattern: The expression for all samples; by default each sample's reference.
        exact: Match the whole answer.
    """

    name = "regex"
    constant = "pattern"
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {"reference": (constant,)}
    definitions = as_in_mastra("1 if the pattern matches, else 0", UNSPACED)

    pattern: str | None = None
    _: KW_ONLY
    definition: Literal["evalstone", "mastra"] = OURS
    exact: bool = False
    ignore_case: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.exact:
            _require_some(self, self.pattern)
        if self.pattern is not None and (error := self._compile(self.pattern)[1]):
            raise ConfigError(f"{self.name}: ", error)

    def _compile(self, pattern: str) -> tuple[re.Pattern[str] | None, str]:
        """The compiled pattern (`re` caches it), or what is wrong with it."""
        if self.definition == "mastra":
            pattern = units(pattern)
        try:
            return re.compile(pattern, re.IGNORECASE if self.ignore_case else 0), ""
        except (re.error, RecursionError, OverflowError) as error:
            return None, f"{shortened(pattern)!r} is not a regular expression: {error}"

    def check(self, output: str, expected: str) -> Score:
        pattern, error = self._compile(expected)
        if pattern is None:
            raise OutcomeError(f"{self.name}: the reference ", error)
        try:
            match = matches(pattern, units(output) if self.definition == "mastra" else output, whole=self.exact)
        except OutcomeError as problem:
            raise OutcomeError(f"{self.name}: ", problem) from None
        if match:
            result = "The whole answer matches" if self.exact else "Part of the answer matches"
        else:
            result = "The answer as a whole does not match" if self.exact else "No part of the answer matches"
        return self.passed(match, f"{result} {shortened(expected)}.")


contains, not_contains, exact_match, similarity, regex = Contains, NotContains, ExactMatch, Similarity, Regex


def _require_some(check: DefinedText, text: str | None) -> None:
    """Raise ConfigError for a text that every answer contains. Other systems score it, and so do their definitions."""
    if text == "" and check.definition == OURS:
        raise ConfigError(f"{check.name}: the text is empty, and every answer contains that; name a text")


def _folded(text: str, ignore_case: bool) -> str:
    return text.lower() if ignore_case else text


def _containment(contained: bool, text: str) -> str:
    return f"The answer {'contains' if contained else 'does not contain'} {listed([text])}."
