"""Build the documentation site in `.site/html`: `make site`.

    python -m tools.make_site [--into FOLDER]

`docs/index.md` is the only list of pages: the navigation and `llms.txt` have its sections and its order. The API
reference has a page for each public module, and for each topic of the largest ones. A link or an anchor that leads
nowhere ends the build, as does a docstring with a parameter that isn't there.

`--into` adds the site of this version to a folder with those of others, from which readers choose in the header:

    FOLDER/index.html        leads to the newest version
    FOLDER/versions.json     the versions, newest first
    FOLDER/0.1/              the site of 0.1.0, which one of 0.1.1 replaces
    FOLDER/schemas/          the JSON schemas of all versions
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import importlib.util
import inspect
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from evalstone._core.display import count, ended
from evalstone.live.asgi import HTTPMessage
from evalstone.report.frames import Framed
from evalstone.report.shown import Shown
from tools.site_signatures import linked

ROOT = Path(__file__).parents[1]
SITE = ROOT / ".site"
HOME = "index.md"
CONTENTS = "contents.md"
"""`docs/index.md` on the site, whose home is the README."""
MOVED = {
    "README.md": HOME,
    "docs/index.md": CONTENTS,
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
"""Pages of the repository that have another name on the site."""
REDIRECT = """\
<!doctype html>
<meta charset="utf-8">
<title>evalstone</title>
<meta http-equiv="refresh" content="0; url={0}/">
<a href="{0}/">evalstone {0}</a>
"""
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)#:\s]*)(?P<anchor>#[^)\s]+)?(?=\))")
_FENCE = re.compile(r"^( *```).*?^\1 *$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^ *\|.*$", re.MULTILINE)
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_ENTRY = re.compile(r"\[(?P<title>[^\]]+)\]\((?P<path>[^)#:]+)[^)]*\)")


TOPICS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "evalstone": {
        "Evaluate": ("api.", "run.budget.", "run.notifier.", "run.plan.", "run.planning.", "targets."),
        "Samples and scores": ("datasets.", "types."),
        "Runs and comparisons": ("compat.", "results.", "run.data_check.", "run.saved."),
        "Judges": ("judge_quality.", "judges.", "models."),
        "Scorers": ("_core.prompts.", "questions.", "scorers."),
        "Production": ("live.",),
        "Errors": ("errors.",),
    },
    "evalstone.results": {
        "Runs": (
            "results.columns.",
            "results.endings.",
            "results.estimate.",
            "results.files.",
            "results.record_tables.",
            "results.run.",
            "results.several_runs.",
            "results.slices.",
            "results.summary.",
            "results.trials.",
        ),
        "Comparisons and gates": (
            "results.compare.",
            "results.drift.",
            "results.gate.",
            "results.gate_criteria.",
            "results.missing_scores.",
            "results.power_analysis.",
        ),
        "Calibrations": (
            "results.agreement_slices.",
            "results.calibration.",
            "results.corrections.",
            "results.disagreements.",
            "results.human_labels.",
            "results.judge_comparison.",
            "results.judge_verdict.",
            "results.measures.",
            "results.members.",
            "results.saved_calibrations.",
        ),
        "Alignments and audits": ("results.alignment.", "results.audit."),
        "Data checks": ("results.data_check.",),
    },
}
"""The topics of the modules whose names are too many for one page, with the beginnings of where a topic's names are."""
WITHOUT_A_PAGE = (Shown, Framed, HTTPMessage)
"""Classes that aren't public, but have members that callers use: the pages of their subclasses have them."""


@dataclass(frozen=True)
class Entry:
    """A page in the navigation, or a group of pages."""

    title: str
    page: str = ""
    about: str = ""
    entries: tuple[Entry, ...] = ()

    def pages(self) -> Iterator[Entry]:
        """The pages, in order."""
        if self.page:
            yield self
        for entry in self.entries:
            yield from entry.pages()

    def nav(self) -> dict[str, Any]:
        """The entry as zensical's configuration has it."""
        if not self.entries:
            return {self.title: self.page}
        return {self.title: [*([self.page] if self.page else []), *(entry.nav() for entry in self.entries)]}


