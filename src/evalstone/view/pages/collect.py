"""Samples of a run or of live scores that are added to a dataset, with their expected answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from evalstone._core.json import content_hash
from evalstone.errors import ConfigError
from evalstone.ledger.base import chunks
from evalstone.ledger.live import LiveScore
from evalstone.ledger.live_ranking import samples_behind, submission
from evalstone.ledger.store import Ledger
from evalstone.report.view import Tone
from evalstone.types import Sample
from evalstone.view.addresses import edit_address, live_address, name_in, run_address, with_query
from evalstone.view.drafts import LINES, Meanwhile
from evalstone.view.editing import Addition, Editing, Status, added, changing, opened
from evalstone.view.forms import Form
from evalstone.view.indexing.index import Index
from evalstone.view.indexing.tables import choice
from evalstone.view.library import Library
from evalstone.view.live_query import LiveQuery
from evalstone.view.live_streams import Stream
from evalstone.view.names import name_of
from evalstone.view.pages.live_list import PER_READ, every_score
from evalstone.view.query import SampleQuery
from evalstone.view.responses import BadAddress, NotThere, Q, page, redirect
from evalstone.view.sample_form import Field, sent_text, text_field
from evalstone.view.shelf import dataset_of
from evalstone.view.versions import all_datasets, look_for_samples

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST = 500
"""The most samples that are added at once."""
MOST_EDITED = 50
"""The number of samples whose expected answers can be edited while they are added."""
MOST_DATASETS = 100
LONGEST_NAME = 200
EXCERPT = 600
KEYS = (("s", "add the samples"),)
STATUSES: Mapping[Status, tuple[str, Tone]] = {
    "new": ("new", "good"),
    "there": ("there already", "dim"),
    "same": ("there already", "dim"),
    "renamed": ("new ID", "unsure"),
    "reference": ("changes", "unsure"),
}
_OWN = ("into", "new")
"""The parameters that say where samples are added."""


@dataclass(frozen=True)
class Chosen:
    """Samples to add.

    Attributes:
        source: What they are from.
        href: The page that they were chosen on.
        samples: The samples.
        lacking: How many have no texts to add.
        dataset: The dataset that they are of; "" for live scores.
        stem: What a new dataset of them may be called.
        more: Whether more were chosen than are added at once.
    """

    source: str
    href: str
    samples: Sequence[Sample]
    lacking: int
    dataset: str
    stem: str
    more: bool = False


@dataclass(frozen=True)
class CollectRow:
    """A sample to add."""

    id: str
    word: str
    tone: Tone
    text: str
    texts: tuple[tuple[str, str], ...]
    reference: Field | None


def collect_page(library: Library, request: Request) -> Response:
    """Chosen samples, and what becomes of each in the dataset that they are added to."""
    pairs = _pairs(request.url.query)
    values = dict(pairs)
    if "run" not in values and "stream" not in values and (name := _dataset_name(values.get("new", ""))):
        return redirect(edit_address(name))
    chosen = _chosen(library, pairs)
    if not isinstance(chosen, Chosen):
        return chosen
    folder = library.shelf.datasets
    refusal = library.shelf.edit_refusal
    place = with_query("", [pair for pair in pairs if pair[0] not in _OWN])[1:]
    context: dict[str, Any] = {
        "title": "Add to a dataset",
        "keys": KEYS,
        "refusal": refusal,
        "source": chosen.source,
        "back": chosen.href,
        "n": len(chosen.samples),
        "more": MOST if chosen.more else 0,
        "lacking": chosen.lacking,
        "token": library.edit_token,
        "place": place,
        "fields": [pair for pair in pairs if pair[0] not in _OWN],
    }
    if refusal or folder is None:
        return page("collect.html", **context)
    names = _names(library, [draft.dataset for draft in folder.drafts()])
    suggestion = f"{chosen.stem}-selected{LINES}"
    into = (
        _dataset_name(values.get("new", ""))
        or _by_choice(values.get("into", ""), names)
        or next((draft.dataset for draft in folder.drafts() if draft.dataset != chosen.dataset), suggestion)
    )
    with library.shelf.reading() as ledger:
        editing = opened(library, into, ledger)
        if not isinstance(editing, Editing):
            return editing
        if editing.unread:
            return redirect(edit_address(into))
        _, additions = added(editing, chosen.samples)
    return page(
        "collect.html",
        **context,
        into=into,
        into_place=with_query("", [("name", into)])[1:],
        suggestion=suggestion if into != suggestion else "",
        names=[(choice(name), name == into) for name in dict.fromkeys((into, *names))],
        path=editing.path,
        state=_state(editing, chosen),
        n_new=sum(each.status in ("new", "renamed", "reference") for each in additions),
        rows=[
            _row(number, each, sample)
            for number, (each, sample) in enumerate(zip(additions, chosen.samples, strict=True))
        ],
    )


def _row(number: int, addition: Addition, sample: Sample) -> CollectRow:
    texts = ("input", _asked(sample)), ("answer", sample.output or "")
    return CollectRow(
        sample.id if sample.id.strip() else repr(sample.id),
        *STATUSES[addition.status],
        addition.text,
        tuple((label, text[:EXCERPT]) for label, text in texts),
        _reference(number, sample) if number < MOST_EDITED else None,
    )


def _asked(sample: Sample) -> str:
    return sample.input or next((each.content for each in sample.messages if each.role == "user"), "")


def collect(library: Library, form: Form) -> str:
    """Add chosen samples to the edits of a dataset."""
    name = form.query("into", LONGEST_NAME * 8).get("name", "")
    if not name:
        raise BadAddress("The form lacks the name of a dataset.")
    chosen = _chosen(library, _pairs(form.needed("place", 1 << 20)))
    if not isinstance(chosen, Chosen):
        raise BadAddress("The run is being indexed. Send the form again in a moment.")
    with changing(library, name) as editing:
        if form.fields.get("state", "") != _state(editing, chosen):
            raise Meanwhile("The dataset or the list of samples was changed after this page was made. Look again.")
        draft, _ = added(editing, (_corrected(form, *each) for each in enumerate(chosen.samples)))
        editing.folder.write(draft)
    return edit_address(name) + "#changes"


def _corrected(form: Form, number: int, sample: Sample) -> Sample:
    """A sample with the expected answer that a form says."""
    if number >= MOST_EDITED:
        return sample
    text = sent_text(_reference(number, sample), form.fields, sample.reference)
    return sample if text == sample.reference else replace(sample, reference=text)


def _reference(number: int, sample: Sample) -> Field:
    return text_field(f"reference {number}", "expected answer", sample.reference)


def _state(editing: Editing, chosen: Chosen) -> str:
    """What identifies what the page shows."""
    contents = [[sample.id, sample.content_hash] for sample in chosen.samples]
    return content_hash([editing.draft.state, editing.draft.base, editing.draft.replaces, contents])


# ---- Which dataset ----


def _names(library: Library, drafts: Sequence[str]) -> list[str]:
    """The datasets to choose among: those with edits, and those that were used last."""
    latest = sorted(all_datasets(library).values(), key=lambda each: each.latest.first_seen, reverse=True)
    for dataset in latest[:MOST_DATASETS]:
        look_for_samples(library, dataset.versions.values())
    stored = (each.name for each in latest if any(version.is_stored for version in each.versions.values()))
    return [*dict.fromkeys((*drafts, *stored))]


def _by_choice(text: str, names: Sequence[str]) -> str:
    return next((name for name in names if choice(name) == text), "")


def _dataset_name(text: str) -> str:
    """The name of a dataset in a form; "" for none."""
    name = " ".join(text.split())[:LONGEST_NAME]
    return name if not name or name.endswith(LINES) else f"{name}{LINES}"


# ---- Which samples ----


def _pairs(query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, errors="surrogatepass")
    except UnicodeDecodeError:
        raise BadAddress("The address is not valid UTF-8.") from None


def _query(pairs: Iterable[tuple[str, str]], kind: type[Q]) -> Q:
    try:
        return kind.of(pairs)
    except ConfigError as error:
        raise BadAddress(error) from None


def _chosen(library: Library, pairs: Sequence[tuple[str, str]]) -> Chosen | Response:
    values = dict(pairs)
    if run := values.get("run", ""):
        return _of_run(library, run, pairs)
    if stream := values.get("stream", ""):
        return _of_stream(library, stream, pairs)
    raise BadAddress("The address lacks run or stream: open this page from a run, or from live scores.")


def _of_run(library: Library, run: str, pairs: Sequence[tuple[str, str]]) -> Chosen | Response:
    card = library.card(run)
    keys = [name_in(text) for name, text in pairs if name == "key"]
    opened_index = library.index(card)
    if not isinstance(opened_index, Index):
        return opened_index
    query = _query(pairs, SampleQuery)
    with opened_index as index:
        if keys:
            cases = [index.case(key) for key in dict.fromkeys(keys)]
        elif dict(pairs).get("all"):
            try:
                cases = [*itertools.islice(index.every(query), MOST + 1)]
            except ConfigError as error:
                raise BadAddress(error) from None
        else:
            raise BadAddress("No sample is chosen: tick some, or take all of the list.")
        if None in cases:
            raise NotThere(f"Run {name_of(card)} doesn't have all of these samples.")
        found = [index.stored(case.place).sample for case in cases[:MOST] if case is not None]
    samples = [replace(sample, trial=None) for sample in found if sample is not None]
    href = with_query(run_address(run), query.pairs(after="", before="")) + "#samples"
    stem = dataset_of(card).rpartition(".")[0] or dataset_of(card)
    return Chosen(name_of(card), href, samples, len(found) - len(samples), dataset_of(card), stem, len(cases) > MOST)


def _of_stream(library: Library, name: str, pairs: Sequence[tuple[str, str]]) -> Chosen:
    ids = [text for key, text in pairs if key == "id"]
    query = _query(pairs, LiveQuery)
    with library.live_ledger() as ledger:
        stream = Stream.of(ledger, library.readings, library.shelf.cards(), name, query)
        if ids:
            rows = [row for id in dict.fromkeys(ids) for row in submission(ledger, name, id)[0] if row.id == id]
            if len(rows) < len({*ids}):
                raise NotThere(f"The stream {name} doesn't have all of these scores.")
        elif dict(pairs).get("all"):
            rows = every_score(ledger, stream.ranking())
        else:
            raise BadAddress("No score is chosen: tick some, or take all of the list.")
        samples = [*itertools.islice(_behind(ledger, rows), MOST + 1)]
    href = with_query(live_address(name), query.pairs(after="")) + "#scores"
    return Chosen(name, href, samples[:MOST], 0, "", name, len(samples) > MOST)


def _behind(ledger: Ledger, rows: Iterable[LiveScore]) -> Iterator[Sample]:
    """The samples behind live scores, each once."""
    seen = set[str]()
    for some in chunks(rows, PER_READ):
        found = samples_behind(ledger, [row for row in some if row.sample not in seen])
        seen |= found.keys()
        yield from found.values()
