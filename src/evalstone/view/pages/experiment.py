"""An experiment as its matrix: the mean of each scorer in each cell, and the process that runs the cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count, money, percent
from evalstone._core.json import to_jsonable
from evalstone.report.csv import csv_rows
from evalstone.report.view import Tone
from evalstone.results.endings import EXIT_CODES, ExitCode
from evalstone.view.addresses import CSV, JSON, compare_address, experiment_address, run_address
from evalstone.view.experiments import Cell, Experiment
from evalstone.view.indexing.differences import Differences, over_runs
from evalstone.view.library import Library
from evalstone.view.names import name_of, when
from evalstone.view.pages.common import STATES, Link, directed, duration
from evalstone.view.pages.compare import MOST_RUNS
from evalstone.view.pages.marks import MeanCell
from evalstone.view.pages.runs import COMPARED
from evalstone.view.pages.runs_table import mean_cell
from evalstone.view.responses import SOON, BadAddress, NotThere, csv_file, json_data, named, number_in, page, suffixed
from evalstone.view.shelf import dataset_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

WATCH = "5"
"""Seconds until the page of an experiment in progress is loaded again."""
CELL_STATES: Mapping[str, tuple[str, Tone]] = {**STATES, "waiting": ("waiting", "dim")}
MOST_COLUMNS = 8
"""The most values of the factor that are columns unless another one is chosen."""
ROWS_PER_PAGE, COLUMNS_SHOWN = 50, 24
"""The most rows and columns of a matrix that a page shows."""
CELLS_PER_PAGE = 200
"""The most cells that a page shows: of many columns, it has fewer rows."""
MOST_OFFERED = 200
"""The number of cells that are offered to compare with."""


@dataclass(frozen=True)
class MatrixCell:
    """A cell in the matrix of a scorer."""

    name: str
    state: tuple[str, Tone]
    href: str = ""
    """Where its run is; "" without one."""
    mean: MeanCell | None = None
    compare: str = ""
    """Where it is compared with the baseline."""
    progress: str = ""
    is_baseline: bool = False
    note: str = ""
    """Why it can't be compared with the baseline."""


@dataclass(frozen=True)
class Matrix:
    """The means of a scorer: a row for each combination of the other factors, a column for each value of one."""

    title: str
    """ "" before there are any scores."""
    rows: tuple[tuple[tuple[str, ...], tuple[MatrixCell | None, ...]], ...]


@dataclass(frozen=True)
class CellRow:
    """A cell in the list."""

    name: str
    run: Link | None
    id: str
    state: tuple[str, Tone]
    values: tuple[str, ...]
    dataset: str
    cost: str
    duration: str
    progress: str
    failed: Link | None
    runs: str
    planned: bool


@dataclass(frozen=True)
class Process:
    """What is said of the process of an experiment, and what can be done."""

    state: str
    tone: Tone
    percent: int | None
    """How much of it is done, while it runs."""
    start: str
    """What the button that starts it says; "" without one."""
    stop: str
    again: bool
    """Whether it was asked to end before."""
    output: str
    failed: bool
    refusal: str


@dataclass(frozen=True)
class Compared:
    """How cells differ from those that they are compared with."""

    baselines: Mapping[str, Cell]
    """By dataset."""
    differences: Mapping[str, Differences] = field(default_factory=dict[str, Differences])
    """By run, with p-values corrected for all cells over the same data."""
    progress: str = ""
    comparisons: int = 0
    """The number of comparisons of a cell by a scorer."""


