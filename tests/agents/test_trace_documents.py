"""Retrieved documents and token counts in the forms that instrumentations and exports write them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalstone.types import Sample
from tests.agents.test_traces import read
from tests.traced import chat, message, span, spans

P1, P2 = "Bern is in Switzerland.", "Bern has a bear park."
NO_TEXT = "1 × a retrieval whose documents have no text"


def sample_with(attributes: dict[str, Any]) -> tuple[Sample, tuple[str, ...]]:
    """The sample of a model call after a retrieval with these attributes, and the notes."""
    (sample,), notes = read(
        spans(
            span(1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent"}, end=9),
            span(2, "retrieve", attributes, parent=1, start=1, end=2),
            span(3, "chat", chat([message("user", "Where?")], P1), parent=1, start=3),
        )
    )
    return sample, notes


def retrieval(documents: Any) -> dict[str, Any]:
    return {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": documents}


@pytest.mark.parametrize(
    "documents",
    [
        [{"content": P1}, {"content": P2}],
        [P1, P2],
        [json.dumps({"content": P1}), json.dumps({"content": P2})],
        [{"content": P1}, P2],
        {"documents": [{"content": P1}, {"content": P2}]},
        [{"content": P1}, {"content": " "}, {"content": P2}],
    ],
)
@pytest.mark.parametrize("as_text", [True, False])
def test_documents_are_passages_in_each_form(documents: Any, as_text: bool) -> None:
    sample, notes = sample_with(retrieval(json.dumps(documents) if as_text else documents))
    assert (sample.context, notes) == ((P1, P2), ())


@pytest.mark.parametrize("documents", [[{"content": ""}], [{"id": "7"}], [P1, {"id": "7"}], [3], {"n": 1}, "7", [[]]])
def test_documents_without_texts_leave_the_context_absent_with_a_note(documents: Any) -> None:
    sample, notes = sample_with(retrieval(json.dumps(documents)))
    assert sample.context is None
    assert [note.partition(",")[0] for note in notes] == [NO_TEXT]


@pytest.mark.parametrize("nothing", [[], {"documents": []}])
def test_a_retrieval_that_returned_nothing_leaves_an_empty_context(nothing: Any) -> None:
    sample, notes = sample_with(retrieval(json.dumps(nothing)))
    assert (sample.context, notes) == ((), ())


@pytest.mark.parametrize(
    "documents",
    [
        [{"document.content": P1}, {"document.content": P2}],
        [{"document": {"content": P1}}, {"document": {"content": P2}}],
        [{"content": P1}, {"content": P2}],
        [P1, P2],
    ],
)
@pytest.mark.parametrize("key", ["retrieval.documents", "reranker.output_documents"])
@pytest.mark.parametrize("as_text", [True, False])
def test_documents_of_openinference_may_be_a_list_or_its_json(documents: Any, key: str, as_text: bool) -> None:
    kind = "RETRIEVER" if key.startswith("retrieval") else "RERANKER"
    attributes = {"openinference.span.kind": kind, key: json.dumps(documents) if as_text else documents}
    sample, notes = sample_with(attributes)
    assert (sample.context, notes) == ((P1, P2), ())


def test_messages_of_openinference_may_be_the_json_of_a_list() -> None:
    said = [{"message.role": "user", "message.content": "Where?"}]
    answer = [{"message": {"role": "assistant", "content": P1}}]
    attributes = {
        "openinference.span.kind": "LLM",
        "llm.input_messages": json.dumps(said),
        "llm.output_messages": json.dumps(answer),
    }
    (sample,), _ = read(spans(span(1, "llm", attributes)))
    assert (sample.input, sample.output) == ("Where?", P1)


@pytest.mark.parametrize("given", [(12, 3), (12.0, 3.0), (12, 3.0), ("12", "3")])
def test_token_counts_may_be_whole_numbers_of_any_type(given: tuple[Any, Any]) -> None:
    counts = {"gen_ai.usage.input_tokens": given[0], "gen_ai.usage.output_tokens": given[1]}
    (sample,), _ = read(spans(span(1, "chat", chat([message("user", "q")], "a", **counts))))
    usage = sample.metadata["target"]["usage"]
    assert (usage["input"], usage["output"]) == (12, 3)


@pytest.mark.parametrize("odd", [12.5, -1, True, "many", "1" * 40, float("inf")])
def test_what_is_no_count_of_tokens_is_left_out(odd: Any) -> None:
    counts = {"gen_ai.usage.input_tokens": odd, "gen_ai.usage.output_tokens": 3}
    (sample,), _ = read(spans(span(1, "chat", chat([message("user", "q")], "a", **counts))))
    assert sample.metadata["target"]["usage"]["input"] == 0
