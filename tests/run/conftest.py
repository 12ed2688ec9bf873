"""A provider of batches on loopback, and runs through it."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from evalstone import ModelJudge, Run, evaluate
from evalstone.run.batch import runner
from tests.batch_serving import BatchServer, serving_batches
from tests.run.batch_runs import KEY, OPENAI, SAMPLES, Call


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Generator[BatchServer]:
    with serving_batches() as started:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{started.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", started.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setattr(runner, "FIRST_POLL", 0.0)
        yield started


@pytest.fixture
def run(tmp_path: Path) -> Call:
    """One call of a run, as one process would make it: the judge is made anew, and learned nothing."""

    def call(*scorers: Any, model: str = OPENAI, settings: dict[str, Any] | None = None, **more: Any) -> Run:
        judge = ModelJudge(model, **(settings or {}))
        given: dict[str, Any] = {"ledger": tmp_path / "l.db", "batch": True, **more}
        return evaluate(given.pop("samples", SAMPLES), list(scorers or ["faithfulness"]), judge=judge, **given)

    return call
