"""What scorers say of a sample to which they give no score. Other tests ask for the kind of outcome."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone import checks
from evalstone.scorers import (
    SCORERS,
    AnswerRelevancy,
    AnswerSimilarity,
    Bias,
    Completeness,
    ContentSimilarity,
    ContextPosition,
    ContextPrecision,
    ContextRecall,
    ContextStatementRelevancy,
    ContextUsage,
    F1Tokens,
    Faithfulness,
    GoalReached,
    Hallucination,
    InstructionAlignment,
    KeywordCoverage,
    LLMClassifier,
    MultiTurnJudge,
    NoiseSensitivity,
    Pairwise,
    PerStep,
    PerTurn,
    PlanAdherence,
    PlanQuality,
    RougeL,
    Rubric,
    Scorer,
    Summarization,
    Ter,
    TextualDifference,
    ToneConsistency,
    ToolCallAccuracy,
    ToolCallAppropriateness,
    ToolCallF1,
    TopicAdherence,
    Toxicity,
    TrajectoryAccuracy,
    TrajectoryQuality,
)
from evalstone.types import Failed, Message, Sample, Skipped, Trajectory, TrajectoryExpectation
from tests.fakes import claims, record_of, statements, verdicts

ASKED, ANSWERED = Message(role="user", content="Bake."), Message(role="assistant", content="Baked.")
SILENT = Message(role="assistant", content=" \u200b")
TURNS: Any = [{"input": "And?", "output": "a"}, {"input": "And?", "output": "b"}]
STEPS = Trajectory.read(
    [{"step_type": "tool_call", "name": "find"}, {"step_type": "tool_call", "name": "send", "success": False}]
)
MATCH = {"reason": "r", "answer": "a", "match": "exact"}


def qa(**fields: Any) -> Sample:
    return Sample(**{"id": "s1", "input": "q", "output": "a", **fields})


def talk(*messages: Message, **fields: Any) -> Sample:
    return Sample(messages=messages or (ASKED, ANSWERED), **fields)


def did(expected: Any = None) -> Sample:
    wanted = None if expected is None else TrajectoryExpectation.read(expected)
    return Sample(trajectory=STEPS, expected_trajectory=wanted)


SKIPPED: list[tuple[Scorer, Sample, list[Any], str]] = [
    # Nothing that counts.
    (AnswerRelevancy(), qa(), [statements()], "the answer makes no statement"),
    (AnswerRelevancy(), qa(), [statements(" ")], "the answer makes no statement"),
    (AnswerSimilarity(), qa(reference="r"), [statements("a"), statements()], "the reference makes no statement"),
    (Bias(), qa(), [{"opinions": [" "]}], "the answer contains no opinion"),
    (ContextRecall(), qa(reference="r", context=["p"]), [claims()], "the reference makes no claim"),
    (Faithfulness(), qa(context=["p"]), [claims()], "the answer makes no claim"),
    (Hallucination(), qa(context=["p"]), [claims()], "the answer makes no claim"),
    (Toxicity(), qa(), [{"verdicts": []}], "the judge found no part of the answer to decide on"),
    (
        Summarization(),
        qa(input="a"),
        [{"questions": []}, claims("a"), verdicts("supported")],
        "the judge found no question about the source",
    ),
    (Summarization(), qa(), [{"questions": ["q"]}, verdicts("yes"), claims()], "the summary makes no claim"),
    (Summarization(), qa(), [{"questions": []}, claims()], "the summary makes no claim"),
    (
        ContextStatementRelevancy(),
        qa(context=["p"]),
        [{"verdicts": []}],
        "the judge found no statement in the passages",
    ),
    (PlanAdherence(), talk(), [{"steps": []}], "the agent made no plan"),
    *[
        (PlanQuality(), talk(state=state), [{"steps": []}], "the agent made no plan")
        for state in (None, 5, [], {"basket": ["Search"]})
    ],
    *[(PlanQuality(), talk(state={"plan": plan}), [], "the agent made no plan") for plan in ([], " ", [" "])],
    (TopicAdherence(topics=["baking"]), talk(), [{"requests": []}], "the user asks for nothing"),
    (MultiTurnJudge(criterion="c"), talk(ASKED, SILENT), [], "the assistant says nothing"),
    (
        ToolCallAppropriateness(),
        talk(ASKED, ANSWERED, ASKED),
        [],
        "the conversation ends with an unanswered user message",
    ),
    (InstructionAlignment(instructions=["i"]), qa(), [verdicts("not_applicable")], "no instruction applies"),
    (Completeness(), qa(input="Is it?"), [], "the input has no elements"),
    (KeywordCoverage(), qa(input="Is it?"), [], "the input has no keyword"),
    *[
        (F1Tokens(), qa(reference=reference), [], "the reference has no words except articles")
        for reference in ("the", "A.", "?!")
    ],
    (RougeL(), qa(reference="?!"), [], "the reference has no words"),
    (RougeL(), qa(reference="a", output="…"), [], "the answer has no words"),
    (
        checks.choice(letters="ABCD"),
        qa(reference="Paris"),
        [],
        "the reference makes no choice among ABCD: 'Paris'",
    ),
    # No passages.
    *[
        (scorer, qa(context=[]), [], "there are no passages")
        for scorer in (
            ContextPosition(),
            ContextPosition(context=[]),
            ContextPrecision(),
            ContextStatementRelevancy(),
            ContextUsage(),
        )
    ],
    (
        Hallucination(definition="deepeval"),
        qa(context=[]),
        [claims("a"), verdicts("not_mentioned")],
        "there are no passages",
    ),
    # Nothing expected.
    *[(TrajectoryAccuracy(), did(expected), [], "no steps are expected") for expected in (None, {"maxSteps": 1})],
    *[
        (TrajectoryQuality(), did(expected), [], "nothing is expected of the trajectory")
        for expected in (None, {}, {"ordering": "strict"}, {"blacklistedTools": []})
    ],
    *[
        (ToolCallF1(), did(expected), [], "no tool call is expected: the expected trajectory names none")
        for expected in ({"maxSteps": 3}, [{"step_type": "model_generation", "name": "gpt"}])
    ],
    # Fields, and entries of metadata, that are absent or blank.
    (
        SCORERS["answer_correctness"](),
        Sample(input=" ", output=""),
        [],
        "answer_correctness needs reference; the input and output are blank",
    ),
    (ContentSimilarity(compare_to="reference"), qa(), [], "content_similarity needs reference"),
    (ToneConsistency(compare_to="input"), Sample(output="a"), [], "tone_consistency needs input"),
    (ToneConsistency(definition="mastra_0_13"), Sample(output="a"), [], "tone_consistency needs input"),
    (GoalReached(), Sample(input="q"), [], "goal_reached needs messages"),
    (ToolCallAccuracy(tool="a"), Sample(input="q"), [], "tool_call_accuracy needs messages"),
    (TrajectoryAccuracy(expected=["a"]), Sample(), [], "trajectory_accuracy needs trajectory"),
    (InstructionAlignment(), qa(), [], "instruction_alignment needs instructions"),
    (InstructionAlignment(), qa(instructions=" \n"), [], "instruction_alignment needs instructions"),
    *[
        (MultiTurnJudge(), talk(metadata=metadata), [], "multi_turn_judge needs a criterion, its own or in metadata")
        for metadata in ({}, {"criterion": " \u200b"})
    ],
    *[
        (TopicAdherence(), talk(metadata=metadata), [], "topic_adherence needs topics, its own or in metadata")
        for metadata in ({}, {"topics": []}, {"topics": " "})
    ],
    *[
        (Rubric(), qa(metadata=metadata), [], "rubric needs criteria, or a rubric in metadata")
        for metadata in ({}, {"rubric": None}, {"rubric": ""}, {"rubric": " \n"}, {"rubric": []})
    ],
    (NoiseSensitivity(), qa(), [], "noise_sensitivity needs a baseline (or reference) and noisy_query in metadata"),
    (NoiseSensitivity(noisy_query="n"), qa(), [], "noise_sensitivity needs a baseline (or reference)"),
    (
        NoiseSensitivity(),
        qa(reference="b", metadata={"noisy_query": " "}),
        [],
        "noise_sensitivity needs noisy_query in metadata",
    ),
    (Pairwise(compare_to="other"), qa(), [], "pairwise needs other in metadata"),
    (Pairwise(compare_to="other"), qa(metadata={"other": " "}), [], "the other is blank"),
    (LLMClassifier("{{context}} {{reference}}?", name="c"), qa(), [], "c needs context and reference"),
    (KeywordCoverage(definition="mastra"), qa(input=" "), [], "the input is blank"),
    (KeywordCoverage(definition="mastra"), qa(output=""), [], "the output is blank"),
    (TextualDifference(compare_to="reference"), qa(output="\u3000", reference="a"), [], "the output is blank"),
    *[
        (scorer, qa(output=" "), [], "the output is blank")
        for scorer in (ToneConsistency(reference_tone="good"), ToneConsistency(compare_to="input"))
    ],
    # Turns and steps.
    (PerTurn("exact_match"), qa(), [], "exact_match per turn needs turns"),
    (PerTurn("exact_match"), Sample(turns=TURNS), [], "no turn has a score: exact_match needs reference"),
    (PerTurn("exact_match", turn=-1), Sample(turns=TURNS), [], "turn 2: exact_match needs reference"),
    *[
        (PerTurn("exact_match", turn=turn), Sample(turns=TURNS), [], f"the conversation has 2 turns, so no turn {turn}")
        for turn in (3, -3, -4)
    ],
    (PerStep("contains(expected=x)"), qa(), [], "contains per step needs trajectory"),
    (PerStep("contains(expected=x)", step="send"), did(), [], "step 2, send: it did not succeed"),
    (PerStep("contains(expected=x)", step="look"), did(), [], "there is no step 'look'; the steps are “find”; “send”"),
]
FAILED: list[tuple[Scorer, Sample, list[Any], str]] = [
    (
        AnswerSimilarity(definition="mastra"),
        qa(reference=""),
        [],
        "answer_similarity needs a reference; the sample's is blank",
    ),
    (
        AnswerSimilarity(),
        qa(reference="r"),
        [statements("a"), statements("r", "r"), {"matches": {"1": MATCH}, "extra": [], "contradictions": []}],
        "2 reference statements, 1 match; missing: 2",
    ),
    (
        ContextPrecision(context_from=lambda _: []),
        qa(),
        [],
        "context_precision: context_from returned no passages for sample 's1'",
    ),
    *[
        (Faithfulness(), qa(context=context), [claims("a"), verdicts(("supported", [3]))], f"verdict 1 cites {cited}")
        for context, cited in (
            (["p", "q"], "passage 3; there are 2 passages"),
            (["p"], "passage 3; there is 1 passage"),
        )
    ],
    *[
        (
            GoalReached(),
            talk(),
            [{"verdicts": {"1": {"reason": "so", "passages": [], "verdict": word}}}],
            f"verdict 1: '{word}' cites the passages that decide it; passages is empty",
        )
        for word in ("reached", "failed")
    ],
    *[
        (
            GoalReached(),
            talk(metadata={"goal": goal}),
            [],
            f"goal_reached: goal in metadata must be text or a list of texts, not {goal}",
        )
        for goal in (5, ["a", " "], ["a", 5], {"a": 1})
    ],
    *[
        (scorer, talk(message), [], f"{scorer.name}: the conversation has {lacking}")
        for scorer in (GoalReached(), PlanAdherence(), ToolCallAccuracy(tool="a"), ToolCallAppropriateness())
        for message, lacking in (
            (ASKED, "no assistant message"),
            (ANSWERED, "no user message, and the sample no input"),
        )
    ],
    (
        Rubric(),
        qa(metadata={"rubric": 5}),
        [],
        "rubric: the rubric in metadata: criteria must be a checklist or a list of criteria, not int",
    ),
    (
        TopicAdherence(),
        talk(metadata={"topics": [5]}),
        [],
        "topic_adherence: topics in metadata must be text or a list of texts, not [5]",
    ),
    (
        TopicAdherence(topics=["baking"]),
        talk(),
        [{"requests": ["Lend 500 euros"]}],
        "requests.1: 'Lend 500 euros' is not from the conversation, which doesn't have: 500; take only what it says",
    ),
    (
        PlanQuality(),
        talk(),
        [{"steps": ["Pay 300 euros"]}],
        "steps.1: 'Pay 300 euros' is not from the conversation, which doesn't have: 300; take only what it says",
    ),
    (
        PlanQuality(),
        talk(state={"plan": {"tier": "gold"}}),
        [],
        "plan in state must be text or a list of steps, not {'tier': 'gold'}",
    ),
    (
        TrajectoryQuality(),
        did({"maxTotalTokens": 5}),
        [],
        "the token budget can't be checked: not every model generation has token counts",
    ),
    (
        TrajectoryQuality(),
        did({"maxTotalDurationMs": 5}),
        [],
        "the duration budget can't be checked: not all durations were measured",
    ),
    (Pairwise(compare_to="other"), qa(metadata={"other": 3}), [], "pairwise: other in metadata must be text, not int"),
    (
        Ter(),
        qa(reference="a " * 201, output="b " * 200),
        [],
        "texts of 201 and 200 words are too long to compare; the product of the lengths may be at most 40,000",
    ),
    (
        checks.regex(),
        qa(reference="("),
        [],
        "regex: the reference '(' is not a regular expression: missing ), unterminated subpattern at position 0",
    ),
    *[
        (
            checks.json_schema({"$ref": ref}),
            qa(output="1"),
            [],
            f"json_schema: the schema refers to {ref.lstrip('#')}, which is not part of it; nothing is fetched",
        )
        for ref in ("http://127.0.0.1:9/schema.json", "other.json", "#/$defs/nowhere")
    ],
]


@pytest.mark.parametrize(("scorer", "sample", "replies", "reason"), SKIPPED)
def test_a_sample_to_which_a_scorer_does_not_apply_is_skipped(
    scorer: Scorer, sample: Sample, replies: list[Any], reason: str
) -> None:
    record, judge = record_of(scorer, sample, replies)
    assert record.outcome == Skipped(reason)
    assert len(judge.asked) == len(replies)


@pytest.mark.parametrize(("scorer", "sample", "replies", "error"), FAILED)
def test_a_sample_that_a_scorer_cannot_read_fails(
    scorer: Scorer, sample: Sample, replies: list[Any], error: str
) -> None:
    outcome = record_of(scorer, sample, replies)[0].outcome
    assert isinstance(outcome, Failed)
    assert outcome.error == error
