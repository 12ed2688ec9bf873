"""How a score is compared with a threshold, wherever there is one."""

from __future__ import annotations

TOLERANCE = 1e-9


def reaches(value: float, threshold: float, scale: float = 1.0, *, lower_is_better: bool = False) -> bool:
    """Whether a value reaches a threshold: is at least that, or at most where lower is better.

        value >= threshold - 1e-9 · scale,   or value <= threshold + 1e-9 · scale

    A score that misses the threshold by the rounding of floating-point numbers reaches it: 8 · 0.1 adds up to
    0.7999999999999999, which is 0.8.

    Args:
        value: The score, label or mean.
        threshold: In the unit of the value.
        scale: The upper end of the range of scores.
        lower_is_better: Whether the value must be at most the threshold.
    """
    missing = value - threshold if lower_is_better else threshold - value
    return missing <= TOLERANCE * scale
