"""ragas: its faithfulness, two calls a record."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from measure import MODEL, Case, measured, together

faithfulness: Any = import_module("ragas.metrics.collections").Faithfulness
factory: Any = import_module("ragas.llms").llm_factory
client: Any = import_module("openai").AsyncOpenAI


def work(cases: Sequence[Case], at_once: int) -> list[Any]:
    scorer = faithfulness(llm=factory(MODEL, client=client()))

    async def score(case: Case) -> Any:
        result = await scorer.ascore(user_input=case.question, response=case.answer, retrieved_contexts=case.contexts)
        return result.value

    return together(score, cases, at_once)


if __name__ == "__main__":
    measured(work)
