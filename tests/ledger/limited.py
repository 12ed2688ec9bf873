"""A process that asks a judge questions, under limits that it shares with others: `python -m tests.ledger.limited`.

Each line of its input is a job, with the arguments of `main`. A further line begins it, and its result is a line, too.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from evalstone.errors import JudgeError, RunAborted
from evalstone.judges import ModelJudge
from evalstone.models.limits import Limits
from evalstone.questions.claims import ListClaims
from evalstone.run.opening import open_session


async def main(
    *,
    name: str,
    ledger: str,
    base_url: str,
    questions: int,
    concurrency: int = 32,
    budget: float | None = None,
    scope: str = "",
    **limits: Any,
) -> None:
    judge = ModelJudge("vllm/test", base_url=base_url, prices=(1000.0, 1000.0), limits=Limits(**limits))
    options: dict[str, Any] = {"concurrency": concurrency, "budget": budget, "scope": scope}
    async with open_session(judge, ledger=ledger, **options) as session:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        asked = (session.ask(ListClaims(text=f"Text {n} of {name}.")) for n in range(questions))
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
    told = {
        type(outcome).__name__: str(outcome) for outcome in outcomes if isinstance(outcome, RunAborted | JudgeError)
    }
    expected = (RunAborted, JudgeError)
    unexpected = [each for each in outcomes if isinstance(each, BaseException) and not isinstance(each, expected)]
    if unexpected:
        raise unexpected[0]
    answered = sum(not isinstance(outcome, BaseException) for outcome in outcomes)
    print(json.dumps({"answered": answered, "told": told}), flush=True)


if __name__ == "__main__":
    while job := sys.stdin.readline():
        asyncio.run(main(**json.loads(job)))
