"""What the attacks share: the command line as a process of its own, and a server that sends whatever it likes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from tests.serving import asked_in, completion, filled, on_a_thread

COMMAND = str(Path(sys.executable).with_name("evalstone"))
TIMEOUT = 120.0
MOST_MEGABYTES = 2000.0
"""A command that takes more is killed, so that a successful attack doesn't take the machine with it."""
CONTROL = frozenset({*range(0x20), *range(0x7F, 0xA0)} - {0x09, 0x0A})
"""Characters that control a terminal."""


@dataclass(frozen=True)
class Result:
    """What came of an attack: how often it was tried, what was seen, and what did not hold."""

    tries: int
    seen: str
    problems: Sequence[str] = ()


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    stdout: str
    stderr: str
    megabytes: float
    seconds: float

    @property
    def text(self) -> str:
        """All that it printed."""
        return self.stdout + self.stderr


class Process:
    """A command that runs in a folder, with nothing of this environment but the path."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        file_size: int | None = None,
        **options: Any,
    ) -> None:
        self.folder = folder
        self.started = time.monotonic()
        self._out, self._err = folder / ".stdout", folder / ".stderr"
        variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", **(environment or {})}

        def limit() -> None:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
            if file_size is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))

        with self._out.open("wb") as out, self._err.open("wb") as err:
            given: dict[str, Any] = {"stdout": out, "stderr": err, "stdin": subprocess.DEVNULL, **options}
            self.popen = subprocess.Popen(
                [COMMAND, *arguments],
                cwd=folder,
                env=variables,
                preexec_fn=limit,
                **given,
            )

    def send(self, sign: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        self.popen.send_signal(sign)

    def _peak(self) -> float:
        """The most megabytes that the process has held so far."""
        try:
            status = Path(f"/proc/{self.popen.pid}/status").read_text()
        except OSError:
            return 0.0  # it has just ended, or this is no Linux
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else 0.0

    def ended(self, timeout: float = TIMEOUT) -> Done:
        """Wait for the end; what takes longer than the timeout, or too much memory, is killed and has the code -9."""
        # The peak that the system reports at the end includes what this process had when it started the other one.
        peak = 0.0
        while self.popen.poll() is None:
            peak = max(peak, self._peak())
            if time.monotonic() > self.started + timeout or peak > MOST_MEGABYTES:
                self.popen.kill()
            time.sleep(0.005)
        seconds = time.monotonic() - self.started
        pipes = zip((self.popen.stdout, self.popen.stderr), (self._out, self._err), strict=True)
        printed = [path.read_bytes() if pipe is None else pipe.read() for pipe, path in pipes]
        out, err = (text.decode("utf-8", "surrogateescape") for text in printed)
        return Done(self.popen.returncode, out, err, peak, seconds)


def evalstone(folder: Path, *arguments: str, timeout: float = TIMEOUT, **options: Any) -> Done:
    """Run a command to its end."""
    return Process(folder, *arguments, **options).ended(timeout)


@dataclass(frozen=True)
class Request:
    """A request as a server gets it."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    number: int

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


Reply: TypeAlias = "bytes | AsyncIterator[bytes]"
Behavior: TypeAlias = Callable[[Request], Reply]


def http(
    status: int = 200, body: bytes | Any = b"", headers: Mapping[str, str] | None = None, *, length: bool = True
) -> bytes:
    """A response."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Whatever", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    lines += [f"Content-Length: {len(content)}"] if length else []
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + content


def good(request: Request) -> bytes:
    """The response of a model that answers by the schema."""
    if not request.body:  # a GET, such as that of a redirect
        return http(405)
    form: Any = request.json().get("response_format") or {}
    schema: Any = form.get("json_schema", {}).get("schema")
    return http(body=completion("ok" if schema is None else json.dumps(filled(schema, asked_in(request.json())))))


@dataclass
class Server:
    """A server with what it got."""

    behavior: Behavior = good
    delay: float = 0.0
    requests: list[Request] = field(default_factory=list[Request])
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").split("\r\n")
                pairs = (line.partition(":") for line in lines if line)
                headers = {name.lower(): value.strip() for name, _, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                request = Request(first.split()[1], headers, body, len(self.requests))
                self.requests.append(request)
                reply = self.behavior(request)
                if self.delay:
                    await asyncio.sleep(self.delay)
                if isinstance(reply, bytes):
                    writer.write(reply)
                    await writer.drain()
                    continue
                async for part in reply:
                    writer.write(part)
                    await writer.drain()
                break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()


@contextmanager
def serving(behavior: Behavior = good, *, delay: float = 0.0) -> Generator[Server]:
    """A server on loopback, on a thread of its own, for as long as the block lasts."""
    server = Server(behavior, delay)

    async def serve(ready: Callable[[], None], stop: asyncio.Event) -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**26)
        address = cast("tuple[str, int]", listening.sockets[0].getsockname())
        server.url = f"http://127.0.0.1:{address[1]}/v1"
        ready()
        await stop.wait()
        listening.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    with on_a_thread(serve):
        yield server


def write_samples(folder: Path, samples: int, text: str = "Paris is the capital of France") -> None:
    """Write `data.jsonl`: each sample takes two calls of faithfulness."""
    rows = [
        {"id": f"s{n}", "output": f"{text}, says answer {n}.", "context": [f"{text}, {n}."]} for n in range(samples)
    ]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def judged(server: Server, *more: str, data: str = "data.jsonl") -> list[str]:
    """The arguments of a run that asks a server."""
    options = [
        "--scorer",
        "faithfulness",
        "--judge",
        "vllm/test(total_timeout=20)",
        "--base-url",
        server.url,
        "--ledger",
        "l.db",
    ]
    return ["run", data, *options, "--out", "out", *more]


def records(folder: Path) -> list[dict[str, Any]]:
    """The records of the run in `out`."""
    lines = (folder / "out" / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def unclean(text: str) -> list[str]:
    """The control characters in what was printed."""
    return sorted({repr(char) for char in text if ord(char) in CONTROL or "\u202a" <= char <= "\u202e"})
