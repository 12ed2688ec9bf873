"""`judge=None` where no scorer needs a judge."""

from __future__ import annotations

from typing import Any

import pytest

from evalstone import ConfigError, Failed, LLMClassifier, Pipeline, ScriptedJudge, evaluate, score, scorer
from evalstone.scorers import PromptStep


@scorer
def short(*, output: str) -> bool:
    return len(output) < 5


@pytest.mark.parametrize("spec", ["contains(expected=a)", short, Pipeline(score=lambda so_far: 1, name="p")])
def test_scorers_that_ask_nothing_need_no_judge(spec: Any) -> None:
    run = evaluate([{"output": "a"}], spec, judge=None, ledger=None)
    assert run.records[0].value == 1
    assert "no judge needed" in str(run)
    assert score(spec, output="a", judge=None).value == 1


def test_a_scorer_with_a_judge_of_its_own_needs_no_other() -> None:
    own = ScriptedJudge([{"reason": "r", "verdict": "yes"}])
    assert score(LLMClassifier("Is {{output}} ok?", judge=own), output="a", judge=None).value == 1


def test_scorers_that_ask_are_named() -> None:
    scorers = ["faithfulness", "contains(expected=a)", Pipeline(score=PromptStep("{{output}}?"), name="p")]
    with pytest.raises(ConfigError, match=r"^faithfulness and p need a"):
        evaluate([{"output": "a"}], scorers, judge=None, ledger=None)
    with pytest.raises(ConfigError, match=r"^toxicity needs a judge"):
        score("toxicity", output="a", judge=None)


@pytest.mark.parametrize(("returned", "value"), [(True, 5.0), (False, 0.0), (2.5, 2.5)])
def test_a_score_step_may_return_a_bool(returned: Any, value: float) -> None:
    assert score(Pipeline(score=lambda so_far: returned, name="p", scale=5), output="a", judge=None).value == value


def test_a_score_step_that_returns_text_fails() -> None:
    outcome = score(Pipeline(score=lambda so_far: "yes", name="p"), output="a", judge=None).outcome
    assert isinstance(outcome, Failed)
    assert outcome.error.endswith("not str: 'yes'")
