"""What a run says of itself in `summary.json` and in the ledger."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeAlias, cast

from evalstone._core.validation import read_data
from evalstone.errors import ConfigError, DataError
from evalstone.types.messages import NO_USAGE, Usage
from evalstone.types.records import SUMMARY_FORMAT

RunKind: TypeAlias = Literal["evaluation", "calibration", "audit"]
"""What a run was made for. Calibrations and audits keep runs in the ledger that are no evaluations of outputs."""


@dataclass(frozen=True)
class StoredDataset:
    """A dataset in `summary.json`."""

    name: str
    version: str
    samples: int


@dataclass(frozen=True)
class StoredJudge:
    """A judge in `summary.json`."""

    identity: str
    note: str


@dataclass(frozen=True)
class StoredScorer:
    """A scorer in `summary.json`, with the mean of its scores."""

    name: str
    signature: str
    scale: float
    lower_is_better: bool
    mean: float | None = None


@dataclass(frozen=True, kw_only=True)
class StoredCascade:
    """What a cascade did, in `summary.json`."""

    questions: int
    escalated: float
    share: float
    share_interval: tuple[float, float] | None = None
    fallback: str
    saved_calls: int
    saved_cost: float | None


@dataclass(frozen=True, kw_only=True)
class StoredVote:
    """How far a panel, or a judge asked repeatedly, agreed, in `summary.json`."""

    questions: int
    verdicts: int
    agreement: float | None = None
    agreement_interval: tuple[float, float] | None = None
    flip_rate: float | None = None
    no_answer: Mapping[str, int]

    def __post_init__(self) -> None:
        if self.verdicts and (self.agreement is None or self.agreement_interval is None):
            raise DataError("agreement and agreement_interval must be there with verdicts")


@dataclass(frozen=True)
class Drawn:
    """The random order in which a run that its gate stopped drew its samples."""

    seed: str
    """What the order is derived from, together with the samples' ids."""
    tested: Mapping[str, int]
    """By scorer's signature: how many samples come before the first, in this order, that the scorer has not seen."""


@dataclass(frozen=True, kw_only=True)
class StoredTarget:
    """The target in `summary.json`: what answered, and what its answers took."""

    identity: str
    trials: int
    user: str = ""
    """The identity of who talked to it in turns; "" where nobody did but the turns of the samples."""
    scope: str = ""
    """What its answers have in the ledger in place of a judge."""
    inputs: tuple[str, ...] = ()
    """The sample fields that it was given."""
    answers: int = 0
    """How many of its calls gave an answer."""
    failed: int = 0
    """How many gave none."""
    cached: int = 0
    """How many of both an earlier run paid for."""
    cost: float | None = None
    """US dollars paid in this run, as far as answers report it; None where none does."""
    user_cost: float | None = 0.0
    """US dollars that a simulated user cost; None if the price of a call is unknown."""
    note: str = ""
    """What to know about its cost, or ""."""
    usage: Usage = NO_USAGE
    """Tokens paid in this run, as far as answers report them."""
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """The `mean`, `p50` and `p95` of the seconds that an answer took; empty without answers."""

    def __post_init__(self) -> None:
        if self.trials < 1 or min(self.answers, self.failed, self.cached) < 0:
            raise DataError("the target's trials must be 1 or more, its answers, failed and cached 0 or more")


@dataclass(frozen=True, kw_only=True)
class Paid:
    """What a run has paid for judge calls, a simulated user and, as far as it reports its cost, the target; in
    `summary.json`. A sum is None if a price is unknown."""

    total: float | None
    """US dollars, over all calls of a run that was interrupted."""
    this_call: float | None
    """US dollars paid since the run began, or was resumed last."""
    records: float | None
    """US dollars of the judge calls in records."""
    until: str
    """When it was added up (ISO 8601)."""

    def __post_init__(self) -> None:
        check_time(self.until, "until")


@dataclass(frozen=True, kw_only=True)
class RunMetadata:
    """What `summary.json`, or a run's row in the ledger, says of a run; cost is absent until the run has ended."""

    run: str
    dataset: StoredDataset
    judge: StoredJudge
    scorers: tuple[StoredScorer, ...]
    started: str
    seconds: float
    resumed: int
    stop_reason: str = ""
    warnings: Mapping[str, int] = field(default_factory=dict[str, int])
    judge_stats: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """By judge: a `StoredCascade` or a `StoredVote`, as data."""
    name: str = ""
    tags: tuple[str, ...] = ()
    kind: RunKind = "evaluation"
    drawn: Drawn | None = None
    target: StoredTarget | None = None
    paid: Paid | None = None

    def __post_init__(self) -> None:
        check_time(self.started, "started")
        if any(one.scale <= 0 for one in self.scorers):
            raise DataError("the scale of a scorer must be above 0")
        if min(self.seconds, self.resumed, self.dataset.samples) < 0:
            raise DataError("seconds, resumed and the dataset's samples must be 0 or more")
        for judge, stats in self.judge_stats.items():
            try:
                read_data(StoredCascade if stats.get("kind") == "cascade" else StoredVote, stats)
            except DataError as error:
                raise DataError(f"judge_stats.{judge}.{error}") from None

    @classmethod
    def of(cls, data: Mapping[str, Any], source: str) -> RunMetadata:
        """The metadata in the data of a file or row. source: what to call it in errors.

        Raises:
            ConfigError: it was written in another format; the text has the versions of evalstone at both ends.
            DataError: a field is missing, or has a value of another kind.
        """
        if (found := data.get("format")) != SUMMARY_FORMAT:
            writer = data.get("evalstone")
            by = f"evalstone {writer}" if isinstance(writer, str) else "another version of evalstone or another program"
            reads = f"this is evalstone {installed_version()}, which reads format {SUMMARY_FORMAT}"
            raise ConfigError(f"{source} was written by {by}, in format {found!r:.40}; {reads}")
        try:
            return read_data(cls, data)
        except DataError as error:
            raise DataError(f"{source} cannot be read as a run: {error}") from None


@functools.cache
def installed_version() -> str:
    """The version of evalstone that is running."""
    from importlib.metadata import version  # noqa: PLC0415 - reading the metadata takes time

    return version("evalstone")


def check_time(value: object, name: str) -> None:
    """Raise DataError for what is not a time in ISO 8601. name: of the field."""
    try:
        datetime.fromisoformat(cast("str", value))
    except (TypeError, ValueError):
        raise DataError(f"{name} must be a time, such as 2026-01-31T12:00:00+00:00, not {value!r:.60}") from None
