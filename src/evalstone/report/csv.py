"""CSV that no spreadsheet executes: one row a sample and scorer.

A spreadsheet takes a cell for a formula when its text begins with one of = + - @, whatever quotes or spaces stand
before it; such a cell gets an apostrophe in front, as does a part behind a semicolon, at which some spreadsheets cut a
line anyway. Text is quoted and on one line; numbers are numbers.
Source: OWASP, "CSV Injection".
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from evalstone.report.results import SampleResult, results_of
from evalstone.report.terminal import safe
from evalstone.results.run import Run
from evalstone.types import OUTCOME_NAMES, Failed, Score

LONGEST_CELL = 32_000
"""Spreadsheets hold at most 32,767 signs in a cell."""
_FORMULA = re.compile(r"""^(?=[\s"'`]*[=+\-@|%\uff1d\uff0b\uff0d\uff20\u2212])|(?<=;)(?=["'`]*[=+\-@])""")

Cell = str | float | int | None


def inert(text: str) -> str:
    """Text on one line that no spreadsheet takes for a formula."""
    return _FORMULA.sub("'", safe(text, LONGEST_CELL))


def csv_rows(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """Lines of CSV: text quoted and inert, numbers bare, None an empty cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    for row in itertools.chain([header], rows):
        writer.writerow([inert(cell) if isinstance(cell, str) else "" if cell is None else cell for cell in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


HEADER = (
    "sample", "scorer", "outcome", "value", "scale", "reason", "question", "answer", "group", "seconds", "cost",
    "signature",
)  # fmt: skip


def run_csv(run: Run) -> Iterator[str]:
    """A run as lines of CSV."""
    return csv_rows(HEADER, (row for result in results_of(run) for row in _rows(run, result)))


def _rows(run: Run, result: SampleResult) -> Iterator[Sequence[Cell]]:
    sample = result.sample
    texts = (None, None) if sample is None else (sample.input, sample.output)
    for record in result.records:
        outcome = record.outcome
        yield (
            result.id,
            run.titles[record.scorer],
            OUTCOME_NAMES[type(outcome)],
            record.value,
            outcome.scale if isinstance(outcome, Score) else None,
            outcome.error if isinstance(outcome, Failed) else outcome.reason,
            *texts,
            record.group,
            record.seconds,
            record.cost,
            record.scorer,
        )
