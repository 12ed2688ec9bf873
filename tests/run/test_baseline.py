"""A gate that compares a run with its baseline, and ends it as soon as the comparison is clear."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from evalstone import (
    ConfigError,
    Run,
    Sample,
    aevaluate,
    compare,
    evaluate,
    gate,
    load,
)
from evalstone._core import sync
from evalstone.judges import LexicalJudge
from evalstone.results.drawn import in_order
from evalstone.results.endings import DECIDED, JUDGE_UNAVAILABLE
from evalstone.run.budget import StopSignal
from evalstone.run.plan import Plan
from evalstone.run.planning import plan_for
from evalstone.run.sequential import RunGate
from evalstone.scorers import Scorer
from tests.runs import Given, Harm, run_of, samples_of

SOURCE = random.Random(1)
BEFORE = [round(SOURCE.uniform(0.3, 0.7), 2) for _ in range(400)]
BETTER = [round(value + SOURCE.uniform(-0.1, 0.3), 2) for value in BEFORE]
SAME = [round(value + SOURCE.uniform(-0.02, 0.02), 2) for value in BEFORE]


def half(input: str) -> str:
    return "0.5"


def repeated(input: str) -> str:
    return input


def plan_of(answers: Sequence[object], *scorers: Scorer, **more: Any) -> Plan:
    return Plan(load(samples_of(answers, **more)), scorers or (Given(),), LexicalJudge())


def watching(plan: Plan, baseline: Run | None, **margins: float) -> RunGate:
    return RunGate(plan, {}, StopSignal(shuffled=True), baseline=baseline, max_regression=margins)


def stopped_run(plan: Plan, baseline: Run, margins: Mapping[str, float], **more: Any) -> tuple[RunGate, Run]:
    """A run and the gate that stopped it."""
    stop = StopSignal(shuffled=True)
    watch = RunGate(plan, {}, stop, baseline=baseline, max_regression=margins, **more)
    done = aevaluate(plan.dataset, plan.scorers, ledger=None, concurrency=1, stop=stop, on_record=watch.add)
    return watch, sync.run(done)


@pytest.mark.parametrize(
    ("answers", "margin", "verdict"),
    [(BETTER, 0.0, "pass"), ([0.9 * x for x in BEFORE], 0.0, "fail"), (SAME, 0.1, "pass")],
)
def test_a_run_ends_once_its_comparison_with_the_baseline_is_clear(
    answers: list[float], margin: float, verdict: str
) -> None:
    before = run_of(BEFORE)
    watch, run = stopped_run(plan_of(answers), before, {"given": margin})
    assert (watch.verdict, run.ending) == (verdict, DECIDED)
    assert run["given"].n_score < 300
    (found,) = watch.decisions()
    assert (found.name, found.kind, found.threshold, found.n) == ("given", "max_regression", -margin, len(run))
    differences = [float(answers[int(r.sample_id[1:]) - 1]) - BEFORE[int(r.sample_id[1:]) - 1] for r in run]
    assert found.estimate == pytest.approx(sum(differences) / len(differences))
    again = gate(run, max_regression={"given": margin}, baseline=before)
    (later,) = again.decisions
    assert (later.verdict, later.n) == (verdict, found.n)
    assert later.estimate == pytest.approx(found.estimate)
    assert later.p_pass == pytest.approx(found.p_pass)
    assert later.p_fail == pytest.approx(found.p_fail)


def test_where_lower_is_better_a_rise_fails() -> None:
    before = run_of(BEFORE, [Given(), Harm()])
    margins = {"given": 0.0, "harm": 0.0}
    watch, _ = stopped_run(plan_of(BETTER, Given(), Harm()), before, margins)
    given, harm = watch.decisions()
    assert (given.lower_is_better, harm.lower_is_better, harm.threshold, watch.verdict) == (False, True, 0.0, "fail")
    assert (given.estimate or 0) > 0
    assert harm.verdict == "fail" or given.verdict == "pass"


def test_a_largest_change_saves_samples_and_a_larger_one_fails_the_check_and_ends_the_run() -> None:
    before, answers = run_of(BEFORE), [value + 0.01 * (place % 4) for place, value in enumerate(BEFORE)]
    margins = {"given": 0.0}
    _, whole = stopped_run(plan_of(answers), before, margins)
    watch, narrow = stopped_run(plan_of(answers), before, margins, max_change={"given": 0.05})
    assert (watch.verdict, len(narrow) < len(whole) / 3) == ("pass", True)
    watch, run = stopped_run(plan_of(answers), before, margins, max_change={"given": 0.02})
    assert (watch.verdict, run.ending) == ("fail", DECIDED)
    assert len(run) < len(narrow)
    ((larger,),) = [each.notes for each in watch.decisions()]
    assert (larger.kind, larger["change"]) == ("larger_change", 0.02)
    assert larger["after"] - larger["before"] == pytest.approx(0.03)
    later = gate(run, max_regression=margins, baseline=before, max_change={"given": 0.02})
    assert (later.verdict, later.decisions[0].notes) == ("fail", (larger,))


def test_pairs_count_in_the_random_order_whichever_is_done_first() -> None:
    plan, before = plan_of(BETTER), run_of(BEFORE)
    records = {record.sample_id: record for record in run_of(BETTER)}
    order = [f"s{place + 1}" for place in plan.random_order()[:40]]
    in_order_, disturbed = (watching(plan, before, given=0.05) for _ in range(2))
    for watch, names in ((in_order_, order), (disturbed, random.Random(2).sample(order, 40))):
        for name in names:
            watch.add(records[name])
    assert in_order_.decisions() == disturbed.decisions()
    assert in_order_.decisions()[0].n == 40


def test_scores_missing_in_one_of_the_runs_count_as_in_a_gate_on_the_finished_run() -> None:
    before = run_of([*("fail", "skip", "0.5", "0.5", "skip", "fail") * 10, *BEFORE[:40]])
    after = run_of([*("0.5", "0.5", "fail", "skip", "skip", "fail") * 10, *SAME[:40]])
    plan = Plan(load(list(after.samples or ())), (Given(),), LexicalJudge())
    for missing in ("worst", "failed", "ignore"):
        watch = RunGate(plan, {}, StopSignal(), baseline=before, max_regression={"given": 0.9}, missing=missing)
        for record in after:
            watch.add(record)
        (found,) = watch.decisions()
        criteria: dict[str, Any] = {"max_regression": {"given": 0.9}}
        (whole,) = gate(after, **criteria, baseline=before, missing=missing).decisions
        assert (found.n, found.missing) == (whole.n, whole.missing)
        assert found.missing == {"worst": 50, "failed": 30, "ignore": 0}[missing]


def test_a_scorer_may_have_a_threshold_and_a_maximum_regression() -> None:
    plan, stop = plan_of(BETTER), StopSignal()
    name = "given"
    watch = RunGate(plan, {name: 0.2}, stop, baseline=run_of(BEFORE), max_regression={name: 0.0})
    for record in run_of(BETTER):
        watch.add(record)
    assert [(one.name, one.kind) for one in watch.decisions()] == [("given", "min"), ("given", "max_regression")]
    assert (watch.verdict, stop.requested) == ("pass", True)


def test_samples_that_the_baseline_did_not_score_are_left_out() -> None:
    before = run_of(BEFORE[:100])
    few = replace(before, records=[record for record in before if int(record.sample_id[1:]) % 2])
    watch = watching(plan_of(BETTER[:100]), few, given=0.0)
    for record in run_of(BETTER[:100]):
        watch.add(record)
    assert watch.baseline is not None
    assert (watch.decisions()[0].n, watch.baseline.unpaired) == (50, 50)


def test_a_run_may_have_fewer_samples_than_its_baseline_but_no_others() -> None:
    before = run_of(BEFORE)
    watch = watching(plan_of(BETTER[:20]), before, given=0.0)
    for record in run_of(BETTER[:20]):
        watch.add(record)
    assert watch.decisions()[0].n == 20
    with pytest.raises(ConfigError, match=r"0 only .* 1 only .*'s401'\)"):
        watching(plan_of([*BETTER, 0.5]), before, given=0.0)


def test_samples_without_ids_are_paired_by_what_was_asked() -> None:
    def rows(answers: Sequence[float]) -> list[Sample]:
        return load([{"input": f"Question {n}", "output": str(x)} for n, x in enumerate(answers)]).samples  # type: ignore[return-value]

    before = evaluate(rows(BEFORE[:60]), [Given()], ledger=None)
    after = evaluate(rows(BETTER[:60]), [Given()], ledger=None)
    plan = Plan(load(rows(BETTER[:60])), (Given(),), LexicalJudge())
    watch = watching(plan, before, given=0.0)
    for record in after:
        watch.add(record)
    assert watch.baseline is not None
    assert watch.baseline.notes[0].kind == "paired_by_question"
    assert watch.decisions()[0].estimate == pytest.approx(sum(BETTER[:60]) / 60 - sum(BEFORE[:60]) / 60)


def test_what_can_not_be_compared_is_refused_before_the_run() -> None:
    before, plan = run_of(BEFORE), plan_of(BETTER)
    refused: list[tuple[Run | None, Plan, str]] = [
        (None, plan, "needs a run to measure it against"),
        (run_of(BEFORE, question="How many?"), plan, "400 of 400 samples with a different input"),
        (run_of(BEFORE, [Harm()]), plan, "the runs have no scorer in common: harm in the first, given in the second"),
        (run_of(BEFORE, [Given(scale=5)]), plan, "given has a different scale"),
        (replace(before, ending=JUDGE_UNAVAILABLE, stop_reason="no answer"), plan, r"broken off \(no answer\)"),
        (replace(before, kind="audit"), plan, "part of a judge's audit"),
        (run_of(BEFORE, metadata=[{"weight": 1 + n % 2} for n in range(400)]), plan, "has no weighted form"),
    ]
    for baseline, of, problem in refused:
        with pytest.raises(ConfigError, match=problem):
            watching(of, baseline, given=0.0)
    for margin in (-0.1, 1.0):
        with pytest.raises(ConfigError, match=r"regression of given .* 1"):
            watching(plan, before, given=margin)
    two = plan_of(BETTER, Given(), Harm())
    with pytest.raises(ConfigError, match="scores of harm"):
        watching(two, before, given=0.0, harm=0.0)


class Other(LexicalJudge):
    """Another judge, as far as its identity tells."""

    @property
    def identity(self) -> str:
        return "other@1"


def test_another_judge_is_refused_and_the_same_without_a_setting_is_not() -> None:
    rows = [{"id": f"s{n}", "input": "Who?", "output": "Ada.", "context": ["Ada did it."]} for n in range(3)]
    before = evaluate(rows, ["faithfulness"], ledger=None)
    plan = plan_for(rows, ["faithfulness"])
    name = plan.scorers[0].name
    with pytest.raises(ConfigError, match=r"differ \(lexical@\d+, other@1#\w+\)"):
        RunGate(replace(plan, judge=Other()), {}, StopSignal(), baseline=before, max_regression={name: 0.1})
    adapted = replace(before, summary=[replace(before.summary[0], judges=(f"{Other().identity} without temperature",))])
    RunGate(replace(plan, judge=Other()), {}, StopSignal(), baseline=adapted, max_regression={name: 0.1})
    other, stop = replace(plan, judge=Other()), StopSignal()
    allowed = RunGate(other, {}, stop, baseline=before, max_regression={name: 0.1}, allow_mismatch=True)
    assert allowed.baseline is not None
    assert allowed.baseline.notes[0].kind == "judges_differ"


class Given2(Given):
    """The same scorer, after a change of its formula."""

    version = 2


def test_scores_of_an_earlier_version_of_a_scorer_are_compared_if_it_is_allowed() -> None:
    before, plan = run_of(BEFORE), plan_of(BETTER, Given2())
    name, stop = Given2.name, StopSignal()
    with pytest.raises(ConfigError, match=r"given .* allow_mismatch"):
        RunGate(plan, {}, stop, baseline=before, max_regression={name: 0.1})
    gate = RunGate(plan, {}, stop, baseline=before, max_regression={name: 0.1}, allow_mismatch=True)
    for record in run_of(BETTER, [Given2()]):
        gate.add(record)
    assert (gate.verdict, gate.decisions()[0].n > 0) == ("pass", True)


def test_a_baseline_that_its_gate_stopped_or_with_groups_or_trials_is_refused() -> None:
    before = run_of(BEFORE)
    _, drawn = stopped_run(plan_of(BETTER), before, {"given": 0.0})
    with pytest.raises(ConfigError, match="its own gate"):
        watching(plan_of(SAME), drawn, given=0.0)
    grouped = replace(before, records=[replace(record, group="g") for record in before])
    with pytest.raises(ConfigError, match=r"'s1' .* in group 'g'"):
        watching(plan_of(SAME), grouped, given=0.0)
    rows = [{"id": f"s{n}", "input": "How much?"} for n in range(1, 4)]
    twice = evaluate(rows, [Given()], target=half, trials=2, ledger=None)
    with pytest.raises(ConfigError, match="2 trials of each"):
        watching(plan_of(SAME[:3]), twice, given=0.0)


def test_runs_of_targets_are_compared_before_any_answer() -> None:
    rows = [{"id": f"s{n}", "input": f"{n / 100}"} for n in range(60)]
    before = evaluate(rows, [Given()], target=repeated, ledger=None)

    def answer(input: str) -> str:
        return str(float(input) + 0.3)

    plan, stop = plan_for(rows, [Given()], target=answer), StopSignal(shuffled=True)
    watch = RunGate(plan, {}, stop, baseline=before, max_regression={"given": 0.0})
    run = evaluate(rows, [Given()], target=answer, ledger=None, concurrency=1, stop=stop, on_record=watch.add)
    assert (watch.verdict, run.ending) == ("pass", DECIDED)
    assert watch.decisions()[0].estimate == pytest.approx(0.3)


def test_a_comparison_of_a_stopped_run_holds_at_any_stopping_time_in_both_directions() -> None:
    before = run_of(BEFORE)
    _, run = stopped_run(plan_of(BETTER), before, {"given": 0.0})
    assert run.drawn is not None
    forth, back = compare(before, run, margin=0.5)["given"], compare(run, before)["given"]
    result = forth.result
    assert (forth.verdict, back.improvement) == ("equivalent", -forth.improvement)
    assert result.p_value == pytest.approx(back.p_value)
    assert result.difference.method == "confidence sequence"
    assert result.difference.low == pytest.approx(-(back.difference.high or 0))
    order = run.columns.keys(in_order(run.columns, Given().signature, run.drawn))
    assert result.difference.n == len(order)
    disturbed = replace(run, records=random.Random(3).sample(list(run), len(run)))
    assert compare(before, disturbed)["given"].result == compare(before, run)["given"].result
    assert "stopped_by_gate" in [note.kind for note in compare(before, run).notes]


def test_a_stopped_run_with_missing_scores_is_compared_in_the_order_of_the_draw() -> None:
    answers: list[object] = ["fail" if n % 6 == 0 else min(1.0, x + 0.25) for n, x in enumerate(BEFORE)]
    before = run_of(BEFORE)
    watch, run = stopped_run(plan_of(answers), before, {"given": 0.0})
    assert watch.verdict == "pass"
    line = compare(before, run)["given"]
    (decision,) = gate(run, max_regression={"given": 0.0}, baseline=before).decisions
    assert decision.missing == getattr(line.result, "missing")  # noqa: B009 - of paired runs
    assert line.p_value == pytest.approx(2 * (decision.p_pass or 0))
    sliced = compare(before, run, slice_by=lambda sample: "low" if float(sample.output or 0) < 0.5 else "high").slices
    assert {one.key for one in sliced} == {"low", "high"}
    assert sum(one.difference.n for one in sliced) == line.difference.n
    assert all(one.difference.method == "confidence sequence" for one in sliced)


def test_what_has_no_form_for_stopped_runs_is_left_out_or_refused() -> None:
    before = run_of(BEFORE)
    _, run = stopped_run(plan_of(BETTER), before, {"given": 0.0})
    three = compare(before, run, run_of(SAME))
    assert three.all_runs == {}
    assert "not_ranked" in [note.kind for note in three.notes]
    assert compare(before, replace(run, samples=run.samples))["given"].detectable is None
    with pytest.raises(ConfigError, match=r"labels .* correct .* gate"):
        compare(before, run, labels={"A": {"given": {"s1": 1.0}}, "B": {"given": {"s1": 1.0}}})
    assert run.drawn is not None
    other = replace(run, drawn=replace(run.drawn, seed="another"))
    with pytest.raises(ConfigError, match="in different orders"):
        compare(other, run)
