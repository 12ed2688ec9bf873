"""Completeness and keyword coverage, computed in code: how many words of another text the answer has."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, ClassVar, Literal

from evalstone._core.declarations import Rule
from evalstone._core.display import part_of
from evalstone._core.sync import is_async
from evalstone._core.text import STOPWORDS, normalized, words
from evalstone.errors import OutcomeError
from evalstone.scorers.definitions import COMMA, OURS, DefinedText, Definition
from evalstone.scorers.reasons import reason_with
from evalstone.scorers.text import PairScorer, check_lengths, pieces, spaced
from evalstone.types import Score, Skipped

_ELEMENTS = Rule("a plain function of a text", lambda value: callable(value) and not is_async(value))
_LATIN_ACCENTS = dict.fromkeys(range(0x300, 0x370))
_LATIN_WORD = re.compile("[a-z0-9]+")
_EXACT = 3
_SHARE = 0.6
_LONG = 64
MOST_PARTS = 5_000_000
MOST_PAIRS = 4_000_000


def content_words(text: str) -> tuple[str, ...]:
    """The distinct words of a text, in order: in lower case, without accents and without English stop words."""
    distinct = dict.fromkeys(word for word in words(text) if word not in STOPWORDS)
    return tuple(dict.fromkeys(_unaccented(word) for word in distinct))


def _unaccented(word: str) -> str:
    return word if word.isascii() else normalized("NFD", word).translate(_LATIN_ACCENTS)


def latin_words(text: str) -> tuple[str, ...]:
    """The distinct runs of letters a to z and digits in a text, in order: in lower case and without accents."""
    return tuple(dict.fromkeys(_LATIN_WORD.findall(_unaccented(text).lower())))


def covers(element: str, expected: str) -> bool:
    """Whether an element of the answer covers one of the input."""
    if element == expected or len(expected) <= _EXACT:
        return element == expected
    longer, shorter = (expected, element) if len(expected) > len(element) else (element, expected)
    return len(shorter) / len(longer) > _SHARE and shorter in longer


def uncovered(expected: Sequence[str], present: Sequence[str]) -> tuple[str, ...]:
    """The elements of the input that no element of the answer `covers`, in order.

    Parts of elements are looked up in a set, since trying every pair takes quadratic time. Only pairs of very long
    elements are tried. Raises OutcomeError for so many elements or parts that it would take too long, or a gigabyte.
    """
    whole = set(present)
    parts_in_all = sum(int(len(element) * (1 - _SHARE) + 1) ** 2 // 2 for element in whole if len(element) <= _LONG)
    if parts_in_all > MOST_PARTS:
        raise OutcomeError(f"{len(present):,} elements have more than {MOST_PARTS:,} parts to look up")
    parts = {part for element in whole if len(element) <= _LONG for part in _parts(element)}
    long = [element for element in whole if len(element) > _LONG * _SHARE]
    long_expected = [element for element in expected if len(element) > _LONG * _SHARE]
    check_lengths(long_expected, long, MOST_PAIRS, "elements of 39 letters or more")

    def covered(element: str) -> bool:
        if element in whole or len(element) <= _EXACT:
            return element in whole
        if element in parts or (len(element) <= _LONG and not whole.isdisjoint(_parts(element))):
            return True
        return len(element) > _LONG * _SHARE and any(covers(other, element) for other in long)

    return tuple(element for element in expected if not covered(element))


def _parts(element: str) -> Iterator[str]:
    """The parts of an element that have over 60% of its length, itself included."""
    size = len(element)
    for length in range(size, 0, -1):
        if length / size <= _SHARE:
            return
        for start in range(size - length + 1):
            yield element[start : start + length]


@dataclass(frozen=True)
class Coverage:
    """The elements of the input, and those that the answer does not cover."""

    elements: tuple[str, ...]
    missing: tuple[str, ...]


class Completeness(DefinedText, PairScorer):
    """The share of the elements of the input, or the reference, that the answer covers.

        completeness = elements of the input that an element of the answer covers / elements of the input
        range [0, scale], higher is better

    An element of at most three characters is covered by an equal one. A longer one is also covered by one that contains
    it or is contained in it, if the shorter has over 60% of the length of the longer: `report` covers `reports`.

    By default, the elements of a text are its distinct words in lowercase, without accents and without English stop
    words. This is our own rule. With definition="mastra", stop words count too. The original also uses the base forms
    of verbs from a part-of-speech tagger, which evalstone doesn't have. Without them, 331 of 359 recorded scores are
    the same (270 by our own rule); with the original's lists of elements, all are. Undefined when either text is blank,
    and when the input has no element; with definition="mastra", it is then 1 if the answer has none either, else 0. No
    judge call. Source: @mastra/evals.

    Attributes:
        elements: A plain function that returns a text's elements, such as a tagger, instead of the definition's rule.
    """

    name = "completeness"
    version = 2
    interpretation = (
        (0.9, "nearly everything is covered"),
        (0.6, "most of it is covered"),
        (0.3, "much is left out"),
        (0.0, "hardly anything is covered"),
    )
    advice = "Read the missing elements: anything said in other words counts as missing."
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("words of the input that are covered / words, without stop words", content_words),
        "mastra": Definition(
            "the same, with stop words, over all messages; the original also has base forms of verbs",
            latin_words,
            sides=COMMA,
        ),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    elements: Annotated[Callable[[str], Sequence[str]] | None, _ELEMENTS] = None

    def compare(self, text: str, output: str) -> Score | Skipped:
        elements = self.elements or self.compute
        expected, present = tuple(elements(text)), tuple(elements(output))
        if not expected and self.definition == OURS:
            return Skipped(f"the {self.compare_to} has no elements")
        if not expected:
            value = 0.0 if present else self.scale
            return Score(value, f"The {self.compare_to} has no elements; the answer has {len(present)}.")
        missing = uncovered(expected, present)
        covered = len(expected) - len(missing)
        reason = reason_with(f"{part_of(covered, len(expected), 'element')} covered", ("missing", missing))
        return Score(covered / len(expected) * self.scale, reason, evidence=Coverage(expected, missing))


_TAG = re.compile(r"<[^>]+>")
_SIGNS = '.,;!?():"“”‘’'
_ADDRESS = re.compile(r"https?://")


@functools.cache
def _stopwords() -> frozenset[str]:
    stopwords = files("evalstone.scorers.text").joinpath("data/keyword_stopwords.json").read_text("utf-8")
    return frozenset([*json.loads(stopwords), "_", "@", "&", "#", ""])


def _words(text: str) -> list[str]:
    """The words of a text in order, keywords or not. Several spaces in a row leave empty words between them.

    The whole text is processed at once, since going word by word takes several times as long.
    """
    if "<" in text:
        # After the last bracket, every "<" would be tried to the end: quadratic time on a hostile text.
        end = text.rfind(">") + 1
        text = _TAG.sub("", text[:end]) + text[end:]
    if "http" not in text:
        return _plain(text)
    words: list[str] = []
    for piece in pieces(text):
        words.extend([piece] if _ADDRESS.search(piece) else _plain(piece))
    return words


def _plain(text: str) -> list[str]:
    """The words of a text without web addresses. Signs are removed first: how Σ is lowercased depends on them."""
    flat = spaced(text)
    if "'" in flat:
        flat = f" {flat} ".replace(" '", " ").replace("' ", " ")
    for sign in _SIGNS:
        if sign in flat:
            flat = flat.replace(sign, "")
    return flat.lower().split(" ")


def keywords(text: str) -> tuple[str, ...]:
    """The distinct keywords of a text, in order."""
    stopwords = _stopwords()
    distinct = dict.fromkeys(_words(text))
    return tuple([word for word in distinct if word not in stopwords and not (word.isdigit() and word.isascii())])


@dataclass(frozen=True)
class Keywords:
    """The keywords of the other text, and the ones that the answer lacks."""

    keywords: tuple[str, ...]
    missing: tuple[str, ...]


class KeywordCoverage(DefinedText, PairScorer):
    """The share of the keywords of the input, or the reference, that are in the answer.

        keyword coverage = keywords of the input that are in the answer / keywords of the input
        range [0, scale], higher is better

    Keywords are the distinct words separated by white space, after HTML tags are removed. They are in lowercase,
    without the signs . , ; ! ? ( ) : and quotation marks. Numbers and 571 English stop words are not keywords. A web
    address is kept unchanged. Inflected forms of a word are different keywords. Undefined when either text is blank,
    and when the input has no keyword; other definitions then give 1 or 0. No judge call. Source: @mastra/evals, with
    the rules of keyword-extractor.
    """

    name = "keyword_coverage"
    version = 2
    interpretation = (
        (0.9, "nearly every keyword is in the answer"),
        (0.5, "about half are in the answer"),
        (0.2, "a few keywords are in the answer"),
        (0.0, "hardly any keyword is in the answer"),
    )
    advice = "Read the missing keywords: synonyms and other forms of a word count as missing."
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("keywords of the input that are in the answer / keywords of the input"),
        "mastra": Definition(
            "the same, over all messages; 1 for an input without keywords", otherwise=1.0, sides=COMMA
        ),
        "mastra_0_13": Definition("the same; 0 for an input without keywords", otherwise=0.0),
    }
    definition: Literal["evalstone", "mastra", "mastra_0_13"] = OURS

    def compare(self, text: str, output: str) -> Score | Skipped:
        expected = keywords(text)
        if not expected:
            return self.undefined(f"the {self.compare_to} has no keyword")
        present = set(_words(output))  # other words than keywords make no difference here
        missing = tuple([word for word in expected if word not in present])
        covered = len(expected) - len(missing)
        reason = reason_with(f"{part_of(covered, len(expected), 'keyword')} in the answer", ("missing", missing))
        return Score(covered / len(expected) * self.scale, reason, evidence=Keywords(expected, missing))
