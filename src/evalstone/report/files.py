"""A run as files: `records.jsonl`, one line a sample and scorer, `summary.json`, and `samples.jsonl` with the texts.

Described in docs/results.md.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, cast

from evalstone.datasets import Dataset
from evalstone.datasets.stored import StoredSamples, write_samples
from evalstone.datasets.writing import json_line, write_jsonl
from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.ledger.location import is_there, shown
from evalstone.results.run import Run
from evalstone.types import Record

RECORDS = "records.jsonl"
SUMMARY = "summary.json"
SAMPLES = "samples.jsonl"


def prepare(folder: str | Path) -> Path:
    """Make the results folder, and raise ConfigError now if nothing can be written there."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise ConfigError(f"results cannot be written to {path}: {error.strerror}") from None


def write_run(run: Run, folder: str | Path) -> Path:
    """Write a run into a folder, with its samples where they are at hand; files that are there are replaced whole.

    Returns the folder. Raises ConfigError when it cannot be written.
    """
    path = prepare(folder)
    write_jsonl(path / RECORDS, (record.to_dict() for record in run.records))
    write_jsonl(path / SUMMARY, [run.to_dict()])
    if run.dataset is None:
        (path / SAMPLES).unlink(missing_ok=True)  # those of another run
    else:
        write_samples(path / SAMPLES, run.dataset)  # last, for its source may have been changed meanwhile
    return path


def read_run(name: str | Path, *, ledger: str | None = None) -> Run:
    """A run from a results folder, or by its id (or "last") from the ledger. Raises ConfigError when there is none."""
    path = Path(name)
    if path.is_dir():
        return _from_folder(path)
    if ledger is not None and is_there(ledger):
        from evalstone.ledger.store import Ledger  # noqa: PLC0415 - SQLAlchemy, which only a run with a ledger needs

        with Ledger(ledger) as book:
            row = book.run(str(name))
            if row is not None:
                return _told(Run.from_dict(row.metadata, book.records(row.id)))
    where = shown(ledger) if ledger is not None else ""
    raise ConfigError(f"there is no results folder {json_line(str(name))}, and no run of that id in the ledger {where}")


def with_data(run: Run, dataset: Dataset) -> Run:
    """The run with the samples of a data set at hand. Raises ConfigError when it was not made on this data set."""
    if dataset.version != run.version:
        told = f"{dataset.name} is at version {dataset.version}, the run was made on {run.dataset_name}, version {run.version}"
        raise ConfigError(f"these are other samples than the run's: {told}")
    return dataclasses.replace(run, dataset=dataset.samples)


def _from_folder(folder: Path) -> Run:
    try:
        summary = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
        if not isinstance(summary, dict):
            raise DataError(f"{folder / SUMMARY} must hold an object")
        about = cast("dict[str, Any]", summary)
        scorers = {scorer["signature"] for scorer in about["scorers"]}
        run = _told(Run.from_dict(about, list(_records(folder / RECORDS, scorers))))
        stored = folder / SAMPLES
        return dataclasses.replace(run, dataset=StoredSamples(stored)) if stored.exists() else run
    except FileNotFoundError as error:
        raise ConfigError(f"{folder} holds no results: {Path(error.filename).name} is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{folder / SUMMARY} cannot be read as a run: {error!r}") from None


def _records(file: Path, scorers: Collection[str]) -> Iterator[Record]:
    """The records, each of a scorer of the run and none there twice, which would count a sample twice."""
    seen: dict[tuple[str, str], int] = {}
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                record = Record.from_dict(json.loads(line))
                if record.scorer not in scorers:
                    raise DataError(f"{record.scorer!r} is no scorer of {SUMMARY}")
                if (first := seen.setdefault((record.sample, record.scorer), number)) != number:
                    raise DataError(f"sample {record.sample!r} by {record.scorer!r} is there already, on line {first}")
                yield record
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(f"{file}, line {number}: not a record ({error!r})") from None
            except EvalstoneError as error:
                raise DataError(f"{file}, line {number}: {error}") from None


def _told(run: Run) -> Run:
    """The run, said to be unfinished where records are missing and it does not say why."""
    whole = len(run.records) == run.samples * len(run.scorers)
    return run if whole or run.stop_reason else dataclasses.replace(run, stop_reason="unfinished")
