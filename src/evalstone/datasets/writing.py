"""Writing text and JSON Lines files atomically."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from pathlib import Path

from evalstone._core.atomic_files import replacing
from evalstone._core.display import quoted
from evalstone._core.files import cannot_write, resolved
from evalstone._core.json import encoder, to_jsonable
from evalstone._core.redaction import redacted
from evalstone.errors import ConfigError

# Characters that end a line, change text direction, or can't be encoded. JSON escapes the rest of C0.
_HAZARDS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_LINES = encoder(ensure_ascii=False, allow_nan=False)


def json_line(obj: object) -> str:
    """A value as one line of JSON, without the line break. Dataclasses become objects.

    Text in any script stays readable. Line and paragraph separators, control characters, bidirectional controls and
    lone surrogates are escaped, so that no text can break the line or the terminal.

    Raises:
        ConfigError: A number is NaN or infinite, or the value is nested too deeply.
    """
    try:
        data = to_jsonable(obj)
    except (ValueError, RecursionError) as error:
        raise ConfigError("cannot be written as JSON: ", error) from None
    return plain_line(data)


def plain_line(data: object) -> str:
    """JSON data as one line, as by `json_line`."""
    try:
        text = _LINES(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError("cannot be written as JSON: ", error) from None
    if text.isascii() and "\x7f" not in text:
        return text
    return _HAZARDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def readable_json(data: object) -> str:
    """JSON data on several lines, with the escapes of `json_line`."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2)
    return _HAZARDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def write_jsonl(path: str | Path, rows: Iterable[object], *, redact: bool = True) -> None:
    """Write one JSON object per line, with `write_text`."""
    write_text(path, (json_line(row) + "\n" for row in rows), redact=redact)


def write_text(path: str | Path, parts: Iterable[str], *, redact: bool = True) -> None:
    """Write text in UTF-8, atomically (see `replacing`). Devices and pipes are written to, not replaced.

    redact: Replace secrets by `***`. Not for samples, which are stored unchanged, because their hash is the dataset's
    version.

    Raises:
        ConfigError: The path isn't a writable file.
        WriteError: The file can't be written completely, for example because the disk is full.
    """
    target = resolved(path)
    parts = map(redacted, parts) if redact else parts
    if target.exists() and not target.is_file():
        try:
            with target.open("w", encoding="utf-8", newline="\n") as device:
                device.writelines(parts)
        except OSError as error:
            raise cannot_write(f"cannot write {quoted(path)}", error) from error
        return
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
        try:
            text.writelines(parts)
        finally:
            text.detach()
