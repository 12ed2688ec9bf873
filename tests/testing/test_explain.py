"""What a score must reach, and how a failure is put in words."""

from __future__ import annotations

import pytest

from evalstone import Failed, Record, Score, Skipped
from evalstone.datasets import load
from evalstone.results.gate_criteria import GateCriteria
from evalstone.results.summary import ScorerInfo
from evalstone.scorers import parse_scorers
from evalstone.testing.explain import Check
from evalstone.testing.marks import Case, Mark, thresholds
from evalstone.types import Outcome


def test_what_is_required_is_the_best_score_of_either_direction() -> None:
    criteria = GateCriteria(minimum={"contains": 0.5}, require=("exact_match", "hallucination"))
    scorers = parse_scorers(["exact_match", "hallucination", "contains", "completeness"])
    case = Case(Mark(), load([{"output": "x"}]), scorers, criteria, ())
    assert list(thresholds(case)) == [1.0, 0.0, 0.5, None]


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Failed("\x1b[2J"), "s failed: \\u001b[2J"),
        (Skipped("\x1b[2J"), "s was skipped: \\u001b[2J"),
        (Score(0.25), "s is 0.25, and must be at least 0.5"),
        (Score(0.5), "s is 0.5"),
    ],
)
def test_an_outcome_is_a_few_words_that_steer_no_terminal(outcome: Outcome, text: str) -> None:
    check = Check(ScorerInfo("s", "s@1", 1.0, False), Record(sample="a", scorer="s@1", outcome=outcome), 0.5)
    assert check.text("s") == text
