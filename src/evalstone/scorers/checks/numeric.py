"""A check of a number in the answer, and how numbers are read from text."""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias, cast

from evalstone._core.declarations import Range
from evalstone._core.display import count
from evalstone.errors import ConfigError
from evalstone.scorers.checks.base import TextCheck
from evalstone.scorers.reasons import shortened
from evalstone.types import Score, Skipped

Which: TypeAlias = Literal["last", "first", "any", "only"]

_LONGEST_OF_MIXED = 3
MOST_DIGITS = 4000
"""The most digits of one number, including its power of ten. Python itself parses at most 4,300."""
_GROUPING = "'’\u00a0\u202f\u2009"
_LATEX_FRACTION = re.compile(r"\\[dt]?frac ?(?:\{(-?)([\d,]+)\} ?\{([\d,]+)\}|(\d) ?(\d))")
_BEFORE = r"(?:(?<![\d.,])\d[\d.,]*+(?<![.,])\ ?)?"
_ROOT = re.compile(
    rf"{_BEFORE}(?:√\ ?\(?[\d.,]++\)?"
    rf"|\\sqrt(?:\[\d{{1,9}}\])?(?:\{{(?:[^{{}}]|\{{[^{{}}]{{0,99}}\}}){{0,99}}\}}|\ ?\d))"
)
_OTHER_FRACTION = re.compile(rf"{_BEFORE}\\[dt]?frac\ ?\{{[^{{}}]{{0,99}}\}}\ ?\{{[^{{}}]{{0,99}}\}}")
_LATEX_SIGNS = (
    ("{,}", ","), ("\\,", ","), ("\\!", ""), ("\\%", "%"), ("\\times", "×"), ("\\cdot", "·"),
)  # fmt: skip
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_NO_NUMBER = re.compile(
    r"https?://\S+"
    r"|(?<![\w-])\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?![\d-])"
    r"|(?<![\w:.])\d{1,2}:\d\d(?::\d\d)?(?![\w:])"
)
"""Addresses, dates and times."""
_POWER_SIGN = re.compile(r"(?<=\d) ?\*\*(?= ?[-−]?\d+(?!\d|\*(?!\*\d)))")
_ARABIC_SIGNS = re.compile(r"٫(?=\d)|(?<=\d)٬(?=\d)")
_VULGAR = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_MINUS = "-−–"
_CITATION = re.compile(r"\[\^?\d{1,3}(?:[,;–-] ?\d{1,3})*\](?:\([^()\s]*\))?|【[^】\n]{0,80}】")
_RESULT = re.compile(r"(?:[=:≈]|\b(?:is|are|was|were|be|equals|answer))\s*\Z")


class Number(NamedTuple):
    """A number as written, and its exact value; None if it has no value, or more than 4,000 digits."""

    text: str
    value: Fraction | None


