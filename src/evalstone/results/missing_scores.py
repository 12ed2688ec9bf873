"""Samples without a score: which of them count in the tests of gates and comparisons."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from evalstone._core.front_ends import Setting
from evalstone.errors import ConfigError, invalid
from evalstone.results.summary import unanswered
from evalstone.types import Record, Score, Skipped

Missing: TypeAlias = Literal["worst", "failed", "ignore"]
MISSING: tuple[Missing, ...] = get_args(Missing)


def check_missing(missing: object) -> None:
    """Raise ConfigError unless it is one of `MISSING`."""
    if missing not in MISSING:
        raise ConfigError(
            invalid(Setting("missing"), f"{', '.join(MISSING[:-1])} or {MISSING[-1]}", missing, f"{missing!r}")
        )


def counts(record: Record, missing: Missing) -> bool:
    """Whether a sample counts in a test, with or without a score."""
    if isinstance(record.outcome, Score) or missing == "worst":
        return True
    return missing == "failed" and not undefined(record)


def undefined(record: Record) -> bool:
    """Whether a sample was skipped because its score is undefined, not because the judge gave no answer."""
    return isinstance(record.outcome, Skipped) and not unanswered(record)


def pair_counts(ours: Record, theirs: Record, missing: Missing) -> bool:
    """Whether a sample of both runs counts in a regression. If its score is undefined in both, it never does."""
    if undefined(ours) and undefined(theirs):
        return False
    return counts(ours, missing) and counts(theirs, missing)
