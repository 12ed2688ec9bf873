"""A sample, with what is behind its scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalstone.errors import ConfigError
from evalstone.results.views.samples import goodness, sample_view
from evalstone.view.addresses import CSV, JSON, run_address, sample_address, with_query
from evalstone.view.indexing.index import Case, Index, Stored
from evalstone.view.library import Library
from evalstone.view.names import dataset_of, name_of
from evalstone.view.pages.common import Link
from evalstone.view.pages.run import number_cell, order_text
from evalstone.view.query import SampleQuery
from evalstone.view.responses import BadAddress, NotThere, json_data, named, page, sample_query, suffixed

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


def sample_page(library: Library, request: Request) -> Response:
    """A sample, with its outcomes and what is behind them."""
    part, suffix = suffixed(request.path_params["key"])
    card, key, query = library.card(named(request.path_params["run"])), named(part), sample_query(request)
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
        if suffix == JSON:
            return json_data({"run": card.id, "key": key, **stored.data})
        try:
            context = sample_context(card.id, index, case, stored, query)
        except ConfigError as error:
            raise BadAddress(error) from None
        return page(
            "sample.html",
            title=key,
            card=card,
            name=name_of(card),
            dataset=dataset_of(card),
            run_href=run_address(card.id),
            **context,
        )


def sample_context(run: str, index: Index, case: Case, stored: Stored, query: SampleQuery) -> dict[str, Any]:
    """What the page of a sample shows. Raises ConfigError if the query doesn't suit the run."""
    infos = {info.signature: info for info in index.scorers}
    titles = dict(zip(infos, index.titles, strict=True))
    before, after = index.neighbors(query, case.key)
    pairs = query.pairs(after="", before="")
    values = [value for record in stored.records if (value := goodness(record, infos[record.signature])) is not None]
    view = sample_view(
        case.key,
        stored.sample,
        stored.records,
        infos,
        titles,
        sum(values) / len(values) if values else None,
        keeps_reasoning=index.keeps_reasoning,
    )
    trials = [
        Link(
            f"{each.trial}",
            with_query(sample_address(run, each.key), pairs),
            each.key == case.key,
            "no score" if each.goodness is None else f"{each.goodness:.2f}",
        )
        for each in (index.trials(case.sample) if case.trial is not None else ())
    ]
    facts = [
        ("cost", number_cell(case, "cost") if case.cost or case.cost is None else ""),
        ("judge tokens", f"{case.tokens:,}" if case.tokens else ""),
        ("scoring time", f"{case.seconds:.2f} s" if case.seconds >= 0.01 else ""),
    ]
    return {
        "sample": view,
        "trials": trials,
        "facts": [fact for fact in facts if fact[1]],
        "previous": with_query(sample_address(run, before), pairs) if before else "",
        "following": with_query(sample_address(run, after), pairs) if after else "",
        "list_href": with_query(run_address(run), pairs) + "#samples",
        "json_href": f"{sample_address(run, case.key)}.json",
        "filtered": query.is_filtered,
        "order": order_text(query),
    }
