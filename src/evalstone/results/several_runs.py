"""Several runs side by side: those that are saved, and the cells of an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone._core.file_format import EXPERIMENT_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone.errors import UnknownName, unknown
from evalstone.report.shown import Shown

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.run import Run


@dataclass(frozen=True)
class SavedRuns(Shown):
    """Saved runs with their mean scores, latest first."""

    rows: tuple[Mapping[str, Any], ...]
    """The metadata of each run, as in `summary.json`; `folder` is where it is saved, unless that is the ledger."""
    locations: tuple[str, ...]
    """The ledger and the folders that were searched."""

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The table that `evalstone runs` shows."""
        from evalstone.results.views.several_runs import saved_runs_view  # noqa: PLC0415 - only showing it needs it

        return saved_runs_view(self)

    def csv_lines(self) -> Iterable[str]:
        """One row per run and scorer."""
        from evalstone.results.views.exports import saved_runs_csv  # noqa: PLC0415 - as above

        return saved_runs_csv(self)


@dataclass(frozen=True, kw_only=True)
class Experiment(Shown):
    """The runs of an experiment, by the names of its cells."""

    runs: Mapping[str, Run]

    def __getitem__(self, cell: str) -> Run:
        """The run of a cell.

        Raises:
            UnknownName: there is no such cell.
        """
        if cell not in self.runs:
            raise UnknownName(unknown("cell", cell, self.runs))
        return self.runs[cell]

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The table that an experiment ends with."""
        from evalstone.results.views.several_runs import experiment_view  # noqa: PLC0415 - only showing it needs it

        return experiment_view(self)

    def csv_lines(self) -> Iterable[str]:
        """One row per cell and scorer."""
        from evalstone.results.views.exports import experiment_csv  # noqa: PLC0415 - as above

        return experiment_csv(self)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data: the data of each run, by cell."""
        return {"format": EXPERIMENT_FORMAT, "runs": {name: run.to_dict() for name, run in self.runs.items()}}
