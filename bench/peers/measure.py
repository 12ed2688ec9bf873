"""What the peers' scripts share. They run in the peer's environment, where there is no evalstone, so this has none.

    python bench/peers/with_autoevals.py RECORDS.jsonl AT_ONCE        (OPENAI_BASE_URL names the server)

A script reads the records, scores them with the library as its documentation shows, and prints one line of JSON: how
many were scored, wall seconds and processor seconds. Imports and one record to warm up are not counted.
"""

from __future__ import annotations

import asyncio
import json
import math
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "gpt-4o-mini"


@dataclass(frozen=True)
class Case:
    """A record: question, answer, passages."""

    question: str
    answer: str
    contexts: list[str]


def used() -> float:
    """Seconds of processor time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def is_score(value: Any) -> bool:
    """Whether it is a number or a yes or no, and not what stands for none."""
    return isinstance(value, int | float) and not math.isnan(value)


def measured(work: Callable[[Sequence[Case], int], Sequence[Any]]) -> None:
    """Run a peer's work over the records, and print what it took."""
    cases = [Case(**json.loads(line)) for line in Path(sys.argv[1]).read_text("utf-8").splitlines()]
    at_once = int(sys.argv[2])
    work(cases[:1], 1)
    wall, before = time.perf_counter(), used()
    scores = work(cases, at_once)
    wall, spent = time.perf_counter() - wall, used() - before
    print(json.dumps({"scored": sum(map(is_score, scores)), "wall": wall, "cpu": spent}), flush=True)


def together(score: Callable[[Case], Awaitable[Any]], cases: Sequence[Case], at_once: int) -> list[Any]:
    """The scores of all cases, so many under way at once; an error stands in the place of its score."""

    async def work() -> list[Any]:
        gate = asyncio.Semaphore(at_once)

        async def one(case: Case) -> Any:
            async with gate:
                return await score(case)

        return await asyncio.gather(*(one(case) for case in cases), return_exceptions=True)

    return asyncio.run(work())
