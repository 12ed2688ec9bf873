"""What a judge can be used for, as far as its labels show: single samples, a ranking of systems, or neither.

    to rank systems      the AUROC is at least LEAST_AUROC
    for single samples   to rank systems, and at the scorer's default threshold, the judge misses at most MOST_ERRORS of
                         the bad answers and flags at most MOST_ERRORS of the good ones

Each limit is compared with a 95% interval, never with an estimate alone: "at least" is said if the whole interval is on
that side, "below" if it is on the other side, and neither if the limit is inside. With independent samples or clusters,
a verdict that a limit is reached is wrong in at most 2.5% of calibrations, and so is one that it is not.

AUROC 0.7 is where a judge with two scores shows 0.4 of a difference between two systems, and needs about
1 / 0.4² = 6 times as many samples as labels would. docs/calibration.md has the rules and how often they are wrong.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evalstone._core.json import to_jsonable
from evalstone._core.truth import NoTruthValue
from evalstone.results.measures import verdicts_at, verdicts_at_fitted
from evalstone.stats.intervals import Interval, proportion_interval
from evalstone.types import Note, note

if TYPE_CHECKING:
    from evalstone.results.calibration import Calibration

LEAST_AUROC = 0.7
"""The AUROC from which a judge is usable to rank systems."""
MOST_ERRORS = 0.2
"""The share of missed bad answers, and of flagged good ones, up to which a judge is usable for single samples."""
FEWEST_LABELS = 6
"""The number of good and of bad answers below which nothing is said: with fewer, no AUROC is shown to be above 0.5."""
NARROW = 0.2
"""The width of an interval that more labels are suggested for."""
MOST_TIMES = 20
"""More labels than this many times those that there are, are not suggested."""

JudgeUse: TypeAlias = Literal["samples", "systems", "none", "undecided"]
"""What a judge is shown to be usable for: single samples (and systems), systems, nothing; or the labels don't tell."""
Answer: TypeAlias = Literal["yes", "no", "undecided"]


@dataclass(frozen=True, kw_only=True)
class JudgeVerdict(NoTruthValue):
    """What a judge can be used for, with the numbers that say so."""

    use: JudgeUse
    """What the judge is shown to be usable for."""
    missed: Interval | None
    """The share of bad answers that the judge passes at the scorer's default threshold; None without bad answers."""
    flagged: Interval | None
    """The share of good answers that it doesn't pass; None without good answers."""
    notes: tuple[Note, ...]
    """The conclusion, then what it is based on and what more labels would add."""

    @property
    def passed(self) -> bool | None:
        """True if the judge is usable to rank systems or for single samples, False if it is shown not to be; None if
        the labels don't tell."""
        return {"samples": True, "systems": True, "none": False, "undecided": None}[self.use]

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "use": self.use,
            "missed": to_jsonable(self.missed),
            "flagged": to_jsonable(self.flagged),
            "notes": [each.to_dict() for each in self.notes],
        }


