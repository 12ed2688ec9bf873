"""Shards of a run, which processes score that know nothing of each other, and their merge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from evalstone._core.display import count
from evalstone._core.storage import Location
from evalstone.datasets.columns import ColumnMapping
from evalstone.datasets.reading import Reading
from evalstone.errors import ConfigError, invalid
from evalstone.judges.base import JudgeSpec
from evalstone.results.record_tables import Keep
from evalstone.results.run import Run
from evalstone.run.execute import check_names
from evalstone.scale.runs import merged, run_shard
from evalstone.scale.scoring import Scoring
from evalstone.scorers.base import ScorerSpec
from evalstone.scorers.registry import specs_of


class ShardResult(NamedTuple):
    """What became of a shard."""

    scored: int
    """The number of blocks that were scored now."""
    blocks: int
    """The number of all blocks of the shard. The others were there before."""


def score_shard(
    samples: str | Path,
    scorers: ScorerSpec | Iterable[ScorerSpec],
    shard: int,
    shards: int,
    *,
    out: str | Path,
    judge: JudgeSpec | None = "lexical",
    ledger: str | Path | None = None,
    concurrency: int = 32,
    map: ColumnMapping | None = None,
    split: Mapping[str, str] | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    keep_reasoning: bool = False,
    cache: bool = True,
    budget: float | None = None,
    keep: Keep = "all",
) -> ShardResult:
    """Score one of several shards of a run, into a results folder that all of them share.

    Blocks that are in the folder aren't scored again, so a shard that was killed is run again as it is.

    Args:
        samples: A path or an address, such as `s3://bucket/data.parquet`; with a wildcard in the file's name, all files
            that match.
        scorers: One or more names, Scorer values or tables.
        shard: The number of this shard, from 1.
        shards: The number of shards.
        out: The results folder: a path or an address.
        judge: The judge, as for `evaluate`.
        ledger: A ledger on PostgreSQL, which all shards share; None for none. Without one, each process pays for its
            own questions, and the answers for a block that isn't finished are lost with its process.
        concurrency: Maximum number of judge calls in flight, in this process.
        map: Sample field to column, as for `load`.
        split: The separator of the passages in a text, as for `load`.
        encoding: The encoding of a text file, as for `load`.
        sheet: The sheet of an Excel file, as for `load`.
        keep_reasoning: Whether reasoning in front of an output is scored as a part of it.
        cache: Whether to reuse answers from the ledger.
        budget: Maximum cost in US dollars: of all shards with a ledger, of this process without one.
        keep: How much is kept of each record: `all`; `evidence`, which leaves out the judge calls; or `scores`, which
            also leaves out evidence and the reasons of scores.

    Raises:
        ConfigError: A setting is invalid, nothing can be scored, or the folder has blocks of another run.
        DataError: A row is invalid, or an ID is repeated. Nothing was asked before.
        RunAborted: The judge is gone, or refuses the key. Finished blocks are kept.
        MissingDependency: pyarrow isn't installed.
    """
    if not 1 <= shard <= shards:
        raise ConfigError(invalid("shard", f"a number from 1 to {count(shards, 'shard')}", shard))
    scoring = Scoring(
        scorers=specs_of(scorers),
        judge=judge,
        ledger=ledger,
        concurrency=concurrency,
        keep_reasoning=keep_reasoning,
        cache=cache,
        budget=budget,
    )
    reading = Reading(map=map, split=split, encoding=encoding, sheet=sheet)
    return ShardResult(*run_shard(str(samples), scoring, Location.of(out), shard, shards, reading=reading, keep=keep))


def merge(out: str | Path, *, name: str = "", tags: Iterable[str] = ()) -> Run:
    """Merge the shards of a run: read the blocks in a results folder, and write the run's summary there.

    Args:
        out: The results folder: a path or an address.
        name: A name for the run.
        tags: Tags for the run.

    Returns:
        The run. Its records and samples are read when they are needed.

    Raises:
        ConfigError: Blocks are missing, or there is no plan.
        DataError: A block is damaged, or of another run.
        MissingDependency: pyarrow isn't installed.
    """
    tags = tuple(tags)
    check_names(name, tags)
    return merged(Location.of(out), name=name, tags=tags)
