"""What a sample costs and how long its judge takes, whoever asked first.

    cost    = sum over the sample's answers of what each cost when it was given
    seconds = sum over its questions of how long each took when it was answered; of judges that are asked at once (such
              as the members of a panel), the slowest one counts

An answer from the ledger has the cost and the time stored with it, and a shared answer those of the call that gave it.
A sample's calls count once each, and a call that two samples share counts in both: it is what each would cost alone.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from evalstone.judges.base import Judge
from evalstone.ledger import AsyncLedger, Key
from evalstone.types import JudgeCall, Record, total_cost


class _Given(NamedTuple):
    """What an answer cost in US dollars, and how many seconds it took; None if unknown."""

    cost: float | None
    seconds: float | None

    @classmethod
    def of(cls, cost: float | None, seconds: float, requests: int) -> _Given:
        # Answers of a provider's batch API have no time.
        return cls(cost, seconds if seconds or not requests else None)


async def price_of_samples(
    records: Iterable[Record], judges: Iterable[Judge], ledger: str | Path | None
) -> tuple[float | None, float | None]:
    """The mean cost in US dollars and the median time in seconds of the records for which one of the judges was asked.

    Each is None if no judge was asked, or if that of an answer is unknown.
    """
    judged = [record for record in records if any(True for call in record.calls for _ in call.sources())]
    if not judged:
        return None, None
    given = await _all_given((call for record in judged for call in record.calls), ledger)
    at_once = {*_asking_at_once(judges)}
    costs, times = zip(*(_price(record, given, at_once) for record in judged), strict=True)
    total = total_cost(costs)
    known = [seconds for seconds in times if seconds is not None]
    return (
        None if total is None else total / len(judged),
        statistics.median(known) if len(known) == len(judged) else None,
    )


async def costs_of_calls(calls: Sequence[JudgeCall], ledger: str | Path | None) -> list[float | None]:
    """What each of these calls costs in US dollars if it is made anew; None if that is unknown."""
    given = await _all_given(calls, ledger)
    return [_of_call(call, given, set(), ()).cost for call in calls]


def _asking_at_once(judges: Iterable[Judge]) -> Iterator[str]:
    """The identities of the judges, and of their members, that ask their members at once."""
    for judge in judges:
        if judge.asks_at_once:
            yield judge.identity
        yield from _asking_at_once(judge.members)


async def _all_given(calls: Iterable[JudgeCall], ledger: str | Path | None) -> Mapping[Key, _Given]:
    """What the answers of these calls cost and took when they were given."""
    leaves = [leaf for call in calls for leaf in call.leaves()]
    given = {_key(leaf): _given(leaf) for leaf in leaves if leaf.source == "asked"}
    if ledger is not None and (absent := {_key(leaf) for leaf in leaves} - given.keys()):
        async with AsyncLedger(ledger) as store:
            stored = await store.work(store.store.answers_to, absent)
        given |= {key: _Given.of(row.cost, row.seconds, row.usage.requests) for key, row in stored.items()}
    return given


def _price(record: Record, given: Mapping[Key, _Given], at_once: Collection[str]) -> tuple[float | None, float | None]:
    """What the calls of a record cost and how long they took, if all of them had been made for it."""
    counted: set[Key] = set()
    found = [_of_call(call, given, counted, at_once) for call in record.calls]
    return total_cost(each.cost for each in found), total_cost(each.seconds for each in found)


def _of_call(call: JudgeCall, given: Mapping[Key, _Given], counted: set[Key], at_once: Collection[str]) -> _Given:
    if not call.members:
        key = _key(call)
        if key in counted:
            return _Given(0.0, 0.0)
        counted.add(key)
        return given.get(key, _Given(None, None))
    parts = [_of_call(member, given, counted, at_once) for member in call.members]
    seconds = total_cost(part.seconds for part in parts)
    if seconds is not None and call.judge in at_once:
        seconds = max(part.seconds or 0.0 for part in parts)
    return _Given(total_cost(part.cost for part in parts), seconds)


def _key(call: JudgeCall) -> Key:
    return Key(call.fingerprint, call.judge, call.repeat_index)


def _given(call: JudgeCall) -> _Given:
    return _Given.of(call.cost, call.seconds, call.usage.requests)
