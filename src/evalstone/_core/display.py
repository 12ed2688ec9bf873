"""Text and numbers for display. Judged text is untrusted: invisible characters are escaped."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from evalstone._core.redaction import redacted

LINE_WIDTH = 240
UNLIMITED = 100_000
"""The width of what is printed anywhere but in a terminal, in characters."""
_MAX_EXCERPT = 60
IGNORABLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
"""Characters without a glyph, for a regex character class: joiners, direction marks, fillers, musical and shorthand
format controls."""
# Also controls, lone surrogates, private use and noncharacters. Line breaks, tabs and one variation selector after a
# character are allowed.
_INVISIBLE = (
    IGNORABLE + "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\uf8ff\ufdd0-\ufdef\ufff0-\uffff\U00013430-\U0001343f"
    "\U000e0000-\U0010ffff"
)
_SELECTORS = "(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]"
# Legitimate uses of such characters in languages and emoji. Elsewhere, or repeated, they only hide text.
_WRITTEN = "|".join(
    (
        # joiners: Persian, Hindi, emoji
        "(?<=[\u0590-\u1fff\u2600-\u27bf\ua000-\ud7ff\ufb1d-\ufdff\ufe0f-\ufefc\U0001f000-\U0001ffff])[\u200c\u200d]",
        # direction marks beside punctuation: Hebrew, Arabic
        "(?:(?<=[\u0590-\u08ff])|(?<=[\u0590-\u08ff][ -@]))[\u200e\u200f\u061c]",
        # variation selectors of Mongolian letters and of ideographs
        "(?<=[\u1820-\u18aa])[\u180b-\u180f]",
        "(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]",
        # flags of England, Scotland and other regions
        "(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f",
    )
)
_HIDDEN = f"({_WRITTEN})|[{_INVISIBLE}]|{_SELECTORS}"


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What finds any character that may have to be escaped, and the much slower one that escapes those. Compiled on
    first use, because it takes longer than importing this module."""
    return re.compile(f"[{_INVISIBLE}\ufe00-\ufe0f]"), re.compile(_HIDDEN)


def visible(text: str) -> str:
    """Text with control, direction and invisible characters escaped, as in `\\u202e`. Line breaks, tabs, and characters
    that the language needs are kept."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    suspect, hidden = _patterns()
    if suspect.search(text) is None:
        return text
    return hidden.sub(lambda match: match[1] or f"\\u{ord(match[0]):04x}", text)


def is_line(text: str) -> bool:
    """Whether text is one line that isn't blank, without control, direction and invisible characters."""
    return bool(text.strip()) and visible(text) == text and len(text.splitlines()) == 1 and "\t" not in text


def safe(text: str, width: int = LINE_WIDTH) -> str:
    """Text on one line of at most `width` characters, with invisible characters escaped and secrets replaced by
    `***`."""
    text = redacted(text)  # before cutting, so that no part of a secret is left
    fits = len(text) <= width and text.isprintable() and "  " not in text and text == text.strip(" ")
    if fits and text.isascii():
        return text
    line = text if fits else " ".join(text[: 4 * width].split())
    shown = visible(line[:width])
    whole = len(text) <= 4 * width and len(line) <= width and len(shown) <= width
    return shown if whole else shown[: width - 1] + "…"


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 sample", "2,000 samples"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def part_of(number: int, total: int, noun: str) -> str:
    """A part of a number of things with its verb: "0 of 1 claim is", "2 of 3 claims are"."""
    return f"{number:,} of {count(total, noun)} {'is' if total == 1 else 'are'}"


def joined(names: Sequence[str]) -> str:
    """Names joined by commas and "and": "input, output and context"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def money(cost: float | None) -> str:
    """A cost in US dollars, or "unknown". One that isn't 0 is never shown as 0."""
    if cost is None:
        return "unknown"
    if (size := abs(cost)) >= 1 or not size:
        return f"${cost:.2f}"
    if size >= 0.0001:
        return f"${cost:.4f}"
    return f"${cost:.{1 - math.floor(math.log10(size))}f}" if size >= 1e-9 else f"${cost:.1e}"


def percent(share: float) -> str:
    """A share in percent, with at most one decimal."""
    return f"{round(100 * share, 1):g}%"


