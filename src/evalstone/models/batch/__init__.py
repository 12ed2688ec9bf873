"""Batch APIs: many requests in one submission, answered within a day at half the price."""

from __future__ import annotations

from evalstone.errors import ConfigError
from evalstone.models.batch.base import SUPPORTED, BatchApi
from evalstone.models.catalog import split_model
from evalstone.models.model import LanguageModel


def batch_api(model: LanguageModel) -> BatchApi:
    """The batch API of a language model. Raises ConfigError if it has none. Call `check` before using it."""
    provider, _ = split_model(model.model)
    if provider == "openai":
        from evalstone.models.batch.openai import OpenAIBatches  # noqa: PLC0415 - loaded on demand

        return OpenAIBatches(model)
    if provider == "anthropic" and model.base_url is None:
        from evalstone.models.batch.anthropic import AnthropicBatches  # noqa: PLC0415

        return AnthropicBatches(model)
    raise ConfigError(f"evalstone supports no batch API for {model.identity}; use {SUPPORTED}")
