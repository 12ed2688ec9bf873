"""Recorded runs as targets: their answers, by sample and trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstone._core.files import file_text, file_values, row_limit
from evalstone._core.json import to_jsonable
from evalstone.datasets.stored import RECORDS, SAMPLES, SUMMARY, sample_of
from evalstone.errors import ConfigError, DataError, TargetError
from evalstone.targets.base import FAILED, Answer, Target
from evalstone.types import Failed, Record, Sample


@dataclass(frozen=True, kw_only=True)
class ReplayTarget(Target):
    """The answers that a run recorded in its results folder, by the id of the sample and the trial.

    A run without trials answers the first trial. What failed in the recorded run fails again with the same error.
    Replaying costs nothing: what the recorded call took is in the answer's `trace`. The version of this target is a
    hash of what was recorded.

    Raises:
        ConfigError: There is no such folder, it has no answers, or a version was set.
        DataError: A file in it is damaged, or has a sample and trial twice.
    """

    folder: str
    """The results folder, as `--out` or `write_run` wrote it."""
    _places: Mapping[tuple[str, int], int] = field(init=False, repr=False, compare=False)
    """Where the line of a sample and trial begins."""
    _failures: Mapping[tuple[str, int], str] = field(init=False, repr=False, compare=False)
    _has_target: bool = field(init=False, repr=False, compare=False)
    """Whether the recorded run had a target, so that only what that answered is an answer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        samples = Path(self.folder, SAMPLES)
        if not self.folder or not Path(self.folder).is_dir():
            raise ConfigError(f"there is no results folder {self.folder!r} to replay")
        if not samples.is_file():
            raise ConfigError(f"{self.folder} holds no answers to replay: {SAMPLES} is missing")
        digest = hashlib.blake2b(digest_size=8)
        try:
            failures = dict(_failures(Path(self.folder)))
            places: dict[tuple[str, int], int] = {}
            for number, (place, sample) in enumerate(_samples(samples, digest), start=1):
                key = (sample.id, sample.trial or 1)
                if key in places:
                    named = f"sample {sample.id!r}" + (f", trial {sample.trial}" if sample.trial else "")
                    raise DataError(f"{samples}, line {number}: {named} is there twice")
                places[key] = place
        except OSError as error:
            raise ConfigError(f"{self.folder} can't be read: {error.strerror}") from None
        digest.update(json.dumps(sorted(failures.items())).encode())
        if self.version not in ("", digest.hexdigest()):
            raise ConfigError("the version of a replayed run is a hash of its content; leave version out")
        object.__setattr__(self, "_places", places)
        object.__setattr__(self, "_failures", failures)
        object.__setattr__(self, "_has_target", _has_target(Path(self.folder)))
        object.__setattr__(self, "version", digest.hexdigest())

    @property
    def name(self) -> str:
        """The address."""
        return f"replay:{self.folder}"

    @property
    def inputs(self) -> tuple[str, ...]:
        """None: answers go by the id."""
        return ()

    @property
    def holds_conversations(self) -> bool:
        """True: a conversation is replayed with all of its turns."""
        return True

    def check(self, trials: int = 1) -> None:
        """Raise ConfigError where fewer trials were recorded than are to be replayed."""
        recorded = max((trial for _, trial in (*self._places, *self._failures)), default=0)
        if trials > recorded:
            raise ConfigError(
                f"{self.folder} has {recorded} of the {trials} trials to replay; ask for {recorded} at most"
            )

    async def call(self, sample: Sample, *, trial: int, thread: str) -> Answer:
        """What was recorded for the sample and trial."""
        key = (sample.id, trial)
        if (failure := self._failures.get(key)) is not None:
            raise TargetError(failure)
        if (place := self._places.get(key)) is None:
            raise TargetError(f"sample {sample.id!r}, trial {trial}, is not recorded in {self.folder}")
        recorded = self._recorded(place)
        if (recorded.id, recorded.trial or 1) != key:
            raise TargetError(f"{self.folder} has changed since the run began")
        took: Any = recorded.metadata.get("target")
        if took is None and self._has_target:
            raise TargetError(f"sample {sample.id!r}, trial {trial}, has no answer in {self.folder}")
        return Answer(
            output=recorded.output,
            messages=recorded.messages,
            context=recorded.context,
            state=recorded.state,
            turns=recorded.turns,
            cost=0.0,
            trace=None if took is None else {"recorded": to_jsonable(took)},
        )

    def _recorded(self, place: int) -> Sample:
        try:
            with Path(self.folder, SAMPLES).open("rb") as stream:
                stream.seek(place)
                return sample_of(json.loads(stream.readline()))
        except (OSError, ValueError, RecursionError, ConfigError) as error:
            raise TargetError(f"{self.folder} can't be read any more: {error}") from None


def _samples(path: Path, digest: Any) -> Iterator[tuple[int, Sample]]:
    """The samples of a file, each with the place of its line."""
    limit, place = row_limit(), 0
    with path.open("rb") as stream:
        number = 0
        while line := stream.readline(limit + 1):
            number += 1
            if len(line) > limit:
                raise DataError(f"{path}, line {number}: it is longer than {limit / 1e6:g} MB")
            try:
                sample = sample_of(json.loads(line))
            except (ValueError, TypeError, AttributeError, RecursionError, ConfigError) as error:
                raise DataError(f"{path}, line {number}: {error}") from None
            digest.update(line)
            yield place, sample
            place += len(line)


def _has_target(folder: Path) -> bool:
    path = folder / SUMMARY
    try:
        summary: Any = json.loads(file_text(path)) if path.is_file() else {}
        return summary.get("target") is not None
    except (ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"{path} can't be read as a run: {error}") from None


def _failures(folder: Path) -> Iterator[tuple[tuple[str, int], str]]:
    """What the target of the recorded run failed on, with its errors."""
    path = folder / RECORDS
    if not path.is_file():
        return
    for place, value in file_values(path):
        try:
            record = Record.from_dict(value)
        except ConfigError as error:
            raise DataError(f"{place}: {error}") from None
        if isinstance(record.outcome, Failed) and record.outcome.error.startswith(FAILED):
            yield (record.sample, record.trial or 1), record.outcome.error.removeprefix(FAILED)
