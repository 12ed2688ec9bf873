"""The logs of inspect: `.eval`, whole or as a crashed evaluation left them, and `.json`. A folder has several.

A model is a system, with its solver if one was chosen. A sample is a case, and each epoch of it a trial. Each scorer is
a metric; if its value is an object or a list, each entry is one.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalstone._core.files import row_limit, too_long
from evalstone._core.guards import is_array
from evalstone.compat.imports.archives import BEGINNING, Archive, Entry
from evalstone.compat.imports.documents import JsonDocument, as_object
from evalstone.compat.imports.inspect_log import Folder, Log, printed_scores
from evalstone.compat.imports.inspect_samples import reduced_rows, references, row_of
from evalstone.compat.imports.inspect_scores import TOOL
from evalstone.compat.imports.reading import Form, Head, Reader, Source
from evalstone.compat.imports.results import Event, NextPart, OfSystem, metric_name, object_in, text_in
from evalstone.datasets.json_rows import parse_json
from evalstone.errors import DataError
from evalstone.types import note

HEADER, START, SUMMARIES, REDUCTIONS = "header.json", "_journal/start.json", "summaries.json", "reductions.json"
_SAMPLE = re.compile(r"samples/(?:.*)_epoch_\d+(?:\.json|/sample\.json)", re.DOTALL)
_CHUNK = re.compile(r"(samples/.*_epoch_\d+)/(metadata|(?:messages|attachments)/[0-9]{1,15})\.json", re.DOTALL)
_JOURNAL = re.compile(r"_journal/summaries/\d+\.json")
_LOG = re.compile(r"(?:.*/)?(?:[^/]*\.eval|\d{4}-\d\d-\d\dT[^/]*_[^/]*\.json)")
_WHOLE = 8_000_000
"""The bytes of a member up to which it is read at once, which is faster."""
_UNREAD = frozenset(("events", "events_data", "store", "timelines", "error_retries", "files", "sandbox", "setup"))


def recognizes(head: Head) -> bool:
    """Whether this is a log of inspect, or a folder with some."""
    if head.is_folder:
        return any(_LOG.fullmatch(name) for name in head.names)
    if head.start.startswith(BEGINNING):
        first = head.start[30 : 30 + int.from_bytes(head.start[26:28], "little")]
        return first.startswith((b"_journal/", b"samples/", b"header.json", b"summaries.json", b"reductions.json"))
    return head.has("eval", "eval.task", "eval.created")


def read(source: Source) -> Iterator[Event]:
    """Yield what a log has, or those of a folder, task by task. Raises DataError for one that can't be read."""
    if source.path.is_file():
        yield from _log(Folder(), source, source.path)
        return
    tasks: dict[tuple[str, str], list[Path]] = {}
    for file in source.files("*"):
        if _LOG.fullmatch(file.name):
            with _naming(file):
                tasks.setdefault(_task(source, file), []).append(file)
    for (task, version), files in tasks.items():
        if len(tasks) > 1:
            yield NextPart(f"{metric_name(task)} ({metric_name(version, TOOL)})")
        folder = Folder()
        for file in files:
            with _naming(file):
                yield from _log(folder, source, file)


