"""Labeling by keyboard in a real browser, and hostile texts and notes that run no script."""

# Playwright leaves the patterns of its assertions without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from evalstone import evaluate
from evalstone.ledger.labels import labels
from evalstone.ledger.store import Ledger
from evalstone.view.app import application
from evalstone.view.shelf import Shelf
from tests.browsing import NEEDS_BROWSER, chromium
from tests.report.hostile import HOSTILE
from tests.runs import Given, samples_of

uvicorn = pytest.importorskip("uvicorn", reason="needs the extra view")
pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def tab(browser: Browser, url: str) -> Iterator[Page]:
    """A page; what goes wrong in it fails the test."""
    evaluate(samples_of(["0.5"]), [Given()], ledger=url, name="first")
    config = uvicorn.Config(application(Shelf(url)), port=0, log_level="error", lifespan="off", ws="none")
    server: Any = uvicorn.Server(config)
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    made, problems = browser.new_page(base_url=f"http://localhost:{port}"), list[str]()
    made.on("pageerror", lambda error: problems.append(str(error)))
    made.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    made.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
    yield made
    made.close()
    server.should_exit = True
    assert problems == []


def test_samples_are_labeled_by_keyboard(tab: Page, url: str) -> None:
    run = evaluate(samples_of(["0.1", "0.5", "0.9", "1", "0.3"]), [Given()], ledger=url).id
    tab.goto(f"/label?run={run}&annotator=ada")
    said = tab.locator(".say .progress")
    for key, progress in (("1", "1 labeled of 5"), ("0", "2 labeled of 5"), ("s", "2 labeled, 1 skipped of 5")):
        tab.keyboard.press(key)
        expect(said).to_contain_text(progress)
    tab.keyboard.press("u")
    expect(said).to_contain_text("2 labeled of 5")
    tab.keyboard.press("m")
    tab.keyboard.type("10 is not a score: su")
    tab.keyboard.press("Escape")
    tab.keyboard.press("0")
    expect(said).to_contain_text("3 labeled of 5")
    tab.get_by_label("Another value").fill("0.75")
    tab.keyboard.press("Enter")
    expect(said).to_contain_text("4 labeled of 5")
    with Ledger(url, read_only=True) as ledger:
        kept = labels(ledger, run)
    assert [(label.value, label.note) for label in kept] == [
        (1.0, ""), (0.0, ""), (0.0, "10 is not a score: su"), (0.75, ""),
    ]  # fmt: skip
    assert {label.chosen for label in kept} == {"stratified"}


def test_hostile_texts_and_notes_run_no_script(tab: Page, url: str) -> None:
    text = "\n".join(HOSTILE)
    run = evaluate([{"id": HOSTILE[0], "input": text, "output": "0.5"}], [Given()], ledger=url, name=HOSTILE[1]).id
    tab.goto(f"/label?run={run}&annotator=ada")
    tab.get_by_label("Note").fill(text)
    tab.keyboard.press("Escape")
    tab.keyboard.press("1")
    expect(tab.locator(".latest li")).to_have_count(1)
    tab.locator(".latest a").click()
    expect(tab.get_by_label("Note")).to_have_value(re.compile("alert"))
