"""CSV that no spreadsheet executes: one row per sample and scorer of a run, or per scorer and slice of a comparison.

Spreadsheets treat a cell as a formula if its text begins with one of = + - @, possibly after quotes or spaces. Such a
cell gets an apostrophe in front. So does text after a semicolon or a line break, where some spreadsheets split the row.
Text is quoted, including its line breaks; numbers are not.
Source: OWASP, "CSV Injection".
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from evalstone._core.display import visible
from evalstone.results.compare import Comparison, ScorerComparison
from evalstone.results.run import Run
from evalstone.results.views.samples import scored_answer, with_texts
from evalstone.types import OUTCOME_NAMES, Failed, Record, Sample, Score

LONGEST_CELL = 32_000
"""A spreadsheet cell holds at most 32,767 characters."""
_FORMULA = re.compile(
    r"""^(?=[\s"'`]*[=+\-@|%\uff1d\uff0b\uff0d\uff20\u2212])|(?<=;)(?=["'`]*[=+\-@])"""
    # the beginning of a line, where some spreadsheets split the row; a bullet is harmless
    r"""|(?<=\n)(?=[ \t"'`]*[=+\-@])(?![ \t]*[-+] [^(|!=\n]*(?:\n|\Z))"""
)

Cell = str | float | int | None


def inert(text: str) -> str:
    """Text that no spreadsheet treats as a formula, cut to the size of a cell."""
    shown = visible(re.sub("\r\n?", "\n", text[: LONGEST_CELL + 1]))
    return _FORMULA.sub("'", shown if len(shown) <= LONGEST_CELL else shown[: LONGEST_CELL - 1] + "…")


def csv_rows(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """Lines of CSV: text quoted and inert, numbers bare, None an empty cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    for row in itertools.chain([header], rows):
        writer.writerow([inert(cell) if isinstance(cell, str) else "" if cell is None else cell for cell in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


RUN_HEADER = (
    "sample", "scorer", "outcome", "value", "scale", "reason", "question", "answer", "group", "seconds", "cost",
    "signature", "weight",
)  # fmt: skip


def run_csv(run: Run) -> Iterator[str]:
    """A run as lines of CSV, in the order of the dataset if it is available."""
    records: dict[tuple[str, int | None], list[Record]] = {}
    for record in run.records:
        records.setdefault((record.sample, record.trial), []).append(record)
    trials = any(trial is not None for _, trial in records)
    rows = (
        (*_run_row(record, sample, run), *((record.trial,) if trials else ()))
        for case, sample in with_texts(run.dataset, tuple(records), key=lambda sample: (sample.id, sample.trial))
        for record in records.pop(case)
    )
    return csv_rows((*RUN_HEADER, "trial") if trials else RUN_HEADER, rows)


def _run_row(record: Record, sample: Sample | None, run: Run) -> Sequence[Cell]:
    outcome, answer = record.outcome, None
    if sample is not None and sample.output is not None:
        answer = scored_answer(sample, keeps_reasoning=bool(run.keeps_reasoning)).answer
    return (
        record.sample,
        run.titles[record.scorer],
        OUTCOME_NAMES[type(outcome)],
        record.value,
        outcome.scale if isinstance(outcome, Score) else None,
        outcome.error if isinstance(outcome, Failed) else outcome.reason,
        None if sample is None else sample.input,
        answer,
        record.group,
        record.seconds,
        record.cost,
        record.scorer,
        record.weight,
    )


COMPARISON_HEADER = (
    "scorer", "a", "b", "field", "slice", "n", "mean a", "mean b", "difference", "low", "high", "p", "adjusted p",
    "wins", "ties", "losses", "verdict", "signature", "test", "missing", "max change", "margin", "equivalence p",
)  # fmt: skip


def comparison_csv(comparison: Comparison) -> Iterator[str]:
    """A comparison as lines of CSV: one row per scorer, pair of runs and slice."""
    return csv_rows(COMPARISON_HEADER, map(_comparison_row, (*comparison.scorers, *comparison.slices)))


def _comparison_row(line: ScorerComparison) -> Sequence[Cell]:
    from evalstone.stats.unpaired import UnpairedComparison  # noqa: PLC0415 - numpy

    result = line.result
    difference, paired = result.difference, None if isinstance(result, UnpairedComparison) else result
    return (
        line.title, line.a, line.b, line.field, line.key, difference.n, result.mean_a, result.mean_b, difference.mean,
        difference.low, difference.high, result.p_value, line.adjusted_p_value,
        *((None,) * 3 if paired is None else (paired.wins, paired.ties, paired.losses)),
        line.verdict, line.info.signature, result.test.name, result.missing,
        *((None,) * 2 if paired is None else (paired.max_change, paired.margin)),
        line.adjusted_equivalence,
    )  # fmt: skip
