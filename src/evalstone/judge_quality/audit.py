"""Audit a judge: compare its scores of samples with those after small perturbations that it should ignore."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote, unquote

from evalstone._core import sync
from evalstone._core.declarations import Range
from evalstone.agents.reasoning import answered, has_reasoning
from evalstone.datasets import Dataset, Samples
from evalstone.datasets.columns import ColumnMapping
from evalstone.datasets.loading import load_for_scoring
from evalstone.errors import ConfigError, DataError, JudgeError, RunAborted, invalid
from evalstone.judge_quality.calibrate import JudgeOptions, default_threshold, texts_of
from evalstone.judge_quality.perturbations import REPEAT, from_column, select_perturbations
from evalstone.judges import Judge
from evalstone.judges.base import JudgeSpec
from evalstone.ledger.base import DEFAULT_LEDGER
from evalstone.results.audit import Audit, AuditedScorer, Effect, Noise, Perturbation, ThresholdSource
from evalstone.results.estimate import Estimate
from evalstone.results.run import Run
from evalstone.results.saved_calibrations import calibration_for
from evalstone.results.scores import refuse_weights
from evalstone.results.summary import scorer_titles
from evalstone.run.budget import StopSignal
from evalstone.run.dry_run import estimate
from evalstone.run.plan import scorer_info
from evalstone.run.planning import judge_for
from evalstone.scorers import Scorer, parse_scorers
from evalstone.scorers.base import ScorerSpec
from evalstone.stats.intervals import mean_interval, proportion_interval
from evalstone.stats.multiple_testing import holm
from evalstone.types import Sample, reaches, total_cost

PLAIN = "plain"
CHANGED = 0.1
"""Scores that differ by at most this share of the scale count as unchanged."""


@dataclass(frozen=True, kw_only=True)
class AuditOptions(JudgeOptions):
    """The perturbations and samples of an audit, and how the judge is called.

    Raises:
        ConfigError: a value has another type or is out of range.
    """

    perturbations: tuple[str, ...] = ()
    paraphrase: tuple[str, ...] = ()
    draw: Annotated[int | None, Range(1)] = None
    threshold: Annotated[float | None, Range(0, exclusive=True)] = None


async def aaudit(
    data: Samples,
    scorers: ScorerSpec | Iterable[ScorerSpec] = "faithfulness",
    *,
    judge: JudgeSpec | None = "lexical",
    perturbations: str | Iterable[str] = (),
    paraphrase: str | Iterable[str] = (),
    threshold: float | None = None,
    draw: int | None = None,
    map: ColumnMapping | None = None,
    keep_reasoning: bool = False,
    budget: float | None = None,
    cache: bool = True,
    concurrency: int = 32,
    ledger: str | Path | None = DEFAULT_LEDGER,
    progress: bool = False,
    stop: StopSignal | None = None,
) -> Audit:
    """Measure how robust a judge is on your own samples.

    Each sample is judged twice unchanged, and once after each perturbation that applies. The second unchanged call is
    neither read from the ledger nor stored in it.

    Args:
        data: as for `evaluate`.
        scorers: as for `evaluate`.
        judge: as for `evaluate`.
        perturbations: names of perturbations or of families of perturbations. Empty for all.
        paraphrase: columns of the data with paraphrases of the output. Each column is a separate perturbation.
        threshold: the lowest score that counts as yes. By default, the threshold of a calibration, or else the
            scorer's own.
        draw: how many samples to draw at random, the same ones each time. None uses all.
        map: maps sample fields to column names.
        keep_reasoning: whether a model's reasoning in front of an output is scored as a part of it.
        budget: maximum cost in US dollars.
        cache: whether to use cached answers from the ledger.
        concurrency: maximum number of judge calls in flight.
        ledger: as for `evaluate`. Calibrations are looked up next to it.
        progress: whether to show a progress bar.
        stop: a signal that stops the audit.

    Raises:
        ConfigError: an argument is invalid, or the samples have unequal weights.
        DataError: no unchanged sample has the fields that a scorer requires.
        JudgeError: no unchanged sample was scored, because the judge gave no usable answer or a scorer failed.
    """
    options = AuditOptions(
        perturbations=texts_of(perturbations),
        paraphrase=texts_of(paraphrase),
        threshold=threshold,
        draw=draw,
        concurrency=concurrency,
        cache=cache,
        budget=budget,
        map=map,
        keep_reasoning=keep_reasoning,
        progress=progress,
        stop=stop,
    )
    work = _prepare(data, scorers, judge, options)
    for scorer in work.scorers:
        if options.threshold is not None and options.threshold > scorer.scale:
            raise ConfigError(
                invalid(
                    f"the threshold of {scorer.name}",
                    f"at most {scorer.scale:g}",
                    options.threshold,
                    f"{options.threshold:g}",
                )
            )
    runs, scores = await _evaluate(work, ledger, options)
    reasoning = options.keep_reasoning if any(has_reasoning(sample) for sample in work.plain) else None
    thresholds = [_threshold(scorer, runs[0], ledger, options.threshold, reasoning) for scorer in work.scorers]
    audited = tuple(
        _audited(scorer, threshold, scores, runs[0]) for scorer, threshold in zip(work.scorers, thresholds, strict=True)
    )
    titles = scorer_titles(audited)
    effects = [
        effect(
            one,
            scores.get((PLAIN, scorer.signature), {}),
            perturbed,
            scores.get((REPEAT.name, scorer.signature), {}),
            scorer=titles[scorer.signature],
            signature=scorer.signature,
            scale=scorer.scale,
            threshold=scorer.threshold,
        )
        for scorer in audited
        for one in work.perturbations
        if (perturbed := scores.get((one.name, scorer.signature)))
    ]
    applied = {one.perturbation.name for one in effects}
    stop_reason = next((run.stop_reason for run in runs if run.stop_reason), "")
    return Audit(
        judge=runs[0].judge,
        judge_note=runs[0].judge_note,
        cautions=runs[0].cautions,
        dataset_name=work.dataset.name,
        dataset_version=work.dataset.version,
        samples=len(work.plain),
        dataset_size=len(work.dataset),
        scorers=audited,
        effects=corrected(effects),
        not_applicable=() if stop_reason else tuple(one.name for one in work.perturbations if one.name not in applied),
        n_failed=sum(run.n_failed for run in runs),
        stop_reason=stop_reason,
        cost=total_cost(run.cost for run in runs),
        keeps_reasoning=reasoning,
    )


async def estimate_audit(
    data: Samples,
    scorers: ScorerSpec | Iterable[ScorerSpec],
    *,
    judge: JudgeSpec | None = "lexical",
    ledger: str | Path | None = DEFAULT_LEDGER,
    options: AuditOptions,
) -> tuple[Estimate, ...]:
    """The judge calls that an audit would make: with perturbed samples, repeated, and with perturbed scorers."""
    work = _prepare(data, scorers, judge, options)
    cache = ledger if options.cache else None
    found = [
        await estimate(options.plan("audit", work.versions, work.scorers, work.judge), ledger=cache),
        await estimate(options.plan("audit", work.plain, work.scorers, work.judge)),
    ]
    for one in work.perturbations:
        if others := _rescorers(work.scorers, one):
            found.append(
                await estimate(options.plan("audit", work.plain, tuple(others.values()), work.judge), ledger=cache)
            )
    return tuple(found)


@dataclass(frozen=True)
class _Work:
    """The input of an audit: the drawn samples, unchanged and in all versions."""

    dataset: Dataset
    plain: Dataset
    versions: Dataset
    scorers: tuple[Scorer, ...]
    judge: Judge
    perturbations: tuple[Perturbation, ...]


def _prepare(data: Any, scorers: Any, judge: Any, options: AuditOptions) -> _Work:
    """Read and check the arguments, draw the samples and create their versions."""
    chosen = parse_scorers(scorers)
    parsed = judge_for(chosen, judge)
    own = map(from_column, dict.fromkeys(options.paraphrase))
    perturbations = (*select_perturbations(options.perturbations), *own)
    dataset = data if isinstance(data, Dataset) else load_for_scoring(data, map=options.map)
    plain = _draw(dataset, options.draw)
    refuse_weights(((sample.id, sample.weight) for sample in plain), "an audit")
    versions: list[Sample] = []
    # A change in front of reasoning that isn't scored would make that a part of the answer.
    for sample in plain if options.keep_reasoning else map(answered, plain):
        versions.append(replace(sample, id=_version_id(PLAIN, sample.id)))
        for one in perturbations:
            if one is not REPEAT and one.rescore is None and (changed := one.apply(sample)) is not None:
                versions.append(replace(changed, id=_version_id(one.name, sample.id)))
    every = Dataset(tuple(versions), plain.name, plain.columns, plain.ignored)
    return _Work(dataset, plain, every, chosen, parsed, perturbations)


def _draw(dataset: Dataset, count: int | None) -> Dataset:
    """A random sample of the dataset, in its order and the same each time; the whole dataset if it isn't larger."""
    if count is None or count >= len(dataset):
        return dataset
    indexes = set(random.Random(0).sample(range(len(dataset)), count))
    drawn = tuple(sample for index, sample in enumerate(dataset) if index in indexes)
    return Dataset(drawn, dataset.name, dataset.columns, dataset.ignored)


