"""Trials of a target: pass@k, pass^k, flaky samples, and statistics over samples and not over trials."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evalstone import (
    ConfigError,
    EvalstoneError,
    Failed,
    Record,
    Run,
    Score,
    Skipped,
    compare,
    gate,
    power,
)
from evalstone.results.scores import Scores, check_same_weights, refuse_weights
from evalstone.results.summary import ScorerInfo, summarize
from evalstone.results.trials import pass_all_k, pass_at_k, reliability, sizes
from evalstone.results.views.comparison import comparison_view
from evalstone.results.views.run import run_view
from evalstone.results.views.trials import trial_results
from evalstone.stats.gates import AtLeast, alpha_at_look, decide
from evalstone.stats.intervals import mean_interval
from evalstone.types import Outcome, StoredTarget, note

INFO = ScorerInfo(name="check", signature="check@1", scale=1.0, lower_is_better=False)


def run_of(table: dict[str, list[float | Outcome]], *, info: ScorerInfo = INFO, **fields: Any) -> Run:
    """A run whose samples had these outcomes, trial by trial."""
    trials = max(map(len, table.values()))
    records = [
        Record(
            sample_id=sample,
            scorer=info.name,
            signature=info.signature,
            outcome=outcome if isinstance(outcome, Score | Skipped | Failed) else Score(outcome, scale=info.scale),
            group=fields.get("groups", {}).get(sample, sample),
            trial=trial,
            weight=fields.get("weights", {}).get(sample),
        )
        for sample, outcomes in table.items()
        for trial, outcome in enumerate(outcomes, start=1)
    ]
    return Run(
        id=fields.get("id", "r"),
        dataset_name="d",
        dataset_version="v",
        n_samples=len(table),
        judge="none",
        judge_note="",
        scorers=(info,),
        records=tuple(records),
        summary=summarize((info,), records),
        started="2026-01-01T00:00:00+00:00",
        seconds=1.0,
        target=StoredTarget(identity="agent", trials=trials),
    )


def test_the_estimators_are_the_shares_of_sets_of_k_trials() -> None:
    for n, passed in itertools.product(range(1, 6), range(6)):
        for k in range(1, n + 1):
            if passed <= n:
                sets = list(itertools.combinations([True] * passed + [False] * (n - passed), k))
                assert pass_at_k(passed, n, k) == pytest.approx(sum(map(any, sets)) / len(sets))
                assert pass_all_k(passed, n, k) == pytest.approx(sum(map(all, sets)) / len(sets))


def test_sizes_double_up_to_the_number_of_trials() -> None:
    assert [sizes(n) for n in (1, 2, 3, 4, 5, 8)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4], [1, 2, 4, 5], [1, 2, 4, 8]]


def test_pass_at_k_and_pass_k_are_means_over_samples_with_intervals() -> None:
    run = run_of({"d": [0, 0, 1, 0], "a": [1, 1, 1, 1], "b": [1, 0, 1, 0], "c": [0, 0, 0, 0]})
    (found,) = run.reliability()
    assert [one.k for one in found.passes] == [1, 2, 4]
    assert found.passes[1].at_least_one.estimate == pytest.approx((1 / 2 + 1 + 5 / 6 + 0) / 4)
    assert found.passes[1].all.estimate == pytest.approx((0 + 1 + 1 / 6 + 0) / 4)
    assert found.passes[2].all.estimate == pytest.approx(1 / 4)
    expected = mean_interval([0, 1, 1 / 6, 0], low=0, high=1)
    assert expected is not None
    assert (found.passes[1].all.low, found.passes[1].all.high) == pytest.approx((expected.low, expected.high))
    assert (found.always, found.never) == (1, 1)
    assert [(one.sample_id, one.passed, one.trials) for one in found.flaky] == [("b", 2, 4), ("d", 1, 4)]


def test_a_trial_whose_target_failed_did_not_pass_and_an_undefined_one_can_be_left_out() -> None:
    run = run_of(
        {"a": [1, Failed("the target failed: down"), 1], "b": [1, Skipped("nothing"), 1], "c": [Skipped("x")] * 3}
    )
    (found,) = run.reliability(missing="failed")
    assert found.passes[0].at_least_one.estimate == pytest.approx((2 / 3 + 1) / 2)
    assert [(one.k, one.all.n) for one in found.passes] == [(1, 2), (2, 2), (3, 1)]
    assert (found.always, found.never, len(found.flaky)) == (1, 0, 1)
    assert (found.missing, found.left_out) == (0, 4)
    (found,) = run.reliability()
    assert [(one.k, one.all.n) for one in found.passes] == [(1, 3), (2, 3), (3, 3)]
    assert (found.always, found.never, len(found.flaky), found.undecided) == (0, 0, 1, 2)
    assert (found.missing, found.left_out) == (4, 0)


def test_the_limits_of_trials_hold_whatever_the_missing_scores_are() -> None:
    judge, user = Failed("the judge gave no JSON"), Failed("the user failed: no JSON")
    run = run_of({"a": [1, judge], "b": [1, user], "c": [0, 1], "d": [judge, user]})
    (found,) = run.reliability()
    (lowest,) = run_of({"a": [1, 0], "b": [1, 0], "c": [0, 1], "d": [0, 0]}).reliability()
    (highest,) = run_of({"a": [1, 1], "b": [1, 1], "c": [0, 1], "d": [1, 1]}).reliability()
    for one, low, high in zip(found.passes, lowest.passes, highest.passes, strict=True):
        assert one.all.estimate == low.all.estimate
        assert one.at_least_one.estimate == low.at_least_one.estimate
        for found_, lowest_, highest_ in (
            (one.all, low.all, high.all),
            (one.at_least_one, low.at_least_one, high.at_least_one),
        ):
            assert (lowest_.low or 0.0) <= (found_.low or 0.0) <= lowest_.estimate
            assert highest_.estimate <= (found_.high or 0.0) <= (highest_.high or 0.0)
    assert (found.passes[0].all.low or 0.0) > (lowest.passes[0].all.low or 0.0)
    assert [(one.k, one.all.n) for one in found.passes] == [(1, 4), (2, 4)]
    assert (found.always, found.never, len(found.flaky), found.undecided) == (0, 0, 1, 3)
    (ignored,) = run.reliability(missing="ignore")
    assert ignored.passes[0].all.estimate == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert [(one.k, one.all.n) for one in ignored.passes] == [(1, 3), (2, 1)]
    (nothing,) = run_of({"a": [judge, judge], "b": [user, user]}).reliability()
    assert (nothing.passes, nothing.always, nothing.never) == ((), 0, 0)
    with pytest.raises(ConfigError) as raised:
        run.reliability(missing="all")  # type: ignore[arg-type]
    assert (raised.value.field, raised.value.value) == ("missing", "all")


def test_the_threshold_of_another_tool_says_what_passes_there() -> None:
    tools = replace(INFO, tool="acme 1", tool_threshold=0.8)
    (found,) = run_of({"a": [0.7, 0.9], "b": [0.9, 0.8]}, info=tools).reliability()
    assert (found.threshold, found.always) == (0.8, 1)


def test_trials_dont_pass_by_a_scale_that_nobody_knows() -> None:
    tools = replace(INFO, scale=100.0, tool="acme 1")
    run = run_of({"a": [12, 19], "b": [12, 12]}, info=tools)
    assert trial_results(run)
    assumed = replace(
        run, cautions=(note("scale_assumed", "caution", "check", tool="acme", highest=19.0, scale=100.0),)
    )
    assert not trial_results(assumed)
    assert not [section for section in run_view(assumed).sections if section.title == "Trials"]


def test_a_threshold_and_the_direction_say_what_passes() -> None:
    graded = ScorerInfo(name="grade", signature="grade@1", scale=5.0, lower_is_better=True)
    run = run_of({"a": [1, 2], "b": [2.5, 4]}, info=graded)
    (half,) = run.reliability("grade")
    assert half.threshold == 2.5
    assert (half.always, half.never, [one.sample_id for one in half.flaky]) == (1, 0, ["b"])
    (strict,) = run.reliability("grade", threshold=1)
    assert (strict.always, strict.never, [one.sample_id for one in strict.flaky]) == (0, 1, ["a"])
    assert [run.reliability("grade", threshold=limit)[0].always for limit in (0, 5)] == [0, 2]
    with pytest.raises(ConfigError) as raised:
        run.reliability("grade", threshold=6)
    assert (raised.value.field, raised.value.value, raised.value.allowed) == ("the threshold", 6, "in [0, 5]")


def test_variance_between_samples_and_between_trials() -> None:
    (found,) = run_of({"a": [1, 1], "b": [0, 0], "c": [1, 1], "d": [0, 0]}).reliability()
    assert found.variance is not None
    assert found.variance.variances["noise"].estimate == 0
    assert found.variance.variances["samples"].estimate == pytest.approx(1 / 3)
    (noisy,) = run_of({"a": [1, 0], "b": [0, 1], "c": [1, 0], "d": [0, 1]}).reliability()
    assert noisy.variance is not None
    assert noisy.variance.variances["noise"].estimate == pytest.approx(0.5)
    two: list[float | Outcome] = [1, 0, Skipped("x")]
    three: list[float | Outcome] = [1, 1, 0]
    assert run_of({"a": two, "b": three, "c": [1, *[Skipped("x")] * 2]}).reliability()[0].variance is not None
    assert run_of({"a": two, "b": three}).reliability()[0].variance is None


def judged(*values: float | None, scale: float = 1.0) -> Score:
    """What a scorer that is repeated gives for these judgments."""
    scores = [value for value in values if value is not None]
    judgments = [{"judgment": number, "value": value} for number, value in enumerate(values, start=1)]
    return Score(sum(scores) / len(scores), scale=scale, evidence={"judgments": judgments})


def test_the_variance_of_a_repeated_judge_is_taken_out_of_that_of_the_trials() -> None:
    rows: dict[str, list[float | Outcome]] = {
        "a": [judged(1.0, 0.8), judged(0.7, 0.7)],
        "b": [judged(0.5, 0.5), judged(0.4, 0.2)],
        "c": [judged(0.2, 0.2), judged(0.4, 0.4)],
    }
    (found,) = run_of(rows).reliability()
    assert found.variance is not None
    variances = {name: one.estimate for name, one in found.variance.variances.items()}
    assert variances["trials"] == pytest.approx(0.02 - 0.02 / 6)
    assert variances["noise"] == pytest.approx(0.04 / 6)
    section = next(section for section in run_view(run_of(rows)).details if section.title == "Trials")
    titles = [column.title for column in section.tables[0].columns]
    first = dict(zip(titles, [cell.text for cell in section.tables[0].rows[0]], strict=True))
    assert [first[title] for title in titles if title.startswith("SD")][-2:] == ["0.129", "0.082"]
    assert "a single judgment." in section.notes[-1]
    assert "the judge's own" not in section.notes[-1]


@pytest.mark.parametrize("repeats", [1, 2])
def test_variances_have_the_scale_of_the_scorer(repeats: int) -> None:
    table = {"a": (1.0, 0.75), "b": (0.5, 0.25), "c": (0.0, 0.5), "d": (0.75, 1.0)}
    of_one, of_ten = (
        run_of(
            {
                name: [judged(x * scale, *[0.0] * (repeats - 1), scale=scale) for x in row]
                for name, row in table.items()
            },
            info=replace(INFO, scale=scale),
        ).reliability()[0]
        for scale in (1.0, 10.0)
    )
    assert of_one.variance is not None
    assert of_ten.variance is not None
    for name, one in of_one.variance.variances.items():
        ten = of_ten.variance.variances[name]
        assert (ten.estimate, ten.low, ten.high) == tuple(
            x and pytest.approx(100 * x, rel=1e-6) for x in (one.estimate, one.low, one.high)
        )


def test_what_another_scorer_calls_judgments_is_no_score_of_the_judge() -> None:
    unlike: list[Any] = [
        [{"value": 5}, {"value": 9}],
        [{"judgment": 1, "value": 0.1}, {"judgment": 2, "value": 0.2}],
        [{"judgment": 2, "value": 1.0}, {"judgment": 1, "value": 0.0}],
        [{"judgment": 1, "value": None}, {"judgment": 2, "value": "0.5"}],
        [],
        {"value": 0.5},
    ]
    for judgments in unlike:
        outcome = Score(0.5, scale=1.0, evidence={"judgments": judgments})
        (found,) = run_of({name: [outcome, 1.0] for name in "abc"}).reliability()
        assert found.variance is not None
        assert {name: one.estimate for name, one in found.variance.variances.items()} == {
            "samples": 0,
            "noise": pytest.approx(0.125),
        }


def test_a_judge_that_varies_more_than_the_trials_is_told_with_the_table() -> None:
    rows: dict[str, list[float | Outcome]] = {name: [judged(1.0, 0.0), judged(0.0, 1.0, None)] for name in "abc"}
    section = next(section for section in run_view(run_of(rows)).details if section.title == "Trials")
    assert section.notes[-1].startswith("check: ")
    assert section.notes[-1].endswith(" estimated below 0")


def test_one_sample_with_several_judgments_says_nothing_of_the_judge() -> None:
    rows: dict[str, list[float | Outcome]] = {"a": [judged(1.0, 0.0), 1.0], "b": [1.0, 0.0], "c": [0.0, 0.0]}
    (found,) = run_of(rows).reliability()
    assert found.variance is not None
    assert list(found.variance.variances) == ["samples", "noise"]
    section = next(section for section in run_view(run_of(rows)).details if section.title == "Trials")
    assert not any(column.title.endswith("the judge") for column in section.tables[0].columns)


def test_judgments_in_the_evidence_of_a_scorer_of_your_own_are_no_repetitions() -> None:
    own = [Score(value, evidence={"judgments": [{"value": 80}, {"value": 90}]}) for value in (1.0, 0.0)]
    (found,) = run_of({name: [*own] for name in "abc"}).reliability()
    assert found.variance is not None
    assert list(found.variance.variances) == ["samples", "noise"]


def test_intervals_of_trials_have_the_clusters_of_the_samples_and_the_confidence() -> None:
    table: dict[str, list[float | Outcome]] = {f"s{n}": [float(n % 3 > 0), float(n % 4 > 0)] for n in range(12)}
    (alone,) = run_of(table).reliability()
    (grouped,) = run_of(table, groups={f"s{n}": f"g{n // 2}" for n in range(12)}).reliability()
    (narrow,) = run_of(table).reliability(confidence=0.5)
    assert [one.all.groups for one in (*alone.passes, *grouped.passes)] == [None, None, 6, 6]
    assert alone.variance is not None
    assert narrow.variance is not None
    pairs: list[tuple[Any, Any]] = [
        (alone.passes[0].all, narrow.passes[0].all),
        (alone.variance.variances["noise"], narrow.variance.variances["noise"]),
    ]
    assert all(wide.low < less.low < less.high < wide.high for wide, less in pairs)


def test_a_sample_counts_with_its_weight() -> None:
    (found,) = run_of({"a": [1, 1], "b": [0, 0]}, weights={"a": 3.0, "b": 1.0}).reliability()
    assert [(one.at_least_one.estimate, one.all.estimate) for one in found.passes] == [(0.75, 0.75)] * 2


def test_only_samples_with_a_missing_trial_are_undecided() -> None:
    run = run_of({"a": [1, 1], "b": [0, 0], "c": [1, Failed("down")], "d": [1, 0, Failed("down")]})
    (found,) = reliability(run)
    assert (found.always, found.never, found.undecided, len(found.flaky)) == (1, 1, 1, 1)


def test_trials_of_passes_with_missing_ones_are_compared_by_their_means() -> None:
    a = run_of({f"s{n}": [0, 0, Failed("down")] for n in range(12)}, id="a")
    b = run_of({f"s{n}": [1, 1, Failed("down")] for n in range(12)}, id="b")
    result = compare(a, b)["check"].result
    assert result.test.name.endswith("mean difference")
    assert result.difference.estimate == 1.0
    assert result.difference.low is not None
    assert result.difference.low < 1 / 3  # the missing trials may have passed in a, and failed in b


def test_the_mean_s_interval_is_of_samples_however_many_trials_they_have() -> None:
    rates = [[1, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 0], [1, 1, 1, 0]] * 3
    few = run_of({f"s{n}": list(row) for n, row in enumerate(rates)})
    many = run_of({f"s{n}": [*row] * 5 for n, row in enumerate(rates)})
    one, other = few["check"].interval, many["check"].interval
    assert one is not None
    assert other is not None
    assert one.groups == other.groups == 15
    assert (one.low, one.high) == pytest.approx((other.low, other.high), abs=1e-3)


def test_comparisons_are_of_the_means_of_each_sample_s_trials() -> None:
    a = run_of({f"s{n}": [n % 2, 0] for n in range(20)}, id="a")
    b = run_of({f"s{n}": [1, Failed("down") if n == 3 else 1] for n in range(20)}, id="b")
    comparison = compare(a, b)
    pair = comparison["check"]
    assert pair.difference.estimate == pytest.approx(0.75)
    assert (pair.difference.n, pair.difference.groups) == (20, None)
    assert note("several_trials", runs=("A", "B"), trials=(2, 2)) in comparison.notes
    once = run_of({f"s{n}": [1, 1, 1] for n in range(20)}, id="c")
    comparison = compare(a, once)
    assert comparison["check"].difference.estimate == pytest.approx(0.75)
    assert note("several_trials", runs=("A", "B"), trials=(2, 3)) in comparison.notes


def test_values_by_sample_have_a_weight_and_a_group_each() -> None:
    samples = ["a", "a", "b"]
    scores = Scores(["a#1", "a#2", "b#1"], samples, [1.0, 0.0, 1.0], samples, [1.0, 1.0, 2.0])
    by_sample = scores.by_sample
    assert (by_sample.names, by_sample.values, by_sample.weights) == (["a", "b"], [0.5, 1.0], [1.0, 2.0])
    assert by_sample.labels is None
    assert replace(scores, groups=["g"] * 3).by_sample.labels == ("g", "g")
    assert len(set(replace(scores, groups=["a#1", None, None]).labels or ())) == 3  # each without one is its own


def test_missing_trials_leave_a_sample_s_mean_open() -> None:
    samples = ["a", "a", "b", "c", "c"]
    names = [f"{sample}#{row}" for row, sample in enumerate(samples)]
    missing: dict[str, Any] = {"ends": {0: (0.0, 1.0), 2: (0.0, 1.0)}, "undefined": frozenset({2})}
    by_sample = Scores(names, samples, [None, 0.5, None, 1.0, 0.0], **missing).by_sample
    assert (by_sample.names, by_sample.values) == (["a", "c", "b"], [0.5, 0.5, None])
    assert (by_sample.ends, by_sample.undefined) == ({0: (0.25, 0.75), 2: (0.0, 1.0)}, {2})
    assert list(map(by_sample.ends_of, range(3))) == [(0.25, 0.75), (0.5, 0.5), (0.0, 1.0)]


def test_rows_are_taken_in_any_order() -> None:
    names, groups = ["a", "b", "c"], ["g", None, None]
    scores = Scores(names, names, [1.0, None, 0.5], groups, [2.0, 1.0, 1.0], {1: (0.0, 1.0)}, frozenset({1}))
    some = scores.at([2, 1])
    assert (some.names, some.values, some.groups, some.weights) == (["c", "b"], [0.5, None], None, [1.0, 1.0])
    assert (some.ends, some.undefined, some.unequal_weights) == ({1: (0.0, 1.0)}, {1}, None)


def test_a_sample_without_a_weight_has_the_weight_1() -> None:
    names = ["a", "b"]
    unweighted, weighted = (Scores(names, names, [1.0, 1.0], weights=weights) for weights in (None, [1.0, 1.0]))
    assert (weighted.unequal_weights, replace(weighted, weights=[1.0, 2.0]).unequal_weights) == (None, [1.0, 2.0])
    check_same_weights(unweighted, weighted)
    refuse_weights([("a", None), ("b", 1.0)], "this")
    with pytest.raises(ConfigError, match=r"the first 1, 'b' 2"):
        refuse_weights([("a", None), ("b", 2.0)], "this")


def test_gates_count_a_sample_s_trials_as_a_cluster() -> None:
    steady = run_of({f"s{n}": [1 if n < 17 else 0] * 10 for n in range(20)})
    result = gate(steady, min={"check": 0.75})
    assert result.verdict != "pass"  # 170 independent passes of 200 would be


def test_a_gate_says_how_many_more_samples_it_needs_not_trials() -> None:
    once = gate(run_of({f"s{n}": [int(n % 4 > 0)] for n in range(40)}), min={"check": 0.65})
    alike = gate(run_of({f"s{n}": [int(n % 4 > 0)] * 5 for n in range(40)}), min={"check": 0.65})
    (one,), (many,) = once.decisions, alike.decisions
    assert one.verdict == many.verdict == "inconclusive"
    assert one.more_samples is not None
    assert many.more_samples == pytest.approx(one.more_samples, rel=0.1)
    table = {f"s{n}": [1, int(n % 3 > 0), int(n % 4 > 0)][: 3 - (n < 7)] for n in range(40)}
    values, groups = zip(*((float(value), name) for name, row in table.items() for value in row), strict=True)
    criterion = AtLeast("check", values, 0.76, groups=groups)
    (answers,) = decide([criterion], alpha=alpha_at_look(0.05, 1), next_alpha=alpha_at_look(0.05, 2))
    assert answers.more_samples is not None
    assert answers.more_samples % 3
    (found,) = gate(run_of({name: [*row] for name, row in table.items()}), min={"check": 0.76}).decisions
    assert found.more_samples == math.ceil(answers.more_samples / 3)


def test_a_report_shows_the_worst_trial_of_a_sample_and_says_what_counts_as_one() -> None:
    run = run_of({"a": [0, 0, 0], "b": [1, 0.5, 0.75], "c": [1, 1]})
    view = run_view(run)
    assert [one.id for one in view.examples[0].samples] == ["a #1", "b #2"]
    assert any("are not independent" in note for note in view.sections[0].notes)
    section = next(section for section in view.details if section.title == "Trials")
    assert any(note.startswith("check: k = 3 ") and "2 of 3" in note for note in section.notes)


def test_a_report_without_a_score_has_no_trials() -> None:
    run = run_of({"a": [Skipped("-")] * 2, "b": [Skipped("-")] * 2})
    assert "Trials" not in [section.title for section in run_view(run).details]


def test_a_comparison_of_trials_pairs_and_counts_samples() -> None:
    a = run_of({f"s{n}": [n % 2, Skipped("-")] for n in range(8)}, id="a")
    b = run_of({f"s{n}": [1, 1] for n in range(8)}, id="b")
    notes = " ".join(comparison_view(compare(a, b)).sections[0].notes)
    assert "paired by sample: " in notes
    assert "left out" not in notes


def test_a_report_names_trials_and_flaky_samples() -> None:
    run = run_of({f"s{n}": [1, n % 2, 1, 0] for n in range(10)})
    section = next(section for section in run_view(run).details if section.title == "Trials")
    (lead,) = section.lead
    assert re.findall(r"\d+", lead) == ["0", "10", "0", "10"]
    assert any(note.startswith("check: flakiest: s0 (2 of 4 ") for note in section.notes)
    texts = [cell.text for row in section.tables[0].rows for cell in row]
    assert "pass^k" in [column.title for column in section.tables[0].columns]
    assert f"{math.fsum([0.5, 0.75]) / 2:.3f}" in texts


def test_a_plan_is_of_samples_and_not_of_trials() -> None:
    once = run_of({f"s{n}": [n % 3 / 2] for n in range(30)})
    again = run_of({f"s{n}": [n % 3 / 2] * 4 for n in range(30)})
    plans = [power(run, difference=0.1).scorers[0] for run in (once, again)]
    assert [plan.plan.n for plan in plans] == [30, 30]
    assert plans[0].plan.needed == plans[1].plan.needed


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: reliability(replace(run_of({"a": [1]}), target=None)),
        ConfigError,
        "the run has one trial of each sample; run the target with trials=…",
    ),
    (
        lambda: compare(
            run_of({f"s{n}": [n % 2, 0] for n in range(20)}, id="a"),
            run_of({f"s{n}": [1, Failed("down") if n == 3 else 1] for n in range(20)}, id="b"),
            labels={"A": {"check": {"s1": 1.0}}},
        ),
        ConfigError,
        "labels are for single answers: they can't correct differences of runs with trials",
    ),
    (
        lambda: check_same_weights(Scores(["a"], ["a"], [1.0]), Scores(["a"], ["a"], [1.0], weights=[2.0])),
        ConfigError,
        (
            "sample 'a' has a weight of 1 in the first run and of 2 in the second; a comparison needs "
            "the same weight in both"
        ),
    ),
    (
        lambda: gate(
            run_of({f"s{n}": [1 if n < 17 else 0] * 10 for n in range(20)}),
            max_regression={"check": 0.1},
            baseline=run_of({f"s{n}": [1, 1] for n in range(20)}, id="b"),
        ),
        ConfigError,
        (
            "the run has 10 trials of each sample and the baseline has 2; a comparison needs the same "
            "number of trials in both"
        ),
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
