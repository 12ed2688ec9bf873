"""A run: what was evaluated, by whom, and every record of it."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalstone.engine.summary import ScorerCard, ScorerSummary, summarize
from evalstone.errors import MissingExtraError, UsageError, unknown
from evalstone.types import Record, Sample, total_cost

if TYPE_CHECKING:
    from evalstone.engine.slices import ScorerSlices
    from evalstone.engine.slicing import By

SUMMARY_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Run:
    """The result of an evaluation: prints as a table, is a sequence of records, and keeps every step behind a number.

    records: one for each sample and scorer, samples in the order of the data set; very many are read back from a file.
    summary: one line a scorer, with mean, interval and the three counts. resumed: how many of them were
    already there from an earlier, unfinished run of the same plan. ended: why the run ended before its end, if it
    did. met: the trouble that it met on its way, and how often. data: the samples, where they are at hand; they may be
    read from a file each time. batches: those that it waits for, by the provider's names. judging: what each judge
    made of judges did: what it escalated and saved, how far its members agreed.
    """

    id: str
    dataset: str
    version: str
    samples: int
    judge: str
    note: str
    cards: tuple[ScorerCard, ...]
    records: Sequence[Record]
    summary: tuple[ScorerSummary, ...]
    started: str
    seconds: float
    resumed: int = 0
    ended: str = ""
    met: Mapping[str, int] = field(default_factory=dict[str, int])
    data: Iterable[Sample] | None = field(default=None, compare=False)
    batches: tuple[str, ...] = ()
    judging: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    @property
    def complete(self) -> bool:
        """Whether every sample was scored by every scorer."""
        return not self.ended

    def __getitem__(self, scorer: str) -> ScorerSummary:
        """The summary of a scorer, by its title, signature or name. Raises UsageError for one that did not run."""
        by_name = [line for line in self.summary if line.card.name == scorer]
        for line in self.summary:
            if scorer in (self.titles[line.card.signature], line.card.signature):
                return line
        if by_name:
            return by_name[0]
        raise UsageError(unknown("scorer", scorer, self.titles.values()))

    @functools.cached_property
    def titles(self) -> Mapping[str, str]:
        """What each signature is called in tables: the scorer's name, with its parameters where two have one name."""
        names = Counter(card.name for card in self.cards)
        return {card.signature: card.name if names[card.name] == 1 else card.parameters for card in self.cards}

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
        """The means of slices, and which are worse than the rest, for each scorer; see `evalstone.engine.slices`.

        by: a field of the samples' metadata, a function of a sample, or several. Raises UsageError for a field that no
        sample has, and when the samples are not at hand.
        """
        from evalstone.engine.slices import slices  # noqa: PLC0415 - numpy, which only slices need

        return slices(self, by, level=level)

    def about(self) -> dict[str, Any]:
        """What was run, without its results: data set, judge, scorers."""
        return {
            "format": SUMMARY_FORMAT,
            "run": self.id,
            "dataset": {"name": self.dataset, "version": self.version, "samples": self.samples},
            "judge": {"identity": self.judge, "note": self.note},
            "started": self.started,
            "seconds": self.seconds,
            "resumed": self.resumed,
            "ended": self.ended,
            "met": dict(self.met),
            "judging": {judge: dict(counts) for judge, counts in self.judging.items()},
            "scorers": [dataclasses.asdict(card) for card in self.cards],
        }

    def to_dict(self) -> dict[str, Any]:
        """The run as it stands in `summary.json`."""
        return {**self.about(), "cost": self.cost, "scorers": [line.to_dict() for line in self.summary]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], records: Sequence[Record]) -> Run:
        """A run read back from `summary.json` and its records. Raises UsageError for another format."""
        if data.get("format") != SUMMARY_FORMAT:
            raise UsageError(f"summary format {data.get('format')!r} is not {SUMMARY_FORMAT}")
        cards = tuple(ScorerCard(*(s[k] for k in _CARD)) for s in data["scorers"])
        return cls(
            id=data["run"],
            dataset=data["dataset"]["name"],
            version=data["dataset"]["version"],
            samples=data["dataset"]["samples"],
            judge=data["judge"]["identity"],
            note=data["judge"]["note"],
            cards=cards,
            records=tuple(records),
            summary=summarize(cards, records),
            started=data["started"],
            seconds=data["seconds"],
            resumed=data["resumed"],
            ended=data.get("ended", ""),
            met=data.get("met", {}),
            judging=data.get("judging", {}),
        )

    def to_dicts(self) -> list[dict[str, Any]]:
        """The records as dictionaries, as in `records.jsonl`."""
        return [record.to_dict() for record in self.records]

    def to_pandas(self) -> Any:
        """The records as a pandas DataFrame. Raises MissingExtraError when pandas is not installed."""
        try:
            import pandas  # noqa: PLC0415 # pyright: ignore
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None
        table: Any = pandas
        return table.DataFrame(self.to_dicts())

    def to_polars(self) -> Any:
        """The records as a polars DataFrame. Raises MissingExtraError when polars is not installed."""
        try:
            import polars  # noqa: PLC0415 # pyright: ignore
        except ImportError:
            raise MissingExtraError("polars", "polars") from None
        table: Any = polars
        rows = [{k: v for k, v in row.items() if k not in ("steps", "evidence", "error")} for row in self.to_dicts()]
        return table.DataFrame(rows, infer_schema_length=None)

    def __str__(self) -> str:
        lines = [f"{self.dataset}: {self.samples} samples, judged by {self.judge}", ""]
        rows = [("scorer", "mean", "95 % interval", "scored", "skipped", "failed")]
        rows += [(self.titles[line.card.signature], *numbers(line)) for line in self.summary]
        widths = [max(len(row[column]) for row in rows) for column in range(6)]
        for row in rows:
            cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Run {self.id}: {len(self.records)} records of {len(self.cards)} scorers>"


_CARD = ("name", "signature", "scale", "lower_is_better")


def numbers(line: ScorerSummary) -> tuple[str, str, str, str, str]:
    """Mean, interval, and the counts scored, skipped and failed, as text for a table."""
    interval = line.interval
    digits = 3 if line.card.scale <= 1 else 2
    mean = "-" if interval is None else f"{interval.mean:.{digits}f}"
    if interval is None or interval.low is None or interval.high is None:
        spread = "-"
    else:
        spread = f"{interval.low:.{digits}f} to {interval.high:.{digits}f}"
    return mean, spread, str(line.scored), str(line.skipped), str(line.failed)
