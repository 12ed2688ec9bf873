"""Build the documentation site in `.site/html`: `make site`.

`docs/index.md` is the only list of pages: the navigation and `llms.txt` have its sections and its order. The API
reference has a page for each public module. A link or an anchor that leads nowhere ends the build.
"""

from __future__ import annotations

import functools
import importlib
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)#:\s]*)(?P<anchor>#[^)\s]+)?(?=\))")
_FENCE = re.compile(r"^( *```).*?^\1 *$", re.MULTILINE | re.DOTALL)
_ENTRY = re.compile(r"\[(?P<title>[^\]]+)\]\((?P<path>[^)#:]+)[^)]*\)")


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
    """A page with its links as they are on the site: those that leave it lead to the repository."""
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

    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(link, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(link, text[end:])])


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
    for line in text.splitlines():
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
            yield Entry(title, known[source], about, below)


def api_pages() -> Iterator[tuple[str, str]]:
    """A page for each public module, functions first: its name, and its text."""
    for name in public_modules():
        module = importlib.import_module(name)
        names: dict[int, list[str]] = {}
        for public in sorted(
            module.__all__, key=lambda public: (not inspect.isroutine(getattr(module, public)), public)
        ):
            if not inspect.ismodule(value := getattr(module, public)):
                names.setdefault(id(value), []).append(public)
        parts = [f"# {name}", inspect.getdoc(module) or ""]
        for first, *others in names.values():
            parts.append(f"::: {name}.{first}")
            parts += [f'<a id="{name}.{other}"></a>`{other}` is another name of it.' for other in others]
        yield name, "\n\n".join(parts) + "\n"


def public_modules() -> Sequence[str]:
    """The modules that are public, in the order of docs/stability.md."""
    table = (ROOT / "docs/stability.md").read_text("utf-8").split("## Python")[1].split("\n\n- ")[0]
    return re.findall(r"^\| `(evalstone[\w.]*)` \|", table, flags=re.MULTILINE)


def write(site: Path = SITE) -> None:
    """Write the pages and the configuration into a folder."""
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
    for module, text in api_pages():
        page = f"api/{module}.md"
        (pages / "api").mkdir(exist_ok=True)
        (pages / page).write_text(text, "utf-8")
        modules.append(Entry(module, page))
    sections = tuple(
        Entry(one.title, entries=(*one.entries, Entry("Python", entries=tuple(modules))))
        if one.title == "Reference"
        else one
        for one in contents()
    )
    settings = {
        "site_name": about["name"],
        "site_description": about["description"],
        "site_url": urls["Documentation"],
        "repo_url": urls["Repository"],
        "nav": [{"Home": HOME}, *(section.nav() for section in sections), {"All pages": CONTENTS}],
        "llms": {one.title: [{page.page: page.about} for page in one.pages()] for one in sections},
    }
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


def build(site: Path = SITE) -> Path:
    """Write the site's sources into a folder, and build it there: the folder of its pages."""
    write(site)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    subprocess.run(command, cwd=site, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
    return site / "html"


if __name__ == "__main__":
    build()
