"""Calibrate a judge: compare its scores of labeled samples with the labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from evalstone._core import sync
from evalstone._core.declarations import ANYTHING, Range, check_flags, check_settings
from evalstone._core.front_ends import Setting
from evalstone._core.json import content_hash
from evalstone._core.sizes import Concurrency
from evalstone.datasets import Dataset, Samples
from evalstone.datasets.columns import ColumnMapping
from evalstone.errors import ConfigError, DataError, JudgeError, RunAborted, invalid
from evalstone.judge_quality.cascade_threshold import certify, check_risk, keeping_all, name_before_choice
from evalstone.judge_quality.member_votes import scores_by_votes
from evalstone.judges.aligned import alignments_in, is_example
from evalstone.judges.base import Judge, JudgeSpec
from evalstone.judges.cascade import Cascade
from evalstone.judges.composite import Panel
from evalstone.ledger.base import DEFAULT_LEDGER, Key
from evalstone.report.progress import progress_bar
from evalstone.results.calibration import Calibration, Calibrator, LabeledScore, check_names, fit
from evalstone.results.estimate import Estimate, combined
from evalstone.results.labels import LabeledSamples, LabelReader, read_labels
from evalstone.results.run import Run
from evalstone.results.saved_calibrations import save_calibration
from evalstone.results.scores import refuse_weights
from evalstone.results.slices import SliceBy, field_name, keys_of_samples, slice_fields
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.call_prices import price_of_samples
from evalstone.run.dry_run import estimate
from evalstone.run.execute import execute
from evalstone.run.plan import Plan
from evalstone.run.planning import judge_for
from evalstone.run.same_family import answered_by_family, families_of
from evalstone.scorers import Scorer, parse_scorers
from evalstone.scorers.base import ScorerSpec
from evalstone.stats.classification import MeasureName
from evalstone.stats.selective_risk import SelectiveRisk
from evalstone.types import RunKind, sample_hash


@dataclass(frozen=True, kw_only=True)
class JudgeOptions:
    """How the judge is called in a calibration or an audit. The options are those of `evaluate`.

    Raises:
        ConfigError: a value has another type or is out of range.
    """

    concurrency: Concurrency = 32
    """The maximum number of concurrent judge calls."""
    cache: bool = True
    """Whether to use cached answers from the ledger."""
    budget: Annotated[float | None, Range(0)] = None
    """Cap on the cost, in US dollars."""
    map: Annotated[ColumnMapping | None, ANYTHING] = None
    """Sample field to column."""
    keep_reasoning: bool = False
    """Whether a model's reasoning in front of an output is scored as a part of it."""
    progress: bool = False
    """Show a progress bar."""
    stop: StopSignal | None = None
    """A signal that stops the run."""

    def __post_init__(self) -> None:
        check_settings(self)

    def plan(self, kind: RunKind, dataset: Dataset, scorers: Sequence[Scorer], judge: Any) -> Plan:
        """The plan of a run of these scorers on these samples."""
        return Plan(dataset, tuple(scorers), judge_for(scorers, judge), kind, keep_reasoning=self.keep_reasoning)

    async def run(
        self,
        kind: RunKind,
        dataset: Dataset,
        scorers: Sequence[Scorer],
        judge: Any,
        ledger: str | Path | None,
        budget: Budget | None = None,
    ) -> Run:
        """Run these scorers on these samples with these options. budget: One that several runs share."""
        plan = self.plan(kind, dataset, scorers, judge)
        with progress_bar(plan.size) if self.progress else nullcontext() as progress:
            return await execute(
                plan,
                ledger=ledger,
                concurrency=self.concurrency,
                cache=self.cache,
                budget=self.budget if budget is None else budget,
                stop=self.stop,
                progress=progress,
            )


