"""Label files: CSV or JSON Lines with an id and a label, to which human labels are appended one by one."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

from evalstone._core.file_format import LABEL_FORMAT
from evalstone._core.files import cannot_write, encoding_of, private
from evalstone._core.guards import is_object
from evalstone.datasets.files import csv_layout, find
from evalstone.errors import ConfigError, DataError

COLUMNS = ("id", "label")
CSV_SUFFIX = ".csv"
_LONGEST_MARK = 4
SUFFIXES = (CSV_SUFFIX, ".jsonl")


class LabelFile:
    """A file of labels to append to. Each label is on disk when `add` returns.

    Labels are added in the encoding of the file, and with the delimiter and the columns of a CSV file.

    Raises:
        ConfigError: The path is neither .csv nor .jsonl.
        DataError: The file can't be read, or its header or first row doesn't have the columns id and label.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.suffix not in SUFFIXES:
            raise ConfigError(f"labels go to a {' or '.join(SUFFIXES)} file, not {str(path)!r}")
        self.delimiter, self.columns = self._layout()

    @property
    def exists(self) -> bool:
        """Whether the file already has labels."""
        return self.path.exists() and self.path.stat().st_size > 0

    def _layout(self) -> tuple[str, tuple[str, ...]]:
        """The delimiter and the columns."""
        if not self.exists:
            return ",", COLUMNS
        try:
            delimiter, columns = csv_layout(self.path) if self.path.suffix == CSV_SUFFIX else (",", self._keys())
        except DataError as error:
            raise DataError(f"{self.path}: ", error) from None
        if missing := [name for name in COLUMNS if name not in columns]:
            raise DataError(
                f"{self.path}: missing column {' and '.join(missing)}; columns: {', '.join(columns)}. Rename the "
                "columns, or add labels to a new file"
            )
        return delimiter, columns

    def _keys(self) -> tuple[str, ...]:
        """The keys of the first row. Labels under another name than those that are added would not be read."""
        _, row = next(find(self.path).rows(), ("", None))
        return tuple(row) if is_object(row) else COLUMNS

    def add(self, sample: str, label: str) -> None:
        """Append one label, a number or a word.

        Raises:
            ConfigError: The path isn't a writable file, or the id would be a formula in a spreadsheet.
            WriteError: The disk is full.
        """
        text = self._line(sample, label)
        try:
            with open(self.path, "a+b", opener=private) as file:
                file.seek(0)
                encoding, _ = encoding_of(file.read(_LONGEST_MARK))
                if not self.exists and self.path.suffix == CSV_SUFFIX:
                    text = ",".join(self.columns) + "\n" + text
                elif not _ends_with_a_line(file, encoding):
                    text = "\n" + text
                file.write(text.encode(encoding))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot_write(f"cannot write {self.path}", error) from None

    def _line(self, sample: str, label: str) -> str:
        if self.path.suffix != CSV_SUFFIX:
            return json.dumps({"format": LABEL_FORMAT, "id": sample, "label": label}) + "\n"
        if sample.lstrip()[:1] in tuple("=+-@\t\r"):
            raise ConfigError(f"the id {sample!r} would be a formula in a spreadsheet; use a .jsonl file")
        row = {"id": sample, "label": label}
        buffer = io.StringIO()
        csv.writer(buffer, delimiter=self.delimiter, lineterminator="\n").writerow(
            [row.get(name, "") for name in self.columns]
        )
        return buffer.getvalue()


def _ends_with_a_line(file: io.BufferedRandom, encoding: str) -> bool:
    ends = [end.encode(encoding) for end in "\n\r"]
    size = file.seek(0, os.SEEK_END)
    file.seek(-min(size, len(ends[0])), os.SEEK_END)
    return not size or file.read() in ends
