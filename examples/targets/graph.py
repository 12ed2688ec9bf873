"""An agent as LangGraph builds them: `invoke` takes a state with messages, and returns it with more of them.

A compiled graph of LangGraph is a target itself, since its schema says what it takes. This one has no schema, so a
function asks it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalstone import evaluate

YEARS = {"Ada Lovelace": 1815, "Alan Turing": 1912, "Grace Hopper": 1906}
CASES = Path(__file__).with_name("cases.jsonl")


class Graph:
    """Looks a year up with a tool, then answers."""

    def invoke(self, state: dict[str, Any]) -> dict[str, Any]:
        name = next(name for name in YEARS if name in state["messages"][-1]["content"])
        call = {"name": "look_up", "args": {"name": name}, "id": "call_1", "type": "tool_call"}
        return {
            "messages": [
                *state["messages"],
                {"type": "ai", "content": "", "tool_calls": [call]},
                {"type": "tool", "content": str(YEARS[name]), "tool_call_id": "call_1"},
                {"type": "ai", "content": f"{name} was born in {YEARS[name]}."},
            ],
        }


graph = Graph()


def agent(*, input: str) -> dict[str, Any]:
    """The graph's answer."""
    return graph.invoke({"messages": [{"type": "human", "content": input}]})


if __name__ == "__main__":
    run = evaluate(CASES, ["contains", "tool_called(tool='look_up')"], target=agent, ledger=None)
    print(run)
