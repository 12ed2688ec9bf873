"""Answers, records and runs as rows of the ledger's tables, and back."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

from evalstone.ledger.rows import DatasetRow, RunRow, StoredAnswer
from evalstone.types import Record, Usage


def storable(text: str) -> str:
    r"""Text that every database takes: lone surrogates and NUL are written out, as JSON does (`\ud83d`, `\u0000`)."""
    if "\x00" in text:
        text = text.replace("\x00", "\\u0000")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def cell(sample: str, scorer: str) -> str:
    """The hash that stands for a sample and a scorer's signature in the key of a record."""
    return hashlib.blake2b(f"{sample}\x00{scorer}".encode(), digest_size=16).hexdigest()


def answer_row(answer: StoredAnswer) -> dict[str, Any]:
    """An answer as a row of `answers`, written now."""
    return {
        "question": answer.question,
        "judge": answer.judge,
        "number": answer.number,
        "kind": answer.kind,
        "reply": storable(answer.reply),
        "input_tokens": answer.usage.input,
        "output_tokens": answer.usage.output,
        "cached_tokens": answer.usage.cached,
        "requests": answer.usage.requests,
        "cost": answer.cost,
        "seconds": answer.seconds,
        "confidence": answer.confidence,
        "alternatives": json.dumps(dict(answer.alternatives)) if answer.alternatives else None,
        "written": time.time(),
    }


def answer_of(row: Any) -> StoredAnswer:
    """The answer that a row of `answers` holds."""
    return StoredAnswer(
        question=row.question,
        judge=row.judge,
        kind=row.kind,
        reply=row.reply,
        usage=Usage(row.input_tokens, row.output_tokens, row.cached_tokens, row.requests),
        cost=row.cost,
        seconds=row.seconds,
        confidence=row.confidence,
        alternatives=json.loads(row.alternatives) if row.alternatives else None,
        number=row.number,
        written=row.written,
    )


def record_row(run: str, record: Record) -> dict[str, Any]:
    """A record as a row of `records`."""
    sample, scorer = storable(record.sample), storable(record.scorer)
    body = json.dumps(record.to_dict())
    return {"run": run, "cell": cell(sample, scorer), "sample": sample, "scorer": scorer, "body": body}


def run_row(row: RunRow) -> dict[str, Any]:
    """A run as a row of `runs`."""
    dataset = dataset_of(row)
    return {
        "id": row.id,
        "plan": row.plan,
        "dataset": dataset and dataset.version,
        "started": row.started,
        "finished": row.finished,
        "about": json.dumps(row.about),
    }


def run_of(row: Any) -> RunRow:
    """The run that a row of `runs` holds."""
    return RunRow(row.id, row.plan, row.started, row.finished, json.loads(row.about))


def dataset_of(run: RunRow) -> DatasetRow | None:
    """The data set version that a run's description names."""
    match run.about.get("dataset"):
        case {"version": str(version), "name": str(name), "samples": int(samples)}:
            return DatasetRow(version, storable(name), samples, run.started)
        case _:
            return None


def dataset_row(row: DatasetRow) -> Mapping[str, Any]:
    """A data set version as a row of `datasets`."""
    return {"version": row.version, "name": row.name, "samples": row.samples, "first_seen": row.first_seen}
