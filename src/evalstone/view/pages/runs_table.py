"""The runs of a dataset as a table: means, differences from the baseline, what is missing, and what was run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from evalstone._core.display import count, digits_for, limits, money, number, p_value, signed
from evalstone.report.view import Tone, bare_judges
from evalstone.types import StoredScorer
from evalstone.view.addresses import compare_address, dataset_address, experiment_address, run_address, with_query
from evalstone.view.indexing.differences import Difference, Differences, Family
from evalstone.view.names import name_of, when
from evalstone.view.pages.common import STATES, Link, directed, duration
from evalstone.view.pages.marks import Change, MeanCell, Trend, trend_of
from evalstone.view.query import SCORE, SampleQuery, Show
from evalstone.view.runs_query import RunsQuery
from evalstone.view.shelf import Card

MOST_SCORERS = 6
"""The number of scorers that a table shows, unless some are chosen."""
LEAST_IN_TREND, MOST_IN_TREND = 3, 40
"""The numbers of runs in the plot of a scorer over time."""
CHANGES: Mapping[str, tuple[str, Tone]] = {"better": ("▲", "good"), "worse": ("▼", "bad")}
"""Marks of significant differences."""


@dataclass(frozen=True)
class Baseline:
    """The run that the others of a dataset are compared with."""

    card: Card
    family: Family = field(default_factory=Family)
    """How all other runs differ from it, as far as that is known."""

    @property
    def correction(self) -> str:
        """What p-values are corrected for, in words; "" if nothing is compared."""
        family = self.family
        if not family.comparisons:
            return ""
        each = "1 comparison with it" if family.comparisons == 1 else f"all {family.comparisons:,} comparisons with it"
        runs = f"those of {count(family.runs, 'run')} over this dataset, by each scorer, whichever runs are listed"
        text = f"{each} (Holm): {runs}"
        if family.missing:
            left = f"{count(family.missing, 'run')} {'is' if family.missing == 1 else 'are'}"
            text += f". {left} still to be compared; until then, corrected p-values are upper limits"
        return text


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
    pinned: bool = False
    compare: str = ""
    """Where it is compared with the baseline."""
    note: str = ""
    """Why it can't be compared with the baseline, or that this isn't known yet."""
    left_out: str = ""
    """The numbers of results without a score, of scorers that aren't shown."""
    experiment: Link | None = None
    """The experiment that it is a cell of."""


@dataclass(frozen=True)
class RunGroup:
    """The runs over one dataset."""

    name: str
    detail: str
    headers: tuple[Link, ...]
    trends: tuple[Trend | None, ...]
    """By scorer, its means over time; None for a few runs."""
    rows: tuple[RunRow, ...]
    titles: tuple[str, ...] = ()
    """The scorers to choose from."""
    baseline: str = ""
    """What the others are compared with, in words."""
    baseline_href: str = ""
    correction: str = ""
    """What p-values are corrected for, in words."""
    href: str = ""
    """Where the versions of the dataset are; "" for runs that can't be read."""

    @property
    def has_who(self) -> bool:
        """Whether any run has a target or a judge."""
        return any(row.who for row in self.rows)

    @property
    def has_cost(self) -> bool:
        """Whether any run has cost something."""
        return any(row.cost for row in self.rows)


def run_group(
    name: str, cards: Sequence[Card], every: Sequence[Card], query: RunsQuery, baseline: Baseline | str | None
) -> RunGroup:
    """The runs over one dataset.

    Args:
        name: The name of the dataset.
        cards: Those of its runs that are shown, in their order.
        every: All of its runs that the filters leave, latest first.
        query: The filters and the order.
        baseline: What the others are compared with; why that isn't known; or None without a pinned run.
    """
    titles: dict[str, StoredScorer] = {}
    for card in cards:
        titles |= {title: scorer for title, scorer in card.by_title.items() if title not in titles}
    chosen = [title for title in titles if title in query.column]
    shown = {title: titles[title] for title in (chosen or islice(titles, MOST_SCORERS))}
    versions = {card.metadata.dataset.version: card.metadata.dataset.samples for card in every if card.metadata}
    sizes = sorted(set(versions.values()))
    many = f"{sizes[0]:,} to {sizes[-1]:,}" if len(sizes) > 2 else " or ".join(f"{size:,}" for size in sizes)
    parts = [many + (" sample" if sizes == [1] else " samples")] if sizes else []
    parts += [count(len(versions), "version")] if len(versions) > 1 else []
    headers = [
        Link(
            directed(title, lower_is_better=scorer.lower_is_better),
            _sorted(query, f"{SCORE}{title}"),
            current=query.order == f"{SCORE}{title}",
        )
        for title, scorer in shown.items()
    ]
    pinned = baseline.card if isinstance(baseline, Baseline) else None
    judges = bare_judges(card.metadata.judge.identity for card in cards if card.metadata is not None)
    compared = baseline if isinstance(baseline, Baseline) else None
    return RunGroup(
        name or "Runs that can't be read",
        " · ".join([*parts, count(len(every), "run")]),
        tuple(headers),
        tuple(_trend(title, every) for title in shown),
        tuple(_run_row(card, judges, tuple(shown), compared) for card in cards),
        tuple(titles),
        baseline if isinstance(baseline, str) else "" if pinned is None else name_of(pinned),
        "" if pinned is None else run_address(pinned.id),
        baseline.correction if isinstance(baseline, Baseline) else "",
        dataset_address(name) if name else "",
    )


