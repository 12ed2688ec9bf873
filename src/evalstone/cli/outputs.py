"""Where the reports of a command go: into files, to standard output, or as tables onto the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields

from rich.text import Text

from evalstone.cli.screen import console
from evalstone.datasets.writing import write_text
from evalstone.errors import ConfigError

STANDARD_OUTPUT = "-"


@dataclass(frozen=True)
class Outputs:
    """The files that were asked for, by format; "-" is standard output, None is not asked for.

    json: one line of it, to standard output.
    """

    html: str | None = None
    markdown: str | None = None
    csv: str | None = None
    json: bool = False
    junit: str | None = None

    @property
    def wanted(self) -> Mapping[str, str]:
        """Format to file, of those that were asked for."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        named["json"] = STANDARD_OUTPUT if self.json else None
        return {name: place for name, place in named.items() if place is not None}


def deliver(outputs: Outputs, made: Mapping[str, Callable[[], Iterable[str]]]) -> bool:
    """Write what was asked for; whether something went to standard output, where nothing else may go then.

    made: what makes each format. Raises ConfigError for a format that is not made here, and for a file that cannot be
    written.
    """
    to_screen = [name for name, place in outputs.wanted.items() if place == STANDARD_OUTPUT]
    if len(to_screen) > 1:
        raise ConfigError(f"only one of --{' and --'.join(to_screen)} can go to standard output")
    for name in outputs.wanted:
        if name not in made:
            raise ConfigError(f"--{name} is not made here; made are {', '.join('--' + known for known in made)}")
    for name, place in outputs.wanted.items():
        if place == STANDARD_OUTPUT:
            sys.stdout.reconfigure(encoding="utf-8", newline="")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            sys.stdout.writelines(made[name]())
        else:
            write_text(place, made[name]())
            if not to_screen:
                console().print(Text(f"Written: {place}"))
    return bool(to_screen)


def lines(of: Iterable[str]) -> Iterable[str]:
    """Lines with their line breaks."""
    return (f"{line}\n" for line in of)
