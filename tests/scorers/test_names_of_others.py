"""The table of other systems' names."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstone.scorers import SCORERS
from evalstone.scorers.other_systems import SYSTEMS, Counterpart
from evalstone.scorers.registry import TEMPLATES, parse_scorer
from tests.parity.adapters import ADAPTERS
from tests.parity.cases import read_cases

ROWS = [(system, row) for system, rows in SYSTEMS.items() for row in rows]
MASTRA = {row.theirs: row.ours for row in SYSTEMS["mastra"]}
DATA = Path(__file__).parents[1] / "parity" / "data"

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


def name_at_mastra(recorded: str) -> str:
    if recorded.startswith("check-"):
        return f"checks.{recorded.removeprefix('check-')}"
    if recorded.startswith("legacy-"):
        return f"{recorded.removeprefix('legacy-').title().replace('-', '')}Metric (0.13)"
    return FACTORIES[recorded]


@pytest.mark.parametrize("recorded", ADAPTERS)
def test_every_recorded_name_of_mastra_is_in_the_table(recorded: str) -> None:
    assert name_at_mastra(recorded) in MASTRA


def test_the_table_names_the_scorer_and_the_definition_that_the_recorded_cases_hold_for() -> None:
    cases = {case["scorer"]: case for case in read_cases(DATA / "scores.jsonl")}
    for recorded, case in cases.items():
        scorer = ADAPTERS[recorded](case)[0]
        named = parse_scorer(MASTRA[name_at_mastra(recorded)])
        assert (type(named), getattr(named, "definition", None)) == (type(scorer), getattr(scorer, "definition", None))


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
