"""Slices: the means of a run's samples by metadata field, and the slices that are worse than the other samples."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from evalstone._core.display import count
from evalstone._core.front_ends import PYTHON, FrontEnd, Setting
from evalstone._core.json import to_jsonable
from evalstone._core.sync import is_async
from evalstone._core.text import is_blank
from evalstone.errors import ConfigError, absent, unknown
from evalstone.report.shown import Shown
from evalstone.results.of_scorer import OfScorer
from evalstone.results.scores import scores_of
from evalstone.stats.intervals import Interval
from evalstone.stats.multiple_testing import adjust_p_values
from evalstone.types import Sample, metadata_at

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.run import Run
    from evalstone.stats.slices import SliceFinding

SliceBy: TypeAlias = str | Callable[[Sample], Any]
"""A metadata field (`a.b` is entry b of the object in a), or a function of a sample."""

ABSENT = "(absent)"
_WHOLE = re.compile(r"\A(-?[0-9]+)\.0\Z")
_BOOLEANS = ("True", "TRUE", "False", "FALSE")


@dataclass(frozen=True, kw_only=True)
class SliceMean:
    """The mean of a slice: the samples that share a value of a field."""

    field: str
    """The metadata field, or the name of the function."""
    key: str
    """The shared value; "(absent)" for samples without the field, or with a blank text in it."""
    interval: Interval
    """The mean with its confidence interval."""


@dataclass(frozen=True, kw_only=True)
class ScorerSlices(OfScorer, Shown):
    """The slices of one scorer."""

    means: tuple[SliceMean, ...]
    """Every slice, sorted by field and key."""
    findings: tuple[SliceFinding, ...]
    """Slices with at least five samples inside and outside, each compared with all other samples, smallest p-value
    first. p-values are corrected (Holm) over all scorers and slices of the report."""
    weighted: bool = False
    """Whether samples have unequal weights, so that means are weighted."""

    def __repr__(self) -> str:
        return f"<ScorerSlices of {self.title}: {count(len(self.means), 'slice')}>"

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The table of slices that `evalstone report --slice-by` shows."""
        from evalstone.results.views.slices import slices_view  # noqa: PLC0415 - only showing it needs it

        return slices_view(self, front_end)


def slices(run: Run, by: SliceBy | Iterable[SliceBy], *, confidence: float = 0.95) -> tuple[ScorerSlices, ...]:
    """The slices of a run, for each scorer with scores.

    Args:
        run: the run; its samples must be available.
        by: a metadata field, a function of a sample, or several of them.
        confidence: the confidence level of findings, and of all intervals of a scorer together.

    Raises:
        ConfigError: no field is given, no sample has the field, or the samples are not available.
    """
    from evalstone.stats.slices import slice_by, worst_slices  # noqa: PLC0415 - numpy, which only slices need

    fields = slice_fields(by)
    if not fields:
        raise ConfigError("slices need a metadata field, or a function of a sample")
    keys = {field_name(field): slice_keys(run, field) for field in fields}
    results: list[ScorerSlices] = []
    for info in run.scorers:
        scores = scores_of(run, info.signature)
        if not scores.names:
            continue
        values, groups, weights = scores.known_values, scores.labels, scores.unequal_weights
        columns = {field: [key_of.get(name, ABSENT) for name in scores.names] for field, key_of in keys.items()}
        parts = {
            field: slice_by(
                values,
                column,
                scale=info.scale,
                confidence=confidence,
                groups=groups,
                weights=weights,
                together=sum(len(set(every)) for every in columns.values()),
            )
            for field, column in columns.items()
        }
        findings = worst_slices(
            values,
            parts,
            scale=info.scale,
            lower_is_better=info.lower_is_better,
            groups=groups,
            weights=weights,
            correction="none",
        )
        means = [
            SliceMean(field=field, key=str(part.key), interval=part.interval)
            for field, of_field in parts.items()
            for part in of_field
        ]
        means.sort(key=lambda part: (part.field, *slice_order(part.key)))
        results.append(
            ScorerSlices(
                title=run.titles[info.signature],
                info=info,
                means=tuple(means),
                findings=findings,
                weighted=weights is not None,
            )
        )
    adjusted = iter(adjust_p_values([finding.p_value for result in results for finding in result.findings]))
    return tuple(
        replace(
            result, findings=tuple(replace(finding, adjusted_p_value=next(adjusted)) for finding in result.findings)
        )
        for result in results
    )


def slice_fields(by: SliceBy | Iterable[SliceBy] | None) -> Sequence[SliceBy]:
    """A field or several fields as a list without duplicates. Raises ConfigError for anything else."""
    if by is None:
        return []
    fields = list(cast("Iterable[SliceBy]", by)) if isinstance(by, Iterable) and not isinstance(by, str) else [by]
    for field in fields:
        if not (isinstance(field, str) or callable(field)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"slices are by a metadata field or a function of a sample, not {field!r}")
    return list(dict.fromkeys(fields))


def field_name(field: SliceBy) -> str:
    """The name of a field or function in reports."""
    return field if isinstance(field, str) else getattr(field, "__name__", "slice").strip("<>") or "slice"


def slice_keys(run: Run, field: SliceBy) -> Mapping[str, str]:
    """The slice key of every sample, by the sample's id and by its key; "(absent)" for samples without the field.

    Raises:
        ConfigError: the samples are not available, or no sample has the field.
    """
    if run.samples is None:
        raise ConfigError(
            f"the samples of run {run.id} are not available, and slices need their metadata: name the dataset (",
            Setting("dataset", ...),
            ")",
        )
    return keys_of_samples(run.samples, field)


def keys_of_samples(samples: Iterable[Sample], field: SliceBy) -> Mapping[str, str]:
    """The slice key of every sample, by the sample's id and by its key; "(absent)" for samples without the field.

    Raises:
        ConfigError: no sample has the field, or it is an async function.
    """
    if is_async(field):
        raise ConfigError(f"slices need a plain function of a sample, and {field_name(field)} is async")
    names: dict[str, None] = {}
    keys: dict[str, str] = {}
    for sample in samples:
        keys[sample.key] = key_of_sample(sample, field)
        keys.setdefault(sample.id, keys[sample.key])
        names.update(dict.fromkeys(map(str, sample.metadata)))
    if isinstance(field, str) and set(keys.values()) == {ABSENT}:
        if not names:
            raise ConfigError(absent(field, f"no sample has metadata, so none has {field!r}"))
        raise ConfigError(unknown("metadata field", field, names))
    return keys


def key_of_sample(sample: Sample, field: SliceBy) -> str:
    """The slice key of a sample; "(absent)" without the field."""
    if not isinstance(field, str):
        return _key(field(sample))
    value = metadata_at(sample.metadata, field)
    return _key(sample.group if value is None and field == "group" else value)


def _key(value: object) -> str:
    """The key of a value. A blank text is absent, as a blank cell of a CSV file is. Booleans and whole numbers are
    those of JSON, also as Python, pandas and spreadsheets write them into such a cell: True, TRUE, 1.0."""
    if value is None or (isinstance(value, str) and is_blank(value)):
        return ABSENT
    key = str(to_jsonable(value))
    return key.lower() if key in _BOOLEANS else _WHOLE.sub(r"\1", key)


def slice_order(key: str) -> tuple[bool, float, str]:
    """The sort key of a slice: numbers in numerical order, before words."""
    try:
        value = float(key)
    except ValueError:
        return True, 0.0, key
    return (False, value, key) if math.isfinite(value) else (True, 0.0, key)
