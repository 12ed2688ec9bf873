"""The pages as an application: routes, and errors as pages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from evalstone._core.display import sentence
from evalstone.errors import EvalstoneError, MissingDependency
from evalstone.ledger.labels import ModeGone
from evalstone.scorers.base import Scorer
from evalstone.view.drafts import Meanwhile
from evalstone.view.experiments import CannotStart, Experiments
from evalstone.view.forms import Refused, TooLarge, Write, sent
from evalstone.view.library import Library
from evalstone.view.pages.collect import collect, collect_page
from evalstone.view.pages.compare import compare_page
from evalstone.view.pages.compared_sample import compared_sample_page
from evalstone.view.pages.datasets import dataset_file, dataset_page, datasets_page
from evalstone.view.pages.edit import (
    discard_changes,
    edit_page,
    edit_sample_page,
    new_sample_page,
    read_file,
    remove_sample,
    save_dataset,
    saving_page,
    undo_change,
    write_sample,
)
from evalstone.view.pages.experiment import experiment_page
from evalstone.view.pages.experiments import experiments_page, start_experiment, stop_experiment
from evalstone.view.pages.judge import judge_page
from evalstone.view.pages.judges import judges_page
from evalstone.view.pages.label import label_page, undo_label, write_label
from evalstone.view.pages.live import live_page, stream_page
from evalstone.view.pages.live_list import live_dataset, live_score_page
from evalstone.view.pages.modes import assign_mode, change_mode, create_mode, merge_mode, mode_file, modes_page
from evalstone.view.pages.pins import pin_run
from evalstone.view.pages.run import run_page
from evalstone.view.pages.runs import runs_page
from evalstone.view.pages.sample import sample_page
from evalstone.view.pages.scorers import scorer_page, scorers_page
from evalstone.view.responses import BadAddress, NotThere, asset_file, error_page, icon
from evalstone.view.security import App, Guard, Receive, Scope, Send
from evalstone.view.shelf import ReadOnly, Shelf

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PAGES: tuple[tuple[str, Callable[[Library, Request], Response]], ...] = (
    ("/", runs_page),
    ("/runs{suffix}", runs_page),
    ("/runs/{run}", run_page),
    ("/runs/{run}/samples/{key}", sample_page),
    ("/compare", compare_page),
    ("/compare{suffix}", compare_page),
    ("/compare/samples/{key}", compared_sample_page),
    ("/judges{suffix}", judges_page),
    ("/judges", judges_page),
    ("/judges/{judge}", judge_page),
    ("/label{suffix}", label_page),
    ("/label", label_page),
    ("/live{suffix}", live_page),
    ("/live", live_page),
    ("/live/{stream}", stream_page),
    ("/live/{stream}/scores/{id}", live_score_page),
    ("/live/{stream}/dataset.jsonl", live_dataset),
    ("/modes{suffix}", modes_page),
    ("/modes", modes_page),
    ("/modes/{mode}/{file}", mode_file),
    ("/scorers", scorers_page),
    ("/scorers{suffix}", scorers_page),
    ("/scorers/{name}", scorer_page),
    ("/experiments", experiments_page),
    ("/experiments{suffix}", experiments_page),
    ("/experiments/{name}", experiment_page),
    ("/datasets", datasets_page),
    ("/datasets{suffix}", datasets_page),
    ("/datasets/{name}", dataset_page),
    ("/datasets/{name}/edit", edit_page),
    ("/datasets/{name}/edit/new", new_sample_page),
    ("/datasets/{name}/edit/saving", saving_page),
    ("/datasets/{name}/edit/samples/{id}", edit_sample_page),
    ("/datasets/{name}/{file}", dataset_file),
    ("/collect", collect_page),
)
"""The routes of the pages. IDs are one part of a path; a suffix asks for the data of a page."""
WRITES: tuple[tuple[str, Write], ...] = (
    ("/pins", pin_run),
    ("/label", write_label),
    ("/label/undo", undo_label),
    ("/modes/create", create_mode),
    ("/modes/assign", assign_mode),
    ("/modes/change", change_mode),
    ("/modes/merge", merge_mode),
    ("/drafts/remove", remove_sample),
    ("/drafts/undo", undo_change),
    ("/drafts/save", save_dataset),
    ("/drafts/discard", discard_changes),
    ("/drafts/read", read_file),
    ("/experiments/start", start_experiment),
    ("/experiments/stop", stop_experiment),
)
"""The routes of the forms that change something."""
WRITES_OF_SAMPLES: tuple[tuple[str, Write], ...] = (("/drafts/write", write_sample), ("/drafts/collect", collect))
"""Those whose forms have the texts of samples."""
MOST_IN_SAMPLES = 1 << 23
"""The most bytes of a form with the texts of samples."""
BUG = "This page can't be shown: evalstone has a bug. The terminal that serves it shows where."


def application(
    shelf: Shelf,
    hosts: Collection[str] = (),
    *,
    any_address: bool = False,
    token: str = "",
    own: Sequence[Scorer] = (),
    experiments: Experiments | None = None,
) -> App:
    """The pages over a shelf, as an ASGI application; `hosts`, `any_address` and `token` as for `Guard`. own: scorers
    with code of the user's, which is run to show their prompts.

    experiments: those that can be started; by default, only their runs are shown.

    Raises:
        MissingDependency: Starlette isn't installed.
    """
    try:
        from starlette.applications import Starlette  # noqa: PLC0415 - an extra
        from starlette.exceptions import HTTPException  # noqa: PLC0415
        from starlette.requests import ClientDisconnect  # noqa: PLC0415
        from starlette.routing import Route  # noqa: PLC0415
    except ImportError:
        raise MissingDependency("starlette", "view") from None

    def _no_page(_: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == 405:
            return error_page(405, "This address is for something else.", error.headers)
        return error_page(404, "There is no such page.")

    library = Library(shelf, own, experiments)
    app = Starlette(
        routes=[
            *(Route(path, partial(show, library)) for path, show in PAGES),
            *(Route(path, partial(sent, library, write), methods=["POST"]) for path, write in WRITES),
            *(
                Route(path, partial(sent, library, write, most_bytes=MOST_IN_SAMPLES), methods=["POST"])
                for path, write in WRITES_OF_SAMPLES
            ),
            Route("/assets/{version}/{name}", asset_file),
            Route("/favicon.ico", icon),
        ],
        exception_handlers={
            HTTPException: _no_page,
            ClientDisconnect: lambda _, error: error_page(400, "The form was not sent to its end."),
            NotThere: lambda _, error: error_page(404, error),
            Refused: lambda _, error: error_page(403, error),
            ReadOnly: lambda _, error: error_page(403, error),
            TooLarge: lambda _, error: error_page(413, error),
            BadAddress: lambda _, error: error_page(400, error),
            Meanwhile: lambda _, error: error_page(409, error),
            CannotStart: lambda _, error: error_page(409, error),
            ModeGone: lambda _, error: error_page(409, sentence(str(error))),
            EvalstoneError: lambda _, error: error_page(503, error),
            Exception: lambda _, error: error_page(500, BUG),
        },
    )

    async def encoded(scope: Scope, receive: Receive, send: Send) -> None:
        # Routes see the path as it was sent, because an ID may have a slash.
        if scope["type"] == "http":
            scope = {**scope, "path": scope["raw_path"].partition(b"?")[0].decode("latin-1")}
        await app(scope, receive, send)

    return Guard(encoded, hosts, any_address=any_address, token=token)
