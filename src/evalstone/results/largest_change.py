"""The largest possible change of a sample's score, as people declare it: what it may be, and whether one is larger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from evalstone._core.front_ends import Setting
from evalstone.errors import DataError
from evalstone.results.summary import ScorerInfo, values_by_scorer
from evalstone.stats.intervals import check_number, check_reach, exceeds
from evalstone.types import Note, note

BySetting: TypeAlias = float | Mapping[str, float] | None
"""A number for all scorers, or one by scorer (title, signature or name)."""
LARGEST_CHANGE = "max_change"
MARGIN = "margin"


def reaches_by_scorer(
    setting: str,
    value: BySetting,
    scorers: Iterable[ScorerInfo],
    find: Callable[[str], ScorerInfo],
    titles: Mapping[str, str],
) -> dict[ScorerInfo, float]:
    """The largest change, or the margin, of each scorer that has one.

    Args:
        setting: `LARGEST_CHANGE` or `MARGIN`.
        value: what was set; None is none.
        scorers: those that one number for all is for.
        find: the scorer that a name refers to.
        titles: the scorers' titles by signature.

    Raises:
        ConfigError: a scorer is unknown or named twice, or a value is no number in (0, scale].
    """
    if value is None:
        return {}
    if isinstance(value, Mapping):
        values = values_by_scorer(value, find, Setting(setting))
    else:
        values = dict.fromkeys(scorers, value)
    for info, number in values.items():
        of_scorer = Setting(setting), f" of {titles[info.signature]}"
        check_number(of_scorer, number)
        check_reach(of_scorer, number, info.scale)
    return {info: float(number) for info, number in values.items()}


def check_changes(
    title: str, changes: Iterable[tuple[str, float, float]], most: float | None, *, times: int = 1
) -> None:
    """Raise DataError, naming the sample, if one changes by more than so many times the declared largest change.

    times: 2 for two runs that both differ from the baseline.
    """
    if most is not None and (larger := larger_change(changes, times * most)) is not None:
        sample, before, after = larger
        by = f"{abs(after - before):.4g}"
        differs = f"changes by {by}" if times == 1 else f"differs by {by} between two runs"
        raise DataError(
            Setting(LARGEST_CHANGE, most),
            f", but {title} of sample {sample!r:.80} {differs}, from {before:.4g} to {after:.4g}: leave it out, "
            "because one that is fitted to the scores makes p-values too small",
        )


def larger_change(changes: Iterable[tuple[str, float, float]], most: float) -> tuple[str, float, float] | None:
    """The first sample that changes by more than the declared largest change, with both scores; None if none does."""
    return next((each for each in changes if exceeds(each[2] - each[1], most)), None)


def larger_note(change: float, sample: str, before: float, after: float) -> Note:
    """The note on a sample that changes by more than declared."""
    return note("larger_change", "warning", change=change, sample=sample, before=before, after=after)
