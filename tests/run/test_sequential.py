"""A gate that ends a run as soon as it is clear."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from evalstone import ConfigError, Record, Run, Score, Skipped, aevaluate, compare, load, read_run, write_run
from evalstone._core import sync
from evalstone.judges import LexicalJudge
from evalstone.results.drawn import METHOD, STOPPED_NOTES
from evalstone.results.endings import DECIDED
from evalstone.run.budget import StopSignal
from evalstone.run.plan import Plan
from evalstone.run.sequential import RunGate
from evalstone.scorers import Scorer
from evalstone.stats.betting import sequence_bounds
from evalstone.types import note
from tests.runs import Given, Harm, samples_of

SCORES = [str(round(0.6 + number % 5 / 10, 1)) for number in range(500)]  # mean 0.8


def plan_of(*scorers: Scorer) -> Plan:
    return Plan(load(samples_of(SCORES)), scorers or (Given(),), LexicalJudge())


def records_in(order: list[int], watch: RunGate) -> None:
    for place in order:
        watch.add(
            Record(
                sample_id=f"s{place + 1}",
                scorer="given",
                signature=Given().signature,
                outcome=Score(float(SCORES[place])),
            )
        )


class InOrder(Scorer):
    """Runs in no thread, which a busy machine may hold up until all other samples are done."""

    name = "in_order"

    async def score(self, *, output: str) -> Score:
        return Score(float(output))


class HarmInOrder(InOrder):
    name = "harm_in_order"
    lower_is_better = True


def test_a_run_ends_once_its_gate_is_clear_and_is_a_random_part_of_the_samples() -> None:
    plan, stop = plan_of(InOrder(), HarmInOrder()), StopSignal(shuffled=True)
    watch = RunGate(plan, {"in_order": 0.5, "harm_in_order": 0.95}, stop)
    run = sync.run(aevaluate(plan.dataset, plan.scorers, ledger=None, concurrency=1, stop=stop, on_record=watch.add))
    assert (watch.verdict, run.ending) == ("pass", DECIDED)
    judged = {record.sample_id for record in run}
    assert len(judged) < 400
    assert judged <= {f"s{place + 1}" for place in plan.random_order()[: len(judged) + 20]}


def test_samples_count_in_their_random_order_whichever_is_done_first() -> None:
    plan = plan_of()
    order = plan.random_order()[:60]
    in_order, disturbed = (
        RunGate(plan, {"given": 0.79}, StopSignal()),
        RunGate(plan, {"given": 0.79}, StopSignal()),
    )
    records_in(order, in_order)
    records_in(random.Random(1).sample(order, 60), disturbed)
    assert in_order.decisions() == disturbed.decisions()
    assert in_order.decisions()[0].n == 60


def test_a_sample_that_is_not_done_holds_up_those_behind_it() -> None:
    plan = plan_of()
    watch = RunGate(plan, {"given": 0.1}, StopSignal())
    records_in(plan.random_order()[1:], watch)
    assert watch.decisions()[0].n == 0


def test_what_had_begun_when_the_gate_was_decided_counts_as_well() -> None:
    plan, stop = plan_of(InOrder(), HarmInOrder()), StopSignal(shuffled=True)
    watch = RunGate(plan, {"in_order": 0.5, "harm_in_order": 0.95}, stop)
    run = sync.run(aevaluate(plan.dataset, plan.scorers, ledger=None, concurrency=8, stop=stop, on_record=watch.add))
    given, harm = watch.decisions()
    assert (watch.verdict, given.n, harm.n) == ("pass", run["in_order"].n_score, run["harm_in_order"].n_score)
    assert (given.estimate, harm.estimate) == pytest.approx((run["in_order"].mean, run["harm_in_order"].mean))
    assert watch.waiting == 0


def test_a_sample_counts_for_each_scorer_that_scored_it() -> None:
    plan = plan_of(Given(), Harm())
    watch = RunGate(plan, {"given": 0.5, "harm": 0.95}, StopSignal())
    records_in(plan.random_order()[:3], watch)
    assert [decision.n for decision in watch.decisions()] == [3, 0]
    records_in(plan.random_order()[5:7], watch)
    skipped = f"s{plan.random_order()[8] + 1}"
    watch.add(Record(sample_id=skipped, scorer="given", signature=Given().signature, outcome=Skipped("nothing to say")))
    assert (watch.decisions()[0].n, watch.waiting) == (3, 2)


def test_the_order_is_random_and_the_same_each_time() -> None:
    assert plan_of().random_order() == plan_of().random_order()
    assert sorted(plan_of().random_order()) == list(range(500))
    assert plan_of().random_order() != list(range(500))


def stopped_run(ledger: Path | None = None) -> Run:
    """A run that its gate stopped."""
    plan, stop = plan_of(InOrder(), HarmInOrder()), StopSignal(shuffled=True)
    watch = RunGate(plan, {"in_order": 0.5, "harm_in_order": 0.95}, stop)
    done = aevaluate(plan.dataset, plan.scorers, ledger=ledger, concurrency=4, stop=stop, on_record=watch.add)
    return sync.run(done)


def test_a_run_that_its_gate_stopped_shows_confidence_sequences_also_when_it_is_read_again(tmp_path: Path) -> None:
    run = stopped_run(tmp_path / "ledger.db")
    values = {record.sample_id: record.value for record in run if record.signature == InOrder().signature}
    drawn = [f"s{place + 1}" for place in plan_of(InOrder(), HarmInOrder()).random_order()][: len(values)]
    bounds = sequence_bounds([values[sample] or 0.0 for sample in drawn], 0.0, 1.0, 0.95)
    for one in (run, read_run(write_run(run, tmp_path / "r")), read_run(run.id, ledger=tmp_path / "ledger.db")):
        for line in one.summary:
            interval = line.interval
            assert interval is not None
            assert (interval.low, interval.high, interval.method, interval.notes) == (*bounds, METHOD, STOPPED_NOTES)
            assert interval.estimate == pytest.approx(sum(values[sample] or 0.0 for sample in drawn) / len(drawn))
        assert "confidence sequence" in str(one)
    stored = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert [(one["interval"], one["method"]) for one in stored["scorers"]] == [(list(bounds), METHOD)] * 2


def test_what_comes_after_a_sample_without_a_record_is_in_no_confidence_sequence(tmp_path: Path) -> None:
    run = stopped_run()
    assert run.drawn is not None
    few = replace(run, drawn=replace(run.drawn, tested={InOrder().signature: 3}))
    interval, other = (line.interval for line in read_run(write_run(few, tmp_path)).summary)
    assert interval is not None
    assert other is not None
    assert (interval.n, other.low, other.high) == (len(run) // 2, 0.0, 1.0)
    assert interval.high - interval.low > 0.5  # type: ignore[operator]


def test_a_comparison_says_that_the_mean_of_a_stopped_run_is_biased() -> None:
    run = stopped_run()
    notes = compare(run, replace(run, drawn=None)).notes
    assert note("stopped_by_gate", "warning", runs=("A", "B"), run="first", paired=True) in notes


def test_samples_in_groups_are_refused() -> None:
    plan = Plan(load(samples_of(["0.5"], metadata=[{"group": "g"}])), (Given(),), LexicalJudge())
    with pytest.raises(ConfigError, match="'s1' is in group 'g'"):
        RunGate(plan, {"given": 0.5}, StopSignal())
