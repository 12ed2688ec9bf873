"""Live scores: the streams of a ledger, and the scores of one by scorer, entity and time, with coverage and drift."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count, digits_for, number
from evalstone._core.front_ends import COMMAND_LINE
from evalstone._core.json import storable
from evalstone.ledger.base import HOUR, hour_start
from evalstone.ledger.live import streams
from evalstone.ledger.scores import ScoreList, listed_live
from evalstone.live.score_drift import LiveDrift
from evalstone.report.csv import csv_rows
from evalstone.view.addresses import CSV, JSON, live_address, with_query
from evalstone.view.indexing.jobs import Building
from evalstone.view.indexing.tables import choice
from evalstone.view.library import Library
from evalstone.view.live_drift import baselines
from evalstone.view.live_figures import Grouped, Sums
from evalstone.view.live_query import SOURCES, LiveQuery
from evalstone.view.live_streams import Stream
from evalstone.view.names import name_of, utc
from evalstone.view.pages.common import Link, directed
from evalstone.view.pages.live_list import PER_PAGE, SHOWS, list_rows, scores_as_csv, scores_page
from evalstone.view.pages.run import collect_link
from evalstone.view.pages.runs_table import Trend
from evalstone.view.responses import SOON, csv_file, json_data, named, page, query_in, redirect, suffix_of, suffixed
from evalstone.view.shelf import Card, dataset_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

STREAMS_PER_PAGE = 50
MOST_ENTITIES, MOST_OFFERED = 20, 200
"""The number of entities that have a row, and of what a list of the form offers: the most frequent ones."""
PERIODS = (("", "all"), ("24h", "24 hours"), ("7d", "7 days"), ("30d", "30 days"))
STATES = ("score", "skipped", "failed", "dropped", "pending")
_SHOWN = {"score": "worst"}
"""How a state is named in an address where it isn't by its own name."""
HEADER = ("stream", "scorer", "signature", "mean", "scale", *STATES, "coverage")


def live_page(library: Library, request: Request) -> Response:
    """The streams of a ledger."""
    suffix = suffix_of(request)
    after = storable(request.query_params.get("after", ""))
    with library.live_ledger() as ledger:
        cards, names = library.shelf.cards(), streams(ledger)
        if suffix == CSV:
            return csv_file(_streams_csv(library, cards, names), "live")
        rest = [name for name in names if not after or name > after]
        shown = rest[:STREAMS_PER_PAGE]
        found = [Stream.of(ledger, library.readings, cards, name, LiveQuery()) for name in shown]
    following = with_query(f"/live{suffix}", [("after", shown[-1])]) if len(rest) > len(shown) else ""
    if suffix == JSON:
        return json_data({"scorers": [*_lines(found)], "next": following or None})
    return page(
        "live.html",
        title="Live scores",
        live=True,
        rows=[(stream.name, live_address(stream.name), _period(stream), _scorer_rows(stream)) for stream in found],
        total=len(names),
        places=library.shelf.places,
        first="/live" if after else "",
        json_href=with_query("/live.json", [("after", after)] if after else []),
        following=following,
    )


def _lines(found: Iterable[Stream]) -> Iterator[dict[str, Any]]:
    return ({"stream": stream.name, **each} for stream in found for each in _scorers_data(stream))


def _streams_csv(library: Library, cards: Sequence[Card], names: Sequence[str]) -> Iterator[str]:
    """All scorers of all streams, which are read one after the other."""
    with library.live_ledger() as ledger:
        found = (Stream.of(ledger, library.readings, cards, name, LiveQuery()) for name in names)
        yield from csv_rows(HEADER, ([line[name] for name in HEADER] for line in _lines(found)))


