"""Charts: everything is drawn where its number is."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from evalstone.report.html import page
from evalstone.report.view import (
    Cell,
    Chart,
    Curve,
    CurvesChart,
    DifferenceChart,
    HistogramChart,
    IntervalChart,
    Mark,
    Section,
    SplitHistogramChart,
    Table,
    View,
    words,
)

LEFT, RIGHT = 8.0, 232.0
"""Where the axis of a chart begins and ends."""


def drawn(chart: Chart) -> ElementTree.Element:
    """The chart as an element, out of a page that shows nothing else."""
    text = "".join(
        page(
            View(
                "t",
                "",
                (Section("s", (), (Table("t", (words("t"), words("c")), ((Cell("r"), Cell("", chart=chart)),)),)),),
            )
        )
    )
    return ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])


def attributes(root: ElementTree.Element, kind: str) -> list[dict[str, str]]:
    """The attributes of the elements of a class; a class is one of several words."""
    return [element.attrib for element in root.iter() if kind in element.get("class", "").split()]


def points(path: str) -> list[tuple[float, float]]:
    """The corners of a path of lines."""
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](\S+) (\S+)", path)]


def ticks(root: ElementTree.Element) -> list[tuple[float, str]]:
    """The numbers at an axis from left to right, with their places."""
    texts = [e for e in root.iter("text") if float(e.attrib["y"]) > 20]
    return sorted((float(e.attrib["x"]), (e.text or "").strip()) for e in texts)


def test_a_mean_and_its_interval_lie_on_an_axis_from_0_to_the_scale() -> None:
    root = drawn(IntervalChart("l", 2.5, 1.25, 3.75, 5.0, bounds=(0.0, 5.0)))
    assert ticks(root) == [(LEFT, "0"), (RIGHT, "5")]
    assert [float(line["cx"]) for line in attributes(root, "mean")] == [120.0]
    (spread,) = attributes(root, "spread")
    assert (float(spread["x1"]), float(spread["x2"])) == (64.0, 176.0)
    (bounds,) = attributes(root, "bounds")
    assert bounds["d"].startswith(f"M{LEFT} 11H{RIGHT}")


@pytest.mark.parametrize(
    ("lower_is_better", "labels"), [(None, ["0", "1"]), (True, ["0 better", "1"]), (False, ["0", "better 1"])]
)
def test_the_better_end_of_an_axis_is_named(lower_is_better: bool | None, labels: list[str]) -> None:
    root = drawn(IntervalChart("l", 0.25, None, None, 1.0, lower_is_better))
    assert [text for _, text in ticks(root)] == labels
    assert attributes(root, "spread") == []


@pytest.mark.parametrize(("difference", "x"), [(0.25, 176.0), (-0.25, 64.0), (0.0, 120.0), (2.0, 232.0)])
def test_a_gain_lies_to_the_right_of_zero_and_a_loss_to_the_left(difference: float, x: float) -> None:
    root = drawn(DifferenceChart("l", difference, difference - 0.1, difference + 0.1, 0.5, "dim"))
    assert ticks(root) == [(LEFT, "-0.5"), (RIGHT, "0.5")]
    assert [float(mean["cx"]) for mean in attributes(root, "mean")] == [x]
    assert [float(zero["x1"]) for zero in attributes(root, "zero")] == [120.0]
    (spread,) = attributes(root, "spread")
    assert float(spread["x1"]) <= x <= float(spread["x2"])


def test_a_significant_gain_points_up_and_a_loss_down() -> None:
    better, worse = (drawn(DifferenceChart("l", 0.1, 0.05, 0.15, 0.5, tone)) for tone in ("good", "bad"))
    heights = [[y for _, y in points(attributes(root, "mean")[0]["d"])] for root in (better, worse)]
    # the base of the triangle and its top; y grows downwards
    assert heights == [[16, 16, 6], [6, 6, 16]]


def test_bars_stand_on_the_axis_in_the_order_of_the_scores_and_as_tall_as_their_counts() -> None:
    root = drawn(HistogramChart("l", (4, 0, 1, 2), 2.0))
    bars = attributes(root, "bin")
    titles = [e.findtext("title") for e in root.iter("rect")]
    assert titles == ["0 to 0.5: 4", "1 to 1.5: 1", "1.5 to 2: 2"]
    assert [float(bar["x"]) for bar in bars] == pytest.approx([8.7, 120.7, 176.7])
    heights = [float(bar["height"]) for bar in bars]
    assert heights == pytest.approx([38.0, 9.5, 19.0])
    assert [float(bar["y"]) + height for bar, height in zip(bars, heights, strict=True)] == pytest.approx([42.0] * 3)
    assert ticks(root) == [(LEFT, "0"), (RIGHT, "2")]


def figures(chart: CurvesChart | SplitHistogramChart) -> tuple[ElementTree.Element, str]:
    """A chart that stands for itself, and the text of the page with it."""
    text = "".join(page(View("t", "", (Section("s", figures=(chart,)),))))
    return ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6]), text


def test_curves_are_drawn_over_one_another_and_named_below() -> None:
    curves = (Curve("one", ((0, 0), (0.5, 1)), dot=(0.5, 1)), Curve("<two>", ((0, 1), (1, 0))))
    root, text = figures(CurvesChart("l", "t", "x", "y", curves, (Mark(0.5, "m"),), 10, diagonal=True))
    # the plot spans 58 to 322; y grows downwards
    assert [line["points"].split() for line in attributes(root, "curve")] == [
        ["58.0,322.0", "190.0,58.0"],
        ["58.0,58.0", "322.0,322.0"],
    ]
    assert [line["class"] for line in attributes(root, "curve")] == ["curve first", "curve second"]
    assert [(dot["cx"], dot["cy"]) for dot in attributes(root, "dot")] == [("190.0", "58.0")]
    assert [mark["x1"] for mark in attributes(root, "mark")] == ["190.0"]
    assert [name for _, name in ticks(root)][-1] == "10"
    assert len(attributes(root, "even")) == 1
    assert "&lt;two&gt;</span></li>" in text


def test_histograms_stand_above_one_another_on_one_axis() -> None:
    root, _ = figures(SplitHistogramChart("l", "t", "x", (("good", (0, 4)), ("bad", (2, 1))), scale=2))
    bars = attributes(root, "bin")
    assert [bar["class"] for bar in bars] == ["bin first", "bin second", "bin second"]
    bottoms = [float(bar["y"]) + float(bar["height"]) for bar in bars]
    assert bottoms == pytest.approx([190, 322, 322])
    assert float(bars[1]["height"]) == pytest.approx(2 * float(bars[2]["height"]))
    assert [element.findtext("title") for element in root.iter("rect")] == [
        "good, 1 to 2: 4", "bad, 0 to 1: 2", "bad, 1 to 2: 1"
    ]  # fmt: skip
