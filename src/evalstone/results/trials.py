"""Trials: how reliably a target passes if it answers the same sample repeatedly."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from evalstone._core.front_ends import Setting
from evalstone.errors import ConfigError, invalid
from evalstone.results.columns import Entry
from evalstone.results.missing_scores import Missing, check_missing, counts
from evalstone.results.of_scorer import OfScorer
from evalstone.results.scores import group_labels, unequal_weights
from evalstone.results.summary import ScorerInfo
from evalstone.stats.intervals import Interval, check_confidence, mean_interval
from evalstone.stats.partly_known import PartlyKnown
from evalstone.stats.weighted_mean import WeightedMean
from evalstone.types import Failed, Outcome, Record, Score, reaches

if TYPE_CHECKING:
    from evalstone.results.run import Run
    from evalstone.stats.variances import VarianceComponents


@dataclass(frozen=True, kw_only=True)
class PassK:
    """pass@k and pass^k: means over all samples.

    A trial without a score counts as not passed in the mean and in the lower limit, and as passed in the upper limit:
    the interval holds whatever the missing scores are (`stats.partly_known`).
    """

    k: int
    """The number of trials."""
    at_least_one: Interval
    """pass@k: the probability that at least one of k trials passes."""
    all: Interval
    """pass^k: the probability that all k trials pass."""


@dataclass(frozen=True, kw_only=True)
class Flaky:
    """A sample that passes in some of its trials but not in all."""

    sample_id: str
    passed: int
    trials: int


@dataclass(frozen=True, kw_only=True)
class Reliability(OfScorer):
    """How reliably the samples of a run pass, for one scorer."""

    threshold: float
    """The score that a trial must reach to pass, on the scorer's scale."""
    passes: tuple[PassK, ...]
    """pass@k and pass^k for k = 1, 2, 4, … and for all trials."""
    always: int
    """The number of samples that passed in every trial."""
    never: int
    """The number of samples that passed in no trial."""
    undecided: int
    """The number of samples that passed in all or in none of the trials with a score, if others have none."""
    flaky: tuple[Flaky, ...]
    """The samples that passed in some trials, those with a pass rate closest to 0.5 first."""
    missing: int
    """The number of trials without a score that count."""
    left_out: int
    """The number of trials that are left out because of `missing`, or that were not run."""
    variance: VarianceComponents | None
    """The variance components of the scores: `samples` between samples, and `noise` between the trials of a sample,
    which includes the judge's noise. For a `repeated` scorer, `noise` is the judge's alone, for a single judgment, and
    `trials` is the remaining variance between trials. None with fewer than three samples with a score, or fewer than
    two with two scores."""


def reliability(
    run: Run,
    scorer: str | None = None,
    *,
    threshold: float | None = None,
    confidence: float = 0.95,
    missing: Missing = "worst",
) -> tuple[Reliability, ...]:
    """How reliably the target passes, by scorer.

    A trial passes if its score reaches the threshold (if lower is better: doesn't exceed it). With c passes in the n
    trials of a sample,

        pass@k = mean over samples of 1 - C(n - c, k) / C(n, k)
        pass^k = mean over samples of C(c, k) / C(n, k)

    Both are in [0, 1], and unbiased for any k up to n. A trial whose target failed counts as not passed. For other
    trials without a score, see `PassK` and `missing`. A sample with fewer than k trials that count is left out of
    pass@k and pass^k. Intervals are those of means over samples, clustered by group.

    Args:
        run: A run with trials.
        scorer: A scorer by title, signature or name; None for all.
        threshold: The score to reach, on the scorer's scale. None: that of the tool, of an imported metric that has
            one, else half of the scale.
        confidence: The confidence level of the intervals.
        missing: Which trials without a score count. "worst": all. "failed": only those whose judge, simulated user or
            scorer failed or gave no answer, not those whose score is undefined. "ignore": none, which is valid only if
            scores are missing at random.

    Raises:
        ConfigError: The run has no trials or no such scorer, or the threshold is outside the scale.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code" (pass@k); Yao et al. 2024, "τ-bench"
    (pass^k).
    """
    check_confidence(confidence)
    if run.trials < 2:
        raise ConfigError("the run has one trial of each sample; run the target with ", Setting("trials", ...))
    check_missing(missing)
    infos = run.scorers if scorer is None else (run[scorer].info,)
    records = _by_sample(run)
    return tuple(_reliability(run, info, records[info.signature], threshold, confidence, missing) for info in infos)


