"""pydantic-evals: a judge by a rubric over a dataset, one call a record."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from measure import MODEL, Case, measured

evals: Any = import_module("pydantic_evals")
judge: Any = import_module("pydantic_evals.evaluators").LLMJudge
model: Any = import_module("pydantic_ai.models.openai").OpenAIChatModel

RUBRIC = "Every claim of the output is supported by the passages in the input."


def work(cases: Sequence[Case], at_once: int) -> list[Any]:
    answers = {str(n): case.answer for n, case in enumerate(cases)}

    async def answer(inputs: dict[str, Any]) -> str:
        return answers[inputs["id"]]

    rows = [
        evals.Case(name=str(n), inputs={"id": str(n), "question": case.question, "passages": case.contexts})
        for n, case in enumerate(cases)
    ]
    evaluators = [judge(rubric=RUBRIC, model=model(MODEL), include_input=True)]
    dataset = evals.Dataset(name="faithfulness", cases=rows, evaluators=evaluators)
    report = asyncio.run(dataset.evaluate(answer, max_concurrency=at_once, progress=False))
    return [next((result.value for result in case.assertions.values()), None) for case in report.cases]


if __name__ == "__main__":
    measured(work)
