"""What scorers say of a sample to which they give no score, and of replies that are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest

from evalstone import checks
from evalstone.scorers import ContextPrecision, Scorer, parse_scorer
from evalstone.types import Failed, Message, Sample, Skipped, ToolCall, Trajectory, TrajectoryExpectation
from tests.fakes import claims, ratings, record_of, statements, verdicts

ASKED, ANSWERED = Message(role="user", content="Bake."), Message(role="assistant", content="Baked.")
SILENT = Message(role="assistant", content=" \u200b")
PENDING = Message(role="assistant", tool_calls=[ToolCall(name="search", state="call")])
TURNS: Any = [{"input": "And?", "output": "a"}, {"input": "And?", "output": "b"}]
STEPS = Trajectory.read(
    [{"step_type": "tool_call", "name": "find"}, {"step_type": "tool_call", "name": "send", "success": False}]
)
Case: TypeAlias = tuple[Scorer, Sample, Sequence[Any]]


def case(scorer: str | Scorer, sample: Sample, *replies: Any) -> Case:
    return parse_scorer(scorer), sample, replies


def qa(**fields: Any) -> Sample:
    return Sample(**dict[str, Any](id="s1", input="q", output="a") | fields)


def talk(*messages: Message, **fields: Any) -> Sample:
    return Sample(messages=messages or (ASKED, ANSWERED), **fields)


def did(expected: Any = None, trajectory: Trajectory = STEPS, **fields: Any) -> Sample:
    wanted = None if expected is None else TrajectoryExpectation.read(expected)
    return Sample(trajectory=trajectory, expected_trajectory=wanted, **fields)


def each(*values: Any) -> tuple[Any, ...]:
    return values


def found(**lists: Any) -> dict[str, Any]:
    return {name: list(items) for name, items in lists.items()}


def compared(word: str) -> dict[str, Any]:
    return {"matches": {"1": {"reason": "r", "answer": "a", "match": word}}, "extra": [], "contradictions": []}


def steps(count: int) -> dict[str, Any]:
    each = {str(n): {"reason": "r", "necessary": True, "in_order": True} for n in range(1, count + 1)}
    return {"steps": each, "missing": [], "extra": []}


def calls(count: int) -> dict[str, Any]:
    return {"calls": {str(n): {"reason": "r", "appropriate": True} for n in range(1, count + 1)}, "missing": []}


CALLED = talk(ASKED, PENDING, ANSWERED)
ABC = qa(output="a b c", reference="a b c", context=[*"abc"])
SKIPPED: dict[str, list[Case]] = {
    # Nothing that counts.
    "the answer makes no statement": [case("answer_relevancy", qa(), statements()),
        case("answer_relevancy", qa(), statements(" "))],
    "the answer makes no statement; deepeval gives 1 here": [
        case("answer_relevancy(definition=deepeval)", qa(), statements())],
    "the reference makes no statement": [case("answer_similarity", qa(reference="r"), statements("a"), statements())],
    "the answer contains no opinion": [case("bias", qa(), found(opinions=[" "]))],
    "the reference makes no claim": [case("context_recall", ABC, claims())],
    "the reference makes no claim; mastra gives 0 here": [case("context_recall(definition=mastra)", ABC, claims())],
    "the answer makes no claim": [case(name, ABC, claims()) for name in ("faithfulness", "hallucination")],
    "the answer makes no claim; deepeval gives 1 here": [case("faithfulness(definition=deepeval)", ABC, claims())],
    "the answer makes no claim; ragas gives NaN here": [case("faithfulness(definition=ragas)", ABC, claims())],
    "the answer makes no claim; mastra gives 0 here": [case("hallucination(definition=mastra)", ABC, claims())],
    "the judge found no part of the answer to decide on": [case("toxicity", qa(), found(verdicts=[]))],
    "the judge found no question about the source": [
        case("summarization", qa(input="a"), found(questions=[]), claims("a"), verdicts("supported"))],
    "the summary makes no claim": [case("summarization", qa(), found(questions=["q"]), verdicts("yes"), claims()),
        case("summarization", qa(), found(questions=[]), claims())],
    "the judge found no statement in the passages": [case("context_statement_relevancy", ABC, found(verdicts=[]))],
    "the agent made no plan": [case("plan_adherence", talk(), found(steps=[])),
        *(case("plan_quality", talk(state=x), found(steps=[])) for x in each(None, 5, [], {"basket": []})),
        *(case("plan_quality", talk(state={"plan": plan})) for plan in each([], " ", [" "]))],
    "the user asks for nothing": [case("topic_adherence(topics=['baking'])", talk(), found(requests=[]))],
    "the assistant says nothing": [case("multi_turn_judge(criterion=c)", talk(ASKED, SILENT))],
    "the conversation ends with an unanswered user message": [
        case("tool_call_appropriateness", talk(ASKED, ANSWERED, ASKED))],
    "no instruction applies": [case("instruction_alignment(instructions=['i'])", qa(), verdicts("not_applicable"))],
    "the input has no elements": [case("completeness", qa(input="Is it?"))],
    "the input has no keyword": [case("keyword_coverage", qa(input="Is it?"))],
    "the reference has no words except articles":
        [case("f1_tokens", qa(reference=reference)) for reference in ("the", "A.", "?!")],
    "the reference has no words": [case("rouge_l", qa(reference="?!"))],
    "the answer has no words": [case("rouge_l", qa(reference="a", output="…"))],
    "the reference makes no choice among ABCD: 'Paris'": [case("choice(letters=ABCD)", qa(reference="Paris"))],
    # No passages.
    "there are no passages": [
        *(case(f"context_{x}", qa(context=[])) for x in ("position", "precision", "statement_relevancy", "usage")),
        case("context_position(context=[])", ABC),
        case("hallucination(definition=deepeval)", qa(context=[]), claims("a"), verdicts("not_mentioned"))],
    "there are no passages; mastra gives an error here": [case("context_precision(definition=mastra)", qa(context=[]))],
    # Nothing expected.
    "no steps are expected": [case("trajectory_accuracy", did({"maxSteps": 1}))],
    "trajectory_accuracy needs expected_trajectory (or expected=…)": [case("trajectory_accuracy", did())],
    "trajectory_quality needs expected_trajectory (or defaults=…)": [case("trajectory_quality", did())],
    "nothing is expected of the trajectory":
        [case("trajectory_quality", did(x)) for x in each({}, {"ordering": "strict"}, {"blacklistedTools": []})],
    "no tool call is expected: the expected trajectory names none":
        [case("tool_call_f1", did(x)) for x in each({"maxSteps": 3}, [{"step_type": "model_generation", "name": "x"}])],
    "no tool is expected: give tool, order, or an expected trajectory that names tools":
        [case("tool_call_accuracy", did({"maxSteps": 1}, messages=[ASKED, ANSWERED]))],
    # Fields, and entries of metadata, that are absent or blank.
    "answer_correctness needs reference; the input and output are blank": [
        case("answer_correctness", Sample(input=" ", output=""))],
    "content_similarity needs reference": [case("content_similarity(compare_to=reference)", qa())],
    "faithfulness needs context (or tool results in messages)":
        [case("faithfulness", Sample(output="a", messages=[PENDING]))],
    "tone_consistency needs input":
        [case(f"tone_consistency({x})", Sample(output="a")) for x in ("compare_to=input", "definition=mastra_0_13")],
    "goal_reached needs messages (or output, trajectory)": [case("goal_reached", Sample(input="q"))],
    "goal_reached needs input (or messages, goal in metadata)": [case("goal_reached", Sample(output="a"))],
    "plan_adherence needs input (or messages)": [case("plan_adherence", Sample(output="a", metadata={"goal": "g"}))],
    "tool_call_accuracy needs messages (or trajectory)": [case("tool_call_accuracy(tool=a)", Sample(input="q"))],
    "tool_call_accuracy needs input (or messages)": [case("tool_call_accuracy", did(["a"]))],
    "tool_call_accuracy needs expected_trajectory (or order=…, tool=…)":
        [case("tool_call_accuracy", did(None, messages=[ASKED, ANSWERED]))],
    "trajectory_accuracy needs trajectory (or messages)": [case("trajectory_accuracy(expected=['a'])", Sample())],
    "instruction_alignment needs instructions (or instructions=…)": [case("instruction_alignment", qa())],
    "the instructions is blank": [case("instruction_alignment", qa(instructions=" \n"))],
    "prompt_alignment needs input": [case("prompt_alignment(mode=user)", Sample(output="a", instructions="i"))],
    "prompt_alignment needs instructions": [case("prompt_alignment(mode=system)", qa())],
    "prompt_alignment needs input (or instructions)": [case("prompt_alignment", Sample(output="a"))],
    "multi_turn_judge needs criterion in metadata (or criterion=…)": [case("multi_turn_judge", talk())],
    "the criterion in metadata is blank": [case("multi_turn_judge", talk(metadata={"criterion": " \u200b"}))],
    "topic_adherence needs topics in metadata (or topics=…)":
        [case("topic_adherence", talk(metadata=metadata)) for metadata in each({}, {"topics": []})],
    "the topics in metadata is blank": [case("topic_adherence", talk(metadata={"topics": " "}))],
    "rubric needs rubric in metadata (or rubrics, requestContext.rubric, additionalContext.rubric, criteria=…)":
        [case("rubric", qa()), *(case("rubric", qa(metadata={"rubric": x})) for x in each(None, []))],
    "the rubric in metadata is blank": [case("rubric", qa(metadata={"rubric": x})) for x in ("", " \n")],
    "noise_sensitivity needs reference (or baseline=…) and noisy_query in metadata (or noisy_query=…)": [
        case("noise_sensitivity", qa())],
    "noise_sensitivity needs reference (or baseline=…)": [case("noise_sensitivity(noisy_query=n)", qa())],
    "the noisy_query in metadata is blank": [
        case("noise_sensitivity", qa(reference="b", metadata={"noisy_query": " "}))],
    "pairwise needs other in metadata": [case("pairwise(compare_to=other)", qa())],
    "the other in metadata is blank": [case("pairwise(compare_to=other)", qa(metadata={"other": " "}))],
    "c needs context (or tool results in messages) and reference":
        [case("llm_classifier(question='{{context}} {{reference}}?', name=c)", qa())],
    "the input is blank": [case("keyword_coverage(definition=mastra)", qa(input=" "))],
    "the output is blank": [case("keyword_coverage(definition=mastra)", qa(output="")),
        case("textual_difference(compare_to=reference)", qa(output="\u3000", reference="a"))],
    # Turns and steps.
    "exact_match per turn needs turns (or messages)": [case("per_turn(scorer=exact_match)", qa())],
    "no turn has a score: exact_match needs reference (or expected=…)":
        [case("per_turn(scorer=exact_match)", Sample(turns=TURNS))],
    "turn 2: exact_match needs reference (or expected=…)":
        [case("per_turn(scorer=exact_match, turn=-1)", Sample(turns=TURNS))],
    **{f"the conversation has 2 turns, so no turn {turn}":
        [case(f"per_turn(scorer=exact_match, turn={turn})", Sample(turns=TURNS))] for turn in (3, -3, -4)},
    "contains per step needs trajectory (or messages)": [case("per_step(scorer=contains(expected=x))", qa())],
    "step 2, send: it did not succeed": [case("per_step(scorer=contains(expected=x), step=send)", did())],
    "there is no step 'look'; the steps are “find”; “send”": [
        case("per_step(scorer=contains(expected=x), step=look)", did())],
}  # fmt: skip
FAILED: dict[str, list[Case]] = {
    # What the sample has.
    "answer_similarity needs a reference; the sample's is blank": [
        case("answer_similarity(definition=mastra)", qa(reference=""))],
    "context_precision: context_from returned no passages for sample 's1'": [
        case(ContextPrecision(context_from=lambda _: []), qa())],
    **{f"goal_reached: goal in metadata must be text or a list of texts, not {goal}":
        [case("goal_reached", talk(metadata={"goal": goal}))] for goal in each(5, ["a", " "], ["a", 5], {"a": 1})},
    **{f"{spec.partition('(')[0]}: the conversation has {lacking}": [case(spec, talk(message))]
        for spec in ("goal_reached", "plan_adherence", "tool_call_accuracy(tool=a)", "tool_call_appropriateness")
        for message, lacking in (
            (ASKED, "no assistant message"), (ANSWERED, "no user message, and the sample no input"))},
    "multi_turn_judge: the criterion in metadata must be text": [
        case("multi_turn_judge", talk(metadata={"criterion": 5}))],
    "rubric: the rubric in metadata: criteria must be a checklist or a list of criteria, not int": [
        case("rubric", qa(metadata={"rubric": 5}))],
    "topic_adherence: topics in metadata must be text or a list of texts, not [5]": [
        case("topic_adherence", talk(metadata={"topics": [5]}))],
    "plan in state must be text or a list of steps, not {'tier': 'gold'}": [
        case("plan_quality", talk(state={"plan": {"tier": "gold"}}))],
    "the token budget can't be checked: not every model generation has token counts": [
        case("trajectory_quality", did({"maxTotalTokens": 5}))],
    "the duration budget can't be checked: not all durations were measured": [
        case("trajectory_quality", did({"maxTotalDurationMs": 5}))],
    "pairwise: other in metadata must be text, not int": [
        case("pairwise(compare_to=other)", qa(metadata={"other": 3}))],
    "texts of 201 and 200 words are too long to compare; the product of the lengths may be at most 40,000": [
        case("ter", qa(reference="a " * 201, output="b " * 200))],
    "regex: the reference '(' is not a regular expression: missing ), unterminated subpattern at position 0": [
        case("regex", qa(reference="("))],
    **{f"json_schema: the schema refers to {ref.lstrip('#')}, which is not part of it; nothing is fetched":
        [case(checks.json_schema({"$ref": ref}), qa(output="1"))]
        for ref in ("http://127.0.0.1:9/schema.json", "other.json", "#/$defs/nowhere")},
    # What the judge says.
    "3 opinions, 0 verdicts; missing: 1, 2, 3": [case("bias", ABC, found(opinions="abc"), verdicts())],
    "3 opinions, 2 verdicts; missing: 3": [case("bias", ABC, found(opinions="abc"), verdicts("yes", "no"))],
    "3 statements, 1 verdict; missing: 2, 3": [case("answer_relevancy", ABC, statements(*"abc"), verdicts("yes"))],
    "3 claims, 4 verdicts; unknown: '4'": [case("hallucination", ABC, claims(*"abc"), verdicts(*["supported"] * 4))],
    "3 claims, 2 verdicts; missing: 3":
        [case(x, ABC, claims(*"abc"), verdicts(*["supported"] * 2)) for x in ("faithfulness", "context_recall")],
    "3 claims, 0 verdicts; missing: 1, 2, 3": [case("faithfulness", ABC, claims(*"abc"), verdicts())],
    "3 passages, 4 verdicts; unknown: '4'": [case("context_precision", ABC, verdicts(*["yes"] * 4))],
    "3 passages, 2 verdicts; missing: 3": [case("context_precision", ABC, verdicts("yes", "no"))],
    "3 passages, 1 verdict; missing: 2, 3": [case("context_position", ABC, verdicts("yes"))],
    "3 passages, 0 verdicts; missing: 1, 2, 3": [case("context_precision", ABC, verdicts())],
    "3 passages, 1 rating; missing: 2, 3":
        [case(name, ABC, ratings(("high", True))) for name in ("context_relevance", "context_usage")],
    "3 passages, 0 ratings; missing: 1, 2, 3":
        [case(name, ABC, ratings(missing=["all"])) for name in ("context_relevance", "context_usage")],
    "2 instructions, 0 verdicts; missing: 1, 2": [
        case("instruction_alignment(instructions=[i, j])", qa(), verdicts())],
    "2 instructions, 1 verdict; missing: 2": [
        case("instruction_alignment(instructions=[i, j])", qa(), verdicts("yes"))],
    "2 checklist items, 0 verdicts; missing: 1, 2": [case("rubric(criteria=[i, j])", qa(), verdicts())],
    "2 checklist items, 1 verdict; missing: 2": [case("rubric(criteria=[i, j])", qa(), verdicts("yes"))],
    "2 reference statements, 1 match; missing: 2": [
        case("answer_similarity", qa(reference="r"), statements("a"), statements("r", "r"), compared("exact"))],
    "2 steps, 1 verdict; missing: 2": [case("trajectory_judge", did(input="q"), steps(1))],
    "2 steps, 0 verdicts; missing: 1, 2": [case("trajectory_judge", did(input="q"), steps(0))],
    "1 call, 0 verdicts; missing: 1": [case("tool_call_appropriateness", CALLED, calls(0))],
    "1 call, 2 verdicts; unknown: '2'": [case("tool_call_appropriateness", CALLED, calls(2))],
    "a JSON object with the key 'verdicts' was expected":
        [case(x, ABC, {}) for x in ("context_statement_relevancy", "toxicity")],
    "the JSON object in the reply is cut off": [case("toxicity", ABC, '{"verdicts": [')],
    **{f"verdict 1 cites passage 3; there {there}":
        [case("faithfulness", qa(context=context), claims("a"), verdicts(("supported", [3])))]
        for context, there in ((["p", "q"], "are 2 passages"), (["p"], "is 1 passage"))},
    **{f"verdict 1: '{word}' cites the passages that decide it; passages is empty":
        [case("goal_reached", talk(), verdicts((word, [])))] for word in ("reached", "failed")},
    "requests.1: 'Lend 500 euros' is not from the conversation, which doesn't have: 500; take only what it says": [
        case("topic_adherence(topics=['baking'])", talk(), found(requests=["Lend 500 euros"]))],
    "steps.1: 'Pay 300 euros' is not from the conversation, which doesn't have: 300; take only what it says": [
        case("plan_quality", talk(), found(steps=["Pay 300 euros"]))],
}  # fmt: skip
BEGINNINGS: dict[str, list[Case]] = {
    "verdict 2.verdict: ": [
        *(case("bias", ABC, found(opinions="abc"), verdicts("no", word, "no")) for word in ("unsure", "")),
        *(case("answer_relevancy", ABC, statements("a", "b"), verdicts("yes", x)) for x in ("unsure", "partially", "")),
        *(case("context_precision", ABC, verdicts("yes", word, "no")) for word in ("yess", "maybe", "")),
        *(case("instruction_alignment(instructions=[i, j])", qa(), verdicts("yes", x)) for x in ("n/a", "yess", ""))],
    "match 1.match: ": [
        case("answer_similarity", qa(reference="r"), statements("a"), statements("r"), compared("close"))],
    "verdict: ":
        [case("multi_turn_judge(criterion=c)", talk(), reply)
            for reply in each({"reason": "r", "verdict": "perhaps"}, {"verdict": None}, {"reason": "x"}, {})],
    "verdicts.0.statement: ":
        [case("context_statement_relevancy", ABC, {"verdicts": x}) for x in each({"1": {}}, [{"verdict": "yes"}])],
    "verdicts.0.verdict: ": [
        *(case("toxicity", ABC, {"verdicts": [{"reason": "r", "part": "a", "verdict": x}]}) for x in (True, "maybe")),
        case("context_statement_relevancy", ABC, {"verdicts": [{"reason": "r", "statement": "a", "verdict": "so"}]})],
    "0 steps, 3 verdicts; ": [case("trajectory_judge", did(input="q", trajectory=Trajectory()), steps(1))],
    "0 calls, 2 verdicts; ": [case("tool_call_appropriateness", talk(), calls(1))],
    "verdicts: ": [case("toxicity", ABC, {"verdicts": "yes"})],
    "verdicts.0.part: ": [case("toxicity", ABC, found(verdicts=[{"verdict": "yes"}]))],
    "verdict 1.appropriate: ": [
        case("tool_call_appropriateness", CALLED, {"calls": {"1": {"reason": "r"}}, "missing": []})],
}  # fmt: skip
"""By how the error begins: with the place in the reply. What was expected there is said in the words of pydantic."""


def rows(table: dict[str, list[Case]]) -> list[tuple[Scorer, Sample, Sequence[Any], str]]:
    return [(*each, reason) for reason, cases in table.items() for each in cases]


@pytest.mark.parametrize(("scorer", "sample", "replies", "reason"), rows(SKIPPED))
def test_a_sample_to_which_a_scorer_does_not_apply_is_skipped(
    scorer: Scorer, sample: Sample, replies: Sequence[Any], reason: str
) -> None:
    record, judge = record_of(scorer, sample, replies)
    assert record.outcome == Skipped(reason)
    assert len(judge.asked) == len(replies)


@pytest.mark.parametrize(("scorer", "sample", "replies", "error"), rows(FAILED))
def test_a_sample_or_a_reply_that_a_scorer_cannot_read_fails(
    scorer: Scorer, sample: Sample, replies: Sequence[Any], error: str
) -> None:
    outcome = record_of(scorer, sample, replies)[0].outcome
    assert isinstance(outcome, Failed)
    assert outcome.error == error


@pytest.mark.parametrize(("scorer", "sample", "replies", "place"), rows(BEGINNINGS))
def test_a_reply_with_an_unknown_word_fails_instead_of_counting_as_no(
    scorer: Scorer, sample: Sample, replies: Sequence[Any], place: str
) -> None:
    outcome = record_of(scorer, sample, replies)[0].outcome
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith(place)
