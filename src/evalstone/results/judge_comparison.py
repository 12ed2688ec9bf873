"""Several judges on the same labels: which of them is worth its price?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone._core.file_format import JUDGES_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError
from evalstone.report.shown import Shown
from evalstone.results.calibration import Calibration
from evalstone.results.judge_verdict import JudgeUse
from evalstone.results.measures import measure
from evalstone.results.members import accuracy_of, common_verdicts
from evalstone.stats.intervals import Interval
from evalstone.types import Note, note

if TYPE_CHECKING:
    from evalstone.report.view import View

USES: Sequence[JudgeUse] = ("samples", "systems", "undecided", "none")
"""What a judge is usable for, the most useful first."""
USABLE = ("samples", "systems")
MARGIN = 0.05
"""The accuracy that a cheaper judge may lack to be advised: it is shown to lack no more."""


@dataclass(frozen=True, kw_only=True)
class JudgedJudge:
    """One of several judges, measured on the labels."""

    judge: str
    """The judge's identity."""
    use: JudgeUse
    """What it is shown to be usable for."""
    auroc: Interval | None
    """The area under the ROC curve, in [0, 1]; 0.5 is chance."""
    ece: Interval | None
    """The expected calibration error of its scores as probabilities, in [0, 1]; 0 is best. None if all truths agree."""
    accuracy: Interval
    """The accuracy at the scorer's default threshold, on the samples that all judges scored."""
    threshold: float | None
    """The threshold that was fitted to the labels, on the scorer's scale; None if all truths agree."""
    difference: Interval | None
    """The accuracy of the best judge minus this one's, on the same samples. The intervals of all judges hold together.
    None for the best one."""
    cost: float | None
    """US dollars per 1,000 samples, if all of them are asked anew; None if a price is unknown."""
    seconds: float | None
    """The median time of a sample's judge calls, one after the other; None if a time is unknown."""


@dataclass(frozen=True, kw_only=True)
class JudgeComparison(Shown):
    """Several judges, each calibrated on the same labels."""

    calibrations: tuple[Calibration, ...]
    """That of each judge."""
    judges: tuple[JudgedJudge, ...]
    """The judges: by what they are usable for, then by AUROC, the best first."""
    n: int
    """The number of samples with a truth that all judges scored."""
    advice: Note
    """Which judge to use, in one sentence."""

    @property
    def passed(self) -> bool | None:
        """True if a judge is usable, False if none is; None if the labels don't tell."""
        uses = {judge.use for judge in self.judges}
        return True if uses & {*USABLE} else None if "undecided" in uses else False

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """A table with a row for each judge, under the advice."""
        from evalstone.results.views.judge_comparison import judge_comparison_view  # noqa: PLC0415 - only to show it

        return judge_comparison_view(self, front_end)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as JSON data."""
        return {
            "format": JUDGES_FORMAT,
            "n": self.n,
            "passed": self.passed,
            "advice": self.advice.to_dict(),
            "judges": to_jsonable(self.judges),
        }


def compare_judges(calibrations: Iterable[Calibration]) -> JudgeComparison:
    """Compare judges that were calibrated with the same scorer on the same labels.

        compare_judges([calibrate("labels.jsonl", judge=judge) for judge in ("lexical", "typesafe/jev-latest")])

    The best judge is the one that is usable for most (single samples, then a ranking of systems), and of those the one
    with the highest AUROC. The advice is a cheaper one if it is usable for as much, and is shown to be at most .05 less
    accurate: by the interval of the difference, which holds for all judges together.

    Raises:
        ConfigError: There are fewer than two calibrations, two of one judge, other scorers or other labels; the labels
            were drawn by strata; or no sample has a truth and a score by each judge.
    """
    listed = tuple(calibrations)
    _check(listed)
    right, groups = common_verdicts(listed)
    verdicts = dict(zip((each.judge for each in listed), right, strict=True))
    ranked = sorted(listed, key=lambda each: (USES.index(each.verdict.use), -_area(each)))
    best = ranked[0]
    judges = tuple(_judged(each, verdicts, groups, best) for each in ranked)
    return JudgeComparison(calibrations=listed, judges=judges, n=len(verdicts[best.judge]), advice=_advice(judges))


def _check(calibrations: Sequence[Calibration]) -> None:
    if len(calibrations) < 2:
        raise ConfigError(f"a comparison needs two judges or more, not {len(calibrations)}")
    if any(each.weights is not None for each in calibrations):
        raise ConfigError(
            "labels that were drawn by strata can't compare judges; compare them on labels drawn at random"
        )
    names = [each.judge for each in calibrations]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"the judge {twice[0]} is named twice")


def _area(calibration: Calibration) -> float:
    return 0.0 if calibration.auroc is None else calibration.auroc.estimate


def _judged(
    calibration: Calibration,
    verdicts: Mapping[str, Sequence[bool]],
    groups: Sequence[str] | None,
    best: Calibration,
) -> JudgedJudge:
    """A row of the comparison. verdicts: by judge, whether its verdict on each sample is right."""
    from evalstone.stats.comparison import compare_pairs  # noqa: PLC0415 - numpy

    difference, own = None, verdicts[calibration.judge]
    if calibration is not best:
        ours, theirs = (list(map(float, verdicts[each.judge])) for each in (calibration, best))
        pairs = compare_pairs(ours, theirs, confidence=1 - 0.05 / (len(verdicts) - 1), groups=groups)
        difference = None if pairs is None else pairs.difference
    accuracy = accuracy_of(own, groups)
    if accuracy is None:
        raise ConfigError("no sample has a truth and a score by each of the judges")
    raw = measure(calibration).raw
    return JudgedJudge(
        judge=calibration.judge,
        use=calibration.verdict.use,
        auroc=calibration.auroc,
        ece=None if raw is None else raw.ece,
        accuracy=accuracy,
        threshold=None if calibration.threshold is None else calibration.threshold.value,
        difference=difference,
        cost=None if calibration.cost is None else 1000 * calibration.cost,
        seconds=calibration.seconds,
    )


def _advice(judges: Sequence[JudgedJudge]) -> Note:
    """Which judge to use. judges: the best first."""
    best = judges[0]
    if best.use not in USABLE:
        kind = "no_judge_told" if any(judge.use == "undecided" for judge in judges) else "no_judge_usable"
        return note(kind, "caution" if kind == "no_judge_told" else "warning", judges=len(judges))
    cheaper = [
        judge
        for judge in judges[1:]
        if judge.use == best.use and judge.cost is not None and best.cost is not None and judge.cost < best.cost
    ]
    as_good = [judge for judge in cheaper if _at_most(judge.difference, MARGIN)]
    if not as_good:
        worse = tuple(judge.judge for judge in cheaper if judge.difference and (judge.difference.low or 0.0) > 0)
        unknown = tuple(judge.judge for judge in cheaper if judge.judge not in worse)
        return note("best_judge", judge=best.judge, use=best.use, worse=worse, unknown=unknown, margin=MARGIN)
    chosen = min(as_good, key=lambda judge: judge.cost or 0.0)
    seen = chosen.difference
    values = () if seen is None else (seen.estimate, seen.low or 0.0, seen.high or 0.0)
    return note(
        "cheaper_judge",
        judge=chosen.judge,
        best=best.judge,
        difference=values,
        cost=chosen.cost,
        best_cost=best.cost,
    )


def _at_most(difference: Interval | None, margin: float) -> bool:
    """Whether a difference is shown to be at most this large."""
    return difference is not None and difference.high is not None and difference.high <= margin
