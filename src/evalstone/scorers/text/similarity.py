"""Similarity of wording, computed in code: bigrams, edits, subsequences, ROUGE-L, words in common."""

from __future__ import annotations

import functools
import re
import string
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, ClassVar, Literal

from evalstone._core.display import count
from evalstone._core.text import words
from evalstone.scorers.definitions import COMMA, OURS, DefinedText, Definition
from evalstone.scorers.text import CompareTo, PairScorer, ReferenceScorer, check_lengths, dice, units
from evalstone.types import Score, Skipped

MOST_CHARACTERS = 40_000_000_000
"""The highest product of the lengths of two texts, such as 200,000 each. It takes a few seconds."""
MOST_WORDS = 4_000_000_000
"""The highest product of two numbers of words."""
MOST_FOR_BLOCKS = 100_000_000
"""The highest product of lengths for matching blocks, whose time may be cubic."""


@functools.cache
def _distances() -> Any:
    """rapidfuzz's distances. Cached, because an import statement would take as long as comparing a pair of texts."""
    from rapidfuzz import distance  # noqa: PLC0415 - slow to import

    return distance


class ContentSimilarity(DefinedText, PairScorer):
    """How similar the wording of the answer is to the input or the reference.

        content similarity = 2 · common bigrams / (bigrams of one text + bigrams of the other)
        range [0, scale], higher is better

    A bigram is a pair of adjacent characters. Each counts as often as it occurs, and white space is left out. Equal
    texts score 1; otherwise, a text of one character scores 0. Word order hardly matters here, unlike in `levenshtein`.
    Characters are UTF-16 code units. Undefined when either text is blank. No judge call.
    Source: Dice 1945; @mastra/evals counts the same way.

    Attributes:
        ignore_case: Compare in lower case.
    """

    name = "content_similarity"
    interpretation = (
        (0.9, "nearly the same wording"),
        (0.6, "similar wording"),
        (0.3, "some wording in common"),
        (0.0, "different wording, whatever the meaning"),
    )
    advice = "It compares letters, not meaning: a good paraphrase scores low. For meaning, use a scorer with a judge."
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("2 · common bigrams / (bigrams of one text + bigrams of the other)"),
        "mastra": Definition("the same, over all messages", sides=COMMA),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    ignore_case: bool = True

    def compare(self, text: str, output: str) -> Score:
        if self.ignore_case:
            text, output = text.lower(), output.lower()
        return Score(dice(text, output) * self.scale, "Bigrams in common.")


@dataclass(frozen=True)
class Edits:
    """The number of edits that turn the reference into the answer, and of characters in the longer text."""

    edits: int
    characters: int


class Levenshtein(ReferenceScorer):
    """Edit similarity: how few edits turn the reference into the answer, relative to their length.

        levenshtein = 1 - (insertions + deletions + replacements) / characters of the longer text
        range [0, scale], higher is better: it is the distance turned into a similarity

    Characters are Unicode code points, without normalization: é as one code point differs from e plus an accent. The
    evidence has the distance itself. A blank answer scores 0. Failed if the product of both lengths exceeds 40 billion.
    Undefined when the reference is blank. No judge call.
    Source: Levenshtein 1966, divided by the longer length as in autoevals and ragas.

    Attributes:
        ignore_case: Compare in lower case.
        ignore_whitespace: Collapse each run of white space to one space, and strip it at the ends.
    """

    name = "levenshtein"
    interpretation = (
        (0.9, "nearly the same text"),
        (0.6, "one text looks like an edit of the other"),
        (0.3, "typical of unrelated texts in the same language"),
        (0.0, "different texts"),
    )
    advice = (
        "It compares letters in order: the same sentences in another order score low. To compare words, use rouge_l or "
        "f1_tokens."
    )

    ignore_case: bool = False
    ignore_whitespace: bool = False

    def compare(self, reference: str, output: str) -> Score:
        if self.ignore_case:
            reference, output = reference.lower(), output.lower()
        if self.ignore_whitespace:
            reference, output = " ".join(reference.split()), " ".join(output.split())
        if not output.strip():
            output = ""
        check_lengths(reference, output, MOST_CHARACTERS)
        result = Edits(_distances().Levenshtein.distance(reference, output), max(len(reference), len(output)))
        reason = f"{count(result.edits, 'edit')}; the longer text has {count(result.characters, 'character')}."
        return Score((1 - result.edits / result.characters) * self.scale, reason, evidence=result)


def matching_blocks(left: str, right: str) -> float:
    """2 · characters in matching blocks / characters of both texts. Raises OutcomeError for long texts."""
    check_lengths(left, right, MOST_FOR_BLOCKS)
    return SequenceMatcher(None, left, right).ratio()


def agreement(left: str, right: str) -> float:
    """2 · longest common subsequence / characters of both texts; 1 for two empty texts.

    Raises OutcomeError for long texts.
    """
    check_lengths(left, right, MOST_CHARACTERS)
    both = len(left) + len(right)
    return 2 * _distances().LCSseq.similarity(left, right) / both if both else 1.0


