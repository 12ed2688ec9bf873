"""The documentation site: it has every page and every public name, and no link that leads nowhere."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path

import pytest

from evalstone.cli.app import COMMANDS
from tests.public import public_modules
from tools import make_site

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://example.org/code"


@pytest.mark.parametrize(
    ("source", "link", "expected"),
    [
        ("README.md", "docs/data.md#columns", "data.md#columns"),
        ("README.md", "docs/images/view.png", "images/view.png"),
        ("README.md", "CHANGELOG.md", "changelog.md"),
        ("README.md", "LICENSE", f"{REPOSITORY}/blob/main/LICENSE"),
        ("README.md", "https://example.org/a.md", "https://example.org/a.md"),
        ("docs/index.md", "decisions", f"{REPOSITORY}/tree/main/docs/decisions"),
        ("docs/ci.md", "#exit-codes", "#exit-codes"),
        ("docs/ci.md", "index.md", "contents.md"),
        ("docs/migrate/ragas.md", "../data.md#a-b", "../data.md#a-b"),
        ("docs/migrate/ragas.md", "../../CONTRIBUTING.md", "../contributing.md"),
        ("docs/scale.md", "../examples/scale/slurm.sh", f"{REPOSITORY}/blob/main/examples/scale/slurm.sh"),
    ],
)
def test_a_link_leads_to_the_same_page_on_the_site(source: str, link: str, expected: str) -> None:
    text = f"See [it]({link}).\n\n```py\nfields[0](CHANGELOG.md)\n```\n"
    assert make_site.on_the_site(text, source, REPOSITORY) == text.replace(f"({link}).", f"({expected}).")


def test_every_page_is_in_the_navigation_once() -> None:
    pages = [page.page for section in make_site.contents() for page in section.pages()]
    assert sorted(pages) == sorted(set(pages))
    decisions = {page for page in make_site.sources().values() if page.startswith("decisions/")}
    assert set(make_site.sources().values()) - set(pages) - decisions == {"index.md", "contents.md", "security.md"}


def test_the_page_of_commands_has_every_command() -> None:
    text = (ROOT / "docs/which-command.md").read_text("utf-8")
    named = set(re.findall(r"evalstone ([a-z]+)", text))
    assert set(COMMANDS) - named == {"scorers", "judges", "traces"} - named


def test_the_reference_has_every_public_module_and_name() -> None:
    assert set(public_modules()) - set(make_site.public_modules()) == set()


@pytest.mark.slow
def test_the_site_builds_without_a_dead_link_and_has_every_public_name(tmp_path: Path) -> None:
    html = make_site.build(tmp_path)
    for module in public_modules():
        page = (html / f"api/{module}/index.html").read_text("utf-8")
        shown = set(re.findall(rf'id="{re.escape(module)}\.(\w+)"', page))
        names = {
            name: getattr(importlib.import_module(module), name) for name in importlib.import_module(module).__all__
        }
        assert {name for name, value in names.items() if not inspect.ismodule(value)} - shown == set()
    for schema in (ROOT / "schemas").iterdir():
        address = json.loads((html / "schemas" / schema.name).read_text("utf-8"))["$id"]
        assert address == f"{make_site.project()['urls']['Documentation']}schemas/{schema.name}"
    assert (html / "site.css").is_file()
    assert 'href="../../site.css"' in (html / "tutorials/rag/index.html").read_text("utf-8")
    text = (html / "llms-full.txt").read_text("utf-8")
    for hidden in ("ReadAs[", "NOTHING", "field(default", "dict[str, str]()"):
        assert hidden not in text.split("\n# evalstone.agents\n")[1], hidden
    assert "context: Passages | None = None," in text
    assert "AnswerCorrectness(\n    *,\n" in text
