"""Evaluating, as it is asked for in a calibration or an audit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalstone.api import aevaluate
from evalstone.datasets import Dataset
from evalstone.judge_quality.settings import Asking
from evalstone.results.run import Run
from evalstone.scorers import Scorer


async def evaluated(
    dataset: Dataset, scorers: Sequence[Scorer], judge: Any, ledger: str | Path | None, asking: Asking
) -> Run:
    """The run of samples, scorers and a judge. Raises as `evaluate` does."""
    return await aevaluate(
        dataset,
        scorers,
        judge=judge,
        ledger=ledger,
        concurrency=asking.concurrency,
        use_cache=not asking.fresh,
        budget=asking.budget,
        stop=asking.stop,
        progress=asking.progress,
    )
