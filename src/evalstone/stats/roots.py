"""Root finding for nearly linear functions."""

from __future__ import annotations

from collections.abc import Callable


def root(
    f: Callable[[float], float], start: float, end: float, guess: float, *, at_start: float, close: float
) -> float:
    """The root of a function with exactly one change of sign between start and end.

    The secant method from start and guess, with bisection whenever a step leaves the bracket. After the first point
    with |f| below `close`, it takes one more secant step. at_start is f(start), which must not be 0.
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
        change, step = at_x - at_last, x - last
        last, at_last = x, at_x
        x = x - at_x * step / change if change else (near + far) / 2
        if abs(at_last) < close or abs(far - near) < 1e-13 * abs(end - start):
            break
    return x if min(near, far) <= x <= max(near, far) else last
