"""Rows of samples as CSV and as data frames, with the same columns in each.

A data frame has one type for each column, so values of several types become texts there.
"""

from __future__ import annotations

import importlib
import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from evalstone.errors import MissingDependency

CellValue: TypeAlias = str | float | int | bool | None
MOST_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class SampleRows:
    """Rows with their columns. The rows can be read once."""

    columns: tuple[str, ...]
    rows: Iterable[Sequence[CellValue]]

    def csv_lines(self) -> Iterator[str]:
        """Lines of CSV that is safe to open in a spreadsheet."""
        from evalstone.report.csv import csv_rows  # noqa: PLC0415 - only who writes it needs it

        return csv_rows(self.columns, self.rows)

    def to_columns(self) -> dict[str, list[CellValue]]:
        """The values by column, each of one type."""
        values = zip(*self.rows, strict=True)
        found = {name: _of_one_type([*column]) for name, column in zip(self.columns, values, strict=False)}
        return found or {name: [] for name in self.columns}


class Framed:
    """A result with rows of samples, as data frames of pandas and polars."""

    @abstractmethod
    def sample_rows(self) -> SampleRows:
        """The rows, with the columns that data frames and CSV files have."""

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame. Raises MissingDependency without pandas."""
        return pandas_frame(self.sample_rows().to_columns())

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame. Raises MissingDependency without polars."""
        return polars_frame(self.sample_rows().to_columns())


def pandas_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A pandas DataFrame. Raises MissingDependency without pandas."""
    return _library("pandas").DataFrame(_whole(columns))


def polars_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A polars DataFrame. Raises MissingDependency without polars."""
    return _library("polars").DataFrame(_whole(columns), strict=False)


def _whole(columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Columns without halves of characters, which neither library takes."""
    return {_whole_text(name): [*map(_whole_text, values)] for name, values in columns.items()}


def _whole_text(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and not value.isascii() else value


def rows_by_column(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns, None where a row lacks one."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingDependency(name, name) from None


def _of_one_type(values: list[CellValue]) -> list[CellValue]:
    """Values of one column, as texts if they are of several types. Whole numbers and others are numbers."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    too_large = int in kinds and any(isinstance(value, int) and abs(value) > MOST_INTEGER for value in values)
    if len(kinds) < 2 and not too_large:
        return values
    return [
        value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values
    ]
