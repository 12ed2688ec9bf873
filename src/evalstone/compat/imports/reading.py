"""Which tool wrote a file or a folder, and what its reader gets: the parts of it, read one by one."""

from __future__ import annotations

import functools
import itertools
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

from evalstone._core.display import listed, named, shortlist
from evalstone._core.files import Expansion, encoding_of
from evalstone._core.front_ends import Setting
from evalstone._core.guards import is_object
from evalstone._core.storage import Location
from evalstone._core.times import utc_time
from evalstone.compat.imports.archives import BEGINNING as ARCHIVE
from evalstone.compat.imports.archives import Archive
from evalstone.compat.imports.documents import JsonDocument, as_object
from evalstone.compat.imports.results import Event, metric_name
from evalstone.datasets.columns import field_of
from evalstone.datasets.files import DELIMITERS, JSON_LINES, READABLE, DataFile, header_in, kind_of
from evalstone.datasets.json_rows import json_lines
from evalstone.datasets.tables import Rows
from evalstone.errors import ConfigError, DataError, unknown

MODULES = ("promptfoo", "deepeval", "inspect", "lm_eval", "ragas", "openai_evals", "mlflow", "phoenix", "langsmith")
"""The modules of the readers, by the name of the tool with underscores. Each has a `READER`."""
MOST_FILES = 100_000
"""The most files of a folder."""
_BEGINNING = 1 << 18
"""The bytes of a file that recognition looks at."""
_TABLES = (".csv", ".tsv")
SQLITE, _PARQUET = b"SQLite format 3\0", b"PAR1"
_BINARY = (ARCHIVE, _PARQUET, SQLITE)
"""What files begin with that aren't text."""
_POINTER = b"version https://git-lfs.github.com/spec/"
_VERDICT = re.compile(rb"(?:\A|[\"\n,])\[(?:PASS|FAIL|ERROR)\] ")
"""What a cell of promptfoo's CSV begins with."""
_SHOWN = 4
"""The number of forms that the error about a file that nobody knows describes."""
_TOKEN = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*")\s*(:)?|[{}\[\]]', re.DOTALL)


