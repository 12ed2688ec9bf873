"""Tests of the support assistant. One of them fails, on purpose."""

from __future__ import annotations

from typing import Any

import pytest
from support import answer

from evalstone.compat.spring import EvaluationRequest, FactCheckingEvaluator
from evalstone.testing import Evalstone


@pytest.mark.evalstone(dataset="cases.jsonl", min={"faithfulness": 0.75})
def test_answers_are_faithful(input: str) -> dict[str, Any]:
    """One statistical test over all cases."""
    return answer(input)


@pytest.mark.evalstone(dataset="cases.jsonl", min={"faithfulness": 1}, each=True)
def test_every_claim_is_supported(input: str) -> dict[str, Any]:
    """One test for each case."""
    return answer(input)


def test_the_warranty(evalstone: Evalstone) -> None:
    """One answer, with several scorers."""
    question = "How long does the warranty last?"
    evalstone.assert_scores(
        min={"faithfulness": 0.9, "contains(expected='two years')": 1},
        max={"hallucination": 0.1},
        input=question,
        **answer(question),
    )


def test_the_facts_of_the_help_desk(evalstone: Evalstone) -> None:
    """An evaluator with the interface of Spring AI."""
    question = "Is the help desk open on Friday?"
    found = answer(question)
    request = EvaluationRequest(question, found["context"], found["output"])
    evalstone.assert_passed(FactCheckingEvaluator(), request)
