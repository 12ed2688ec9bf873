"""A real llama.cpp server on loopback with a model of random numbers; `make test-llama` builds and names it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.llama.model_file import write

PYTHON = os.environ.get("EVALSTONE_LLAMA_PYTHON", "")
STARTS_WITHIN = 120.0


@dataclass(frozen=True)
class Llama:
    """A running server: its URL and what it writes."""

    url: str
    log: Path

    def answered(self, status: int) -> int:
        """How many requests for a completion it answered with this status so far."""
        lines = self.log.read_text("utf-8", "replace").splitlines()
        return sum("POST /v1/chat/completions" in line and f'" {status} ' in line for line in lines)


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Generator[Llama]:
    if not PYTHON:
        pytest.skip("a real llama.cpp server is needed, which `make test-llama` builds")
    folder = tmp_path_factory.mktemp("llama")
    model, log = folder / "noise.gguf", folder / "server.log"
    write(model)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [PYTHON, "-m", "llama_cpp.server", "--model", str(model), "--model_alias", "noise"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--n_ctx", "4096", "--n_threads", "1"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}/v1"
        wait(process, url, log)
        yield Llama(url, log)
    finally:
        process.terminate()
        process.wait(10)


def wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait until the server answers."""
    deadline = time.monotonic() + STARTS_WITHIN
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/models", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    sys.exit(f"the llama.cpp server did not start:\n{log.read_text('utf-8', 'replace')[-3000:]}")
