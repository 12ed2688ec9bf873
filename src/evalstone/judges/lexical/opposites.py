"""Words that exclude each other where two sentences are otherwise equal: over and under, all and some, open and closed.

The list has common pairs only. Two other words at the same place of two sentences are synonyms more often than not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from evalstone._core.text import stem

# A word on one side of a bar excludes those on the other.
_EITHER = """
more greater above over exceed least | less fewer below under most;
up increase rise rose risen grow grew grown gain climb raise higher |
down decrease fall fell fallen decline drop shrink shrank reduce lower;
before | after; earlier | later; first | last; early | late; inside | outside; on | off; in | out;
north | south; east | west; northern | southern; eastern | western; left | right; open | close; true | false;
enable | disable; allow permit legal | prohibit forbid forbidden ban illegal; accept approve | reject refuse deny;
include | exclude; win won | lose lost; buy bought | sell sold; minimum | maximum; best | worst; better | worse;
positive | negative; success succeed | failure fail; few | many most all; hot warm | cold cool;
cheap | expensive; guilty | innocent; male | female; alive | dead; safe | dangerous; easy | difficult hard;
free | paid; full | empty; strong | weak; public | private; arrive | depart; import | export;
mandatory required | optional; celsius | fahrenheit;
spring | summer autumn winter; summer | autumn winter; autumn | winter
"""
# A claim with a word before the bar says more than a sentence with one after it.
_STRONGER = """
all every each | some several most many; always | sometimes usually often; most | some several;
must | may might can could should; will | may might could; everyone everybody | someone somebody
"""
_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non")
_SHORTEST = 3
# The same with the prefix; or, as "unable", a negation.
_NOT_NEGATED = frozenset({stem("flammable"), stem("valuable"), stem("habitable"), stem("able")})


def _table(*entries: tuple[str, bool]) -> Mapping[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for text, both in entries:
        for entry in text.split(";"):
            one, other = ([stem(word) for word in side.split()] for side in entry.split("|"))
            for word in one:
                found[word].update(other)
            for word in other if both else ():
                found[word].update(one)
    return {word: frozenset(excluded) for word, excluded in found.items()}


_EXCLUDED = _table((_EITHER, True), (_STRONGER, False))
"""For each stem in a claim, those in a sentence that exclude it."""


def opposed(stems: Sequence[str], others: Iterable[str]) -> tuple[str, str] | None:
    """A stem that only a claim has, and one that only a sentence has and that excludes it; None if there are none."""
    theirs = frozenset(others)
    only_theirs = theirs.difference(stems)
    for item in stems if only_theirs else ():
        if item not in theirs and (excluded := only_theirs & (_EXCLUDED.get(item, frozenset()) | _negated(item))):
            return item, min(excluded)
    return None


def _negated(item: str) -> frozenset[str]:
    """A stem with each negative prefix, and without the one that it has: `impossible` and `possible`."""
    pairs = [(item, f"{prefix}{item}") for prefix in _PREFIXES]
    pairs += [(item.removeprefix(prefix), item) for prefix in _PREFIXES if item.startswith(prefix)]
    return frozenset(
        one if one != item else other for one, other in pairs if len(one) >= _SHORTEST and one not in _NOT_NEGATED
    )
