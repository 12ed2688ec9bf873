"""A judge compared with human labels: its verdict, its curves, and where it and people differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count, digits_for, limits, p_value, signed
from evalstone.report.notes import sentences_of
from evalstone.report.view import Tone, bare_judges
from evalstone.results.calibration import Calibration
from evalstone.results.disagreements import Disagreement
from evalstone.results.views.calibration import ERRORS, labels_text, use_text
from evalstone.results.views.calibration_figures import disagreements_text
from evalstone.results.views.drift import DRIFT
from evalstone.types import StoredScorer
from evalstone.view.addresses import CSV, JSON, judge_address, run_address, sample_address, with_query
from evalstone.view.calibrations import anchors, runs_by
from evalstone.view.indexing.differences import Differences
from evalstone.view.library import Library
from evalstone.view.names import age, name_of, when
from evalstone.view.pages.common import Link
from evalstone.view.pages.judges import CALIBRATION, label_counts
from evalstone.view.pages.marks import ScoreCell, Trend, trend_of
from evalstone.view.responses import SOON, BadAddress, csv_file, json_data, named, page, suffixed
from evalstone.view.shelf import dataset_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evalstone.view.shelf import Card

PER_PAGE = 50
MOST_RUNS = 10
SHOWN = ("all", "missed", "flagged")


@dataclass(frozen=True)
class DisagreementRow:
    """A sample on which judge and people differ. href: "" if the run with its texts is gone."""

    id: str
    href: str
    error: str
    score: ScoreCell
    labels: str
    slices: str


@dataclass(frozen=True)
class DriftRow:
    """What became of a judge's scores of the same outputs."""

    dataset: str
    runs: str
    first: Link
    last: Link
    trend: Trend | None
    change: str = ""
    spread: str = ""
    p: str = ""
    verdict: tuple[str, Tone] = ("", "")
    why: str = ""
    """Why the change isn't known."""


def judge_page(library: Library, request: Request) -> Response:
    """A calibration."""
    name, suffix = suffixed(request.path_params["judge"])
    filed, found = library.calibrations.one(named(name))
    if suffix == CSV:
        return csv_file(found.sample_rows().csv_lines(), f"judge-{filed.id}")
    show = request.query_params.get("show", "all") or "all"
    if show not in SHOWN:
        raise BadAddress(f"show: {', '.join(SHOWN)}, not {show!r:.80}")
    run = scored_by(library, found)
    if suffix == JSON:
        return json_data({"id": filed.id, **found.to_dict(), "disagreements": _data(found, run)})
    view, address = library.calibrations.view(filed, found), judge_address(filed.id)
    after = request.query_params.get("after", "")
    chosen = [each for each in found.disagreements if show in ("all", each.error)]
    first = next((at for at, each in enumerate(chosen, start=1) if each.pair.sample_id == after), 0) if after else 0
    shown = chosen[first : first + PER_PAGE]
    pairs = [] if show == "all" else [("show", show)]
    runs = runs_by(library.shelf.cards(), found)
    verdict, figures, *sections = view.sections if found.decided else (view.sections[0], None, *view.sections[1:])
    others = {
        each.id: each.calibration
        for each in library.calibrations.all()
        if each.calibration is not None and each.id != filed.id and _on(each.calibration) == _on(found)
    }
    judges = bare_judges(each.judge for each in (found, *others.values()))
    drifts, computing = _drifts(library, anchors(runs))
    return page(
        "judge.html",
        headers={"refresh": SOON} if computing else {},
        title=f"{judges[found.judge]}, {found.scorer}",
        judge=judges[found.judge],
        scorer=found.scorer,
        lead=f"{found.labels} · {label_counts(found)} · {when(found.created)}, {age(found.created)}",
        view=view,
        use=use_text(found.verdict),
        verdict=sentences_of(found.verdict.notes) or verdict.lead,
        figures=figures,
        sections=sections,
        summary=disagreements_text(found),
        rows=[_row(each, found, run) for each in shown],
        has_slices=any(each.pair.slices for each in shown),
        chips=_chips(found, show, address),
        kept="" if run is not None or not shown else _kept(found),
        newer=with_query(address, pairs) + "#disagreements" if after else "",
        older=with_query(address, [*pairs, ("after", shown[-1].pair.sample_id)]) + "#disagreements"
        if len(chosen) > first + len(shown)
        else "",
        runs=[Link(name_of(card), run_address(card.id), number=when(card.started)) for card, _ in runs[:MOST_RUNS]],
        n_runs=len(runs),
        drifts=drifts,
        others=[
            Link(
                judges[each.judge], with_query("/judges", [(CALIBRATION, filed.id), (CALIBRATION, name)]) + "#compared"
            )
            for name, each in others.items()
        ],
        exports=(Link("CSV of all labeled samples", f"{address}.csv"), Link("JSON", f"{address}.json")),
    )


