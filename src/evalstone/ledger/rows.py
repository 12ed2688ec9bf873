"""What the ledger's rows hold, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalstone.types import Usage


@dataclass(frozen=True)
class StoredAnswer:
    """A judge's raw reply as the ledger keeps it, and what it took when it was asked for."""

    question: str
    judge: str
    kind: str
    reply: str
    usage: Usage
    cost: float | None
    seconds: float
    confidence: float | None


@dataclass(frozen=True)
class RunRow:
    """A run as the ledger knows it. `about` is the run's description: data set, scorers, judge."""

    id: str
    plan: str
    started: str
    finished: str | None
    about: Mapping[str, Any]
