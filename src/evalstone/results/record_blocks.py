"""The records of a run in blocks: Parquet files of many samples each, read by columns, or a record when it is shown.

blocks/PLAN-000000.parquet    the records, in the order of samples and scorers
calls/PLAN-000000.parquet     their judge calls, if these are kept
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
from array import array
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias, overload

from evalstone._core.display import count, escaped
from evalstone._core.front_ends import Setting
from evalstone._core.garbage import MANY, give_back
from evalstone._core.packed_texts import PackedTexts
from evalstone._core.storage import Location
from evalstone._core.validation import read_data
from evalstone.datasets.stored import record_line
from evalstone.errors import ConfigError, DataError, EvalstoneError, MissingDependency
from evalstone.results.columns import KINDS, Columns, Entry
from evalstone.results.judge_stats import JudgeStats
from evalstone.results.record_tables import (
    CALLS_FORMAT,
    KEEPS,
    RECORDS_FORMAT,
    Keep,
    about,
    as_kept,
    check_columns,
    exact_values,
    facts_of,
    listed,
    records_of,
)
from evalstone.results.stored_records import Facts, Missing, StoredRecords
from evalstone.results.summary import (
    MAX_REASONS,
    ScorerCounts,
    ScorerInfo,
    ScorerSummary,
)
from evalstone.stats.exact_sum import ExactSum
from evalstone.stats.packed_scores import exact_total
from evalstone.types import Failed, Record, Skipped, case_key

BLOCKS, CALLS = "blocks", "calls"
"""The folders of a results folder."""
_GROUPS_AT_ONCE = 8
"""How many row groups are read by columns at once."""
_FEW, _MANY = 8, 256
"""How many records are read when one is needed: few at any place, and more and more if those that follow are needed
next."""
_TOKENS = ("input_tokens", "output_tokens")
_WORDS = ("sample_id", "signature", "kind", "group")
_COLUMNS = (*_WORDS, "trial", "value", "weight", "exact")
"""What `Columns` has of a record."""
MOSTLY_NULL = ("trial", "group", "weight", "exact")
"""Columns that are null in all rows of most runs. The files say so, as reading them takes as long as reading others."""


def block_name(plan: str, number: int) -> str:
    """The name of a block's files: the plan's fingerprint or the run's ID, and the block's number, from 0."""
    return f"{plan}-{number:06}.parquet"


@dataclass(frozen=True)
class _About:
    """What the metadata of a block's records say of it."""

    plan: str
    block: int
    keep: str
    scorers: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class _StoredScorer:
    """What they say of a scorer."""

    signature: str
    counts: Mapping[str, Any]
    sum: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class _Block:
    """A block that was opened."""

    number: int
    records: Location
    calls: Location | None
    rows: int
    groups: tuple[int, ...]
    """The first row of each row group of the records."""
    keep: Keep
    counts: Mapping[str, ScorerCounts]
    """By scorer, as the following."""
    sums: Mapping[str, ExactSum]
    seconds: Mapping[str, ExactSum]
    said: Mapping[str, Any]
    """All that the metadata of its records say."""


_RESTORE = "restore the files, or score the run again"


