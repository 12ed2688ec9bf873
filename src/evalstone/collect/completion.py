"""Traces that are complete: the root has ended, and nothing more came for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from evalstone.agents.formats.records import Record

SCORE = "gen_ai.evaluation.result"
"""The log record of a score, by the semantic conventions."""
MOST_RECORDS = 200_000
"""The most spans and log records that wait for the rest of their traces."""
MOST_BYTES = 256_000_000
"""The longest that they are together, as JSON."""
REMEMBERED = 100_000
"""How many of the traces that are done are remembered, and as many log records without a trace ID."""
_PATIENCE = 12
"""How many times longer a trace without its root is waited for, as one that began in another process is."""


class Recent:
    """The texts that were added last, `REMEMBERED` at most."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, text: str) -> bool:
        return text in self._texts

    def add(self, text: str) -> None:
        """Add one; the oldest may be forgotten."""
        self._texts[text] = None
        if len(self._texts) > REMEMBERED:
            self._texts.popitem(last=False)


@dataclass
class _Waiting:
    records: list[Record] = field(default_factory=list[Record])
    size: float = 0.0
    last: float = 0.0
    rooted: bool = False


@dataclass
class OpenTraces:
    """The traces that are under way, in the order in which they were last added to.

    Log records without a trace ID are one trace, "", which is complete so many seconds after the first of them.
    """

    quiet: float
    """For how many seconds nothing came for a trace that is complete."""
    late: int = 0
    """How many spans and log records came after their trace had been taken for complete, without scores."""
    scores: int = 0
    """How many events of scores came after it: those are made when a trace is complete."""
    _open: OrderedDict[str, _Waiting] = field(default_factory=lambda: OrderedDict[str, _Waiting]())
    _done: Recent = field(default_factory=Recent)
    _count: int = 0
    _size: float = 0.0

    def add(self, records: Collection[Record], now: float, size: int = 0) -> None:
        """Add records that came at a time, in seconds of any clock, and are so many bytes long together."""
        for record in records:
            if record.trace in self._done:
                self.add_late([record])
                continue
            waiting = self._open.get(record.trace)
            if waiting is None:
                waiting = self._open[record.trace] = _Waiting(last=now, rooted=not record.trace)
            waiting.records.append(record)
            if record.trace:
                self._open.move_to_end(record.trace)
                waiting.last = now
                waiting.rooted = waiting.rooted or (record.kind == "span" and record.is_root)
            waiting.size += size / len(records)
            self._size += size / len(records)
            self._count += 1

    def add_late(self, records: Iterable[Record]) -> None:
        """Count records of a trace that was complete before."""
        for record in records:
            if record.kind == "log" and record.name == SCORE:
                self.scores += 1
            else:
                self.late += record.kind != "event"

    def complete(self, now: float, *, all: bool = False) -> Iterator[list[Record]]:
        """The records of each trace that is complete, or of all; those longest without news where too many wait."""
        for trace, waiting in list(self._open.items()):
            silence = now - waiting.last
            due = silence >= self.quiet * (1 if waiting.rooted else _PATIENCE)
            full = self._count > MOST_RECORDS or self._size > MOST_BYTES
            if not all and not full and silence < self.quiet:
                return  # the others had news later
            if all or due or full:
                del self._open[trace]
                self._count -= len(waiting.records)
                self._size -= waiting.size
                if trace:
                    self._done.add(trace)
                yield waiting.records
