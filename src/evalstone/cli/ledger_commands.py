"""What the commands of `evalstone ledger` do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from rich.table import Table
from rich.text import Text

from evalstone.api import DEFAULT_LEDGER
from evalstone.cli.screen import console
from evalstone.datasets.writing import write_jsonl
from evalstone.errors import ConfigError, DataError
from evalstone.ledger.copy import PARQUET_COLUMNS, export_records, import_rows, write_parquet
from evalstone.ledger.copy import export_rows as exported
from evalstone.ledger.location import is_there, shown
from evalstone.ledger.maintenance import LedgerInfo, PruneCriteria, info, prune, verify
from evalstone.ledger.recover import recover
from evalstone.ledger.schema import SCHEMA_VERSION
from evalstone.ledger.store import Ledger
from evalstone.report.text import money, safe

OK, UNSOUND = 0, 1
LAST_RUNS = 10


def _there(ledger: str | None) -> str:
    """The ledger that is meant. Raises ConfigError when there is none, rather than making one."""
    url = ledger or DEFAULT_LEDGER
    if not is_there(url):
        raise ConfigError(f"there is no ledger {shown(url)}; name one with --ledger")
    return url


def _table(*columns: str, numbers: Iterable[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, justify="right" if column in numbers else "left")
    return table


def show_info(ledger: str | None) -> None:
    """Print what a ledger holds."""
    with Ledger(_there(ledger)) as book:
        found, last = info(book), book.runs(LAST_RUNS)
    screen = console()
    told = f"{found.location}: version {found.schema_version}, {found.size / 1e6:,.1f} MB"
    counts = {f"{kind}s": count for kind, count in found.counts.items()}
    counts |= {"runs that have not ended": found.unfinished, "of them under way": found.in_progress}
    counts |= {"open batches": found.open_batches} if found.open_batches else {}
    screen.print(Text(told))
    screen.print(Text(", ".join(f"{name}: {count:,}" for name, count in counts.items()) + "\n"))
    _show_judges(found)
    if last:
        table = _table("run", "started", "ended", "data set", "judge")
        for row in last:
            names = (_told(row.metadata, "dataset", "name"), _told(row.metadata, "judge", "identity"))
            table.add_row(row.id, row.started, row.finished or "-", *names)
        screen.print(table)


def _told(about: Mapping[str, Any], part: str, name: str) -> str:
    inner = about.get(part)
    return safe(str(cast("Mapping[str, Any]", inner).get(name, ""))) if isinstance(inner, Mapping) else ""


def _show_judges(found: LedgerInfo) -> None:
    if not found.judges:
        return
    table = _table("judge", "answers", "tokens", "cost kept", numbers=("answers", "tokens", "cost kept"))
    for line in found.judges:
        unpriced = f" and {line.unpriced:,} without a price" if line.unpriced else ""
        table.add_row(safe(line.judge), f"{line.answers:,}", f"{line.tokens:,}", f"{money(line.cost)}{unpriced}")
    screen = console()
    screen.print(table)
    screen.print()


def export_rows(ledger: str | None, to: str, what: str, run: str) -> None:
    """Write rows into a file."""
    if what not in ("all", *PARQUET_COLUMNS):
        raise ConfigError(f"--what takes all, {' or '.join(PARQUET_COLUMNS)}, not {what!r}")
    ending = Path(to).suffix.lower()
    if ending not in (".jsonl", ".parquet"):
        raise ConfigError(f"the file's name must end in .jsonl or .parquet, not {to!r}")
    if ending == ".parquet" and what == "all":
        raise ConfigError("a Parquet file holds one kind of row: add --what answers or --what records")
    with Ledger(_there(ledger)) as book:
        rows = (
            export_records(book, run)
            if what == "records"
            else exported(book, *(["answer"] if what == "answers" else []))
        )
        if ending == ".parquet":
            count = write_parquet(to, what, rows)
        else:
            counter = _Counted(rows)
            write_jsonl(to, counter)
            count = counter.count
    console().print(Text(f"{count:,} rows written to {to}"))


class _Counted:
    """An iterable that counts what went by."""

    def __init__(self, values: Iterable[Any]) -> None:
        self._values = values
        self.count = 0

    def __iter__(self) -> Iterator[Any]:
        for value in self._values:
            self.count += 1
            yield value


def import_files(ledger: str | None, files: list[str]) -> None:
    """Bring exported rows into a ledger, which is made when it is not there."""
    screen = console()
    with Ledger(ledger or DEFAULT_LEDGER) as book:
        for file in files:
            added = import_rows(book, _read(Path(file)))
            told = ", ".join(f"{kind}s: {count:,}" for kind, count in added.items() if count) or "nothing"
            screen.print(Text(f"{file}: new in {book.location}: {told}"))


def _read(file: Path) -> Iterator[tuple[str, Any]]:
    try:
        with file.open(encoding="utf-8") as text:
            for number, line in enumerate(text, start=1):
                yield f"{file}, line {number}", json.loads(line)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{file} is no text in UTF-8") from None
    except ValueError as error:
        raise DataError(f"{file}: not JSON Lines ({error})") from None


def prune_rows(ledger: str | None, older: float | None, unfinished: bool, unused: bool, yes: bool) -> None:
    """Delete what is named, or say what would go."""
    if older is None and not unfinished and not unused:
        raise ConfigError("name what is to go: --older-than DAYS, --unfinished, --unused-answers")
    pruning = PruneCriteria(None if older is None else timedelta(days=older), unfinished, unused)
    with Ledger(_there(ledger)) as book:
        gone = prune(book, pruning, delete=yes)
        if yes and (gone.runs or gone.answers):
            book.compact()
    told = f"runs: {gone.runs:,}, with records: {gone.records:,}; answers: {gone.answers:,}"
    told += f"; batches that were waited for: {gone.batches:,}" if gone.batches else ""
    console().print(Text(f"Deleted {told}." if yes else f"Would delete {told}. Nothing was deleted; add --yes."))


def show_verdict(ledger: str | None) -> int:
    """Say whether a ledger is sound; the exit code."""
    url = _there(ledger)
    found = verify(url)
    screen = console()
    for told in (*found.damage, *found.invalid_rows):
        screen.print(Text(f"  {safe(told, 500)}"))
    if not found.sound:
        screen.print(
            Text(f"{shown(url)} is damaged. `evalstone ledger recover {shown(url)} --into NEW.db`", style="red")
        )
        screen.print(Text("copies what can be read into a new ledger; the damaged one is not touched."))
        return UNSOUND
    if found.schema_version != SCHEMA_VERSION:
        screen.print(
            Text(f"{shown(url)} is whole, and of version {found.schema_version or 'none yet'}; its rows were not read.")
        )
        return OK
    screen.print(Text(f"{shown(url)} is sound: version {found.schema_version}, {found.rows:,} rows read."))
    return OK


def recover_rows(bad: str, into: str) -> None:
    """Copy what can be read."""
    found = recover(bad, into)
    table = _table("rows", "copied", "there already", "unreadable", "broken")
    for kind, count in found.items():
        numbers = (count.copied, count.existing, count.unreadable, count.invalid)
        table.add_row(f"{kind}s", *(f"{number:,}" for number in numbers))
    screen = console()
    screen.print(table)
    screen.print(Text(f"\nWhat could be read of {bad} is in {shown(into)}."))
