"""A sample as the fields of a form, and back: what wasn't edited stays as it is, to the character.

A browser changes line breaks, can't send lone surrogates, and shows nothing of invisible characters. A text with any of
these is shown with escapes, and so is a backslash in it. A field is changed only if what is sent differs from what was
shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from markupsafe import Markup, escape

from evalstone._core.display import UNLIMITED, shortlist, visible
from evalstone._core.guards import is_array, is_object
from evalstone._core.redaction import redacted
from evalstone.datasets.json_rows import parse_json
from evalstone.datasets.stored import sample_of, sample_row
from evalstone.errors import ConfigError, DataError, invalid
from evalstone.types import LISTS, SAMPLE_FIELDS, Role
from evalstone.view.responses import BadAddress

LONGEST_FIELD = UNLIMITED
"""The most characters of a field that can be edited."""
LONGEST_FORM = 400_000
"""The most characters of all fields that can be edited together."""
MOST_PASSAGES = 20
"""The most passages that have fields of their own."""
BEGINNING = 2000
"""The characters that are shown of a field that is too long."""
TEXTS = ("input", "output", "reference", "instructions")
LABELS: Mapping[str, str] = {"output": "answer", "reference": "expected answer"}
"""What fields are called on pages, where that differs from their names."""
_ESCAPE = re.compile(r"\\(\\|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|)")
_SELECTORS = ("\ufe00", "\ufe0f")


@dataclass(frozen=True)
class Field:
    """A field of the form.

    Attributes:
        name: That of the field of the form.
        label: What it is called on the page.
        shown: What the form has.
        is_text: Whether it is a text, not JSON.
        is_escaped: Whether it has escapes.
        locked: Why it can't be edited here; "" if it can.
        is_usual: Whether it is always shown.
        empty: The name of the field that says whether nothing is an empty text, and not no text; "" if it is no text.
        is_empty: Whether it is an empty text.
    """

    name: str
    label: str
    shown: str
    is_text: bool = True
    is_escaped: bool = False
    locked: str = ""
    is_usual: bool = True
    empty: str = ""
    is_empty: bool = False

    @property
    def html(self) -> Markup:
        """What the form has, to the character."""
        return escape(self.shown)

    @property
    def rows(self) -> int:
        """The number of lines of the field."""
        lines = sum(1 + len(line) // 90 for line in self.shown.split("\n"))
        return max(1 if self.name == "group" else 2, min(lines, 14))


def with_escapes(text: str) -> str:
    r"""A text with each backslash, and each character that can't be seen or sent, as an escape: `\\`, `\u202e`."""
    return "".join(map(_escaped, text))


def without_escapes(text: str, name: str) -> str:
    """The text that `with_escapes` shows. Raises BadAddress for a backslash that begins no escape."""

    def character(match: re.Match[str]) -> str:
        code = match[1]
        if code == "\\":
            return code
        if not code or int(code[1:], 16) > 0x10FFFF:
            raise BadAddress(
                f"{name}: a backslash begins \\\\, \\uXXXX or \\UXXXXXXXX here, because this text has invisible "
                f"characters: {text[match.start() : match.start() + 12]!r}"
            )
        return chr(int(code[1:], 16))

    return _ESCAPE.sub(character, text)


def _escaped(each: str) -> str:
    if each == "\\":
        return "\\\\"
    if _is_plain(each):
        return each
    return f"\\u{ord(each):04x}" if ord(each) < 0x10000 else f"\\U{ord(each):08x}"


def _is_plain(each: str) -> bool:
    return each in "\n\t" or (each.isprintable() and not _SELECTORS[0] <= each <= _SELECTORS[1])


def _text(name: str, label: str, old: str | None, *, is_usual: bool = True) -> Field:
    """The field for a text; None for no text."""
    text, empty, is_empty = old or "", f"empty {name}", old == ""
    windows = "\r" in text and "\r" not in text.replace("\r\n", "") and "\n" not in text.replace("\r\n", "")
    plain = text.replace("\r\n", "\n") if windows else text
    if "\r" in plain or visible(plain) != plain:
        return Field(name, label, with_escapes(text), is_escaped=True, is_usual=is_usual, empty=empty)
    return Field(name, label, plain, is_usual=is_usual, empty=empty, is_empty=is_empty)


def _json(name: str, value: Any, *, is_usual: bool = False) -> Field:
    text = "" if value is None else json.dumps(value, ensure_ascii=False, indent=1)
    if visible(text) != text:
        text = "".join(each if _is_plain(each) else json.dumps(each)[1:-1] for each in text)
    return Field(name, LABELS.get(name, name.replace("_", " ")), text, is_text=False, is_usual=is_usual)


def fields_of(row: Mapping[str, Any]) -> list[Field]:
    """The fields of the form of a sample. row: its fields by name."""
    fields, size = list[Field](), 0
    for each in _fields(row):
        each = _locked(each)
        if not each.locked and size + len(each.shown) > LONGEST_FORM:
            each = _as_locked(each, f"is in a sample with more than {LONGEST_FORM:,} characters")
        size += 0 if each.locked else len(each.shown)
        fields.append(each)
    return fields