class RecordBlocks(StoredRecords):
    """The records of a run, read from its blocks. Of these, it reads what they say of themselves at first, columns when
    they are needed, and a row group of records when one of them is.

    Args:
        scorers: The scorers of the run.
        plan: The plan of the blocks.
        blocks: The files of the blocks, in order.
        calls: The files with the judge calls of some or all of them, by number.
        first: The number of the first one.

    Raises:
        MissingDependency: pyarrow is not installed.
        DataError: A file is damaged, of another plan or of another number; the message names it.
    """

    def __init__(
        self,
        scorers: Sequence[ScorerInfo],
        plan: str,
        blocks: Iterable[Location],
        calls: Mapping[int, Location] | None = None,
        *,
        first: int = 0,
    ) -> None:
        self.scorers, self.plan = tuple(scorers), plan
        opened = enumerate(blocks, first)
        self._blocks = [self._opened(number, file, (calls or {}).get(number)) for number, file in opened]
        self._ends = [*accumulate(block.rows for block in self._blocks)]
        self._cached: tuple[int, list[Record]] = 0, []
        """The place of the first one, and the records that were read last."""
        self._at_once = _FEW
        """How many that was, unless their row group ended before."""
        self._group: tuple[int, Any, Any, _Block] | None = None
        """The row group that was read last, as `_group_of` returns it."""
        self._facts: tuple[int, list[Facts | None]] = 0, []
        """The place of the first one, and what was read last of a row group without its records."""
        self._checked = False
        """Whether the values were held against what the metadata say of them."""

    @classmethod
    def of_folder(
        cls, folder: Location, scorers: Sequence[ScorerInfo], plan: str, number: int, keep: Keep
    ) -> RecordBlocks:
        """The records in a results folder.

        Args:
            folder: The folder.
            scorers: The scorers of the run.
            plan: The plan of its blocks.
            number: How many blocks it should have.
            keep: How much each of them should keep of its records.

        Raises:
            DataError: A block is missing, there is one of another run, one keeps more or less, or a file is damaged;
                the message names it.
        """
        expected = [block_name(plan, each) for each in range(number)]
        files = {kind: {file.name: file for file in (folder / kind).files("*.parquet")} for kind in (BLOCKS, CALLS)}
        for found in files.values():
            if other := sorted({*found} - {*expected}):
                raise DataError(f"{found[other[0]]} is no block of the run {plan}, which has {count(number, 'block')}")
        if missing := [name for name in expected if name not in files[BLOCKS]]:
            more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise DataError(
                f"{folder / BLOCKS / missing[0]} is missing{more}: not all records of the run are there; {_RESTORE}"
            )
        calls = {each: files[CALLS][name] for each, name in enumerate(expected) if name in files[CALLS]}
        blocks = cls(scorers, plan, [files[BLOCKS][name] for name in expected], calls)
        if other := [block for block in blocks._blocks if block.keep != keep]:
            raise DataError(
                f"{count(len(other), 'block')} of {number:,} (such as {other[0].records}) "
                f"{'has' if len(other) == 1 else 'have'} what is kept with ",
                Setting("keep", other[0].keep),
                ", not ",
                Setting("keep", keep),
                "; delete them, and score them again",
            )
        if keep == "all" and (silent := [name for name in expected if name not in files[CALLS]]):
            raise DataError(f"{folder / CALLS / silent[0]} is missing: the judge calls of the run; {_RESTORE}")
        return blocks

    def _opened(self, number: int, file: Location, calls: Location | None) -> _Block:
        with _reading(file) as reader:
            schema, metadata = reader.schema_arrow, reader.metadata
            said = about(schema, RECORDS_FORMAT, str(file))
            check_columns(schema, RECORDS_FORMAT, str(file))
            try:
                stored = read_data(_About, said)
                scorers = {one.signature: one for one in (read_data(_StoredScorer, each) for each in stored.scorers)}
                counts = {name: ScorerCounts.from_dict(each.counts) for name, each in scorers.items()}
            except DataError as error:
                raise DataError(f"{file}: ", error) from None
            if (stored.plan, stored.block) != (self.plan, number):
                raise DataError(
                    f"{file} is block {stored.block} of {stored.plan}, not block {number} of {self.plan}; a results "
                    "folder has the blocks of one run"
                )
            if {*scorers} != {info.signature for info in self.scorers}:
                raise DataError(f"{file} has records of other scorers: {', '.join(scorers)}")
            rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
            counted = sum(each.n_score + each.n_skipped + each.n_failed for each in counts.values())
            if counted != metadata.num_rows:
                raise DataError(f"{file} has {count(metadata.num_rows, 'row')}, and counts {counted:,}")
            return _Block(
                number=number,
                records=file,
                calls=calls,
                rows=metadata.num_rows,
                groups=tuple(accumulate(rows[:-1], initial=0)),
                keep="all" if stored.keep == "all" else "evidence" if stored.keep == "evidence" else "scores",
                counts=counts,
                sums={name: ExactSum(each.sum) for name, each in scorers.items()},
                seconds={name: ExactSum(each.seconds) for name, each in scorers.items()},
                said=said,
            )

    @property
    def keep(self) -> Keep:
        """How much the blocks keep of each record."""
        return self._blocks[0].keep if self._blocks else "all"

    @property
    def said(self) -> list[Mapping[str, Any]]:
        """What the metadata of each block say."""
        return [block.said for block in self._blocks]

    def check_samples(self, samples: Sequence[int]) -> None:
        """Raise DataError, naming the file, unless every block has a record of each scorer for all its samples.

        samples: The number of samples of each block.
        """
        for block, expected in zip(self._blocks, samples, strict=True):
            for signature, counts in block.counts.items():
                if (found := counts.n_score + counts.n_skipped + counts.n_failed) != expected:
                    raise DataError(
                        f"{block.records} has {count(found, 'record')} of {signature}, and "
                        f"{count(expected, 'sample')}; delete it, and score it again"
                    )

    @property
    def dropped(self) -> int:
        """The number of items that were dropped from answers. Scorers share the calls that gave these."""
        dropped: dict[tuple[str, str, int], int] = {}
        for counts in (counts for block in self._blocks for counts in block.counts.values()):
            dropped.update(counts.dropped)
        return sum(dropped.values())

    def tables(self, plan: str, keep: Keep) -> Iterator[tuple[Any, Any | None]]:
        """The tables of each block, as of another plan.

        Raises:
            ConfigError: They keep less of their records.
        """
        if KEEPS.index(keep) < KEEPS.index(self.keep):
            raise ConfigError(
                f"the run has only its {self.keep}, so these can be kept, but not ", Setting("keep", keep)
            )
        for block in self._blocks:
            with _reading(block.records) as reader:
                table = as_kept(reader.read(use_threads=False), keep, plan)
            with contextlib.nullcontext() if block.calls is None else _reading(block.calls) as reader:
                calls = None
                if reader is not None:
                    _about_calls(block, reader)
                    calls = as_kept(reader.read(use_threads=False), keep, plan)
            yield table, calls

    # ---- Columns ----

    @property
    def columns(self) -> Columns:
        """The scores of the records.

        Raises:
            DataError: The records don't fit their scorers or each other; the message names file, row and column.
        """
        columns = self._columns
        if not self._checked:
            for info in self.scorers:
                self._check_sum(info, columns.known_values(info.signature))
            self._checked = True
        return columns

    @functools.cached_property
    def _columns(self) -> Columns:
        columns = Columns([info.signature for info in self.scorers])
        for block in self._blocks:
            _fill(columns, block, self.scorers)
            for signature, seconds in block.seconds.items():
                columns.add_seconds(signature, seconds.parts)
        if len(self) >= MANY:
            _arrow().default_memory_pool().release_unused()
            give_back(len(self))
        if (repeated := columns.seal()) is not None:
            record, places = self[repeated[0]], [*map(self._place, repeated)]
            trial = "" if record.trial is None else f", trial {record.trial}"
            (second, row), (first, before) = places
            raise DataError(
                f"{second.records}, row {row}: sample {record.sample_id!r}{trial} by {record.signature!r} is a "
                f"duplicate of row {before}" + ("" if first is second else f" in {first.records}")
            )
        return columns

    def _check_sum(self, info: ScorerInfo, values: Sequence[float]) -> None:
        """Raise DataError if a scorer's values aren't those that the blocks counted."""
        expected = ExactSum()
        for block in self._blocks:
            expected.merge(block.sums[info.signature])
        if exact_total(values) != expected.value:
            raise DataError(
                f"the values of {info.signature} in the files of {self._blocks[0].records} don't add up to what their "
                "metadata say"
            )

    def summaries(self) -> tuple[ScorerSummary, ...]:
        """The summary of each scorer, from the counts of the blocks and the columns."""
        found: list[ScorerSummary] = []
        for info in self.scorers:
            total = ScorerCounts()
            for block in self._blocks:
                total.merge(block.counts[info.signature])
            if total.more_reasons:
                total.reasons.clear()
                for reason in (reason for signature, _, reason in self.missing() if signature == info.signature):
                    if reason in total.reasons or len(total.reasons) < MAX_REASONS:
                        total.reasons[reason] += 1
            values = self._columns.known_values(info.signature)
            self._check_sum(info, values)
            found.append(total.summary(info, values, *_clusters(self._columns, info.signature)))
        self._checked = True
        return tuple(found)

    def missing(self) -> Iterator[Missing]:
        """As `StoredRecords.missing`, without reading the records that have a score."""
        for _, signature, sample, trial, reason, error in self._missing():
            yield signature, case_key(sample, trial), reason if error is None else error

    def missing_outcomes(self) -> Iterator[tuple[int, Skipped | Failed]]:
        """Of each record without a score, its place and what it has instead, in order."""
        for place, *_, reason, error in self._missing():
            yield place, Skipped(reason) if error is None else Failed(error)

    def _missing(self) -> Iterator[tuple[int, str, str, int | None, str, str | None]]:
        np: Any = importlib.import_module("numpy")
        names, start = ("signature", "sample_id", "trial", "reason", "error"), 0
        for block in self._blocks:
            for first, batch in _batches(block, (*names, "exact", "value")):
                some = batch.filter(batch.column("value").is_null())
                places = np.flatnonzero(np.isnan(_numbers(batch, "value", math.nan, np.float64))) + (start + first)
                yield from zip(places.tolist(), *(exact_values(some, name) for name in names), strict=True)
            start += block.rows

    def numbers(self, *names: str) -> Iterator[Sequence[Any]]:
        """Of each block, columns of numbers of its records, as arrays of numpy; NaN for what is missing."""
        np: Any = importlib.import_module("numpy")
        for block in self._blocks:
            parts: list[list[Any]] = [[] for _ in names]
            for _, batch in _batches(block, names):
                for name, of in zip(names, parts, strict=True):
                    of.append(_numbers(batch, name, math.nan, np.float64))
            yield [*map(np.concatenate, parts)]

    def tokens(self) -> Iterator[Any]:
        """Of each block, the tokens of the judge calls of its records, as an array of numpy; 0 if none are kept."""
        np: Any = importlib.import_module("numpy")
        for block in self._blocks:
            total = np.zeros(block.rows, np.int64)
            if block.calls is not None and block.keep == "all":
                with _reading(block.calls) as reader:
                    _about_calls(block, reader)
                    table = reader.read(columns=["record", *_TOKENS], use_threads=False).combine_chunks()
                for batch in table.to_batches():
                    rows = _numbers(batch, "record", 0, np.int64)
                    for name in _TOKENS:
                        np.add.at(total, rows, _numbers(batch, name, 0, np.int64))
            yield total

    @property
    def files(self) -> list[tuple[Location, Location | None, int]]:
        """The file of each block, that of its judge calls if they are kept, and the number of its records."""
        return [(block.records, block.calls, block.rows) for block in self._blocks]

    def judge_stats(self) -> dict[str, dict[str, Any]]:
        """The statistics of composite judges."""
        stats = JudgeStats()
        for block in self._blocks:
            if block.calls is not None:
                with _reading(block.calls) as reader:
                    for row in _about_calls(block, reader).get("questions", ()):
                        stats.add_row(row)
        return stats.to_dict()

    # ---- Records ----

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Record, ...]: ...
    def __getitem__(self, index: int | slice) -> Record | tuple[Record, ...]:
        if isinstance(index, slice):
            return tuple(map(self._at, range(len(self))[index]))
        return self._at(range(len(self))[index])

    def __iter__(self) -> Iterator[Record]:
        return map(self._at, range(len(self)))

    def _at(self, place: int) -> Record:
        first, records = self._cached
        if not first <= place < first + len(records):
            first, records = self._cached = self._window(place)
        return records[place - first]

    def _window(self, place: int) -> tuple[int, list[Record]]:
        """Some records around one: the place of the first, and the records."""
        if self._group is None or not self._group[0] <= place < self._group[0] + self._group[1].num_rows:
            self._group = self._group_of(place)
        first, table, calls, block = self._group
        end = self._cached[0] + len(self._cached[1])
        follows = end <= place < end + self._at_once
        size = self._at_once = min(2 * self._at_once, _MANY) if follows else _FEW
        start = place - first if follows else (place - first) // size * size
        row = self._place(first)[1] + start
        some = table.slice(start, size)
        if calls is not None:
            compute = _arrow("pyarrow.compute")
            numbers = calls.column("record")
            calls = calls.filter(compute.and_(compute.greater_equal(numbers, row), compute.less(numbers, row + size)))
        try:
            return first + start, records_of(some, calls, row)
        except DataError as error:
            raise DataError(f"{block.records}, ", error) from None

    def facts(self, place: int) -> Facts:
        """As `StoredRecords.facts`, without reading evidence and judge calls."""
        first, found = self._facts
        if not first <= place < first + len(found):
            block, row = self._place(place)
            group = bisect_right(block.groups, row) - 1
            with _reading(block.records) as reader:
                table = reader.read_row_group(group, columns=[*Facts._fields, "exact"], use_threads=False)
            first, found = self._facts = place - row + block.groups[group], facts_of(table)
        facts = found[place - first]
        return Facts.of(self[place]) if facts is None else facts

    def _place(self, place: int) -> tuple[_Block, int]:
        """The block of a record, and its row in it."""
        number = bisect_right(self._ends, place)
        return self._blocks[number], place - (self._ends[number] - self._blocks[number].rows)

    def _group_of(self, place: int) -> tuple[int, Any, Any, _Block]:
        """The row group of a record: the place of its first one, the rows, their calls, and its block."""
        block, row = self._place(place)
        group = bisect_right(block.groups, row) - 1
        first = block.groups[group]
        with _reading(block.records) as reader:
            table = reader.read_row_group(group, use_threads=False)
        calls = None
        if block.calls is not None and block.keep == "all":
            calls = _calls_of(block, block.calls, first, first + table.num_rows)
        return place - row + first, table, calls, block

    def texts(self) -> Iterator[str]:
        """The records as lines of `records.jsonl`."""
        return map(record_line, self)

    def text_at(self, cell: int, /) -> str:
        """The line of one record, by its place among them."""
        return record_line(self[cell])


