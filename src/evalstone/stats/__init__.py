"""Statistics of scores: pure functions of sequences of numbers. Each is imported on first
use, because some need numpy."""

from evalstone._core.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
