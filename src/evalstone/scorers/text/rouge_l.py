"""ROUGE L: how much of the reference the answer repeats word for word and in the same order, in code.

    precision = longest common subsequence / words of the answer
    recall    = longest common subsequence / words of the reference
    rouge l   = 2 · precision · recall / (precision + recall)          range [0, scale], higher is better

A subsequence may have gaps. Words are compared in lower case, without punctuation and without stemming; a script
written without spaces counts pairs of characters. The other text is the reference, or the input with `compare_to`.
Undefined when either text has no word. No judge call. Source: Lin 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalstone._core.text import words
from evalstone.scorers.text import CompareTo, PairScorer, common_length
from evalstone.types import Score, Skipped


@dataclass(frozen=True)
class Overlap:
    """The words of both texts, and those of their longest common subsequence."""

    common: int
    output_words: int
    other_words: int

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.common / (self.output_words + self.other_words)


def overlap(other: Sequence[str], output: Sequence[str]) -> Overlap:
    """The longest common subsequence of two lists of words."""
    return Overlap(common_length()(other, output), len(output), len(other))


@dataclass(frozen=True, kw_only=True)
class RougeL(PairScorer):
    """How much of the reference, or the input, the answer repeats word for word and in the same order."""

    name = "rouge_l"
    required_fields = ("reference", "output")
    interpretation = (
        (0.7, "close to the reference in wording"),
        (0.4, "much of the reference, in other words or order"),
        (0.2, "some phrases in common"),
        (0.0, "other words; the meaning may be the same"),
    )
    advice = "Low precision: the answer says more than the reference. Low recall: it leaves out part of it."

    compare_to: CompareTo = "reference"

    def compare(self, text: str, output: str) -> Score | Skipped:
        other, own = words(text), words(output)
        if not other or not own:
            return Skipped(f"the {'answer' if other else self.compare_to} has no words")
        result = overlap(other, own)
        reason = f"{result.common} words in common, in order, of {result.output_words} and {result.other_words}."
        return Score(result.f1 * self.scale, self.scale, reason, result)