@dataclass(frozen=True, kw_only=True)
class LabelConfig:
    """How labels are read and what is fitted to them.

    Raises:
        ConfigError: a value has another type or is out of range.
    """

    label: tuple[str, ...] = ()
    """The label columns, one per annotator. By default, columns named label, human_label and similar."""
    positive: tuple[str, ...] = ()
    """Labels that mean yes, if they aren't known words. Every other label then means no."""
    label_range: tuple[float, float] | None = None
    """The lowest and highest number that annotators could give."""
    label_threshold: Annotated[float | None, Range(0, exclusive=True)] = None
    """Labels of at least this value count as yes, on the scorer's scale. By default, half the scale."""
    objective: Annotated[MeasureName, ANYTHING] = "balanced_accuracy"
    """The metric that the fitted threshold maximizes."""
    calibrator: Calibrator = "auto"
    """The mapping to probabilities: "platt", "isotonic", or "auto" for the one that is better on held-out samples."""

    def __post_init__(self) -> None:
        check_settings(self)

    def read(
        self, labels: Samples | Mapping[str, Any], scorer: Scorer, *, data: Samples | None, map: ColumnMapping | None
    ) -> tuple[LabeledSamples, float]:
        """The labels on the scorer's scale, and the lowest of them that counts as yes.

        Raises:
            DataError: The labels can't be read.
            ConfigError: The threshold is above the scale.
        """
        threshold = scorer.scale / 2 if self.label_threshold is None else self.label_threshold
        if threshold > scorer.scale:
            raise ConfigError(
                invalid(Setting("label_threshold"), f"at most {scorer.scale:g}", threshold, f"{threshold:g}")
            )
        reader = LabelReader(scorer.scale, scorer.lower_is_better, self.positive, self.label_range)
        return read_labels(labels, reader, data=data, columns=self.label, map=map), threshold


def texts_of(value: str | Iterable[str]) -> tuple[str, ...]:
    """One text or several."""
    return (value,) if isinstance(value, str) else tuple(value)


