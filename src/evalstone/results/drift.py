"""Judge drift: the same samples, judged earlier and now.

Judge a fixed dataset of anchors and keep the results. Judge it again whenever the judge may have changed: the model
behind a name, a prompt, or a version. The outputs are identical, so any change comes from the judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from evalstone._core.display import count
from evalstone._core.file_format import DRIFT_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd, Setting
from evalstone._core.json import to_jsonable
from evalstone._core.truth import all_passed
from evalstone.errors import ConfigError, invalid
from evalstone.report.shown import Shown
from evalstone.results.comparable_runs import pair_runs
from evalstone.results.entries import comparable
from evalstone.results.of_scorer import OfScorer, result_for
from evalstone.results.paired_scores import PairedScores
from evalstone.results.pairing import pair_samples
from evalstone.results.run import check_runs
from evalstone.stats.intervals import Interval, check_number
from evalstone.types import Sample

if TYPE_CHECKING:
    from evalstone.report.view import View
    from evalstone.results.run import Run
    from evalstone.stats.drift import Drift


@dataclass(frozen=True, kw_only=True)
class ScorerDrift(OfScorer):
    """One scorer's drift between two runs over the same samples."""

    drift: Drift
    """The verdict with the change of the mean."""
    unpaired: int
    """The number of samples with a score in only one of the runs; they are left out."""
    unscored: int
    """The number of samples without a score in either run; they are left out."""
    of_both: int
    """The number of samples that both runs have."""

    @property
    def difference(self) -> Interval:
        """The change of the mean, now - before, with its confidence interval."""
        return self.drift.comparison.difference

    @property
    def p_value(self) -> float:
        """The p-value of the drift. `adjusted_p_value` is the one that decides."""
        return self.drift.p_value

    @property
    def adjusted_p_value(self) -> float:
        """`p_value`, corrected for the number of scorers."""
        return self.drift.adjusted_p_value

    @property
    def verdict(self) -> Literal["drifted", "stable", "inconclusive"]:
        """Whether the scores have drifted."""
        return self.drift.verdict

    @property
    def passed(self) -> bool | None:
        """True if the scores are stable, False if they drifted; None if that is inconclusive."""
        return self.drift.passed


@dataclass(frozen=True, kw_only=True)
class DriftResult(Shown):
    """Whether a judge's scores of the same samples changed: a sequence with one entry per scorer."""

    before: Run
    """The earlier run."""
    now: Run
    """The later run."""
    scorers: tuple[ScorerDrift, ...]
    """One entry per scorer."""

    @property
    def passed(self) -> bool | None:
        """True if every scorer is stable, False if any drifted; None if neither can be said."""
        return all_passed(one.passed for one in self.scorers)

    def __getitem__(self, scorer: str) -> ScorerDrift:
        """A scorer's drift, by title, signature or name.

        Raises:
            UnknownName: the scorer is unknown, ambiguous, or has no pair of scores.
        """
        return result_for(self.scorers, self.before, scorer)

    def __iter__(self) -> Iterator[ScorerDrift]:
        return iter(self.scorers)

    def __repr__(self) -> str:
        return f"<DriftResult of {self.before.id} and {self.now.id}: {count(len(self.scorers), 'scorer')}>"

    @property
    def confidence(self) -> float:
        """The confidence level of intervals and verdicts."""
        return next((one.difference.confidence for one in self.scorers), 0.95)

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The table that `evalstone drift` shows."""
        from evalstone.results.views.drift import drift_view  # noqa: PLC0415 - only showing it needs it

        return drift_view(self, front_end)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, as `evalstone drift --json` prints it."""
        return {
            "format": DRIFT_FORMAT,
            "before": self.before.id,
            "now": self.now.id,
            "scorers": to_jsonable(self.scorers),
        }


def drift(before: Run, now: Run, *, confidence: float = 0.95, tolerance: float | None = None) -> DriftResult:
    """Test whether a judge scores the same samples differently than before.

    The p-values are corrected over all scorers (Holm), so the probability of a false alarm is at most 1 - confidence.
    Samples of one group are one cluster.

    Args:
        before: the earlier run.
        now: the later run. Its judge and signatures may differ, because they may be the cause of the drift.
        confidence: the confidence level of intervals and verdicts.
        tolerance: the largest change of the mean that doesn't count as drift, as a share of the scale; None is 0.02.

    Raises:
        ConfigError: the tolerance is out of range, or the samples are not identical. Metadata may differ in what a CSV
            file can't hold: the types of values, and missing ones.
    """
    check_runs(before=before, now=now)
    from evalstone.stats import drift as of_scores  # noqa: PLC0415 - numpy

    if tolerance is not None:
        check_number(Setting("tolerance"), tolerance)
        if not 0 < tolerance <= 1:
            raise ConfigError(invalid(Setting("tolerance"), "a share of the scale, above 0 and at most 1", tolerance))
    if before.dataset_version != now.dataset_version and (difference := _difference(before, now)):
        raise ConfigError(f"anchors must be the same samples with the same outputs: {difference}")
    pairs: list[PairedScores] = []
    drifts: list[Drift] = []
    for pair in pair_runs(before, now, allow_mismatch=True)[0]:
        known = pair.known
        result = of_scores.drift(
            known.a,
            known.b,
            scale=pair.info.scale,
            confidence=confidence,
            tolerance=None if tolerance is None else tolerance * pair.info.scale,
            groups=known.groups,
            weights=known.weights,
        )
        if result is not None:
            pairs.append(pair)
            drifts.append(result)
    scorers = (
        ScorerDrift(
            title=pair.title,
            info=pair.info,
            drift=result,
            unpaired=pair.unpaired,
            unscored=pair.unscored,
            of_both=pair.of_both,
        )
        for pair, result in zip(pairs, of_scores.adjust_drifts(drifts), strict=True)
    )
    return DriftResult(before=before, now=now, scorers=tuple(scorers))


def _difference(before: Run, now: Run) -> str:
    """How the anchors of two runs differ; "" if they are the same."""
    if before.samples is None or now.samples is None:
        return (
            f"the earlier run has {before.dataset_name} version {before.dataset_version}, the later {now.dataset_name} "
            f"version {now.dataset_version}, and the texts are not available"
        )
    earlier = _contents(before.samples)
    later = pair_samples(before, now).renamed(_contents(now.samples))
    common = earlier.keys() & later.keys()
    if single := len(earlier.keys() ^ later.keys()):
        return f"{count(single, 'sample')} {'is' if single == 1 else 'are'} only in one of the runs"
    changed = sum(earlier[name] != later[name] for name in common)
    return f"{changed:,} of {count(len(common), 'sample')} {'differs' if changed == 1 else 'differ'}" if changed else ""


def _contents(samples: Iterable[Sample]) -> Mapping[str, str]:
    """By sample or trial, a hash of the content, with metadata as a CSV file has it."""
    return {sample.key: replace(sample, metadata=comparable(sample.metadata)).content_hash for sample in samples}
