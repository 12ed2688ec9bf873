"""Results about one scorer of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from evalstone._core.truth import NoTruthValue
from evalstone.errors import UnknownName, absent
from evalstone.results.summary import ScorerInfo

if TYPE_CHECKING:
    from evalstone.results.run import Run


@dataclass(frozen=True, kw_only=True)
class OfScorer(NoTruthValue):
    """A result for one scorer."""

    title: str
    """The scorer's title in the run, or in the first of several runs."""
    info: ScorerInfo
    """The scorer."""


_Item = TypeVar("_Item", bound=OfScorer)


def result_for(items: Iterable[_Item], run: Run, scorer: str) -> _Item:
    """The first item about a scorer of the run, by title, signature or name.

    Raises:
        UnknownName: the run has no such scorer or several, or no item is about it.
    """
    signature = run[scorer].info.signature
    for item in items:
        if item.info.signature == signature:
            return item
    raise UnknownName(absent(scorer, f"there is no result for {scorer}: too few samples have a score"))
