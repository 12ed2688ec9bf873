"""Selective risk: how often a judge is wrong where it is sure enough for its verdict to be kept.

    risk(t) = P(the verdict is wrong | its probability is at least t)          range [0, 1], lower is better

A threshold whose risk is at most a limit is found by fixed-sequence testing: thresholds are tested from the highest
down, each by the exact binomial test of `risk(t) > limit` at level 1 - confidence, until one isn't rejected. The order
depends on the probabilities alone, and no test follows one that wasn't rejected, so the chance that the found threshold
exceeds the limit is at most 1 - confidence, whatever the probabilities mean. (Angelopoulos et al., Learn then Test,
2021, section 2; Bauer 1991 for fixed sequences.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from evalstone.stats.roots import root
from evalstone.stats.special import beta_cdf, binomial_cdf

CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class SelectiveRisk:
    """A threshold on a judge's probability, and how often the verdicts that it keeps are wrong."""

    threshold: float
    """Verdicts with at least this probability are kept."""
    limit: float
    """The share of wrong verdicts among the kept ones that was allowed, in [0, 1]."""
    confidence: float
    """The probability, at least, with which the limit holds for new verdicts like the labeled ones."""
    kept: int
    """The number of labeled verdicts that are kept."""
    wrong: int
    """How many of them are wrong."""
    bound: float
    """The upper confidence bound of the risk at this threshold, at most `limit`."""
    labeled: int
    """The number of labeled verdicts, each of another question."""

    @property
    def share_kept(self) -> float:
        """The share of the labeled verdicts that is kept, in [0, 1]."""
        return self.kept / self.labeled


def certified_threshold(
    probabilities: Sequence[float | None], wrong: Sequence[bool], limit: float, confidence: float = CONFIDENCE
) -> SelectiveRisk | None:
    """The lowest threshold that keeps verdicts with a risk of at most `limit`; None if none is shown to.

    The verdicts must be independent of each other. Those without a probability are never kept.

    Args:
        probabilities: The probability of each verdict, in [0, 1]; None if it has none.
        wrong: Whether each is wrong.
        limit: The largest share of wrong verdicts among the kept ones, in (0, 1).
        confidence: The probability, at least, that the limit holds.
    """
    pairs = sorted(
        ((p, is_wrong) for p, is_wrong in zip(probabilities, wrong, strict=True) if p is not None), reverse=True
    )
    needed = fewest(limit, confidence)
    found: SelectiveRisk | None = None
    kept = errors = 0
    for threshold, group in groupby(pairs, key=lambda pair: pair[0]):
        listed = [is_wrong for _, is_wrong in group]
        kept += len(listed)
        errors += sum(listed)
        if kept < needed:  # not even without an error would the test reject
            continue
        if binomial_cdf(errors, kept, limit) > 1 - confidence:
            break
        found = SelectiveRisk(
            threshold=threshold,
            limit=limit,
            confidence=confidence,
            kept=kept,
            wrong=errors,
            bound=upper_bound(errors, kept, confidence),
            labeled=len(probabilities),
        )
    return found


def fewest(limit: float, confidence: float = CONFIDENCE) -> int:
    """The fewest verdicts, all of them right, that show a risk of at most `limit`."""
    return math.ceil(math.log(1 - confidence) / math.log1p(-limit))


def upper_bound(wrong: int, n: int, confidence: float = CONFIDENCE) -> float:
    """The one-sided upper confidence bound of a share of which `wrong` of `n` are seen (Clopper and Pearson, 1934)."""
    if wrong >= n:
        return 1.0
    return root(
        lambda share: beta_cdf(share, wrong + 1, n - wrong) - confidence,
        0.0,
        1.0,
        (wrong + 1) / (n + 1),
        at_start=-confidence,
        close=1e-9,
    )
