from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evalstone._core.front_ends import COMMAND_LINE
from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.results.labels import Cell, LabelReader


def read(*values: Any, scale: float = 1.0, lower_is_better: bool = False, **how: Any) -> list[float | None]:
    reader = LabelReader(scale, lower_is_better, **how)
    rows, _ = reader.read([[Cell(value, f"line {number}", "label")] for number, value in enumerate(values, start=2)])
    return [row[0] for row in rows]


def test_words_for_yes_and_no_are_the_ends_of_the_scale():
    assert read("yes", "No", " TRUE ", "false", True, False) == [1, 0, 1, 0, 1, 0]
    assert read("yes", "no", scale=10) == [10, 0]


def test_words_of_quality_are_turned_round_where_lower_is_better():
    words = ("supported", "Not supported", "not_supported", "ungrounded", "correct", "hallucinated")
    assert read(*words) == [1, 0, 0, 0, 1, 0]
    assert read(*words, lower_is_better=True) == [0, 1, 1, 1, 0, 1]
    assert read("yes", "no", lower_is_better=True) == [1, 0]


def test_absent_labels_are_no_labels():
    assert read(None, "", "  ", "N/A", "<NA>", "none", "-", "yes") == [None] * 7 + [1]
    assert read("<NA>", "good", positive=("good",)) == [None, 1]


@pytest.mark.parametrize("error", ["#N/A", "#NAME?", "#NV"])
@pytest.mark.parametrize("how", [{}, {"positive": ("good",)}])
def test_an_error_of_a_spreadsheet_is_no_label(error: str, how: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"line 3: .*column 'label' .*; if it is missing"):
        read("good", error, **how)


def test_numbers_are_values_on_the_scale():
    assert read("0.25", 1, 0.5) == [0.25, 1, 0.5]
    assert read("2.5", 10, 0, scale=10) == [2.5, 10, 0]


def test_numbers_that_are_all_0_or_1_mean_no_and_yes_whatever_the_scale():
    assert read("0", "1", 1.0, scale=10) == [0, 10, 10]


def test_numbers_of_another_range_are_brought_onto_the_scale():
    assert read(1, 3, "5", bounds=(1, 5)) == [0, 0.5, 1]
    assert read(1, 0, scale=2, bounds=(0, 4)) == [0.5, 0]


def test_words_of_your_own_mean_yes_and_all_others_no():
    assert read("Gut", "schlecht", "egal", 1, "", positive=("gut",)) == [1, 0, 0, 0, None]
    assert read(1, 2, positive=("2",)) == [0, 1]


def test_words_of_your_own_may_be_numbers_truth_values_or_words_for_absent():
    assert read(1.0, 2.0, "1", positive=("1",)) == [1, 0, 1]
    assert read("1", 2, positive=("1.0",)) == [1, 0]
    assert read(True, False, positive=("false",)) == [0, 1]
    assert read("none", "severe", "n/a", positive=("none",)) == [1, 0, None]


def test_words_of_your_own_of_which_none_is_a_label_are_refused():
    with pytest.raises(ConfigError, match="not both"):
        LabelReader(1.0, False, positive=("gut",), bounds=(1, 5))


def test_what_each_word_was_read_as_is_told():
    reader = LabelReader(10, False)
    _, words = reader.read([[Cell("Yes", "line 2", "a"), Cell("wrong", "line 2", "b")], [Cell(3, "line 3", "a")]])
    assert words == {"Yes": 1, "wrong": 0}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("perhaps", "line 2: the label in column 'label' must be a number, or a word such as yes.* not 'perhaps'"),
        ("inf", "not 'inf'"),
        ("1_0", "not '1_0'"),
        (1.5, r"must be in \[0, 1\], not 1.5; .* label_range"),
        (-0.1, r"not -0.1"),
        ({"a": 1}, "must be a word or a number, not"),
        ("\x1b[31mred", r"not '\\x1b\[31mred'"),
    ],
)
def test_a_label_that_cannot_be_read_is_refused_with_its_place(value: Any, told: str):
    with pytest.raises(DataError, match=told):
        read(value)


@pytest.mark.parametrize(
    ("value", "allowed", "option"),
    [(1.5, "in [0, 1]", "label-range"), ("perhaps", "a number, or a word such as", "positive")],
)
def test_a_bad_label_says_what_it_may_be_and_names_a_setting_as_its_reader_writes_it(
    value: Any, allowed: str, option: str
) -> None:
    with pytest.raises(DataError) as raised:
        read(value)
    assert raised.value.allowed.startswith(allowed)
    assert f"--{option}" in raised.value.text(COMMAND_LINE)
    assert "--" not in f"{raised.value}{raised.value.allowed}"


@pytest.mark.parametrize("bounds", [(5, 1), (1, 1), (0, float("inf")), (float("nan"), 1)])
def test_a_range_that_is_none_is_refused(bounds: tuple[float, float]):
    with pytest.raises(ConfigError, match="lower one first"):
        LabelReader(1.0, False, bounds=bounds)


REFUSED: list[tuple[Callable[[], object], type[EvalstoneError], str]] = [
    (
        lambda: read("gut", "schlecht", positive=("guut",)),
        DataError,
        "no label is guut, which mean yes; the labels are gut, schlecht",
    ),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_refused_is_a_sentence(call: Callable[[], object], kind: type[EvalstoneError], said: str) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == said
