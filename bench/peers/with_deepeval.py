"""deepeval: its faithfulness, four calls a record."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from measure import MODEL, Case, measured, together

faithfulness: Any = import_module("deepeval.metrics").FaithfulnessMetric
test_case: Any = import_module("deepeval.test_case").LLMTestCase


def work(cases: Sequence[Case], at_once: int) -> list[Any]:
    async def score(case: Case) -> Any:
        made = test_case(input=case.question, actual_output=case.answer, retrieval_context=case.contexts)
        return await faithfulness(model=MODEL).a_measure(made, _show_indicator=False)

    return together(score, cases, at_once)


if __name__ == "__main__":
    measured(work)