async def acalibrate(
    labels: Samples | Mapping[str, Any],
    scorer: ScorerSpec = "faithfulness",
    *,
    data: Samples | None = None,
    judge: JudgeSpec | None = "lexical",
    label: str | Iterable[str] = (),
    positive: str | Iterable[str] = (),
    label_range: tuple[float, float] | None = None,
    label_threshold: float | None = None,
    objective: MeasureName = "balanced_accuracy",
    calibrator: Calibrator = "auto",
    slice_by: SliceBy | Iterable[SliceBy] | None = None,
    map: ColumnMapping | None = None,
    keep_reasoning: bool = False,
    budget: float | None = None,
    cache: bool = True,
    concurrency: int = 32,
    ledger: str | Path | None = DEFAULT_LEDGER,
    progress: bool = False,
    stop: StopSignal | None = None,
    per_judge: bool = False,
    risk: float | None = None,
) -> Calibration:
    """Compare a judge with human labels, and store the calibration next to the ledger.

    Samples without a label are not judged. A calibration is not stored if its run stopped early. A calibration with a
    `flaw` doesn't replace one without.

    Args:
        labels: samples with one or more label columns (anything that `load` reads). With `data`, the IDs and labels of
            its samples: a path, a table, a list of objects, or a mapping or pandas Series from ID to label. A label is
            a number in the scorer's range, or a word such as yes, no, supported, unsupported.
        scorer: one scorer, as for `evaluate`.
        data: the samples that the labels belong to.
        judge: as for `evaluate`.
        label: the columns of labels, one per annotator. By default, columns named label, human_label and similar.
        positive: labels that mean yes, if they aren't known words. Every other label then means no.
        label_range: the lowest and highest number that annotators could give.
        label_threshold: labels of at least this value count as yes, on the scorer's scale. By default, half the scale.
        objective: the metric that the fitted threshold maximizes.
        calibrator: the mapping to probabilities: "platt", "isotonic", or "auto" for the one that is better on held-out
            samples.
        slice_by: metadata fields, or functions of a sample. The agreement with the labels is also measured by slice.
        map: maps sample fields to column names.
        keep_reasoning: whether a model's reasoning in front of an output is scored as a part of it.
        budget: maximum cost in US dollars.
        cache: whether to use cached answers from the ledger.
        concurrency: maximum number of judge calls in flight.
        ledger: as for `evaluate`. None stores nothing.
        progress: whether to show a progress bar.
        stop: a signal that stops the calibration.
        per_judge: whether to calibrate each member of a composite judge as well, and to compare the judge with them:
            `per_judge` and `members` of the result. They are left out if the calibration of a member is stopped.
        risk: chooses the threshold of a cascade: the lowest that is shown to judge at most this share of the samples
            wrongly that its primary decides alone, with 95% confidence. In (0, 1). The calibration is that of the
            cascade with this threshold; `risk` of the result says what was shown. Implies `per_judge`.

    Raises:
        DataError: labels can't be read, or no labeled sample has the fields that the scorer requires.
        JudgeError: no labeled sample was scored, because the judge gave no usable answer or the scorer failed.
        ConfigError: an argument is invalid, `per_judge` or `risk` is combined with a budget, `risk` is given for
            another judge than a cascade, or no threshold is shown to keep to it, no labeled sample has a field of
            `slice_by`, or the labeled samples have unequal weights.
    """
    config = LabelConfig(
        label=texts_of(label),
        positive=texts_of(positive),
        label_range=label_range,
        label_threshold=label_threshold,
        objective=objective,
        calibrator=calibrator,
    )
    options = JudgeOptions(
        concurrency=concurrency,
        cache=cache,
        budget=budget,
        map=map,
        keep_reasoning=keep_reasoning,
        progress=progress,
        stop=stop,
    )
    work = _prepare(labels, scorer, data, config, options, slice_by, per_judge=per_judge, risk=risk)
    labeled, chosen, yes_from, keys = work.labeled, work.scorer, work.label_threshold, work.keys
    files = _file(labels), _file(data)

    async def votes_of(one: Judge, run: Run, names: Sequence[str]) -> dict[str, tuple[float | None, ...]]:
        """By member of a panel, its scores of the samples with these IDs, by its votes."""
        if not isinstance(one, Panel):
            return {}
        free = replace(options, budget=None, progress=False, stop=None)
        again = partial(free.run, "calibration", labeled.dataset, [chosen], ledger=None)
        scores = await scores_by_votes(one, chosen, run.records, again)
        return {member: tuple(of.get(name) for name in names) for member, of in scores.items()}

    def samples_aligned_with(one: Judge) -> set[str]:
        """IDs of the samples whose labels a judge was aligned with."""
        hashes = {each for found in alignments_in(one) for each in found.labeled}
        return {sample.id for sample in labeled.dataset if sample_hash(sample) in hashes} if hashes else set()

    async def calibrated(one: Judge, shown: SelectiveRisk | None = None) -> Calibration:
        run = await options.run("calibration", labeled.dataset, [chosen], one, ledger)
        unfitted = _unfitted(run, chosen, labeled, yes_from, files, keys, in_ledger=ledger is not None)
        cost, seconds = await price_of_samples(run.records, (one, *chosen.judges), ledger)
        own = answered_by_family(families_of(one), labeled.dataset)
        own_family = sum(pair.sample_id in own for pair in unfitted.pairs)
        votes = await votes_of(one, run, [pair.sample_id for pair in unfitted.pairs])
        unfitted = replace(unfitted, cost=cost, seconds=seconds, n_same_family=own_family, votes=votes, risk=shown)
        used = samples_aligned_with(one)
        unfitted = replace(unfitted, n_aligned_with=sum(pair.sample_id in used for pair in unfitted.pairs))
        calibration = fit(unfitted, objective=config.objective, calibrator=config.calibrator)
        if ledger is not None and run.complete:
            save_calibration(calibration, ledger)
        return calibration

    parsed = judge_for((chosen,), judge)
    check_judges(chosen, parsed, *_alone(parsed, per_judge=per_judge, risk=risk))
    shown = None
    if risk is not None:
        cascade = _cascade(parsed)
        keeping = keeping_all(cascade)
        run = await options.run("calibration", labeled.dataset, [chosen], keeping, ledger)
        kept = _unfitted(run, chosen, labeled, yes_from, files, keys, in_ledger=ledger is not None)
        if run.stop_reason:
            return kept
        truths = {pair.sample_id: pair.truth(kept.label_threshold, kept.scale) for pair in kept.pairs}
        says = {pair.sample_id: kept.says_yes(pair.value) for pair in kept.pairs}
        right = {name: says[name] == truth for name, truth in truths.items() if truth is not None}
        shown = certify(keeping, run.records, right, labeled.clusters, risk, samples_aligned_with(keeping.primary))
        parsed = replace(cascade, threshold=shown.threshold)
    calibration = await calibrated(parsed, shown)
    if not per_judge and shown is None:
        return calibration
    try:
        alone = [await calibrated(member) for member in _alone(parsed, per_judge=per_judge, risk=risk)]
    except RunAborted:
        if stop is None or not stop.requested:
            raise
        return calibration
    if stop is not None and stop.requested and any(each.stop_reason for each in alone):
        return calibration
    return replace(calibration, per_judge=tuple(alone))


