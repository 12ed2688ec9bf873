"""Shared parts of the ledger: locations, stored values, and their rows."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from evalstone._core.display import quoted
from evalstone._core.environment import expanded_url
from evalstone._core.files import home_expanded
from evalstone._core.front_ends import Setting
from evalstone._core.json import content_hash, storable
from evalstone._core.redaction import masked_url, redacted
from evalstone._core.run_ids import RUN_ID
from evalstone._core.times import utc_time
from evalstone._core.validation import read_data
from evalstone.errors import ConfigError, EvalstoneError
from evalstone.types import NO_USAGE, JudgeCall, RunMetadata, Sample, Usage

if TYPE_CHECKING:
    from evalstone.questions.answers import JudgeAnswer

INVALID_ROW = (ArithmeticError, ValueError, KeyError, TypeError, AttributeError, RecursionError, EvalstoneError)
"""The errors of reading an invalid row."""
DEFAULT_LEDGER = "sqlite:///.evalstone/ledger.db"
SCHEMES = ("sqlite", "postgresql", "postgres", "postgresql+psycopg")
WAIT = 30.0
"""Seconds to wait for another process to end a transaction."""
INDEXES = "view"
"""The folder of indexes beside the ledger."""
NO_FILES = ("", "none", ":memory:")
"""Names that are surely not meant as file names."""
EXPECTED = "expected a path, sqlite:///path/to/file.db or postgresql://user@host/database"
USAGE_COLUMNS = ("input_tokens", "output_tokens", "cached_tokens", "requests")
_NESTED = frozenset({"alternatives", "metadata"})
_FREE_TEXT = frozenset({"reply", "error", "ended"})


def hour_start(hour: int) -> datetime:
    """When an hour since 1970 begins; for one that no date has, the last one before."""
    return utc_time(min(hour, _LAST_HOUR) * HOUR)


def shown(url: str | Path) -> str:
    """A ledger's location for display: the path of a file, or the URL with its password hidden."""
    text = str(url)
    if text.startswith("sqlite:///"):
        return text.removeprefix("sqlite:///")
    return masked_url(text)


def resolved(url: str | Path) -> str | Path:
    """A ledger's location with the values of environment variables for `$NAME` in a text. Raises ConfigError for a
    variable that is not set."""
    return expanded_url(url, "the ledger's URL") if isinstance(url, str) else url


def file_of(url: str | Path) -> Path | None:
    """The file of a SQLite ledger; None for one on a server.

    Raises:
        ConfigError: The URL is empty, "none" or ":memory:", has another scheme, names no database, or has options for
            SQLite. The message hides the password.
    """
    url = resolved(url)
    scheme, separator, rest = str(url).partition("://")
    if separator and (scheme not in SCHEMES or (scheme == "sqlite" and not rest.startswith("/")) or rest in ("", "/")):
        raise ConfigError(f"{shown(url)} is not a ledger; {EXPECTED}")
    if separator and scheme != "sqlite":
        return None
    file = rest[1:] if separator else str(url)
    if file.lower() in NO_FILES:
        message = f"{quoted(file)} would be a file of that name" if file else "the ledger's name is empty"
        raise ConfigError(f"{message}; {EXPECTED}. Only Python goes without a ledger: ledger=None")
    if separator and "?" in file:
        raise ConfigError(f"{shown(url)}: a SQLite ledger has no options after a question mark; {EXPECTED}")
    return home_expanded(file)


def index_file(folder: Path, run: str) -> Path:
    """The index of a run's samples that `evalstone view` makes, in the folder of a ledger or in another one."""
    return folder / INDEXES / f"{content_hash(run)}.db"


def comparison_file(folder: Path, runs: Sequence[str], kind: str = "") -> Path:
    """The comparison of runs that `evalstone view` makes, in such a folder. kind: which of them."""
    return folder / INDEXES / f"{'-'.join(('compare', *map(_short_hash, runs), *([kind] if kind else [])))}.db"


def made_of(folder: Path, run: str) -> list[Path]:
    """The files that `evalstone view` made of a run, in such a folder."""
    return [index_file(folder, run), *(folder / INDEXES).glob(f"compare-*{_short_hash(run)}*.db")]


def dataset_difference_file(folder: Path, before: str, after: str) -> Path:
    """The difference of two versions of a dataset that `evalstone view` makes, in such a folder."""
    return folder / INDEXES / f"dataset-{_short_hash(before)}-{_short_hash(after)}.db"


def made_of_dataset(folder: Path, version: str) -> list[Path]:
    """The files that `evalstone view` made of a version of a dataset, in such a folder."""
    return [*(folder / INDEXES).glob(f"dataset-*{_short_hash(version)}*.db")]


def _short_hash(text: str) -> str:
    return content_hash(text)[:12]


def is_there(url: str | Path) -> bool:
    """Whether the ledger's file exists. Always true for a server, which is not contacted."""
    file = file_of(url)
    return file is None or file.exists()


