"""How fast the lexical judge is on one core: responses a second, each with passages of its own.

    python bench/lexical_speed.py [--responses 2000]

A typical response: 40 words out of, or beside, three passages of 80 words. Reading the passages is counted. The words
are drawn from the bundled demo data, so that stems, weights and matches are those of real text.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence

from evalstone.datasets import load
from evalstone.datasets.demo import DEMO_DATA
from evalstone.judges.lexical import LexicalJudge
from evalstone.questions import ListClaims, VerifyClaims
from evalstone.questions.verdict import ClaimSupported

PASSAGES, PASSAGE_WORDS, ANSWER_WORDS = 3, 80, 40


def cases(count: int) -> list[tuple[str, tuple[str, ...]]]:
    """Answers and passages of the sizes above, no two contexts the same."""
    draw = random.Random(0)
    pool = [sample for sample in load(DEMO_DATA) if sample.output and sample.context]
    made: list[tuple[str, tuple[str, ...]]] = []
    for _ in range(count):
        sample = draw.choice(pool)
        passages = tuple(_stretch(" ".join(sample.context or ()), PASSAGE_WORDS, draw) for _ in range(PASSAGES))
        made.append((_stretch(sample.output or "", ANSWER_WORDS, draw), passages))
    return made


def _stretch(text: str, length: int, draw: random.Random) -> str:
    found = text.split()
    while len(found) < 2 * length:
        found += found
    start = draw.randrange(len(found) - length)
    return " ".join(found[start : start + length])


async def _judge(work: Sequence[tuple[str, tuple[str, ...]]], *, by_claim: bool) -> float:
    judge = LexicalJudge()
    started = time.process_time()
    for answer, passages in work:
        if by_claim:
            claims = (await judge.answer(ListClaims(text=answer))).value
            await judge.answer(VerifyClaims(claims=claims, context=passages))
        else:
            await judge.answer(ClaimSupported(claim=answer, context=passages))
    return time.process_time() - started


def per_second(count: int = 1000, *, by_claim: bool = False) -> float:
    """Responses a second of processor time: a fact check of the whole response, or its claims listed and verified."""
    work = cases(count)
    asyncio.run(_judge(cases(20), by_claim=by_claim))
    return count / asyncio.run(_judge(work, by_claim=by_claim))


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description="Measure the lexical judge's speed on one core.")
    parser.add_argument("--responses", type=int, default=2000)
    count: int = parser.parse_args().responses
    print(f"fact check of whole responses: {per_second(count):,.0f} a second")
    print(f"claims listed and verified:    {per_second(count, by_claim=True):,.0f} a second")


if __name__ == "__main__":
    main()
