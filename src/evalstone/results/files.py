"""A run's files: `records.jsonl` (one line per sample and scorer), `summary.json`, and `samples.jsonl` with the texts.

The fields are documented in docs/results.md.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from evalstone._core.declarations import check_argument
from evalstone._core.display import named, quoted
from evalstone._core.files import cannot_write, file_lines, file_text, is_file, is_folder, json_value, make_folder
from evalstone._core.front_ends import Setting
from evalstone._core.garbage import rare_collections
from evalstone._core.phases import Phase, phase
from evalstone._core.redaction import masked, redacted
from evalstone._core.storage import Location, is_address
from evalstone._core.validation import read_data
from evalstone.datasets.part_samples import BlockSamples
from evalstone.datasets.read_samples import StoredSamples
from evalstone.datasets.stored import RECORDS, SAMPLES, SUMMARY, record_line, write_samples
from evalstone.datasets.writing import json_line, write_jsonl, write_text
from evalstone.errors import ConfigError, DataError, EvalstoneError, absent
from evalstone.results.block_plan import BlockPlan
from evalstone.results.block_writing import remove_blocks, write_blocks
from evalstone.results.endings import ending_named
from evalstone.results.record_blocks import BLOCKS, RecordBlocks
from evalstone.results.record_tables import Keep
from evalstone.results.run import Run, check_runs
from evalstone.results.spilling import SpillingRecords
from evalstone.results.stored_records import StoredRecords
from evalstone.results.summary import ScorerInfo, ScorerSummary, summarize
from evalstone.types import Record, RunMetadata

if TYPE_CHECKING:
    from evalstone.datasets import Dataset


def prepare(folder: str | Path) -> Path:
    """Create the results folder.

    Raises:
        ConfigError: nothing can be written there.
        WriteError: the disk is full.
    """
    path = Path(folder)
    try:
        make_folder(path)
        with tempfile.TemporaryFile(dir=path):
            return path
    except ValueError:  # no file can have this name
        raise ConfigError(f"results cannot be written to {quoted(path)}: no folder can have this name") from None
    except OSError as error:
        raise cannot_write(f"results cannot be written to {path}", error) from None


def remove_results(folder: str | Path) -> None:
    """Remove the summary of an earlier run, so that the folder has no results until the new run is written. The samples
    stay, because the new run may read them."""
    (Path(folder) / SUMMARY).unlink(missing_ok=True)


def earlier_run(folder: str | Path) -> RunMetadata | None:
    """The metadata of the run whose results a folder has; None if there are none, or they can't be read."""
    file = Path(folder) / SUMMARY
    try:
        return RunMetadata.of(read_summary(Path(folder)), str(file)) if is_file(file) else None
    except EvalstoneError:
        return None


def check_replaceable(folder: str | Path, dataset: str, version: str, target: str | None, kept: str = "") -> None:
    """Raise ConfigError if a folder has the results of a run on another dataset, or of another target.

    Results of a run that was broken off may be replaced.

    Args:
        folder: The folder.
        dataset: The name of the new run's dataset. Another version of it is no other dataset.
        version: Its version. The same samples by another name are no other dataset.
        target: The name of the new run's target. Another version of it is no other target.
        kept: Where else the results are, as the end of a sentence.
    """
    before = earlier_run(folder)
    if before is None or ending_named(before.ending).broken_off:
        return
    old, new = (before.target.identity if before.target else None), target and masked(target)
    if masked(dataset) != before.dataset.name and version != before.dataset.version:
        how = f"of the dataset {named(before.dataset.name)}, not {named(dataset)}"
    elif old == new or (old and new and old.startswith((f"{new}@", f"{new} with "))):
        return
    else:
        texts = [f"the target {named(each)}" if each else "the outputs in the data" for each in (old, new)]
        how = f"with {', not '.join(texts)}"
    run = f"{before.id}, of {before.started[:16].replace('T', ' ')}"
    raise ConfigError(
        f"{folder} has the results of another run ({run}), {how}; name another folder with ",
        Setting("out", ...),
        f", or delete {Path(folder) / SUMMARY} to replace them{kept}",
    )


