"""Runs that are too large are refused before any work, and long loops over a plan can be stopped."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import ConfigError, Run, Score, evaluate
from evalstone._core.sizes import MOST_OUTCOMES, MOST_TRIALS
from evalstone.datasets import loading
from evalstone.errors import DataError, OutcomeError, RunStopped
from evalstone.judges.model import ModelJudge
from evalstone.live import Live
from evalstone.run.budget import StopSignal
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.scorers import Faithfulness
from evalstone.targets import HTTPTarget
from evalstone.targets.users import FunctionUser
from evalstone.types import StoredTarget
from evalstone.types.metadata import StoredScorer
from tests.refusals import refused

HUGE = 99_999_999_999
SAMPLES = [{"id": f"q{n}", "input": f"{n}"} for n in range(3)]


def agent(input: str) -> str:
    raise AssertionError("nothing may be called")


def talk(turn: int) -> str:
    raise AssertionError("nothing may be called")


def one(output: str) -> Score:
    return Score(1.0)


Sized = Callable[[int], object]
# The limits are numbers here, because users rely on those that the documentation names.
SIZED: list[tuple[Sized, str, int, int]] = [
    (lambda n: evaluate(SAMPLES, one, target=agent, trials=n, ledger=None), "trials", 1, 10_000),
    (lambda n: evaluate(SAMPLES, one, concurrency=n, ledger=None), "concurrency", 1, 10_000),
    (lambda n: Live([one], concurrency=n), "concurrency", 1, 10_000),
    (lambda n: Live([one], queue=n), "queue", 1, 10_000_000),
    (lambda n: FunctionUser(function=talk, max_turns=n), "max_turns", 1, 10_000),
    (lambda n: ModelJudge("vllm/m", base_url="http://h/v1", retries=n), "retries", 0, 1000),
    (lambda n: HTTPTarget(url="http://h", body={"q": "{input}"}, retries=n), "retries", 0, 1000),
]


@pytest.mark.parametrize(("call", "name", "least", "most"), SIZED)
def test_a_number_that_sizes_a_run_has_a_limit(call: Sized, name: str, least: int, most: int) -> None:
    for number in (least - 1, most + 1, HUGE, 10**30):
        with pytest.raises(ConfigError, match=f"^{name} .* from {least} to {most}, not {number}"):
            call(number)


def test_a_saved_run_with_impossible_trials_is_damaged() -> None:
    assert StoredTarget(identity="a", trials=10_000).trials == 10_000
    with pytest.raises(DataError, match=r"trials .* 1 to 10000"):
        StoredTarget(identity="a", trials=10_001)


def test_a_scale_whose_squares_overflow_is_refused_at_every_door() -> None:
    assert Score(1.0, scale=1e100).scale == 1e100
    assert Faithfulness(scale=1e100).scale == 1e100
    assert StoredScorer(name="a", signature="a@1", scale=1e100, lower_is_better=False).scale == 1e100
    with pytest.raises(OutcomeError, match=r"scale .* 1e\+100 .* 1e\+101$"):
        Score(1.0, scale=1e101)
    with refused("scale", "a number above 0 and up to 1e+100"):
        Faithfulness(scale=1e101)
    for scale in (0.0, -1.0, 1e101):
        with pytest.raises(DataError, match=r"scale of a .* above 0, .*1e\+100"):
            StoredScorer(name="a", signature="a@1", scale=scale, lower_is_better=False)


def test_too_many_outcomes_are_refused_with_what_multiplies() -> None:
    samples = [{"id": f"q{n}", "input": f"{n}"} for n in range(MOST_OUTCOMES // MOST_TRIALS // 2 + 1)]
    plan = plan_for(samples, [one, "exact_match"], target=agent, trials=MOST_TRIALS)
    problem = "5,001 samples × 10,000 trials × 2 scorers are 100,020,000 outcomes; a run can have at most 100,000,000: "
    for act in (plan.check, lambda: asyncio.run(estimate(plan))):
        with pytest.raises(ConfigError, match=f"^{problem}split the samples"):
            act()


def test_a_dry_run_can_be_canceled_while_it_counts_calls() -> None:
    plan = plan_for(SAMPLES, one, target=agent, trials=MOST_TRIALS)

    async def cancel() -> float:
        whole = asyncio.create_task(estimate(replace(plan, trials=MOST_TRIALS // 10)))
        began = time.perf_counter()
        await whole
        tenth = time.perf_counter() - began
        task = asyncio.create_task(estimate(plan))
        await asyncio.sleep(tenth)
        began = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (time.perf_counter() - began) / tenth

    assert asyncio.run(cancel()) < 3  # the rest of the loop would take nine times as long


@pytest.mark.slow
def test_a_stop_ends_the_loops_of_a_resumed_run(tmp_path: Path) -> None:
    stop, url, asked = StopSignal(), f"sqlite:///{tmp_path}/l.db", list[str]()

    def answer(input: str) -> str:
        asked.append(input)
        stop.request("enough")
        return input

    settings: dict[str, Any] = {"target": answer, "trials": MOST_TRIALS, "ledger": url}
    first = evaluate(SAMPLES, one, stop=stop, **settings)
    assert not first.complete
    calls = len(asked)
    stop = StopSignal()
    stop.request("interrupted")
    with pytest.raises(RunStopped, match="interrupted"):
        evaluate(SAMPLES, one, stop=stop, on_sample=lambda _: None, **settings)
    assert len(asked) == calls


@pytest.mark.parametrize("trials", [1, 2])
def test_a_large_dataset_is_drawn_in_the_order_of_a_small_one(
    trials: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps({"id": f"q{n}", "input": f"{n}", "reference": "1"}) + "\n" for n in range(20)))

    def scored() -> tuple[list[str], Run]:
        drawn = list[str]()

        async def echo(input: str, trial: int) -> str:
            drawn.append(f"{input} {trial}")
            return input

        scorers = ["exact_match", one]
        run = evaluate(str(path), scorers, target=echo, trials=trials, budget=1.0, ledger=None, concurrency=1)
        return drawn, run

    small = scored()
    monkeypatch.setattr(loading, "MOST_IN_MEMORY", 3)
    large = scored()
    assert small[0] == large[0] != sorted(small[0])
    assert len(large[0]) == 20 * trials
    assert [record.outcome for record in small[1]] == [record.outcome for record in large[1]]
