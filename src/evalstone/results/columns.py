"""The scores of a run in columns: what means, tests and rankings need of each record, in about 30 bytes."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from evalstone.results.summary import unanswered
from evalstone.types import Failed, Record, Score, case_key

Kind: TypeAlias = Literal["score", "undefined", "unanswered", "failed", "target_failed"]
"""What a record has: a score, or why it has none. A skipped sample is unanswered if the judge declined or reached no
verdict; otherwise, its score is undefined."""
_KINDS: tuple[Kind, ...] = get_args(Kind)
_CODES = {kind: code for code, kind in enumerate(_KINDS)}
_ABSENT = 255
_NO_TRIAL = 0


class Entry(NamedTuple):
    """A record without its reason, evidence and judge calls."""

    place: int
    """Its place among the records of the run."""
    sample: str
    trial: int | None
    scorer: str
    value: float | None
    """None without a score."""
    kind: Kind
    group: str | None
    weight: float | None

    @property
    def key(self) -> str:
        """The sample's `key`."""
        return case_key(self.sample, self.trial)

    @classmethod
    def of(cls, record: Record, place: int = 0) -> Entry:
        """The entry of a record. place: its place among the records of its run."""
        value, kind = record.value, _kind(record)
        return cls(place, record.sample, record.trial, record.scorer, value, kind, record.group, record.weight)

    @property
    def undefined(self) -> bool:
        """Whether the score is undefined. It isn't if the judge gave no answer."""
        return self.kind == "undefined"


class Columns:
    """The entries of a run's records, in their order.

    Args:
        scorers: The signatures of the scorers.
        cases: The number of samples and trials, if each has a cell for each scorer; 0 to append records in any order.
    """

    def __init__(self, scorers: Sequence[str], cases: int = 0) -> None:
        self._scorers = tuple(scorers)
        self._numbers = {signature: number for number, signature in enumerate(self._scorers)}
        cells = cases * len(self._scorers)
        self._samples: list[str] = [""] * cases
        self._trials = array("q", [_NO_TRIAL]) * cases
        self._groups: list[str | None] = []
        """By case; empty if no case has a group."""
        self._weights = array("d")
        """By case, NaN without a weight; empty if no case has a weight."""
        self._values = array("d", [math.nan]) * cells
        self._kinds = bytearray([_ABSENT]) * cells
        self._cells = array("q")
        """Of appended records, the cell that each would have; empty if every entry is in its cell."""
        self._grouped = True
        """Whether the entries of each case follow one another."""
        self._cases: dict[str | tuple[str, int], int] = {}
        """While records are appended, the case of each sample and trial."""
        self._filled = bytearray()
        """While records are appended, whether each cell has an entry."""

    @classmethod
    def of(cls, scorers: Sequence[str], records: Iterable[Record]) -> Columns:
        """The columns of records."""
        columns = cls(scorers)
        for record in records:
            columns.append(record)
        columns.seal()
        return columns

    def put(self, cell: int, record: Record) -> None:
        """Set the entry of a cell: the scorers of the first case, then those of the second, and so on."""
        case = cell // len(self._scorers)
        self._samples[case] = record.sample
        self._set_case(case, record)
        self._values[cell] = math.nan if record.value is None else record.value
        self._kinds[cell] = _CODES[_kind(record)]

    def append(self, record: Record) -> None:
        """Add the entry of a record after the others."""
        case = self._cases.setdefault(_name(record), len(self._samples))
        if case == len(self._samples):
            self._samples.append(record.sample)
            self._trials.append(_NO_TRIAL)
            self._filled.extend(bytes(len(self._scorers)))
            if self._groups:
                self._groups.append(None)
            if self._weights:
                self._weights.append(math.nan)
        self._set_case(case, record)
        cell = case * len(self._scorers) + self._numbers[record.scorer]
        self._grouped = self._grouped and (not self._cells or case >= self._cells[-1] // len(self._scorers))
        self._filled[cell] = True
        self._cells.append(cell)
        self._values.append(math.nan if record.value is None else record.value)
        self._kinds.append(_CODES[_kind(record)])

    @property
    def has_trials(self) -> bool:
        """Whether any sample has a trial."""
        return any(self._trials)

    @property
    def has_groups(self) -> bool:
        """Whether any sample has a group."""
        return len(self._groups) > 0

    @property
    def has_weights(self) -> bool:
        """Whether any sample has a weight."""
        return len(self._weights) > 0

    def has(self, record: Record) -> bool:
        """Whether an entry of the same sample, trial and scorer was appended."""
        case = self._cases.get(_name(record))
        return case is not None and bool(self._filled[case * len(self._scorers) + self._numbers[record.scorer]])

    def seal(self) -> None:
        """Free what appending needs, once all records are there."""
        self._cases, self._filled = {}, bytearray()

    def _set_case(self, case: int, record: Record) -> None:
        if record.trial is not None:
            self._trials[case] = record.trial
        if record.group is not None:
            if not self._groups:
                self._groups.extend([None] * len(self._samples))
            self._groups[case] = record.group
        if record.weight is not None:
            if not self._weights:
                self._weights.extend([math.nan] * len(self._samples))
            self._weights[case] = record.weight

    def by_case(self) -> Iterator[list[Entry]]:
        """The entries of each sample and trial, in the order of their first records."""
        if self._grouped:
            for _, group in itertools.groupby(self.entries(), lambda entry: (entry.sample, entry.trial)):
                yield list(group)
            return
        cases: dict[tuple[str, int | None], list[Entry]] = {}
        for entry in self.entries():
            cases.setdefault((entry.sample, entry.trial), []).append(entry)
        yield from cases.values()

    def entries(self, scorer: str | None = None) -> Iterator[Entry]:
        """The entries, or those of one scorer, in the order of the records."""
        step, only = len(self._scorers), None if scorer is None else self._numbers[scorer]
        samples, trials, groups, weights = self._samples, self._trials, self._groups, self._weights
        place = -1
        for cell, (kind, value) in enumerate(zip(self._kinds, self._values, strict=True)):
            if kind == _ABSENT:
                continue
            place += 1
            case, number = divmod(self._cells[cell] if self._cells else cell, step)
            if only is not None and number != only:
                continue
            trial, weight = trials[case], weights[case] if weights else math.nan
            yield Entry(
                place,
                samples[case],
                trial or None,
                self._scorers[number],
                None if math.isnan(value) else value,
                _KINDS[kind],
                groups[case] if groups else None,
                None if math.isnan(weight) else weight,
            )


def _name(record: Record) -> str | tuple[str, int]:
    return record.sample if record.trial is None else (record.sample, record.trial)


def _kind(record: Record) -> Kind:
    outcome = record.outcome
    if isinstance(outcome, Score):
        return "score"
    if isinstance(outcome, Failed):
        return "target_failed" if outcome.by_target else "failed"
    return "unanswered" if unanswered(record) else "undefined"
