"""Results that show themselves: `print`, notebooks, pages, Markdown and CSV from one view."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.truth import NoTruthValue

if TYPE_CHECKING:
    from evalstone.report.view import View


class Shown(NoTruthValue):
    """A result with a view, which `print`, notebooks, HTML, Markdown and CSV lay out."""

    @abstractmethod
    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """What the result shows. front_end: how it writes the settings that it names."""

    def brief(self, front_end: FrontEnd = PYTHON) -> View:
        """The view without samples, as `print` and notebooks show it."""
        return replace(self.view(front_end), examples=(), samples=None)

    def text(self, front_end: FrontEnd = PYTHON) -> str:
        """Tables and notes as text, without the samples."""
        from evalstone.report.text import text  # noqa: PLC0415 - rich

        return text(self.brief(front_end))

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """Tables and notes for notebooks."""
        from evalstone.report.html import fragment  # noqa: PLC0415 - jinja2

        return fragment(self.brief())

    def _repr_markdown_(self) -> str:
        """Tables and notes as Markdown."""
        from evalstone.report.markdown import lines  # noqa: PLC0415 - only who shows it needs it

        return "\n".join(lines(self.brief()))

    def to_html(self) -> str:
        """The whole report as a self-contained page."""
        from evalstone.report.html import page  # noqa: PLC0415 - jinja2

        return "".join(page(self.view()))

    def to_markdown(self) -> str:
        """The whole report as Markdown, such as for a pull request."""
        from evalstone.report.markdown import lines  # noqa: PLC0415 - only who shows it needs it

        return "".join(f"{line}\n" for line in lines(self.view()))

    def csv_lines(self) -> Iterable[str]:
        """Its data as lines of CSV that is safe to open in a spreadsheet: here, its tables."""
        from evalstone.report.csv import lines  # noqa: PLC0415 - only who writes it needs it

        return lines(self.brief())

    def to_csv(self) -> str:
        """Its data as CSV that is safe to open in a spreadsheet."""
        return "".join(self.csv_lines())
