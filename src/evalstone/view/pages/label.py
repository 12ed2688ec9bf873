"""Labeling: one sample after the other, blind to the judge and to other annotators, and what the labels say so far."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count, digits_for, limits, number
from evalstone._core.json import storable
from evalstone.errors import ConfigError, invalid, unknown
from evalstone.judge_quality.labeling import Labeling, Next, Sheet, annotator_name, label_csv, label_rows
from evalstone.ledger import labels as stored
from evalstone.ledger.base import DEFAULT_LEDGER
from evalstone.results.views.comparison import more_labels
from evalstone.results.views.samples import sample_view, score_text
from evalstone.stats.labeling import LabelingOrder
from evalstone.stats.ppi import MIN_LABELS
from evalstone.types import Sample
from evalstone.types.scorer_names import not_scored
from evalstone.view.addresses import CSV, JSON, query_of, run_address, with_query
from evalstone.view.forms import Form
from evalstone.view.indexing.index import Index
from evalstone.view.library import Library
from evalstone.view.names import name_of
from evalstone.view.pages.common import Link
from evalstone.view.responses import BadAddress, NotThere, csv_file, file_name, json_data, page, suffix_of
from evalstone.view.shelf import Card, Shelf

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evalstone.report.view import SampleView

ORDERS: tuple[tuple[LabelingOrder, str], ...] = (
    ("stratified", "most informative"),
    ("uncertain", "judge uncertain"),
    ("random", "random"),
)
LATEST = 8
"""The number of latest labels in the list."""
LONGEST_NOTE = 5000
SKIP, OTHER = "skip", "other"
KEYS = (("1 0", "label: full score, or 0"), ("s", "skip"), ("u", "undo the last label"), ("m", "write a note"))


@dataclass(frozen=True)
class Place:
    """Where a person is in labeling: what the address says."""

    card: Card
    title: str
    """The title of the scorer."""
    annotator: str
    order: LabelingOrder
    seed: int
    sample: str
    """The key of a sample that was chosen by hand; "" for the next one."""

    @classmethod
    def of(cls, library: Library, query: str) -> Place:
        """The place in the query of an address, which a form has as a field: IDs may be any text, which fields may not.

        Raises:
            NotThere: There is no such run.
            BadAddress: A parameter makes no sense.
        """
        try:
            values = query_of(query)
        except ValueError:
            raise BadAddress("The address is not valid UTF-8.") from None
        if not values.get("run"):
            raise BadAddress("The address lacks run: open this page from a run.")
        card = library.card(values["run"])
        known: dict[str, LabelingOrder] = {name: name for name, _ in ORDERS}
        order, seed = values.get("order") or "stratified", values.get("seed") or "0"
        titles = [*card.titles.values()]
        title = values.get("scorer") or next(iter(titles), "")
        try:
            if title not in titles:
                raise ConfigError(not_scored(title, titles))
            if order not in known:
                raise ConfigError(unknown("order", order, known))
            if not (seed.isascii() and seed.isdecimal() and len(seed) < 10):
                raise ConfigError(invalid("seed", "a whole number", seed))
            annotator = annotator_name(values.get("annotator"))
        except ConfigError as error:
            raise BadAddress(error) from None
        return cls(card, title, annotator, known[order], int(seed), values.get("sample", ""))

    def pairs(self, **changes: Any) -> list[tuple[str, str]]:
        """The parameters of an address, without defaults. changes: other values of fields."""
        at = replace(self, **changes)
        usual = annotator_name()
        return [
            ("run", at.card.id),
            ("scorer", at.title),
            *([("annotator", at.annotator)] if at.annotator != usual else []),
            *([("order", at.order)] if at.order != "stratified" else []),
            *([("seed", f"{at.seed}")] if at.seed else []),
            *([("sample", at.sample)] if at.sample else []),
        ]

    def address(self, **changes: Any) -> str:
        """The address of the page."""
        return with_query("/label", self.pairs(**changes))

    def sheet(self, library: Library) -> Sheet:
        """The scores. Raises BadAddress if they aren't scores to label."""
        try:
            return library.sheet(self.card, self.title)
        except ConfigError as error:
            raise BadAddress(error) from None


