"""Embedding models behind an OpenAI-compatible endpoint (`POST /embeddings`)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING, Annotated, Any, cast

from evalstone.errors import ConfigError, JudgeDeclined, ProviderError
from evalstone.judges.model import ModelJudge
from evalstone.judges.providers.base import (
    PROBE,
    AccessRefused,
    ChatMessage,
    Completion,
    ModelSettings,
    Provider,
    request_timeout,
)
from evalstone.judges.providers.replies import read_aside
from evalstone.judges.settings import Range
from evalstone.questions.base import BYTES_PER_TOKEN, Question
from evalstone.questions.embeddings import CompareEmbeddings
from evalstone.questions.limits import DEFAULT_LIMITS, ContextLimits
from evalstone.types import Usage

if TYPE_CHECKING:
    from evalstone.judges.providers.openai_compatible import Endpoint

UNSUPPORTED = ("temperature", "seed", "max_tokens", "reasoning_effort", "language", "logprobs", "context_window")
"""Settings of language models that embedding models don't support."""


@dataclass(frozen=True)
class EmbeddingModel(ModelJudge):
    """An embedding model, named `provider/model`, such as openai/text-embedding-3-small.

    It answers one kind of question: how similar two texts are, as the cosine of their embeddings. Both texts go into
    one request. Cosines are stored in the ledger like any other answers, and their cost counts; vectors are not stored.

    Raises ConfigError for settings of `ModelJudge` that only apply to language models.
    """

    dimensions: Annotated[int | None, Range(1)] = None
    """The length of the vectors, for models that can shorten them. None uses the model's default."""

    def __post_init__(self) -> None:
        defaults = {name: getattr(ModelJudge, name) for name in UNSUPPORTED}
        if refused := [name for name, default in defaults.items() if getattr(self, name) != default]:
            raise ConfigError(f"{self.model}: an embedding model doesn't support {refused[0]}")
        super().__post_init__()

    @property
    def identity(self) -> str:
        shortened = "" if self.dimensions is None else f", dimensions={self.dimensions}"
        return f"embeddings({super().identity}{shortened})"

    @property
    def context_limits(self) -> ContextLimits:
        # The context window applies to each text, not to both together. The endpoint refuses longer texts.
        return DEFAULT_LIMITS

    def check(self) -> None:
        if not self.url:
            endpoint = "an OpenAI-compatible endpoint, such as openai/… or vllm/… with a base_url"
            raise ConfigError(f"{self.model} can't be used for embeddings; use a model behind {endpoint}")
        super().check()

    def check_kind(self) -> None:
        """Nothing: an embedding model doesn't chat."""

    def provider(self) -> Provider:
        self.check()
        from evalstone.judges.providers.openai_compatible import ChatCompletions  # noqa: PLC0415 - aiohttp

        return Embeddings(self, ChatCompletions(self, self.url).endpoint)


class Embeddings(Provider):
    """An embedding model behind an OpenAI-compatible endpoint."""

    def __init__(self, judge: EmbeddingModel, endpoint: Endpoint) -> None:
        self.judge, self.model = judge, judge.model.partition("/")[2]
        self.connection = self.endpoint = endpoint

    async def complete(
        self, messages: Sequence[ChatMessage], question: Question[Any], settings: ModelSettings
    ) -> Completion:
        from evalstone.judges.providers.openai_compatible import RequestTimeout  # noqa: PLC0415 - aiohttp

        if not isinstance(question, CompareEmbeddings):
            raise JudgeDeclined(f"{self.judge.identity} is an embedding model; it can't answer {question.kind}")
        try:
            (first, second), usage, cost = await self._embed([question.first, question.second])
        except RequestTimeout as error:
            raise request_timeout(error.host, self.judge.timeout, None, busy=error.busy) from None
        except AccessRefused as error:
            raise await self.endpoint.refused(self.model, error, self._probe) from None
        self.endpoint.accepted(self.model)
        return Completion(json.dumps({"cosine": cosine(first, second)}), usage, cost)

    async def _probe(self) -> tuple[Usage, float | None]:
        _, usage, cost = await self._embed([PROBE])
        return usage, cost

    async def _embed(self, texts: Sequence[str]) -> tuple[list[list[float]], Usage, float | None]:
        """The vectors of texts, with usage and cost. Raises ProviderError if the reply has no valid vectors."""
        from evalstone.judges.providers.openai_compatible import Call, chat_usage  # noqa: PLC0415 - aiohttp

        payload: dict[str, Any] = {"model": self.model, "input": list(texts)}
        if self.judge.dimensions is not None:
            payload["dimensions"] = self.judge.dimensions
        body = json.dumps(payload).encode()
        call = Call("POST", "/embeddings", body)
        content = await self.endpoint.request(call, len(body) // BYTES_PER_TOKEN, self.judge.count_request)
        data = await read_aside(len(content), self.endpoint.parsed, content)
        spent = usage, cost = chat_usage(data, self.judge.price)
        self.endpoint.check_error(call, data, lambda: spent)
        try:
            return vectors_in(data.get("data"), len(texts)), usage, cost
        except ValueError as error:
            raise ProviderError(f"{self.model} sent no embeddings: {error}", usage=usage, cost=cost) from None


def vectors_in(data: object, count: int) -> list[list[float]]:
    """The vectors in a reply, in the order of the texts. Raises ValueError if they are not all there."""
    items = cast("list[Any]", data) if isinstance(data, list) else []
    if len(items) != count or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"{len(items)} of {count} vectors")
    if all("index" in item for item in items):
        by_index = {item["index"]: item for item in items if isinstance(item["index"], int)}
        if sorted(by_index) != list(range(count)):
            raise ValueError("the vectors have wrong indices")
        items = [by_index[index] for index in range(count)]
    return as_vectors([item.get("embedding") for item in items], count)


def as_vectors(value: Any, count: int) -> list[list[float]]:
    """A sequence of sequences, such as an array, as vectors of equal length. Raises ValueError for anything else."""
    try:
        vectors = [[float(number) for number in vector] for vector in value]
    except (TypeError, ValueError, OverflowError):
        raise ValueError("a vector is not a list of numbers") from None
    if len(vectors) != count:
        raise ValueError(f"{len(vectors)} vectors for {count} texts")
    if len({len(vector) for vector in vectors}) > 1 or not vectors[0]:
        raise ValueError(f"the vectors have different or zero lengths: {', '.join(map(str, map(len, vectors)))}")
    for vector in vectors:
        if not all(map(math.isfinite, vector)) or not any(vector):
            raise ValueError("a vector is all zeros, or has numbers that are not finite")
    return vectors


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """The cosine of the angle between two vectors, in [-1, 1]; exactly 1 for equal vectors."""
    if first == second:
        return 1.0
    first, second = _scaled(first), _scaled(second)
    lengths = math.sqrt(math.fsum(map(mul, first, first))) * math.sqrt(math.fsum(map(mul, second, second)))
    return max(-1.0, min(1.0, math.fsum(map(mul, first, second)) / lengths))


def _scaled(vector: Sequence[float]) -> list[float]:
    """The vector divided by its largest absolute value, so that no square overflows or underflows."""
    largest = max(map(abs, vector))
    return [number / largest for number in vector]