def experiment_page(library: Library, request: Request) -> Response:
    """The latest run of each cell of an experiment, and the cells that its file describes."""
    name_part, suffix = suffixed(request.path_params["name"])
    name = named(name_part)
    experiments = library.experiments.named(name)
    if not experiments:
        raise NotThere(f"There is no experiment {name} in {', '.join(library.shelf.places) or 'the ledger'}.")
    path = request.query_params.get("file", "")
    found = next((one for one in experiments if one.file is not None and one.file.path == path), experiments[0])
    cells = found.cells
    factors = list(dict.fromkeys(factor for cell in cells for factor in cell.stored.factors))
    chosen = request.query_params.get("baseline", "")
    if chosen and chosen not in {cell.stored.name for cell in cells}:
        raise BadAddress(f"The experiment has no cell {chosen}.")
    across = request.query_params.get("across", "") or _usual(cells, factors)
    if across and across not in factors:
        raise BadAddress(f"The experiment has no factor {across}; it has {', '.join(factors) or 'none'}.")
    down = [factor for factor in factors if factor != across]
    columns = list(dict.fromkeys(cell.value(across) for cell in cells)) if across else [""]
    state = [("file", path)] * bool(path)
    base = [("baseline", chosen)] * bool(chosen)
    kept = [("across", across)] * bool(request.query_params.get("across")) + state
    rows = list(dict.fromkeys(tuple(cell.value(factor) for factor in down) for cell in cells))
    first, shown_columns = number_in(request, "after"), columns[:COLUMNS_SHOWN]
    per_page = min(ROWS_PER_PAGE, max(1, CELLS_PER_PAGE // max(1, len(shown_columns))))
    shown_rows = set(rows[first : first + per_page])
    shown = [
        cell
        for cell in cells
        if tuple(cell.value(factor) for factor in down) in shown_rows
        and (suffix or not across or cell.value(across) in shown_columns)
    ]
    more = [("after", str(first + per_page))] if len(rows) > first + per_page else []
    following = experiment_address(name, suffix, [*kept, *base, *more]) if more else ""
    compared = _compared(library, found, chosen, [] if suffix else shown)
    if suffix == JSON:
        return json_data(_data(library, found, shown, factors, compared, following))
    if suffix == CSV:
        return csv_file(_csv(found, factors, compared), name)
    watch = WATCH if found.is_running else SOON if compared.progress else ""
    ticked = [cell for cell in cells if cell.card is not None and cell.card.metadata is not None]
    return page(
        "experiment.html",
        headers={"refresh": watch} if watch else {},
        title=name,
        name=name,
        detail=_detail(library, found),
        experiment=found,
        command=library.experiments.command(found.file) if found.file is not None and found.file.says else "",
        settings=found.file.says.settings if found.file is not None and found.file.says is not None else {},
        files=[
            Link(
                one.file.path,
                experiment_address(name, pairs=[("file", one.file.path)]),
                one.file.path == (found.file.path if found.file else ""),
            )
            for one in experiments
            if one.file is not None
        ]
        if len(experiments) > 1
        else [],
        process=_process(library, found),
        started=when(found.launch.started) if found.launch is not None else "",
        token=library.form_token,
        here=experiment_address(name, pairs=state),
        across=across,
        columns=shown_columns,
        n_columns=len(columns),
        n_rows=len(rows),
        first_row=first + 1,
        last_row=first + len(shown_rows),
        first=experiment_address(name, pairs=[*kept, *base]) if first else "",
        following=following,
        down=down,
        choices=[
            Link(factor, experiment_address(name, pairs=[("across", factor), *base, *state]), factor == across)
            for factor in factors
        ]
        if len(factors) > 1
        else [],
        kept=kept,
        baselines=_offered(cells, compared),
        compared=compared,
        matrices=_matrices(found, shown, down, across, shown_columns, compared, library),
        factors=factors,
        rows=[_row(library, found, cell, factors) for cell in shown],
        comparisons=_comparisons(cells),
        can_compare=len(ticked) > 1,
        exports=[
            Link("CSV of all cells", experiment_address(name, CSV, [*base, *state])),
            Link("JSON", experiment_address(name, JSON, [*kept, *base, *([("after", str(first))] if first else [])])),
        ],
    )


def _offered(cells: Sequence[Cell], compared: Compared) -> list[tuple[str, str, bool]]:
    """The cells that the others can be compared with, and whether they are."""
    chosen = {cell.stored.name for cell in compared.baselines.values()}
    ran = [cell.stored.name for cell in cells if cell.card is not None]
    offered = [*ran[:MOST_OFFERED], *(name for name in ran[MOST_OFFERED:] if name in chosen)]
    return [(name, name, name in chosen) for name in offered]


# ---- The process ----


def _process(library: Library, found: Experiment) -> Process:
    launch, file = found.launch, found.file
    done, total = found.results
    cells = f"{found.n_done:,} of {count(len(found.planned), 'cell')} complete"
    results = f"{done:,} of {total:,} results" if total is not None else count(done, "result")
    state, tone, failed = "", "", False
    if launch is None:
        state = f"Interrupted: {cells}." if found.is_resumable and not found.is_running else ""
    elif launch.is_alive:
        word = "Stopping, after the calls in flight" if launch.state == "stopping" else "Running"
        state, tone = f"{word}: {cells}, {results}.", "unsure"
    elif launch.state == "killed":
        state, tone, failed = f"The process was killed: {cells}. What was paid for is in the ledger.", "bad", True
    elif launch.code in (ExitCode.OK, ExitCode.SCORES_FAILED) and found.is_complete:
        state = "Complete." if launch.code == ExitCode.OK else "Complete, but some scores failed."
    elif launch.code == ExitCode.INTERRUPTED:
        state = f"Stopped: {cells}."
    elif not found.is_complete or launch.code not in (ExitCode.OK, ExitCode.SCORES_FAILED):
        failed, tone = True, "bad"
        known = launch.code in EXIT_CODES and launch.code is not None
        why = EXIT_CODES[ExitCode(launch.code)][0] if known and launch.code is not None else "failed"
        state = f"It ended with exit code {launch.code} ({why}): {cells}."
    start = "" if found.refusal or found.is_running or file is None else _start_text(found)
    return Process(
        state,
        tone,
        100 * done // total if found.is_alive and total else None,
        start,
        ("Stop now" if launch.state == "stopping" else "Stop") if launch is not None and launch.is_alive else "",
        launch is not None and launch.state == "stopping",
        library.experiments.output(launch) if launch is not None else "",
        failed,
        found.refusal if file is not None and not found.is_alive else "",
    )


def _start_text(found: Experiment) -> str:
    if found.is_resumable:
        return "Resume"
    return "Start again" if found.is_complete else "Start"


def _detail(library: Library, found: Experiment) -> str:
    running = [cell for cell in found.cells if cell.card is not None and cell.card.state == "running"]
    ran = [cell.card for cell in found.cells if cell.card is not None]
    failed = sum(library.experiments.failures(card) for card in ran)
    cost = found.cost
    return " · ".join(
        [
            count(len(found.planned), "cell"),
            *([f"{len(running)} running"] if running else []),
            *([f"started {when(min(card.started for card in ran))}"] if ran else ["not yet run"]),
            *([f"cost {money(cost)}"] if cost or cost is None else []),
            *([f"{failed:,} failed"] if failed else []),
        ]
    )


# ---- The matrix ----


def _usual(cells: Sequence[Cell], factors: Sequence[str]) -> str:
    """The factor whose values are the columns unless another is chosen: the last one that fits a page."""
    few = [factor for factor in factors if 1 < len({cell.value(factor) for cell in cells}) <= MOST_COLUMNS]
    return few[-1] if few else ""


def _compared(library: Library, found: Experiment, chosen: str, shown: Sequence[Cell]) -> Compared:
    """The differences of cells from the one that was chosen, or the pinned one, or the first one over the same data.
    Those of the cells that are shown are computed, and the others as time allows."""
    needed = {cell.card.id for cell in shown if cell.card is not None}
    groups: dict[str, list[Cell]] = {}
    for cell in found.cells:
        if cell.card is not None and cell.card.metadata is not None:
            groups.setdefault(dataset_of(cell.card), []).append(cell)
    pins = library.shelf.pins()
    wanted = next((cell for cell in found.cells if cell.stored.name == chosen), None)
    baselines: dict[str, Cell] = {}
    differences: dict[str, Differences] = {}
    progress: list[str] = []
    corrected = 0
    for dataset, cells in groups.items():
        if len(cells) < 2:
            continue
        baseline = _baseline(cells, wanted, pins.get(dataset, ""))
        card = baseline.card
        assert card is not None  # noqa: S101 - those without a run are left out
        baselines[dataset] = baseline
        others = [cell.card for cell in cells if cell is not baseline and cell.card is not None]
        others = [other for other in others if other.state in COMPARED]
        known = library.comparisons.differences(card, others)
        missing = [other for other in others if other.id not in known]
        if needed and missing and card.state in COMPARED:
            later = [other for other in missing if other.id not in needed]
            building = library.comparisons.compute(
                card, [other for other in missing if other.id in needed], others=later
            )
            if building is not None:
                progress.append(f"{building.done:,} of {building.total or len(missing):,} cells over {dataset}")
            known = library.comparisons.differences(card, others)
        family = over_runs(known, [len(other.by_title) for other in others if other.id not in known])
        corrected += family.comparisons
        differences |= {run: own for run in known if (own := family.differences(run)) is not None}
    return Compared(baselines, differences, "; ".join(progress), corrected)


def _baseline(cells: Sequence[Cell], wanted: Cell | None, pinned: str) -> Cell:
    """The cell of a dataset that the others are compared with. wanted: the one that was chosen, maybe over other data:
    then it is the one with the same other factors."""
    if wanted is not None:
        own = {name: wanted.value(name) for name in wanted.stored.factors if name != "data"}
        for cell in cells:
            if cell is wanted or {name: cell.value(name) for name in cell.stored.factors if name != "data"} == own:
                return cell
    return next((cell for cell in cells if cell.card is not None and cell.card.id == pinned), cells[0])


def _matrices(
    found: Experiment,
    cells: Sequence[Cell],
    down: Sequence[str],
    across: str,
    columns: Sequence[str],
    compared: Compared,
    library: Library,
) -> list[Matrix]:
    """A matrix for each scorer of these cells."""
    titles = {
        title: directed(title, lower_is_better=scorer.lower_is_better)
        for cell in cells
        if cell.card is not None
        for title, scorer in cell.card.by_title.items()
    }
    rows = list(dict.fromkeys(tuple(cell.value(factor) for factor in down) for cell in cells))
    at = {(tuple(cell.value(each) for each in down), cell.value(across) if across else ""): cell for cell in cells}
    plain = {cell.stored.name: _matrix_cell(library, found, cell, compared) for cell in cells}

    def one(title: str, row: tuple[str, ...], column: str) -> MatrixCell | None:
        if (cell := at.get((row, column))) is None:
            return None
        shown = plain[cell.stored.name]
        if cell.card is None or not title:
            return shown
        known = compared.differences.get(cell.card.id)
        return replace(shown, mean=mean_cell(cell.card, title, cell.card.by_title.get(title), known))

    return [
        Matrix(text, tuple((row, tuple(one(title, row, column) for column in columns)) for row in rows))
        for title, text in (titles or {"": ""}).items()
    ]


def _matrix_cell(library: Library, found: Experiment, cell: Cell, compared: Compared) -> MatrixCell:
    state = found.state(cell)
    shown = CELL_STATES[state] if cell.card is not None or found.is_running else ("not yet run", "dim")
    if cell.card is None:
        return MatrixCell(cell.stored.name, shown)
    baseline = compared.baselines.get(dataset_of(cell.card))
    is_baseline = baseline is cell
    known = compared.differences.get(cell.card.id)
    return MatrixCell(
        cell.stored.name,
        shown,
        run_address(cell.card.id),
        None,
        ""
        if baseline is None or is_baseline or baseline.card is None
        else compare_address([baseline.card.id, cell.card.id]),
        _progress(library, cell) if cell.card.state != "complete" else "",
        is_baseline,
        f"not comparable: {known.refused}" if known is not None and known.refused else "",
    )


# ---- The cells ----


def _progress(library: Library, cell: Cell) -> str:
    card = cell.card
    if card is None or not card.expected:
        return ""
    failed = library.experiments.failures(card)
    part = f"{card.records:,} of {card.expected:,} results ({percent(card.records / card.expected)})"
    return part + (f", {failed:,} failed" if failed else "")


def _row(library: Library, found: Experiment, cell: Cell, factors: Sequence[str]) -> CellRow:
    values, state = tuple(cell.value(factor) for factor in factors), found.state(cell)
    shown = CELL_STATES[state] if cell.card is not None or found.is_running else ("not yet run", "dim")
    if (card := cell.card) is None:
        return CellRow(
            cell.stored.name, None, "", shown, values, cell.data, "", "", "", None, f"{cell.runs:,}", cell.planned
        )
    run = card.metadata
    failed = library.experiments.failures(card)
    return CellRow(
        cell.stored.name,
        Link(name_of(card), run_address(card.id), number=when(card.started)),
        card.id if run is not None else "",
        shown,
        values,
        dataset_of(card),
        money(card.cost) if card.cost or card.cost is None else "",
        duration(run.seconds) if run is not None and card.state != "running" else "",
        _progress(library, cell) if card.state != "complete" else "",
        Link(f"{failed:,}", f"{run_address(card.id)}?show=failed#samples") if failed else None,
        f"{cell.runs:,}",
        cell.planned,
    )


def _comparisons(cells: Sequence[Cell]) -> list[Link]:
    """The comparisons of the cells over each dataset."""
    by_dataset: dict[str, list[str]] = {}
    for cell in cells:
        if cell.card is not None:
            by_dataset.setdefault(dataset_of(cell.card), []).append(cell.card.id)
    return [
        Link(dataset, compare_address(runs[:MOST_RUNS]), number=f"{min(len(runs), MOST_RUNS)} of {len(runs)} runs")
        for dataset, runs in by_dataset.items()
        if len(runs) > 1
    ]


# ---- The data ----


def _data(
    library: Library,
    found: Experiment,
    cells: Sequence[Cell],
    factors: Sequence[str],
    compared: Compared,
    following: str,
) -> dict[str, Any]:
    launch = found.launch
    done, total = found.results
    return {
        "experiment": found.name,
        "file": found.file.path if found.file is not None else None,
        "factors": list(factors),
        "process": None
        if launch is None
        else {"state": launch.state, "started": launch.started, "exit_code": launch.code, "command": launch.command},
        "n_cells": len(found.planned),
        "n_complete": found.n_done,
        "n_results": done,
        "n_expected": total,
        "cost": found.cost,
        "cells": [_cell_data(library, found, cell, compared) for cell in cells],
        "next": following or None,
    }


def _cell_data(library: Library, found: Experiment, cell: Cell, compared: Compared) -> dict[str, Any]:
    card = cell.card
    about = {"cell": cell.stored.name, "factors": to_jsonable(cell.stored.factors), "state": found.state(cell)}
    if card is None:
        return {**about, "run": None, "dataset": cell.data}
    scorers: Mapping[str, Any] = {
        title: {"mean": scorer.mean, "interval": scorer.interval, "n_score": scorer.n_score}
        for title, scorer in card.by_title.items()
    }
    baseline = compared.baselines.get(dataset_of(card))
    return {
        **about,
        "run": card.id,
        "started": card.started,
        "dataset": dataset_of(card),
        "cost": card.cost,
        "n_failed": library.experiments.failures(card),
        "scorers": to_jsonable(scorers),
        "baseline": None if baseline is None or baseline is cell else baseline.stored.name,
        "differences": to_jsonable(compared.differences.get(card.id)),
    }


def _csv(found: Experiment, factors: Sequence[str], compared: Compared) -> Iterable[str]:
    own = (
        "run", "state", "dataset", "cost", "scorer", "mean", "low", "high", "scale", "n_score",
        "n_failed", "baseline", "difference", "difference_low", "difference_high", "adjusted_p_runs", "verdict",
    )  # fmt: skip
    named = (f"factor {factor}" if factor in ("cell", *own) else factor for factor in factors)
    header = ("cell", *named, *own)

    def differing(cell: Cell, signature: str) -> Sequence[Any]:
        card = cell.card
        baseline = compared.baselines.get(dataset_of(card)) if card is not None else None
        known = compared.differences.get(card.id) if card is not None else None
        change = known.of.get(signature) if known is not None else None
        name = None if baseline is None or baseline is cell else baseline.stored.name
        if change is None:
            return name, None, None, None, None, None
        return name, change.estimate, change.low, change.high, change.adjusted_p_runs, change.verdict

    rows = (
        (
            cell.stored.name, *map(cell.value, factors), card.id, found.state(cell), dataset_of(card), card.cost, title,
            scorer.mean, *(scorer.interval or (None, None)), scorer.scale, scorer.n_score, scorer.n_failed,
            *differing(cell, scorer.signature),
        )
        for cell in found.cells
        if (card := cell.card) is not None
        for title, scorer in card.by_title.items()
    )  # fmt: skip
    return csv_rows(header, rows)