class TextualDifference(DefinedText, PairScorer):
    """Sequence similarity: how similar the characters of the answer and the input, or the reference, are.

        textual difference = 2 · longest common subsequence / characters of both texts
        range [0, scale], higher is better: despite the name, which is the original's, it measures similarity

    The time is proportional to the product of both lengths. Failed if that exceeds 40 billion (two texts of 200,000
    characters), or 100 million with definition="mastra_0_13". That definition uses the matching blocks of Ratcliff and
    Obershelp as `difflib` finds them: in a text of 200 characters or more, a character that makes up over 1% of it
    starts no block, and the value depends on which text comes first. Case and white space count. Characters are UTF-16
    code units. Undefined when either text is blank. No judge call.
    Source: @mastra/evals.
    """

    name = "textual_difference"
    version = 2
    interpretation = (
        (0.95, "the same except for details"),
        (0.7, "one text looks like an edit of the other"),
        (0.4, "typical of unrelated texts in the same language"),
        (0.0, "different texts"),
    )
    advice = "Single letters in common add up: unrelated texts in the same language score 0.4 to 0.5."
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("2 · longest common subsequence / characters of both texts", agreement),
        "mastra": Definition(
            "2 · longest common subsequence / characters of both texts, over all messages", agreement, sides=COMMA
        ),
        "mastra_0_13": Definition("2 · characters in matching blocks / characters of both texts", matching_blocks),
    }
    definition: Literal["evalstone", "mastra", "mastra_0_13"] = OURS

    def compare(self, text: str, output: str) -> Score:
        left, right = units(text), units(output)
        reason = f"{count(len(right), 'character')} against {len(left)} of the {self.compare_to}."
        return Score(self.compute(left, right) * self.scale, reason)


@dataclass(frozen=True)
class Overlap:
    """The number of words in each text, and of words that they have in common."""

    common: int
    output_words: int
    other_words: int

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.common / (self.output_words + self.other_words)


class RougeL(PairScorer):
    """ROUGE-L: how many words of the reference, or the input, the answer repeats in the same order.

        precision = longest common subsequence / words of the answer
        recall    = longest common subsequence / words of the reference
        rouge l   = 2 · precision · recall / (precision + recall)          range [0, scale], higher is better

    A subsequence may have gaps. Words are compared in lower case, without punctuation and without stemming. In scripts
    without spaces, pairs of characters count as words. Failed if the product of both numbers of words exceeds 4
    billion. Undefined when either text has no word. No judge call.
    Source: Lin 2004.
    """

    name = "rouge_l"
    version = 2
    required_fields = ("reference", "output")
    interpretation = (
        (0.7, "close to the reference in wording"),
        (0.4, "much of the reference, reworded or reordered"),
        (0.2, "some phrases in common"),
        (0.0, "different wording; the meaning may be the same"),
    )
    advice = "Low precision: the answer says more than the reference. Low recall: it leaves something out."

    compare_to: CompareTo = "reference"

    def compare(self, text: str, output: str) -> Score | Skipped:
        other, own = words(text), words(output)
        if not other or not own:
            return Skipped(f"the {'answer' if other else self.compare_to} has no words")
        check_lengths(other, own, MOST_WORDS, "words")
        result = Overlap(_distances().LCSseq.similarity(other, own), len(own), len(other))
        reason = (
            f"{count(result.common, 'word')} in common, in order, of {result.output_words} and {result.other_words}."
        )
        return Score(result.f1 * self.scale, reason, evidence=result)


_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_tokens(text: str) -> list[str]:
    """The words of a text as SQuAD compares them: in lower case, without ASCII punctuation and a, an and the."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


class F1Tokens(ReferenceScorer):
    """Token F1: how many words the answer and the reference have in common, in any order.

        precision = words in common / words of the answer
        recall    = words in common / words of the reference
        f1 tokens = 2 · precision · recall / (precision + recall)          range [0, scale], higher is better

    Texts are normalized as in SQuAD's script: they are lowercased, ASCII punctuation and a, an and the are removed, so
    that "1,234.5" becomes 12345, and the rest is split at white space. Text in a script without spaces is one word: use
    `chrf` for it. A word counts as often as both texts have it. 0 for a blank answer. Undefined when the reference has
    no word left; SQuAD's script then gives 1 if the answer has none either, else 0. No judge call.
    Source: Rajpurkar et al. 2016 (SQuAD).
    """

    name = "f1_tokens"
    interpretation = (
        (0.9, "the same words"),
        (0.5, "half the words, or all of them plus others"),
        (0.2, "some words in common"),
        (0.0, "different words; the meaning may be the same"),
    )
    advice = (
        "Low precision: the answer says more than the reference; ask for just the answer. Low recall: the answer lacks "
        "words of the reference."
    )

    def compare(self, reference: str, output: str) -> Score | Skipped:
        expected, own = squad_tokens(reference), squad_tokens(output)
        if not expected:
            return Skipped("the reference has no words except articles")
        common = (Counter(expected) & Counter(own)).total()
        result = Overlap(common, len(own), len(expected))
        reason = f"{count(common, 'word')} in common, of {len(own)} in the answer and {len(expected)} in the reference."
        return Score(result.f1 * self.scale, reason, evidence=result)
