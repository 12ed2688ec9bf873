from __future__ import annotations

from typing import Any

import pytest

from evalstone._core.names import normal
from evalstone.datasets import FIELD_NAMES, sample_from
from evalstone.errors import ConfigError, DataError

ROWS: dict[str, dict[str, Any]] = {
    "ragas": {
        "user_input": "q",
        "response": "a",
        "retrieved_contexts": ["p", "r"],
        "reference": "g",
        "reference_contexts": ["z"],
    },
    "ragas legacy": {"question": "q", "answer": "a", "contexts": ["p", "r"], "ground_truths": ["g"]},
    "deepeval": {
        "input": "q",
        "actual_output": "a",
        "expected_output": "g",
        "retrieval_context": ["p", "r"],
        "context": ["ideal"],
    },
    "MLflow": {
        "inputs": {"question": "q"},
        "outputs": {"response": "a"},
        "expectations": {"expected_response": "g"},
        "retrieved_context": [{"doc_uri": "u", "content": "p"}, {"doc_uri": "v", "content": "r"}],
    },
    "MLflow legacy": {"request": "q", "response": "a", "expected_response": "g", "retrieved_context": ["p", "r"]},
    "Mastra": {"input": "q", "output": "a", "groundTruth": "g", "context": ["p", "r"]},
    "Spring AI": {
        "userText": "q",
        "dataList": [{"text": "p", "metadata": {}}, {"content": "r"}],
        "responseContent": "a",
        "expectedAnswer": "g",
    },
    "Spring AI in snake case": {
        "user_text": "q",
        "data_list": [{"text": "p"}, {"text": "r"}],
        "response_content": "a",
        "reference": "g",
    },
    "Hugging Face": {"query": "q", "response": "a", "passages": {"passage_text": ["p", "r"]}, "answers": ["g"]},
    "prompt and completion": {"prompt": "q", "completion": "a", "documents": ["p", "r"], "ideal": "g"},
    "LangChain documents": {
        "input": "q",
        "output": "a",
        "context": [{"page_content": "p"}, {"pageContent": "r"}],
        "target": "g",
    },
}


@pytest.mark.parametrize("tool", ROWS)
def test_a_row_of_each_tool_is_understood(tool: str) -> None:
    sample = sample_from(ROWS[tool])
    assert (sample.input, sample.output, sample.context, sample.reference) == ("q", "a", ("p", "r"), "g")


def test_every_name_is_listed_under_one_field_only() -> None:
    names = [normal(name) for ranks in FIELD_NAMES.values() for rank in ranks for name in rank if name != "_id"]
    assert len(set(names)) == len(names)
    assert all(field in ranks[0] or field == "context" for field, ranks in FIELD_NAMES.items())


@pytest.mark.parametrize("column", ["user_input", "User Input", "user-input", "userInput", "USERINPUT"])
def test_case_and_separators_of_a_name_do_not_count(column: str) -> None:
    assert sample_from({column: "q"}).input == "q"


def test_the_ideal_context_of_deepeval_is_not_judged() -> None:
    sample = sample_from(ROWS["deepeval"])
    assert sample.metadata == {"context": ["ideal"]}


def test_unknown_columns_go_to_the_metadata() -> None:
    sample = sample_from({"input": "q", "topic": "law", "Weight": 2.5, "tags": ["x"], "none": None})
    assert sample.metadata == {"topic": "law", "Weight": 2.5, "tags": ["x"]}


def test_the_field_s_own_name_wins_and_the_loser_goes_to_the_metadata() -> None:
    sample = sample_from({"response": "b", "output": "a", "answer": "c"})
    assert sample.output == "a"
    assert sample.metadata == {"response": "b", "answer": "c"}


def test_the_field_s_own_spelling_wins_over_another_spelling() -> None:
    assert sample_from({"_id": "x", "id": "y", "input": "q"}).id == "y"


def test_an_earlier_rank_wins_over_a_later_one() -> None:
    assert sample_from({"prompt": "a whole prompt", "question": "q"}).input == "q"


def test_an_absent_value_claims_nothing() -> None:
    assert sample_from({"reference": None, "ground_truth": "g"}).reference == "g"
    assert sample_from({"reference": float("nan"), "ground_truth": "g"}).reference == "g"


