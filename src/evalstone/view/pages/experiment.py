"""An experiment as its matrix: the mean of each scorer in each cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count, money
from evalstone._core.json import to_jsonable
from evalstone.report.csv import csv_rows
from evalstone.report.view import Tone
from evalstone.types import StoredCell
from evalstone.view.addresses import CSV, JSON, compare_address, experiment_address, run_address, with_query
from evalstone.view.library import Library
from evalstone.view.names import name_of, when
from evalstone.view.pages.common import STATES, Link, directed, duration
from evalstone.view.pages.compare import MOST_RUNS
from evalstone.view.pages.marks import MeanCell
from evalstone.view.pages.runs_table import mean_cell
from evalstone.view.responses import BadAddress, NotThere, csv_file, json_data, named, page, suffixed
from evalstone.view.shelf import Card, dataset_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

WATCH = "5"
"""Seconds until the page of an experiment in progress is loaded again."""


@dataclass(frozen=True)
class Cell:
    """A cell with its latest run."""

    stored: StoredCell
    card: Card
    runs: int
    """The number of its runs."""

    def value(self, factor: str) -> str:
        """The value of a factor, as text; "" if the cell doesn't have it."""
        value = self.stored.factors.get(factor, "")
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Matrix:
    """The means of a scorer: a row for each combination of the other factors, a column for each value of one."""

    title: str
    rows: tuple[tuple[tuple[str, ...], tuple[tuple[MeanCell, Link] | None, ...]], ...]


@dataclass(frozen=True)
class CellRow:
    """A cell in the list."""

    run: Link
    state: tuple[str, Tone]
    values: tuple[str, ...]
    dataset: str
    cost: str
    duration: str
    progress: str
    runs: str


def experiment_page(library: Library, request: Request) -> Response:
    """The latest run of each cell of an experiment."""
    name_part, suffix = suffixed(request.path_params["name"])
    name = named(name_part)
    cells = _cells(library, name)
    if not cells:
        raise NotThere(f"There is no run of an experiment {name} in {', '.join(library.shelf.places) or 'the ledger'}.")
    factors = list(dict.fromkeys(factor for cell in cells for factor in cell.stored.factors))
    if suffix == JSON:
        return json_data({"experiment": name, "factors": factors, "cells": [_data(cell) for cell in cells]})
    if suffix == CSV:
        return csv_file(_csv(cells, factors), name)
    across = request.query_params.get("across", "") or _usual(cells, factors)
    if across and across not in factors:
        raise BadAddress(f"The experiment has no factor {across}; it has {', '.join(factors) or 'none'}.")
    down = [factor for factor in factors if factor != across]
    columns = list(dict.fromkeys(cell.value(across) for cell in cells)) if across else [""]
    running = [cell for cell in cells if cell.card.state == "running"]
    return page(
        "experiment.html",
        headers={"refresh": WATCH} if running else {},
        title=name,
        name=name,
        detail=" · ".join(
            [
                count(len(cells), "cell"),
                *([f"{len(running)} running"] if running else []),
                f"started {when(min(cell.card.started for cell in cells))}",
            ]
        ),
        across=across,
        columns=columns,
        down=down,
        choices=[
            Link(factor, with_query(experiment_address(name), [("across", factor)]), factor == across)
            for factor in factors
        ]
        if len(factors) > 1
        else [],
        matrices=_matrices(cells, down, across, columns),
        factors=factors,
        rows=[_row(cell, factors) for cell in cells],
        compared=_compared(cells),
        exports=[Link("CSV", experiment_address(name, CSV)), Link("JSON", experiment_address(name, JSON))],
        open=any(cell.card.state != "complete" for cell in cells),
    )


def _cells(library: Library, name: str) -> list[Cell]:
    """The cells in the order in which they ran, each with its latest run."""
    found: dict[str, list[Card]] = {}
    for card in library.shelf.cards():
        cell = card.metadata.cell if card.metadata is not None else None
        if cell is not None and cell.experiment == name:
            found.setdefault(cell.name, []).append(card)
    latest = [
        Cell(cell, cards[0], len(cards))
        for cards in found.values()
        if (run := cards[0].metadata) is not None and (cell := run.cell) is not None
    ]
    return latest[::-1]


