"""Normalize texts for comparison: times, numbers and joined words in one form, structured sources as lines.

All functions take time linear in the length of the text, for any text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from evalstone._core.text import QUESTION_MARKS, sentences, tokens, unmarked
from evalstone.judges.lexical.numbers import evened_dates, evened_numbers, is_even, numbered
from evalstone.judges.lexical.spaceless_negations import with_negations_apart
from evalstone.judges.lexical.units import spaced_units

LONGEST_PIECE = 600
STRUCTURED = 0.5
LONGEST_FIELD = 200
_FEWEST_LINES = 3

# Not "kW" or "iPhone".
_CAMEL = re.compile(r"(?<=[A-Za-z][a-z])(?=[A-Z])|(?<=[a-z])_(?=[a-z])")
_HINTS_AT_JOINED = re.compile(r"[a-z][A-Z_]")
_HINTS_AT_TIME_OR_DATE = re.compile(r"\d(?: ?[:aApP]|[-/.]\d)")
_TIME = re.compile(r"(?<![\d:.,])(\d{1,2})(?::(\d{1,2})(?::\d{2})?)?(?: ?([ap])\.?m\b\.?)?(?![\d:])", re.IGNORECASE)
_SPAN = re.compile(
    r"(?<![\d:.,])(\d{1,2}(?::\d{2})?)(?= ?(?:-|–|to|until|till) ?\d{1,2}(?::\d{2})? ?([ap])\.?m\b)", re.IGNORECASE
)
# "First, mix the flour": the ordinal numbers the sentence, not anything in it. "No, it is": nothing in it is negated.
_OPENING = re.compile(r"\A\W{0,5}(?:first|second|third|fourth|fifth|no), ", re.IGNORECASE)
_LONGEST_OPENING = 15
_NO_MORE = re.compile(r"\b(?:no|not) (more|greater|less|fewer) than\b", re.IGNORECASE)
_APOSTROPHE = re.compile("(?<=\\w)[`\u00b4\u2018\u2019\u02bc\uff07](?=\\w)")
_LINE = re.compile(r"[^\S\n]*[\"']?[^\W_][\w &/().'\"-]{0,60}?[\"']? ?[:=] ?\S")
_BRACKETS = re.compile(r"\s*[\[{]")
_BLANK_LINE = re.compile(r"\n[^\S\n]*+\n\s*+")
_KEY = re.compile(r"\s*([^\W_][\w &/().'’-]{0,60}?)\s*(?:[:：=]|\s[-–—]{1,3}\s)")
_EMPHASIS = re.compile(r"[*`\"“”]|(?<!\w)['_]+|['_]+(?!\w)")
_BETWEEN_FIELDS = re.compile(r"[;,|·•](?=\s|\Z)")
_LABEL = re.compile(r"\W{0,5}\b(?:q|question|a|answer)\b\W{0,4}[:.]\W{0,4}(?=\w)", re.IGNORECASE)
_ANSWER = re.compile(r"\W{0,5}\b(yes|no)\b(?=\W{0,3}\Z|[.,;:!–—])[\W_]{0,4}", re.IGNORECASE)
_AROUND_QUESTIONS = " \t*_\"'”’)"
_QUESTION_MARKS = tuple(QUESTION_MARKS)
_AROUND_VALUES = " \t.,;!"
_BOOLEANS: Mapping[str, bool] = {
    **dict.fromkeys(
        ("no", "false", "none", "null", "n/a", "nan", "not available", "unavailable", "not offered"), False
    ),
    **dict.fromkeys(("✗", "✘", "❌"), False),
    **dict.fromkeys(("yes", "true", "available", "✓", "✔", "✅"), True),
}


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
    (`WiFi`, `wi_fi` and `5kg` become `Wi Fi`, `wi fi` and `5 kg`), and dates, prices and Chinese numerals as figures.
    Apostrophes are straight, and `no more than` is `at most`. An opening such as "First, " or "No, " is dropped.
    Negations in scripts without spaces are words of their own."""
    text = straight(text)
    if "," in text[:_LONGEST_OPENING]:
        text = _OPENING.sub("", text)
    if " than" in text:
        text = _NO_MORE.sub(lambda found: "at most" if found[1][0] in "mMgG" else "at least", text)
    if _HINTS_AT_JOINED.search(text):
        text = _CAMEL.sub(" ", text)
    if _HINTS_AT_TIME_OR_DATE.search(text):
        text = evened_dates(_TIME.sub(_clock, _SPAN.sub(r"\1 \2m", text)))
    return spaced_units(with_negations_apart(evened_numbers(text)))


def straight(text: str) -> str:
    """The text with straight apostrophes, and without soft hyphens."""
    if text.isascii() and "`" not in text:
        return text
    return _APOSTROPHE.sub("'", text.replace("\u00ad", ""))


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

    A line that is a boolean field is a piece in any passage.
    """
    if not structured:
        for alone, lines in itertools.groupby(_lines(passage), lambda line: boolean_field(line) is not None):
            for sentence in map(str.strip, lines) if alone else _answered(sentences("\n".join(lines))):
                yield from _cut(sentence)
        return
    for line in "\n".join(fields(passage)).split("\n") if _BRACKETS.match(passage) else _lines(passage):
        if len(line) <= LONGEST_PIECE // 2:
            if line.strip():
                yield line.strip()
        else:
            for sentence in sentences(line):
                yield from _cut(sentence)


def _lines(passage: str) -> Iterator[str]:
    """The lines of a passage. A line of several fields, one of them a yes or a no, is several lines."""
    for line in _answered(passage.split("\n")) if "?" in passage else passage.split("\n"):
        each = _BETWEEN_FIELDS.split(line)
        if len(each) > 1 and any(map(boolean_field, each)) and all(_LINE.match(part) for part in each):
            yield from each
        else:
            yield line


def _answered(texts: Iterable[str]) -> Iterator[str]:
    """Sentences or lines, with a yes or no as a part of the question that it answers: `Are dogs allowed? No`."""
    asked = ""
    for text in texts:
        if asked:
            label = _LABEL.match(text)
            answer = _ANSWER.match(text, label.end() if label else 0)
            yield f"{_LABEL.sub('', asked, 1)} {answer[1]}." if answer else asked
            text = text[answer.end() :] if answer else text
        asked = text if text.rstrip(_AROUND_QUESTIONS).endswith(_QUESTION_MARKS) else ""
        if text and not asked:
            yield text
    if asked:
        yield asked


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


class BooleanField(NamedTuple):
    """A key, and whether its value is yes or no."""

    key: str
    value: bool


def boolean_field(line: str, *, structured: bool = False) -> BooleanField | None:
    """A line as a field whose value is a yes or a no, such as `outdoor seating: no`, `**WiFi**: Yes.` or `lot = false`;
    None for any other line.

    In a structured source, a key may be any text, and an empty value is a no. In prose, a line that ends with a colon
    introduces something.
    """
    if structured:
        key, colon, value = line.rpartition(":")
        found = _boolean(value) if _bare(value) else False
        if colon and found is not None:
            return BooleanField(key, found)
    plain = _EMPHASIS.sub("", unmarked(line[:LONGEST_FIELD]))
    start = _KEY.match(plain)
    found = _boolean(plain[start.end() :]) if start else None
    return BooleanField(start[1], found) if start and found is not None else None


def _boolean(value: str) -> bool | None:
    """Whether a value is a yes or a no, with or without a remark in parentheses."""
    return _BOOLEANS.get(_EMPHASIS.sub("", value[:LONGEST_FIELD].partition("(")[0]).strip(_AROUND_VALUES).lower())
