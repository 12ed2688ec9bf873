"""Scorers and judges that a worker can import."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalstone import JudgeAnswer, Record, Sample, Score, Scorer
from evalstone.errors import ConfigError, LedgerError, ProviderTimeout
from evalstone.judges import Judge
from evalstone.ledger import live as rows
from evalstone.types import Usage


def worker(output: str) -> Score:
    """Which process scores."""
    print("printed by a scorer")
    return Score(1.0, evidence=os.getpid())


async def slow(output: str) -> float:
    """Takes a moment."""
    await asyncio.sleep(0.05)
    return 1.0


async def endless(output: str) -> float:
    """Never ends."""
    await asyncio.sleep(3600)
    return 1.0


async def exiting(output: str) -> float:
    """Raises what would end a program."""
    raise SystemExit(4)


@dataclass(frozen=True)
class Keep:
    """Appends what is scored to a file."""

    path: Path

    def __call__(self, record: Record, sample: Sample, scorer: Scorer) -> None:
        with self.path.open("a") as file:
            file.write(f"{record.signature} {sample.output} {record.value} {scorer.version}\n")


class BrokenJudge(Judge):
    """Can't be reached while there is no such file."""

    path: Path

    @property
    def identity(self) -> str:
        return "broken/judge"

    def price(self, usage: Usage) -> float | None:
        return None

    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        if not self.path.exists():
            raise ProviderTimeout("no answer")
        reply = json.dumps(question.example())
        return JudgeAnswer(value=question.parse(reply), judge=self.identity, reply=reply, cost=None)


class RefusingJudge(Judge):
    """Refuses the key while there is no such file, and says each refusal in another one."""

    path: Path

    @property
    def identity(self) -> str:
        return "refusing/judge"

    def price(self, usage: Usage) -> float | None:
        return None

    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        if not self.path.exists():
            with self.path.with_suffix(".refused").open("a") as file:
                file.write("no\n")
            raise ConfigError("refused")
        reply = json.dumps(question.example())
        return JudgeAnswer(value=question.parse(reply), judge=self.identity, reply=reply, cost=None)


class PaidJudge(Judge):
    """Says yes to everything for a dollar, and notes each call in a file."""

    path: Path
    pause: float = 0.0

    @property
    def identity(self) -> str:
        return "paid/judge"

    def price(self, usage: Usage) -> float | None:
        return 1.0

    async def answer(self, question: Any, repeat: int = 0) -> JudgeAnswer[Any]:
        with self.path.open("a") as file:
            file.write(f"{question.fingerprint}\n")
        await asyncio.sleep(self.pause)
        reply = json.dumps(question.example())
        return JudgeAnswer(value=question.parse(reply), judge=self.identity, reply=reply, usage=Usage(1, 1), cost=1.0)


async def pause() -> None:
    """Let others go on."""
    await asyncio.sleep(0.01)


async def deadly(output: str) -> float:
    """Ends the worker if the answer says so, while others are being scored."""
    if "deadly" in output:
        os._exit(3)
    await asyncio.sleep(0.05)
    return 1.0


def deadly_once(output: str) -> float:
    """Ends the first worker that scores."""
    with contextlib.suppress(FileExistsError):
        Path(os.environ["BROKEN"]).touch(exist_ok=False)
        os._exit(3)
    return 1.0


def breaking(output: str) -> float:
    """Breaks the ledger of this worker, once."""
    with contextlib.suppress(FileExistsError):
        Path(os.environ["BROKEN"]).touch(exist_ok=False)

        def broken(*_: object) -> None:
            raise LedgerError("the disk is full")

        rows.write_frame = rows.finish = broken
    return 1.0


async def steady(output: str) -> float:
    """Takes longer than a frame, and shorter than the worker's last seconds."""
    await asyncio.sleep(0.3)
    return 1.0


def reads_input(output: str) -> float:
    """How much a scorer can read on standard input, which has the frames of the worker."""
    return float(not sys.stdin.read())


def refused(message: str) -> None:
    """What can't be read."""
    raise ValueError(message)


class Refused:
    """A value whose unpickling fails with a message."""

    def __init__(self, message: str) -> None:
        self.message = message

    def __reduce__(self) -> Any:
        return refused, (self.message,)
