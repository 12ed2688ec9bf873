"""A run: what was evaluated, by whom, and every record of it."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalstone.errors import ConfigError, MissingDependency, unknown
from evalstone.results.summary import ScorerInfo, ScorerSummary, summarize
from evalstone.types import Record, Sample, total_cost

if TYPE_CHECKING:
    from evalstone.results.slices import ScorerSlices
    from evalstone.results.slicing import By

SUMMARY_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of an evaluation: prints as a table, is a sequence of records, and keeps every step behind a number.

    records: one for each sample and scorer, samples in the order of the data set; very many are read back from a file.
    summary: one line a scorer, with mean, interval and the three counts. resumed: how many of them were
    already there from an earlier, unfinished run of the same plan. stop_reason: why the run ended before its end, if it
    did. warnings: the trouble that it met on its way, and how often. dataset: the samples, where they are at hand; they may be
    read from a file each time. batches: those that it waits for, by the provider's names. judge_stats: what each judge
    made of judges did: what it escalated and saved, how far its members agreed.
    """

    id: str
    dataset_name: str
    version: str
    samples: int
    judge: str
    judge_note: str
    scorers: tuple[ScorerInfo, ...]
    records: Sequence[Record]
    summary: tuple[ScorerSummary, ...]
    started: str
    seconds: float
    resumed: int = 0
    stop_reason: str = ""
    warnings: Mapping[str, int] = field(default_factory=dict[str, int])
    dataset: Iterable[Sample] | None = field(default=None, compare=False)
    batches: tuple[str, ...] = ()
    judge_stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    name: str = ""
    tags: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every sample was scored by every scorer."""
        return not self.stop_reason

    def __getitem__(self, scorer: str) -> ScorerSummary:
        """The summary of a scorer, by its title, signature or name. Raises ConfigError for one that did not run."""
        by_name = [line for line in self.summary if line.info.name == scorer]
        for line in self.summary:
            if scorer in (self.titles[line.info.signature], line.info.signature):
                return line
        if by_name:
            return by_name[0]
        raise ConfigError(unknown("scorer", scorer, self.titles.values()))

    @functools.cached_property
    def titles(self) -> Mapping[str, str]:
        """What each signature is called in tables: the scorer's name, with its parameters where two have one name."""
        names = Counter(info.name for info in self.scorers)
        return {info.signature: info.name if names[info.name] == 1 else info.parameters for info in self.scorers}

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    @property
    def cost(self) -> float | None:
        """US dollars paid in this run; None when a price is unknown."""
        return total_cost(line.cost for line in self.summary)

    @property
    def failed(self) -> int:
        """How many outcomes failed."""
        return sum(line.failed for line in self.summary)

    def slices(self, by: By | Iterable[By], *, level: float = 0.95) -> tuple[ScorerSlices, ...]:
        """The means of slices, and which are worse than the rest, for each scorer; see `evalstone.results.slices`.

        by: a field of the samples' metadata, a function of a sample, or several. Raises ConfigError for a field that no
        sample has, and when the samples are not at hand.
        """
        from evalstone.results.slices import slices  # noqa: PLC0415 - numpy, which only slices need

        return slices(self, by, level=level)

    def metadata(self) -> dict[str, Any]:
        """What was run, without its results: data set, judge, scorers."""
        return {
            "format": SUMMARY_FORMAT,
            "run": self.id,
            "name": self.name,
            "tags": list(self.tags),
            "dataset": {"name": self.dataset_name, "version": self.version, "samples": self.samples},
            "judge": {"identity": self.judge, "note": self.judge_note},
            "started": self.started,
            "seconds": self.seconds,
            "resumed": self.resumed,
            "ended": self.stop_reason,
            "met": dict(self.warnings),
            "judging": {judge: dict(counts) for judge, counts in self.judge_stats.items()},
            "scorers": [dataclasses.asdict(info) for info in self.scorers],
        }

    def to_dict(self) -> dict[str, Any]:
        """The run as it stands in `summary.json`."""
        return {**self.metadata(), "cost": self.cost, "scorers": [line.to_dict() for line in self.summary]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], records: Sequence[Record]) -> Run:
        """A run read back from `summary.json` and its records. Raises ConfigError for another format."""
        if data.get("format") != SUMMARY_FORMAT:
            raise ConfigError(f"summary format {data.get('format')!r} is not {SUMMARY_FORMAT}")
        scorers = tuple(ScorerInfo(*(s[k] for k in _CARD)) for s in data["scorers"])
        return cls(
            id=data["run"],
            dataset_name=data["dataset"]["name"],
            version=data["dataset"]["version"],
            samples=data["dataset"]["samples"],
            judge=data["judge"]["identity"],
            judge_note=data["judge"]["note"],
            scorers=scorers,
            records=tuple(records),
            summary=summarize(scorers, records),
            started=data["started"],
            seconds=data["seconds"],
            resumed=data["resumed"],
            stop_reason=data.get("ended", ""),
            warnings=data.get("met", {}),
            judge_stats=data.get("judging", {}),
            name=data.get("name", ""),
            tags=tuple(data.get("tags", ())),
        )

    def to_dicts(self) -> list[dict[str, Any]]:
        """The records as dictionaries, as in `records.jsonl`."""
        return [record.to_dict() for record in self.records]

    def to_pandas(self) -> Any:
        """The records as a pandas DataFrame. Raises MissingDependency when pandas is not installed."""
        try:
            import pandas  # noqa: PLC0415 # pyright: ignore
        except ImportError:
            raise MissingDependency("pandas", "pandas") from None
        table: Any = pandas
        return table.DataFrame(self.to_dicts())

    def to_polars(self) -> Any:
        """The records as a polars DataFrame. Raises MissingDependency when polars is not installed."""
        try:
            import polars  # noqa: PLC0415 # pyright: ignore
        except ImportError:
            raise MissingDependency("polars", "polars") from None
        table: Any = polars
        rows = [{k: v for k, v in row.items() if k not in ("steps", "evidence", "error")} for row in self.to_dicts()]
        return table.DataFrame(rows, infer_schema_length=None)

    def __str__(self) -> str:
        lines = [f"{self.dataset_name}: {self.samples} samples, judged by {self.judge}", ""]
        rows = [("scorer", "mean", "95 % interval", "scored", "skipped", "failed")]
        rows += [(self.titles[line.info.signature], *numbers(line)) for line in self.summary]
        widths = [max(len(row[column]) for row in rows) for column in range(6)]
        for row in rows:
            cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Run {self.id}: {len(self.records)} records of {len(self.scorers)} scorers>"


_CARD = ("name", "signature", "scale", "lower_is_better")


def numbers(line: ScorerSummary) -> tuple[str, str, str, str, str]:
    """Mean, interval, and the counts scored, skipped and failed, as text for a table."""
    interval = line.interval
    digits = 3 if line.info.scale <= 1 else 2
    mean = "-" if interval is None else f"{interval.mean:.{digits}f}"
    if interval is None or interval.low is None or interval.high is None:
        spread = "-"
    else:
        spread = f"{interval.low:.{digits}f} to {interval.high:.{digits}f}"
    return mean, spread, str(line.scored), str(line.skipped), str(line.failed)
