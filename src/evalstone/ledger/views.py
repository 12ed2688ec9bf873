"""What a ledger contains, and the scores in it, as views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from evalstone._core.display import money, safe
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.report.csv import Value, csv_rows
from evalstone.report.view import FOOTER, Cell, Column, Section, Table, View, bare_judges, table, words

if TYPE_CHECKING:
    from evalstone.ledger.base import RunRow
    from evalstone.ledger.maintenance import LedgerInfo, Totals
    from evalstone.ledger.scores import ListedScore, ScoreList

SCORES = ("time", "source", "stream", "run", "run name", "entity", "scorer", "sample", "score", "reason")
KEYS = ("scorer", "sample")
CSV_HEADER = (
    "time", "source", "stream", "run", "run name", "entity", "sample_id", "scorer", "state", "value", "scale", "reason",
    "trace", "signature",
)  # fmt: skip


def info_view(info: LedgerInfo) -> View:
    """Size, row counts, cost by judge and target, and the latest runs."""
    return View(
        name=info.location,
        lead=f"version {info.schema_version}, {info.size / 1e6:,.1f} MB",
        sections=(Section("", lead=(", ".join(_counts(info)),), tables=tuple(_info_tables(info))),),
        footer=FOOTER,
    )


def _counts(info: LedgerInfo) -> Iterator[str]:
    # Samples of datasets are in blocks, which say nothing to a user.
    counts = {kind: number for kind, number in info.counts.items() if kind not in ("block", "item")}
    yield from (f"{kind}s: {number:,}" for kind, number in (counts | {"sample": info.samples}).items())
    yield f"unfinished runs: {info.unfinished:,}"
    yield f"running now: {info.in_progress:,}"
    if info.open_batches:
        yield f"open batches: {info.open_batches:,}"


def _info_tables(info: LedgerInfo) -> Iterator[Table]:
    if info.answered_by:
        columns = (words("answered by"), Column("answers"), Column("tokens"), Column("cost"))
        yield table("Answers by judge and target", columns, _totals_rows(info.answered_by))
    if info.latest:
        columns = map(words, ("run", "started", "finished", "name", "dataset", "judge"))
        yield table("Latest runs", [*columns], _latest_rows(info.latest))


def _totals_rows(lines: Sequence[Totals]) -> Iterator[Sequence[str]]:
    judges = bare_judges(line.name for line in lines if not line.is_target)
    for line in lines:
        unpriced = f" + {line.unpriced:,} without a price" if line.unpriced else ""
        name = f"target {line.name}" if line.is_target else judges[line.name]
        yield name, f"{line.answers:,}", f"{line.tokens:,}", f"{money(line.cost)}{unpriced}"


def _latest_rows(rows: Sequence[RunRow]) -> Iterator[Sequence[Cell | str]]:
    judges = [metadata_text(row.metadata, "judge", "identity") for row in rows]
    names = bare_judges(judges)
    for row, judge in zip(rows, judges, strict=True):
        name, dataset = metadata_text(row.metadata, "name"), metadata_text(row.metadata, "dataset", "name")
        yield row.id, row.started, row.finished or "-", _given(name, ""), _given(dataset, ""), names[judge]


def _given(text: str, absent: str = "-") -> Cell:
    """A text that a user gave, or what stands for none."""
    return Cell(text, quoted=True) if text else Cell(absent)


def metadata_text(metadata: Any, *keys: str) -> str:
    """A text within a run's metadata; empty if it is missing."""
    for key in keys:
        metadata = cast("Mapping[str, Any]", metadata).get(key, "") if isinstance(metadata, Mapping) else ""
    return safe(str(metadata), 80)


def scores_view(scores: ScoreList, front_end: FrontEnd = PYTHON) -> View:
    """A row for each score, without the columns that none has a value for, and where the list goes on."""
    if not scores:
        return View(name="no scores", lead="", sections=())
    columns = [Column(title, numeric=title == "score", key=title in KEYS) for title in SCORES]
    more = (f"more: {front_end.term('before', scores.following)}",) if scores.following else ()
    listing = table("Scores, newest first", columns, map(_score_row, scores))
    return View(
        name="Scores", lead="newest first", sections=(Section("", tables=(listing,), notes=more),), footer=FOOTER
    )


def _score_row(score: ListedScore) -> Sequence[Cell | str]:
    value = score.state
    if score.value is not None and score.scale is not None:
        value = f"{score.value:.3g}" + ("" if score.scale == 1 else f" of {score.scale:g}")
    return (
        score.time.isoformat(sep=" ", timespec="seconds").removesuffix("+00:00"),
        score.source,
        *(_given(safe(text or "", 40)) for text in (score.stream, score.run, score.run_name, score.entity)),
        safe(score.scorer, 60),
        _given(safe(score.sample_id, 40)),
        value,
        _given(safe(score.reason, 80), ""),
    )


def scores_csv(scores: Iterable[ListedScore]) -> Iterator[str]:
    """A row for each score, with its texts in full."""
    return csv_rows(CSV_HEADER, map(_csv_row, scores))


def _csv_row(score: ListedScore) -> Sequence[Value]:
    return (
        score.time.isoformat(),
        score.source,
        score.stream,
        score.run,
        score.run_name,
        score.entity,
        score.sample_id,
        score.scorer,
        score.state,
        score.value,
        score.scale,
        score.reason,
        score.trace,
        score.signature,
    )
