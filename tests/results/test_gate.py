"""Gates over runs: each criterion passes, fails, or says how many more samples decide it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evalstone import ConfigError, GateCriteria, compare, evaluate, gate, judge_drift, sample_size
from evalstone.types import RunKind
from tests.results.test_compare import Offset
from tests.runs import Given, Harm, run_of

GIVEN = Given().signature
MIXED = ["1.0", "0.8"] * 20


def test_a_mean_far_above_its_minimum_passes_and_one_far_below_fails() -> None:
    run = run_of(MIXED, [Given(), Harm()])
    assert gate(run, GateCriteria(minimum={"given": 0.8})).verdict == "pass"
    assert gate(run, GateCriteria(minimum={"given": 0.98})).verdict == "fail"
    assert gate(run, GateCriteria(maximum={"harm": 0.95})).verdict == "pass"
    assert gate(run, GateCriteria(maximum={"harm": 0.8})).verdict == "fail"


def test_a_mean_near_its_minimum_is_inconclusive_and_says_how_many_more_samples_decide() -> None:
    found = gate(run_of(MIXED), GateCriteria(minimum={"given": 0.88})).decisions[0]
    assert found.verdict == "inconclusive"
    assert found.more_samples is not None
    assert found.more_samples > 0


def test_no_worse_is_measured_pair_by_pair_against_the_baseline() -> None:
    before, now = run_of(MIXED * 20), run_of(["0.99", "0.79"] * 400)
    held = gate(now, GateCriteria(max_regression={"given": 0.05}), baseline=before)
    assert (held.verdict, held.decisions[0].estimate) == ("pass", pytest.approx(-0.01))
    assert gate(now, GateCriteria(max_regression={"given": 0.001}), baseline=before).verdict == "fail"
    assert held.notes == ("baseline and run: 800 of 800 samples with a different output, context or conversation",)


def test_samples_of_a_group_are_no_evidence_of_their_own_that_a_run_is_no_worse() -> None:
    groups = [{"group": f"g{number // 8}"} for number in range(40)]
    before, now = ["0.8"] * 40, ["0.9"] * 32 + ["0.7"] * 8  # four groups better, one worse
    criteria = GateCriteria(max_regression={"given": 0.01})
    assert gate(run_of(now), criteria, baseline=run_of(before)).verdict == "pass"
    grouped = gate(run_of(now, metadata=groups), criteria, baseline=run_of(before, metadata=groups))
    assert grouped.verdict == "inconclusive"


def test_a_pass_rate_counts_the_samples_that_reach_the_score() -> None:
    run = run_of([*MIXED, *["1.0"] * 40], [Given(), Harm()])
    found = gate(run, GateCriteria(pass_rate={"given": (0.9, 0.3), "harm": (0.9, 0.1)}))
    assert [(d.name, d.estimate, d.verdict) for d in found.decisions] == [
        ("given >= 0.9", 0.75, "pass"),
        ("harm <= 0.9", 0.25, "pass"),
    ]


def test_outcomes_without_a_score_are_told_with_what_they_could_change() -> None:
    held = gate(run_of([*MIXED, "skip", "fail"]), GateCriteria(minimum={"given": 0.5}))
    told = "given: 2 samples without a score count as the worst in tests for a pass and as the best in tests for a fail"
    assert held.notes == (f"{told}; --missing failed leaves out those for which it is undefined",)
    assert (held.decisions[0].n, held.decisions[0].missing) == (40, 2)


def test_a_run_that_ended_early_is_told() -> None:
    held = gate(replace(run_of(MIXED), stop_reason="budget"), GateCriteria(minimum={"given": 0.5}))
    assert held.notes == ("the run stopped early (budget); samples that it had not come to are in no test",)


@pytest.mark.parametrize(
    ("criteria", "told"),
    [
        (GateCriteria(), r"needs a check: .* \(--min, --max, --max-regression, --pass-rate\)"),
        (GateCriteria(max_regression={"given": 0.1}), r"set a baseline \(--baseline\)"),
        (GateCriteria(minimum={"harm": 0.1}), r"lower is better for harm; set a maximum of 0\.1 \(--max harm=0\.1\)"),
        (
            GateCriteria(maximum={"given": 0.1}),
            r"higher is better for given; set a minimum of 0\.1 \(--min given=0\.1\)",
        ),
        (GateCriteria(minimum={"givne": 0.1}), "did you mean given"),
        (GateCriteria(minimum={"given": 0.9, GIVEN: 0.1}), r"minimum names given twice: as given and as given\("),
        (GateCriteria(maximum={Harm().signature: 0.9, "harm": 0.1}), "maximum names harm twice"),
        (GateCriteria(max_regression={"given": 0.9, GIVEN: 0.1}), "max_regression names given twice"),
        (GateCriteria(pass_rate={"given": (0.5, 0.9), GIVEN: (0.5, 0.1)}), "pass_rate names given twice"),
        (GateCriteria(minimum={"given": 2}), r"\[0, 1\]"),
        (GateCriteria(max_regression={"given": 2}), r"given: the largest regression must be in \[0, 1\], not 2"),
        (GateCriteria(pass_rate={"given": (2, 0.5)}), r"\[0, 1\], not 2"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(criteria: GateCriteria, told: str) -> None:
    run = run_of(MIXED, [Given(), Harm()])
    baseline = None if "--baseline" in told else run
    with pytest.raises(ConfigError, match=told):
        gate(run, criteria, baseline=baseline)


@pytest.mark.parametrize("kind", ["calibration", "audit"])
def test_runs_of_calibrations_and_audits_are_no_evaluations(kind: RunKind) -> None:
    run, criteria = run_of(MIXED), GateCriteria(max_regression={"given": 0.1})
    told = rf"run .+ is part of a judge's {kind}; a gate takes evaluations of outputs"
    with pytest.raises(ConfigError, match=told):
        gate(replace(run, kind=kind), criteria, baseline=run)
    with pytest.raises(ConfigError, match=told):
        gate(run, criteria, baseline=replace(run, kind=kind))


def test_a_baseline_that_nothing_is_held_against_is_told() -> None:
    held = gate(run_of(MIXED), GateCriteria(minimum={"given": 0.5}), baseline=run_of(MIXED))
    assert held.notes == ("the baseline is not used: no largest regression (--max-regression) was set",)


@pytest.mark.parametrize(
    ("criteria", "told"),
    [
        ({"minimum": {"given": None}}, "minimum of given must be a number, not None"),
        ({"maximum": {"harm": "0.5"}}, "maximum of harm must be a number, not '0.5'"),
        ({"max_regression": {"given": True}}, "max_regression of given must be a number, not True"),
        (
            {"pass_rate": {"given": 0.5}},
            r"pass_rate of given must be a score and a share: \(0.8, 0.9\), not 0.5",
        ),
        ({"pass_rate": {"given": (0.5, "x")}}, "pass_rate of given must be a number, not 'x'"),
        ({"minimum": 0.5}, "minimum must be a table from scorer to threshold, not 0.5"),
    ],
)
def test_criteria_of_another_type_are_refused_by_name(criteria: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        GateCriteria(**criteria)


@pytest.mark.parametrize("value", [None, "0.5", True, []])
def test_settings_of_another_type_are_refused_by_name(value: Any) -> None:
    run = run_of(MIXED, metadata=[{"kind": "x"}] * 40)
    for name, call in {
        "alpha": lambda: gate(run, GateCriteria(minimum={"given": 0.5}), alpha=value),
        "confidence": lambda: compare(run, run, confidence=value),
        "difference": lambda: sample_size(run, value),
        "power": lambda: sample_size(run, power=value),
        "tolerance": lambda: judge_drift(run, run, tolerance=2 if value is None else value),
    }.items():
        with pytest.raises(ConfigError, match=f"{name} must be "):
            call()
    with pytest.raises(ConfigError, match="confidence must be a number"):
        run.slices("kind", confidence=value)
    with pytest.raises(ConfigError, match="slices are by a metadata field or a function of a sample, not 5"):
        run.slices(5)  # type: ignore[arg-type]


def test_a_score_at_the_limit_of_a_pass_rate_passes() -> None:
    run = run_of(["0.5"] * 10, [Given(), Harm()])
    criteria = GateCriteria(pass_rate={"given": (0.5, 0.1), "harm": (0.5, 0.1)})
    assert [decision.estimate for decision in gate(run, criteria).decisions] == [1.0, 1.0]


def test_a_regression_is_that_of_the_runs_scorer_whatever_else_the_baseline_has() -> None:
    answers = ["0.4", "0.45"] * 20
    alone, both = run_of(answers, [Offset(by=0.5)]), run_of(answers, [Offset(), Offset(by=0.5)])
    criteria = GateCriteria(max_regression={"offset": 0.1})
    assert gate(alone, criteria, baseline=both).verdict == "pass"
    with pytest.raises(ConfigError, match="no sample has a score in both runs"):
        gate(both, criteria, baseline=alone)  # "offset" is the one without parameters here
    other = run_of(answers, [Offset(by=0.25)])
    assert gate(other, criteria, baseline=alone, allow_mismatch=True).verdict == "fail"


def test_scores_that_miss_a_limit_by_rounding_reach_it() -> None:
    run = run_of(["0.7999999999999999"] * 50, [Given(), Harm()])
    assert run.records[0].value == 0.7999999999999999
    found = gate(run, GateCriteria(pass_rate={"given": (0.8, 0.5), "harm": (0.7999999999999998, 0.5)}))
    assert [decision.estimate for decision in found.decisions] == [1.0, 1.0]


def test_an_ambiguous_scorer_is_refused_with_the_full_names() -> None:
    run = run_of(MIXED, [Offset(by=0.125), Offset(by=0.25)])
    with pytest.raises(ConfigError, match=r"offset is ambiguous; name one of offset\(by=0.125\), offset\(by=0.25\)"):
        gate(run, GateCriteria(minimum={"offset": 0.5}))
    assert gate(run, GateCriteria(minimum={"offset(by=0.25)": 0.5})).verdict == "pass"


def test_criteria_in_a_dictionary_are_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match=r"such as GateCriteria\(minimum=\{\"faithfulness\": 0\.8\}\), not dict"):
        gate(run_of(MIXED), {"given": 0.5})  # pyright: ignore[reportArgumentType]


def test_labels_test_the_means_that_people_would_give() -> None:
    answers = [str(0.6 + number % 10 / 40) for number in range(200)]  # mean 0.7125
    people = {f"s{number + 1}": float(answers[number]) - 0.2 for number in range(0, 200, 3)}
    run, before = run_of(answers), run_of([*answers[1:], answers[0]])
    criteria = GateCriteria(minimum={"given": 0.6}, pass_rate={"given": (0.6, 0.9)}, max_regression={"given": 0.1})
    by_judge = gate(run, criteria, baseline=before)
    assert [decision.verdict for decision in by_judge.decisions] == ["pass", "pass", "pass"]
    found = gate(run, criteria, baseline=before, labels={"given": people})
    assert [decision.verdict for decision in found.decisions] == ["fail", "fail", "pass"]
    assert [decision.labeled for decision in found.decisions] == [67, 67, None]
    theirs = {name: float(answers[int(name[1:]) % 200]) for name in people}
    both = gate(run, criteria, baseline=before, labels={"given": people}, baseline_labels={"given": theirs})
    assert [decision.verdict for decision in both.decisions] == ["fail", "fail", "fail"]
    assert both.decisions[2].estimate == pytest.approx(-0.2, abs=0.02)


def test_a_gate_without_labels_says_that_it_tests_the_judges_mean() -> None:
    samples = [{"id": f"s{n}", "output": "Paris is big.", "context": ["Paris is big."]} for n in range(8)]
    run = evaluate(samples, "faithfulness", judge="lexical", ledger=None)
    criteria = GateCriteria(minimum={"faithfulness": 0.5}, max_regression={"faithfulness": 0.1})
    labels = {"faithfulness": {f"s{n}": 1.0 for n in range(5)}}
    mean = "faithfulness: tests the judge's mean, not what people would say; --labels corrects it"
    regression = (
        "faithfulness: the regression is the judge's, not what people would say; --labels and --baseline-labels "
        "correct it"
    )
    notes = gate(run, criteria, baseline=run).notes
    assert mean in notes
    assert regression in notes
    notes = gate(run, criteria, baseline=run, labels=labels).notes
    assert mean not in notes
    assert regression in notes
    assert regression not in gate(run, criteria, baseline=run, labels=labels, baseline_labels=labels).notes
    assert not any("judge's mean" in note for note in gate(run_of(MIXED), GateCriteria(minimum={"given": 0.5})).notes)
