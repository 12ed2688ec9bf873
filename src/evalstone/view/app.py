"""The pages as an application: routes, and errors as pages."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.json import to_jsonable
from evalstone._core.redaction import redacted
from evalstone.errors import ConfigError, EvalstoneError, MissingDependency
from evalstone.report.csv import csv_rows
from evalstone.report.html import asset, environment
from evalstone.view import contexts
from evalstone.view.addresses import CSV, JSON, name_in, run_address, with_query
from evalstone.view.index import Index
from evalstone.view.indexes import Building, Indexes
from evalstone.view.query import SampleQuery
from evalstone.view.security import App, Guard, Receive, Scope, Send
from evalstone.view.shelf import Card, Shelf

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

ASSETS = {"page.css": "text/css", "view.css": "text/css", "view.js": "text/javascript", "icon.svg": "image/svg+xml"}
SHARED_SCRIPTS = ("sentences.js", "claims.js")
"""Scripts of reports that are a part of the script of the pages."""
WATCH = "10"
"""Seconds until a page with a run in progress is loaded again."""


class NotThere(EvalstoneError):
    """There is no such page."""


class BadAddress(EvalstoneError):
    """The address makes no sense."""


def application(shelf: Shelf, hosts: Collection[str] = (), *, any_address: bool = False, token: str = "") -> App:
    """The pages over a shelf, as an ASGI application; `hosts`, `any_address` and `token` as for `Guard`.

    Raises:
        MissingDependency: Starlette isn't installed.
    """
    try:
        from starlette.applications import Starlette  # noqa: PLC0415 - an extra
        from starlette.exceptions import HTTPException  # noqa: PLC0415
        from starlette.routing import Route  # noqa: PLC0415
    except ImportError:
        raise MissingDependency("starlette", "view") from None
    pages = _Pages(shelf)
    app = Starlette(
        routes=[
            Route("/", pages.runs),
            Route("/runs{suffix}", pages.runs),
            Route("/runs/{run}", pages.run),
            Route("/runs/{run}/samples/{key}", pages.sample),
            Route("/assets/{version}/{name}", pages.asset),
            Route("/favicon.ico", pages.icon),
        ],
        exception_handlers={
            HTTPException: lambda request, _: pages.error(request, 404, "There is no such page."),
            NotThere: lambda request, error: pages.error(request, 404, _words(error)),
            BadAddress: lambda request, error: pages.error(request, 400, _words(error)),
            EvalstoneError: lambda request, error: pages.error(request, 503, _words(error)),
            Exception: lambda request, _: pages.error(
                request, 500, "This page can't be shown: evalstone has a bug. The terminal that serves it shows where."
            ),
        },
    )

    async def encoded(scope: Scope, receive: Receive, send: Send) -> None:
        # Routes see the path as it was sent, because an ID may have a slash.
        if scope["type"] == "http":
            scope = {**scope, "path": scope["raw_path"].partition(b"?")[0].decode("latin-1")}
        await app(scope, receive, send)

    return Guard(encoded, hosts, any_address=any_address, token=token)


def _words(error: Exception) -> str:
    return error.text(COMMAND_LINE) if isinstance(error, EvalstoneError) else str(error)


class _Pages:
    """The handlers of the routes."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf, self.indexes = shelf, Indexes(shelf)

    # ---- Runs ----

    def runs(self, request: Request) -> Response:
        """The runs by dataset."""
        suffix = request.path_params.get("suffix", "")
        if suffix not in ("", JSON, CSV):
            raise NotThere("There is no such page.")
        parameters = dict(request.query_params)
        words = parameters.get("q", "").split()
        cards = [card for card in self.shelf.cards() if contexts.matches(card, words)]
        if suffix == JSON:
            return self._json([_card_data(card) for card in cards])
        if suffix == CSV:
            return self._csv(_runs_csv(cards), "runs")
        before = parameters.get("before", "")
        first = next((at for at, card in enumerate(cards, start=1) if card.id == before), 0) if before else 0
        shown = cards[first : first + contexts.RUNS_PER_PAGE]
        pairs = [("q", " ".join(words))] if words else []
        older = ""
        if len(cards) > first + len(shown):
            older = with_query("/", [*pairs, ("before", shown[-1].id)])
        running = any(card.state == "running" for card in shown)
        return self._page(
            "runs.html",
            headers={"refresh": WATCH} if running and not before else {},
            title="Runs",
            places=self.shelf.places,
            groups=contexts.run_groups(shown, pairs, parameters.get("sort", "")),
            q=" ".join(words),
            total=len(cards),
            older=older,
            newer=with_query("/", pairs) if before else "",
            csv_href=with_query("/runs.csv", pairs),
            json_href=with_query("/runs.json", pairs),
        )

    # ---- A run ----

    def run(self, request: Request) -> Response:
        """A run: its report, and its samples."""
        name, suffix = _suffixed(request.path_params["run"])
        card, query = self._card(_name(name)), _query(request)
        opened = self.indexes.open(card)
        if isinstance(opened, Building):
            return self._building(card, opened)
        with opened as index:
            try:
                if suffix == CSV:
                    index.page(query, 1)  # an address that makes no sense is an error before anything is sent
                    return self._csv(self._samples_csv(card, query), card.id)
                if suffix == JSON:
                    page = index.page(query)
                    data = {
                        "run": index.head["run"],
                        "matching": index.count(query),
                        "samples": [contexts.case_data(case, index) for case in page.cases],
                        "next": with_query(f"{run_address(card.id)}.json", query.pairs(before="", after=page.following))
                        if page.following
                        else None,
                    }
                    return self._json(data)
                table = contexts.sample_table(card.id, index, query)
            except ConfigError as error:
                raise BadAddress(error) from None
            return self._page(
                "run.html",
                headers={"refresh": WATCH} if card.state == "running" and not query.pairs() else {},
                title=contexts.name_of(card),
                card=card,
                name=contexts.name_of(card),
                state=contexts.STATES[card.state],
                view=index.head["view"],
                table=table,
                query=query,
                titles=index.titles,
                action=run_address(card.id),
            )

    def _samples_csv(self, card: Card, query: SampleQuery) -> Iterable[str]:
        opened = self.indexes.open(card)
        if isinstance(opened, Index):
            with opened as index:
                rows = (contexts.csv_row(case, index) for case in index.every(query))
                yield from csv_rows(contexts.csv_header(index), rows)

    # ---- A sample ----

    def sample(self, request: Request) -> Response:
        """A sample, with its outcomes and what is behind them."""
        part, suffix = _suffixed(request.path_params["key"])
        card, key, query = self._card(_name(request.path_params["run"])), _name(part), _query(request)
        if suffix == CSV:
            raise NotThere("There is no CSV of one sample; the list of samples has one.")
        opened = self.indexes.open(card)
        if isinstance(opened, Building):
            return self._building(card, opened)
        with opened as index:
            case = index.case(key)
            if case is None:
                raise NotThere(f"Run {contexts.name_of(card)} has no results of sample {key}.")
            stored = index.stored(case.place)
            if suffix == JSON:
                return self._json({"run": card.id, "key": key, **stored.data})
            try:
                context = contexts.sample_context(card.id, index, case, stored, query)
            except ConfigError as error:
                raise BadAddress(error) from None
            return self._page(
                "sample.html",
                title=key,
                card=card,
                name=contexts.name_of(card),
                dataset=contexts.dataset_of(card),
                run_href=run_address(card.id),
                **context,
            )

    # ---- Parts of pages ----

    def asset(self, request: Request) -> Response:
        """A style sheet or script. Its address has a hash of it, so that browsers may keep it."""
        from starlette.responses import Response  # noqa: PLC0415 - an extra

        name = request.path_params["name"]
        if name not in ASSETS:
            raise NotThere("There is no such file.")
        headers = {"cache-control": "private, max-age=31536000, immutable"}
        return Response(_asset(name), media_type=ASSETS[name], headers=headers)

    def icon(self, request: Request) -> Response:
        """What browsers ask for without being told to."""
        from starlette.responses import Response  # noqa: PLC0415 - an extra

        return Response(_asset("icon.svg"), media_type=ASSETS["icon.svg"])

    def error(self, request: Request, status: int, text: str) -> Response:
        """An error in words."""
        return self._page("message.html", status=status, title="Error", text=text, progress=None)

    def _building(self, card: Card, building: Building) -> Response:
        name = contexts.name_of(card)
        text = f"{building.phase.capitalize()} of {name}: this is done once."
        return self._page(
            "message.html",
            status=202,
            headers={"refresh": "1"},
            title=name,
            text=text,
            progress=building.percent or 0,
        )

    def _card(self, run: str) -> Card:
        card = self.shelf.card(run)
        if card is None:
            raise NotThere(f"There is no run {run} in {', '.join(self.shelf.places) or 'the ledger'}.")
        if card.problem:
            raise EvalstoneError(card.problem)
        return card

    def _page(
        self, template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **context: Any
    ) -> Response:
        from starlette.responses import HTMLResponse  # noqa: PLC0415 - an extra

        text = environment("evalstone.view").get_template(template).render(asset=asset_address, **context)
        return HTMLResponse(redacted(text).encode("utf-8", "replace"), status_code=status, headers=headers)

    def _json(self, data: Any) -> Response:
        from starlette.responses import Response  # noqa: PLC0415 - an extra

        return Response(redacted(json.dumps(data, indent=1)), media_type="application/json")

    def _csv(self, lines: Iterable[str], name: str) -> Response:
        from starlette.responses import StreamingResponse  # noqa: PLC0415 - an extra

        plain = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in name)
        headers = {"content-disposition": f'attachment; filename="{plain}.csv"'}
        body = (redacted(line).encode("utf-8", "replace") for line in lines)
        return StreamingResponse(body, media_type="text/csv; charset=utf-8", headers=headers)


