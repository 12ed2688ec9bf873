"""What other systems call their options, what stands for each here, and what has no counterpart.

A line of a table is `their options | ours | difference`. A section begins with `their scorer = our scorer:` for each
scorer that takes its options, or with the name of a call; its other lines are indented. Ours is as a user writes it: a
parameter of our scorer, a scorer, an option of a command, or a call in Python; "-" for none. Semicolons separate the
counterparts of several options. SCORER is any scorer's name. All scorers of a system take the options of "every …".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """One option of another system. scorers: their scorers that take it, or the call, and our scorer for each."""

    scorers: Mapping[str, str]
    theirs: str
    ours: str
    difference: str = ""

    @property
    def of(self) -> str:
        """Who takes it, for people: `createToneScorer = tone_consistency`."""
        return ", ".join(f"{theirs} = {ours}" if ours else theirs for theirs, ours in self.scorers.items())

    @property
    def is_common(self) -> bool:
        """Whether every scorer of the system takes it."""
        return next(iter(self.scorers)).startswith("every ")


def _options(table: str) -> Iterator[Option]:
    scorers = dict[str, str]()
    for line in table.strip().splitlines():
        row = line.strip()
        if row == line:
            section, _, row = f"{line} ".partition(": ")
            scorers = {name: ours for name, _, ours in (one.partition(" = ") for one in section.split(", "))}
        if not row:
            continue
        theirs, ours, *difference = row.strip().split(" | ")
        names, forms = theirs.split(", "), ("" if ours == "-" else ours).split("; ")
        for name, form in zip(names, forms if len(forms) > 1 else forms * len(names), strict=True):
            yield Option(scorers, name, form, *difference)


def options_for(system: str, name: str) -> list[Option]:
    """The options of a scorer or a call of a system, and those of this name."""
    known = name.lower()
    return [
        one for one in OPTIONS[system] if _is(one, name) or known in (bare(scorer).lower() for scorer in one.scorers)
    ]


def hint(parameter: str, kind: str, name: str, fields: Collection[str]) -> str:
    """Say what a parameter that other systems have is called here; empty if none of them has it.

    kind: the class of our scorer. name: how a run calls it. fields: its parameters.
    """
    found = dict[int, str]()
    for system, option in ((system, each) for system, options in OPTIONS.items() for each in options):
        rank = 0 if _plain(kind) in map(_plain, option.scorers.values()) else 1 if option.is_common else 2
        field = option.ours.partition("=")[0]
        # A parameter of another scorer is no help, and a case is a misspelling.
        fits = parameter.lower() not in fields and (field in fields or (rank < 2 and not field.isidentifier()))
        if fits and _is(option, parameter):
            verdict = f"is {option.ours} here" if option.ours else "has no counterpart here"
            detail = f" ({option.difference})" if option.difference else ""
            found.setdefault(rank, f"{system}'s {option.theirs} {verdict}{detail}".replace("SCORER", name or "SCORER"))
    return found[min(found)] if found else ""


def bare(name: str) -> str:
    """A name without version, publisher and options: `BiasMetric (0.13)` is BiasMetric."""
    return name.partition("(")[0].strip()


def _is(option: Option, name: str) -> bool:
    return _plain(option.theirs) == _plain(name)


def _plain(name: str) -> str:
    return name.rpartition(".")[2].replace("_", "").lower()


_TABLES = {
    "mastra": """
every scorer: model | --judge openai/gpt-5.1 or judge='openai/gpt-5.1' | of scorers with a judge
  scale | scale=10 | above 0; theirs mostly takes 0 as 1
  context | context=['…'] | of scorers that read passages; by default the sample's, else its tool results
  contextExtractor, getContext | context_from=… | of scorers that read passages; a function of the sample
createAnswerRelevancyScorer = answer_relevancy, AnswerRelevancyMetric (0.13) = answer_relevancy:
  uncertaintyWeight | uncertainty_weight=0.3 | at most 1