def label_page(library: Library, request: Request) -> Response:
    """The next sample to label; or the labels as the file that `calibrate` and `gate --labels` read."""
    suffix = suffix_of(request)
    place = Place.of(library, request.url.query)
    sheet = place.sheet(library)
    labeling = _labeling(library, place, sheet)
    if suffix:
        rows = label_rows(sheet, labeling.labels, by_hand=bool(request.query_params.get("hand")))
        if suffix == JSON:
            return json_data(rows)
        try:
            return csv_file(label_csv(rows), _file(place))
        except ConfigError as error:
            raise BadAddress(error) from None
    opened = library.index(place.card)
    if not isinstance(opened, Index):
        return opened
    with opened as index:
        choice = labeling.next(place.order, place.seed)
        key = place.sample or (choice.key if choice else "")
        if key and (choice is None or choice.key != key):
            choice = Next(key, "hand")
        sample = _blind_view(index, key, sheet) if key else None
        return page(
            "label.html",
            title=f"Label {place.title}",
            keys=KEYS,
            place=place,
            name=name_of(place.card),
            run_href=run_address(place.card.id),
            here=with_query("", place.pairs(sample=key))[1:],
            fields=place.pairs(sample="", annotator=annotator_name()),
            sample=sample,
            why=choice.why if choice else "",
            token=library.form_token,
            refusal=library.shelf.refusal,
            commands=commands(library.shelf, labeling, place),
            **_context(labeling, place, key),
        )


def _labeling(library: Library, place: Place, sheet: Sheet) -> Labeling:
    if library.shelf.ledger is None:
        return Labeling(sheet, (), place.annotator)
    with library.shelf.reading() as ledger:
        return Labeling.open(ledger, sheet, place.annotator)


def _blind_view(index: Index, key: str, sheet: Sheet) -> SampleView:
    """A sample without what the judge, the data or other annotators say of it."""
    case = index.case(key)
    if case is None:
        raise NotThere(f"The run has no results of sample {key}.")
    sample = index.stored(case.place).sample
    if sample is not None:
        sample = unlabeled(sample, sheet)
    return sample_view(key, sample, (), {}, {}, None, keeps_reasoning=index.keeps_reasoning)


def unlabeled(sample: Sample, sheet: Sheet) -> Sample:
    """A sample with the metadata that the scorer holds answers against alone: the rest may say what the label is."""
    kept = {path.partition(".")[0] for path in sheet.info.case_metadata}
    return replace(sample, metadata={name: value for name, value in sample.metadata.items() if name in kept})


def _context(labeling: Labeling, place: Place, key: str) -> dict[str, Any]:
    sheet = labeling.sheet
    scale, lower = sheet.info.scale, sheet.info.lower_is_better
    own = next((label for label in labeling.own if label.key == storable(key)), None)
    said = None if own is None else SKIP if own.value is None else f"{own.value:g}"
    meanings = {f"{scale:g}": "worst" if lower else "best", "0": "best" if lower else "worst"}
    return {
        "criterion": sheet.info.description or sheet.info.parameters,
        "scale": f"{scale:g}",
        "better": f"{'Lower' if lower else 'Higher'} is better",
        "buttons": [(value, meanings.get(value, ""), said == value) for value in sheet.keys],
        "skip": said == SKIP,
        "other": "" if own is None or own.value is None or said in sheet.keys else said,
        "note": "" if own is None else own.note,
        "is_labeled": own is not None,
        "n_labeled": labeling.n_labeled,
        "n_skipped": labeling.n_skipped,
        "total": len(sheet.names),
        "orders": [Link(text, place.address(order=order, sample=""), place.order == order) for order, text in ORDERS],
        "scorers": [
            Link(title, place.address(title=title, sample=""), title == place.title)
            for title in place.card.titles.values()
        ],
        "latest": [
            (
                label.key,
                "skipped" if label.value is None else score_text(label.value, scale),
                label.note,
                place.address(sample=label.key),
            )
            for label in labeling.own[: -LATEST - 1 : -1]
        ],
        "findings": [*findings(labeling)],
        "csv_href": with_query("/label.csv", [("run", place.card.id), ("scorer", place.title)]),
        "modes_href": with_query("/modes", [("run", place.card.id)]),
        "json_href": with_query("/label.json", [("run", place.card.id), ("scorer", place.title)]),
    }


