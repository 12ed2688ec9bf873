"""Lists and objects that are written out in a text, as CSV files and spreadsheets store them.

A text is read if it is a whole JSON or Python list, tuple or object. It stays a text if it is prose, even if it begins
with a bracket: `[1] Smith et al.`, `[a link](https://…)`, `[ERROR] The disk is full.` Anything between the two is
refused, because a cut-off list read as text would be a single passage.
"""

from __future__ import annotations

import json
import re
from typing import Any

from evalstone._core.display import excerpt
from evalstone._core.files import check_containers
from evalstone._core.json import finite_constant
from evalstone._core.syntax import parse_literal
from evalstone.errors import DataError

MISSING = ("nan", "none", "null", "<na>", "nat")
"""Texts that libraries write for a missing value, in lower case."""
_STRING = r"""'[^'\\]*+(?:\\.[^'\\]*+)*'|"[^"\\]*+(?:\\.[^"\\]*+)*\""""
_TOKEN = re.compile(
    rf"(?P<space>\s++)|(?P<open>[\[({{])|(?P<close>[\])}}])|(?P<mark>[,:])|(?P<string>{_STRING})"
    r"|(?P<number>-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.]))|(?P<word>None|True|False|nan)\b",
    re.DOTALL,
)
_WORDS = {"None": "null", "True": "true", "False": "false", "nan": "null"}
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_DECODER = json.JSONDecoder(parse_constant=finite_constant)

_FIRST_TEXT = re.compile(rf"(?P<open>[\[({{])[\s\[({{]*+(?:{_STRING})\s*+(?P<next>.?)", re.DOTALL)
_OPEN_TEXT = re.compile(r"""[\[({][\s\[({]*+["']""")
_NO_TEXTS = re.compile(r"\[[-+\d\s.,]*+\]?|\[\s*(?:None|nan|null|NaN)\s*[,\]].*", re.DOTALL)
_OBJECTS = re.compile(
    # A list of objects; a link whose text looks like one is prose.
    r"\[\s*(?![^\]\n]*\]\()(?:b['\"]|[A-Za-z_][\w.]*\(\s*(?:\w+\s*=|[\[{\"']|\))|<[\w.]+ (?:object )?at 0x)"
    # One object of a library for data or retrieval, or a list in one.
    r"|(?:(?:np\.|numpy\.|pd\.)?(?:array|Series|Index|deque|tensor|dict_values|dict_keys)|frozenset|set)\(\s*[\[{(]"
    r"|(?:Document|TextNode|NodeWithScore|ScoredPoint|Row|[A-Z]\w*Message)\(\s*\w+\s*="
    r"|page_content=['\"]"
    r"|<[\w.]+ (?:object )?at 0x[0-9a-fA-F]+>"
)
_CALLS = re.compile(r"[:\[,(]\s*+(?:b\"|[A-Za-z_][\w.]*+\()")
_STRINGS = re.compile(_STRING, re.DOTALL)
_NO_COMMAS = re.compile(r"\}\s++\{")
_SERIES = re.compile(r"\d+ {2,}.*\bdtype: \w+\s*\Z", re.DOTALL)
_FOLLOWS = re.compile(r"""\s*,?\s*["'\[{]""")


def written_value(text: str) -> Any:
    """The list or object that a text writes out as JSON or as a Python literal; any other text unchanged.

    Tuples become lists. `nan` and `None` in a list become None.

    Raises:
        DataError: The text is a list that is cut off, broken or has no commas or quotes (as numpy and Spark print it),
            or an object as Python prints it. The message continues the name of the field.
    """
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] not in ("[", "(", "{"):
        _check_prose(text)
        return text
    written = text.strip()
    check_containers(written)
    try:
        found = _read(written)
    except RecursionError:
        raise DataError("is nested too deeply") from None
    if found is not None:
        value, end = found
        if end == len(written):
            return value
        if not _FOLLOWS.match(written, end):
            return text
        raise _refused(f"must be one list, but {excerpt(written[end:])} follows its end", written)
    _check_brackets(written)
    _check_prose(written)
    return text


def written_list(text: str) -> Any:
    """As `written_value`, for a field that is a list. Also raises DataError for the text of a missing value."""
    if len(text) < 20 and text.strip().casefold() in MISSING:
        raise DataError(f"must be empty if it is missing, not the text {excerpt(text.strip())}")
    return written_value(text)


