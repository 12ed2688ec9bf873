"""The pages in a real browser: sorting, filtering, opening, narrow screens, hostile text, and without JavaScript."""

# Playwright leaves the patterns of its assertions without a type.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from evalstone import Sample, ScriptedJudge, evaluate
from evalstone.datasets.writing import write_text
from evalstone.report.html import page
from evalstone.report.view import View
from evalstone.results.views.run import run_view
from tests.browsing import NEEDS_BROWSER, chromium
from tests.fakes import claims, verdicts
from tests.report.hostile import HOSTILE, hostile_views
from tests.runs import Given, Harm, run_of

pytestmark = NEEDS_BROWSER


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens a view as a page; every error in it fails the test."""
    pages: list[Page] = []
    errors: list[str] = []

    def opening(view: View, *, width: int = 1280, fragment: str = "", **context: Any) -> Page:
        write_text(file := tmp_path / "page.html", page(view))
        tab = browser.new_page(viewport={"width": width, "height": 900}, **context)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        tab.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}"))
        tab.on("request", lambda request: None if request.url.startswith("file:") else errors.append(request.url))
        tab.goto(file.as_uri() + fragment)
        pages.append(tab)
        return tab

    yield opening
    for tab in pages:
        tab.close()
    assert errors == []


def ids(tab: Page) -> list[str]:
    return tab.locator("#list > .sample:visible > summary > .name").all_text_contents()


def test_samples_stand_worst_first_those_without_a_score_last_and_sort_by_a_scorer(opened: Callable[..., Page]) -> None:
    tab = opened(run_view(run_of(["0.9", "0.1", "fail", "0.5", "skip"], [Given(), Harm()])))
    orders = {
        "goodness": ["s1", "s2", "s4", "s3", "s5"],
        "0": ["s2", "s4", "s1", "s3", "s5"],
        "1": ["s2", "s4", "s1", "s3", "s5"],
        "order": ["s1", "s2", "s3", "s4", "s5"],
    }
    for order, shown in orders.items():
        tab.locator("select[name=order]").select_option(order)
        assert ids(tab) == shown
    tab = opened(run_view(run_of(["0.9", "0.1", "fail", "0.5", "skip"])))
    assert ids(tab) == ["s2", "s4", "s1", "s3", "s5"]


def test_samples_are_searched_and_filtered(opened: Callable[..., Page]) -> None:
    tab = opened(run_view(run_of(["1", "0.1", "fail", "skip"])))
    for choice, shown in (("imperfect", ["s2", "s3", "s4"]), ("failed", ["s3"]), ("skipped", ["s4"])):
        tab.locator("select[name=show]").select_option(choice)
        assert ids(tab) == shown
    tab.locator("select[name=show]").select_option("all")
    tab.get_by_label("Search").fill("SAYS 0.1")
    expect(tab.get_by_role("status")).to_have_text("1 of 4 samples, worst first")
    assert ids(tab) == ["s2"]


def test_a_sample_opens_and_closes(opened: Callable[..., Page]) -> None:
    tab = opened(run_view(run_of(["0.5", "0.25"]), worst=0))
    first = tab.locator("#list > .sample").first
    first.locator("summary").first.click()
    expect(first.locator(".panel")).to_be_visible()
    expect(first).to_contain_text("How much?")
    expect(first).to_contain_text("says 0.25")
    first.locator("summary").first.click()
    expect(first.locator(".panel")).not_to_be_visible()


def test_a_fragment_opens_its_sample(opened: Callable[..., Page]) -> None:
    tab = opened(run_view(run_of([str(n / 100) for n in range(80)])), fragment="#s70")
    expect(tab.locator("#list > .sample[open] .panel")).to_contain_text("says 0.69")


def test_claims_are_found_in_the_answer_and_in_the_passages_that_decide_them(opened: Callable[..., Page]) -> None:
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
    tab = opened(run_view(evaluate([sample], ["faithfulness"], judge=judge, ledger=None)))
    detail = tab.locator("#list > .sample")
    detail.locator("summary").first.click()
    assert tab.locator("section:not(#list) > .sample mark.unsupported").all_text_contents() == ["Rome lies on Mars."]
    assert detail.locator("mark.unsupported").all_text_contents() == ["Rome lies on Mars."]
    detail.get_by_role("button", name="Find in the texts").first.click()
    assert [text.strip() for text in detail.locator("mark").all_text_contents()] == [
        "Paris is in France.",
        "Paris is a city in France.",
    ]
    assert detail.locator(".passage.cited strong").all_text_contents() == ["Passage 2"]


@pytest.mark.parametrize("name", ["run", "evidence", "words", "comparison"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overflows_a_narrow_screen_even_when_everything_is_open(
    opened: Callable[..., Page], name: str, scheme: str
) -> None:
    tab = opened(hostile_views()[name], width=400, color_scheme=scheme)
    tab.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400


def test_long_words_do_not_overflow_an_opened_sample_on_a_narrow_screen(opened: Callable[..., Page]) -> None:
    sample = Sample(id="i" * 200, input="w" * 500, output="0.5", context=["x" * 900], metadata={"k" * 90: "v" * 400})
    tab = opened(run_view(evaluate([sample], [Given()], ledger=None)), width=400)
    tab.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    box = tab.locator("#list > .sample .panel").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 400


@pytest.mark.parametrize("name", ["run", "evidence", "words"])
def test_hostile_text_does_not_run_and_is_shown_as_text(opened: Callable[..., Page], name: str) -> None:
    tab = opened(hostile_views()[name])
    tab.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
    tab.get_by_label("Search").fill("alert")
    assert tab.locator("#list img, #list svg, #list script, #list style, #list base, .sample img, base").count() == 0
    if name == "run":
        tab.get_by_label("Search").fill("")
        expect(tab.locator("#list > .sample:visible")).to_have_count(len(HOSTILE))
        assert HOSTILE[0] in tab.locator("#list .block > .text").all_text_contents()


def test_the_page_works_without_javascript(opened: Callable[..., Page]) -> None:
    tab = opened(run_view(run_of(["0.9", "0.1", "0.5"]), worst=2), java_script_enabled=False)
    assert tab.locator("section:not(#list) > .sample .name").all_text_contents() == ["s2", "s3"]
    assert ids(tab) == ["s1", "s2", "s3"]
    expect(tab.locator("details.sample").first).to_contain_text("says 0.1")
    second = tab.locator("details.sample").nth(1)
    second.locator("summary").first.click()
    expect(second.locator(".panel")).to_be_visible()
    assert not tab.locator(".controls").is_visible()


def test_a_page_prints_without_its_controls(opened: Callable[..., Page]) -> None:
    tab = opened(run_view(run_of(["0.5"])))
    tab.emulate_media(media="print")
    assert not tab.locator(".controls").is_visible()
    assert tab.locator("h1").is_visible()
