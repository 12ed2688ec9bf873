"""Results with rows of data as CSV, which reads back."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from evalstone import Sample, evaluate, write_run
from evalstone.results.files import read_summary
from evalstone.results.several_runs import Experiment, SavedRuns
from tests.runs import Given, run_of


def test_a_run_is_one_row_a_sample_and_scorer_with_value_reason_and_texts() -> None:
    rows = list(csv.DictReader(io.StringIO("".join(run_of(["0.5", "skip", "fail"]).csv_lines()))))
    assert [(r["sample_id"], r["outcome"], r["value"], r["scale"], r["answer"]) for r in rows] == [
        ("s1", "score", "0.5", "1.0", "0.5"),
        ("s2", "skipped", "", "", "skip"),
        ("s3", "failed", "", "", "fail"),
    ]
    assert [r["reason"] for r in rows[:2]] == ["says 0.5", "nothing to say"]
    assert "could not convert" in rows[2]["reason"]


@pytest.mark.parametrize("keep", [False, True])
def test_the_answer_is_what_was_scored(keep: bool) -> None:
    thought = "<think>Berlin?</think>Bern"
    run = evaluate([{"output": thought}], "contains(expected=Bern)", keep_reasoning=keep, ledger=None)
    (row,) = csv.DictReader(io.StringIO("".join(run.csv_lines())))
    assert row["answer"] == (thought if keep else "Bern")


def test_a_hostile_sample_stays_one_row_without_a_formula() -> None:
    hostile = Sample(id='=cmd|"/c calc"!A1', input='x"\r\n=1,@2', output="0.5")
    rows = list(csv.reader(io.StringIO("".join(evaluate([hostile], [Given()], ledger=None).csv_lines()), newline="")))
    assert len(rows) == 2
    assert not [cell for cell in rows[1] if cell[:1] in "=+-@\t\r" and cell]


def test_saved_runs_and_cells_are_one_row_a_run_and_scorer(tmp_path: Path) -> None:
    run, other = run_of(["0.5", "skip", "fail"], [Given(), Given(scale=10)]), run_of(["1.0"])
    write_run(run, tmp_path / "run")
    saved = SavedRuns((read_summary(tmp_path / "run"),), ("run",))
    rows = list(csv.DictReader(io.StringIO(saved.to_csv())))
    assert [(row["run"], row["dataset"], row["scorer"], row["mean"], row["scale"]) for row in rows] == [
        (run.id, "in memory", "given", "0.5", "1.0"),
        (run.id, "in memory", "given(scale=10)", "5.0", "10"),
    ]
    cells = list(csv.DictReader(io.StringIO(Experiment(runs={"a": run, "b": other}).to_csv())))
    assert [(row["cell"], row["mean"], row["n_score"], row["n_skipped"], row["n_failed"]) for row in cells] == [
        ("a", "0.5", "1", "1", "1"),
        ("a", "5.0", "1", "1", "1"),
        ("b", "1.0", "1", "0", "0"),
    ]


@pytest.mark.parametrize("order", ["that of the records", "another", "a part of it", "none"])
def test_each_row_has_the_texts_of_its_sample_in_whatever_order_they_are(order: str) -> None:
    run = run_of(["0.5", "0.25", "1"], [Given(), Given(scale=2)])
    samples = list(run.samples or ())
    data = {"another": samples[::-1], "a part of it": samples[1:2], "none": None}.get(order, samples)
    rows = list(csv.DictReader(io.StringIO("".join(replace(run, samples=data).csv_lines()))))
    known = {sample.id: sample.output for sample in data or ()}
    assert sorted((row["sample_id"], row["scorer"]) for row in rows) == sorted(
        (record.sample_id, run.titles[record.signature]) for record in run
    )
    assert {row["sample_id"]: row["answer"] for row in rows} == {s.id: known.get(s.id) or "" for s in samples}


def test_trials_have_a_column() -> None:
    def half(*, input: str) -> str:
        return "0.5"

    run = evaluate([{"input": "a"}, {"input": "b"}], [Given()], target=half, trials=2, ledger=None)
    rows = list(csv.DictReader(io.StringIO("".join(run.csv_lines()))))
    assert [row["trial"] for row in rows] == ["1", "2", "1", "2"]
