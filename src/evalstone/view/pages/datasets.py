"""Datasets: their versions, the runs of each, and how two versions differ."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count
from evalstone.datasets.loading import IN_MEMORY
from evalstone.errors import ConfigError
from evalstone.ledger.datasets import StoredLines
from evalstone.report.csv import csv_rows
from evalstone.scorers.registry import SCORERS
from evalstone.view.addresses import CSV, JSON, dataset_address, edit_address, part, run_address, with_query
from evalstone.view.indexing.dataset_differences import DatasetDifference
from evalstone.view.indexing.tables import choice
from evalstone.view.library import Library
from evalstone.view.names import name_of, when
from evalstone.view.pages.common import Link
from evalstone.view.pages.dataset_changes import DifferenceQuery, difference_context, difference_csv, difference_data
from evalstone.view.responses import (
    BadAddress,
    NotThere,
    attachment,
    csv_file,
    file_name,
    json_data,
    named,
    page,
    query_in,
    suffix_of,
    suffixed,
)
from evalstone.view.versions import Dataset, Version, all_datasets, dataset_named, look_for_samples

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

PER_PAGE = 100
LINES = ".jsonl"
MOST_RUNS = 4
"""The number of runs of a version that are named."""


# ---- All datasets ----


def datasets_page(library: Library, request: Request) -> Response:
    """The datasets by name."""
    suffix = suffix_of(request)
    words = request.query_params.get("q", "").casefold().split()
    every = sorted(all_datasets(library).values(), key=lambda each: each.name)
    matching = [each for each in every if all(word in each.name.casefold() for word in words)]
    if suffix == JSON:
        return json_data([_about(dataset) for dataset in matching])
    if suffix == CSV:
        rows = [_about(dataset) for dataset in matching]
        header = ("dataset", "version", "samples", "versions", "runs", "first_seen", "last_run")
        return csv_file(csv_rows(header, ([row[name] for name in header] for row in rows)), "datasets")
    after = request.query_params.get("after", "")
    rest = [each for each in matching if not after or each.name > after]
    shown = rest[:PER_PAGE]
    query = [("q", " ".join(words))] if words else []
    return page(
        "datasets.html",
        title="Datasets",
        live=library.has_live_scores(),
        q=request.query_params.get("q", ""),
        token=library.edit_token,
        edit_refusal=library.shelf.edit_refusal,
        drafts=_drafts(library),
        total=len(matching),
        rows=[(dataset_address(each.name), each, _about(each), when(each.latest.first_seen)) for each in shown],
        when=when,
        newer=with_query("/datasets", query) if after else "",
        older=with_query("/datasets", [*query, ("after", shown[-1].name)]) if len(rest) > PER_PAGE else "",
        csv_href=with_query("/datasets.csv", query),
        json_href=with_query("/datasets.json", query),
    )


def _drafts(library: Library) -> list[Link]:
    """The datasets with edits that aren't saved."""
    folder = library.shelf.datasets
    if folder is None or not library.edit_token:
        return []
    return [Link(each.dataset, edit_address(each.dataset), number=f"{len(each.changes):,}") for each in folder.drafts()]


def _about(dataset: Dataset) -> dict[str, Any]:
    runs = dataset.runs
    return {
        "dataset": dataset.name,
        "version": dataset.latest.version,
        "samples": dataset.latest.samples,
        "versions": len(dataset.versions),
        "runs": len(runs),
        "first_seen": min(each.first_seen for each in dataset.versions.values()),
        "last_run": runs[0].started if runs else None,
    }


# ---- One dataset ----


@dataclass(frozen=True)
class VersionRow:
    """A version in the list."""

    version: str
    first_seen: str
    samples: str
    runs: tuple[Link, ...]
    more_runs: str
    changes: str
    """Where it is compared with the version before; "" for the first one."""
    file: str
    """Where its samples are; "" if they aren't in the ledger."""
    path: str
    """The file that has it now, or that its runs were of."""
    command: str
    """What runs it; "" unless it is in a file now."""


def dataset_page(library: Library, request: Request) -> Response:
    """The versions of a dataset, and how two of them differ."""
    name_part, suffix = suffixed(request.path_params["name"])
    dataset = _dataset(library, named(name_part))
    query = query_in(request, DifferenceQuery)
    look_for_samples(library, dataset.versions.values())
    if not query.is_complete:
        if suffix == JSON:
            return json_data({"dataset": dataset.name, "versions": _versions_data(dataset), "difference": None})
        if suffix == CSV:
            return csv_file(_versions_csv(dataset), dataset.name)
        return page("dataset.html", **_context(library, dataset, query), table=None)
    old, new = (_stored(dataset, version) for version in (query.old, query.new))
    opened = library.dataset_difference(dataset.name, old.version, new.version)
    if not isinstance(opened, DatasetDifference):
        return opened
    with opened as difference, library.shelf.reading() as ledger:
        try:
            if suffix == CSV:
                difference.page(query.change, query.changed, size=1)  # an error before anything is sent
                return csv_file(difference_csv(library, dataset.name, query), f"{dataset.name}-changes")
            if suffix == JSON:
                data = difference_data(ledger, difference, dataset.name, query)
                return json_data({"dataset": dataset.name, "versions": _versions_data(dataset), "difference": data})
            table = difference_context(ledger, difference, dataset.name, query)
        except ConfigError as error:
            raise BadAddress(error) from None
    return page("dataset.html", **_context(library, dataset, query), table=table)


