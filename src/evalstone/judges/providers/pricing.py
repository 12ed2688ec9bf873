"""What an answer costs and how much a model takes in, as the genai-prices package has it; nothing is downloaded."""

from __future__ import annotations

import functools
from collections.abc import Callable

from evalstone.types import Usage

PER_TOKEN = 1e-6
SMALLEST_TIER = 16_000
BATCH_PRICE = 0.5
"""What a batch costs, as a share of the price of the same requests sent one by one; OpenAI and Anthropic say so."""


def cost_of(usage: Usage, *, provider: str, model: str, prices: tuple[float, float] | None = None) -> float | None:
    """US dollars for one reply; None when the price of the model is not known.

    prices: US dollars for a million input and output tokens, in place of the listed ones.
    """
    if prices is not None:
        return (usage.input * prices[0] + usage.output * prices[1]) * PER_TOKEN
    if usage.input < SMALLEST_TIER:
        rates = _rates(provider, model)
        if rates is None:
            return None
        fresh, cached, output = rates
        return (usage.input - usage.cached) * fresh + usage.cached * cached + usage.output * output
    return _listed(provider, model)(usage)


@functools.cache
def context_window(provider: str, model: str) -> int | None:
    """How many tokens a model takes in, question and reply together; None when it is not known."""
    from genai_prices import data_snapshot  # noqa: PLC0415 - a third of a second, and only paid judges need it

    try:
        return data_snapshot.get_snapshot().find_provider_model(model, None, provider, None)[1].context_window
    except LookupError:
        return None


def at_batch_price(cost: float | None) -> float | None:
    """What requests of this price cost as a batch."""
    return None if cost is None else cost * BATCH_PRICE


@functools.cache
def _rates(provider: str, model: str) -> tuple[float, float, float] | None:
    """Dollars a token for fresh input, cached input and output, below the smallest tier that prices change at."""
    priced = _listed(provider, model)
    costs = [priced(Usage(1000, 0)), priced(Usage(1000, 0, 1000)), priced(Usage(0, 1000))]
    fresh, cached, output = (None if cost is None else cost / 1000 for cost in costs)
    if fresh is None or cached is None or output is None:
        return None
    return fresh, cached, output


@functools.cache
def _listed(provider: str, model: str) -> Callable[[Usage], float | None]:
    import genai_prices  # noqa: PLC0415 - a third of a second, and only paid judges need it

    def priced(usage: Usage) -> float | None:
        tokens = genai_prices.Usage(
            input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=usage.cached
        )
        try:
            return float(genai_prices.calc_price(tokens, model_ref=model, provider_id=provider).total_price)
        except LookupError:
            return None

    return priced
