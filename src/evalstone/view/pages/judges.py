"""The judges that were compared with human labels: all calibrations, and some of them on the same labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count, limits, listed, number, signed
from evalstone.errors import ConfigError
from evalstone.report.csv import csv_rows
from evalstone.report.notes import clause_of
from evalstone.report.view import Cell, Column, Section, Tone, bare_judges, table, words
from evalstone.results.calibration import Calibration
from evalstone.results.same_labels import JudgeOnLabels, on_same_labels
from evalstone.results.views.calibration import chosen_with, use_text
from evalstone.results.views.calibration_figures import roc_chart
from evalstone.stats.intervals import Interval
from evalstone.types import without_fingerprints
from evalstone.view.addresses import CSV, JSON, judge_address, run_address
from evalstone.view.calibrations import Filed, runs_by
from evalstone.view.library import Library
from evalstone.view.names import age, name_of, when
from evalstone.view.pages.common import Link
from evalstone.view.pages.marks import MeanCell
from evalstone.view.responses import BadAddress, csv_file, json_data, page, suffix_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from evalstone.view.shelf import Card

CALIBRATION = "calibration"
"""The parameter that names a calibration to compare."""
MOST_COMPARED = 3
"""The most judges in one plot."""


@dataclass(frozen=True)
class JudgeRow:
    """A calibration in the list."""

    id: str
    href: str
    judge: str
    labels: str
    verdict: tuple[str, Tone]
    sentence: str
    pairs: MeanCell
    missed: MeanCell
    flagged: MeanCell
    counts: str
    created: str
    age: str
    runs: Link
    chosen: bool
    problem: str = ""
    optimistic: str = ""
    """What was chosen with the same labels."""


@dataclass(frozen=True)
class JudgeGroup:
    """The calibrations of judges for one scorer."""

    name: str
    rows: tuple[JudgeRow, ...]


def judges_page(library: Library, request: Request) -> Response:
    """All calibrations beside the ledger, and those that the address names in one plot."""
    suffix = suffix_of(request)
    filed, cards = library.calibrations.all(), library.shelf.cards()
    if suffix == JSON:
        return json_data([_data(each, cards) for each in filed])
    if suffix == CSV:
        return csv_file(csv_rows(CSV_HEADER, [_csv_row(each, cards) for each in filed]), "judges")
    chosen = list(dict.fromkeys(request.query_params.getlist(CALIBRATION)))
    groups = [_group(name, [*of], cards, chosen) for name, of in groupby(filed, key=_scorer)]
    return page(
        "judges.html",
        title="Judges",
        live=library.has_live_scores(),
        places=library.shelf.places,
        groups=groups,
        total=len(filed),
        compared=_compared(library, chosen) if len(chosen) > 1 else None,
        alone=len(chosen) == 1,
        comparable=len(filed) > 1,
        exports=(Link("CSV", "/judges.csv"), Link("JSON", "/judges.json")),
    )


def _scorer(filed: Filed) -> str:
    return "" if filed.calibration is None else filed.calibration.scorer


def _group(scorer: str, filed: Sequence[Filed], cards: Sequence[Card], chosen: Sequence[str]) -> JudgeGroup:
    found = [one.calibration for one in filed if one.calibration is not None]
    judges, signatures = bare_judges(each.judge for each in found), {each.signature for each in found}
    rows = (_row(one, judges, cards, chosen, with_signature=len(signatures) > 1) for one in filed)
    return JudgeGroup(scorer or "Calibrations that can't be read", tuple(rows))


def _share(name: str, interval: Interval | None, *, scale: float = 1.0) -> MeanCell:
    """An interval as a cell with its mark."""
    if interval is None or interval.low is None or interval.high is None:
        return MeanCell("-")
    spread = f"{100 * interval.low:.0f}% to {100 * interval.high:.0f}%"
    return MeanCell(
        f"{100 * interval.estimate:.0f}%",
        spread,
        f"{name}: {100 * interval.estimate:.0f}%, 95% confidence interval {spread}",
        100 * interval.estimate / scale,
        100 * interval.low / scale,
        100 * interval.high / scale,
    )


def pairs_share(calibration: Calibration) -> MeanCell:
    """How often the judge rates a good answer better than a bad one."""
    return _share("good answers rated better than bad ones", calibration.auroc)


def _row(
    filed: Filed, judges: Mapping[str, str], cards: Sequence[Card], chosen: Sequence[str], *, with_signature: bool
) -> JudgeRow:
    """judges: their names, by identity."""
    found, nothing = filed.calibration, MeanCell("-")
    address = judge_address(filed.id)
    if found is None:
        return JudgeRow(
            filed.id, address, filed.id, "", ("", ""), "", nothing, nothing, nothing, "", "", "", Link("", ""), False,
            filed.problem,
        )  # fmt: skip
    verdict = found.verdict
    return JudgeRow(
        filed.id,
        address,
        judges[found.judge],
        f"{found.labels} ({listed(found.columns)})"
        + (f" · {without_fingerprints(found.signature)}" if with_signature else ""),
        use_text(verdict),
        clause_of(verdict.notes[0]) if verdict.notes else "",
        pairs_share(found),
        _share("missed bad answers", verdict.missed),
        _share("flagged good answers", verdict.flagged),
        label_counts(found),
        when(found.created),
        age(found.created),
        runs_link(runs_by(cards, found), address),
        filed.id in chosen,
        optimistic=chosen_with(found),
    )


def label_counts(calibration: Calibration) -> str:
    """How many good and bad answers are labeled."""
    yes = sum(truth for _, truth in calibration.decided)
    no = len(calibration.decided) - yes
    good, bad = (no, yes) if calibration.lower_is_better else (yes, no)
    split = f", {calibration.undecided:,} split" if calibration.undecided else ""
    return f"{good:,} good, {bad:,} bad{split}"


def runs_link(runs: Sequence[tuple[Card, Any]], address: str) -> Link:
    """How many runs use a judge, with the only one, or the list of them. address: that of the judge's page."""
    if len(runs) == 1:
        return Link(count(1, "run"), run_address(runs[0][0].id))
    return Link(count(len(runs), "run"), f"{address}#runs") if runs else Link("no run", "")


