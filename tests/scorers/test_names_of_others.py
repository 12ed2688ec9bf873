"""The table of other systems' names."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstone.scorers.other_systems import (
    SYSTEMS,
    Counterpart,
    Name,
    counterparts,
    guesses,
    lookup,
    system_named,
    table,
    words,
)
from evalstone.scorers.registry import parse_scorer
from tests.parity.adapters import ADAPTERS
from tests.parity.cases import read_cases

MASTRA = {row.theirs: row.ours for row in table("mastra") if row.kind == "scorer"}
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
def test_a_question_with_a_criterion_stands_for_that_criterion_alone_and_says_how_it_differs(system: str) -> None:
    asked: dict[str, list[Counterpart]] = {}
    for row in table(system):
        is_example = "…" in row.ours or " or " in row.ours
        if row.kind == "scorer" and "question=" in row.ours and not is_example:
            asked.setdefault(row.ours, []).append(row)
    for ours, (first, *others) in asked.items():
        assert all(row.theirs.startswith(first.theirs) for row in others), ours
        assert all(row.difference for row in (first, *others)), ours


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
    assert "refused" in next(row.difference for row in table("mastra") if row.theirs == theirs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("extractToolCalls", "extract tool call"),
        ("create-faithfulness-scorer", "create faithfulness scorer"),
        ("context_recall", "context recall"),
        ("LLMTestCase", "llm test case"),
        ("is-valid-openai-tools-call", "is valid openai tool call"),
        ("rouge1", "rouge 1"),
        ("classes of status", "class of status"),
        ("matches queries", "match query"),
        ("caches of bias", "cache of bias"),
        ("ragas analysis", "ragas analysis"),
    ],
)
def test_the_words_of_a_name_are_singulars(text: str, expected: str) -> None:
    assert " ".join(words(text)) == expected


@pytest.mark.parametrize(
    ("one", "other", "likeness"),
    [
        ("createBiasScorer", "create_bias_scorer", 3),
        ("BiasMetric (0.13)", "biasMetric", 3),
        ("ToolCallF1", "tool calls f1", 3),
        ("checks.toolOrder", "tool-order", 2),
        ("Faithfulness", "ragas.metrics.Faithfulness", 2),
        ("createBiasScorer", "bias", 1),
        ("createBiasScorer", "BiasMetric", 1),
        ("createBiasScorer", "createToxicityScorer", 0),
        ("", "bias", 0),
    ],
)
def test_names_are_compared_in_any_spelling(one: str, other: str, likeness: int) -> None:
    assert Name(one).likeness(Name(other)) == likeness


@pytest.mark.parametrize(
    ("system", "text", "expected"),
    [
        ("mastra", "extractToolCalls", ["extractToolCalls"]),
        ("mastra", "listScoresByScorerId", ["listScoresByScorerId"]),
        ("mastra", "create-faithfulness-scorer", ["createFaithfulnessScorer"]),
        ("mastra", "import { createBiasScorer as b, checks } from '@mastra/evals'", ["createBiasScorer"]),
        ("mastra", "faithfulness threshold", ["createFaithfulnessScorer", "FaithfulnessMetric (0.13)", "threshold"]),
        ("spring", "new EvaluationRequest(text, documents, answer)", ["EvaluationRequest", "userText"]),
        ("ragas", "context_recall", ["context_recall"]),
        ("ragas", "from ragas.metrics import Faithfulness, ContextRecall", ["Faithfulness"]),
        ("ragas", "testset generation", ["TestsetGenerator"]),
        ("deepeval", "GEval criteria", ["criteria"]),
        ("deepeval", "faithfulness threshold", ["threshold"]),
        ("deepeval", "deepeval test run --repeat", ["--repeat"]),
        ("deepeval", "dag", ["dag", "DAGMetric"]),
        ("promptfoo", "not-llm-rubric", ["not-…", "llm-rubric"]),
        ("promptfoo", "promptfoo:redteam:pii", ["promptfoo:redteam:…"]),
        ("promptfoo", "npx promptfoo eval", ["promptfoo eval", "--output"]),
        ("promptfoo", "contains-json schema", ["contains-json"]),
        ("inspect", ".eval", [".eval"]),
        ("mlflow", "labeling session", ["LabelingSession", "Labeling sessions"]),
        ("openai-evals", "sample.output_text", ["sample.output_text"]),
        ("lm-eval", "lm_eval --tasks", ["--tasks"]),
        ("lm-eval", "lm_eval --model hf --model_args=pretrained=x", ["--model", "--model_args", "lm_eval"]),
        ("lm-eval", "few shot", ["num_fewshot", "fewshot_split"]),
        ("inspect", "inspect eval ctf.py --model openai/gpt-5.1", ["model", "inspect eval"]),
        ("inspect", "inspect_evals", ["inspect_evals"]),
        ("promptfoo", "promptfoo eval -c promptfooconfig.yaml", ["promptfoo eval"]),
        ("promptfoo", "promptfoo list evals", ["promptfoo list evals"]),
        ("promptfoo", "__expected", ["__expected"]),
        ("mlflow", "prompt registry", ["Prompt Registry"]),
        ("mlflow", "inputs", ["inputs"]),
        ("mastra", "custom scorer", ["custom scorer"]),
        ("phoenix", "human feedback", ["human feedback"]),
        ("spring", "ollama", ["Ollama"]),
        ("spring", "expected_output", ["expected_output"]),
        ("langsmith", "exact_match_async", ["exact_match"]),
        ("langsmith", "client.create_annotation_queue", ["create_annotation_queue"]),
        ("trulens", "tru_session.get_records_and_feedback", ["get_records_and_feedback"]),
        ("mastra", "gateResults", ["gateResults"]),
        ("promptfoo", "promptfoo list evals -n 5", ["promptfoo list evals"]),
        ("inspect", "inspect score logs/a.eval", ["inspect score"]),
        ("promptfoo", "tests.yaml", ["tests"]),
        ("promptfoo", "file://prompts.txt", ["prompts"]),
        ("promptfoo", "promptfooconfig.yaml", ["promptfooconfig.yaml"]),
        ("promptfoo", "yaml", ["promptfooconfig.yaml"]),
        ("phoenix", "JSONParsable", ["JSONParsable"]),
        ("phoenix", "ContainsAnyKeyword(keywords=['a'])", ["ContainsAnyKeyword"]),
        ("lm-eval", "utils.py", ["utils.py"]),
        ("lm-eval", "utils.process_docs", ["process_docs"]),
        ("ragas", "critique", ["critique"]),
        ("ragas", "from ragas.metrics.critique import harmfulness", ["harmfulness"]),
        ("inspect", "essa", []),
        ("promptfoo", "cos", []),
        ("mastra", "purple faithfulness elephants dance", []),
        ("phoenix", "zzz", []),
        ("phoenix", "  ", []),
    ],
)
def test_what_a_user_types_is_found_first(system: str, text: str, expected: list[str]) -> None:
    found = [row.theirs for row in lookup(system, text)]
    assert found[: len(expected)] == expected
    assert bool(found) == bool(expected)


def test_the_options_of_a_scorer_come_with_it_and_no_others() -> None:
    found = lookup("mastra", "createToneScorer")
    assert {row.theirs for row in found if row.kind == "option" and not row.is_common} == {"referenceTone"}
    assert {row.theirs for row in found if row.is_common} >= {"model", "scale"}
    assert "model" not in [row.theirs for row in lookup("ragas", "RunConfig")]


def test_a_name_that_is_not_found_has_the_nearest_and_a_system_its_packages() -> None:
    assert guesses("mastra", "refernceTone") == ["referenceTone"]
    named = {name: system_named(name) for name in ("@mastra/evals", "inspect_ai", "Spring AI", "lm_eval")}
    assert list(named.values()) == ["mastra", "inspect", "spring", "lm-eval"]
    assert [system_named(name) for name in ("raga", "xyz", "")] == [None] * 3


@pytest.mark.parametrize("name", ["create-bias-scorer", "createBiasScorer", "create_bias_scorer", "BiasMetrics"])
def test_a_scorer_of_another_system_is_known_in_any_spelling(name: str) -> None:
    found = counterparts(name)
    assert found
    assert {row.ours.partition("(")[0] for _, row in found} == {"bias"}
