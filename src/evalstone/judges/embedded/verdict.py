"""From counts to a verdict: a weighted sum of what is lacking, and two rules for a contradiction.

    doubt = 2 (1 - window) + (1 - anywhere) + (1 - pairs) + 3.5 [a figure is lost] + 2 [a name is lost]
            + 1.5 min(lost words, 8) / 8                            range [0, 11]

A claim is supported where doubt is below the limit. The weights, none below zero, and the limit were set by hand on one
half of the sources of the labelled data; docs/embedded-judge.md has the figures on the other half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from evalstone.judges.embedded.features import Evidence, evidence
from evalstone.judges.embedded.index import Index
from evalstone.prompt import clean, one_line
from evalstone.questions.claims import ClaimVerdict

LIMIT = 3.5
LONGEST_QUOTE = 160
MOST_NAMED = 6
_MANY_WORDS = 8
_CONFLICTING = 0.1
_SAME_SUBJECT, _SAME_SENTENCE = 0.5, 0.8


@dataclass(frozen=True)
class Finding:
    """A verdict with the probability, roughly, that the claim is supported."""

    verdict: ClaimVerdict
    support: float

    @property
    def confidence(self) -> float:
        """The probability, roughly, that "supported" or "not supported" is right, in [0.5, 1]."""
        return max(self.support, 1 - self.support)


def verify(claim: str, index: Index) -> Finding:
    """Check one claim against prepared passages."""
    found = evidence(claim, index)
    if found.best is None:
        reason = "no passage has any of its words" if index.pieces else "there is no text to check it against"
        return Finding(ClaimVerdict(claim, "not_mentioned", (), reason), support_of(found))
    where, said, support = found.best.passage, f'"{quote(found.best.text)}"', support_of(found)
    if against := _conflict(found):
        reason = f"passage {where} {against}: {said}"
        return Finding(ClaimVerdict(claim, "contradicted", (where,), reason), min(support, _CONFLICTING))
    if support >= 0.5:
        return Finding(ClaimVerdict(claim, "supported", found.passages, f"passage {where}: {said}"), support)
    reason = f"{_lacking(found)}; nearest is passage {where}: {said}"
    return Finding(ClaimVerdict(claim, "not_mentioned", (), reason), support)


def doubt(found: Evidence) -> float:
    """How much of a claim the passages lack."""
    return (
        2 * (1 - found.window)
        + (1 - found.anywhere)
        + (1 - found.pairs)
        + 3.5 * bool(found.lost_figures)
        + 2 * bool(found.lost_names)
        + 1.5 * min(len(found.lost_words), _MANY_WORDS) / _MANY_WORDS
    )


def support_of(found: Evidence) -> float:
    """The probability, roughly, that the passages support the claim."""
    return 1 / (1 + math.exp(doubt(found) - LIMIT))


def quote(text: str) -> str:
    """A sentence as it is shown in a reason: one line, shortened in the middle."""
    line = one_line(clean(text))
    half = LONGEST_QUOTE // 2 - 2
    return line if len(line) <= LONGEST_QUOTE else f"{line[:half].rstrip()} … {line[-half:].lstrip()}"


def _conflict(found: Evidence) -> str:
    """What the best sentence says against the claim; empty when it does not, or is not about the same."""
    if found.best is None or found.aside < _SAME_SENTENCE:
        return ""
    others = sorted(found.best.numbers - set(found.figures))
    if found.lost_figures and others and found.cover >= _SAME_SUBJECT:
        return f"has {_listed(others)} where the claim has {_listed(found.lost_figures)}"
    if found.denial and found.cover >= _SAME_SENTENCE:
        return "and the claim differ in a negation"
    return ""


def _lacking(found: Evidence) -> str:
    if found.lost_words or found.lost_figures:
        lost = dict.fromkeys((*found.lost_figures, *found.lost_names, *found.lost_words))
        shown: dict[str, str] = {}
        for item in lost:
            shown.setdefault(item.lower(), item)
        return f"no passage has {_listed(tuple(shown.values()))}"
    return "its words stand in the passages, but not together"


def _listed(items: tuple[str, ...] | list[str]) -> str:
    named = ", ".join(clean(item)[:40] for item in items[:MOST_NAMED])
    return f"{named} and {len(items) - MOST_NAMED} more" if len(items) > MOST_NAMED else named
