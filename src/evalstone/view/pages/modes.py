"""Failure modes: notes on samples become modes, which are assigned by key, counted, and offered as files."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstone._core.display import limits, number
from evalstone._core.json import storable
from evalstone.agents.reasoning import answered
from evalstone.errors import ConfigError
from evalstone.judge_quality.failure_modes import (
    ModeCount,
    count_modes,
    dataset_lines,
    identifier,
    reviewed_keys,
    scorer_source,
)
from evalstone.judge_quality.labeling import annotator_name
from evalstone.ledger import labels as stored
from evalstone.ledger.labels import Label, Mode, ModeLabel
from evalstone.results.views.samples import sample_view, score_text
from evalstone.types import Sample, metadata_at
from evalstone.view.addresses import CSV, JSON, query_of, run_address, sample_address, with_query
from evalstone.view.forms import Form
from evalstone.view.indexing.index import Case, Index
from evalstone.view.library import Library
from evalstone.view.names import name_of
from evalstone.view.pages.common import Link
from evalstone.view.responses import BadAddress, NotThere, csv_file, json_data, page, suffix_of
from evalstone.view.shelf import Card, dataset_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evalstone.stats.intervals import Interval

MOST_KEYS = 9
"""The number of modes that have a key."""
MOST_MODES = 200
LONGEST_NAME, LONGEST_DEFINITION = 100, 2000
KEYS = (("1 9", "give the mode, or take it away"), ("a", "add a mode"), ("n p", "next or previous without a mode"))


@dataclass(frozen=True)
class Reviewed:
    """What people have said of a run's samples."""

    card: Card
    modes: Sequence[Mode]
    labels: Sequence[Label]
    assigned: Sequence[ModeLabel]

    @classmethod
    def of(cls, library: Library, run: str) -> Reviewed:
        """What is in the ledger.

        Raises:
            NotThere: There is no such run.
        """
        card = library.card(run)
        if library.shelf.ledger is None:
            return cls(card, (), (), ())
        with library.shelf.reading() as ledger:
            modes = stored.modes(ledger, dataset_of(card))
            return cls(card, modes, stored.labels(ledger, card.id), stored.mode_labels(ledger, card.id))

    @property
    def keys(self) -> list[str]:
        """The samples that somebody has looked at."""
        return reviewed_keys(self.labels, self.assigned)

    @property
    def open(self) -> list[str]:
        """The samples with a note that have no mode yet, in the order of their notes."""
        done = {each.key for each in self.assigned}
        return [key for key in dict.fromkeys(label.key for label in self.labels if label.note) if key not in done]

    def modes_of(self, key: str) -> set[str]:
        """The IDs of the modes of a sample."""
        return {each.mode for each in self.assigned if each.key == storable(key)}

    def mode(self, name: str) -> Mode:
        """The mode with this ID. Raises NotThere if the dataset has none."""
        for mode in self.modes:
            if mode.id == name:
                return mode
        raise NotThere("There is no such failure mode; it may have been merged into another one.")


def modes_page(library: Library, request: Request) -> Response:
    """The failure modes of a run: a sample to give modes to, and how often each was found."""
    suffix = suffix_of(request)
    values = _parameters(request)
    reviewed = Reviewed.of(library, values["run"])
    card, field = reviewed.card, values.get("slice", "")
    opened = library.index(card)
    if not isinstance(opened, Index):
        return opened
    with opened as index:
        samples = dict(_samples(index, reviewed.keys))
        sliced = {key: str(metadata_at(sample.metadata, field)) for key, sample in samples.items() if field}
        counts = _counts(library, reviewed, sliced)
        if suffix == JSON:
            return json_data([_data(each) for each in counts])
        if suffix == CSV:
            return csv_file(_csv(counts), "failure-modes")
        key = values.get("sample") or next(iter(reviewed.open), "")
        at = reviewed.open.index(storable(key)) if storable(key) in reviewed.open else -1

        def here(sample: str = key, by: str = field) -> str:
            pairs = [("run", card.id), *([("sample", sample)] if sample else []), *([("slice", by)] if by else [])]
            return with_query("/modes", pairs)

        case = index.case(key) if key else None
        if key and case is None:
            raise NotThere(f"The run has no results of sample {key}.")
        shown = index.stored(case.place).sample if case else None
        following = reviewed.open[at + 1] if at + 1 < len(reviewed.open) else ""
        has = reviewed.modes_of(key)
        return page(
            "modes.html",
            title=f"Failure modes of {name_of(card)}",
            keys=KEYS,
            card=card,
            name=name_of(card),
            run_href=run_address(card.id),
            token=library.form_token,
            refusal=library.shelf.refusal,
            here=here()[len("/modes?") :],
            sample=sample_view(key, shown, (), {}, {}, None, keeps_reasoning=index.keeps_reasoning) if case else None,
            sample_href=sample_address(card.id, key) if case else "",
            notes=[
                (label.annotator, _said(label, card), label.note)
                for label in reviewed.labels
                if label.key == storable(key) and label.note
            ],
            choices=[
                (mode, f"{place}" if place <= MOST_KEYS else "", mode.id in has)
                for place, mode in enumerate(reviewed.modes, start=1)
            ],
            previous=here(reviewed.open[at - 1]) if at > 0 else "",
            following=here(following) if following else "",
            n_open=len(reviewed.open),
            n_reviewed=len(reviewed.keys),
            rows=[_row(each, card) for each in counts],
            fields=[Link("all", here(by=""), not field)]
            + [Link(facet.name, here(by=facet.name), facet.name == field) for facet in index.facets],
            values=sorted(set(sliced.values()))[:12],
            label_href=with_query("/label", [("run", card.id)]),
            noted=[
                (label.key, here(label.key), label.note, label.annotator, ", ".join(_names(reviewed, label.key)))
                for label in reversed(reviewed.labels)
                if label.note
            ][:200],
            exports=[
                Link("CSV", with_query("/modes.csv", [("run", card.id)])),
                Link("JSON", with_query("/modes.json", [("run", card.id)])),
            ],
        )