@functools.cache
def _pattern(decimal: str) -> re.Pattern[str]:
    point, group = re.escape(decimal), re.escape("," if decimal == "." else ".")
    # Groups of two digits and a last one of three, as in 1,00,000.
    indian = r"(?!0,)\d{1,2}(?P<indian>,\d{2}){1,6},\d{3}(?!\d)(?!,\d)|" if decimal == "." else ""
    unlike = "(?(indian)(?!))" if indian else ""
    # A sign that groups is a decimal sign before other than three digits; between more than two numbers it separates.
    other = (
        rf"(?(whole)|(?!)) {unlike} (?(group)(?!)) (?(listed)(?!)) {group}(?:(?<=(?<!\d)0{group})|(?!\d{{3}}(?!\d)))"
        rf" (?P<other>\d++) (?!{group}\d)"
    )
    return re.compile(
        rf"""
        # Not in a word, a version, a date or an exponent.
        (?<![^\W_]|[.^]) (?<![^\W_]_) (?<![^\W_]__) (?<!\d{point}) (?<!\d/) (?<![^\W\d_][-–])
        (?<!\^[-−–{{]) (?<!\^\{{[-−–])
        (?:(?<=\d,)(?P<listed>))?+
        (?P<sign>[-+−–])? (?:[$€£¥]\ ?)? (?P<inner>[-+−–])?
        (?:
            # Where the decimal sign groups and the other one follows, they have changed places: 1.234,5 is 1234.5.
            (?(listed)(?!)) (?P<swapped>(?!0{point})\d{{1,3}}(?:{point}\d{{3}})+){group}(?P<rest>\d++)(?![.,]\d)
            | (?P<whole>
                {indian}(?!0{group})\d{{1,3}}(?P<group>[{group}{_GROUPING}])\d{{3}}(?:(?P=group)\d{{3}})*(?!\d)|\d++
              )?
              (?:{point}(?P<part>\d++) | {other})? (?(whole)|(?(part)|(?!)))
            | (?P<vulgar>[{_VULGAR}])
        )
        (?!{point}\d|\.\d) (?!(?<=(?<!\d)0)[xX][\dA-Fa-f])  # 0x1F
        (?:
            [eE](?P<power>[-+−]?\d++)
            | \ ?[×x*·]\ ?10\ ?(?:\^\ ?\{{?(?P<raised>[-+−–]?\d++)\}}?|(?P<above>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]++))
            | /(?P<under>\d++)(?![/.,]?\d)
            | \ ?\^\ ?(?:\{{(?P<braced>[-+−–]?\d++)\}}|(?P<exponent>[-+−–]?\d++))
            | (?<=(?<!\d)10)(?P<ten>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]++)
            | (?(vulgar)(?!)|(?(part)(?!)|\ ?(?P<half>[{_VULGAR}])))
            | (?(part)(?!)|(?(vulgar)(?!)|\ (?P<over>\d++)/(?P<mixed>\d++)(?![/.,]?\d)))
        )?
        (?!/\d|[⁰¹²³⁴⁵⁶⁷⁸⁹{_VULGAR}]|\ ?\^\ ?[\w{{(\-−–]|\ ?[×x*·]\ ?10\ ?\^)
        (?P<percent>\ ?[%％٪])?
        """,
        re.VERBOSE,
    )


def numbers_in(text: str, *, decimal: str = ".", percent: bool = True) -> list[Number]:
    """The numbers of a text, in order.

    A number may have groups of three digits (1,234; 1'234; no-break spaces), or India's (1,00,000), decimals (.5), a
    sign, a currency sign ($5), a unit or a percent sign after it, a power of ten (1e3, 1 × 10^3, 1 × 10³, 10³) or an
    exponent (2^10). 3/4 and ½ are fractions, 1 3/4 and 5½ have one. LaTeX's \\frac{3}{4}, 1{,}234, 50\\% and
    3 \\times 10^5 are read too. Digits of any script count. Words (five, infinity) are not numbers, nor are digits in a
    word (B2, GPT-4), a version (1.2.3), a date (05/01/2024, 2024-05-01), a time (10:30), an address, a root (2√3), an
    exponent (m^2), or with a superscript (72²) or an exponent that is no number (10^x, 2^3^2).

    Args:
        text: The text to read.
        decimal: The decimal sign, "." or ","; the other one groups digits, or is a decimal sign if it
            can't group them.
        percent: Read 50% as 0.5; otherwise, the sign is ignored.
    """
    point = {"٫": decimal, "٬": "," if decimal == "." else "."}
    text = _ARABIC_SIGNS.sub(lambda match: point[match[0]], _POWER_SIGN.sub("^", text.replace("⁄", "/")))
    if "\\" in text or "{" in text or "√" in text:
        text = _ROOT.sub(" root ", _LATEX_FRACTION.sub(_fraction_written, text))
        text = _OTHER_FRACTION.sub(" fraction ", text)
        for written, meant in _LATEX_SIGNS:
            text = text.replace(written, meant)
    found = _pattern(decimal).finditer(_NO_NUMBER.sub("no number", text))
    return [number for match in found for number in _numbers_of(match, decimal, percent)]


def _fraction_written(fraction: re.Match[str]) -> str:
    """A fraction of LaTeX as `3/4`, after a space if a number is before it."""
    sign, over, under, digit, other = fraction.groups()
    before = " " if fraction.string[fraction.start() - 1 : fraction.start()].isdigit() else ""
    return f"{before}{sign or ''}{digit or over}/{other or under}".replace(",", "")


