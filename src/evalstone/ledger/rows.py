"""What the ledger's rows hold, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evalstone.types import Usage


class Key(NamedTuple):
    """What an answer is kept under: the question's fingerprint, the judge's identity, and which of several repeated
    answers it is."""

    question: str
    judge: str
    number: int = 0


@dataclass(frozen=True)
class StoredAnswer:
    """A judge's raw reply as the ledger keeps it, and what it took when it was asked for.

    number: which of several answers to the same question, where a judge is asked repeatedly; else 0. written: when it
    was written, in seconds since 1970; 0 for one that was not yet.
    """

    question: str
    judge: str
    kind: str
    reply: str
    usage: Usage
    cost: float | None
    seconds: float
    confidence: float | None
    alternatives: Mapping[str, float] | None = None
    number: int = 0
    written: float = field(default=0.0, compare=False)

    @property
    def key(self) -> Key:
        """What the answer is kept under."""
        return Key(self.question, self.judge, self.number)


@dataclass(frozen=True)
class Claim:
    """The right to ask a question: nobody else asks it until it is answered, released, or its holder is gone."""

    key: Key


@dataclass(frozen=True)
class RunRow:
    """A run as the ledger knows it. `about` is the run's description: data set, scorers, judge."""

    id: str
    plan: str
    started: str
    finished: str | None
    about: Mapping[str, Any]


@dataclass(frozen=True)
class DatasetRow:
    """A data set's version, the hash of its samples' ids and contents; when and by what name it was first seen."""

    version: str
    name: str
    samples: int
    first_seen: str
