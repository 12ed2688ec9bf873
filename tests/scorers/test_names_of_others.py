"""The table of other systems' names."""

from __future__ import annotations

import pytest

from evalstone.compat.names import SYSTEMS, Counterpart
from evalstone.scorers import SCORERS
from evalstone.scorers.registry import TEMPLATES, parse_scorer
from tests.parity.adapters import ADAPTERS

ROWS = [(system, row) for system, rows in SYSTEMS.items() for row in rows]
MASTRA = {row.theirs for row in SYSTEMS["mastra"]}

SAME = (
    "answer-relevancy answer-similarity bias toxicity faithfulness hallucination context-precision context-recall "
    "multi-turn-judge rubric summarization completeness content-similarity keyword-coverage textual-difference"
)
FACTORIES = {
    **{name: f"create{name.title().replace('-', '')}Scorer" for name in SAME.split()},
    "context-relevance": "createContextRelevanceScorerLLM",
    "noise-sensitivity": "createNoiseSensitivityScorerLLM",
    "prompt-alignment": "createPromptAlignmentScorerLLM",
    "tool-call-accuracy-llm": "createToolCallAccuracyScorerLLM",
    "tool-call-accuracy-code": "createToolCallAccuracyScorerCode",
    "trajectory-accuracy-llm": "createTrajectoryAccuracyScorerLLM",
    "trajectory-accuracy-code": "createTrajectoryAccuracyScorerCode",
    "trajectory-code": "createTrajectoryScorerCode",
    "tone-consistency": "createToneScorer",
}


@pytest.mark.parametrize(("system", "row"), ROWS, ids=[f"{system}: {row.theirs}" for system, row in ROWS])
def test_every_name_of_ours_is_a_scorer_that_can_be_built_as_it_is_written(system: str, row: Counterpart) -> None:
    if not row.ours:
        assert row.difference != "none"
        return
    name = row.ours.partition("(")[0]
    assert name in SCORERS or name in TEMPLATES
    assert parse_scorer(row.ours).signature


@pytest.mark.parametrize("recorded", ADAPTERS)
def test_every_recorded_name_of_mastra_is_in_the_table(recorded: str) -> None:
    if recorded.startswith("check-"):
        assert f"checks.{recorded.removeprefix('check-')}" in MASTRA
    elif recorded.startswith("legacy-"):
        assert f"{recorded.removeprefix('legacy-').title().replace('-', '')}Metric (0.13)" in MASTRA
    else:
        assert FACTORIES[recorded] in MASTRA


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_name_of_theirs_stands_twice(system: str) -> None:
    names = [row.theirs for row in SYSTEMS[system]]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "theirs",
    [
        "createNoiseSensitivityScorerLLM",
        "createAnswerRelevancyScorer",
        "createAnswerSimilarityScorer",
        "createContextRelevanceScorerLLM",
        "AnswerRelevancyMetric (0.13)",
    ],
)
def test_options_that_only_theirs_takes_are_named(theirs: str) -> None:
    assert "refused" in next(row.difference for row in SYSTEMS["mastra"] if row.theirs == theirs)
