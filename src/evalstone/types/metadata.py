"""Run metadata, as stored in `summary.json` and in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias, cast

from evalstone._core.file_format import RUN_FORMAT
from evalstone._core.sizes import MOST_SCALE, MOST_TRIALS
from evalstone._core.validation import read_data
from evalstone.errors import DataError, invalid
from evalstone.types.asking import Asking
from evalstone.types.messages import NO_USAGE, Usage

RunKind: TypeAlias = Literal["evaluation", "calibration", "audit", "rubrics", "alignment"]
"""The purpose of a run. Calibrations, audits, alignments and the writing of rubrics also store runs in the ledger,
which don't evaluate outputs."""


@dataclass(frozen=True, kw_only=True)
class StoredDataset:
    """A dataset in `summary.json`."""

    name: str
    version: str
    samples: int


@dataclass(frozen=True, kw_only=True)
class StoredJudge:
    """A judge in `summary.json`."""

    identity: str
    note: str
    cautions: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class StoredScorer:
    """A scorer in `summary.json`, with its results if the run has ended."""

    name: str
    signature: str
    scale: float
    lower_is_better: bool
    case_metadata: tuple[str, ...] = ()
    written_by: str = ""
    """The kind of question by which a judge writes the first of these entries for samples that have none of them; ""
    if it writes none."""
    frozen_signature: str = ""
    """The signature of the scorer for samples that have what was written; "" if nothing is written."""
    description: str = ""
    """What it measures; for a custom scorer, what it asks."""
    definition: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tool: str = ""
    """The tool whose scores were imported, with its version; "" for a scorer of evalstone."""
    tool_threshold: float | None = None
    """The score from which on this tool passes a sample; None if it has none, or different ones."""
    mean: float | None = None
    interval: tuple[float, float] | None = None
    """The confidence interval of the mean; None without a score."""
    n_score: int = 0
    n_skipped: int = 0
    n_failed: int = 0
    histogram: tuple[int, ...] = ()
    """How many scores lie in each of several equal parts of the scale."""

    def __post_init__(self) -> None:
        if not 0 < self.scale <= MOST_SCALE:
            raise DataError(
                invalid(
                    f"the scale of {self.name}", f"above 0, and {MOST_SCALE:g} at most", self.scale, f"{self.scale:g}"
                )
            )


@dataclass(frozen=True, kw_only=True)
class StoredCascade:
    """A cascade's statistics in `summary.json`."""

    questions: int
    escalated: float
    share: float
    share_interval: tuple[float, float] | None = None
    fallback: str
    saved_calls: int
    saved_cost: float | None


@dataclass(frozen=True, kw_only=True)
class StoredVote:
    """The agreement of a panel or a self-consistency judge in `summary.json`."""

    questions: int
    verdicts: int
    agreement: float | None = None
    agreement_interval: tuple[float, float] | None = None
    flip_rate: float | None = None
    no_answer: Mapping[str, int]

    def __post_init__(self) -> None:
        if self.verdicts and (self.agreement is None or self.agreement_interval is None):
            raise DataError("agreement and agreement_interval are required with verdicts")


@dataclass(frozen=True)
class _Statistics:
    """Statistics of a judge of any kind."""

    kind: str


_STATISTICS: Mapping[str, type[Any]] = {"cascade": StoredCascade, "panel": StoredVote, "self_consistency": StoredVote}


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The random order in which samples were drawn, in a run stopped by its gate."""

    seed: str
    """The seed of the order, which also depends on the samples' ids."""
    tested: Mapping[str, int]
    """By scorer signature, the number of samples before the first one, in this order, without a record."""


