"""Providers' batch APIs: many questions given at once, answered within a day at half the price.

`batch_api(judge)` finds the one that a judge can be asked through.
"""

from __future__ import annotations

from evalstone.errors import ConfigError
from evalstone.judges.base import Judge
from evalstone.judges.model import ModelJudge
from evalstone.judges.providers.base import split_model
from evalstone.judges.providers.batch.base import BatchApi, BatchState, Finding, Result

__all__ = ["BatchApi", "BatchState", "Finding", "Result", "batch_api"]

OFFERED = "models of openai/… and anthropic/…"


def batch_api(judge: Judge) -> BatchApi:
    """The batch API of a judge, not checked yet. Raises ConfigError for a judge without one."""
    if not isinstance(judge, ModelJudge):
        raise ConfigError(f"the judge {judge.identity} has no batch API; {OFFERED} have one")
    provider, _ = split_model(judge.model)
    if provider == "openai":
        from evalstone.judges.providers.batch.openai import OpenAIBatches  # noqa: PLC0415 - only the one that is used is loaded

        return OpenAIBatches(judge)
    if provider == "anthropic" and judge.base_url is None:
        from evalstone.judges.providers.batch.anthropic import AnthropicBatches  # noqa: PLC0415

        return AnthropicBatches(judge)
    raise ConfigError(f"{judge.identity} has no batch API that evalstone knows; {OFFERED} have one")
