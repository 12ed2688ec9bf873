"""The tables of other systems' names: what they name as ours exists, and what they must hold is there."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from dataclasses import MISSING, fields
from typing import Any

import pytest

import evalstone
from evalstone import evaluate, live, parse_judge, scorers, stats, targets, types
from evalstone.agents import from_traces, messages
from evalstone.cli.app import app
from evalstone.cli.init import KINDS as KINDS_OF_PROJECTS
from evalstone.compat import spring
from evalstone.compat.imports.promptfoo import KNOWN
from evalstone.datasets.columns import FIELD_NAMES
from evalstone.errors import ConfigError
from evalstone.scorers import Faithfulness, GEval, LLMClassifier, Pipeline, Scorer, Toxicity, parse_scorer
from evalstone.scorers.other_systems import SYSTEMS, Counterpart, bare, table
from evalstone.scorers.registry import SCORERS, TEMPLATES
from evalstone.targets import parse_target
from tests.test_docs import ROOT, headings

ROWS = [(system, row) for system in SYSTEMS for row in table(system)]
KINDS: dict[str, type[Scorer]] = {**SCORERS, **TEMPLATES}
PUBLIC = (evalstone, scorers, targets, types, live, stats, spring, messages, from_traces)
PARAMETERS = re.compile(r"[a-z_]+=")
FREE = {"--name", "--tag", "--ledger", "--out", "--html", "--markdown", "--csv", "--target-version"}
PAGES = re.compile(r"docs/[\w/-]+\.md")
COMMANDS: Any = app

THEIRS = {
    "mastra": """
        createAnswerRelevancyScorer: model uncertaintyWeight scale
        createAnswerSimilarityScorer: model requireGroundTruth semanticThreshold exactMatchBonus missingPenalty
        createAnswerSimilarityScorer: contradictionPenalty extraInfoPenalty scale
        createBiasScorer: model scale
        createToxicityScorer: model scale
        createFaithfulnessScorer: model context scale
        createHallucinationScorer: model context getContext scale
        createContextPrecisionScorer: model context contextExtractor scale
        createContextRecallScorer: model context contextExtractor scale
        createContextRelevanceScorerLLM: model context contextExtractor scale penalties.unusedHighRelevanceContext
        createContextRelevanceScorerLLM: penalties.missingContextPerItem penalties.maxMissingContextPenalty
        createMultiTurnJudgeScorer: model criterion scale
        createNoiseSensitivityScorerLLM: model baselineResponse noisyQuery noiseType scoring.discrepancyThreshold
        createNoiseSensitivityScorerLLM: scoring.impactWeights.none scoring.impactWeights.minimal
        createNoiseSensitivityScorerLLM: scoring.impactWeights.moderate scoring.impactWeights.significant
        createNoiseSensitivityScorerLLM: scoring.impactWeights.severe scoring.penalties.majorIssuePerItem
        createNoiseSensitivityScorerLLM: scoring.penalties.maxMajorIssuePenalty
        createPromptAlignmentScorerLLM: model evaluationMode scale includeConversationHistory maxMessages
        createRubricScorer: model criteria criteria.description criteria.required scale
        createSummarizationScorer: model source sourceExtractor maxQuestions scale
        createToolCallAccuracyScorerLLM: model availableTools
        createTrajectoryAccuracyScorerLLM: model expectedTrajectory
        createContentSimilarityScorer: ignoreCase ignoreWhitespace
        createToneScorer: referenceTone
        createToolCallAccuracyScorerCode: expectedTool strictMode expectedToolOrder
        createTrajectoryAccuracyScorerCode: expectedTrajectory comparisonOptions.ordering
        createTrajectoryAccuracyScorerCode: comparisonOptions.allowRepeatedSteps
        createTrajectoryScorerCode: defaults weights.accuracy weights.efficiency weights.toolFailures weights.blacklist
        expectedTrajectory: steps ordering allowRepeatedSteps maxSteps maxTotalTokens maxTotalDurationMs
        expectedTrajectory: noRedundantCalls blacklistedTools blacklistedSequences maxRetriesPerTool
        expectedTrajectory: name stepType children toolArgs toolResult success
        checks.includes: expected ignoreCase
        checks.excludes: expected ignoreCase
        checks.equals: expected ignoreCase
        checks.matches: pattern exact
        checks.similarity: expected ignoreCase threshold
        checks.calledTool: name times
        checks.didNotCall: name
        checks.toolOrder: names
        checks.maxToolCalls: max
        createScorer: id name description type prepareRun preprocess analyze generateScore generateReason createPrompt
        createScorer: outputSchema judge.model judge.instructions judge.jsonPromptInjection judge.tools judge.memory
        createScorer: judge.defaultMemoryOptions judge.maxSteps judge.inputProcessors judge.outputProcessors notScorable
        createScorer: judge.errorProcessors judge.maxProcessorRetries judge.modelSettings judge.requestContext
        createScorer: judge.onStream judge.onStepFinish judge.onFinish
        createClassifierScorer: id classifier question scores type state
        scorer.run: input output groundTruth expectedTrajectory runId requestContext requestContextKeys scoreSource
        filterRun: partTypes toolNames maxRememberedMessages maxOutputMessages dropRequestContext dropGroundTruth
        filterRun: dropExpectedTrajectory
        runEvals: data target scorers gates targetOptions concurrency onItemComplete threshold min max input inputs
        runEvals: turns groundTruth expectedTrajectory requestContext startOptions tracing
        getConversationHistoryFromRunInput: maxMessages
        vitest: toHaveVerdict toHaveScoreAbove toHaveScoreBelow toPassGates toPassThresholds minPassRate
        live scorers: sampling.type sampling.rate filter
        scoreTraces: scorerId targets.traceId targets.spanId batchId datasetId datasetItemId
        startExperiment: targetType targetId task scorers version maxConcurrency itemTimeout maxRetries signal
        startExperiment: beforeAll beforeEach afterEach afterAll persistence unmockedToolPolicy
        compareExperiments: experimentIds baselineId
        AnswerRelevancyMetric: uncertaintyWeight scale
        ContextPositionMetric: context scale
        PromptAlignmentMetric: instructions scale
        SummarizationMetric: scale
        ContentSimilarityMetric: ignoreCase ignoreWhitespace
        """,
    "spring": """
        RelevancyEvaluator: chatClientBuilder promptTemplate
        FactCheckingEvaluator: chatClientBuilder evaluationPrompt forBespokeMinicheck
        AnswerCorrectnessEvaluator: chatClientBuilder evaluationPromptText objectMapper getName
        AnswerFaithfulnessEvaluator: chatClientBuilder evaluationPromptText objectMapper getName
        AnswerRelevancyEvaluator: chatClientBuilder evaluationPromptText objectMapper getName
        LaajEvaluator: chatClientBuilder evaluationPromptText objectMapper getName
        EvaluationRequest: userText dataList responseContent
        EvaluationResponse: pass score feedback metadata
        PromptTemplate: template resource variables renderer
        StTemplateRenderer: startDelimiterToken endDelimiterToken validationMode validateStFunctions
        StructuredOutputValidationAdvisor: outputType outputJsonSchema maxRepeatAttempts advisorOrder objectMapper
        SelfRefineEvaluationAdvisor: chatClientBuilder promptTemplate maxRepeatAttempts successRating order
        Admin dataset: columns_config version
        Admin evaluator: model_config prompt variables
        Admin experiment: name dataset_id dataset_version_id evaluation_object_config evaluator_config
        EvaluationCriterion: name description resultType options dependsOn evaluatorRef config workingMechanism fewShots
        EvaluationCriterion: reasoningPolicy promptTemplate contextBindings batching.sourcePath batching.batchSize
        EvaluationCriterion: batching.maxConcurrentBatches batching.aggregationStrategy conditionalOn multimodal
        EvaluationCriterion: timeout defaultValue
        """,
    "ragas": """
        evaluate: dataset metrics llm embeddings experiment_name callbacks token_usage_parser raise_exceptions
        evaluate: column_map show_progress batch_size return_executor allow_nest_asyncio
        RunConfig: timeout max_retries max_wait max_workers exception_types log_tenacity seed
        Faithfulness: llm name max_retries nli_statements_prompt statement_generator_prompt
        FaithfulnesswithHHEM: device batch_size
        ResponseRelevancy: llm embeddings strictness question_generation
        LLMContextPrecisionWithReference: llm context_precision_prompt max_retries
        LLMContextRecall: llm context_recall_prompt max_retries
        NonLLMContextPrecisionWithReference: distance_measure threshold
        NonLLMContextRecall: threshold
        NoiseSensitivity: llm mode
        AnswerCorrectness: llm embeddings weights beta answer_similarity
        FactualCorrectness: llm mode beta atomicity coverage language
        SemanticSimilarity: embeddings threshold is_cross_encoder
        NonLLMStringSimilarity: distance_measure
        RougeScore: rouge_type mode
        SummarizationScore: llm length_penalty coeff
        AspectCritic: llm name definition strictness required_columns output_type single_turn_prompt multi_turn_prompt
        SimpleCriteriaScore: llm name definition strictness required_columns
        RubricsScore: llm name rubrics required_columns with_reference
        InstanceSpecificRubrics: llm rubrics
        ToolCallAccuracy: strict_order arg_comparison_metric
        TopicAdherence: mode
        DataCompyScore: mode metric
        """,
    "deepeval": """
        BiasMetric: threshold model include_reason async_mode strict_mode verbose_mode flaky evaluation_template
        FaithfulnessMetric: threshold truths_extraction_limit penalize_ambiguous_claims
        SummarizationMetric: threshold n assessment_questions truths_extraction_limit
        PromptAlignmentMetric: prompt_instructions
        ToolCorrectnessMetric: available_tools evaluation_params should_exact_match should_consider_ordering
        TaskCompletionMetric: task
        TopicAdherenceMetric: relevant_topics threshold
        GEval: name criteria evaluation_steps evaluation_params rubric top_logprobs threshold strict_mode
        ConversationalGEval: name criteria evaluation_steps evaluation_params rubric top_logprobs
        DAGMetric: name dag threshold
        ArenaGEval: name criteria evaluation_steps evaluation_params
        PatternMatchMetric: pattern ignore_case
        JsonCorrectnessMetric: expected_schema
        ConversationCompletenessMetric: window_size
        TurnRelevancyMetric: window_size
        MisuseMetric: domain
        NonAdviceMetric: advice_types
        RoleViolationMetric: role
        LLMTestCase: input actual_output expected_output context retrieval_context metadata tools_called expected_tools
        evaluate: test_cases metrics metric_collection hyperparameters mcp_servers identifier official
        AsyncConfig: run_async throttle_value max_concurrent
        DisplayConfig: show_indicator print_results verbose_mode display_option results_folder results_subfolder
        DisplayConfig: truncate_passing_cases inspect_after_run file_type file_output_dir
        CacheConfig: write_cache use_cache
        ErrorConfig: ignore_errors skip_on_missing_params
        deepeval test run: --exit-on-first-failure --num-processes --repeat --use-cache --ignore-errors --verbose
        deepeval test run: --skip-on-missing-params --display --mark --identifier --official --show-warnings
        """,
}
"""The options of the other systems, by scorer or call."""


def check_parameters(form: str, ours: list[str]) -> None:
    """The parameters are those of each scorer, which takes their values; `…` stands for any value."""
    names = [str(keyword.arg) for keyword in call_of(f"f({form})").keywords]
    assert ours
    for scorer in ours:
        kind = KINDS[scorer]
        assert set(names) <= {field.name for field in fields(kind) if field.init}, scorer
        required = [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]
        others = [f"{name}='…'" for name in required if name not in names]
        if "=…" not in form:
            assert parse_scorer(f"{scorer}({', '.join([form, *others])})").signature


def check_command(command: str, words: list[str]) -> None:
    """The command has each option, and takes its value."""
    found = COMMANDS.get_command(None, command)
    assert found is not None, f"there is no evalstone {command}"
    if words and words[0].isalpha() and words[0] != "RUN":
        found = found.get_command(None, words.pop(0))
        assert found is not None, f"evalstone {command} has no such command"
    options = {name: each for each in found.params for name in (*each.opts, *each.secondary_opts)}
    while words:
        word = words.pop(0)
        if word == "RUN":
            continue
        assert word in options, f"evalstone {command} has no {word}"
        if not options[word].is_flag:
            check_value(word, words.pop(0))


def check_value(option: str, value: str) -> None:
    if option == "--judge":
        assert parse_judge(value).identity
    elif option == "--scorer":
        assert ":" in value or parse_scorer(value).signature
    elif option == "--require":
        assert value == "faithfulness"
    elif option == "--map":
        assert value.partition("=")[0] in FIELD_NAMES
    elif option == "--slice-by":
        assert value.isidentifier()
    elif option in ("--min", "--max", "--pass-rate"):
        assert re.fullmatch(r"faithfulness(@\d+)?=[\d.]+", value)
    elif option == "--target":
        assert ":" in value or parse_target(value).identity
    elif option in ("--max-regression", "--max-difference"):
        assert re.fullmatch(r"faithfulness=[\d.]+", value)
    elif option in ("--concurrency", "--target-timeout", "--top", "--trials", "--limit", "--budget"):
        assert int(value)
    elif option == "--kind":
        assert value in KINDS_OF_PROJECTS
    else:
        assert option in FREE, f"{option} is not checked"


def call_of(form: str) -> ast.Call:
    call = ast.parse(form.replace("=…", "=..."), mode="eval").body
    assert isinstance(call, ast.Call)
    return call


def check_call(form: str) -> None:
    """What is called is public, and has these parameters; a scorer is made."""
    call = call_of(form)
    assert isinstance(call.func, ast.Name)
    if call.func.id in KINDS and not hasattr(evalstone, call.func.id):
        assert "=…" in form or parse_scorer(form).signature
        return
    called = public(call.func.id)
    assert not call.args
    assert {str(keyword.arg) for keyword in call.keywords} <= inspect.signature(called).parameters.keys()


def public(name: str) -> Any:
    found = [getattr(module, name) for module in PUBLIC if hasattr(module, name)]
    assert found, f"{name} is not public"
    return found[0]


def check_page(form: str) -> None:
    path, _, heading = form.partition("#")
    assert (ROOT / path).is_file(), path
    assert not heading or heading in headings(ROOT / path), form


def check(row: Counterpart, form: str) -> None:
    """What is named is there, and takes the values that are shown."""
    if form.startswith("evalstone "):
        _, command, *words = shlex.split(form)
        check_command(command, words)
    elif form.startswith("--"):
        check_command("run", shlex.split(form))
    elif form.startswith("docs/"):
        check_page(form)
    elif PARAMETERS.match(form):
        assert row.kind == "option"
        names = {str(keyword.arg) for keyword in call_of(f"f({form})").keywords}
        takers = [name for name, kind in KINDS.items() if names <= {field.name for field in fields(kind)}]
        check_parameters(form, takers[:1] if row.is_common else [name for name in row.of.values() if name in takers])
    elif form in KINDS:
        required = [f.name for f in fields(KINDS[form]) if f.init and f.default is MISSING]
        assert set(required) <= {"default_factory"} or parse_scorer(form).signature
    elif form.isidentifier():
        assert public(form) is not None
    else:
        check_call(form)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_name_of_ours_exists_as_it_is_written_and_what_is_absent_has_a_reason(system: str) -> None:
    wrong: list[str] = []
    for row in table(system):
        if not row.ours and not row.difference:
            wrong.append(f"{row.theirs}: no reason")
        for form in filter(None, row.ours.replace("SCORER", "faithfulness").split(" or ")):
            try:
                check(row, form)
            except Exception as error:  # noqa: BLE001 - all of them are shown
                wrong.append(f"{row.theirs}: {form}: {type(error).__name__} {error}")
        wrong += [f"{row.theirs}: {page}" for page in PAGES.findall(row.difference) if not (ROOT / page).is_file()]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("form", "scorers"),
    [
        ("lenght=3", ["max_tool_calls"]),
        ("uncertainty_weight=3", ["answer_relevancy"]),
        ("scale=10", []),
    ],
)
def test_a_wrong_parameter_in_the_table_is_found(form: str, scorers: list[str]) -> None:
    with pytest.raises((AssertionError, ConfigError)):
        check_parameters(form, scorers)


@pytest.mark.parametrize("form", ["--fail-below faithfulness=0.5", "--judge openai/gpt-5.1(warmth=1)", "--map out=x"])
def test_a_wrong_option_in_the_table_is_found(form: str) -> None:
    with pytest.raises((AssertionError, ConfigError)):
        check_command("run", shlex.split(form))


@pytest.mark.parametrize("form", ["evaluate(sample=…)", "Smaple(input='…')", "faithfulness(scal=1)"])
def test_a_wrong_call_in_the_table_is_found(form: str) -> None:
    with pytest.raises((AssertionError, ConfigError, ValueError)):
        check_call(form)


@pytest.mark.parametrize("system", THEIRS)
def test_every_option_of_the_other_systems_has_a_row(system: str) -> None:
    missing: list[str] = []
    options = [row for row in table(system) if row.kind == "option"]
    common = {option.theirs for option in options if option.is_common}
    known = {bare(row.theirs) for row in table(system) if row.kind == "scorer"}
    for line in THEIRS[system].strip().splitlines():
        owner, _, names = line.strip().partition(": ")
        rows = {option.theirs for option in options if owner in map(bare, option.of)}
        rows |= common if owner in known else set[str]()
        missing += [f"{owner}: {name}" for name in names.split() if name not in rows]
    assert missing == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_name_stands_once_and_an_option_is_of_a_scorer_or_call(system: str) -> None:
    names = [(row.theirs, row.kind == "option", row.owners if row.kind == "option" else "") for row in table(system)]
    assert [name for name in dict.fromkeys(names) if names.count(name) > 1] == []
    kinds = {"scorer", "option", "function", "command", "setting", "page"}
    assert {row.kind for row in table(system)} <= kinds
    assert all(bool(row.of) == (row.kind == "option") for row in table(system))


def test_every_type_of_assertion_of_promptfoo_has_a_row() -> None:
    known = {row.theirs for row in table("promptfoo") if row.kind == "scorer"}
    assert KNOWN - known == set()


TOLD = [
    ("faithfulness(threshold=0.5)", "deepeval's threshold is --min faithfulness=0.5 or --max"),
    ("faithfulness(strict_mode=true)", "deepeval's strict_mode is evalstone gate RUN --pass-rate faithfulness@1=0.9"),
    ("faithfulness(truths_extraction_limit=3)", "has no counterpart here (claims are judged against the passages,"),
    ("faithfulness(penalize_ambiguous_claims=True)", "is definition='deepeval_strict' here"),
    ("toxicity(include_reason=true)", "deepeval's include_reason is explain=True here"),
    ("geval(text='x', evaluation_steps=['y'])", "deepeval's evaluation_steps is steps=['…'] here"),
    ("geval(text='x', strictness=3)", "ragas's strictness is --judge 'self_consistency("),
    ("answer_relevancy(strictness=3)", "ragas's strictness has no counterpart here (no questions are generated)"),
    ("answer_relevancy(uncertaintyWeight=0.5)", "mastra's uncertaintyWeight is uncertainty_weight=0.3 here"),
    ("context_recall(contextExtractor=x)", "mastra's contextExtractor is context_from=… here"),
    ("fact_check(promptTemplate=x)", "spring's promptTemplate is prompt=… here"),
    ("llm_classifier(definition=x)", "ragas's definition is question='Is {{output}} polite?' here"),
    ("tool_call_accuracy(strict_mode=true)", "mastra's strictMode is strict=True here"),
    ("geval(text='x', evaluation_step=['y'])", "deepeval's evaluation_steps is steps=['…'] here"),
    ("summarization(maxQuestions=3)", "mastra's maxQuestions is max_questions=10 here"),
]


@pytest.mark.parametrize(("spec", "told"), TOLD)
def test_an_option_of_another_system_is_refused_with_ours(spec: str, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)) as refused:
        parse_scorer(spec)
    name = spec.partition("(")[0]
    assert str(refused.value).startswith(f"{name}: unknown parameter '")


@pytest.mark.parametrize(
    "spec",
    ["bias(context=['x'])", "faithfulness(strictness=3)", "rubric(mode=x)", "contains(evaluation_steps=['x'])"],
)
def test_an_option_that_would_not_help_is_not_named(spec: str) -> None:
    with pytest.raises(ConfigError, match=r"unknown parameter '\w+'; known: "):
        parse_scorer(spec)


def test_a_nested_table_is_refused_as_before() -> None:
    with pytest.raises(ConfigError, match=r"'threshold'; .* missing_limit"):
        parse_scorer("context_relevance(penalties={'threshold': 1})")


@pytest.mark.parametrize(
    ("kind", "parameters", "told"),
    [
        (
            Faithfulness,
            {"threshold": 0.5},
            "Faithfulness: unknown parameter 'threshold'; deepeval's threshold is --min",
        ),
        (Toxicity, {"include_reason": True}, "deepeval's include_reason is explain=True here"),
        (Faithfulness, {"scal": 10}, "Faithfulness: unknown parameter 'scal'; did you mean scale?"),
        (Faithfulness, {"Scale": 10}, "Faithfulness: unknown parameter 'Scale'; did you mean scale?"),
        (Faithfulness, {"contexts": []}, "Faithfulness: unknown parameter 'contexts'; did you mean context"),
        (GEval, {"text": "x", "evaluation_steps": ["y"]}, "GEval: unknown parameter 'evaluation_steps'; deepeval's"),
        (LLMClassifier, {"queston": "x"}, "LLMClassifier: unknown parameter 'queston'; did you mean question?"),
        (Pipeline, {"score": len, "generateScore": len}, "Pipeline: unknown parameter 'generateScore'"),
    ],
)
def test_python_refuses_an_unknown_parameter_as_the_command_line_does(
    kind: Any, parameters: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        kind(**parameters)


def test_a_scorer_with_a_constructor_of_its_own_takes_what_it_declares() -> None:
    class Own(Scorer, init=False):
        name = "own"
        given: tuple[float, dict[str, Any]]

        def __init__(self, threshold: float, **rest: Any) -> None:
            vars(self).update(scale=1.0, given=(threshold, rest))

        def score(self, *, output: str) -> evalstone.Score:
            return evalstone.Score(1.0)

    assert Own(threshold=0.5, other=1).given == (0.5, {"other": 1})


def test_a_run_refuses_an_option_of_another_system_with_ours() -> None:
    with pytest.raises(ConfigError, match="explain=True"):
        evaluate([{"output": "x"}], {"name": "toxicity", "include_reason": True}, ledger=None)
