"""One question behind a score, the answer it got, and what that took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Usage:
    """Tokens that one judge answer took, corrective retries included. `cached` is the part of `input` that the
    provider read from its prompt cache. `requests` counts the replies that were read."""

    input: int = 0
    output: int = 0
    cached: int = 0
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.requests + other.requests,
        )


NO_USAGE = Usage()


@dataclass(frozen=True, kw_only=True)
class Step:
    """One question behind a score and the answer it got.

    `reused` says that nothing was asked: the answer came from the ledger, or from another scorer in the same run.
    `cost` is in US dollars, 0 for a reused answer, None when the price is unknown. `number` says which of several
    answers to the same question it is. Where the judge is made of judges, `members` are their own steps, whose usage
    and cost are part of this step's, and `detail` says how their answers became one.
    """

    question: str
    fingerprint: str
    judge: str
    answer: Any
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    seconds: float = 0.0
    confidence: float | None = None
    reused: bool = False
    reply: str | None = None
    alternatives: Mapping[str, float] | None = None
    number: int = 0
    members: tuple[Step, ...] = ()
    detail: Mapping[str, Any] | None = None

    def leaves(self) -> Iterator[Step]:
        """The steps in which a judge answered by itself: this one, or those of the members."""
        if not self.members:
            yield self
        for member in self.members:
            yield from member.leaves()


def step_from(data: Mapping[str, Any]) -> Step:
    """A step read back from its plain data; steps of format 1 that are older have no members."""
    fields = dict(data)
    fields["usage"] = Usage(**fields["usage"])
    fields["members"] = tuple(step_from(member) for member in fields.get("members", ()))
    return Step(**fields)


def total_cost(costs: Any) -> float | None:
    """The sum of costs in US dollars; None as soon as one of them is unknown."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total
