from __future__ import annotations

import dataclasses
import io
from typing import Any

from rich.console import Console

from evalstone import calibrate
from evalstone.report.calibration import cautions, show_calibration
from evalstone.results.calibration import Calibration


def rows(*labels: Any) -> list[dict[str, Any]]:
    """A supported and an unsupported answer in turn, with these labels."""
    answers = [("Paris is in France.", "Paris is in France."), ("Rome is on Mars.", "Rome is a city in Italy.")]
    return [
        {"id": str(number), "output": answers[number % 2][0], "context": [answers[number % 2][1]], "label": label}
        for number, label in enumerate(labels)
    ]


def shown(made: Calibration) -> str:
    screen = Console(file=io.StringIO(), width=120, highlight=False)
    show_calibration(made, screen)
    assert isinstance(screen.file, io.StringIO)
    return " ".join(screen.file.getvalue().split())


def test_it_shows_the_table_the_measures_and_the_diagram():
    told = shown(calibrate(rows("yes", "no", "yes", "yes"), ledger=None))
    for text in (
        "4 labelled samples, faithfulness judged by lexical@",
        "Labels: label; yes = yes, no = no; yes from 0.5 on",
        "judge: yes 2 0",
        "judge: no 1 1",
        "sensitivity 0.667 0.208 to 0.939",
        "accuracy 0.750",
        "AUROC 0.833 (",
        "0.90 to 1.00 2",
        "3 yes and 1 no are few labels",
    ):
        assert text in told, told


def test_labels_that_all_say_the_same_are_told_and_nothing_is_made_up():
    made = calibrate(rows("yes", "yes"), ledger=None)
    told = shown(made)
    assert "every label says yes" in told
    assert "AUROC -" in told
    assert cautions(made) == ["every label says yes: nothing can be said of the others, and no threshold was learned."]


def test_annotators_that_are_split_are_told():
    told = shown(calibrate(rows([1, 0], [0, 0], [1, 1], [0, 0]), ledger=None))
    assert "1 samples on which annotators are evenly split" in told
    assert "2 annotators among themselves: Fleiss' kappa" in told
    assert "the judge with annotator 2: Cohen's kappa" in told


def test_annotators_that_are_split_on_every_sample_are_not_said_to_say_no():
    assert cautions(calibrate(rows([1, 0], [0, 1]), ledger=None)) == [
        "annotators are evenly split on every sample: no verdict can be checked, no threshold was learned."
    ]


def test_a_judge_that_gives_one_score_to_all_is_told():
    made = calibrate(rows("yes", "no", "no", "yes")[::2], ledger=None)
    assert made.decided == ((1.0, True), (1.0, False))
    assert any("one score" in caution for caution in cautions(made))


def test_a_hostile_reason_for_an_end_cannot_move_the_terminal():
    made = dataclasses.replace(calibrate(rows("yes", "no"), ledger=None), stop_reason="\x1b[2J the judge said so")
    assert "\x1b" not in "".join(cautions(made))
    assert any("the judge said so" in caution for caution in cautions(made))


def test_labels_that_are_turned_round_are_told():
    turned = calibrate(rows(*["yes", "no"] * 4), "hallucination", ledger=None)
    assert any("rank against the labels" in caution and "lower is better" in caution for caution in cautions(turned))
    right = calibrate(rows(*["no", "yes"] * 4), "hallucination", ledger=None)
    assert not any("rank against" in caution for caution in cautions(right))


def test_hostile_words_and_names_cannot_move_the_terminal():
    hostile = "\x1b[31mno\u202e"
    data = [{**row, "\x1b[2Jlabel": row["label"]} for row in rows("yes", "no")]
    for row in data:
        del row["label"]
    from evalstone import LabelConfig  # noqa: PLC0415 - where it is used

    labelling = LabelConfig(columns=("\x1b[2Jlabel",), positive=("yes",))
    data[1]["\x1b[2Jlabel"] = hostile
    told = shown(calibrate(data, ledger=None, config=labelling))
    assert "\x1b" not in told
    assert "\u202e" not in told
    assert "\\u001b[31mno\\u202e = no" in told
