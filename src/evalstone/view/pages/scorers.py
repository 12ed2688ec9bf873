"""Scorers: what each measures, its parameters, the prompts of its questions, and its scores in the runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field
from typing import TYPE_CHECKING, Any

from evalstone.report.csv import csv_rows
from evalstone.report.view import HIGHER, LOWER
from evalstone.scorers.described import Described, built_in, built_in_named
from evalstone.scorers.needs import described_needs
from evalstone.types import StoredScorer
from evalstone.types.scorer_names import without_fingerprints
from evalstone.view.addresses import CSV, JSON, dataset_address, run_address, scorer_address
from evalstone.view.library import Library
from evalstone.view.names import name_of, when
from evalstone.view.pages.common import Link
from evalstone.view.pages.marks import MeanCell
from evalstone.view.pages.runs_table import mean_cell
from evalstone.view.responses import NotThere, csv_file, json_data, named, page, suffix_of, suffixed
from evalstone.view.shelf import Card, dataset_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MOST_RUNS = 50
"""The number of runs whose scores the page of a scorer shows."""


@dataclass(frozen=True)
class Used:
    """A scorer in a run."""

    card: Card
    title: str
    scorer: StoredScorer

    @property
    def about(self) -> dict[str, Any]:
        """It as data."""
        each = self.scorer
        low, high = each.interval or (None, None)
        return {
            "run": self.card.id,
            "name": self.card.metadata.name if self.card.metadata else "",
            "started": self.card.started,
            "dataset": dataset_of(self.card),
            "judge": self.card.metadata.judge.identity if self.card.metadata else "",
            "signature": each.signature,
            "mean": each.mean,
            "low": low,
            "high": high,
            "scale": each.scale,
            "n_score": each.n_score,
            "n_skipped": each.n_skipped,
            "n_failed": each.n_failed,
        }


@dataclass
class Known:
    """A scorer that is built in, or that runs have."""

    name: str
    built_in: Described | None = None
    used: list[Used] = field(default_factory=list[Used])
    """In which runs, latest first."""

    @property
    def last(self) -> Used | None:
        """In the latest run that has a score of it, or else in the latest."""
        return next((each for each in self.used if each.scorer.mean is not None), next(iter(self.used), None))

    @property
    def summary(self) -> str:
        """What it measures, in one line."""
        if self.built_in is not None:
            return self.built_in.summary
        return self.last.scorer.description.strip().partition("\n")[0] if self.last is not None else ""

    @property
    def direction(self) -> str:
        """Which scores are better, in words; "" if the scorer that it applies decides that."""
        if self.built_in is not None:
            return self.built_in.direction
        return LOWER if self.last is not None and self.last.scorer.lower_is_better else HIGHER

    @property
    def about(self) -> dict[str, Any]:
        """It as data."""
        own = {"name": self.name, "summary": self.summary} if self.built_in is None else self.built_in.to_dict()
        last = self.last
        return {**own, "built_in": self.built_in is not None, "runs": len(self.used), "last": last and last.about}


def _known(library: Library) -> dict[str, Known]:
    """The scorers by name: those of runs, latest first, and then the others that are built in."""
    found: dict[str, Known] = {}
    for card in library.shelf.cards():
        for title, scorer in card.by_title.items():
            known = found.setdefault(scorer.name, Known(scorer.name))
            known.used.append(Used(card, title, scorer))
    for described in built_in():
        found.setdefault(described.name, Known(described.name)).built_in = described
    for known in found.values():
        known.built_in = known.built_in or built_in_named(known.name)
    return found


# ---- All scorers ----


@dataclass(frozen=True)
class ScorerRow:
    """A scorer in the list."""

    href: str
    name: str
    summary: str
    needs: str
    direction: str
    calls: str
    runs: str
    last: MeanCell | None = None
    last_run: Link | None = None


def scorers_page(library: Library, request: Request) -> Response:
    """The scorers of runs with their last scores, and all others that are built in."""
    suffix = suffix_of(request)
    words = request.query_params.get("q", "").casefold().split()
    known = [
        each
        for each in _known(library).values()
        if all(word in f"{each.name} {each.summary}".casefold() for word in words)
    ]
    if suffix == JSON:
        return json_data([each.about for each in known])
    if suffix == CSV:
        return csv_file(_csv(known), "scorers")
    rows = [(bool(each.used), _row(each)) for each in known]
    return page(
        "scorers.html",
        title="Scorers",
        live=library.has_live_scores(),
        q=request.query_params.get("q", ""),
        total=len(known),
        groups=[
            (title, [row for used, row in rows if used == wanted], wanted)
            for title, wanted in (("In these runs", True), ("Others", False))
        ],
    )


def _row(known: Known) -> ScorerRow:
    described, last = known.built_in, known.last
    return ScorerRow(
        scorer_address(known.name),
        known.name,
        known.summary,
        "" if described is None else described_needs(described.needs),
        known.direction or "that of the scorer",
        "" if described is None or described.applies_another else str(len(described.questions)),
        f"{len(known.used):,}",
        None if last is None else mean_cell(last.card, last.title, last.scorer),
        None if last is None else Link(name_of(last.card), run_address(last.card.id), number=when(last.card.started)),
    )


def _csv(known: Iterable[Known]) -> Iterable[str]:
    header = (
        "scorer", "summary", "built_in", "needs", "direction", "judge_calls", "runs", "last_run", "started",
        "dataset", "mean", "low", "high", "scale",
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for each in known:
        last = {} if each.last is None else each.last.about
        row = _row(each)
        rows.append(
            (
                each.name, each.summary, each.built_in is not None, row.needs, row.direction, row.calls or None,
                len(each.used), last.get("run"), *(last.get(name) for name in header[8:]),
            )
        )  # fmt: skip
    return csv_rows(header, rows)


# ---- One scorer ----


@dataclass(frozen=True)
class UsedRow:
    """A run with the scorer."""

    run: Link
    dataset: Link
    judge: str
    mean: MeanCell | None
    settings: str
    note: str


def scorer_page(library: Library, request: Request) -> Response:
    """A scorer: its definition, parameters, prompts, and scores."""
    name_part, suffix = suffixed(request.path_params["name"])
    name = named(name_part)
    known = _known(library).get(name)
    if known is None:
        described = built_in_named(name)
        if described is None:
            raise NotThere(f"There is no scorer {name}, neither built in nor in a run.")
        known = Known(described.name, described)
    described = known.built_in
    prompts = [] if described is None else list(described.prompts)
    if suffix == JSON:
        parts = ("fingerprint", "instructions", "example", "template")
        asked = [{"kind": kind, **{name: getattr(prompt, name) for name in parts}} for kind, prompt in prompts]
        return json_data({**known.about, "prompts": asked, "scores": [each.about for each in known.used]})
    if suffix == CSV:
        header = (
            "run", "name", "started", "dataset", "judge", "signature", "mean", "low", "high", "scale", "n_score",
            "n_skipped", "n_failed",
        )  # fmt: skip
        return csv_file(csv_rows(header, ([each.about[key] for key in header] for each in known.used)), name)
    now = [prompt.fingerprint for _, prompt in prompts]
    used = [_used_row(each, now) for each in known.used[:MOST_RUNS]]
    return page(
        "scorer.html",
        title=known.name,
        name=known.name,
        described=described,
        description="" if described is not None or known.last is None else known.last.scorer.description,
        direction=known.direction,
        needs="" if described is None else described_needs(described.needs),
        signature="" if described is None else described.signature,
        parameters=[
            (each.name, "required" if each.default is MISSING else repr(each.default), each.allowed, each.description)
            for each in (described.parameters if described is not None else ())
        ],
        prompts=prompts,
        used=used,
        varied=any(row.settings or row.note for row in used),
        total=len(known.used),
        exports=[
            Link("CSV of its scores", scorer_address(known.name, CSV)),
            Link("JSON", scorer_address(known.name, JSON)),
        ],
    )


def _used_row(used: Used, prompts: list[str]) -> UsedRow:
    signature, dataset = used.scorer.signature, dataset_of(used.card)
    settings = without_fingerprints(signature)
    return UsedRow(
        Link(name_of(used.card), run_address(used.card.id), number=when(used.card.started)),
        Link(dataset, dataset_address(dataset)),
        used.card.metadata.judge.identity if used.card.metadata else "",
        mean_cell(used.card, used.title, used.scorer),
        "" if settings == used.scorer.name else settings,
        "other prompts" if any(prompt not in signature for prompt in prompts) else "",
    )
