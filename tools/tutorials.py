"""Run a tutorial as its reader does: save its files, type its commands, compare what they print with what it shows.

    python tools/tutorials.py docs/tutorials/rag.md        (the commands that print something else, and what they print)

A block of the kind `console` has commands behind `$ ` and their output. A block below "Save this as `NAME`:" or
"Replace `NAME` …:" is a file, and a paragraph "In `NAME`, change `OLD` to `NEW`…" an edit of one.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COLUMNS = 84
"""The width at which the pages show output: that of a block on the site. Longer lines are folded between words."""
ELIDED = "…"
"""A line of a page that stands for one or more lines of output."""
HOME = "/home/you"
"""The folder of the page in outputs."""
MARK = "\x1e"
"""What separates the outputs."""
STEP = re.compile(
    r"(?:^(?:Save this as|Replace) `(?P<file>[^`\n]+)`[^`\n]*:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$"
    r"|^In `(?P<edited>[^`\n]+)`, change `(?P<old>[^`\n]+)` to `(?P<new>[^`\n]+)`",
    re.MULTILINE | re.DOTALL,
)
VARIES = re.compile(r"\d{8}-\d{6}-[0-9a-f]{12}|(?<=-)[0-9a-f]{12}(?=\.json)|\d+\.\d s\b")
"""Run IDs, names of calibrations of a file, and times."""
EDIT = """
import pathlib, sys
name, old, new = sys.argv[1:]
text = pathlib.Path(name).read_text("utf-8")
assert text.count(old) == 1, f"{name}: {old!r} is there {text.count(old)} times"
pathlib.Path(name).write_text(text.replace(old, new), "utf-8")
"""


@dataclass(frozen=True)
class Command:
    """A command of a page, and what it prints there."""

    text: str
    shown: str


def commands(block: str) -> Iterator[Command]:
    """The commands of a block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command = re.match(r"(?:.*\\\n)*.*\n", part)
        assert command is not None
        yield Command(command[0].rstrip("\n"), part[command.end() :])


def read(page: str) -> tuple[str, Sequence[Command]]:
    """The script of a page, which prints a mark before the output of each command, and the commands."""
    lines = [f"mark() {{ local code=$?; printf '{MARK}'; return $code; }}"]
    found: list[Command] = []
    for number, step in enumerate(STEP.finditer(page)):
        if step["edited"]:
            words = (sys.executable, "-c", EDIT, step["edited"], step["old"], step["new"])
            lines.append(shlex.join(words))
        elif step["language"] == "console":
            for command in commands(step["text"]):
                found.append(command)
                lines += ["mark", command.text]
        elif step["file"]:
            lines.append(f"cat > {shlex.quote(step['file'])} <<'END {number}'\n{step['text']}END {number}")
    return "\n".join(lines), found


def outputs(page: str, folder: Path) -> list[tuple[Command, str]]:
    """The commands of a page with what they print, in an empty folder."""
    script, found = read(page)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(COLUMNS), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    before, *printed = done.stdout.replace(str(folder.resolve()), HOME).split(MARK)
    assert not before, before
    return list(zip(found, map(folded, printed), strict=True))


def folded(text: str) -> str:
    """A text whose long lines, such as those of errors, are folded between words."""
    lines = (
        textwrap.wrap(line, COLUMNS, break_long_words=False, break_on_hyphens=False) if len(line) > COLUMNS else [line]
        for line in text.splitlines()
    )
    return "".join(f"{line}\n" for line in itertools.chain.from_iterable(lines))


def same(shown: str, printed: str) -> bool:
    """Whether a command printed what its page shows."""
    parts = [r"(?:.*\n)+?" if line == ELIDED else re.escape(line) + r"\n" for line in compared(shown)]
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in compared(printed))) is not None


def compared(text: str) -> list[str]:
    """The lines of a text without what varies, and without spaces at their ends."""
    lines = [VARIES.sub("*", line).rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def differences(page: str, folder: Path) -> list[tuple[str, str]]:
    """The commands of a page that print something else than it shows, and what they print."""
    return [(command.text, printed) for command, printed in outputs(page, folder) if not same(command.shown, printed)]


def main() -> None:
    """Print what differs."""
    with tempfile.TemporaryDirectory() as folder:
        for command, printed in differences(Path(sys.argv[1]).read_text("utf-8"), Path(folder)):
            print(f"$ {command}\n{printed}")


if __name__ == "__main__":
    main()