createAnswerSimilarityScorer = answer_similarity: requireGroundTruth | require_reference=True
  semanticThreshold | semantic=0.8 | at most 1; a credit, as in theirs
  exactMatchBonus, missingPenalty | exact_bonus=0.2; missing=0.15
  contradictionPenalty, extraInfoPenalty | contradiction=1; extra=0.05
createContextRelevanceScorerLLM = context_relevance: penalties.unusedHighRelevanceContext | penalties={'unused': 0.1}
  penalties.missingContextPerItem | penalties={'missing': 0.15}
  penalties.maxMissingContextPenalty | penalties={'missing_limit': 0.5}
createMultiTurnJudgeScorer = multi_turn_judge: criterion | criterion='…' | by default from the sample's metadata
createNoiseSensitivityScorerLLM = noise_sensitivity: baselineResponse, noisyQuery | baseline='…'; noisy_query='…'
  noiseType, scoring.discrepancyThreshold | noise='misinformation'; discrepancy=0.2
  scoring.impactWeights.none, scoring.impactWeights.minimal | none=1; minimal=0.85
  scoring.impactWeights.moderate, scoring.impactWeights.significant | moderate=0.6; significant=0.3
  scoring.impactWeights.severe, scoring.penalties.majorIssuePerItem | severe=0.1; issue=0.1
  scoring.penalties.maxMajorIssuePenalty | issue_limit=0.3
createPromptAlignmentScorerLLM = prompt_alignment: evaluationMode | mode='both'
  includeConversationHistory, maxMessages | history=10 | a number of turns; 0 for none
PromptAlignmentMetric (0.13) = instruction_alignment: instructions | instructions=['…'] | by default the sample's
createRubricScorer = rubric: criteria, rubric | criteria=['…'] | by default rubric in the sample's metadata
  criteria.description, criteria.required | criteria=[{'description': '…', 'required': False}]
createSummarizationScorer = summarization: source, maxQuestions | source='…'; max_questions=10
  sourceExtractor | source_from=… | a function of the sample
createToolCallAccuracyScorerLLM = tool_call_appropriateness: availableTools | tools=['search: finds pages']
createToolCallAccuracyScorerCode = tool_call_accuracy: expectedTool, strictMode | tool='search'; strict=True
  expectedToolOrder | order=['search', 'book']
createTrajectoryAccuracyScorerLLM = trajectory_judge: expectedTrajectory | expected=['search'] | or the sample's
createTrajectoryAccuracyScorerCode = trajectory_accuracy: expectedTrajectory | expected=['search'] | or the sample's
  comparisonOptions.ordering, comparisonOptions.strictOrder | ordering='strict' | strictOrder is only in their docs
  comparisonOptions.allowRepeatedSteps | allow_repeated_steps=False
createTrajectoryScorerCode = trajectory_quality: defaults | defaults={'maxSteps': 5} | keys as in expectedTrajectory
  weights.accuracy, weights.efficiency | weights={'accuracy': 0.4}; weights={'efficiency': 0.3}
  weights.toolFailures, weights.blacklist | weights={'tool_failures': 0.2}; weights={'blacklist': 0.1}
expectedTrajectory: steps, ordering | TrajectoryExpectation(steps=…); TrajectoryExpectation(ordering='relaxed')
  allowRepeatedSteps, maxSteps | TrajectoryExpectation(allow_repeated_steps=True); TrajectoryExpectation(max_steps=5)
  maxTotalTokens | TrajectoryExpectation(max_total_tokens=1000)
  maxTotalDurationMs | TrajectoryExpectation(max_total_duration_ms=1000)
  noRedundantCalls | TrajectoryExpectation(no_redundant_calls=True)
  blacklistedTools | TrajectoryExpectation(blacklisted_tools=…)
  blacklistedSequences | TrajectoryExpectation(blacklisted_sequences=…)
  maxRetriesPerTool | TrajectoryExpectation(max_retries_per_tool=2)
  name, stepType, children | ExpectedStep(name='search'); ExpectedStep(step_type='tool_call'); ExpectedStep(children=…)
  toolArgs, toolResult, success | ExpectedStep(data={'tool_args': {}}) | compared even without a stepType
