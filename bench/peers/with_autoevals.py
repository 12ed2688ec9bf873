"""autoevals: its faithfulness, two calls a record."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from measure import MODEL, Case, measured, together

autoevals: Any = import_module("autoevals")
faithfulness: Any = import_module("autoevals.ragas").Faithfulness
client: Any = import_module("openai").AsyncOpenAI


def work(cases: Sequence[Case], at_once: int) -> list[Any]:
    autoevals.init(client())
    scorer = faithfulness(model=MODEL)

    async def score(case: Case) -> Any:
        result = await scorer.eval_async(input=case.question, output=case.answer, context=case.contexts)
        return result.score

    return together(score, cases, at_once)


if __name__ == "__main__":
    measured(work)