def write_run(run: Run, folder: str | Path, *, keep: Keep | None = None) -> Path:
    """Write a run into a folder, with its samples if available, and return the folder. Existing files are replaced.

    Args:
        run: the run.
        folder: the folder.
        keep: write the records as Parquet (`blocks/` and `calls/`), and how much of each: `all`; `evidence`, which
            leaves out the judge calls; or `scores`, which also leaves out evidence and the reasons of scores. None:
            write `records.jsonl`, or Parquet again if the run was read from one without judge calls.

    Raises:
        ConfigError: the folder cannot be written, or the run was read from files that keep less.
        MissingDependency: pyarrow is not installed, and keep is set.
        DataError: the samples can no longer be read. The run is written without them.
        WriteError: the disk is full. The run is written without its samples if there is space for the rest.
    """
    check_runs(run=run)
    check_argument("keep", keep, Keep | None)
    path = prepare(folder)
    remove_results(path)  # whatever ends this, the folder never has parts of two runs
    records, data = run.records, run.to_dict()
    if keep is None and isinstance(records, RecordBlocks) and records.keep != "all":
        keep = records.keep
    if keep is None:
        lines = records.texts() if isinstance(records, StoredRecords) else map(record_line, records)
        with phase(f"writing {RECORDS}", "record", len(records)) as writing:
            write_text(
                path / RECORDS, (f"{line}\n" for line in writing.count(lines)), redact=False
            )  # they are redacted
        remove_blocks(Location(str(path)))
    else:
        with phase("writing records"):
            number = write_blocks(records, run.scorers, run.id, Location(str(path)), keep)
        data[BLOCKS] = _stored_blocks(run.id, number, keep)
        (path / RECORDS).unlink(missing_ok=True)
    try:
        if run.samples is None:
            (path / SAMPLES).unlink(missing_ok=True)
        else:
            with phase(f"writing {SAMPLES}"):
                write_samples(path / SAMPLES, run.samples)
    except EvalstoneError:
        if not isinstance(run.samples, StoredSamples) or run.samples.path.resolve() != (path / SAMPLES).resolve():
            (path / SAMPLES).unlink(missing_ok=True)
        write_jsonl(path / SUMMARY, [data])
        raise
    write_jsonl(path / SUMMARY, [data])
    return path


def write_summary(run: Run, folder: Location, records: RecordBlocks) -> None:
    """Write the summary of a run whose blocks are in a folder.

    Raises:
        ConfigError: the folder cannot be made.
        StorageError: the folder cannot be written.
    """
    data = {**run.to_dict(), BLOCKS: _stored_blocks(records.plan, len(records.said), records.keep)}
    (folder / SUMMARY).write(f"{json_line(data)}\n".encode())


def _stored_blocks(plan: str, number: int, keep: Keep) -> dict[str, Any]:
    return {"plan": plan, "number": number, "keep": keep}


def read_run(folder: str | Path) -> Run:
    """Read a run from its results folder. A run in blocks may be anywhere: `s3://bucket/results`.

    Raises:
        ConfigError: there is no such folder, it has no results, or they were written by another version of evalstone.
        DataError: a file is not a valid part of a run; the message names file and line.
    """
    if is_address(folder):
        return _read_blocks(Location.of(folder))
    path = Path(folder)
    if not is_folder(folder):
        raise ConfigError(f"there is no results folder {json_line(str(folder))}")
    summary = read_summary(path)
    if BLOCKS in summary:
        return _read_blocks(Location(str(path)))
    try:
        scorers = [ScorerInfo.of(stored) for stored in RunMetadata.of(summary, str(path / SUMMARY)).scorers]
        with phase(f"reading {path}", "record") as reading:
            run = Run.from_dict(summary, *_records(path / RECORDS, scorers, reading))
    except FileNotFoundError as error:
        raise _incomplete(path, error) from None
    samples = path / SAMPLES
    return dataclasses.replace(run, samples=StoredSamples(samples)) if samples.exists() else run


def read_summary(folder: Path) -> dict[str, Any]:
    """The content of a results folder's `summary.json`. Errors as for `read_run`."""
    file = folder / SUMMARY
    try:
        text = file_text(file)
    except FileNotFoundError as error:
        raise _incomplete(folder, error) from None
    except OSError as error:
        raise DataError(f"{file} cannot be read as a run: ", error) from None
    return _summary_in(text, str(file))


