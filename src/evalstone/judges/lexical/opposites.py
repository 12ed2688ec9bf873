"""Words that exclude each other where two sentences are otherwise equal: over and under, all and some, open and closed.

The list has common pairs only. Two other words at the same place of two sentences are synonyms more often than not.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from evalstone._core.text import stem

# A word on one side of a bar excludes those on the other.
_EITHER = """
more greater above over exceed least | less fewer below under most
up increase rise rose risen grow grew grown gain climb raise higher | down decrease fall fell fallen decline drop shrink
/ shrank reduce lower
before | after ; earlier | later ; first | last ; early | late ; inside | outside ; on | off ; in | out
north | south ; east | west ; northern | southern ; eastern | western ; left | right ; open | close ; true | false
enable | disable ; allow permit legal | prohibit forbid forbidden ban illegal ; accept approve | reject refuse deny
include | exclude ; win won | lose lost ; buy bought | sell sold ; minimum | maximum ; best | worst ; better | worse
positive | negative ; success succeed | failure fail ; few | many most all ; hot warm | cold cool
cheap | expensive ; guilty | innocent ; male | female ; alive | dead ; safe | dangerous ; easy | difficult hard
free | paid ; full | empty ; strong | weak ; public | private ; arrive | depart ; import | export
mandatory required | optional ; celsius | fahrenheit ; spring | summer autumn winter ; summer | autumn winter
autumn | winter
"""
# A claim with a word before the bar says more than a sentence with one after it.
_STRONGER = """
all every each | some several most many few ; always | sometimes usually often ; most | some several
must | may might can could should ; will | may might could ; everyone everybody | someone somebody
"""
_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non")
_SHORTEST = 4
_SAME_WITH_PREFIX = frozenset({stem("flammable"), stem("valuable"), stem("habitable")})


def _table(*entries: tuple[str, bool]) -> Mapping[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for text, both in entries:
        for entry in re.split(r" ; |\n(?!/)", text.strip()):
            one, other = ([stem(word) for word in side.split() if word != "/"] for side in entry.split("|"))
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
    if not only_theirs:
        return None
    for item in stems:
        if item not in theirs:
            excluded = _EXCLUDED.get(item, frozenset()) & only_theirs
            if excluded or (excluded := frozenset(other for other in only_theirs if _negates(item, other))):
                return item, min(excluded)
    return None


def _negates(one: str, other: str) -> bool:
    """Whether one word is the other with a negative prefix: `impossible` and `possible`."""
    short, long = sorted((one, other), key=len)
    return (
        len(short) >= _SHORTEST
        and short not in _SAME_WITH_PREFIX
        and long.endswith(short)
        and long[: -len(short)] in _PREFIXES
    )