def mode_file(library: Library, request: Request) -> Response:
    """A failure mode as the file of a scorer, or the reviewed samples as that of a dataset."""
    from starlette.responses import Response  # noqa: PLC0415 - an extra

    reviewed = Reviewed.of(library, _parameters(request)["run"])
    mode = reviewed.mode(request.path_params["mode"])
    opened = library.index(reviewed.card)
    if not isinstance(opened, Index):
        return opened
    with opened as index:
        keeps = index.keeps_reasoning
        samples = {key: sample if keeps else answered(sample) for key, sample in _samples(index, reviewed.keys)}
    has = {each.key for each in reviewed.assigned if each.mode == mode.id}
    name = identifier(mode.name)
    match request.path_params["file"]:
        case "scorer.py":
            text, kind, suffix = scorer_source(mode, [samples[key] for key in has if key in samples]), "x-python", "py"
        case "dataset.jsonl":
            text, kind, suffix = "".join(dataset_lines(mode, has, samples.values())), "plain", "jsonl"
        case _:
            raise NotThere("There is no such file.")
    headers = {"content-disposition": f'attachment; filename="{name}.{suffix}"'}
    return Response(text.encode("utf-8", "replace"), media_type=f"text/{kind}; charset=utf-8", headers=headers)


def _parameters(request: Request) -> Mapping[str, str]:
    try:
        values = query_of(request.url.query)
    except ValueError:
        raise BadAddress("The address is not valid UTF-8.") from None
    if not values.get("run"):
        raise BadAddress("The address lacks run: open this page from a run.")
    return values


def _samples(index: Index, keys: Sequence[str]) -> Iterator[tuple[str, Sample]]:
    """The samples with these keys whose texts are available."""
    for key in keys:
        if (case := index.case(key)) is not None and (sample := index.stored(case.place).sample) is not None:
            yield key, sample


def _counts(library: Library, reviewed: Reviewed, values: Mapping[str, str]) -> list[ModeCount]:
    """The counts, by the strata of the scorer that has most labels."""
    titles = reviewed.card.titles
    labeled = [label.signature for label in reviewed.labels if label.signature in titles]
    signature = max(titles, key=labeled.count, default="")
    try:
        sheet = library.sheet(reviewed.card, titles[signature]) if signature else None
    except ConfigError:
        sheet = None  # without scores to choose by, or with unequal weights, there is no share of all samples
    return count_modes(reviewed.modes, reviewed.labels, reviewed.assigned, sheet, values)


def _names(reviewed: Reviewed, key: str) -> list[str]:
    has = reviewed.modes_of(key)
    return [mode.name for mode in reviewed.modes if mode.id in has]


def _said(label: Label, card: Card) -> str:
    scales = {scorer.signature: scorer.scale for scorer in card.metadata.scorers} if card.metadata else {}
    value = "skipped" if label.value is None else score_text(label.value, scales.get(label.signature, 1.0))
    return f"{card.titles.get(label.signature, '')} {value}".strip()


def _between(interval: Interval | None) -> str:
    if interval is None or interval.low is None or interval.high is None:
        return ""
    return f"{number(interval.estimate, 2)} ({limits(interval.low, interval.high, 2)})"


def _row(each: ModeCount, card: Card) -> dict[str, Any]:
    run = [("run", card.id)]
    return {
        "mode": each.mode,
        "count": f"{len(each.keys):,} of {each.reviewed:,}",
        "share": _between(each.share),
        "slices": {value: (f"{has} of {of}", _between(share)) for value, (has, of, share) in each.slices.items()},
        "scorer": with_query(f"/modes/{each.mode.id}/scorer.py", run),
        "dataset": with_query(f"/modes/{each.mode.id}/dataset.jsonl", run),
        "name": identifier(each.mode.name),
    }


