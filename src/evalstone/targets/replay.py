"""Recorded runs as targets: they return their answers again, by sample and trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from evalstone._core.display import excerpt, quoted
from evalstone._core.files import file_text, file_values, row_limit
from evalstone._core.json import to_jsonable
from evalstone._core.temporary import TemporaryData
from evalstone.datasets.stored import RECORDS, SAMPLES, SUMMARY, sample_line, sample_of
from evalstone.errors import ConfigError, DataError, TargetError
from evalstone.targets.answers import Answer, own_metadata
from evalstone.targets.base import Target
from evalstone.types import TARGET_FAILED, Failed, Record, Sample, StoredTarget, default_id_note


@runtime_checkable
class RecordedRun(Protocol):
    """The part of a `Run` that a replay reads."""

    @property
    def id(self) -> str:
        """The run's identifier."""
        ...

    @property
    def samples(self) -> Iterable[Sample] | None:
        """The samples with their answers; None if they aren't available."""
        ...

    @property
    def records(self) -> Iterable[Record]:
        """The records."""
        ...

    @property
    def target(self) -> StoredTarget | None:
        """The target that answered the samples; None if the answers in the dataset were scored."""
        ...


class ReplayTarget(Target):
    """The answers of a recorded run, by sample ID and trial.

    A run without trials has the first trial only. A sample fails if its input differs from the recorded one. A failure
    of the recorded target is repeated with the same error. Replaying costs nothing; the cost and duration of the
    recorded call are in the answer's `trace`. The target's version is a hash of the recorded answers.

    Raises:
        ConfigError: The folder doesn't exist, the folder or run has no answers, or a version was set.
        DataError: A file in the folder is damaged, or contains a sample and trial twice.
        WriteError: The samples of a run don't fit into a temporary file.
    """

    folder: str = ""
    """The results folder, written by `--out` or `write_run`."""
    run: RecordedRun | None = field(default=None, repr=False, compare=False)
    """A `Run` instead of a folder: the result of `evaluate` or `read_run`."""
    _data: TemporaryData | None = field(default=None, init=False, repr=False, compare=False)
    """The samples of a run without a folder."""
    _places: Mapping[tuple[str, int], tuple[int, int]] = field(init=False, repr=False, compare=False)
    """The offset and the size of the line of each sample and trial, in bytes."""
    _failures: Mapping[tuple[str, int], str] = field(init=False, repr=False, compare=False)
    _has_target: bool = field(init=False, repr=False, compare=False)
    """Whether the recorded run had a target. If so, samples that it didn't answer have no answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folder and self.run is not None:
            raise ConfigError("a replay needs a folder or a run, not both")
        digest = hashlib.blake2b(digest_size=8)
        if self.run is not None:
            failures, has_target = _failures(self.run.records), self.run.target is not None
            data = TemporaryData("samples")
            object.__setattr__(self, "_data", data)
            places = _places(_spooled(self.run, failures, data), self._where, digest)
        else:
            samples = Path(self.folder, SAMPLES)
            if not self.folder or not Path(self.folder).is_dir():
                raise ConfigError(f"there is no results folder {quoted(self.folder)} to replay")
            if not samples.is_file():
                raise ConfigError(f"{self.folder} has no answers to replay: {SAMPLES} is missing")
            try:
                failures, has_target = _failures(_records(Path(self.folder))), _has_target(Path(self.folder))
                with samples.open("rb") as file:
                    lines = iter(lambda: file.readline(row_limit() + 1), b"")
                    places = _places(lines, str(samples), digest)
            except OSError as error:
                raise ConfigError(f"{self.folder} can't be read: {error.strerror}") from None
        digest.update(json.dumps(sorted(failures.items())).encode())
        if self.version not in ("", digest.hexdigest()):
            raise ConfigError("the version of a replayed run is a hash of its answers; omit version")
        object.__setattr__(self, "_places", places)
        object.__setattr__(self, "_failures", failures)
        object.__setattr__(self, "_has_target", has_target)
        object.__setattr__(self, "version", digest.hexdigest())

    @property
    def name(self) -> str:
        """The address."""
        return f"replay:{self.folder if self.run is None else self.run.id}"

    @property
    def _where(self) -> str:
        return self.folder if self.run is None else f"run {self.run.id}"

    @property
    def inputs(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """None, because answers are found by sample ID."""
        return ()

    @property
    def holds_conversations(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """True: a conversation is replayed as a whole."""
        return True

    def check(self, trials: int = 1) -> None:
        """Raise ConfigError if fewer trials were recorded."""
        recorded = max((trial for _, trial in (*self._places, *self._failures)), default=0)
        if trials > recorded:
            raise ConfigError(f"{self._where} has {recorded} of the {trials} trials to replay; use at most {recorded}")

    async def call(self, sample: Sample, *, trial: int, thread: str) -> Answer:
        """The recorded answer to the sample and trial."""
        key = (sample.id, trial)
        if (failure := self._failures.get(key)) is not None:
            raise TargetError(failure)
        if (place := self._places.get(key)) is None:
            note = default_id_note(sample.id)
            raise TargetError(f"sample {sample.id!r}, trial {trial}, is not recorded in {self._where}{note}")
        recorded = self._recorded(*place)
        if (recorded.id, recorded.trial or 1) != key:
            raise TargetError(f"{self._where} has changed since the run began")
        if None not in (sample.input, recorded.input) and sample.input != recorded.input:
            raise TargetError(
                f"the input of sample {sample.id!r} differs from that in {self._where}: {excerpt(recorded.input)}"
            )
        took: Any = recorded.metadata.get("target")
        if took is None and self._has_target:
            raise TargetError(f"sample {sample.id!r}, trial {trial}, has no answer in {self._where}")
        return Answer(
            output=recorded.output,
            messages=recorded.messages,
            context=recorded.context,
            trajectory=recorded.trajectory,
            instructions=recorded.instructions,
            metadata=own_metadata(recorded),
            state=recorded.state,
            turns=recorded.turns,
            cost=0.0,
            trace=None if took is None else {"recorded": to_jsonable(took)},
        )

    def _recorded(self, place: int, size: int) -> Sample:
        try:
            return sample_of(json.loads(self._line(place, size)))
        except (OSError, ValueError, RecursionError, ConfigError) as error:
            raise TargetError(f"{self._where} can no longer be read: ", error) from None

    def _line(self, place: int, size: int) -> bytes:
        if self._data is not None:
            return self._data.read(place, size)
        with Path(self.folder, SAMPLES).open("rb") as file:
            file.seek(place)
            return file.readline()


def _spooled(run: RecordedRun, failures: Mapping[tuple[str, int], str], data: TemporaryData) -> Iterator[bytes]:
    """The samples of a run as lines, which are added to the data. Raises ConfigError if none has an answer."""
    if run.samples is None:
        raise ConfigError(
            f"run {run.id} has no answers to replay: its samples are not in the ledger, because it was imported "
            "without them or stopped before it stored them"
        )
    answered = bool(failures)
    for sample in run.samples:
        data.append(line := sample_line(sample).encode() + b"\n")
        answered = answered or run.target is None or "target" in sample.metadata
        yield line
    if not answered:
        raise ConfigError(f"run {run.id} has no answers to replay: they are no longer in the ledger")


def _places(lines: Iterable[bytes], name: str, digest: Any) -> dict[tuple[str, int], tuple[int, int]]:
    """The offset and the size of the line of each sample and trial. name: the name of the file, for messages."""
    limit, place = row_limit(), 0
    places: dict[tuple[str, int], tuple[int, int]] = {}
    for number, line in enumerate(lines, start=1):
        if len(line) > limit:
            raise DataError(f"{name}, line {number}: it is longer than {limit / 1e6:g} MB")
        try:
            sample = sample_of(json.loads(line))
        except (ValueError, TypeError, AttributeError, RecursionError, ConfigError) as error:
            raise DataError(f"{name}, line {number}: ", error) from None
        key = (sample.id, sample.trial or 1)
        if key in places:
            named = f"sample {sample.id!r}" + (f", trial {sample.trial}" if sample.trial else "")
            raise DataError(f"{name}, line {number}: {named} occurs twice")
        places[key] = place, len(line)
        digest.update(line)
        place += len(line)
    return places


def _has_target(folder: Path) -> bool:
    path = folder / SUMMARY
    try:
        summary: Any = json.loads(file_text(path)) if path.is_file() else {}
        return summary.get("target") is not None
    except DataError:
        raise
    except (ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"{path} can't be read as a run: ", error) from None


def _records(folder: Path) -> Iterator[Record]:
    path = folder / RECORDS
    if not path.is_file():
        return
    for place, value in file_values(path):
        try:
            yield Record.from_dict(value)
        except ConfigError as error:
            raise DataError(f"{place}: ", error) from None


def _failures(records: Iterable[Record]) -> dict[tuple[str, int], str]:
    """The errors of the recorded run's target."""
    return {
        (record.sample_id, record.trial or 1): record.outcome.error.removeprefix(TARGET_FAILED)
        for record in records
        if isinstance(record.outcome, Failed) and record.outcome.by_target
    }
