from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, fields
from typing import Annotated, Any, ClassVar, Protocol, cast

from evalstone._core import sync
from evalstone._core.addresses import find, is_address, of_kind
from evalstone._core.declarations import Rule
from evalstone._core.display import excerpt
from evalstone._core.guards import is_mapping
from evalstone.errors import ConfigError, OutcomeError, invalid
from evalstone.judges.base import Judge
from evalstone.judges.embeddings import EmbeddingModel
from evalstone.judges.parse import settings_of
from evalstone.models.vectors import as_vectors, cosine
from evalstone.questions.base import Ask, Question
from evalstone.questions.embeddings import CompareEmbeddings, Cosine
from evalstone.scorers.sources import TextSource
from evalstone.types import Score


class Embedder(Protocol):
    """A function, `def` or `async def`, that returns a vector for each text."""

    def __call__(self, texts: Sequence[str], /) -> Sequence[Sequence[float]] | Awaitable[Sequence[Sequence[float]]]:
        """Return one vector for each text, all of one length: lists, or the rows of an array."""
        ...


def _is_own(value: object) -> bool:
    return callable(value) and not isinstance(value, Judge)


def _is_embedder(value: object) -> bool:
    return isinstance(value, str | Mapping | EmbeddingModel) or _is_own(value)


_EMBEDDER = Rule(
    "a model such as openai/text-embedding-3-small, an EmbeddingModel or a function of texts", _is_embedder
)


class EmbeddingSimilarity(TextSource, kw_only=False):
    """How close the answer and the reference are in meaning, according to an embedding model.

        embedding similarity = max(0, cosine of the embeddings of the answer and the reference)
        range [0, scale], higher is better

    The order of the texts doesn't matter, and equal texts score 1. Scores from different models can't be compared: with
    many models, unrelated texts score 0.5 or more, and a negation hardly lowers the score. Undefined when either text
    is blank. One request to the embedding model, stored in the ledger, or none for a function; no judge call.
    Source: ragas (semantic similarity) and others.

    Attributes:
        embedder: The model: "openai/text-embedding-3-small", a table with `model` and settings such as `base_url`, an
            EmbeddingModel, or a function that takes a list of texts and returns a vector for each, which "my_app:embed"
            names too.
    """

    name = "embedding_similarity"
    questions: ClassVar[tuple[type[Question[Any]], ...]] = ()  # pyright: ignore[reportIncompatibleVariableOverride]
    interpretation = (
        (0.9, "nearly the same meaning"),
        (0.7, "the same subject"),
        (0.4, "little in common, or with some models nothing"),
        (0.0, "nothing in common"),
    )
    advice = "Before you set a threshold, check what unrelated texts score with your model."

    embedder: Annotated[str | Mapping[str, Any] | EmbeddingModel | Embedder, _EMBEDDER]
    _: KW_ONLY

    def __post_init__(self) -> None:
        super().__post_init__()
        embedder: object = self.embedder
        if isinstance(embedder, str):
            embedder = _named(embedder)
        elif is_mapping(embedder):
            embedder = _from_table(embedder)
        object.__setattr__(self, "embedder", embedder)
        if isinstance(embedder, EmbeddingModel):
            object.__setattr__(self, "questions", (CompareEmbeddings,))

    @property
    def judges(self) -> tuple[Judge, ...]:
        own = (self.embedder,) if isinstance(self.embedder, EmbeddingModel) else ()
        return (*super().judges, *own)

    @property
    def asks_shared_judge(self) -> bool:
        return self.explain and self.judge is None

    def changed_parameters(self) -> Iterator[tuple[str, Any]]:
        for name, value in super().changed_parameters():
            yield name, value.identity if isinstance(value, EmbeddingModel) else value

    async def score(self, ask: Ask, *, output: str, reference: str) -> Score:
        if isinstance(self.embedder, EmbeddingModel):
            # A run's `ask` takes a judge; a stand-in for it, as in a test, may not.
            result: Cosine = await cast(Any, ask)(CompareEmbeddings(first=output, second=reference), self.embedder)
        else:
            vectors: object = await sync.call(cast(Any, self.embedder), [output, reference])
            try:
                result = Cosine(cosine(*as_vectors(vectors, 2)))
            except ValueError as error:
                raise OutcomeError(f"{self.name}: the embedder returned no vectors: ", error) from None
        reason = f"The cosine of the embeddings is {result.cosine:.3g}."
        return Score(max(0.0, result.cosine) * self.scale, reason, evidence=result)


def _named(name: str) -> object:
    """The embedder that a name or an address names."""
    if not is_address(name):
        return EmbeddingModel(name)
    found = find(name, "the embedder")
    if isinstance(found, type) or not (isinstance(found, EmbeddingModel) or _is_own(found)):
        allowed = "an embedder, which is an EmbeddingModel or a function of texts"
        raise ConfigError(of_kind(f"the embedder {name}", allowed, "EmbeddingModel", found))
    return found


def _from_table(table: Mapping[Any, Any]) -> object:
    settings = {str(name): value for name, value in table.items()}
    names = [each.name for each in fields(EmbeddingModel) if each.init and each.name not in ("model", "limits")]
    model = settings.pop("model", None)
    if is_address(model) and not settings:
        return _named(model)
    arguments = settings_of("embedding_similarity: embedder", settings, names)
    if not isinstance(model, str):
        expected = "a table with a model, such as openai/text-embedding-3-small"
        raise ConfigError("embedding_similarity: ", invalid("embedder", expected, table, excerpt(dict(table))))
    return EmbeddingModel(model, **arguments)
