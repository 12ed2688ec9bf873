"""Phases of work that may take long, such as reading a file, for whoever shows them: by default, nobody does."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(eq=False)
class Phase:
    """A phase of work: "reading data.jsonl", with 1,200 of 4,000 samples done so far."""

    title: str
    unit: str = ""
    """What is counted, in the singular; "" if nothing is."""
    total: int | None = None
    done: int = 0

    def count(self, items: Iterable[T]) -> Iterator[T]:
        """The items, counted as they are taken."""
        return iter(items) if _watcher is None else self._counted(items)

    def _counted(self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            self.done += 1
            yield item


class Watcher(Protocol):
    """Shows the phases of this process. They may be nested, and be those of several threads."""

    def begin(self, phase: Phase) -> None:
        """A phase has begun."""
        ...

    def end(self, phase: Phase) -> None:
        """A phase has ended, or was broken off."""
        ...

    def clear(self) -> None:
        """Remove what is shown, because something else is about to be printed."""
        ...


_watcher: Watcher | None = None


def watch(by: Watcher | None) -> Watcher | None:
    """Set the watcher of this process, and return the previous one."""
    global _watcher
    previous, _watcher = _watcher, by
    return previous


@contextmanager
def phase(title: str, unit: str = "", total: int | None = None) -> Generator[Phase]:
    """A phase of work, for as long as the block takes."""
    one, watcher = Phase(title, unit, total), _watcher
    if watcher is not None:
        watcher.begin(one)
    try:
        yield one
    finally:
        if watcher is not None:
            watcher.end(one)


def clear() -> None:
    """Remove what is shown of phases, because something else is about to be printed."""
    if _watcher is not None:
        _watcher.clear()
