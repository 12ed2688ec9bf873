"""What tests of the plugin share."""

from __future__ import annotations

from pathlib import Path

import pytest

import evalstone
from evalstone.testing import marked, summary


@pytest.fixture(autouse=True, scope="package")
def engine(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All that sessions inside this process import: at its end, a session drops what it was the first to import, and
    numpy can't be imported twice."""
    assert marked
    assert summary
    ledger: Path = tmp_path_factory.mktemp("engine") / "ledger.db"
    run = evalstone.evaluate([{"output": "Oslo.", "context": ["Oslo."]}], "faithfulness", ledger=ledger)
    assert str(evalstone.gate(run, min={"faithfulness": 0.5}))
