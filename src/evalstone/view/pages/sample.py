"""A sample, with what is behind its scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from evalstone.errors import ConfigError
from evalstone.results.views.calls import Prompts
from evalstone.results.views.samples import goodness, sample_view
from evalstone.run.rebuilt import prompts_behind
from evalstone.scorers.base import Scorer
from evalstone.types import Sample
from evalstone.view.addresses import (
    COMPARISON,
    CSV,
    JSON,
    compare_address,
    compared_address,
    edit_sample_address,
    in_comparison,
    part,
    run_address,
    sample_address,
    with_query,
)
from evalstone.view.compare_query import ORDERS, CompareQuery
from evalstone.view.indexing.comparison import ComparedSample, StoredComparison
from evalstone.view.indexing.index import Case, Index, Stored
from evalstone.view.library import Library
from evalstone.view.names import name_of
from evalstone.view.pages.common import Link
from evalstone.view.pages.compare import MOST_RUNS, cards_in
from evalstone.view.pages.run import number_cell, order_text
from evalstone.view.query import SampleQuery
from evalstone.view.responses import BadAddress, NotThere, json_data, named, page, query_in, suffixed
from evalstone.view.shelf import dataset_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evalstone.view.shelf import Card

KEYS = (("c", "judge calls: open or close"), ("e", "evidence and data: open or close"))
STEPS, MOST_STACKED = 20, 5
"""Of the chart of trials: the number of places on its axis, and the highest stack of dots."""


def sample_page(library: Library, request: Request) -> Response:
    """A sample, with its outcomes and what is behind them."""
    last, suffix = suffixed(request.path_params["key"])
    card, key, query = library.card(named(request.path_params["run"])), named(last), query_in(request, SampleQuery)
    if suffix == CSV:
        raise NotThere("There is no CSV of one sample; the list of samples has one.")
    opened = library.index(card)
    if not isinstance(opened, Index):
        return opened
    with opened as index:
        case = index.case(key)
        if case is None:
            raise NotThere(f"Run {name_of(card)} has no results of sample {key}.")
        stored = index.stored(case.place)
        prompts = prompts_in(index, stored, library.own)
        if suffix == JSON:
            asked = {signature: each.to_dict() for signature, each in prompts.items()}
            return json_data({"run": card.id, "key": key, **stored.data, "asked": asked})
        try:
            way = _comparison(library, request, card, index, case)
            if way is not None and not isinstance(way, Way):
                return way
            context = sample_context(card.id, index, case, stored, query, prompts, way)
        except ConfigError as error:
            raise BadAddress(error) from None
        return page(
            "sample.html",
            title=key,
            card=card,
            name=name_of(card),
            dataset=dataset_of(card),
            run_href=run_address(card.id),
            collect=with_query("/collect", [("run", card.id), ("key", part(key))])
            if library.edit_token and stored.sample is not None
            else "",
            edit=_edit_address(library, card, stored.sample),
            keys=KEYS,
            **context,
        )


def prompts_in(index: Index, stored: Stored, own: Mapping[str, Scorer]) -> dict[str, Prompts]:
    """What the judges of a sample were asked, by the signature of the scorer. own: Scorers with code of the user's."""
    return prompts_behind(
        stored.records,
        stored.sample,
        index.scorers,
        keeps_reasoning=index.keeps_reasoning,
        asking=index.asking,
        own=own,
    )


def _edit_address(library: Library, card: Card, sample: Sample | None) -> str:
    """The address where the sample is edited in its dataset; "" if it can't be."""
    if not library.edit_token or sample is None or card.metadata is None:
        return ""
    with library.shelf.reading() as ledger:
        is_stored = ledger.samples(card.metadata.dataset.version)
    return edit_sample_address(dataset_of(card), sample.id) if is_stored else ""


@dataclass(frozen=True)
class Way:
    """The way from a sample to the list in which it was opened, and to the samples beside it there."""

    list_href: str
    order: str
    pairs: Sequence[tuple[str, str]]
    """The parameters that keep to it."""
    previous: str
    following: str
    side_by_side: str = ""
    """The sample in all runs of the comparison; "" if the list is that of a run."""


