"""`evalstone view` in a real browser: keys, forms, hostile text, narrow and wide screens, no JavaScript."""

# Playwright leaves the patterns of its assertions without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from evalstone import Failed, Run, Sample, Score, ScriptedJudge, calibrate, evaluate, write_run
from evalstone.ledger.store import Ledger
from evalstone.run.experiment_cells import in_experiment
from evalstone.types import Outcome, Record, StoredCell
from evalstone.view.addresses import (
    compare_address,
    compared_address,
    dataset_address,
    experiment_address,
    run_address,
    sample_address,
    scorer_address,
)
from evalstone.view.app import application
from evalstone.view.shelf import Shelf
from tests.browsing import NEEDS_BROWSER, chromium
from tests.fakes import claims, verdicts
from tests.report.hostile import HOSTILE, hostile_evidence_run, hostile_run, hostile_words_run
from tests.runs import Given, Harm, run_of, samples_of
from tests.view.test_judges import ROWS, many, stored
from tests.view.test_live import FALLING, RISING, submit

uvicorn = pytest.importorskip("uvicorn", reason="needs the extra view")
pytestmark = NEEDS_BROWSER
Opened = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Serves runs from folders on a free port, and returns the address."""
    servers: list[Any] = []

    def serving(*runs: Run, ledger: str | None = None) -> str:
        for number, run in enumerate(runs):
            write_run(run, tmp_path / "results" / str(number))
        app = application(Shelf(ledger, [str(tmp_path / "results")] if runs else []))
        config = uvicorn.Config(app, port=0, log_level="error", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        threading.Thread(target=server.run, daemon=True).start()
        servers.append(server)
        while not server.started:
            time.sleep(0.01)
        return f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"

    yield serving
    for server in servers:
        server.should_exit = True


@pytest.fixture
def opened(browser: Browser, served: Callable[..., str]) -> Iterator[Opened]:
    """Opens a page over runs; every error in it, and every request to anywhere else, fails the test."""
    pages: list[Page] = []
    problems: list[str] = []

    def opening(
        runs: list[Run], path: str = "/", *, width: int = 1280, ledger: str | None = None, **context: Any
    ) -> Page:
        address = served(*runs, ledger=ledger)
        tab = browser.new_page(viewport={"width": width, "height": 900}, **context)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        tab.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
        host = urlsplit(address).netloc
        tab.on("request", lambda one: None if urlsplit(one.url).netloc == host else problems.append(one.url))
        tab.goto(address + path)
        tab.wait_for_selector("nav.top")
        pages.append(tab)
        return tab

    yield opening
    for tab in pages:
        tab.close()
    assert problems == []


def keys_of(tab: Page) -> list[str]:
    return tab.locator(".samples tbody th a").all_text_contents()


def test_a_tour_by_keyboard(opened: Opened) -> None:
    run = run_of(["0.5", "skip", "0.25", "1"])
    tab = opened([run])
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"**{run_address(run.id)}")
    tab.keyboard.press("j")
    tab.keyboard.press("j")
    tab.keyboard.press("k")
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"**{sample_address(run.id, 's3')}")
    tab.keyboard.press("n")
    tab.wait_for_url(f"**{sample_address(run.id, 's1')}")
    tab.keyboard.press("p")
    tab.wait_for_url(f"**{sample_address(run.id, 's3')}")
    tab.keyboard.press("?")
    expect(tab.locator(".keys dl")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.locator(".keys dl")).not_to_be_visible()
    tab.keyboard.press("u")
    tab.wait_for_url(f"**{run_address(run.id)}#samples")
    tab.keyboard.press("/")
    tab.keyboard.type("njk?")
    expect(tab.locator("input[type=search]")).to_have_value("njk?")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**?q=njk*")
    expect(tab.get_by_text("No sample matches.")).to_be_visible()


def test_the_form_filters_and_leaves_out_of_the_address_what_is_empty(opened: Opened) -> None:
    metadata = [{"topic": name} for name in ("a", "b", "a", "b")]
    run = run_of(["0.5", "skip", "0.25", "1"], [Given(), Harm()], metadata=metadata)
    tab = opened([run], run_address(run.id))
    tab.get_by_label("Scorer").select_option("harm")
    tab.get_by_label("Score from").fill("0.3")
    tab.get_by_label("topic").select_option("topic=a")
    tab.get_by_role("button", name="Apply").click()
    tab.wait_for_url(f"**{run_address(run.id)}?scorer=harm&min=0.3&field=topic%3Da#samples")
    assert keys_of(tab) == ["s1"]
    tab.get_by_role("link", name="Clear the filters").click()
    tab.get_by_role("link", name="skipped").click()
    assert keys_of(tab) == ["s2"]
    tab.go_back()
    tab.get_by_role("link", name="harm\u00a0↓").click()
    assert keys_of(tab) == ["s3", "s1", "s4", "s2"]
    tab.get_by_role("link", name="harm\u00a0↓").click()
    assert keys_of(tab) == ["s4", "s1", "s3", "s2"]


def test_claims_are_found_in_the_answer_and_in_the_passages(opened: Opened) -> None:
    sample = Sample(
        id="one",
        input="Where?",
        output="Paris is in France. Rome lies on Mars.",
        context=["Rome is in Italy.", "Nothing here. Paris is a city in France."],
    )
    found = verdicts("supported", "contradicted")
    found["verdicts"]["1"]["passages"] = [2]
    judge = ScriptedJudge(
        {"list_claims": claims("Paris is in France.", "Rome lies on Mars."), "verify_claims": found}, name="j"
    )
    run = evaluate([sample], ["faithfulness"], judge=judge, ledger=None)
    tab = opened([run], sample_address(run.id, "one"))
    assert tab.locator("mark.unsupported").all_text_contents() == ["Rome lies on Mars."]
    tab.get_by_role("button", name="Find in the texts").first.click()
    marks = [text.strip() for text in tab.locator("mark").all_text_contents()]
    assert marks == ["Paris is in France.", "Paris is a city in France."]
    assert tab.locator(".passage.cited strong").all_text_contents() == ["Passage 2"]


def hostile_words_with_a_time() -> Run:
    return replace(hostile_words_run(), started="2026-01-31T12:00:00+00:00")


def test_hostile_text_is_text_on_every_page(opened: Opened) -> None:
    runs = [hostile_run(), hostile_evidence_run(), hostile_words_with_a_time()]
    tab = opened(runs)
    base = tab.url.rstrip("/")
    forbidden = "main img, main script, main style, base, [onerror], [onload], [onmouseover], [style]"
    addresses = ["/", f"/?q={HOSTILE[1]}"]
    for run in runs:
        tab.goto(base + run_address(run.id))
        if run is runs[0]:
            assert HOSTILE[0] in tab.locator(".samples .words .text").all_text_contents()
        addresses += [run_address(run.id), f"{run_address(run.id)}?q=alert"]
        addresses += [link.get_attribute("href") or "" for link in tab.locator(".samples tbody th a").all()]
    assert len(addresses) > 15
    for address in addresses:
        tab.goto(base + address, wait_until="domcontentloaded")
        assert tab.locator(forbidden).count() == 0, address
        tab.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")


def test_keys_walk_through_what_changed(opened: Opened) -> None:
    before, after = run_of(["0.5", "1", "0", "0.25"]), run_of(["1", "1", "0", "0"])
    tab = opened([before, after], compare_address([before.id, after.id], [("sort", "order")]))
    focused = "document.activeElement.textContent"
    for key, name in (("n", "s1"), ("n", "s4"), ("p", "s1"), ("j", "s2"), ("n", "s4")):
        tab.keyboard.press(key)
        assert tab.evaluate(focused) == name
    assert tab.locator("ins").all_text_contents() == []
    tab.get_by_role("link", name="regressed 1").click()
    assert tab.locator(".sides tbody th a").all_text_contents() == ["s4"]
    tab.get_by_text("Reasons").last.click()
    expect(tab.get_by_text("says 0", exact=True)).to_be_visible()


def test_hostile_answers_are_text_where_they_are_compared(opened: Opened) -> None:
    run = hostile_words_with_a_time()
    other = replace(run, id="other", samples=[replace(each, output=f"New {each.output}") for each in run.samples or ()])
    tab = opened([run, other], compare_address([run.id, other.id], [("anyway", "1")]))
    tab.wait_for_selector(".sides")
    assert tab.locator("main img, main script, main style, base, [onerror], [onload], [style]").count() == 0
    assert "New" in (tab.locator("ins").first.text_content() or "")


def judged_run() -> Run:
    """Two samples with judge calls."""
    samples = [Sample(id=f"s{n}", output=f"At {n}.", context=["At 9."], metadata={"a": {"b": 1}}) for n in (8, 9)]
    judge = ScriptedJudge(
        {"list_claims": [claims("At 8."), claims("At 9.")], "verify_claims": [verdicts("supported")] * 2}
    )
    return evaluate(samples, ["faithfulness"], judge=judge, ledger=None)


def test_nothing_overflows_a_screen_of_any_width(opened: Opened) -> None:
    long = Sample(id="i" * 200, input="w" * 500, output="0.5", context=["x" * 900], metadata={"k" * 90: "v" * 90})
    short, other = Sample(id="b", input="x", output="fail"), replace(long, output="0.5" + "0" * 900)
    run, compared = (
        evaluate([sample, short], [Given(), Harm()], ledger=None, name="n" * 120) for sample in (long, other)
    )
    tab = opened([run, compared], "/")
    base = tab.url.rstrip("/")
    addresses = ["/", run_address(run.id), sample_address(run.id, "i" * 200), sample_address(run.id, "b")]
    addresses += [compare_address([run.id, compared.id]), compare_address([run.id])]
    for address in (*addresses, compared_address("i" * 200, [run.id, compared.id])):
        tab.goto(base + address)
        tab.evaluate("document.querySelectorAll('main details').forEach(e => { e.open = true })")
        for width in (400, 800, 2560):
            tab.set_viewport_size({"width": width, "height": 900})
            assert tab.evaluate("document.documentElement.scrollWidth") <= width, address


def test_pages_work_without_javascript(opened: Opened) -> None:
    run = run_of(["0.5", "skip", "0.25", "1"])
    tab = opened([run], java_script_enabled=False)
    tab.locator(f'a[href="{run_address(run.id)}"]').click()
    tab.locator("select[name=show]").select_option("score")
    tab.get_by_role("button", name="Apply").click()
    assert keys_of(tab) == ["s3", "s1", "s4"]
    tab.get_by_role("link", name="s3").click()
    expect(tab.locator(".panel")).to_contain_text("says 0.25")
    tab.get_by_role("link", name="Next").click()
    expect(tab.locator("h1")).to_have_text("s1")


def barriers(tab: Page) -> list[tuple[str, str]]:
    """What axe finds on a page in light colors, and of the contrast in dark ones."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    problems = axe.run(tab).response["violations"]
    tab.emulate_media(color_scheme="dark")
    problems += tab.evaluate("axe.run(document, {runOnly: ['color-contrast'], resultTypes: ['violations']})")[
        "violations"
    ]
    tab.emulate_media(color_scheme="light")
    return [(each["id"], each["nodes"][0]["html"]) for each in problems]