class Key(NamedTuple):
    """The key of an answer: the question's fingerprint, the judge's identity, and the index among repeated answers."""

    question: str
    judge: str
    repeat_index: int = 0


HOUR = 3600
"""Seconds of those hours by which live scoring counts."""
_LAST_HOUR = int(datetime(9999, 12, 31, 23, tzinfo=UTC).timestamp()) // HOUR
TARGET = "target"
"""The kind of a target's answer."""


def target_scope(identity: str, run: str = "") -> str:
    """The key of a target's answers, in place of a judge. Answers of an unversioned target are for one run only.

    run: The id of this run; "" for a target with a version.
    """
    return f"{identity} in {run}" if run else identity


def target_of(scope: str) -> str:
    """The target's identity, from its `target_scope`."""
    return _IN_RUN.sub("", scope)


_IN_RUN = re.compile(rf" in {RUN_ID}\Z")


@dataclass(frozen=True)
class StoredAnswer:
    """A judge's raw reply, or a target's answer as JSON, with its tokens, cost and time."""

    question: str
    """The fingerprint of the question, or of the sample for a target's answer."""
    judge: str
    """Identity of the judge; the `target_scope` of a target."""
    kind: str
    """Kind of the question, such as `list_claims`; `TARGET` for a target's answer."""
    reply: str
    usage: Usage
    cost: float | None
    """US dollars; None when the price is unknown."""
    seconds: float
    probability: float | None
    alternatives: Mapping[str, float] | None = None
    """Probabilities of the labels, if the judge reports them."""
    repeat_index: int = 0
    """Index among several answers to the same question; the trial of a target's answer."""
    written: float = field(default_factory=time.time, compare=False)
    """When the answer was given, in seconds since 1970."""
    refused_settings: tuple[str, ...] = ()
    """The judge's settings that its endpoint refused, so that this answer was given without them."""
    run: str = ""
    """The ID of the run that paid for it; "" if no run did. Every run may use it."""

    @classmethod
    def of(cls, key: Key, kind: str, answer: JudgeAnswer[Any] | JudgeCall, run: str = "") -> StoredAnswer:
        """The row of a judge's answer, or of a judge call in a record, which has the same fields. run: the ID of the
        run that paid for it."""
        return cls(
            question=key.question,
            judge=key.judge,
            repeat_index=key.repeat_index,
            kind=kind,
            reply=answer.reply or "",
            usage=answer.usage,
            cost=answer.cost,
            seconds=answer.seconds,
            probability=answer.probability,
            alternatives=answer.alternatives,
            refused_settings=answer.refused_settings,
            run=run,
        )

    @property
    def key(self) -> Key:
        """The key of the answer."""
        return Key(self.question, self.judge, self.repeat_index)


@dataclass(frozen=True)
class Claim:
    """The exclusive right to ask a question, until it is answered or released, or its owner is gone."""

    key: Key


@dataclass(frozen=True)
class RunRow:
    """A run. `metadata` describes its dataset, scorers and judge; `finished` is None until the run is complete."""

    id: str
    plan: str
    started: str
    finished: str | None
    metadata: Mapping[str, Any]
    cost: float = 0.0
    """US dollars paid so far for its calls and batches whose price is known."""
    unpriced: int = 0
    """The number of its calls and batches without a known price."""
    reserved: float = 0.0
    """US dollars that its budgets count for calls without a known price."""

    @cached_property
    def described(self) -> RunMetadata:
        """The metadata as a value. Raises DataError if a field is missing, or has a value of the wrong type."""
        return read_data(RunMetadata, self.metadata)

    @property
    def paid(self) -> float | None:
        """US dollars paid so far; None if a price is unknown."""
        return None if self.unpriced else self.cost


@dataclass(frozen=True, kw_only=True)
class BatchRow:
    """A provider batch that was submitted, or is about to be."""

    id: str
    """Our own id. It is sent with the requests, so that the batch can be found again."""
    api: str
    """The kind of batch API that it goes to: `openai`, `anthropic`, or `files` in a folder."""
    judge: str
    run: str
    questions: int
    """The number of questions in it."""
    metadata: Mapping[str, Any]
    """Settings left out of the requests because the provider refused them."""
    cost: float | None
    """US dollars: an estimate until the batch is collected, then the price paid; None if unknown."""
    created: str
    remote: str | None = None
    """The provider's id; None until the provider is known to have the batch."""
    collected: str | None = None
    """The time when its answers were read."""
    ended: str | None = None
    """The final state that the provider reported."""

    @property
    def name(self) -> str:
        """The provider's id if there is one, otherwise ours."""
        return self.remote or self.id

    @property
    def too_large(self) -> bool:
        """Whether the provider refused it for exceeding the limit on enqueued tokens."""
        state = (self.ended or "").lower()
        return "enqueued token limit" in state or "token_limit_exceeded" in state


