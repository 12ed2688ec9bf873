"""Language models and their providers. Each is imported when it is first used."""

from evalstone._core.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
