"""How large the numbers may be that size a run: a list, a loop or a number of tasks.

They are checked before any work, because a typing error in one of them would fill the memory or never end.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from evalstone._core.declarations import Range

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

Limit: TypeAlias = Annotated[int, Range(1)]
"""How many samples are used, from the first."""
Trials: TypeAlias = Annotated[int, Range(1, MOST_TRIALS)]
Concurrency: TypeAlias = Annotated[int, Range(1, MOST_CONCURRENCY)]
Queue: TypeAlias = Annotated[int, Range(1, MOST_QUEUED)]
MOST_EXAMPLES = 16
"""The most worked examples that a judge is shown."""
