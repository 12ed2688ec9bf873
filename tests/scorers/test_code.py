"""Scorers in code: columns of samples, and what is the same for all that compare two texts."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import checks
from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError
from evalstone.scorers import (
    Bleu,
    Chrf,
    CodeScorer,
    Completeness,
    ContentSimilarity,
    F1Tokens,
    KeywordCoverage,
    Levenshtein,
    PairScorer,
    RougeL,
    Ter,
    TextualDifference,
    ToneConsistency,
)
from evalstone.scorers.text import pieces, units, unspaced
from evalstone.types import Message, Sample, Score, Skipped
from tests.fakes import outcome_of, python

PAIRS: tuple[CodeScorer, ...] = (
    Bleu(),
    Chrf(word_order=2),
    Completeness(),
    ContentSimilarity(),
    F1Tokens(),
    KeywordCoverage(),
    Levenshtein(),
    RougeL(),
    Ter(),
    TextualDifference(),
    TextualDifference(definition="mastra_0_13"),
)
TEXTS = [None, "", " ", "Paris", "paris is in France.", "It is not good. It is bad!", "東京", "😀"]


def other(scorer: CodeScorer) -> str:
    """The field of the text that the answer is compared with."""
    return scorer.compare_to if isinstance(scorer, PairScorer) else "reference"


def sample(scorer: CodeScorer, text: str | None, output: str | None) -> Sample:
    fields: dict[str, Any] = {other(scorer): text, "output": output}
    return Sample(**fields)


@pytest.mark.parametrize("scorer", PAIRS, ids=lambda scorer: scorer.signature)
def test_columns_give_what_the_samples_give_one_by_one(scorer: CodeScorer):
    pairs = [(left, right) for left in TEXTS for right in TEXTS]
    columns: dict[str, list[str | None]] = {
        other(scorer): [left for left, _ in pairs],
        "output": [right for _, right in pairs],
    }
    alone = [outcome_of(scorer, sample(scorer, left, right), []) for left, right in pairs]
    in_columns = scorer.score_columns(**columns)
    assert [replace(o, evidence=to_jsonable(o.evidence)) if isinstance(o, Score) else o for o in in_columns] == alone


@pytest.mark.parametrize("scorer", PAIRS, ids=lambda scorer: scorer.signature)
@given(text=st.text(max_size=30), output=st.text(max_size=30))
def test_any_two_texts_have_a_score_on_the_scale_or_a_reason_for_none(scorer: CodeScorer, text: str, output: str):
    outcome = outcome_of(scorer, sample(scorer, text, output), [])
    assert isinstance(outcome, Skipped) or (isinstance(outcome, Score) and 0 <= outcome.value <= 1)
    assert outcome.reason


def test_columns_of_other_scorers_too():
    even, uneven = ToneConsistency().score_columns(output=["Good.", "Good. Bad."])
    assert isinstance(even, Score)
    assert isinstance(uneven, Score)
    assert (even.value, uneven.value) == (1, 0)
    asked, *absent = checks.no_tool_calls().score_columns(messages=[[Message(role="user")], None, []])
    assert asked == Score(1, "Called: none.", scale=1)
    assert absent == [outcome_of(checks.no_tool_calls(), Sample(), [])] * 2
    assert isinstance(absent[0], Skipped)


def test_empty_columns_give_no_scores():
    assert RougeL().score_columns(reference=[], output=[]) == []


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"input": ["a"], "outputs": ["b"]}, "takes the columns output, input, reference, not outputs"),
        ({"output": ["a"]}, "needs the column input"),
        ({}, "needs the column input and the column output"),
        ({"input": ["a"], "output": ["b", "c"]}, "the columns differ in length: input 1, output 2"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=f"textual_difference:? {told}"):
        TextualDifference().score_columns(**columns)


@pytest.mark.parametrize("scorer", PAIRS, ids=lambda scorer: scorer.signature)
def test_a_scorer_with_other_parameters_survives_pickling(scorer: CodeScorer):
    assert pickle.loads(pickle.dumps(scorer)) == scorer


def test_rapidfuzz_is_loaded_when_it_is_needed_and_not_before():
    code = """
import sys, evalstone
before = "rapidfuzz" in sys.modules
evalstone.scorers.RougeL().score(output="a", reference="a")
print(before, "rapidfuzz" in sys.modules)
"""
    assert python(code) == "False True"


def test_code_units_are_those_of_utf_16():
    assert units("a😀") == "a\ud83d\ude00"
    assert units("é東") == "é東"
    for text in ("\U00010000", "\U0010ffff", "𝒳y"):
        assert len(units(text)) == len(text.encode("utf-16-le")) // 2


def test_white_space_is_that_of_javascript():
    assert unspaced("a\ufeffb \u0085") == "ab\u0085"
    assert pieces("a\x1cb c") == ["a\x1cb", "c"]
    assert pieces("a  b c") == ["a", "b", "c"]


def test_columns_may_be_any_rows_of_cells():
    expected = TextualDifference().score_columns(input=["a", "b"], output=["a", "c"])
    assert TextualDifference().score_columns(input=(c for c in "ab"), output=("a", "c")) == expected


class NAType:
    """As the missing value of pandas: it equals nothing and is neither true nor false."""

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


@pytest.mark.parametrize("missing", [None, float("nan"), NAType()])
def test_a_missing_cell_is_an_absent_field(missing: object):
    first, second = KeywordCoverage().score_columns(input=[missing, "Paris"], output=["Paris", "Paris"])
    assert first == outcome_of(KeywordCoverage(), Sample(output="Paris"), [])
    assert isinstance(first, Skipped)
    assert isinstance(second, Score)
    expected = KeywordCoverage().score_columns(input=["Paris"], output=["Rome"])
    assert KeywordCoverage().score_columns(input=["Paris"], output=["Rome"], reference=[missing]) == expected


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (["a", 3], "column input, row 2: input must be text, not int: 3"),
        (["a", ["b"]], "column input, row 2: input must be text, not list"),
        ([b"a", "b"], "column input, row 1: input must be text, not bytes"),
        ("ab", "column input must be a list with one cell per sample, not str"),
        (b"ab", "column input must be a list with one cell per sample, not bytes"),
        ({"a": "b"}, "column input must be a list with one cell per sample, not dict"),
        (7, "column input must be a list with one cell per sample, not int"),
        (None, "column input must be a list with one cell per sample, not NoneType"),
    ],
)
@pytest.mark.parametrize("scorer", [TextualDifference(), KeywordCoverage(), ContentSimilarity(), Completeness()])
def test_what_is_no_column_of_texts_is_refused_by_column_and_row(scorer: CodeScorer, column: Any, told: str):
    with pytest.raises(ConfigError, match=f"{scorer.name}: {re.escape(told)}"):
        scorer.score_columns(input=column, output=["a", "b"])


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([[Message(role="user")], "hello"], "no_tool_calls: column messages, row 2: messages must be"),
        ([[{"role": "user"}]], "column messages, row 1: messages must be Message values, not dict"),
    ],
)
def test_cells_of_other_columns_are_those_of_a_sample_too(cells: list[Any], told: str):
    with pytest.raises(ConfigError, match=told):
        checks.no_tool_calls().score_columns(messages=cells)
