"""Normalize texts for comparison: times, numbers and joined words in one form, structured sources as lines.

All functions take time linear in the length of the text, for any text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from evalstone._core.text import sentences, tokens
from evalstone.judges.lexical.numbers import evened_dates, evened_numbers, is_even, numbered

LONGEST_PIECE = 600
STRUCTURED = 0.5
LONGEST_FALSE = 10
_FEWEST_LINES = 3

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[a-z])_(?=[a-z])")
_HINTS_AT_JOINED = re.compile(r"[a-z][A-Z_]")
_HINTS_AT_TIME_OR_DATE = re.compile(r"\d(?: ?[:aApP]|[-/.]\d)")
_TIME = re.compile(r"(?<![\d:.,])(\d{1,2})(?::(\d{1,2})(?::\d{2})?)?(?: ?([ap])\.?m\b\.?)?(?![\d:])", re.IGNORECASE)
_SPAN = re.compile(
    r"(?<![\d:.,])(\d{1,2}(?::\d{2})?)(?= ?(?:-|–|to|until|till) ?\d{1,2}(?::\d{2})? ?([ap])\.?m\b)", re.IGNORECASE
)
_LINE = re.compile(r"[^\S\n]*[\"']?[^\W_][\w &/().'\"-]{0,60}?[\"']? ?[:=] ?\S")
_BRACKETS = re.compile(r"\s*[\[{]")
_BLANK_LINE = re.compile(r"\n[^\S\n]*+\n\s*+")
_NOISE = re.compile(r"[\"'“”]")
_FALSE = frozenset({"no", "false", "none", "null", "n/a", "nan", ""})


def comparable(text: str) -> Sequence[str]:
    """The tokens of a text with normalized times, numbers and dates, and with joined words split. Case is kept."""
    return numbered(tokens(evened(text)))


def comparable_low(text: str) -> Sequence[str]:
    """The same tokens in lower case."""
    even = evened(text)
    if even.isascii():
        low = tokens(even.lower())
        if is_even(low):
            return low
    return [token.lower() for token in numbered(tokens(even))]


def evened(text: str) -> str:
    """The text with normalized clock times (`5:30 PM`, `17:30` and `17:30:00` become `17h30`), joined words split
    (`WiFi` and `wi_fi` become `Wi Fi` and `wi fi`), and dates and Chinese numerals as figures."""
    if _HINTS_AT_JOINED.search(text):
        text = _CAMEL.sub(" ", text)
    if _HINTS_AT_TIME_OR_DATE.search(text):
        text = evened_dates(_TIME.sub(_clock, _SPAN.sub(r"\1 \2m", text)))
    return evened_numbers(text)


def _clock(found: re.Match[str]) -> str:
    hour, minute, half = int(found[1]), found[2], (found[3] or "").lower()
    if (minute is None and not half) or hour > 24 or int(minute or 0) > 59:
        return found[0]
    if half:
        hour = hour % 12 + 12 * (half == "p")
    return f" {hour}h{int(minute or 0):02d} "


def parts(passage: str) -> tuple[str, ...]:
    """The blocks of a passage between blank lines; JSON is one block. Joined passages are thus like separate ones."""
    if "\n" not in passage or _BRACKETS.match(passage):
        return (passage,)
    return tuple(part for part in _BLANK_LINE.split(passage) if part.strip())


def is_structured(passage: str) -> bool:
    """Whether a passage looks like fields and values, not prose: JSON, a Python literal, lines of `key: value`."""
    if _BRACKETS.match(passage) and ":" in passage:
        return True
    lines = [line for line in passage.split("\n") if line.strip()]
    keyed = sum(_LINE.match(line) is not None for line in lines)
    return len(lines) >= _FEWEST_LINES and keyed >= STRUCTURED * len(lines)


def pieces(passage: str, *, structured: bool) -> Iterator[str]:
    """The sentences of a passage, or the fields and sentences of a structured one, up to LONGEST_PIECE characters.

    A line that states a false field is a piece in any passage.
    """
    if not structured:
        for false, lines in itertools.groupby(passage.split("\n"), is_false_field):
            for sentence in map(str.strip, lines) if false else sentences("\n".join(lines)):
                yield from _cut(sentence)
        return
    text = "\n".join(fields(passage)) if _BRACKETS.match(passage) else passage
    for line in text.split("\n"):
        if len(line) <= LONGEST_PIECE // 2:
            if line.strip():
                yield line.strip()
        else:
            for sentence in sentences(line):
                yield from _cut(sentence)


def _cut(sentence: str) -> Iterator[str]:
    """An extremely long sentence, cut at spaces, so that no piece contains all words."""
    start = 0
    while len(sentence) - start > LONGEST_PIECE:
        end = sentence.rfind(" ", start + LONGEST_PIECE // 2, start + LONGEST_PIECE)
        end = end if end > 0 else start + LONGEST_PIECE
        yield sentence[start:end]
        start = end
    yield sentence[start:]


_TOKEN = re.compile(
    r"\"[^\"\\]*+(?:\\.[^\"\\]*+)*\"|'[^'\\]*+(?>(?:(?:\\.|(?<=\w)'(?=\w))[^'\\]*+)*)'"
    r"|[\[\]{}:,]|[^\s\[\]{}:,\"'][^\[\]{},\"'\n]*+|[\"']"
)
_DEEPEST = 12


def fields(text: str) -> Iterator[str]:
    """JSON or a Python literal as lines of the form `key key: value`. Not recursive, and accepts any text.

    A list of plain values is one line. Invalid JSON is returned as its words, in order.
    """
    path: list[str] = []
    key, values = "", list[str]()

    def line() -> Iterator[str]:
        if values:
            head = " ".join([*path[-_DEEPEST:], key]).strip()
            yield f"{head}: {', '.join(values)}" if head else ", ".join(values)

    marks = _TOKEN.findall(text)
    for place, mark in enumerate(marks):
        following = marks[place + 1] if place + 1 < len(marks) else ""
        if mark in ("{", "["):
            yield from line()
            path.append(key)
            key, values = ("", []) if mark == "{" else (key, [])
            if mark == "[":
                path[-1] = ""
        elif mark in ("}", "]"):
            yield from line()
            key, values = path.pop() if path else "", []
        elif mark in (":", ","):
            continue
        elif following == ":" or mark.endswith(":"):
            yield from line()
            key, values = _bare(mark).rstrip(":"), []
        else:
            values.append(_bare(mark))
    yield from line()


def _bare(token: str) -> str:
    token = token.strip()
    if len(token) > 1 and token[0] in "\"'" and token[-1] == token[0]:
        token = token[1:-1].replace('\\"', '"').replace("\\n", " ").replace("\\'", "'")
    return token


def false_key(line: str) -> str | None:
    """The key of a field with a false, missing or "no" value; None for any other line."""
    key, colon, value = line.rpartition(":")
    return key if colon and len(value) < LONGEST_FALSE and _NOISE.sub("", value).strip().lower() in _FALSE else None


def is_false_field(line: str) -> bool:
    """Whether a line of any text is a field with a false value, such as `outdoor seating: no`. In prose, a line that
    ends with a colon is none."""
    key, _, value = line.partition(":")
    return bool(value.strip()) and _LINE.match(line) is not None and false_key(line) == key
