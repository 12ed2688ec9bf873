"""The runs by dataset, each compared with the dataset's pinned baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalstone._core.json import to_jsonable
from evalstone.report.csv import csv_rows
from evalstone.view.addresses import JSON, with_query
from evalstone.view.indexing.differences import Differences
from evalstone.view.indexing.tables import choice
from evalstone.view.library import Library
from evalstone.view.names import dataset_of, name_of
from evalstone.view.pages.common import STATES
from evalstone.view.pages.runs_table import MOST_SCORERS, Baseline, run_group
from evalstone.view.query import SCORE
from evalstone.view.responses import SOON, WATCH, csv_file, json_data, page, query_in, suffix_of
from evalstone.view.runs_query import ORDERS, RunsQuery
from evalstone.view.shelf import Card

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

RUNS_PER_PAGE = 50
MOST_OFFERED = 200
"""The number of values that a list of the form offers: the most frequent ones."""
COMPARED = ("complete", "ended")
"""The states of runs that are compared with a baseline."""


def runs_page(library: Library, request: Request) -> Response:
    """The runs by dataset."""
    suffix, query = suffix_of(request), query_in(request, RunsQuery)
    every = library.shelf.cards()
    matching = [card for card in every if query.matches(card)] if query.is_filtered else every
    cards = ordered(matching, query)
    pins = library.shelf.pins()
    if suffix:
        known = _known(library, pins, cards)
        if suffix == JSON:
            return json_data([_card_data(card, pins, known) for card in cards])
        return csv_file(_runs_csv(cards, pins, known), "runs")
    first = next((at for at, card in enumerate(cards, start=1) if card.id == query.before), 0) if query.before else 0
    shown = cards[first : first + RUNS_PER_PAGE]
    groups: dict[str, list[Card]] = {}
    for card in shown:
        groups.setdefault(dataset_of(card), []).append(card)
    of_datasets: dict[str, list[Card]] = {name: [] for name in groups}
    for card in matching:
        if (of := of_datasets.get(dataset_of(card))) is not None:
            of.append(card)
    baselines, progress = _baselines(library, pins, groups)
    running = any(card.state == "running" for card in shown) and not query.before
    watch = SOON if progress else WATCH if running else ""
    tables = [run_group(name, of, of_datasets[name], query, baselines.get(name)) for name, of in groups.items()]
    titles = dict.fromkeys(title for table in tables for title in table.titles)
    return page(
        "runs.html",
        headers={"refresh": watch} if watch else {},
        title="Runs",
        places=library.shelf.places,
        live=library.has_live_scores(),
        groups=tables,
        query=query,
        choices=choices(library.shelf.counts(every), query),
        orders=orders(query, shown),
        columns=list(titles) if len(titles) > MOST_SCORERS or query.column else (),
        total=len(cards),
        progress=progress,
        token=library.form_token,
        here=with_query("/", query.pairs()),
        unfiltered="/" if query.is_filtered else "",
        older=with_query("/", query.pairs(before=shown[-1].id)) if len(cards) > first + len(shown) else "",
        newer=with_query("/", query.pairs(before="")) if query.before else "",
        csv_href=with_query("/runs.csv", query.pairs(before="")),
        json_href=with_query("/runs.json", query.pairs(before="")),
    )


def ordered(cards: Sequence[Card], query: RunsQuery) -> list[Card]:
    """Runs in the order of a query. Those without a value are last."""
    if query.order == "started":  # they are read latest first
        return [*cards] if query.descending else [*reversed(cards)]
    title = query.order.removeprefix(SCORE) if query.order.startswith(SCORE) else ""

    def value(card: Card) -> Any:
        if title:
            scorer = card.by_title.get(title)
            if scorer is None or scorer.mean is None:
                return None
            # The best are first unless the order is turned round.
            return scorer.mean / scorer.scale * (1 if scorer.lower_is_better else -1)
        match query.order:
            case "name":
                return name_of(card).casefold()
            case "failed":
                return card.n_missing[1] if card.metadata else None
            case "cost":
                return card.cost
            case _:
                return card.metadata.seconds if card.metadata else None

    found = [(value(card), card) for card in cards]
    known = [each for each in found if each[0] is not None]
    known.sort(key=lambda each: each[0], reverse=query.descending)
    return [card for _, card in known] + [card for worth, card in found if worth is None]


def _baselines(
    library: Library, pins: Mapping[str, str], groups: Mapping[str, Sequence[Card]]
) -> tuple[dict[str, Baseline | str], str]:
    """The baseline of each dataset with the differences that are known, and how far the others are."""
    found: dict[str, Baseline | str] = {}
    progress: list[str] = []
    for name, cards in groups.items():
        if name not in pins:
            continue
        card = library.shelf.card(pins[name])
        if card is None or card.problem:
            found[name] = "the pinned run is gone" if card is None else f"it can't be read: {card.problem}"
            continue
        others = [each for each in cards if each.id != card.id and each.state in COMPARED]
        known = library.comparisons.differences(card, others)
        missing = [each for each in others if each.id not in known]
        if missing and card.state in COMPARED:
            building = library.comparisons.compute(card, missing)
            if building is not None:
                progress.append(f"{building.done:,} of {building.total or len(missing):,} runs over {name}")
            known = library.comparisons.differences(card, others)
        found[name] = Baseline(card, known)
    return found, "; ".join(progress)


def _known(library: Library, pins: Mapping[str, str], cards: Sequence[Card]) -> dict[str, Differences]:
    """The differences of runs from their baselines that are known, by their IDs."""
    known: dict[str, Differences] = {}
    for name, run in pins.items():
        own = [card for card in cards if dataset_of(card) == name]
        baseline = library.shelf.card(run) if own else None
        if baseline is not None and not baseline.problem:
            known |= library.comparisons.differences(baseline, own)
    return known


def choices(counts: Mapping[str, Counter[str]], query: RunsQuery) -> list[tuple[str, list[tuple[str, str, bool]]]]:
    """What the form offers: names of parameters, and their values with the number of runs."""
    offered: list[tuple[str, list[tuple[str, str, bool]]]] = []
    for name, found in counts.items():
        chosen = choice(getattr(query, name))
        if len(found) > 1 or chosen:
            values = [
                (choice(value), f"{STATES[value][0] or value if name == 'state' else value} ({times:,})")
                for value, times in found.most_common(MOST_OFFERED)
            ]
            offered.append((name, [(value, text, value == chosen) for value, text in values]))
    return offered


def orders(query: RunsQuery, cards: Iterable[Card]) -> list[tuple[str, str, bool]]:
    """The orders to choose from: as in an address, in words, and whether each is chosen."""
    words = {
        "-started": "latest first",
        "started": "oldest first",
        "name": "name",
        "-failed": "most failures first",
        "-cost": "most expensive first",
        "-seconds": "slowest first",
    }
    titles = dict.fromkeys(title for card in cards for title in card.by_title)
    for title in list(titles)[:MOST_OFFERED]:
        words |= {f"{SCORE}{title}": f"{title}, best first", f"-{SCORE}{title}": f"{title}, worst first"}
    if query.sort not in words:
        order = query.order.removeprefix(SCORE)
        words[query.sort] = f"{ORDERS.get(order, order)}, {'last' if query.descending else 'first'}"
    return [(sort, text, sort == query.sort) for sort, text in words.items()]


def _card_data(card: Card, pins: Mapping[str, str], known: Mapping[str, Differences]) -> dict[str, Any]:
    about = {
        "id": card.id,
        "state": card.state,
        "started": card.started,
        "cost": card.cost,
        "folder": card.folder or None,
    }
    if card.metadata is None:
        return {**about, "problem": card.problem}
    kept = ("name", "tags", "dataset", "judge", "target", "scorers", "seconds", "stop_reason")
    compared = {"baseline": pins.get(dataset_of(card)), "differences": to_jsonable(known.get(card.id))}
    return {**about, **{name: to_jsonable(getattr(card.metadata, name)) for name in kept}, **compared}


def _runs_csv(cards: Iterable[Card], pins: Mapping[str, str], known: Mapping[str, Differences]) -> Iterable[str]:
    header = (
        "run", "name", "started", "state", "dataset", "samples", "target", "judge", "tags", "scorer", "mean", "low",
        "high", "scale", "n_score", "n_skipped", "n_failed", "cost", "seconds", "folder", "baseline", "difference",
        "difference_low", "difference_high", "adjusted_p", "verdict",
    )  # fmt: skip
    nothing = Differences()
    rows = (
        (
            card.id, run.name, card.started, card.state, run.dataset.name, run.dataset.samples,
            None if run.target is None else run.target.identity, run.judge.identity, ", ".join(run.tags),
            card.titles[each.signature], each.mean, *(each.interval or (None, None)), each.scale, each.n_score,
            each.n_skipped, each.n_failed, card.cost, run.seconds, card.folder or None, pins.get(run.dataset.name),
            *(
                (None,) * 5
                if (found := known.get(card.id, nothing).of.get(each.signature)) is None
                else (found.estimate, found.low, found.high, found.adjusted_p, found.verdict)
            ),
        )
        for card in cards
        if (run := card.metadata) is not None
        for each in run.scorers
    )  # fmt: skip
    return csv_rows(header, rows)
