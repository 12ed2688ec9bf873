"""openevals: its groundedness by a model, one call a record."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from measure import MODEL, Case, measured, together

make_judge: Any = import_module("openevals.llm").create_async_llm_as_judge
prompt: Any = import_module("openevals.prompts").RAG_GROUNDEDNESS_PROMPT
client: Any = import_module("openai").AsyncOpenAI


def work(cases: Sequence[Case], at_once: int) -> list[Any]:
    judge = make_judge(prompt=prompt, feedback_key="groundedness", judge=client(), model=MODEL)

    async def score(case: Case) -> Any:
        result = await judge(context="\n".join(case.contexts), outputs=case.answer)
        return result["score"]

    return together(score, cases, at_once)


if __name__ == "__main__":
    measured(work)