def pass_at_k(passed: int, trials: int, k: int) -> float:
    """The share of all sets of k trials in which at least one passes: 1 - C(n - c, k) / C(n, k)."""
    return 1.0 - comb(trials - passed, k) / comb(trials, k)


def pass_all_k(passed: int, trials: int, k: int) -> float:
    """The share of all sets of k trials in which all pass: C(c, k) / C(n, k)."""
    return comb(passed, k) / comb(trials, k)


def _by_sample(run: Run) -> Mapping[str, Mapping[str, list[Record]]]:
    """By scorer signature and sample, the records of the sample's trials."""
    trials: dict[str, dict[str, list[Record]]] = {info.signature: {} for info in run.scorers}
    for record in run.records:
        trials[record.signature].setdefault(record.sample_id, []).append(record)
    return trials


class Counts(NamedTuple):
    """The trials of a sample."""

    passed: int
    missing: int
    """Trials without a score that count."""
    trials: int


def _reliability(
    run: Run,
    info: ScorerInfo,
    records: Mapping[str, list[Record]],
    threshold: float | None,
    confidence: float,
    missing: Missing,
) -> Reliability:
    if threshold is None:
        threshold = info.tool_threshold
    limit = info.scale / 2 if threshold is None else threshold
    if not 0 <= limit <= info.scale:
        raise ConfigError(f"{info.name}: ", invalid("the threshold", f"in [0, {info.scale:g}]", limit, f"{limit:g}"))
    trials_of: dict[str, Counts] = {}
    for sample, trials in records.items():
        counted = [r for r in trials if r.value is not None or _by_target(r.outcome) or counts(Entry.of(r), missing)]
        passed = sum(isinstance(r.outcome, Score) and _passes(r.outcome, limit, info) for r in counted)
        without = sum(r.value is None and not _by_target(r.outcome) for r in counted)
        if counted:
            trials_of[sample] = Counts(passed, without, len(counted))
    known = {sample: (passed, n - without) for sample, (passed, without, n) in trials_of.items() if n > without}
    flaky = [
        Flaky(sample_id=sample, passed=passed, trials=n) for sample, (passed, n) in known.items() if 0 < passed < n
    ]
    flaky.sort(key=lambda sample: abs(sample.passed / sample.trials - 0.5))
    return Reliability(
        title=run.titles[info.signature],
        info=info,
        threshold=limit,
        passes=tuple(_passes_of(trials_of, records, run.trials, confidence)) if known else (),
        always=sum(passed == n for passed, _, n in trials_of.values()),
        never=sum(passed + without == 0 for passed, without, _ in trials_of.values()),
        undecided=sum(without > 0 and passed in (0, n - without) for passed, without, n in trials_of.values()),
        flaky=tuple(flaky),
        missing=sum(without for _, without, _ in trials_of.values()),
        left_out=run.trials * len(records) - sum(n for _, _, n in trials_of.values()),
        variance=_variance(records.values(), info, confidence),
    )