def _on(calibration: Calibration) -> tuple[str, str, str]:
    """What a judge was compared on: the scorer, the labels and the samples."""
    return calibration.signature, calibration.labels_id, calibration.dataset_version


def scored_by(library: Library, calibration: Calibration) -> Card | None:
    """The run that scored the labeled samples, if it can be read."""
    card = library.shelf.card(calibration.run) if calibration.run else None
    return None if card is None or card.problem else card


def _kept(calibration: Calibration) -> str:
    """Why samples are no links."""
    gone = "is no longer in the ledger" if calibration.run else "is not known"
    return (
        f"The run that scored these samples {gone}, so there are no texts: a calibration keeps scores and labels only."
    )


def _chips(calibration: Calibration, show: str, address: str) -> list[Link]:
    found = calibration.disagreements
    chips: list[Link] = []
    for name, text in (("all", "all"), *((name, f"{text}s") for name, text in ERRORS.items())):
        number = len(found) if name == "all" else sum(each.error == name for each in found)
        href = with_query(address, [] if name == "all" else [("show", name)]) + "#disagreements"
        chips.append(Link(text, href, show == name, f"{number:,}"))
    return chips


def _row(one: Disagreement, calibration: Calibration, run: Card | None) -> DisagreementRow:
    width = 100 * one.pair.value / calibration.scale
    lower = calibration.lower_is_better
    return DisagreementRow(
        one.pair.sample_id if one.pair.sample_id.strip() else repr(one.pair.sample_id),
        "" if run is None else sample_address(run.id, one.pair.sample_id),
        ERRORS[one.error],
        ScoreCell(f"{one.pair.value:.4g}", "bad", 100 - width if lower else 0.0, width),
        labels_text(one.pair.labels),
        ", ".join(f"{field}={key}" for field, key in one.pair.slices.items()),
    )


def _data(calibration: Calibration, run: Card | None) -> list[dict[str, Any]]:
    return [
        {
            "sample_id": one.pair.sample_id,
            "error": one.error,
            "value": one.pair.value,
            "labels": list(one.pair.labels),
            "distance": one.distance,
            "href": None if run is None else sample_address(run.id, one.pair.sample_id),
        }
        for one in calibration.disagreements
    ]


def _drifts(library: Library, groups: Sequence[Sequence[tuple[Card, StoredScorer]]]) -> tuple[list[DriftRow], bool]:
    """The drift between the first and the last of the runs on the same outputs, and whether any is being computed."""
    rows: list[DriftRow] = []
    computing = False
    for group in groups:
        (first, _), (last, _) = group[0], group[-1]
        found = library.comparisons.differences(first, [last], "drift").get(last.id)
        if found is None:
            computing |= library.comparisons.compute(first, [last], "drift") is not None
            found = library.comparisons.differences(first, [last], "drift").get(last.id)
        rows.append(_drift(group, found))
    return rows, computing


def _drift(group: Sequence[tuple[Card, StoredScorer]], found: Differences | None) -> DriftRow:
    """What became of a judge's scores. found: None while it is being computed."""
    (first, scorer), (last, _) = group[0], group[-1]
    ends = [Link(name_of(card), run_address(card.id), number=when(card.started)) for card in (first, last)]
    samples = count(first.metadata.dataset.samples if first.metadata else 0, "sample")
    trend = trend_of([each for _, each in group], f"mean over {len(group)} runs on the same answers")
    row = DriftRow(f"{dataset_of(first)}, {samples}", count(len(group), "run"), *ends, trend=trend)
    change = None if found is None else found.of.get(scorer.signature)
    if change is None:
        return replace(row, why="being computed …" if found is None else found.refused or "no sample has two scores")
    digits = digits_for(scorer.scale)
    return replace(
        row,
        change=signed(change.estimate, digits),
        spread=limits(change.low, change.high, digits, sign=True),
        p=p_value(change.adjusted_p),
        verdict=DRIFT[change.verdict],
    )
