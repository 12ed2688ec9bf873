"""Trials: how reliably a target passes when it answers the same sample again."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any, cast

from evalstone._core.terms import term
from evalstone.errors import ConfigError
from evalstone.results.run import OfScorer, Run
from evalstone.results.scores import group_labels, weight_column
from evalstone.results.summary import ScorerInfo
from evalstone.stats.intervals import Interval, check_confidence, mean_interval
from evalstone.types import Failed, Outcome, Record, Score, reaches

if TYPE_CHECKING:
    from evalstone.stats.variance_components import VarianceComponents


@dataclass(frozen=True)
class PassK:
    """Both for k trials, means over the samples that have k trials or more."""

    k: int
    at_least_one: Interval
    """pass@k: the probability that at least one of k trials passes."""
    all: Interval
    """pass^k: the probability that all k trials pass."""


@dataclass(frozen=True)
class Flaky:
    """A sample that passes in some of its trials."""

    sample: str
    passed: int
    trials: int


@dataclass(frozen=True)
class Reliability(OfScorer):
    """How reliably the samples of a run pass, for one scorer."""

    threshold: float
    """What a trial must reach to pass, in the unit of the score."""
    passes: tuple[PassK, ...]
    """For 1, 2, 4, … trials and for all of them."""
    always: int
    """How many samples passed in every trial."""
    never: int
    """How many passed in none."""
    flaky: tuple[Flaky, ...]
    """The samples that passed in some, those nearest to half of their trials first."""
    variance: VarianceComponents | None
    """Of the scores: `samples` is the variance between samples, `noise` that between the trials of a sample, which the
    judge's own is part of. For a scorer that is `repeated`, `noise` is the judge's alone, of a single judgment, and
    `trials` what remains between trials. None for fewer than three samples with a score, or two with two."""


def reliability(
    run: Run, scorer: str | None = None, *, threshold: float | None = None, confidence: float = 0.95
) -> tuple[Reliability, ...]:
    """How reliably the target passes, by scorer.

    A trial passes when its score reaches the threshold. With c passes in the n trials of a sample,

        pass@k = mean over samples of 1 - C(n - c, k) / C(n, k)
        pass^k = mean over samples of C(c, k) / C(n, k)

    which are unbiased for any k up to n. A trial whose target failed counts as one that did not pass; any other without
    a score is left out: its score is undefined, or the judge, the user or the scorer failed. The intervals are those of
    the means over samples; samples of one group count as clustered.

    Args:
        run: A run with trials.
        scorer: A scorer by title, signature or name; None for all.
        threshold: What a trial must reach, in the unit of the score; by default half of the scorer's scale.
        confidence: Of the intervals.

    Raises:
        ConfigError: The run has no trials or no such scorer, or the threshold is outside the scale.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code" (pass@k); Yao et al. 2024, "τ-bench"
    (pass^k).
    """
    check_confidence(confidence)
    if run.trials < 2:
        raise ConfigError(f"the run has one trial of each sample; repeat the target with {term('trials', ...)}")
    infos = run.scorers if scorer is None else (run[scorer].info,)
    records = _by_sample(run)
    return tuple(_reliability(run, info, records[info.signature], threshold, confidence) for info in infos)


def pass_at_k(passed: int, trials: int, k: int) -> float:
    """The share of the sets of k trials in which at least one passed."""
    return 1.0 - comb(trials - passed, k) / comb(trials, k)


def pass_all_k(passed: int, trials: int, k: int) -> float:
    """The share of the sets of k trials in which all passed."""
    return comb(passed, k) / comb(trials, k)


def _by_sample(run: Run) -> Mapping[str, Mapping[str, list[Record]]]:
    """By scorer's signature and by sample: the records of its trials."""
    found: dict[str, dict[str, list[Record]]] = {info.signature: {} for info in run.scorers}
    for record in run.records:
        found[record.scorer].setdefault(record.sample, []).append(record)
    return found


