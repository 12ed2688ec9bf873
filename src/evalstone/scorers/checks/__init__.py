"""Checks: small scorers in code that pass or fail. `from evalstone import checks; checks.contains("Paris")`.

Text checks compare the answer with `expected`, or without it with each sample's own reference. Tool checks look at the
calls in the assistant's messages, whatever became of each. A call in state "partial" was not made and does not count.
"""

from evalstone._core.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
