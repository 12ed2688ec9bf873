"""`dry_run`: the estimate of an evaluation, as the command prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstone import ConfigError, dry_run, evaluate

SAMPLES = [
    {"id": str(number), "input": "When?", "output": f"In 185{number}.", "context": ["She died in 1852."]}
    for number in range(3)
]


def test_the_calls_are_those_that_the_evaluation_makes(tmp_path: Path) -> None:
    scorers, ledger = ["context_relevance", "answer_relevancy"], tmp_path / "l.db"
    found = dry_run(SAMPLES, scorers, limit=2, ledger=ledger)
    assert (found.samples, found.dataset_name, found.trials, found.target) == (2, "in memory", 1, None)
    assert found.calls == sum(line.asked for line in evaluate(SAMPLES, scorers, limit=2, ledger=None).summary)
    assert not ledger.exists()


def test_no_judge_is_asked(tmp_path: Path) -> None:
    found = dry_run(SAMPLES, "context_relevance", judge="openai/gpt-5.1", ledger=tmp_path / "l.db")
    assert (found.calls, [line.n_failed for line in found.scorers]) == (3, [0])


def test_the_estimate_has_a_format_and_its_totals() -> None:
    found = dry_run(SAMPLES, "context_relevance", judge="openai/gpt-5.1", trials=1, ledger=None)
    made = found.to_dict()
    assert made["format"] == "estimate/1"
    assert (made["calls"], made["cost"]) == (found.calls, found.cost)
    assert [line["name"] for line in made["scorers"]] == ["context_relevance"]


def test_what_cannot_run_is_refused() -> None:
    with pytest.raises(ConfigError):
        dry_run(SAMPLES, "no_such_scorer")