def stream_page(library: Library, request: Request) -> Response:
    """The live scores of a stream."""
    part, suffix = suffixed(request.path_params["stream"])
    name, query = named(part), query_in(request, LiveQuery)
    if query.baseline and query.watched_since is not None and query.is_moving and not suffix:
        # From another start on with each look, false alarms add up, and everything is computed again.
        watch = f"{query.watched_since:%Y-%m-%dT%H:%M}"
        return redirect(with_query(live_address(name) + suffix, query.pairs(watch=watch)))
    with library.live_ledger() as ledger:
        cards = library.shelf.cards()
        stream = Stream.of(ledger, library.readings, cards, name, query)
        if suffix == CSV:
            return csv_file(scores_as_csv(library, stream.ranking()), f"{name}-live")
        scores = scores_page(ledger, stream)
        shown = scores[:PER_PAGE]
        after = shown[-1][0] if len(scores) > len(shown) else ""
        following = with_query(live_address(name) + suffix, query.pairs(after=after)) if after else ""
        if suffix == JSON:
            listed = ScoreList([listed_live(ledger, row) for _, row in shown])
            return json_data(_data(stream, listed, following))
        rows = list_rows(ledger, stream, shown)
    runs = baselines(cards, stream.infos)
    drift, watching = _drift(library, stream, runs)
    figures, rows_of_scorers = stream.figures, _scorer_rows(stream)
    return page(
        "live_stream.html",
        headers={"refresh": SOON} if watching else {},
        title=name,
        name=name,
        query=query,
        period=_period(stream),
        choices=_choices(stream),
        periods=[
            Link(text, stream.address(since=age, until=""), query.since == age and not query.until)
            for age, text in PERIODS
        ],
        clear=live_address(name) if query.is_filtered else "",
        scorers=rows_of_scorers,
        step=_step_text(figures.step),
        has_trend=any(row["trend"] for row in rows_of_scorers),
        titles=[_directed(stream, signature) for signature in figures.scorers],
        groups=[
            (title, rows, more)
            for title, grouped, filtered in (
                ("By entity", figures.entities, "entity"),
                ("By source", figures.sources, "source"),
            )
            if len(grouped) > 1 or "" not in grouped
            for rows, more in [_group_rows(stream, grouped, filtered)]
        ],
        times=[_time_row(stream, hour) for hour in sorted(figures.times, reverse=True)],
        coverage=stream.coverage.view(COMMAND_LINE),
        coverage_of=_coverage_of(stream),
        drift=drift,
        watching=watching,
        runs=[
            (card.id, f"{name_of(card)} · {dataset_of(card)}", card.id == query.baseline)
            for card in runs[:MOST_OFFERED]
        ],
        chips=[
            Link(text, f"{stream.address(show=show)}#scores", query.show == show, f"{number_of:,}")
            for show, state, text in SHOWS
            if (number_of := figures.states[state] if state else figures.states.total()) or query.show == show
        ],
        rows=rows,
        following=f"{following}#scores" if following else "",
        first=f"{stream.address()}#scores" if query.after else "",
        pairs=[(key, value) for key, value in query.pairs(after="") if key not in ("baseline", "watch")],
        dataset=f"{live_address(name)}/dataset.jsonl",
        collect=collect_link(library, [("stream", name), *query.pairs(after="")]),
        dataset_all=with_query(f"{live_address(name)}/dataset.jsonl", [("all", "1"), *query.pairs(after="")]),
        exports=[
            Link("Scores as CSV", stream.address(CSV)),
            Link("JSON", with_query(live_address(name) + JSON, query.pairs())),
        ],
    )


def _directed(stream: Stream, signature: str) -> str:
    return directed(stream.titles[signature], lower_is_better=stream.infos[signature].lower_is_better)


def _mean(stream: Stream, signature: str, sums: Sums | None) -> str:
    """A mean; "-" without scores."""
    return number(None if sums is None else sums.mean, digits_for(stream.infos[signature].scale))


def _period(stream: Stream) -> str:
    """The hours that the scores are from."""
    if stream.figures.hours is None:
        return "no scores"
    first, end = (utc(hour * HOUR, exact=False) for hour in stream.figures.hours)
    return f"{first} to {end} UTC"


