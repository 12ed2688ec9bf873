"""A run: its report, and all of its samples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from evalstone._core.display import money
from evalstone.errors import ConfigError
from evalstone.report.csv import Value, csv_rows
from evalstone.report.view import Tone
from evalstone.results.losses import Loss
from evalstone.types.scorer_names import not_scored
from evalstone.view.addresses import (
    CSV,
    JSON,
    compare_address,
    judge_address,
    part,
    run_address,
    sample_address,
    with_query,
)
from evalstone.view.indexing.index import Case, Index, Spread
from evalstone.view.indexing.tables import FAILED, SCORED, SKIPPED, choice
from evalstone.view.library import Library
from evalstone.view.names import name_of
from evalstone.view.pages.common import STATES, Link, directed
from evalstone.view.pages.marks import ScoreCell, score_cell
from evalstone.view.pages.runs_table import experiment_link
from evalstone.view.query import COLUMNS, ORDERS, SCORE, SampleQuery, field_text, number_text
from evalstone.view.responses import WATCH, BadAddress, csv_file, json_data, named, page, query_in, suffixed
from evalstone.view.shelf import Card, dataset_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_SCORES = 12
"""The number of scorers that a list shows, unless some are chosen."""
MOST_GROUPS, MOST_OFFERED = 12, 40
"""The numbers of groups of samples with the same fault that the page shows, and that its form offers."""
MANY = 10
"""The number of values from which on an entry of the metadata isn't offered if no two samples share one."""
_NUMBERS = ("goodness", "cost", "tokens", "seconds", "latency", "loss")


@dataclass(frozen=True)
class SampleRow:
    """A sample in a list."""

    href: str
    name: str
    key: str
    """What a form has of it."""
    texts: tuple[tuple[str, str], ...]
    """Names and texts of the chosen columns."""
    scores: tuple[ScoreCell, ...]
    numbers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class GroupRow:
    """Samples with the same fault, and where they are listed."""

    href: str
    number: int
    scorer: str
    outcome: str
    tone: Tone
    text: str
    current: bool


@dataclass(frozen=True)
class ColumnSpread:
    """How the numbers of a column are distributed: in words, and as bars with a height from 0 to 100."""

    label: str
    bars: tuple[float, ...]
    median: str
    p95: str


@dataclass(frozen=True)
class SampleTable:
    """The list of a run's samples."""

    headers: tuple[Link, ...]
    spreads: tuple[ColumnSpread | None, ...]
    """By header."""
    rows: tuple[SampleRow, ...]
    status: str
    chips: tuple[Link, ...]
    previous: str
    following: str
    reasons: tuple[tuple[str, str], ...] = ()
    losses: tuple[tuple[str, str], ...] = ()
    """Where low answers are lost, with the number of samples."""
    fields: tuple[tuple[str, tuple[tuple[str, str, bool], ...]], ...] = ()
    """Entries of the metadata with their values: as in an address, as shown, and whether it is chosen."""
    lowest: str = ""
    highest: str = ""
    orders: tuple[tuple[str, str], ...] = ()
    columns: tuple[tuple[str, str, bool], ...] = ()
    titles: tuple[str, ...] = ()
    """Those of the scorers that are shown."""
    left_out: str = ""
    """Which scorers are not shown."""
    unfiltered: str = ""
    exports: tuple[Link, ...] = field(default=())


def run_page(library: Library, request: Request) -> Response:
    """A run: its report, and its samples."""
    name, suffix = suffixed(request.path_params["run"])
    card, query = library.card(named(name)), query_in(request, SampleQuery)
    opened = library.index(card)
    if not isinstance(opened, Index):
        return opened
    with opened as index:
        try:
            if suffix == CSV:
                index.page(query, 1)  # an address that makes no sense is an error before anything is sent
                return csv_file(_samples_csv(library, card, query), card.id)
            if suffix == JSON:
                found = index.page(query)
                data = {
                    "run": index.head["run"],
                    "matching": index.count(query),
                    "samples": [case_data(case, index) for case in found.cases],
                    "next": with_query(f"{run_address(card.id)}.json", query.pairs(before="", after=found.following))
                    if found.following
                    else None,
                }
                return json_data(data)
            table = sample_table(card.id, index, query)
        except ConfigError as error:
            raise BadAddress(error) from None
        return page(
            "run.html",
            headers={"refresh": WATCH} if card.state == "running" and not query.pairs() else {},
            title=name_of(card),
            card=card,
            name=name_of(card),
            state=STATES[card.state],
            view=index.head["view"],
            scores_notes=[
                (text, doubtful, judge_address(name) if name else "")
                for text, doubtful, name in library.calibrations.notes(index)
            ],
            has_trials=index.has_trials,
            groups=group_rows(card.id, index, query),
            table=table,
            query=query,
            titles=index.titles,
            action=run_address(card.id),
            token=library.form_token,
            label_href=with_query("/label", [("run", card.id)]) if index.totals["all"] else "",
            pinned=library.shelf.pins().get(dataset_of(card)) == card.id,
            compare=compare_address([card.id]),
            collect=collect_link(library, [("run", card.id), *query.pairs(after="", before="")]),
            experiment=experiment_link(card),
        )


