from __future__ import annotations

from typing import Any, cast

import pytest

from evalstone import ScriptedJudge, evaluate
from evalstone.questions import AlignmentPart, AlignmentParts, JudgeAlignment
from evalstone.scorers import PromptAlignment
from evalstone.scorers.text.alignment import AlignmentMode, alignment
from evalstone.types import Failed, Message, Sample, Score, Skipped
from tests.fakes import outcome_of, record_of, score_of

SAMPLE = Sample(input="Name two rivers.", output="The Nile.", instructions="Be brief.")


def judged(*numbers: Any, lacking: str = "") -> dict[str, Any]:
    names = ("intent", "requirements", "completeness", "appropriateness")
    return {
        name: {"reason": "because", "lacking": [lacking] if lacking else [], "score": number}
        for name, number in zip(names, numbers, strict=True)
    }


def found(*numbers: float) -> AlignmentParts:
    return AlignmentParts(*(AlignmentPart(number) for number in numbers))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("user", 0.4 * 0.9 + 0.3 * 0.5 + 0.2 * 0.25 + 0.1 * 1),
        ("system", 0.35 * 0.9 + 0.35 * 0.5 + 0.15 * 0.25 + 0.15 * 1),
        ("both", 0.7 * (0.36 + 0.15 + 0.05 + 0.1) + 0.3 * (0.315 + 0.175 + 0.0375 + 0.15)),
    ],
)
def test_each_mode_has_its_weights_and_both_has_those_of_user_and_system(mode: AlignmentMode, expected: float):
    assert alignment(found(0.9, 0.5, 0.25, 1), mode) == pytest.approx(expected)
    assert alignment(found(1, 1, 1, 1), mode) == pytest.approx(1)
    assert alignment(found(0, 0, 0, 0), mode) == 0


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (Sample(output="a", input="q"), 0.66),
        (Sample(output="a", instructions="i"), 0.6775),
        (Sample(output="a", input="q", instructions=" "), 0.66),
        (Sample(output="a", input="q", instructions="i"), 0.7 * 0.66 + 0.3 * 0.6775),
    ],
)
def test_both_weighs_by_the_prompts_that_there_are_and_mastra_by_that_of_the_user(sample: Sample, expected: float):
    reply = judged(0.9, 0.5, 0.25, 1)
    for definition in ("evalstone", "documented"):
        assert score_of(PromptAlignment(definition=definition), sample, [reply]).value == pytest.approx(expected)
    assert score_of(PromptAlignment(definition="mastra"), sample, [reply]).value == pytest.approx(0.66)


def test_the_documented_definition_asks_the_same_question_as_ours():
    judge = ScriptedJudge([judged(0.9, 0.5, 0.25, 1)])
    run = evaluate([SAMPLE], [PromptAlignment(), PromptAlignment(definition="documented")], judge=judge, ledger=None)
    assert len(judge.asked) == 1
    assert run.n_failed == 0


@pytest.mark.parametrize(
    ("numbers", "lacking", "value", "reason"),
    [
        (
            (1, 0.5, 0.5, 1),
            "a river",
            7.5,
            "intent 1 (missing: “a river”); requirements 0.5 (missing: “a river”); "
            "completeness 0.5 (missing: “a river”); appropriateness 1 (missing: “a river”).",
        ),
        ((1, 1, 1, 1), "", 10, "intent 1; requirements 1; completeness 1; appropriateness 1."),
    ],
)
def test_the_reason_names_each_part_and_what_is_lacking(
    numbers: tuple[float, ...], lacking: str, value: float, reason: str
):
    score = score_of(PromptAlignment(scale=10), SAMPLE, [judged(*numbers, lacking=lacking)])
    assert (score.value, score.reason) == (pytest.approx(value), reason)
    assert score.evidence.completeness == AlignmentPart(numbers[2], "because", (lacking,) if lacking else ())


