"""The first few of many numbers in ascending order, without sorting the others."""

from __future__ import annotations

import numpy as np

from evalstone.stats._arrays import Floats, Positions


def smallest_places(values: Floats, most: int) -> Positions:
    """The places of the smallest values, smallest first, and of equal ones the first place first. NaN comes last."""
    if most == 0:
        return np.empty(0, np.intp)
    if values.size > most:
        last = np.partition(values, most - 1)[most - 1]
        below = np.flatnonzero(values < last) if last == last else np.flatnonzero(~np.isnan(values))
        ties = np.flatnonzero(values == last) if last == last else np.flatnonzero(np.isnan(values))
        places = np.concatenate([below, ties[: most - below.size]])
    else:
        places = np.arange(values.size)
    return places[np.argsort(values[places], kind="stable")]
