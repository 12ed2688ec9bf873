"""An agent with tools, and runs of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalstone import Failed, Run, evaluate
from evalstone.targets import Tools

ANSWERED = "regex(pattern='.')"
CASES = [{"id": f"q{n}", "input": f"question {n}"} for n in range(3)]


class Shop:
    """What an agent works on: counts how often its functions are really called."""

    def __init__(self, tools: Tools) -> None:
        self.calls: list[str] = []

        @tools
        def search(query: str, limit: int = 3) -> list[str]:
            self.calls.append(query)
            if "2" in query:
                raise KeyError("no such thing")
            return [f"{query} {n}" for n in range(limit)]

        @tools
        async def price(*, item: str) -> dict[str, Any]:
            self.calls.append(item)
            await asyncio.sleep(0)
            return {"item": item, "euros": len(item)}

        self.search, self.price = search, price

    async def agent(self, *, input: str, trial: int) -> str:
        try:
            found = self.search(input, limit=trial)
        except KeyError as error:
            found = [str(error)]
        prices = await asyncio.gather(*(self.price(item=item) for item in found))
        return f"{found} {prices}"


def outputs(run: Run) -> list[Any]:
    return [sample.output for sample in run.samples or ()]


def errors(run: Run) -> list[str]:
    return [
        outcome.error.removeprefix("the target failed: ")
        for record in run
        if isinstance(outcome := record.outcome, Failed)
    ]


def run_it(target: Any, trials: int = 1, cases: Any = CASES, **options: Any) -> Run:
    return evaluate(cases, ANSWERED, target=target, trials=trials, ledger=None, **options)


def one(target: Any, **options: Any) -> Run:
    return run_it(target, cases=CASES[:1], **options)


def recorded(path: Path, shop: Callable[[Tools], Callable[..., Any]], **options: Any) -> Run:
    return run_it(shop(Tools.record(path)), **options)
