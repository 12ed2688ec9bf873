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

from evalstone.scorers.base import listed
from evalstone.scorers.text.code import PairScorer, one_of
from evalstone.scorers.text.units import pieces, spaced
from evalstone.types import Score, Skipped

WithoutKeywords: TypeAlias = Literal["skip", "covered", "missed"]

_TAG = re.compile(r"<[^>]+>")
_SIGNS = '.,;!?():"“”‘’'
_ADDRESS = re.compile(r"https?://")


@functools.cache
def _no_keywords() -> frozenset[str]:
    stopwords = files("evalstone.scorers.text").joinpath("data/keyword_stopwords.json").read_text("utf-8")
    return frozenset([*json.loads(stopwords), "_", "@", "&", "#", ""])


def _words(text: str) -> list[str]:
    """The words of a text in order, keywords or not, and some that are empty where several spaces stand in a row.

    The whole text is taken at once: a step for each of its words takes several times as long.
    """
    if "http" not in text:
        return _plain(text)
    found: list[str] = []
    for piece in pieces(text):
        found.extend([piece] if _ADDRESS.search(piece) else _plain(piece))
    return found


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
    none = _no_keywords()
    found = dict.fromkeys(_words(_untagged(text)))
    return tuple([word for word in found if word not in none and not (word.isdigit() and word.isascii())])


@dataclass(frozen=True)
class Keywords:
    """The keywords of the other text, and those of them that the answer lacks."""

    keywords: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class KeywordCoverage(PairScorer):
    """The share of the keywords of the input, or the reference, that are in the answer."""

    name = "keyword_coverage"
    bands = (
        (0.9, "nearly every keyword is taken up"),
        (0.5, "about half is taken up"),
        (0.2, "a few keywords are taken up"),
        (0.0, "hardly any keyword is taken up"),
    )
    advice = "Read the missing keywords: synonyms and other forms of a word count as missing."

    without_keywords: WithoutKeywords = "skip"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of(self, "without_keywords", ("skip", "covered", "missed"))

    def compare(self, text: str, output: str) -> Score | Skipped:
        wanted = keywords(text)
        if not wanted:
            return self._without()
        there = set(_words(_untagged(output)))  # its words that are no keywords are not wanted anyway
        missing = tuple([word for word in wanted if word not in there])
        found = len(wanted) - len(missing)
        reason = f"{found} of {len(wanted)} keywords are in the answer{'; missing: ' * bool(missing)}{listed(missing)}."
        return Score(found / len(wanted) * self.scale, self.scale, reason, Keywords(wanted, missing))

    def _without(self) -> Score | Skipped:
        if self.without_keywords == "skip":
            return Skipped(f"the {self.compare_to} has no keyword")
        value = self.scale if self.without_keywords == "covered" else 0.0
        return Score(
            value, self.scale, f"The {self.compare_to} has no keyword; that counts as {self.without_keywords}."
        )
