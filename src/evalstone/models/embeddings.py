"""Embedding models behind an OpenAI-compatible endpoint (`POST /embeddings`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_core import to_json

from evalstone._core.text import BYTES_PER_TOKEN
from evalstone.errors import ProviderError
from evalstone.models.catalog import split_model
from evalstone.models.model import Model
from evalstone.models.openai_compatible import Call, chat_usage, endpoint_of
from evalstone.models.provider import PROBE, Provider
from evalstone.models.replies import read_aside
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
        body = to_json(payload)
        call = Call("POST", "/embeddings", body)
        content = await self.endpoint.request(call, len(body) // BYTES_PER_TOKEN, self.model.count_request)
        data = await read_aside(len(content), self.endpoint.parsed, content)
        spent = usage, cost = chat_usage(data, self.model.price)
        self.endpoint.check_error(call, data, lambda: spent)
        try:
            return vectors_in(data.get("data"), len(texts)), usage, cost
        except ValueError as error:
            raise ProviderError(f"{self.name} sent no embeddings: {error}", usage=usage, cost=cost) from None