# ---- Files ----


@contextlib.contextmanager
def _reading(file: Location, words: Sequence[str] = ()) -> Generator[Any]:
    """A file that is open. Raises DataError, naming it, if it can't be read.

    words: Columns of texts that are read with each text once.
    """
    arrow, parquet = _arrow(), _parquet()
    try:
        source = file.open() if file.local is None else file.local
        with parquet.ParquetFile(source, page_checksum_verification=True, read_dictionary=[*words]) as reader:
            yield reader
    except EvalstoneError:
        raise
    except (arrow.ArrowException, OSError, ValueError, IndexError) as error:
        raise DataError(
            f"{file} cannot be read as Parquet: {escaped(error).rstrip('.')}. If it is damaged, delete {file.name} "
            f"in {BLOCKS} and {CALLS}, and score the block again"
        ) from None


def _batches(block: _Block, names: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """Some columns of some row groups of a block at a time, as record batches, after the number of the first row."""
    with _reading(block.records, [name for name in names if name in _WORDS]) as reader:
        groups = range(len(block.groups))
        null = [name for name in MOSTLY_NULL if name in names and _is_null(reader.metadata, name)]
        columns = [name for name in names if name not in null]
        for start in range(0, len(groups), _GROUPS_AT_ONCE):
            own = groups[start : start + _GROUPS_AT_ONCE]
            table = reader.read_row_groups([*own], columns=columns, use_threads=False).combine_chunks()
            for name in null:
                table = table.append_column(name, _arrow().nulls(table.num_rows))
            yield block.groups[start], table.to_batches()[0] if table.num_rows else table


def _is_null(metadata: Any, name: str) -> bool:
    """Whether a file says that a column is null in all rows."""
    place = metadata.schema.names.index(name)
    chunks = (metadata.row_group(group).column(place) for group in range(metadata.num_row_groups))
    said = ((chunk.statistics, chunk.num_values) for chunk in chunks)
    return all(found is not None and found.null_count == number for found, number in said)


def _about_calls(block: _Block, reader: Any) -> Mapping[str, Any]:
    """What the metadata of a block's calls say. Raises DataError if they aren't those of its records."""
    said = about(reader.schema_arrow, CALLS_FORMAT, str(block.calls))
    if any(said.get(name) != block.said.get(name) for name in ("plan", "block", "attempt")):
        raise DataError(
            f"{block.calls} isn't of the same attempt at the block as {block.records}; delete both, and score it again"
        )
    return said


def _calls_of(block: _Block, file: Location, first: int, end: int) -> Any:
    """The calls of some of the records: they are in the order of the records."""
    arrow, compute = _arrow(), _arrow("pyarrow.compute")
    parts: list[Any] = []
    with _reading(file) as reader:
        _about_calls(block, reader)
        check_columns(reader.schema_arrow, CALLS_FORMAT, str(file))
        for group in range(reader.num_row_groups):
            numbers = reader.read_row_group(group, columns=["record"], use_threads=False).column(0)
            here = compute.and_(compute.greater_equal(numbers, first), compute.less(numbers, end))
            if compute.any(here).as_py():
                parts.append(reader.read_row_group(group, use_threads=False).filter(here))
    return arrow.concat_tables(parts) if parts else None


# ---- Columns from Arrow ----


def _clusters(columns: Columns, signature: str) -> tuple[Sequence[int] | None, _Weights | None]:
    """Of a scorer: the groups of its values as numbers, and the weights by whether there is a score."""
    if not (columns.has_groups or columns.has_weights):
        return None, None
    scored = columns.rows(signature, ("score",))
    names, groups = columns.groups(scored), None
    if names is not None:
        numbers: dict[str, int] = {}
        labels = (-n - 1 if name is None else numbers.setdefault(name, len(numbers)) for n, name in enumerate(names))
        groups = array("q", labels)
    if columns.weights(columns.rows(signature)) is None:
        return groups, None
    missing = columns.rows(signature, tuple(kind for kind in KINDS if kind != "score"))
    weights = {has: columns.weights(rows) or [1.0] * len(rows) for has, rows in ((True, scored), (False, missing))}
    return groups, weights


_Weights: TypeAlias = Mapping[bool, Sequence[float]]


def _fill(columns: Columns, block: _Block, scorers: Sequence[ScorerInfo]) -> None:
    """Add the entries of a block to the columns."""
    np: Any = importlib.import_module("numpy")
    numbers = {info.signature: number for number, info in enumerate(scorers)}
    codes: dict[str, int] = {kind: code for code, kind in enumerate(KINDS)}
    for first, batch in _batches(block, _COLUMNS):
        if not batch.num_rows:
            continue
        kinds = _codes(batch, "kind", codes, block, first)
        own = _codes(batch, "signature", numbers, block, first)
        values = _numbers(batch, "value", math.nan, np.float64)
        if (wrong := np.flatnonzero(np.isnan(values) != (kinds != 0))).size:
            place = f"{block.records}, row {first + int(wrong[0])}"
            raise DataError(f"{place}: value must be a number with a score, and null without one")
        if not _extend(columns, batch, own, values, kinds, len(scorers)):
            lists = [exact_values(batch, name) for name in ("sample_id", "trial", "group", "weight")]
            for row, (sample, trial, group, weight) in enumerate(zip(*lists, strict=True)):
                value, scorer = float(values[row]), scorers[int(own[row])].signature
                known = None if math.isnan(value) else value
                columns.append_entry(Entry(0, sample, trial, scorer, known, KINDS[kinds[row]], group, weight))


def _extend(columns: Columns, batch: Any, own: Any, values: Any, kinds: Any, step: int) -> bool:
    """Add the entries of a batch in which each sample and trial has one for every scorer, in order; returns whether it
    is one."""
    np: Any = importlib.import_module("numpy")
    size = batch.num_rows
    if batch.column("exact").null_count < size or size % step or (own.reshape(-1, step) != np.arange(step)).any():
        return False
    names = batch.column("sample_id")
    if names.null_count or (places := _of_cases(names.indices, step)) is None:
        return False
    has = {name: batch.column(name).null_count < size for name in ("trial", "group", "weight")}
    trials = _numbers(batch, "trial", 0, np.int64).reshape(-1, step) if has["trial"] else None
    if trials is not None and (trials != trials[:, :1]).any():
        return False
    samples = _packed(names.dictionary)
    if len(places) != len(samples) or (places != np.arange(len(places))).any():
        samples = samples.at(places)
    groups: list[str | None] = listed(batch.column("group"))[::step] if has["group"] else []
    columns.extend(
        samples,
        values.tobytes(),
        kinds.astype(np.uint8).tobytes(),
        trials=b"" if trials is None else trials[:, 0].tobytes(),
        groups=groups,
        weights=_numbers(batch, "weight", math.nan, np.float64)[::step].tobytes() if has["weight"] else b"",
    )
    return True


def _of_cases(column: Any, step: int) -> Any:
    """The number of each case, of a column in which every case has it for all scorers; None for others."""
    np: Any = importlib.import_module("numpy")
    numbers = _content(column, np.int32).reshape(-1, step)
    return None if (numbers != numbers[:, :1]).any() else numbers[:, 0]


def _numbers(batch: Any, name: str, instead: float, kind: Any) -> Any:
    """The numbers of a column, with this one for null."""
    np: Any = importlib.import_module("numpy")
    column = batch.column(name)
    numbers = _content(column, kind)
    if not column.null_count:
        return numbers
    _, bits = column.is_valid().buffers()
    is_valid = np.unpackbits(np.frombuffer(bits, np.uint8), count=len(column), bitorder="little")
    return np.where(is_valid, numbers, kind(instead))


def _content(column: Any, kind: Any) -> Any:
    """The numbers of a column without null, as they are in memory. (What pyarrow has for this imports pandas.)"""
    np: Any = importlib.import_module("numpy")
    *_, data = column.buffers()
    return np.frombuffer(data, kind, len(column), column.offset * np.dtype(kind).itemsize)


def _codes(batch: Any, name: str, known: Mapping[str, int], block: _Block, first: int) -> Any:
    """The numbers of the texts of a column."""
    np: Any = importlib.import_module("numpy")
    column = batch.column(name)
    if column.null_count:
        raise DataError(f"{block.records}, row {first + column.is_null().index(True).as_py()}: {name} is missing")
    column = column if hasattr(column, "indices") else column.dictionary_encode()
    words = column.dictionary.to_pylist()
    codes = np.array([known.get(word, -1) for word in words], np.int32)[_content(column.indices, np.int32)]
    if (wrong := np.flatnonzero(codes < 0)).size:
        row = int(wrong[0])
        raise DataError(f"{block.records}, row {first + row}: {name} is unknown: {column[row].as_py()!r:.200}")
    return codes


def _packed(column: Any) -> PackedTexts:
    """The texts of an Arrow column of strings, without an object for each."""
    np: Any = importlib.import_module("numpy")
    column = column.cast("large_string")
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)
    content = b"" if data is None else memoryview(data)[ends[0] : ends[-1]].tobytes()
    starts = (ends[:-1] - ends[0]).astype(np.uint64)
    return PackedTexts.of_buffers(content, starts.tobytes(), np.diff(ends).astype(np.uint32).tobytes())


def _arrow(module: str = "pyarrow") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None


def _parquet() -> Any:
    return _arrow("pyarrow.parquet")
