"""Latency, cost and tokens: whether what the call of a target took is within a limit."""

from __future__ import annotations

import time
from typing import Any

import pytest

from evalstone import Sample, Score, Skipped, checks, evaluate, score
from evalstone.scorers.checks import Check
from evalstone.targets import Answer
from evalstone.types import Usage

CALL = {"seconds": 1.25, "cost": 0.02, "usage": {"input": 900, "output": 100, "cached": 0, "requests": 1}}


@pytest.mark.parametrize(
    ("check", "value", "reason"),
    [
        (checks.latency(1.25), 1.0, "The answer took 1.25 s; the limit is 1.25 s."),
        (checks.latency(1.2), 0.0, "The answer took 1.25 s; the limit is 1.2 s."),
        (checks.cost(0.02), 1.0, "The answer took $0.0200; the limit is $0.0200."),
        (checks.cost(0.0), 0.0, "The answer took $0.0200; the limit is $0.00."),
        (checks.tokens(1000), 1.0, "The answer took 1,000 tokens; the limit is 1,000 tokens."),
        (checks.tokens(999), 0.0, "The answer took 1,000 tokens; the limit is 999 tokens."),
    ],
)
def test_what_is_within_the_limit_passes(check: Check, value: float, reason: str) -> None:
    outcome = score(check, Sample(input="x", metadata={"target": CALL})).outcome
    assert isinstance(outcome, Score)
    assert (outcome.value, outcome.reason) == (value, reason)
    assert list(outcome.evidence.values()) == [{"latency": 1.25, "cost": 0.02, "tokens": 1000}[check.name]]


@pytest.mark.parametrize("call", [None, 3, {}, {"seconds": "1", "cost": True, "usage": {"input": 3}}])
@pytest.mark.parametrize("check", [checks.latency(1), checks.cost(1), checks.tokens(1)])
def test_what_is_not_known_is_skipped(check: Check, call: Any) -> None:
    outcome = score(check, Sample(input="x", metadata={"target": call})).outcome
    assert outcome == Skipped(f"{check.name} needs {check.needs[0].text}")


def test_they_score_the_calls_of_a_target() -> None:
    def agent(*, input: str) -> Answer:
        time.sleep(0.1 if input == "slow" else 0)
        return Answer(output="x", cost=0.5 if input == "dear" else None, usage=Usage(10, 5))

    rows = [{"input": text} for text in ("slow", "dear", "plain")]
    scorers = ["latency(limit=0.09)", "cost(limit=0.1)", "tokens(limit=15)"]
    run = evaluate(rows, scorers, target=agent, ledger=None)
    values = {
        name: [record.value for record in run if record.signature.startswith(name)] for name in run.titles.values()
    }
    assert values == {"latency": [0.0, 1.0, 1.0], "cost": [None, 0.0, None], "tokens": [1.0, 1.0, 1.0]}