def verdict_of(calibration: Calibration) -> JudgeVerdict:
    """What the judge of a calibration can be used for."""
    counts, lower = calibration.confusion(calibration.default_threshold), calibration.lower_is_better
    bad, missed = (counts.positives, counts.fn) if lower else (counts.negatives, counts.fp)
    good, flagged = (counts.negatives, counts.fp) if lower else (counts.positives, counts.fn)
    rates = _rates_of_units(calibration)
    errors = _Errors("bad", missed, bad, rates["bad"]), _Errors("good", flagged, good, rates["good"])
    intervals = {"missed": errors[0].interval, "flagged": errors[1].interval}
    unknown, is_weighted = _unknown(calibration, good, bad), calibration.weights is not None
    area = calibration.auroc
    if unknown is not None or area is None or area.low is None or area.high is None:
        notes = () if unknown is None else (unknown,)
        return JudgeVerdict(use="undecided", notes=notes, **intervals)
    limits = (area.estimate, area.low, area.high)
    ranks: Answer = "yes" if area.low >= LEAST_AUROC else "no" if area.high < LEAST_AUROC else "undecided"
    if ranks == "no":
        kind = "judge_reversed" if area.high < 0.5 else "judge_not_usable"
        return JudgeVerdict(use="none", notes=(note(kind, "warning", auroc=limits, least=LEAST_AUROC),), **intervals)
    single = _for_samples(errors)
    pairs = note("judge_pairs", auroc=limits)
    if ranks == "undecided":
        conclusion = note("judge_undecided", "caution", single=single, auroc=limits, least=LEAST_AUROC)
        at_threshold = note(
            "judge_errors",
            threshold=calibration.default_threshold,
            bad=errors[0].values,
            good=errors[1].values,
            weighted=is_weighted,
        )
        notes = conclusion, at_threshold, _to_decide(area, good + bad)
        return JudgeVerdict(use="undecided", notes=notes, **intervals)
    use: JudgeUse = "samples" if single == "yes" else "systems"
    severity = "fact" if single == "yes" else "caution"
    conclusion = note(
        "judge_usable",
        severity,
        single=single,
        threshold=calibration.default_threshold,
        most=MOST_ERRORS,
        bad=errors[0].values,
        good=errors[1].values,
        weighted=is_weighted,
    )
    clustered = calibration.decided_clusters is not None
    more = () if is_weighted else (None if clustered else _more(errors, single), _better_threshold(calibration))
    notes = conclusion, pairs, *(each for each in more if each is not None)
    return JudgeVerdict(use=use, notes=notes, **intervals)


@dataclass(frozen=True)
class _Errors:
    """The errors of the judge on the bad or on the good answers."""

    name: Literal["bad", "good"]
    wrong: int
    n: int
    weighted: Interval | None = None
    """Their share, if labels are weighted or clustered."""

    @property
    def interval(self) -> Interval | None:
        return self.weighted or proportion_interval(self.wrong, self.n)

    @property
    def limits(self) -> tuple[float, float, float]:
        """Share and limits; of nothing, all that is possible."""
        each = self.interval
        if each is None or each.low is None or each.high is None:
            return math.nan, 0.0, 1.0
        return each.estimate, each.low, each.high

    @property
    def values(self) -> tuple[float, ...]:
        """Share, limits, errors and answers, for a note."""
        return *self.limits, self.wrong, self.n

    @property
    def few(self) -> Answer:
        """Whether there are at most `MOST_ERRORS` of them."""
        _, low, high = self.limits
        return "yes" if high <= MOST_ERRORS else "no" if low > MOST_ERRORS else "undecided"

    def with_more(self, n: int) -> tuple[float, float]:
        """The limits with n answers, if the share stays."""
        expected = _Errors(self.name, round(n * self.wrong / self.n), n)
        return expected.limits[1:]


def _rates_of_units(calibration: Calibration) -> dict[str, Interval | None]:
    """The shares of missed bad answers and of flagged good ones, if labels are weighted or clustered."""
    if calibration.weights is None and calibration.decided_clusters is None:
        return {"bad": None, "good": None}
    measures = verdicts_at(calibration, calibration.default_threshold).measures
    bad, good = ("sensitivity", "specificity") if calibration.lower_is_better else ("specificity", "sensitivity")
    return {"bad": _complement(measures[bad]), "good": _complement(measures[good])}


def _complement(share: Interval | None) -> Interval | None:
    if share is None or share.low is None or share.high is None:
        return None
    return dataclasses.replace(share, estimate=1 - share.estimate, low=1 - share.high, high=1 - share.low)


def _unknown(calibration: Calibration, good: int, bad: int) -> Note | None:
    """Why nothing can be said, if so."""
    if calibration.n_without_labels:
        return note(
            "judge_unknown", "warning", why="strata", samples=calibration.n_without_labels, of=calibration.run_size
        )
    if calibration.n_skipped + calibration.n_failed > len(calibration.pairs):
        missing = calibration.n_skipped + calibration.n_failed
        return note(
            "judge_unknown", "warning", why="unscored", missing=missing, labels=missing + len(calibration.pairs)
        )
    if min(good, bad) >= FEWEST_LABELS:
        return None
    why = "one_kind" if not good or not bad else "few"
    return note("judge_unknown", "warning", why=why, good=good, bad=bad, least=FEWEST_LABELS)


