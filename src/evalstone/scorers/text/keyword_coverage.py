"""Keyword coverage: the share of another text's keywords that the answer has, in code.

    keyword coverage = keywords of the input that are in the answer / keywords of the input
    range [0, scale], higher is better

Keywords are the distinct words between white space, after HTML tags are taken out: in lower case, without the signs
. , ; ! ? ( ) : and quotation marks, neither numbers nor one of 571 English stop words; a web address stays as it is.
Forms of a word are different keywords. The other text is the input, or the reference with `compare_to`. Undefined when
either text is blank, and when the input has no keyword, unless `without_keywords` counts that as covered (1) or as
missed (0). No judge call. Source: @mastra/evals, with the rules of keyword-extractor.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal, TypeAlias

from evalstone.scorers.base import listed, require_choice
from evalstone.scorers.text import PairScorer, pieces, spaced
from evalstone.types import Score, Skipped

WithoutKeywords: TypeAlias = Literal["skip", "covered", "missed"]

_TAG = re.compile(r"<[^>]+>")
_SIGNS = '.,;!?():"“”‘’'
_ADDRESS = re.compile(r"https?://")


@functools.cache
def _stopwords() -> frozenset[str]:
    stopwords = files("evalstone.scorers.text").joinpath("data/keyword_stopwords.json").read_text("utf-8")
    return frozenset([*json.loads(stopwords), "_", "@", "&", "#", ""])


def _words(text: str) -> list[str]:
    """The words of a text in order, keywords or not; empty ones where several spaces stand in a row.

    The whole text is processed at once: word by word takes several times as long.
    """
    if "http" not in text:
        return _plain(text)
    words: list[str] = []
    for piece in pieces(text):
        words.extend([piece] if _ADDRESS.search(piece) else _plain(piece))
    return words


def _plain(text: str) -> list[str]:
    """The words of a text without web addresses. Signs go before capitals do: how a Σ is lowered depends on both."""
    flat = spaced(text)
    if "'" in flat:
        flat = f" {flat} ".replace(" '", " ").replace("' ", " ")
    for sign in _SIGNS:
        if sign in flat:
            flat = flat.replace(sign, "")
    return flat.lower().split(" ")


def _untagged(text: str) -> str:
    if "<" not in text:
        return text
    # Beyond the last bracket every "<" would be tried to the end in vain: quadratic time on a text made for it.
    end = text.rfind(">") + 1
    return _TAG.sub("", text[:end]) + text[end:]


def keywords(text: str) -> tuple[str, ...]:
    """The distinct keywords of a text, in order."""
    stopwords = _stopwords()
    distinct = dict.fromkeys(_words(_untagged(text)))
    return tuple([word for word in distinct if word not in stopwords and not (word.isdigit() and word.isascii())])


@dataclass(frozen=True)
class Keywords:
    """The keywords of the other text, and those of them that the answer lacks."""

    keywords: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class KeywordCoverage(PairScorer):
    """The share of the keywords of the input, or the reference, that are in the answer."""

    name = "keyword_coverage"
    interpretation = (
        (0.9, "nearly every keyword is in the answer"),
        (0.5, "about half are in the answer"),
        (0.2, "a few keywords are in the answer"),
        (0.0, "hardly any keyword is in the answer"),
    )
    advice = "Read the missing keywords: synonyms and other forms of a word count as missing."

    without_keywords: WithoutKeywords = "skip"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self, "without_keywords", ("skip", "covered", "missed"))

    def compare(self, text: str, output: str) -> Score | Skipped:
        expected = keywords(text)
        if not expected and self.without_keywords == "skip":
            return Skipped(f"the {self.compare_to} has no keyword")
        if not expected:
            value = self.scale if self.without_keywords == "covered" else 0.0
            return Score(value, self.scale, f"No keyword in the {self.compare_to}; counted as {self.without_keywords}.")
        present = set(_words(_untagged(output)))  # words that are not keywords do no harm here
        missing = tuple([word for word in expected if word not in present])
        covered = len(expected) - len(missing)
        reason = f"{covered} of {len(expected)} keywords are in the answer"
        reason += f"; missing: {listed(missing)}." if missing else "."
        return Score(covered / len(expected) * self.scale, self.scale, reason, Keywords(expected, missing))
