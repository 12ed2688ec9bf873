"""What a result says besides its numbers, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from evalstone._core.guards import is_list
from evalstone._core.validation import read_data

Severity: TypeAlias = Literal["fact", "caution", "warning"]
"""A fact is as it should be, such as other outputs. A caution asks to read a number with care. A warning says why the
result is doubtful."""
NoteValue: TypeAlias = str | float | bool | tuple[str | float, ...] | None


@dataclass(frozen=True)
class Note:
    """What a result says besides its numbers: a kind, and the numbers and names that belong to it.

    `evalstone.report.sentence_of(note)` is its sentence.
    """

    kind: str
    severity: Severity = "fact"
    scorer: str = ""
    """The title of the scorer that it is about; "" for the whole result."""
    values: tuple[tuple[str, NoteValue], ...] = ()
    """Its numbers and names, by name."""

    def __getitem__(self, name: str) -> Any:
        """A value by name; None if the note doesn't have it."""
        return dict(self.values).get(name)

    def __contains__(self, name: object) -> bool:
        """Whether the note has a value of this name."""
        return any(name == each for each, _ in self.values)

    __iter__ = None
    """A note is no sequence, although it has values by name."""

    def __repr__(self) -> str:
        """The call of `note` that makes it: `note('small_sample', 'caution', n=5)`."""
        scorer = (f"scorer={self.scorer!r}",) if self.scorer else ()
        values = (f"{name}={value!r}" for name, value in self.values)
        return f"note({', '.join((repr(self.kind), repr(self.severity), *scorer, *values))})"

    def to_dict(self) -> dict[str, Any]:
        """The note as plain data: `kind`, `severity`, `scorer` unless it is about the whole result, and its values."""
        scorer = {"scorer": self.scorer} if self.scorer else {}
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in self.values}
        return {"kind": self.kind, "severity": self.severity, **scorer, **values}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Note:
        """The note of its plain data. Raises DataError for other data."""
        own = {name: data[name] for name in ("kind", "severity", "scorer") if name in data}
        values = ((name, tuple(value) if is_list(value) else value) for name, value in data.items() if name not in own)
        return replace(read_data(cls, own), values=tuple(values))

    __evalstone_data__ = to_dict
    """How `to_jsonable` writes it."""


def about(notes: Iterable[Note], *runs: str) -> list[Note]:
    """The notes on these runs of several."""
    return [replace(each, values=(("runs", runs), *each.values)) for each in notes]


def of_scorer(notes: Iterable[Note], scorer: str) -> list[Note]:
    """The notes, said of this scorer."""
    return [replace(each, scorer=scorer) for each in notes]


def note(kind: str, severity: Severity = "fact", scorer: str = "", **values: NoteValue) -> Note:
    """A note with these values. None of them is called like an entry of every note."""
    return Note(kind, severity, scorer, tuple(values.items()))