async def estimate_calibration(
    labels: Samples | Mapping[str, Any],
    scorer: ScorerSpec,
    *,
    data: Samples | None,
    judges: Sequence[JudgeSpec],
    config: LabelConfig,
    options: JudgeOptions,
    slice_by: SliceBy | Iterable[SliceBy] | None,
    per_judge: bool,
    risk: float | None,
    ledger: str | Path | None,
) -> Estimate:
    """The judge calls that the calibrations of these judges make at most, without making any.

    Raises:
        DataError: As for `acalibrate`.
        ConfigError: As for `acalibrate`.
    """
    work = _prepare(labels, scorer, data, config, options, slice_by, per_judge=per_judge, risk=risk)
    found: list[Estimate] = []
    known: set[Key] | None = set() if options.cache and ledger is not None else None
    for each in judges:
        parsed = judge_for((work.scorer,), each)
        runs: list[tuple[Judge, str]] = [(parsed, "")]
        if risk is not None:
            cascade = _cascade(parsed)
            # Without answers to reuse, the cascade asks all again with the threshold that was chosen.
            runs = [(keeping_all(cascade), name_before_choice(cascade))] * (2 if known is None else 1)
        runs += [(one, "") for one in _alone(parsed, per_judge=per_judge, risk=risk)]
        for one, name in runs:
            plan = options.plan("calibration", work.labeled.dataset, [work.scorer], one)
            calls = await estimate(plan, ledger=ledger if options.cache else None, known=known)
            found.append(replace(calls, judge=name or calls.judge))
    return combined(found)


@dataclass(frozen=True)
class _Work:
    """What is calibrated with which labels."""

    labeled: LabeledSamples
    label_threshold: float
    """Labels of at least this value count as yes."""
    scorer: Scorer
    keys: Mapping[str, Mapping[str, str]]
    """By slice field, the key of each sample."""


def _prepare(
    labels: Samples | Mapping[str, Any],
    scorer: ScorerSpec,
    data: Samples | None,
    config: LabelConfig,
    options: JudgeOptions,
    slice_by: SliceBy | Iterable[SliceBy] | None,
    *,
    per_judge: bool,
    risk: float | None,
) -> _Work:
    """Check the arguments and read the labels."""
    check_flags(per_judge=per_judge)
    if risk is not None:
        check_risk(risk)
    if (per_judge or risk is not None) and options.budget is not None:
        both = (Setting("risk" if risk is not None else "per_judge"), " can't be combined with ", Setting("budget"))
        raise ConfigError(both, "; calibrate the judges one by one")
    scorers = parse_scorers(scorer)
    if len(scorers) != 1:
        raise ConfigError(f"a calibration needs one scorer, not {len(scorers)}")
    check_names(config.objective, config.calibrator)
    labeled, yes_from = config.read(labels, scorers[0], data=data, map=options.map)
    refuse_weights(((sample.id, sample.weight) for sample in labeled.dataset), "a calibration")
    keys = {field_name(field): keys_of_samples(labeled.dataset, field) for field in slice_fields(slice_by)}
    return _Work(labeled, yes_from, scorers[0], keys)


def check_judges(scorer: Scorer, *judges: Judge) -> None:
    """Raise ConfigError for a judge that can't answer all questions of a scorer."""
    for each in judges if scorer.asks_shared_judge else ():
        each.check_questions(scorer.name, scorer.questions_to(None))