def _summary_in(text: str | bytes, file: str) -> dict[str, Any]:
    """The content of a `summary.json`. file: its name."""
    try:
        summary = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} cannot be read as a run: ", error) from None
    if not isinstance(summary, dict):
        raise DataError(f"{file} must contain an object")
    RunMetadata.of(data := cast("dict[str, Any]", summary), file)
    return data


def _incomplete(folder: Path, error: FileNotFoundError) -> ConfigError:
    missing = Path(error.filename).name
    if missing == SUMMARY and (inside := sorted(str(file.parent) for file in folder.glob(f"*/{SUMMARY}"))):
        more = f" and {len(inside) - 5} more" if len(inside) > 5 else ""
        return ConfigError(f"{folder} has several runs; name one: {', '.join(inside[:5])}{more}")
    return ConfigError(f"{folder} has no results: {missing} is missing")


def _records(
    file: Path, scorers: Sequence[ScorerInfo], reading: Phase
) -> tuple[SpillingRecords, tuple[ScorerSummary, ...]]:
    """The records and their summaries, from one pass. Each must be of one of the run's scorers. Duplicates, which would
    count twice, are errors."""
    signatures = [info.signature for info in scorers]
    records = SpillingRecords(signatures)

    def read() -> Iterator[Record]:
        for number, line in reading.count(file_lines(file)):
            place = f"{file}, line {number}"
            value = json_value(line, place)
            try:
                record = Record.from_dict(value)
                if record.signature not in signatures:
                    raise DataError(f"{record.signature!r} is not a scorer of {SUMMARY}")
            except EvalstoneError as error:
                raise DataError(f"{place}: ", error) from None
            records.append(record, redacted(line))
            yield record

    with rare_collections():
        summary = summarize(scorers, read())
    if (repeated := records.columns.seal()) is not None:
        record, (second, first) = records[repeated[0]], repeated
        trial = "" if record.trial is None else f", trial {record.trial}"
        raise DataError(
            f"{file}, line {second + 1}: sample {record.sample_id!r}{trial} by {record.signature!r} is a duplicate of "
            f"line {first + 1}"
        )
    return records, summary


@dataclasses.dataclass(frozen=True)
class _StoredBlocks:
    """`blocks` in `summary.json`."""

    plan: str
    number: int
    keep: Keep


def _read_blocks(folder: Location) -> Run:
    """A run in blocks. Its samples are those of its plan, if it was planned, or else those in the folder."""
    file = folder / SUMMARY
    if file.found() is None:
        problem = f"{folder} has no results in blocks: {SUMMARY} is missing"
        # A store has no empty folders: without a file, there is none.
        raise ConfigError(problem if folder.files() else absent("run", problem))
    summary = _summary_in(file.read(), str(file))
    scorers = [ScorerInfo.of(stored) for stored in RunMetadata.of(summary, str(file)).scorers]
    try:
        blocks = read_data(_StoredBlocks, summary.get(BLOCKS))
    except DataError as error:
        raise DataError(f"{file}: {BLOCKS}: ", error) from None
    with phase(f"reading {folder}"):
        records = RecordBlocks.of_folder(folder, scorers, blocks.plan, blocks.number, blocks.keep)
        run = Run.from_dict(summary, records, records.summaries())
    plan = BlockPlan.read(folder)
    if plan is not None and plan.fingerprint == blocks.plan:
        return dataclasses.replace(run, samples=BlockSamples(plan.blocks, plan.reading))
    samples = None if folder.local is None else folder.local / SAMPLES
    return dataclasses.replace(run, samples=StoredSamples(samples)) if samples and samples.exists() else run


def with_data(run: Run, dataset: Dataset) -> Run:
    """The run with the samples of a dataset.

    Raises:
        ConfigError: the run was made on another dataset or version.
    """
    if dataset.version != run.dataset_version:
        raise ConfigError(
            f"these are not the run's samples: {dataset.name} has version {dataset.version}, the run was made on "
            f"{run.dataset_name}, version {run.dataset_version}"
        )
    return dataclasses.replace(run, samples=dataset.samples)
