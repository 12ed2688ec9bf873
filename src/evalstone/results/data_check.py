"""How data are read, what is wrong with them, and which scorers can score them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count
from evalstone._core.file_format import DATA_CHECK_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.json import to_jsonable
from evalstone.errors import DataError
from evalstone.report.shown import Shown

if TYPE_CHECKING:
    from evalstone.report.view import View


@dataclass(frozen=True, kw_only=True)
class CheckedField:
    """A field of the samples."""

    field: str
    """The name of the field."""
    columns: tuple[str, ...]
    """The columns that it is read from; none if it follows from other fields, such as the input of messages."""
    values: int
    """The number of samples that have a value."""
    blank: int
    """The number of samples whose value is blank text. The others have none."""


@dataclass(frozen=True, kw_only=True)
class UnreadColumn:
    """A column that is no field: it is kept in the metadata."""

    column: str
    """The name of the column."""
    reason: str
    """Why it is no field."""
    like: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    """The fields that its name or those of its parts are like, each with the column or the dotted path."""


@dataclass(frozen=True, kw_only=True)
class DataProblem:
    """Why a row can't be read."""

    place: str
    """Where it is, such as `line 3`; "" for the whole file."""
    field: str
    """The field with the problem; "" for the whole row."""
    message: str
    """What is wrong, and what was expected."""
    error: DataError = dataclasses.field(repr=False, compare=False)
    """The error, which knows how settings are written for its reader."""


@dataclass(frozen=True, kw_only=True)
class Duplicates:
    """Samples that repeat an earlier one."""

    samples: int
    """The number of samples with the same contents as an earlier one, apart from the ID."""
    inputs: int
    """The number of samples with the input of an earlier one."""
    first: tuple[str, ...]
    """The places of the first pairs with the same input: `line 5 = line 2`."""


@dataclass(frozen=True, kw_only=True)
class CheckedScorer:
    """A built-in scorer, with the data."""

    name: str
    """The name of the scorer."""
    samples: int
    """The number of samples that it can score."""
    judged: bool
    """Whether it asks a judge."""
    lacks: str
    """What the first other sample lacks; "" if it can score all of them."""


@dataclass(frozen=True, kw_only=True)
class DataCheck(Shown):
    """How data are read, what is wrong with them, and which scorers can score them. No judge is asked."""

    source: str
    """The name of the data."""
    rows: int
    """The number of rows, without those that are blank."""
    samples: int
    """The number of rows that can be read as samples."""
    encoding: str
    """The encoding of the file; "" for data without one."""
    delimiter: str
    """The delimiter of a CSV file; "" for other data."""
    fields: tuple[CheckedField, ...]
    """The fields that samples have."""
    unread: tuple[UnreadColumn, ...]
    """The columns that are no field."""
    problems: tuple[DataProblem, ...]
    """The first 100 problems, in the order of the rows."""
    n_problems: int
    """The number of problems. With one, the data can't be scored."""
    complete: bool
    """Whether the data were read to their end. A broken file may not say where its next row begins."""
    duplicates: Duplicates
    """The samples that repeat an earlier one."""
    languages: Mapping[str, int]
    """By language, the number of samples: a code such as `en`, a script such as `cyrillic`, or "" if it is unclear."""
    scorers: tuple[CheckedScorer, ...]
    """The built-in scorers: first those that can score the most samples. Empty if no column is recognized."""
    remarks: tuple[str, ...]
    """What was read with a caveat."""
    first: tuple[Mapping[str, str], ...]
    """The texts of the first samples, by field."""
    commands: tuple[str, ...]
    """Commands that score the data, if there are no problems, a scorer for it, and a file; before them, what imports
    the scores of another tool."""

    def __repr__(self) -> str:
        return f"<DataCheck {self.source}: {count(self.samples, 'sample')}, {count(self.n_problems, 'problem')}>"

    @property
    def passed(self) -> bool:
        """Whether the data can be read."""
        return not self.n_problems

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """What `evalstone check` shows."""
        from evalstone.results.views.data_check import data_check_view  # noqa: PLC0415 - rarely needed

        return data_check_view(self, front_end)

    def to_dict(self) -> dict[str, Any]:
        """The check as plain data, as `evalstone check --json` prints it."""
        own = {name: value for name, value in vars(self).items() if name != "problems"}
        problems = [{"place": one.place, "field": one.field, "message": one.message} for one in self.problems]
        return {"format": DATA_CHECK_FORMAT, "passed": self.passed, **to_jsonable(own), "problems": problems}