# ---- Several judges on the same labels ----


@dataclass(frozen=True)
class OnSameLabels:
    """Judges on the same labels: a section as in a report, with the page of each."""

    section: Section
    links: tuple[Link, ...]


def _compared(library: Library, chosen: Sequence[str]) -> OnSameLabels:
    if len(chosen) > MOST_COMPARED:
        raise BadAddress(f"{CALIBRATION}: at most {MOST_COMPARED} judges fit into one plot, not {len(chosen)}")
    found = [library.calibrations.one(name)[1] for name in chosen]
    try:
        judges = on_same_labels(found)
    except ConfigError as error:
        raise BadAddress(error) from None
    names = _names(found)
    chart = roc_chart([each.calibration for each in judges], names)
    limit = Column("95% CI", interval=True)
    columns = (
        words("judge"), Column("AUROC"), limit, Column("missed"), Column("flagged"), Column("accuracy"), limit,
        Column("vs. the first"), limit,
    )  # fmt: skip
    rows = [_compared_row(name, each) for name, each in zip(names, judges, strict=True)]
    n = len(judges[0].calibration.pairs)
    left_out = max(len(each.pairs) for each in found) - n
    notes = [
        _conclusion(names, judges),
        "Missed bad answers, flagged good ones and accuracy are at the scorer's own threshold.",
    ]
    if left_out:
        notes.append(
            f"Up to {count(left_out, 'sample')} of a judge left out: another judge has no score or another label."
        )
    if chart is None:
        notes.append("There is no ROC curve without both good and bad answers.")
    section = Section(
        f"{count(len(judges), 'judge')} on the same {count(n, 'labeled sample')}",
        tables=(table("Judges on the same labels", columns, rows),),
        figures=() if chart is None else (chart,),
        notes=tuple(notes),
    )
    links = tuple(Link(name, judge_address(each)) for name, each in zip(names, chosen, strict=True))
    return OnSameLabels(section, links)


