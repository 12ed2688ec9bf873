"""Write the pages of docs/ that come out of the code: docs/scorers.md and a page for each scorer.

`python tools/make_docs.py` writes them; with `--check` nothing is written and a difference is an error.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from evalstone.engine import ALL_SCORERS
from evalstone.scorers.base import Scorer, summary

DOCS = Path(__file__).parents[1] / "docs"
MARK = "<!-- Written by tools/make_docs.py from the code; edit the docstrings there. -->\n\n"


def pages() -> Mapping[Path, str]:
    """Every generated page, by its path."""
    made = {DOCS / "scorers.md": table()}
    made.update({DOCS / "scorers" / f"{name}.md": page(name, kind) for name, kind in ALL_SCORERS.items()})
    return made


def table() -> str:
    """The page with all scorers."""
    rows = [
        "| scorer | needs | better | questions | judge calls alone | what it measures |",
        "|---|---|---|---|---|---|",
    ]
    for name, kind in ALL_SCORERS.items():
        asked = ", ".join(f"`{question.kind}`" for question in kind.asks) or "-"
        better = "lower" if kind.lower_is_better else "higher"
        needs = ", ".join(kind.required()) or "-"
        link = f"[{name}](scorers/{name}.md)"
        rows.append(f"| {link} | {needs} | {better} | {asked} | {len(kind.asks)} | {summary(kind)} |")
    told = (
        "# Scorers\n\n"
        "Scores lie in [0, scale]; the scale is 1 unless you set it. A sample that lacks a needed field is skipped\n"
        "before anything is asked. Scorers that ask an equal question about a sample share the call: beside\n"
        "`faithfulness`, `hallucination` costs none.\n\n"
    )
    return MARK + told + "\n".join(rows) + "\n"


def page(name: str, kind: type[Scorer]) -> str:
    """The page of one scorer."""
    parts = [f"# {name}\n", _definition(kind), "## Parameters\n", _parameters(kind)]
    if kind.bands:
        bands = "\n".join(f"- from {floor:g}: {meaning}" for floor, meaning in kind.bands)
        parts += ["## How to read it (scale 1)\n", bands + "\n"]
    if kind.advice:
        parts += [f"## About a {'high' if kind.lower_is_better else 'low'} one\n", kind.advice + "\n"]
    return MARK + "\n".join(parts)


def _definition(kind: type[Scorer]) -> str:
    """The module's docstring where the module is the scorer's own, else the class's."""
    module = inspect.getmodule(kind)
    own = [value for value in vars(module).values() if inspect.isclass(value) and issubclass(value, Scorer)]
    alone = sum(value.__module__ == kind.__module__ and "name" in vars(value) for value in own) == 1
    text = inspect.getdoc(module) if alone else inspect.getdoc(kind)
    return (text or "").strip() + "\n"


def _parameters(kind: type[Scorer]) -> str:
    rows = ["| parameter | default |", "|---|---|"]
    rows += [f"| `{field.name}` | {_default(field)} |" for field in fields(kind) if field.init]
    return "\n".join(rows) + "\n"


def _default(field: Field[Any]) -> str:
    if field.default is not MISSING:
        return f"`{field.default!r}`"
    if field.default_factory is not MISSING:
        return f"`{field.default_factory()!r}`"
    return "required"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    made = pages()
    stale = {path for path in (DOCS / "scorers").glob("*.md") if path not in made}
    different = [path for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text]
    if options.check:
        for path in [*different, *sorted(stale)]:
            print(f"{path.relative_to(DOCS.parent)} is not what the code says; run: make docs", file=sys.stderr)
        return 1 if different or stale else 0
    for path in stale:
        path.unlink()
    for path in different:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path], "utf-8")
    print(f"{len(different)} pages written, {len(stale)} removed, {len(made)} in all")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
