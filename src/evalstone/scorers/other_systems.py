"""The scorers and options of other systems and their counterparts here, if any.

`data/SYSTEM.txt` has two tables with lines `theirs | ours | difference`, separated by a blank line; "-" means none. The
first table has scorers, ours as written on the command line. The second has options, in sections that begin with
`their scorer = our scorer:` for each scorer that takes them, or with the name of a call; further lines are indented.
Ours is as a user writes it: a parameter of our scorer, a scorer, an option of a command, or a call in Python.
Semicolons separate the counterparts of several options. SCORER is any scorer's name. All scorers of a system take the
options of "every …".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Counterpart:
    """One scorer of another system. ours: our scorer as written on the command line; empty for none."""

    theirs: str
    ours: str
    difference: str = "none"


@dataclass(frozen=True)
class Option:
    """One option of another system. scorers: their scorers that take it, or the call, and our scorer for each."""

    scorers: Mapping[str, str]
    theirs: str
    ours: str
    difference: str = ""

    @property
    def of(self) -> str:
        """The scorers or calls that take it, as text: `createToneScorer = tone_consistency`."""
        return ", ".join(f"{theirs} = {ours}" if ours else theirs for theirs, ours in self.scorers.items())

    @property
    def is_common(self) -> bool:
        """Whether every scorer of the system takes it."""
        return next(iter(self.scorers)).startswith("every ")


def counterparts(name: str) -> list[tuple[str, Counterpart]]:
    """The scorers of other systems that have this name, each with its system."""
    return [(system, row) for system, rows in SYSTEMS.items() for row in rows if bare(row.theirs) == name]


def options_for(system: str, name: str) -> list[Option]:
    """The options of a system's scorer or call of this name, and the options of this name."""
    return [
        option
        for option in OPTIONS[system]
        if _is(option, name) or name.lower() in (bare(scorer).lower() for scorer in option.scorers)
    ]


def hint(parameter: str, kind: str, name: str, fields: Collection[str]) -> str:
    """A message with the counterpart here of another system's parameter; empty if no system has it.

    kind: the class of our scorer. name: its name. fields: its parameters.
    """
    hints = dict[int, str]()
    for system, option in ((system, option) for system, options in OPTIONS.items() for option in options):
        rank = 0 if _plain(kind) in map(_plain, option.scorers.values()) else 1 if option.is_common else 2
        field = option.ours.partition("=")[0]
        # A parameter of another scorer is no help, and a difference in case is a typo.
        fits = parameter.lower() not in fields and (field in fields or (rank < 2 and not field.isidentifier()))
        if fits and _is(option, parameter):
            verdict = f"is {option.ours} here" if option.ours else "has no counterpart here"
            detail = f" ({option.difference})" if option.difference else ""
            hints.setdefault(rank, f"{system}'s {option.theirs} {verdict}{detail}".replace("SCORER", name or "SCORER"))
    return hints[min(hints)] if hints else ""


def bare(name: str) -> str:
    """A name without version, publisher and options: `BiasMetric (0.13)` is BiasMetric."""
    return name.partition("(")[0].strip()


def _is(option: Option, name: str) -> bool:
    return _plain(option.theirs) == _plain(name)


def _plain(name: str) -> str:
    return name.rpartition(".")[2].replace("_", "").lower()


def _options(table: str) -> Iterator[Option]:
    scorers = dict[str, str]()
    for line in table.splitlines():
        row = line.strip()
        if row == line:
            section, _, row = f"{line} ".partition(": ")
            scorers = {name: ours for name, _, ours in (pair.partition(" = ") for pair in section.split(", "))}
        if not row:
            continue
        theirs, ours, *difference = row.strip().split(" | ")
        names, forms = theirs.split(", "), ("" if ours == "-" else ours).split("; ")
        for name, form in zip(names, forms if len(forms) > 1 else forms * len(names), strict=True):
            yield Option(scorers, name, form, *difference)


def _read(system: str) -> tuple[tuple[Counterpart, ...], tuple[Option, ...]]:
    scorers, _, options = files("evalstone.scorers").joinpath(f"data/{system}.txt").read_text("utf-8").partition("\n\n")
    rows = (line.replace(" | - | ", " |  | ").split(" | ") for line in scorers.splitlines())
    return tuple(Counterpart(*row) for row in rows), tuple(_options(options))


_TABLES = {system: _read(system) for system in ("mastra", "spring", "ragas", "deepeval")}
SYSTEMS: Mapping[str, tuple[Counterpart, ...]] = {system: scorers for system, (scorers, _) in _TABLES.items()}
OPTIONS: Mapping[str, tuple[Option, ...]] = {system: options for system, (_, options) in _TABLES.items()}