createContentSimilarityScorer = content_similarity, ContentSimilarityMetric (0.13) = content_similarity:
  ignoreCase | ignore_case=True | true unless set, even if the other is set
  ignoreWhitespace | ignore_whitespace=True | true unless set; no effect on bigrams, as in theirs
createToneScorer = tone_consistency: referenceTone | reference_tone='…'
checks.includes = contains, checks.excludes = not_contains, checks.equals = exact_match:
  expected, ignoreCase | expected='…'; ignore_case=True
checks.matches = regex: pattern, exact | pattern='…'; exact=True
  flags | ignore_case=True | others inside the expression: (?s)
checks.similarity = similarity: expected, ignoreCase, threshold | expected='…'; ignore_case=True; threshold=0.8
checks.calledTool = tool_called: name, times | tool='…'; times=1
checks.didNotCall = tool_not_called: name | tool='…'
checks.toolOrder = tool_order: names | tools=['search', 'book']
checks.maxToolCalls = max_tool_calls: max | limit=3
createScorer: id, name | Pipeline(name='…')
  description | - | the docstring of a scorer's class
  type | Pipeline(required_fields=['messages']) | what functions read; fields in prompts are found
  prepareRun | Pipeline(preprocess=…) | it sees the sample, and can't change it
  preprocess, analyze | Pipeline(preprocess=…); Pipeline(analyze=…) | always in this order
  generateScore | Pipeline(score=…) | after these; a number in [0, scale]
  generateReason | Pipeline(reason=…) | the last step; a text
  createPrompt | PromptStep(template='…') | a template with placeholders
  outputSchema | PromptStep(answer=…) | a type
  notScorable | not_scorable(reason='…') | the sample is skipped
  judge.model | --judge openai/gpt-5.1 or PromptStep(judge=…) | of all steps, or of one
  judge.instructions | PromptStep(instructions='…') | of one step
  judge.modelSettings | --judge 'openai/gpt-5.1(temperature=0.2, max_tokens=500)'
  judge.maxProcessorRetries | --judge 'openai/gpt-5.1(retries=3)' | of malformed replies
  judge.onStream, judge.onStepFinish, judge.onFinish | LoggingJudge(path='judge.jsonl') | each question and its answer
  judge.jsonPromptInjection | - | the strictest form that the endpoint accepts is found by itself
  judge.tools, judge.memory, judge.defaultMemoryOptions, judge.maxSteps | - | a judge answers, and does nothing else
  judge.inputProcessors, judge.outputProcessors, judge.errorProcessors, judge.requestContext | - | it sees its prompt
createClassifierScorer = llm_classifier: id | name='polite'
  classifier, question | question='Is {{output}} right?'
  classifier.criteria | meanings={'yes': '…'}
  scores | choices={'yes': 1, 'no': 0} | values in [0, 1]; None is for abstaining
  type, state | fields=['input', 'output'] | what the judge sees
scorer.run, runEvals: groundTruth, expectedTrajectory | Sample(reference='…'); Sample(expected_trajectory=…)
  input, inputs, turns, output | Sample(input='…', output='…') or Sample(messages=…) | to score turns: a sample for each
  runId, scoreSource | Sample(id='…'); --tag live
  requestContext, additionalContext | Sample(metadata=…)
  requestContextKeys | - | all of the metadata is kept
runEvals: data | evaluate(samples=…) | or a file
  target, targetOptions, startOptions, tracing | - | get the answers first; nothing is generated here
  scorers | --scorer faithfulness | extract_workflow_trajectory makes steps of a workflow's results
  threshold, min, max | --fail-under SCORER=0.8; --fail-under SCORER=0.8; --fail-over SCORER=0.2 | on the mean of a run
  gates | --fail-under SCORER=1 | a score that could not be made is exit code 3, not 0
  concurrency | --concurrency 8 or evaluate(concurrency=8) | judge calls, not items
  onItemComplete | evaluate(on_record=…) | for each sample and scorer
