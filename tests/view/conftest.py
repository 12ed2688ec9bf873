"""Requests to the pages, without a server."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from evalstone.ledger.store import Ledger
from evalstone.view.app import application
from evalstone.view.indexing import comparisons, jobs
from evalstone.view.security import App
from evalstone.view.shelf import Shelf

pytest.importorskip("starlette", reason="needs the extra view")


@pytest.fixture(scope="session", autouse=True)
def patient() -> Iterator[None]:
    """A request waits for what it needs, and runs that can wait are compared too, however busy the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "PATIENCE", 60.0)
        patch.setattr(comparisons, "SPARE", 60.0)
        yield


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A ledger that isn't there yet."""
    return str(tmp_path / "ledger.db")


@dataclass(frozen=True)
class Reply:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body as data."""
        return json.loads(self.body)

    @property
    def words(self) -> str:
        """A page without its elements."""
        return " ".join(re.sub("<[^>]*>", " ", self.text).split())

    def links(self, pattern: str) -> list[str]:
        """The addresses of a page's links that match."""
        found = re.findall('href="([^"]*)"', self.text)
        return [address.replace("&amp;", "&") for address in found if re.search(pattern, address)]


@dataclass(frozen=True)
class Client:
    """Asks an application."""

    app: App
    server: tuple[str, int] = ("127.0.0.1", 7700)

    def get(self, address: str, *, method: str = "GET", host: str = "localhost:7700", **headers: str) -> Reply:
        """Ask for an address; underscores in names of headers are hyphens."""
        return asyncio.run(self._ask(address, method, host, headers))

    def post(self, address: str, fields: Mapping[str, str], *, token: str | None = None, **headers: str) -> Reply:
        """Send a form as a page of these does. token: by default, that of the pages."""
        held = token if token is not None else self.token
        host = headers.pop("host", "localhost:7700")
        kind = {"content_type": "application/x-www-form-urlencoded", "origin": f"http://{host}", **headers}
        body = urlencode({"token": held, **fields}, errors="surrogatepass").encode()
        return asyncio.run(self._ask(address, "POST", host, {k: v for k, v in kind.items() if v}, body))

    @property
    def token(self) -> str:
        """The token of the forms of these pages, as they have it."""
        runs = self.get("/").links("^/runs/[^.?]*$")
        found = re.search('name="token" value="([^"]*)"', self.get(runs[0]).text if runs else "")
        return found[1] if found else "none"

    async def _ask(self, address: str, method: str, host: str, headers: Mapping[str, str], body: bytes = b"") -> Reply:
        path, _, query = address.partition("#")[0].partition("?")
        rows = [("host", host), *((name.replace("_", "-"), value) for name, value in headers.items())]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in rows],
            "server": self.server,
            "client": ("127.0.0.1", 1),
            "root_path": "",
        }
        sent: list[Any] = []
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                await asyncio.Event().wait()
            asked = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start, page = sent[0], b"".join(message.get("body", b"") for message in sent[1:])
        assert b" object at 0x" not in page, "a page shows an object instead of a text"
        return Reply(start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, page)


def client_of(ledger: str | None, *folders: object, read_only: bool = False) -> Client:
    """Asks the pages over a ledger and results folders."""
    return Client(application(Shelf(ledger, [*map(str, folders)], read_only=read_only)))


def unfinished(url: str, run: str, *, running: bool) -> None:
    """Make a run look as if it was killed, or is in progress."""
    with Ledger(url) as ledger, ledger.transaction(writing=True) as database:
        database.execute("UPDATE runs SET finished = NULL WHERE id = :run", {"run": run})
        database.execute("DELETE FROM records WHERE run = :run AND cell > 1", {"run": run})
        if running:
            values = {"run": run, "expires": time.time() + 3600}
            database.execute("INSERT INTO leases VALUES (:run, '', 0, 'elsewhere 1 a', :expires)", values)
