"""Textual difference: the sequence similarity of two texts, from 0 (nothing in common) to 1 (equal), in code.

    textual difference = 2 · longest common subsequence / characters of both texts
    range [0, scale], higher is better: despite the name, which is the original's, it measures similarity

With `method="blocks"`, matching blocks replace the subsequence: those of Ratcliff and Obershelp as `difflib` finds
them, with its rule that in a text of 200 characters or more, a character that makes up over 1 % of it starts no block.
That value depends on which text comes first and is very slow on long texts; a subsequence takes time in proportion to
the product of both lengths, divided by 64. Case and white space count. Characters are UTF-16 code units.
The other text is the input, or the reference with `compare_to`. Undefined when either text is blank. No judge call.
Source: @mastra/evals (subsequence) and its version 0.13 (blocks).
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from evalstone.scorers.base import require_choice
from evalstone.scorers.text import PairScorer, common_length, units
from evalstone.types import Score

Method: TypeAlias = Literal["subsequence", "blocks"]


def agreement(left: str, right: str) -> float:
    """Twice the longest common subsequence of two texts, by the length of both; two empty texts agree."""
    both = len(left) + len(right)
    return 2 * common_length()(left, right) / both if both else 1.0


def block_agreement(left: str, right: str) -> float:
    """Twice the characters in matching blocks of two texts, by the length of both."""
    return SequenceMatcher(None, left, right).ratio()


@dataclass(frozen=True, kw_only=True)
class TextualDifference(PairScorer):
    """How similar the answer and the input, or the reference, are as sequences of characters."""

    name = "textual_difference"
    interpretation = (
        (0.95, "the same except for details"),
        (0.7, "one was made from the other"),
        (0.4, "what unrelated texts of one language often have"),
        (0.0, "different texts"),
    )
    advice = "Single letters in common add up: unrelated texts of one language reach 0.4 to 0.5."

    method: Method = "subsequence"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self, "method", ("subsequence", "blocks"))

    def compare(self, text: str, output: str) -> Score:
        left, right = units(text), units(output)
        value = agreement(left, right) if self.method == "subsequence" else block_agreement(left, right)
        reason = f"{len(right)} characters against {len(left)} of the {self.compare_to}."
        return Score(value * self.scale, self.scale, reason)
