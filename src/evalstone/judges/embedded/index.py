"""Passages made ready for looking claims up in them: sentences, word weights, and which sentence has which word."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalstone.text import STOPWORDS, numbers, sentences, stem, words

NEGATIONS = frozenset({"not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot"})
_NEARLY_NEGATIONS = frozenset({"rather", "instead", "unable", "fail", "fails", "failed", "lack", "lacks", "hardly"})
_SOFTENERS = frozenset({"only", "all", "just", "necessarily", "always", "every"})
REACH = 4
LONGEST_PIECE = 600

# Words that writers join and report with. An answer has them where its source does not, and is no less true for that.
GLUE = """
according additional additionally address allow also although appear appears article author available based certain
consider considered crucial depending describe described despite different discuss document due ensure essential
especially example finally follow followed following further given help helps highlight however important importance
include included includes including indicate individual information instead involve involves known lead like likely main
may mention mentioned mentions moreover necessary need note often one order otherwise overall particularly passage per
possible potentially provide provided provides rather recommended refer regarding related several similar since
significant specific specifically state stated states step still such suggest sure therefore though thus typically use
used using usually variety various vary way well whether within yes
"""


@dataclass(frozen=True)
class Piece:
    """One sentence of a passage, or a stretch of an overlong one. `passage` is a number from 1."""

    passage: int
    text: str
    stems: frozenset[str]
    numbers: frozenset[str]
    negated: bool
    denied: frozenset[str]


@dataclass(frozen=True, eq=False)
class Index:
    """Passages, prepared.

    weights: how much each content stem counts (rare in these passages counts more). unseen: what a stem counts that no
    passage has. pairs: the stems that stand side by side. postings: the pieces that have a stem, in order.
    """

    pieces: tuple[Piece, ...]
    weights: Mapping[str, float]
    unseen: float
    pairs: frozenset[tuple[str, str]]
    numbers: frozenset[str]
    postings: Mapping[str, Sequence[int]]

    def weight(self, stems: Iterable[str]) -> float:
        """What some stems count together."""
        get, unseen = self.weights.get, self.unseen
        # Exact summing, for sets come in another order in each process and a verdict must not.
        return math.fsum(get(item, unseen) for item in stems)


@functools.lru_cache(maxsize=16)
def index(context: tuple[str, ...]) -> Index:
    """The passages prepared; the last few contexts are kept, since every claim of an answer meets the same one."""
    pieces: list[Piece] = []
    pairs: set[tuple[str, str]] = set()
    for number, passage in enumerate(context, start=1):
        for text in cut(passage):
            low = words(text)
            stems = all_stems(low)
            pairs.update(itertools.pairwise(stems))
            pieces.append(Piece(number, text, content(stems), frozenset(numbers(text)), is_negated(low), denied(low)))
    counts = Counter(itertools.chain.from_iterable(piece.stems for piece in pieces))
    postings: dict[str, list[int]] = {}
    for place, piece in enumerate(pieces):
        for item in piece.stems:
            postings.setdefault(item, []).append(place)
    total = len(pieces)
    weights = {item: math.log(1 + (total + 0.5) / (count + 0.5)) for item, count in counts.items()}
    known = frozenset(itertools.chain.from_iterable(piece.numbers for piece in pieces))
    return Index(tuple(pieces), weights, math.log(2 + 2 * total), frozenset(pairs), known, postings)


def cut(passage: str) -> Iterator[str]:
    """The sentences of a passage; one that never ends is cut at a space, so that no piece has all the words."""
    for sentence in sentences(passage):
        start = 0
        while len(sentence) - start > LONGEST_PIECE:
            end = sentence.rfind(" ", start + LONGEST_PIECE // 2, start + LONGEST_PIECE)
            end = end if end > 0 else start + LONGEST_PIECE
            yield sentence[start:end]
            start = end
        yield sentence[start:]


def all_stems(found: Iterable[str]) -> tuple[str, ...]:
    """The stems of some words, every word counted, so that neighbours stay neighbours."""
    return tuple(map(stem, found))


_STOP_STEMS = frozenset(map(stem, (*STOPWORDS, *GLUE.split()))) | STOPWORDS


def content(stems: Iterable[str]) -> frozenset[str]:
    """The stems that carry content: stop words and glue dropped."""
    return frozenset(stems) - _STOP_STEMS


def is_negated(low: Iterable[str]) -> bool:
    """Whether some words say not, in any way that is known here."""
    return any(word in NEGATIONS or word in _NEARLY_NEGATIONS or word.endswith("n't") for word in low)


def denied(low: Sequence[str]) -> frozenset[str]:
    """The stems that are said not to be: the first content word soon after each "not", "never", "without" and so on."""
    found: set[str] = set()
    for place, word in enumerate(low):
        # "No, it is" answers a question, and "not only" denies nothing that follows.
        if (word in NEGATIONS or word.endswith("n't")) and (place or word != "no"):
            after = low[place + 1 : place + 1 + REACH]
            if not after or after[0] not in _SOFTENERS:
                found.update(itertools.islice((item for item in map(stem, after) if item not in _STOP_STEMS), 1))
    return frozenset(found)
