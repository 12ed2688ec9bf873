"""Statistics of judged data: pure functions over sequences of floats.

What every table needs is imported at once and is pure Python; what needs numpy is imported by name:
`from evalstone.stats.comparison import compare_pairs`.
"""

from evalstone.stats.intervals import Interval, mean_interval, student_t_quantile
from evalstone.stats.missing_bounds import Bounds, bounds
from evalstone.stats.multiple_testing import benjamini_hochberg, holm
from evalstone.stats.proportions import wilson_interval

__all__ = [
    "Bounds",
    "Interval",
    "benjamini_hochberg",
    "bounds",
    "holm",
    "mean_interval",
    "student_t_quantile",
    "wilson_interval",
]
