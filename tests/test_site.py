"""The documentation site: it has every page and every public name, and no link that leads nowhere."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path

import griffe
import pytest

from evalstone.cli.app import COMMANDS
from tests.public import public_modules
from tools import make_site
from tools.site_signatures import Constructors, docstrings

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


def test_code_in_a_table_has_bars_without_the_backslash_that_only_github_reads() -> None:
    text = "| `a\\|b` | one\\|two | `` c`\\|d `` |\n\n`a\\|b`\n\n```py\n| `a\\|b` |\n```\n"
    expected = "| `a|b` | one\\|two | `` c`|d `` |\n\n`a\\|b`\n\n```py\n| `a\\|b` |\n```\n"
    assert make_site.on_the_site(text, "docs/ci.md", REPOSITORY) == expected


def test_every_page_is_in_the_navigation_once() -> None:
    pages = [page.page for section in make_site.contents() for page in section.pages()]
    assert sorted(pages) == sorted(set(pages))
    decisions = {page for page in make_site.sources().values() if page.startswith("decisions/")}
    assert set(make_site.sources().values()) - set(pages) - decisions == {"index.md", "contents.md", "security.md"}


def test_what_the_list_of_pages_says_of_one_is_whole() -> None:
    """Also if it goes on in the next line, as in llms.txt."""
    about = {page.page: page.about for section in make_site.contents() for page in section.pages()}
    assert about["targets.md"].endswith("record, replay or mock its tools")


def test_a_page_that_a_docstring_names_is_a_link() -> None:
    module = griffe.Module("m", docstring=griffe.Docstring("See docs/data.md, and docs/migrate/ragas.md."))
    module["f"] = griffe.Function("f", docstring=griffe.Docstring("As docs/data.mdx says."))
    Constructors().on_package(pkg=module)
    assert [one.value for one in docstrings(module)] == [
        "See [docs/data.md](../../data.md), and [docs/migrate/ragas.md](../../migrate/ragas.md).",
        "As docs/data.mdx says.",
    ]
    pages = {module: text for module, topic, text in make_site.api_pages() if not topic}
    assert "see [docs/scale.md](../../scale.md)" in pages["evalstone.scale"]


def test_the_page_of_commands_has_every_command() -> None:
    text = (ROOT / "docs/which-command.md").read_text("utf-8")
    named = set(re.findall(r"evalstone ([a-z]+)", text))
    assert set(COMMANDS) - named == {"scorers", "judges", "traces"} - named


def test_the_reference_has_every_public_module_and_name() -> None:
    assert set(public_modules()) - set(make_site.public_modules()) == set()


def test_a_large_module_has_a_list_of_its_names_and_a_page_for_each_topic() -> None:
    pages = {(module, topic): text for module, topic, text in make_site.api_pages()}
    for module, topics in make_site.TOPICS.items():
        assert [topic for of, topic in pages if of == module] == ["", *topics]
        for topic in topics:
            shown = re.findall(rf"^::: {re.escape(module)}\.(\w+)$", pages[module, topic], re.MULTILINE)
            assert 0 < len(shown) < 40
            assert all(f"| [`{name}`](" in pages[module, ""] for name in shown)
    comparison = "comparisons-and-gates.md#evalstone.results.Comparison"
    assert (
        f"| [`Comparison`]({comparison}) | Runs compared with a baseline, sample by sample. |"
        in pages["evalstone.results", ""]
    )


def test_members_from_classes_without_a_page_are_on_those_of_their_subclasses() -> None:
    pages = {(module, topic): text for module, topic, text in make_site.api_pages()}
    shown = pages["evalstone.results", "Comparisons and gates"].partition("::: evalstone.results.Comparison\n")[2]
    inherited = shown.partition("\n\n")[0]
    assert "members: [to_pandas, to_polars, brief, text, to_html, to_markdown, to_csv]" in inherited
    assert "show_bases: false" in inherited
    assert (
        "members: [truncated, text, json, events]"
        in pages["evalstone.live", ""].partition("live.Request\n")[2].partition(":::")[0]
    )
    for name in ("evalstone.results.Change", "evalstone.results.power"):
        assert f"::: {name}\n\n" in pages["evalstone.results", "Comparisons and gates"]


def test_a_parameter_that_is_not_there_ends_the_build() -> None:
    said = "Build started\ngriffe: api.py:94: Parameter 'map, split' does not appear in the function signature\n"
    with pytest.raises(SystemExit, match=r"can't read 1 parameter of docstrings, such as griffe: api\.py:94"):
        make_site.check_docstrings(said)
    make_site.check_docstrings("Build started\nNo issues found\n")


def test_the_reference_begins_with_a_page_of_modules() -> None:
    page = make_site.modules_page()
    assert (
        "| [`evalstone.agents`](evalstone.agents/index.md) | samples, trajectories and transcripts of agents |" in page
    )
    assert page.count("/index.md) | ") == len(make_site.public_modules())


def test_a_name_without_a_topic_ends_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(make_site.TOPICS, "evalstone.results", {"Runs": ("results.run.",)})
    with pytest.raises(SystemExit, match=r"0 topics of evalstone\.results for results\.compare, which has Comparison"):
        make_site.topic_of("evalstone.results", "Comparison")


def built(folder: Path, text: str) -> Path:
    """A built site with one page and one schema."""
    (folder / "schemas").mkdir(parents=True)
    (folder / "schemas" / f"{text}.json").write_text("{}")
    for name in ("404.html", "index.html", "llms.txt", "llms-full.txt"):
        (folder / name).write_text(text)
    return folder


def test_sites_of_versions_are_beside_each_other_newest_first(tmp_path: Path) -> None:
    into = tmp_path / "all"
    for version in ("0.9.0", "0.10.0", "0.9.1", "0.2.5"):
        make_site.add(built(tmp_path / version, version), into, version)
    rows = json.loads((into / "versions.json").read_text("utf-8"))
    assert [(row["version"], row["title"], row["aliases"]) for row in rows] == [
        ("0.10", "0.10.0", ["latest"]),
        ("0.9", "0.9.1", []),
        ("0.2", "0.2.5", []),
    ]
    assert {row["version"]: (into / row["version"] / "index.html").read_text() for row in rows} == {
        row["version"]: row["title"] for row in rows
    }
    assert "url=0.10/" in (into / "index.html").read_text("utf-8")
    assert (into / "llms.txt").read_text() == "0.10.0"
    assert {file.name for file in (into / "schemas").iterdir()} == {
        "0.9.0.json",
        "0.10.0.json",
        "0.9.1.json",
        "0.2.5.json",
    }


@pytest.mark.parametrize("version", ["0.2.0.dev1", "0.2", "1.0.0rc1"])
def test_only_a_release_has_a_site_beside_others(version: str) -> None:
    with pytest.raises(SystemExit, match=rf"^{re.escape(version)} isn't a release"):
        make_site.minor_of(version)


@pytest.mark.slow
def test_the_site_builds_without_a_dead_link_and_has_every_public_name(tmp_path: Path) -> None:
    html = make_site.build(tmp_path)
    for module in public_modules():
        pages = [html / f"api/{module}/index.html", *(html / f"api/{module}").glob("*/index.html")]
        text = "".join(page.read_text("utf-8") for page in pages)
        shown = set(re.findall(rf'id="{re.escape(module)}\.(\w+)"', text))
        names = {
            name: getattr(importlib.import_module(module), name) for name in importlib.import_module(module).__all__
        }
        assert {name for name, value in names.items() if not inspect.ismodule(value)} - shown == set()
    for schema in (ROOT / "schemas").iterdir():
        address = json.loads((html / "schemas" / schema.name).read_text("utf-8"))["$id"]
        assert address == f"{make_site.project()['urls']['Documentation']}schemas/{schema.name}"
    comparison = (html / "api/evalstone.results/comparisons-and-gates/index.html").read_text("utf-8")
    for member in ("to_html", "to_markdown", "to_csv", "to_pandas", "to_polars"):
        assert f'id="evalstone.results.Comparison.{member}"' in comparison
    assert "_paired" not in comparison
    assert "_pseudo" not in (html / "api/evalstone.stats/index.html").read_text("utf-8")
    assert ">evalstone.agents<" in re.sub(r"\s+", "", (html / "api/evalstone.stats/index.html").read_text("utf-8"))
    assert (html / "site.css").is_file()
    assert 'href="../../site.css"' in (html / "tutorials/rag/index.html").read_text("utf-8")
    assert "regex(pattern='one|two')" in (html / "migrate/promptfoo/index.html").read_text("utf-8")
    text = (html / "llms-full.txt").read_text("utf-8")
    for hidden in ("ReadAs[", "NOTHING", "field(default", "dict[str, str]()"):
        assert hidden not in text.split("\n# evalstone.agents\n")[1], hidden
    assert "context: Passages | None = None," in text
    assert "AnswerCorrectness(\n    *,\n" in text
