"""Writing text and JSON Lines files atomically."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import secrets
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from evalstone._core.files import cannot_write, lock, private
from evalstone._core.json import to_jsonable
from evalstone._core.redaction import redacted
from evalstone.errors import ConfigError

# Characters that end a line, change text direction, or can't be encoded. JSON escapes the rest of C0.
_HAZARDS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_LINES = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


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
        text = _LINES.encode(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError("cannot be written as JSON: ", error) from None
    if text.isascii() and "\x7f" not in text:
        return text
    return _HAZARDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


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
    target = Path(path).resolve()
    parts = map(redacted, parts) if redact else parts
    if target.exists() and not target.is_file():
        try:
            with target.open("w", encoding="utf-8", newline="\n") as device:
                device.writelines(parts)
        except OSError as error:
            raise cannot_write(f"cannot write {str(path)!r}", error) from error
        return
    with replacing(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
        try:
            text.writelines(parts)
        finally:
            text.detach()


@contextmanager
def replacing(path: str | Path) -> Generator[BinaryIO]:
    """A temporary file next to `path` that is synced to disk and replaces it if the block succeeds.

    It is accessible to its owner only, or has the mode of the file that it replaces. Temporary files left by killed
    processes are deleted.

    Raises:
        ConfigError, WriteError: As for `write_text`.
    """
    target = Path(path).resolve()
    try:
        with _beside(target) as file:
            try:
                with suppress(FileNotFoundError):
                    Path(file.name).chmod(target.stat().st_mode & 0o777)
                yield file
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).replace(target)
            finally:
                Path(file.name).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(f"cannot write {str(path)!r}", error) from error


def check_writable(path: str | Path) -> None:
    """Check that `write_text` can write a file, before doing the work for it.

    Raises:
        ConfigError: The folder doesn't exist or isn't writable, or the path is a folder.
        WriteError: The disk is full.
    """
    target = Path(path).resolve()
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.is_file() or not target.exists():
            with _beside(target) as file:
                Path(file.name).unlink()
    except OSError as error:
        raise cannot_write(f"cannot write {str(path)!r}", error) from None


def _beside(target: Path) -> BinaryIO:
    """A new temporary file next to a file. It is locked while its writer lives, unlike an abandoned one."""
    _delete_abandoned(target)
    while True:
        path = target.parent / f".{target.name}.{secrets.token_hex(4)}.evalstone.tmp"
        file = open(path, "xb", opener=private)  # noqa: SIM115 - Path.open has no opener
        lock(file)
        if path.exists():  # unless it was deleted as abandoned before it was locked
            return file
        file.close()


def _delete_abandoned(target: Path) -> None:
    """Delete the temporary files of writers that were killed."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.evalstone\.tmp")
    for entry in os.scandir(target.parent):
        if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            with suppress(OSError), Path(entry.path).open("r+b") as file:
                if lock(file, wait=False):
                    Path(entry.path).unlink()