def _numbers_of(match: re.Match[str], decimal: str, percent: bool) -> Iterable[Number]:
    """The number of a match, or both if a whole number and a fraction after it are no mixed one: `in 2020 3/4 of …`."""
    is_mixed = match["over"] and len(match["whole"]) <= _LONGEST_OF_MIXED and int(match["over"]) < int(match["mixed"])
    if match["over"] and not is_mixed:
        whole, fraction = match[0].strip().rsplit(" ", 1)
        for text in (whole, fraction):
            yield from numbers_in(text, decimal=decimal, percent=percent)
    else:
        yield Number(match[0].strip(), _value(match, percent))


def _fraction_of(match: re.Match[str]) -> Fraction:
    """The fraction of a mixed number, or of one that is a vulgar fraction; 0 for any other."""
    if match["over"]:
        return Fraction(int(match["over"]), int(match["mixed"]))
    sign = match["half"] or match["vulgar"]
    return Fraction(unicodedata.numeric(sign)).limit_denominator(10) if sign else Fraction(0)


def _value(match: re.Match[str], percent: bool) -> Fraction | None:
    written = match["whole"] or match["swapped"] or ""
    whole = "".join(filter(str.isdigit, written)) or "0" * bool(match["vulgar"])
    part = match["part"] or match["other"] or match["rest"] or ""
    power = match["power"] or match["raised"] or (match["above"] or match["ten"] or "0").translate(_SUPERSCRIPT)
    if match["ten"]:
        whole = "1"
    under = match["under"] or "1"
    if max(len(whole) + len(part), len(under)) > MOST_DIGITS or len(power) > 6:
        return None
    exponent = int(power.translate(dict.fromkeys(map(ord, _MINUS), "-"))) - len(part)
    divisor = int(under)
    if not divisor or abs(exponent) > MOST_DIGITS:
        return None
    negative = any(match[name] and match[name] in _MINUS for name in ("sign", "inner"))
    value = Fraction(int(whole + part), divisor)
    if exponent:
        value *= Fraction(10) ** exponent
    value += _fraction_of(match)
    if raised := match["braced"] or match["exponent"]:
        times = int(raised.translate(dict.fromkeys(map(ord, _MINUS), "-"))) if len(raised) <= 6 else MOST_DIGITS + 1
        if (not value and times < 0) or abs(times) * len(str(value)) > MOST_DIGITS:
            return None
        value **= times
    if percent and match["percent"]:
        value /= 100
    return -value if negative else value


@dataclass(frozen=True)
class Numbers:
    """The compared number of the answer and the expected number, as written, and their distance.

    distance: a decimal number with at most 12 digits; None if a number is missing or too long.
    """

    answer: str | None
    expected: str
    distance: str | None


