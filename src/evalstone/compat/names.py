"""What other systems call what: their names, our scorers, and how the two differ in meaning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NAME = re.compile(r"[ (]")


@dataclass(frozen=True)
class Counterpart:
    """One name of another system. ours: a scorer as it can be written on the command line; empty when there is none."""

    theirs: str
    ours: str
    difference: str = "none"


def _rows(table: str) -> tuple[Counterpart, ...]:
    """The lines `theirs | ours | difference` of a table; "-" for no scorer of ours."""
    return tuple(Counterpart(*line.replace(" | - | ", " |  | ").split(" | ")) for line in table.strip().splitlines())


def counterparts(name: str) -> list[tuple[str, Counterpart]]:
    """What other systems give this name, each with the system."""
    return [(system, row) for system, rows in SYSTEMS.items() for row in rows if _NAME.split(row.theirs)[0] == name]


SYSTEMS: Mapping[str, tuple[Counterpart, ...]] = {
    "mastra": _rows("""
createAnswerRelevancyScorer | answer_relevancy(definition='mastra') | no statements: skipped; weights above 1: refused
createAnswerSimilarityScorer | answer_similarity(definition='mastra') | no units: skipped; negative penalties: refused
createBiasScorer | bias(definition='mastra') | no opinions: skipped, not 0
createToxicityScorer | toxicity(definition='mastra') | no verdicts: skipped, not 1 (most toxic)
createFaithfulnessScorer | faithfulness(definition='mastra') | no claims: skipped, not 0; finds tool results anywhere
createHallucinationScorer | hallucination(definition='mastra') | no claims: skipped, not 0 (perfect)
createContextPrecisionScorer | context_precision(definition='mastra') | needs one verdict per passage
createContextRecallScorer | context_recall(definition='mastra') | no ground truth or no claims: skipped, not 0
createContextRelevanceScorerLLM | context_relevance(definition='mastra') | no evaluations: skipped; negatives: refused
createMultiTurnJudgeScorer | multi_turn_judge(definition='mastra') | a negative scale is refused
createNoiseSensitivityScorerLLM | noise_sensitivity(definition='mastra') | weights outside [0, 1] are refused
createPromptAlignmentScorerLLM | prompt_alignment(definition='mastra') | a score out of range fails
createRubricScorer | rubric(definition='mastra') | what is required is yours to say, not the judge's; no rubric: skipped
createSummarizationScorer | summarization(definition='mastra') | no claims or no questions: skipped, not 0
createToolCallAccuracyScorerLLM | tool_call_appropriateness | needs one verdict per call
createTrajectoryAccuracyScorerLLM | trajectory_judge | needs one verdict per step
createCompletenessScorer | completeness(definition='mastra') | without base forms, which take a tagger
createContentSimilarityScorer | content_similarity | each option is true unless set; theirs is false if the other is set
createKeywordCoverageScorer | keyword_coverage(definition='mastra') | blank text: skipped
createTextualDifferenceScorer | textual_difference(definition='mastra') | blank text: skipped
createToneScorer | tone_consistency(definition='mastra')
createToolCallAccuracyScorerCode | tool_call_accuracy | nothing expected: skipped
createTrajectoryAccuracyScorerCode | trajectory_accuracy(definition='mastra') | none
createTrajectoryScorerCode | trajectory_quality(definition='mastra') | none
checks.includes | contains(expected='…')
checks.excludes | not_contains(expected='…')
checks.equals | exact_match(expected='…')
checks.matches | regex(pattern='…') | Python's regular expressions, no lastIndex
checks.similarity | similarity(expected='…')
checks.calledTool | tool_called(tool='…')
checks.didNotCall | tool_not_called(tool='…')
checks.toolOrder | tool_order(tools=['…'])
checks.maxToolCalls | max_tool_calls(limit=3)
checks.usedNoTools | no_tool_calls
checks.noToolErrors | no_tool_errors
createScorer | - | Pipeline in Python: the same four steps, in a fixed order, with values in [0, scale]
createClassifierScorer | llm_classifier(question='…') | any words with values, and one for abstaining
AnswerRelevancyMetric (0.13) | answer_relevancy(definition='mastra') | no verdicts: skipped; a weight above 1 is refused
BiasMetric (0.13) | bias(definition='mastra') | no opinions: skipped, not 0
ContextPositionMetric (0.13) | context_position(definition='mastra') | no verdicts: skipped, not 0
ContextPrecisionMetric (0.13) | context_precision(definition='mastra') | no verdicts: skipped, not 0
ContextRelevancyMetric (0.13) | context_statement_relevancy | no statements: skipped, not 0
ContextualRecallMetric (0.13) | context_usage(definition='mastra') | not context_recall: it looks at the answer
FaithfulnessMetric (0.13) | faithfulness(definition='mastra') | no claims: skipped, not 0
HallucinationMetric (0.13) | hallucination(definition='mastra') | no claims: skipped, not 0
PromptAlignmentMetric (0.13) | instruction_alignment(definition='mastra') | none
SummarizationMetric (0.13) | summarization(definition='mastra') | the lower of two scores, not rounded first
ToxicityMetric (0.13) | toxicity(definition='mastra') | no verdicts: skipped, not 1 (most toxic)
CompletenessMetric (0.13) | completeness(definition='mastra') | without base forms, which take a tagger
ContentSimilarityMetric (0.13) | content_similarity
KeywordCoverageMetric (0.13) | keyword_coverage(definition='mastra_0_13') | both blank: skipped, not 1
TextualDifferenceMetric (0.13) | textual_difference(definition='mastra_0_13')
ToneConsistencyMetric (0.13) | tone_consistency(definition='mastra_0_13')
"""),
    "spring": _rows("""
