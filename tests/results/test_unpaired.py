"""Comparisons of runs over different samples."""

from __future__ import annotations

import csv
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evalstone import ConfigError, EvalstoneError, Run, compare, evaluate
from evalstone.report.html import page
from evalstone.results import comparable_runs
from evalstone.results.scores import Scores
from evalstone.results.unpaired import UnpairedScores, unpaired_scores
from evalstone.results.views.comparison import comparison_view
from evalstone.results.views.exports import comparison_csv
from evalstone.stats.unpaired import UnpairedComparison, compare_unpaired
from evalstone.types import note
from tests.runs import Given, Harm, run_of, samples_of


def other(answers: list[str], first: int = 100, **more: list[dict[str, str]]) -> Run:
    """A run over samples of other ids and texts."""
    samples = samples_of(answers, question="How many?", **more)
    renamed = [replace(sample, id=f"t{first + n}") for n, sample in enumerate(samples)]
    return evaluate(renamed, [Given(), Harm()], ledger=None)


LOW, HIGH = ["0"] * 15 + ["1"] * 15, ["0"] * 2 + ["1"] * 38


def test_runs_without_a_common_sample_are_compared_by_their_means() -> None:
    run = run_of(LOW, [Given(), Harm()])
    result = compare(run, other(HIGH), unpaired=True)
    given, harm = result.scorers
    assert isinstance(given.result, UnpairedComparison)
    assert given.result == compare_unpaired([float(x) for x in LOW], [float(x) for x in HIGH])
    assert given.adjusted_p_value == pytest.approx(2 * given.p_value)
    assert (given.verdict, harm.verdict) == ("better", "worse")
    assert (given.unpaired, given.changes, result.notes) == (0, (), ())
    line = result.to_dict()["scorers"][0]
    assert (line["n"], line["n_b"], line["verdict"]) == (30, 40, "better")


def test_the_scores_of_one_scorer_are_freed_before_those_of_the_next_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Scores]] = []
    alive: list[int] = []

    def built(*given: Any) -> UnpairedScores:
        alive.append(sum(each() is not None for each in made))
        pair = unpaired_scores(*given)
        made.extend(map(weakref.ref, pair.scores))
        return pair

    monkeypatch.setattr(comparable_runs, "unpaired_scores", built)
    compare(run_of(LOW, [Given(), Harm()]), other(HIGH), unpaired=True)
    assert alive == [0, 0]


def test_common_samples_are_noted() -> None:
    result = compare(run_of(LOW), run_of(HIGH), unpaired=True)
    assert note("could_be_paired", "caution", runs=("A", "B"), samples=30) in result.notes
    # Of the 20 samples in both, one has no score in the first run, and another one none in the second.
    first, second = ["1"] * 12 + ["skip"] + ["1"] * 17, ["skip"] + ["1"] * 29
    result = compare(other(first, 0), other(second, 10), unpaired=True)
    assert note("could_be_paired", "caution", runs=("A", "B"), samples=18) in result.notes


def test_missing_scores_count_as_any_score_unless_they_are_ignored() -> None:
    """The second run's failures lost their scores: the passes that are left look better than the first run."""
    a, b = run_of(["0"] * 12 + ["1"] * 48), other(["skip"] * 12 + ["1"] * 48)
    ignored = compare(a, b, unpaired=True, missing="ignore")["given"]
    assert (ignored.verdict, ignored.result.missing) == ("better", 0)
    found = compare(a, b, unpaired=True)
    assert isinstance(found["given"].result, UnpairedComparison)
    assert (found["given"].verdict, found["given"].p_value) == ("inconclusive", 1.0)
    assert found["given"].result.missing == 12
    assert found["given"].result == compare_unpaired([0.0] * 12 + [1.0] * 48, [None] * 12 + [1.0] * 48)
    assert "(0 in A, 12 in B); missing=" in str(found).replace('"', "'")
    assert "scores of 12 samples" in "".join(page(comparison_view(found)))
    undefined = compare(a, b, unpaired=True, missing="failed")["given"]
    assert undefined.result.missing == 0


def test_slices_keep_the_missing_scores_of_their_samples() -> None:
    kinds = [{"kind": "x" if n % 2 else "y"} for n in range(40)]
    run = run_of(LOW, metadata=kinds[:30])
    found = compare(run, other(["skip"] * 4 + HIGH[4:], metadata=kinds), unpaired=True, slice_by="kind")
    assert [line.result.missing for line in found.slices] == [2, 2]


def test_groups_and_slices_are_those_of_each_run() -> None:
    kinds = [{"kind": "x" if n % 2 else "y", "group": f"{n // 3}"} for n in range(40)]
    some = [{**kind, "kind": "z"} if n < 10 else kind for n, kind in enumerate(kinds)]
    run = run_of(LOW, [Given(), Harm()], metadata=kinds[:30])
    result = compare(run, other(HIGH, metadata=some), unpaired=True, slice_by="kind")
    assert result["given"].result.groups == 10 + 14
    found = {line.key: line.result for line in result.slices if line.title == "given"}
    assert list(found) == ["x", "y"]  # z is in one run only
    x = found["x"]
    assert isinstance(x, UnpairedComparison)
    assert (x.n, x.n_b, x.groups) == (15, 15, 10 + 11)
    assert len(result.slices) == 4
    few = compare(run, other(HIGH[:12], metadata=some[:12]), unpaired=True, slice_by="kind")
    assert "slices_too_small" in [each.kind for each in few.notes]


def test_reports_have_what_independent_runs_have() -> None:
    result = compare(run_of(LOW, [Given(), Harm()]), other(HIGH), other(HIGH, 200), unpaired=True)
    view = comparison_view(result)
    (first, _) = view.sections[0].tables[0].rows
    shown = [cell.text for cell in first]
    assert shown[:5] == ["given", "0.500", "0.950", "+0.450", "+0.238 to +0.635"]
    assert "▲ better" in shown
    (same,) = view.sections[0].tables[0].notes
    assert same.endswith(": n 30, 40.")
    assert "compared as independent" in view.sections[-1].notes[0]
    assert "".join(page(view))
    cells = next(csv.DictReader(comparison_csv(result)))
    assert (cells["n"], cells["wins"], cells["missing"], cells["test"]) == (
        "70",
        "",
        "0",
        result["given"].result.test.name,
    )
    assert result.all_runs == {}


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: compare(run_of(LOW, [Given(), Harm()]), other(HIGH)),
        ConfigError,
        (
            "no sample was scored in both runs. Samples are paired by IDs. To pair them by ID, give "
            "both datasets a column id with the same IDs, and score them again. To compare the means of"
            " different samples, use compare with unpaired=True"
        ),
    ),
    (
        lambda: compare(run_of(LOW, [Given(), Harm()]), other(["skip"] * 5), unpaired=True),
        ConfigError,
        "one of the runs has no score, so there is nothing to compare",
    ),
    (
        lambda: compare(
            run_of(LOW, [Given(), Harm()]), other(HIGH), unpaired=True, labels={"A": {"given": {"s1": 1.0}}}
        ),
        ConfigError,
        "labels correct differences by sample: leave out labels=… or unpaired=True",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