def _suffixed(part: str) -> tuple[str, str]:
    """A part of a path without the suffix of its data, and the suffix."""
    for suffix in (JSON, CSV):
        if part.endswith(suffix) and part != suffix:
            return part.removesuffix(suffix), suffix
    return part, ""


def _name(part: str) -> str:
    try:
        return name_in(part)
    except UnicodeDecodeError:
        raise BadAddress("The address is not valid UTF-8.") from None


def _query(request: Request) -> SampleQuery:
    try:
        return SampleQuery.of(request.query_params.multi_items())
    except ConfigError as error:
        raise BadAddress(error) from None


def _card_data(card: Card) -> dict[str, Any]:
    about = {
        "id": card.id,
        "state": card.state,
        "started": card.started,
        "cost": card.cost,
        "folder": card.folder or None,
    }
    if card.metadata is None:
        return {**about, "problem": card.problem}
    kept = ("name", "tags", "dataset", "judge", "target", "scorers", "seconds", "stop_reason")
    return {**about, **{name: to_jsonable(getattr(card.metadata, name)) for name in kept}}


def _runs_csv(cards: Iterable[Card]) -> Iterable[str]:
    header = (
        "run", "name", "started", "state", "dataset", "samples", "target", "judge", "tags", "scorer", "mean", "low",
        "high", "scale", "n_score", "n_skipped", "n_failed", "cost", "folder",
    )  # fmt: skip
    rows = (
        (
            card.id, run.name, card.started, card.state, run.dataset.name, run.dataset.samples,
            None if run.target is None else run.target.identity, run.judge.identity, ", ".join(run.tags),
            card.titles[each.signature], each.mean, *(each.interval or (None, None)), each.scale, each.n_score,
            each.n_skipped, each.n_failed, card.cost, card.folder or None,
        )
        for card in cards
        if (run := card.metadata) is not None
        for each in run.scorers
    )  # fmt: skip
    return csv_rows(header, rows)


@functools.cache
def _asset(name: str) -> str:
    own = resources.files("evalstone.view").joinpath("assets", name)
    text = own.read_text(encoding="utf-8") if own.is_file() else asset(name)
    return "\n".join([*map(asset, SHARED_SCRIPTS), text]) if name == "view.js" else text


@functools.cache
def asset_address(name: str) -> str:
    """The address of a style sheet or script, with a hash of it."""
    return f"/assets/{hashlib.sha256(_asset(name).encode()).hexdigest()[:16]}/{name}"
