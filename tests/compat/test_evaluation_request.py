from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from evalstone.compat.spring import EvaluationRequest, EvaluationResponse
from evalstone.errors import ConfigError, OutcomeError


def test_the_three_positional_values_are_user_text_data_list_and_response() -> None:
    request = EvaluationRequest("When?", ["Ada, 1815"], "In 1815.")
    assert (request.user_text, request.documents, request.response_content) == ("When?", ("Ada, 1815",), "In 1815.")


def test_the_short_forms_leave_user_text_or_data_list_empty() -> None:
    assert EvaluationRequest(user_text="q", response_content="a").documents == ()
    assert EvaluationRequest(data_list=["d"], response_content="a").user_text == ""


def test_a_request_is_a_value() -> None:
    one = EvaluationRequest("q", ["d"], "a", metadata={"id": 1})
    assert one == EvaluationRequest("q", ("d",), "a", metadata={"id": 1})
    assert hash(one) == hash(EvaluationRequest("q", ["d"], "a"))
    assert pickle.loads(pickle.dumps(one)) == one


class Message:
    content = "a message"

    def text(self) -> str:
        return "not asked for"


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("plain", "plain"),
        ({"text": "of text", "id": 3}, "of text"),
        ({"content": "of content"}, "of content"),
        ({"page_content": "of LangChain", "metadata": {}}, "of LangChain"),
        ({"text": None, "content": "second"}, "second"),
        (SimpleNamespace(text="attribute"), "attribute"),
        (SimpleNamespace(page_content="attribute"), "attribute"),
        (Message(), "a message"),
        ({"chunk": "of a store", "score": 0.5}, "of a store"),
        (SimpleNamespace(node=SimpleNamespace(text="of LlamaIndex"), score=0.5), "of LlamaIndex"),
        ("two\nlines", "two\nlines"),
        ("{braces} and {{query}}", "{braces} and {{query}}"),
    ],
)
def test_a_document_is_a_text_or_something_with_one(document: object, text: str) -> None:
    assert EvaluationRequest(data_list=[document], response_content="a").documents == (text,)


@pytest.mark.parametrize("document", ["", "  \n\t", None, {"text": None}, SimpleNamespace(text=None, media=b"png")])
def test_documents_without_text_are_left_out(document: object) -> None:
    assert EvaluationRequest(data_list=["one", document, "two"], response_content="a").documents == ("one", "two")


def test_one_text_in_the_place_of_the_list_is_one_document() -> None:
    assert EvaluationRequest("q", "the document", "a").documents == ("the document",)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"user_text": "q"}, "response_content is missing"),
        ({"user_text": "q", "data_list": "a"}, "with two values, write"),
        ({"response_content": None}, "response_content is missing"),
        ({"response_content": 3}, "response_content must be text, not int"),
        ({"response_content": "a", "user_text": None}, "user_text must be text, not NoneType"),
        ({"response_content": "a", "reference": ["r"]}, "reference must be text, not list"),
        ({"response_content": "a", "data_list": None}, "data_list must be a list of documents, not NoneType"),
        ({"response_content": "a", "data_list": {"text": "d"}}, "data_list must be a list of documents, not dict"),
        (
            {"response_content": "a", "data_list": ["d", 3]},
            "document 2 must be text or an object with text, .* or chunk, not 3",
        ),
        ({"response_content": "a", "data_list": [{"body": "d"}]}, "document 1 must be text or an object with text, "),
        ({"response_content": "a", "data_list": [{"text": ["d"]}]}, "document 1 must be text or an object with text, "),
        (
            {"response_content": "a", "data_list": [SimpleNamespace(text=["d"])]},
            "document 1 must be text or an object with text, ",
        ),
    ],
)
def test_a_request_with_a_wrong_field_is_refused(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        EvaluationRequest(**fields)


def test_an_empty_response_is_a_response() -> None:
    assert EvaluationRequest("q", (), "").response_content == ""


@pytest.mark.parametrize(
    ("response", "status", "is_pass"),
    [
        (EvaluationResponse(True, 1.0), "passed", True),
        (EvaluationResponse(False, 0.0), "failed", False),
        (EvaluationResponse(None), "undecided", False),
        (EvaluationResponse(None, None, "broken", {"error": "broken"}), "error", False),
        (EvaluationResponse(True, feedback="no number"), "passed", True),
    ],
)
def test_the_status_tells_failed_undecided_and_error_apart(
    response: EvaluationResponse, status: str, is_pass: bool
) -> None:
    assert response.status == status
    assert response.is_pass is is_pass


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -0.1, 1.1, 5, True, "0.5"])
def test_a_score_that_is_no_number_from_0_to_1_is_refused(score: Any) -> None:
    with pytest.raises(OutcomeError):
        EvaluationResponse(True, score)


@pytest.mark.parametrize("passed", [1, 0, "yes", 0.5])
def test_passed_is_never_made_of_something_else(passed: Any) -> None:
    with pytest.raises(ConfigError, match="passed must"):
        EvaluationResponse(passed)
