"""An endpoint on loopback, and the check that a test leaves nothing open or under way behind."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from evalstone import ModelJudge, Run, evaluate
from evalstone._core.sync import run
from tests.serving import Response, Server, obliging, serving

PATIENCE = 5.0


def slowly(request: dict[str, Any], number: int) -> Response:
    return Response(body=obliging(request, number), delay=0.01)


def judge_of(server: Server) -> ModelJudge:
    return ModelJudge("vllm/test", base_url=server.url, total_timeout=20.0)


def samples(count: int, word: str = "answer") -> list[dict[str, Any]]:
    return [{"id": str(n), "output": f"{word} {n}", "context": [f"passage {n}"]} for n in range(count)]


def scored(result: Run) -> int:
    return result["faithfulness"].n_score


def open_files() -> Counter[str]:
    """What this process has open, by kind or path: sockets, pipes, files."""
    found: Counter[str] = Counter()
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found[str(descriptor.readlink()).partition(":")[0]] += 1
        except OSError:
            continue  # the folder's own descriptor, which is closed by now
    return found


async def tasks() -> list[str]:
    """What is under way on evalstone's own loop, beside this."""
    return [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name != "MainThread"]


def until_gone(left: Callable[[], list[str]]) -> list[str]:
    """What is still there after some patience: the other side of a connection takes a moment to see its end."""
    deadline = time.monotonic() + PATIENCE
    while (found := left()) and time.monotonic() < deadline:
        time.sleep(0.02)
        gc.collect()
    return found


@pytest.fixture
def server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Generator[Server]:
    """An endpoint. After the test, whatever it opened must be closed, and nobody may have complained."""
    with serving(slowly) as made:
        # What is loaded and started once, for the life of the process, is none of the test's.
        assert scored(evaluate(samples(2, "warm"), "faithfulness", judge=judge_of(made), ledger=tmp_path / "w.db")) == 2
        evaluate(samples(2, "warm"), "faithfulness", judge="lexical", ledger=None)  # the thread that reads its samples
        gc.collect()
        files, running = open_files(), Counter(threads())
        yield made
        gc.collect()
        assert until_gone(lambda: list((open_files() - files).elements())) == []
        assert until_gone(lambda: list((Counter(threads()) - running).elements())) == []
        assert until_gone(lambda: run(tasks())) == []
        told = [record.getMessage() for record in caplog.get_records("call") if record.name == "asyncio"]
        # In debug mode asyncio tells of callbacks that took long, as on a busy machine any does.
        assert [line for line in told if not line.startswith("Executing")] == []
