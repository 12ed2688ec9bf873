"""Statistics of scores: pure functions over sequences of numbers.

What every run computes is imported here and is pure Python. Import the rest by module, as it needs numpy:
`from evalstone.stats.comparison import compare_pairs`.
"""

from evalstone.stats.intervals import Interval, mean_interval, missing_bounds, proportion_interval
from evalstone.stats.multiple_testing import adjust_p_values, benjamini_hochberg, holm

__all__ = [
    "Interval",
    "adjust_p_values",
    "benjamini_hochberg",
    "holm",
    "mean_interval",
    "missing_bounds",
    "proportion_interval",
]
