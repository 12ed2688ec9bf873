"""Prices and context windows of models, from the genai-prices package. Nothing is downloaded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evalstone.models.catalog import PROVIDERS, info_of
from evalstone.types import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

SMALLEST_TIER = 16_000
"""Input tokens below which prices per token are constant."""
BATCH_PRICE = 0.5
"""The price of a batch, as a share of the regular price, at OpenAI and Anthropic."""


def _is_listed(provider: str) -> bool:
    """Whether genai-prices may list a provider. It doesn't list self-hosted servers, may take their names for those of
    others, and takes a third of a second to import."""
    info = info_of(provider)
    return bool(info.key or not info.base_url)


def cost_at(prices: tuple[float, float], usage: Usage) -> float:
    """The cost of one reply in US dollars, at these prices per million input and output tokens."""
    return (usage.input * prices[0] + usage.output * prices[1]) * 1e-6


def cost_of(usage: Usage, provider: str, model: str) -> float | None:
    """The cost of one reply in US dollars; None if the model's price is unknown."""
    if not _is_listed(provider):
        return None
    if usage.input < SMALLEST_TIER:
        rates = _rates(provider, model)
        if rates is None:
            return None
        uncached, cached, output = rates
        return (usage.input - usage.cached) * uncached + usage.cached * cached + usage.output * output
    return _listed(provider, model)(usage)


@functools.cache
def cache_write_price(provider: str, model: str) -> float:
    """US dollars that a token costs more if the provider writes it to its prompt cache, for a model whose price is
    known; 0 if nothing is listed for that."""
    import genai_prices  # noqa: PLC0415 - a third of a second, and only paid models need it

    plain, written = (
        genai_prices.Usage(input_tokens=1000),
        genai_prices.Usage(input_tokens=1000, cache_write_tokens=1000),
    )
    costs = [genai_prices.calc_price(it, model_ref=model, provider_id=provider).total_price for it in (plain, written)]
    return max(0.0, float(costs[1] - costs[0]) / 1000)  # some list only what is added


@functools.cache
def context_window(provider: str, model: str) -> int | None:
    """The context window of a model in tokens, including the reply; None if unknown."""
    info = _listed_model(provider, model)
    return None if info is None else info.context_window


@functools.cache
def writes_no_text(provider: str, model: str) -> bool:
    """Whether genai-prices lists a price for what a model reads, but none for what it writes.

    These are embedding models, decision models, transcription and speech. Models without any price may be free.
    """
    info = _listed_model(provider, model)
    prices = {} if info is None else vars(info.get_prices(datetime.now(UTC)))
    listed = [name for name, price in prices.items() if price is not None and not name.startswith("_")]
    return bool(listed) and not any(name.startswith(("output", "requests")) for name in listed)


def only_chats(provider: str, model: str) -> bool:
    """Whether genai-prices lists models of this provider, but not this one, which writes text at another provider."""
    if not listed_models(provider, writing=False) or _listed_model(provider, model) is not None:
        return False
    others = [name for name in PROVIDERS if name != provider]
    return any(_listed_model(other, model) is not None and not writes_no_text(other, model) for other in others)


def listed_models(provider: str, *, writing: bool = True) -> list[str]:
    """The models of a provider that genai-prices lists. writing: whether those that write no text are left out."""
    if not _is_listed(provider):
        return []
    from genai_prices import data_snapshot  # noqa: PLC0415 - a third of a second, and only paid models need it

    try:
        models = data_snapshot.get_snapshot().find_provider(None, provider, None).models
    except LookupError:
        return []
    return [model.id for model in models if not (model.deprecated or (writing and writes_no_text(provider, model.id)))]


def _listed_model(provider: str, model: str) -> ModelInfo | None:
    """What genai-prices lists of a model."""
    if not _is_listed(provider):
        return None
    from genai_prices import data_snapshot  # noqa: PLC0415 - a third of a second, and only paid models need it

    try:
        return data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)[1]
    except LookupError:
        return None


def at_batch_price(cost: float | None) -> float | None:
    """The cost of a request as a part of a batch."""
    return None if cost is None else cost * BATCH_PRICE


@functools.cache
def _rates(provider: str, model: str) -> tuple[float, float, float] | None:
    """US dollars per uncached input, cached input and output token, for requests below the smallest price tier."""
    price = _listed(provider, model)
    costs = [price(Usage(1000, 0)), price(Usage(1000, 0, 1000)), price(Usage(0, 1000))]
    uncached, cached, output = (None if cost is None else cost / 1000 for cost in costs)
    if uncached is None or cached is None or output is None:
        return None
    return uncached, cached, output


@functools.cache
def _listed(provider: str, model: str) -> Callable[[Usage], float | None]:
    """The price function of a model: from usage to US dollars, or to None if genai-prices doesn't list the model."""
    import genai_prices  # noqa: PLC0415 - a third of a second, and only paid models need it

    def price(usage: Usage) -> float | None:
        tokens = genai_prices.Usage(
            input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cached
        )
        try:
            return float(genai_prices.calc_price(tokens, model_ref=model, provider_id=provider).total_price)
        except LookupError:
            return None

    return price
