"""What reports say of a judge's calibration."""

from __future__ import annotations

import dataclasses
import io
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from evalstone import calibrate
from evalstone.report.html import page, reliability_svg
from evalstone.report.notes import sentences_of
from evalstone.report.terminal import show
from evalstone.report.view import ReliabilityChart, View
from evalstone.results.calibration import Calibration
from evalstone.results.views.calibration import calibration_view, reliability_lines
from evalstone.stats.calibration import reliability
from tests.report.hostile import MARKUP
from tests.report.test_html import Seen
from tests.results.test_members import judged

BINS = reliability([0.05, 0.55, 0.5, 0.95, 1.0], [False, True, False, True, True])


def rows(*labels: Any) -> list[dict[str, Any]]:
    """A supported and an unsupported answer in turn, with these labels."""
    answers = [("Paris is in France.", "Paris is in France."), ("Rome is on Mars.", "Rome is a city in Italy.")]
    return [
        {"id": str(n), "input": f"{n}?", "output": answers[n % 2][0], "context": [answers[n % 2][1]], "label": label}
        for n, label in enumerate(labels)
    ]


def calibration(*labels: Any, **more: Any) -> Calibration:
    return calibrate(rows(*labels), ledger=None, **more)


def warnings(made: Calibration) -> list[str]:
    return sentences_of(made.notes)


def on_screen(view: View) -> str:
    out = io.StringIO()
    show(view, Console(file=out, width=160, highlight=False))
    return " ".join(out.getvalue().split())


def test_a_calibration_shows_measures_confusion_and_diagram_on_a_terminal_and_as_a_page() -> None:
    view = calibration_view(calibration("yes", "no", "yes", "yes"))
    shown = on_screen(view)
    for text in (
        "4 labeled samples · faithfulness · judge lexical@",
        "Labels: label; yes = yes, no = no; yes from 0.5",
        "judge: yes 2 0",
        "judge: no 1 1",
        "sensitivity (TPR) 0.667 0.",
        "accuracy 0.750",
        "AUROC 0.833 (95% CI",
        "0.90 to 1.00 2",
        "Few labels (3 yes, 1 no)",
    ):
        assert text in shown, shown
    seen = Seen("".join(page(view)))
    assert [a for tag, a in seen.elements if tag == "svg" and a.get("class") == "reliability"]
    assert "sensitivity (TPR)" in seen.everything


def test_labels_that_all_say_the_same_have_no_invented_numbers() -> None:
    made = calibration("yes", "yes")
    (warning,) = warnings(made)
    assert warning.startswith("Every label says ")
    assert "AUROC -" in on_screen(calibration_view(made))


def test_split_annotators_are_named() -> None:
    shown = on_screen(calibration_view(calibration([1, 0], [0, 0], [1, 1], [0, 0])))
    assert "1 sample with evenly " in shown
    assert "Krippendorff's alpha, nominal" in shown
    assert "annotator 2: Cohen's kappa" in shown
    (warning,) = warnings(calibration([1, 0], [0, 1]))
    assert "split on every" in warning


def test_a_judge_that_scores_every_sample_the_same_does_not_discriminate() -> None:
    made = calibrate(rows("yes", "no", "no", "yes")[::2], ledger=None)
    assert any("no discrimination" in warning for warning in warnings(made))


def test_a_judge_whose_verdicts_are_all_equal_is_named_though_its_scores_differ() -> None:
    data = [
        {"id": str(n), "output": text, "context": ["Paris is in France."], "label": label}
        for n, (text, label) in enumerate(
            [("Paris is in France. It is big.", "no"), ("Paris is in France.", "yes")] * 3
        )
    ]
    made = calibrate(data, ledger=None)
    assert {value for value, _ in made.decided} == {0.5, 1.0}
    assert any("0.5 (default) are yes" in warning for warning in warnings(made))


@pytest.mark.parametrize(
    ("labels", "rate", "warning"),
    [
        (["yes", "no"] * 6, "0.500", ""),
        (
            ["yes", "no", "yes", "yes"] * 5,  # every second answer is supported
            "0.750",
            "The accuracy at 0.5 (default), 0.750 (95% CI 0.520 to 0.907), is not above the no-information rate, "
            "0.750.",
        ),
        (
            ["yes", "no", "yes", "yes", "yes", "no"] * 2,
            "0.667",
            "The accuracy at 0.5 (default), 0.833 (95% CI 0.534 to 0.975), is not shown to be above the no-information "
            "rate, 0.667.",
        ),
    ],
)
def test_the_accuracy_is_compared_with_the_no_information_rate(labels: list[str], rate: str, warning: str) -> None:
    made = calibration(*labels)
    found = [text for text in warnings(made) if "no-information" in text]
    assert found == ([warning] if warning else [])
    assert f"No-information rate {rate} (95% CI 0.5" in on_screen(calibration_view(made))


