"""The runs by dataset, with the mean of each scorer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count, digits_for, limits, money, number
from evalstone._core.json import to_jsonable
from evalstone.report.csv import csv_rows
from evalstone.report.view import Tone, bare_judge
from evalstone.types import StoredScorer
from evalstone.view.addresses import CSV, JSON, run_address, with_query
from evalstone.view.library import Library
from evalstone.view.names import dataset_of, name_of, when
from evalstone.view.pages.common import STATES, Link, directed, duration
from evalstone.view.query import SampleQuery, Show
from evalstone.view.responses import WATCH, NotThere, csv_file, json_data, page
from evalstone.view.shelf import Card

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

RUNS_PER_PAGE = 100
LEAST_IN_TREND, MOST_IN_TREND = 3, 40
"""The numbers of runs in the plot of a scorer over time."""


@dataclass(frozen=True)
class MeanCell:
    """A scorer's mean in a list of runs; low and high are None without an interval."""

    text: str
    spread: str = ""
    label: str = ""
    mean: float = 0.0
    low: float | None = None
    high: float | None = None
    missing: tuple[tuple[str, Tone, str], ...] = ()
    """The numbers of results without a score, each with its tone and where they are listed."""


@dataclass(frozen=True)
class RunRow:
    """A run in a list."""

    id: str
    href: str
    name: str
    detail: str
    when: str
    state: tuple[str, Tone]
    progress: str
    who: str
    means: tuple[MeanCell | None, ...]
    """By column; None if the run doesn't have the scorer."""
    cost: str
    duration: str
    problem: str = ""


@dataclass(frozen=True)
class Trend:
    """The means of a scorer over runs, oldest first, on the whole scale: points from 0 (left, low) to 100."""

    label: str
    means: tuple[tuple[float, float], ...]
    intervals: tuple[tuple[float, float, float], ...]
    """The place of each mean that has an interval, and the ends of the interval."""


@dataclass(frozen=True)
class RunGroup:
    """The runs over one dataset."""

    name: str
    detail: str
    headers: tuple[Link, ...]
    trends: tuple[Trend | None, ...]
    """By scorer, its means over time; None for a few runs."""
    rows: tuple[RunRow, ...]

    @property
    def has_who(self) -> bool:
        """Whether any run has a target or a judge."""
        return any(row.who for row in self.rows)

    @property
    def has_cost(self) -> bool:
        """Whether any run has cost something."""
        return any(row.cost for row in self.rows)


def runs_page(library: Library, request: Request) -> Response:
    """The runs by dataset."""
    suffix = request.path_params.get("suffix", "")
    if suffix not in ("", JSON, CSV):
        raise NotThere("There is no such page.")
    parameters = dict(request.query_params)
    words = parameters.get("q", "").split()
    cards = [card for card in library.shelf.cards() if matches(card, words)]
    if suffix == JSON:
        return json_data([_card_data(card) for card in cards])
    if suffix == CSV:
        return csv_file(_runs_csv(cards), "runs")
    before = parameters.get("before", "")
    first = next((at for at, card in enumerate(cards, start=1) if card.id == before), 0) if before else 0
    shown = cards[first : first + RUNS_PER_PAGE]
    pairs = [("q", " ".join(words))] if words else []
    older = ""
    if len(cards) > first + len(shown):
        older = with_query("/", [*pairs, ("before", shown[-1].id)])
    running = any(card.state == "running" for card in shown)
    return page(
        "runs.html",
        headers={"refresh": WATCH} if running and not before else {},
        title="Runs",
        places=library.shelf.places,
        groups=run_groups(shown, pairs, parameters.get("sort", "")),
        q=" ".join(words),
        total=len(cards),
        older=older,
        newer=with_query("/", pairs) if before else "",
        csv_href=with_query("/runs.csv", pairs),
        json_href=with_query("/runs.json", pairs),
    )


