"""The HTML report: one page that runs no script but its own, whatever is in the samples."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from evalstone import evaluate
from evalstone._core.display import visible
from evalstone.datasets.writing import write_text
from evalstone.report.html import asset, fragment, page
from evalstone.report.view import (
    Cell,
    Column,
    Examples,
    Fact,
    OutcomeView,
    SampleList,
    SampleView,
    ScoreColumn,
    Section,
    View,
    table,
)
from evalstone.results.views.run import run_view
from tests.report.hostile import HOSTILE, MARKUP, hostile_run, hostile_views
from tests.runs import Given, Harm, run_of

VOID = {"meta", "input", "br", "hr", "img", "base", "link"}


class Seen(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self.everything = ""
        self.unclosed: list[str] = []
        self._open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = f"{tag}#{dict(attrs).get('id', '')}" if tag in ("script", "style") else None
        if tag not in VOID:
            self.unclosed.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self._open = None
        assert self.unclosed.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.inside.setdefault(self._open, []).append(data)
        else:
            self.everything += data

    def text(self, name: str) -> str:
        return "".join(self.inside[name])


@pytest.fixture(scope="module")
def hostile() -> Seen:
    return Seen("".join(page(run_view(hostile_run(), worst=20))))


@pytest.mark.parametrize("name", ["run", "evidence", "words", "comparison"])
def test_hostile_text_brings_no_element_and_no_event_handler_into_a_page(name: str) -> None:
    view = hostile_views()[name]
    seen = Seen("".join(page(view)))
    tags = [tag for tag, _ in seen.elements]
    assert tags.count("script") == (1 if view.samples else 0)
    assert tags.count("style") == 1
    assert not {"img", "base", "iframe", "object", "form", "link"} & set(tags)
    names = {name for _, attributes in seen.elements for name in attributes}
    assert not [name for name in names if name.startswith("on")]
    assert not {"style", "href", "src"} & names
    assert seen.unclosed == []


def test_hostile_text_is_shown_as_it_is(hostile: Seen) -> None:
    for text in HOSTILE:
        assert visible(text) in hostile.everything
    assert MARKUP in Seen("".join(page(hostile_views()["words"]))).everything


def test_control_and_direction_characters_are_made_visible_in_text_and_data() -> None:
    for view in hostile_views().values():
        whole = "".join(page(view))
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]", whole)


def test_the_policy_allows_the_pages_own_script_and_style_by_their_hashes_and_nothing_else(hostile: Seen) -> None:
    policy = next(a["content"] for tag, a in hostile.elements if tag == "meta" and "http-equiv" in a)

    def hashed(name: str) -> str:
        return base64.b64encode(hashlib.sha256(hostile.text(name).encode()).digest()).decode()

    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashed('style#')}'; script-src 'sha256-{hashed('script#')}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_a_page_without_samples_allows_no_script() -> None:
    assert "script-src &#39;none&#39;" in "".join(page(View("t", "", ())))


def test_the_page_names_no_address_to_load_anything_from(hostile: Seen) -> None:
    assert "http" not in hostile.text("script#") + hostile.text("style#")
    assert "url(" not in hostile.text("style#")


@pytest.mark.parametrize("name", ["sentences.js", "claims.js", "list.js"])
def test_scripts_make_elements_of_text_only(name: str) -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(", asset(name))


def test_the_page_shows_mean_interval_and_counts() -> None:
    text = Seen("".join(page(run_view(run_of(["0.25", "0.75", "skip", "fail"]))))).everything
    assert re.search(r"0\.500\s+0 better|0\.500", text)
    assert "1 result failed" in text
    assert "↑ higher is better" in text


def test_rows_have_headers_and_tables_captions_for_screen_readers() -> None:
    seen = Seen("".join(page(run_view(run_of(["0.25"], [Given(), Harm()])))))
    headers = [a.get("scope") for tag, a in seen.elements if tag == "th"]
    assert headers.count("row") == 2
    assert None not in headers
    tags = [tag for tag, _ in seen.elements]
    assert tags.count("caption") == tags.count("table") == 1


def test_the_worst_samples_are_in_the_page_without_javascript_worst_first() -> None:
    seen = Seen("".join(page(run_view(run_of(["0.9", "0.1", "0.5"]), worst=2))))
    assert [a["class"] for tag, a in seen.elements if tag == "details"][:1] == ["sample"]
    assert seen.everything.index("s2") < seen.everything.index("s3")
    assert "says 0.1" in seen.everything


def listed(seen: Seen) -> list[str | None]:
    """How good each sample of the list is; the worst samples above it are left out."""
    start = next(at for at, (_, a) in enumerate(seen.elements) if a.get("id") == "list")
    return [a["data-goodness"] for tag, a in seen.elements[start:] if tag == "details" and "data-goodness" in a]


def test_samples_in_the_list_say_how_good_they_are_and_what_each_scorer_said() -> None:
    seen = Seen("".join(page(run_view(run_of(["0.25", "skip", "fail"], [Given(), Harm()]), worst=0))))
    assert listed(seen) == ["0.5", "", ""]
    values = [a["data-value"] for _, a in seen.elements if "data-value" in a]
    assert values == ["0.25", "0.25", "skipped", "skipped", "failed", "failed"]


@pytest.mark.parametrize("limit", ["number", "size"])
def test_of_very_many_samples_the_worst_are_in_the_page(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    view = run_view(run_of(["0.9", "0.1", "fail", "0.5"]), worst=0)
    assert listed(Seen("".join(page(view)))) == ["0.9", "0.1", "", "0.5"]
    if limit == "number":
        monkeypatch.setattr("evalstone.results.views.run.MOST_SAMPLES", 2)
        view = run_view(run_of(["0.9", "0.1", "fail", "0.5"]), worst=0)
    else:
        parts = "".join(page(view)).partition('id="list"')[2].split('<details class="sample"')[1:]
        monkeypatch.setattr("evalstone.report.html.MOST_BYTES", len(parts[1]) + len(parts[2]) + 100)
    seen = Seen("".join(page(view)))
    assert listed(seen) == ["0.1", ""]
    assert "2 worst of 4 samples" in seen.everything
    assert "evalstone view" in seen.everything


def test_the_list_of_a_run_with_trials_is_one_of_trials() -> None:
    def agent(*, input: str) -> str:
        return "0.5"

    samples = [{"id": "q", "input": "?"}]
    for trials, noun in ((1, "samples"), (2, "trials")):
        text = "".join(page(run_view(evaluate(samples, Given(), target=agent, trials=trials, ledger=None))))
        assert f">All {noun}<" in text


def test_a_run_without_its_texts_has_a_page_too() -> None:
    view = run_view(replace(run_of(["0.5"]), samples=None))
    seen = Seen("".join(page(view)))
    assert view.examples[0].samples[0].panel[0].text in seen.everything
    assert "says 0.5" in seen.everything


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    write_text(file := tmp_path / "r.html", page(run_view(hostile_run())))
    assert file.read_text("utf-8").rstrip().endswith("</html>")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_what_the_missing_could_change_is_drawn_and_the_tallest_bar_has_its_number() -> None:
    shown = "".join(page(run_view(run_of(["0.5"] * 3 + ["0.7", "skip"]))))
    # (3 * 0.5 + 0.7 + 0) / 5 and (3 * 0.5 + 0.7 + 1) / 5
    assert "between 0.44 and 0.64" in shown
    assert shown.count('class="bounds"') == 1
    assert re.search(r'<text class="tick end"[^>]*y="10">3</text>', shown)
    assert 'class="bounds"' not in "".join(page(run_view(run_of(["0.5"] * 3))))


def test_the_better_end_of_the_scale_is_named() -> None:
    shown = "".join(page(run_view(run_of(["0.5", "0.25"], [Given(), Harm()]))))
    assert shown.count(">better 1</text>") == 1
    assert shown.count(">0 better</text>") == 1


def test_hostile_headers_captions_notes_and_facts_are_text() -> None:
    columns = (Column(MARKUP), Column(MARKUP), Column(MARKUP, under=True))
    cells = table(MARKUP, columns, [(MARKUP, Cell(MARKUP, under=MARKUP), MARKUP)], [MARKUP])
    section = Section(MARKUP, (MARKUP,), (cells,), notes=(MARKUP,), folded=True)
    outcome = OutcomeView(MARKUP, None, MARKUP, "", MARKUP)
    sample = SampleView(MARKUP, MARKUP, MARKUP, None, (outcome,), headline=MARKUP)
    view = View(
        name=MARKUP,
        lead=MARKUP,
        sections=(section,),
        notice=MARKUP,
        warnings=(MARKUP,),
        verdict=Cell(MARKUP),
        examples=(Examples(MARKUP, (sample,)),),
        facts=(Fact(MARKUP, MARKUP),),
        samples=SampleList((ScoreColumn(MARKUP, 1.0, False),), (sample,), 1, 2, noun=MARKUP),
        footer=(MARKUP,),
    )
    seen = Seen("".join(page(view)))
    assert "img" not in [tag for tag, _ in seen.elements]
    assert seen.everything.count(MARKUP) == 35
    labels = [a["data-label"] for _, a in seen.elements if "data-label" in a]
    assert labels == [MARKUP]
    assert [a["data-noun"] for _, a in seen.elements if "data-noun" in a] == [MARKUP]


NOTEBOOK = {"p", "strong", "h4", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "pre"}


@pytest.mark.parametrize("name", ["run", "evidence", "words", "comparison"])
def test_hostile_text_brings_no_element_into_a_notebook(name: str) -> None:
    seen = Seen(fragment(hostile_views()[name]))
    assert {tag for tag, _ in seen.elements} <= NOTEBOOK
    assert [attributes for _, attributes in seen.elements if attributes] == []
    assert seen.unclosed == []


def test_every_text_of_a_notebook_is_text() -> None:
    columns = (Column(MARKUP), Column(MARKUP))
    cells = table(MARKUP, columns, [(MARKUP, MARKUP)], [MARKUP])
    section = Section(MARKUP, (MARKUP,), (cells,), plain=(MARKUP,), notes=(MARKUP,), warnings=(MARKUP,))
    view = View(
        name=MARKUP,
        lead=MARKUP,
        sections=(section, section),
        notice=MARKUP,
        warnings=(MARKUP,),
        verdict=Cell(MARKUP),
        facts=(Fact(MARKUP, MARKUP, MARKUP),),
    )
    seen = Seen(fragment(view))
    assert {tag for tag, _ in seen.elements} <= NOTEBOOK
    assert seen.everything.count(MARKUP) == 6 + 2 * 10