def test_a_judge_that_is_not_shown_to_beat_chance_is_named() -> None:
    (warning,) = (text for text in warnings(calibration("yes", "no", "no", "yes")) if "chance" in text)
    assert warning.startswith("Audits and reports ")
    assert warning.endswith("(AUROC 0.500, 95% CI 0.095 to 0.905).")


def test_reversed_labels_are_noticed() -> None:
    turned = calibrate(rows(*["yes", "no"] * 6), "hallucination", ledger=None)
    assert any("rank opposite" in text and "lower is better" in text for text in warnings(turned))
    right = calibrate(rows(*["no", "yes"] * 6), "hallucination", ledger=None)
    assert not any("rank opposite" in text for text in warnings(right))


def test_hostile_words_and_names_act_neither_on_a_terminal_nor_in_a_page() -> None:
    data = [{**row, "\x1b[2Jlabel": row["label"]} for row in rows("yes", "no")]
    for row in data:
        del row["label"]
    data[1]["\x1b[2Jlabel"] = "\x1b[31mno\u202e"
    made = calibrate(data, ledger=None, label=("\x1b[2Jlabel",), positive=("yes",))
    made = dataclasses.replace(made, stop_reason=f"\x1b[2J {MARKUP}", dataset_name=MARKUP, judge=MARKUP, created=MARKUP)
    view = calibration_view(made)
    shown = on_screen(view)
    assert not set(shown) & set("\x1b\u202e")
    assert "\\u001b[31mno\\u202e = no" in shown
    assert "ended early (\\u001b[2J <img" in shown
    tags = [tag for tag, _ in Seen("".join(page(view))).elements]
    assert "img" not in tags


def test_a_line_of_the_diagram_shows_share_interval_and_mean_score() -> None:
    header, first, middle, last = reliability_lines(BINS)
    assert header.split() == ["score", "n", "0", "0.25", "0.5", "0.75", "1"]
    # one case, none yes: the share at 0, its interval up to 0.975 (column 39), the mean score at 0.05
    assert first == "0.00 to 0.10    1   o-|" + "-" * 37
    # two cases, one yes: 0.5 (column 20), from 0.018 (1) to 0.982 (39), the mean at 0.525 (21)
    assert middle == "0.50 to 0.60    2   " + " " + "-" * 19 + "o|" + "-" * 18
    assert last.endswith("|o")


def test_a_share_at_the_mean_score_is_a_star_and_bins_stay_aligned() -> None:
    for bins in (reliability([1.0], [True]), reliability([1.0] * 12_345, [True] * 12_345)):
        header, line = reliability_lines(bins)
        assert line.endswith("*")
        assert len(header) == len(line)
    assert len(reliability_lines(())) == 1


@pytest.mark.slow
def test_the_plot_is_well_formed_and_holds_no_more_than_it_says() -> None:
    hostile = '</svg><script>alert(1)</script>"&\x1b[0m\u202e'
    root = ElementTree.fromstring(reliability_svg(ReliabilityChart(hostile, BINS)))
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert names.count("circle") == 3
    assert not {"script", "a", "image", "use", "foreignObject"} & set(names)
    assert root.attrib["aria-label"] == hostile.replace("\x1b", "\\u001b").replace("\u202e", "\\u202e")
    assert ElementTree.fromstring(reliability_svg(ReliabilityChart("empty", ()))) is not None


def test_a_point_lies_at_its_mean_score_and_share_and_below_it_where_the_share_is_lower() -> None:
    svg = reliability_svg(ReliabilityChart("title", reliability([0.5, 0.5, 1.0], [True, False, True])))
    circles = [element.attrib for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("circle")]
    # the plot spans 58 to 322; y grows downwards
    assert [(c["cx"], c["cy"]) for c in circles] == [("190.0", "190.0"), ("322.0", "58.0")]


def test_each_confusion_matrix_has_its_threshold_as_a_heading() -> None:
    made = calibration(*["yes", "no"] * 6)
    view = calibration_view(made)
    titles = [section.title for section in view.sections if section.title.startswith("Confusion")]
    assert [title.partition(" at ")[2] for title in titles] == ["0.5 (default)", "0.5 (best balanced accuracy)"]
    assert all(f"<h2>{title}</h2>" in "".join(page(view)) for title in titles)


def test_a_panel_is_shown_beside_its_members() -> None:
    alone = [judged("a", {0, 1, 2, 3}), judged("b", {2, 3, 4, 5}), judged("c", {2, 3, 6, 7})]
    panel = dataclasses.replace(judged("panel(a, b, c, vote=majority)", {2, 3}), per_judge=tuple(alone))
    view = calibration_view(panel)
    (each,) = (one for one in view.sections if one.title == "Members")
    assert [row[0].text for row in each.tables[1].rows] == [panel.judge, "a", "b", "c"]
    shown = on_screen(view)
    assert "The 3 votes are" in shown
    assert "The best single member is a: accuracy" in shown
    assert "than it (+0.017; 120 labeled samples)" in shown
    assert "number of members." in shown