def _refused(problem: str, text: str) -> DataError:
    hint = 'save lists as JSON, and a text that begins like a list as ["…"]'
    return DataError(f"{problem}: {excerpt(text)}; {hint}")


def _check_prose(text: str) -> None:
    """Raise DataError for objects as Python prints them."""
    text = text.lstrip()
    if _OBJECTS.match(text) or (text[:1].isdigit() and "dtype: " in text[-40:] and _SERIES.match(text)):
        raise _refused("must be a list, not objects as Python prints them", text)


def _check_brackets(text: str) -> None:
    """Raise DataError for a text with brackets that is no list that can be read, and no prose either."""
    bare = _STRINGS.sub('""', text)
    if _OPEN_TEXT.match(text) and bare.endswith(("]", "}", ")")):
        if _NO_COMMAS.search(bare):
            raise _refused("must be a list with commas (numpy prints arrays without)", text)
        if _CALLS.search(bare):
            raise _refused("must be plain data, without objects as Python prints them", text)
    broken = "must be a complete list; this one is cut off or broken"
    first = _FIRST_TEXT.match(text)
    if first is not None:
        follows, bracket = first["next"], first["open"]
        after = text[first.end() :].lstrip()[:1]
        if (follows and follows in "'\"") or (follows == "." and bracket == "["):
            raise _refused("must be a list with commas (numpy prints arrays without)", text)
        if bracket == "{" and follows in (",", "}"):
            raise _refused("must be a list, not a set, which has no order", text)
        if follows in ("", ":", "]") or (follows == "," and (bracket != "(" or after in ("", "'", '"', ")"))):
            raise _refused(broken, text)
    elif _OPEN_TEXT.match(text) or _NO_TEXTS.fullmatch(text):
        raise _refused(broken, text)
    elif text.startswith("[") and "," in text and not _OBJECTS.match(text) and _encloses(text):
        raise _refused("must be a list with its texts in quotes (Spark prints lists without)", text)


def _encloses(text: str) -> bool:
    """Whether the bracket that closes the first one is the last character."""
    depth = 0
    for place in re.finditer(r"[\[\]]", text):
        depth += 1 if place[0] == "[" else -1
        if depth == 0:
            return place.end() == len(text)
    return False


def _read(text: str) -> tuple[Any, int] | None:
    """The value at the start of a text, and its end; None if there is none."""
    if not text.startswith("("):
        try:
            return _DECODER.raw_decode(text)
        except ValueError:
            pass
    return _python(text)


def _python(text: str) -> tuple[Any, int] | None:
    """The Python literal at the start of a text, and its end; None if there is none.

    It is rewritten as JSON, which has no implicit concatenation: `['a' 'b']` would be one text.
    """
    pieces: list[str] = []
    groups: list[tuple[str, int]] = []  # the brackets that are open, with the number of commas in each
    end = 0
    while match := _TOKEN.match(text, end):
        end, kind, piece = match.end(), match.lastgroup, match[0]
        match kind:
            case "space":
                continue
            case "open":
                groups.append((piece, 0))
                pieces.append("{" if piece == "{" else "[")
                continue
            case "close":
                bracket, commas = groups.pop()
                if _CLOSING[bracket] != piece or (piece == ")" and not commas and pieces[-1] != "["):
                    return None
                if pieces[-2:] in (["[", ","], ["{", ","]):
                    return None
                if pieces[-1] == ",":
                    pieces.pop()
                pieces.append("}" if piece == "}" else "]")
                if not groups:
                    break
                continue
            case "mark":
                if piece == ",":
                    groups[-1] = (groups[-1][0], groups[-1][1] + 1)
                elif len(pieces) > 1 and pieces[-2] in ("{", ",") and pieces[-1][0] not in '"[]{},:':
                    pieces[-1] = json.dumps(pieces[-1])  # a number as a key
                pieces.append(piece)
            case "string":
                try:
                    pieces.append(json.dumps(parse_literal(piece)))
                except (SyntaxError, ValueError):
                    return None
            case _:
                pieces.append(_WORDS.get(piece, piece))
    if groups:
        return None
    try:
        return _DECODER.decode(" ".join(pieces)), end
    except ValueError:
        return None
