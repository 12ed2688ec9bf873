"""One sample of a run in full: its texts, its outcomes, and the judge calls behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from evalstone._core.display import listed
from evalstone._core.file_format import SCORED_SAMPLE_FORMAT
from evalstone.datasets.stored import sample_row
from evalstone.errors import UnknownName
from evalstone.report.view import FOOTER, Cell, Column, Section, View, table, words
from evalstone.results.views.calls import CALL_COLUMNS, Prompts, call_rows
from evalstone.results.views.samples import goodness, sample_view, with_texts
from evalstone.types import Record, Sample, case_key

if TYPE_CHECKING:
    from evalstone.results.run import Run

OUTCOMES = (Column("scorer", numeric=False), Column("score"), words("reason"))
CALLS = (words("scorer"), *CALL_COLUMNS)


@dataclass(frozen=True)
class OneSample:
    """A sample of a run with its records."""

    run: str
    """The ID of the run."""
    key: str
    """The sample's ID, with the number of the trial if there are several: `q1 #2`."""
    sample: Sample | None
    """The sample; None if the run has no texts."""
    records: tuple[Record, ...]
    """Its records."""
    asked: Mapping[str, Prompts] = field(default_factory=dict[str, Prompts])
    """What the judges were asked, by the signature of the scorer."""

    def to_dict(self) -> dict[str, Any]:
        """The sample, its records and what their judges were asked, as plain data."""
        return {
            "format": SCORED_SAMPLE_FORMAT,
            "run": self.run,
            "key": self.key,
            "sample": None if self.sample is None else sample_row(self.sample),
            "records": [record.to_dict() for record in self.records],
            "asked": {signature: each.to_dict() for signature, each in self.asked.items()},
        }


def one_sample(run: Run, key: str) -> OneSample:
    """The sample of a run, or the trial of a sample, with this key.

    Raises:
        UnknownName: The run has no results of such a sample.
    """
    cases = {case_key(*case): rows for case, rows in run.columns.by_case()}
    if (places := cases.get(key)) is None:
        trials = (each for each in cases if each.startswith(f"{key} #"))
        some = [*islice(trials, 3)] or [*islice(cases, 3)]
        raise UnknownName(f"the run has no results of a sample {key!r}; its keys are such as {listed(map(repr, some))}")
    ((_, sample),) = with_texts(run.samples, [key])
    return OneSample(run.id, key, sample, tuple(run.records[place] for place in places))


def one_sample_view(run: Run, found: OneSample) -> View:
    """A sample in full."""
    infos = {info.signature: info for info in run.scorers}
    values = [value for record in found.records if (value := goodness(record, infos[record.signature])) is not None]
    mean = sum(values) / len(values) if values else None
    keeps = bool(run.keeps_reasoning)
    whole = sample_view(
        found.key, found.sample, found.records, infos, run.titles, mean, keeps_reasoning=keeps, prompts=found.asked
    )
    scores = [
        (Cell(outcome.title), Cell(outcome.text, outcome.tone), Cell(outcome.reason, quoted=True))
        for outcome in whole.outcomes
    ]
    calls = [
        (run.titles[record.signature], *row)
        for record in found.records
        for call in record.calls
        for row in call_rows(call)
    ]
    tables = [table("Scores", OUTCOMES, scores)]
    tables += [table("Judge calls", CALLS, calls)] if calls else []
    name = run.name or run.dataset_name
    return View(
        name=found.key,
        lead=f"{name} · run {run.id}",
        sections=(Section("", tables=tuple(tables)),),
        whole=whole,
        footer=FOOTER,
    )
