"""The HTML report: one page that runs no script but its own, whatever stands in the samples."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evalstone import Message, Run, Sample, evaluate
from evalstone.report.html import run_page
from evalstone.report.page import escaped, json_block, page, write_page
from tests.runs import Claimed, Given, Harm, run_of

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<svg/onload=alert(3)>",
    "javascript:alert(4)",
    "\u202eevil\u202c \u2066x\u2069",
    "a\u2028b\u2029c",
    "]]>--><!--<script>",
    "\ud800 lone",
    "\x1b[31mred\x07\x00",
    "'\" onmouseover=alert(5) x='",
    "<style>*{display:none}</style>",
    "<base href=http://evil/>",
    "&lt;b&gt;",
)


class Seen(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and the text of its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {}
        self._open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = f"{tag}#{dict(attrs).get('id', '')}" if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.inside.setdefault(self._open, []).append(data)

    def text(self, name: str) -> str:
        return "".join(self.inside[name])

    def block(self, name: str) -> Any:
        return json.loads(self.text(f"script#{name}"))


def hostile_run() -> Run:
    samples = [
        Sample(
            id=f"{number} {text}",
            input=text,
            output=f"{text}. The sky is blue.",
            context=[text, "The sky is blue."],
            instructions=text,
            messages=[Message(role="user", content=text)],
            metadata={text: text},
        )
        for number, text in enumerate(HOSTILE)
    ]
    return evaluate(samples, [Claimed()], ledger=None)


@pytest.fixture(scope="module")
def hostile() -> Seen:
    return Seen("".join(run_page(hostile_run())))


def test_hostile_samples_bring_no_element_and_no_event_handler_into_the_page(hostile: Seen) -> None:
    tags = [tag for tag, _ in hostile.elements]
    assert tags.count("script") == 4  # the texts, the scorers, the index, and the page's own
    assert tags.count("style") == 1
    assert not {"img", "base", "iframe", "object", "form", "link"} & set(tags)
    names = {name for _, attributes in hostile.elements for name in attributes}
    assert not [name for name in names if name.startswith("on")]
    assert not {"style", "href", "src"} & names


def test_hostile_names_of_data_set_and_trouble_are_text() -> None:
    run = run_of(["0.5", "fail"])
    named = replace(
        run, dataset_name=HOSTILE[0], judge_note=HOSTILE[1], stop_reason=HOSTILE[2], warnings={HOSTILE[10]: 2}
    )
    seen = Seen("".join(run_page(named)))
    tags = [tag for tag, _ in seen.elements]
    assert (tags.count("script"), tags.count("style"), tags.count("img")) == (4, 1, 0)
    assert all(name.startswith("on") is False for _, attributes in seen.elements for name in attributes)


def test_the_texts_in_the_page_are_those_of_the_samples(hostile: Seen) -> None:
    details = hostile.block("chunk0")
    assert [detail["sample"]["question"] for detail in details] == list(HOSTILE)
    assert [entry[1] for entry in hostile.block("index")] == list(HOSTILE)


def test_the_policy_allows_the_pages_own_script_and_style_by_their_hashes_and_nothing_else(hostile: Seen) -> None:
    policy = next(a["content"] for tag, a in hostile.elements if tag == "meta" and "http-equiv" in a)

    def hashed(name: str) -> str:
        return base64.b64encode(hashlib.sha256(hostile.text(name).encode()).digest()).decode()

    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashed('style#')}'; script-src 'sha256-{hashed('script#')}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_the_page_names_no_address_to_load_anything_from(hostile: Seen) -> None:
    assert "http" not in hostile.text("script#") + hostile.text("style#")


def test_control_and_direction_characters_are_made_visible() -> None:
    assert escaped("a\u202eb\x1b<\ud800>\n") == "a\\u202eb\\u001b&lt;\\ud800&gt;\n"


def test_a_block_of_json_reads_back_and_holds_no_angle_bracket() -> None:
    value = {"a": [*HOSTILE, 1.5, None]}
    block = json_block("x", value)
    inner = block.removeprefix('<script type="application/json" id="x">').removesuffix("</script>\n")
    assert not re.search("[<>&\u2028\u2029]", inner)
    assert json.loads(inner) == value


def test_a_page_without_a_script_allows_none() -> None:
    assert "script-src 'none'" in "".join(page("t", ["<p>x</p>"]))


def test_the_page_shows_mean_interval_counts_and_reasons() -> None:
    text = "".join(run_page(run_of(["0.25", "0.75", "skip", "fail"])))
    assert ">0.500</td>" in text
    assert "nothing to say" in text
    assert "could not convert string to float" in text
    assert "1 outcomes failed" in text
    assert "given: 2 of 4 have no score; with them the mean would lie between 0.250 and 0.750" in text


def test_an_index_entry_holds_value_skip_or_failure_and_how_good_the_sample_is() -> None:
    seen = Seen("".join(run_page(run_of(["0.25", "skip", "fail"], [Given(), Harm()]))))
    assert [entry[2:] for entry in seen.block("index")] == [
        [[0.25, 0.25], 0.5],
        [["skipped", "skipped"], None],
        [["failed", "failed"], None],
    ]


def test_of_very_many_samples_the_least_good_are_in_the_page() -> None:
    seen = Seen("".join(run_page(run_of(["0.9", "0.1", "fail", "0.5"]), most=2)))
    assert [entry[0] for entry in seen.block("index")] == ["s2", "s3"]
    assert (seen.block("about")["judged"], seen.block("about")["all"]) == (2, 4)


def test_samples_come_in_chunks_that_are_read_when_they_are_shown() -> None:
    seen = Seen("".join(run_page(run_of(["0.5"] * 250))))
    assert [len(seen.block(f"chunk{number}")) for number in range(3)] == [100, 100, 50]


def test_a_run_without_its_texts_has_a_page_too() -> None:
    run = run_of(["0.5"])
    seen = Seen("".join(run_page(replace(run, dataset=None))))
    assert seen.block("chunk0")[0]["sample"] is None
    assert seen.block("chunk0")[0]["outcomes"][0]["reason"] == "says 0.5"


def test_a_page_is_written_whole(tmp_path: Path) -> None:
    file = write_page(tmp_path / "r.html", run_page(hostile_run()))
    assert file.read_text("utf-8").endswith("</html>\n")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_what_the_missing_could_change_is_drawn_and_the_tallest_bar_has_its_number() -> None:
    page = "".join(run_page(run_of(["0.5"] * 3 + ["0.7", "skip"])))
    # (3 * 0.5 + 0.7 + 0) / 5 and (3 * 0.5 + 0.7 + 1) / 5
    assert "whatever is missing, between 0.44 and 0.64" in page
    assert page.count('class="bounds"') == 1
    assert re.search(r'<text class="tick most"[^>]*>3</text>', page)
    assert 'class="bounds"' not in "".join(run_page(run_of(["0.5"] * 3)))
