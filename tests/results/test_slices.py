"""Slices of a run: the direction, the groups and the title of each scorer are its own."""

from __future__ import annotations

import pytest

from evalstone.results.slices import slice_fields, slice_keys
from evalstone.stats import holm
from tests.runs import Given, Harm, run_of

SCORES = ["0.9", "0.8"] * 10 + ["0.1", "0.2"] * 5


def test_what_is_worse_depends_on_the_scorer() -> None:
    kinds = [{"kind": "first" if n < 20 else "last"} for n in range(30)]
    given, harm = run_of(SCORES, [Given(), Harm(scale=10)], metadata=kinds).slices("kind")
    assert (given.title, given.findings[0].key) == ("given", "last")
    assert (harm.title, harm.findings[0].key) == ("harm", "first")
    assert max(given.findings[0].adjusted_p_value, harm.findings[0].adjusted_p_value) < 0.001
    assert harm.findings[0].interval.estimate == 8.5


def test_samples_of_a_group_are_no_evidence_of_their_own_that_a_slice_is_worse() -> None:
    kinds = [{"kind": "first" if n < 20 else "last"} for n in range(30)]
    grouped = [{**kind, "group": f"{n // 2}"} for n, kind in enumerate(kinds)]
    (alone,) = run_of(SCORES, metadata=kinds).slices("kind")
    (clustered,) = run_of(SCORES, metadata=grouped).slices("kind")
    assert clustered.findings[0].interval.groups == 5
    assert clustered.findings[0].p_value > alone.findings[0].p_value
    (few,) = run_of(SCORES, metadata=[{**kind, "group": kind["kind"]} for kind in kinds]).slices("kind")
    assert few.findings == ()


def test_p_values_are_adjusted_over_all_scorers_and_slices_of_a_report() -> None:
    fields = [{"kind": f"{n % 3}", "half": f"{n < 15}"} for n in range(30)]
    results = run_of(SCORES, [Given(), Harm(), Harm(scale=5)], metadata=fields).slices(["kind", "half"])
    findings = [finding for result in results for finding in result.findings]
    assert len(findings) == 15
    assert [f.adjusted_p_value for f in findings] == list(holm([f.p_value for f in findings]))
    alone = run_of(SCORES, metadata=fields).slices(["kind", "half"])[0].findings
    assert alone[0].p_value == results[0].findings[0].p_value
    assert alone[0].adjusted_p_value < results[0].findings[0].adjusted_p_value


def test_a_field_that_is_named_twice_is_tested_once() -> None:
    assert slice_fields(["kind", "topic", "kind"]) == ["kind", "topic"]


@pytest.mark.parametrize("blank", ["", "  ", "\u200b"])
def test_a_blank_value_is_in_the_slice_of_absent_ones_as_in_a_csv_file(blank: str) -> None:
    run = run_of(["0.9", "0.8", "0.7"], metadata=[{"kind": "a"}, {"kind": blank}, {}])
    assert list(dict.fromkeys(slice_keys(run, "kind").values())) == ["a", "(absent)"]


def test_a_boolean_is_one_slice_as_json_python_and_a_spreadsheet_write_it() -> None:
    run = run_of(["0.9"] * 6, metadata=[{"vip": vip} for vip in (True, "True", "TRUE", "true", False, "FALSE")])
    assert [slice_keys(run, "vip")[sample.key] for sample in run.samples or ()] == [*["true"] * 4, *["false"] * 2]


def test_a_whole_number_is_one_slice_as_json_pandas_and_a_csv_file_have_it() -> None:
    run = run_of(["0.9"] * 6, metadata=[{"n": n} for n in (1, 1.0, "1", "1.0", 1.5, "1.10")])
    assert [slice_keys(run, "n")[sample.key] for sample in run.samples or ()] == [*["1"] * 4, "1.5", "1.10"]
