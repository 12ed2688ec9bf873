"""Runs side by side: what changed, and all samples with the answer of each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count
from evalstone.errors import ConfigError
from evalstone.view.addresses import CSV, JSON, compare_address, run_address
from evalstone.view.compare_query import ORDERS, SHOWS, CompareQuery
from evalstone.view.indexing.comparison import StoredComparison
from evalstone.view.indexing.tables import choice
from evalstone.view.library import Library
from evalstone.view.names import name_of, names_of, target_of, when
from evalstone.view.pages.common import Link, directed
from evalstone.view.pages.compare_samples import compared_rows, comparison_csv, comparison_data, letters_of
from evalstone.view.query import field_text
from evalstone.view.responses import BadAddress, csv_file, json_data, page, query_in, redirect, suffix_of
from evalstone.view.shelf import Card, dataset_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_RUNS = 16
MOST_SLICES = 60


@dataclass(frozen=True)
class ComparedRun:
    """A run in the head of the page."""

    letter: str
    name: str
    href: str
    detail: str
    baseline: str
    """The same page with this run as the first; "" for the first one."""
    without: str
    """The same page without this run; "" if fewer than two would be left."""


@dataclass(frozen=True)
class LineRow:
    """A scorer in a pair of runs, over all samples or those of a slice."""

    title: str
    under: str
    regressed: Link
    fixed: Link
    cells: Mapping[str, Any]


def compare_page(library: Library, request: Request) -> Response:
    """Runs compared with the first one."""
    suffix, query = suffix_of(request), query_in(request, CompareQuery)
    cards = cards_in(library, request.query_params.getlist("runs"))
    if request.query_params.get("baseline") == "usual" and len(cards) > 1:
        pins = library.shelf.pins()
        cards.reverse()  # the list has the latest first
        cards.sort(key=lambda card: (pins.get(dataset_of(card)) != card.id, card.started))
        return redirect(compare_address([card.id for card in cards]))
    if len(cards) == 1 and not suffix:
        return _choice_page(library, cards[0])
    if not 2 <= len(cards) <= MOST_RUNS:
        raise BadAddress(f"A comparison needs 2 to {MOST_RUNS} runs, and the address names {len(cards)}.")
    opened = library.comparison(cards, anyway=bool(query.anyway), by="" if suffix else query.by)
    if not isinstance(opened, StoredComparison):
        return opened
    with opened as compared:
        try:
            if suffix and compared.head["refused"]:
                raise BadAddress(compared.head["refused"])
            if suffix == CSV:
                compared.page(query, 1)  # an address that makes no sense is an error before anything is sent
                return csv_file(comparison_csv(library, cards, query), "comparison")
            if suffix == JSON:
                return json_data(comparison_data(compared, cards, query))
            return page("compare.html", **_context(compared, cards, query))
        except ConfigError as error:
            raise BadAddress(error) from None


def cards_in(library: Library, values: Sequence[str]) -> list[Card]:
    """The runs in an address: one a value, or several with commas between them."""
    names: list[str] = []
    for value in values:
        several = "," in value and library.shelf.card(value) is None
        names += value.split(",") if several else [value]
    return [library.card(name) for name in dict.fromkeys(names) if name]


MOST_OF_OTHERS = 50
"""The number of runs over other datasets that a run is offered to be compared with."""


def _choice_page(library: Library, card: Card) -> Response:
    """The runs that a run can be compared with: those over the same dataset, and those over as many samples of others,
    which may be variants of it in other files; latest first."""
    pinned = library.shelf.pins().get(dataset_of(card))
    own, size = dataset_of(card), card.metadata.dataset.samples if card.metadata is not None else None
    others: list[Link] = []
    as_large: list[Link] = []
    for each in library.shelf.cards():
        if each.id == card.id or each.metadata is None:
            continue
        address, started = compare_address([each.id, card.id]), when(each.started)
        if dataset_of(each) == own:
            others.append(Link(name_of(each), address, each.id == pinned, started))
        elif each.metadata.dataset.samples == size and len(as_large) < MOST_OF_OTHERS:
            as_large.append(Link(name_of(each), address, number=f"{dataset_of(each)} · {started}"))
    return page(
        "compare_with.html",
        title=f"Compare {name_of(card)}",
        name=name_of(card),
        run_href=run_address(card.id),
        dataset=dataset_of(card),
        others=others,
        as_large=as_large,
        size=count(size or 0, "sample"),
    )


# ---- The head ----


def _context(compared: StoredComparison, cards: Sequence[Card], query: CompareQuery) -> dict[str, Any]:
    ids, letters, head = [card.id for card in cards], letters_of(cards), compared.head
    names = names_of(cards)

    def here(runs: Sequence[str] = ids, suffix: str = "", **changes: Any) -> str:
        return compare_address(runs, query.pairs(**{"after": "", "before": "", **changes}), suffix)

    runs = [
        ComparedRun(
            letter,
            name,
            run_address(card.id),
            " · ".join(
                filter(None, (when(card.started) if name_of(card) != when(card.started) else "", target_of(card)))
            ),
            here([card.id, *(other for other in ids if other != card.id)], run="") if number else "",
            here([other for other in ids if other != card.id], run="") if len(cards) > 2 else "",
        )
        for number, (letter, name, card) in enumerate(zip(letters, names, cards, strict=True))
    ]
    context: dict[str, Any] = {
        "title": f"{names[1]} vs. {names[0]}" if len(cards) == 2 else f"{len(cards)} runs compared",
        "dataset": dataset_of(cards[0]),
        "runs": runs,
        "head": head,
        "anyway": here(anyway="1") if head["refused"] and head["mismatch"] else "",
        "query": query,
        "pairs": [],
        "slices": None,
        "table": None,
    }
    if head["refused"]:
        return context
    pairs = [(run.letter, run.name) for run in runs[1:]]
    context["pairs"] = [
        (*pair, [_line_row(line, pair[0], query, here) for line in lines])
        for pair, lines in zip(pairs, head["pairs"], strict=True)
    ]
    context["matrix"] = _matrix(context["pairs"], head["pairs"]) if len(cards) > 2 else None
    fields = dict.fromkeys(facet.name for index in compared.indexes[:1] for facet in index.facets)
    context["fields"] = [
        Link(name, here(by="" if query.by == name else name) + "#slices", query.by == name) for name in fields
    ]
    if (slices := compared.slices) is not None:
        lines = (
            [
                (*pair, [line for line in of if not query.scorer or line["title"] == query.scorer])
                for pair, of in zip(pairs, slices["pairs"], strict=True)
            ]
            if not slices["refused"]
            else []
        )
        context["slices"] = {
            "refused": slices["refused"],
            "notes": slices["notes"],
            "pairs": [
                (letter, name, [_line_row(line, letter, query, here) for line in of[:MOST_SLICES]], len(of))
                for letter, name, of in lines
            ],
            "most": MOST_SLICES,
        }
    context["table"] = _table(compared, cards, query, here)
    return context


def _matrix(pairs: Sequence[Any], lines: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Runs by scorers: the means of the first run, and the rows of each other run, None where it isn't compared."""
    titles = dict.fromkeys(line["title"] for of in lines for line in of)
    by_title = [
        {line["title"]: row for line, row in zip(of, rows, strict=True)}
        for of, (_, _, rows) in zip(lines, pairs, strict=True)
    ]
    first = {title: next(of[title] for of in by_title if title in of) for title in titles}
    return {
        "headers": [row.title for row in first.values()],
        "means": [row.cells["a"]["text"] for row in first.values()],
        "rows": [
            (letter, name, [of.get(title) for title in titles])
            for (letter, name, _), of in zip(pairs, by_title, strict=True)
        ],
    }


