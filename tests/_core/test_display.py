"""Invisible characters are made visible, and numbers are shown as people write them."""

from __future__ import annotations

import math
from pathlib import PureWindowsPath

import pytest

from evalstone._core.display import count, limits, money, p_value, percent, quoted, safe, sentence, signed, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("\x1b[31m", "\\u001b[31m"),
        ("\ud800", "\\ud800"),
        ("a\u200bb\u2060\ufeff", "a\\u200bb\\u2060\\ufeff"),
        ("\U000e0041", "\\ue0041"),
        ("\u3164\u115f\u2800", "\\u3164\\u115f\\u2800"),
        ("\ue000\uffff", "\\ue000\\uffff"),
        ("a\ufe0f\ufe01", "a\ufe0f\\ufe01"),
        ("a\r\nb\rc", "a\nb\\u000dc"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_what_hides_or_turns_text_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("C:\\data\\a.jsonl", "'C:\\data\\a.jsonl'"),
        (PureWindowsPath("C:\\a b"), "'C:\\a b'"),
        ("it's", '"it\'s"'),
        ("a\nb\x1b", "'a\\nb\\x1b'"),
        ("", "''"),
    ],
)
def test_a_path_is_quoted_as_the_user_writes_it(path: object, shown: str) -> None:
    assert quoted(path) == shown


WRITTEN = [
    "می\u200cخواهم",
    "क्\u200dष",
    "ക്\u200d",
    "👩\u200d💻",
    "❤️\u200d🔥",
    "🤷🏽\u200d♀️",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "!שלום\u200f",
    "שלום!\u200f",
    "سلام \u200e(C++)",
    "שעה:\u200f 10",
    "؟شما@\u200f",
    "ᠮᠣᠩ\u180eᠭᠣᠯ",
    "葛\U000e0100",
    "\u06dd١",
]
"""Texts as languages and emoji are written."""


@pytest.mark.parametrize("text", WRITTEN)
def test_what_languages_and_emoji_are_written_with_stays(text: str) -> None:
    assert visible(text) == safe(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("pass\u200dword", "\u200c", "a \u200d", "می\u200c\u200c"),
        *("a\u200fb", "שלום!\u200f\u200f\u200f", "a\u180eb", "a\U000e0100", "葛\U000e0100\U000e0100"),
        *(
            "🏴\U000e0067",
            "🏴\U000e0067\U000e0062\U000e007f",
            "a\U000e0067\U000e0062\U000e0065\U000e007f",
            "🏴" + "\U000e0041" * 20 + "\U000e007f",
        ),
    ],
)
def test_the_same_elsewhere_or_in_a_row_is_written_out(text: str) -> None:
    assert "\\u" in visible(text)


def test_safe_text_is_one_line_of_a_given_length() -> None:
    assert safe("a\n b\tc") == "a b c"
    assert safe("x" * 50, 10) == "x" * 9 + "…"
    assert safe(" " * 100 + "y", 10) == "…"


def test_numbers_are_shown_as_people_write_them() -> None:
    assert [count(1, "sample"), count(2, "sample"), count(0, "reply", "replies")] == [
        "1 sample",
        "2 samples",
        "0 replies",
    ]
    assert [percent(0.75), percent(0.12345), percent(1 / 3)] == ["75%", "12.3%", "33.3%"]
    assert [money(None), money(0.0), money(0.0123), money(12.345)] == ["unknown", "$0.00", "$0.0123", "$12.35"]
    assert [money(0.0001), money(0.00004), money(0.0000012)] == ["$0.0001", "$0.000040", "$0.0000012"]
    # of a damaged file
    assert [money(-1), money(-0.00004), money(5e-324), money(math.nan)] == ["$-1.00", "$-0.000040", "$4.9e-324", "$nan"]
    assert [p_value(0.00099), p_value(0.001), p_value(1.0)] == ["< 0.001", "0.001", "1.000"]
    assert [limits(None, 1.0), limits(0.1, 0.2), limits(-0.1, 0.2, sign=True)] == [
        "-",
        "0.100 to 0.200",
        "-0.100 to +0.200",
    ]
    assert [sentence("the end"), sentence("Done."), sentence(" ")] == ["The end.", "Done.", ""]


def test_a_limit_of_a_difference_that_excludes_zero_is_not_shown_as_zero() -> None:
    assert limits(0.00036, 0.2, sign=True) == "+0.0004 to +0.200"
    assert limits(-0.2, -0.000003, sign=True) == "-0.200 to -0.000003"
    assert limits(0.0, 0.2, sign=True) == "0.000 to +0.200"
    assert limits(1e-12, 0.2, sign=True) == "0.000 to +0.200"


def test_a_difference_that_rounds_to_zero_has_no_sign() -> None:
    assert [signed(0.0001), signed(-0.0001), signed(0.001), signed(-1.5, 1)] == ["0.000", "0.000", "+0.001", "-1.5"]
