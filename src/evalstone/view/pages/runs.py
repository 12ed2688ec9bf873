"""The runs by dataset, each compared with the dataset's pinned baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalstone._core.json import to_jsonable
from evalstone.report.csv import csv_rows
from evalstone.view.addresses import JSON, with_query
from evalstone.view.indexing.differences import Differences, Family, over_runs
from evalstone.view.indexing.tables import choice
from evalstone.view.library import Library
from evalstone.view.names import name_of
from evalstone.view.pages.common import STATES
from evalstone.view.pages.runs_table import MOST_SCORERS, Baseline, run_group
from evalstone.view.query import SCORE
from evalstone.view.responses import SOON, WATCH, csv_file, json_data, page, query_in, suffix_of
from evalstone.view.runs_query import ORDERS, RunsQuery
from evalstone.view.shelf import Card, by_dataset, dataset_of

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
    every = library.shelf.listing()
    matching = query.among(every) if query.is_filtered else every.cards
    cards = ordered(matching, query)
    pins = library.shelf.pins()
    if suffix:
        families = _families(library, pins, every.by_dataset, {dataset_of(card) for card in cards})
        if suffix == JSON:
            return json_data([_card_data(card, pins, families) for card in cards])
        return csv_file(_runs_csv(cards, pins, families), "runs")
    first = next((at for at, card in enumerate(cards, start=1) if card.id == query.before), 0) if query.before else 0
    shown = cards[first : first + RUNS_PER_PAGE]
    groups = by_dataset(shown)
    of_datasets = by_dataset(matching) if query.is_filtered else every.by_dataset
    baselines, progress, waiting = _baselines(library, pins, groups, every.by_dataset)
    running = any(card.state == "running" for card in shown) and not query.before
    watch = SOON if waiting else WATCH if running or progress else ""
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
        choices=choices(every.counts, query),
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
    library: Library, pins: Mapping[str, str], groups: Mapping[str, Sequence[Card]], every: Mapping[str, Sequence[Card]]
) -> tuple[dict[str, Baseline | str], str, bool]:
    """The baseline of each dataset with the differences that are known; how many runs are compared, in words; and
    whether a run that is shown is still to be. groups: the runs that are shown, by dataset; every: all of them."""
    found: dict[str, Baseline | str] = {}
    progress: list[str] = []
    waiting = False
    for name, cards in groups.items():
        if name not in pins:
            continue
        card = library.shelf.card(pins[name])
        if card is None or card.problem:
            found[name] = "the pinned run is gone" if card is None else f"it can't be read: {card.problem}"
            continue
        others, shown = _compared(card, every.get(name, ())), {each.id for each in cards}
        known = library.comparisons.differences(card, others)
        missing = [each for each in others if each.id not in known]
        if missing and card.state in COMPARED:
            needed = [each for each in missing if each.id in shown]
            later = [each for each in missing if each.id not in shown]
            building = library.comparisons.compute(card, needed, others=later)
            known = library.comparisons.differences(card, others)
            waiting = waiting or (building is not None and any(each.id not in known for each in needed))
            if len(known) < len(others):
                progress.append(f"{len(known):,} of {len(others):,} runs over {name}")
        found[name] = Baseline(card, _family(known, others if card.state in COMPARED else ()))
    return found, "; ".join(progress), waiting


def _compared(baseline: Card, of_dataset: Iterable[Card]) -> list[Card]:
    """The runs over a dataset that are compared with its baseline, whatever a page shows."""
    return [each for each in of_dataset if each.id != baseline.id and each.state in COMPARED]


def _family(known: Mapping[str, Differences], others: Iterable[Card]) -> Family:
    return over_runs(known, [len(each.by_title) for each in others if each.id not in known])


def _families(
    library: Library, pins: Mapping[str, str], every: Mapping[str, Sequence[Card]], names: Collection[str]
) -> dict[str, Family]:
    """By the name of the dataset, how runs differ from its baseline, as far as that is known."""
    families: dict[str, Family] = {}
    for name in names & pins.keys():
        baseline = library.shelf.card(pins[name])
        if baseline is not None and not baseline.problem:
            others = _compared(baseline, every.get(name, ()))
            known = library.comparisons.differences(baseline, others)
            families[name] = _family(known, others if baseline.state in COMPARED else ())
    return families


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


def _card_data(card: Card, pins: Mapping[str, str], families: Mapping[str, Family]) -> dict[str, Any]:
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
    family = families.get(dataset_of(card), Family())
    known = family.differences(card.id)
    compared = {
        "baseline": pins.get(dataset_of(card)),
        "differences": None if known is None else {**to_jsonable(known), "corrected_for": family.comparisons},
    }
    return {**about, **{name: to_jsonable(getattr(card.metadata, name)) for name in kept}, **compared}


def _runs_csv(cards: Iterable[Card], pins: Mapping[str, str], families: Mapping[str, Family]) -> Iterable[str]:
    header = (
        "run", "name", "started", "state", "dataset", "samples", "target", "judge", "tags", "scorer", "mean", "low",
        "high", "scale", "n_score", "n_skipped", "n_failed", "cost", "seconds", "folder", "baseline", "difference",
        "difference_low", "difference_high", "p", "adjusted_p", "adjusted_p_runs", "corrected_for", "verdict",
    )  # fmt: skip
    nobody = Family()
    rows = (
        (
            card.id, run.name, card.started, card.state, run.dataset.name, run.dataset.samples,
            None if run.target is None else run.target.identity, run.judge.identity, ", ".join(run.tags),
            card.titles[each.signature], each.mean, *(each.interval or (None, None)), each.scale, each.n_score,
            each.n_skipped, each.n_failed, card.cost, run.seconds, card.folder or None, pins.get(run.dataset.name),
            *(
                (None,) * 8
                if known is None or (found := known.of.get(each.signature)) is None
                else (
                    found.estimate, found.low, found.high, found.p, found.adjusted_p, found.adjusted_p_runs,
                    family.comparisons, found.verdict,
                )
            ),
        )
        for card in cards
        if (run := card.metadata) is not None
        for family in (families.get(run.dataset.name, nobody),)
        for known in (family.differences(card.id),)
        for each in run.scorers
    )  # fmt: skip
    return csv_rows(header, rows)
