"""One name, several formulas, from one set of answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from evalstone.api import evaluate
from evalstone.errors import ConfigError
from evalstone.judges import ScriptedJudge
from evalstone.questions import ClaimVerdict, ListClaims
from evalstone.questions.base import Question
from evalstone.scorers import (
    SCORERS,
    AnswerRelevancy,
    ContextPrecision,
    ContextRecall,
    Faithfulness,
    Hallucination,
    Scorer,
    parse_scorer,
)
from evalstone.scorers.definitions import Defined
from evalstone.types import Sample, Score, Skipped
from tests.fakes import claims, score_of, statements, verdicts

SAMPLE = Sample(input="q", output="a b c", reference="r", context=["one", "two", "three", "four", "five"])
DEFINED = [kind for kind in SCORERS.values() if issubclass(kind, Defined)]
REQUIRED: dict[str, dict[str, Any]] = {"not_contains": {"expected": "x"}}
"""The parameters without a default, by scorer."""

TWO_ONE_THREE = ["supported", "supported", ("contradicted", [1, 2]), "not_mentioned", "not_mentioned", "not_mentioned"]
SIX = [claims(*"abcdef"), verdicts(*TWO_ONE_THREE)]


def value(scorer: Scorer, script: Sequence[Any]) -> float:
    return score_of(scorer, SAMPLE, script).value


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("evalstone", 2 / 6),
        ("ragas", 2 / 6),
        ("deepeval", 5 / 6),
        ("deepeval_strict", 2 / 6),
        ("mastra", 2 / 6),
        ("ragchecker", 2 / 6),
    ],
)
def test_faithfulness_of_the_worked_table(definition: Any, expected: float) -> None:
    assert value(Faithfulness(definition=definition), SIX) == expected


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("evalstone", (1 / 2 + 2 / 3) / 2),
        ("ragas", (1 / 2 + 2 / 3) / (2 + 1e-10)),
        ("deepeval", (1 / 2 + 2 / 3) / 2),
        ("mastra", (1 / 2 + 2 / 3) / 2),
        ("ragchecker", 2 / 5),
    ],
)
def test_context_precision_of_the_worked_table(definition: Any, expected: float) -> None:
    script = [verdicts("no", "yes", "yes", "no", "no")]
    assert value(ContextPrecision(definition=definition), script) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("definition", ["ragas", "ragchecker"])
def test_context_precision_is_0_where_no_passage_is_useful(definition: Any) -> None:
    assert value(ContextPrecision(definition=definition), [verdicts(*["no"] * 5)]) == 0


@pytest.mark.parametrize(
    ("definition", "expected"), [("evalstone", 4 / 6), ("ragas", 4 / 6), ("mastra", 4 / 6), ("deepeval", 2 / 5)]
)
def test_hallucination_counts_claims_or_for_deepeval_the_passages_cited_against_one(
    definition: Any, expected: float
) -> None:
    assert value(Hallucination(definition=definition), SIX) == expected


def test_hallucination_by_passages_needs_citations() -> None:
    scorer = Hallucination(definition="deepeval")

    async def ask(question: Question[Any]) -> Any:
        """What a judge answers that is no language model and cites nothing."""
        return ("a",) if isinstance(question, ListClaims) else (ClaimVerdict("a", "contradicted"),)

    uncited = asyncio.run(scorer.run(ask, SAMPLE))
    assert isinstance(uncited, Skipped)
    assert "which passage contradicts" in uncited.reason


@pytest.mark.parametrize("definition", list(ContextRecall.definitions))
def test_context_recall_is_one_number_under_every_definition(definition: Any) -> None:
    assert value(ContextRecall(definition=definition), SIX) == 2 / 6


@pytest.mark.parametrize(("definition", "expected"), [("evalstone", 1.3 / 3), ("mastra", 1.3 / 3), ("deepeval", 2 / 3)])
def test_answer_relevancy_weighs_what_is_partly_relevant(definition: Any, expected: float) -> None:
    script = [statements(*"abc"), verdicts("yes", "partly", "no")]
    assert value(AnswerRelevancy(definition=definition), script) == pytest.approx(expected, abs=1e-15)


def test_a_weight_goes_with_no_definition_that_has_none() -> None:
    assert AnswerRelevancy(definition="mastra", uncertainty_weight=0.5).uncertainty_weight == 0.5
    with pytest.raises(ConfigError, match=r"deepeval .* uncertainty_weight"):
        AnswerRelevancy(definition="deepeval", uncertainty_weight=0.5)


@pytest.mark.parametrize("kind", DEFINED)
def test_an_unknown_definition_is_refused_with_the_nearest(kind: type[Defined]) -> None:
    with pytest.raises(ConfigError, match=r"definition 'mastrra'.* mastra\b"):
        kind(definition="mastrra", **REQUIRED.get(kind.name, {}))


@pytest.mark.parametrize("kind", DEFINED)
def test_the_type_of_a_definition_names_all_of_them(kind: type[Defined]) -> None:
    """And `definition` has no place among the parameters passed by position."""
    declared = get_type_hints(kind, include_extras=True)["definition"]
    assert (get_origin(declared), set(get_args(declared))) == (Literal, set(kind.definitions))
    assert inspect.signature(kind).parameters["definition"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("kind", DEFINED)
def test_a_definition_shows_in_the_signature_unless_it_is_ours(kind: type[Defined]) -> None:
    assert "definition" not in kind(definition="evalstone", **REQUIRED.get(kind.name, {})).signature
    for definition in kind.definitions.keys() - {"evalstone"}:
        assert f"definition={definition}" in kind(definition=definition, **REQUIRED.get(kind.name, {})).signature
    assert not inspect.isabstract(kind)


def test_comparing_all_definitions_of_two_scorers_costs_the_calls_of_one() -> None:
    judge = ScriptedJudge({"list_claims": SIX[0], "verify_claims": SIX[1]})
    scorers = [
        parse_scorer({"name": kind.name, "definition": name})
        for kind in (Faithfulness, Hallucination)
        for name in kind.definitions
    ]
    run = evaluate([SAMPLE], scorers, judge=judge, ledger=None)
    assert [question.kind for question in judge.asked] == ["list_claims", "verify_claims"]
    assert all(isinstance(record.outcome, Score) for record in run)
    assert run["faithfulness"].mean == 2 / 6
    assert run["faithfulness(definition=deepeval)"].mean == 5 / 6
    assert run["hallucination(definition=deepeval)"].mean == 2 / 5
    assert "faithfulness(definition=deepeval)" in str(run)


def test_scorers_of_one_name_that_run_alone_keep_the_name() -> None:
    judge = ScriptedJudge({"list_claims": SIX[0], "verify_claims": SIX[1]})
    run = evaluate([SAMPLE], Faithfulness(definition="deepeval"), judge=judge, ledger=None)
    assert list(run.titles.values()) == ["faithfulness"]
    assert run["faithfulness"].mean == 5 / 6


def test_an_explanation_is_told_which_formula_was_taken() -> None:
    scorer = Faithfulness(definition="deepeval", explain=True)
    assert scorer.description().endswith(f" deepeval counts: {Faithfulness.definitions['deepeval'].formula}.")
