"""A dataset that is edited: the version that is changed, the changes, and what becomes of samples that are added."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evalstone._core.json import content_hash, storable, value_of
from evalstone.datasets.blocks import SpooledSamples
from evalstone.datasets.identity import Version
from evalstone.datasets.stored import content_of, sample_line, sample_of, sample_row
from evalstone.errors import EvalstoneError
from evalstone.ledger.datasets import StoredLines, write_version
from evalstone.ledger.store import Ledger
from evalstone.types import Sample
from evalstone.view.drafts import EDITS, DatasetFolder, Draft
from evalstone.view.indexing.jobs import Building
from evalstone.view.indexing.places import Places
from evalstone.view.library import Library
from evalstone.view.responses import BadAddress, NotThere
from evalstone.view.shelf import ReadOnly
from evalstone.view.versions import Dataset, dataset_named, look_for_samples

if TYPE_CHECKING:
    from starlette.responses import Response

PER_STEP = 1000
"""The number of samples after which it is said how far saving is."""
Row: TypeAlias = Mapping[str, Any]
Change: TypeAlias = Literal["changed", "added", "removed"]
Status: TypeAlias = Literal["new", "there", "same", "renamed", "reference"]
"""What becomes of a sample that is added: it is new; it is there; it is there under another ID; its ID has another
sample, so it gets another one; it is there with another expected answer, which is changed."""


def row_hash(row: Any) -> str:
    """What identifies a sample, or a field of one, as it is; "" for none."""
    return "" if row is None else content_hash(row)


@dataclass(frozen=True)
class Editing:
    """A dataset that is edited.

    Attributes:
        folder: Where it is saved.
        draft: What is changed; with no changes yet, what the changes would begin with.
        unread: Why it can't be edited before its file is read; "" if it can.
        dataset: What is known of it; None if it is new.
        places: Those of the samples in the version that is changed.
        ledger: The ledger, open for reading.
    """

    folder: DatasetFolder
    draft: Draft
    unread: str
    dataset: Dataset | None
    places: Places
    lines: StoredLines

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.draft.dataset

    @property
    def path(self) -> str:
        """The path of the file that it is saved as."""
        return self.folder.shown_path(self.draft.file)

    def base_row(self, id: str) -> Row | None:
        """A sample in the version that is changed; None if it isn't there."""
        place = self.places.ids.get(storable(id))
        return None if place is None else self.row_at(place)

    def row_at(self, place: int) -> Row:
        """The sample at a place in the version that is changed. Raises EvalstoneError if it is gone."""
        if (line := self.lines.at(place)) is None:
            raise EvalstoneError(f"The samples of version {self.draft.base} are gone from the ledger.")
        return _plain(value_of(line))

    def row(self, id: str) -> Row | None:
        """A sample as it is now; None if it isn't there."""
        key = storable(id)
        return self.draft.changes[key] if key in self.draft.changes else self.base_row(id)

    def change_of(self, key: str) -> Change:
        """How a sample is changed. key: its ID, as in the draft."""
        if self.draft.changes[key] is None:
            return "removed"
        return "changed" if key in self.places.ids else "added"

    @property
    def size(self) -> int:
        """The number of samples with the changes."""
        changes = [self.change_of(key) for key in self.draft.changes]
        return len(self.places.ids) + changes.count("added") - changes.count("removed")

    def put(self, id: str, row: Row | None) -> Draft:
        """The draft with a sample as it shall be. One that is as it was isn't changed."""
        is_same = row_hash(row) == row_hash(self.base_row(id))
        return self.draft.without(id) if is_same else self.draft.with_change(id, row)

    def samples(self) -> Iterator[Sample]:
        """The samples with the changes: those of the version in their order, and then those that are added."""
        for line in self.lines.every() if self.draft.base else ():
            row = value_of(line)
            row = self.draft.changes.get(storable(row["id"]), row)
            if row is not None:
                yield sample_of(row)
        for key, row in self.draft.changes.items():
            if row is not None and key not in self.places.ids:
                yield sample_of(row)


@contextmanager
def changing(library: Library, name: str) -> Generator[Editing]:
    """A dataset to change. Nobody else changes it meanwhile. Errors as for `opened`.

    Raises:
        BadAddress: Its samples are being read.
    """
    with folder_of(library).locked(), library.shelf.reading() as ledger:
        editing = opened(library, name, ledger)
        if not isinstance(editing, Editing):
            raise BadAddress("The samples are being read. Send the form again in a moment.")
        if editing.unread:
            raise BadAddress(editing.unread)
        yield editing


def _plain(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "format"}


def folder_of(library: Library) -> DatasetFolder:
    """The folder that datasets are saved in. Raises ReadOnly if none can be edited."""
    folder, refusal = library.shelf.datasets, library.shelf.edit_refusal
    if folder is None or refusal:
        raise ReadOnly(refusal)
    return folder