def project() -> Mapping[str, Any]:
    """The table `project` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@functools.cache
def sources() -> Mapping[str, str]:
    """The pages of the repository that are on the site: their path there, by their path in the repository."""
    docs = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))]
    return {path: path.removeprefix("docs/") for path in docs} | MOVED


def on_the_site(text: str, source: str, repository: str) -> str:
    """A page as the site's Markdown has it.

    Links that leave the site lead to the repository. In code in a table, GitHub reads `\\|` as a bar that ends no cell;
    the site's Markdown shows the backslash, and needs none.
    """
    known = sources()
    here = posixpath.dirname(known[source])

    def link(found: re.Match[str]) -> str:
        path, anchor = found["path"], found["anchor"] or ""
        if not path:
            return anchor
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if target in known:
            return posixpath.relpath(known[target], here or ".") + anchor
        if target.startswith("docs/images/"):
            return posixpath.relpath(target.removeprefix("docs/"), here or ".")
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{repository}/{kind}/main/{target}{anchor}"

    def row(found: re.Match[str]) -> str:
        return _CODE.sub(lambda code: code[0].replace("\\|", "|"), found[0])

    def prose(part: str) -> str:
        return _ROW.sub(row, _LINK.sub(link, part))

    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts += [prose(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, prose(text[end:])])


def titled(path: Path) -> str:
    """The title of a page."""
    return path.read_text("utf-8").split("# ", 1)[1].splitlines()[0].replace("`", "")


def contents() -> tuple[Entry, ...]:
    """The sections of docs/index.md with their pages. A page that a later section names again stays where it was."""
    named: set[str] = set()
    sections: list[Entry] = []
    for section in (ROOT / "docs/index.md").read_text("utf-8").split("\n## ")[1:]:
        heading, _, body = section.partition("\n")
        groups: list[Entry] = []
        for part in re.split(r"^(?=### )", body, flags=re.MULTILINE):
            group = part.partition("\n")[0].removeprefix("### ") if part.startswith("### ") else ""
            entries = tuple(_entries(part, named))
            groups += [Entry(group, entries=entries)] if group else entries
        sections.append(Entry(heading, entries=tuple(groups)))
    return tuple(sections)


def _entries(text: str, named: set[str]) -> Iterator[Entry]:
    """The pages that a list or a table links to, with what the list says about them."""
    known = sources()
    for line in re.sub(r"\n +(?=\S)", " ", text).splitlines():  # an item of a list may have several lines
        for found in _ENTRY.finditer(line):
            source = posixpath.normpath(posixpath.join("docs", found["path"]))
            if source in named or source not in known:
                continue
            named.add(source)
            about = line[found.end() :].removeprefix(": ") if line[found.end() :].startswith(": ") else ""
            folder = ROOT / source.removesuffix(".md")
            below = tuple(
                Entry(titled(path), str(path.relative_to(ROOT / "docs")))
                for path in (sorted(folder.glob("*.md")) if folder.is_dir() else ())
                if str(path.relative_to(ROOT)) not in named
            )
            title = titled(ROOT / source) if line.startswith("|") else found["title"]
            yield Entry(title[:1].upper() + title[1:], known[source], about, below)


def api_pages() -> Iterator[tuple[str, str, str]]:
    """The pages of each public module: the module, the topic or "" for its first page, and the text."""
    for name in public_modules():
        module = importlib.import_module(name)
        names: dict[int, list[str]] = {}
        for public in sorted(
            module.__all__, key=lambda public: (not inspect.isroutine(getattr(module, public)), public)
        ):
            if not inspect.ismodule(value := getattr(module, public)):
                names.setdefault(id(value), []).append(public)
        parts = [f"# {name}", linked(inspect.getdoc(module) or "")]
        entries = {first: _entry(module, first, others) for first, *others in names.values()}
        if name not in TOPICS:
            yield name, "", "\n\n".join([*parts, *entries.values()]) + "\n"
            continue
        topics = {public: topic_of(name, public) for public in entries}
        table = [
            f"| [`{public}`]({_file_of(topics[public])}#{name}.{public}) | {_summary(getattr(module, public))} |"
            for public in sorted(entries, key=str.lower)
        ]
        yield name, "", "\n\n".join([*parts, "\n".join(["| name | what it is |", "|---|---|", *table])]) + "\n"
        for topic in TOPICS[name]:
            own = [entry for public, entry in entries.items() if topics[public] == topic]
            yield name, topic, "\n\n".join([f"# {topic}", f"From `{name}`.", *own]) + "\n"


def _entry(module: ModuleType, first: str, others: Sequence[str]) -> str:
    shown = f"::: {module.__name__}.{first}"
    value = getattr(module, first)
    if inherited := inherited_by(value):
        shown += f"\n    options:\n      inherited_members: [{', '.join(inherited)}]"
        shown += "\n      show_bases: false" if set(value.__bases__) <= {*WITHOUT_A_PAGE} else ""
    aliases = [f'<a id="{module.__name__}.{other}"></a>`{other}` is another name of it.' for other in others]
    return "\n\n".join([shown, *aliases])


def inherited_by(value: Any) -> Sequence[str]:
    """The public members of a class that it has from one without a page."""
    bases = value.__mro__[1:] if inspect.isclass(value) else ()
    names = dict.fromkeys(name for base in bases if base in WITHOUT_A_PAGE for name in vars(base))
    return [name for name in names if not name.startswith("_") and name not in vars(value)]


def _summary(value: Any) -> str:
    """The first sentence about a class or a function."""
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return "A type alias."
    paragraph = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    return ended(re.split(r"(?<=[.?])(?: |$)|:(?: |$)", paragraph)[0]).replace("|", "\\|")


def _file_of(topic: str) -> str:
    """The page of a topic, in the folder of its module."""
    return f"{topic.lower().replace(' ', '-') or 'index'}.md"


def topic_of(module: str, public: str) -> str:
    """The topic of a public name, by the module from which its stub imports it."""
    source = _sources_of(module)[public].removeprefix("evalstone.")
    fits = [topic for topic, begins in TOPICS[module].items() if f"{source}.".startswith(begins)]
    if len(fits) != 1:
        raise SystemExit(f"TOPICS has {len(fits)} topics of {module} for {source}, which has {public}; expected: 1")
    return fits[0]


@functools.cache
def _sources_of(module: str) -> Mapping[str, str]:
    found = importlib.util.find_spec(module)
    assert found
    assert found.origin
    tree = ast.parse(Path(found.origin).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {name.asname or name.name: node.module or "" for node in imports for name in node.names}


def public_modules() -> Mapping[str, str]:
    """The modules that are public, in the order of docs/stability.md, with what it says about them."""
    table = (ROOT / "docs/stability.md").read_text("utf-8").split("## Python")[1].split("\n\n- ")[0]
    return dict(re.findall(r"^\| `(evalstone[\w.]*)` \| (.*) \|$", table, flags=re.MULTILINE))


def modules_page() -> str:
    """The first page of the reference: the modules."""
    rows = [f"| [`{name}`]({name}/index.md) | {about} |" for name, about in public_modules().items()]
    return "\n".join(["# Python", "", "| module | content |", "|---|---|", *rows, ""])


def write(site: Path = SITE, version: str = "") -> None:
    """Write the pages and the configuration into a folder. version: the folder of the site beside those of others."""
    about = project()
    urls = about["urls"]
    pages = site / "docs"
    shutil.rmtree(pages, ignore_errors=True)
    for source, page in sources().items():
        to = pages / page
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(on_the_site((ROOT / source).read_text("utf-8"), source, urls["Repository"]), "utf-8")
    shutil.copytree(ROOT / "docs/images", pages / "images")
    shutil.copy(ROOT / "tools/site.css", pages)
    shutil.copytree(ROOT / "schemas", pages / "schemas")  # whose `$id` is their address here
    modules: list[Entry] = []
    (pages / "api").mkdir()
    (pages / "api/index.md").write_text(modules_page(), "utf-8")
    for module, topic, text in api_pages():
        page = f"api/{module}/{_file_of(topic)}"
        (pages / page).parent.mkdir(parents=True, exist_ok=True)
        (pages / page).write_text(text, "utf-8")
        if topic:
            of = modules.pop()
            modules.append(replace(of, entries=(*of.entries, Entry(topic, page))))
        else:
            modules.append(Entry(module, page))
    sections = tuple(
        Entry(one.title, entries=(*one.entries, Entry("Python", "api/index.md", entries=tuple(modules))))
        if one.title == "Reference"
        else one
        for one in contents()
    )
    settings = {
        "site_name": about["name"],
        "site_description": about["description"],
        "site_url": urls["Documentation"] + (f"{version}/" if version else ""),
        "repo_url": urls["Repository"],
        "nav": [{"Home": HOME}, *(section.nav() for section in sections), {"All pages": CONTENTS}],
        "llms": {one.title: [{page.page: page.about} for page in one.pages()] for one in sections},
    }
    if version:
        settings["extra"] = {"version": {"provider": "mike"}}
    (site / "zensical.toml").write_text(configuration(settings), "utf-8")


def configuration(settings: Mapping[str, Any]) -> str:
    """zensical.toml: what is the same in each site is in tools/zensical.toml."""
    text = (ROOT / "tools/zensical.toml").read_text("utf-8")
    keys = "".join(f"{key} = {_toml(value)}\n" for key, value in settings.items() if key != "llms")
    sections = "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in settings["llms"].items())
    return f"[project]\n{keys}\n{text}\n[project.plugins.llmstxt.sections]\n{sections}"


def _toml(value: str | Sequence[Any] | Mapping[str, Any]) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items()) + " }"
    if not isinstance(value, str):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def build(site: Path = SITE, version: str = "") -> Path:
    """Write the site's sources into a folder, and build it there: the folder of its pages."""
    write(site, version)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=site, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    print(done.stdout, end="")
    done.check_returncode()
    check_docstrings(done.stdout)
    return site / "html"