@dataclass(frozen=True, kw_only=True)
class StoredCell:
    """The place of a run in an experiment, in `summary.json`."""

    experiment: str
    """The name of the experiment: that in its file, or else the file's."""
    name: str
    factors: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What varies between the cells, with the values of this one: `target`, parameters, `data`."""


@dataclass(frozen=True, kw_only=True)
class StoredTarget:
    """A target in `summary.json`, with its calls, cost and latency."""

    identity: str
    trials: int
    user: str = ""
    """The identity of the simulated user; "" if there was none."""
    scope: str = ""
    """The key of its answers in the ledger, in place of a judge."""
    inputs: tuple[str, ...] = ()
    """The sample fields that it received."""
    replaced: int = 0
    """The number of samples whose output in the data its answers replace."""
    answers: int = 0
    """The number of calls with an answer."""
    failed: int = 0
    """The number of calls without an answer."""
    cached: int = 0
    """The number of calls, with or without an answer, that an earlier run paid for."""
    cost: float | None = None
    """US dollars paid in this run, as reported by the answers; None if none reports a cost."""
    user_cost: float | None = 0.0
    """US dollars for a simulated user; None if the price of a call is unknown."""
    note: str = ""
    """A note on the cost, or ""."""
    usage: Usage = NO_USAGE
    """Tokens paid in this run, as reported by the answers."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """The `mean`, `p50` and `p95` latency of an answer in seconds; empty without answers."""

    def __post_init__(self) -> None:
        if not 1 <= self.trials <= MOST_TRIALS or min(self.answers, self.failed, self.cached, self.replaced) < 0:
            allowed = f"from 1 to {MOST_TRIALS}"
            raise DataError(
                f"the target's trials must be {allowed}, its answers, failed, cached and replaced 0 or more"
            )


EndingName: TypeAlias = Literal[
    "complete",
    "decided",
    "budget",
    "max_requests",
    "judge_refused",
    "judge_unavailable",
    "target_unavailable",
    "batch",
    "storage",
    "interrupted",
    "stopped",
    "error",
    "killed",
]
"""The causes that end a run (`evalstone.results.endings`)."""


@dataclass(frozen=True, kw_only=True)
class Paid:
    """The cost of a run in `summary.json`: judge calls, a simulated user, and the target if it reports its cost. A sum
    is None if a price is unknown."""

    total: float | None
    """US dollars, over all invocations of an interrupted run."""
    this_call: float | None
    """US dollars paid since the run was started or last resumed."""
    records: float | None
    """US dollars of the judge calls in records."""


@dataclass(frozen=True, kw_only=True)
class RunMetadata:
    """The metadata of a run, in `summary.json` or its row in the ledger. The cost is absent until the run has ended."""

    id: str
    dataset: StoredDataset
    judge: StoredJudge
    scorers: tuple[StoredScorer, ...]
    started: str
    seconds: float
    resumed: int
    resumed_at: str = ""
    code: tuple[str, ...] = ()
    """The files of the user's code that were compared with the resumed run's."""
    stop_reason: str = ""
    ending: EndingName = "complete"
    warnings: Mapping[str, int] = field(default_factory=dict[str, int])
    judge_stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """By judge: a `StoredCascade` or a `StoredVote`, as data. Those of an unknown kind are kept as they are."""
    name: str = ""
    tags: tuple[str, ...] = ()
    kind: RunKind = "evaluation"
    drawn: Drawn | None = None
    target: StoredTarget | None = None
    cell: StoredCell | None = None
    asking: Asking = field(default_factory=Asking)
    """How the judges were asked."""
    paid: Paid | None = None

    def __post_init__(self) -> None:
        check_time(self.started, "started")
        if self.resumed_at:
            check_time(self.resumed_at, "resumed_at")
        if min(self.seconds, self.resumed, self.dataset.samples) < 0:
            raise DataError("seconds, resumed and the dataset's samples must be 0 or more")
        for judge, stats in self.judge_stats.items():
            try:
                read_data(_STATISTICS.get(read_data(_Statistics, stats).kind, _Statistics), stats)
            except DataError as error:
                raise DataError(f"judge_stats.{judge}.", error) from None

    @classmethod
    def of(cls, data: Mapping[str, Any], source: str) -> RunMetadata:
        """The metadata in the data of a file or row. source: its name in error messages.

        Raises:
            DataError: it has another format, a field is missing, or has a value of the wrong type.
        """
        RUN_FORMAT.check(data, source)
        try:
            return read_data(cls, data)
        except DataError as error:
            raise DataError(f"{source} cannot be read as a run: ", error) from None


def check_time(value: object, name: str) -> None:
    """Raise DataError unless the value is a time in ISO 8601. name: the name of the field."""
    try:
        datetime.fromisoformat(cast("str", value))
    except (TypeError, ValueError):
        raise DataError(invalid(name, "a time, such as 2026-01-31T12:00:00+00:00", value, f"{value!r:.60}")) from None
