"""What the pages show, as values for their templates: lists of runs and of samples, and one sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from evalstone._core.display import count, digits_for, limits, money, number
from evalstone.report.csv import Value
from evalstone.report.view import Tone, bare_judge, tone_of
from evalstone.results.summary import ScorerInfo
from evalstone.results.views.samples import goodness, sample_view, score_text
from evalstone.types import StoredScorer
from evalstone.view.addresses import run_address, sample_address, with_query
from evalstone.view.index import FAILED, SCORED, SKIPPED, Case, Index, Stored, choice
from evalstone.view.query import COLUMNS, ORDERS, SCORE, SampleQuery, Show, field_text, number_text
from evalstone.view.shelf import Card

STATES: Mapping[str, tuple[str, Tone]] = {
    "complete": ("", ""),
    "running": ("running", "unsure"),
    "ended": ("ended early", "bad"),
    "unfinished": ("interrupted", "bad"),
    "unreadable": ("can't be read", "bad"),
}
RUNS_PER_PAGE = 100
LEAST_IN_TREND, MOST_IN_TREND = 3, 40
"""The numbers of runs in the plot of a scorer over time."""


@dataclass(frozen=True)
class Link:
    """A word that leads somewhere. href: "" if it leads nowhere now."""

    text: str
    href: str
    current: bool = False
    number: str = ""


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


@dataclass(frozen=True)
class ScoreCell:
    """A score in a list of samples. start, width: those of its bar, in percent; the bar grows from the worse end."""

    text: str
    tone: Tone
    start: float | None = None
    width: float = 0.0


@dataclass(frozen=True)
class SampleRow:
    """A sample in a list."""

    href: str
    name: str
    texts: tuple[tuple[str, str], ...]
    """Names and texts of the chosen columns."""
    scores: tuple[ScoreCell, ...]
    numbers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SampleTable:
    """The list of a run's samples."""

    headers: tuple[Link, ...]
    rows: tuple[SampleRow, ...]
    status: str
    chips: tuple[Link, ...]
    previous: str
    following: str
    reasons: tuple[tuple[str, str], ...] = ()
    fields: tuple[tuple[str, tuple[tuple[str, str, bool], ...]], ...] = ()
    """Entries of the metadata with their values: as in an address, as shown, and whether it is chosen."""
    lowest: str = ""
    highest: str = ""
    orders: tuple[tuple[str, str], ...] = ()
    columns: tuple[tuple[str, str, bool], ...] = ()
    clear: str = ""
    exports: tuple[Link, ...] = field(default=())


def when(started: str) -> str:
    """A time as people read it, where this runs."""
    if not started:
        return ""
    return f"{datetime.fromisoformat(started).astimezone():%Y-%m-%d %H:%M}"


def name_of(card: Card) -> str:
    """The name of a run: its own, or else when it was started."""
    return (card.metadata.name.strip() if card.metadata else "") or when(card.started) or card.id


def dataset_of(card: Card) -> str:
    """The name of a run's dataset."""
    return card.metadata.dataset.name if card.metadata else ""


def _directed(title: str, *, lower_is_better: bool) -> str:
    """A scorer's title with the better direction, on one line."""
    return f"{title}\u00a0{'↓' if lower_is_better else '↑'}"


