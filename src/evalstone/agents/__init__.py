"""What agents did: their messages, tool calls, trajectories and traces. Each is imported on first use."""

from evalstone._core.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
