"""Lists in pages. A place in an order is a value and a number, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from evalstone.errors import ConfigError
from evalstone.ledger.base import storable

MOST_AT_ONCE = 1000
"""The rows that are read together where all of a list are."""
FEW = 50_000
"""From so many rows that a search finds on, those that are listed first are found sooner by their order."""
Row = TypeVar("Row")


class _Page(Protocol):
    """Some of the rows of a list."""

    @property
    def following(self) -> str: ...


AnyPage = TypeVar("AnyPage", bound=_Page)


def every_page(page: Callable[[str], AnyPage]) -> Iterator[AnyPage]:
    """All pages of a list, from its beginning. page: Reads the one after a place; "" for the first."""
    after = ""
    while True:
        yield (read := page(after))
        if not (after := read.following):
            return


def read_place(text: str) -> tuple[float | str | None, int]:
    """A place that an address names. The value is None where rows have none.

    Raises:
        ConfigError: It is none.
    """
    try:
        value, number = json.loads(text)
        if type(number) is int and abs(number) < 1 << 62 and (value is None or isinstance(value, str | int | float)):
            return value if value is None else storable(value) if isinstance(value, str) else float(value), number
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    raise ConfigError("the address names no place in the list")


def page_of(
    rows: Sequence[Row], limit: int, place: Callable[[Row], str], *, back: bool, cursor: str
) -> tuple[list[Row], str, str]:
    """The rows of a page, and the places of the pages before and after it; "" if there is none.

    Args:
        rows: The rows from a place on, or before it: one more than fit, if there are more.
        limit: How many fit.
        place: The place of a row.
        back: Whether these are rows before the place, in the opposite order.
        cursor: The place; "" for the beginning of the list.
    """
    more, shown = len(rows) > limit, [*rows[:limit]]
    if back:
        shown.reverse()
    if not shown:
        return [], "", ""
    before, after = (more, True) if back else (bool(cursor), more)
    return shown, place(shown[0]) if before else "", place(shown[-1]) if after else ""