def text_field(name: str, label: str, text: str | None) -> Field:
    """The field of a form for a text; None for no text."""
    return _locked(_text(name, label, text))


def sent_text(each: Field, sent: Mapping[str, str], old: str | None) -> str | None:
    """The text that a form says; None for none. old: the one that the field was made from. Errors as for `edited`."""
    if each.locked or each.name not in sent:
        return old
    text = sent[each.name].replace("\r\n", "\n")
    if not text:
        return "" if sent.get(each.empty) else None
    return old if text == each.shown else _read(each, text, old)


def _locked(each: Field) -> Field:
    """A field as it is, unless it can't be edited."""
    if len(each.shown) > LONGEST_FIELD:
        return _as_locked(each, f"has {len(each.shown):,} characters, and a page edits at most {LONGEST_FIELD:,}")
    if redacted(str(each.html)) != str(each.html):
        return _as_locked(each, "has a secret, which pages replace by ***")
    return each


def _as_locked(each: Field, why: str) -> Field:
    return replace(each, shown=each.shown[:BEGINNING], locked=why)


def _fields(row: Mapping[str, Any]) -> Iterator[Field]:
    for name in TEXTS:
        yield _text(name, LABELS.get(name, name), row.get(name))
    passages: list[str] | None = row.get("context")
    if passages is None or len(passages) <= MOST_PASSAGES:
        for number, passage in enumerate(passages or (), start=1):
            yield _text(f"passage {number}", f"passage {number}", passage)
        yield _text(f"passage {len(passages or ()) + 1}", "another passage", None)
    else:
        yield _json("context", passages, is_usual=True)
    for name in SAMPLE_FIELDS:
        if name == "group":
            yield _text(name, name, row.get(name), is_usual=False)
        elif name not in (*TEXTS, "context"):
            yield _json(name, row.get(name))


def edited(row: Mapping[str, Any], sent: Mapping[str, str]) -> Mapping[str, Any]:
    """A sample as a form says. A field that is emptied is left out, unless the form says that it is an empty text.

    Args:
        row: Its fields by name, as the form was made from.
        sent: The fields of the form. One that isn't there is unchanged.

    Raises:
        BadAddress: A field has something else than it may have.
    """
    changed = dict(row)
    passages: list[str] = [*(row.get("context") or ())]
    texts, values = list[str | None](), dict[str, Any]()
    for each in fields_of(row):
        if each.name.startswith("passage "):
            number = int(each.name.split()[1]) - 1
            texts.append(sent_text(each, sent, passages[number] if number < len(passages) else None))
        elif each.is_text:
            changed[each.name] = sent_text(each, sent, row.get(each.name))
        elif not each.locked and (text := sent.get(each.name, each.shown).replace("\r\n", "\n")) != each.shown:
            changed[each.name] = values[each.name] = _value(each, text)
    if texts:
        kept = [text for text in texts if text is not None]
        if kept != passages:
            changed["context"] = kept
    stored = _stored({name: value for name, value in changed.items() if value is not None})
    for name, value in values.items():
        _check_kept(name, value, stored.get(name))
    return stored


def _stored(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A sample as its row is stored. Raises BadAddress for one that is none."""
    for name in LISTS:
        for number, item in enumerate(_list(name, row.get(name, [])), start=1):
            if name == "messages" and is_object(item) and item.get("role") not in get_args(Role):
                allowed = f"one of {', '.join(get_args(Role))}"
                raise BadAddress(invalid(f"message {number}: role", allowed, item.get("role")))
    try:
        return sample_row(sample_of(row))
    except (ConfigError, TypeError, AttributeError, RecursionError) as error:
        raise BadAddress(f"This can't be saved: {error}") from None


def _list(name: str, value: Any) -> list[Any]:
    if not is_array(value):
        raise BadAddress(invalid(name, "a list", value))
    return [*value]


def _check_kept(name: str, sent: Any, stored: Any) -> None:
    """Raise BadAddress for an entry of an object that would be dropped, such as one that is misspelled."""
    if is_object(sent) and is_object(stored):
        for key, value in sent.items():
            if key not in stored and value not in (None, [], {}, False):
                raise BadAddress(f"{name} has no entry {key!r}; it can have {shortlist(stored)}")
            _check_kept(f"{name}: {key}", value, stored.get(key))
    elif is_array(sent) and is_array(stored):
        for number, (one, other) in enumerate(zip(sent, stored, strict=False), start=1):
            _check_kept(f"{name}: item {number}", one, other)


def _read(each: Field, text: str, old: str | None) -> str:
    """The text that a field has. old: the one before."""
    if each.is_escaped:
        return without_escapes(text, each.label)
    return text.replace("\n", "\r\n") if old is not None and "\r\n" in old else text


def _value(each: Field, text: str) -> Any:
    if not text.strip():
        return None
    try:
        return parse_json(text, finite=True)
    except DataError as error:
        raise BadAddress(f"{each.label} must be JSON: {error}") from None
