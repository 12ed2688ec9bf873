"""Numbers in text, and the check that compares them."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstone import checks
from evalstone.errors import ConfigError
from evalstone.scorers.checks.numeric import numbers_in
from evalstone.types import Sample, Score, Skipped
from tests.fakes import outcome_of, score_of


def value(output: str, reference: str, **parameters: Any) -> float:
    return score_of(checks.numeric_match(**parameters), Sample(output=output, reference=reference), []).value


def read(text: str, **options: Any) -> list[Any]:
    return [number.value for number in numbers_in(text, **options)]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("42", ["42"]),
        ("It costs $1,234.50.", ["1234.5"]),
        ("-3, −3, –3 and +3", ["-3", "-3", "-3", "3"]),
        ("-$5 or $-5 or € 5", ["-5", "-5", "5"]),
        ("-$ 5 or $–5", ["-5", "-5"]),
        (".5 and 5.", ["0.5", "5"]),
        ("50% or 12.5 %", ["0.5", "0.125"]),
        ("50٪ or 50％", ["0.5", "0.5"]),
        ("1.5e3, 2E-3, 1e5kg", ["1500", "0.002", "100000"]),
        ("2 × 10^3, 2x10^{-1}, 3 · 10⁻²", ["2000", "0.2", "0.03"]),
        ("3/4 cup", ["3/4"]),
        ("1'234 or 1’234 or 1\u00a0234 or 1\u202f234", ["1234"] * 4),
        ("1 234", ["1", "234"]),
        ("2^3^2, 2**3**2, 2^{3}^2, 2^{3^2}, 10^x, 2^n or 3×10^5^2", []),
        ("2**3 and 2 ** 10, **7** or 2^10", ["8", "1024", "7", "1024"]),
        ("1,2,3", ["1", "2", "3"]),
        ("[0.5,1.250,3] and 1.414,2.236,3", ["0.5", "1.25", "3", "1.414", "2.236", "3"]),
        ("1,234,567 of 1,2,34", ["1234567", "1", "2", "34"]),
        ("1,00,000 or ₹12,34,567.50 or 2,50,00,000", ["100000", "1234567.5", "25000000"]),
        ("1,00,000,5 and 1,00,0000", ["1", "0", "5", "1", "0", "0"]),
        ("1,234,5 or 1'234,5", ["1234", "5", "1234", "5"]),
        ("12,5 or -1234,56 or 0,500 or 12,5 %", ["12.5", "-1234.56", "0.5", "0.125"]),
        ("12,500 and 1,5000", ["12500", "1.5"]),
        ("1.234,5 or 12.345.678,90 or $1.234,567", ["1234.5", "12345678.90", "1234.567"]),
        ("0.123,5 or 1.234,5.678 or 1.234,5,6", ["0.123", "5", "1.234", "5.678", "1.234", "5", "6"]),
        ("12, 5 and 1.5,5 and x=,5", ["12", "5", "1.5", "5", "5"]),
        ("10–20 or 10-20", ["10", "20", "10", "20"]),
        ("5kg, 3rd, 7%!", ["5", "3", "0.07"]),
        ("٣ or ４２", ["3", "42"]),
        ("x=-5; \\boxed{7}; **8**; #### 9", ["-5", "7", "8", "9"]),
        (r"-\frac{3}{4}, \dfrac{1}{2}, 1{,}234, 1\,234 and 50\%", ["-3/4", "1/2", "1234", "1234", "0.5"]),
        (r"2\frac{1}{2} or 2 \frac{1}{2}", ["5/2", "5/2"]),
        ("1,00,000 or 12,34,56,789 rupees", ["100000", "123456789"]),
        ("10^3, 2^{10}, 2^-1, 1.5^2, -2^2 and 10³ or 10⁻²", ["1000", "1024", "1/2", "2.25", "-4", "1000", "0.01"]),
        ("5 ½ or 5½ cups, ¾ cup, -⅓ or 2⅞%", ["5.5", "5.5", "0.75", "-1/3", "0.02875"]),
        ("1 3/4 or 12 1/2 cups", ["1.75", "12.5"]),
        ("in 2020 3/4 of them, 1 5/4 and 0.5 3/4", ["2020", "3/4", "1", "5/4", "0.5", "3/4"]),
        ("5 m^2 and x^{-3}", ["5"]),
        (r"3 \times 10^5, 2\cdot10^{-1}, 10,\!000 and 45^\circ", ["300000", "0.2", "10000", "45"]),
        (r"\frac34, 3\frac12, \frac{-3}{4} and \frac{1,000}{3}", ["3/4", "3.5", "-3/4", "1000/3"]),
        (r"2\sqrt{3} is 3.46, \frac{\sqrt{3}}{4}, \sqrt[3]{8}, 2√3, \frac{\pi}{4}, 5\sqrt 2", ["3.46"]),
        ("1⁄2 or 3⁄4", ["0.5", "0.75"]),
        ("2**10 or 1.5 * 10**3, **8**", ["1024", "1500", "8"]),
        ("_18_, __19__, x_1 and a__2", ["18", "19"]),
        ("٤٢٫٥ or ١٬٢٣٤", ["42.5", "1234"]),
        ("٫٥ or -٫5, then ٬٥ and ٥٫", ["1/2", "-1/2", "5", "5"]),
        ("At 10:30 or 9:05:10, 7 came. 3:4", ["7", "3", "4"]),
        ("5, see https://example.com/2024/7 for 6", ["5", "6"]),
        ("5 million", ["5"]),
        ("00012", ["12"]),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, numbers: list[str]):
    assert read(text) == list(map(Fraction, numbers))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("12,5 or -1.234,56 or 12.500", ["12.5", "-1234.56", "12500"]),
        ("12.99 or -1234.5 or 0.500", ["12.99", "-1234.5", "0.5"]),
        ("1,234.5 or 12,345,678.90", ["1234.5", "12345678.90"]),
        ("2020, 15 Leute; 3,14.", ["2020", "15", "3.14"]),
        ("0x10 and 0xFF or 0X1f", []),
        ("0 x 10, 10x", ["0", "10", "10"]),
        ("1.2.3, 12.05.2024, 1,2,3 or 1,234,567", []),
    ],
)
def test_numbers_with_decimal_commas_are_read_as_people_write_them(text: str, numbers: list[str]):
    assert read(text, decimal=",") == list(map(Fraction, numbers))


def test_decimals_after_the_other_sign_count() -> None:
    assert value("12.99", "12.34", decimal=",") == 0.0
    assert value("12.34", "12,34", decimal=",") == 1.0
    assert value("1.234,5", "5") == 0.0
    assert value("1.234,5", "1234.5") == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "five",
        "B2 and GPT-4",
        "1.2.3",
        "192.168.0.1",
        "05/01/2024",
        "2024-05-01 or 2024-05-01T12:30:00",
        "1/2.5",
        "72²",
        "x^2",
        "GPT–4",
        "NaN, inf",
        "1.234.567",
        "²",
    ],
)
def test_what_is_no_single_number_is_none(text: str):
    assert read(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "2^99999999",
        "9^9999",
        "0^-1",
        "9" * 4001,
        "1e4001",
        "1e-4001",
        "1e1234567",
        "1e-9999999999",
        "1/0",
        "1/" + "7" * 4001,
    ],
)
def test_a_number_without_a_value_is_a_number_all_the_same(text: str):
    assert read(text) == [None]


def test_a_number_of_4000_digits_has_a_value():
    assert read("9" * 4000) == [10**4000 - 1]


def test_a_decimal_comma_is_an_option():
    assert read("1.234,5 und 3,14 %", decimal=",") == [Fraction("1234.5"), Fraction("0.0314")]
    assert value("1.234,5", "1234,50", decimal=",") == 1
    assert checks.numeric_match(1.5, decimal=",") == checks.numeric_match("1,5", decimal=",")


def test_the_digits_after_a_decimal_comma_are_no_number_of_their_own():
    assert value("It weighs 12,5 kg.", "5") == 0
    assert value("It weighs 12,5 kg.", "12.5") == 1


def test_numbers_are_compared_exactly_and_not_as_floats():
    assert value("1.1", "1", tolerance=0.1) == 1  # as floats, 1.1 - 1 is above 0.1
    assert value("0.30", "0.3") == 1
    assert value("100000000000000000001", "100000000000000000002") == 0
    assert value("1e4000", "1e4000") == 1
    assert value("1e4000", "1e3999", relative=0.5) == 0


@pytest.mark.parametrize(
    ("output", "parameters", "expected"),
    [
        ("101", {"tolerance": 1}, 1),
        ("101.001", {"tolerance": 1}, 0),
        ("105", {"relative": 0.05}, 1),
        ("105.1", {"relative": 0.05}, 0),
        ("103", {"tolerance": 1, "relative": 0.05}, 1),
        ("-100", {}, 0),
    ],
)
def test_the_wider_tolerance_counts(output: str, parameters: dict[str, Any], expected: float):
    assert value(output, "100", **parameters) == expected


def test_the_relative_tolerance_of_a_negative_number_is_positive():
    assert value("-105", "-100", relative=0.05) == 1
    assert value("0.0001", "0", relative=0.5) == 0


@pytest.mark.parametrize(("which", "expected"), [("last", 0), ("first", 1), ("any", 1), ("only", 0)])
def test_which_number_of_the_answer_counts(which: str, expected: float):
    assert value("7 of the 12", "7", which=which) == expected
    assert value("7", "7", which=which) == 1


def test_any_takes_the_nearest():
    score = score_of(checks.numeric_match(10, tolerance=1, which="any"), Sample(output="3, 11 and 1e99999"), [])
    assert score.value == 1
    assert score.evidence.distance == "1"


def test_a_per_cent_sign_is_a_hundredth_or_nothing():
    assert value("50%", "0.5") == value("50%", "50 %") == 1
    assert value("50%", "50") == 0
    assert value("50%", "50", percent=False) == 1


@pytest.mark.parametrize("output", ["", " \n", "no idea", "1.2.3"])
def test_an_answer_without_a_number_gets_zero(output: str):
    assert value(output, "5") == 0


def test_a_number_too_long_to_be_read_gets_zero_and_no_error():
    for output in ("9" * 5000, "1e99999999999999999999"):
        assert value(output, "5", tolerance=1e300, which="any") == 0


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("Paris", "the reference has 0 numbers, not one: 'Paris'"),
        ("3, 14", "the reference has 2 numbers, not one: '3, 14'"),
        ("1e5000", "the reference has a number that can't be read, not one: '1e5000'"),
    ],
)
def test_a_reference_that_is_not_one_number_is_skipped(reference: str, reason: str):
    assert outcome_of(checks.numeric_match(), Sample(output="5", reference=reference), []) == Skipped(reason)


def test_a_distance_of_any_size_can_be_shown():
    huge = score_of(checks.numeric_match(0), Sample(output="1e4000"), [])
    tiny = score_of(checks.numeric_match(0), Sample(output="1e-4000"), [])
    assert (huge.evidence.distance, tiny.evidence.distance) == ("about 1e4000", "under 1e-300")


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"expected": "Paris"}, "expected has 0 numbers, not one: 'Paris'"),
        ({"expected": float("nan")}, "expected must be a finite number or text, not nan"),
        ({"expected": True}, "expected must be a finite number or text, not True"),
        ({"tolerance": -1}, "tolerance must be a number of 0 or more, not -1"),
        ({"relative": "5%"}, "relative must be a number of 0 or more, not '5%'"),
        ({"which": "best"}, "which must be 'last', 'first', 'any' or 'only', not 'best'"),
        ({"decimal": "x"}, "decimal must be '.' or ',', not 'x'"),
        ({"percent": 1}, "percent must be true or false, not 1"),
    ],
)
def test_a_wrong_parameter_is_refused(parameters: dict[str, Any], told: str):
    with pytest.raises(ConfigError, match=f"numeric_match: {told}"):
        checks.numeric_match(**parameters)


@given(st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-1e9, max_value=1e9))
def test_a_number_matches_itself_however_it_is_grouped(number: Any):
    assert value(f"It is {number}.", str(number)) == 1
    assert value(f"It is {number:,}.", str(number)) == 1


@given(st.text(max_size=60), st.integers(-100, 100))
def test_any_answer_has_a_score(output: str, expected: int):
    outcome = outcome_of(checks.numeric_match(expected, which="any"), Sample(output=output), [])
    assert isinstance(outcome, Score)
    assert outcome.value in (0, 1)


@pytest.mark.slow
def test_long_texts_take_linear_time():
    started = time.process_time()
    for text in (
        "1" * 200_000,
        "1,111" * 4_000,
        "1." * 100_000,
        "1 " * 10_000,
        "-" * 100_000,
        "1^" * 60_000,
        "1,11," * 40_000,
        "1 1/" * 40_000,
        "[1]" * 60_000,
    ):
        numbers_in(text)
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    ("output", "number"),
    [
        ("It is 72 [1].", "72"),
        ("It is 72[1][2].", "72"),
        ("It is 72 [1, 3] or [2-4].", "72"),
        ("It is 72 [1](https://example.com/7).", "72"),
        ("It is 72【3†source】.", "72"),
        ("It is 72 [^1].", "72"),
        ("In 3 steps, the result is [72].", "72"),
        ("7 steps: x = [72]", "72"),
        ("[72]", "72"),
        ("the matrix [1.5, 72]", "72"),
        ("See [72].", "72"),
    ],
)
def test_a_citation_mark_is_no_number_of_the_answer(output: str, number: str) -> None:
    assert value(output, number) == 1