@dataclass(frozen=True)
class Source:
    """The file or folder to import."""

    path: Path
    encoding: str | None = None
    """The encoding of its texts; None for the one that they say themselves, or else UTF-8."""

    @functools.cached_property
    def head(self) -> Head:
        """What it begins with. Raises ConfigError for an encoding of a file that isn't text."""
        head = head_of(self.path, self.encoding)
        if self.encoding is not None and head.start.startswith(_BINARY):
            raise ConfigError(Setting("encoding"), f" is for files of text, which {self.name} is not")
        return head

    @property
    def name(self) -> str:
        """Its name, as a line of visible text."""
        return named(self.path.resolve().name)

    @property
    def has_text_cells(self) -> bool:
        """Whether it is a table whose cells are texts: CSV."""
        return bool(self.head.columns)

    @property
    def system(self) -> str:
        """Its name without suffixes: that of the system, if the tool doesn't write it."""
        return metric_name(self.path.name.partition(".")[0])

    @property
    def written(self) -> datetime:
        """When it was last written."""
        return utc_time(self.path.stat().st_mtime)

    def files(self, pattern: str) -> list[Path]:
        """The files of a folder, also below it, whose names match a pattern, by name."""
        return sorted(file for file in self.path.rglob(pattern) if file.is_file())

    def json(self, file: Path | None = None) -> JsonDocument:
        """A JSON document. file: of the folder; by default, the file itself. Raises DataError for a folder."""
        data = _data_file(file or self.path, ".json", self.encoding)
        return JsonDocument(Expansion(data.location.size).counted(data.text()))

    def archive(self, file: Path | None = None) -> Archive:
        """A zip archive, to be closed. Raises DataError as `Archive` does."""
        return Archive(file or self.path)

    def lines(self, file: Path | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """The objects of a JSON Lines file, each after its place.

        Raises DataError for a folder, invalid JSON, and a line that is no object.
        """
        data = _data_file(file or self.path, ".jsonl", self.encoding)
        return _objects(json_lines(Expansion(data.location.size).counted(data.text())))

    def rows(self, file: Path | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """The rows of a file that is read as a dataset is: CSV, JSON, JSON Lines, Parquet. In CSV, the first column may
        have no name: the numbers of rows, which data frames write. It is then `index`.

        Raises DataError for a folder, an unknown suffix, and rows that can't be read or are no objects.
        """
        path = file or self.path
        kind, _ = kind_of(path.name)
        if kind not in READABLE and not path.is_dir():
            raise DataError(f"it has an unknown suffix; readable are {listed(READABLE)}")
        data = _data_file(path, kind, self.encoding)
        return _objects((_Table(**vars(data)) if data.kind in _TABLES else data).rows())


class _Table(DataFile):
    """A CSV file whose first column may have no name. Unlike in a dataset, it may count in any way: tools write the
    labels of rows that were selected or put together."""

    def text(self) -> Iterator[str]:
        pieces = super().text()
        first = next(pieces, "")
        yield ("index" if first.startswith(DELIMITERS) else "") + first
        yield from pieces


def _objects(rows: Rows) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((place, as_object(value, place)) for place, value in rows)


def _data_file(path: Path, kind: str, encoding: str | None = None) -> DataFile:
    """A file of a kind. Raises DataError for a folder."""
    if path.is_dir():
        raise DataError("it is a folder; name the file in it")
    return DataFile(Location.of(str(path)), kind, path.name.lower().endswith(".gz"), encoding)


@dataclass(frozen=True)
class Head:
    """What recognition knows of a file or a folder: what it begins with."""

    path: Path
    start: bytes = b""
    """The first bytes of a file; empty for a folder."""
    keys: frozenset[str] = frozenset()
    """The keys of a JSON document as far as it was looked at, and those of objects in it: `results`, `results.version`.
    Of a list, those of its first item; of JSON Lines, those of the first line; of Parquet, the columns."""
    is_lines: bool = False
    """Whether it is JSON Lines."""
    columns: tuple[str, ...] = ()
    """The header of a CSV file."""
    is_folder: bool = False
    names: frozenset[str] = frozenset()
    """The names of the files in a folder."""

    def has(self, *keys: str) -> bool:
        """Whether a JSON document has all of these keys."""
        return self.keys.issuperset(keys)

    def shows(self, mark: str) -> bool:
        """Whether a document has this key, a table this column, or a folder a file with this name. NAME and `*` are any
        text."""
        if self.is_folder:
            return any(fnmatchcase(name.rpartition("/")[2], mark) for name in self.names)
        pattern = mark.replace("NAME", "*")
        names = (*self.keys, *self.columns)
        return any(fnmatchcase(name, pattern) for name in names) or f'"{mark}"'.encode() in self.start


@dataclass(frozen=True)
class Form:
    """A form of a tool's results, for the error about a file that nobody knows."""

    name: str
    """What it is, such as ".json"."""
    known_by: tuple[str, ...]
    """Keys or columns that it has, where NAME is any text; of a folder, patterns of its files."""
    is_folder: bool = False

    def share_in(self, head: Head) -> float:
        """The share of these that a file or a folder has, from 0 to 1."""
        return sum(map(head.shows, self.known_by)) / len(self.known_by)


@dataclass(frozen=True)
class Reader:
    """What reads the files of a tool."""

    tool: str
    """The name of the tool, as `--from` takes it."""
    version: int
    """Raised when it reads scores otherwise than before: it is the version of the scorers."""
    forms: tuple[Form, ...]
    recognizes: Callable[[Head], bool]
    read: Callable[[Source], Iterator[Event]]
    """Yields what the file holds. Raises DataError, which names the place in the file."""


def readers() -> Mapping[str, Reader]:
    """The readers by the names of their tools."""
    found = (import_module(f"evalstone.compat.imports.{module}").READER for module in MODULES)
    return {reader.tool: reader for reader in found}


def reader_for(source: Source, tool: str | None = None) -> Reader:
    """The reader of a file or a folder.

    Args:
        source: The file or folder.
        tool: The name of the tool that wrote it; None to recognize it.

    Raises:
        ConfigError: There is no such tool.
        DataError: No tool is recognized, or several are.
    """
    known = readers()
    if tool is not None:
        if tool not in known:
            raise ConfigError(unknown("tool", tool, known))
        return known[tool]
    head, path = source.head, source.path
    found = [reader for reader in known.values() if reader.recognizes(head)]
    if len(found) == 1:
        return found[0]
    if found:
        tools = " or ".join(reader.tool for reader in found)
        raise DataError(f"{named(str(path))} may be of {tools}; say which with --from")
    if problem := _problem_of(head):
        raise DataError(f"{named(str(path))} {problem}")
    raise DataError(
        f"{named(str(path))} isn't known as the results of a tool{_seen(head)}. {_forms(head, known)}{_answers(head)}"
    )


def tool_of(path: Path) -> str:
    """The tool that wrote a file, by its content; "" for one that is of no known tool, or may be of several."""
    try:
        return reader_for(Source(path)).tool
    except DataError:
        return ""


def _problem_of(head: Head) -> str:
    """Why a file that is known can't be imported, and what to do; "" for one that isn't known."""
    if head.start.startswith(_POINTER):
        return "is a pointer of Git LFS, not the file itself; get it: git lfs pull"
    if head.columns and _VERDICT.search(head.start):
        return (
            "is a table of promptfoo, which has the scores as text; save the results as JSON: promptfoo export eval ID "
            "-o results.json"
        )
    return ""


def _answers(head: Head) -> str:
    """What to do with a dataset that has answers and no scores; "" if it isn't one."""
    fields = {field_of(name) for name in (*head.columns, *(key for key in head.keys if "." not in key))}
    if not fields & {"output", "messages"}:
        return ""
    return f". To score the answers in it, see evalstone check {shlex.quote(str(head.path))}"


def _forms(head: Head, known: Mapping[str, Reader]) -> str:
    """The forms that a file or a folder could have, the closest ones first."""
    every = [(reader.tool, form) for reader in known.values() for form in reader.forms]
    every = [each for each in every if each[1].is_folder == head.is_folder]
    every.sort(key=lambda each: -each[1].share_in(head))
    shown = [f"{tool} {form.name} ({', '.join(form.known_by)})" for tool, form in every[:_SHOWN]]
    others = dict.fromkeys(tool for tool, _ in every[_SHOWN:])
    also = [tool for tool in others if tool not in {tool for tool, _ in every[:_SHOWN]}]
    first = "Known, the closest first" if every[0][1].share_in(head) else "Known"
    return f"{first}: {listed(shown)}{f'; also {listed(also)}' if also else ''}"


def _seen(head: Head) -> str:
    if head.keys:
        return f" (keys: {shortlist(sorted(key for key in head.keys if '.' not in key))})"
    if head.columns:
        return f" (columns: {shortlist(head.columns)})"
    return f" (files: {shortlist(sorted(head.names))})" if head.is_folder else ""


def head_of(path: Path, encoding: str | None = None) -> Head:
    """What recognition knows of a file or folder. Raises DataError for one that isn't there or can't be read.

    Args:
        path: The file or folder.
        encoding: The encoding of a text, if it doesn't say it itself and isn't UTF-8.
    """
    try:
        if path.is_dir():
            files = (str(file.relative_to(path)) for file in path.rglob("*") if file.is_file())
            names = frozenset(itertools.islice(files, MOST_FILES + 1))
            if len(names) > MOST_FILES:
                raise DataError(f"more than {MOST_FILES:,} files; name the folder of the results")
            return Head(path, is_folder=True, names=names)
        with Location.of(str(path)).open() as file:
            start = file.read(_BEGINNING)
        if path.name.lower().endswith(".gz"):
            start = "".join(_pieces(path, encoding)).encode()
            encoding = None
    except DataError as error:  # of a text that is compressed
        raise DataError(f"{named(str(path))}: ", error) from None
    except OSError as error:
        raise DataError(f"{named(str(error.filename or path))} cannot be read: {error.strerror or error}") from None
    own, mark = encoding_of(start)
    text = start[mark:].decode(own if mark else encoding or own, "replace").lstrip()
    kind = kind_of(path.name)[0]
    if text.startswith(("{", "[")):
        first, _, rest = text.partition("\n")
        is_lines = kind in JSON_LINES or (text.startswith("{") and bool(rest.strip()) and _is_object(first))
        return Head(path, start, frozenset(_keys_in(first if is_lines else text)), is_lines=is_lines)
    if kind == ".parquet" and start.startswith(_PARQUET):
        rows = itertools.islice(_data_file(path, kind).rows(), 1)
        return Head(path, start, frozenset(key for _, row in rows for key in row))
    columns = (cell.strip() for cell in header_in(text, kind)) if kind in _TABLES else ()
    return Head(path, start, columns=tuple(columns))


def _pieces(path: Path, encoding: str | None) -> Iterator[str]:
    size = 0
    for piece in _data_file(path, ".json", encoding).text():
        yield piece
        size += len(piece)
        if size > _BEGINNING:
            return


def _is_object(line: str) -> bool:
    try:
        return is_object(json.loads(line))
    except (ValueError, RecursionError):
        return False


def _keys_in(text: str) -> Iterator[str]:
    """The keys of the first object in a JSON text that may be cut, and those of objects in it."""
    open_: list[str] = []
    """The kinds of the objects and lists around."""
    path: list[str] = []
    for token in _TOKEN.finditer(text):
        mark = token[0][0]
        if mark in "{[":
            open_.append(mark)
        elif mark in "}]" and open_:
            open_.pop()
            if open_ in ([], ["["]):
                return
        elif token[2] and open_ and open_[-1] == "{":
            depth = len(open_) - (open_[0] == "[")
            if depth <= 2 and "[" not in open_[1:]:
                del path[depth - 1 :]
                path.append(_text(token[1]))
                yield ".".join(path)


def _text(literal: str) -> str:
    try:
        return str(json.loads(literal))
    except ValueError:
        return literal
