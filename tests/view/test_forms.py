"""Forms: who may send them, what is refused, and pages without any where nothing can be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstone import evaluate, write_run
from evalstone.ledger.sqlite import SQLite
from evalstone.view.app import application
from evalstone.view.forms import MOST_BYTES
from evalstone.view.security import Receive, Scope, Send
from evalstone.view.shelf import Shelf
from tests.runs import Given, run_of, samples_of
from tests.view.conftest import Client, client_of


@pytest.fixture
def run(url: str) -> str:
    return evaluate(samples_of(["0.5"]), [Given()], ledger=url).id


@pytest.fixture
def client(url: str, run: str) -> Client:
    return client_of(url)


def test_a_pin_is_written_shown_and_taken_away(url: str, run: str, client: Client) -> None:
    reply = client.post("/pins", {"run": run, "pinned": "1", "back": "/?q=x"})
    assert (reply.status, reply.headers["location"]) == (303, "/?q=x")
    [(dataset, pinned)] = Shelf(url).pins().items()
    assert (dataset, pinned) == (Shelf(url).cards()[0].metadata.dataset.name, run)  # type: ignore[union-attr]
    assert client.post("/pins", {"run": run}).headers["location"] == "/"
    assert Shelf(url).pins() == {}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec_fetch_site": "same-origin", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 303),
        ({"origin": ""}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:8888"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 403),
        ({"host": "evil.example"}, 421),
        ({"content_type": "text/plain"}, 403),
        ({"content_type": "multipart/form-data; boundary=x"}, 403),
        ({"content_type": "application/x-www-form-urlencoded; charset=utf-8"}, 303),
    ],
)
def test_a_form_of_another_site_changes_nothing(
    url: str, run: str, client: Client, headers: dict[str, str], status: int
) -> None:
    assert client.post("/pins", {"run": run, "pinned": "1"}, **headers).status == status
    assert bool(Shelf(url).pins()) is (status == 303)


@pytest.mark.parametrize("token", ["", "guessed", "\ud800"])
def test_a_form_without_the_token_of_these_pages_changes_nothing(
    url: str, run: str, client: Client, token: str
) -> None:
    reply = client.post("/pins", {"run": run, "pinned": "1"}, token=token)
    assert reply.status in (400, 403)
    assert Shelf(url).pins() == {}
    other = client_of(url)
    reply = client.post("/pins", {"run": run, "pinned": "1"}, token=other.token)
    assert (reply.status, "started again" in reply.words) == (403, True)


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 400),
        ({"run": "nothing"}, 404),
        ({"run": "x" * 20_001}, 400),
        ({"run": "x" * MOST_BYTES}, 413),
        ({f"field{number}": "x" for number in range(200)}, 400),
    ],
)
def test_a_form_that_makes_no_sense_is_an_error_in_words(client: Client, fields: dict[str, str], status: int) -> None:
    reply = client.post("/pins", fields)
    assert reply.status == status
    assert ("Not found" if status == 404 else "Error") in reply.words
    assert "Traceback" not in reply.text


def test_a_form_that_is_cut_off_is_no_bug(url: str, run: str, client: Client) -> None:
    async def cut_off(scope: Scope, _: Receive, send: Send) -> None:
        async def gone() -> dict[str, str]:
            return {"type": "http.disconnect"}

        await client.app(scope, gone, send)

    reply = Client(cut_off).post("/pins", {"run": run, "pinned": "1"}, token=client.token)
    assert (reply.status, "not sent to its end" in reply.words) == (400, True)
    assert Shelf(url).pins() == {}


@pytest.mark.parametrize(
    "back", ["//evil.example", "/\\evil.example", "http://evil.example", "/a\r\nx: y", "/\u00e9", "javascript:alert(1)"]
)
def test_a_form_leads_nowhere_else(run: str, client: Client, back: str) -> None:
    assert client.post("/pins", {"run": run, "back": back}).headers["location"] == "/"


def test_where_nothing_can_be_written_a_form_is_refused_in_words(
    url: str, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(run_of(["1"]), tmp_path / "results")
    shelves = {"--read-only": Shelf(url, read_only=True), "--ledger": Shelf(None, [str(tmp_path / "results")])}
    for words, shelf in shelves.items():
        client = Client(application(shelf))
        reply = client.post("/pins", {"run": run, "pinned": "1"})
        assert (reply.status, words in reply.words) == (403, True)

    def refused(_: SQLite) -> bool:
        return False

    monkeypatch.setattr(SQLite, "may_write", refused)
    reply = client_of(url).post("/pins", {"run": run, "pinned": "1"})
    assert (reply.status, f"{url} can only be read" in reply.words) == (403, True)
    assert Shelf(url).pins() == {}


def test_a_ledger_says_whether_it_may_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: Path | None = None

    def access(path: Path, _: int) -> bool:
        return path != refused

    monkeypatch.setattr("os.access", access)
    for refused in (tmp_path / "ledger.db", tmp_path, None):
        assert SQLite(tmp_path / "ledger.db", read_only=True).may_write() is (refused is None)


def test_pages_that_only_show_and_addresses_of_forms_are_told_apart(client: Client) -> None:
    reply = client.post("/", {})
    assert (reply.status, set(reply.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
    assert client.get("/pins").status == 405
