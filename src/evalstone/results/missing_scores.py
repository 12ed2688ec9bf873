"""Samples without a score: which of them count in the tests of gates and comparisons."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias, get_args

from evalstone._core.front_ends import Setting
from evalstone.errors import ConfigError, invalid
from evalstone.results.columns import KINDS, Entry, OutcomeKind

Missing: TypeAlias = Literal["worst", "failed", "ignore"]
MISSING: tuple[Missing, ...] = get_args(Missing)


def check_missing(missing: object) -> None:
    """Raise ConfigError unless it is one of `MISSING`."""
    if missing not in MISSING:
        raise ConfigError(invalid(Setting("missing"), f"{', '.join(MISSING[:-1])} or {MISSING[-1]}", missing))


def kinds_that_count(missing: Missing) -> Collection[OutcomeKind]:
    """What a record may have for its sample to count in a test."""
    left_out = {"worst": (), "failed": ("undefined",), "ignore": [kind for kind in KINDS if kind != "score"]}[missing]
    return [kind for kind in KINDS if kind not in left_out]


def counts(entry: Entry, missing: Missing) -> bool:
    """Whether a sample counts in a test, with or without a score."""
    return entry.kind in kinds_that_count(missing)


def pair_counts(ours: Entry, theirs: Entry, missing: Missing) -> bool:
    """Whether a sample of both runs counts in a regression. If its score is undefined in both, it never does."""
    if ours.undefined and theirs.undefined:
        return False
    return counts(ours, missing) and counts(theirs, missing)
