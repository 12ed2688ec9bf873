"""Differences of two runs corrected by human labels: whose labels count, and what is said without them."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from evalstone import ConfigError, Run, compare, evaluate
from evalstone.results.views.comparison import comparison_view, people_cells
from tests.runs import Given, Harm, run_of

SOURCE = random.Random(3)
BEFORE = [round(SOURCE.uniform(0.2, 0.6), 2) for _ in range(120)]
AFTER = [round(x + 0.3, 2) for x in BEFORE]
CHOSEN = SOURCE.sample(range(120), 40)


def labels(truth: list[float]) -> Mapping[str, float]:
    return {f"s{place + 1}": truth[place] for place in CHOSEN}


def runs() -> tuple[Run, Run]:
    return run_of(list(map(str, BEFORE))), run_of(list(map(str, AFTER)))


def test_a_judge_that_favors_a_run_is_corrected_by_labels_of_both() -> None:
    a, b = runs()
    compared = compare(a, b, labels={"A": {"given": labels(BEFORE)}, "B": {"given": labels(BEFORE)}})
    assert compared["given"].verdict == "better"  # by the judge
    (found,) = compared.corrected
    assert found.difference is not None
    assert abs(found.difference.estimate) < 0.05
    assert found.verdict == "inconclusive"
    assert (found.result.labeled, found.result.n) == (40, 120)


@pytest.mark.slow
def test_the_verdict_is_by_the_human_difference_and_its_direction() -> None:
    for scorer, worse in ((Given(), "worse"), (Harm(), "better")):
        a, b = (run_of(list(map(str, values)), [scorer]) for values in (AFTER, BEFORE))
        by = {"A": {scorer.name: labels(AFTER)}, "B": {scorer.name: labels(BEFORE)}}
        (found,) = compare(a, b, labels=by).corrected
        assert found.verdict == worse
        assert found.to_dict()["verdict"] == worse


def test_labels_of_one_run_count_only_where_the_outputs_are_the_same() -> None:
    a, b = runs()
    (found,) = compare(a, b, labels={"A": {"given": labels(BEFORE)}}).corrected
    assert found.result.labeled == 0
    assert found.difference is None
    assert found.verdict == "inconclusive"
    half = [*BEFORE[:60], *AFTER[60:]]
    (found,) = compare(a, run_of(list(map(str, half))), labels={"A": {"given": labels(BEFORE)}}).corrected
    assert (found.result.labeled, found.result.n) == (0, 60)


def test_labels_of_a_run_that_is_not_compared_are_refused() -> None:
    with pytest.raises(ConfigError) as raised:
        compare(*runs(), labels={"C": {"given": {}}})
    assert (raised.value.field, raised.value.value) == ("run with labels", "C")
    with pytest.raises(ConfigError, match="nosuch"):
        compare(*runs(), labels={"A": {"nosuch": {}}})


def test_the_report_shows_both_differences_and_how_many_labels_would_help() -> None:
    a, b = runs()
    by = {"A": {"given": labels(BEFORE)}, "B": {"given": labels(BEFORE)}}
    view = comparison_view(compare(a, b, labels=by))
    assert any("about 40 more labels" in note for section in view.sections for note in section.notes)
    assert any("human labels" in part.caption for section in view.sections for part in section.tables)
    few = {"A": {"given": labels(BEFORE)}}
    notes = [note for section in comparison_view(compare(a, b, labels=few)).sections for note in section.notes]
    assert any("0 samples " in text and "too few" in text for text in notes)


def test_labels_of_runs_with_the_same_outputs_are_not_called_too_few() -> None:
    a, _ = runs()
    by = {"A": {"given": labels(BEFORE)}, "B": {"given": labels(BEFORE)}}
    compared = compare(a, a, labels=by)
    (found,) = compared.corrected
    assert people_cells(found)[1:] == ("-", "-", "-", "-", "0 of 0", "same outputs")
    notes = [note for section in comparison_view(compared).sections for note in section.notes]
    assert "given, corrected: no outputs differ, so people's scores don't either, whatever the labels are." in notes
    assert not any("too few for an estimate" in text for text in notes)


def test_without_labels_a_comparison_says_that_it_compares_the_judges_means() -> None:
    samples = [{"id": f"s{n}", "output": "Paris is big.", "context": ["Paris is big."]} for n in range(8)]
    run = evaluate(samples, "faithfulness", judge="lexical", ledger=None)
    weights = [{**one, "weight": 1.0 + place} for place, one in enumerate(samples)]
    heavy = evaluate(weights, "faithfulness", judge="lexical", ledger=None)
    by_code = run_of(["1", "0", "1", "1", "0"])

    def notes(one: Run) -> str:
        return " ".join(note for section in comparison_view(compare(one, one)).sections for note in section.notes)

    told = "the judge's means"
    assert [told in notes(one) for one in (run, heavy, by_code)] == [True, True, False]
    assert ["labels=" in notes(one) for one in (run, heavy, by_code)] == [True, False, False]