def _for_samples(errors: tuple[_Errors, _Errors]) -> Answer:
    answers = {each.few for each in errors}
    return "no" if "no" in answers else "undecided" if "undecided" in answers else "yes"


def _to_decide(area: Interval, n: int) -> Note:
    """How many labels would tell whether the AUROC is above the limit, if it stays. Limits come closer with √n."""
    assert area.low is not None  # noqa: S101 - of a caller that has looked
    assert area.high is not None  # noqa: S101
    above = area.estimate >= LEAST_AUROC
    reach = area.estimate - area.low if above else area.high - area.estimate
    distance = abs(area.estimate - LEAST_AUROC)
    times = (reach / distance) ** 2 if distance > 0 else math.inf
    more = _about(max(1, n * (times - 1))) if times <= MOST_TIMES else None
    return note("judge_labels_to_decide", more=more, labels=n, auroc=area.estimate, least=LEAST_AUROC)


def _more(errors: tuple[_Errors, _Errors], single: Answer) -> Note | None:
    """What more labels would add: an answer on single samples if there is none, and otherwise a narrow interval of the
    larger share of errors. None if that is narrow already, or out of reach."""
    if single != "undecided":
        each = max(errors, key=lambda one: one.limits[0])
        n = _enough(each, decide=False)
        if n is None or n == each.n:
            return None
        return _labels(errors, each, n, decides=False)
    open_questions = [each for each in errors if each.few == "undecided"]
    needed = [(each, n) for each in open_questions if (n := _enough(each, decide=True)) is not None]
    if len(needed) < len(open_questions):
        return None
    each, n = max(needed, key=lambda one: one[1] / one[0].n)
    return _labels(errors, each, n, decides=True, both=len(needed) > 1)


def _labels(errors: tuple[_Errors, _Errors], each: _Errors, n: int, *, decides: bool, both: bool = False) -> Note:
    """What labels of good or bad answers up to a number of n would add, or labels of both."""
    low, high = each.with_more(n)
    drawn = _about((n - each.n) * sum(one.n for one in errors) / each.n)
    return note(
        "judge_more_labels",
        decides=decides,
        of="" if both else each.name,
        more=drawn if both else _about(n - each.n),
        drawn=drawn,
        share=each.limits[0],
        low=low,
        high=high,
    )


def _about(number: float) -> int:
    """A number rounded up to two digits."""
    step = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / step) * step


def _enough(errors: _Errors, *, decide: bool) -> int | None:
    """The number of answers from which the interval excludes the limit, or is narrow, if the share stays."""

    def fits(n: int) -> bool:
        low, high = errors.with_more(n)
        return high <= MOST_ERRORS or low > MOST_ERRORS if decide else high - low <= NARROW

    n = errors.n
    while not fits(n):
        n = math.ceil(n * 1.1)
        if n > MOST_TIMES * errors.n:
            return None
    return n


def _better_threshold(calibration: Calibration) -> Note | None:
    """The learned threshold, if it is shown to be better on new samples than the default one."""
    fitted = verdicts_at_fitted(calibration)
    if fitted is None:
        return None
    ours = fitted.measures["balanced_accuracy"]
    theirs = verdicts_at(calibration, calibration.default_threshold).measures["balanced_accuracy"]
    if ours is None or theirs is None or ours.low is None or theirs.high is None or ours.low <= theirs.high:
        return None
    return note(
        "judge_better_threshold", threshold=fitted.threshold, expected=tuple(_rates(fitted.measures, calibration))
    )


def _rates(measures: Mapping[str, Interval | None], calibration: Calibration) -> Iterator[float]:
    """The shares of missed bad answers and of flagged good ones."""
    names = ("sensitivity", "specificity") if calibration.lower_is_better else ("specificity", "sensitivity")
    yield from (1 - rate.estimate for name in names if (rate := measures[name]) is not None)