def commands(shelf: Shelf, labeling: Labeling, place: Place) -> list[tuple[str, str]]:
    """What the labels are for, with the command; nothing without labels of samples chosen at random."""
    if shelf.ledger is None or not labeling.means():
        return []
    run, title, info = shlex.quote(place.card.folder or place.card.id), place.title, labeling.sheet.info
    ledger = "" if shelf.ledger == DEFAULT_LEDGER else f" --ledger {shlex.quote(shelf.places[0])}"
    labels = f"--labels {shlex.quote(f'{title}=ledger')}{ledger}"
    threshold = f"--{'max' if info.lower_is_better else 'min'} {shlex.quote(f'{title}=X')}"
    calibrate = f"evalstone calibrate --labels {file_name(_file(place), CSV)} --data DATA --scorer {shlex.quote(title)}"
    return [
        ("Correct the mean:", f"evalstone report {run} {labels}"),
        ("Test the corrected mean:", f"evalstone gate {run} {threshold} {labels}"),
        ("Check a judge, with the CSV file below:", f"{calibrate} --judge JUDGE{ledger}"),
    ]


def _file(place: Place) -> str:
    """The name of the file of labels, without its suffix."""
    return f"labels-{place.title}"


def findings(labeling: Labeling) -> Iterable[str]:
    """What the labels say so far, in sentences."""
    info, corrected = labeling.sheet.info, labeling.corrected()
    digits = digits_for(info.scale)
    if corrected is None or corrected.estimate is None or corrected.raw is None:
        yield f"A corrected mean needs at least {count(MIN_LABELS, 'label')}."
    else:
        mean, judged = corrected.estimate, corrected.raw
        ends = limits(mean.low, mean.high, digits) if mean.low is not None and mean.high is not None else ""
        yield (
            f"Corrected mean {number(mean.estimate, digits)}{f' ({ends})' if ends else ''} from "
            f"{count(corrected.labeled, 'label')}; the judge alone says {number(judged.estimate, digits)}."
        )
        if more := more_labels(corrected, info.scale):
            yield f"{more[0].upper()}{more[1:]}."
    for each in labeling.agreements():
        kappa = each.kappa
        if kappa is None or kappa.low is None or kappa.high is None:
            text = "Cohen's kappa is not defined yet" if kappa is None else f"Cohen's kappa {kappa.estimate:.2f}"
        else:
            text = f"Cohen's kappa {kappa.estimate:.2f} ({limits(kappa.low, kappa.high, 2)})"
        yield f"{each.first} and {each.second}: {text}, {count(each.samples, 'common sample')}."
    by_hand = sum(label.chosen == "hand" and label.value is not None for label in labeling.labels)
    if by_hand:
        yield f"{count(by_hand, 'label')} of samples chosen by hand {'is' if by_hand == 1 else 'are'} not part of this."


# ---- Writing ----


def write_label(library: Library, form: Form) -> str:
    """Write the label of a sample, or that it was skipped."""
    place = Place.of(library, form.needed("place"))
    sheet, said = place.sheet(library), form.needed("value", 100)
    note = form.text("note", LONGEST_NOTE)
    try:
        typed = form.text("other", 100) if said == OTHER else said
        value = None if said == SKIP else sheet.value(typed)
        with library.shelf.writing() as ledger:
            labeling = Labeling.open(ledger, sheet, place.annotator)
            label = labeling.label(place.sample, value, note, labeling.next(place.order, place.seed))
            stored.write_label(ledger, label)
    except ConfigError as error:
        raise BadAddress(error) from None
    return place.address(sample="")


def undo_label(library: Library, form: Form) -> str:
    """Delete the annotator's last label, and show its sample again."""
    place = Place.of(library, form.needed("place"))
    with library.shelf.writing() as ledger:
        own = Labeling.open(ledger, place.sheet(library), place.annotator).own
        if not own:
            return place.address(sample="")
        stored.delete_label(ledger, own[-1])
    return place.address(sample=own[-1].key if own[-1].chosen == "hand" else "")
