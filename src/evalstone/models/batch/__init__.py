"""Batches: many requests in one submission, which are answered later."""

from __future__ import annotations

from pathlib import Path

from evalstone.errors import ConfigError
from evalstone.models.batch.base import SUPPORTED, BatchApi
from evalstone.models.catalog import split_model
from evalstone.models.model import LanguageModel


def batch_api(model: LanguageModel, files: str | Path | None = None) -> BatchApi:
    """Where the batches of a language model go. Raises ConfigError if there is no such place. Call `check` before using
    it.

    files: The folder of batches as files; None for the batch API of the model's provider.
    """
    if files is not None:
        from evalstone.models.batch.files import BatchFiles  # noqa: PLC0415 - loaded on demand

        return BatchFiles(model, files)
    provider, _ = split_model(model.model)
    if provider == "openai":
        from evalstone.models.batch.openai import OpenAIBatches  # noqa: PLC0415

        return OpenAIBatches(model)
    if provider == "anthropic" and model.base_url is None:
        from evalstone.models.batch.anthropic import AnthropicBatches  # noqa: PLC0415

        return AnthropicBatches(model)
    raise ConfigError(f"evalstone supports no batch API for {model.identity}; use {SUPPORTED}")
