from __future__ import annotations

from dataclasses import replace

import pytest

from evalstone import ConfigError, Run, Skipped, compare, evaluate, gate, power
from tests.results.test_trials import INFO
from tests.results.test_trials import run_of as run_of_trials
from tests.runs import run_of as run_with


def run_of(output: str, *, keep: bool) -> Run:
    rows = [{"id": str(number), "output": output} for number in range(6)]
    return evaluate(rows, "contains(expected=Bern)", keep_reasoning=keep, ledger=None)


REASONED = "<think>Is it Bern?</think>\nIt is."


@pytest.mark.parametrize("keep", [False, True])
def test_runs_of_which_one_scores_the_reasoning_are_not_comparable(keep: bool) -> None:
    a, b = run_of(REASONED, keep=keep), run_of(REASONED, keep=not keep)
    with pytest.raises(ConfigError, match="keep_reasoning"):
        compare(a, b)
    with pytest.raises(ConfigError, match="keep_reasoning"):
        gate(b, max_regression={"contains": 0.1}, baseline=a)
    assert compare(a, b, allow_mismatch=True)["contains"].result.mean_a == float(keep)


@pytest.mark.parametrize("keep", [False, True])
def test_runs_that_treat_the_reasoning_alike_are_comparable(keep: bool) -> None:
    a = run_of(REASONED, keep=keep)
    for b in (run_of(REASONED, keep=keep), run_of("It is Bern.", keep=not keep)):
        assert compare(a, b).scorers


def test_samples_that_a_comparison_leaves_out_are_not_those_of_its_slices() -> None:
    metadata = [{"kind": kind} for kind in "xy" * 6]
    a, b = run_with(["0.5"] * 12, metadata=metadata), run_with([*["0.5"] * 11, "skip"], metadata=metadata)
    found = compare(a, b, slice_by="kind", missing="ignore", allow_mismatch=True)
    assert [line.unpaired for line in found.scorers] == [1]
    assert [(line.key, line.result.n, line.unpaired) for line in found.slices] == [("x", 6, 0), ("y", 5, 0)]


def test_a_sample_with_several_trials_is_in_its_slice_once() -> None:
    rows = [{"id": str(number), "input": "Bern", "metadata": {"kind": "xy"[number % 2]}} for number in range(12)]

    def echo(input: str) -> str:
        return input

    def wrong(input: str) -> str:
        return "Basel"

    a, b = (evaluate(rows, "contains(expected=Bern)", target=each, trials=2, ledger=None) for each in (echo, wrong))
    found = compare(a, b, slice_by="kind")
    assert [(line.key, line.result.n, line.difference.estimate) for line in found.slices] == [
        ("x", 6, -1.0),
        ("y", 6, -1.0),
    ]


def test_an_unpaired_comparison_counts_the_missing_scores_of_either_run() -> None:
    whole, cut = run_with(["0.5"] * 12), run_with([*["0.5"] * 10, "fail", "fail"])
    for both in ((whole, cut), (cut, whole)):
        assert compare(*both, unpaired=True, allow_mismatch=True)["given"].result.missing == 2
        assert compare(*both, unpaired=True, allow_mismatch=True, missing="ignore")["given"].result.missing == 0


def test_a_regression_pairs_trials_one_by_one() -> None:
    whole = run_of_trials({f"s{n}": [1.0, 0.0] for n in range(8)}, id="a")
    cut = run_of_trials({"s0": [0.0, Skipped("x")], **{f"s{n}": [1.0, 0.0] for n in range(1, 8)}}, id="b")
    (found,) = gate(cut, max_regression={"check": 0.2}, baseline=whole, missing="ignore").decisions
    assert (found.n, found.estimate) == (15, pytest.approx(-1 / 15))


def test_a_regression_weighs_samples() -> None:
    weights = {"s0": 3.0, **{f"s{n}": 1.0 for n in range(1, 8)}}
    before, after = (run_of_trials({f"s{n}": [float(n > 0 or x)] for n in range(8)}, weights=weights) for x in (1, 0))
    (found,) = gate(after, max_regression={"check": 0.2}, baseline=before).decisions
    assert found.estimate == pytest.approx(-3 / 10)


def test_a_plan_from_two_pilots_has_their_groups() -> None:
    data = [{"group": number // 4} for number in range(40)]
    a, b = (run_with([str(score)] * 40, metadata=data) for score in (0.5, 0.6))
    (found,) = power(b, 0.1, baseline=a, allow_mismatch=True)
    assert found.plan.groups is not None
    assert found.plan.needed == 4 * found.plan.groups


def test_a_missing_score_may_be_anything_on_the_scale_of_the_scorer() -> None:
    def interval(scale: float) -> tuple[float | None, float | None]:
        info = replace(INFO, scale=scale)
        a = run_of_trials({f"s{n}": [0.5 * scale] for n in range(8)}, info=info)
        b = run_of_trials({"s0": [Skipped("x")], **{f"s{n}": [0.5 * scale] for n in range(1, 8)}}, info=info)
        found = compare(a, b)["check"].difference
        return found.low, found.high

    low, high = interval(1.0)
    assert low is not None
    assert high is not None
    assert interval(10.0) == pytest.approx((10 * low, 10 * high))
