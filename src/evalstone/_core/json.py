"""Conversion of values to JSON data, and content hashes."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import json.encoder
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast


def to_jsonable(value: Any) -> Any:
    """A value as JSON data: dataclasses and mappings become objects with text keys, tuples and sets become lists."""
    return _plain(value, _ATOMS)


def storable(text: str) -> str:
    r"""Text that every database accepts: lone surrogates and NUL are escaped as in JSON (`\ud83d`, `\u0000`)."""
    if "\x00" in text:
        text = text.replace("\x00", "\\u0000")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def strict_jsonable(value: Any) -> Any:
    """A value as JSON data that survives a round trip through JSON text.

    Raises:
        ValueError: The value can't be written as JSON: it contains NaN, infinity or itself, or is nested too deeply.
    """
    try:
        plain = _plain(value, _ATOMS)
        _STRICT(plain)
    except RecursionError:
        raise ValueError(_ENDLESS) from None
    return plain


def _plain(value: Any, atoms: frozenset[type[Any]]) -> Any:
    """A value as JSON data. Values with a type in `atoms` are unchanged. If float isn't among these, 1.0 becomes 1."""
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in atoms:
        return value
    if kind is list or kind is tuple:
        return [item if type(item) in atoms else _plain(item, atoms) for item in value]
    if kind is dict:
        return {str(k): v if type(v) in atoms else _plain(v, atoms) for k, v in value.items()}
    if names := _field_names(kind):
        return {name: v if type(v := getattr(value, name)) in atoms else _plain(v, atoms) for name in names}
    if isinstance(value, float):
        return int(value) if float not in atoms and value.is_integer() else float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v, atoms) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [_plain(item, atoms) for item in cast("Sequence[Any]", value)]
    if isinstance(value, set | frozenset):  # sorted, because the order of a set differs between processes
        return sorted((_plain(item, atoms) for item in cast("set[Any]", value)), key=_CANONICAL)
    if callable(dump := getattr(kind, _OWN_FORM, None)):
        return _plain(dump(value), atoms)
    if callable(dump := getattr(kind, "model_dump", None)):  # a pydantic model, without importing pydantic
        return _plain(dump(value, mode="json"), atoms)
    return str(value)


def encoder(
    *, ensure_ascii: bool = True, sort_keys: bool = False, compact: bool = False, allow_nan: bool = True
) -> Callable[[object], str]:
    """What writes plain data as JSON, as `json.JSONEncoder.encode` does, but in half the time for what is short: that
    makes an encoder for each value. Data that contain themselves are a RecursionError.

    compact: Without spaces.
    """
    usual = json.JSONEncoder(
        ensure_ascii=ensure_ascii,
        sort_keys=sort_keys,
        check_circular=False,
        allow_nan=allow_nan,
        separators=(",", ":") if compact else None,
    )
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # Python without its modules in C
        return usual.encode
    quoted: Callable[[str], str] = getattr(
        json.encoder, "encode_basestring_ascii" if ensure_ascii else "encode_basestring"
    )
    separators = usual.key_separator, usual.item_separator
    pieces = make(None, usual.default, quoted, None, *separators, sort_keys, False, allow_nan)
    return lambda value: quoted(value) if type(value) is str else "".join(pieces(value, 0))


def value_of(text: str) -> Any:
    """The value of a JSON text, as by `json.loads` but in half the time for a short one: without looking for whitespace
    around it."""
    try:
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        return json.loads(text)
    return value if end == len(text) else json.loads(text)


_DECODER = json.JSONDecoder()
_ATOMS: frozenset[type[Any]] = frozenset({str, int, float, bool, type(None)})
_HASHED_ATOMS = _ATOMS - {float}
_OWN_FORM = "__evalstone_data__"
"""The method of a type of evalstone's that returns its values as plain data."""
LONGEST_TEXT, BEGINNING = 200, 40
"""The most characters of a text in a signature, and those of the beginning of a longer one."""
_ENDLESS = "it is nested too deeply, or contains itself"
# What is encoded is plain data, so it can't contain itself.
_STRICT = encoder(allow_nan=False)
_CANONICAL = encoder(sort_keys=True, compact=True)
_STRICT_CANONICAL = encoder(sort_keys=True, compact=True, allow_nan=False)


@functools.cache
def _field_names(kind: type[Any]) -> tuple[str, ...]:
    """The field names of a dataclass; empty for any other type, and for one that says how it is written."""
    is_plain = dataclasses.is_dataclass(kind) and not hasattr(kind, _OWN_FORM)
    return tuple(field.name for field in dataclasses.fields(kind)) if is_plain else ()


def finite(number: float) -> float | str | None:
    """A number as JSON has it: NaN as None, infinity as text."""
    return None if math.isnan(number) else str(number) if math.isinf(number) else number


def finite_constant(name: str) -> str | None:
    """The value of NaN, Infinity or -Infinity in a JSON text, as by `finite`: for `parse_constant` of a decoder."""
    return cast("str | None", finite(float(name)))


def content_hash(value: Any, *, strict: bool = False) -> str:
    """A hash of a value's content, stable across processes: 32 hexadecimal digits.

    Equal numbers have the same hash: 1 and 1.0, 0 and -0.0. True and 1 differ.

    Raises:
        ValueError: The value contains itself or is nested too deeply; if `strict`, also if it contains NaN or infinity.
    """
    canonical = _STRICT_CANONICAL if strict else _CANONICAL
    try:
        text = canonical(_plain(value, _HASHED_ATOMS))
    except RecursionError:
        raise ValueError(_ENDLESS) from None
    return text_hash(text)


def text_hash(text: str) -> str:
    """The `content_hash` of a value, from its canonical JSON: in ASCII, with sorted keys and without spaces."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def brief(value: Any) -> str:
    """A parameter's value for a signature: the value itself if it is short, else a hash of its content, behind the
    beginning of a text."""
    if isinstance(value, float):
        return text if float(text := f"{value:g}") == value else repr(value)
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:BEGINNING]}…{content_hash(value)[:8]}"
    if value is None or isinstance(value, bool | int | str):
        return str(value)
    return content_hash(value)[:8]
