"""What scorers say of their scores, and how reasons end: those of scores as sentences, those of skips and failures as
the rest of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from evalstone import ScriptedJudge, evaluate, load
from evalstone.datasets.demo import DEMO_DATA
from evalstone.judges.scripted import Script
from evalstone.scorers import SCORERS, Scorer, parse_scorer
from evalstone.scorers.rag.graded import GradedScorer
from evalstone.types import Failed, Message, Sample, Score, ToolCall, Trajectory, TrajectoryExpectation
from tests.fakes import claims, score_of, verdicts

FOUND = [{"step_type": "tool_call", "name": name, "tool_result": name} for name in ("find", "look")]
SENT = {"step_type": "tool_call", "name": "send", "success": False}
PRICED = [Message(role="user", content="How much?"), Message(role="assistant", content="5 euros.")]
REASONS: list[tuple[str, Sample, Script, str]] = [
    ("f1_tokens", Sample(reference="the red fox", output="a fox, red or blue"), [],
        "2 words in common, of 4 in the answer and 2 in the reference."),
    ("rouge_l", Sample(reference="a b c d", output="a c"), [], "2 words in common, in order, of 2 and 4."),
    ("levenshtein", Sample(reference="sitting", output="kitten"), [], "3 edits; the longer text has 7 characters."),
    ("tone_consistency", Sample(output="A good day now again. A day, six words long now."), [],
        "2 sentences with tones from 0 to 0.6."),
    ("tone_consistency(reference_tone='a good day')", Sample(output="a good long day"), [],
        "The answer's tone is 0.75, the reference's 1."),
    ("recall_at_k", Sample(metadata={"retrieved": list("xaybz"), "relevant": list("abc")}), [],
        "2 of 3 relevant documents among 5 retrieved at rank 2, 4."),
    ("factual_correctness", Sample(output="a b", reference="a b"),
        {"list_claims": claims("a", "b"), "verify_claims": verdicts("supported", "not_mentioned")},
        "precision 0.50, recall 0.50; not in the reference: “b”; left out: “b”."),
    ("multi_turn_judge(criterion='It is priced')", Sample(messages=PRICED),
        [{"reason": "turn 1 does", "verdict": "yes"}], "Over 1 turn, it is met: It is priced (turn 1 does)"),
    ("per_step(scorer=contains(expected=find))", Sample(trajectory=Trajectory.read([FOUND[0], SENT, FOUND[1]])), [],
        "Mean of 2 of 3 steps (step 1, find: 1, step 3, look: 0). Step 3, look: The answer does not contain “find”."),
    ("choice(expected=B)", Sample(output="The answer is (b)."), [], "The answer chooses B; expected B."),
    ("choice(expected=B)", Sample(output=""), [], "No single choice can be read from the answer; expected B."),
    ("numeric_match(expected=10, tolerance=1, which=any)", Sample(output="3, 11 and 1e99999"), [],
        "The nearest number is 11; expected 10 ± 1."),
    ("numeric_match(expected=5)", Sample(output="no idea"), [], "The answer has no number; expected 5."),
    ("not_contains(expected=a)", Sample(output=" "), [], "The answer does not contain “a”."),
]  # fmt: skip
PARAMETERS: dict[str, dict[str, Any]] = {
    "contains": {"expected": "is"},
    "not_contains": {"expected": "is"},
    "tool_called": {"tool": "search"},
    "tool_not_called": {"tool": "search"},
    "tool_order": {"tools": ("search",)},
    "max_tool_calls": {"limit": 1},
    "latency": {"limit": 1},
    "cost": {"limit": 1},
    "tokens": {"limit": 1},
    "json_schema": {"schema": {"type": "object"}},
    "per_turn": {"scorer": "exact_match"},
    "per_step": {"scorer": "contains(expected=France)"},
    "repeated": {"scorer": {"name": "faithfulness", "judge": ScriptedJudge(lambda question: question.example())}},
    "embedding_similarity": {"embedder": lambda texts: [[1.0, 2.0], [2.0, 1.0]]},  # type: ignore[misc]
}


def samples() -> Iterator[Sample]:
    """Some with everything that scorers need, and one that is blank."""
    talk = (
        Message(role="user", content="Where is Paris?"),
        Message(role="assistant", content="Searching.", tool_calls=(ToolCall(name="search", result="France"),)),
        Message(role="assistant", content="In France."),
    )
    for sample in list(load(DEMO_DATA))[:8]:
        yield replace(
            sample,
            reference=sample.output,
            instructions="Be brief.",
            messages=talk,
            expected_trajectory=TrajectoryExpectation.read(["search", "read"]),
            metadata={**sample.metadata, "checks": [{"name": "contains", "expected": "is"}]},
        )
    yield Sample(id="blank", input=" ", output=" ", reference=" ", instructions=" ", context=(" ",))
    yield Sample(id="nothing", output="x")


@pytest.mark.parametrize(
    "judge", ["lexical", ScriptedJudge(lambda question: question.example())], ids=["lexical", "any"]
)
@pytest.mark.parametrize("kind", SCORERS.values(), ids=SCORERS)
def test_a_reason_for_a_score_ends_with_a_period_and_one_for_none_does_not(
    kind: type[Scorer], judge: str | ScriptedJudge
) -> None:
    scorer = kind(**PARAMETERS.get(kind.name, {}))
    any_answer = "contains(expected=x)"  # a run in which nothing can be scored is refused
    for record in evaluate(list(samples()), [scorer, any_answer], judge=judge, ledger=None):
        outcome = record.outcome
        text = outcome.error if isinstance(outcome, Failed) else outcome.reason
        if not isinstance(outcome, Score):
            assert not text.endswith("."), text
        elif not issubclass(kind, GradedScorer):  # which give the judge's own words
            assert text.endswith("."), text


@pytest.mark.parametrize(("scorer", "sample", "script", "reason"), REASONS)
def test_the_reason_of_a_score(scorer: str, sample: Sample, script: Script, reason: str) -> None:
    assert score_of(parse_scorer(scorer), sample, script).reason == reason