def _usual(cells: Sequence[Cell], factors: Sequence[str]) -> str:
    """The factor whose values are the columns unless another is chosen: the last one that fits a page."""
    few = [factor for factor in factors if 1 < len({cell.value(factor) for cell in cells}) <= 8]
    return few[-1] if few else ""


def _matrices(cells: Sequence[Cell], down: Sequence[str], across: str, columns: Sequence[str]) -> list[Matrix]:
    titles = {
        title: directed(title, lower_is_better=scorer.lower_is_better)
        for cell in cells
        for title, scorer in cell.card.by_title.items()
    }
    rows = list(dict.fromkeys(tuple(cell.value(factor) for factor in down) for cell in cells))
    at = {(tuple(cell.value(each) for each in down), cell.value(across) if across else ""): cell for cell in cells}

    def mean(title: str, row: tuple[str, ...], column: str) -> tuple[MeanCell, Link] | None:
        if (cell := at.get((row, column))) is None:
            return None
        found = mean_cell(cell.card, title, cell.card.by_title.get(title))
        label = f"the run of {cell.stored.name}"
        return None if found is None else (found, Link(found.text or "…", run_address(cell.card.id), number=label))

    return [
        Matrix(text, tuple((row, tuple(mean(title, row, column) for column in columns)) for row in rows))
        for title, text in titles.items()
    ]


def _row(cell: Cell, factors: Sequence[str]) -> CellRow:
    card = cell.card
    run = card.metadata
    done = f"{card.records:,} of {card.expected:,} results" if card.state != "complete" else ""
    return CellRow(
        Link(name_of(card), run_address(card.id), number=when(card.started)),
        STATES[card.state],
        tuple(cell.value(factor) for factor in factors),
        dataset_of(card),
        money(card.cost) if card.cost or card.cost is None else "",
        duration(run.seconds) if run is not None and card.state != "running" else "",
        done,
        f"{cell.runs:,}",
    )


def _compared(cells: Sequence[Cell]) -> list[Link]:
    """The comparisons of the cells over each dataset."""
    by_dataset: dict[str, list[str]] = {}
    for cell in cells:
        by_dataset.setdefault(dataset_of(cell.card), []).append(cell.card.id)
    return [
        Link(dataset, compare_address(runs[:MOST_RUNS]), number=f"{min(len(runs), MOST_RUNS)} of {len(runs)} runs")
        for dataset, runs in by_dataset.items()
        if len(runs) > 1
    ]


def _data(cell: Cell) -> dict[str, Any]:
    scorers: Mapping[str, Any] = {
        title: {"mean": scorer.mean, "interval": scorer.interval, "n_score": scorer.n_score}
        for title, scorer in cell.card.by_title.items()
    }
    return {
        "cell": cell.stored.name,
        "factors": to_jsonable(cell.stored.factors),
        "run": cell.card.id,
        "state": cell.card.state,
        "started": cell.card.started,
        "dataset": dataset_of(cell.card),
        "cost": cell.card.cost,
        "scorers": to_jsonable(scorers),
    }


def _csv(cells: Iterable[Cell], factors: Sequence[str]) -> Iterable[str]:
    own = ("run", "state", "dataset", "cost", "scorer", "mean", "low", "high", "scale", "n_score")
    named = (f"factor {factor}" if factor in ("cell", *own) else factor for factor in factors)
    header = ("cell", *named, *own)
    rows = (
        (
            cell.stored.name, *map(cell.value, factors), cell.card.id, cell.card.state, dataset_of(cell.card),
            cell.card.cost, title, scorer.mean, *(scorer.interval or (None, None)), scorer.scale, scorer.n_score,
        )
        for cell in cells
        for title, scorer in cell.card.by_title.items()
    )  # fmt: skip
    return csv_rows(header, rows)
