"""Stems, their weights, and the negations and quantities in a text."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalstone._core.text import STOPWORDS, stem

NEGATIONS = frozenset({"not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot"})
_NEARLY_NEGATIONS = frozenset({"rather", "instead", "unable", "fail", "fails", "failed", "lack", "lacks", "hardly"})
_SOFTENERS = frozenset({"only", "all", "just", "necessarily", "always", "every"})
_UNAVAILABLE = frozenset({"unavailable", "absent", "false"})
_AVAILABLE = frozenset(
    {"available", "offered", "offer", "provided", "provide", "included", "include", "there", "present"}
    | {"allowed", "permitted"}
)
REACH = 4
STEMMER = "suffix rules, text.stem"
_NEGATING = NEGATIONS | _NEARLY_NEGATIONS

QUANTITIES: Mapping[str, str] = {
    **dict.fromkeys(("all", "every", "always", "entire", "entirely", "everyone", "everything", "completely"), "all"),
    **dict.fromkeys(("most", "mostly", "majority", "usually", "generally", "mainly", "primarily"), "most"),
    **dict.fromkeys(("some", "several", "sometimes", "occasionally", "partly", "partially", "certain"), "some"),
    **dict.fromkeys(("few", "rarely", "seldom", "little", "hardly", "minority"), "few"),
    **dict.fromkeys(("no", "none", "never", "nobody", "nothing"), "none"),
    **dict.fromkeys(("only", "solely", "exclusively", "just"), "only"),
    **dict.fromkeys(("more", "increase", "increased", "increases", "rise", "rose", "higher", "grew"), "up"),
    **dict.fromkeys(("less", "decrease", "decreased", "decreases", "decline", "declined", "fell", "lower"), "down"),
    **dict.fromkeys(("before", "earlier", "prior"), "before"),
    **dict.fromkeys(("after", "later", "following"), "after"),
    **dict.fromkeys(("may", "might", "could", "possibly", "perhaps", "potentially", "likely"), "maybe"),
    **dict.fromkeys(("must", "required", "mandatory", "obliged"), "must"),
}

# Connecting and reporting words. An answer may add them to its source and still be true.
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

_FUNCTION_STEMS = frozenset(map(stem, STOPWORDS)) | STOPWORDS
_STOP_STEMS = _FUNCTION_STEMS | frozenset(map(stem, GLUE.split())) | {"cannot"}


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Weights of stems: the rarer in the training texts, the higher. unseen: the weight of a stem in none of them."""

    weights: Mapping[str, float]
    unseen: float

    def weight(self, stems: Iterable[str]) -> float:
        """The total weight of some stems."""
        get, unseen = self.weights.get, self.unseen
        # Exact summation, because the order of a set differs between processes and verdicts must not.
        return math.fsum([get(item, unseen) for item in stems])


def stems_of(low: Iterable[str]) -> tuple[str, ...]:
    """The stems of some words, one per word, in order."""
    return tuple(map(_stem, low))


@functools.lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return stem(word)


def content(stems: Iterable[str]) -> frozenset[str]:
    """The stems that carry content, without stop words, glue, "cannot" and contractions such as "don't"."""
    return frozenset([item for item in stems if item not in _STOP_STEMS and not item.endswith("n't")])


def is_negated(low: Sequence[str]) -> bool:
    """Whether some words contain a known negation."""
    return not _NEGATING.isdisjoint(low) or any("n't" in word for word in low)


def unavailable(low: Sequence[str], stems: Sequence[str]) -> frozenset[str]:
    """The stems that are said not to be there: the last content word before each "isn't available", "unavailable", "is
    false" and so on."""
    gone: set[str] = set()
    for place, word in enumerate(low):
        is_denied = (word == "not" or word.endswith("n't")) and not _AVAILABLE.isdisjoint(low[place + 1 : place + 3])
        if is_denied or word in _UNAVAILABLE:
            before = (item for item in reversed(stems[:place]) if item not in _STOP_STEMS)
            gone.update(itertools.islice(before, 1))
    return frozenset(gone)


def denied(low: Sequence[str], stems: Sequence[str]) -> frozenset[str]:
    """The negated stems: the first content word shortly after each "not", "never", "without" and so on, and the words
    such as "allowed" and "considered" between them."""
    if NEGATIONS.isdisjoint(low) and not any("n't" in word for word in low):
        return frozenset()
    negated: set[str] = set()
    for place, word in enumerate(low):
        if (word in NEGATIONS or word.endswith("n't")) and not _negates_nothing(low, place):
            for item in stems[place + 1 : place + 1 + REACH]:
                if item not in _FUNCTION_STEMS:
                    negated.add(item)
                if item not in _STOP_STEMS:
                    break
    return frozenset(negated)


def _negates_nothing(low: Sequence[str], place: int) -> bool:
    """Whether a negation is that of "not only", or of "no it is", which answers a question."""
    following = low[place + 1] if place + 1 < len(low) else ""
    return following in _SOFTENERS or (low[place] == "no" and not place and following in STOPWORDS)


def quantified(low: Iterable[str]) -> frozenset[str]:
    """The quantities, directions and certainties that some words express: "all", "few", "up", "maybe" and so on."""
    return frozenset([QUANTITIES[word] for word in low if word in QUANTITIES])