def _reliability(
    run: Run, info: ScorerInfo, records: Mapping[str, list[Record]], threshold: float | None, confidence: float
) -> Reliability:
    limit = info.scale / 2 if threshold is None else threshold
    if not 0 <= limit <= info.scale:
        raise ConfigError(f"{info.name}: the threshold must be in [0, {info.scale:g}], not {limit:g}")
    counts: dict[str, tuple[int, int]] = {}
    for sample, trials in records.items():
        outcomes = [one for one in (record.outcome for record in trials) if isinstance(one, Score) or _by_target(one)]
        passed = sum(isinstance(one, Score) and _passes(one, limit, info) for one in outcomes)
        if outcomes:
            counts[sample] = passed, len(outcomes)
    flaky = [Flaky(sample, passed, n) for sample, (passed, n) in counts.items() if 0 < passed < n]
    flaky.sort(key=lambda one: abs(one.passed / one.trials - 0.5))
    return Reliability(
        title=run.titles[info.signature],
        info=info,
        threshold=limit,
        passes=tuple(_passes_of(counts, records, run.trials, confidence)),
        always=sum(passed == n for passed, n in counts.values()),
        never=sum(passed == 0 for passed, _ in counts.values()),
        flaky=tuple(flaky),
        variance=_variance(records.values(), info, confidence),
    )


def _by_target(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.by_target


def _passes(score: Score, threshold: float, info: ScorerInfo) -> bool:
    return reaches(score.value, threshold, info.scale, lower_is_better=info.lower_is_better)


def _passes_of(
    counts: Mapping[str, tuple[int, int]], records: Mapping[str, list[Record]], trials: int, confidence: float
) -> Iterator[PassK]:
    for k in sizes(trials):
        samples = [sample for sample, (_, n) in counts.items() if n >= k]
        # The group of a sample without one is the sample itself, which is one value here.
        first = {sample: records[sample][0] for sample in samples}
        groups = {name: one.group for name, one in first.items() if one.group is not None and one.group != name}
        weights = {name: one.weight for name, one in first.items() if one.weight is not None}

        more: dict[str, Any] = {"groups": group_labels(samples, groups), "weights": weight_column(samples, weights)}
        one, every = (
            mean_interval([share(*counts[s], k) for s in samples], low=0.0, high=1.0, confidence=confidence, **more)
            for share in (pass_at_k, pass_all_k)
        )
        if one is not None and every is not None:
            yield PassK(k, one, every)


def sizes(trials: int) -> list[int]:
    """1, 2, 4, … below the number of trials, and that number."""
    powers = [2**n for n in range(trials.bit_length()) if 2**n < trials]
    return [*powers, trials]


def judgments_of(record: Record) -> list[float]:
    """The values of the single judgments behind a score: those in the evidence of a `repeated` scorer, else its own.

    Empty without a score. What another scorer calls judgments in its evidence is none of them: those of `repeated` are
    numbered from 1, and the score is their mean.
    """
    if not isinstance(record.outcome, Score):
        return []
    evidence: Any = record.outcome.evidence
    judgments = cast("dict[str, Any]", evidence).get("judgments") if isinstance(evidence, dict) else None
    listed = cast("list[Any]", judgments) if isinstance(judgments, list) else []
    fields = [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]
    values = [float(value) for one in fields if isinstance(value := one.get("value"), int | float)]
    score, scale = record.outcome.value, record.outcome.scale
    numbered = [one.get("judgment") for one in fields] == list(range(1, len(listed) + 1))
    if not (numbered and values and math.isclose(math.fsum(values) / len(values), score, abs_tol=1e-9 * scale)):
        return [score]
    return values


def _answer(record: Record) -> Hashable:
    """What tells the judge's answers behind a record apart: equal questions are asked once, and share their answers."""
    asked = frozenset((step.fingerprint, step.judge, step.repeat_index) for step in record.steps)
    return asked or record.key


def _variance(rows: Iterable[list[Record]], info: ScorerInfo, confidence: float) -> VarianceComponents | None:
    from evalstone.stats.variance_components import trial_components, variance_components  # noqa: PLC0415 - numpy

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
