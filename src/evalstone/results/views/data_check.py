"""A check of data as a view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalstone._core.display import count, named, percent, safe
from evalstone._core.front_ends import PYTHON, FrontEnd, Setting, WordingPart
from evalstone._core.languages import LANGUAGE_NAMES
from evalstone._core.names import normal
from evalstone.report.view import FOOTER, Cell, Column, Section, Table, View, table, words

if TYPE_CHECKING:
    from evalstone.results.data_check import CheckedField, DataCheck

_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}


def data_check_view(check: DataCheck, front_end: FrontEnd = PYTHON) -> View:
    """How the data are read, all problems, and which scorers can score them."""
    sections = (
        *_problems(check, front_end),
        *_fields(check),
        *_columns(check),
        *_first(check),
        *_samples(check),
        *_scorers(check),
        *_next(check, front_end),
    )
    return View(check.source, _lead(check), sections, footer=FOOTER)


def _lead(check: DataCheck) -> str:
    parts = [count(check.rows, "row"), count(check.samples, "sample")]
    if check.encoding:
        parts.append(check.encoding)
    if check.delimiter:
        parts.append(f"delimiter {_DELIMITERS.get(check.delimiter, check.delimiter)}")
    parts.append(count(check.n_problems, "problem"))
    return " · ".join(parts)


def _problems(check: DataCheck, front_end: FrontEnd) -> Iterator[Section]:
    if check.passed:
        return
    rows = tuple(
        (Cell(one.place or "file"), Cell(one.field), Cell(safe(one.error.text(front_end), 600)))
        for one in check.problems
    )
    more = check.n_problems - len(check.problems)
    notes = (f"{count(more, 'more problem')} not listed.",) if more else ()
    if not check.complete:
        notes = (*notes, "The rest of the data was not read.")
    listed = Table("Problems", (words("place"), words("field"), words("problem")), rows)
    yield Section("Problems", tables=(listed,), notes=notes)


def _fields(check: DataCheck) -> Iterator[Section]:
    if not check.fields and not check.remarks:
        return
    columns = (words("field"), words("read from"), Column("values"), Column("blank"), Column("missing"))
    rows = tuple(
        (
            Cell(one.field, "strong"),
            Cell(", ".join(one.columns) or _origin(one, check), quoted=bool(one.columns)),
            Cell(f"{one.values:,}"),
            Cell(f"{one.blank:,}"),
            Cell(f"{check.samples - one.values - one.blank:,}"),
        )
        for one in check.fields
    )
    yield Section("Fields", tables=(table("Fields", columns, rows),), notes=check.remarks)


def _origin(one: CheckedField, check: DataCheck) -> str:
    """What a field without a column follows from."""
    columns = {other.field: other.columns for other in check.fields}
    if one.field == "messages":
        return " and ".join(name for name in ("input", "output") if columns.get(name)) or "other fields"
    return "messages" if columns.get("messages") else "other fields"


def _columns(check: DataCheck) -> Iterator[Section]:
    if check.unread:
        rows = tuple((Cell(one.column, quoted=True), Cell(one.reason)) for one in check.unread)
        listed = Table("Columns that are no field", (words("column"), words("why")), rows)
        yield Section("Columns that are no field", tables=(listed,))


def _first(check: DataCheck) -> Iterator[Section]:
    names = list(dict.fromkeys(name for row in check.first for name in row))
    if names:
        rows = tuple((Cell(name), *(Cell(row.get(name, ""), quoted=True) for row in check.first)) for name in names)
        columns = (words("field"), *(words(f"sample {number}") for number in range(1, len(check.first) + 1)))
        yield Section("First samples", tables=(Table("First samples", columns, rows),))


def _samples(check: DataCheck) -> Iterator[Section]:
    if not check.scorers:
        return
    repeated = check.duplicates
    lines = [
        f"{count(repeated.samples, 'sample')} with the contents of an earlier one, "
        f"{repeated.inputs:,} with the same input" + (f": {', '.join(repeated.first)}" if repeated.first else "")
        if repeated.samples or repeated.inputs
        else "No two samples have the same input or contents",
        "Languages, by common words and scripts: "
        + ", ".join(
            f"{LANGUAGE_NAMES[name]} {number:,} ({percent(number / check.samples)})"
            for name, number in check.languages.items()
        ),
    ]
    yield Section("Samples", tuple(lines))


def _scorers(check: DataCheck) -> Iterator[Section]:
    able: dict[tuple[int, bool, str], list[str]] = {}
    for one in check.scorers:
        if one.samples:
            able.setdefault((one.samples, one.judged, one.lacks), []).append(one.name)
    if able:
        columns = (Column("samples"), words("judge"), words("other samples"), words("scorers"))
        rows = tuple(
            (Cell(f"{samples:,}"), Cell("yes" if judged else "no"), Cell(lacks), Cell(", ".join(names), "strong"))
            for (samples, judged, lacks), names in able.items()
        )
        yield Section("Scorers that can score them", tables=(table("Scorers that can score them", columns, rows),))
    lacking: dict[str, list[str]] = {}
    for one in check.scorers if able else ():
        if not one.samples and one.lacks:
            lacking.setdefault(one.lacks, []).append(one.name)
    if lacking:
        rows = tuple((Cell(lacks), Cell(", ".join(names))) for lacks, names in lacking.items())
        listed = Table("Other scorers", (words("what the data lack"), words("scorers")), rows)
        yield Section("Other scorers", tables=(listed,))


def _next(check: DataCheck, front_end: FrontEnd) -> Iterator[Section]:
    notes = tuple(front_end.written(parts) for parts in (*_missing(check), *_expected(check), *_like(check)))
    if check.commands or notes:
        yield Section("Next", check.commands, notes=notes)


def _expected(check: DataCheck) -> Iterator[tuple[WordingPart, ...]]:
    """What to do if the answers are the expected ones, as in question-answering data."""
    columns = {one.field: one.columns for one in check.fields if one.values}
    answers = [column for column in columns.get("output", ()) if normal(column) == "answer"]
    if answers and columns.keys().isdisjoint(("context", "messages", "reference")):
        yield (
            f"If the column {named(answers[0])}, read as output, has the expected answers, map it: ",
            Setting("map", {"reference": named(answers[0])}),
        )


def _like(check: DataCheck) -> Iterator[tuple[WordingPart, ...]]:
    """How to map the columns that are named like fields."""
    like = {name: path for one in reversed(check.unread) for name, path in one.like.items()}
    if like and check.scorers:
        columns = (
            "This column is named like a field; if it is one, map it: "
            if len(like) == 1
            else "These columns are named like fields; map those that are: "
        )
        yield columns, Setting("map", {name: named(path) for name, path in like.items()})


def _missing(check: DataCheck) -> Iterator[tuple[WordingPart, ...]]:
    """What must be added before scorers can score the samples."""
    present = {one.field for one in check.fields if one.values or one.blank}
    if not check.scorers or "output" in present or not all("--target " in one for one in check.commands):
        return
    if {"input", "messages", "turns"}.isdisjoint(present):
        yield (
            "No scorer can score the samples: they have no input and no output. Name the columns that have them: ",
            Setting("map", {"input": "COLUMN", "output": "COLUMN"}),
        )
        return
    mapped = ("If a column has the answers, name it: ", Setting("map", {"output": "COLUMN"}))
    yield (
        "No sample has an output, which most scorers need. A target answers the samples; my_app:agent stands for your "
        "function, and commands, addresses and models are targets, too (docs/targets.md). ",
        *(() if any("output" in one.like for one in check.unread) else mapped),
    )