RelevancyEvaluator | relevancy_check | passes at 0.5; "Yes." and "YES" are a yes; neither: skipped
FactCheckingEvaluator | fact_check | sentence by sentence, the lowest counts; theirs takes the whole answer
AnswerCorrectnessEvaluator (Alibaba) | answer_correctness | against a reference; theirs asks about the context
AnswerFaithfulnessEvaluator (Alibaba) | answer_faithfulness | passes at 0.75; theirs at anything above 0
AnswerRelevancyEvaluator (Alibaba) | answer_relevance_grade | passes at 0.75, theirs above 0; needs no ground truth
LaajEvaluator (Alibaba) | llm_classifier(question='…') | a judge of your own; no subclass is needed
evaluator template: text similarity | answer_similarity | statement by statement; theirs is one number
evaluator template: code quality | geval(text='…') | theirs is one number by a fixed prompt
evaluator template: sentiment | llm_classifier(question='…') | theirs is from -1 to 1; ours from 0 to scale
"""),
    "ragas": _rows("""
Faithfulness | faithfulness(definition='ragas') | no claims: skipped, not NaN
FaithfulnesswithHHEM | faithfulness(definition='ragas') | verdicts come from the judge you name
ResponseRelevancy | answer_relevancy | another measure: theirs compares embeddings of made-up questions
AnswerRelevancy | answer_relevancy | another measure: theirs compares embeddings of made-up questions
LLMContextPrecisionWithoutReference | context_precision(definition='ragas') | one call for all passages
LLMContextPrecisionWithReference | context_precision(definition='ragas') | useful for the answer, not the reference
LLMContextRecall | context_recall(definition='ragas') | claims of the reference; theirs are sentences
NonLLMContextPrecisionWithReference | - | needs reference passages
NonLLMContextRecall | - | needs reference passages
IDBasedContextPrecision | - | needs IDs of passages
IDBasedContextRecall | - | needs IDs of passages
ContextEntityRecall | - | nearest: completeness(compare_to='reference')
NoiseSensitivity | - | theirs: wrong claims that a passage entails; ours of this name is another measure
ContextRelevance | context_relevance | levels for each passage; theirs is 0, 1 or 2 for all of them
ResponseGroundedness | answer_faithfulness | a grade from 0 to 1; theirs is 0, 1 or 2, by two prompts
AnswerCorrectness | factual_correctness | without the quarter that is an embedding's cosine
AnswerAccuracy | answer_correctness | yes or no; theirs is 0, 2 or 4, by two prompts
FactualCorrectness | factual_correctness | no claims: skipped, not NaN
SemanticSimilarity | answer_similarity | statement by statement with a judge; theirs takes embeddings
NonLLMStringSimilarity | content_similarity(method='edits', compare_to='reference') | Levenshtein
RougeScore | rouge_l | ROUGE-L only
BleuScore | - | not measured here
CHRFScore | - | not measured here
ExactMatch | exact_match | case is ignored unless ignore_case=False
StringPresence | contains | case is ignored unless ignore_case=False
SummarizationScore | summarization | the lower of two shares; theirs is a weighted mean
AspectCritic | llm_classifier(question='…') | yes is 1 and no is 0; the question may have placeholders
SimpleCriteriaScore | geval(text='…') | divided by the range of the scale
RubricsScore | geval(text='…') | divided by the range of the scale
InstanceSpecificRubrics | rubric | required criteria, all or nothing; theirs is a number from 1 to 5
ToolCallAccuracy | tool_call_accuracy | names and order; arguments are compared by trajectory_accuracy
ToolCallF1 | tool_call_accuracy | all or nothing
AgentGoalAccuracy | multi_turn_judge | with the goal as criterion
TopicAdherence | - | nearest: multi_turn_judge
DataCompyScore | - | not measured here
LLMSQLEquivalence | - | nearest: llm_classifier
"""),
    "deepeval": _rows("""
