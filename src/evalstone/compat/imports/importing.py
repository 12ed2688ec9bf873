"""Import the results of another tool: its scores become a run, and nothing is judged again."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, overload

from evalstone._core.declarations import Range, Rule, check_argument
from evalstone._core.display import count, digits_for, limits, listed, number, quoted, shortlist
from evalstone._core.file_format import IMPORT_FORMAT
from evalstone._core.files import check_encoding, home_expanded, is_file, is_folder
from evalstone._core.front_ends import PYTHON, FrontEnd, Hint, Setting, WordingPart
from evalstone._core.garbage import rare_collections
from evalstone._core.guards import is_mapping
from evalstone._core.json import content_hash
from evalstone._core.phases import phase
from evalstone._core.redaction import register_credentials
from evalstone._core.spilled_texts import SpillFile
from evalstone.compat.imports.building import Building, Built, check_scales, write_to_ledger
from evalstone.compat.imports.reading import Source, reader_for
from evalstone.compat.imports.results import NextPart, system_name
from evalstone.errors import ConfigError, DataError, MissingDependency
from evalstone.ledger.base import DEFAULT_LEDGER
from evalstone.ledger.store import Ledger
from evalstone.report.notes import sentences_of
from evalstone.report.shown import Shown
from evalstone.report.view import FOOTER, Column, Section, View, table, words
from evalstone.results.files import check_replaceable, write_run
from evalstone.results.run import Run
from evalstone.run.execute import check_names
from evalstone.stats.labeling import labels_to_reach
from evalstone.types import note

if TYPE_CHECKING:
    from evalstone.results.summary import ScorerSummary

HALF_WIDTH = 0.1
"""The half-width of a corrected mean, as a share of the scale, for which the number of labels is shown."""
LONGEST_FOLDER = 80
_TAGS = Rule("one text or several", lambda value: isinstance(value, Iterable))
_SCALE = Annotated[float, Range(0, exclusive=True)]
_PATH = Rule("a path", lambda value: isinstance(value, str | os.PathLike))
_SCALES = Rule(
    "numbers by the names of metrics", lambda value: is_mapping(value) and all(isinstance(n, str) for n in value)
)


@dataclass(frozen=True)
class ImportedRuns(Sequence[Run], Shown):
    """The runs that were made of another tool's results, one for each system, in the order of the file."""

    runs: tuple[Run, ...]
    tool: str
    """The tool, with the version in its file."""
    known: tuple[str, ...] = ()
    """The IDs of those that were in the ledger already, because the same results were imported before."""
    folders: tuple[str, ...] = ()
    """Where they were written; empty without `out`."""

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | Sequence[Run]:
        return self.runs[index]

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __repr__(self) -> str:
        return f"<ImportedRuns of {self.tool}: {count(len(self.runs), 'run')}>"

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """What `evalstone import` shows: the mean of each metric with its interval, and what it rests on."""
        notes = [each for run in self.runs for each in run.cautions if each.kind != "printed_equal"]
        equal = sum(each["numbers"] for run in self.runs for each in run.cautions if each.kind == "printed_equal")
        facts = [each for each in notes if each.severity == "fact"]
        if equal:
            facts.append(note("printed_equal", tool=self.tool, numbers=equal))
        judged = any(line.judges for run in self.runs for line in run.summary)
        several = len(self.runs) > 1
        samples = listed(dict.fromkeys(f"{run.dataset_name}: {run.samples_and_judge}" for run in self.runs))
        return View(
            name=f"Imported from {self.tool}",
            lead=listed(dict.fromkeys(run.dataset_name for run in self.runs)) if several else samples,
            warnings=self._warnings(front_end),
            sections=(
                *((Section("Runs", tables=(table("The run of each system", _RUNS, self._rows()),)),) * several),
                Section(
                    "Scores",
                    tables=(
                        table(
                            "Mean of each metric, with its 95% confidence interval",
                            _SCORES,
                            [
                                _score(run, system, line)
                                for run, system in zip(self.runs, _systems(self.runs), strict=True)
                                for line in run.summary
                            ],
                        ),
                    ),
                    notes=(*sentences_of(facts, front_end), *((_ABOUT_LABELS,) * judged)),
                ),
            ),
            footer=FOOTER,
        )

    def _warnings(self, front_end: FrontEnd) -> tuple[str, ...]:
        """What has to be known of the runs. What isn't said of all of them is said after their systems."""
        systems: dict[str, list[str]] = {}
        for run, system in zip(self.runs, _systems(self.runs), strict=True):
            for text in sentences_of((each for each in run.cautions if each.severity != "fact"), front_end):
                systems.setdefault(text, []).append(system)
        return tuple(text if len(of) == len(self.runs) else f"{listed(of)}: {text}" for text, of in systems.items())

    def _rows(self) -> Iterator[Sequence[str]]:
        folders = self.folders or ("",) * len(self.runs)
        for run, system, folder in zip(self.runs, _systems(self.runs), folders, strict=True):
            trials = f"{run.trials:,}" if run.trials > 1 else ""
            yield run.id, system, f"{run.n_samples:,}", trials, folder

    def to_dict(self) -> dict[str, Any]:
        """The runs as JSON data, as `evalstone import --json` prints it."""
        return {
            "format": IMPORT_FORMAT,
            "tool": self.tool,
            "runs": [run.to_dict() for run in self.runs],
            "known": list(self.known),
            "folders": list(self.folders),
        }


