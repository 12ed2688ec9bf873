"""Keyword coverage: the share of another text's keywords that the answer has, in code.

    keyword coverage = keywords of the input that are in the answer / keywords of the input
    range [0, scale], higher is better

Keywords are the distinct words between white space, after HTML tags are taken out: in lower case, without the signs
. , ; ! ? ( ) : and quotation marks, neither numbers nor one of 571 English stop words; a web address stays as it is.
Forms of a word are different keywords. The other text is the input, or the reference with `against`. Undefined when
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
from evalstone.scorers.code import PairScorer, one_of
from evalstone.scorers.units import pieces
from evalstone.types import Score, Skipped

WithoutKeywords: TypeAlias = Literal["skip", "covered", "missed"]

_TAG = re.compile(r"<[^>]+>")
_SIGNS = re.compile(r"""^'|'\Z|[.,;!?():"“”‘’]""")
_ADDRESS = re.compile(r"https?://")
_DIGITS = re.compile("[0-9]+")


@functools.cache
def _stopwords() -> frozenset[str]:
    return frozenset(json.loads(files("evalstone.scorers").joinpath("data/keyword_stopwords.json").read_text("utf-8")))


@functools.lru_cache(maxsize=1 << 15)
def _keyword(piece: str) -> str:
    """A piece between white space as a keyword; empty when it is none."""
    is_address = _ADDRESS.search(piece) is not None
    word = piece if is_address else _SIGNS.sub("", piece)
    if word in ("_", "@", "&", "#") or _DIGITS.fullmatch(word) or word.lower() in _stopwords():
        return ""
    return word if is_address else word.lower()


def _untagged(text: str) -> str:
    # Beyond the last bracket every "<" would be tried to the end in vain: quadratic time on a text made for it.
    end = text.rfind(">") + 1
    return _TAG.sub("", text[:end]) + text[end:] if "<" in text else text


def keywords(text: str) -> tuple[str, ...]:
    """The distinct keywords of a text, in order."""
    found = dict.fromkeys(map(_keyword, pieces(_untagged(text))))
    found.pop("", None)
    return tuple(found)


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
        there = set(keywords(output))
        missing = tuple(word for word in wanted if word not in there)
        found = len(wanted) - len(missing)
        reason = f"{found} of {len(wanted)} keywords are in the answer{'; missing: ' * bool(missing)}{listed(missing)}."
        return Score(found / len(wanted) * self.scale, self.scale, reason, Keywords(wanted, missing))

    def _without(self) -> Score | Skipped:
        if self.without_keywords == "skip":
            return Skipped(f"the {self.against} has no keyword")
        value = self.scale if self.without_keywords == "covered" else 0.0
        return Score(value, self.scale, f"The {self.against} has no keyword; that counts as {self.without_keywords}.")