def matches(card: Card, words: Sequence[str]) -> bool:
    """Whether a run has all of these words in its names."""
    texts = [card.id, card.folder, dataset_of(card)]
    if (run := card.metadata) is not None:
        texts += [run.name, run.judge.identity, *run.tags, *(info.name for info in run.scorers)]
        texts += [] if run.target is None else [run.target.identity]
    text = "\n".join(texts).casefold()
    return all(word.casefold() in text for word in words)


def run_groups(cards: Iterable[Card], pairs: Sequence[tuple[str, str]], sort: str) -> list[RunGroup]:
    """Runs by dataset, the dataset with the latest run first.

    Args:
        cards: The runs, latest first.
        pairs: The other parameters of the page.
        sort: The title of a scorer, after a minus sign for the worst first; "" for the latest first.
    """
    groups: dict[str, list[Card]] = {}
    for card in cards:
        groups.setdefault(dataset_of(card), []).append(card)
    return [_group(name, of, pairs, sort) for name, of in groups.items()]


def _group(name: str, cards: list[Card], pairs: Sequence[tuple[str, str]], sort: str) -> RunGroup:
    titles: dict[str, StoredScorer] = {}
    latest = cards
    for card in cards:
        for scorer in card.metadata.scorers if card.metadata else ():
            titles.setdefault(card.titles[scorer.signature], scorer)
    order = sort.removeprefix("-")
    if order in titles:
        cards = sorted(cards, key=lambda card: _rank(card, order, worst=sort.startswith("-")))
    versions = {card.metadata.dataset.version: card.metadata.dataset.samples for card in cards if card.metadata}
    sizes = sorted(set(versions.values()))
    detail = " or ".join(f"{size:,}" for size in sizes) + (" sample" if sizes == [1] else " samples") if sizes else ""
    detail += f" · {count(len(versions), 'version')}" if len(versions) > 1 else ""
    headers = [
        Link(
            directed(title, lower_is_better=scorer.lower_is_better),
            with_query("/", [*pairs, ("sort", f"-{title}" if sort == title else title)]),
            current=order == title,
        )
        for title, scorer in titles.items()
    ]
    return RunGroup(
        name or "Runs that can't be read",
        f"{detail} · {count(len(cards), 'run')}" if detail else count(len(cards), "run"),
        tuple(headers),
        tuple(_trend(title, latest) for title in titles),
        tuple(_run_row(card, tuple(titles)) for card in cards),
    )


def _trend(title: str, cards: Sequence[Card]) -> Trend | None:
    """The means of a scorer over the complete runs on the version of the dataset that the latest of them is on. cards:
    the latest first."""
    complete = [card for card in reversed(cards) if card.state == "complete"]
    version = complete[-1].metadata.dataset.version if complete and complete[-1].metadata else ""
    scorers = [
        scorer
        for card in complete
        if card.metadata is not None and card.metadata.dataset.version == version
        for scorer in card.metadata.scorers
        if card.titles[scorer.signature] == title and scorer.mean is not None
    ][-MOST_IN_TREND:]
    if len(scorers) < LEAST_IN_TREND:
        return None
    step = 100 / (len(scorers) - 1)
    points = [(step * at, scorer) for at, scorer in enumerate(scorers)]
    first, last = (number(scorer.mean, digits_for(scorer.scale)) for scorer in (scorers[0], scorers[-1]))
    return Trend(
        f"{title} over {len(scorers)} runs on this version of the dataset: first {first}, last {last}",
        tuple((x, 100 * (scorer.mean or 0) / scorer.scale) for x, scorer in points),
        tuple(
            (x, 100 * ends[0] / scorer.scale, 100 * ends[1] / scorer.scale)
            for x, scorer in points
            if (ends := scorer.interval) is not None
        ),
    )


def _rank(card: Card, title: str, *, worst: bool) -> tuple[bool, float]:
    """What runs are ordered by: how good a mean is. Runs without one are last."""
    for scorer in card.metadata.scorers if card.metadata else ():
        if card.titles[scorer.signature] == title and scorer.mean is not None:
            good = scorer.mean / scorer.scale
            good = 1 - good if scorer.lower_is_better else good
            return False, good if worst else -good
    return True, 0.0


