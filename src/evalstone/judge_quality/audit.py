"""Auditing a judge: its scores of samples, and of the same samples after small changes that it should ignore."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote

from pydantic import Field

from evalstone._core import sync
from evalstone._core.validation import check_fields
from evalstone.api import DEFAULT_LEDGER
from evalstone.datasets import Dataset, load
from evalstone.datasets.demo import DEMO_DATA
from evalstone.errors import ConfigError, DataError, RunAborted
from evalstone.judge_quality.calibrate import JudgeOptions, default_threshold
from evalstone.judge_quality.effects import Effect, Scores, corrected, effect
from evalstone.judge_quality.perturbations import REPEAT, Perturbation, from_column, select_perturbations
from evalstone.judges import Judge, parse_judge
from evalstone.results.calibration import calibration_for
from evalstone.results.run import Run
from evalstone.run.dry_run import Estimate, estimate
from evalstone.run.plan import Plan
from evalstone.scorers import Scorer, parse_scorers
from evalstone.types import Sample, total_cost

AUDIT_FORMAT = 1
PLAIN = "plain"


@dataclass(frozen=True, kw_only=True)
class AuditConfig:
    """What an audit tries.

    Raises:
        ConfigError: a value has another type or is out of range.
    """

    perturbations: tuple[str, ...] = ()
    """Names of perturbations, or of their families; all without any."""
    paraphrases: tuple[str, ...] = ()
    """Columns of the data with paraphrases of the output, each a perturbation of its own."""
    samples: Annotated[int, Field(gt=0)] | None = None
    """How many samples to draw at random; all without a number."""
    threshold: Annotated[float, Field(gt=0)] | None = None
    """The score from which the verdict is yes; by default that of a calibration, else the scorer's own."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class AuditedScorer:
    """One scorer in an audit."""

    name: str
    """The scorer's name."""
    signature: str
    """The scorer's signature."""
    scale: float
    """Scores lie in [0, scale]."""
    lower_is_better: bool
    """Whether a lower score is better."""
    threshold: float
    """The score from which the verdict is yes."""
    threshold_source: Literal["config", "calibration", "default"]
    """Where the threshold comes from."""
    scored: int
    """Unchanged samples with a score."""
    mean: float
    """Their mean score."""
    pass_rate: float
    """The share of them with verdict yes."""


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What affects a judge."""

    judge: str
    """The judge's identity."""
    judge_note: str
    """What to know about the judge, or ""."""
    dataset_name: str
    """The name of the dataset."""
    version: str
    """The version of the dataset."""
    samples: int
    """How many samples were drawn."""
    dataset_size: int
    """How many samples the dataset has."""
    scorers: tuple[AuditedScorer, ...]
    """The scorers."""
    effects: tuple[Effect, ...]
    """One effect for each scorer and applicable perturbation."""
    not_applicable: tuple[str, ...]
    """Perturbations that apply to no sample or scorer."""
    failed: int = 0
    """How many outcomes failed."""
    stop_reason: str = ""
    """Why the audit stopped early; "" when it completed."""
    cost: float | None = 0.0
    """US dollars paid; None when a price is unknown."""

    def __getitem__(self, perturbation: str) -> Effect:
        """The effect of a perturbation on the first scorer.

        Raises:
            ConfigError: it was not applied.
        """
        for one in self.effects:
            if one.perturbation.name == perturbation:
                return one
        applied = ", ".join(one.perturbation.name for one in self.effects)
        raise ConfigError(f"the perturbation {perturbation!r} was not applied; applied: {applied}")

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain data, as `evalstone audit --json` prints it."""
        return {
            "format": AUDIT_FORMAT,
            **vars(self),
            "scorers": [dict(vars(one)) for one in self.scorers],
            "effects": [one.to_dict() for one in self.effects],
        }


async def aaudit(
    data: Any = DEMO_DATA,
    scorers: Any = "faithfulness",
    *,
    judge: Any = "lexical",
    ledger: str | Path | None = DEFAULT_LEDGER,
    config: AuditConfig | None = None,
    options: JudgeOptions | None = None,
) -> Audit:
    """Measure what affects a judge, on your own samples.

    Each sample is judged unchanged, once more unchanged, and after each perturbation that applies. The repetition is
    neither read from the ledger nor stored there.

    Args:
        data: as for `evaluate`; by default the bundled answers.
        scorers: as for `evaluate`.
        judge: as for `evaluate`.
        ledger: as for `evaluate`; calibrations are looked up beside it.
        config: what is tried.
        options: how the judge is called.

    Raises:
        ConfigError: an argument is invalid.
        DataError: no unchanged sample has a score.
    """
    config, options = config or AuditConfig(), options or JudgeOptions()
    work = _prepare(data, scorers, judge, config, options)
    thresholds = [_threshold(scorer, work.judge, ledger, config.threshold) for scorer in work.scorers]
    runs, scores = await _evaluate(work, ledger, options)
    audited = tuple(
        _audited(scorer, threshold, scores, runs[0]) for scorer, threshold in zip(work.scorers, thresholds, strict=True)
    )
    effects = [
        effect(
            one,
            scores.get((PLAIN, scorer.signature), {}),
            perturbed,
            scores.get((REPEAT.name, scorer.signature), {}),
            scorer=scorer.signature,
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
        dataset_name=work.dataset.name,
        version=work.dataset.version,
        samples=len(work.plain),
        dataset_size=len(work.dataset),
        scorers=audited,
        effects=corrected(effects),
        not_applicable=() if stop_reason else tuple(one.name for one in work.perturbations if one.name not in applied),
        failed=sum(run.failed for run in runs),
        stop_reason=stop_reason,
        cost=total_cost(run.cost for run in runs),
    )


async def estimate_audit(
    data: Any,
    scorers: Any,
    *,
    judge: Any = "lexical",
    ledger: str | Path | None = DEFAULT_LEDGER,
    config: AuditConfig | None = None,
    options: JudgeOptions | None = None,
) -> tuple[Estimate, ...]:
    """The judge calls an audit would make: with changed samples, repeated, and with changed scorers.

    Arguments as for `aaudit`.
    """
    work = _prepare(data, scorers, judge, config or AuditConfig(), options or JudgeOptions())
    plans = [
        (Plan(work.versions, work.scorers, work.judge), ledger),
        (Plan(work.plain, work.scorers, work.judge), None),
    ]
    for one in work.perturbations:
        if others := _rescorers(work.scorers, one):
            plans.append((Plan(work.plain, tuple(others.values()), work.judge), ledger))
    return tuple([await estimate(plan, ledger=place) for plan, place in plans])


@dataclass(frozen=True)
class _Work:
    """What the judge is asked about: the drawn samples, unchanged and in all versions."""

    dataset: Dataset
    plain: Dataset
    versions: Dataset
    scorers: tuple[Scorer, ...]
    judge: Judge
    perturbations: tuple[Perturbation, ...]


def _prepare(data: Any, scorers: Any, judge: Any, config: AuditConfig, options: JudgeOptions) -> _Work:
    """Read and check the arguments, draw the samples and make their versions."""
    parsed, chosen = parse_judge(judge), parse_scorers(scorers)
    own = map(from_column, dict.fromkeys(config.paraphrases))
    perturbations = (*select_perturbations(config.perturbations), *own)
    dataset = data if isinstance(data, Dataset) else load(data, mapping=options.mapping)
    plain = _draw(dataset, config.samples)
    versions: list[Sample] = []
    for sample in plain:
        versions.append(replace(sample, id=_version_id(PLAIN, sample.id)))
        for one in perturbations:
            if one is not REPEAT and one.rescore is None and (changed := one.apply(sample)) is not None:
                versions.append(replace(changed, id=_version_id(one.name, sample.id)))
    every = Dataset(tuple(versions), plain.name, plain.columns, plain.ignored)
    return _Work(dataset, plain, every, chosen, parsed, perturbations)


def _draw(dataset: Dataset, count: int | None) -> Dataset:
    """A random sample of the dataset in its order, the same one each time; all of it where it has fewer."""
    if count is None or count >= len(dataset):
        return dataset
    indexes = set(random.Random(0).sample(range(len(dataset)), count))
    drawn = tuple(sample for index, sample in enumerate(dataset) if index in indexes)
    return Dataset(drawn, dataset.name, dataset.columns, dataset.ignored)


def _version_id(perturbation: str, sample: str) -> str:
    return f"{quote(perturbation, safe=' ')}:{sample}"


def _rescorers(scorers: Sequence[Scorer], perturbation: Perturbation) -> dict[str, Scorer]:
    """By signature, the changed scorers, of those that the perturbation applies to."""
    if perturbation.rescore is None:
        return {}
    return {scorer.signature: other for scorer in scorers if (other := perturbation.rescore(scorer)) is not None}


AuditScores = dict[tuple[str, str], dict[str, float | None]]
"""Scores by perturbation and scorer signature, then by sample id."""


async def _evaluate(work: _Work, ledger: str | Path | None, options: JudgeOptions) -> tuple[list[Run], AuditScores]:
    """Evaluate all versions, run by run, until one stops early; the repetition goes without the ledger."""
    runs = [await options.run("audit", work.versions, work.scorers, work.judge, ledger)]
    scores: AuditScores = {}
    for record in runs[0].records:
        name, _, sample = record.sample.partition(":")
        scores.setdefault((unquote(name), record.scorer), {})[sample] = record.value
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
            run = await replace(remaining, use_cache=False).run("audit", work.plain, work.scorers, work.judge, None)
        else:
            run = await remaining.run("audit", work.plain, tuple(others.values()), work.judge, ledger)
        runs.append(run)
        original = {other.signature: signature for signature, other in others.items()}
        for record in run.records:
            key = (one.name, original.get(record.scorer, record.scorer))
            scores.setdefault(key, {})[record.sample] = record.value
    return runs, scores


Source = Literal["config", "calibration", "default"]


def _threshold(
    scorer: Scorer, judge: Judge, ledger: str | Path | None, configured: float | None
) -> tuple[float, Source]:
    """The score from which the verdict is yes, and where it comes from."""
    if configured is not None:
        if configured > scorer.scale:
            raise ConfigError(f"the threshold of {scorer.name} must be at most {scorer.scale:g}, not {configured:g}")
        return configured, "config"
    identity = judge.identity if scorer.questions else "none"  # as in a run of a scorer that needs no judge
    calibration = None if ledger is None else calibration_for(identity, scorer.signature, ledger)
    if calibration is not None and calibration.threshold is not None:
        return calibration.threshold.value, "calibration"
    return default_threshold(scorer), "default"


def _audited(
    scorer: Scorer, threshold: tuple[float, Source], scores: Mapping[tuple[str, str], Scores], run: Run
) -> AuditedScorer:
    plain = scores.get((PLAIN, scorer.signature), {})
    values = [value for value in plain.values() if value is not None]
    if not values and run.stop_reason:
        raise RunAborted(f"{scorer.name} scored no sample before the run stopped: {run.stop_reason}")
    if not values:
        reasons = run[scorer.signature].reasons
        raise DataError(f"{scorer.name} scored no sample" + (f": {reasons[0][0]}" if reasons else ""))
    return AuditedScorer(
        name=scorer.name,
        signature=scorer.signature,
        scale=scorer.scale,
        lower_is_better=scorer.lower_is_better,
        threshold=threshold[0],
        threshold_source=threshold[1],
        scored=len(values),
        mean=sum(values) / len(values),
        pass_rate=sum(value >= threshold[0] for value in values) / len(values),
    )


audit = sync.blocking(aaudit)
