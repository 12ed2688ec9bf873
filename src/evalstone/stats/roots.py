"""Where functions that are nearly straight lines cross 0."""

from __future__ import annotations

from collections.abc import Callable


def root(
    f: Callable[[float], float], start: float, end: float, guess: float, *, at_start: float, close: float
) -> float:
    """Where a function that changes its sign once between start and end is 0; at_start: its value there, not 0.

    By secants from start and the guess on, or bisection where these lead out of the part that holds the root. The last
    secant starts where |f| is below `close`.
    """
    last, at_last = start, at_start
    upward = at_last < 0
    x, near, far = guess, start, end
    for _ in range(100):
        if not min(near, far) < x < max(near, far):
            x = (near + far) / 2
        at_x = f(x)
        if (at_x < 0) == upward:
            near = x
        else:
            far = x
        change, moved = at_x - at_last, x - last
        last, at_last = x, at_x
        x = x - at_x * moved / change if change else (near + far) / 2
        if abs(at_last) < close or abs(far - near) < 1e-13 * abs(end - start):
            break
    return x if min(near, far) <= x <= max(near, far) else last
