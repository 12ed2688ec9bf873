"""Editing datasets by keyboard in a real browser, without JavaScript, without barriers, and with hostile texts."""

# Playwright leaves the patterns of its assertions without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from evalstone import Sample, evaluate, load
from evalstone.datasets.loading import Dataset
from evalstone.view.addresses import edit_address, edit_sample_address, run_address
from evalstone.view.app import application
from evalstone.view.drafts import EDITS
from evalstone.view.shelf import Shelf
from tests.browsing import NEEDS_BROWSER, chromium
from tests.report.hostile import HOSTILE
from tests.runs import Given
from tests.view.test_in_a_browser import barriers

uvicorn = pytest.importorskip("uvicorn", reason="needs the extra view")
pytestmark = NEEDS_BROWSER
NAME = "answers.jsonl"
ODD = Sample(
    id=f"a/b?{HOSTILE[4]}\ud800",
    input="\n\n".join(HOSTILE),
    output="0.1",
    reference="x\r\ny",
    context=[*HOSTILE],
    metadata={text: text for text in HOSTILE},
)
SAMPLES = [ODD, *(Sample(id=f"s{n}", input=f"How many? {n}", output=f"0.{n}", reference=f"{n}") for n in range(2, 6))]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "datasets"
    made.mkdir()
    return made


@pytest.fixture
def opened(browser: Browser, url: str, folder: Path) -> Iterator[Callable[..., Page]]:
    """Opens pages; what goes wrong in one fails the test."""
    evaluate(Dataset(SAMPLES, NAME), [Given()], ledger=url, name="first")
    config = uvicorn.Config(
        application(Shelf(url, datasets=str(folder))), port=0, log_level="error", lifespan="off", ws="none"
    )
    server: Any = uvicorn.Server(config)
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    tabs, problems = list[Page](), list[str]()

    def opening(**context: Any) -> Page:
        tab = browser.new_page(base_url=f"http://localhost:{port}", **context)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        tab.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        tabs.append(tab)
        return tab

    yield opening
    for tab in tabs:
        tab.close()
    server.should_exit = True
    assert problems == []


def test_failing_samples_become_a_dataset_by_keyboard(opened: Callable[..., Page], url: str, folder: Path) -> None:
    tab = opened()
    tab.goto(run_address(Shelf(url).cards()[0].id))
    for key in ("j", "x", "j", "x", "d"):
        tab.keyboard.press(key)
    tab.wait_for_url("**/collect?**")
    expect(tab.locator("h1")).to_have_text("Add 2 samples to a dataset")
    field = tab.get_by_label("Expected answer of s2")
    field.fill("two")
    tab.keyboard.press("Escape")
    tab.keyboard.press("s")
    tab.wait_for_url("**/datasets/answers-selected.jsonl/edit#changes")
    expect(tab.locator("#changes .count")).to_have_text("2 added")
    tab.keyboard.press("j")
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    expect(tab.locator("h1")).to_contain_text("s2")
    tab.locator("[name=output]").fill("2")
    tab.keyboard.press("Escape")
    tab.keyboard.press("s")
    tab.wait_for_url("**#changes")
    tab.keyboard.press("a")
    tab.get_by_label("ID").fill("new")
    tab.get_by_label("input").fill("What is new?")
    tab.keyboard.press("Escape")
    tab.keyboard.press("s")
    expect(tab.locator("#changes .count")).to_have_text("3 added")
    tab.keyboard.press("s")
    tab.wait_for_url("**/datasets/answers-selected.jsonl")
    saved = [*load(folder / "answers-selected.jsonl")]
    assert saved == [ODD, replace(SAMPLES[1], reference="two", output="2"), Sample(id="new", input="What is new?")]
    tab.keyboard.press("e")
    tab.wait_for_url("**/edit")


def test_a_hostile_sample_stays_the_same_in_a_browser_and_runs_no_script(
    opened: Callable[..., Page], folder: Path
) -> None:
    tab = opened()
    for fields in ((), ("expected answer",)):
        tab.goto(edit_sample_address(NAME, ODD.id))
        tab.locator("details", has_text="Other fields").evaluate("each => { each.open = true }")
        for label in fields:
            tab.get_by_label(label).fill("x\ny z")
        tab.get_by_role("button", name="Keep this change").click()
        tab.wait_for_url("**#changes")
        assert bool([*folder.glob(f"*{EDITS}")]) is bool(fields)
    assert tab.locator("main img, main script, main style, base, [onerror], [onload], [style]").count() == 0
    tab.get_by_role("button", name="Save as a new version").click()
    tab.wait_for_url("**to=*")
    assert [*load(folder / NAME)] == [replace(ODD, reference="x\r\ny z"), *SAMPLES[1:]]


def test_datasets_are_edited_without_javascript(opened: Callable[..., Page], url: str, folder: Path) -> None:
    tab = opened(java_script_enabled=False)
    tab.goto(run_address(Shelf(url).cards()[0].id))
    tab.get_by_label("Take s3").check()
    tab.get_by_role("button", name="Add ticked samples to a dataset").click()
    tab.get_by_label("or a new one").fill("own name")
    tab.get_by_role("button", name="Choose").click()
    tab.get_by_role("button", name="Add to own name.jsonl").click()
    tab.get_by_role("link", name="s3").click()
    tab.get_by_label("expected answer").fill("three")
    tab.get_by_role("button", name="Keep this change").click()
    tab.get_by_role("button", name="Save as a new version").click()
    expect(tab.locator("h1")).to_have_text("own_name-2d5e91.jsonl")
    assert [*load(folder / "own_name-2d5e91.jsonl")] == [replace(SAMPLES[2], reference="three")]


def test_the_pages_have_no_barriers_and_fit_a_narrow_screen(opened: Callable[..., Page], url: str) -> None:
    tab = opened(bypass_csp=True, viewport={"width": 400, "height": 900})
    run = Shelf(url).cards()[0].id
    tab.goto(edit_sample_address(NAME, "s3"))
    tab.get_by_label("expected answer").fill("three")
    tab.get_by_role("button", name="Keep this change").click()
    tab.wait_for_url("**#changes")
    addresses = [edit_address(NAME), edit_address(NAME, "new"), edit_sample_address(NAME, ODD.id), "/datasets"]
    addresses += [run_address(run), f"/collect?run={run}&all=1", f"/collect?run={run}&all=1&into={NAME}"]
    for address in (*addresses, f"/datasets/{NAME}"):
        tab.goto(address)
        tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        assert barriers(tab) == [], address
        tab.evaluate("document.querySelectorAll('.keys').forEach(each => { each.open = false })")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 400, address