filterRun: dropGroundTruth, dropExpectedTrajectory | --map reference=; --map expected_trajectory=
  dropRequestContext | - | metadata is never judged, but for a rubric, criterion or noisy_query in it
  partTypes, toolNames, maxRememberedMessages, maxOutputMessages | - | shorten the messages before the run
getConversationHistoryFromRunInput: maxMessages | conversation_history(limit=10)
vitest: toHaveScoreAbove | evalstone gate RUN --min SCORER=0.8 | with a test; --fail-under compares the mean
  toHaveScoreBelow | evalstone gate RUN --max SCORER=0.2
  toHaveVerdict, toPassGates, toPassThresholds | evalstone gate RUN --min SCORER=0.8 | by its exit code
  minPassRate | evalstone gate RUN --pass-rate SCORER@1=0.9
live scorers: sampling.type, sampling.rate, filter | - | score the answers that you logged, or those that you choose
scoreTraces: scorerId | --scorer faithfulness
  targets.traceId, targets.spanId | extract_trajectory_from_trace(root='1') | the spans' trajectory goes into a sample
  batchId, datasetId, datasetItemId | --tag batch-7; --name data-7; Sample(id='…')
startExperiment: targetType, targetId, task, unmockedToolPolicy | - | get the answers first; nothing is generated here
  scorers, maxConcurrency, signal | --scorer faithfulness; --concurrency 5; evaluate(stop=…)
  version | - | the hash of the samples is kept with each run
  itemTimeout | --judge 'openai/gpt-5.1(total_timeout=600)' | of one question, retries included
  maxRetries | --judge 'openai/gpt-5.1(retries=3)' | and the same command tries failed scores again
  persistence | --ledger runs.db
  beforeAll, beforeEach, afterEach, afterAll | evaluate(on_record=…) | after each score; the rest is your own code
compareExperiments: experimentIds, baselineId | compare(a=…, b=…); compare(a=…)
""",
    "spring": """
every evaluator: chatClientBuilder | --judge openai/gpt-5.1 or judge='openai/gpt-5.1' or RelevancyEvaluator(judge=…)
  promptTemplate, evaluationPrompt, evaluationPromptText | prompt=… | compat.spring also reads Spring's placeholders
  objectMapper | - | replies are parsed here
  getName | - | the name is the scorer's
FactCheckingEvaluator = fact_check: forBespokeMinicheck, threshold | layout='minicheck'; threshold=0.5
  max_model_len, chunk_size | longest=100000 | of MiniCheck; in characters
LaajEvaluator (Alibaba) = llm_classifier: evaluationPromptText, getName | question='Is {{output}} right?'; name='polite'
EvaluationRequest: userText | EvaluationRequest(user_text='…') or Sample(input='…')
  dataList | EvaluationRequest(data_list=…) or Sample(context=…) | a ground truth goes into reference
  responseContent | EvaluationRequest(response_content='…') or Sample(output='…')
EvaluationResponse: pass, score | EvaluationResponse(passed=True); EvaluationResponse(score=1.0) | None if undecided
  feedback, metadata | EvaluationResponse(feedback='…'); EvaluationResponse(metadata=…) | mostly empty in theirs
PromptTemplate: template | RelevancyEvaluator(prompt=…)
  resource, variables, renderer | - | read files yourself; placeholders are filled from the sample, as it is
StTemplateRenderer: startDelimiterToken, endDelimiterToken | - | single or double braces; JSON needs no escaping
  validationMode, validateStFunctions | - | missing and unknown placeholders are refused when the scorer is made
StructuredOutputValidationAdvisor: outputType, outputJsonSchema | PromptStep(answer=…) | always validated
  maxRepeatAttempts | --judge 'openai/gpt-5.1(retries=3)' | after the last one the outcome is failed
  advisorOrder, objectMapper | - | replies are parsed and checked here; there are no advisors
