"""How reasons end: those of scores as sentences, those of skips and failures as the rest of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from evalstone import ScriptedJudge, evaluate, load
from evalstone.datasets.demo import DEMO_DATA
from evalstone.scorers import SCORERS, Scorer
from evalstone.scorers.rag.graded import GradedScorer
from evalstone.types import Failed, Message, Sample, Score, ToolCall, TrajectoryExpectation

PARAMETERS: dict[str, dict[str, Any]] = {
    "contains": {"expected": "is"},
    "not_contains": {"expected": "is"},
    "tool_called": {"tool": "search"},
    "tool_not_called": {"tool": "search"},
    "tool_order": {"tools": ("search",)},
    "max_tool_calls": {"limit": 1},
    "latency": {"limit": 1},
    "cost": {"limit": 1},
    "tokens": {"limit": 1},
    "json_schema": {"schema": {"type": "object"}},
    "per_turn": {"scorer": "exact_match"},
    "per_step": {"scorer": "contains(expected=France)"},
    "repeated": {"scorer": {"name": "faithfulness", "judge": ScriptedJudge(lambda question: question.example())}},
    "embedding_similarity": {"embedder": lambda texts: [[1.0, 2.0], [2.0, 1.0]]},  # type: ignore[misc]
}


def samples() -> Iterator[Sample]:
    """Some with everything that scorers need, and one that is blank."""
    talk = (
        Message(role="user", content="Where is Paris?"),
        Message(role="assistant", content="Searching.", tool_calls=(ToolCall(name="search", result="France"),)),
        Message(role="assistant", content="In France."),
    )
    for sample in list(load(DEMO_DATA))[:8]:
        yield replace(
            sample,
            reference=sample.output,
            instructions="Be brief.",
            messages=talk,
            expected_trajectory=TrajectoryExpectation.read(["search", "read"]),
        )
    yield Sample(id="blank", input=" ", output=" ", reference=" ", instructions=" ", context=(" ",))
    yield Sample(id="nothing", output="x")


@pytest.mark.parametrize(
    "judge", ["lexical", ScriptedJudge(lambda question: question.example())], ids=["lexical", "any"]
)
@pytest.mark.parametrize("kind", SCORERS.values(), ids=SCORERS)
def test_a_reason_for_a_score_ends_with_a_period_and_one_for_none_does_not(
    kind: type[Scorer], judge: str | ScriptedJudge
) -> None:
    scorer = kind(**PARAMETERS.get(kind.name, {}))
    for record in evaluate(list(samples()), [scorer], judge=judge, ledger=None):
        outcome = record.outcome
        text = outcome.error if isinstance(outcome, Failed) else outcome.reason
        if not isinstance(outcome, Score):
            assert not text.endswith("."), text
        elif not issubclass(kind, GradedScorer):  # which give the judge's own words
            assert text.endswith("."), text
