"""The similarity of embeddings: a function's, and a model's behind an endpoint."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import dry_run, evaluate, score
from evalstone.errors import ConfigError
from evalstone.judges import EmbeddingModel, LexicalJudge, ModelJudge
from evalstone.models.vectors import cosine
from evalstone.questions import ListClaims
from evalstone.scorers import parse_scorer
from evalstone.scorers.registry import SCORERS
from evalstone.scorers.text.embedding_similarity import EmbeddingSimilarity
from evalstone.types import Failed, Score, Skipped, Usage
from tests.serving import Response, serving

VECTORS = {"a": [1.0, 0.0], "b": [1.0, 1.0], "c": [0.0, 2.0], "d": [-3.0, 0.0], "zero": [0.0, 0.0]}


def table(texts: Sequence[str]) -> list[list[float]]:
    return [VECTORS[text] for text in texts]


async def slow_table(texts: Sequence[str]) -> np.ndarray[Any, Any]:
    return np.array(table(texts), dtype=np.float32)


def value(output: str, reference: str, embedder: Any = table) -> Any:
    return score(EmbeddingSimilarity(embedder), output=output, reference=reference, ledger=None).outcome


@pytest.mark.parametrize("embedder", [table, slow_table])
@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [("a", "a", 1), ("a", "b", math.sqrt(0.5)), ("a", "c", 0), ("a", "d", 0), ("b", "a", math.sqrt(0.5))],
)
def test_a_function_of_texts_embeds_them(embedder: Any, output: str, reference: str, expected: float):
    outcome = value(output, reference, embedder)
    assert outcome.value == pytest.approx(expected)
    assert outcome.evidence["cosine"] == pytest.approx(-1 if reference == "d" else expected)


NO_VECTORS: list[tuple[Any, str]] = [
    (None, "a vector is not a list of numbers"),
    ([[1.0]], "1 vectors for 2 texts"),
    ([[1.0], [1.0, 2.0]], "the vectors have different or zero lengths: 1, 2"),
    ([[], []], "the vectors have different or zero lengths: 0, 0"),
    ([[1.0], ["x"]], "a vector is not a list of numbers"),
    ([[1.0], [math.nan]], "a vector is all zeros, or has numbers that are not finite"),
    ([[1.0], [0.0]], "a vector is all zeros, or has numbers that are not finite"),
]


@pytest.mark.parametrize(("vectors", "told"), NO_VECTORS)
def test_what_is_no_vectors_fails_the_sample(vectors: Any, told: str):
    def embed(texts: Sequence[str]) -> Any:
        return vectors

    outcome = value("a", "b", embed)
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("embedding_similarity: ")
    assert outcome.error.endswith(f" no vectors: {told}")


def test_blank_texts_are_skipped_and_not_embedded():
    def embed(texts: Sequence[str]) -> Any:
        pytest.fail("asked")

    for output, reference in ((" ", "a"), ("a", "")):
        assert isinstance(value(output, reference, embed), Skipped)


NUMBERS = st.floats(-1e300, 1e300)
SOME = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=5)


@given(SOME)
def test_a_cosine_is_in_range_symmetric_and_one_for_equal_vectors(pairs: list[tuple[float, float]]):
    first, second = (list(column) for column in zip(*pairs, strict=True))
    if any(first) and any(second):
        assert -1 <= cosine(first, second) <= 1
        assert cosine(first, second) == pytest.approx(cosine(second, first))
        assert cosine(first, first) == 1
        with np.errstate(all="ignore"):
            plain = float(np.dot(first, second) / (np.linalg.norm(first) * np.linalg.norm(second)))
        if all(1e-3 < abs(number) < 1e3 for number in first + second):
            assert cosine(first, second) == pytest.approx(plain, abs=1e-9)


def embedded(request: dict[str, Any], _: int) -> dict[str, Any]:
    """The vectors in another order than the texts, as an endpoint may send them."""
    data = [{"index": place, "embedding": VECTORS[text]} for place, text in enumerate(request["input"])]
    return {"data": data[::-1], "usage": {"prompt_tokens": 10, "total_tokens": 10}}


SAMPLES = [{"output": "a", "reference": "b"}, {"output": "a", "reference": "c"}, {"output": "a", "reference": "b"}]


def test_a_model_embeds_both_texts_in_one_request_and_is_asked_once(tmp_path: Path):
    with serving(embedded) as server:
        model = EmbeddingModel("vllm/embed", base_url=server.url, dimensions=2, prices=(1.0, 0.0))
        scorer = EmbeddingSimilarity(model)
        run = evaluate(SAMPLES, scorer, ledger=tmp_path / "ledger.db")
        assert [record.value for record in run] == pytest.approx([math.sqrt(0.5), 0, math.sqrt(0.5)])
        assert len(server.requests) == 2
        assert {"model": "embed", "input": ["a", "b"], "dimensions": 2} in server.requests
        assert sum(record.cost or 0 for record in run) == pytest.approx(20e-6)
        assert run["embedding_similarity"].judges == (f"embeddings(vllm/embed({server.url}, dimensions=2))",)
        again = evaluate(SAMPLES, scorer, ledger=tmp_path / "ledger.db")
        assert len(server.requests) == 2
        assert [record.value for record in again] == [record.value for record in run]
        assert all("embedding" not in (call.reply or "") for record in run for call in record.calls)


def test_a_single_sample_is_paid_for_once_too(tmp_path: Path):
    with serving(embedded) as server:
        scorer = EmbeddingSimilarity(EmbeddingModel("vllm/embed", base_url=server.url))
        for _ in range(2):
            assert score(scorer, output="a", reference="d", ledger=tmp_path / "ledger.db").value == 0
        assert len(server.requests) == 1
    assert scorer.may_ask
    assert not EmbeddingSimilarity(table).may_ask


def test_a_model_is_named_as_text_or_as_a_table():
    named = parse_scorer("embedding_similarity(embedder='openai/embed')")
    assert named == EmbeddingSimilarity("openai/embed")
    assert "embeddings(openai/embed)" in named.signature
    tabled = parse_scorer(
        {"name": "embedding_similarity", "embedder": {"model": "vllm/e", "base_url": "http://127.0.0.1:1/v1"}}
    )
    assert tabled.judges == (EmbeddingModel("vllm/e", base_url="http://127.0.0.1:1/v1"),)
    assert pickle.loads(pickle.dumps(tabled)) == tabled
    assert EmbeddingSimilarity(table).signature.startswith(f"embedding_similarity(embedder={__name__}.table#")


def test_a_dry_run_counts_the_texts_alone():
    model, sample = EmbeddingModel("openai/x", prices=(1.0, 9.0)), {"output": "é" * 40, "reference": "b" * 41}
    estimated = dry_run([sample], EmbeddingSimilarity(model), ledger=None)
    assert [(judge.usage, judge.cost) for judge in estimated.judges] == [(Usage(30, 0, 0, 1), pytest.approx(30e-6))]


def test_scorers_with_several_models_can_be_compared_in_one_run():
    with serving(embedded) as server:
        models = [EmbeddingModel(f"vllm/{name}", base_url=server.url) for name in ("one", "two")]
        run = evaluate(SAMPLES[:1], [EmbeddingSimilarity(model) for model in models], ledger=None)
        assert len({record.signature for record in run}) == 2
        assert {request["model"] for request in server.requests} == {"one", "two"}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"data": []}, "0 of 2 vectors"),
        ({}, "0 of 2 vectors"),
        ({"data": [{"embedding": [1]}, {"embedding": "x"}]}, "a vector is not a list of numbers"),
        ({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}, "the vectors have wrong indices"),
        ({"data": [1, 2]}, "2 of 2 vectors"),
    ],
)
def test_a_reply_without_vectors_fails_the_sample(body: Any, told: str):
    def behaviour(request: dict[str, Any], number: int) -> Any:
        return body

    with serving(behaviour) as server:
        outcome = value("a", "b", EmbeddingModel("vllm/embed", base_url=server.url))
        assert isinstance(outcome, Failed)
        assert outcome.error.endswith(f" no embeddings: {told}")


def test_an_endpoint_in_trouble_is_asked_again():
    def behaviour(request: dict[str, Any], number: int) -> Any:
        return Response(status=503, body={"error": "busy"}) if number == 1 else embedded(request, number)

    with serving(behaviour) as server:
        outcome = value("a", "b", EmbeddingModel("vllm/embed", base_url=server.url))
        assert isinstance(outcome, Score)
        assert len(server.requests) == 2


def test_a_text_that_the_endpoint_finds_too_long_fails_and_only_this_sample():
    message = "This model's maximum context length is 8192 tokens, however you requested 20000 tokens"

    def behaviour(request: dict[str, Any], number: int) -> Any:
        if any(len(text) > 10_000 for text in request["input"]):
            return Response(status=400, body={"error": {"message": message}})
        return embedded(request, number)

    samples = [{"output": "long " * 10_000, "reference": "a"}, *SAMPLES[:1]]
    with serving(behaviour) as server:
        run = evaluate(samples, EmbeddingSimilarity(EmbeddingModel("vllm/e", base_url=server.url)), ledger=None)
    assert (run["embedding_similarity"].n_score, run["embedding_similarity"].n_failed) == (1, 1)


def test_a_model_is_identified_by_what_changes_its_vectors_and_not_by_its_key():
    model = EmbeddingModel("openai/x", api_key="sk-secret", timeout=1)
    assert model.identity == EmbeddingModel("openai/x").identity == "embeddings(openai/x)"
    assert "sk-secret" not in repr(model) + EmbeddingSimilarity(model).signature
    others = [EmbeddingModel("openai/x", dimensions=5), EmbeddingModel("openai/x", base_url="http://127.0.0.1:1/v1")]
    assert len({model.identity, ModelJudge("openai/x").identity, *(other.identity for other in others)}) == 4


def test_an_embedding_model_answers_no_question():
    with serving(embedded) as server:
        model = EmbeddingModel("vllm/embed", base_url=server.url)
        outcome = score("faithfulness", output="a", context=["b"], judge=model, ledger=None).outcome
        assert isinstance(outcome, Skipped)
        assert f"can't answer {ListClaims.kind}" in outcome.reason
        assert server.requests == []


@pytest.mark.parametrize(
    ("embedder", "told"),
    [
        ("text-embedding-3-small", "a model is named provider/model"),
        (3, "embedder must be a model such as openai/text-embedding-3-small, .* not 3"),
        (LexicalJudge(), "embedder must be a model such as"),
        (ModelJudge("openai/gpt-5.1"), "embedder must be a model such as"),
        ({"modle": "openai/x"}, "embedder: unknown setting 'modle'; "),
        ({"dimensions": 3}, "embedder must be a table with a model, such as openai/text-embedding-3-small, not"),
        ({"model": "openai/x", "temperature": 1.0}, "embedder: unknown setting 'temperature'"),
        ({"model": "openai/x", "dimensions": 0}, "dimensions must be"),
    ],
)
def test_what_can_embed_nothing_is_refused(embedder: Any, told: str):
    with pytest.raises(ConfigError, match=told):
        EmbeddingSimilarity(embedder)


def test_a_model_without_a_key_or_an_endpoint_is_refused_before_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        evaluate(SAMPLES, EmbeddingSimilarity("openai/text-embedding-3-small"), ledger=None)
    with pytest.raises(ConfigError, match="google/embed can't"):
        evaluate(SAMPLES, EmbeddingSimilarity("google/embed"), ledger=None)


def test_it_needs_an_embedder():
    with pytest.raises(ConfigError, match=r"needs embedder: .*\(embedder=…\)"):
        parse_scorer("embedding_similarity")
    assert SCORERS["embedding_similarity"] is EmbeddingSimilarity
