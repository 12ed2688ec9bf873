"""Scorers of retrieval and of answers written from retrieved passages, and what several of them share."""

from __future__ import annotations

from collections.abc import Sequence

from evalstone.errors import ConfigError
from evalstone.questions.claims import ClaimVerdict
from evalstone.scorers.base import share
from evalstone.scorers.reasons import listed
from evalstone.scorers.sources import ContextScorer


def require_passages(scorer: ContextScorer) -> None:
    """Raise ConfigError for an empty `context`, for a scorer that divides by the number of passages."""
    if scorer.context is not None and not scorer.context:
        raise ConfigError(f"{scorer.name}: context is an empty list; leave it out to use the sample's passages")


def passage_numbers(label: str, passages: Sequence[tuple[int, bool]]) -> str:
    """A reason that lists the passages to which the label ("useful", "used") applies, and the others, by number."""
    labeled, others = ([str(number) for number, value in passages if value is flag] for flag in (True, False))
    reason = f"{label}: passage {', '.join(labeled)}" if labeled else f"no passage was {label}"
    return reason + (f"; not {label}: {', '.join(others)}." if labeled and others else ".")


def supported_share(verdicts: Sequence[ClaimVerdict]) -> float:
    """supported / all, for at least one verdict."""
    return share([v.verdict == "supported" for v in verdicts])


def unsupported_claims(verdicts: Sequence[ClaimVerdict]) -> str:
    """The part of a reason that lists contradicted claims, with the passages that contradict them, and claims that are
    in no passage. Empty if all claims are supported."""
    reason = ""
    if wrong := [v for v in verdicts if v.verdict == "contradicted"]:
        cited = [f" (by passage {', '.join(map(str, v.passages))})" if v.passages else "" for v in wrong]
        reason += f"; contradicted: {listed([v.claim for v in wrong], notes=cited)}"
    if absent := [v.claim for v in verdicts if v.verdict == "not_mentioned"]:
        reason += f"; in no passage: {listed(absent)}"
    return reason