SelfRefineEvaluationAdvisor: promptTemplate, chatClientBuilder | geval(text='…', levels=4); --judge openai/gpt-5.1
  maxRepeatAttempts, successRating, order | - | answers are scored, not written again
Admin dataset: columns_config | --map output=answer | many names are read without it
  version | - | the hash of the samples is kept with each run
Admin evaluator: model_config, variables | --judge 'openai/gpt-5.1(temperature=0.2)'; --map output=answer
  prompt | llm_classifier(question='Is {{output}} right?') or geval(text='…')
Admin experiment: name, dataset_id, dataset_version_id | --name baseline; evaluate(samples=…); evaluate(samples=…)
  evaluation_object_config | - | get the answers first; nothing is generated here
  evaluator_config | --scorer faithfulness | each with its own parameters
EvaluationSuite: name, criteria | --name baseline; --scorer faithfulness
  default evaluator, default model config | --judge openai/gpt-5.1
  default criterion timeout | --judge 'openai/gpt-5.1(timeout=10)' | of one request, in seconds
EvaluationCriterion: name, description | llm_classifier(question='…', name='polite'); llm_classifier(question='…')
  resultType, options | llm_classifier(question='…', choices={'yes': 1, 'no': 0}) | SCORE: geval; others: PromptStep
  dependsOn, conditionalOn | Pipeline(preprocess=…, analyze=…) | steps in one order; not_scorable ends them
  evaluatorRef, evaluatorType, config | --scorer my_module:my_scorer | a class with parameters
  workingMechanism, fewShots | llm_classifier(question='…', instructions='…')
  reasoningPolicy | llm_classifier(question='…', explain=True) | a reason is always asked for, before the verdict
  promptTemplate | llm_classifier(question='Is {{output}} polite?')
  contextBindings | llm_classifier(question='…', fields=['input', 'output'])
  batching.sourcePath, batching.aggregationStrategy | - | a sample for each item; the mean, or a gate's pass rate
  batching.batchSize, batching.maxConcurrentBatches | --concurrency 10
  timeout | --judge 'openai/gpt-5.1(timeout=10)' | of one request, in seconds
  defaultValue, multimodal | - | an error is never a value; judges see text
""",
    "ragas": """
every metric: llm | --judge openai/gpt-5.1 or judge='openai/gpt-5.1' | of the run, or of one scorer
  embeddings | - | no scorer compares embeddings
  name | - | a scorer is called by its name and parameters
  required_columns | --map output=answer | a scorer's code says what it needs
  output_type | scale=10 | a number in [0, scale]
  max_retries | --judge 'openai/gpt-5.1(retries=3)' | of malformed replies
  single_turn_prompt, multi_turn_prompt, nli_statements_prompt, statement_generator_prompt | - | prompts are fixed
  context_precision_prompt, context_recall_prompt, question_generation, correctness_prompt | - | prompts are fixed
FaithfulnesswithHHEM = faithfulness: device, batch_size | - | verdicts come from the judge; lexical needs no model
ResponseRelevancy = answer_relevancy, AnswerRelevancy = answer_relevancy: strictness | - | no questions are made up
NonLLMContextPrecisionWithReference, NonLLMContextRecall: distance_measure, threshold | - | not measured here
NoiseSensitivity, TopicAdherence: mode | - | not measured here
AnswerCorrectness = factual_correctness: beta | beta=1
  weights, answer_similarity | - | there is no part from embeddings
FactualCorrectness = factual_correctness: beta | beta=1
  mode | - | F-measure; a low beta comes near precision, a high one near recall
  atomicity, coverage | - | claims are split in one way
  language | --judge 'openai/gpt-5.1(language=German)' | of the judge's reasons
