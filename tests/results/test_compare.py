"""Comparison: what is paired, what is refused, and the numbers of small examples worked out by hand."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evalstone import ConfigError, DataError, EvalstoneError, Run, Score, Scorer, Skipped, compare, evaluate, scorer
from evalstone.datasets import json_line
from evalstone.errors import NotComparable
from evalstone.report.notes import sentence_of
from evalstone.results.comparable_runs import pair_runs, same_outputs
from evalstone.results.compare import Comparison
from evalstone.results.files import read_run, write_run
from evalstone.results.missing_scores import Missing
from evalstone.results.pairing import Pairing
from evalstone.results.views.comparison import comparison_view
from evalstone.results.views.exports import comparison_csv
from evalstone.scorers import Pairwise, PerTurn
from evalstone.stats.bounded_mean import BoundedMean
from evalstone.stats.comparison import PairedComparison
from evalstone.types import Note, about, note
from tests.runs import Given, Harm, run_of

A = ["0.5", "0.5", "1.0", "0.0"]
B = ["0.75", "0.5", "0.75", "0.5"]


def differing(compared: Comparison) -> list[Note]:
    """The notes on how the runs differ."""
    return [each for each in compared.notes if each.kind != "nothing_detectable"]


def test_differences_are_taken_sample_by_sample() -> None:
    line = compare(run_of(A), run_of(B))["given"]
    assert isinstance(line.result, PairedComparison)
    assert line.result.n == 4
    assert line.result.mean_a == 0.5
    assert line.result.mean_b == 0.625
    assert line.difference.estimate == 0.125
    assert (line.result.wins, line.result.ties, line.result.losses) == (2, 1, 1)
    assert line.result.test.p_value == BoundedMean.of([0.25, 0, -0.25, 0.5], -1, 1).two_sided_p(0)


def test_a_comparison_says_how_its_p_values_are_corrected() -> None:
    corrected, raw = compare(run_of(A), run_of(B)), compare(run_of(A), run_of(B), correction="none")
    assert " for 1 comparison (Holm)." in str(corrected)
    assert "; not corrected " in str(raw)
    one = compare(run_of(["0.5"] * 12), run_of(["0.75"] * 12), slice_by=lambda sample: int(sample.id[1:]) % 2)
    assert "for 2 comparisons (Holm). " in str(one)


def test_where_lower_is_better_a_lower_mean_is_a_gain() -> None:
    line = compare(run_of(A, [Harm()]), run_of(B, [Harm()]))["harm"]
    assert line.improvement == -0.125
    assert isinstance(line.result, PairedComparison)
    assert (line.result.wins, line.result.losses) == (1, 2)


def test_the_samples_that_changed_most_come_first() -> None:
    changes = compare(run_of(A), run_of(B))["given"].changes
    assert (changes[0].sample_id, changes[0].a, changes[0].b) == ("s4", 0.0, 0.5)
    assert {change.sample_id for change in changes} == {"s1", "s3", "s4"}


@pytest.mark.parametrize(("missing", "counted", "unpaired"), [("worst", 2, 0), ("failed", 1, 1), ("ignore", 0, 2)])
def test_a_sample_without_a_score_in_one_run_counts_as_it_is_told_to(
    missing: Missing, counted: int, unpaired: int
) -> None:
    runs = run_of(["0.5", "skip", "1.0", "skip"]), run_of(["0.5", "0.5", "fail", "skip"])
    line = compare(*runs, missing=missing)["given"]
    assert isinstance(line.result, PairedComparison)
    assert (line.result.n, line.result.missing, line.unpaired) == (1, counted, unpaired)
    assert (line.unscored, line.of_both) == (1, 4)
    assert (line.to_dict()["unscored"], line.to_dict()["of_both"]) == (1, 4)
    assert "skip" not in str(line.changes)


def test_samples_without_a_score_in_either_run_are_said_and_so_is_a_scorer_without_a_pair() -> None:
    lines = str(compare(run_of(["0.5", "skip", "1.0", "skip"]), run_of(["0.5", "skip", "1.0", "skip"]))).splitlines()
    assert "given: 2 of 4 samples in both runs have no score in either and are left out." in " ".join(lines)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (["0", "1"] * 10, ["1", "0"] * 10, None),
        (["0.5"], ["0.75"], "single"),
        (A, B, "scale"),
        ([*["0.5"] * 5, *["fail"] * 5], ["0.5"] * 10, "missing"),
    ],
)
def test_why_nothing_is_detectable_is_noted(first: list[str], second: list[str], why: str | None) -> None:
    found = compare(run_of(first), run_of(second))
    reasons = [each["why"] for each in found.notes if each.kind == "nothing_detectable"]
    assert reasons == ([] if why is None else [why])
    assert (found["given"].detectable is None) is (why is not None)


def test_an_interval_without_0_beside_a_corrected_p_is_explained() -> None:
    def first(output: str) -> float:
        return float(output)

    def second(output: str) -> float:
        return 0.5

    def run(better: int) -> Run:
        rows = [{"id": str(n), "input": f"q{n}", "output": str(int(n < better))} for n in range(40)]
        return evaluate(rows, [first, second], ledger=None)

    found = compare(run(0), run(5))
    line = found["first"]
    assert (line.verdict, line.p_value <= 0.05, (line.difference.low or 0) > 0) == ("inconclusive", True, True)
    (said,) = (each for each in found.notes if each.kind == "interval_uncorrected")
    assert (said["scorers"], said["comparisons"]) == (("first",), 2)
    assert sentence_of(said) in " ".join(str(found).split())
    alone = compare(run(0), run(5), correction="none")
    assert "interval_uncorrected" not in {each.kind for each in alone.notes}


def test_a_scorer_without_any_pair_of_scores_is_named() -> None:
    def other(output: str) -> float | Skipped:
        return Skipped("undefined")

    def given(output: str) -> float:
        return float(output)

    runs = [evaluate([{"id": "1", "output": "0.5"}, {"id": "2", "output": "1"}], [given, other], ledger=None)] * 2
    found = compare(*runs)
    (said,) = (each for each in found.notes if each.kind == "not_compared")
    assert (said["scorers"], said["runs"]) == (("other",), ("A", "B"))
    assert [line.title for line in found.scorers] == ["given"]


def test_what_has_no_score_is_counted_in_both_directions() -> None:
    a, b = run_of(["0.1", "0.2", "0.3", "skip"]), run_of(["skip", "skip", "0.4", "0.5"])
    for both in ((a, b), (b, a)):
        assert compare(*both, missing="ignore")["given"].unpaired == 3
        found = compare(*both)["given"].result
        assert isinstance(found, PairedComparison)
        assert found.missing == 3
    with pytest.raises(ConfigError) as raised:
        compare(a, b, missing="best")  # type: ignore[arg-type]
    assert (raised.value.field, raised.value.value) == ("missing", "best")


def test_a_difference_holds_whatever_the_missing_scores_are() -> None:
    a, b = run_of(["0"] * 20 + ["1"] * 20), run_of(["1"] * 10 + ["0"] * 10 + ["fail"] * 8 + ["1"] * 12)
    assert compare(a, b, missing="ignore")["given"].verdict == "better"
    line = compare(a, b)["given"]
    assert (line.verdict, line.difference.estimate) == ("inconclusive", pytest.approx(10 / 32))
    told = "given: p and the interval hold whatever the missing scores of 8 samples are (0 in A, 8 in B); missing="
    assert told in str(compare(a, b))
    assert line.without == (0, 8)
    sliced = compare(a, b, slice_by=first_digit).slices
    assert sum(getattr(one.result, "missing", 0) for one in sliced) == 8


def test_a_declared_largest_change_finds_a_smaller_difference() -> None:
    a, b = run_of([f"{0.5 + n % 7 / 50}" for n in range(40)]), run_of([f"{0.53 + n % 7 / 50}" for n in range(40)])
    plain, declared = (compare(a, b, max_change=most)["given"] for most in (None, 0.1))
    assert (plain.verdict, declared.verdict) == ("inconclusive", "better")
    assert compare(a, b, max_change={"given": 0.1})["given"].result == declared.result
    for value in (0, 1.5, "0.2"):
        with pytest.raises(ConfigError) as raised:
            compare(a, b, max_change=value)  # type: ignore[arg-type]
        assert raised.value.value == value
        assert raised.value.field.startswith("max_change")
        assert raised.value.field.endswith("given")


def test_runs_within_the_margin_are_equivalent_even_if_they_differ() -> None:
    a, b = run_of(["0.5"] * 200), run_of(["0.51"] * 200)
    assert compare(a, b)["given"].verdict == "inconclusive"
    line = compare(a, b, margin=0.05)["given"]
    assert (line.verdict, compare(a, b, margin=0.001)["given"].verdict) == ("equivalent", "inconclusive")
    assert line.to_dict()["verdict"] == "equivalent"
    assert "= equivalent" in str(compare(a, b, margin=0.05))
    significant = compare(a, b, margin=0.05, max_change=0.05)["given"]
    assert significant.adjusted_p_value < 0.05
    assert significant.verdict == "equivalent"
    two = compare(a, b, run_of(["0.51"] * 200), margin=0.05)
    alone = line.adjusted_equivalence
    assert alone is not None
    assert two["given"].adjusted_equivalence == pytest.approx(2 * alone)


def test_a_comparison_says_what_was_declared() -> None:
    a, b = run_of(["0.5"] * 200), run_of(["0.51"] * 200)
    equivalent = compare(a, b, margin=0.05)
    assert "less than 0.05 (p < 0.001, " in str(equivalent)
    assert equivalent["given"].to_dict()["margin"] == 0.05
    told = "given: not shown to be equivalent: the means may differ by 0.001 or more (p = 1.000, two one-sided tests)."
    assert told in str(compare(a, b, margin=0.001))
    declared = compare(a, b, max_change=0.1)
    assert " by more than 0.1." in str(declared)
    assert "equivalent" not in str(declared)
    (row,) = csv.DictReader(comparison_csv(equivalent))
    assert float(row["equivalence p"]) == equivalent["given"].adjusted_equivalence
    assert (row["margin"], row["max change"], row["missing"]) == ("0.05", "", "0")
    assert row["test"] == equivalent["given"].result.test.name


def test_an_undecided_comparison_says_what_it_would_have_found() -> None:
    a, b = run_of(["0", "1", "1", "1"] * 10), run_of(["1", "0", "1", "1"] * 10)
    line = compare(a, b)["given"]
    assert line.detectable == pytest.approx(0.31, abs=0.03)
    assert "true difference of 0.3" in str(compare(a, b))
    assert compare(a, run_of(["1"] * 40))["given"].detectable is None


def test_what_an_undecided_comparison_would_have_found_allows_for_the_number_of_comparisons() -> None:
    a, b = run_of(["0", "1", "1", "1"] * 10), run_of(["1", "0", "1", "1"] * 10)
    both = compare(a, b, b)
    one = compare(a, b, confidence=0.975)["given"]
    assert (both["given"].detectable, one.detectable) == (pytest.approx(0.328, abs=0.001), both["given"].detectable)
    alone = compare(a, b)["given"].detectable
    assert alone is not None
    assert alone < 0.31
    assert compare(a, b, b, correction="none")["given"].detectable == alone


def test_ranks_and_verdicts_use_the_same_largest_change() -> None:
    a, b, c = (run_of([str(score)] * 60) for score in (0.5, 0.53, 0.56))
    found = compare(a, b, c, max_change=0.1)
    assert [line.verdict for line in found.scorers] == ["better", "better"]
    assert found.all_runs["given"].ranks == {"A": (3, 3), "B": (2, 2), "C": (1, 1)}


def test_runs_that_differ_by_more_than_the_declared_changes_from_a_missing_score_allow_are_refused() -> None:
    a = run_of(["fail", *["0.5"] * 9])
    b, c = (run_of([score, *["0.5"] * 9]) for score in ("0.3", "0.6"))
    assert compare(a, b, c, max_change=0.2).all_runs
    message = "max_change=0.1, but given of sample 's1' differs by 0.3 between two runs, from 0.3 to 0.6: leave it out"
    with pytest.raises(DataError, match=message):
        compare(a, b, c, max_change=0.1)


def test_p_values_are_adjusted_over_all_scorers_and_runs() -> None:
    many, more = ["0"] * 10, ["1"] * 10
    scorers = [Given(), Harm()]
    compared = compare(run_of(many, scorers), run_of(more, scorers), run_of(many, scorers))
    assert len(compared.scorers) == 4
    alone = 1 / 2**10  # ten gained, none lost
    assert compared["given"].p_value == pytest.approx(alone)
    assert compared["given"].adjusted_p_value == pytest.approx(4 * alone)
    assert [line.verdict for line in compared.scorers] == ["better", "worse", "inconclusive", "inconclusive"]
    mild = compare(run_of(many, scorers), run_of(more, scorers), run_of(many, scorers), correction="fdr_bh")
    assert mild["given"].adjusted_p_value == pytest.approx(2 * alone)


def test_three_runs_are_also_tested_all_at_once() -> None:
    many, more = ["0"] * 10, ["1"] * 10
    compared = compare(run_of(many), run_of(more), run_of(many))
    found = compared.all_runs["given"]
    assert (found.n, len(found.pairs)) == (10, 3)
    assert found.ranks == {"A": (2, 3), "B": (1, 1), "C": (2, 3)}
    assert "(10 samples): A 2 to 3, B 1, C 2 to 3." in str(compared)
    assert compare(run_of(many), run_of(more)).all_runs == {}


def test_a_score_that_is_undefined_in_every_run_counts_nowhere() -> None:
    plain = ["0"] * 10, ["1"] * 10, ["0"] * 10
    alone = compare(*map(run_of, plain))
    with_undefined = compare(*(run_of([*answers, *["skip"] * 5]) for answers in plain))
    assert with_undefined.all_runs == alone.all_runs
    assert [line.result for line in with_undefined.scorers] == [line.result for line in alone.scorers]


def test_a_score_that_is_undefined_in_two_of_three_runs_counts_in_their_comparison_nowhere() -> None:
    rest = ["0"] * 10 + ["1"] * 10, ["1"] * 20, ["0"] * 10 + ["1"] * 10
    found = compare(*(run_of([first] * 5 + of) for first, of in zip(("skip", "skip", "1"), rest, strict=True)))
    pairs = {(pair.a, pair.b): pair.comparison for pair in found.all_runs["given"].pairs}
    assert [pairs["A", one.b] for one in found.scorers] == [one.result for one in found.scorers]
    assert [pair.missing for pair in pairs.values()] == [0, 5, 5]


def test_a_slice_s_size_is_the_number_of_its_groups_with_a_score_in_both_runs() -> None:
    data = [{"kind": "x" if n < 12 else "y", "group": f"g{n // 2}"} for n in range(24)]
    a = run_of(["0.5"] * 24, metadata=data)
    b = run_of(["0.6"] * 10 + ["fail"] * 2 + ["0.6"] * 8 + ["fail"] * 4, metadata=data)
    found = compare(a, b, slice_by="kind")
    assert [(line.key, line.result.n) for line in found.slices] == [("x", 10)]
    assert note("slices_too_small", slices=1, field="kind", least=5) in found.notes


def test_slices_by_field_and_by_function() -> None:
    data = [{"kind": "x"}] * 6 + [{"kind": "y"}] * 5 + [{}] * 5
    a, b = (run_of([str(n % 4 / 4 + more) for n in range(16)], metadata=data) for more in (0.0, 0.25))
    found = compare(a, b, slice_by=["kind", first_digit]).slices
    assert [(line.field, line.key, line.result.n) for line in found] == [
        ("kind", "(absent)", 5),
        ("kind", "x", 6),
        ("kind", "y", 5),
        ("first_digit", "0", 16),
    ]


def test_a_slice_too_small_to_be_tested_is_left_out_and_makes_no_other_less_significant() -> None:
    data = [{"big": "yes" if n < 10 else "no", "url": str(n)} for n in range(20)]
    a, b = run_of(["0"] * 20, metadata=data), run_of(["1"] * 10 + ["0"] * 10, metadata=data)
    alone, among = compare(a, b, slice_by="big"), compare(a, b, slice_by=["big", "url"])
    assert [(line.key, line.adjusted_p_value) for line in among.slices] == [
        (line.key, line.adjusted_p_value) for line in alone.slices
    ]
    assert [line.verdict for line in among.slices] == ["inconclusive", "better"]
    left_out = note("slices_too_small", slices=20, field="url", least=5)
    assert (left_out in among.notes, left_out in alone.notes) == (True, False)
    grouped = [{**one, "group": one["big"]} for one in data]
    clustered = compare(run_of(A * 5, metadata=grouped), run_of(B * 5, metadata=grouped), slice_by="big")
    assert clustered.slices == ()
    assert clustered.notes[-1] == note("slices_too_small", slices=2, field="big", least=5)


def first_digit(sample: object) -> str:
    return str(getattr(sample, "output", ""))[0]


def test_groups_of_the_samples_are_reckoned_with() -> None:
    data = [{"group": "g1"}, {"group": "g1"}, {"group": "g2"}, {}]
    line = compare(run_of(A, metadata=data), run_of(B, metadata=data))["given"]
    assert line.result.groups == 3


def test_other_answers_to_the_same_questions_are_compared_and_it_is_told() -> None:
    assert pair_runs(run_of(A), run_of(B))[1] == [note("answers_differ", different=3, samples=4)]
    notes = differing(compare(run_of(A), run_of(B)))
    assert notes == [note("answers_differ", runs=("A", "B"), different=3, samples=4)]


def without_texts(run: Run) -> Run:
    return replace(run, samples=None)


def asked(run: Run, *judges: str) -> Run:
    return replace(run, judge=", ".join(judges), summary=tuple(replace(line, judges=judges) for line in run.summary))


@pytest.mark.parametrize(
    ("a", "b", "kind", "values"),
    [
        (run_of(A), run_of(A, question="How few?"), "cases_differ", {"different": 4, "samples": 4}),
        (run_of(A), run_of(A[:3]), "samples_differ", {"only": (1, 0), "examples": ("s4", ""), "by_question": False}),
        (run_of(A[:3]), run_of(A), "samples_differ", {"only": (0, 1), "examples": ("", "s4"), "by_question": False}),
        (asked(run_of(A), "a@1"), asked(run_of(A), "b@1"), "judges_differ", {"judges": ("a@1", "b@1")}),
        (without_texts(run_of(A)), without_texts(run_of(B)), "versions_differ", {}),
    ],
)
def test_runs_that_differ_in_more_are_refused_unless_told_to_and_then_it_is_told(
    a: Run, b: Run, kind: str, values: dict[str, Any]
) -> None:
    with pytest.raises(NotComparable) as refused:
        compare(a, b)
    (mismatch,) = refused.value.mismatches
    assert (mismatch.kind, mismatch.severity) == (kind, "warning")
    assert values.items() <= dict(mismatch.values).items()
    compared = compare(a, b, allow_mismatch=True)
    assert compared["given"].result.n >= 3
    assert compared.notes[0] == about([mismatch], "A", "B")[0]
    assert sentence_of(compared.notes[0]) in str(compared)
    assert ("the differences are of the judges" in str(compared)) == (kind == "judges_differ")


def test_scores_for_which_no_judge_was_asked_are_those_of_any_judge() -> None:
    for other in (asked(run_of(A), "b@1"), replace(run_of(A), judge="b@1")):
        assert pair_runs(replace(run_of(A), judge="a@1"), other)[1] == []


def test_scorers_of_another_signature_are_refused_unless_told_to() -> None:
    class Given2(Given):
        version = 2

    with pytest.raises(ConfigError, match=r"given\(\w+\)@1, given\(\w+\)@2"):
        compare(run_of(A), run_of(B, [Given2()]))
    assert compare(run_of(A), run_of(B, [Given2()]), allow_mismatch=True).scorers


def test_scales_that_differ_have_no_difference() -> None:
    with pytest.raises(ConfigError, match="different scale"):
        compare(run_of(A), run_of(B, [Given(scale=10)]), allow_mismatch=True)


def test_an_unknown_slice_adjustment_or_scorer_is_named() -> None:
    a = run_of(A, metadata=[{"kind": "x"}] * 4)
    with pytest.raises(ConfigError) as raised:
        compare(a, a, slice_by="kinds")
    assert (raised.value.field, raised.value.value, raised.value.near) == ("metadata field", "kinds", ("kind",))
    with pytest.raises(ConfigError) as raised:
        compare(a, a, correction="bh")  # pyright: ignore[reportArgumentType]
    assert (raised.value.field, raised.value.value) == ("correction", "bh")
    with pytest.raises(ConfigError, match=r"no scores of .harm., only of given"):
        compare(a, a)["harm"]
    with pytest.raises(ConfigError, match="not available"):
        compare(without_texts(a), without_texts(a), slice_by="kind")


def test_a_comparison_is_plain_data() -> None:
    made = compare(run_of(A), run_of(B)).to_dict()
    assert json_line(made)
    assert (made["scorers"][0]["verdict"], made["scorers"][0]["difference"]["estimate"]) == ("inconclusive", 0.125)


def test_groups_count_whichever_run_names_them() -> None:
    named = [{"group": f"g{number // 4}"} for number in range(24)]
    answers = [str(number % 5 / 4) for number in range(24)]
    plain, grouped = run_of(answers), run_of([*answers[1:], "1.0"], metadata=named)
    there, back = compare(plain, grouped)["given"].result, compare(grouped, plain)["given"].result
    assert (there.groups, back.groups) == (6, 6)
    assert there.p_value == back.p_value
    among_three = compare(plain, grouped, plain).all_runs["given"].pairs[0].comparison
    assert among_three.groups == 6


def test_where_runs_name_other_groups_those_of_the_first_count() -> None:
    answers = [str(number % 5 / 4) for number in range(24)]
    sixths = run_of(answers, metadata=[{"group": f"g{number // 4}"} for number in range(24)])
    halves = run_of([*answers[1:], "1.0"], metadata=[{"group": f"g{number // 12}"} for number in range(24)])
    compared = compare(sixths, halves, halves, allow_mismatch=True)
    assert compared["given"].result.groups == 6
    assert [pair.comparison.groups for pair in compared.all_runs["given"].pairs] == [6, 6, 6]


def test_a_run_that_is_compared_with_itself_is_told() -> None:
    run = run_of(A)
    assert differing(compare(run, run)) == [note("same_run", "warning", runs=("A", "B"))]


def test_slices_come_in_the_order_of_their_numbers_and_a_sample_without_text_is_absent() -> None:
    run = run_of(A * 5, metadata=[{"turn": 10}, {"turn": 2}, {"turn": "x"}, {"turn": 1}] * 5)
    less = replace(run, samples=[sample for sample in run.samples or () if sample.metadata["turn"] != 1])
    assert [line.key for line in compare(run, run, slice_by="turn").slices] == ["1", "2", "10", "x"]
    assert [line.key for line in compare(less, run, slice_by="turn", allow_mismatch=True).slices] == [
        "2",
        "10",
        "(absent)",
        "x",
    ]
    assert [part.key for part in less.slices("turn")[0].means] == ["2", "10", "(absent)", "x"]


@pytest.mark.parametrize(("gains", "p"), [(5, 1 / 2**5), (6, 1 / 2**6), (8, 1 / 2**8)])
def test_a_verdict_is_at_one_minus_the_confidence(gains: int, p: float) -> None:
    # k gained, none lost: p = 2 · P(X = 0) / 2 = 1 / 2^k
    a, b = run_of(["0"] * 10), run_of(["1"] * gains + ["0"] * (10 - gains))
    for confidence, verdict in ((1 - 1.01 * p, "better"), (1 - 0.99 * p, "inconclusive")):
        line = compare(a, b, confidence=confidence)["given"]
        assert line.adjusted_p_value == pytest.approx(p)
        assert line.verdict == verdict
    assert compare(b, a, confidence=1 - 1.01 * p)["given"].verdict == "worse"


def test_a_p_value_of_one_minus_the_confidence_is_significant() -> None:
    line = compare(run_of(["0.0"] * 3), run_of(["1.0"] * 3))["given"]
    assert replace(line, adjusted_p_value=1 - line.confidence).verdict == "better"
    assert replace(line, adjusted_p_value=1.001 - line.confidence).verdict == "inconclusive"


def test_outputs_of_a_run_without_its_dataset_are_the_same_as_none() -> None:
    run = run_of(["0.0", "1.0"])
    assert same_outputs(run, run, Pairing()) == {"s1", "s2"}
    for without in ((replace(run, samples=None), run), (run, replace(run, samples=None))):
        assert same_outputs(*without, Pairing()) == set()


def test_a_verdict_takes_the_corrected_p_value() -> None:
    scorers = [Given(), Harm()]
    a, b = run_of(["0"] * 10, scorers), run_of(["1"] * 5 + ["0"] * 5, scorers)
    # p = 1 / 2^5 = 0.03 alone, 0.06 as the smallest of two
    corrected, alone = (compare(a, b, correction=name) for name in ("holm", "none"))
    assert [line.verdict for line in corrected.scorers] == ["inconclusive", "inconclusive"]
    assert [line.verdict for line in alone.scorers] == ["better", "worse"]
    assert [line.improvement for line in alone.scorers] == pytest.approx([0.5, -0.5])


class Offset(Scorer):
    """The number in the answer, plus a constant."""

    name = "offset"
    by: float = 0.0
    times: float = 1.0

    def score(self, *, output: str) -> Score:
        return Score(min(1.0, float(output) * self.times + self.by), reason=f"plus {self.by:g}")


OF_ONE, OF_BOTH = [Offset(by=0.5)], [Offset(), Offset(by=0.5)]


def test_all_runs_are_tested_by_the_same_variant_of_a_scorer() -> None:
    one, both = run_of(A * 5, OF_ONE), run_of(A * 5, OF_BOTH)
    assert (one.titles[OF_ONE[0].signature], both.titles[OF_BOTH[0].signature]) == ("offset", "offset")
    (found,) = compare(one, one, both).all_runs.values()
    assert set(found.means.values()) == {one["offset"].mean}
    assert set(found.ranks.values()) == {(1, 3)}


def test_runs_without_a_scorer_are_in_no_test_of_all_and_other_signatures_are_if_told_to() -> None:
    one, other = run_of(A * 5, OF_ONE), run_of(A * 5, [Offset(by=0.25)])
    assert compare(one, run_of(A * 5, [Given(), *OF_ONE]), run_of(A * 5, OF_ONE)).all_runs.keys() == {"offset"}
    assert compare(run_of(A, [Given(), *OF_ONE]), run_of(A, [Given()]), run_of(A, OF_ONE)).all_runs == {}
    (found,) = compare(one, other, one, allow_mismatch=True).all_runs.values()
    assert list(found.means.values()) == [one["offset"].mean, other["offset"].mean, one["offset"].mean]


def test_the_reasons_of_both_runs_are_those_of_the_same_variant() -> None:
    for theirs, told in ((OF_BOTH, {"plus 0.5"}), ([Offset(by=0.25)], {"plus 0.5", "plus 0.25"})):
        compared = compare(run_of(A, OF_ONE), run_of(B, theirs), allow_mismatch=True)
        (examples,) = comparison_view(compared).examples
        assert {item.why for sample in examples.samples for item in sample.panel[-1].items} == told


@pytest.mark.parametrize(
    ("ours", "theirs", "pairs"),
    [
        (OF_BOTH, OF_ONE, [("offset(by=0.5)", 0.5)]),
        (OF_ONE, OF_BOTH, [("offset", 0.5)]),
        ([Offset(by=0.25), Offset()], [Offset(by=0.5)], []),
        (OF_ONE, [Offset(by=0.25)], [("offset", 0.25)]),
        ([Offset(), Offset(by=0.5)], [Offset(by=0.5), Offset(by=0.25)], [("offset(by=0.5)", 0.5), ("offset", 0.25)]),
    ],
)
def test_each_scorer_is_paired_once_by_signature_or_parameters_or_a_name_that_is_left(
    ours: list[Offset], theirs: list[Offset], pairs: list[tuple[str, float]]
) -> None:
    a, b = run_of(A, ours), run_of(A, theirs)
    if not pairs:
        with pytest.raises(ConfigError, match="no scorer in"):
            pair_runs(a, b, allow_mismatch=True)
        return
    found, differences = pair_runs(a, b, allow_mismatch=True)
    by = {scorer.signature: scorer.by for scorer in theirs}
    assert sorted((pair.title, by[pair.info_b.signature]) for pair in found) == sorted(pairs)
    single = len(ours) + len(theirs) - 2 * len(pairs)
    assert sum(len(each["scorers"]) for each in differences if each.kind.startswith("scorers_of")) == single


def test_printing_a_comparison_shows_its_table() -> None:
    a, b = run_of(["0.5", "0.25"] * 10), run_of(["0.9", "0.65"] * 10)
    lines = str(compare(a, b)).split("\n")
    assert lines[0] == f"Comparison · A: {a.id}, B: {b.id}"
    assert lines[1].split()[:9] == ["scorer", "n", "A", "B", "difference", "95%", "CI", "p", "win/tie/loss"]
    assert lines[2].split()[:5] == ["given", "20", "0.375", "0.775", "+0.400"]
    assert "20/0/0  ▲ better" in lines[2]
    assert "each run minus A. p: " in lines[3]
    assert lines[3].endswith("for 1 comparison (Holm).")
    assert lines[4] == sentence_of(compare(a, b).notes[0])


def test_printing_a_comparison_shows_slices_more_runs_and_unpaired_ones() -> None:
    metadata = [{"kind": "xy"[number % 2]} for number in range(20)]
    a, b = (run_of([value] * 20, metadata=metadata) for value in ("0.5", "0.25"))
    text = str(compare(a, b, a, slice_by="kind"))
    assert [line.split()[0] for line in text.split("\n") if "kind=" in line] == [f"kind={key}" for key in "xyxy"]
    headers = [line.split() for line in text.split("\n") if line.startswith(("scorer", "given by slice"))]
    assert [next(letter for letter in "BC" if letter in header) for header in headers] == ["B", "C", "B", "C"]
    assert "compared as independent" in str(compare(a, b, unpaired=True))


class Held(Given):
    case_metadata = ("relevant", "requestContext.rubric", "topics")


def expecting(by: Scorer | None = None, /, *, target: Any = None, user: Any = None, **fields: Any) -> Run:
    rows = [{"id": f"{n}", "input": "q", "output": answer, **fields} for n, answer in enumerate(A)]
    return evaluate(rows, [by or Held()], ledger=None, target=target, user=user)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({"relevant": ["a"]}, {"relevant": ["b"]}),
        ({"requestContext": {"rubric": "Is it polite?"}}, {"requestContext": {"rubric": "Is it short?"}}),
        ({"topics": ["a"]}, {}),
        ({"turns": [{"input": "q", "reference": "a"}]}, {"turns": [{"input": "q", "reference": "b"}]}),
        (
            {"expected_trajectory": {"steps": [{"name": "search", "stepType": "tool_call"}]}},
            {"expected_trajectory": {"steps": [{"name": "answer", "stepType": "tool_call"}]}},
        ),
    ],
)
def test_runs_that_expected_other_things_are_not_comparable(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    a, b = expecting(**ours), expecting(**theirs)
    fields = ("relevant", "requestContext.rubric", "topics")
    expected = note("expectations_differ", "warning", different=4, samples=4, fields=fields)
    with pytest.raises(NotComparable) as refused:
        compare(a, b)
    assert refused.value.mismatches == (expected,)
    assert compare(a, b, allow_mismatch=True).notes[0] == about([expected], "A", "B")[0]


def test_expectations_are_the_same_through_every_source() -> None:
    ours, theirs = {"relevant": ["a", "b"], "topics": None}, {"relevant": '["a", "b"]'}
    assert compare(expecting(**ours), expecting(**theirs))["given"].difference.estimate == 0


def test_only_what_the_compared_scorers_hold_answers_against_belongs_to_the_case() -> None:
    # What the system retrieved, and what this scorer doesn't read.
    one, other = {"retrieved": ["a"], "rubric": "x"}, {"retrieved": ["x"], "note": "another"}
    compared = compare(expecting(**one), expecting(**other))
    assert differing(compared) == []
    without = [expecting(Given(), relevant=name) for name in "ab"]
    assert not [each for each in compare(*without).notes if each.severity == "warning"]


def test_what_a_run_holds_answers_against_is_saved_with_it(tmp_path: Path) -> None:
    runs = [expecting(relevant=name) for name in "ab"]
    for name, run in zip("ab", runs, strict=True):
        write_run(run, tmp_path / name)
    saved = [read_run(tmp_path / name) for name in "ab"]
    assert [run.scorers for run in saved] == [run.scorers for run in runs]
    with pytest.raises(ConfigError, match=r"metadata\.relevant"):
        compare(*saved)


def test_a_wrapper_and_a_scorer_of_pairs_hold_answers_against_what_they_read() -> None:
    assert PerTurn(Held()).case_metadata == Held.case_metadata
    assert Pairwise().case_metadata == ()
    assert Pairwise(compare_to="other_answer").case_metadata == ("other_answer",)


def test_a_wrong_declaration_of_what_answers_are_held_against_is_refused() -> None:
    with pytest.raises(ConfigError) as raised:
        scorer(case_metadata="topics")(len)
    assert (raised.value.field, raised.value.value) == ("case_metadata", "topics")


def test_a_simulated_users_part_belongs_to_the_case() -> None:
    def agent(*, messages: Any) -> str:
        return "1.0"

    def says(*, metadata: Any, turn: int) -> str | None:
        return metadata["persona"] if turn == 1 else None

    rows: dict[str, Any] = {"input": None, "goal": "book a table", "target": agent, "user": says}
    with pytest.raises(ConfigError, match=r"metadata\.facts, metadata\.goal or metadata\.persona"):
        compare(expecting(Given(), **rows, persona="brief"), expecting(Given(), **rows, persona="polite"))


def answered(text: str, *, input: str) -> str:
    """A target that always gives this answer."""
    return text


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: compare(
            run_of([f"{0.5 + n % 7 / 50}" for n in range(40)]),
            run_of([f"{0.53 + n % 7 / 50}" for n in range(40)]),
            max_change=0.02,
        ),
        DataError,
        (
            "max_change=0.02, but given of sample 's1' changes by 0.03, from 0.5 to 0.53: leave it out,"
            " because one that is fitted to the scores makes p-values too small"
        ),
    ),
    (
        lambda: compare(
            run_of([f"{0.5 + n % 7 / 50}" for n in range(40)]),
            run_of([f"{0.53 + n % 7 / 50}" for n in range(40)]),
            max_change=0.2,
            unpaired=True,
        ),
        ConfigError,
        "max_change=… is for paired samples: leave it out, or unpaired=True",
    ),
    (
        lambda: compare(run_of(A), run_of(A, [Harm()])),
        ConfigError,
        "the runs have no scorer in common: given in the first, harm in the second",
    ),
    (
        lambda: compare(run_of(["0.5", "skip"]), run_of(["skip", "0.5"])),
        ConfigError,
        (
            "no sample was scored in both runs: of 2 samples in both, the first scored 1 and the second 1. "
            "To compare the means of different samples, use compare with unpaired=True"
        ),
    ),
    (
        lambda: compare(run_of(["0.5", "0.4", "skip"]), run_of(["skip", "skip", "skip"])),
        ConfigError,
        "no sample was scored in both runs: of 3 samples in both, the first scored 2 and the second 0",
    ),
    (
        lambda: compare(
            *(
                evaluate(
                    [{"id": id, "input": "How much?"} for id in ids],
                    [Given()],
                    target=partial(answered, said),
                    trials=3,
                    ledger=None,
                )
                for ids, said in (("ab", "0.5"), ("bc", "skip"))
            )
        ),
        ConfigError,
        "no sample was scored in both runs: of 1 sample in both, the first scored 1 and the second 0",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
