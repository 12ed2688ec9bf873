"""Statistics of scores: pure functions of sequences of numbers.

The names exported here are pure Python and are all that a run needs. The other modules need numpy; import them by
module: `from evalstone.stats.comparison import compare_pairs`.
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
