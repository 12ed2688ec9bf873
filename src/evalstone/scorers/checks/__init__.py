"""Checks: small scorers in code that pass or fail. `from evalstone import checks; checks.contains("Paris")`.

Text checks compare the answer with `expected`, or else with each sample's own reference. Tool checks look at all calls
in the assistant's messages, failed ones too. A call in state "partial" was never made and doesn't count.
"""

from evalstone._core.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
