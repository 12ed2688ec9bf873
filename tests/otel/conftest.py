from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import evalstone.otel
from tests.otel.emitted import Emitted


@pytest.fixture(autouse=True)
def _off_and_without_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    yield
    evalstone.otel.disable()


@pytest.fixture
def emitted() -> Emitted:
    """Providers that keep what goes through them."""
    return Emitted()
