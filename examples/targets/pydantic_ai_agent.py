"""An agent of pydantic-ai. Its test model answers without a network: it calls every tool, then says this text.

Needs `pip install pydantic-ai-slim`.
"""

from __future__ import annotations

from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from evalstone import evaluate

CASES = Path(__file__).with_name("cases.jsonl")
bot = Agent(TestModel(custom_output_text="She was born in 1815."), instructions="Answer in one sentence.")

if __name__ == "__main__":
    run = evaluate(CASES, "contains", target=bot, ledger=None)
    print(run)
