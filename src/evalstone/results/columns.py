"""The scores of a run in columns: what means, tests and rankings need of each record, in about 30 bytes."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import math
import operator
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

from evalstone._core.garbage import give_back
from evalstone._core.packed_texts import PackedTexts
from evalstone.results.summary import unanswered
from evalstone.stats.exact_sum import ExactSum
from evalstone.stats.packed_scores import LARGE, PackedScores, index_of
from evalstone.types import Failed, Record, Score, case_key

OutcomeKind: TypeAlias = Literal["score", "undefined", "unanswered", "failed", "target_failed"]
"""What a record has: a score, or why it has none. A skipped sample is unanswered if the judge declined or reached no
verdict; otherwise, its score is undefined."""
KINDS: tuple[OutcomeKind, ...] = get_args(OutcomeKind)
_CODES = {kind: code for code, kind in enumerate(KINDS)}
_ABSENT = 255
_NO_TRIAL = 0


class Entry(NamedTuple):
    """A record without its reason, evidence and judge calls."""

    place: int
    """Its place among the records of the run."""
    sample_id: str
    trial: int | None
    signature: str
    value: float | None
    """None without a score."""
    kind: OutcomeKind
    group: str | None
    weight: float | None

    @property
    def key(self) -> str:
        """The sample's `key`."""
        return case_key(self.sample_id, self.trial)

    @classmethod
    def of(cls, record: Record, place: int = 0) -> Entry:
        """The entry of a record. place: its place among the records of its run."""
        value, kind = record.value, kind_of(record)
        return cls(place, record.sample_id, record.trial, record.signature, value, kind, record.group, record.weight)

    @property
    def undefined(self) -> bool:
        """Whether the score is undefined. It isn't if the judge gave no answer."""
        return self.kind == "undefined"


