"""Values stored in the ledger, and how they become table rows and back. Imports no SQLAlchemy."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from evalstone.types import NO_USAGE, Record, Usage

USAGE_COLUMNS = ("input_tokens", "output_tokens", "cached_tokens", "requests")
_NESTED = frozenset({"alternatives", "metadata"})
_FREE_TEXT = frozenset({"reply", "error"})


class Key(NamedTuple):
    """The key of an answer: the question's fingerprint, the judge's identity, and the index among repeated answers."""

    question: str
    judge: str
    repeat_index: int = 0


@dataclass(frozen=True)
class StoredAnswer:
    """A judge's raw reply with its tokens, cost and time."""

    question: str
    """Fingerprint of the question."""
    judge: str
    """Identity of the judge."""
    kind: str
    """Kind of the question, such as `list_claims`."""
    reply: str
    usage: Usage
    cost: float | None
    """US dollars; None when the price is unknown."""
    seconds: float
    confidence: float | None
    alternatives: Mapping[str, float] | None = None
    """Probabilities of the labels, if the judge reports them."""
    repeat_index: int = 0
    """Index among several answers to the same question."""
    written: float = field(default=0.0, compare=False)
    """When the answer was stored, in seconds since 1970; 0 before that."""

    @property
    def key(self) -> Key:
        """The key of the answer."""
        return Key(self.question, self.judge, self.repeat_index)


@dataclass(frozen=True)
class Claim:
    """The right to ask a question. Nobody else asks it until it is answered, released, or its owner is gone."""

    key: Key


@dataclass(frozen=True)
class RunRow:
    """A run. `metadata` describes its dataset, scorers and judge; `finished` is None until the run is complete."""

    id: str
    plan: str
    started: str
    finished: str | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class DatasetRow:
    """A dataset version (the hash of its samples' ids and contents), and when and by what name it was first seen."""

    version: str
    name: str
    samples: int
    first_seen: str


@dataclass(frozen=True, kw_only=True)
class BatchRow:
    """A batch that was submitted to a provider, or is about to be."""

    id: str
    """Our id. It is sent with the requests, so the batch can be found again."""
    judge: str
    run: str
    questions: int
    """How many questions are in it."""
    metadata: Mapping[str, Any]
    """Settings left out of the requests because the provider refused them."""
    cost: float | None
    """US dollars: an estimate until the batch is collected, then the price paid; None when unknown."""
    created: str
    remote: str | None = None
    """The provider's id; None until the provider is known to have the batch."""
    collected: str | None = None
    """When its answers were read."""
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
    """A question that was put into a batch, and the result so far."""

    question: str
    judge: str
    batch: str = ""
    """The last batch it was put into."""
    waiting: bool = False
    """Whether that batch is still open."""
    attempts: int = 0
    """Unusable replies so far. `reply` and `error` are the last of them; `usage` and `cost` cover all."""
    reply: str | None = None
    error: str | None = None
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    body: str | None = None
    """The provider's last response as JSON, not parsed yet."""


@dataclass(frozen=True)
class QuestionBatch:
    """The last batch a question was put into, and whether that batch is still open."""

    batch: str
    waiting: bool


@dataclass
class Operations:
    """Reads and writes for one transaction."""

    answers: list[StoredAnswer] = field(default_factory=list[StoredAnswer])
    records: list[tuple[str, Record]] = field(default_factory=list[tuple[str, Record]])
    """Records, each with the id of its run."""
    released: list[Key] = field(default_factory=list[Key])
    """Leases to give back."""
    lookups: set[Key] = field(default_factory=set[Key])
    claims: set[Key] = field(default_factory=set[Key])
    """Answers to look up and, where there is none, leases to acquire."""
    drop_expired: bool = False
    """Whether to delete expired leases first."""


@dataclass
class Applied:
    """The result of `Operations`: the answers found and the leases acquired."""

    answers: dict[Key, StoredAnswer] = field(default_factory=dict[Key, StoredAnswer])
    leased: set[Key] = field(default_factory=set[Key])


R = TypeVar("R", StoredAnswer, RunRow, DatasetRow, BatchRow, BatchedQuestion)


def storable(text: str) -> str:
    r"""Text that every database accepts: lone surrogates and NUL are escaped as in JSON (`\ud83d`, `\u0000`)."""
    if "\x00" in text:
        text = text.replace("\x00", "\\u0000")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def cell_hash(sample: str, scorer: str) -> str:
    """The hash of a sample's id and a scorer's signature, used in the key of a record."""
    return hashlib.blake2b(f"{sample}\x00{scorer}".encode(), digest_size=16).hexdigest()


def to_row(value: StoredAnswer | RunRow | DatasetRow | BatchRow | BatchedQuestion) -> dict[str, Any]:
    """A value as a row of its table: tokens in columns of their own, nested values as JSON."""
    row = dict(vars(value))
    if usage := row.pop("usage", None):
        row.update(zip(USAGE_COLUMNS, (usage.input, usage.output, usage.cached, usage.requests), strict=True))
    for name in _NESTED & row.keys():
        row[name] = json.dumps(dict(row[name])) if row[name] is not None else None
    for name in _FREE_TEXT & row.keys():
        row[name] = None if row[name] is None else storable(row[name])
    if isinstance(value, RunRow):
        dataset = dataset_of(value)
        row["dataset"] = dataset and dataset.version
    return row


def from_row(kind: type[R], row: Any) -> R:
    """The value in a row of its table."""
    values: dict[str, Any] = dict(row._mapping)
    if "requests" in values:
        values["usage"] = Usage(*(values.pop(name) for name in USAGE_COLUMNS))
    for name in _NESTED & values.keys():
        values[name] = json.loads(values[name]) if values[name] else None
    return kind(**{name: values[name] for name in kind.__dataclass_fields__})


def record_row(run: str, record: Record) -> dict[str, Any]:
    """A record as a row of `records`."""
    sample, scorer = storable(record.sample), storable(record.scorer)
    body = json.dumps(record.to_dict())
    return {"run": run, "cell": cell_hash(sample, scorer), "sample": sample, "scorer": scorer, "body": body}


def dataset_of(run: RunRow) -> DatasetRow | None:
    """The dataset version in a run's metadata."""
    match run.metadata.get("dataset"):
        case {"version": str(version), "name": str(name), "samples": int(samples)}:
            return DatasetRow(version, storable(name), samples, run.started)
        case _:
            return None
