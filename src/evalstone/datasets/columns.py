"""Which column of a row is taken as which field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias, cast

from evalstone.datasets.names import CONTENT, FIELD_NAMES, claims, normal
from evalstone.datasets.wording import listed, named, nearest
from evalstone.errors import ConfigError, DataError, unknown


class Cell(NamedTuple):
    """What a field takes from a row: the value, and the column or dotted path it stands in."""

    column: str
    value: Any


Plan: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]


class Columns:
    """Decides for row after row, and remembers what was decided.

    mapping: sample field -> column, over the names that are understood anyway; `a.b` is entry b of the object in
    column a, and an empty column leaves the field out. became: the columns that became a field. seen: all columns.
    Raises ConfigError for an unknown field in the mapping.
    """

    def __init__(self, mapping: Mapping[str, str] | None = None) -> None:
        self.mapping = dict(mapping or {})
        for field in self.mapping:
            if field not in FIELD_NAMES:
                raise ConfigError(unknown("sample field", field, FIELD_NAMES))
        self.became: dict[str, str] = {}
        self._shapes: dict[tuple[str, ...], None] = {}
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._reached: set[str] = set()

    @property
    def seen(self) -> list[str]:
        """Every column of every row, in the order of appearance."""
        return list(dict.fromkeys(column for shape in self._shapes for column in shape))

    def take(self, cells: Mapping[str, Any]) -> dict[str, Cell]:
        """The cell for each field that has one. An absent (None) cell claims nothing.

        Raises DataError when two columns of one rank claim a field and differ.
        """
        self._shapes[tuple(cells)] = None
        taken = self._mapped(cells) if self.mapping else {}
        present = tuple([column for column, value in cells.items() if value is not None])
        plan = self._plans.get(present)
        if plan is None:
            plan = self._plans[present] = self._plan(present)
        for field, columns in plan:
            taken[field] = Cell(columns[0], cells[columns[0]])
            if len(columns) > 1:
                _refuse_rivals(field, columns, cells)
        return taken

    def _plan(self, present: tuple[str, ...]) -> Plan:
        mapped = set(self.mapping.values())
        plan: list[tuple[str, tuple[str, ...]]] = []
        for field, claimed in claims(present).items():
            free = [claim for claim in claimed if claim[1] not in mapped]
            if free and field not in self.mapping:
                columns = tuple(column for rank, column in free if rank == free[0][0])
                plan.append((field, columns))
                self.became.setdefault(columns[0], field)
        return tuple(plan)

    def check(self) -> None:
        """Raises DataError when no row had a mapped column, or no column of any row was understood."""
        seen = self.seen
        for field, column in self.mapping.items():
            if column and field not in self._reached:
                near = nearest(column, seen)
                hint = f"did you mean {' or '.join(map(named, near))}?" if near else f"columns: {listed(seen)}"
                raise DataError(f"no row has the column {column!r}, wanted for {field}; {hint}")
        if seen and CONTENT.isdisjoint(self.became.values()):
            raise DataError(
                f"no column is understood (columns: {listed(seen)}); wanted are input, output, context, "
                f"reference or messages; say which is which, for example --map output={example(seen)}"
            )

    def _mapped(self, cells: Mapping[str, Any]) -> dict[str, Cell]:
        taken: dict[str, Cell] = {}
        for field, column in self.mapping.items():
            found, value = _at(cells, column) if column else (False, None)
            if found:
                self._reached.add(field)
            if value is not None:
                taken[field] = Cell(column, value)
                self.became.setdefault(column, field)
        return taken


def example(columns: list[str]) -> str:
    """A column to show in an example mapping."""
    return named(columns[0]) if columns else "COLUMN"


def alpaca(taken: Mapping[str, Cell], cells: Mapping[str, Any], mapping: Mapping[str, str]) -> Cell | None:
    """The `instruction` of a row that also has an `input`, the material to it, as alpaca does; None for other rows."""
    cell = taken.get("input")
    if cell is None or "input" in mapping or normal(cell.column) != "input" or not isinstance(cell.value, str):
        return None
    columns = [column for column in cells if normal(column) == "instruction" and column not in mapping.values()]
    if not columns or not isinstance(cells[columns[0]], str):
        return None
    return Cell(columns[0], cells[columns[0]])


def _refuse_rivals(field: str, equals: tuple[str, ...], cells: Mapping[str, Any]) -> None:
    column = equals[0]
    rival = next((other for other in equals if cells[other] != cells[column]), None)
    if rival is not None:
        raise DataError(
            f"columns {column!r} and {rival!r} both claim {field}, and differ; "
            f"decide with --map {field}={named(column)} or --map {field}={named(rival)}"
        )


def _at(cells: Mapping[str, Any], path: str) -> tuple[bool, Any]:
    """Whether a row has a column or a dotted path, and what is there."""
    if path in cells:
        return True, cells[path]
    value: Any = cells
    for step in path.split("."):
        if not isinstance(value, dict) or step not in value:
            return False, None
        value = cast("dict[str, Any]", value)[step]
    return True, value
