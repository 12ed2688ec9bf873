"""How often each sentence of a verdict on a judge is wrong, for simulated judges whose quality is known.

Sections of bench/coverage.py. Two standard errors of 2.5 are 31 / √replications: ± 1.0 at 1,000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from coverage_agree import calibration_of
from tables import Table, percent

from evalstone.results.calibration import Calibration, LabeledScore, fit
from evalstone.results.judge_verdict import LEAST_AUROC, MOST_ERRORS, NARROW, JudgeVerdict
from evalstone.types import Note

NORMAL = NormalDist()
LABELS = ((40, 0.5), (100, 0.5), (100, 0.2), (300, 0.2))
"""Numbers of labels, and shares of bad answers."""


@dataclass(frozen=True)
class SimulatedJudge:
    """Normal scores of bad and of good answers, or with `two_scores` only whether they reach the threshold.

    Attributes:
        distance: Between the means, in standard deviations.
        threshold: Above the mean of bad answers.
    """

    name: str
    distance: float
    threshold: float
    two_scores: bool = False

    @property
    def missed(self) -> float:
        return 1 - NORMAL.cdf(self.threshold)

    @property
    def flagged(self) -> float:
        return NORMAL.cdf(self.threshold - self.distance)

    @property
    def auroc(self) -> float:
        if self.two_scores:
            return 1 - (self.missed + self.flagged) / 2
        return NORMAL.cdf(self.distance / 2**0.5)

    def calibration(self, source: np.random.Generator, good: int, bad: int) -> Calibration:
        """Labels of this many answers."""
        values = source.normal(size=good + bad) + np.array([self.distance] * good + [0.0] * bad)
        scores = [NORMAL.cdf(value - self.threshold) for value in values]
        if self.two_scores:
            scores = [float(score >= 0.5) for score in scores]
        return calibration_of(scores, [place < good for place in range(len(scores))])


def _two_scores(name: str, missed: float, flagged: float) -> SimulatedJudge:
    threshold = NORMAL.inv_cdf(1 - missed)
    return SimulatedJudge(name, threshold - NORMAL.inv_cdf(flagged), threshold, two_scores=True)


def _normal(name: str, missed: float, flagged: float) -> SimulatedJudge:
    return replace(_two_scores(name, missed, flagged), two_scores=False)


LIMIT = NORMAL.inv_cdf(LEAST_AUROC) * 2**0.5
JUDGES = (
    SimulatedJudge("no better than chance", 0.0, 0.0),
    SimulatedJudge("at the limit of ranking", LIMIT, LIMIT / 2),
    _two_scores("the same, two scores", 1 - LEAST_AUROC, 1 - LEAST_AUROC),
    _normal("misses 43%", 0.43, 0.05),
    _normal("at both limits of errors", MOST_ERRORS, MOST_ERRORS),
    _normal("at one of them", MOST_ERRORS, 0.02),
    _normal("good", 0.08, 0.08),
    _normal("very good", 0.03, 0.03),
)
PASSES_MOST = _normal("passes most", 0.9, 0.005)
"""A judge whose default threshold is far too low: the best one has errors of 26% on both kinds of answers."""


def _drawn(judge: SimulatedJudge, n: int, share: float, replications: int) -> Iterator[Calibration]:
    source = np.random.default_rng(21)
    for _ in range(replications):
        bad = int(source.binomial(n, share))
        yield judge.calibration(source, n - bad, bad)


def _single(verdict: JudgeVerdict) -> str:
    """What is said of single samples."""
    return str(verdict.notes[0]["single"] or "")


def judge_verdicts(replications: int) -> Iterator[Table]:
    """What is said of judges of known quality, and how often it is wrong."""
    rows: list[list[str]] = []
    for judge in JUDGES:
        for n, share in LABELS:
            verdicts = [each.verdict for each in _drawn(judge, n, share, replications)]
            said: list[tuple[list[bool], bool]] = [
                ([each.passed is True for each in verdicts], judge.auroc >= LEAST_AUROC - 1e-9),
                ([each.use == "none" for each in verdicts], judge.auroc < LEAST_AUROC - 1e-9),
            ]
            few = max(judge.missed, judge.flagged) <= MOST_ERRORS + 1e-9
            said += [
                ([each.use == "samples" for each in verdicts], few),
                ([_single(each) == "no" for each in verdicts], not few),
            ]
            # At a limit, neither side is right: one is "at least", and the other is told by a hair.
            cells = [percent(found) if true else f"**{percent(found)}**" for found, true in said]
            rows.append([judge.name, f"{judge.auroc:.2f}", str(n), f"{share:.0%}", *cells])
    head = [
        "judge",
        "AUROC",
        "labels",
        "bad",
        "ranks systems",
        "not usable",
        "single samples",
        "not for single samples",
    ]
    yield Table("Verdicts on judges", head, rows, replications)


def label_promises(replications: int) -> Iterator[Table]:
    """Whether as many more labels as a verdict names do what it says, and whether a better threshold is better."""
    rows: list[list[str]] = []
    for judge in (JUDGES[3], JUDGES[6], JUDGES[1]):
        for n, share in LABELS:
            source = np.random.default_rng(22)
            kept: dict[str, list[bool]] = {"tell": [], "narrow": [], "rank": []}
            for calibration in _drawn(judge, n, share, replications // 2):
                for note in calibration.verdict.notes:
                    if (found := _kept(judge, calibration, note, source)) is not None:
                        kept[found[0]].append(found[1])
            cells = [f"{percent(found)} of {len(found)}" if found else "-" for found in kept.values()]
            rows.append([judge.name, str(n), f"{share:.0%}", *cells])
    head = ["judge", "labels", "bad", "tells of single samples", "at most as wide", "tells of ranking"]
    yield Table("More labels", head, rows, replications // 2)
    rows = []
    for name, judge in (("the best one already", JUDGES[4]), ("catches 10%; the best one 74%", PASSES_MOST)):
        row = [name]
        for n, share in LABELS:
            found = [
                any(note.kind == "judge_better_threshold" for note in fit(each, calibrator="platt").verdict.notes)
                for each in _drawn(judge, n, share, max(1, replications // 20))
            ]
            row.append(f"**{percent(found)}**" if judge is JUDGES[4] else percent(found))
        rows.append(row)
    head = ["default threshold", *(f"{n} labels, {share:.0%} bad" for n, share in LABELS)]
    yield Table("Better thresholds", head, rows, max(1, replications // 20))


def _kept(
    judge: SimulatedJudge, calibration: Calibration, note: Note, source: np.random.Generator
) -> tuple[str, bool] | None:
    """Which promise a note makes, and whether the labels that it asks for keep it."""
    if note.kind not in ("judge_more_labels", "judge_labels_to_decide") or note["more"] is None:
        return None
    more = int(note["more"])
    share = sum(pair.label == 0 for pair in calibration.pairs) / len(calibration.pairs)
    if note.kind == "judge_labels_to_decide":
        bad = round(more * share)
        verdict = _with(calibration, judge.calibration(source, more - bad, bad)).verdict
        return "rank", verdict.use != "undecided"
    bad = {"good": 0, "bad": more, "": round(more * share)}[str(note["of"])]
    good = more - bad
    verdict = _with(calibration, judge.calibration(source, good, bad)).verdict
    if note["decides"]:
        return "tell", _single(verdict) != "undecided"
    each = verdict.flagged if note["of"] == "good" else verdict.missed
    if each is None or each.low is None or each.high is None:
        return None
    return "narrow", each.high - each.low <= NARROW * 1.05


def _with(calibration: Calibration, more: Calibration) -> Calibration:
    new: Sequence[LabeledScore] = [replace(pair, sample_id=f"more {pair.sample_id}") for pair in more.pairs]
    return replace(calibration, pairs=(*calibration.pairs, *new))


SECTIONS = (judge_verdicts, label_promises)