FaithfulnessMetric | faithfulness(definition='deepeval') | against the passages, not a rewrite of them
FaithfulnessMetric(penalize_ambiguous_claims=True) | faithfulness(definition='deepeval_strict') | as above
HallucinationMetric (before 4.0) | hallucination(definition='deepeval') | passages by their citations
HallucinationMetric (from 4.0) | hallucination(definition='deepeval') | theirs is 1 minus ours: higher is better
AnswerRelevancyMetric | answer_relevancy(definition='deepeval') | no statements: skipped, not 1
ContextualPrecisionMetric | context_precision(definition='deepeval') | useful for the answer, not the reference
ContextualRecallMetric | context_recall(definition='deepeval') | claims; theirs are sentences
ContextualRelevancyMetric | context_statement_relevancy | no statements: skipped, not 1
BiasMetric | bias | no opinions: skipped
ToxicityMetric | toxicity | parts of the answer; theirs are opinions
SummarizationMetric | summarization | no claims or no questions: skipped
PromptAlignmentMetric | instruction_alignment | instructions that do not apply are left out
ToolCorrectnessMetric | tool_call_accuracy | all or nothing; theirs is the share of expected tools
ArgumentCorrectnessMetric | tool_call_appropriateness | whether the call was right, arguments included
TaskCompletionMetric | multi_turn_judge | with the task as criterion; yes or no
PlanAdherenceMetric | trajectory_judge | steps that were needed and in order
StepEfficiencyMetric | trajectory_judge | steps that were needed and in order
GEval | geval(text='…') | ratings from 1 to 5 (levels=…); weighted=True for probabilities
ConversationalGEval | multi_turn_judge | yes or no
DAGMetric | - | Pipeline in Python, or several llm_classifier
ArenaGEval | - | not measured here
ExactMatchMetric | exact_match | case is ignored unless ignore_case=False
PatternMatchMetric | regex(pattern='…')
JsonCorrectnessMetric | - | a class with one method
RoleAdherenceMetric | multi_turn_judge | with the role as criterion; yes or no
ConversationCompletenessMetric | multi_turn_judge | yes or no for the whole conversation
KnowledgeRetentionMetric | multi_turn_judge | yes or no for the whole conversation
TurnRelevancyMetric | multi_turn_judge | yes or no for the whole conversation
PIILeakageMetric | llm_classifier(question='…') | yes or no; theirs is a share of statements
MisuseMetric | llm_classifier(question='…') | yes or no; theirs is a share of statements
NonAdviceMetric | llm_classifier(question='…') | yes or no; theirs is a share of statements
RoleViolationMetric | llm_classifier(question='…') | yes or no
"""),
}