def _step_text(step: int) -> str:
    return count(step, "hour") if step < 24 else count(step // 24, "day")


def _scorer_rows(stream: Stream) -> list[dict[str, Any]]:
    return [
        {
            "title": _directed(stream, signature),
            "href": f"{stream.address(scorer=choice(stream.titles[signature]))}",
            "mean": _mean(stream, signature, sums),
            "trend": _trend(stream, signature),
            "states": [
                (
                    state,
                    f"{sums.states[state]:,}",
                    f"{stream.address(scorer=choice(stream.titles[signature]), show=_SHOWN.get(state, state))}#scores"
                    if sums.states[state]
                    else "",
                )
                for state in STATES
            ],
        }
        for signature, sums in stream.figures.scorers.items()
    ]


def _trend(stream: Stream, signature: str) -> Trend | None:
    """The means of a scorer over time; None for a single point."""
    info, step = stream.infos[signature], stream.figures.step
    line = stream.figures.line(signature, info.scale)
    if len(line) < 2:
        return None
    first, last = line[0][0], line[-1][0]
    texts = [
        f"{number(share * info.scale, digits_for(info.scale))} ({utc(hour * HOUR, exact=False)})"
        for hour, share in (line[0], min(line, key=lambda point: point[1]), line[-1])
    ]
    label = f"{stream.titles[signature]} by {_step_text(step)}: first {texts[0]}, lowest {texts[1]}, last {texts[2]}"
    return Trend(label, tuple((100 * (hour - first) / (last - first), 100 * share) for hour, share in line), ())


def _group_rows(stream: Stream, grouped: Grouped, name: str) -> tuple[list[dict[str, Any]], str]:
    """The rows of a table by source or entity, those with most scores first, and how many are left out."""
    numbers = {key: sum(sums.states.total() for sums in group.values()) for key, group in grouped.items()}
    order = sorted(grouped, key=lambda key: (-numbers[key], key))
    rows = [
        {
            "name": key or "(none)",
            "href": stream.address(**{name: choice(key)}) if key else "",
            "means": [
                (_mean(stream, signature, sums), "" if sums is None else f"{sums.n_score:,}")
                for signature in stream.figures.scorers
                for sums in [grouped[key].get(signature)]
            ],
            "missing": _missing(grouped[key].values()),
        }
        for key in order[:MOST_ENTITIES]
    ]
    rest = len(order) - len(rows)
    return rows, f"{count(rest, 'more')} with fewer scores; choose one above." if rest > 0 else ""


def _missing(every: Any) -> str:
    """The numbers of samples without a score, in words."""
    states = {state: sum(sums.states[state] for sums in every) for state in STATES[1:]}
    return ", ".join(f"{number_of:,} {state}" for state, number_of in states.items() if number_of)


def _time_row(stream: Stream, hour: int) -> dict[str, Any]:
    group, (first, end) = stream.figures.times[hour], stream.figures.hours or (hour, hour)
    # The first period and the last may be cut off by the filters.
    since, until = hour_start(max(hour, first)), hour_start(min(hour + stream.figures.step, end))
    return {
        "name": f"{since:%Y-%m-%d %H:%M}",
        "href": stream.address(since=f"{since:%Y-%m-%dT%H:%M}", until=f"{until:%Y-%m-%dT%H:%M}"),
        "means": [
            (_mean(stream, signature, sums), "" if sums is None else f"{sums.n_score:,}")
            for signature in stream.figures.scorers
            for sums in [group.get(signature)]
        ],
        "missing": _missing(group.values()),
    }


def _choices(stream: Stream) -> list[tuple[str, list[tuple[str, str, bool]]]]:
    """What the form offers: names of parameters and their values, with the number of samples for each scorer."""
    query, every = stream.query, stream.every
    scorers = {stream.titles[signature]: sums.states.total() for signature, sums in every.scorers.items()}

    def numbers(grouped: Grouped) -> Mapping[str, int]:
        return {key: sum(sums.states.total() for sums in group.values()) for key, group in grouped.items()}

    found: list[tuple[str, list[tuple[str, str, bool]]]] = []
    for name, offered in (
        ("scorer", scorers),
        ("source", {**dict.fromkeys(SOURCES, 0), **numbers(every.sources)}),
        ("entity", numbers(every.entities)),
    ):
        chosen = choice(getattr(query, name))
        most = sorted(((times, text) for text, times in offered.items() if text and times), reverse=True)
        values = {choice(text): f"{choice(text)} ({times:,})" for times, text in most[:MOST_OFFERED]}
        if chosen:
            values.setdefault(chosen, chosen)
        if len(values) > 1 or chosen:
            found.append((name, [(value, text, value == chosen) for value, text in values.items()]))
    return found


def _coverage_of(stream: Stream) -> str:
    """What the coverage counts if the page is filtered."""
    query = stream.query
    if query.scorer or query.source or query.entity:
        return "All scorers, sources and entities of these hours."
    return ""


# ---- Drift ----


def _drift(library: Library, stream: Stream, runs: list[Card]) -> tuple[dict[str, Any] | None, bool]:
    """What the watch against the chosen run found, and whether it is being looked for."""
    query = stream.query
    if not query.baseline:
        return None, False
    card = library.card(query.baseline)
    looked = library.watches.of(stream.name, card, query.watched_since)
    found: dict[str, Any] = {"baseline": name_of(card), "at": "", "view": None, "passed": None, "problem": ""}
    if isinstance(looked, Building):
        return found, True
    result, at = looked
    found["at"] = f"{at:%Y-%m-%d %H:%M} UTC"
    if isinstance(result, LiveDrift):
        return {**found, "view": result.view(COMMAND_LINE), "passed": result.passed}, False
    return {**found, "problem": result.text(COMMAND_LINE)}, False


# ---- Data ----


def _scorers_data(stream: Stream) -> Iterator[dict[str, Any]]:
    covered = {each.signature: each for each in stream.coverage.scorers}
    for signature, sums in stream.figures.scorers.items():
        yield {
            "scorer": stream.titles[signature],
            "signature": signature,
            **_sums_data(sums, stream.infos[signature].scale),
            "coverage": covered[signature].coverage,
        }


def _sums_data(sums: Sums, scale: float) -> dict[str, Any]:
    return {"mean": sums.mean, "scale": scale, **{state: sums.states[state] for state in STATES}}


def _grouped_data(
    stream: Stream, grouped: Mapping[Any, Mapping[str, Sums]], name: str, text: Callable[[Any], Any]
) -> Any:
    return [
        {
            name: text(key),
            "signature": signature,
            **_sums_data(sums, stream.infos[signature].scale),
        }
        for key, group in grouped.items()
        for signature, sums in group.items()
    ]


def _data(stream: Stream, listed: ScoreList, following: str) -> dict[str, Any]:
    figures = stream.figures
    return {
        "stream": stream.name,
        "scorers": [*_scorers_data(stream)],
        "sources": _grouped_data(stream, figures.sources, "source", str),
        "entities": _grouped_data(stream, figures.entities, "entity", str),
        "times": _grouped_data(stream, figures.times, "since", lambda hour: hour_start(hour).isoformat()),
        "hours": figures.step,
        "coverage": stream.coverage.to_dict(),
        "scores": listed.to_dict()["scores"],
        "next": following or None,
    }