def _systems(runs: Sequence[Run]) -> list[str]:
    """What answered in each run, "" if the file doesn't say; with the dataset where that doesn't tell runs apart."""
    systems = ["" if run.target is None else run.target.identity for run in runs]
    times = Counter(systems)
    return [
        system if times[system] == 1 else system_name(system, run.dataset_name)
        for run, system in zip(runs, systems, strict=True)
    ]


_RUNS = (words("run"), words("system"), Column("samples"), Column("trials"), words("folder"))
_SCORES = (
    Column("system", numeric=False, informative=False),
    words("metric"),
    Column("mean"),
    Column("95% CI", numeric=False, interval=True),
    Column("scores", csv="n_score"),
    Column("skipped", informative=False, csv="n_skipped"),
    Column("failed", informative=False, csv="n_failed"),
    Column("labels", csv="labels"),
)
_ABOUT_LABELS = (
    "Labels: about how many samples people must label, so that the mean corrected with them is known to within "
    f"±{HALF_WIDTH:g} of the scale, if the judge is wrong on one sample in five. A better judge needs fewer."
)


def _score(run: Run, system: str, line: ScorerSummary) -> Sequence[str]:
    digits, interval = digits_for(line.info.scale), line.interval
    return (
        system,
        run.titles[line.info.signature] + ("" if line.info.scale == 1 else f" (of {line.info.scale:g})"),
        number(line.mean, digits),
        "" if interval is None else limits(interval.low, interval.high, digits),
        f"{line.n_score:,}",
        f"{line.n_skipped:,}",
        f"{line.n_failed:,}",
        _labels(run, line),
    )


def _labels(run: Run, line: ScorerSummary) -> str:
    """About how many labels correct a judged mean; "" for one in code."""
    if not line.judges or not line.n_score:
        return ""
    columns = run.columns
    values = [value for value in columns.values(columns.rows(line.info.signature)) if value is not None]
    scale = line.info.scale
    return f"{labels_to_reach(values, HALF_WIDTH * scale, scale=scale):,}"


def import_results(
    path: str | os.PathLike[str],
    *,
    tool: str | None = None,
    out: str | os.PathLike[str] | None = None,
    ledger: str | os.PathLike[str] | None = DEFAULT_LEDGER,
    scales: Mapping[str, float] | None = None,
    encoding: str | None = None,
    name: str = "",
    tags: str | Iterable[str] = (),
) -> ImportedRuns:
    """Make runs of the results of another tool, with its scores. Nothing is judged again, and no key is needed.

    Each system that the file has results of, such as a provider with a prompt, becomes a run. Its scorers are the
    tool's metrics. Reports, comparisons, gates, power, labels and corrections work as on any run. docs/import.md has
    what each tool's file becomes.

    Args:
        path: The file or folder.
        tool: The tool that wrote it, such as "promptfoo"; by default, it is recognized by its content.
        out: The folder to write the run to; of several runs, one folder each below it. None for none.
        ledger: The ledger to write the runs to; None for none.
        scales: The highest possible score by metric, for those whose tool doesn't say it. By default 1, or if a score
            is higher, a power of ten.
        encoding: The encoding of a text that isn't UTF-8 and doesn't say its encoding itself, such as "cp1252".
        name: A name for the runs.
        tags: One or more tags for the runs.

    Raises:
        DataError: The file is of no known tool, or damaged; the message names the place in it.
        ConfigError: A setting is invalid, or nothing can be written to `out`, or it has results of other data.
        LedgerError: The ledger can't be written.
    """
    check_argument("path", path, Annotated[Any, _PATH])
    for argument, value, rule in (("out", out, _PATH), ("ledger", ledger, _PATH), ("scales", scales, _SCALES)):
        if value is not None:
            check_argument(argument, value, Annotated[Any, rule])
    check_argument("tool", tool, str | None)
    check_argument("encoding", encoding, str | None)
    check_encoding(encoding)
    check_argument("tags", tags, Annotated[Any, _TAGS])
    labels = (tags,) if isinstance(tags, str) else tuple(tags)
    check_names(name, labels)
    for metric, scale in (scales or {}).items():
        check_argument(f"scales[{metric!r}]", scale, _SCALE)
    source = Source(home_expanded(os.fspath(path)), encoding)
    if not os.fspath(path) or not (is_file(source.path) or is_folder(source.path)):
        if os.fspath(path) and os.path.exists(source.path):  # noqa: PTH110 - also for paths that can't exist
            raise DataError(f"{quoted(path)} is no file; results are read more than once, so save them as one")
        raise DataError(f"{quoted(path)} does not exist")
    register_credentials()  # the tool may have used any of them, and errors quote them
    with rare_collections():
        built = _built(source, tool, scales or {}, name, labels)
    runs = tuple(each.run for each in built)
    folders = () if out is None else tuple(_folders(runs, Path(out)))
    for run, folder in folders:
        system = None if run.target is None else run.target.identity
        check_replaceable(folder, run.dataset_name, run.dataset_version, system)
    known: list[str] = []
    if ledger is not None:
        with phase("writing to the ledger"), contextlib.closing(Ledger(str(ledger))) as opened:
            now = datetime.now(UTC)
            known.extend(each.run.id for each in built if not write_to_ledger(each, opened, now))
    written = tuple(str(write_run(run, folder)) for run, folder in folders)
    return ImportedRuns(runs, _tool(runs), tuple(known), written)


