"""All experiments, and the forms that start and stop one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count, money
from evalstone.report.csv import csv_rows
from evalstone.results.endings import ExitCode
from evalstone.view.addresses import JSON, experiment_address
from evalstone.view.experiments import Experiment
from evalstone.view.forms import Form
from evalstone.view.library import Library
from evalstone.view.names import when
from evalstone.view.pages.experiment import WATCH
from evalstone.view.responses import csv_file, json_data, page, suffix_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

COLUMNS = ("experiment", "file", "state", "cells", "complete", "started", "cost", "problem")


def experiments_page(library: Library, request: Request) -> Response:
    """The experiments: those with a file, and those that have only runs."""
    suffix, every = suffix_of(request), library.experiments.all()
    rows = [_about(each) for each in every]
    if suffix == JSON:
        return json_data(rows)
    if suffix:
        return csv_file(_csv(rows), "experiments")
    return page(
        "experiments.html",
        headers={"refresh": WATCH} if any(each.is_running for each in every) else {},
        title="Experiments",
        live=library.has_live_scores(),
        detail=count(len(every), "experiment"),
        folder=library.experiments.files is not None,
        note=library.experiments.files.note if library.experiments.files is not None else "",
        rows=[
            (
                _address(each, every),
                about,
                when(about["started"] or ""),
                "" if not about["cost"] and about["cost"] is not None else money(about["cost"]),
            )
            for each, about in zip(every, rows, strict=True)
        ],
    )


def _address(one: Experiment, every: Sequence[Experiment]) -> str:
    several = one.file is not None and sum(each.name == one.name for each in every) > 1
    return experiment_address(one.name, pairs=[("file", one.file.path)] if one.file is not None and several else ())


def _about(each: Experiment) -> dict[str, Any]:
    started = [cell.card.started for cell in each.cells if cell.card is not None]
    return {
        "experiment": each.name,
        "file": None if each.file is None else each.file.path,
        "state": _state(each),
        "cells": len(each.planned),
        "complete": each.n_done,
        "started": max(started, default=None),
        "cost": each.cost if started else 0.0,
        "problem": None if each.file is None else each.file.problem or None,
    }


def _state(each: Experiment) -> str:
    if each.launch is not None and each.launch.is_alive:
        return each.launch.state
    if each.is_running:
        return "running"
    if each.file is not None and each.file.says is None:
        return "can't be read"
    if each.is_complete:
        return "complete"
    if each.is_resumable:
        return "interrupted"
    if each.launch is None:
        return "not yet run"
    if each.launch.state == "killed":
        return "killed"
    return "stopped" if each.launch.code == ExitCode.INTERRUPTED else "failed"


def _csv(rows: Iterable[dict[str, Any]]) -> Iterable[str]:
    return csv_rows(COLUMNS, ([row[name] for name in COLUMNS] for row in rows))


def start_experiment(library: Library, form: Form) -> str:
    """Start the experiment of a file in the list."""
    path = form.needed("file")
    return experiment_address(library.experiments.start(path, form.text("seen")), pairs=[("file", path)])


def stop_experiment(library: Library, form: Form) -> str:
    """Ask a process to end."""
    library.experiments.stop(form.needed("process"), form.needed("started"), again=bool(form.text("again")))
    return form.back("/experiments")
