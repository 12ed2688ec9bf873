from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from evalstone import checks
from evalstone.compat.spring import FactCheckingEvaluator, RelevancyEvaluator
from evalstone.errors import ConfigError
from evalstone.scorers import (
    SCORERS,
    AnswerRelevancy,
    ContextRelevance,
    ContextScorer,
    Faithfulness,
    Hallucination,
    LLMClassifier,
    Penalties,
    Scorer,
    parse_scorer,
)
from evalstone.scorers.rag.graded import FactCheck

OWN = "{{question}} {{answer}} {{context}}"
Spec = str | Mapping[str, Any] | Scorer | type[Scorer] | FactCheckingEvaluator


@pytest.mark.parametrize(
    ("spec", "scorer"),
    [
        ("faithfulness", Faithfulness()),
        (" faithfulness ", Faithfulness()),
        ("faithfulness()", Faithfulness()),
        ("answer-relevancy", AnswerRelevancy()),
        ("context_relevance(scale=10)", ContextRelevance(scale=10)),
        ("context-relevance ( scale = 10, explain=True, )", ContextRelevance(scale=10, explain=True)),
        ("faithfulness(context=['a', 'b'])", Faithfulness(context=("a", "b"))),
        ("faithfulness(context='a, b) and (c')", Faithfulness(context=("a, b) and (c",))),
        ("faithfulness(scale=1e2)", Faithfulness(scale=100)),
        ("answer_relevancy(uncertainty_weight=.5)", AnswerRelevancy(uncertainty_weight=0.5)),
        ("context_relevance(penalties={'unused': 0.05})", ContextRelevance(penalties=Penalties(unused=0.05))),
        ({"name": "hallucination"}, Hallucination()),
        ({"name": "hallucination", "scale": 10}, Hallucination(scale=10)),
        (
            {"name": "context-relevance", "penalties": {"missing": 0.1, "missing_limit": 1}, "low": 0.2},
            ContextRelevance(penalties=Penalties(missing=0.1, missing_limit=1), low=0.2),
        ),
        ("fact_check(by_sentence=False)", FactCheckingEvaluator(by_sentence=False).as_scorer()),
        (
            {"name": "fact_check", "threshold": 0.9, "scale": 5},
            FactCheckingEvaluator(threshold=0.9).as_scorer(scale=5),
        ),
        (
            {"name": "relevancy_check", "prompt": OWN, "when_empty": "fail"},
            RelevancyEvaluator(prompt=OWN, when_empty="fail").as_scorer(),
        ),
        ("contains(expected=Oslo)", checks.contains("Oslo")),
        ("contains(expected=Oslo, ignore_case=false)", checks.contains("Oslo", ignore_case=False)),
        ("contains(expected='true')", checks.contains("true")),
        ("tool_order(tools=[search, 'read it'])", checks.tool_order(["search", "read it"])),
        ("contains(expected='Oslo', ignore_case=False)", checks.contains("Oslo", ignore_case=False)),
        (Faithfulness, Faithfulness()),
        (Faithfulness(scale=2), Faithfulness(scale=2)),
        (FactCheckingEvaluator(longest=5, threshold=0.9), FactCheck(longest=5, threshold=0.9)),
        (
            {"name": "context_relevance", "penalties": Penalties(unused=0)},
            ContextRelevance(penalties=Penalties(unused=0)),
        ),
    ],
)
def test_a_scorer_is_made_from_a_name_or_a_table(spec: Spec, scorer: Scorer):
    assert parse_scorer(spec) == scorer


NAMED = [
    name
    for name, path in SCORERS.paths.items()
    if not path.startswith(("checks.", "wrappers.")) and name != "embedding_similarity"
]
"""The scorers that need no parameters."""


