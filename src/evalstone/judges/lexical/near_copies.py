"""What a sentence has in place of a claim's names, units or opposites where the two are otherwise equal: Paris for
Berlin, 5 days for 5 weeks, before for after. And whether one of them is negated.

Any other word may be a synonym.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from evalstone._core.text import stem
from evalstone.judges.lexical.opposites import opposed
from evalstone.judges.lexical.spaceless_negations import NEGATION
from evalstone.judges.lexical.tokens import NEGATIONS, stems_of
from evalstone.judges.lexical.units import measures, shown_measure

_LONGEST_ABBREVIATION = 5
_SAME_START = 4
_VOWELS = re.compile("[aeiouy]+")

_WEAK_NEGATIONS = "non hardly scarcely unable lack lacks lacked lacking fail fails failed minus"
_WITHOUT_APOSTROPHE = frozenset(
    {"dont", "doesnt", "didnt", "isnt", "arent", "wasnt", "werent", "wont", "cant", "couldnt", "shouldnt", "wouldnt"}
    | {"hasnt", "havent", "hadnt"}
)
# German, French, Spanish and Portuguese, Italian, Dutch, Swedish, Danish and Norwegian, Polish, Turkish, Russian and
# Ukrainian, Hindi, Arabic, Korean. An English word among them, such as "sin", hardly ever is all that two sentences
# differ in.
_FOREIGN_NEGATIONS = """
nicht kein keine keinen keinem keiner nie niemals ohne pas jamais aucun aucune sans nunca sin ningún ninguna não sem
mai senza niet geen nooit inte aldrig utan ikke uten uden nigdy bez değil
не нет нельзя никогда без ні немає नहीं न मत غير لا ليس ليست لم لن
없습니다 않습니다 아닙니다 없다 않다 아니다 없어요 않아요
"""
_NEGATING = NEGATIONS.union([NEGATION], _WEAK_NEGATIONS.split(), _WITHOUT_APOSTROPHE, _FOREIGN_NEGATIONS.split())
_BESIDE_NEGATIONS = """
able longer anymore ne somebody someone something anybody anyone anything everybody everyone everything
있습니다 있다 있어요
"""
NEGATING_STEMS = frozenset(stems_of(_NEGATING.union(_BESIDE_NEGATIONS.split())))
"""The stems of negations and of words that come and go with them. Two sentences are compared without them."""
_CONTINUED = frozenset({"and", "or", "nor"})
_NOTHING_DENIED = frozenset({"only", "just", "but"})

Name = tuple[str, str]
"""A name as it is written, and its stem."""


@dataclass(frozen=True, slots=True)
class Swap:
    """The names, the unit or the word of a claim, and what a sentence has in their place, each with its stem."""

    own: tuple[Name, ...]
    others: tuple[Name, ...]

    @property
    def own_stems(self) -> frozenset[str]:
        """The stems that only the claim has."""
        return frozenset(item for _, item in self.own)

    @property
    def other_stems(self) -> frozenset[str]:
        """The stems that only the sentence has."""
        return frozenset(item for _, item in self.others)


def differ_in_negation(low: Sequence[str], others: Sequence[str]) -> bool:
    """Whether one of two otherwise equal sentences has a negation more than the other.

    Two negations are like none. A word that repeats, as in `never` of a list, may count once or each time.
    """
    own, theirs = _negations(low), _negations(others)
    return len(own) % 2 != len(theirs) % 2 and len(set(own)) % 2 != len(set(theirs)) % 2


def _negations(low: Sequence[str]) -> list[str]:
    """The negations among words, without `nor` and those that negate nothing: `not only`, `nothing but`."""
    return [
        "not" if word == "cannot" or word.endswith("n't") or word in _WITHOUT_APOSTROPHE else word
        for place, word in enumerate(low)
        if (word in _NEGATING or word.endswith("n't"))
        and word != "nor"
        and not (place and low[place - 1] in _CONTINUED)
        and not (low[place + 1 : place + 2] and low[place + 1] in _NOTHING_DENIED)
    ]


def swapped_opposites(
    low: Sequence[str], stems: Sequence[str], others: Sequence[str], other_stems: Sequence[str]
) -> Swap | None:
    """A word that only a claim has, and one that only a sentence has and that excludes it; None if there are none.

    low, others: the words of the claim and of the sentence, in lower case. stems, other_stems: their stems.
    """
    if (pair := opposed(stems, other_stems)) is None:
        return None
    one, other = pair
    return Swap(((low[stems.index(one)], one),), ((others[other_stems.index(other)], other),))


def swapped_units(low: Sequence[str], others: Sequence[str]) -> Swap | None:
    """A unit of a claim, and those that a sentence has after the same number; None if they agree.

    low, others: the tokens of the claim and of the sentence, in lower case.
    """
    have = list(measures(others))
    for number, unit in measures(low):
        units = tuple(dict.fromkeys(other for same, other in have if same == number))
        if units and unit not in units:
            return Swap((_measure(number, unit),), tuple(_measure(number, other) for other in units))
    return None


def _measure(number: str, unit: str) -> Name:
    return shown_measure(number, unit), stem(unit)


def swapped_names(
    stems: Sequence[str], own: Sequence[Name], others: Sequence[Name], common: frozenset[str]
) -> Swap | None:
    """The names that only a claim has, and about as many that only a sentence has; None if two of them may be the same.

    stems: the claim's words. own, others: the names of both. common: the stems that both have.
    """
    names, replacing = (tuple(dict.fromkeys(name for name in each if name[1] not in common)) for each in (own, others))
    if not names or not replacing or abs(len(names) - len(replacing)) > 1:
        return None
    swap, kept = Swap(names, replacing), common & {item for _, item in own}
    # "President Biden" may be Joe Biden.
    if any(one in swap.own_stems and other in kept for one, other in itertools.pairwise(stems)):
        return None
    return None if any(_may_be_same(one, other) for one, _ in names for other, _ in replacing) else swap


def _may_be_same(name: str, other: str) -> bool:
    """Whether one name may be a form of the other: Mon and Monday, Italy and Italian, UN and United, Kyiv and Kiev."""
    one, two = _plain(name), _plain(other)
    if one[0] == two[0] and _VOWELS.sub("", one[1:]) == _VOWELS.sub("", two[1:]):
        return True
    if one.startswith(two) or two.startswith(one) or one[:_SAME_START] == two[:_SAME_START]:
        return True
    return one[0] == two[0] and _is_abbreviation(name) != _is_abbreviation(other)


def _is_abbreviation(name: str) -> bool:
    return name.isupper() and len(name) <= _LONGEST_ABBREVIATION


def _plain(name: str) -> str:
    """A name in lower case without accents."""
    if name.isascii():
        return name.lower()
    marked = unicodedata.normalize("NFKD", name.casefold())
    return "".join(char for char in marked if not unicodedata.combining(char)) or name