def _run_row(card: Card, titles: Sequence[str]) -> RunRow:
    run = card.metadata
    if run is None:
        return RunRow(
            card.id,
            run_address(card.id),
            card.id,
            "",
            when(card.started),
            STATES[card.state],
            "",
            "",
            (),
            "",
            "",
            card.problem,
        )
    by_title = {card.titles[scorer.signature]: scorer for scorer in run.scorers}
    detail = [*run.tags, *([card.folder] if card.folder else [])]
    progress = "" if card.state == "complete" or not card.records else _progress(card)
    who = bare_judge(run.judge.identity) if run.judge.identity != "none" else ""
    if run.target is not None:
        trials = f" × {run.target.trials} trials" if run.target.trials > 1 else ""
        who = f"{run.target.identity}{trials}" + (f" · judge {who}" if who else "")
    return RunRow(
        card.id,
        run_address(card.id),
        name_of(card),
        " · ".join(detail),
        when(card.started) if run.name else "",
        STATES[card.state],
        progress,
        who,
        tuple(_mean_cell(card, title, by_title.get(title)) for title in titles),
        money(card.cost) if card.cost or card.cost is None else "",
        duration(run.seconds) if card.state != "running" else "",
    )


def _progress(card: Card) -> str:
    share = 100 * card.records // card.expected if card.expected else 0
    return f"{card.records:,} of {card.expected:,} results ({share}%)"


def _mean_cell(card: Card, title: str, scorer: StoredScorer | None) -> MeanCell | None:
    if scorer is None:
        return None
    digits = digits_for(scorer.scale)
    missing: list[tuple[str, Tone, str]] = []
    counts: tuple[tuple[Show, int, Tone], ...] = (
        ("skipped", scorer.n_skipped, "unsure"),
        ("failed", scorer.n_failed, "bad"),
    )
    for show, times, tone in counts:
        if times:
            query = SampleQuery(show=show, scorer=title)
            missing.append((f"{times:,} {show}", tone, with_query(run_address(card.id), query.pairs()) + "#samples"))
    if scorer.mean is None:
        nothing = "no score" if card.state == "complete" or missing else ""
        return MeanCell(nothing, missing=tuple(missing))
    low, high = scorer.interval or (None, None)
    spread = "" if low is None or high is None else limits(low, high, digits)
    scale = "" if scorer.scale == 1 else f" of {scorer.scale:g}"
    between = f", 95% confidence interval {spread}" if spread else ", no interval"
    return MeanCell(
        number(scorer.mean, digits) + scale,
        spread,
        f"{title}: {number(scorer.mean, digits)}{scale}{between}",
        100 * scorer.mean / scorer.scale,
        None if low is None else 100 * low / scorer.scale,
        None if high is None else 100 * high / scorer.scale,
        tuple(missing),
    )


def _card_data(card: Card) -> dict[str, Any]:
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
    return {**about, **{name: to_jsonable(getattr(card.metadata, name)) for name in kept}}


def _runs_csv(cards: Iterable[Card]) -> Iterable[str]:
    header = (
        "run", "name", "started", "state", "dataset", "samples", "target", "judge", "tags", "scorer", "mean", "low",
        "high", "scale", "n_score", "n_skipped", "n_failed", "cost", "folder",
    )  # fmt: skip
    rows = (
        (
            card.id, run.name, card.started, card.state, run.dataset.name, run.dataset.samples,
            None if run.target is None else run.target.identity, run.judge.identity, ", ".join(run.tags),
            card.titles[each.signature], each.mean, *(each.interval or (None, None)), each.scale, each.n_score,
            each.n_skipped, each.n_failed, card.cost, card.folder or None,
        )
        for card in cards
        if (run := card.metadata) is not None
        for each in run.scorers
    )  # fmt: skip
    return csv_rows(header, rows)