@contextmanager
def _naming(file: Path) -> Generator[None]:
    """Name the file in errors about it."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{file.name}: ", error) from None


def _is_archive(file: Path) -> bool:
    with file.open("rb") as beginning:
        return beginning.read(len(BEGINNING)) == BEGINNING


def _log(folder: Folder, source: Source, file: Path) -> Iterator[Event]:
    if _is_archive(file):
        with source.archive(file) as archive:
            yield from _archive(folder, archive)
    else:
        yield from _document(folder, source.json(file))


def _task(source: Source, file: Path) -> tuple[str, str]:
    """The task of a log, and the version of inspect."""
    spec: dict[str, Any] = {}
    if _is_archive(file):
        with source.archive(file) as archive:
            spec = object_in(_header(archive), "eval")
    else:
        document = source.json(file)
        for key in document.members():
            if key == "eval" and document.is_object:
                spec = document.object(key)
                break
    return text_in(spec, "task"), text_in(object_in(spec, "packages"), "inspect_ai")


def _header(archive: Archive) -> dict[str, Any]:
    header = archive.entries.get(HEADER) or archive.entries.get(START)
    if header is None:
        raise DataError(f"it has neither {HEADER} nor {START}")
    return as_object(_value(archive, header), header.name)


def _archive(folder: Folder, archive: Archive) -> Iterator[Event]:
    entries, log = archive.entries, Log.of(folder, _header(archive))
    yield from log.about()
    if HEADER not in entries:
        yield OfSystem(log.system, note("eval_unfinished", "caution", tool=TOOL, status="started", error=""))
    if archive.replaced:
        yield OfSystem(log.system, note("entries_replaced", tool=TOOL, entries=archive.replaced))
    samples = [name for name in entries if _SAMPLE.fullmatch(name)]
    chunks: dict[str, list[Entry]] = {}
    for name in entries:
        if found := _CHUNK.fullmatch(name):
            chunks.setdefault(found[1], []).append(entries[name])
    if not printed_scores(log.header):
        for name in (SUMMARIES, *filter(_JOURNAL.fullmatch, entries)):
            if name in entries:
                log.learn_all(_value(archive, entries[name]))
    for name in samples:
        sample = _sample_in(archive, entries[name])
        if of := chunks.get(name.removesuffix("/sample.json")):
            _add_chunks(sample, archive, of)
        yield row_of(log, sample, name)
    if not samples and REDUCTIONS in entries:
        yield from reduced_rows(log, _value(archive, entries[REDUCTIONS]))
    yield from log.end()


def _document(folder: Folder, document: JsonDocument) -> Iterator[Event]:
    header: dict[str, Any] = {}
    log: Log | None = None
    for key in document.members():
        if key == "samples" and document.is_list:
            if "eval" not in header:
                raise DataError("its samples come before eval, which says of which model they are")
            log = Log.of(folder, header)
            for place, sample in document.objects(key):
                yield row_of(log, sample, place)
        elif key == "reductions" and log is None and "eval" in header:
            log = Log.of(folder, header)
            yield from reduced_rows(log, document.value(key))
        elif key in ("version", "status", "eval", "results", "stats", "error"):
            header[key] = document.value(key)
    document.end()
    if log is None:
        raise DataError("it has no samples")
    yield from log.about()
    yield from log.end()


def _value(archive: Archive, entry: Entry) -> Any:
    """The value of a member. Raises DataError for one that is no JSON, or too long for memory."""
    limit, size, pieces = row_limit(), 0, list[str]()
    try:
        for piece in archive.text(entry):
            pieces.append(piece)
            if (size := size + len(piece)) > limit:
                raise too_long("the document")
        return parse_json("".join(pieces), limit=limit)
    except DataError as error:
        raise DataError(f"{entry.name}: ", error) from None


def _sample_in(archive: Archive, entry: Entry) -> dict[str, Any]:
    """A sample without what isn't read of it. If it is large, that is never in memory."""
    if entry.size <= _WHOLE:
        return as_object(_value(archive, entry), entry.name)
    sample: dict[str, Any] = {}
    document = JsonDocument(archive.text(entry))
    for key in document.members(entry.name):
        if key == "attachments" and document.is_object and "messages" in sample:
            wanted = {*references(sample)}
            found = sample[key] = dict[str, Any]()
            for name in document.members(key):
                if name in wanted:
                    found[name] = document.value(name)
        elif key not in _UNREAD:
            sample[key] = document.value(f"{entry.name}: {key}")
    return sample


def _add_chunks(sample: dict[str, Any], archive: Archive, chunks: Sequence[Entry]) -> None:
    """Add what a sample in chunks has in other members."""
    messages: dict[int, Any] = {}
    attachments: dict[str, Any] = {}
    for entry in chunks:
        *_, kind, number = entry.name.removesuffix(".json").split("/")
        value = _value(archive, entry)
        if number == "metadata":
            sample["metadata"] = value
        elif is_array(value) and kind == "messages":
            messages[int(number)] = value
        elif is_array(value):
            attachments |= {str(place): each for place, each in enumerate(value, int(number))}
    sample["messages"] = [each for place in sorted(messages) for each in messages[place]]
    sample["attachments"] = attachments


READER = Reader(
    tool=TOOL,
    version=1,
    forms=(
        Form(".eval or .json", ("eval", "eval.task", "eval.created")),
        Form("folder", ("*.eval",), is_folder=True),
    ),
    recognizes=recognizes,
    read=read,
)
