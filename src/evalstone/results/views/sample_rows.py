"""Results as rows of samples, with the metadata of the samples: what CSV files and data frames have.

A value of the metadata is a text, a number or a boolean; anything else is its JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError
from evalstone.report.frames import CellValue, SampleRows
from evalstone.results.pairing import pair_samples
from evalstone.results.stored_records import Facts, facts_in
from evalstone.results.views.samples import scored_answer, with_texts
from evalstone.types import Record, Sample
from evalstone.types.reserved_metadata import WRITTEN_METADATA

if TYPE_CHECKING:
    from evalstone.results.calibration import Calibration
    from evalstone.results.columns import Entry
    from evalstone.results.compare import Comparison
    from evalstone.results.run import Run

METADATA = "metadata."
"""In front of the names of columns with metadata."""

# ---- Metadata ----


def metadata_names(samples: Iterable[Sample] | None) -> tuple[str, ...]:
    """The names of the metadata of samples, in the order in which they occur."""
    names = dict.fromkeys(name for sample in samples or () for name in sample.metadata)
    return tuple(name for name in names if name not in WRITTEN_METADATA)


def metadata_values(sample: Sample | None, names: Iterable[str]) -> Iterator[CellValue]:
    """The values of the metadata of these names, None where a sample has none."""
    for name in names:
        yield None if sample is None else _plain(sample.metadata.get(name))


def _plain(value: object) -> CellValue:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return json.dumps(to_jsonable(value), ensure_ascii=False)


def _named(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{METADATA}{name}" for name in names)


# ---- Runs ----

RUN_COLUMNS = (
    "sample_id", "scorer", "outcome", "value", "scale", "reason", "question", "answer", "group", "seconds", "cost",
    "signature", "weight", "trial",
)  # fmt: skip
_BEFORE = RUN_COLUMNS.index("question")
"""The number of facts of a record before the texts of its sample."""


def run_rows(run: Run) -> SampleRows:
    """One row for each sample and scorer of a run, in the order of the dataset if it is available."""
    keeps, names, records = bool(run.keeps_reasoning), metadata_names(run.samples), run.records

    def rows() -> Iterator[Sequence[CellValue]]:
        for places, sample in cases_of(run):
            texts, metadata = _texts(sample, keeps_reasoning=keeps), (*metadata_values(sample, names),)
            for place in places:
                yield *_row(facts_in(records, place), texts), *metadata

    return SampleRows((*RUN_COLUMNS, *_named(names)), rows())


def record_rows(records: Iterable[Record]) -> SampleRows:
    """Records, with the columns of a run."""
    return SampleRows(RUN_COLUMNS, [_row(Facts.of(record), _texts(None)) for record in records])


def cases_of(run: Run) -> Iterator[tuple[Sequence[int], Sample | None]]:
    """The places of the records of each sample and trial, with the sample if its texts are available."""
    cases = run.columns.by_case()
    if run.samples is None:
        yield from ((places, None) for _, places in cases)
        return
    case = next(cases, None)
    for sample in run.samples:
        if case is None:
            return
        name, places = case
        if (sample.id, sample.trial) == name:
            yield places, sample
            case = next(cases, None)
    # What is left is in another order than the data, or has no texts.
    left = dict([case] if case else [])
    left.update(cases)
    for name, sample in with_texts(run.samples, left, key=lambda sample: (sample.id, sample.trial)):
        yield left[name], sample


_Texts: TypeAlias = tuple[str | None, str | None]
"""The question and the answer that was scored."""


def _texts(sample: Sample | None, *, keeps_reasoning: bool = False) -> _Texts:
    if sample is None:
        return None, None
    answer = None if sample.output is None else scored_answer(sample, keeps_reasoning=keeps_reasoning).answer
    return sample.input, answer


def _row(facts: Facts, texts: _Texts) -> Sequence[CellValue]:
    """A record, with the columns of a run."""
    return *facts[:_BEFORE], *texts, *facts[_BEFORE:]


# ---- Comparisons ----

COMPARISON_COLUMNS = (
    "sample_id", "trial", "scorer", "a", "b", "outcome_a", "outcome_b", "value_a", "value_b", "difference", "group",
    "weight",
)  # fmt: skip


def comparison_rows(comparison: Comparison) -> SampleRows:
    """One row for each sample, scorer and run that is compared with the baseline. A sample that only one of the runs
    has is a row without the values of the other.

    Raises:
        ConfigError: the runs were compared without pairing their samples.
    """
    runs = comparison.runs
    samples = {letter: {sample.key: sample for sample in run.samples or ()} for letter, run in runs.items()}
    names = metadata_names(sample for of_run in samples.values() for sample in of_run.values())
    return SampleRows((*COMPARISON_COLUMNS, *_named(names)), _compared(comparison, samples, names))


def _compared(
    comparison: Comparison, samples: Mapping[str, Mapping[str, Sample]], names: Sequence[str]
) -> Iterator[Sequence[CellValue]]:
    from evalstone.stats.unpaired import UnpairedComparison  # noqa: PLC0415 - numpy

    for line in comparison.scorers:
        if isinstance(line.result, UnpairedComparison):
            raise ConfigError("these runs were compared without pairing their samples, so there are no rows of pairs")
        pairing = pair_samples(comparison.runs["A"], comparison.runs[line.b])
        ours = {entry.key: entry for entry in comparison.runs["A"].columns.entries(line.info.signature)}
        theirs = {
            pairing.in_first(entry.key): entry
            for entry in comparison.runs[line.b].columns.entries(line.info_b.signature)
        }
        for key in dict.fromkeys([*ours, *theirs]):
            before, now = ours.get(key), theirs.get(key)
            entry = before or now
            sample = samples["A"].get(key) or (None if now is None else samples[line.b].get(now.key))
            if entry is not None:
                yield [*_pair_row(entry, before, now, line.title, line.a, line.b), *metadata_values(sample, names)]


def _pair_row(
    entry: Entry, before: Entry | None, now: Entry | None, scorer: str, a: str, b: str
) -> Sequence[CellValue]:
    values = [None if one is None else one.value for one in (before, now)]
    return (
        entry.sample_id,
        entry.trial,
        scorer,
        a,
        b,
        *(None if one is None else one.kind for one in (before, now)),
        *values,
        None if values[0] is None or values[1] is None else values[1] - values[0],
        entry.group,
        entry.weight,
    )


# ---- Calibrations ----

CALIBRATION_COLUMNS = (
    "sample_id", "scorer", "judge", "value", "label", "truth", "verdict", "error", "probability",
)  # fmt: skip


def calibration_rows(calibration: Calibration) -> SampleRows:
    """One row for each labeled sample with a score. Truth and verdict are yes or no; annotators who are split leave the
    truth empty. With several annotators, each has a column. Metadata are the fields of `slice_by`."""
    several = len(calibration.pairs[0].labels) > 1
    annotators = [f"label {name}" for name in _annotators(calibration)] if several else []
    fields = tuple(dict.fromkeys(field for pair in calibration.pairs for field in pair.slices))
    errors = {one.pair.sample_id: one.error for one in calibration.disagreements}
    verdicts = {True: "yes", False: "no", None: None}

    def row(place: int) -> Sequence[CellValue]:
        pair = calibration.pairs[place]
        return (
            pair.sample_id,
            calibration.scorer,
            calibration.judge,
            pair.value,
            pair.label,
            verdicts[pair.truth(calibration.label_threshold, calibration.scale)],
            verdicts[calibration.says_yes(pair.value)],
            errors.get(pair.sample_id),
            calibration.probability(pair.value),
            *(pair.labels if several else ()),
            *(pair.slices.get(field) for field in fields),
        )

    rows = map(row, range(len(calibration.pairs)))
    return SampleRows((*CALIBRATION_COLUMNS, *annotators, *_named(fields)), rows)


def _annotators(calibration: Calibration) -> Sequence[str]:
    """The columns of labels, or the annotators' numbers if one column has the labels of all."""
    number = len(calibration.pairs[0].labels)
    if len(calibration.columns) == number:
        return calibration.columns
    return [str(place) for place in range(1, number + 1)]