@dataclass(frozen=True, kw_only=True)
class BatchedQuestion:
    """A batched question, with its current result."""

    question: str
    judge: str
    batch: str = ""
    """The last batch that included it."""
    waiting: bool = False
    """Whether that batch is still open."""
    attempts: int = 0
    """The number of unusable replies so far. `reply` and `error` are the last one's; `usage` and `cost` cover all."""
    reply: str | None = None
    error: str | None = None
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    body: str | None = None
    """The provider's last response as unparsed JSON."""


@dataclass
class Payment:
    """What a run pays in one transaction. Transactions may be repeated, so each payment has an ID."""

    run: str
    id: str = field(default_factory=partial(secrets.token_hex, 8))
    cost: float = 0.0
    """US dollars of the calls whose price is known."""
    unpriced: int = 0
    """The number of calls without a known price."""
    reserved: float = 0.0
    """US dollars that a budget counts for them."""

    def add(self, cost: float | None, reserved: float = 0.0) -> None:
        """Add a call.

        Args:
            cost: US dollars; None if the price is unknown.
            reserved: US dollars that a budget counts if the price is unknown.
        """
        if cost is None:
            self.unpriced += 1
            self.reserved += reserved
        else:
            self.cost += cost


@dataclass
class Operations:
    """Reads and writes for one transaction."""

    answers: list[StoredAnswer] = field(default_factory=list[StoredAnswer])
    records: list[tuple[str, int, str, str]] = field(default_factory=list[tuple[str, int, str, str]])
    """The id of a run, the cell of a record, which is the number of the sample, trial and scorer in the run, the
    signature of the scorer, and the record's `record_line`."""
    payment: Payment | None = None
    released: list[Key] = field(default_factory=list[Key])
    """Leases to release."""
    lookups: set[Key] = field(default_factory=set[Key])
    claims: set[Key] = field(default_factory=set[Key])
    """Answers to look up, and leases to acquire for those that aren't stored."""
    renew: bool = False
    """Whether to extend all leases of this ledger."""
    drop_expired: bool = False
    """Whether to delete expired leases first."""


@dataclass
class Applied:
    """The result of `Operations`: the answers found and the leases acquired."""

    answers: dict[Key, StoredAnswer] = field(default_factory=dict[Key, StoredAnswer])
    leased: set[Key] = field(default_factory=set[Key])


T = TypeVar("T")
R = TypeVar("R", StoredAnswer, RunRow, BatchRow, BatchedQuestion)


def chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of up to `size` values."""
    iterator = iter(values)
    while chunk := list(islice(iterator, size)):
        yield chunk


def existing(ledger: str | Path | None) -> str:
    """The path or URL of a ledger. Raises ConfigError when there is none, rather than creating one."""
    url = str(DEFAULT_LEDGER if ledger is None else ledger)
    if not is_there(url):
        raise ConfigError(f"there is no ledger {shown(url)}; name one with ", Setting("ledger", ...))
    return url


def to_row(value: StoredAnswer | RunRow | BatchRow | BatchedQuestion) -> dict[str, Any]:
    """A value as a row of its table: tokens in separate columns, nested values as JSON."""
    row = dict(vars(value))
    if usage := row.pop("usage", None):
        row.update(zip(USAGE_COLUMNS, (usage.input, usage.output, usage.cached, usage.requests), strict=True))
    if "refused_settings" in row:
        row["refused_settings"] = ",".join(row["refused_settings"])
    for name in _NESTED & row.keys():
        row[name] = redacted(json.dumps(dict(row[name]))) if row[name] is not None else None
    for name in _FREE_TEXT & row.keys():
        row[name] = None if row[name] is None else storable(redacted(row[name]))
    return row


def from_row(kind: type[R], row: Mapping[str, Any]) -> R:
    """The value in a row of its table."""
    values = dict(row)
    if "requests" in values:
        values["usage"] = Usage(*(values.pop(name) for name in USAGE_COLUMNS))
    if "refused_settings" in values:
        values["refused_settings"] = tuple(values["refused_settings"].split(",")) if values["refused_settings"] else ()
    for name in _NESTED & values.keys():
        values[name] = json.loads(values[name]) if values[name] else None
    return kind(**{name: values[name] for name in kind.__dataclass_fields__})


def record_row(run: str, cell: int, signature: str, line: str) -> dict[str, Any]:
    """A record as a row of `records`. signature: that of the scorer. line: the `record_line`."""
    return {"run": run, "cell": cell, "signature": storable(signature), "body": line}


def sample_hash(sample: Sample) -> str:
    """The hash of a sample's id and content, which is the key of its row."""
    return hashlib.blake2b(f"{json.dumps(sample.id)} {sample.content_hash}".encode(), digest_size=16).hexdigest()


def dataset_row(run: RunRow) -> dict[str, Any] | None:
    """The dataset in a run's metadata as a row. `version` is the hash of its samples' ids and contents."""
    match run.metadata.get("dataset"):
        case {"version": str(version), "name": str(name), "samples": int(samples)}:
            return {"version": version, "name": storable(redacted(name)), "samples": samples, "first_seen": run.started}
        case _:
            return None
