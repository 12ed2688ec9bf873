"""Content similarity: how much of its wording the answer shares with another text of the sample, in code.

    content similarity = 2 · bigrams in both texts / bigrams of the one and the other          range [0, scale],
                                                                                                higher is better

A bigram is a pair of adjacent characters; each counts as often as it occurs, and white space is left out. Equal
texts have 1; otherwise a text of one character has 0. With `method="edits"` it is instead

    1 - insertions, deletions and replacements / characters of the longer text

which depends on the order of words, as bigrams hardly do, and is much faster. Letters are compared in lower case and,
for edits, runs of white space as one space, unless `ignore_case` and `ignore_whitespace` say otherwise. Characters are
UTF-16 code units. The other text is the input, or the reference with `compare_to`. Undefined when either text is blank.
No judge call. Source: Dice 1945, Levenshtein 1966; @mastra/evals counts bigrams the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from evalstone.scorers.base import require_choice
from evalstone.scorers.text import PairScorer, collapsed, dice, edit_distance, units
from evalstone.types import Score

Method: TypeAlias = Literal["bigrams", "edits"]


def edit_similarity(left: str, right: str) -> float:
    """1 - edit distance / length of the longer text; two empty texts are equal."""
    left, right = units(left), units(right)
    longer = max(len(left), len(right))
    return 1.0 - edit_distance()(left, right) / longer if longer else 1.0


@dataclass(frozen=True, kw_only=True)
class ContentSimilarity(PairScorer):
    """How much of its wording the answer shares with the input or the reference."""

    name = "content_similarity"
    interpretation = (
        (0.9, "nearly the same wording"),
        (0.6, "much the same wording"),
        (0.3, "some wording in common"),
        (0.0, "different wording, whatever the meaning"),
    )
    advice = "It looks at letters, not at meaning: a good paraphrase is low. For meaning, use a scorer with a judge."

    method: Method = "bigrams"
    ignore_case: bool = True
    ignore_whitespace: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self, "method", ("bigrams", "edits"))

    def compare(self, text: str, output: str) -> Score:
        if self.ignore_case:
            text, output = text.lower(), output.lower()
        if self.method == "bigrams":
            return Score(dice(text, output) * self.scale, self.scale, "Bigrams in common.")
        if self.ignore_whitespace:
            text, output = collapsed(text), collapsed(output)
        return Score(edit_similarity(text, output) * self.scale, self.scale, "Edits from one text to the other.")
