"""What evalstone adds to a call of a target: CPU milliseconds per call of an async function that returns a text.

    python bench/targets.py [calls]

A scorer in code without a judge scores each answer, so that two runs are measured: with the target, and on the same
answers without one. The difference is the target's. Without a ledger, with one, and with one at four trials or in
conversations of four turns, each of which is a call.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evalstone import evaluate

CHECK = "contains(expected='1815')"
LIMIT = 0.3


async def agent(*, input: str) -> str:
    """Answer at once."""
    return "Ada was born in 1815."


async def talk(*, messages: list[Any]) -> str:
    """Answer at once in a conversation."""
    return f"Ada was born in 1815. ({len(messages)})"


def cpu_ms(samples: list[dict[str, Any]], ledger: Path | None, **options: Any) -> float:
    """The CPU milliseconds of a run, of all threads."""
    started = time.process_time()
    evaluate(samples, CHECK, ledger=ledger, progress=False, **options)
    return 1000 * (time.process_time() - started)


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    asked = [{"id": str(n), "input": f"When was Ada born? ({n})"} for n in range(calls)]
    answered = [{**sample, "output": "Ada was born in 1815."} for sample in asked]
    cpu_ms(asked[:50], None, target=agent)  # imports
    print(f"{calls:,} calls; at most {LIMIT} ms each")
    print(f"{'':22} {'target':>8} {'without':>8} {'per call':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for name, ledger, trials in (("no ledger", None, 1), ("ledger", "a.db", 1), ("ledger, 4 trials", "b.db", 4)):
            count = calls // trials
            paths = [None if ledger is None else Path(folder, f"{n}{ledger}") for n in range(6)]
            used = min(cpu_ms(asked[:count], path, target=agent, trials=trials) for path in paths[:3])
            # Four trials score four times as many answers.
            base = min(cpu_ms(answered[: count * trials], path) for path in paths[3:])
            per_call = (used - base) / (count * trials)
            print(f"{name:22} {used:>8.0f} {base:>8.0f} {per_call:>9.3f}")
        held = [{"id": str(n), "turns": [f"When? ({n}, {turn})" for turn in range(4)]} for n in range(calls // 4)]
        for name, ledger in (("no ledger, 4 turns", None), ("ledger, 4 turns", "c.db")):
            paths = [None if ledger is None else Path(folder, f"{n}{ledger}") for n in range(6)]
            used = min(cpu_ms(held, path, target=talk) for path in paths[:3])
            base = min(cpu_ms([{**sample, "output": "In 1815."} for sample in held], path) for path in paths[3:])
            print(f"{name:22} {used:>8.0f} {base:>8.0f} {(used - base) / (4 * len(held)):>9.3f}")


if __name__ == "__main__":
    main()