def _names(calibrations: Sequence[Calibration]) -> list[str]:
    """The judges, with their scorers and labels where these differ."""
    judges = bare_judges(each.judge for each in calibrations)
    names = [judges[each.judge] for each in calibrations]
    for extra in ([each.scorer for each in calibrations], [each.labels for each in calibrations]):
        if len(set(extra)) > 1:
            names = [f"{name}, {more}" for name, more in zip(names, extra, strict=True)]
    return names


def _compared_row(name: str, judge: JudgeOnLabels) -> Sequence[Cell]:
    verdict, difference = judge.calibration.verdict, judge.difference
    shares = ["-" if each is None else f"{100 * each.estimate:.0f}%" for each in (verdict.missed, verdict.flagged)]
    return (
        Cell(name),
        *_estimate(judge.calibration.auroc),
        *map(Cell, shares),
        *_estimate(judge.accuracy),
        Cell("" if difference is None else signed(difference.estimate)),
        Cell("" if difference is None else limits(difference.low, difference.high, sign=True)),
    )


def _estimate(interval: Interval | None) -> tuple[Cell, Cell]:
    if interval is None:
        return Cell("-"), Cell("")
    return Cell(number(interval.estimate), "strong"), Cell(limits(interval.low, interval.high))


def _conclusion(names: Sequence[str], judges: Sequence[JudgeOnLabels]) -> str:
    """Which judges are more or less accurate than the first."""
    said: list[str] = []
    for name, judge in zip(names, judges, strict=True):
        if (difference := judge.difference) is None or difference.low is None or difference.high is None:
            continue
        better, worse = difference.low > 0, difference.high < 0
        how = "is more accurate than" if better else "is less accurate than" if worse else "is not shown to differ from"
        said.append(f"{name} {how} {names[0]}.")
    return " ".join(said)


# ---- Data ----

CSV_HEADER = (
    "id", "judge", "scorer", "labels", "columns", "use", "auroc", "auroc low", "auroc high", "missed", "missed low",
    "missed high", "flagged", "flagged low", "flagged high", "labeled", "disagreements", "created", "runs", "signature",
    "aligned with", "chose threshold", "problem",
)  # fmt: skip


def _csv_row(filed: Filed, cards: Sequence[Card]) -> Sequence[Any]:
    found = filed.calibration
    if found is None:
        return (filed.id, *(None,) * (len(CSV_HEADER) - 2), filed.problem)
    verdict = found.verdict
    ends = [end for each in (found.auroc, verdict.missed, verdict.flagged) for end in _ends(each)]
    return (
        filed.id, found.judge, found.scorer, found.labels, ", ".join(found.columns), verdict.use, *ends,
        len(found.pairs), len(found.disagreements), found.created, len(runs_by(cards, found)), found.signature,
        found.n_aligned_with, found.risk is not None, None,
    )  # fmt: skip


def _ends(interval: Interval | None) -> tuple[float | None, ...]:
    return (None, None, None) if interval is None else (interval.estimate, interval.low, interval.high)


def _data(filed: Filed, cards: Iterable[Card]) -> Mapping[str, Any]:
    found = filed.calibration
    if found is None:
        return {"id": filed.id, "problem": filed.problem}
    return {
        "id": filed.id,
        "judge": found.judge,
        "scorer": found.scorer,
        "signature": found.signature,
        "labels": found.labels,
        "columns": list(found.columns),
        "created": found.created,
        "labeled": len(found.pairs),
        "disagreements": len(found.disagreements),
        "aligned_with": found.n_aligned_with,
        "chose_threshold": found.risk is not None,
        "verdict": found.verdict.to_dict(),
        "runs": [{"id": card.id, "name": name_of(card)} for card, _ in runs_by(cards, found)],
    }
