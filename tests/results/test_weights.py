"""Weights of samples: what they do to a run, its comparisons, slices and gates, and what refuses them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    ConfigError,
    DataError,
    EvalstoneError,
    Run,
    Sample,
    Scorer,
    audit,
    calibrate,
    compare,
    drift,
    gate,
    load,
    power,
    read_run,
    write_run,
)
from evalstone.report.html import page
from evalstone.report.markdown import lines
from evalstone.report.view import View
from evalstone.results.gate_criteria import GateCriteria
from evalstone.results.human_labels import corrected, select_for_labeling
from evalstone.results.looks import next_look, remember
from evalstone.results.missing_scores import Missing
from evalstone.results.views.comparison import comparison_view
from evalstone.results.views.drift import drift_view
from evalstone.results.views.gate import gate_view
from evalstone.results.views.run import run_view
from evalstone.stats.intervals import mean_interval, missing_bounds
from evalstone.types import Record, Score
from tests.refusals import refused
from tests.runs import Given, run_of

ANSWERS = ["1.0", "0.0", "0.5", "1.0"] * 5
HEAVY = [3.0, 1.0, 1.0, 1.0] * 5


class Anything(Scorer):
    """1 for every answer."""

    name = "anything"

    def score(self, *, output: str) -> Score:
        return Score(1.0)


def weighted(answers: Sequence[str] = ANSWERS, weights: Sequence[float] = HEAVY, **more: Any) -> Run:
    """A run of samples with these weights."""
    data = [{"weight": weight, "kind": "x" if place % 4 else "y"} for place, weight in enumerate(weights)]
    return run_of(answers, metadata=data, **more)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "2 kg", True, None, [1]])
def test_what_is_no_weight_is_refused_with_its_field(wrong: Any) -> None:
    if wrong is not None:
        with refused("weight", "a finite number above 0"):
            Sample(id="s1", output="x", weight=wrong)
    rows = [{"output": "x", "weight": 2}, {"output": "y", "weight": wrong}]
    for place, data in (("item 2: ", rows), (r"item [12]: ", rows[::-1])):
        with pytest.raises(DataError, match=place) as error:
            load(data)
        assert error.value.field == "weight"
        assert error.value.kind == ("missing" if wrong is None or wrong != wrong else "invalid")


def test_samples_without_weights_may_say_so_in_every_row() -> None:
    assert [sample.weight for sample in load([{"output": "x", "weight": None}, {"output": "y"}])] == [None, None]


def test_a_weight_in_python_is_a_number() -> None:
    with pytest.raises(DataError, match="not '2'"):
        Sample(output="x", weight="2")  # type: ignore[arg-type]


def test_a_table_has_weights_as_text_and_a_blank_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("output,weight\nyes,2.5\nno,10\n")
    assert [sample.weight for sample in load(file).samples] == [2.5, 10]
    file.write_text("output,Weight,weight\nyes,70 kg,2.5\n")
    assert [(sample.weight, sample.metadata) for sample in load(file).samples] == [(2.5, {"Weight": "70 kg"})]
    file.write_text("output,weight\nyes,2.5\nno,\n")
    with pytest.raises(DataError, match=r"csv: .*3.*weight") as error:
        load(file)
    assert error.value.kind == "missing"


def test_groups_and_weights_are_in_columns_of_exactly_that_name_or_in_mapped_ones(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("output,Weight,GROUP\nyes,2.5,g\n")
    (sample,) = load(file)
    assert (sample.weight, sample.group, sample.metadata) == (None, None, {"Weight": "2.5", "GROUP": "g"})
    (sample,) = load(file, map={"weight": "Weight", "group": "GROUP"})
    assert (sample.weight, sample.group, sample.metadata) == (2.5, "g", {})
    (sample,) = load([{"output": "x", "metadata": {"weight": 3, "group": 7}}])
    assert (sample.weight, sample.group, sample.metadata) == (None, None, {"weight": 3, "group": 7})
    (sample,) = load([{"output": "x", "metadata": {"weight": 3}}], map={"weight": "metadata.weight"})
    assert sample.weight == 3
    (sample,) = load([{"output": "x", "weight": "70 kg"}], map={"weight": ""})
    assert (sample.weight, sample.metadata) == (None, {"weight": "70 kg"})


@pytest.mark.parametrize("wrong", [True, float("inf"), [1], {"a": 1}])
def test_a_group_is_a_text_or_a_number(wrong: Any) -> None:
    with refused("group", "a text or a number"):
        Sample(output="x", group=wrong)
    if wrong != float("inf"):  # which is read as a text
        with pytest.raises(DataError, match="group") as error:
            load([{"output": "x", "group": wrong}])
        assert (error.value.kind, error.value.field) == ("invalid", "group")


def test_a_group_is_the_same_text_from_every_source(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("output,group\nx,3\n")
    groups = [sample.group for source in (file, [{"output": "x", "group": 3}]) for sample in load(source)]
    assert [*groups, Sample(group=3.0).group, Sample(group="3").group] == ["3"] * 4  # type: ignore[arg-type]


def test_a_mean_is_that_of_the_population_that_the_weights_stand_for() -> None:
    found, plain = weighted()["given"], run_of(ANSWERS)["given"]
    assert (found.mean, plain.mean) == (pytest.approx((3 + 0 + 0.5 + 1) / 6), pytest.approx(2.5 / 4))
    values = [record.value for record in weighted().records if record.value is not None]
    assert found.interval == mean_interval(values, low=0, high=1, weights=HEAVY)
    assert found.interval is not None
    assert found.interval.effective == pytest.approx(30**2 / (5 * 12))
    assert found.to_dict()["effective"] == found.interval.effective
    assert "effective" not in plain.to_dict()
    assert weighted(weights=[7.0] * 20)["given"].to_dict() == plain.to_dict()


def test_a_sample_without_a_weight_counts_as_one() -> None:
    data: list[dict[str, Any]] = [{}, {}, {"weight": 2}, {}]
    assert run_of(["1.0", "skip", "0.0", "1.0"], metadata=data)["given"].mean == 0.5
    assert (
        run_of(["1.0", "0.0"], metadata=[{}, {"weight": 1}])["given"].interval
        == run_of(["1.0", "0.0"])["given"].interval
    )


def test_skipped_samples_are_counted_but_weigh_in_the_bounds() -> None:
    found = weighted(["1.0", "skip", "0.0"], [1.0, 6.0, 1.0])["given"]
    assert (found.n_score, found.n_skipped, found.mean) == (2, 1, 0.5)
    assert found.bounds == pytest.approx((1 / 8, 7 / 8))
    assert found.bounds == missing_bounds([1.0, 0.0], 1, weights=([1.0, 1.0], [6.0]))


def test_records_keep_the_weight_that_a_sample_states(tmp_path: Path) -> None:
    run = weighted(["1.0", "0.0"], [2.0, 3.0])
    write_run(run, tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out" / "records.jsonl").read_text().splitlines()]
    assert [row["weight"] for row in rows] == [2.0, 3.0]
    assert "weight" not in run_of(["1.0"]).records[0].to_dict()
    again = read_run(tmp_path / "out")
    assert again["given"].interval == run["given"].interval
    with pytest.raises(DataError, match=r"weight .* above 0, not 0"):
        Record.from_dict({**rows[0], "weight": 0})
    assert [row["weight"] for row in csv.DictReader(run.csv_lines())] == ["2.0", "3.0"]


def test_compared_runs_must_agree_on_each_weight() -> None:
    other = weighted(weights=[*HEAVY[:-1], 2.0])
    for use in (
        lambda: compare(weighted(), other, allow_mismatch=True),
        lambda: gate(other, max_regression={"given": 0.5}, baseline=weighted()),
    ):
        with pytest.raises(ConfigError, match=r"'s20' .* 1 .*first .* 2 .*second"):
            use()


def test_no_weight_is_a_weight_of_1_in_a_comparison_too() -> None:
    plain, ones = run_of(ANSWERS), weighted(weights=[1.0] * 20)
    assert compare(plain, ones)["given"].result == compare(plain, plain)["given"].result
    partly = run_of(ANSWERS, metadata=[{"weight": 1.0} if place else {"weight": 2.0} for place in range(20)])
    some = run_of(ANSWERS, metadata=[{} if place else {"weight": 2.0} for place in range(20)])
    assert compare(partly, some)["given"].difference.effective == pytest.approx(21**2 / 23)


def test_weights_that_are_all_equal_leave_out_and_refuse_nothing() -> None:
    equal, plain, labels = weighted(weights=[7.0] * 20), run_of(ANSWERS), {f"s{number}": 1.0 for number in range(1, 15)}
    assert "Minimum detectable difference" in text_of(run_view(equal))
    found = compare(equal, equal)["given"].result
    assert found == compare(plain, plain)["given"].result
    assert corrected(equal, "given", labels).result == corrected(plain, "given", labels).result
    tested = [gate(run, min={"given": 0.5}, labels={"given": labels}).decisions for run in (equal, plain)]
    assert tested[0] == tested[1]


def test_a_comparison_is_of_weighted_means_in_every_part() -> None:
    now = ["0.5", "1.0", "0.5", "1.0"] * 5
    found = compare(weighted(), weighted(now), weighted(now), slice_by="kind")
    line = found["given"].result
    assert (line.mean_a, line.mean_b) == pytest.approx((4.5 / 6, 4 / 6))
    assert found.all_runs["given"].means == pytest.approx({"A": 4.5 / 6, "B": 4 / 6, "C": 4 / 6})
    assert [part.result.mean_a for part in found.slices if part.b == "B"] == pytest.approx([0.5, 1.0])
    notes = " ".join(comparison_view(found).sections[-1].notes)
    assert "Means are weighted" in notes
    assert re.search(r"20 samples .* as 15 of", notes)
    assert "effect" not in notes
    apart = compare(weighted(), weighted(now), unpaired=True)["given"].result
    assert (apart.mean_a, apart.mean_b) == pytest.approx((4.5 / 6, 4 / 6))
    by_slice = compare(weighted(), weighted(now), unpaired=True, slice_by="kind").slices
    assert [part.result.mean_b for part in by_slice] == pytest.approx([2.5 / 3, 0.5])


def test_slices_are_weighted() -> None:
    kinds = [{"weight": 9.0 if place % 3 else 1.0, "kind": "xy"[place % 2]} for place in range(24)]
    run = run_of(["1.0" if place % 3 else "0.0" for place in range(24)], metadata=kinds)
    (found,) = run.slices("kind")
    assert [part.interval.estimate for part in found.means] == pytest.approx([18 / 19, 18 / 19])
    assert found.weighted
    told = text_of(run_view(run, slices=[found]))
    assert "weighted mean" in told
    assert "slice's weighted mean" in told


def test_a_gate_tests_weighted_means_and_pass_rates() -> None:
    run = weighted(ANSWERS * 4, HEAVY * 4)
    found = gate(run, min={"given": 0.5}, pass_rate={"given": (1.0, 0.4)})
    assert [one.estimate for one in found.decisions] == pytest.approx([4.5 / 6, 4 / 6])
    assert found.verdict == "pass"
    told = text_of(gate_view(found))
    assert "80 (as about 60 " in told
    assert "Estimates are weighted" in told
    heavy = weighted([*ANSWERS, "skip"], [*HEAVY, 100.0])
    cases: tuple[tuple[Missing, float], ...] = (("worst", 22.5 / 130), ("ignore", 0.75))
    for missing, low in cases:
        (one,) = gate(heavy, min={"given": 0.1}, missing=missing).decisions
        assert one.low is not None
        assert one.low < low
        assert (one.low < 0.2) == (missing == "worst")
        assert one.missing == (missing == "worst")


def test_other_weights_are_another_look(tmp_path: Path) -> None:
    criteria = GateCriteria(min={"given": 0.5})
    remember(tmp_path, weighted(), criteria, "pass", look=1, alpha=0.05, missing="worst")
    assert next_look(tmp_path, weighted(), criteria) == 1
    assert next_look(tmp_path, weighted(weights=[*HEAVY[:-1], 2.0]), criteria) == 2


def test_drift_of_weighted_anchors_is_that_of_the_mean() -> None:
    before = weighted()
    now = replace(before, records=tuple(_changed(record) for record in before.records))
    found = drift(before, now)
    assert found["given"].drift.changed.estimate == pytest.approx(3 / 6)
    assert found["given"].drift.p_value == found["given"].drift.comparison.test.p_value
    told = text_of(drift_view(found))
    assert "weighted mean change" in told
    assert "weighted share of" in told
    assert "Wilcoxon" not in told


def test_reports_name_the_test_of_each_scorer_where_only_some_are_weighted() -> None:
    data = [{"weight": 2.0 if place < 12 else 1.0, "kind": "xy"[place % 2]} for place in range(24)]
    run = run_of(["0.5"] * 12 + ["skip"] * 12, [Given(), Anything()], metadata=data)
    told = text_of(drift_view(drift(run, run)))
    assert "mean change (anything)" in told
    told = text_of(run_view(run, slices=run.slices("kind")))
    assert "samples (given); test" in told


def text_of(view: View) -> str:
    """A view as Markdown without its escapes."""
    return "\n".join(lines(view)).replace("\\", "")


def _changed(record: Record) -> Record:
    return replace(record, outcome=Score(0.5)) if record.weight == 3 else record


REFUSALS: dict[str, Callable[[Run], object]] = {
    "a plan of sample sizes": power,
    "a correction by human labels": lambda run: corrected(run, "given", {"s1": 1.0}),
    "a correction by human labels ": lambda run: select_for_labeling(run, "given", ()),
    "an audit": lambda run: audit(run.samples or (), [Given()], ledger=None),
    "a calibration": lambda run: calibrate(
        [{"id": s.id, "output": s.output, "label": 1, "weight": s.weight} for s in run.samples or ()],
        Given(),
        ledger=None,
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_has_no_weighted_form_says_so(what: str) -> None:
    with pytest.raises(ConfigError, match=f"{what.strip()} has no weighted"):
        REFUSALS[what](weighted())


def test_reports_say_that_a_mean_is_weighted() -> None:
    run = weighted()
    assert re.search(r"20 samples .* as 15 of", str(run))
    told = text_of(run_view(run))
    assert "weighted mean" in told
    assert "Minimum detectable difference" not in told
    assert "weighted mean" in "".join(page(run_view(run)))
    assert "weighted" not in text_of(run_view(run_of(ANSWERS)))
    assert re.search(r"2 samples .* as 1\.6 of", str(weighted(ANSWERS[:2], [3.0, 1.0])))


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: load([{"output": "x", "weight": 1}, {"output": "x", "weight": None}]),
        DataError,
        "item 2: column 'weight' has weights, and not one in every row",
    ),
    (
        lambda: gate(
            weighted(["skip", *ANSWERS[1:]], [5.0, *HEAVY[1:]]),
            max_regression={"given": 0.5},
            baseline=weighted(),
        ),
        ConfigError,
        (
            "sample 's1' has a weight of 3 in the first run and of 5 in the second; a comparison needs "
            "the same weight in both"
        ),
    ),
    (
        lambda: gate(
            weighted(),
            min={"given": 0.5},
            labels={"given": {f"s{number}": 1.0 for number in range(1, 20)}},
        ),
        ConfigError,
        "given: human labels can't correct the scores of weighted samples",
    ),
    (
        lambda: compare(
            weighted(),
            weighted(),
            labels={
                "A": {"given": {f"s{number}": 1.0 for number in range(1, 20)}},
                "B": {"given": {f"s{number}": 1.0 for number in range(1, 20)}},
            },
        ),
        ConfigError,
        (
            "a correction by human labels has no weighted form, and the samples are weighted (the first"
            " 3, 's2' 1); to count each sample once, leave out `weight`"
        ),
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said


def test_a_column_of_weights_that_is_blank_in_every_row_has_none_and_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "d.csv"
    file.write_text("id,output,weight\na,x,\nb,y, \n")
    dataset = load(file)
    assert [sample.weight for sample in dataset.samples] == [None, None]
    assert dataset.notes == ("column 'weight' is blank in every row, so all samples weigh the same",)
    assert "weight" not in dataset.columns
    for rows in ("a,x,\nb,y,2\n", "a,x,2\nb,y,\n"):
        file.write_text(f"id,output,weight\n{rows}")
        with pytest.raises(DataError, match="line 3: column 'weight' has weights, and not one in every row"):
            load(file)
    assert load([{"output": "x", "weight": None}]).notes == ()
