"""Judge calls a record of the full set of retrieval scorers, each alone and all together.

    python bench/calls.py

The scorers run for real on one sample; every question is answered by its own example. Beside ours stand the calls that
@mastra/evals makes for the same scorer: its structured steps, and one for the reason.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, TypeVar

from evalstone import Sample, Scorer
from evalstone.questions.base import Question
from evalstone.scorers import SCORERS

A = TypeVar("A")

THEIRS = {
    "faithfulness": 3,
    "hallucination": 3,
    "answer_relevancy": 3,
    "context_relevance": 2,
    "context_precision": 2,
    "context_position": 2,
    "context_recall": 3,
    "context_usage": 2,
    "summarization": 3,
    "answer_similarity": 3,
}
SAMPLE = Sample(
    input="When was Ada born?",
    output="Ada was born in 1815. She wrote the first program.",
    context=["Ada was born in 1815 in London.", "Ada wrote a program."],
    reference="Ada was born in London in 1815.",
)


async def asked_by(scorer: Scorer) -> set[str]:
    """The fingerprints of the questions that a scorer asks about the sample."""
    asked: set[str] = set()

    async def ask(question: Question[A]) -> A:
        asked.add(question.fingerprint)
        return question.parse(json.dumps(question.example()))

    await scorer.run(ask, SAMPLE)
    return asked


def main() -> None:
    together: set[str] = set()
    rows: list[tuple[str, Any, Any, int]] = []
    for name, theirs in THEIRS.items():
        asked = asyncio.run(asked_by(SCORERS[name]()))
        rows.append((name, len(asked), len(asked - together), theirs))
        together |= asked
    print(f"{'scorer':20} {'alone':>6} {'beside those above':>19} {'@mastra/evals':>14}")
    for name, alone, beside, theirs in rows:
        print(f"{name:20} {alone:6} {beside:19} {theirs:14}")
    print(f"{'together':20} {sum(row[1] for row in rows):6} {len(together):19} {sum(THEIRS.values()):14}")


if __name__ == "__main__":
    main()