def dataset_file(library: Library, request: Request) -> Response:
    """The samples of a version as a file that `evalstone run` reads, with the same version.

    It isn't redacted: it would be another version.
    """
    dataset, file = _dataset(library, named(request.path_params["name"])), named(request.path_params["file"])
    if not file.endswith(LINES) or (version := dataset.versions.get(file.removesuffix(LINES))) is None:
        raise NotThere("There is no such file.")
    look_for_samples(library, [version])
    _stored(dataset, version.version)

    def lines() -> Iterator[str]:
        with library.shelf.reading() as ledger:
            for line in StoredLines(ledger, version.version).every():
                yield f"{line}\n"

    return attachment(lines(), _downloaded(dataset), "application/jsonl")


def _downloaded(dataset: Dataset) -> str:
    """The name of the file of a download."""
    return file_name(dataset.name.rpartition(".")[0] or dataset.name, LINES)


def _file(library: Library, dataset: Dataset) -> tuple[str, str, str]:
    """Where a dataset is edited, its file, and the version in that; "" for what there isn't."""
    folder = library.shelf.datasets
    if folder is None or library.shelf.edit_refusal:
        return "", "", ""
    file = folder.file_for(dataset.name)
    with library.shelf.reading() as ledger:
        version = folder.version_in(file, ledger)
    is_there = bool(folder.hash_of(file))
    can_be_edited = is_there or any(each.is_stored for each in dataset.versions.values())
    return (
        edit_address(dataset.name) if can_be_edited else "",
        folder.shown_path(file) if is_there else "",
        version,
    )


def _command(path: str, dataset: Dataset) -> str:
    """The command that runs a file as the latest run of the dataset was. What isn't known by name is a placeholder."""
    run = next((card.metadata for card in dataset.runs if card.metadata is not None), None)
    known = [each.name for each in run.scorers if each.name in SCORERS] if run is not None else []
    words = ["evalstone", "run", shlex.quote(path)]
    for name in dict.fromkeys(known or ["SCORER"]):
        words += ["--scorer", name]
    if run is not None and run.target is not None:
        words += ["--target", "TARGET"]
    if run is not None and run.judge.identity != "none" and not run.judge.identity.startswith("lexical@"):
        words += ["--judge", "JUDGE"]
    return " ".join(words)


def _dataset(library: Library, name: str) -> Dataset:
    if (dataset := dataset_named(library, name)) is None:
        raise NotThere(f"There is no dataset {name} in {', '.join(library.shelf.places) or 'the ledger'}.")
    return dataset


def _stored(dataset: Dataset, version: str) -> Version:
    found = dataset.versions.get(version)
    if found is None:
        raise NotThere(f"{dataset.name} has no version {version}.")
    if not found.is_stored:
        raise NotThere(
            f"The samples of version {version} aren't in the ledger. Runs in results folders keep only theirs."
        )
    return found


def _context(library: Library, dataset: Dataset, query: DifferenceQuery) -> dict[str, Any]:
    versions = [*dataset.versions.values()]
    stored = [each for each in versions if each.is_stored]
    before = {each.version: earlier.version for each, earlier in itertools.pairwise(stored)}
    edit, path, version_there = _file(library, dataset)
    address, all_runs = dataset_address(dataset.name), with_query("/", [("dataset", choice(dataset.name))])
    rows = [
        VersionRow(
            each.version,
            when(each.first_seen),
            f"{each.samples:,}",
            tuple(
                Link(name_of(card), run_address(card.id), number=when(card.started)) for card in each.runs[:MOST_RUNS]
            ),
            f"and {len(each.runs) - MOST_RUNS:,} more" if len(each.runs) > MOST_RUNS else "",
            with_query(address, [("from", before[each.version]), ("to", each.version)]) + "#changes"
            if each.version in before
            else "",
            f"{address}/{part(each.version + LINES)}" if each.is_stored else "",
            path if each.version == version_there else dataset.name if each.runs and dataset.name != IN_MEMORY else "",
            _command(path, dataset) if each.version == version_there else "",
        )
        for each in versions
    ]
    chosen = query if query.is_complete else DifferenceQuery()
    return {
        "title": dataset.name,
        "name": dataset.name,
        "detail": " · ".join((count(len(versions), "version"), count(len(dataset.runs), "run"))),
        "rows": rows,
        "all_runs": all_runs,
        "address": address,
        "edit": edit,
        "edit_refusal": library.shelf.edit_refusal,
        "other_file": path if version_there not in dataset.versions else "",
        "command": _command(_downloaded(dataset), dataset) if stored and version_there not in dataset.versions else "",
        "choices": [(each.version, f"{each.version} · {when(each.first_seen)}") for each in stored],
        "old": chosen.old or (stored[1].version if len(stored) > 1 else ""),
        "new": chosen.new or (stored[0].version if stored else ""),
        "query": query,
        "csv_href": dataset_address(dataset.name, CSV),
        "json_href": dataset_address(dataset.name, JSON),
    }


def _versions_data(dataset: Dataset) -> list[dict[str, Any]]:
    return [
        {
            "version": each.version,
            "first_seen": each.first_seen,
            "samples": each.samples,
            "stored": each.is_stored,
            "runs": [{"id": card.id, "name": card.metadata and card.metadata.name} for card in each.runs],
        }
        for each in dataset.versions.values()
    ]


def _versions_csv(dataset: Dataset) -> Iterable[str]:
    header = ("version", "first_seen", "samples", "stored", "runs")
    rows: Iterable[Sequence[Any]] = (
        (each.version, each.first_seen, each.samples, each.is_stored, len(each.runs))
        for each in dataset.versions.values()
    )
    return csv_rows(header, rows)
