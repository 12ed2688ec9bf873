"""Writing files, whole or not at all; JSON Lines: one object a line."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError

# Text that could end a line, turn the direction of a terminal, or not be encoded. JSON escapes the rest of C0 itself.
_HAZARDS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def json_line(obj: object) -> str:
    """A value as one line of JSON, without the line break.

    Text stays readable in every script; line and paragraph separators, control characters, bidirectional controls and
    lone surrogates are escaped, so that no text can break the line or the terminal. Dataclasses become objects.
    Raises ConfigError for numbers that JSON cannot hold, and for what is nested too deeply.
    """
    try:
        text = json.dumps(to_jsonable(obj), ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"cannot be written as JSON: {error}") from None
    return _HAZARDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_jsonl(path: str | Path, rows: Iterable[object]) -> None:
    """Writes one JSON object a line, in UTF-8, as `write_text` does."""
    write_text(path, (json_line(row) + "\n" for row in rows))


def write_text(path: str | Path, parts: Iterable[str]) -> None:
    """Writes text in UTF-8.

    The file appears whole or not at all: it is written beside its place, synced to disk and moved there. What stood
    there before stays until then. Raises ConfigError when the folder cannot be written.
    """
    target = Path(path).resolve()
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            _write(file, parts, target)
    except OSError as error:
        raise ConfigError(f"cannot write {str(path)!r}: {error.strerror or error}") from error


def _write(file: TextIO, parts: Iterable[str], target: Path) -> None:
    beside = Path(file.name)
    try:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
