"""Embedding models behind an OpenAI-compatible endpoint (`POST /embeddings`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from evalstone.errors import ProviderError
from evalstone.models.catalog import split_model
from evalstone.models.chat_completions import chat_spent, chat_usage
from evalstone.models.endpoint import endpoint_of, json_call
from evalstone.models.model import Model
from evalstone.models.provider import PROBE, Provider
from evalstone.models.vectors import vectors_in
from evalstone.types import Usage


class Embeddings(Provider):
    """An embedding model behind an OpenAI-compatible endpoint.

    dimensions: the length of the vectors; None is the model's default.
    """

    def __init__(self, model: Model[Any], dimensions: int | None = None) -> None:
        self.model, self.endpoint, self.dimensions = model, endpoint_of(model), dimensions
        super().__init__(self.endpoint, split_model(model.model)[1], model.timeout)

    async def embed(self, texts: Sequence[str]) -> tuple[list[list[float]], Usage, float | None]:
        """The vectors of texts in one request, with usage and cost.

        Raises:
            ProviderError: The reply has no valid vectors.
            EvalstoneError: What `sent` raises.
        """
        return await self.sent(self._embed(texts))

    async def probe(self) -> tuple[Usage, float | None]:
        _, usage, cost = await self._embed([PROBE])
        return usage, cost

    async def _embed(self, texts: Sequence[str]) -> tuple[list[list[float]], Usage, float | None]:
        payload: dict[str, Any] = {"model": self.name, "input": list(texts)}
        if self.dimensions is not None:
            payload["dimensions"] = self.dimensions
        call = json_call("/embeddings", payload)
        content = await self.endpoint.request(call, self.model.count_request)
        data = await self.endpoint.read(call, content, partial(chat_spent, price=self.model.price))
        usage, cost = chat_usage(data, self.model.price)
        try:
            return vectors_in(data.get("data"), len(texts)), usage, cost
        except ValueError as error:
            raise ProviderError(f"{self.name} sent no embeddings: {error}", usage=usage, cost=cost) from None