def _alone(judge: Judge, *, per_judge: bool, risk: float | None) -> Sequence[Judge]:
    """The members of a judge that are calibrated beside it."""
    return judge.members if per_judge or risk is not None else ()


def _cascade(judge: Judge) -> Cascade:
    """The judge whose threshold a risk chooses. Raises ConfigError for another than a cascade."""
    if not isinstance(judge, Cascade):
        raise ConfigError(Setting("risk"), f" chooses the threshold of a cascade; {judge.identity} is none")
    return judge


def default_threshold(scorer: Scorer) -> float:
    """The lowest score that counts as yes by default: the scorer's own threshold, or else half the scale."""
    return getattr(scorer, "threshold", 0.5) * scorer.scale


def _file(labels: Any) -> Path | None:
    """The file of labels; None for labels in memory and on standard input."""
    if not isinstance(labels, str | os.PathLike) or labels == "-":
        return None
    return Path(cast("str | os.PathLike[str]", labels)).resolve()


def _unfitted(
    run: Run,
    scorer: Scorer,
    labeled: LabeledSamples,
    label_threshold: float,
    files: tuple[Path | None, Path | None],
    keys: Mapping[str, Mapping[str, str]],
    *,
    in_ledger: bool,
) -> Calibration:
    """The pairs of score and labels.

    files: those of the labels and of the samples; None in memory. keys: by slice field, the key of each sample.
    in_ledger: whether the run can be read later.
    """
    summary = run.summary[0]
    records = [record for record in run.records if record.value is not None]
    examples = {record.sample_id for record in records if is_example(record)}
    scored = [
        (each.sample_id, each.value) for each in records if each.value is not None and each.sample_id not in examples
    ]
    strata, names = labeled.strata, [name for name, _ in scored]
    weights = [1.0] * len(scored) if strata is None else strata.weights(names)
    pairs = tuple(
        LabeledScore(
            sample_id=name,
            value=value,
            labels=labeled.labels[name],
            slices={field: key_of[name] for field, key_of in keys.items()},
            weight=weight,
            cluster=labeled.clusters[name],
        )
        for (name, value), weight in zip(scored, weights, strict=True)
    )
    if not pairs and run.stop_reason:
        raise RunAborted(f"no labeled sample was scored before the run stopped: {run.stop_reason}")
    if not pairs and examples:
        raise DataError(f"all {len(examples)} labeled samples with a score are examples that the judge is shown")
    if not pairs:
        reason = f"; {summary.reasons[0][0]}" if summary.reasons else ""
        error = JudgeError if summary.no_answer or summary.n_failed else DataError
        raise error(f"no labeled sample was scored: {summary.n_skipped} skipped, {summary.n_failed} failed{reason}")
    kept_reasoning = ["keep_reasoning"] if run.keeps_reasoning else []
    return Calibration(
        judge=run.judge_of(scorer.signature),
        scorer=scorer.name,
        signature=scorer.signature,
        scale=scorer.scale,
        lower_is_better=scorer.lower_is_better,
        default_threshold=default_threshold(scorer),
        label_threshold=label_threshold,
        dataset_name=run.dataset_name,
        dataset_version=run.dataset_version,
        pairs=pairs,
        n_unlabeled=labeled.n_unlabeled,
        n_skipped=summary.n_skipped,
        n_failed=summary.n_failed,
        n_examples=len(examples),
        n_by_score=sum(labeled.chosen.get(pair.sample_id) in ("uncertain", "stratified") for pair in pairs),
        n_by_hand=sum(labeled.chosen.get(pair.sample_id) == "hand" for pair in pairs),
        n_shared=sum(labeled.chosen.get(pair.sample_id) == "shared" for pair in pairs),
        run_size=None if strata is None else strata.run_size,
        stop_reason=run.stop_reason,
        columns=labeled.columns,
        words=labeled.words,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        labels="labels in memory" if files[0] is None else files[0].name,
        labels_id=content_hash(
            [str(files[0] or labeled.dataset.version), str(files[1]), labeled.columns, *kept_reasoning]
        ),
        run=run.id if in_ledger else "",
        keeps_reasoning=run.keeps_reasoning,
    )


calibrate = sync.blocking(acalibrate)