def test_axe_finds_no_barrier_on_any_page(opened: Opened) -> None:
    answers = ["0.5", "skip", "0.25", "1", "fail"]
    run = run_of(answers, [Given(), Harm()], metadata=[{"topic": f"t{n % 2}"} for n in range(5)])
    other = run_of(
        ["1", "0.5", "0", "1", "0.5"], [Given(), Harm()], metadata=[{"topic": f"t{n % 2}"} for n in range(5)]
    )
    judged = judged_run()
    tab = opened([run, other, judged, hostile_evidence_run()], bypass_csp=True)
    base = tab.url.rstrip("/")
    addresses = ["/", run_address(run.id), f"{run_address(run.id)}?show=failed", sample_address(run.id, "s3")]
    addresses += [compare_address([run.id, other.id], [("by", "topic")]), compare_address([run.id])]
    addresses += [compared_address("s3", [run.id, other.id], [("sort", "order")])]
    addresses += [sample_address(judged.id, "s8"), "/datasets", dataset_address(run.dataset_name), "/scorers"]
    for address in addresses:
        tab.goto(base + address)
        tab.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
        assert barriers(tab) == [], address


def test_pages_of_judges_have_no_barriers_and_fit_a_narrow_screen(opened: Opened, tmp_path: Path) -> None:
    url = str(tmp_path / "ledger.db")
    first, second = (stored(url, many(f"judge-{'x' * 90}-{n}@1", 10 + n)) for n in range(2))
    evaluate(ROWS, "faithfulness", ledger=url)
    address = stored(url, calibrate(ROWS, ledger=url))
    pair = "&".join(f"calibration={each.rpartition('/')[2]}" for each in (first, second))
    tab = opened([], "/judges", width=400, ledger=url, bypass_csp=True)
    base = tab.url.removesuffix("/judges")
    for path in ("/judges", f"/judges?{pair}", first, address):
        tab.goto(base + path)
        assert barriers(tab) == [], path
        assert tab.evaluate("document.documentElement.scrollWidth") <= 400, path
    tab.keyboard.press("j")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/samples/**")


def test_pages_of_live_scores_and_experiments_have_no_barriers_and_fit_a_narrow_screen(
    opened: Opened, tmp_path: Path
) -> None:
    url, long = str(tmp_path / "ledger.db"), "n" * 200
    runs: list[Run] = []
    for number, heat in enumerate(("0.0", "w" * 120)):
        with in_experiment(StoredCell(experiment=long, name=f"cell {number}", factors={"heat": heat, "style": "a"})):
            runs.append(evaluate(samples_of(["1", "skip", "fail"]), [Given(), Harm()], ledger=url, name=long))
    text = f"{HOSTILE[0]} {'x' * 300}"
    with Ledger(url) as ledger:
        for number, hours in enumerate((0, 0, 1, 2, 30)):
            outcomes: dict[str, Outcome | Record | None] = {RISING: Score(number / 5, text), FALLING: Failed(text)}
            outcomes["own(y=1)@1"] = None
            sample = Sample(input=f"{number} {text}", output=text)
            submit(ledger, number, outcomes, hours=hours, stream=long, entity=f"{'e' * 200}{number}", sample=sample)
    tab = opened([], "/live", width=400, ledger=url, bypass_csp=True)
    base = tab.url.removesuffix("/live")
    stream = f"/live/{long}"
    paths = ["/live", stream, f"{stream}?show=failed&baseline={runs[0].id}", f"{stream}/scores/o%2F1%2F0"]
    for path in (*paths, experiment_address(long), scorer_address("given"), scorer_address("faithfulness")):
        tab.goto(base + path)
        tab.evaluate("document.querySelectorAll('main details').forEach(e => { e.open = true })")
        assert barriers(tab) == [], path
        assert tab.evaluate("document.documentElement.scrollWidth") <= 400, path
        assert tab.locator("main script, main img, [onerror]").count() == 0
    tab.goto(f"{base}/live")
    for key, address in (
        ("Enter", stream),
        ("Enter", f"{stream}/scores/*"),
        ("n", f"{stream}/scores/*"),
        ("u", stream),
    ):
        before = tab.url
        if key == "Enter":
            tab.keyboard.press("j")
        tab.keyboard.press(key)
        tab.wait_for_url(lambda found, before=before: found != before)
        assert fnmatch(urlsplit(tab.url).path, address), (key, tab.url)


def test_a_page_prints_without_its_controls(opened: Opened) -> None:
    run = run_of(["0.5"])
    tab = opened([run], run_address(run.id))
    tab.emulate_media(media="print")
    for part in (".controls", "nav.top", ".exports"):
        assert not tab.locator(part).first.is_visible()
    assert tab.locator("h1").is_visible()


def test_judge_calls_and_evidence_open_by_keys_and_stay_open_on_the_next_sample(opened: Opened) -> None:
    run = judged_run()
    tab = opened([run], sample_address(run.id, "s8"))
    reply, metadata = tab.locator(".call .raw").first, tab.locator(".panel").get_by_text("b", exact=True)
    expect(reply).not_to_be_visible()
    tab.keyboard.press("c")
    expect(reply).to_be_visible()
    assert tab.url.endswith("#calls")
    expect(metadata).not_to_be_visible()
    tab.keyboard.press("e")
    expect(metadata).to_be_visible()
    assert tab.locator(".locate").count() == 1  # not in what was read from the reply
    tab.keyboard.press("n")
    tab.wait_for_url(f"**{sample_address(run.id, 's9')}*#calls")
    expect(reply).to_be_visible()
    tab.keyboard.press("c")
    expect(reply).not_to_be_visible()
    assert "#" not in tab.url
    tab.set_viewport_size({"width": 400, "height": 900})
    tab.keyboard.press("c")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