# ---- Runs ----


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
            _directed(title, lower_is_better=scorer.lower_is_better),
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
            run_address(card.id), card.id, "", when(card.started), STATES[card.state], "", "", (), "", "", card.problem
        )
    by_title = {card.titles[scorer.signature]: scorer for scorer in run.scorers}
    detail = [*run.tags, *([card.folder] if card.folder else [])]
    progress = "" if card.state == "complete" or not card.records else _progress(card)
    who = bare_judge(run.judge.identity) if run.judge.identity != "none" else ""
    if run.target is not None:
        trials = f" × {run.target.trials} trials" if run.target.trials > 1 else ""
        who = f"{run.target.identity}{trials}" + (f" · judge {who}" if who else "")
    return RunRow(
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


def duration(seconds: float) -> str:
    """A duration in its two largest units."""
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 1 else "< 1 s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


# ---- Samples ----


def score_cell(value: float | None, outcome: int | None, info: ScorerInfo) -> ScoreCell:
    """The cell of a score; a missing one never looks like a 0."""
    if outcome is None:
        return ScoreCell("", "dim")
    if value is None or outcome != SCORED:
        return ScoreCell("failed", "bad") if outcome == FAILED else ScoreCell("skipped", "dim")
    width = 100 * value / info.scale
    return ScoreCell(
        score_text(value, info.scale),
        tone_of(info.goodness(value)),
        100 - width if info.lower_is_better else 0.0,
        width,
    )


def sample_table(run: str, index: Index, query: SampleQuery) -> SampleTable:
    """The page of samples that a query finds. Raises ConfigError if the query doesn't suit the run."""
    number_found, page = index.count(query), index.page(query)
    path, total = run_address(run), index.totals["all"]
    noun = "trials" if any(case.trial is not None for case in page.cases) else "samples"

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
    scores = [
        header(_directed(title, lower_is_better=info.lower_is_better), f"{SCORE}{title}")
        for title, info in zip(index.titles, index.scorers, strict=True)
    ]
    texts = [name for name in ("input", "answer", "reference") if name in query.column]
    numbers = [name for name in ("cost", "tokens", "seconds") if name in query.column]
    found = f"{number_found:,} of {total:,} {noun}" if query.is_filtered else f"{total:,} {noun}"
    chosen = [(choice(name), choice(value)) for name, value in query.field]
    orders = [*ORDERS.items(), *((f"{SCORE}{title}", title) for title in index.titles)]
    pairs = query.pairs(after="", before="", column=SampleQuery().column)
    return SampleTable(
        headers=(
            header("sample", "id", ""),
            *(Link(COLUMNS[name], "") for name in texts),
            *(scores if "scores" in query.column else ()),
            *(header(COLUMNS[name], name) for name in numbers),
        ),
        rows=tuple(
            SampleRow(
                with_query(sample_address(run, case.key), query.pairs(after="", before="")),
                case.key if case.key.strip() else repr(case.key),
                tuple((COLUMNS[name], getattr(case, name)) for name in texts),
                tuple(
                    score_cell(value, outcome, info)
                    for value, outcome, info in zip(case.values, case.outcomes, index.scorers, strict=True)
                )
                if "scores" in query.column
                else (),
                tuple((COLUMNS[name], _number_cell(case, name)) for name in numbers),
            )
            for case in page.cases
        ),
        status=f"{found}, {_order_text(query)}",
        chips=tuple(chips) if len(chips) > 1 else (),
        previous=here(before=page.previous) if page.previous else "",
        following=here(after=page.following) if page.following else "",
        reasons=tuple((reason, f"{times:,} × {reason}") for reason, times in index.reasons()),
        fields=tuple(
            (
                facet.name,
                tuple(
                    (field_text(facet.name, value), f"{value} ({times:,})", (facet.name, value) in chosen)
                    for value, times in facet.values
                ),
            )
            for facet in index.facets
        ),
        lowest=number_text(query.min),
        highest=number_text(query.max),
        orders=tuple((sign + order, _order_words(sign + order, text)) for order, text in orders for sign in ("", "-")),
        columns=tuple((name, text, name in query.column) for name, text in COLUMNS.items()),
        clear=path + "#samples" if query.is_filtered else "",
        exports=(
            Link("CSV of all that match", with_query(f"{path}.csv", pairs)),
            Link("JSON of this page", with_query(f"{path}.json", query.pairs())),
        ),
    )


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


def _order_text(query: SampleQuery) -> str:
    return _order_words(query.sort, ORDERS.get(query.order, query.order.removeprefix(SCORE)))


def _number_cell(case: Case, name: str) -> str:
    if name == "cost":
        return "unknown" if case.cost is None else money(case.cost)
    return f"{case.tokens:,}" if name == "tokens" else f"{case.seconds:.2f} s"


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
        "scores": scores,
    }


def csv_header(index: Index) -> list[str]:
    """The header of a list of samples."""
    scores = [name for title in index.titles for name in (title, f"{title} outcome")]
    return ["sample_id", "trial", "input", "answer", "reference", *scores, "goodness", "cost", "tokens", "seconds"]


def csv_row(case: Case, index: Index) -> list[Value]:
    """A sample of a list as a row."""
    data = case_data(case, index)
    scores = [value for each in data["scores"].values() for value in (each["value"], each["outcome"])]
    texts = [data[name] for name in ("sample_id", "trial", "input", "answer", "reference")]
    return [*texts, *scores, *(data[name] for name in ("goodness", "cost", "tokens", "seconds"))]


# ---- A sample ----


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
        ("cost", _number_cell(case, "cost") if case.cost or case.cost is None else ""),
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
        "order": _order_text(query),
    }
