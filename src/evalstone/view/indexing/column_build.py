"""How the index of a run in blocks is made: of its columns, without reading records that say nothing."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evalstone._core.json import storable
from evalstone._core.packed_texts import PackedTexts
from evalstone.datasets.stored import sample_line
from evalstone.results.columns import KINDS
from evalstone.results.losses import LOW, LossRule
from evalstone.results.record_blocks import RecordBlocks
from evalstone.results.run import Run
from evalstone.results.views.ranking import Ranking
from evalstone.types import Outcome, Sample
from evalstone.view.indexing.column_store import TABLE, Array, ColumnWriter
from evalstone.view.indexing.files import written
from evalstone.view.indexing.spreads import SPREADS, latency_of, spread_of
from evalstone.view.indexing.tables import FAILED, LOSSES, SCORED, SKIPPED
from evalstone.view.indexing.text_writer import TextWriter, texts_of

_OUTCOMES = {"score": SCORED, "failed": FAILED, "target_failed": FAILED}
_AT_ONCE = 500
_Said: TypeAlias = Sequence[tuple[int, Outcome]]
"""By the number of the scorer, outcomes that say something."""


class _OtherOrder(Exception):
    """The samples aren't those of the records, in their order."""


def build(
    run: Run,
    records: RecordBlocks,
    file: Path,
    stamp: str,
    head: Mapping[str, Any],
    progress: Callable[[int, int], None],
) -> bool:
    """Make the index of a run in blocks, unless a case lacks a record or the samples are in another order; returns
    whether it is there. Arguments and errors as for the `build` of any run.

    records: Those of the run.
    """
    by_scorer = run.columns.by_scorer
    if by_scorer is None or not records.files or records.files[0][0].local is None:
        return False
    with suppress(_OtherOrder):
        with written(file, "the index") as connection:
            connection.execute(TABLE)
            connection.execute("PRAGMA cache_size=-8000")  # columns are written once
            texts, columns = TextWriter(connection, run), ColumnWriter(connection)
            latency, in_search = _write_texts(run, records, texts, progress)
            totals = _write_scores(run, [*map(np.asarray, by_scorer)], columns)
            spreads = _write_spent(run, records, latency, columns)
            folder = _write_places(run, records, columns)
            about = {"totals": totals, "spreads": spreads, "columns": columns.about, "blocks": folder}
            connection.execute("INSERT INTO texts (texts) VALUES ('optimize')")
            texts.describe(stamp, head, **about, keys_in_search=in_search)
        return True
    return False


# ---- Texts ----


def _write_texts(
    run: Run, records: RecordBlocks, texts: TextWriter, progress: Callable[[int, int], None]
) -> tuple[Array, bool]:
    """Write what is said of cases, and their samples. Returns the latency of each case, and whether the search finds
    cases by their keys: IDs of ASCII without any text are looked for in their column."""
    keys, size = run.columns.case_keys, run.columns.size
    is_ascii = keys.isascii() if isinstance(keys, PackedTexts) else all(map(str.isascii, keys))
    in_search = run.samples is not None or not is_ascii
    latency = array("d", [math.nan]) * size
    some = _said(run, records)
    cases = _every(run, run.samples, some) if in_search else ((case, None, said) for case, said in some)
    for done, (case, sample, said) in enumerate(cases, start=1):
        place = case + 1
        for number, outcome in said:
            texts.groups.add(place, number, run.scorers[number], outcome)
        texts.search(texts_of(place, storable(keys[case]), sample, [outcome for _, outcome in said]))
        if sample is not None:
            texts.keep(place, sample, sample_line(sample))
            texts.add_fields(place, sample)
            seconds = latency_of(sample)
            latency[case] = math.nan if seconds is None else seconds
        if done % _AT_ONCE == 0:
            texts.flush()
            progress(place, size)
    texts.flush()
    progress(size, size)
    return np.asarray(latency), in_search


