"""The messages that pages quote are in the code, and the commands that they show exist with the options shown."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from evalstone.scorers.other_systems import SYSTEMS, table

ROOT = Path(__file__).parents[1]
WRITTEN = [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("[mt]*/*.md"))]
PAGES = [page for page in WRITTEN if page.name != "cli.md"]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
QUOTED = re.compile(r"“[^”]*”|\"[^\"\n]*\"|'[^'\n]*'")
"""Names and judged texts in a message."""
WORDS = re.compile(r"(?<![\w.\[-])[A-Za-z]+(?:'[a-z]+)?(?: [A-Za-z]+(?:'[a-z]+)?)*(?![\w=\[(])")
TOGETHER = 3
"""How many words in a row are looked up."""
MOST_MISSING = 0.34
"""The share of them that the code may put together from parts, such as a number and its noun."""
NO_MESSAGES = {
    "agents.md: faithfulness in turn 2",  # titles of scorers
    "agents.md: faithfulness in step search",
    "custom-scorers.md: pip install acme-eval",  # a package of the reader
    "live.md: if not response.body: return None",
    "local-models.md: lms load NAME --context-length N",
    "local-models.md: truncating input prompt",  # in the log of a server
    "other-tools.md: from deepeval import evaluate",
    "other-tools.md: from evalstone import evaluate",
    "other-tools.md: from langsmith import evaluate",
    "other-tools.md: from ragas import evaluate",
    "releasing.md: pip install evalstone",
    "view.md: evalstone run shop.jsonl --scorer faithfulness",
}

THEIRS = {row.theirs for system in SYSTEMS for row in table(system)}
"""Names of other systems, such as `deepeval test run`."""


def rows_of_words(message: str) -> Iterator[str]:
    """The words of a message, three in a row, without the names, numbers and marks between them."""
    for found in WORDS.findall(QUOTED.sub("; ", message)):
        words = found.split()
        yield from (" ".join(words[at : at + TOGETHER]) for at in range(len(words) - TOGETHER + 1))


def quotes(page: Path) -> Iterator[str]:
    """The messages that a page quotes: code that is made of words, and blocks of text without a table."""
    text = page.read_text("utf-8")
    for language, block in FENCED.findall(text):
        if language == "text" and "  " not in block:
            yield " ".join(block.split())
    for span in SPAN.findall(FENCED.sub("", text)):
        if re.fullmatch(r"[a-z][\w ,.:;'…%-]*", span) and not span.startswith("evalstone ") and span not in THEIRS:
            yield span


@functools.cache
def said() -> str:
    """All texts in the code, with a mark where a value is inserted."""
    found: list[str] = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append(
                    "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(" ".join(text.split()) for text in found)


QUOTES = {
    f"{page.name}: {quote}": quote
    for page in PAGES
    for quote in quotes(page)
    if any(True for _ in rows_of_words(quote))
}


@pytest.mark.parametrize("place", [place for place in QUOTES if place not in NO_MESSAGES])
def test_a_message_in_a_page_is_one_that_the_code_has(place: str) -> None:
    rows = list(rows_of_words(QUOTES[place]))
    missing = [row for row in rows if row not in said()]
    assert len(missing) <= MOST_MISSING * len(rows), missing


def test_what_is_no_message_is_still_in_its_page() -> None:
    assert set(QUOTES) >= NO_MESSAGES
    assert len(QUOTES) > 2 * len(NO_MESSAGES)


def test_a_reworded_message_is_not_found() -> None:
    assert all(row in said() for row in rows_of_words("no scorer was named"))
    assert not all(row in said() for row in rows_of_words("no scorer has been named"))


def commands() -> Iterator[tuple[str, str]]:
    """The commands that pages show, with the page of each."""
    for page in [ROOT / "README.md", *PAGES]:
        text = page.read_text("utf-8")
        lines = [line for language, block in FENCED.findall(text) if language == "sh" for line in joined(block)]
        for line in [*lines, *SPAN.findall(FENCED.sub("", text))]:
            if line.startswith("evalstone "):
                yield page.name, line.partition(" #")[0].partition(" | ")[0].strip()


def joined(block: str) -> list[str]:
    return block.replace("\\\n", " ").splitlines()


@functools.cache
def options() -> Mapping[str, set[str]]:
    """The options of each command, by the generated page."""
    sections = re.split(r"^## evalstone (.+)$", (ROOT / "docs/cli.md").read_text("utf-8"), flags=re.MULTILINE)
    return {
        name: {"--help", *re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text)}
        for name, text in zip(sections[1::2], sections[2::2], strict=True)
    }


@pytest.mark.parametrize(("page", "line"), sorted(set(commands())))
def test_a_command_in_a_page_exists_and_has_the_options_shown(page: str, line: str) -> None:
    words = line.split()[1:]
    if not words or words[0].startswith("-") or words[0] in ("…", "COMMAND"):
        return
    name = next((name for name in (" ".join(words[:2]), words[0]) if name in options()), None)
    if name is None:
        assert any(each.startswith(f"{words[0]} ") for each in options()), line
        return
    ours = re.sub(r"(scorers --from \S+) .*", r"\1", line)  # what follows may be an option of the other tool
    shown = re.findall(r"(?<!\S)--?[a-z][a-z-]*(?![\w'])", ours)
    assert set(shown) <= options()[name]