def check_docstrings(said: str) -> None:
    """Raise SystemExit if griffe can't read parameters. said: the output of the build."""
    if wrong := [line for line in said.splitlines() if line.startswith("griffe: ")]:
        raise SystemExit(f"griffe can't read {count(len(wrong), 'parameter')} of docstrings, such as {wrong[0]}")


def add(built: Path, into: Path, version: str) -> None:
    """Put a built site into a folder of versions, in place of one of the same minor version."""
    minor = minor_of(version)
    into.mkdir(parents=True, exist_ok=True)
    file = into / "versions.json"
    there = {each["version"]: each["title"] for each in json.loads(file.read_text("utf-8"))} if file.is_file() else {}
    there[minor] = version
    newest, *older = sorted(there, key=_order, reverse=True)
    shutil.rmtree(into / minor, ignore_errors=True)
    shutil.copytree(built, into / minor)
    shutil.copytree(built / "schemas", into / "schemas", dirs_exist_ok=True)
    for name in ("404.html", "llms.txt", "llms-full.txt"):
        shutil.copy(into / newest / name, into)
    (into / "index.html").write_text(REDIRECT.format(newest), "utf-8")
    (into / ".nojekyll").touch()
    rows = [
        {"version": each, "title": there[each], "aliases": ["latest"] if each == newest else []}
        for each in (newest, *older)
    ]
    file.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


def minor_of(version: str) -> str:
    """The folder of a version: 0.1 of 0.1.2."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"{version} isn't a release; versions of the site are of releases, such as 0.1.0")
    return version.rpartition(".")[0]


def _order(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split(".")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build the documentation site in .site/html.")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="Add it to the versions in this folder.")
    if (folder := parser.parse_args().into) is None:
        build()
    else:
        number = project()["version"]
        add(build(version=minor_of(number)), folder, number)