def number(value: float | None, digits: int = 3) -> str:
    """A number with a fixed number of decimals; "-" for None."""
    return "-" if value is None else f"{value:.{digits}f}"


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign, or without one if it rounds to zero."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def limits(low: float | None, high: float | None, digits: int = 3, *, sign: bool = False) -> str:
    """The limits of an interval; "-" if there are none.

    sign: The limits are of a difference. They get a sign, and more decimals if they would round to 0: showing 0.0004 as
    0.000 would suggest that the interval includes 0.
    """
    if low is None or high is None:
        return "-"
    show = _signed_limit if sign else number
    return f"{show(low, digits)} to {show(high, digits)}"


def _signed_limit(value: float, digits: int) -> str:
    """The limit with as many decimals as it takes not to read as 0, up to six."""
    return next((text for more in range(digits, 7) if float(text := signed(value, more))), signed(value, digits))


def effective_count(effective: float) -> str:
    """Kish's effective sample size, with one decimal below 10."""
    return f"{effective:,.0f}" if effective >= 10 else f"{effective:.1f}"


def percents(low: float | None, high: float | None) -> str:
    """The limits of a share in percent; "-" if there are none."""
    return "-" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def p_value(value: float) -> str:
    """A p-value; small ones as "< 0.001"."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def digits_for(scale: float) -> int:
    """The number of decimals to show for scores on a scale."""
    return 3 if scale <= 1 else 2


def sentence(text: str) -> str:
    """Text as a sentence, with a capital letter and a period."""
    text = ended(text.strip())
    return f"{text[:1].upper()}{text[1:]}"


def ended(text: str) -> str:
    """Text with one period at its end, or the question or exclamation mark that it has."""
    text = text.rstrip(".")
    return text if not text or text.endswith(("?", "!")) else f"{text}."


def sentences(*texts: str) -> tuple[str, ...]:
    """The texts that aren't blank, as sentences."""
    return tuple(sentence(text) for text in texts if text.strip())


def listed(texts: Iterable[str]) -> str:
    """Texts joined by commas."""
    return ", ".join(texts)


def excerpt(value: object) -> str:
    """A value's repr that is safe to print: one line, control characters escaped, at most 60 characters."""
    try:
        text = repr(value[: _MAX_EXCERPT + 1] if isinstance(value, str) else value)
    except Exception:  # noqa: BLE001 - from the value's own code, or a number with thousands of digits
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _MAX_EXCERPT else text[: _MAX_EXCERPT - 3] + "..."


def named(name: str) -> str:
    """A file or column name that is safe to print: unchanged if all characters are printable, else quoted."""
    return name if name.isprintable() else repr(name)


def escaped(text: object) -> str:
    """An error message of another library on one line, with control characters escaped."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(text))


def quoted(path: object) -> str:
    """A path or a command in quotes, as the user writes it: its repr has the backslashes of Windows twice."""
    text = escaped(path)
    return f'"{text}"' if "'" in text and '"' not in text else f"'{text}'"


def shortlist(names: Iterable[str], *, most: int = 12) -> str:
    """The first `most` names, joined by commas: "a, b, c and 3 more"."""
    safe_names = [named(name) for name in names]
    shown = ", ".join(safe_names[:most])
    return shown if len(safe_names) <= most else f"{shown} and {len(safe_names) - most} more"


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> list[str]:
    """Up to three known names that are similar to this one, the most similar first. cutoff: the least similarity, 1 for
    equal names."""
    import difflib  # noqa: PLC0415 - only errors need it

    by_case = {other.lower(): other for other in known}
    return [by_case[match] for match in difflib.get_close_matches(name.lower(), by_case, n=3, cutoff=cutoff)]


def by_text(titled: Iterable[tuple[str, str]], of: int, everyone: str, separator: str = ", ") -> list[str]:
    """The distinct texts, each after its titles, or after `everyone` if it applies to all of several titles."""
    titles_of: dict[str, list[str]] = {}
    for title, text in titled:
        titles_of.setdefault(text, []).append(title)
    return [
        f"{everyone if of > 1 and len(titles) == of else separator.join(titles)}: {text}"
        for text, titles in titles_of.items()
    ]


def tests_used(tests: Mapping[str, Iterable[str]]) -> str:
    """The tests, each with its scorers if there are several tests."""
    return "; ".join(f"{test} ({listed(titles)})" if len(tests) > 1 else test for test, titles in tests.items())
