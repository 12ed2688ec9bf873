"""Attack the command line and print what held: a table of attack, tries and result.

    python -m tools.attack                  all of it, in under ten minutes
    python -m tools.attack redirects XSS    those whose title has one of the words

Everything happens on loopback and in temporary folders. The exit code is 1 if an attack succeeded.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.attack import endpoints, files, interruptions, texts

ATTACKS = {**endpoints.ATTACKS, **files.ATTACKS, **interruptions.ATTACKS, **texts.ATTACKS}
WIDTH = 140
"""The width in characters of a table that is piped."""


def main(words: list[str]) -> int:
    """Run the attacks that are named; the exit code."""
    chosen = {
        title: attack
        for title, attack in ATTACKS.items()
        if not words or any(word.lower() in title.lower() for word in words)
    }
    screen = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else WIDTH)
    table = Table("attack", "tries", "seconds", "result", box=None)
    broken = 0
    for title, attack in chosen.items():
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="attack-", ignore_cleanup_errors=True) as folder:
            result = attack(Path(folder))
        held = "held" if not result.problems else "DID NOT HOLD"
        text = "\n".join([f"{held}: {result.seen}", *(f"- {problem}" for problem in result.problems[:5])])
        table.add_row(title, f"{result.tries:,}", f"{time.monotonic() - started:.0f}", text)
        print(f"{title}: {held}", file=sys.stderr, flush=True)
        broken += bool(result.problems)
    screen.print(table)
    screen.print(f"\n{len(chosen) - broken} of {len(chosen)} attacks held off.")
    return 1 if broken or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
