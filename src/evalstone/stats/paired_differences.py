"""The difference of two scores of a sample: b - a, and what it may be if a score is missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evalstone.errors import DataError
from evalstone.stats._arrays import Floats, Mask, Positions, column, differ, ends_at, has_value, same_length, values_at
from evalstone.stats.intervals import Ends, ends_of, exceeds
from evalstone.stats.packed_scores import PackedEnds, PackedScores, packed

_AT_ONCE = 65_536
"""How many differences are compared with rounding errors at once, as what that needs of each is more than a number."""


def differences(a: Floats, b: Floats) -> Floats:
    """b - a, and 0 if they differ by rounding error only, as 0.1 + 0.2 and 0.3 do."""
    d = b - a
    for start in range(0, d.size, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        rounding = 1e-12 * np.maximum(np.abs(a[part]), np.abs(b[part]))
        d[part][np.abs(d[part]) <= rounding] = 0.0
    return d


def known_differences(a: Sequence[float | None], b: Sequence[float | None], known: Mask, scale: float) -> Floats:
    """The differences of the pairs that have both scores, which are in [0, scale], but for rounding errors."""
    ours, theirs, d = np.asarray(a, np.float64), np.asarray(b, np.float64), np.empty(int(known.sum()))
    at = 0
    for start in range(0, known.size, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        both = (np.clip(x[part][known[part]], 0.0, scale) for x in (ours, theirs))
        own = differences(*both)
        d[at : at + own.size] = own
        at += own.size
    return d


def possible_difference(a: float | None, b: float | None, *, scale: float, reach: float) -> Ends:
    """The lowest and the highest possible b - a of a sample. They differ if a score is missing (None).

    Args:
        a: The baseline's score, in [0, scale].
        b: The candidate's score.
        scale: The upper end of the range of scores.
        reach: The largest possible |b - a|.

    Raises:
        DataError: A score is outside [0, scale], or they differ by more than `reach`.
    """
    (low_a, high_a), (low_b, high_b) = (ends_of(x, scale) for x in (a, b))
    for name, value in (("a", a), ("b", b)):
        if value is not None and not 0 <= value <= scale:
            raise DataError(f"{name}: {value} is not a number in [0, {scale:g}]")
    lowest, highest = differences(np.array([high_a, low_a]), np.array([low_b, high_b])).tolist()
    if a is not None and b is not None and exceeds(lowest, reach):
        raise DataError(f"max_change is {reach:g}, but a sample changes by {abs(lowest):.4g}, from {a:.4g} to {b:.4g}")
    return max(-reach, min(reach, lowest)), max(-reach, min(reach, highest))


def possible_differences(
    a: Sequence[float | None],
    b: Sequence[float | None],
    ends: tuple[Sequence[Ends], Sequence[Ends]] | None = None,
    *,
    scale: float,
    reach: float,
) -> tuple[Sequence[float | None], Sequence[Ends] | None]:
    """The difference of each pair, None without both scores, and its lowest and highest possible value; None instead of
    these if no score is missing.

    reach: The largest possible difference. The other arguments and errors are those of `compare_pairs`.
    """
    same_length(a=a, b=b)
    known = known_pairs(a, b)
    for name, x in (("a", a), ("b", b)):
        column(name, values_at(x, known), 0.0, scale)
    d = known_differences(a, b, known, scale)
    check_changes(d, known, reach)
    if ends is None and known.all():
        return packed(d), None
    every = np.full(known.size, np.nan)
    every[known] = d
    del d
    places, of_these = _open_differences(a, b, known, ends, scale, reach)
    both = PackedEnds(every, places, np.stack(of_these, 1))
    if isinstance(packed(every), PackedScores):
        return PackedScores(every), both
    return [*PackedScores(every)], [*both]


def lowest_and_highest(
    a: Sequence[float | None],
    b: Sequence[float | None],
    d: Floats,
    known: Mask,
    ends: tuple[Sequence[Ends], Sequence[Ends]] | None,
    scale: float,
    reach: float,
) -> tuple[Floats, Floats]:
    """The lowest and the highest possible difference of each pair."""
    places, of_these = _open_differences(a, b, known, ends, scale, reach)
    if not places.size:
        return d, d
    lowest = np.empty(known.size)
    lowest[known] = d
    highest = lowest.copy()
    lowest[places], highest[places] = of_these
    return lowest, highest


def _open_differences(
    a: Sequence[float | None],
    b: Sequence[float | None],
    known: Mask,
    ends: tuple[Sequence[Ends], Sequence[Ends]] | None,
    scale: float,
    reach: float,
) -> tuple[Positions, tuple[Floats, Floats]]:
    """The places of the pairs of which a score is missing, at least in part, and their lowest and highest possible
    differences."""
    are_open = ~known
    for of in ends or ():
        are_open |= differ(of)
    places = np.flatnonzero(are_open)
    if ends is None:
        some = [np.asarray(x, np.float64)[places] for x in (a, b)]
        (low_a, high_a), (low_b, high_b) = ([np.where(np.isnan(x), end, x) for end in (0.0, scale)] for x in some)
    else:
        (low_a, high_a), (low_b, high_b) = (ends_at(of, places) for of in ends)
    lowest, highest = (np.clip(differences(x, y), -reach, reach) for x, y in ((high_a, low_b), (low_a, high_b)))
    return places, (lowest, highest)


def check_changes(d: Floats, known: Mask, reach: float) -> None:
    """Raise DataError, with its position, for a difference beyond the largest possible one."""
    largest = float(np.max(np.abs(d), initial=0.0))
    if exceeds(largest, reach):
        first = next(place for place, change in enumerate(d.tolist()) if exceeds(change, reach))
        place = np.flatnonzero(known)[first]
        raise DataError(f"max_change is {reach:g}, but sample {place} changes by {abs(d[first]):g}")


def known_pairs(a: Sequence[float | None], b: Sequence[float | None]) -> Mask:
    """Which pairs have both scores."""
    return has_value(a) & has_value(b)
