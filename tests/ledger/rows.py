"""Rows that the ledger's tests write and read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from evalstone.ledger import RunRow, StoredAnswer
from evalstone.results.run import Run
from evalstone.results.summary import ScorerInfo
from evalstone.types import JudgeCall, Record, Sample, Score, Usage, scorer_name

JUDGE = "openai/x"
DATASET = "d" * 16


def answer(number: int = 0, *, reply: str = '{"claims": []}', judge: str = JUDGE, again: int = 0) -> StoredAnswer:
    """An answer to the question of this number. again: which of several answers to it."""
    usage = Usage(1, 2, 3, 4)
    return StoredAnswer(f"{number:032x}", judge, "list_claims", reply, usage, None, 0.5, 0.9, {"yes": 0.75}, again)


def record(sample: str, value: float = 0.5, *, question: int = 0, scorer: str = "s@1") -> Record:
    """A record with one step, which asked the question of this number."""
    asked = answer(question)
    step = JudgeCall(
        question="list_claims",
        fingerprint=asked.question,
        judge=JUDGE,
        answer={"a": [1]},
        usage=Usage(1, 2),
        cost=None,
        reply=asked.reply,
    )
    return Record(
        sample_id=sample,
        scorer=scorer_name(scorer),
        signature=scorer,
        outcome=Score(value, "why", scale=1.0, evidence={"x": 1}),
        calls=(step,),
    )


def records(run: str, *those: Record, first: int = 0) -> list[tuple[str, int, Record]]:
    """Records of a run as the ledger writes them, with their cells from `first` on."""
    return [(run, cell, each) for cell, each in enumerate(those, first)]


def run(name: str = "r1", *, plan: str = "p" * 32, started: str = "2026-01-01T00:00:00+00:00") -> RunRow:
    """A run that has not ended."""
    metadata = Run(
        id=name,
        dataset_name="data.jsonl",
        dataset_version=DATASET,
        n_samples=3,
        judge=JUDGE,
        judge_note="",
        scorers=(ScorerInfo(name="s", signature="s@1", scale=1.0, lower_is_better=False),),
        records=(),
        summary=(),
        started=started,
        seconds=0.0,
    ).metadata()
    return RunRow(name, plan, started, None, metadata)


def samples(number: int = 3) -> list[Sample]:
    """Samples with different contents."""
    return [Sample(id=str(n), input="Where?", output=f"In place {n}.", metadata={"n": n}) for n in range(number)]


def placed(rows: Iterable[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Lines as they come back from a file."""
    return [(f"line {n}", json.loads(json.dumps(row))) for n, row in enumerate(rows, start=1)]