@pytest.mark.parametrize("name", NAMED)
def test_every_scorer_can_be_named(name: str):
    assert type(parse_scorer(name)) is SCORERS[name]
    assert parse_scorer({"name": name, "scale": 5}) == parse_scorer(f"{name}(scale=5)")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("fathfulness", r"unknown scorer 'fathfulness'; did you mean .*faithfulness"),
        ("Faithfulness", "did you mean .*faithfulness"),
        ("", "unknown scorer ''"),
        ("bias, toxicity", r'names 2 scorers; .*: scorers=\["bias", "toxicity"\]'),
        ("bias, toxicty", "unknown scorer 'bias, toxicty'"),
        ("zzz", "unknown scorer 'zzz'; known: answer_correctness, "),
        ("faithfulness(scal=10)", r"faithfulness: unknown parameter 'scal'; did you mean scale\?"),
        ("faithfulness(signature='x')", "unknown parameter 'signature'"),
        ("faithfulness(10)", "can't be parsed as a scorer; expected .*; '10' has no name; write NAME=VALUE"),
        ("faithfulness(", "can't be parsed as a scorer"),
        ("faithfulness(scale=10", "can't be parsed as a scorer"),
        ("faithfulness(scale=10))", "can't be parsed as a scorer"),
        ("faithfulness(scale=10)(scale=3)", "can't be parsed as a scorer"),
        ("faithfulness(scale=10) + f(scale=3)", "can't be parsed as a scorer"),
        ("faithfulness(scale=ten)", "scale must be a number above 0 and up to 1e\\+100, not 'ten'"),
        ("faithfulness(scale=__import__('os').getpid())", "can't be parsed as a scorer"),
        ("faithfulness(scale={[]: 1})", "can't be parsed as a scorer"),
        ("faithfulness(scale=1\x00)", "can't be parsed as a scorer"),
        ("faithfulness(scale=1, scale=2)", "can't be parsed as a scorer; .*; scale is named twice"),
        ("faithfulness(**{'scale': 10})", "can't be parsed as a scorer; .* has no name"),
        ("faithfulness(*[10])", "can't be parsed as a scorer"),
        ("faithfulness(scale=0)", "faithfulness: scale must be a number above 0 and up to 1e\\+100, not 0"),
        ("faithfulness(scale='10')", "faithfulness: scale must be a number above 0 and up to 1e\\+100, not '10'"),
        ("faithfulness(scale=1e999)", "scale must be a number above 0 and up to 1e\\+100, not inf"),
        (f"faithfulness(scale={'1' * 400})", "scale must be a number above 0 and up to 1e\\+100, not 1111"),
        ("faithfulness(explain='no')", "faithfulness: explain must be true or false, not 'no'"),
        ("faithfulness(context=5)", "context must be a list of passages"),
        ("faithfulness(context_from='f')", "faithfulness: context_from must be a function"),
        ("context_precision(context=[])", "context_precision: context is an empty list"),
        ("context_relevance(penalties=5)", "context_relevance: penalties must be"),
        ("context_relevance(penalties={'unusd': 1})", r"penalties: unknown parameter 'unusd'; did you mean unused\?"),
        ("context_relevance(penalties={'unused': 'x'})", "context_relevance: "),
        ("context_relevance(penalties={'unused': -1})", "Penalties: unused must be a number of 0 or more"),
        ("context_relevance(high='x')", "context_relevance: "),
        ("answer_relevancy(uncertainty_weight='x')", "answer_relevancy: "),
        ("fact_check(by_sentense=False)", r"fact_check: unknown parameter 'by_sentense'; did you mean by_sentence\?"),
        ("fact_check(by_sentence='no')", "fact_check: by_sentence must be true or false, not 'no'"),
        ("fact_check(longest='x')", "fact_check: longest must be a whole number of 1 or more, not 'x'"),
        ("fact_check(threshold='x')", r"fact_check: threshold must be a number above 0 and up to 1, not 'x'"),
        ("fact_check(evaluator=1)", "unknown parameter 'evaluator'"),
        ("fact_check(judge='no/such')", "unknown provider 'no'"),
        ({"name": "relevancy_check", "prompt": "{{question}}"}, "the template lacks {{answer}}, {{context}}"),
        ({}, "a scorer table needs a name"),
        ({"scale": 10}, r"needs a name, .* it has \['scale'\]"),
        ({"name": 5}, "a scorer table needs a name"),
        ({"name": "faithfulness", "Scale": 1}, "did you mean scale"),
        ({"name": "faithfulness(scale=10)"}, "unknown scorer"),
        (LLMClassifier, "LLMClassifier needs question"),
        (ContextScorer, "ContextScorer lacks score, which every Scorer defines"),
        ("evalstone.scorers:LLMClassifier", "evalstone.scorers:LLMClassifier needs question"),
    ],
)
def test_what_names_no_scorer_is_refused_with_what_is_wrong(spec: Spec, told: str):
    with pytest.raises(ConfigError, match=told):
        parse_scorer(spec)


def test_the_options_of_an_evaluator_alone_are_not_parameters_of_its_scorer():
    with pytest.raises(ConfigError) as refused:
        parse_scorer("fact_check(zzzz=1)")
    known = str(refused.value).partition("known: ")[2].split(", ")
    assert {"threshold", "by_sentence", "scale", "judge"} <= set(known)
    assert {"evaluator", "on_error"}.isdisjoint(known)


def test_the_table_that_is_given_is_left_as_it_was():
    spec = {"name": "context_relevance", "penalties": {"unused": 0.05}}
    parse_scorer(spec)
    assert spec == {"name": "context_relevance", "penalties": {"unused": 0.05}}
