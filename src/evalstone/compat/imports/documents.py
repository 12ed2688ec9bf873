"""JSON documents of any size, read member by member: what a reader asks for is in memory, and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from evalstone._core.display import excerpt
from evalstone._core.guards import is_object
from evalstone.datasets.json_rows import JsonWindow
from evalstone.errors import DataError

WALKED = 2
"""How many levels of a value that is skipped are gone through one by one. What is deeper is read and dropped, which is
faster."""


def as_object(value: object, place: str) -> dict[str, Any]:
    """An object from a file. Raises DataError for anything else."""
    if not is_object(value):
        raise DataError(f"{place} must be an object, not {type(value).__name__}")
    return value


class JsonDocument:
    """A JSON document from the pieces of its text.

    `members`, `items` and `objects` go into an object or a list. Each member or item is then read with `value` or
    `object`, entered with one of these, or else skipped:

        for key in document.members():
            if key == "results":
                for place, row in document.objects("results"):
                    …

    Everything raises DataError, with line and column, for invalid JSON, a text that ends early, a value that is too
    long for memory (`row_limit`), and a key that is twice in one object.
    """

    def __init__(self, pieces: Iterable[str]) -> None:
        self._window = JsonWindow("", iter(pieces))
        self._pending = True
        """Whether the value that starts here is still to be read."""

    @property
    def is_object(self) -> bool:
        """Whether an object starts here."""
        return self._window.next() == "{"

    @property
    def is_list(self) -> bool:
        """Whether a list starts here."""
        return self._window.next() == "["

    def members(self, what: str = "the document", depth: int = 0) -> Iterator[str]:
        """The keys of the object that starts here. what: its name in errors."""
        window, seen = self._window, set[str]()
        window.take("{", f"{what} must be an object")
        self._pending = False
        if window.next() == "}":
            window.take("}", "")
            return
        while True:
            if window.next() != '"':
                window.take('"', "Expecting property name enclosed in double quotes")
            key: str = window.value(f"a key of {what}")
            if key in seen:
                raise DataError(f"line {window.line_here}: duplicate key {excerpt(key)} in one object")
            seen.add(key)
            window.take(":", "Expecting ':' delimiter")
            self._pending = True
            yield key
            self._skip_pending(f"{what}.{key}", depth)
            if window.take(",}", "Expecting ',' delimiter") == "}":
                return

    def items(self, what: str, depth: int = 0) -> Iterator[str]:
        """The places of the items of the list that starts here: `results[0]`. what: its name."""
        window = self._window
        window.take("[", f"{what} must be a list")
        self._pending = False
        if window.next() == "]":
            window.take("]", "")
            return
        for number in itertools.count():
            self._pending = True
            yield (place := f"{what}[{number}]")
            self._skip_pending(place, depth)
            if window.take(",]", "Expecting ',' delimiter") == "]":
                return

    def objects(self, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The items of the list that starts here, which must be objects, each after its place. what: its name."""
        for place in self.items(what):
            yield place, self.object(place)

    def object(self, what: str) -> dict[str, Any]:
        """The object that starts here. what: its name in errors."""
        return as_object(self.value(what), what)

    def value(self, what: str) -> Any:
        """The value that starts here. what: its name in errors."""
        self._window.next()
        self._pending = False
        return self._window.value(what)

    def end(self) -> None:
        """Raise DataError if anything follows the document."""
        if self._window.next():
            self._window.take("", "Extra data")

    def _skip_pending(self, what: str, depth: int) -> None:
        if not self._pending:
            return
        if depth < WALKED and self.is_object:
            for _ in self.members(what, depth + 1):
                pass
        elif depth < WALKED and self.is_list:
            for _ in self.items(what, depth + 1):
                pass
        else:
            self.value(what)
