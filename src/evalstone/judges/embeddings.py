"""Embedding models as judges of similarity."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from evalstone._core.declarations import Range
from evalstone._core.text import BYTES_PER_TOKEN
from evalstone.errors import ConfigError, JudgeDeclined
from evalstone.judges.base import Judge
from evalstone.judges.model import converse
from evalstone.models.catalog import CHAT
from evalstone.models.model import Model
from evalstone.models.provider import Completion
from evalstone.models.vectors import cosine
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.embeddings import CompareEmbeddings
from evalstone.types import Usage

if TYPE_CHECKING:
    from evalstone.models.embeddings import Embeddings

A = TypeVar("A")


class EmbeddingModel(Model["Embeddings"], Judge):
    """An embedding model, named `provider/model`, such as openai/text-embedding-3-small.

    It answers one kind of question: how similar two texts are, as the cosine of their embeddings. Both texts go into
    one request. Cosines are stored in the ledger like any other answers, and their cost counts; vectors are not stored.
    The endpoint refuses texts that are too long.

    Raises ConfigError for an unknown provider, and for a setting of the wrong type or out of range. `check` raises it
    for a provider without embeddings.
    """

    dimensions: Annotated[int | None, Range(1)] = None
    """The length of the vectors, for models that can shorten them. None uses the model's default."""

    identity_settings: ClassVar[tuple[str, ...]] = ("dimensions",)

    @property
    def identity(self) -> str:
        return f"embeddings({super().identity})"

    def check(self) -> None:
        if self.protocol != CHAT:
            endpoint = "an OpenAI-compatible endpoint, such as openai/… or vllm/… with a base_url"
            raise ConfigError(f"{self.model} can't be used for embeddings; use a model behind {endpoint}")
        super().check()

    def estimated_usage(self, question: Question[Any], size: int | None = None) -> Usage:
        return Usage(sum(len(text.encode()) for text in self._texts(question)) // BYTES_PER_TOKEN, 0, 0, 1)

    def provider(self) -> Embeddings:
        self.check()
        from evalstone.models.embeddings import Embeddings  # noqa: PLC0415 - aiohttp

        return Embeddings(self, self.dimensions)

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        texts = self._texts(question)
        async with self.opened() as opened:

            async def complete(*_: object) -> Completion:
                (first, second), usage, cost = await opened.provider.embed(texts)
                return Completion(json.dumps({"cosine": cosine(first, second)}), usage, cost)

            return await converse(question, complete, judge=opened.identity, total_timeout=self.total_timeout)

    def _texts(self, question: Question[Any]) -> Sequence[str]:
        """The texts to compare. Raises JudgeDeclined for any other question."""
        if not isinstance(question, CompareEmbeddings):
            raise JudgeDeclined(f"{self.identity} is an embedding model; it can't answer {question.kind}")
        return question.first, question.second