def collect_link(library: Library, pairs: Iterable[tuple[str, str]]) -> str:
    """Where all of a list are added to a dataset; "" if none can be edited."""
    return with_query("/collect", [*pairs, ("all", "1")]) if library.edit_token else ""


def _samples_csv(library: Library, card: Card, query: SampleQuery) -> Iterable[str]:
    opened = library.index(card)
    if isinstance(opened, Index):
        with opened as index:
            rows = (csv_row(case, index) for case in index.every(query))
            yield from csv_rows(csv_header(index), rows)


def sample_table(run: str, index: Index, query: SampleQuery) -> SampleTable:
    """The page of samples that a query finds. Raises ConfigError if the query doesn't suit the run."""
    number_found, listed = index.count(query), index.page(query)
    path, total = run_address(run), index.totals["all"]
    noun = "trials" if any(case.trial is not None for case in listed.cases) else "samples"

    def here(**changes: Any) -> str:
        return with_query(path, query.pairs(**{"after": "", "before": "", **changes})) + "#samples"

    def header(text: str, order: str, kind: str = "number") -> Link:
        current = query.order == order
        return Link(text, here(sort=order if not current or query.descending else f"-{order}"), current, kind)

    chips = [
        Link(text, here(show=show), query.show == show, f"{index.totals[total_of]:,}")
        for show, text, total_of in (
            ("all", "all", "all"),
            ("imperfect", "not perfect", "imperfect"),
            ("skipped", "skipped", "skipped"),
            ("failed", "failed", "failed"),
        )
        if show == "all" or index.totals[total_of] or query.show == show
    ]
    chips += [
        Link(f"lost in {loss}", here(loss=loss), query.loss == loss, f"{index.totals[loss]:,}")
        for loss in ("retrieval", "generation")
        if index.totals[loss] or query.loss == loss
    ]
    places = shown_scorers(index, query)
    shown = [(index.titles[place], index.scorers[place]) for place in places]
    scores = [header(directed(title, lower_is_better=info.lower_is_better), f"{SCORE}{title}") for title, info in shown]
    texts = [name for name in ("input", "answer", "reference") if name in query.column]
    numbers = [name for name in ("cost", "tokens", "seconds", "latency") if name in query.column]
    offered = {name: text for name, text in COLUMNS.items() if name != "latency" or "latency" in index.spreads}
    one_by_one = len(index.titles) > MOST_SCORES
    choices = [*offered.items(), *((f"{SCORE}{title}", title) for title in index.titles if one_by_one)]
    found = f"{number_found:,} of {total:,} {noun}" if query.is_filtered else f"{total:,} {noun}"
    chosen = [(choice(name), choice(value)) for name, value in query.field]
    orders = [
        *((name, text) for name, text in ORDERS.items() if name not in COLUMNS or name in offered),
        *((f"{SCORE}{title}", title) for title in index.titles),
    ]
    pairs = query.pairs(after="", before="", column=SampleQuery().column)
    return SampleTable(
        headers=(
            header("sample", "id", ""),
            *(Link(COLUMNS[name], "") for name in texts),
            *scores,
            *(header(COLUMNS[name], name) for name in numbers),
        ),
        spreads=(
            *([None] * (1 + len(texts) + len(scores))),
            *(column_spread(name, index.spreads.get(name)) for name in numbers),
        ),
        rows=tuple(
            SampleRow(
                with_query(sample_address(run, case.key), query.pairs(after="", before="")),
                case.key if case.key.strip() else repr(case.key),
                part(case.key),
                tuple((COLUMNS[name], getattr(case, name)) for name in texts),
                tuple(score_cell(case.values[place], case.outcomes[place], index.scorers[place]) for place in places),
                tuple((COLUMNS[name], number_cell(case, name)) for name in numbers),
            )
            for case in listed.cases
        ),
        status=f"{found}, {order_text(query)}",
        chips=tuple(chips) if len(chips) > 1 else (),
        previous=here(before=listed.previous) if listed.previous else "",
        following=here(after=listed.following) if listed.following else "",
        reasons=tuple(
            dict.fromkeys((each.text, f"{each.number:,} × {each.text}") for each in index.groups(MOST_OFFERED))
        ),
        losses=tuple((loss, f"{loss} ({index.totals[loss]:,})") for loss in get_args(Loss) if index.totals[loss]),
        fields=tuple(
            (
                facet.name,
                tuple(
                    (field_text(facet.name, value), f"{value} ({times:,})", (facet.name, value) in chosen)
                    for value, times in facet.values
                ),
            )
            for facet in index.facets
            if len(facet.values) < MANY or facet.values[0][1] > 1 or any(facet.name == name for name, _ in chosen)
        ),
        lowest=number_text(query.min),
        highest=number_text(query.max),
        orders=tuple((sign + order, _order_words(sign + order, text)) for order, text in orders for sign in ("", "-")),
        columns=tuple((name, text, name in query.column) for name, text in choices),
        titles=tuple(title for title, _ in shown),
        left_out=f"{len(shown)} of {len(index.titles)} scorers are shown. Choose others under Columns."
        if len(shown) < len(index.titles)
        else "",
        unfiltered=path + "#samples" if query.is_filtered else "",
        exports=(
            Link("CSV of all that match", with_query(f"{path}.csv", pairs)),
            Link("JSON of this page", with_query(f"{path}.json", query.pairs())),
        ),
    )


