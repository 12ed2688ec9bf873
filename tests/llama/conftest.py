"""A real model on llama.cpp's own server, on loopback; `make test-llama` installs and names it."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from bench.llama import WINDOW, llama, python_with_wheels


@pytest.fixture(scope="session")
def server() -> Generator[str]:
    """The base URL of the server, which has a window of `WINDOW` tokens."""
    if not (python := python_with_wheels()):
        pytest.skip(
            "a real model is needed, which `make test-llama` installs (EVALSTONE_LLAMA_PYTHON names its Python)"
        )
    with llama(python, WINDOW) as url:
        yield url