@pytest.mark.parametrize(
    ("mode", "system", "asked"),
    [("both", "Be brief.", "Name two rivers."), ("user", "", "Name two rivers."), ("system", "Be brief.", "")],
)
def test_the_judge_sees_the_prompts_of_the_mode(mode: AlignmentMode, system: str, asked: str):
    _, judge = record_of(PromptAlignment(mode=mode), SAMPLE, [judged(1, 1, 1, 1)])
    assert judge.asked == [JudgeAlignment(system_prompt=system, request=asked, answer="The Nile.", earlier_turns="")]


def test_earlier_turns_are_shown_when_asked_for():
    contents = (("user", "Hello."), ("assistant", "What can I do?"), ("user", SAMPLE.input))
    messages = [Message(role=cast(Any, role), content=content or "") for role, content in contents]
    sample = Sample(input=SAMPLE.input, output=SAMPLE.output, messages=messages)
    _, judge = record_of(PromptAlignment(history=1), sample, [judged(1, 1, 1, 1)])
    [question] = judge.asked
    assert cast(JudgeAlignment, question).earlier_turns == f"assistant: {messages[1].content}"


@pytest.mark.parametrize("sample", [Sample(output="a", input="q"), Sample(output="a", instructions="i")])
def test_either_prompt_is_enough_for_both(sample: Sample):
    assert isinstance(outcome_of(PromptAlignment(), sample, [judged(1, 1, 1, 1)]), Score)


@pytest.mark.parametrize(
    ("mode", "sample", "told"),
    [
        ("user", Sample(output="a", input="", instructions="i"), "the prompt to judge by is empty"),
        ("system", Sample(output="a", input="q", instructions=""), "the prompt to judge by is empty"),
        ("both", Sample(output="a", input="", instructions=""), "the prompt to judge by is empty"),
        ("both", Sample(output="", input="q"), "the answer is empty"),
    ],
)
def test_an_empty_prompt_or_answer_is_skipped_and_by_mastra_an_error(mode: AlignmentMode, sample: Sample, told: str):
    assert isinstance(outcome_of(PromptAlignment(mode=mode), sample, []), Skipped)
    mastra = PromptAlignment(mode=mode, definition="mastra")
    assert outcome_of(mastra, sample, []) == Failed(f"prompt_alignment: {told}")


@pytest.mark.parametrize("number", [-0.01, 1.01, True, "one", None])
def test_a_number_outside_0_to_1_is_asked_again_and_then_fails(number: Any):
    outcome = outcome_of(PromptAlignment(), SAMPLE, [judged(1, number, 1, 1)])
    assert isinstance(outcome, Failed)
    assert outcome.error.startswith("requirements.score: ")
    record, judge = record_of(PromptAlignment(), SAMPLE, [judged(1, number, 1, 1), judged(1, 1, 1, 1)], retries=1)
    assert isinstance(record.outcome, Score)
    assert len(judge.asked) == 1


def test_by_mastra_numbers_count_as_they_are_while_the_score_stays_on_its_scale():
    scorer = PromptAlignment(definition="mastra")
    assert score_of(scorer, SAMPLE, [judged(1.35, 0.12, -0.5, 1)]).value == pytest.approx(0.54 + 0.036 - 0.1 + 0.1)
    for outside, allowed in ((judged(-1, 0, 0, 0), "0 or more"), (judged(2, 1, 1, 1), "in [0, 1]")):
        outcome = outcome_of(scorer, SAMPLE, [outside])
        assert isinstance(outcome, Failed)
        assert allowed in outcome.error


@pytest.mark.parametrize("mode", ["both", "user", "system"])
@pytest.mark.parametrize("scale", [1, 10, 100, 0.3])
def test_a_flawless_answer_has_exactly_the_scale(mode: AlignmentMode, scale: float):
    assert score_of(PromptAlignment(mode=mode, scale=scale), SAMPLE, [judged(1, 1, 1, 1)]).value == scale
