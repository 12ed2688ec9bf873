"""How the judges of a run were asked, besides the prompts of its scorers. Stored, so that questions can be rebuilt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from evalstone.types.alignment import AlignedQuestion
from evalstone.types.context_limits import DEFAULT_LIMITS, ContextLimits, narrowest


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How judges were asked: how long a question could be, and what their alignments change."""

    limits: Mapping[str, ContextLimits] = field(default_factory=dict[str, ContextLimits])
    """By the identity of a judge that scorers ask, how long one question to it may be."""
    alignments: Mapping[str, AlignedQuestion] = field(default_factory=dict[str, AlignedQuestion])
    """What the alignments of judges change, by the hash in the identities of the judges."""

    def limits_of(self, judges: Iterable[str]) -> ContextLimits:
        """The limits that fit all judges with these identities; for an unknown one, those of judges that define
        none."""
        found = [self.limits.get(judge, DEFAULT_LIMITS) for judge in judges]
        return narrowest(*found) if found else DEFAULT_LIMITS

    @classmethod
    def of_all(cls, several: Iterable[Asking]) -> Asking:
        """How the judges of several runs were asked."""
        limits: dict[str, ContextLimits] = {}
        alignments: dict[str, AlignedQuestion] = {}
        for each in several:
            limits |= each.limits
            alignments |= each.alignments
        return cls(limits=limits, alignments=alignments)


NOTHING_STORED = Asking()
"""Nothing is known of how judges were asked."""
