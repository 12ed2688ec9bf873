"""Label files: CSV or JSON Lines with an id and a label, to which human labels are appended one by one."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

from evalstone._core.files import cannot_write, file_lines, private
from evalstone.errors import ConfigError, DataError

COLUMNS = ("id", "label")
CSV_SUFFIX = ".csv"
SUFFIXES = (CSV_SUFFIX, ".jsonl")


class LabelFile:
    """A file of labels to append to. Each label is on disk when `add` returns.

    Raises:
        ConfigError: The path is neither .csv nor .jsonl.
        DataError: The CSV file doesn't have the columns id and label.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.suffix not in SUFFIXES:
            raise ConfigError(f"labels go to a {' or '.join(SUFFIXES)} file, not {str(path)!r}")
        self.columns = self._columns()

    @property
    def exists(self) -> bool:
        """Whether the file already has labels."""
        return self.path.exists() and self.path.stat().st_size > 0

    def _columns(self) -> tuple[str, ...]:
        if self.path.suffix != CSV_SUFFIX or not self.exists:
            return COLUMNS
        try:
            columns = tuple(next(csv.reader(line + "\n" for _, line in file_lines(self.path)), ()))
        except (OSError, csv.Error) as error:
            raise DataError(f"{self.path}: the header can't be read ({error})") from None
        if missing := [name for name in COLUMNS if name not in columns]:
            raise DataError(f"{self.path}: missing column {' and '.join(missing)}; columns: {', '.join(columns)}")
        return columns

    def add(self, sample: str, label: str) -> None:
        """Append one label, a number or a word.

        Raises:
            ConfigError: The path isn't a writable file, or the id would be a formula in a spreadsheet.
            WriteError: The disk is full.
        """
        text = self._line(sample, label)
        try:
            with open(self.path, "a+b", opener=private) as file:
                if not self.exists and self.path.suffix == CSV_SUFFIX:
                    file.write((",".join(self.columns) + "\n").encode())
                elif not _ends_with_a_line(file):
                    file.write(b"\n")
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot_write(f"cannot write {self.path}", error) from None

    def _line(self, sample: str, label: str) -> str:
        if self.path.suffix != CSV_SUFFIX:
            return json.dumps({"id": sample, "label": label}) + "\n"
        if sample.lstrip()[:1] in tuple("=+-@\t\r"):
            raise ConfigError(f"the id {sample!r} would be a formula in a spreadsheet; use a .jsonl file")
        row = {"id": sample, "label": label}
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerow([row.get(name, "") for name in self.columns])
        return buffer.getvalue()


def _ends_with_a_line(file: io.BufferedRandom) -> bool:
    if not file.seek(0, os.SEEK_END):
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"
