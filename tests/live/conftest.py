"""Live scoring that ends with its test, in a ledger of either kind."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from evalstone import Live
from tests.ledger.conftest import postgres_url, server, url

__all__ = ["postgres_url", "server", "url"]

Start = Callable[..., Live]


@pytest.fixture
def start(tmp_path: Path) -> Generator[Start]:
    """Makes a `Live` whose worker is a thread, unless asked otherwise, and that draws everything."""
    made: list[Live] = []

    def begin(scorers: Any = "contains", judge: Any = "lexical", **settings: Any) -> Live:
        settings = {"ledger": tmp_path / "l.db", "sampling": 1.0, "process": False, **settings}
        made.append(Live(scorers, judge, **settings))
        return made[-1]

    yield begin
    for live in made:
        live.close(0.2)