def _line_row(line: Mapping[str, Any], letter: str, query: CompareQuery, here: Any) -> LineRow:
    title = line["title"]
    changes: dict[str, Any] = {"scorer": title, "run": letter}
    if line["key"]:
        changes["field"] = ((query.by, line["key"]),)

    def link(show: str, number: int) -> Link:
        return Link(f"{number:,}", here(show=show, **changes) + "#samples" if number else "", number=show)

    named = directed(title, lower_is_better=line["lower_is_better"])
    return LineRow(
        line["key"] or named,
        f"{named} · n = {line['n']}" if line["key"] else f"n = {line['n']}",
        link("regressed", line["regressed"]),
        link("fixed", line["fixed"]),
        line["cells"],
    )


# ---- The samples ----


def _table(compared: StoredComparison, cards: Sequence[Card], query: CompareQuery, here: Any) -> dict[str, Any]:
    listed, number_found = compared.page(query), compared.count(query)
    total = compared.total("all", query)
    facets = {facet.name: facet for index in reversed(compared.indexes) for facet in index.facets}
    chosen = [(choice(name), choice(value)) for name, value in query.field]
    found = f"{number_found:,} of {total:,} samples" if query.is_filtered else f"{total:,} samples"
    return {
        "rows": compared_rows(compared, cards, query, listed.samples),
        "status": f"{found}, {ORDERS[query.sort]}",
        "chips": [
            Link(text, here(show=show) + "#samples", query.show == show, f"{compared.total(show, query):,}")
            for show, text in SHOWS.items()
        ],
        "titles": [scorer.title for scorer in compared.scorers],
        "orders": list(ORDERS.items()),
        "shows": list(SHOWS.items()),
        "fields": [
            (
                facet.name,
                [
                    (field_text(facet.name, value), f"{value} ({times:,})", (facet.name, value) in chosen)
                    for value, times in facet.values
                ],
            )
            for facet in facets.values()
        ],
        "ids": [card.id for card in cards],
        "unfiltered": here(show="all", q="", field=(), scorer="", run="") + "#samples"
        if query.is_filtered or query.scorer or query.run
        else "",
        "previous": here(before=listed.previous) + "#samples" if listed.previous else "",
        "following": here(after=listed.following) + "#samples" if listed.following else "",
        "exports": [
            Link("CSV of all that match", here(suffix=CSV)),
            Link("JSON of this page", here(suffix=JSON, after=query.after, before=query.before)),
        ],
    }