def _data(each: ModeCount) -> dict[str, Any]:
    share = each.share
    return {
        "id": each.mode.id,
        "name": each.mode.name,
        "definition": each.mode.definition,
        "samples": sorted(each.keys),
        "reviewed": each.reviewed,
        "share": None if share is None else {"estimate": share.estimate, "low": share.low, "high": share.high},
        "slices": {value: {"samples": has, "reviewed": of} for value, (has, of, _) in each.slices.items()},
    }


def _csv(counts: Sequence[ModeCount]) -> Iterator[str]:
    from evalstone.report.csv import csv_rows  # noqa: PLC0415

    header = ("mode", "definition", "samples", "reviewed", "share", "low", "high")
    return csv_rows(
        header,
        (
            (
                each.mode.name, each.mode.definition, len(each.keys), each.reviewed,
                *((None, None, None) if each.share is None else (each.share.estimate, each.share.low, each.share.high)),
            )
            for each in counts
        ),
    )  # fmt: skip


# ---- Writing ----


def _place(library: Library, form: Form) -> tuple[Reviewed, str, str]:
    """What is known of the run that a form is about, the key of its sample, and the address to go back to."""
    values = form.query("place")
    reviewed = Reviewed.of(library, values.get("run", ""))
    return reviewed, values.get("sample", ""), with_query("/modes", values.items())


def _named(form: Form) -> tuple[str, str]:
    name = " ".join(form.needed("name", LONGEST_NAME).split())
    return name, form.text("definition", LONGEST_DEFINITION)


def create_mode(library: Library, form: Form) -> str:
    """Add a failure mode, or find the one with this name, and give it to the sample that is shown."""
    reviewed, key, address = _place(library, form)
    name, definition = _named(form)
    case = _case(library, reviewed, key) if key else None
    mode = next((mode for mode in reviewed.modes if mode.name.casefold() == name.casefold()), None)
    if mode is None and len(reviewed.modes) >= MOST_MODES:
        raise BadAddress(f"A dataset has at most {MOST_MODES} failure modes: merge some.")
    with library.shelf.writing() as ledger:
        if mode is None:
            mode = Mode(id=secrets.token_hex(6), dataset=dataset_of(reviewed.card), name=name, definition=definition)
            mode = stored.write_mode(ledger, mode)
        if case is not None:
            stored.assign_mode(ledger, _assignment(reviewed, mode, case))
    return address


def assign_mode(library: Library, form: Form) -> str:
    """Give a failure mode to a sample, or take it away if it has it."""
    reviewed, key, address = _place(library, form)
    mode = reviewed.mode(form.needed("mode"))
    label = _assignment(reviewed, mode, _case(library, reviewed, key))
    with library.shelf.writing() as ledger:
        if mode.id in reviewed.modes_of(key):
            stored.unassign_mode(ledger, label)
        else:
            stored.assign_mode(ledger, label)
    return address


def change_mode(library: Library, form: Form) -> str:
    """Change the name and the definition of a failure mode."""
    reviewed, _, address = _place(library, form)
    name, definition = _named(form)
    mode = replace(reviewed.mode(form.needed("mode")), name=name, definition=definition)
    with library.shelf.writing() as ledger:
        if stored.write_mode(ledger, mode, new=False).id != mode.id:
            raise BadAddress(f"Another failure mode is named {name}: merge this one into it.")
    return address


def merge_mode(library: Library, form: Form) -> str:
    """Give the samples of a failure mode to another one, or to none, and delete it."""
    reviewed, _, address = _place(library, form)
    mode, into = reviewed.mode(form.needed("mode")), form.text("into")
    if into == mode.id:
        raise BadAddress("A failure mode can't be merged into itself.")
    with library.shelf.writing() as ledger:
        stored.delete_mode(ledger, mode.id, into=reviewed.mode(into).id if into else None)
    return address


def _case(library: Library, reviewed: Reviewed, key: str) -> Case:
    """The sample with this key. Raises NotThere if the run has none."""
    opened = library.index(reviewed.card)
    if not isinstance(opened, Index):
        raise BadAddress("The run is being indexed: send the form again in a moment.")
    with opened as index:
        if (case := index.case(key)) is None:
            raise NotThere(f"The run has no results of sample {key}.")
    return case


def _assignment(reviewed: Reviewed, mode: Mode, case: Case) -> ModeLabel:
    run, annotator = reviewed.card.id, annotator_name()
    return ModeLabel(mode=mode.id, run=run, sample=case.sample, trial=case.trial, annotator=annotator)
