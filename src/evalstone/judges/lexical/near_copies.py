"""What a sentence has in place of a claim's names or units where the two are otherwise equal: Paris for Berlin, 5 days
for 5 weeks.

Only names and units are compared. Any other word may be a synonym.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from evalstone._core.text import stem
from evalstone.judges.lexical.units import measures, shown_measure

_LONGEST_ABBREVIATION = 5
_SAME_START = 4

Name = tuple[str, str]
"""A name as it is written, and its stem."""


@dataclass(frozen=True, slots=True)
class Swap:
    """The names or units of a claim, and those that a sentence has in their place, each with its stem."""

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
    """Whether one name may be a form of the other: Mon and Monday, Italy and Italian, UN and United."""
    one, two = name.lower(), other.lower()
    if one.startswith(two) or two.startswith(one) or one[:_SAME_START] == two[:_SAME_START]:
        return True
    return one[0] == two[0] and _is_abbreviation(name) != _is_abbreviation(other)


def _is_abbreviation(name: str) -> bool:
    return name.isupper() and len(name) <= _LONGEST_ABBREVIATION
