"""Write the pages of docs/ that come out of the code: docs/scorers.md and a page for each scorer.

`python tools/make_docs.py` writes them; with `--check` nothing is written and a difference is an error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, TypeVar

from cli_page import CLI_PAGE, cli_page

from evalstone.questions.base import Question
from evalstone.scorers import SCORERS
from evalstone.scorers.base import Scorer, documentation, summary
from evalstone.types import Message, Sample, ToolCall

A = TypeVar("A")

SAMPLE = Sample(
    input="When was Ada born?",
    output="In 1815.",
    context=["Ada was born in 1815."],
    reference="Ada was born in 1815.",
    instructions="Answer in one sentence.",
    messages=[
        Message(role="user", content="When was Ada born?"),
        Message(role="assistant", content="In 1815.", tool_calls=[ToolCall(name="search", result="1815")]),
    ],
    metadata={"noisy_query": "When, in 1816?", "rubric": "- It names a year", "criterion": "A year is named"},
)
DOCS = Path(__file__).parents[1] / "docs"
MARK = "<!-- Written by tools/make_docs.py from the code; edit the docstrings there. -->\n\n"


def pages() -> Mapping[Path, str]:
    """Every generated page, by its path."""
    made = {DOCS / "scorers.md": table()}
    made.update({DOCS / "scorers" / f"{name}.md": page(name, kind) for name, kind in SCORERS.items()})
    return made


def table() -> str:
    """The page with all scorers."""
    rows = [
        "| scorer | needs | better | questions | calls alone | beside the others | what it measures |",
        "|---|---|---|---|---|---|---|",
    ]
    asked_of = {name: asyncio.run(asked_by(kind())) for name, kind in SCORERS.items() if kind.questions}
    for name, kind in SCORERS.items():
        alone = asked_of.get(name, set())
        others = set[str]().union(*(asked for other, asked in asked_of.items() if other != name))
        calls = f"{len(alone)} | {len(alone - others)}"
        asked = ", ".join(f"`{question.kind}`" for question in kind.questions) or "-"
        better = "lower" if kind.lower_is_better else "higher"
        needs = ", ".join(kind.required_fields) or "-"
        link = f"[{name}](scorers/{name}.md)"
        rows.append(f"| {link} | {needs} | {better} | {asked} | {calls} | {summary(kind)} |")
    told = (
        "# Scorers\n\n"
        "Scores lie in [0, scale]; the scale is 1 unless you set it. A sample that lacks a needed field is skipped\n"
        "before anything is asked.\n\n"
        "The calls are counted on one sample that has every field, with a claim or a statement in each list.\n"
        "Scorers that ask an equal question about a sample share the call: the column *beside the others* has the\n"
        "calls that a scorer adds when all the others run too. `python bench/calls.py` compares the retrieval set\n"
        "with @mastra/evals: 13 calls a record for its ten scorers together, 26 there.\n\n"
    )
    return MARK + told + "\n".join(rows) + "\n"


async def asked_by(scorer: Scorer) -> set[str]:
    """The fingerprints of the questions that a scorer asks about the sample; each is answered by its own example."""
    asked: set[str] = set()

    async def ask(question: Question[A]) -> A:
        asked.add(question.fingerprint)
        return question.parse(json.dumps(question.example()))

    await scorer.run(ask, SAMPLE)
    return asked


def page(name: str, kind: type[Scorer]) -> str:
    """The page of one scorer."""
    parts = [f"# {name}\n", documentation(kind).strip() + "\n", "## Parameters\n", _parameters(kind)]
    if kind.interpretation:
        bands = "\n".join(f"- from {floor:g}: {meaning}" for floor, meaning in kind.interpretation)
        parts += ["## How to read it (scale 1)\n", bands + "\n"]
    if kind.advice:
        parts += [f"## About a {'high' if kind.lower_is_better else 'low'} one\n", kind.advice + "\n"]
    return MARK + "\n".join(parts)


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
    made = {**pages(), CLI_PAGE: cli_page()}
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
