"""An experiment is started, watched, stopped and resumed in a real browser, with and without JavaScript."""

# Playwright leaves the patterns of its assertions without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from evalstone.cli.experiment import experiment_in
from evalstone.view.app import application
from evalstone.view.experiment_files import ExperimentFiles
from evalstone.view.experiments import Experiments
from evalstone.view.shelf import Shelf
from tests.browsing import NEEDS_BROWSER, chromium
from tests.view.test_experiments import folder as folder
from tests.view.test_in_a_browser import barriers

uvicorn = pytest.importorskip("uvicorn", reason="needs the extra view")
pytestmark = NEEDS_BROWSER
PATIENCE = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def address(folder: Path, url: str) -> Iterator[str]:
    shelf = Shelf(url)
    app = application(shelf, experiments=Experiments(shelf, ExperimentFiles(folder, [], experiment_in)))
    server: Any = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off", ws="none"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True


@pytest.mark.parametrize(("scripts", "width"), [(True, 1280), (False, 400)])
def test_an_experiment_is_started_stopped_and_resumed(
    browser: Browser, address: str, folder: Path, scripts: bool, width: int
) -> None:
    tab = browser.new_page(java_script_enabled=scripts, viewport={"width": width, "height": 800})
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    tab.goto(f"{address}/experiments")
    assert not scripts or barriers(tab) == []
    tab.get_by_role("link", name="exp", exact=True).click()
    expect(tab.get_by_role("cell", name="not yet run")).to_have_count(2)
    tab.get_by_role("button", name="Start", exact=True).dblclick()
    status = tab.get_by_role("status").first
    expect(status).to_contain_text("0 of 6 results", timeout=PATIENCE)  # the page loads itself again
    expect(tab.get_by_role("link", name="running: the run of style=a")).to_be_visible(timeout=PATIENCE)
    assert not scripts or barriers(tab) == []
    tab.get_by_role("button", name="Stop", exact=True).click()
    expect(tab.get_by_role("button", name="Stop now")).to_be_visible(timeout=PATIENCE)
    (folder / "go").touch()
    expect(status).to_contain_text("Stopped: 1 of 2 cells complete.", timeout=PATIENCE)
    tab.get_by_role("button", name="Resume").click()
    expect(status).to_contain_text("Complete.", timeout=PATIENCE)
    assert len((folder / "calls").read_text().splitlines()) == 6
    expect(tab.get_by_role("link", name="1.000: the run of style=b")).to_be_visible()
    wide = tab.locator("html").bounding_box()
    assert wide is not None
    assert wide["width"] <= width
    if scripts:
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert barriers(tab) == []
    for box in tab.get_by_role("checkbox").all():
        box.check()
    tab.get_by_role("button", name="Compare ticked cells").click()
    tab.wait_for_url("**/compare?runs=*")
    tab.close()
    assert problems == []
