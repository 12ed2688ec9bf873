"""Safe file access: bounded reads and private writes.

Files are read in pieces, so that a file, line or row that is too long is rejected before it is in memory. New files and
folders are accessible to their owner only.
"""

from __future__ import annotations

import codecs
import errno
import importlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from evalstone._core import windows
from evalstone._core.front_ends import Setting
from evalstone._core.json import value_of
from evalstone.errors import ConfigError, DataError, StorageError, WriteError, invalid

SETTING = "EVALSTONE_MAX_ROW_MB"
"""The environment variable with the limit of `row_limit`."""
_MAX_ROW_MB = 64.0
_PIECE = 1 << 16
_ROW_OVERHEAD = 1000
CONTAINER = 32
_MOST_EXPANSION = 200
_MOST_ROWS_AT_LIMIT = 16
# UTF-32 before UTF-16, because the UTF-32 little-endian mark starts with the UTF-16 one.
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENOUGH_OF_UTF8 = 100
"""Texts in other encodings don't have so many characters that are all those of UTF-8."""
_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++")


def home_expanded(path: str | Path) -> Path:
    """A path, with `~/` as the user's home folder: a shell expands it only at the start of a word."""
    return Path(path).expanduser() if str(path).startswith(("~/", "~\\")) or str(path) == "~" else Path(path)


_OTHER_FILES = 100