SemanticSimilarity = answer_similarity: threshold, is_cross_encoder | - | no scorer compares embeddings
NonLLMStringSimilarity = content_similarity: distance_measure | method='edits' | Levenshtein; no Hamming or Jaro
RougeScore = rouge_l: rouge_type, mode | - | ROUGE-L, F-measure
BleuScore, CHRFScore: kwargs | - | not measured here
SummarizationScore = summarization: length_penalty, coeff | - | the lower of two shares; length does not count
AspectCritic = llm_classifier: definition, name | question='Is {{output}} polite?'; name='polite'
  required_columns | fields=['input', 'output'] | or placeholders in the question
  strictness | --judge 'self_consistency(openai/gpt-5.1(temperature=0.7), n=3)'
SimpleCriteriaScore = geval: definition, name, required_columns | text='…'; name='polite'; fields=['input', 'output']
  strictness | --judge 'self_consistency(openai/gpt-5.1(temperature=0.7), n=3)'
RubricsScore = geval: rubrics | text='…', steps=[], levels=5 | describe the ratings in the text
  name, with_reference | name='polite'; fields=['input', 'output', 'reference']
InstanceSpecificRubrics = rubric: rubrics | Sample(metadata={'rubric': '- …'}) | a checklist for each sample
DiscreteMetric: prompt | llm_classifier(question='Is {{output}} polite?')
  allowed_values | llm_classifier(question='…', choices={'pass': 1, 'fail': 0})
NumericMetric: prompt, allowed_values | geval(text='…'); geval(text='…', levels=10, scale=10)
ToolCallAccuracy = tool_call_accuracy: strict_order | order=['search', 'book'], strict=True
  arg_comparison_metric | - | trajectory_accuracy compares arguments; with ordering='unordered', in any order
DataCompyScore: mode, metric | - | not measured here
evaluate: dataset | evaluate(samples=…) | or a file
  metrics, llm | --scorer faithfulness or evaluate(scorers=…); --judge openai/gpt-5.1 or evaluate(judge='lexical')
  embeddings | - | no scorer compares embeddings
  experiment_name, callbacks | --name baseline or evaluate(name='baseline'); evaluate(on_record=…)
  token_usage_parser | --judge 'openai/gpt-5.1(prices=[1.25, 10])' | tokens and cost are always counted
  raise_exceptions | - | an error is a failed score of one sample; exit code 3
  column_map | --map output=answer or load(mapping={'output': 'answer'}) | field first, then column
  show_progress, batch_size | --quiet or evaluate(progress=False); --concurrency 16
  return_executor | evaluate(stop=…) | a run resumes where it was stopped
  allow_nest_asyncio | aevaluate(samples=…) | no event loop is patched
RunConfig: timeout | --judge 'openai/gpt-5.1(timeout=120)' | of one request, in seconds
  max_retries | --judge 'openai/gpt-5.1(retries=3)' | of malformed replies; others until total_timeout
  max_wait | --judge 'openai/gpt-5.1(total_timeout=600)' | of one question, retries included
  max_workers, seed | --concurrency 16; --judge 'openai/gpt-5.1(seed=42)'
  exception_types, log_tenacity | - | what can be tried again is known for each provider
""",
    "deepeval": """
every metric: threshold | --fail-under SCORER=0.5 or --fail-over SCORER=0.5 | set it on the run; over: lower is better
  model | --judge openai/gpt-5.1 or judge='openai/gpt-5.1' | of the run, or of one scorer
  include_reason | explain=True | a reason is always given; explain has the judge write it, in one more call
  async_mode | --concurrency 1 | always asynchronous; 1 asks one question at a time
  strict_mode | evalstone gate RUN --pass-rate SCORER@1=0.9 | the share of perfect scores: 0 where lower is better
  verbose_mode | --verbose | each score as it arrives; the judge's answers are in records.jsonl
  flaky | - | every mean has a confidence interval
  evaluation_template | - | prompts are fixed; write your own with geval or llm_classifier
FaithfulnessMetric = faithfulness: penalize_ambiguous_claims | definition='deepeval_strict'
  truths_extraction_limit | - | claims are judged against the passages, not a list of truths