def _version_id(perturbation: str, sample: str) -> str:
    return f"{quote(perturbation, safe=' ')}:{sample}"


def _rescorers(scorers: Sequence[Scorer], perturbation: Perturbation) -> dict[str, Scorer]:
    """The changed scorers that the perturbation applies to, by the original signature."""
    if perturbation.rescore is None:
        return {}
    return {scorer.signature: other for scorer in scorers if (other := perturbation.rescore(scorer)) is not None}


Scores: TypeAlias = Mapping[str, float | None]
"""Scores by sample id; None if there is no score. Samples that the perturbation doesn't apply to are absent."""
AuditScores: TypeAlias = dict[tuple[str, str], dict[str, float | None]]
"""Scores by perturbation and scorer signature, then by sample id."""


async def _evaluate(work: _Work, ledger: str | Path | None, options: JudgeOptions) -> tuple[list[Run], AuditScores]:
    """Evaluate all versions, run by run, until one stops early. The repetition runs without the ledger."""
    runs = [await options.run("audit", work.versions, work.scorers, work.judge, ledger)]
    scores: AuditScores = {}
    for record in runs[0].records:
        name, _, sample = record.sample_id.partition(":")
        scores.setdefault((unquote(name), record.signature), {})[sample] = record.value
    for one in work.perturbations:
        others = _rescorers(work.scorers, one)
        if runs[-1].stop_reason or not (others or one is REPEAT):
            continue
        if options.budget is not None:
            spent = sum(run.cost or 0.0 for run in runs)
            remaining = replace(options, budget=max(0.0, options.budget - spent))
        else:
            remaining = options
        if one is REPEAT:
            run = await replace(remaining, cache=False).run("audit", work.plain, work.scorers, work.judge, None)
        else:
            run = await remaining.run("audit", work.plain, tuple(others.values()), work.judge, ledger)
        runs.append(run)
        original = {other.signature: signature for signature, other in others.items()}
        for record in run.records:
            key = (one.name, original.get(record.signature, record.signature))
            scores.setdefault(key, {})[record.sample_id] = record.value
    return runs, scores


