"""An agent whose tool is mocked: no live call is made.

In place of the mock, `"record:calls.jsonl"` calls the tool and records it, and `"replay:calls.jsonl"` replays that.
"""

from __future__ import annotations

from pathlib import Path

from evalstone import evaluate
from evalstone.targets import Tools

YEARS = {"Ada Lovelace": 1815, "Alan Turing": 1912, "Grace Hopper": 1906}
CASES = Path(__file__).with_name("cases.jsonl")

tools = Tools()


@tools
def look_up(name: str) -> int:
    """The year in which somebody was born."""
    raise ConnectionError("the encyclopedia can't be reached")


def agent(*, input: str) -> str:
    """An answer from the encyclopedia."""
    name = next(name for name in YEARS if name in input)
    return f"{name} was born in {look_up(name)}."


if __name__ == "__main__":
    target = {"function": agent, "tools": Tools.mock({"look_up": YEARS.get})}
    print(evaluate(CASES, ["contains", "tool_called(tool='look_up')"], target=target, ledger=None))
