"""Lists and objects that are written out in a text, as CSV files and spreadsheets store them.

A text is read if it is a whole JSON or Python list, tuple or object. It stays a text if it is prose, even if it begins
with a bracket: `[1] Smith et al.`, `[a link](https://…)`, `[ERROR] The disk is full.` Anything between the two is
refused, because a cut-off list read as text would be a single passage.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from evalstone._core.display import excerpt
from evalstone._core.files import check_containers
from evalstone._core.json import finite_constant
from evalstone._core.printed import STRING, read_printed
from evalstone.errors import DataError

MISSING = ("nan", "none", "null", "<na>", "nat")
"""Texts that libraries write for a missing value, in lower case."""
_DECODER = json.JSONDecoder(parse_constant=finite_constant)

_FIRST_TEXT = re.compile(rf"(?P<open>[\[({{])[\s\[({{]*+(?:{STRING})\s*+(?P<next>.?)", re.DOTALL)
_OPEN_TEXT = re.compile(r"""[\[({][\s\[({]*+["']""")
_NO_TEXTS = re.compile(r"\[[-+\d\s.,]*+\]?|\[\s*(?:None|nan|null|NaN)\s*[,\]].*", re.DOTALL)
_OBJECTS = re.compile(
    # A list of objects; a link whose text looks like one is prose.
    r"\[\s*(?![^\]\n]*\]\()(?:b['\"]|[A-Za-z_][\w.]*\(\s*(?:\w+\s*=|[\[{\"']|\))|<[\w.]+ (?:object )?at 0x)"
    # One object of a library for data or retrieval, or a list in one.
    r"|(?:(?:np\.|numpy\.|pd\.)?(?:array|Series|Index|deque|tensor|dict_values|dict_keys)|frozenset|set)\(\s*[\[{(]"
    r"|(?:Document|TextNode|NodeWithScore|ScoredPoint|Row|[A-Z]\w*Message)\(\s*\w+\s*="
    r"|page_content=['\"]"
    r"|shape: \(\d+,\)\s+Series: "  # of polars
    r"|<[\w.]+ (?:object )?at 0x[0-9a-fA-F]+>"
)
_CALLS = re.compile(r"[:\[,(]\s*+(?:b\"|[A-Za-z_][\w.]*+\()")
_STRINGS = re.compile(STRING, re.DOTALL)
_NO_COMMAS = re.compile(r"\}\s++\{")
_SERIES = re.compile(r"\d+ {2,}.*\bdtype: \w+\s*\Z", re.DOTALL)
_FOLLOWS = re.compile(r"""\s*,?\s*["'\[{]""")


def written_value(text: str, *, sets: bool = False) -> Any:
    """The list or object that a text writes out as JSON or as Python prints it; any other text unchanged.

    Tuples, arrays and the texts that numpy prints without commas are lists. Objects of data classes and of LangChain
    are objects with their fields. `nan` and `None` in a list become None.

    Args:
        text: The text.
        sets: Whether a set of texts is read too, as a frozenset.

    Raises:
        DataError: The text is a list that is cut off, broken or has no commas or quotes, or an object that doesn't
            print its value. The message continues the name of the field.
    """
    written = text.strip()
    if written[:1] not in ("[", "(", "{") and not _is_printed(written):
        return text
    check_containers(written)
    try:
        found = _read(written)
    except RecursionError:
        raise DataError("is nested too deeply") from None
    value, end = found or (None, 0)
    if isinstance(value, list | dict | frozenset):
        if end == len(written):
            if isinstance(value, frozenset) and not sets:
                raise _refused("must be a list, not a set, which has no order", written)
            return cast("Any", value)
        if not _FOLLOWS.match(written, end) and not _OBJECTS.match(written):
            return text
        raise _refused(f"must be one list, but {excerpt(written[end:])} follows its end", written)
    _check_brackets(written)
    if _is_printed(written):
        raise _refused("must be a list, not objects as Python prints them", written)
    return text


def written_list(text: str, *, sets: bool = False) -> Any:
    """As `written_value`, for a field that is a list. Also raises DataError for the text of a missing value."""
    if len(text) < 20 and text.strip().casefold() in MISSING:
        raise DataError(f"must be empty if it is missing, not the text {excerpt(text.strip())}")
    return written_value(text, sets=sets)


def _refused(problem: str, text: str) -> DataError:
    hint = 'save lists as JSON, and a text that begins like a list as ["…"]'
    return DataError(f"{problem}: {excerpt(text)}; {hint}")


def _is_printed(text: str) -> bool:
    """Whether a text is objects as Python prints them."""
    return bool(_OBJECTS.match(text) or (text[:1].isdigit() and "dtype: " in text[-40:] and _SERIES.match(text)))


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
    return read_printed(text)
