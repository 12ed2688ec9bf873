"""Gates over runs: each criterion passes, fails, or says how many more samples decide it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalstone import (
    ConfigError,
    EvalstoneError,
    Run,
    Score,
    Scorer,
    compare,
    drift,
    evaluate,
    gate,
    power,
)
from evalstone.report.markdown import lines
from evalstone.results.drawn import place_in_order
from evalstone.results.endings import BUDGET, COMPLETE, DECIDED, ENDINGS, INTERRUPTED, Ending
from evalstone.results.missing_scores import Missing
from evalstone.results.views.gate import gate_view, required
from evalstone.results.views.junit import gate_junit
from evalstone.stats.gates import AtLeast, MaxRegression, PassRate, alpha_at_look, decide
from evalstone.stats.labeling import score_strata
from evalstone.stats.ppi import corrected_mean
from evalstone.types import Drawn, JudgeCall, Note, RunKind, note
from tests.results.test_compare import Offset
from tests.runs import Given, Harm, run_of

GIVEN = Given().signature


class High(Scorer):
    """The best score for every answer."""

    name = "high"

    def score(self, *, output: str) -> Score:
        return Score(1.0, scale=1.0)


MIXED = ["1.0", "0.8"] * 20


def test_a_mean_far_above_its_minimum_passes_and_one_far_below_fails() -> None:
    run = run_of(MIXED, [Given(), Harm()])
    assert gate(run, min={"given": 0.8}).verdict == "pass"
    assert gate(run, min={"given": 0.98}).verdict == "fail"
    assert gate(run, max={"harm": 0.95}).verdict == "pass"
    assert gate(run, max={"harm": 0.8}).verdict == "fail"


def test_a_mean_near_its_minimum_is_inconclusive_and_says_how_many_more_samples_decide() -> None:
    found = gate(run_of(MIXED), min={"given": 0.88}).decisions[0]
    assert found.verdict == "inconclusive"
    assert found.more_samples is not None
    assert found.more_samples > 0


def test_the_number_of_more_samples_is_that_for_the_next_look() -> None:
    run, values = run_of(MIXED), [float(value) for value in MIXED]
    for look in (1, 2):
        now, later = alpha_at_look(0.05, look), alpha_at_look(0.05, look + 1)
        (expected,) = decide([AtLeast("given", values, 0.88)], alpha=now, next_alpha=later)
        (found,) = gate(run, min={"given": 0.88}, look=look).decisions
        assert found.more_samples == expected.more_samples is not None


def test_no_worse_is_measured_pair_by_pair_against_the_baseline() -> None:
    before, now = run_of(MIXED * 20), run_of(["0.99", "0.79"] * 400)
    held = gate(now, max_regression={"given": 0.05}, baseline=before)
    assert (held.verdict, held.decisions[0].estimate) == ("pass", pytest.approx(-0.01))
    assert gate(now, max_regression={"given": 0.001}, baseline=before).verdict == "fail"
    assert held.notes == (note("answers_differ", runs=("baseline", "run"), different=800, samples=800),)


def test_samples_of_a_group_are_no_evidence_of_their_own_that_a_run_is_no_worse() -> None:
    groups = [{"group": f"g{number // 40}"} for number in range(200)]
    before, now = ["0.8"] * 200, ["0.9"] * 160 + ["0.7"] * 40  # four groups better, one worse
    criteria: dict[str, Any] = {"max_regression": {"given": 0.01}}
    assert gate(run_of(now), **criteria, baseline=run_of(before)).verdict == "pass"
    grouped = gate(run_of(now, metadata=groups), **criteria, baseline=run_of(before, metadata=groups))
    assert grouped.verdict == "inconclusive"


def test_a_pass_rate_counts_the_samples_that_reach_the_score() -> None:
    run = run_of([*MIXED, *["1.0"] * 40], [Given(), Harm()])
    found = gate(run, pass_rate={"given": (0.9, 0.3), "harm": (0.9, 0.1)})
    assert [(d.name, d.estimate, d.verdict) for d in found.decisions] == [
        ("given >= 0.9", 0.75, "pass"),
        ("harm <= 0.9", 0.25, "pass"),
    ]


def test_outcomes_without_a_score_are_told_with_what_they_could_change() -> None:
    held = gate(run_of([*MIXED, "skip", "fail"]), min={"given": 0.5})
    assert held.notes == (missing_scores("missing_counted", without_score=2, counted=2, undefined=1),)
    assert (held.decisions[0].n, held.decisions[0].missing) == (40, 2)


@pytest.mark.parametrize("pair", [(0.5,), (0.5, 0.9, 1.0), 0.5])
def test_a_pass_rate_is_a_score_and_a_share(pair: Any) -> None:
    with pytest.raises(ConfigError, match=rf"pass_rate .*given .* {re.escape(str(pair))}"):
        gate(run_of(MIXED), pass_rate={"given": pair})


def test_a_requirement_alone_names_a_scorer() -> None:
    (found,) = gate(run_of(MIXED), require="given").decisions
    assert (found.name, found.kind) == ("given", "require")


def test_a_run_that_ended_early_is_told() -> None:
    held = gate(replace(run_of(MIXED), stop_reason="budget", ending=BUDGET), min={"given": 0.5})
    assert held.notes == (note("run_stopped", "warning", reason="budget"),)


@pytest.mark.parametrize(
    ("criteria", "told"),
    [
        ({}, r"\(min, max, pass_rate, max_regression, max_difference, require\)"),
        ({"max_regression": {"given": 0.1}}, "max_regression requires baseline=…"),
        (
            {"min": {"harm": 0.1}},
            r'min of harm: lower is better for harm; use max=\{"harm": 0\.1\}$',
        ),
        (
            {"max": {"given": 0.1}},
            r'max of given: higher is better for given; use min=\{"given": 0\.1\}$',
        ),
        ({"min": {"givne": 0.1}}, "^min: unknown scorer 'givne'; did you mean given"),
        ({"max_regression": {"given": 0.1}, "max_change": {"givne": 0.1}}, "^max_change: unknown scorer 'givne'"),
        ({"max_regression": {"given": 0.1}, "max_change": "0.3"}, "^max_change of given must be a number, not '0.3'"),
        ({"min": {"given": 0.9, GIVEN: 0.1}}, r"min names given twice: as given and as given\("),
        ({"max": {Harm().signature: 0.9, "harm": 0.1}}, "max names harm twice"),
        ({"max_regression": {"given": 0.9, GIVEN: 0.1}}, "max_regression names given twice"),
        ({"pass_rate": {"given": (0.5, 0.9), GIVEN: (0.5, 0.1)}}, "pass_rate names given twice"),
        ({"min": {"given": 2}}, r"\[0, 1\]"),
        ({"max_regression": {"given": 2}}, r"max_regression of given must be in \[0, 1\], not 2"),
        ({"pass_rate": {"given": (2, 0.5)}}, r"\[0, 1\], not 2"),
        ({"min": {"given": -0.1}}, r"^min of given must be in \[0, 1\], not -0.1"),
        ({"pass_rate": {"given": (-0.1, 0.5)}}, r"^pass_rate of given: the score must be in \[0, 1\], not -0.1"),
        ({"pass_rate": {"given": (0.5, 1.1)}}, r"^pass_rate of given: the share must be in \[0, 1\], not 1.1"),
        ({"pass_rate": {"given": (0.5, -0.1)}}, r"^pass_rate of given: the share must be in \[0, 1\], not -0.1"),
        *(
            ({"min": {"given": 0.1}, "look": look}, f"^look must be a whole number from 1 to 100, not {look}")
            for look in (0, 101, True)
        ),
    ],
)
def test_what_cannot_be_asked_for_is_refused(criteria: dict[str, Any], told: str) -> None:
    run = run_of(MIXED, [Given(), Harm()])
    baseline = None if "baseline" in told else run
    with pytest.raises(ConfigError, match=told):
        gate(run, **criteria, baseline=baseline)


@pytest.mark.parametrize("kind", ["calibration", "audit"])
def test_runs_of_calibrations_and_audits_are_no_evaluations(kind: RunKind) -> None:
    run, margins = run_of(MIXED), {"given": 0.1}
    told = rf"run .+ is part of a judge's {kind}; a gate takes evaluations of outputs"
    with pytest.raises(ConfigError, match=told):
        gate(replace(run, kind=kind), max_regression=margins, baseline=run)
    with pytest.raises(ConfigError, match=told):
        gate(run, max_regression=margins, baseline=replace(run, kind=kind))


def test_a_baseline_that_nothing_is_held_against_is_told() -> None:
    held = gate(run_of(MIXED), min={"given": 0.5}, baseline=run_of(MIXED))
    assert held.notes == (note("unused_baseline", "caution"),)


@pytest.mark.parametrize(
    ("criteria", "told"),
    [
        ({"min": {"given": None}}, "min of given must be a number, not None"),
        ({"max": {"harm": "0.5"}}, "max of harm must be a number, not '0.5'"),
        ({"max_regression": {"given": True}}, "max_regression of given must be a number, not True"),
        (
            {"pass_rate": {"given": 0.5}},
            r"pass_rate of given must be a score and a share, such as 0.8 and 0.9, not 0.5",
        ),
        ({"pass_rate": {"given": (0.5, "x")}}, "pass_rate of given must be a number, not 'x'"),
        ({"min": 0.5}, "min must be a table from scorer to threshold, not 0.5"),
    ],
)
def test_criteria_of_another_type_are_refused_by_name(criteria: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        gate(run_of(MIXED), **criteria)


@pytest.mark.parametrize("value", [None, "0.5", True, []])
def test_settings_of_another_type_are_refused_by_name(value: Any) -> None:
    run = run_of(MIXED, metadata=[{"kind": "x"}] * 40)
    for name, call in {
        "alpha": lambda: gate(run, min={"given": 0.5}, alpha=2 if value is None else value),
        "confidence": lambda: compare(run, run, confidence=value),
        "difference": lambda: power(run, value),
        "power": lambda: power(run, power=value),
        "tolerance": lambda: drift(run, run, tolerance=2 if value is None else value),
    }.items():
        with pytest.raises(ConfigError, match=f"{name} must be "):
            call()
    with pytest.raises(ConfigError, match="confidence must be"):
        run.slices("kind", confidence=value)
    with pytest.raises(ConfigError, match=r"slices are .*, not 5"):
        run.slices(5)  # type: ignore[arg-type]


def test_thresholds_and_looks_may_be_the_ends_of_their_ranges() -> None:
    run = run_of(["0"] * 3 + ["1"] * 3, [Given(), Harm()])
    criteria: dict[str, Any] = {"pass_rate": {"given": (1, 0)}, "max_regression": {"given": 1}, "max": {"harm": 1}}
    found = gate(run, min={"given": 0}, **criteria, baseline=run, max_change=1, alpha=None, look=100)
    assert [one.verdict for one in found.decisions] == ["pass"] * 4
    assert gate(run, min={"given": 1}, max={"harm": 0}, pass_rate={"given": (0, 1)}, alpha=None).verdict == "fail"


def test_a_score_at_the_limit_of_a_pass_rate_passes() -> None:
    run = run_of(["0.5"] * 10, [Given(), Harm()])
    criteria: dict[str, Any] = {"pass_rate": {"given": (0.5, 0.1), "harm": (0.5, 0.1)}}
    assert [decision.estimate for decision in gate(run, **criteria).decisions] == [1.0, 1.0]


def test_a_regression_is_that_of_the_runs_scorer_whatever_else_the_baseline_has() -> None:
    answers = ["0.4", "0.45"] * 20
    alone, both = run_of(answers, [Offset(by=0.5)]), run_of(answers, [Offset(), Offset(by=0.5)])
    criteria: dict[str, Any] = {"max_regression": {"offset": 0.1}}
    assert gate(alone, **criteria, baseline=both).verdict == "pass"
    other = run_of(answers, [Offset(by=0.25)])
    assert gate(other, **criteria, baseline=alone, allow_mismatch=True).verdict == "fail"


def test_scores_that_miss_a_limit_by_rounding_reach_it() -> None:
    run = run_of(["0.7999999999999999"] * 50, [Given(), Harm()])
    assert run.records[0].value == 0.7999999999999999
    found = gate(run, pass_rate={"given": (0.8, 0.5), "harm": (0.7999999999999998, 0.5)})
    assert [decision.estimate for decision in found.decisions] == [1.0, 1.0]


def test_an_ambiguous_scorer_is_refused_with_the_full_names() -> None:
    run = run_of(MIXED, [Offset(by=0.125), Offset(by=0.25)])
    assert gate(run, min={"offset(by=0.25)": 0.5}).verdict == "pass"


@pytest.mark.parametrize(
    ("missing", "values"),
    [("worst", [1.0, 0.0, None, None]), ("failed", [1.0, 0.0, None]), ("ignore", [1.0, 0.0])],
)
def test_scores_that_are_missing_count_as_asked(missing: Missing, values: list[float | None]) -> None:
    run, before = run_of(["1.0", "0.0", "skip", "fail"]), run_of(["1.0", "0.0", "skip", "fail"])
    minimum = gate(run, min={"given": 0.5}, missing=missing, alpha=0.05)
    (wanted,) = decide([AtLeast("given", values, 0.5)], alpha=0.04, next_alpha=0.005)
    assert minimum.decisions == (wanted,)
    rate = gate(run, pass_rate={"given": (0.9, 0.5)}, missing=missing).decisions[0]
    assert (rate.n, rate.missing) == (2, values.count(None))
    # A sample whose score is undefined in both runs never counts; one that failed in both may differ by anything.
    regression: dict[str, Any] = {"max_regression": {"given": 0.5}}
    found = gate(run, **regression, baseline=before, missing=missing).decisions[0]
    assert (found.n, found.missing) == (2, 0 if missing == "ignore" else 1)
    other = run_of(["1.0", "0.0", "0.5", "0.5"])
    found = gate(run, **regression, baseline=other, missing=missing, allow_mismatch=True).decisions[0]
    assert (found.n, found.missing) == (2, {"worst": 2, "failed": 1, "ignore": 0}[missing])


def missing_scores(kind: str, *, of: str = "run", **numbers: int) -> Note:
    return note(kind, "caution", "given", of=of, noun="sample", **numbers)


def test_the_notes_say_how_many_scores_are_missing_and_what_changes_that() -> None:
    run, criteria = run_of([*MIXED, "skip", "fail", "fail"]), {"given": 0.5}
    assert gate(run, min=criteria, missing="failed").notes == (
        missing_scores("missing_partly_counted", without_score=3, counted=2, undefined=1),
    )
    assert gate(run, min=criteria, missing="ignore").notes == (
        missing_scores("missing_left_out", without_score=3, counted=0, undefined=1),
    )
    with pytest.raises(ConfigError) as raised:
        gate(run, min=criteria, missing="no")  # type: ignore[arg-type]
    assert (raised.value.field, raised.value.value) == ("missing", "no")


def test_a_skip_without_an_answer_of_the_judge_is_a_failure() -> None:
    call = JudgeCall(question="verdict", fingerprint="1", judge="judge", answer=None)
    run = run_of([*MIXED, "skip"])
    (silent,) = [replace(record, calls=(call,)) for record in run if record.value is None]
    run = replace(run, records=[*(record for record in run if record.value is not None), silent])
    assert gate(run, min={"given": 0.5}, missing="failed").decisions[0].missing == 1


@pytest.mark.slow
def test_bad_samples_that_fail_more_often_make_no_wrong_pass() -> None:
    """40% of the gates passed wrongly when missing scores were left out."""
    source, wrong = np.random.default_rng(5), {"worst": 0, "ignore": 0}
    for _ in range(25):
        passed = source.random(300) < 0.9
        lost = source.random(300) < np.where(passed, 0.02, 0.3)
        run = run_of(["fail" if gone else str(float(good)) for good, gone in zip(passed, lost, strict=True)])
        for missing in ("worst", "ignore"):
            found = gate(run, min={"given": 0.9}, missing=missing)
            wrong[missing] += found.verdict == "pass"
    assert wrong["worst"] == 0
    assert wrong["ignore"] > 5


# ---- Runs that their gate stopped ----


def test_where_runs_name_other_groups_a_gate_counts_those_that_a_comparison_counts() -> None:
    answers = [str(number % 5 / 4) for number in range(24)]
    sixths, halves = (
        run_of(answers, metadata=[{"group": f"g{number // size}"} for number in range(24)]) for size in (4, 12)
    )
    for baseline, run in ((sixths, halves), (halves, sixths)):
        (found,) = gate(run, max_regression={"given": 0.1}, baseline=baseline).decisions
        assert found.groups == compare(baseline, run)["given"].result.groups


def stopped(texts: list[str], tested: int, groups: bool = False) -> Run:
    run = run_of(texts, metadata=[{"group": "g"}] * len(texts) if groups else None)
    return replace(
        run, drawn=Drawn(seed="seed", tested={GIVEN: tested}), stop_reason="the gate is decided", ending=DECIDED
    )


def test_a_stopped_run_is_tested_by_betting_in_the_order_of_the_draw() -> None:
    run = stopped(MIXED, 30)
    order = sorted((record.sample_id for record in run), key=lambda sample: place_in_order("seed", sample))[:30]
    values = {record.sample_id: record.value for record in run}
    drawn = [values[sample] for sample in order]
    criteria: dict[str, Any] = {"min": {"given": 0.8}, "pass_rate": {"given": (0.9, 0.2)}}
    held = gate(run, **criteria)
    passed = [float(value == 1) for value in drawn]
    assert held.decisions == decide(
        [AtLeast("given", drawn, 0.8, stopped=True), PassRate("given >= 0.9", passed, 0.2, stopped=True)],
        alpha=0.04,
        next_alpha=0.005,
    )
    assert held.decisions[0].n == 30
    told = note("run_stopped_by_gate")
    assert told in held.notes
    assert held.decisions[0].more_samples is None
    assert "inconclusive" not in {d.verdict for d in gate(run, min={"given": 0.5}).decisions}


@pytest.mark.parametrize("which", ["run", "baseline"])
def test_a_regression_of_a_stopped_run_takes_the_pairs_in_the_order_of_the_draw(which: str) -> None:
    run, before = run_of(["0.9", "0.8"] * 20), run_of(MIXED)
    if which == "run":
        run = replace(run, drawn=Drawn(seed="seed", tested={GIVEN: 25}))
    else:
        before = replace(before, drawn=Drawn(seed="seed", tested={GIVEN: 25}))
    order = sorted((record.sample_id for record in run), key=lambda sample: place_in_order("seed", sample))[:25]
    a, b = ({record.sample_id: record.value for record in one} for one in (before, run))
    test = MaxRegression("given", [b[x] for x in order], [a[x] for x in order], 0.3, stopped=True)
    held = gate(run, max_regression={"given": 0.3}, baseline=before)
    assert held.decisions == decide([test], alpha=0.04, next_alpha=0.005)


@pytest.mark.slow
def test_labels_test_the_means_that_people_would_give() -> None:
    answers = [str(0.6 + number % 10 / 40) for number in range(200)]  # mean 0.7125
    people = {f"s{number + 1}": float(answers[number]) - 0.2 for number in range(0, 200, 3)}
    run, before = run_of(answers), run_of([*answers[1:], answers[0]])
    criteria: dict[str, Any] = {
        "min": {"given": 0.6},
        "pass_rate": {"given": (0.6, 0.9)},
        "max_regression": {"given": 0.1},
    }
    by_judge = gate(run, **criteria, baseline=before)
    assert [decision.verdict for decision in by_judge.decisions] == ["pass", "pass", "pass"]
    found = gate(run, **criteria, baseline=before, labels={"given": people})
    assert [decision.verdict for decision in found.decisions] == ["fail", "fail", "pass"]
    assert [decision.labeled for decision in found.decisions] == [67, 67, None]
    theirs = {name: float(answers[int(name[1:]) % 200]) for name in people}
    with pytest.raises(ConfigError, match="already has labels"):
        gate(run, **criteria, baseline=before, labels={"given": people, GIVEN: people})
    both = gate(run, **criteria, baseline=before, labels={"given": people}, baseline_labels={"given": theirs})
    assert [decision.verdict for decision in both.decisions] == ["fail", "fail", "fail"]
    assert both.decisions[2].estimate == pytest.approx(-0.2, abs=0.02)


def test_a_gate_without_labels_says_that_it_tests_the_judges_mean() -> None:
    samples = [{"id": f"s{n}", "output": "Paris is big.", "context": ["Paris is big."]} for n in range(8)]
    run = evaluate(samples, "faithfulness", judge="lexical", ledger=None)
    criteria: dict[str, Any] = {"min": {"faithfulness": 0.5}, "max_regression": {"faithfulness": 0.1}}
    labels = {"faithfulness": {f"s{n}": 1.0 for n in range(5)}}
    mean = note("judged_mean", "caution", "faithfulness", tested=True, settings=("labels",))
    regression = note("judged_difference", "caution", "faithfulness", settings=("labels", "baseline_labels"))
    notes = gate(run, **criteria, baseline=run).notes
    assert mean in notes
    assert regression in notes
    untested = note("judged_mean", "caution", "faithfulness", tested=False, settings=("labels",))
    assert untested in gate(run, **criteria, baseline=run, alpha=None).notes
    notes = gate(run, **criteria, baseline=run, labels=labels).notes
    assert mean not in notes
    assert regression in notes
    assert mean in gate(run, pass_rate={"faithfulness": (0.5, 0.5)}).notes
    assert regression not in gate(run, **criteria, baseline=run, labels=labels, baseline_labels=labels).notes
    weights = [{**one, "weight": 1.0 + place} for place, one in enumerate(samples)]
    heavy = evaluate(weights, "faithfulness", judge="lexical", ledger=None)
    notes = gate(heavy, **criteria, baseline=heavy).notes
    assert [each["settings"] for each in notes if each.kind.startswith("judged")] == [(), ()]
    assert gate(run_of(MIXED), min={"given": 0.5}).notes == ()


def test_a_declared_largest_change_decides_a_regression_with_fewer_samples() -> None:
    before = run_of([str(0.6 + n % 5 / 20) for n in range(60)])
    after = run_of([str(0.62 + n % 5 / 20 + (-1) ** n / 50) for n in range(60)])
    criteria: dict[str, Any] = {"max_regression": {"given": 0.01}}
    whole = gate(after, **criteria, baseline=before)
    assert whole.verdict == "inconclusive"
    for change in (0.1, {"given": 0.1}):
        found = gate(after, **criteria, baseline=before, max_change=change)
        (decision,) = found.decisions
        assert (found.verdict, decision.estimate) == ("pass", pytest.approx(0.02))
        assert decision.low is not None
        assert decision.low > (whole.decisions[0].low or 0.0) + 0.02
        assert found.notes[-1] == note("largest_change", "fact", "given", change=0.1)


def test_a_check_fails_if_a_sample_changes_by_more_than_declared() -> None:
    before, after = (run_of(["0.5"] * 49 + [last], [Given(), Harm()]) for last in ("0.5", "0.75"))
    for criterion in ("max_regression", "max_difference"):
        criteria: dict[str, Any] = {criterion: {"given": 0.04}, "min": {"given": 0.1}}
        assert gate(after, **criteria, baseline=before).decisions[1].more_samples
        for alpha in (0.05, None):
            found = gate(after, **criteria, baseline=before, max_change=0.2, alpha=alpha)
            assert [one.verdict for one in found.decisions] == ["pass", "fail"]
            assert found.decisions[1].notes == (
                note("larger_change", "warning", change=0.2, sample="s50", before=0.5, after=0.75),
            )
            assert found.decisions[1].more_samples is None
            assert "✕ fail; a sample changes by more than declared" in str(found)
            assert "ample 's50' changes by 0.25, from 0.5 to 0.75, but max_change=0.2" in " ".join(str(found).split())
            assert "changes by more than declared" in "".join(gate_junit(found, inconclusive_fails=False))


def test_a_gate_says_that_scores_of_its_baseline_are_missing() -> None:
    before, now = run_of(["fail"] * 3 + ["1"] * 9), run_of(["1"] * 12)
    found = gate(now, max_regression={"given": 0.1}, baseline=before)
    assert found.decisions[0].missing == 3
    expected = missing_scores("missing_counted", of="baseline", without_score=3, counted=3, undefined=0)
    assert expected in found.notes
    both = gate(now, max_regression={"given": 0.1}, max_difference={"given": 0.1}, baseline=before)
    assert (len(both.decisions), both.notes) == (2, found.notes)
    assert len(gate(before, min={"given": 0.1}).notes) == 1


def test_a_gate_passes_if_a_run_is_equivalent_to_its_baseline_within_a_margin() -> None:
    before, now = run_of(["0.5"] * 200, [Given(), Harm()]), run_of(["0.51"] * 200, [Given(), Harm()])
    criteria: dict[str, Any] = {"max_difference": {"given": 0.05, "harm": 0.05}}
    found = gate(now, **criteria, baseline=before)
    assert (found.verdict, found.to_dict()["decisions"][0]["kind"]) == ("pass", "max_difference")
    assert [required(one) for one in found.decisions] == ["within ±0.050"] * 2
    assert ", difference from baseline" in str(found)
    assert 'baseline within ±0.050"' in "".join(gate_junit(found, inconclusive_fails=False))
    assert gate(run_of(["0.7"] * 200), max_difference={"given": 0.05}, baseline=before).verdict == "fail"
    declared: dict[str, Any] = {"max_difference": {"given": 0.02}}
    assert gate(now, **declared, baseline=before).verdict == "inconclusive"
    assert gate(now, **declared, baseline=before, max_change={"given": 0.1}).verdict == "pass"


def test_one_largest_change_is_that_of_the_scorers_with_a_baseline() -> None:
    before, after = (run_of([answer] * 8, [Given(), Given(scale=10)]) for answer in ("0.5", "0.6"))
    criteria: dict[str, Any] = {"max_regression": {"given(scale=10)": 0.5}}
    assert gate(after, **criteria, baseline=before, max_change=2).decisions[0].estimate == pytest.approx(1)


def test_a_largest_change_must_hold_and_be_of_a_scorer_with_a_maximum_regression() -> None:
    before, after = run_of(["0.5"] * 8, [Given(), Harm()]), run_of(["0.5"] * 7 + ["0.75"], [Given(), Harm()])
    regression, minimum = {"max_regression": {"given": 0.01}}, {"min": {"given": 0.1}}
    refused: list[tuple[dict[str, Any], float | dict[str, float], str]] = [
        (regression, {"harm": 0.3}, "max_change of harm is for the difference from a baseline"),
        (minimum, 0.3, "max_change is for the difference from a baseline: set max_regression or"),
        (regression, 2.0, r"max_change of given must be above 0 and at most 1, not 2"),
        ({"max_regression": {"given": 0.4}}, 0.3, "the maximum regression must be below max_change, 0.3"),
    ]
    for criteria, change, problem in refused:
        with pytest.raises(ConfigError, match=problem):
            gate(after, **criteria, baseline=before, max_change=change)


def test_labels_of_a_scorer_without_a_check_are_not_used_and_the_gate_says_so() -> None:
    run = run_of(MIXED, [Given(), Harm()])
    criteria: dict[str, Any] = {"max": {"harm": 0.5}}
    found = gate(run, **criteria, labels={"given": {"s1": 1.0}})
    unused = note("unused_labels", "caution", scorers=("given",))
    assert unused in found.notes
    assert unused not in gate(run, **criteria).notes


def test_a_gate_of_clustered_samples_says_so() -> None:
    alone = gate(run_of(MIXED), min={"given": 0.5})
    pairs = [{"group": f"g{place // 2}"} for place in range(len(MIXED))]
    found = gate(run_of(MIXED, metadata=pairs), min={"given": 0.5})
    assert (alone.decisions[0].groups, found.decisions[0].groups) == (None, (len(MIXED) + 1) // 2)
    assert f"{len(MIXED)} ({(len(MIXED) + 1) // 2} clusters)" in str(found)


def test_means_and_pass_rates_are_corrected_within_strata_of_the_scores() -> None:
    answers = [round(place % 10 / 10, 1) for place in range(60)]
    run = run_of([str(x) for x in answers])
    people = {
        f"s{place + 1}": max(0.0, round(answers[place] - 0.2, 1))
        for place in range(60)
        if answers[place] > 0.4 or place < 20
    }
    criteria: dict[str, Any] = {"min": {"given": 0.3}, "pass_rate": {"given": (0.5, 0.3)}}
    human = [people.get(f"s{place + 1}") for place in range(60)]
    found = gate(run, **criteria, labels={"given": people}).decisions
    for decision, passes in zip(found, (False, True), strict=True):
        judged = [float(x >= 0.5) if passes else x for x in answers]
        marks = [float(x >= 0.5) if passes and x is not None else x for x in human]
        expected = corrected_mean(judged, marks, strata=score_strata(answers))
        without = corrected_mean(judged, marks)
        assert expected is not None
        assert without is not None
        assert decision.estimate == pytest.approx(expected.mean)
        assert abs(expected.mean - without.mean) > 0.001


def test_a_check_without_a_single_score_promises_nothing_of_more_samples() -> None:
    found = gate(run_of(["fail", "fail"]), min={"given": 0.5})
    assert "? inconclusive; no sample" in str(found)
    assert "too close" not in str(found)
    assert "o values" not in "".join(lines(gate_view(found)))


BROKEN_OFF = [ending for ending in ENDINGS if ending.broken_off and ending.name is not None]
ALL_CHECKS: dict[str, Any] = {"min": {"given": 0.5}, "pass_rate": {"given": (0.5, 0.5)}, "require": "high"}


@pytest.mark.parametrize("ending", BROKEN_OFF, ids=lambda ending: ending.name)
@pytest.mark.parametrize("alpha", [0.05, None])
def test_a_run_that_was_broken_off_decides_no_check(ending: Ending, alpha: float | None) -> None:
    complete = run_of(MIXED, [Given(), High()])
    assert gate(complete, **ALL_CHECKS, alpha=alpha).verdict == "pass"
    broken = replace(complete, ending=ending, stop_reason="it rained")
    held = gate(broken, **ALL_CHECKS, alpha=alpha)
    assert [decision.verdict for decision in held.decisions] == ["inconclusive"] * 3
    assert str(held).endswith("Gate: ? inconclusive")
    assert str(held).count("? inconclusive; the run") == 3
    assert held.notes[0] == note("run_broken_off", "warning", reason="it rained")
    junit = "".join(gate_junit(held, inconclusive_fails=False))
    assert junit.count("<skipped") == 3
    missed = gate(broken, min={"given": 0.98}, alpha=alpha)
    assert missed.verdict == "inconclusive"
    assert missed.decisions[0].more_samples is None


def test_a_baseline_that_was_broken_off_shows_no_regression() -> None:
    before, now = run_of(["0.5"] * 40), run_of(["0.9"] * 40)
    criteria: dict[str, Any] = {"max_regression": {"given": 0.05}, "min": {"given": 0.5}}
    assert gate(now, **criteria, baseline=before).verdict == "pass"
    held = gate(now, **criteria, baseline=replace(before, ending=INTERRUPTED, stop_reason="interrupted"))
    assert {decision.kind: decision.verdict for decision in held.decisions} == {
        "min": "pass",
        "max_regression": "inconclusive",
    }
    assert note("baseline_broken_off", "warning", reason="interrupted") in held.notes
    assert "? inconclusive; the baseline" in str(held)


@pytest.mark.parametrize(
    ("answers", "ending", "shortfall"),
    [
        (MIXED, COMPLETE, ""),
        (MIXED, BUDGET, ", but the run ended early"),
        ([*MIXED, "fail"], COMPLETE, ", but 1 score failed"),
    ],
)
def test_a_gate_that_passes_says_what_the_run_lacks(answers: list[str], ending: Ending, shortfall: str) -> None:
    held = gate(replace(run_of(answers), ending=ending), min={"given": 0.5})
    assert held.verdict == "pass"
    assert str(held).endswith(f"Gate: ✓ pass{shortfall}")
    assert next(iter(lines(gate_view(held)))) == f"### evalstone gate: ✓ pass{shortfall}"


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: gate(
            run_of(["0.4", "0.45"] * 20, [Offset(), Offset(by=0.5)]),
            max_regression={"offset": 0.1},
            baseline=run_of(["0.4", "0.45"] * 20, [Offset(by=0.5)]),
        ),
        ConfigError,
        "the baseline has no scores of offset",
    ),
    (
        lambda: gate(run_of(MIXED, [Offset(by=0.125), Offset(by=0.25)]), min={"offset": 0.5}),
        ConfigError,
        "min: offset is ambiguous; name one of offset(by=0.125), offset(by=0.25)",
    ),
    (
        lambda: gate(
            stopped(MIXED, 30),
            max_regression={"given": 0.3},
            baseline=replace(stopped(MIXED, 30), drawn=Drawn(seed="other", tested={GIVEN: 30})),
        ),
        ConfigError,
        (
            "both runs were stopped by their gates, with samples in different orders, so their "
            "difference can't be tested; run one of them again without its gate"
        ),
    ),
    (
        lambda: gate(stopped(MIXED, 30, groups=True), min={"given": 0.8}),
        ConfigError,
        "given: values of a stopped run can't have groups or weights",
    ),
    (
        lambda: gate(run_of(["0.51"] * 200, [Given(), Harm()]), max_difference={"given": 0.05, "harm": 0.05}),
        ConfigError,
        "max_difference requires baseline=…",
    ),
    (
        lambda: gate(
            run_of(["0.5"] * 7 + ["0.75"], [Given(), Harm()]),
            max_regression={"given": 0.01},
            baseline=run_of(["0.5"] * 8, [Given(), Harm()]),
            max_change=0.3,
            labels={"given": {"s1": 1.0, "s2": 0.0}},
            baseline_labels={"given": {"s1": 1.0, "s2": 0.0}},
        ),
        ConfigError,
        "given: max_change is of the judge's scores, which human labels correct",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("missing", "mean", "kinds"),
    [
        ("worst", {}, [("missing_counted", "baseline", 1), ("undefined_in_both", None, None)]),
        (
            "worst",
            {"given": 0.1},
            [("missing_counted", "run", 2), ("missing_counted", "baseline", 1), ("undefined_in_both", None, None)],
        ),
        ("failed", {}, [("missing_partly_counted", "run", 0), ("missing_partly_counted", "baseline", 1)]),
        ("ignore", {}, [("missing_left_out", "run", 0), ("missing_left_out", "baseline", 0)]),
    ],
)
def test_what_is_undefined_in_both_runs_is_said_to_count_nowhere_in_a_regression(
    missing: Missing, mean: dict[str, float], kinds: list[tuple[str, str | None, int | None]]
) -> None:
    before = run_of(["0.5", "fail", "skip", "skip", *["0.5"] * 6])
    now = run_of(["0.5", "0.5", "skip", "skip", *["0.5"] * 6])
    found = gate(now, min=mean, max_regression={"given": 0.2}, baseline=before, missing=missing)
    notes = [each for each in found.notes if each.kind.startswith(("missing", "undefined"))]
    assert [(each.kind, each["of"], each["counted"]) for each in notes] == kinds
    both = [(each["samples"], each["of_both"]) for each in notes if each.kind == "undefined_in_both"]
    assert both == ([(2, 10)] if missing == "worst" else [])