def test_equals_that_differ_are_refused_with_the_way_to_decide() -> None:
    problem = r"'question' and 'query' both claim input.*" + r'map=\{"input": "question"\} or map=\{"inp'
    with pytest.raises(DataError, match=problem):
        sample_from({"question": "a", "query": "b"})


def test_equals_that_agree_are_no_conflict() -> None:
    sample = sample_from({"question": "a", "query": "a"})
    assert sample.input == "a"
    assert sample.metadata == {"query": "a"}


def test_a_mapping_wins_over_the_names() -> None:
    sample = sample_from({"output": "raw", "answer": "clean", "input": "q"}, map={"output": "answer"})
    assert sample.output == "clean"
    assert sample.metadata == {"output": "raw"}


def test_a_mapping_may_reach_into_an_object() -> None:
    row = {"row": {"answer": "a", "deep": {"q": "x"}}}
    sample = sample_from(row, map={"output": "row.answer", "input": "row.deep.q"})
    assert (sample.input, sample.output) == ("x", "a")
    assert sample.metadata == row


def test_a_column_with_a_dot_in_its_name_is_reached_by_its_name() -> None:
    assert sample_from({"row.answer": "a", "row": {"answer": "b"}}, map={"output": "row.answer"}).output == "a"


def test_a_mapping_may_reach_into_a_list() -> None:
    row = {"input": "q", "found": [{"doc": {"text": "one"}}, {"doc": {"text": "two"}}]}
    assert sample_from(row, map={"context": "found.doc.text"}).context == ("one", "two")
    assert sample_from(row, map={"output": "found.1.doc.text"}).output == "two"


def test_an_empty_mapping_leaves_a_field_out() -> None:
    sample = sample_from({"input": "q", "turns": 3}, map={"messages": ""})
    assert sample.metadata == {"turns": 3}


@pytest.mark.parametrize(
    ("mapping", "problem"),
    [
        (
            {"context": "found.2.doc"},
            "7: no row has the column 'found.2.doc', mapped to context; did you mean found?",
        ),
        ({"context": "found.page"}, "7: no row has the column 'found.page', mapped to context; did you mean found?"),
        ({"output": "answr"}, "7: no row has the column 'answr', mapped to output; did you mean answer?"),
        ({"output": "zzz"}, "7: no row has the column 'zzz', mapped to output; columns: answer, doc1, doc2, found"),
        (
            {"context": ["doc1", "doc4"]},
            "7: no row has the column 'doc4', mapped to context; did you mean doc2 or doc1?",
        ),
        ({"output": ["doc1", "doc2"]}, "only context takes several columns; output is mapped to doc1, doc2"),
        ({"ouput": "input"}, "unknown sample field 'ouput'; did you mean output?"),
        (
            {"metadata.topics": "doc1"},
            "unknown sample field 'metadata.topics': columns can't be mapped to entries of the metadata; name the "
            "column topics, and it becomes this entry",
        ),
        ({"metadata.": "doc1"}, "unknown sample field 'metadata.'; did you mean metadata?"),
    ],
)
def test_a_mapping_that_fits_no_row_is_refused_with_near_names(mapping: dict[str, Any], problem: str) -> None:
    row = {"answer": "a", "doc1": ["x"], "doc2": None, "found": [{"doc": "d"}]}
    with pytest.raises(ConfigError) as caught:
        sample_from(row, map=mapping, where="7")
    assert str(caught.value) == problem
    assert isinstance(caught.value, DataError) is problem.startswith("7: ")


def test_a_row_of_which_nothing_is_understood_is_refused_with_an_example() -> None:
    with pytest.raises(DataError, match=r'map=\{"output": "foo"\}'):
        sample_from({"foo": "a", "bar": "b"})


def test_alpaca_s_instruction_and_input_are_one_input() -> None:
    assert sample_from({"instruction": "Sum up.", "input": "", "output": "o"}).input == "Sum up."
    sample = sample_from({"instruction": "Sum up.", "input": "Text.", "output": "o"})
    assert sample.input == "Sum up.\n\nText."
    assert not sample.metadata


def test_alpaca_s_joining_is_off_when_the_input_is_mapped() -> None:
    sample = sample_from({"instruction": "Be kind.", "input": "Text."}, map={"input": "input"})
    assert sample.input == "Text."
    assert sample.metadata == {"instruction": "Be kind."}
