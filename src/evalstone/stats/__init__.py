"""Statistics of judged data: pure functions."""

from evalstone.stats.intervals import Interval, mean_interval, student_t_quantile

__all__ = ["Interval", "mean_interval", "student_t_quantile"]