def _said(run: Run, records: RecordBlocks) -> Iterator[tuple[int, _Said]]:
    """The cases with outcomes that say something, and these. If no more than scores is kept, only missing ones do."""
    step = len(run.scorers)
    if records.keep == "scores":
        for case, some in itertools.groupby(records.missing_outcomes(), lambda each: each[0] // step):
            yield case, [(place % step, outcome) for place, outcome in some]
        return
    without_calls = RecordBlocks(records.scorers, records.plan, [file for file, _, _ in records.files])
    each = iter(without_calls)
    for case in range(run.columns.size):
        yield case, [(number, record.outcome) for number, record in enumerate(itertools.islice(each, step))]


def _every(
    run: Run, samples: Iterable[Sample] | None, some: Iterator[tuple[int, _Said]]
) -> Iterator[tuple[int, Sample | None, _Said]]:
    """All cases, with their samples and what is said of some. Raises _OtherOrder."""
    columns, case, following = run.columns, -1, next(some, None)
    trials = columns.trials
    for case, sample in enumerate(itertools.repeat(None, columns.size) if samples is None else samples):
        if case == columns.size:
            return
        name = columns.sample(case), (trials[case] or None) if trials else None
        if sample is not None and (sample.id, sample.trial) != name:
            raise _OtherOrder
        said: _Said = ()
        if following is not None and following[0] == case:
            said, following = following[1], next(some, None)
        yield case, sample, said
    if case + 1 < columns.size:
        raise _OtherOrder


# ---- Numbers ----


def _write_scores(run: Run, values: Sequence[Array], columns: ColumnWriter) -> dict[str, int]:
    """Write scores and outcomes; returns the numbers of cases by what they have. values: Of each scorer."""
    size = run.columns.size
    codes = np.array([_OUTCOMES.get(kind, SKIPPED) for kind in KINDS], np.uint8)
    have = np.zeros((3, size), np.bool_)
    for number, (own, kinds) in enumerate(zip(values, run.columns.kinds_by_scorer, strict=True)):
        outcomes = codes[np.asarray(kinds)]
        for code in (SCORED, SKIPPED, FAILED):
            have[code] |= outcomes == code
        columns.numbers(f"v{number}", own)
        columns.numbers(f"o{number}", outcomes)
    goodness = np.asarray(Ranking.of(run).means)
    columns.numbers("goodness", goodness)
    losses = _losses(run, values)
    columns.numbers("loss", losses)
    return {
        "all": size,
        "imperfect": size - int(np.count_nonzero(goodness >= 1)),
        **dict(zip(("score", "skipped", "failed"), map(int, have.sum(axis=1)), strict=True)),
        **{loss: int(np.count_nonzero(losses == code)) for code, loss in enumerate(LOSSES, 1)},
    }


def _losses(run: Run, values: Sequence[Any]) -> Array:
    """Where each case is lost, as its number in `LOSSES` and one; 0 for other cases."""
    if (rule := LossRule.of(run.scorers)) is None:
        return np.zeros(run.columns.size, np.uint8)
    answers, passages = (values[run.scorers.index(info)] for info in (rule.answer, rule.passages))
    lacks = np.where(rule.passages.goodness(passages) < LOW, 1, np.where(np.isnan(passages), 3, 2))
    return np.where(rule.answer.goodness(answers) < LOW, lacks, 0).astype(np.uint8)


def _write_spent(run: Run, records: RecordBlocks, latency: Array, columns: ColumnWriter) -> dict[str, Any]:
    """Write what each case took; returns how that is distributed."""
    step = len(run.scorers)

    def numbers(name: str) -> Iterator[Array]:
        for (of_block,) in records.numbers(name):
            yield _added_up(np.asarray(of_block), step)

    spent: Mapping[str, Callable[[], Iterator[Array]]] = {
        "seconds": lambda: numbers("seconds"),
        "cost": lambda: numbers("cost"),
        "tokens": lambda: (np.asarray(each).reshape(-1, step).sum(axis=1) for each in records.tokens()),
        "latency": lambda: iter([latency]),
    }
    spreads: dict[str, Any] = {}
    for name in SPREADS:
        column = np.concatenate([*spent[name]()])
        columns.numbers(name, column)
        if spread := spread_of(column):
            spreads[name] = spread
    return spreads


def _added_up(numbers: Array, step: int) -> Array:
    """The sums of the numbers of each case, in their order, as of records read one by one."""
    total = np.zeros(len(numbers) // step)
    for number in range(step):
        total += numbers[number::step]
    return total


def _write_places(run: Run, records: RecordBlocks, columns: ColumnWriter) -> dict[str, Any]:
    """Write what cases are called, and where their records are; returns what all blocks have in common."""
    columns.texts("key", run.columns.case_keys)
    if run.columns.has_trials:
        columns.texts("sample", run.columns.samples(range(0, len(records), len(run.scorers))))
        columns.numbers("trial", np.asarray(run.columns.trials))
    rows = np.array([rows for _, _, rows in records.files], np.int64)
    columns.numbers("block ends", rows.cumsum() // len(run.scorers))
    columns.numbers("block calls", np.array([calls is not None for _, calls, _ in records.files], np.uint8))
    first = records.files[0][0].local
    folder = first.resolve().parent.parent if first is not None else Path()
    return {"folder": str(folder), "plan": records.plan}
