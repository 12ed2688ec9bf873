"""Runs in blocks, which several processes or machines score: see docs/scale.md. Names are imported on first use."""

from evalstone._core.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
