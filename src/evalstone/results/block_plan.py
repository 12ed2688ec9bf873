"""The plan of a run in blocks: `plan.json` in its results folder, which all processes read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalstone._core.declarations import check_argument
from evalstone._core.file_format import PLAN_FORMAT, installed_version
from evalstone._core.guards import is_mapping
from evalstone._core.json import content_hash, to_jsonable
from evalstone._core.storage import Location
from evalstone._core.validation import read_data
from evalstone.datasets.files import DataFile
from evalstone.datasets.part_samples import Block
from evalstone.datasets.parts import Part
from evalstone.datasets.reading import Reading
from evalstone.datasets.writing import json_line
from evalstone.errors import ConfigError, DataError
from evalstone.results.record_tables import Keep
from evalstone.results.summary import ScorerInfo
from evalstone.types import NOTHING_STORED, Asking, StoredScorer

PLAN = "plan.json"
_WRITE_IT_AGAIN = (
    "restore it, or delete it and run the command that scored the blocks again, which keeps those that are finished"
)


@dataclass(frozen=True, kw_only=True)
class BlockPlan:
    """A dataset cut into blocks, and what scores them."""

    fingerprint: str
    """The identity of the plan, as `Plan.fingerprint` has it, and of the borders of its blocks."""
    evalstone: str = field(default_factory=installed_version)
    """The version of evalstone that made the plan."""
    dataset_name: str
    dataset_version: str
    n_samples: int
    scorers: tuple[ScorerInfo, ...]
    judge: str
    """The identity of the judge."""
    judges: Mapping[str, str]
    """By the identity of a judge that a scorer may ask, its note."""
    asked: tuple[str, ...]
    """The identities of the judges that scorers are known to ask."""
    asking: Asking = NOTHING_STORED
    """How the judges are asked."""
    keep_reasoning: bool
    keep: Keep
    reading: Reading
    files: tuple[DataFile, ...]
    blocks: tuple[Block, ...]
    notes: tuple[str, ...] = ()
    """Caveats about the data, as in `Dataset.notes`."""

    def to_dict(self) -> dict[str, Any]:
        """The plan as `plan.json` has it, without the checksum."""
        numbers = {file.location: number for number, file in enumerate(self.files)}
        return {
            "format": PLAN_FORMAT,
            "evalstone": self.evalstone,
            "fingerprint": self.fingerprint,
            "dataset": {"name": self.dataset_name, "version": self.dataset_version, "samples": self.n_samples},
            "scorers": [info.to_stored() for info in self.scorers],
            "judge": self.judge,
            "judges": dict(self.judges),
            "asked": list(self.asked),
            "asking": to_jsonable(self.asking),
            "keep_reasoning": self.keep_reasoning,
            "keep": self.keep,
            "reading": self.reading.to_dict(),
            "notes": list(self.notes),
            "files": [
                {"address": str(file.location.absolute), "size": file.location.size, "changed": file.location.changed}
                for file in self.files
            ],
            "blocks": [
                {
                    "file": numbers[block.part.file.location],
                    "start": block.part.start,
                    "stop": block.part.stop,
                    "samples": block.samples,
                    **({"ids": {str(place): id for place, id in block.renamed.items()}} if block.renamed else {}),
                }
                for block in self.blocks
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], source: str) -> BlockPlan:
        """The plan in a `plan.json`. Raises DataError, which names the file, for anything else, and for a plan that
        isn't as it was written."""
        PLAN_FORMAT.check(data, source)
        if not is_mapping(data) or data.get("checksum") != checksum_of(data):
            raise DataError(
                f"{source} isn't as it was written: its content doesn't have its checksum; {_WRITE_IT_AGAIN}"
            )
        try:
            stored = read_data(_StoredPlan, data)
            reading = Reading(**vars(stored.reading))
            files = tuple(_file_of(each, reading) for each in stored.files)
            return cls(
                fingerprint=stored.fingerprint,
                evalstone=stored.evalstone,
                dataset_name=stored.dataset.name,
                dataset_version=stored.dataset.version,
                n_samples=stored.dataset.samples,
                scorers=tuple(map(ScorerInfo.of, stored.scorers)),
                judge=stored.judge,
                judges=stored.judges,
                asked=stored.asked,
                asking=stored.asking,
                keep_reasoning=stored.keep_reasoning,
                keep=check_argument("keep", stored.keep, Keep),
                reading=reading,
                files=files,
                blocks=tuple(_blocks(stored.blocks, files)),
                notes=stored.notes,
            )
        except (DataError, IndexError, ValueError) as error:
            raise DataError(f"{source} isn't a plan: ", error) from None

    def write(self, folder: Location) -> None:
        """Write `plan.json` into a results folder. Processes that plan the same write the same."""
        data = json.loads(json_line(self.to_dict()))  # as it is read
        (folder / PLAN).write(f"{json_line(data | {'checksum': checksum_of(data)})}\n".encode())

    @classmethod
    def read(cls, folder: Location) -> BlockPlan | None:
        """The plan in a results folder; None if there is none. Raises DataError if it can't be read."""
        file = folder / PLAN
        if file.found() is None:
            return None
        try:
            return cls.from_dict(json.loads(file.read()), str(file))
        except (ValueError, RecursionError) as error:
            if isinstance(error, ConfigError):
                raise
            raise DataError(f"{file} isn't a plan: ", error, f"; {_WRITE_IT_AGAIN}") from None

    def is_of(self, files: Sequence[DataFile]) -> bool:
        """Whether the plan was made of these files, as they are now."""
        here, planned = ([file.location.absolute for file in listed] for listed in (files, self.files))
        return here == planned


def checksum_of(data: Mapping[str, Any]) -> str:
    """The checksum of a plan as data, of all but its own checksum."""
    return content_hash({name: value for name, value in data.items() if name != "checksum"})


@dataclass(frozen=True)
class _StoredDataset:
    name: str
    version: str
    samples: int


@dataclass(frozen=True)
class _StoredFile:
    address: str
    size: int
    changed: str


@dataclass(frozen=True)
class _StoredBlock:
    file: int
    start: int
    samples: int
    stop: int | None = None
    ids: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class _StoredReading:
    map: Mapping[str, Any] | None = None
    split: Mapping[str, str] | None = None
    encoding: str | None = None
    sheet: str | None = None


@dataclass(frozen=True)
class _StoredPlan:
    fingerprint: str
    evalstone: str
    dataset: _StoredDataset
    scorers: tuple[StoredScorer, ...]
    judge: str
    judges: Mapping[str, str]
    asked: tuple[str, ...]
    asking: Asking
    keep: str
    reading: _StoredReading
    files: tuple[_StoredFile, ...]
    blocks: tuple[_StoredBlock, ...]
    checksum: str
    keep_reasoning: bool = False
    notes: tuple[str, ...] = ()


def _file_of(stored: _StoredFile, reading: Reading) -> DataFile:
    location = Location.of(stored.address)
    file = DataFile.at(replace(location, size=stored.size, changed=stored.changed))
    return replace(file, encoding=reading.encoding, sheet=reading.sheet)


def _blocks(stored: Sequence[_StoredBlock], files: Sequence[DataFile]) -> Iterator[Block]:
    first = 0
    for number, each in enumerate(stored):
        if not 0 <= each.file < len(files) or each.samples < 1:
            raise DataError(f"block {number} has no valid file or samples")
        yield Block(
            number=number,
            part=Part(files[each.file], each.start, each.stop),
            first=first,
            samples=each.samples,
            renamed={int(place): id for place, id in each.ids.items()},
        )
        first += each.samples
