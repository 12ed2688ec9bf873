"""The versions of datasets, with the runs of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from evalstone.view.library import Library
from evalstone.view.shelf import Card


@dataclass
class Version:
    """A version of a dataset."""

    version: str
    first_seen: str
    samples: int
    runs: list[Card] = field(default_factory=list[Card])
    """Latest first."""
    is_stored: bool = False
    """Whether its samples are in the ledger."""


@dataclass
class Dataset:
    """A dataset with its versions."""

    name: str
    versions: dict[str, Version] = field(default_factory=dict[str, Version])
    """Latest first."""

    @property
    def latest(self) -> Version:
        """The version that was seen last for the first time."""
        return next(iter(self.versions.values()))

    @property
    def runs(self) -> list[Card]:
        """Its runs, latest first."""
        runs = [card for version in self.versions.values() for card in version.runs]
        return sorted(runs, key=lambda card: card.started, reverse=True)


def all_datasets(library: Library) -> dict[str, Dataset]:
    """The datasets by name: those of runs, and those in the ledger."""
    found: dict[str, Dataset] = {}

    def version(name: str, version: str, seen: str, samples: int) -> Version:
        versions = found.setdefault(name, Dataset(name)).versions
        return versions.setdefault(version, Version(version, seen, samples))

    for row in library.shelf.dataset_versions():
        version(row.name, row.version, row.first_seen, row.samples)
    oldest = dict[str, int]()
    for place, card in enumerate(library.shelf.cards()):
        if card.metadata is not None:
            stored = card.metadata.dataset
            of = version(stored.name, stored.version, card.started, stored.samples)
            of.runs.append(card)
            of.first_seen = min(of.first_seen, card.started)
            oldest[stored.version] = place

    def age(version: Version) -> tuple[str, int]:
        return version.first_seen, -oldest.get(version.version, 0)  # times have seconds, and runs may take less

    for dataset in found.values():
        dataset.versions = {each.version: each for each in sorted(dataset.versions.values(), key=age, reverse=True)}
    return found


def dataset_named(library: Library, name: str) -> Dataset | None:
    """The dataset with this name; None if there is none."""
    return all_datasets(library).get(name)


def look_for_samples(library: Library, versions: Iterable[Version]) -> None:
    """Find out which versions have all of their samples in the ledger."""
    if library.shelf.ledger is not None:
        with library.shelf.reading() as ledger:
            for version in versions:
                version.is_stored = version.samples > 0 and ledger.samples(version.version) == version.samples
