"""The engine: works a plan off, once, concurrently, and durably."""

from evalstone.engine.batch import Batch
from evalstone.engine.estimate import Estimate, estimate
from evalstone.engine.local import execute
from evalstone.engine.plan import ALL_SCORERS, Plan, scorers_from
from evalstone.engine.run import Run
from evalstone.engine.summary import ScorerCard, ScorerSummary

__all__ = [
    "ALL_SCORERS",
    "Batch",
    "Estimate",
    "Plan",
    "Run",
    "ScorerCard",
    "ScorerSummary",
    "estimate",
    "execute",
    "scorers_from",
]
