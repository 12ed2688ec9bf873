from __future__ import annotations

from typing import Any

import pytest

from evalstone.errors import ConfigError
from evalstone.questions import InstructionVerdict, JudgeInstructions
from evalstone.scorers import InstructionAlignment
from evalstone.scorers.text.alignment import followed_share
from evalstone.types import Failed, Sample, Skipped
from tests.fakes import outcome_of, record_of, score_of, verdicts

SCORER = InstructionAlignment(instructions=["Be brief.", "Greet by name.", "Use French."])
SAMPLE = Sample(input="How much?", output="5 euros.")


@pytest.mark.parametrize(
    ("words", "share"),
    [
        (["yes"], 1),
        (["no"], 0),
        (["yes", "no", "not_applicable", "yes"], 2 / 3),
        (["not_applicable", "yes"], 1),
        (["not_applicable"], None),
        ([], None),
    ],
)
def test_instructions_that_do_not_apply_are_left_out(words: list[Any], share: float | None):
    assert followed_share([InstructionVerdict("i", word) for word in words]) == (
        None if share is None else pytest.approx(share)
    )


def test_one_of_two_applicable_is_a_half_and_the_reason_names_the_other():
    score = score_of(
        InstructionAlignment(instructions=SCORER.instructions, scale=10),
        SAMPLE,
        [verdicts("yes", "not_applicable", "no")],
    )
    assert score.value == 5
    assert score.reason == ("1 of 2 applicable instructions are followed, 1 do not apply; not followed: “Use French.”.")


def test_where_none_applies_it_is_skipped_and_0_by_mastra():
    none = verdicts("not_applicable", "not_applicable", "not_applicable")
    assert outcome_of(SCORER, SAMPLE, [none]) == Skipped("no instruction applies")
    score = score_of(InstructionAlignment(instructions=SCORER.instructions, definition="mastra"), SAMPLE, [none])
    assert (score.value, score.reason) == (0, "No instruction applies: 0 by mastra.")


def test_instructions_come_from_the_scorer_or_line_by_line_from_the_sample():
    _, judge = record_of(SCORER, SAMPLE, [verdicts("yes", "yes", "yes")])
    assert judge.asked == [
        JudgeInstructions(
            instructions=("Be brief.", "Greet by name.", "Use French."), request="How much?", answer="5 euros."
        )
    ]
    sample = Sample(output="a", instructions="- Be brief.\n\n- Be kind.")
    _, judge = record_of(InstructionAlignment(), sample, [verdicts("yes", "yes")])
    assert judge.asked == [JudgeInstructions(instructions=("Be brief.", "Be kind."), request="", answer="a")]


def test_a_text_gives_one_instruction_a_line():
    assert InstructionAlignment(instructions="1. a\n2. b").instructions == ("a", "b")


def test_without_instructions_it_is_skipped_and_nothing_is_asked():
    for sample in (SAMPLE, Sample(output="a", instructions=" \n")):
        assert outcome_of(InstructionAlignment(), sample, []) == Skipped("instruction_alignment needs instructions")


def test_a_miscount_fails_none_at_all_included():
    assert isinstance(outcome_of(SCORER, SAMPLE, [verdicts()]), Failed)
    outcome = outcome_of(SCORER, SAMPLE, [verdicts("yes", "no")])
    assert isinstance(outcome, Failed)
    assert outcome.error == "3 instructions, 2 verdicts; missing: 3"


@pytest.mark.parametrize("word", ["n/a", "yess", ""])
def test_an_unknown_word_fails_instead_of_being_left_out(word: str):
    assert isinstance(outcome_of(SCORER, SAMPLE, [verdicts("yes", word, "no")]), Failed)


@pytest.mark.parametrize("given", [[" "], [5], ["a", None]])
def test_a_blank_instruction_is_refused(given: Any):
    with pytest.raises(ConfigError, match="instructions must be a list of texts that are not blank, not"):
        InstructionAlignment(instructions=given)
