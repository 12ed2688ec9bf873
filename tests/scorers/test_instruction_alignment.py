from __future__ import annotations

from typing import Any

import pytest

from evalstone.questions import InstructionVerdict, JudgeInstructions
from evalstone.scorers import InstructionAlignment
from evalstone.scorers.text.alignment import followed_share
from evalstone.types import Sample
from tests.fakes import record_of, score_of, verdicts

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


@pytest.mark.parametrize(
    ("definition", "words", "value", "reason"),
    [
        (
            "evalstone",
            ("yes", "not_applicable", "no"),
            5,
            "1 of 2 applicable instructions are followed, 1 does not apply; not followed: “Use French.”.",
        ),
        ("mastra", ("not_applicable",) * 3, 0, "No instruction applies: 0 by mastra."),
    ],
)
def test_the_reason_counts_what_applies_and_names_what_is_not_followed(
    definition: Any, words: tuple[str, ...], value: float, reason: str
):
    scorer = InstructionAlignment(instructions=SCORER.instructions, scale=10, definition=definition)
    score = score_of(scorer, SAMPLE, [verdicts(*words)])
    assert (score.value, score.reason) == (value, reason)


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
