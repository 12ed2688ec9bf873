"""Samples without a score: which of them count in the tests of gates and comparisons."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from evalstone._core.front_ends import Setting
from evalstone.errors import ConfigError, invalid
from evalstone.results.columns import Entry

Missing: TypeAlias = Literal["worst", "failed", "ignore"]
MISSING: tuple[Missing, ...] = get_args(Missing)


def check_missing(missing: object) -> None:
    """Raise ConfigError unless it is one of `MISSING`."""
    if missing not in MISSING:
        raise ConfigError(invalid(Setting("missing"), f"{', '.join(MISSING[:-1])} or {MISSING[-1]}", missing))


def counts(entry: Entry, missing: Missing) -> bool:
    """Whether a sample counts in a test, with or without a score."""
    if entry.value is not None or missing == "worst":
        return True
    return missing == "failed" and not entry.undefined


def pair_counts(ours: Entry, theirs: Entry, missing: Missing) -> bool:
    """Whether a sample of both runs counts in a regression. If its score is undefined in both, it never does."""
    if ours.undefined and theirs.undefined:
        return False
    return counts(ours, missing) and counts(theirs, missing)
