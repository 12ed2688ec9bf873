"""How large the numbers may be that size a run: a list, a loop or a number of tasks.

They are checked before any work, because a typing error in one of them would fill the memory or never end.
"""

from __future__ import annotations

from evalstone._core.display import excerpt
from evalstone.errors import ConfigError

MOST_TRIALS = 10_000
"""The most answers per sample."""
MOST_CONCURRENCY = 10_000
"""The most calls at a time: a run has two tasks for each."""
MOST_OUTCOMES = 100_000_000
"""The most outcomes of a run, samples × trials × scorers: each takes 8 bytes before the run starts."""
MOST_TURNS = 10_000
"""The most user messages in a conversation."""
MOST_RETRIES = 1000
"""The most retries of a call."""
MOST_QUEUED = 10_000_000
"""The most samples that wait to be scored live."""
MOST_SCALE = 1e100
"""The largest upper end of a range of scores: sums of squares of larger ones would overflow."""


def whole(name: str, value: object, least: int, most: int) -> int:
    """A whole number within limits. Raises ConfigError, with the name and the limits, for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ConfigError(f"{name} must be a whole number from {least} to {most}, not {excerpt(value)}")