def _tool(runs: Sequence[Run]) -> str:
    return listed(dict.fromkeys(info.tool for run in runs for info in run.scorers))


def _built(
    source: Source, tool: str | None, scales: Mapping[str, float], name: str, tags: tuple[str, ...]
) -> list[Built]:
    reader = reader_for(source, tool)
    shown = f"{os.fspath(source.path)}: "

    spilled = SpillFile("imported rows")

    def building() -> Building:
        return Building(
            reader.tool, reader.version, file=source.name, written=source.written, spilled=spilled, scales=scales
        )

    parts: list[tuple[str, Building]] = []
    try:
        with phase(f"reading {source.name}", "row") as reading:
            current = building()
            for event in reading.count(reader.read(source)):
                if isinstance(event, NextPart):
                    current = building()
                    parts.append((event.name, current))
                else:
                    current.add(event)
        with phase("making runs"):
            return _of_parts(parts, scales, name, tags) if parts else current.built(name=name, tags=tags)
    except MissingDependency:
        raise
    except ConfigError as error:  # also of a sample or an answer that none can be
        raise DataError(shown, DataError(*_hints_here(error.parts))) from None
    except RecursionError:
        raise DataError(shown, "nested too deeply") from None
    except OSError as error:
        raise DataError(shown, f"cannot be read: {error.strerror or error}") from None


def _of_parts(
    parts: Sequence[tuple[str, Building]], scales: Mapping[str, float], name: str, tags: tuple[str, ...]
) -> list[Built]:
    """The runs of each part, with a note on those that have none. Raises DataError if there is no run at all."""
    names = {metric: None for _, part in parts for metric in part.metric_names}
    found: list[Built] = []
    problems: list[tuple[str, DataError]] = []
    if names:
        check_scales(scales, names)
    for title, part in parts:
        part.scales = {metric: scales[metric] for metric in part.metric_names if metric in scales}
        try:
            found += part.built(name=name, tags=tags)
        except DataError as error:
            problems.append((title, error))
    if not found:
        raise problems[0][1]
    if not problems:
        return found
    what = shortlist(f"{title}: {error}" for title, error in problems)
    left_out = note("parts_left_out", "caution", parts=len(problems), what=what)
    return [replace(each, run=replace(each.run, cautions=(*each.run.cautions, left_out))) for each in found]


def _hints_here(parts: Iterable[WordingPart]) -> Iterator[WordingPart]:
    """The parts of an error without the hints at settings that datasets have, and imports don't."""
    for part in parts:
        if not (
            isinstance(part, Hint) and any(isinstance(each, Setting) and each.name == "map" for each in part.parts)
        ):
            yield part


def _folders(runs: Sequence[Run], out: Path) -> Iterator[tuple[Run, Path]]:
    """The folder of each run."""
    if len(runs) == 1:
        yield runs[0], out
        return
    taken: set[str] = set()
    for run, system in zip(runs, _systems(runs), strict=True):
        folder = folder_name(system)
        if folder.lower() in taken:
            folder = f"{folder}-{run.id.rpartition('-')[2]}"
        taken.add(folder.lower())
        yield run, out / folder


def folder_name(system: str) -> str:
    """The name of a system's folder: its letters, digits and `._-`; of a long one the beginning and a hash."""
    folder = re.sub(r"[^\w.-]+", "-", system).strip(".-") or "run"
    if len(folder.encode()) <= LONGEST_FOLDER:
        return folder
    return f"{folder.encode()[: LONGEST_FOLDER - 9].decode(errors='ignore')}-{content_hash(system)[:8]}"
