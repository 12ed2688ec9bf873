"""Writing text and JSON Lines files atomically."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

from evalstone._core.json import to_jsonable
from evalstone._core.redaction import redacted
from evalstone.errors import ConfigError

# Text that could end a line, change the direction of a terminal, or not be encoded. JSON escapes the rest of C0.
_HAZARDS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def json_line(obj: object) -> str:
    """A value as one line of JSON, without the line break.

    Text stays readable in every script; line and paragraph separators, control characters, bidirectional controls and
    lone surrogates are escaped, so that no text can break the line or the terminal. Dataclasses become objects.

    Raises:
        ConfigError: A number has no JSON form, or the value is nested too deeply.
    """
    try:
        text = json.dumps(to_jsonable(obj), ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"cannot be written as JSON: {error}") from None
    return _HAZARDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def write_jsonl(path: str | Path, rows: Iterable[object], *, redact: bool = True) -> None:
    """Write one JSON object per line, as `write_text` does."""
    write_text(path, (json_line(row) + "\n" for row in rows), redact=redact)


def write_text(path: str | Path, parts: Iterable[str], *, redact: bool = True) -> None:
    """Write text in UTF-8, atomically: into a temporary file beside the target, synced to disk and moved over it.

    redact: write secrets as `***`. Not for samples, which are stored as they came: their hash is the dataset's version.
    What is no regular file, such as a device or a pipe, is written to and never replaced.

    Raises:
        ConfigError: The folder can't be written to.
    """
    target, beside = _places(path)
    parts = map(redacted, parts) if redact else parts
    try:
        if target.exists() and not target.is_file():
            with target.open("w", encoding="utf-8", newline="\n") as device:
                device.writelines(parts)
            return
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            try:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
                beside.replace(target)
            finally:
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot write {str(path)!r}: {error.strerror or error}") from error


def check_writable(path: str | Path) -> None:
    """Refuse a file that `write_text` can't write, before the work for it is done.

    Raises:
        ConfigError: The folder doesn't exist or can't be written to, or the path is that of a folder.
    """
    target, beside = _places(path)
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.is_file() or not target.exists():
            beside.open("x").close()
            beside.unlink()
    except OSError as error:
        raise ConfigError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def _places(path: str | Path) -> tuple[Path, Path]:
    """A file, and the temporary one beside it."""
    target = Path(path).resolve()
    return target, target.parent / f".{target.name}.{secrets.token_hex(4)}.tmp"