def spare_files(most: int, parts: int = 1) -> int:
    """How many files, such as connections, the process may open at once, at least 1 and at most `most`.

    Its limit on open files, less 100 files for everything else, or half of the limit if that is less. parts: by how
    many the rest is divided.
    """
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return most
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return most
    return max(1, min(most, (limit - min(_OTHER_FILES, limit // 2)) // parts))


class ByteStream(Protocol):
    """A readable stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; b"" at the end."""
        ...


def row_limit() -> int:
    """The maximum number of characters of a row: a line, an array item, the cells of a table row, or a whole document.

    64 million by default. The environment variable EVALSTONE_MAX_ROW_MB sets it, in millions. Raises ConfigError if the
    variable isn't a number greater than 0.
    """
    text = os.environ.get(SETTING, "")
    try:
        limit = float(text) if text else _MAX_ROW_MB
        if 0 < limit < 1e9:
            return int(limit * 1e6)
    except ValueError:
        pass
    raise ConfigError(f"{SETTING} should be a number of megabytes greater than 0, not {text!r}")


def too_long(what: str) -> DataError:
    """The error for a row longer than `row_limit`."""
    return DataError(f"{what} is longer than {row_limit() / 1e6:g} MB; to read it, set {SETTING} to a higher number")


def check_containers(text: str, start: int = 0, what: str = "", *, limit: int | None = None) -> None:
    """Raise DataError for JSON with too many lists and objects: an empty one has two characters but takes 60 bytes.

    what: The name of the text that starts at `start`, for the message. limit: `row_limit`, if it is known.
    """
    most = (row_limit() if limit is None else limit) // CONTAINER
    if len(text) - start > most and text.count("[", start) + text.count("{", start) > most:
        raise DataError(f"{what} has more than {most:,} lists and objects; to read it, raise {SETTING}".lstrip())


class Expansion:
    """A limit on the memory that a file's rows take, in characters, relative to its size on disk.

    A compressed file of kilobytes can expand to gigabytes, and a row of two characters takes a thousand times as much
    memory.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.most = max(_MOST_ROWS_AT_LIMIT * row_limit(), _MOST_EXPANSION * size)
        self.used = 0

    def check(self, amount: int) -> None:
        """Raise DataError for an amount above the limit."""
        if amount > self.most:
            raise DataError(
                f"a file of {self.size:,} bytes whose rows would take more than {self.most / 1e9:.3g} GB of memory; "
                f"to read it, set {SETTING} to a higher number than {row_limit() / 1e6:g}"
            )

    def add_row(self, size: int = 0) -> None:
        """Count a row. Raises as `check` does."""
        self.used += size + _ROW_OVERHEAD
        self.check(self.used)

    def counted(self, pieces: Iterable[str]) -> Iterator[str]:
        """Yield the pieces of a text while counting them. Raises as `check` does."""
        for piece in pieces:
            self.used += len(piece)
            self.check(self.used)
            yield piece


def encoding_of(start: bytes) -> tuple[str, int]:
    """The encoding of a text by its first bytes, and the length of its byte order mark: UTF-8 without one."""
    return next(((name, len(mark)) for mark, name in _BYTE_ORDER_MARKS if start.startswith(mark)), ("utf-8", 0))


def first_of_utf8(stream: ByteStream) -> str:
    """The first character beyond ASCII in a text that is UTF-8, by its first 100 or more such characters; "" if it has
    none, is in another encoding, or has a byte order mark."""
    decoder, first, seen, at_start = codecs.getincrementaldecoder("utf-8")(), "", 0, True
    while seen < _ENOUGH_OF_UTF8:
        data = stream.read(_PIECE)
        try:
            text = decoder.decode(data, not data)
        except UnicodeDecodeError:
            return ""
        if "\0" in text or (at_start and encoding_of(data)[1]):
            return ""
        if not text.isascii():
            beyond = [character for character in text if not character.isascii()]
            first, seen = first or beyond[0], seen + len(beyond)
        if not data:
            break
        at_start = False
    return first


def check_encoding(encoding: str | None) -> None:
    """Raise ConfigError for an encoding that isn't known, or isn't one of texts."""
    try:
        if encoding is not None:
            "a".encode(encoding).decode(encoding, "replace")
    except (LookupError, ValueError, TypeError):
        raise ConfigError(invalid(Setting("encoding"), "the name of an encoding, such as cp1252", encoding)) from None


def text_pieces(
    stream: ByteStream, line: int = 1, encoding: str | None = None, *, can_name: bool = False
) -> Iterator[str]:
    """The text of a stream in pieces.

    Args:
        stream: The bytes of the text.
        line: The number of its first line, for errors.
        encoding: Its encoding. By default, UTF-8 with or without a byte order mark, and UTF-16 or UTF-32 with one.
        can_name: Whether the user can name the encoding, for errors.

    Raises DataError for bytes that aren't text (naming the first), and for NUL characters.
    """
    data = stream.read(_PIECE)
    marked, offset = encoding_of(data)
    example = "cp1252" if encoding is None and not offset else None
    if encoding is None or offset:  # a byte order mark is what the file itself says
        encoding = marked
    data = data[offset:]
    decoder = codecs.getincrementaldecoder(encoding)()
    as_utf8 = _Utf8() if example is None and not offset else None
    name = encoding.removesuffix("-le").removesuffix("-be").upper()
    while True:
        pending = len(decoder.getstate()[0])
        if as_utf8 is not None:
            as_utf8.add(data)
        try:
            text = decoder.decode(data, not data)
        except UnicodeDecodeError as error:
            before = error.object[: error.start]
            if (nul := before.find(b"\0")) >= 0:
                raise _has_nul(line + before.count(b"\n", 0, nul), can_name=can_name) from None
            line += before.count(b"\n")
            byte, at = error.object[error.start : error.start + 1].hex(), offset - pending + error.start + 1
            # With other characters before, part of the file is UTF-8, so that no other encoding is right either.
            problem = f"{name}: byte {at} (0x{byte}, line {line})"
            if as_utf8 is not None and as_utf8.is_likely:
                raise DataError(f"not {problem}, but UTF-8; leave the encoding out") from None
            raise _not_text(problem, example if before.isascii() else None, can_name=can_name) from None
        except UnicodeError as error:  # such as UTF-16 without the mark that it needs
            raise _not_text(f"{name} ({error})", None, can_name=can_name) from None
        if (nul := text.find("\0")) >= 0:
            raise _has_nul(line + text.count("\n", 0, nul), can_name=can_name)
        yield text
        if not data:
            return
        example = example if text.isascii() else None
        line += text.count("\n")
        offset += len(data)
        data = stream.read(_PIECE)


class _Utf8:
    """Whether what has been read is also UTF-8, with characters beyond ASCII."""

    def __init__(self) -> None:
        self.is_likely = False
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_broken = False

    def add(self, data: bytes) -> None:
        """Read on."""
        if self._is_broken:
            return
        try:
            self.is_likely |= not self._decoder.decode(data).isascii()
        except UnicodeDecodeError:
            self.is_likely, self._is_broken = False, True


def _not_text(problem: str, example: str | None, *, can_name: bool) -> DataError:
    """The error for bytes that aren't text in their encoding. example: another encoding that they may have."""
    hint = (", or name its encoding, such as ", Setting("encoding", example)) if can_name and example else ()
    return DataError(f"not {problem}; save the file as UTF-8", *hint)


def _has_nul(line: int, *, can_name: bool) -> DataError:
    hint = ("; if it is that: ", Setting("encoding", "utf-16-le")) if can_name else ()
    return DataError(f"NUL character in line {line}: a binary file, or UTF-16 without a byte order mark", *hint)


def numbered_lines(pieces: Iterable[str], number: int = 1, *, any_end: bool = False) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers, without line feeds. Raises DataError for a line that is too long.

    number: That of the first line. any_end: Carriage returns also end lines, and lines keep their line ends, as the csv
    module expects.
    """
    limit, start = row_limit(), ""
    for piece in pieces:
        if not any_end:
            *lines, rest = piece.split("\n")
        else:
            if start.endswith("\r") and piece and not piece.startswith("\n"):
                yield number, start
                number, start = number + 1, ""
            lines = _LINE.findall(piece)
            # A line feed may follow the carriage return at the end of a piece.
            rest = lines.pop() if lines and not lines[-1].endswith("\n") else ""
        if lines:
            lines[0], start = start + lines[0], ""
        for line in lines:
            if len(line) > limit:
                raise too_long(f"line {number}")
            yield number, line
            number += 1
        start += rest
        if len(start) > limit:
            raise too_long(f"line {number}")
    if start:
        yield number, start


def file_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers.

    Raises DataError, naming the file, if it isn't text or a line is too long; and OSError.
    """
    try:
        with path.open("rb") as stream:
            yield from numbered_lines(text_pieces(stream))
    except DataError as error:
        raise DataError(f"{path}: ", error) from None


def file_text(path: Path) -> str:
    """The whole text of a file. Raises as `file_lines` does."""
    limit, size, pieces = row_limit(), 0, list[str]()
    try:
        with path.open("rb") as stream:
            for piece in text_pieces(stream):
                pieces.append(piece)
                size += len(piece)
                if size > limit:
                    raise too_long("the text")
    except DataError as error:
        raise DataError(f"{path}: ", error) from None
    return "".join(pieces)


def file_values(path: Path) -> Iterator[tuple[str, Any]]:
    """The values in a JSON Lines file, each with its file and line for error messages.

    Raises:
        DataError: A line isn't text, isn't JSON, or is too long.
        OSError: The file can't be read.
    """
    name = str(path)
    for number, line in file_lines(path):
        place = f"{name}, line {number}"
        yield place, json_value(line, place)


def json_value(text: str, place: str) -> Any:
    """The value of a JSON text. Raises DataError with the place."""
    try:
        return value_of(text)
    except ValueError as error:
        raise DataError(f"{place}: not JSON ({error})") from None
    except RecursionError:
        raise DataError(f"{place}: JSON nested too deeply") from None


def json_or_lines(text: str | bytes | bytearray) -> Any:
    """The value of a JSON text, or the list of values of a JSON Lines text. Bytes are UTF-8.

    Raises ValueError for anything else (with the error of the whole text as JSON), DataError for too many lists and
    objects, and RecursionError.
    """
    text = text.removeprefix("\ufeff") if isinstance(text, str) else text.decode("utf-8-sig")
    check_containers(text)
    try:
        return json.loads(text, object_hook=unchanged)
    except ValueError as error:
        lines = [line for line in text.split("\n") if line.strip()]  # splitlines would also split within JSON strings
        if len(lines) < 2:
            raise
        try:
            return [json.loads(line, object_hook=unchanged) for line in lines]
        except ValueError:
            raise error from None


def unchanged(entries: dict[str, Any]) -> dict[str, Any]:
    """An `object_hook` that lets other threads run: without one, json reads the whole text before they do."""
    return entries


_WRONG_PATH = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.EINVAL),
    *(errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.ENODEV),
)


def cannot_write(message: str, error: OSError, broken: type[StorageError] = WriteError) -> ConfigError | StorageError:
    """The error to raise for a failed write: ConfigError if another path would help, else `broken` (a full disk …)."""
    kind = ConfigError if error.errno in _WRONG_PATH else broken
    return kind(f"{message}: {error.strerror or error}")


def private(path: str, flags: int) -> int:
    """An opener for `open` that creates files accessible to their owner only; existing files keep their mode. On
    Windows, too, the file can be renamed and deleted while it is open."""
    return windows.shared(path, flags) if os.name == "nt" else os.open(path, flags, 0o600)


def resolved(path: str | Path) -> Path:
    """An absolute path without links. A link to itself stays, and can't be opened."""
    return Path(os.path.realpath(path))


def is_folder(path: str | Path) -> bool:
    """Whether this is a folder; False for invalid paths, such as "" or one that is too long."""
    try:
        return path != "" and Path(path).is_dir()
    except OSError:
        return False


def is_file(path: str | Path) -> bool:
    """Whether this is a file; False for invalid paths, such as one that is too long."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents, accessible to their owner only. Existing folders keep their mode.

    Raises:
        OSError: The folder can't be created, or is a file.
    """
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)


def lock(file: IO[Any], *, wait: bool = True) -> bool | None:
    """Lock a file until it is closed or the process ends.

    Returns:
        Whether the file is locked now: False if another process holds the lock, None if files can't be locked here.
    """
    try:
        if os.name == "nt":
            return windows.locked(file.fileno(), wait=wait)
        fcntl: Any = importlib.import_module("fcntl")
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True