def _by_target(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.by_target


def _passes(score: Score, threshold: float, info: ScorerInfo) -> bool:
    return reaches(score.value, threshold, info.scale, lower_is_better=info.lower_is_better)


def _passes_of(
    trials_of: Mapping[str, Counts], records: Mapping[str, list[Record]], trials: int, confidence: float
) -> Iterator[PassK]:
    for k in sizes(trials):
        samples = [sample for sample, of_sample in trials_of.items() if of_sample.trials >= k]
        # Trials of a sample without a group have the sample as their group. Here a sample is a single value.
        first = {sample: records[sample][0] for sample in samples}
        groups = [None if record.group == name else record.group for name, record in first.items()]
        weights = [1.0 if record.weight is None else record.weight for record in first.values()]
        clustered = any(group is not None for group in groups)
        more: dict[str, Any] = {
            "groups": group_labels(samples, groups) if clustered else None,
            "weights": unequal_weights(weights),
        }
        at_least_one, all_pass = (
            bounded_share([trials_of[sample] for sample in samples], share, k, confidence, more)
            for share in (pass_at_k, pass_all_k)
        )
        if at_least_one is not None and all_pass is not None:
            yield PassK(k=k, at_least_one=at_least_one, all=all_pass)


def bounded_share(
    samples: Sequence[Counts],
    share: Callable[[int, int, int], float],
    k: int,
    confidence: float,
    more: Mapping[str, Any],
) -> Interval | None:
    """The mean with trials without a score as not passed. The limits hold whatever the missing scores are."""
    values = [[share(passed + best * missing, trials, k) for passed, missing, trials in samples] for best in (0, 1)]
    interval = mean_interval(values[0], low=0.0, high=1.0, confidence=confidence, **more)
    if interval is None or values[0] == values[1]:
        return interval
    lowest, highest = (WeightedMean.of_units(of_end, 0.0, 1.0, **more) for of_end in values)
    partly = PartlyKnown.between(lowest, highest)
    alpha = partly.error_rate(1 - confidence)
    low, high = lowest.limit(alpha, 1, share=partly.share), highest.limit(alpha, -1, share=partly.share)
    return replace(interval, low=low, high=high)


def sizes(trials: int) -> list[int]:
    """The k to report: the powers of 2 below the number of trials, and the number itself."""
    powers = [2**n for n in range(trials.bit_length()) if 2**n < trials]
    return [*powers, trials]


def judgments_of(record: Record) -> list[float]:
    """The single judgments behind a score: those in the evidence of a `repeated` scorer, else the score itself.

    Empty without a score. Judgments of `repeated` are numbered from 1 and the score is their mean, which tells them
    apart from evidence of other scorers that happens to have the same name.
    """
    if not isinstance(record.outcome, Score):
        return []
    evidence: Any = record.outcome.evidence
    judgments = cast("dict[str, Any]", evidence).get("judgments") if isinstance(evidence, dict) else None
    listed = cast("list[Any]", judgments) if isinstance(judgments, list) else []
    items = [cast("dict[str, Any]", item) for item in listed if isinstance(item, dict)]
    values = [float(value) for item in items if isinstance(value := item.get("value"), int | float)]
    score, scale = record.outcome.value, record.outcome.scale or 1.0
    numbered = [item.get("judgment") for item in items] == list(range(1, len(listed) + 1))
    if not (numbered and values and math.isclose(math.fsum(values) / len(values), score, abs_tol=1e-9 * scale)):
        return [score]
    return values


def _answer(record: Record) -> Hashable:
    """An identifier of the judge's answers behind a record. Identical questions are asked once and share an answer."""
    questions = frozenset((call.fingerprint, call.judge, call.repeat_index) for call in record.calls)
    return questions or record.key


def _variance(rows: Iterable[list[Record]], info: ScorerInfo, confidence: float) -> VarianceComponents | None:
    from evalstone.stats.variances import trial_components, variance_components  # noqa: PLC0415 - numpy

    rows = list(rows)
    table = [[record.value for record in row] for row in rows]
    scores = [sum(value is not None for value in row) for row in table]
    if sum(map(bool, scores)) < 3 or sum(number >= 2 for number in scores) < 2:
        return None
    judgments = [[judgments_of(record) for record in row] for row in rows]
    if sum(any(len(values) > 1 for values in row) for row in judgments) >= 2:
        answers = [list(map(_answer, row)) for row in rows]
        return trial_components(judgments, answers=answers, scale=info.scale, confidence=confidence)
    width = max(map(len, table))
    return variance_components(
        [[*row, *[None] * (width - len(row))] for row in table], scale=info.scale, confidence=confidence
    )
