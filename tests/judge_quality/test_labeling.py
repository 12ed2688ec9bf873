"""Labeling: which sample is next, what is stored of how it was chosen, and what the labels say."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from evalstone import load_labels
from evalstone.errors import ConfigError
from evalstone.judge_quality.labeling import Labeling, Next, Sheet, annotator_name, label_rows
from evalstone.ledger.labels import Label
from evalstone.results.human_labels import corrected
from evalstone.results.run import Run
from evalstone.stats.labeling import LabelingOrder, LabelingStrata, next_for_labeling
from tests.runs import Given, run_of

SCORES = ["0.1", "0.9", "0.5", "1", "skip", "0", "0.4", "0.95", "0.6", "0.3", "1", "0.8"]


@pytest.fixture
def run() -> Run:
    return run_of(SCORES)


@pytest.fixture
def sheet(run: Run) -> Sheet:
    return Sheet.of(run, "given")


def labeled(sheet: Sheet, annotator: str, number: int, value: float = 1.0) -> list[Label]:
    """The labels of somebody who labels the next samples."""
    labels: list[Label] = []
    for count in range(number):
        labeling = Labeling(sheet, labels, annotator)
        choice = labeling.next()
        assert choice is not None
        labels.append(replace(labeling.label(choice.key, value, "", choice), written=float(count)))
    return labels


def test_annotators_get_the_same_samples_in_the_same_order(sheet: Sheet) -> None:
    ada, bob = (labeled(sheet, name, 11) for name in ("ada", "bob"))
    assert [label.key for label in ada] == [label.key for label in bob]
    assert sorted(label.key for label in ada) == sorted(sheet.names)
    assert Labeling(sheet, ada, "ada").next() is None
    assert "s5" not in {label.key for label in ada}
    other = Labeling(sheet, (), "ada").next(seed=1), Labeling(sheet, (), "ada").next(seed=2)
    assert len({choice.key for choice in (*other, Labeling(sheet, (), "ada").next()) if choice}) > 1


def test_a_label_says_how_its_sample_was_chosen_and_keeps_it_when_it_changes(sheet: Sheet) -> None:
    labeling = Labeling(sheet, (), "ada")
    choice = labeling.next()
    assert choice is not None
    label = labeling.label(choice.key, 1.0, "", choice)
    assert (label.chosen, label.stratum, label.blind) == ("stratified", choice.stratum, True)
    in_stratum = sheet.strata.count(choice.stratum) if isinstance(sheet.strata, tuple) else 0
    assert label.probability == pytest.approx(1 / in_stratum)
    again = Labeling(sheet, [label], "ada").label(choice.key, 0.0, "no", None)
    assert (again.value, again.chosen, again.stratum, again.probability) == (0.0, "stratified", *choice_of(label))
    other = next(key for key in sheet.names if key != choice.key)
    assert labeling.label(other, 1.0, "", choice).chosen == "hand"
    with pytest.raises(ConfigError):
        labeling.label("nothing", 1.0, "", choice)


def choice_of(label: Label) -> tuple[int | None, float | None]:
    return label.stratum, label.probability


@pytest.mark.parametrize("order", ["stratified", "uncertain", "random"])
def test_within_a_stratum_every_sample_is_as_likely_whatever_the_order(order: LabelingOrder) -> None:
    strata = LabelingStrata.of([0.0] * 20 + [0.5] * 20 + [1.0] * 20, 1.0)
    found = Counter(
        choice.place for seed in range(3000) if (choice := next_for_labeling(strata, order=order, seed=seed))
    )
    places = range(60) if order == "random" else range(20, 40) if order == "uncertain" else range(20)
    assert set(found) == set(places)
    expected = 3000 / len(places)
    assert sum((found[place] - expected) ** 2 / expected for place in places) < 2.2 * len(places)


def test_the_corrected_mean_is_that_of_the_same_labels_in_a_file(run: Run, sheet: Sheet, tmp_path: Path) -> None:
    source = random.Random(1)
    labels = [
        replace(label, value=float(source.random() < 0.5))
        for name in ("ada", "bob")
        for label in labeled(sheet, name, 8)
    ]
    by_hand = replace(labels[0], annotator="eve", value=0.0, chosen="hand")
    labeling = Labeling(sheet, [*labels, by_hand], "ada")
    rows = label_rows(sheet, labeling.labels)
    assert set(rows[0]) == {
        "id",
        "annotator_ada",
        "annotator_bob",
        "note",
        "chosen",
        "stratum",
        "stratum_size",
        "run_size",
    }
    from_file = load_labels(run, "given", rows)
    assert from_file == labeling.means()
    assert labeling.corrected() == corrected(run, "given", from_file).result
    assert [row["label"] for row in label_rows(sheet, labels[:8])] == [label.value for label in labels[:8]]
    assert len(label_rows(sheet, [by_hand])) == 0
    assert len(label_rows(sheet, [by_hand], by_hand=True)) == 1


def test_a_row_has_the_stratum_of_its_sample_however_that_was_chosen(sheet: Sheet) -> None:
    (one,) = labeled(sheet, "ada", 1)
    stratum = sheet.strata[sheet.places[one.key]]
    of_row = {"stratum": stratum, "stratum_size": [*sheet.strata].count(stratum), "run_size": 11}
    for how in ("stratified", "uncertain", "random", "shared", "hand"):
        (row,) = label_rows(sheet, [replace(one, chosen=how, stratum=None)], by_hand=True)
        at_random = how not in ("shared", "hand")
        assert {name: row[name] for name in of_row} == (of_row if at_random else dict.fromkeys(of_row)), how


def test_two_annotators_agree_beyond_chance_or_not(sheet: Sheet) -> None:
    ada = labeled(sheet, "ada", 8)
    ada = [replace(label, value=float(place % 2)) for place, label in enumerate(ada)]
    bob = [replace(label, annotator="bob", value=1 - label.value if place == 0 else label.value)  # type: ignore[operator]
           for place, label in enumerate(ada)]  # fmt: skip
    (agreement,) = Labeling(sheet, [*ada, *bob[:6]], "ada").agreements()
    assert (agreement.first, agreement.second, agreement.samples) == ("ada", "bob", 6)
    assert agreement.kappa is not None
    assert agreement.kappa.estimate == pytest.approx(2 / 3)
    skipped = [replace(label, value=None) for label in bob]
    assert Labeling(sheet, [*ada, *skipped], "bob").agreements() == []
    assert (Labeling(sheet, skipped, "bob").n_labeled, Labeling(sheet, skipped, "bob").n_skipped) == (0, 8)


@pytest.mark.parametrize(
    ("scale", "keys"), [(1.0, ("1", "0")), (5.0, ("5", "4", "3", "2", "1", "0")), (0.5, ()), (10.0, ()), (2.5, ())]
)
def test_a_short_scale_has_a_key_for_each_value(scale: float, keys: tuple[str, ...]) -> None:
    sheet = Sheet.of(run_of(["0", "0.5"], [Given(scale=scale)]), "given")
    assert sheet.keys == keys
    assert sheet.value(f"{scale:g}") == scale
    assert sheet.value(" 0,25 ") == 0.25
    for wrong in ("-1", f"{scale + 1:g}", "nan", "inf", "yes", ""):
        with pytest.raises(ConfigError, match="a label must be a number from 0 to"):
            sheet.value(wrong)


def test_the_reason_of_a_choice_does_not_tell_the_judges_score(sheet: Sheet) -> None:
    choices = [Labeling(sheet, (), "ada").next(order) for order in ("stratified", "uncertain", "random")]
    assert all(choice and not any(sign.isdigit() for sign in choice.why) for choice in choices)
    assert "not part of the corrected mean" in Next("a", "hand").why


def test_an_annotators_name_is_that_of_the_user_unless_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "grace")
    assert [annotator_name(text) for text in (None, " ", " ada ")] == ["grace", "grace", "ada"]
    for wrong in ("a\x1b[2J", "x" * 101):
        with pytest.raises(ConfigError, match="annotator"):
            annotator_name(wrong)