def _sorted(query: RunsQuery, order: str) -> str:
    """The list in this order, or, if it is, in the opposite one."""
    return with_query("/", query.pairs(before="", sort=f"-{order}" if query.sort == order else order))


def _trend(title: str, cards: Sequence[Card]) -> Trend | None:
    """The means of a scorer over the complete runs on the version of the dataset that the latest of them is on. cards:
    the latest first."""
    complete = (card for card in cards if card.state == "complete" and card.metadata is not None)
    version, scorers = "", list[StoredScorer]()
    for card in complete:
        of = card.metadata.dataset.version if card.metadata else ""
        version = version or of
        scorer = card.by_title.get(title)
        if of == version and scorer is not None and scorer.mean is not None:
            scorers.append(scorer)
            if len(scorers) == MOST_IN_TREND:
                break
    if len(scorers) < LEAST_IN_TREND:
        return None
    return trend_of(scorers[::-1], f"{title} over {len(scorers)} runs on this version of the dataset")


def _run_row(card: Card, judges: Mapping[str, str], titles: Sequence[str], baseline: Baseline | None) -> RunRow:
    """judges: their names, by identity."""
    run = card.metadata
    here, started, state = run_address(card.id), when(card.started), STATES[card.state]
    if run is None:
        return RunRow(card.id, here, card.id, "", started, state, "", "", (), "", "", card.problem)
    detail = [*run.tags, *([card.folder] if card.folder else [])]
    progress = "" if card.state == "complete" or not card.records else _progress(card)
    who = judges[run.judge.identity] if run.judge.identity != "none" else ""
    if run.target is not None:
        trials = f" × {run.target.trials} trials" if run.target.trials > 1 else ""
        who = f"{run.target.identity}{trials}" + (f" · judge {who}" if who else "")
    is_baseline = baseline is not None and baseline.card.id == card.id
    differences = None if baseline is None or is_baseline else baseline.family.differences(card.id)
    others = baseline is not None and not is_baseline
    note = f"not comparable: {differences.refused}" if differences is not None and differences.refused else ""
    return RunRow(
        card.id,
        here,
        name_of(card),
        " · ".join(detail),
        started if run.name else "",
        state,
        progress,
        who,
        tuple(mean_cell(card, title, card.by_title.get(title), differences) for title in titles),
        money(card.cost) if card.cost or card.cost is None else "",
        duration(run.seconds) if card.state != "running" and run.seconds else "",
        pinned=is_baseline,
        compare=compare_address([baseline.card.id, card.id]) if baseline is not None and others else "",
        note=note,
        left_out=_left_out(card, titles),
        experiment=experiment_link(card),
    )


def experiment_link(card: Card) -> Link | None:
    """The experiment that a run is a cell of; None if it is in none."""
    cell = card.metadata.cell if card.metadata is not None else None
    return None if cell is None else Link(cell.experiment, experiment_address(cell.experiment))


def _left_out(card: Card, titles: Sequence[str]) -> str:
    others = [scorer for title, scorer in card.by_title.items() if title not in titles]
    skipped, failed = sum(each.n_skipped for each in others), sum(each.n_failed for each in others)
    parts = [f"{number:,} {word}" for number, word in ((skipped, "skipped"), (failed, "failed")) if number]
    return f"{', '.join(parts)} of scorers that aren't shown" if parts else ""


def _progress(card: Card) -> str:
    share = 100 * card.records // card.expected if card.expected else 0
    return f"{card.records:,} of {card.expected:,} results ({share}%)"


def mean_cell(
    card: Card, title: str, scorer: StoredScorer | None, differences: Differences | None = None
) -> MeanCell | None:
    """The mean of a run's scorer with this title; None without the scorer. differences: the run's from its baseline."""
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
    change = differences.of.get(scorer.signature) if differences is not None else None
    return MeanCell(
        number(scorer.mean, digits) + scale,
        spread,
        f"{title}: {number(scorer.mean, digits)}{scale}{between}",
        100 * scorer.mean / scorer.scale,
        None if low is None else 100 * low / scorer.scale,
        None if high is None else 100 * high / scorer.scale,
        tuple(missing),
        None if change is None else _change(change, digits),
    )


def _change(found: Difference, digits: int) -> Change:
    """How a mean differs from the baseline's, over the samples that both have."""
    mark, tone = CHANGES.get(found.verdict, ("", "dim"))
    adjusted = found.adjusted_p if found.adjusted_p_runs is None else found.adjusted_p_runs
    size, p = signed(found.estimate, digits), p_value(adjusted)
    between = f" ({limits(found.low, found.high, digits, sign=True)})" if found.low is not None else ""
    others = f"{p_value(found.adjusted_p)}, corrected for the scorers of this run; {p_value(found.p)}, uncorrected"
    of = f"difference from the baseline over {count(found.n, 'sample')}"
    label = f"{of}: {found.verdict}; p {p}, corrected for all runs; {others}"
    return Change(f"{mark} {size}{between}, p {p}".strip(), tone, label)