def _threshold(
    scorer: Scorer, run: Run, ledger: str | Path | None, configured: float | None, keeps_reasoning: bool | None
) -> tuple[float, ThresholdSource]:
    """The score from which the verdict is yes, and its source. A calibration is that of the judge that was asked."""
    if configured is not None:
        return configured, "config"
    identity = run.judge_of(scorer.signature) if scorer.questions else "none"  # as in a run of this scorer alone
    calibration = None if ledger is None else calibration_for(identity, scorer.signature, ledger, keeps_reasoning)
    if calibration is None:
        return default_threshold(scorer), "default"
    if calibration.unusable is not None or calibration.threshold is None:
        return default_threshold(scorer), "unusable_calibration"
    return calibration.threshold.value, "calibration"


def _audited(
    scorer: Scorer, threshold: tuple[float, ThresholdSource], scores: Mapping[tuple[str, str], Scores], run: Run
) -> AuditedScorer:
    plain = scores.get((PLAIN, scorer.signature), {})
    values = [value for value in plain.values() if value is not None]
    mean = mean_interval(values, low=0.0, high=scorer.scale)
    pass_rate = proportion_interval(sum(reaches(value, threshold[0], scorer.scale) for value in values), len(values))
    if not values and run.stop_reason:
        raise RunAborted(f"{scorer.name} scored no sample before the run stopped: {run.stop_reason}")
    if mean is None or pass_rate is None:
        summary = run[scorer.signature]
        error = JudgeError if summary.no_answer or summary.n_failed else DataError
        raise error(f"{scorer.name} scored no sample" + (f": {summary.reasons[0][0]}" if summary.reasons else ""))
    return AuditedScorer(
        **vars(scorer_info(scorer)),
        threshold=threshold[0],
        threshold_source=threshold[1],
        n_score=len(values),
        mean=mean,
        pass_rate=pass_rate,
        noise=_noise(plain, scores.get((REPEAT.name, scorer.signature), {}), scorer.scale),
    )