SummarizationMetric = summarization: n | max_questions=5
  assessment_questions | - | the judge writes the questions
  truths_extraction_limit | - | claims are judged against the source, not a list of truths
PromptAlignmentMetric = instruction_alignment: prompt_instructions | instructions=['…'] | by default the sample's
ToolCorrectnessMetric = tool_call_accuracy: should_exact_match, should_consider_ordering | strict=True; order=['search']
  available_tools | tool_call_appropriateness(tools=['search']) | a scorer of its own, with a judge
  evaluation_params | - | trajectory_accuracy compares arguments and results
TaskCompletionMetric = multi_turn_judge: task | criterion='…'
GEval = geval: name, criteria, evaluation_steps | name='polite'; text='…'; steps=['…']
  evaluation_params | fields=['input', 'output']
  rubric, rubric.score_range, rubric.expected_outcome | levels=10 | describe the ratings in the text
  top_logprobs | weighted=True | as many as the endpoint gives
ConversationalGEval = multi_turn_judge: criteria, name | criterion='…'; --name baseline
  evaluation_steps, rubric, top_logprobs, evaluation_params | - | one yes or no; write all into the criterion
DAGMetric: name, dag | Pipeline(name='…'); Pipeline(preprocess=…, analyze=…, score=…) | up to four steps, no branches
ArenaGEval: name, criteria, evaluation_steps, evaluation_params | - | not measured; evalstone compare tests two runs
PatternMatchMetric = regex: pattern, ignore_case | pattern='…', exact=True; ignore_case=True
JsonCorrectnessMetric: expected_schema | --scorer my_module:my_scorer | a class with one method
ConversationCompletenessMetric = multi_turn_judge, TurnRelevancyMetric = multi_turn_judge: window_size | - | it sees all
MisuseMetric = llm_classifier: domain | question='Is {{output}} outside banking?'
NonAdviceMetric = llm_classifier: advice_types | question='Does {{output}} give legal advice?'
RoleViolationMetric = llm_classifier: role | question='Does {{output}} leave the role of a clerk?'
LLMTestCase: input, actual_output, expected_output, retrieval_context, metadata | load(source=…) | read by these names
  context | Sample(context=…) | retrieval_context wins; deepeval's hallucination reads context
  tools_called, expected_tools | Sample(messages=…); Sample(expected_trajectory=…)
evaluate: test_cases, metrics | evaluate(samples=…); --scorer faithfulness
  hyperparameters, identifier | --tag model=gpt-5.1; --name baseline
  metric_collection, mcp_servers, official | - | there is no hosted platform
AsyncConfig: max_concurrent, run_async | --concurrency 20; aevaluate(samples=…)
  throttle_value | --judge 'openai/gpt-5.1(requests_per_minute=60)' | a rate, not a pause
DisplayConfig: show_indicator, print_results, verbose_mode | --quiet; --json; --verbose
  display_option, truncate_passing_cases | --top 3 | the worst samples
  results_folder, results_subfolder | --out results
  file_type, file_output_dir, inspect_after_run | --html report.html or --markdown report.md
CacheConfig: write_cache, use_cache | evaluate(ledger=None); --no-cache | answers are kept and used unless these are set
ErrorConfig: ignore_errors, skip_on_missing_params | - | always so: one sample is failed or skipped, and the run goes on
deepeval test run: --exit-on-first-failure | --gate | stops once the thresholds are decided
  --num-processes, --identifier, --display | --concurrency 32; --name baseline; --top 3
  --repeat | --judge 'self_consistency(openai/gpt-5.1(temperature=0.7), n=5)' | repeats the judge, not the task
  --use-cache | --no-cache | answers are used again unless this is set
  --verbose, --mark | --verbose; --scorer faithfulness
  --ignore-errors, --skip-on-missing-params, --show-warnings | - | always so
  --official | - | there is no hosted platform
""",
}
OPTIONS: Mapping[str, tuple[Option, ...]] = {system: tuple(_options(table)) for system, table in _TABLES.items()}
