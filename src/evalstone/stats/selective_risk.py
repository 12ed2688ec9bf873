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
from decimal import ROUND_FLOOR, Decimal
from itertools import groupby

from evalstone.stats.roots import root
from evalstone.stats.special import beta_cdf, binomial_cdf

CONFIDENCE = 0.95
NEAR = 0.01
"""A threshold is less than this below the probability that it keeps."""
MOST_DIGITS = 17


@dataclass(frozen=True, kw_only=True)
class SelectiveRisk:
    """A threshold on a judge's probability, and how often the verdicts that it keeps are wrong."""

    threshold: float
    """Verdicts with at least this probability are kept: a short number that keeps the same labeled verdicts as the
    lowest of their probabilities."""
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
    groups = [(p, [is_wrong for _, is_wrong in group]) for p, group in groupby(pairs, key=lambda pair: pair[0])]
    for place, (lowest, listed) in enumerate(groups, start=1):
        kept += len(listed)
        errors += sum(listed)
        if kept < needed:  # not even without an error would the test reject
            continue
        if binomial_cdf(errors, kept, limit) > 1 - confidence:
            break
        found = SelectiveRisk(
            threshold=short_threshold(lowest, groups[place][0] if place < len(groups) else None),
            limit=limit,
            confidence=confidence,
            kept=kept,
            wrong=errors,
            bound=upper_bound(errors, kept, confidence),
            labeled=len(probabilities),
        )
    return found


def short_threshold(probability: float, below: float | None) -> float:
    """The number with the fewest digits that is at most a probability, and above the next lower one: as a threshold, it
    keeps the same. It is less than .01 below the probability, so that it says nothing of others that weren't seen.

    below: The next lower probability; None if there is none.
    """
    probability = float(probability)  # numpy's floats are shown with their type
    least = max(-math.inf if below is None else below, probability - NEAR)
    exact = Decimal(repr(probability))
    for digits in range(MOST_DIGITS):
        short = float(exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_FLOOR))
        if short > least:
            return short
    return probability


def fewest(limit: float, confidence: float = CONFIDENCE) -> int:
    """The fewest verdicts, all of them right, that show a risk of at most `limit`."""
    return math.ceil(math.log(1 - confidence) / math.log1p(-limit))


def why_not_certified(probabilities: Sequence[float | None], wrong: Sequence[bool], limit: float) -> str:
    """Why no threshold is shown to keep to a limit, as a clause. Arguments are those of `certified_threshold`."""
    needed = fewest(limit)
    if len(probabilities) < needed:
        best = math.ceil(1000 * upper_bound(0, len(probabilities))) / 1000
        possible = f", which can show {best:.1%} at best" if probabilities else ""
        return f"{needed} right ones would, {len(probabilities)} are labeled{possible}"
    pairs = zip(probabilities, wrong, strict=True)
    known = ((p, is_wrong) for p, is_wrong in pairs if p is not None)
    surest = sorted(known, key=lambda pair: pair[0], reverse=True)[:needed]
    if len(surest) < needed:
        return f"{needed} right ones would, and {len(surest)} have a probability"
    errors = sum(is_wrong for _, is_wrong in surest)
    return f"of the {needed} with the highest probability, {errors} {'is' if errors == 1 else 'are'} judged wrongly"


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
