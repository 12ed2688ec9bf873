"""What the ledger remembers of batches, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalstone.types import NO_USAGE, Usage


@dataclass(frozen=True, kw_only=True)
class BatchRow:
    """A batch that was given to a provider, or was about to be.

    id: ours, sent along so that the batch can be found again. judge: the identity of who is to answer. run: for which
    it was made. questions: how many are in it. about: what was left out of the requests because it had been refused.
    cost: US dollars, estimated until it is collected, then paid; None when the price is unknown. remote: the provider's
    id, None until the provider is known to have it. collected: when its answers were read. ended: how it ended.
    """

    id: str
    judge: str
    run: str
    questions: int
    about: Mapping[str, Any]
    cost: float | None
    made: str
    remote: str | None = None
    collected: str | None = None
    ended: str | None = None

    @property
    def name(self) -> str:
        """What people call it: the provider's id where there is one."""
        return self.remote or self.id

    @property
    def too_large(self) -> bool:
        """Whether it was refused because it is more than the provider lets one wait for at a time."""
        told = (self.ended or "").lower()
        return "enqueued token limit" in told or "token_limit_exceeded" in told


@dataclass(frozen=True, kw_only=True)
class BatchedQuestion:
    """A question that was put into a batch, and what came of it.

    batch: the last one that it was put into. waiting: whether that one is still open. attempts: replies so far that
    were no answer. reply, error: the last of those, and what was wrong with it. usage, cost: of those. body: what the
    provider sent last, as JSON, not read yet.
    """

    question: str
    judge: str
    batch: str = ""
    waiting: bool = False
    attempts: int = 0
    reply: str | None = None
    error: str | None = None
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    body: str | None = None


@dataclass(frozen=True)
class Place:
    """Where a question is: the batch that it was last put into, and whether that is still open."""

    batch: str
    waiting: bool