def _comparison(library: Library, request: Request, card: Card, index: Index, case: Case) -> Way | Response | None:
    """The way in the comparison in which a sample was opened, or a page while that is made; None outside of one.

    Raises:
        BadAddress: The address names no comparison of the run.
        ConfigError: The query doesn't suit the comparison.
    """
    text = request.query_params.get(COMPARISON, "")
    if not text:
        return None
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="surrogatepass")
    except UnicodeDecodeError:
        raise BadAddress(f"{COMPARISON} is not valid UTF-8.") from None
    cards = cards_in(library, [value for name, value in pairs if name == "runs"])
    ids, query = [each.id for each in cards], replace(CompareQuery.of(pairs), after="", before="")
    if card.id not in ids or not 2 <= len(cards) <= MOST_RUNS:
        raise BadAddress(f"{COMPARISON} names no comparison of run {name_of(card)}.")
    opened = library.comparison(cards, anyway=bool(query.anyway))
    if not isinstance(opened, StoredComparison):
        return opened
    own = ids.index(card.id)
    address = compare_address(ids, query.pairs())
    with opened as compared:
        if compared.head["refused"]:
            raise BadAddress(compared.head["refused"])
        first = min((trial.place for trial in index.trials(case.sample)), default=case.place)

        def beside(sample: ComparedSample | None) -> str:
            """The address of a sample, in this run if it is there."""
            if sample is None:
                return ""
            places = list(enumerate(sample.places))
            number, place = next((n, at) for n, at in (places[own], *places[::-1]) if at is not None)
            key = compared.indexes[number].at([place])[place].key
            return with_query(sample_address(ids[number], key), in_comparison(address))

        sample = compared.at(own, first)
        before, after = ("", "") if sample is None else map(beside, compared.neighbors(query, sample))
    return Way(
        f"{address}#samples",
        ORDERS[query.sort],
        in_comparison(address),
        before,
        after,
        side_by_side="" if sample is None else compared_address(sample.name, ids, query.pairs()),
    )


def _run_way(run: str, index: Index, case: Case, query: SampleQuery) -> Way:
    """The way in the list of a run's samples."""
    before, after = index.neighbors(query, case.key)
    pairs = query.pairs(after="", before="")
    return Way(
        with_query(run_address(run), pairs) + "#samples",
        order_text(query),
        pairs,
        with_query(sample_address(run, before), pairs) if before else "",
        with_query(sample_address(run, after), pairs) if after else "",
    )


def sample_context(
    run: str,
    index: Index,
    case: Case,
    stored: Stored,
    query: SampleQuery,
    prompts: Mapping[str, Prompts],
    way: Way | None = None,
) -> dict[str, Any]:
    """What the page of a sample shows. Raises ConfigError if the query doesn't suit the run."""
    way = way or _run_way(run, index, case, query)
    infos = {info.signature: info for info in index.scorers}
    titles = dict(zip(infos, index.titles, strict=True))
    values = [value for record in stored.records if (value := goodness(record, infos[record.signature])) is not None]
    view = sample_view(
        case.key,
        stored.sample,
        stored.records,
        infos,
        titles,
        sum(values) / len(values) if values else None,
        keeps_reasoning=index.keeps_reasoning,
        prompts=prompts,
    )
    trials = index.trials(case.sample) if case.trial is not None else []
    facts = [
        ("cost", number_cell(case, "cost") if case.cost or case.cost is None else ""),
        ("judge tokens", f"{case.tokens:,}" if case.tokens else ""),
        ("scoring time", f"{case.seconds:.2f} s" if case.seconds >= 0.01 else ""),
    ]
    return {
        "sample": view,
        "spread": trial_spread(run, trials, case.key, way.pairs) if len(trials) > 1 else None,
        "facts": [fact for fact in facts if fact[1]],
        "way": way,
        "permalink": sample_address(run, case.key),
        "json_href": f"{sample_address(run, case.key)}.json",
        "filtered": query.is_filtered,
    }


@dataclass(frozen=True)
class Spread:
    """How the scores of a sample's trials are spread.

    Attributes:
        number: The trial that is shown.
        trials: The way to each.
        dots: The place of each trial with a score in the chart, and whether it is the one that is shown.
        height: That of the chart.
        text: The spread in words.
    """

    number: int
    trials: tuple[Link, ...]
    dots: tuple[tuple[float, float, bool], ...]
    height: float
    text: str


def trial_spread(run: str, trials: Sequence[Case], key: str, pairs: Sequence[tuple[str, str]]) -> Spread:
    """The trials of a sample with the spread of their mean scores. key: that of the trial that is shown."""
    links = tuple(
        Link(
            f"{each.trial}",
            with_query(sample_address(run, each.key), pairs),
            each.key == key,
            "no score" if each.goodness is None else f"{each.goodness:.2f}",
        )
        for each in trials
    )
    stacked: Counter[int] = Counter()
    places: list[tuple[int, int, bool]] = []
    for each in sorted(trials, key=lambda each: each.key != key):
        if each.goodness is not None:
            step = round(each.goodness * STEPS)
            places.append((step, min(stacked[step], MOST_STACKED - 1), each.key == key))
            stacked[step] += 1
    height = 7.0 * min(max(stacked.values(), default=1), MOST_STACKED) + 3
    dots = tuple((4 + 120 * step / STEPS, height - 4.5 - 7 * level, current) for step, level, current in places)
    values = [each.goodness for each in trials if each.goodness is not None]
    low, high = (f"{edge(values, default=0.0):.2f}" for edge in (min, max))
    mean = f"all {low}" if low == high else f"mean {sum(values) / len(values):.2f}, lowest {low}, highest {high}"
    texts = [f"scores from 0 (worst) to 1 (best): {mean}"] if values else []
    if len(values) < len(trials):
        texts.append(f"{len(trials) - len(values)} without a score")
    number = next(place for place, each in enumerate(trials, start=1) if each.key == key)
    return Spread(number, links, dots, height, "; ".join(texts))
