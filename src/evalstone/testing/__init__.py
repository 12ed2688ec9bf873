"""Scores in tests: the pytest plugin `evalstone`. See docs/pytest.md."""

from evalstone._core.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
