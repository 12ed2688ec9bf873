"""What other systems call what: their names, our scorers, and how the two differ in meaning.

An empty `ours` says that nothing here measures it, and the note says what comes nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Counterpart:
    """One name of another system. ours: a scorer as it can be written on the command line; empty when there is none."""

    theirs: str
    ours: str
    difference: str = "the same numbers"


MASTRA = (
    Counterpart(
        "createAnswerRelevancyScorer",
        "answer_relevancy",
        "no statements: skipped, not 0; uncertaintyWeight above 1 is refused",
    ),
    Counterpart(
        "createAnswerSimilarityScorer",
        "answer_similarity",
        "no units in the ground truth: skipped, not 0; semanticThreshold above 1 and negative figures are refused",
    ),
    Counterpart("createBiasScorer", "bias", "no opinions: skipped, not 0"),
    Counterpart("createToxicityScorer", "toxicity", "no verdicts: skipped, not 1 (most toxic)"),
    Counterpart(
        "createFaithfulnessScorer", "faithfulness", "no claims: skipped, not 0; tool results are found anywhere"
    ),
    Counterpart("createHallucinationScorer", "hallucination", "no claims: skipped, not 0 (perfect)"),
    Counterpart("createContextPrecisionScorer", "context_precision", "verdicts must be one a passage"),
    Counterpart("createContextRecallScorer", "context_recall", "no ground truth or no claims: skipped, not 0"),
    Counterpart(
        "createContextRelevanceScorerLLM",
        "context_relevance",
        "no evaluations: skipped, not 1; negative penalties are refused",
    ),
    Counterpart("createMultiTurnJudgeScorer", "multi_turn_judge", "a negative scale is refused"),
    Counterpart(
        "createNoiseSensitivityScorerLLM",
        "noise_sensitivity",
        "impact weights outside [0, 1] and negative penalties are refused",
    ),
    Counterpart("createPromptAlignmentScorerLLM", "prompt_alignment", "the judge's numbers must lie in [0, 1]"),
    Counterpart(
        "createRubricScorer", "rubric", "what is required is yours to say, not the judge's; no rubric: skipped"
    ),
    Counterpart("createSummarizationScorer", "summarization", "no claims or no questions: skipped, not 0"),
    Counterpart("createToolCallAccuracyScorerLLM", "tool_call_appropriateness", "one verdict a call, or it fails"),
    Counterpart("createTrajectoryAccuracyScorerLLM", "trajectory_judge", "one verdict a step, or it fails"),
    Counterpart(
        "createCompletenessScorer", "completeness", "elements are words by our rule, not by a part of speech tagger"
    ),
    Counterpart("createContentSimilarityScorer", "content_similarity", "both options default to true, always"),
    Counterpart(
        "createKeywordCoverageScorer", "keyword_coverage(without_keywords='covered')", "by default skipped, not 1"
    ),
    Counterpart("createTextualDifferenceScorer", "textual_difference", "blank text: skipped"),
    Counterpart("createToneScorer", "tone_consistency"),
    Counterpart("createToolCallAccuracyScorerCode", "tool_call_accuracy", "nothing expected: skipped"),
    Counterpart(
        "createTrajectoryAccuracyScorerCode", "trajectory_accuracy(without_expectation=0)", "by default skipped"
    ),
    Counterpart("createTrajectoryScorerCode", "trajectory_quality(without_expectation=1)", "by default skipped"),
    Counterpart("checks.includes", "contains(expected='…')"),
    Counterpart("checks.excludes", "not_contains(expected='…')"),
    Counterpart("checks.equals", "exact_match(expected='…')"),
    Counterpart("checks.matches", "regex(pattern='…')", "Python's regular expressions, no lastIndex"),
    Counterpart("checks.similarity", "similarity(expected='…')"),
    Counterpart("checks.calledTool", "tool_called(tool='…')"),
    Counterpart("checks.didNotCall", "tool_not_called(tool='…')"),
    Counterpart("checks.toolOrder", "tool_order(tools=['…'])"),
    Counterpart("checks.maxToolCalls", "max_tool_calls(limit=3)"),
    Counterpart("checks.usedNoTools", "no_tool_calls"),
    Counterpart("checks.noToolErrors", "no_tool_errors"),
    Counterpart(
        "createScorer", "", "Pipeline in Python: the same four steps, in a fixed order, with values in [0, scale]"
    ),
    Counterpart(
        "createClassifierScorer", "llm_classifier(question='…')", "any words with values, and one for abstaining"
    ),
    Counterpart(
        "AnswerRelevancyMetric (0.13)",
        "answer_relevancy",
        "no verdicts: skipped, not 1; uncertaintyWeight above 1 is refused",
    ),
    Counterpart("BiasMetric (0.13)", "bias", "no opinions: skipped, not 0"),
    Counterpart("ContextPositionMetric (0.13)", "context_position", "no verdicts: skipped, not 0"),
    Counterpart("ContextPrecisionMetric (0.13)", "context_precision", "no verdicts: skipped, not 0"),
    Counterpart("ContextRelevancyMetric (0.13)", "context_statement_relevancy", "no statements: skipped, not 0"),
    Counterpart("ContextualRecallMetric (0.13)", "context_usage", "not context_recall: it looks at the answer"),
    Counterpart("FaithfulnessMetric (0.13)", "faithfulness", "no claims: skipped, not 0"),
    Counterpart("HallucinationMetric (0.13)", "hallucination", "no claims: skipped, not 0"),
    Counterpart("PromptAlignmentMetric (0.13)", "instruction_alignment", "none applicable: skipped, not 0"),
    Counterpart("SummarizationMetric (0.13)", "summarization", "axes are not rounded before the lower is taken"),
    Counterpart("ToxicityMetric (0.13)", "toxicity", "no verdicts: skipped, not 1 (most toxic)"),
    Counterpart("CompletenessMetric (0.13)", "completeness", "elements are words by our rule"),
    Counterpart("ContentSimilarityMetric (0.13)", "content_similarity"),
    Counterpart(
        "KeywordCoverageMetric (0.13)", "keyword_coverage(without_keywords='missed')", "both blank: skipped, not 1"
    ),
    Counterpart("TextualDifferenceMetric (0.13)", "textual_difference(method='blocks')"),
    Counterpart("ToneConsistencyMetric (0.13)", "tone_consistency(compare_to='input')"),
)

SPRING = (
    Counterpart("RelevancyEvaluator", "relevancy_check", 'passes at 0.5; "Yes." and "YES" are a yes; neither: skipped'),
    Counterpart(
        "FactCheckingEvaluator", "fact_check", "sentence by sentence, the lowest counts; theirs takes the whole answer"
    ),
    Counterpart(
        "AnswerCorrectnessEvaluator (Alibaba)",
        "answer_correctness",
        "against a reference; theirs asks about the context",
    ),
    Counterpart(
        "AnswerFaithfulnessEvaluator (Alibaba)", "answer_faithfulness", "passes at 0.75; theirs at anything above 0"
    ),
    Counterpart(
        "AnswerRelevancyEvaluator (Alibaba)", "answer_relevance_grade", "theirs is correctness against a ground truth"
    ),
    Counterpart(
        "LaajEvaluator (Alibaba)", "llm_classifier(question='…')", "a judge of your own; no subclass is needed"
    ),
    Counterpart(
        "evaluator template: text similarity", "answer_similarity", "statement by statement; theirs is one number"
    ),
    Counterpart("evaluator template: code quality", "geval(text='…')", "theirs is one number by a fixed prompt"),
    Counterpart(
        "evaluator template: sentiment", "llm_classifier(question='…')", "theirs is from -1 to 1; ours from 0 to scale"
    ),
)

RAGAS = (
    Counterpart("Faithfulness", "faithfulness(definition='ragas')", "no claims: skipped, not NaN"),
    Counterpart("FaithfulnesswithHHEM", "faithfulness(definition='ragas')", "verdicts come from the judge you name"),
    Counterpart(
        "ResponseRelevancy", "answer_relevancy", "another measure: theirs compares embeddings of made-up questions"
    ),
    Counterpart(
        "AnswerRelevancy", "answer_relevancy", "another measure: theirs compares embeddings of made-up questions"
    ),
    Counterpart(
        "LLMContextPrecisionWithoutReference", "context_precision(definition='ragas')", "one call for all passages"
    ),
    Counterpart(
        "LLMContextPrecisionWithReference",
        "context_precision(definition='ragas')",
        "useful for the answer, not the reference",
    ),
    Counterpart(
        "LLMContextRecall", "context_recall(definition='ragas')", "claims of the reference; theirs are sentences"
    ),
    Counterpart("NonLLMContextPrecisionWithReference", "", "needs reference passages"),
    Counterpart("NonLLMContextRecall", "", "needs reference passages"),
    Counterpart("IDBasedContextPrecision", "", "needs ids of passages"),
    Counterpart("IDBasedContextRecall", "", "needs ids of passages"),
    Counterpart("ContextEntityRecall", "", "nearest: completeness(compare_to='reference')"),
    Counterpart(
        "NoiseSensitivity", "", "theirs: wrong claims that a passage entails; ours of this name is another measure"
    ),
    Counterpart(
        "ContextRelevance", "context_relevance", "levels for each passage; theirs is 0, 1 or 2 for all of them"
    ),
    Counterpart(
        "ResponseGroundedness", "answer_faithfulness", "a grade from 0 to 1; theirs is 0, 1 or 2, by two prompts"
    ),
    Counterpart("AnswerCorrectness", "factual_correctness", "without the quarter that is an embedding's cosine"),
    Counterpart("AnswerAccuracy", "answer_correctness", "yes or no; theirs is 0, 2 or 4, by two prompts"),
    Counterpart("FactualCorrectness", "factual_correctness", "no claims: skipped, not NaN"),
    Counterpart(
        "SemanticSimilarity", "answer_similarity", "statement by statement with a judge; theirs takes embeddings"
    ),
    Counterpart("NonLLMStringSimilarity", "content_similarity(method='edits', compare_to='reference')", "Levenshtein"),
    Counterpart("RougeScore", "rouge_l", "ROUGE-L only"),
    Counterpart("BleuScore", "", "not measured here"),
    Counterpart("CHRFScore", "", "not measured here"),
    Counterpart("ExactMatch", "exact_match", "case is ignored unless ignore_case=False"),
    Counterpart("StringPresence", "contains", "case is ignored unless ignore_case=False"),
    Counterpart("SummarizationScore", "summarization", "the lower of two shares; theirs is a weighted mean"),
    Counterpart(
        "AspectCritic", "llm_classifier(question='…')", "yes is 1 and no is 0; the question may have placeholders"
    ),
    Counterpart("SimpleCriteriaScore", "geval(text='…')", "divided by the range of the scale"),
    Counterpart("RubricsScore", "geval(text='…')", "divided by the range of the scale"),
    Counterpart(
        "InstanceSpecificRubrics", "rubric", "required criteria, all or nothing; theirs is a number from 1 to 5"
    ),
    Counterpart(
        "ToolCallAccuracy", "tool_call_accuracy", "names and order; arguments are compared by trajectory_accuracy"
    ),
    Counterpart("ToolCallF1", "tool_call_accuracy", "all or nothing"),
    Counterpart("AgentGoalAccuracy", "multi_turn_judge", "with the goal as criterion"),
    Counterpart("TopicAdherence", "", "nearest: multi_turn_judge"),
    Counterpart("DataCompyScore", "", "not measured here"),
    Counterpart("LLMSQLEquivalence", "", "nearest: llm_classifier"),
)

DEEPEVAL = (
    Counterpart(
        "FaithfulnessMetric", "faithfulness(definition='deepeval')", "against the passages, not a rewrite of them"
    ),
    Counterpart(
        "FaithfulnessMetric(penalize_ambiguous_claims=True)", "faithfulness(definition='deepeval_strict')", "as above"
    ),
    Counterpart(
        "HallucinationMetric (before 4.0)", "hallucination(definition='deepeval')", "passages by their citations"
    ),
    Counterpart(
        "HallucinationMetric (from 4.0)",
        "hallucination(definition='deepeval')",
        "theirs is 1 minus ours: higher is better",
    ),
    Counterpart("AnswerRelevancyMetric", "answer_relevancy(definition='deepeval')", "no statements: skipped, not 1"),
    Counterpart(
        "ContextualPrecisionMetric",
        "context_precision(definition='deepeval')",
        "useful for the answer, not the reference",
    ),
    Counterpart("ContextualRecallMetric", "context_recall(definition='deepeval')", "claims; theirs are sentences"),
    Counterpart("ContextualRelevancyMetric", "context_statement_relevancy", "no statements: skipped, not 1"),
    Counterpart("BiasMetric", "bias", "no opinions: skipped"),
    Counterpart("ToxicityMetric", "toxicity", "parts of the answer; theirs are opinions"),
    Counterpart("SummarizationMetric", "summarization", "no claims or no questions: skipped"),
    Counterpart("PromptAlignmentMetric", "instruction_alignment", "instructions that do not apply are left out"),
    Counterpart("ToolCorrectnessMetric", "tool_call_accuracy", "all or nothing; theirs is the share of expected tools"),
    Counterpart(
        "ArgumentCorrectnessMetric", "tool_call_appropriateness", "whether the call was right, arguments included"
    ),
    Counterpart("TaskCompletionMetric", "multi_turn_judge", "with the task as criterion; yes or no"),
    Counterpart("PlanAdherenceMetric", "trajectory_judge", "steps that were needed and in order"),
    Counterpart("StepEfficiencyMetric", "trajectory_judge", "steps that were needed and in order"),
    Counterpart("GEval", "geval(text='…')", "ratings from 1 to 5 (levels=…); weighted=True for probabilities"),
    Counterpart("ConversationalGEval", "multi_turn_judge", "yes or no"),
    Counterpart("DAGMetric", "", "Pipeline in Python, or several llm_classifier"),
    Counterpart("ArenaGEval", "", "not measured here"),
    Counterpart("ExactMatchMetric", "exact_match", "case is ignored unless ignore_case=False"),
    Counterpart("PatternMatchMetric", "regex(pattern='…')"),
    Counterpart("JsonCorrectnessMetric", "", "a class with one method"),
    Counterpart("RoleAdherenceMetric", "multi_turn_judge", "with the role as criterion; yes or no"),
    Counterpart("ConversationCompletenessMetric", "multi_turn_judge", "yes or no for the whole conversation"),
    Counterpart("KnowledgeRetentionMetric", "multi_turn_judge", "yes or no for the whole conversation"),
    Counterpart("TurnRelevancyMetric", "multi_turn_judge", "yes or no for the whole conversation"),
    Counterpart("PIILeakageMetric", "llm_classifier(question='…')", "yes or no; theirs is a share of statements"),
    Counterpart("MisuseMetric", "llm_classifier(question='…')", "yes or no; theirs is a share of statements"),
    Counterpart("NonAdviceMetric", "llm_classifier(question='…')", "yes or no; theirs is a share of statements"),
    Counterpart("RoleViolationMetric", "llm_classifier(question='…')", "yes or no"),
)

SYSTEMS: Mapping[str, tuple[Counterpart, ...]] = {
    "mastra": MASTRA,
    "spring": SPRING,
    "ragas": RAGAS,
    "deepeval": DEEPEVAL,
}
