"""Edits of datasets that aren't saved yet, and the files that they are saved as: all in one folder.

Nothing else is written. A file is replaced only if each of its lines is a sample that evalstone wrote, and only if it
is the file that the edits began with.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import unicodedata
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from evalstone._core.file_format import DATASET_EDITS_FORMAT, SAMPLE_FORMAT
from evalstone._core.files import cannot_write, is_folder, lock, private
from evalstone._core.json import content_hash, storable
from evalstone.datasets.loading import Dataset, load
from evalstone.datasets.stored import RECORDS, SUMMARY, sample_lines
from evalstone.datasets.writing import plain_line, write_text
from evalstone.errors import ConfigError, DataError, EvalstoneError
from evalstone.ledger.datasets import StoredLines, dataset_versions
from evalstone.ledger.store import Ledger
from evalstone.types import Sample

LINES = ".jsonl"
EDITS = ".edits"
"""What follows the name of a dataset's file in the name of the file of its edits."""
LOCK = ".evalstone.lock"
LONGEST_NAME = 100
MOST_BYTES_OF_NAME = 190
"""File systems take 255 bytes, and the file that is written first has more in its name."""
_BEGINNING = f'{{"format": "{SAMPLE_FORMAT}", '.encode()
_RESERVED = frozenset(("con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in "0123456789¹²³")))
"""Names that are devices in Windows."""


_State: TypeAlias = tuple[int, int, int]
"""What changes with a file: when it was written, its size, and its number."""


class _Hash(NamedTuple):
    """What identifies a file: the hash of its lines, and their number."""

    digest: str
    lines: int


class Meanwhile(EvalstoneError):
    """What a form is about was changed elsewhere after its page was made."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Edits of a dataset that aren't saved yet."""

    file: str
    """The name of the file that they are saved as."""
    dataset: str
    """The name of the dataset that they change."""
    base: str = ""
    """The version that they change; "" if the dataset is new."""
    replaces: str = ""
    """The hash of the file that is replaced; "" if there was none."""
    changes: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict[str, Mapping[str, Any] | None])
    """The samples that were edited or added as rows, by ID as `storable`; None for one that was removed."""
    state: str = ""
    """What identifies these edits."""

    def with_change(self, id: str, row: Mapping[str, Any] | None) -> Draft:
        """The draft with a sample as it shall be; None to remove it."""
        return replace(self, changes={**self.changes, storable(id): row})

    def without(self, id: str) -> Draft:
        """The draft without the change of a sample."""
        return replace(self, changes={key: row for key, row in self.changes.items() if key != storable(id)})


class DatasetFolder:
    """The folder that datasets are saved in.

    Raises:
        ConfigError: It isn't a folder that can be written, or is a results folder.
    """

    def __init__(self, path: str) -> None:
        self.path, self.shown = Path(path), path
        if not is_folder(path):
            raise ConfigError(f"the folder for datasets, {path}, doesn't exist")
        self._check()
        self._lock = threading.RLock()
        self._hashes: dict[tuple[str, _State], _Hash] = {}
        self._versions: dict[tuple[str, _State], str] = {}
        """Of files that were read."""
        self._stored: dict[str, str] = {}
        """The hashes that files of versions in the ledger have."""

    def _check(self) -> None:
        for name in (SUMMARY, RECORDS):
            if (self.path / name).exists():
                raise ConfigError(f"{self.shown} is a results folder; name another one for datasets")

    @property
    def refusal(self) -> str:
        """Why nothing can be written; "" if it can."""
        return "" if os.access(self.path, os.W_OK | os.X_OK) else f"The folder {self.shown} can't be written."

    # ---- Files ----

    def shown_path(self, file: str) -> str:
        """The path of a file, as for a command."""
        return str(Path(self.shown) / file)

    def file_for(self, dataset: str) -> str:
        """The name of the file that a dataset is saved as: its own, unless a file is there that isn't one of ours.

        Datasets of different names are different files: `x.csv` and `x.json` stay apart, and a name that no file has
        has a hash added.
        """
        stem = dataset.removesuffix(LINES)
        plain = "".join(each if each.isalnum() or each in "-_." else "_" for each in unicodedata.normalize("NFC", stem))
        plain = plain.lstrip(".-_").rstrip(".")[:LONGEST_NAME] or "dataset"
        plain = plain.encode()[:MOST_BYTES_OF_NAME].decode(errors="ignore")
        device, dot, rest = plain.partition(".")
        plain = f"{device}_{dot}{rest}" if device.lower() in _RESERVED else plain
        if plain != stem:
            plain = f"{plain}-{content_hash(dataset)[:6]}"
        number, name = 1, f"{plain}{LINES}"
        while self._is_spelled_otherwise(name) or (
            not self.is_ours(name) and not (self.path / f"{name}{EDITS}").exists()
        ):
            number += 1
            name = f"{plain}-{number}{LINES}"
        return name

    def _is_spelled_otherwise(self, file: str) -> bool:
        """Whether a file, or that of its edits, is another dataset's, whose name differs in case: some file systems,
        as those of Windows and macOS, take them for one."""
        there = {each for each in (file, f"{file}{EDITS}") if os.path.lexists(self.path / each)}
        return bool(there) and not there <= {each.name for each in self.path.iterdir()}

    def is_ours(self, file: str) -> bool:
        """Whether a file isn't there, or has nothing but samples that evalstone wrote."""
        return not os.path.lexists(self.path / file) or bool(self.hash_of(file))

    def hash_of(self, file: str) -> str:
        """The hash of a file of ours; "" for another one, and if there is none."""
        path = self.path / file
        try:
            if path.is_symlink() or not path.is_file():
                return ""
            state = _state(path)
            if (file, state) not in self._hashes:
                self._hashes[file, state] = _hash(path)
            return self._hashes[file, state].digest
        except OSError:
            return ""

    def read(self, file: str) -> Dataset:
        """The dataset in a file. Raises EvalstoneError if it can't be read."""
        dataset = load(self.path / file)
        self._versions[file, _state(self.path / file)] = dataset.version
        return dataset

    def version_in(self, file: str, ledger: Ledger) -> str:
        """The version of a file of ours; "" if it isn't one in the ledger.

        It is the version with the same lines, so that no sample has to be read.

        Raises:
            EvalstoneError: A version can't be read.
        """
        if not (digest := self.hash_of(file)):
            return ""
        state = _state(self.path / file)
        for each in dataset_versions(ledger) if (file, state) not in self._versions else ():
            if each.samples == self._hashes[file, state].lines == ledger.samples(each.version):
                if each.version not in self._stored:
                    self._stored[each.version] = _stored_hash(ledger, each.version)
                if self._stored[each.version] == digest:
                    self._versions[file, state] = each.version
                    break
        version = self._versions.get((file, state), "")
        return version if version and ledger.samples(version) else ""

    def check_unchanged(self, file: str, replaces: str) -> None:
        """Raise Meanwhile if a file isn't the one that edits began with. replaces: its hash; "" if there was none."""
        if self.hash_of(file) != replaces or not self.is_ours(file):
            raise Meanwhile(
                f"{self.shown_path(file)} was changed elsewhere after these edits were begun, and isn't overwritten. "
                "Discard the edits, or move the file."
            )

    def write_file(self, file: str, version: str, samples: Sequence[Sample], replaces: str) -> None:
        """Write a version.

        Raises:
            Meanwhile: As for `check_unchanged`, also if it was changed while the samples were written.
            EvalstoneError: It can't be written.
        """

        def every() -> Iterator[str]:
            yield from (f"{line}\n" for line in sample_lines(samples))
            self.check_unchanged(file, replaces)

        write_text(self.path / file, every(), redact=False)
        self._versions[file, _state(self.path / file)] = version

    # ---- Edits ----

    def drafts(self) -> list[Draft]:
        """All edits that aren't saved, the latest first. Those that can't be read are left out."""
        files = [*self.path.glob(f"*{LINES}{EDITS}")]
        found: list[tuple[float, Draft]] = []
        for file in files:
            try:
                if (draft := self.draft(file.name.removesuffix(EDITS))) is not None:
                    found.append((file.stat().st_mtime, draft))
            except (OSError, EvalstoneError):
                continue  # its own page says what is wrong
        return [draft for _, draft in sorted(found, key=lambda each: each[0], reverse=True)]

    def draft(self, file: str) -> Draft | None:
        """The edits that are to be saved as a file; None if there are none.

        Raises:
            EvalstoneError: They can't be read, or are a link: what that leads to is never written.
        """
        path = self.path / f"{file}{EDITS}"
        try:
            if not os.path.lexists(path):
                return None
            if path.is_symlink() or not path.is_file():
                raise EvalstoneError(
                    f"{path} must be a file with edits, not a link or a folder. Remove it to edit {file}."
                )
            text = path.read_bytes()
            head, *rows = text.decode().removesuffix("\n").split("\n")
            about = json.loads(head)
            DATASET_EDITS_FORMAT.check(about, str(path))
            changes = {row["id"]: row["sample"] for row in map(json.loads, rows)}
            state = hashlib.blake2b(text, digest_size=16).hexdigest()
            return Draft(
                file=file,
                dataset=about["dataset"],
                base=about["base"],
                replaces=about["replaces"],
                changes=changes,
                state=state,
            )
        except OSError as error:
            raise EvalstoneError(f"The edits in {path} can't be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, DataError):
            raise EvalstoneError(f"The edits in {path} can't be read. Delete this file to edit {file} again.") from None

    def write(self, draft: Draft) -> None:
        """Keep edits; without any, delete their file.

        Raises:
            EvalstoneError: They can't be written.
        """
        path = self.path / f"{draft.file}{EDITS}"
        if not draft.changes:
            path.unlink(missing_ok=True)
            return
        about = {"dataset": draft.dataset, "base": draft.base, "replaces": draft.replaces}
        rows = ({"id": id, "sample": row} for id, row in draft.changes.items())
        lines = (plain_line({"format": DATASET_EDITS_FORMAT, **row}) for row in (about, *rows))
        write_text(path, (f"{line}\n" for line in lines), redact=False)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Keep other threads and processes from writing.

        Raises:
            EvalstoneError: The folder is gone, can't be written, or is a results folder now.
        """
        path = self.path / LOCK
        with self._lock:
            self._check()
            try:
                file = open(path, "ab", opener=_private_here)  # noqa: SIM115 - Path.open has no opener
            except OSError as error:
                raise cannot_write(f"cannot write {self.shown_path(LOCK)}", error) from None
            with file:
                lock(file)
                yield


def _private_here(path: str, flags: int) -> int:
    """As `private`, but a link isn't followed, which could lead out of the folder."""
    return private(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _state(path: Path) -> _State:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _hash(path: Path) -> _Hash:
    """The hash of a file whose lines are all samples that evalstone wrote; "" for any other."""
    digest, number = hashlib.blake2b(digest_size=16), 0
    with path.open("rb") as lines:
        for line in lines:
            if not line.startswith(_BEGINNING):
                return _Hash("", 0)
            digest.update(line)
            number += 1
    return _Hash(digest.hexdigest(), number) if number else _Hash("", 0)


def _stored_hash(ledger: Ledger, version: str) -> str:
    """The hash of a file with the lines of a version."""
    digest = hashlib.blake2b(digest_size=16)
    for line in StoredLines(ledger, version).every():
        digest.update(f"{line}\n".encode())
    return digest.hexdigest()