class Columns:
    """The entries of a run's records, in their order.

    Args:
        scorers: The signatures of the scorers.
        cases: The number of samples and trials, if each has a cell for each scorer; 0 to append records.
    """

    def __init__(self, scorers: Sequence[str], cases: int = 0) -> None:
        self._scorers = tuple(scorers)
        self._numbers = {signature: number for number, signature in enumerate(self._scorers)}
        cells = cases * len(self._scorers)
        self._samples = PackedTexts(cases)
        self._trials = array("q")
        """By case, 0 without a trial; empty if no case has a trial."""
        self._groups: list[str | None] = []
        """By case; empty if no case has a group."""
        self._group_names: dict[str, str] = {}
        """One text for each group, however many samples are in it."""
        self._weights = array("d")
        """By case, NaN without a weight; empty if no case has a weight."""
        self._values = array("d", [math.nan]) * cells
        self._kinds = bytearray([_ABSENT]) * cells
        self._cells = array("q")
        """The cell of each entry; empty if every entry is in its cell."""
        self._seconds = [ExactSum() for _ in self._scorers]
        self._grouped = True
        """Whether the entries of each case follow one another."""
        self._last: tuple[str, int | None] | None = None
        """While records are appended, the sample and trial of the last one."""
        self._hashes = array("q")
        """While records are appended, a hash of the sample and trial of each case."""
        self._packed = False
        """Whether cases were added by `extend`, without hashes."""

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
        case, number = divmod(cell, len(self._scorers))
        if not self._samples[case]:
            self._samples[case] = record.sample_id
        self._set_case(case, record.trial, record.group, record.weight)
        self._seconds[number].add(record.seconds)
        self._values[cell] = math.nan if record.value is None else record.value
        self._kinds[cell] = _CODES[kind_of(record)]

    def put_case(
        self,
        case: int,
        sample: str,
        trial: int | None,
        group: str | None,
        weight: float | None,
        values: Sequence[float],
        kinds: bytes,
        seconds: Sequence[float],
    ) -> None:
        """Set the entries of all scorers for a case.

        Args:
            case: The number of the sample and trial.
            sample: The ID of the sample.
            trial: Its trial.
            group: Its group.
            weight: Its weight.
            values: The value of each scorer; NaN without a score.
            kinds: By scorer, what there is, as its number in `KINDS`.
            seconds: The seconds of each record.
        """
        start, stop = case * len(self._scorers), (case + 1) * len(self._scorers)
        self._samples[case] = sample
        self._set_case(case, trial, group, weight)
        self._values[start:stop] = array("d", values)
        self._kinds[start:stop] = kinds
        for total, some in zip(self._seconds, seconds, strict=True):
            if some:
                total.add(some)

    def append(self, record: Record) -> None:
        """Add the entry of a record after the others. Call `seal` after the last one."""
        self.append_entry(Entry.of(record))
        self._seconds[self._numbers[record.signature]].add(record.seconds)

    def append_entry(self, entry: Entry) -> None:
        """Add an entry, as by `append`, without its seconds."""
        name = entry.sample_id, entry.trial
        if name != self._last:
            self._last = name
            self._samples.append(entry.sample_id)
            self._hashes.append(hash(name))
            if self._trials:
                self._trials.append(_NO_TRIAL)
            if self._groups:
                self._groups.append(None)
            if self._weights:
                self._weights.append(math.nan)
        case, place = len(self._samples) - 1, len(self._kinds)
        self._set_case(case, entry.trial, entry.group, entry.weight)
        cell = case * len(self._scorers) + self._numbers[entry.signature]
        if cell != place and not self._cells:
            self._cells.extend(range(place))
        if cell != place or self._cells:
            self._cells.append(cell)
        self._values.append(math.nan if entry.value is None else entry.value)
        self._kinds.append(_CODES[entry.kind])

    def extend(
        self,
        samples: Sequence[str],
        values: bytes,
        kinds: bytes,
        *,
        trials: bytes = b"",
        groups: Sequence[str | None] = (),
        weights: bytes = b"",
    ) -> None:
        """Add samples and trials that have an entry for each scorer, after the others, as by `append`.

        Args:
            samples: By case, the sample.
            values: By case and scorer, the value as 8 bytes of this machine; NaN without a score.
            kinds: By case and scorer, what there is, as its number in `KINDS`.
            trials: By case, the trial as 8 bytes, 0 for none; empty if no case has one.
            groups: By case, the group; empty if no case has one.
            weights: By case, the weight as 8 bytes, NaN for none; empty if no case has one.
        """
        before, place, step = len(self._samples), len(self._kinds), len(self._scorers)
        if self._cells or before * step != place:
            self._cells.extend(range(len(self._cells), place))
            self._cells.extend(range(before * step, before * step + len(kinds)))
        self._samples.extend(samples)
        _extend(self._trials, trials, _NO_TRIAL, before, len(samples))
        _extend(self._weights, weights, math.nan, before, len(samples))
        if groups and not self._groups:
            self._groups.extend([None] * before)
        if groups:
            self._groups += [None if name is None else self._group_names.setdefault(name, name) for name in groups]
        elif self._groups:
            self._groups += [None] * len(samples)
        self._values.frombytes(values)
        self._kinds += kinds
        self._last, self._packed = None, True

    def add_seconds(self, scorer: str, seconds: Iterable[float]) -> None:
        """Add the seconds of entries that were added without them."""
        self._seconds[self._numbers[scorer]].merge(ExactSum(seconds))

    def seal(self) -> tuple[int, int] | None:
        """Bring together what was appended of each case. Call it once, after the last record.

        Returns:
            The places of the first entry with the same sample, trial and scorer as an earlier one, and of that one;
            None if there is none.
        """
        hashes, self._hashes, self._last = self._hashes, array("q"), None
        if self._packed:
            repeats = self._samples.has_repeats(self._trials)
        else:
            ordered = sorted(hashes)
            repeats = any(map(operator.eq, ordered, itertools.islice(ordered, 1, None)))
        if repeats:
            self._merge()
        if not self._cells:
            return None
        filled = bytearray(len(self._samples) * len(self._scorers))
        for place, cell in enumerate(self._cells):
            if filled[cell]:
                return place, self._cells.index(cell)
            filled[cell] = True
        return None

    def _merge(self) -> None:
        """Make one case of those with the same sample and trial."""
        numbers: dict[tuple[str, int], int] = {}
        case_of = array("q")
        for name in zip(self._samples, self._trials or itertools.repeat(_NO_TRIAL), strict=False):
            case_of.append(numbers.setdefault(name, len(numbers)))
        if len(numbers) == len(case_of):  # only the hashes are equal
            return
        first = array("q", [-1]) * len(numbers)
        for before, case in enumerate(case_of):
            if first[case] < 0:
                first[case] = before
                continue
            if self._groups and self._groups[before] is not None:
                self._groups[first[case]] = self._groups[before]
            if self._weights and not math.isnan(self._weights[before]):
                self._weights[first[case]] = self._weights[before]
        self._samples = self._samples.at(first)
        self._trials = array("q", [self._trials[case] for case in first]) if self._trials else self._trials
        self._groups = [self._groups[case] for case in first] if self._groups else self._groups
        self._weights = array("d", [self._weights[case] for case in first]) if self._weights else self._weights
        step = len(self._scorers)
        cells = self._cells or range(len(self._kinds))
        self._cells = array("q", [case_of[cell // step] * step + cell % step for cell in cells])
        self._grouped = False

    @property
    def has_trials(self) -> bool:
        """Whether any sample has trials."""
        return len(self._trials) > 0

    @property
    def has_groups(self) -> bool:
        """Whether any sample has a group."""
        return len(self._groups) > 0

    @property
    def has_weights(self) -> bool:
        """Whether any sample has a weight."""
        return len(self._weights) > 0

    def _set_case(self, case: int, trial: int | None, group: str | None, weight: float | None) -> None:
        if trial is group is weight is None:
            return
        if trial is not None:
            if not self._trials:
                self._trials.extend([_NO_TRIAL] * len(self._samples))
            self._trials[case] = trial
        if group is not None:
            if not self._groups:
                self._groups.extend([None] * len(self._samples))
            self._groups[case] = self._group_names.setdefault(group, group)
        if weight is not None:
            if not self._weights:
                self._weights.extend([math.nan] * len(self._samples))
            self._weights[case] = weight

    def share_samples(self, other: Columns) -> None:
        """Have the memory of the samples of other columns, if they are the same in the same order, and many. Neither
        may get more records."""
        if len(self._samples) >= LARGE and self._samples == other._samples:
            self._samples = other._samples
            give_back(len(self._kinds))

    def rows(self, scorer: str | None = None, kinds: Collection[OutcomeKind] = KINDS) -> Sequence[int]:
        """The rows of the entries of one scorer or of all, of these kinds, in the order of the records. Rows are what
        the columns below are asked for."""
        step = len(self._scorers)
        if scorer is None:
            rows: Sequence[int] = range(len(self._kinds))
        elif self._cells:
            number = self._numbers[scorer]
            rows = array("q", [row for row, cell in enumerate(self._cells) if cell % step == number])
        else:
            rows = range(self._numbers[scorer], len(self._kinds), step)
        codes = bytes(_CODES[kind] for kind in kinds)
        present = self._kinds[rows.start :: rows.step] if isinstance(rows, range) else self._kinds
        if not present.translate(None, codes):
            return rows
        if len(rows) >= LARGE:
            np: Any = importlib.import_module("numpy")
            is_one = np.zeros(256, np.bool_)
            is_one[[*codes]] = True
            chosen = np.flatnonzero(is_one[self._kinds_at(rows)])
            return _array(rows.start + rows.step * chosen if isinstance(rows, range) else np.asarray(rows)[chosen])
        return array("q", [row for row in rows if self._kinds[row] in codes])

    def cases(self, rows: Sequence[int]) -> Sequence[int]:
        """The number of the sample and trial of each row."""
        step = len(self._scorers)
        if not self._cells and step == 1:
            return rows
        if not self._cells and isinstance(rows, range) and rows.step == step:
            return range(rows.start // step, rows.start // step + len(rows))
        if len(rows) >= LARGE:
            np: Any = importlib.import_module("numpy")
            index = index_of(rows) if self._cells or not isinstance(rows, range) else np.asarray(rows)
            return _array((np.frombuffer(self._cells, np.int64)[index] if self._cells else index) // step)
        return array("q", [(self._cells[row] if self._cells else row) // step for row in rows])

    def keys(self, rows: Sequence[int]) -> Sequence[str]:
        """The sample's `key` of each row."""
        samples = self.samples(rows)
        if not self._trials:
            return samples
        return [
            case_key(name, self._trials[case] or None) for name, case in zip(samples, self.cases(rows), strict=True)
        ]

    def samples(self, rows: Sequence[int]) -> Sequence[str]:
        """The sample of each row."""
        cases = self.cases(rows)
        return self._samples if cases == range(len(self._samples)) else self._samples.at(cases)

    def values(self, rows: Sequence[int]) -> Sequence[float | None]:
        """The value of each row; None without a score."""
        if len(rows) >= LARGE:
            return PackedScores(self._values).at(rows)
        every = rows == range(len(self._values))
        values = self._values if every else array("d", [self._values[row] for row in rows])
        if not any(map(math.isnan, values)):
            return values
        return [None if math.isnan(value) else value for value in values]

    def known_values(self, scorer: str) -> Sequence[float]:
        """The values of the entries of one scorer that have a score, in the order of the records."""
        rows = self.rows(scorer)
        if len(rows) >= LARGE:
            known = PackedScores(PackedScores(self._values).array[index_of(rows)]).known
            return cast("Sequence[float]", known)
        return [value for value in self.values(rows) if value is not None]

    def kind(self, row: int) -> OutcomeKind:
        """What a row has."""
        return KINDS[self._kinds[row]]

    def kinds(self, rows: Sequence[int]) -> Counter[OutcomeKind]:
        """How many of the rows have what."""
        codes = self._kinds_at(rows).tobytes() if len(rows) >= LARGE else bytes(self._kinds[row] for row in rows)
        return Counter({kind: times for code, kind in enumerate(KINDS) if (times := codes.count(code))})

    def rows_of(self, rows: Sequence[int], kind: OutcomeKind) -> Sequence[int]:
        """The places, among these rows, of those that have this."""
        if len(rows) < LARGE:
            return [place for place, row in enumerate(rows) if self._kinds[row] == _CODES[kind]]
        np: Any = importlib.import_module("numpy")
        return np.flatnonzero(self._kinds_at(rows) == _CODES[kind]).tolist()

    def _kinds_at(self, rows: Sequence[int]) -> Any:
        np: Any = importlib.import_module("numpy")
        return np.frombuffer(self._kinds, np.uint8)[index_of(rows)]

    def groups(self, rows: Sequence[int]) -> Sequence[str | None] | None:
        """The group of each row; None if none of them has one."""
        groups = [self._groups[case] for case in self.cases(rows)] if self._groups else []
        return groups if any(group is not None for group in groups) else None

    def weights(self, rows: Sequence[int]) -> Sequence[float] | None:
        """The weight of each row, 1 if it has none; None if none of them has one."""
        weights = [self._weights[case] for case in self.cases(rows)] if self._weights else []
        if all(map(math.isnan, weights)):
            return None
        return array("d", [1.0 if math.isnan(weight) else weight for weight in weights])

    def outcomes_hash(self, scorer: str) -> str:
        """A hash of the outcomes of one scorer with their samples and weights, in whatever order they are: 32
        hexadecimal digits."""
        np: Any = importlib.import_module("numpy")
        rows = self.rows(scorer)
        keys, weights, values = PackedTexts(), self.weights(rows), PackedScores(self._values).at(rows).array
        keys.extend(self.keys(rows))
        order = np.argsort(keys.hashes(seed=0), kind="stable")
        digest = hashlib.blake2b(" ".join(KINDS).encode(), digest_size=16)
        for column in (keys.lengths, values, *(() if weights is None else (np.asarray(weights),))):
            little = column.dtype.newbyteorder("<")
            for start in range(0, len(order), LARGE):
                part = column[order[start : start + LARGE]] + column.dtype.type(0)  # without the sign of a zero
                digest.update(np.where(np.isnan(part), math.nan, part).astype(little).tobytes())
        digest.update(self._kinds_at(rows)[order].tobytes())
        for part in keys.contents(order):
            digest.update(part)
        return digest.hexdigest()

    def by_case(self) -> Iterator[tuple[tuple[str, int | None], Sequence[int]]]:
        """Each sample and trial with the places of its records, in the order of their first records."""
        step, rows = len(self._scorers), self.rows()
        if self._is_full(rows):
            trials = map(_trial, self._trials) if self._trials else itertools.repeat(None)
            for case, name in enumerate(zip(self._samples, trials, strict=False)):
                yield name, range(case * step, (case + 1) * step)
            return
        cases = enumerate((self._cells[row] if self._cells else row) // step for row in rows)
        if self._grouped:
            for case, group in itertools.groupby(cases, operator.itemgetter(1)):
                yield self._name(case), [place for place, _ in group]
            return
        places: dict[int, list[int]] = {}
        for place, case in cases:
            places.setdefault(case, []).append(place)
        for case, own in places.items():
            yield self._name(case), own

    def places(self, scorer: str) -> Sequence[int]:
        """The places of the records of one scorer, in order."""
        rows = self.rows()
        if isinstance(rows, range) and not self._cells:
            return self.rows(scorer)
        step, number = len(self._scorers), self._numbers[scorer]
        cells = (self._cells[row] if self._cells else row for row in rows)
        return array("q", [place for place, cell in enumerate(cells) if cell % step == number])

    def seconds(self, scorer: str) -> float:
        """The sum of the seconds of the records of one scorer."""
        return self._seconds[self._numbers[scorer]].value

    def entries(self, scorer: str | None = None) -> Iterator[Entry]:
        """The entries, or those of one scorer, in the order of the records."""
        step, only = len(self._scorers), None if scorer is None else self._numbers[scorer]
        for place, row in enumerate(self.rows()):
            case, number = divmod(self._cells[row] if self._cells else row, step)
            if only is None or number == only:
                yield self._entry(place, row, case, number)

    def cases_of(self, samples: Collection[str]) -> set[int]:
        """The numbers of the cases of some of the samples."""
        return {*self._samples.places_of(samples)}

    def entries_of(self, cases: Collection[int]) -> Iterator[tuple[int, Entry]]:
        """The entries of some of the cases, each after the number of its case, in the order of the records."""
        step, rows = len(self._scorers), self.rows() if cases else ()
        if self._is_full(rows):
            for case in sorted(cases):
                for place in range(case * step, (case + 1) * step):
                    yield case, self._entry(place, place, case, place - case * step)
            return
        for place, row in enumerate(rows):
            case, number = divmod(self._cells[row] if self._cells else row, step)
            if case in cases:
                yield case, self._entry(place, row, case, number)

    @property
    def case_keys(self) -> Sequence[str]:
        """The sample's `key` of each case; "" for one that has no entry yet."""
        if not self._trials:
            return self._samples
        return [*map(case_key, self._samples, map(_trial, self._trials))]

    def sample_numbers(self) -> tuple[Any, int]:
        """The number of the sample of each case, as an array of numpy, and how many samples there are."""
        np: Any = importlib.import_module("numpy")
        if not self._trials:
            return np.arange(self.size), self.size
        numbers: dict[str, int] = {}
        found = [numbers.setdefault(name, len(numbers)) for name in self._samples]
        return np.array(found, np.int64), len(numbers)

    def has_score(self, scorer: str) -> Any:
        """Which cases have a score of a scorer, as an array of numpy."""
        np: Any = importlib.import_module("numpy")
        found = np.zeros(self.size, np.bool_)
        if self._cells:
            found[index_of(self.cases(self.rows(scorer, ("score",))))] = True
        else:
            own = np.frombuffer(self._kinds, np.uint8)[self._numbers[scorer] :: len(self._scorers)]
            found[: len(own)] = own == _CODES["score"]
        return found

    @property
    def by_scorer(self) -> Sequence[Sequence[float]] | None:
        """The values of each scorer (NaN without a score) by case, as arrays of numpy; None unless each case has an
        entry for each scorer, in the order of the scorers."""
        if self._cells or _ABSENT in self._kinds:
            return None
        np: Any = importlib.import_module("numpy")
        return np.frombuffer(self._values).reshape(-1, len(self._scorers)).T

    @property
    def kinds_by_scorer(self) -> Sequence[Sequence[int]]:
        """What each scorer has by case, as its number in `KINDS`, as arrays of numpy, if `by_scorer` isn't None."""
        np: Any = importlib.import_module("numpy")
        return np.frombuffer(self._kinds, np.uint8).reshape(-1, len(self._scorers)).T

    @property
    def trials(self) -> Sequence[int]:
        """The trial of each case, 0 for none; empty if no case has a trial."""
        return self._trials

    def cells(self) -> tuple[Sequence[int], Sequence[int], Sequence[float]]:
        """Of each entry, the number of its case and of its scorer, and the value (NaN without a score), in the order of
        the records, as arrays of numpy."""
        np: Any = importlib.import_module("numpy")
        rows = self.rows()
        cells, values = np.array(self._cells if self._cells else rows, np.int64), np.array(self._values)
        if self._cells and not isinstance(rows, range):
            cells = cells[np.array(rows, np.int64)]
        if not isinstance(rows, range):
            values = values[np.array(rows, np.int64)]
        cases, numbers = np.divmod(cells, len(self._scorers))
        return cases, numbers, values

    def sample(self, case: int) -> str:
        """The sample of a case."""
        return self._samples[case]

    @property
    def size(self) -> int:
        """The number of cases, with those that have no entry yet."""
        return len(self._samples)

    @property
    def answered_cases(self) -> Sequence[int]:
        """The cases that have an entry."""
        if _ABSENT not in self._kinds:
            return range(self.size)
        step = len(self._scorers)
        nothing = bytearray([_ABSENT]) * step
        return [case for case in range(self.size) if self._kinds[case * step : (case + 1) * step] != nothing]

    @property
    def answered(self) -> int:
        """The number of cases that have an entry."""
        return len(self.answered_cases)

    def _is_full(self, rows: Sequence[int]) -> bool:
        """Whether these rows are an entry of each case for each scorer, in this order."""
        return not self._cells and isinstance(rows, range) and len(rows) == self.size * len(self._scorers)

    def _name(self, case: int) -> tuple[str, int | None]:
        return self._samples[case], _trial(self._trials[case]) if self._trials else None

    def _entry(self, place: int, row: int, case: int, number: int) -> Entry:
        value, weight = self._values[row], self._weights[case] if self._weights else math.nan
        return Entry(
            place,
            *self._name(case),
            self._scorers[number],
            None if math.isnan(value) else value,
            KINDS[self._kinds[row]],
            self._groups[case] if self._groups else None,
            None if math.isnan(weight) else weight,
        )


_Number = TypeVar("_Number", int, float)


def _trial(number: int) -> int | None:
    """A trial by its number, of which 0 is none."""
    return number or None


def _array(numbers: Any) -> array[int]:
    """Integers of numpy with 8 bytes each."""
    some = array("q")
    some.frombytes(numbers.view("u1"))
    return some


def _extend(column: array[_Number], values: bytes, absent: _Number, before: int, number: int) -> None:
    """Add values to a column that is empty if all values are absent.

    before, number: How many values come before these, and how many they are.
    """
    if values and not column:
        column.extend([absent] * before)
    if values:
        column.frombytes(values)
    elif column:
        column.extend([absent] * number)


def kind_of(record: Record) -> OutcomeKind:
    outcome = record.outcome
    if isinstance(outcome, Score):
        return "score"
    if isinstance(outcome, Failed):
        return "target_failed" if outcome.by_target else "failed"
    return "unanswered" if unanswered(record) else "undefined"
