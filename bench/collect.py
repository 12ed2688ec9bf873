"""How fast `evalstone collect` receives traces: requests a second, CPU and bytes written, without scoring.

    python bench/collect.py [REQUESTS CLIENTS [SOURCE …]]

The requests are in protobuf: those of a batch processor, with 50 traces of 10 spans, and small ones. A span
has a message of 2 kB. With source folders of other versions, all take turns, because machines get slower and faster.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

SOURCE = Path(__file__).parents[1] / "src"
TEXT, ROUNDS = "All words of a prompt or an answer. " * 55, 3
SHAPES = {"50 traces of 10 spans": (50, 10, 1), "1 trace of 3 spans": (1, 3, 20)}
"""Traces and spans of a request, and by how many times more of them are sent."""


def body(number: int, traces: int, spans: int) -> bytes:
    request: Any = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for trace in range(traces):
        for at in range(spans):
            span = scope.spans.add(
                name="chat model", start_time_unix_nano=10**18 + at, end_time_unix_nano=10**18 + at + 9
            )
            span.trace_id = (number * traces + trace + 1).to_bytes(16, "big")
            span.span_id = (at + 1).to_bytes(8, "big")
            span.parent_span_id = at.to_bytes(8, "big") if at else b""
            for key in ("gen_ai.operation.name", "gen_ai.request.model", "gen_ai.conversation.id"):
                span.attributes.add(key=key).value.string_value = "chat"
            for key in ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"):
                span.attributes.add(key=key).value.int_value = 17
            span.attributes.add(key="gen_ai.input.messages").value.string_value = TEXT
    return request.SerializeToString()


async def send(url: str, bodies: list[bytes], clients: int) -> None:
    left = iter(bodies)
    headers = {"Content-Type": "application/x-protobuf"}

    async def client(session: aiohttp.ClientSession) -> None:
        for data in left:
            async with session.post(f"{url}/v1/traces", data=data, headers=headers) as reply:
                assert reply.status == 200, await reply.text()
                await reply.read()

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))


def received(source: Path, bodies: list[bytes], clients: int) -> tuple[float, float, float, float]:
    """Seconds, CPU seconds, megabytes written and peak megabytes of one receiver."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "evalstone", "collect", "--port", "0", "--out", f"{folder}/traces.jsonl"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(source)}
        )
        assert process.stderr is not None
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://[\d.:]+", line)))
        began = time.perf_counter()
        asyncio.run(send(url, bodies, clients))
        seconds = time.perf_counter() - began
        written = re.search(r"^wchar: (\d+)", Path(f"/proc/{process.pid}/io").read_text(), re.MULTILINE)
        peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        process.terminate()
        process.communicate()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert written
        assert peak
        return seconds, cpu, int(written[1]) / 1e6, int(peak[1]) / 1e3


def main(requests: int, clients: int, *sources: str) -> None:
    for name, (traces, spans, times) in SHAPES.items():
        bodies = [body(number, traces, spans) for number in range(requests * times)]
        print(f"{len(bodies):,} requests of {name}, {sum(map(len, bodies)) / 1e6:.0f} MB, {clients} clients")
        results: dict[str, list[tuple[float, float, float, float]]] = {}
        for _ in range(ROUNDS):
            for source in (str(SOURCE), *sources):
                results.setdefault(source, []).append(received(Path(source), bodies, clients))
        for source, each in results.items():
            seconds, cpu, written, peak = (min(values) for values in zip(*each, strict=True))
            rate = len(bodies) / seconds
            print(f"  {source}: {rate:.0f} requests/s, CPU {cpu:.2f} s, {written:.0f} MB written, peak {peak:.0f} MB")


if __name__ == "__main__":
    requests, clients, *others = sys.argv[1:] or ("100", "4")
    main(int(requests), int(clients), *others)