def _noise(plain: Scores, repeated: Scores, scale: float) -> Noise | None:
    """How much the judge varies on its own; None if fewer than three samples have two scores."""
    from evalstone.stats.variances import variance_components  # noqa: PLC0415 - numpy

    both = [
        (was, again) for sample, was in plain.items() if was is not None and (again := repeated.get(sample)) is not None
    ]
    if len(both) < 3:
        return None
    found = variance_components(both, scale=scale)
    once, twice = (found.standard_error(len(both), repeats) for repeats in (1, 2))
    return Noise(share=found.shares.get("noise"), asked_once=once, asked_twice=twice)


def effect(
    perturbation: Perturbation,
    plain: Scores,
    perturbed: Scores,
    repeated: Scores,
    *,
    scorer: str,
    signature: str,
    scale: float,
    threshold: float,
) -> Effect:
    """The effect of a perturbation, its p-values uncorrected; samples without a plain score are left out.

    repeated: scores of the unchanged samples when the question is repeated. scorer: its title.
    """
    import numpy as np  # noqa: PLC0415 - only an audit needs it

    from evalstone.stats.comparison import compare_pairs  # noqa: PLC0415 - numpy
    from evalstone.stats.paired_differences import differences  # noqa: PLC0415 - numpy
    from evalstone.stats.paired_tests import wilcoxon  # noqa: PLC0415 - numpy

    before = {sample: value for sample in perturbed if (value := plain.get(sample)) is not None}
    pairs = [(sample, was, now) for sample, was in before.items() if (now := perturbed[sample]) is not None]
    verdicts = [(reaches(was, threshold, scale), reaches(now, threshold, scale)) for _, was, now in pairs]
    raised, lowered = verdicts.count((False, True)), verdicts.count((True, False))
    control = perturbation is REPEAT or not pairs
    shift = compare_pairs([was for _, was, _ in pairs], [now for _, _, now in pairs], scale=scale)
    return Effect(
        perturbation=perturbation,
        scorer=scorer,
        signature=signature,
        n=len(pairs),
        lost=len(before) - len(pairs),
        raised=raised,
        lowered=lowered,
        changed=sum(not reaches(abs(now - was), CHANGED * scale, scale, lower_is_better=True) for _, was, now in pairs),
        flips=proportion_interval(raised + lowered, len(pairs)),
        shift=shift and shift.difference,
        shift_p=None if control else wilcoxon(differences(*np.array([pair[1:] for pair in pairs]).T)).p_value,
        flips_p=None if control else _flips_p(pairs, repeated, lambda value: reaches(value, threshold, scale)),
    )


def _flips_p(
    pairs: Sequence[tuple[str, float, float]], repeated: Scores, verdict: Callable[[float], bool]
) -> float | None:
    """The p-value of flipping as often as when the question is repeated; None where nothing was repeated."""
    from evalstone.stats.paired_tests import mcnemar  # noqa: PLC0415 - numpy, which only an audit needs

    only_perturbed = only_repeated = both = 0
    for sample, was, now in pairs:
        if (again := repeated.get(sample)) is None:
            continue
        flipped, chance = verdict(was) != verdict(now), verdict(was) != verdict(again)
        only_perturbed += flipped and not chance
        only_repeated += chance and not flipped
        both += 1
    if not both:
        return None
    return mcnemar(only_perturbed, only_repeated).p_value if only_perturbed > only_repeated else 1.0


def corrected(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """The effects with all their p-values corrected together by Holm."""
    p_values = iter(holm([p for one in effects for p in (one.shift_p, one.flips_p) if p is not None]))
    return tuple(
        replace(
            one,
            shift_p=None if one.shift_p is None else next(p_values),
            flips_p=None if one.flips_p is None else next(p_values),
        )
        for one in effects
    )


audit = sync.blocking(aaudit)