def opened(library: Library, name: str, ledger: Ledger) -> Editing | Response:
    """A dataset to edit, or, while its samples are found, a page that says how far that is.

    Raises:
        ReadOnly: No dataset can be edited.
        NotThere: No version has its samples in the ledger.
        EvalstoneError: The edits or the samples can't be read.
    """
    folder = folder_of(library)
    dataset = dataset_named(library, name)
    file, unread = folder.file_for(name), ""
    draft = folder.draft(file)
    if draft is not None and draft.dataset != name:
        raise EvalstoneError(
            f"{folder.shown_path(file)} has edits of {draft.dataset} that aren't saved. Save or discard them first."
        )
    if draft is None:
        replaces, base = folder.hash_of(file), ""
        if dataset is not None:
            look_for_samples(library, dataset.versions.values())
            base = next((each.version for each in dataset.versions.values() if each.is_stored), "")
        if replaces:
            base = folder.version_in(file, ledger)
            if not base:
                unread = f"The samples of {folder.shown_path(file)} aren't in the ledger yet: no run has used them."
        elif dataset is not None and not base:
            raise NotThere(f"The samples of {name} aren't in the ledger. Runs in results folders keep only theirs.")
        draft = Draft(file=file, dataset=name, base=base, replaces=replaces)
    if draft.base and not ledger.samples(draft.base):
        raise EvalstoneError(
            f"The samples of version {draft.base}, which the edits of {name} begin with, are gone from the ledger. "
            f"Delete {folder.shown_path(file + EDITS)} to edit another version."
        )
    places = Places() if unread else library.places(name, draft.base)
    if not isinstance(places, Places):
        return places
    return Editing(folder, draft, unread, dataset, places, StoredLines(ledger, draft.base))


def saved(library: Library, editing: Editing, building: Building) -> str:
    """Save the edits as a version, and as a file. Returns the version. building: where it is said how far that is.

    Raises:
        Meanwhile: The file was changed elsewhere.
        EvalstoneError: Something can't be read or written.
    """
    draft, folder = editing.draft, editing.folder
    if not editing.size:
        raise EvalstoneError("A dataset has at least one sample. Add one, or keep one.")
    version = Version()

    def counted() -> Iterator[Sample]:
        # Most of the time is spent here.
        for number, sample in enumerate(editing.samples()):
            version.add(sample.id, sample.content_hash)
            if number % PER_STEP == 0:
                building.step("saving", number, editing.size + 1)
            yield sample

    samples = SpooledSamples.of(counted())
    if len(samples) != editing.size:
        raise EvalstoneError(f"The samples of version {draft.base} are gone from the ledger.")
    # If a kill came after the file was written, it has these edits already.
    if folder.version_in(draft.file, editing.lines.ledger) != str(version):
        folder.check_unchanged(draft.file, draft.replaces)
        with library.shelf.writing() as ledger:
            write_version(ledger, draft.file, str(version), samples)
        folder.write_file(draft.file, str(version), samples, draft.replaces)
    folder.write(replace(draft, changes={}))
    return str(version)


def read_in(library: Library, name: str) -> None:
    """Store the samples of a dataset's file in the ledger. Raises EvalstoneError if that can't be done."""
    folder = folder_of(library)
    with folder.locked():
        file = folder.file_for(name)
        if not folder.hash_of(file):
            raise NotThere(f"There is no file {folder.shown_path(file)} that evalstone wrote.")
        dataset = folder.read(file)
        with library.shelf.writing() as ledger:
            write_version(ledger, file, dataset.version, dataset.samples)


# ---- Samples that are added ----


@dataclass(frozen=True)
class Addition:
    """What becomes of a sample that is added."""

    sample: Sample
    status: Status
    text: str
    """More of that in words; "" if there is nothing to say."""


@dataclass
class Additions:
    """What becomes of samples that are added, one after the other."""

    editing: Editing
    draft: Draft = field(init=False)
    """With what was added."""

    def __post_init__(self) -> None:
        self.draft = self.editing.draft
        self._contents: dict[int, str] = {}
        for row in self.draft.changes.values():
            if row is not None:
                self._contents[_content(row)] = row["id"]

    def add(self, sample: Sample) -> Addition:
        """Add a sample, unless it is there."""
        row = sample_row(sample)
        there = self._row(sample.id)
        if there is not None and row_hash(there) == row_hash(row):
            return Addition(sample, "there", "")
        if there is not None and _but_reference(there) == _but_reference(row):
            self._put(sample.id, row)
            return Addition(sample, "reference", "its expected answer changes")
        if (other := self._same(row)) is not None:
            return Addition(sample, "same", f"is there already as {other}")
        if not self._is_used(sample.id):
            self._put(sample.id, row)
            return Addition(sample, "new", "")
        number = 2
        while self._is_used(id := f"{sample.id} ({number})"):
            number += 1
        self._put(id, {**row, "id": id})
        return Addition(replace(sample, id=id), "renamed", f"another sample has this ID: it is added as {id}")

    def _row(self, id: str) -> Row | None:
        key = storable(id)
        return self.draft.changes[key] if key in self.draft.changes else self.editing.base_row(id)

    def _is_used(self, id: str) -> bool:
        """Whether a sample has the ID, or had it before it was removed: adding it would change that one."""
        return storable(id) in self.draft.changes or storable(id) in self.editing.places.ids

    def _same(self, row: Row) -> str | None:
        """The ID of a sample that is the same but for its ID."""
        content = _content(row)
        if (id := self._contents.get(content)) is not None:
            return id
        if (place := self.editing.places.contents.get(content)) is None:
            return None
        other = self.editing.row_at(place)
        is_changed = storable(other["id"]) in self.draft.changes
        return None if is_changed or row_hash({**other, "id": ""}) != row_hash({**row, "id": ""}) else other["id"]

    def _put(self, id: str, row: Row) -> None:
        self.draft = self.draft.with_change(id, row)
        self._contents[_content(row)] = id


def _but_reference(row: Row) -> str:
    return row_hash({**row, "reference": ""})


def _content(row: Row) -> int:
    return hash(content_of(sample_line(sample_of(row)), row["id"]))


def added(editing: Editing, samples: Iterable[Sample]) -> tuple[Draft, Sequence[Addition]]:
    """The draft with samples added, and what became of each."""
    additions = Additions(editing)
    listed = [additions.add(sample) for sample in samples]
    return additions.draft, listed