def shown_scorers(index: Index, query: SampleQuery) -> list[int]:
    """The places of the scorers that a list shows: the chosen ones, or the first ones."""
    chosen = [name.removeprefix(SCORE) for name in query.column if name.startswith(SCORE)]
    for title in chosen:
        if title not in index.titles:
            raise ConfigError(not_scored(title, index.titles))
    usual = index.titles[:MOST_SCORES] if "scores" in query.column else ()
    return sorted({index.titles.index(title) for title in (chosen or usual)})


def group_rows(run: str, index: Index, query: SampleQuery) -> list[GroupRow]:
    """The largest groups of samples with the same fault."""
    tones: dict[str, Tone] = {"failed": "bad", "skipped": "unsure", "score": ""}
    return [
        GroupRow(
            with_query(run_address(run), SampleQuery(scorer=each.scorers[0], reason=each.text).pairs()) + "#samples",
            each.number,
            ", ".join(each.scorers),
            "" if each.outcome == "score" else each.outcome,
            tones[each.outcome],
            each.text,
            query.scorer in each.scorers and query.reason == each.text,
        )
        for each in index.groups(MOST_GROUPS)
    ]


def column_spread(name: str, spread: Spread | None) -> ColumnSpread | None:
    """How the numbers of a column are distributed; None if they don't differ."""
    if spread is None:
        return None
    median, p95, highest = (number_text_of(name, value) for value in (spread.median, spread.p95, spread.highest))
    top = max(spread.bins)
    label = f"{COLUMNS[name]} of {spread.n:,}: median {median}, 95% at most {p95}, highest {highest}"
    return ColumnSpread(label, tuple(100 * times / top for times in spread.bins), median, p95)


def _order_words(sort: str, text: str) -> str:
    """An order in words."""
    match sort:
        case "goodness" | "-goodness":
            return "best first" if sort.startswith("-") else "worst first"
        case "order" | "-order":
            return "last first" if sort.startswith("-") else "order of the dataset"
        case "id" | "-id":
            return f"{text}, {'Z to A' if sort.startswith('-') else 'A to Z'}"
        case _:
            return f"{text}, {'highest' if sort.startswith('-') else 'lowest'} first"


def order_text(query: SampleQuery) -> str:
    return _order_words(query.sort, ORDERS.get(query.order, query.order.removeprefix(SCORE)))


def number_cell(case: Case, name: str) -> str:
    """A number of a sample; an unknown cost and a missing latency never look like a 0."""
    value = getattr(case, name)
    if value is None:
        return "unknown" if name == "cost" else ""
    return number_text_of(name, value)


def number_text_of(name: str, value: float) -> str:
    """A cost, a number of tokens or a time."""
    return money(value) if name == "cost" else f"{value:,.0f}" if name == "tokens" else f"{value:.2f} s"


def case_data(case: Case, index: Index) -> dict[str, Any]:
    """A sample of a list as JSON data, with its texts in full."""
    case = index.whole(case)
    names = {SCORED: "score", SKIPPED: "skipped", FAILED: "failed"}
    scores = {
        title: {"outcome": names.get(outcome) if outcome is not None else None, "value": value}
        for title, value, outcome in zip(index.titles, case.values, case.outcomes, strict=True)
    }
    return {
        "key": case.key,
        "sample_id": case.sample,
        "trial": case.trial,
        "goodness": case.goodness,
        "input": case.input,
        "answer": case.answer,
        "reference": case.reference,
        "cost": case.cost,
        "tokens": case.tokens,
        "seconds": case.seconds,
        "latency": case.latency,
        "loss": case.loss,
        "scores": scores,
    }


def csv_header(index: Index) -> list[str]:
    """The header of a list of samples."""
    scores = [name for title in index.titles for name in (title, f"{title} outcome")]
    return ["sample_id", "trial", "input", "answer", "reference", *scores, *_NUMBERS]


def csv_row(case: Case, index: Index) -> list[Value]:
    """A sample of a list as a row."""
    data = case_data(case, index)
    scores = [value for each in data["scores"].values() for value in (each["value"], each["outcome"])]
    texts = [data[name] for name in ("sample_id", "trial", "input", "answer", "reference")]
    return [*texts, *scores, *(data[name] for name in _NUMBERS)]