class NumericMatch(TextCheck, kw_only=False):
    """Whether a number in the answer equals the expected number, within a tolerance.

        numeric match = 1 if |answer - expected| ≤ max(tolerance, relative · |expected|), else 0

    The expected number is `expected`, or else the only number in the sample's reference. Numbers are compared exactly,
    not as floats: 0.3 is 0.30, and 1.1 is within 0.1 of 1. "1,234.5", "$5", "-3", "1.5e3", "2 × 10^3", "2^10", "3/4",
    "5 ½", "1 3/4" and "5 kg" are numbers, and "50%" is 0.5; "five", "1.2.3", "10:30", roots, dates, addresses and
    citation marks such as "[1]" are not. Units and words such as "million" are ignored. A comma before three digits
    groups them (12,500 is 12500), also as in India (1,00,000). Before any other number of digits, it is a decimal comma
    (12,5 is 12.5), as it is after groups with points (1.234,5 is 1234.5, also in brackets), but "1,2,3" are three
    numbers. Apostrophes and no-break spaces group digits; plain spaces separate numbers ("1 234,5" are 1 and 234.5). 0
    if the answer has no number, or the number has over 4,000 digits. Undefined if the reference has no number, or
    several. No judge call.

    Attributes:
        expected: The number for all samples, or a text with it; by default each sample's reference.
        tolerance: The largest distance that passes.
        relative: The largest distance that passes, as a share of the expected number.
        which: The number of the answer that counts: the "last" one, the "first" one, "any" of them, or the "only" one,
            which fails an answer with several.
        decimal: The decimal sign, "." or ","; the other one groups digits by three, or is a decimal sign where it
            can't group. It decides what "1,234" and "1.234" are.
        percent: Read 50% as 0.5; otherwise, percent signs are ignored.
    """

    name = "numeric_match"
    version: ClassVar[int] = 2

    expected: float | str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    _: KW_ONLY
    tolerance: Annotated[float, Range(0)] = 0.0
    relative: Annotated[float, Range(0)] = 0.0
    which: Which = "last"
    decimal: Literal[".", ","] = "."
    percent: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.expected, int | float):
            object.__setattr__(self, "expected", str(self.expected).replace(".", self.decimal))
        if self.expected is not None and isinstance(problem := self._expected(cast(str, self.expected)), str):
            raise ConfigError(f"{self.name}: expected {problem}")

    def _numbers(self, text: str) -> list[Number]:
        """The numbers of a text, without citation marks if it has others."""
        without = _without_citations(text)
        cited = [] if without == text else numbers_in(without, decimal=self.decimal, percent=self.percent)
        return cited or numbers_in(text, decimal=self.decimal, percent=self.percent)

    def _expected(self, text: str) -> Number | str:
        """The only number of a text, or what is wrong with it."""
        numbers = self._numbers(text)
        if len(numbers) == 1 and numbers[0].value is not None:
            return numbers[0]
        problem = f"has {count(len(numbers), 'number')}" if len(numbers) != 1 else "has a number that can't be read"
        return f"{problem}, not one: {shortened(text, 60)!r}"

    def check(self, output: str, expected: str) -> Score | Skipped:
        expected_value = self._expected(expected)
        if isinstance(expected_value, str):
            return Skipped(f"the reference {expected_value}")
        target = cast(Fraction, expected_value.value)
        allowed = max(_exact(self.tolerance), _exact(self.relative) * abs(target))
        numbers = self._numbers(output)
        if not numbers or (self.which == "only" and len(numbers) > 1):
            number_count = count(len(numbers), "number") if numbers else "no number"
            evidence = Numbers(None, expected_value.text, None)
            reason = f"The answer has {number_count}; expected {shortened(expected_value.text, 40)}."
            return Score(0.0, reason, evidence=evidence)
        candidates = numbers if self.which == "any" else [numbers[0 if self.which == "first" else -1]]
        best = min(candidates, key=lambda number: math.inf if number.value is None else abs(number.value - target))
        distance = None if best.value is None else abs(best.value - target)
        label = "nearest" if self.which == "any" else self.which
        reason = f"The {label} number is {shortened(best.text, 40)}; expected {shortened(expected_value.text, 40)}"
        if allowed:
            reason += f" ± {_decimal(allowed)}"
        evidence = Numbers(best.text, expected_value.text, None if distance is None else _decimal(distance))
        holds = distance is not None and distance <= allowed
        return Score(self.scale if holds else 0.0, f"{reason}.", evidence=evidence)


def _without_citations(text: str) -> str:
    """The text without citation marks, such as [1], [2, 3], [1](https://…) and 【3†source】.

    A result in brackets is none: `x = [1]`, "the answer is [1]".
    """

    def kept(mark: re.Match[str]) -> str:
        return mark[0] if _RESULT.search(text[max(0, mark.start() - 20) : mark.start()]) else " "

    return _CITATION.sub(kept, text)


def _exact(number: float) -> Fraction:
    """A parameter as the decimal number that the user wrote: 0.1 is one tenth."""
    return Fraction(str(number))


def _decimal(value: Fraction) -> str:
    """A non-negative number of any size, with at most 12 digits."""
    try:
        return f"{float(value):.12g}" if not value or value > Fraction(1, 10**300) else "under 1e-300"
    except OverflowError:
        return f"about 1e{len(str(int(value))) - 1}"


numeric_match = NumericMatch
