"""Large replies of targets: other calls go on while one is read, and its lists and objects are limited."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalstone.agents.transcripts import read_transcript
from evalstone.errors import DataError, TargetError
from evalstone.targets import CommandTarget, HTTPTarget, Target
from evalstone.targets.answers import Answer
from evalstone.types import Sample
from tests.hostile_serving import http, serving_hostile

CONVERSATION = json.dumps([{"role": "assistant", "content": f"Answer {number}."} for number in range(20_000)])
KINDS = pytest.mark.parametrize("kind", ["command", "http"])


@contextmanager
def replying(kind: str, reply: str, folder: Path, limit: int = 8_000_000) -> Generator[Target]:
    """A target with this reply, and this limit on its bytes."""
    if kind == "command":
        (folder / "reply").write_text(reply)
        yield CommandTarget(command=f"cat {shlex.quote(str(folder / 'reply'))}", max_output_bytes=limit)
        return
    with serving_hostile(lambda _: http(reply.encode())) as server:
        yield HTTPTarget(url=f"{server.url}/ask", body={"question": "{input}"}, max_reply_bytes=limit)


async def call(target: Target) -> Answer:
    async with target.opened():
        return Answer.of(await target.call(Sample(id="q", input="Hi"), trial=1, thread="t"))


async def timed(target: Target) -> tuple[float, float, Answer]:
    """The seconds of a call, and the longest time in it in which nothing else could run; and its answer."""
    held, done = 0.0, asyncio.Event()

    async def watch() -> None:
        nonlocal held
        before = time.perf_counter()
        while not done.is_set():
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            held, before = max(held, now - before), now

    watching = asyncio.create_task(watch())
    began = time.perf_counter()
    answer = await call(target)
    seconds = time.perf_counter() - began
    done.set()
    await watching
    return seconds, held, answer


@pytest.mark.slow
@KINDS
def test_other_calls_go_on_while_a_large_reply_is_read(kind: str, tmp_path: Path) -> None:
    with replying(kind, CONVERSATION, tmp_path) as target:
        seconds, held, answer = asyncio.run(timed(target))
    assert len(answer.messages) == 20_000
    assert held < seconds / 2


@KINDS
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("\n".join(f'{{"a":{n}}}' for n in range(20_000)), id="lines"),
        pytest.param(json.dumps([{"a": n} for n in range(20_000)]), id="list"),
        pytest.param(json.dumps({"output": "x", "trace": [[] for _ in range(20_000)]}), id="empty lists"),
        pytest.param('{"output": "a \\" quote \\\\", "trace": [' + ",".join(["[]"] * 20_000) + "]}", id="escapes"),
    ],
)
def test_a_reply_has_a_limit_on_lists_and_objects(kind: str, reply: str, tmp_path: Path) -> None:
    setting = "max_output_bytes" if kind == "command" else "max_reply_bytes"
    with (
        replying(kind, reply, tmp_path, limit=320_000) as target,
        pytest.raises(TargetError, match=f"10,000 lists and objects.*{setting}"),
    ):
        asyncio.run(call(target))


@KINDS
def test_braces_in_texts_are_no_objects(kind: str, tmp_path: Path) -> None:
    code = 'if (a["\\"]) { b[0] = "}" }\n' * 10_000
    with replying(kind, json.dumps({"output": code}), tmp_path, limit=640_000) as target:
        assert asyncio.run(call(target)).output == code


@pytest.mark.slow
def test_the_time_to_refuse_an_unknown_shape_grows_with_its_size_not_with_its_square() -> None:
    def seconds(size: int) -> float:
        data = [{"a": number} for number in range(size)]
        began = time.process_time()
        with pytest.raises(DataError, match="unknown transcript format"):
            read_transcript(data)
        return time.process_time() - began

    assert min(seconds(40_000) for _ in range(3)) < 9 * max(seconds(10_000) for _ in range(3))
    assert min(seconds(40_000) for _ in range(2)) < 10
