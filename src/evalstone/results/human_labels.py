"""Human labels of a run: corrections of its mean and pass rate for the judge's errors, and which samples to label.

There are two estimators. PPI++ uses labels of this run's samples. Rogan-Gladen uses the judge's sensitivity and
specificity from a calibration. For PPI++, samples are stratified by the judge's score. Labeled samples must be chosen
at random within each stratum, as by `select_for_labeling`, or at random overall. A label is a human score on the
scorer's scale; words such as yes, no, supported or wrong are read as in `evalstone calibrate`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from evalstone._core.display import count
from evalstone.errors import ConfigError
from evalstone.report.notes import clause_of
from evalstone.results.calibration import Calibration
from evalstone.results.corrections import LABELS_OF_SLICE, CorrectedSlice, PPIResult, RoganGladenResult
from evalstone.results.labels import LabelReader, read_labels
from evalstone.results.run import Run, check_runs
from evalstone.results.scores import Scores, refuse_weights, scores_of
from evalstone.results.slices import ABSENT, SliceBy, field_name, slice_fields, slice_keys, slice_order
from evalstone.results.summary import ScorerInfo
from evalstone.types import Note, Sample, note, reaches

if TYPE_CHECKING:
    from evalstone.results.paired_scores import KnownPairs
    from evalstone.results.pairing import Pairing

CORRECTION = "a correction by human labels"
Labels: TypeAlias = Mapping[str, float]
"""Sample id to human score in [0, scale], as `load_labels` returns them."""
LabelsSpec: TypeAlias = "Labels | str | os.PathLike[str]"
"""The labels of a scorer: what `load_labels` returns, or the path of what it reads."""


def load_labels(run: Run, scorer: str, source: Any) -> Labels:
    """The human score of each labeled sample of a run, by sample id. With several annotators, it is their mean.

    Args:
        run: the run.
        scorer: title, signature or name of the scorer.
        source: rows with an id and a label: a CSV or JSON Lines file, a table, a list of objects, or a mapping or
            pandas Series from id to label.

    Raises:
        DataError: a label can't be read (the message names file, line and column), or no sample of the run has the id.
    """
    check_runs(run=run)
    info = run[scorer].info
    samples = [Sample(id=name) for name in dict.fromkeys(entry.key for entry in run.columns.entries())]
    reader = LabelReader(info.scale, info.lower_is_better, has_options=False)
    labeled = read_labels(source, reader, data=samples)
    means: dict[str, float] = {}
    for name, labels in labeled.labels.items():
        numbers = [label for label in labels if label is not None]
        means[name] = sum(numbers) / len(numbers)
    return means


def labels_of(run: Run, scorer: str, labels: LabelsSpec) -> Labels:
    """The labels of a scorer, read if they are a path. Raises like `load_labels`."""
    return load_labels(run, scorer, labels) if isinstance(labels, str | os.PathLike) else labels


def corrected(
    run: Run,
    scorer: str,
    labels: LabelsSpec,
    *,
    slice_by: SliceBy | Iterable[SliceBy] | None = None,
    confidence: float = 0.95,
) -> PPIResult:
    """A scorer's mean over a run, corrected for the judge's errors with human labels of some samples (PPI++).

    Args:
        run: the run.
        scorer: title, signature or name of the scorer.
        labels: human scores of some samples: a path, or what `load_labels` returns.
        slice_by: metadata fields, or functions of a sample. The means of their slices are corrected as well.
        confidence: the confidence level of the intervals.

    Raises:
        ConfigError: no labeled sample has a score, samples have unequal weights, no sample has the field, or the
            samples are not available.
    """
    from evalstone.stats.ppi import ppi_mean  # noqa: PLC0415 - numpy

    check_runs(run=run)
    info = run[scorer].info
    labels = labels_of(run, scorer, labels)
    columns = labeled_scores(run, info, labels)
    result = ppi_mean(**columns, scale=info.scale, confidence=confidence)
    if result is None:
        raise ConfigError(f"{info.name} has no score to correct")
    unscored = len(labels) - result.labeled
    title = run.titles[info.signature]
    notes = (note("labels_unscored", "caution", title, labels=unscored),) if unscored else ()
    slices = tuple(_corrected_slices(run, info, columns, slice_fields(slice_by), confidence))
    return PPIResult(title=title, info=info, result=result, notes=notes, slices=slices)


def _corrected_slices(
    run: Run, info: ScorerInfo, columns: Mapping[str, Any], fields: Sequence[SliceBy], confidence: float
) -> Iterator[CorrectedSlice]:
    from evalstone.stats.ppi import ppi_mean  # noqa: PLC0415 - numpy

    names = scores_of(run, info.signature).names
    for field in fields:
        keys = slice_keys(run, field)
        members: dict[str, list[int]] = {}
        for place, name in enumerate(names):
            members.setdefault(keys.get(name, ABSENT), []).append(place)
        for key in sorted(members, key=slice_order):
            part: dict[str, Any] = {
                name: None if column is None else [column[place] for place in members[key]]
                for name, column in columns.items()
            }
            result = ppi_mean(**part, scale=info.scale, confidence=confidence, least=LABELS_OF_SLICE)
            if result is not None:
                yield CorrectedSlice(field=field_name(field), key=key, result=result)


def labeled_scores(run: Run, info: ScorerInfo, labels: Labels) -> dict[str, Any]:
    """A scorer's values with labels, strata and groups: arguments of `ppi_mean`.

    Raises:
        ConfigError: no labeled sample has a score, or samples have unequal weights.
    """
    from evalstone.stats.labeling import score_strata  # noqa: PLC0415 - numpy

    scores = scores_of(run, info.signature)
    _refuse_weights(scores)
    human = [labels.get(name) for name in scores.names]
    if not any(label is not None for label in human):
        raise ConfigError(f"no labeled sample has a score of {info.name}: {count(len(labels), 'label')}")
    judged = scores.known_values
    return {"judged": judged, "human": human, "strata": score_strata(judged), "groups": scores.labels}


def labeled_pairs(
    pairs: KnownPairs, pairing: Pairing, labels: tuple[Labels, Labels], same: Collection[str]
) -> dict[str, Any]:
    """A scorer's values in two runs with labels, strata and groups: arguments of `ppi_difference`.

    Labeled samples were chosen at random within the strata of the run that they were chosen for. If each run has labels
    of its own, the strata are the pairs of both runs' strata.

    Args:
        pairs: the values.
        pairing: which sample of the second run is which sample of the first.
        labels: the labels of the first run's outputs, and those of the second's, each by the sample's ID in that run.
        same: the ids in the first run of the samples whose outputs are the same in both runs.

    Raises:
        ConfigError: samples have unequal weights.
    """
    from evalstone.stats.labeling import score_strata  # noqa: PLC0415 - numpy

    if pairs.weights is not None:
        refuse_weights(zip(pairs.samples, pairs.weights, strict=True), CORRECTION)
    is_same = [name in same for name in pairs.samples]
    human = tuple([of.get(name) for name in pairs.samples] for of in (labels[0], pairing.renamed(labels[1])))
    strata: Sequence[Hashable] = score_strata(pairs.a)
    changed = [both for both, equal in zip(zip(*human, strict=True), is_same, strict=True) if not equal]
    if any(before is not None and after is None for before, after in changed):
        second = score_strata(pairs.b)
        second_only = any(before is None and after is not None for before, after in changed)
        strata = tuple(zip(strata, second, strict=True)) if second_only else second
    return {"judged": (pairs.a, pairs.b), "human": human, "same": is_same, "strata": strata, "groups": pairs.groups}


def _refuse_weights(scores: Scores) -> None:
    """Raise ConfigError if samples have unequal weights."""
    if scores.weights is not None:
        refuse_weights(zip(scores.names, scores.weights, strict=True), CORRECTION)


def select_for_labeling(
    run: Run, scorer: str, labeled: Collection[str], *, count: int = 20, seed: int = 0
) -> tuple[str, ...]:
    """The ids of the samples to label next, in random order, chosen to narrow the corrected mean's interval most.

    Args:
        run: the run.
        scorer: title, signature or name of the scorer.
        labeled: the ids of the samples that have a label, such as the keys of `load_labels`.
        count: how many samples to select.
        seed: the same arguments and seed give the same selection.

    Raises:
        ConfigError: the scorer is unknown, the count is negative, or samples have unequal weights.
    """
    from evalstone.stats.labeling import select_for_labeling as choose  # noqa: PLC0415 - numpy

    check_runs(run=run)
    info = run[scorer].info
    scores = scores_of(run, info.signature)
    _refuse_weights(scores)
    known = set(labeled)
    rows = [row for row, name in enumerate(scores.names) if name in known]
    selected = choose(scores.known_values, labeled=rows, n=count, scale=info.scale, seed=seed)
    return tuple(scores.names[row] for row in selected)


def corrected_share(run: Run, scorer: str, calibration: Calibration, *, confidence: float = 0.95) -> RoganGladenResult:
    """A run's pass rate at the scorer's default threshold, corrected by the Rogan-Gladen estimator.

    The judge's sensitivity and specificity come from the calibration's labels. At a threshold fitted to these labels,
    they would be optimistic, so the default threshold is used.

    Args:
        run: the run.
        scorer: title, signature or name of the scorer.
        calibration: a calibration of the run's judge with this scorer.
        confidence: the confidence level of the interval.

    Raises:
        ConfigError: the calibration is of another judge or scorer, is unusable, or has labels drawn by strata; no
            sample has a score; or samples have unequal weights.
    """
    from evalstone.stats.corrected_rate import rogan_gladen  # noqa: PLC0415 - numpy

    info = run[scorer].info
    judge = run.judge_of(info.signature)
    if (calibration.judge, calibration.signature) != (judge, info.signature):
        raise ConfigError(
            f"the calibration is of {calibration.signature} by {calibration.judge}, the run's scores are of "
            f"{info.signature} by {judge}"
        )
    if calibration.unusable is not None:
        why = clause_of(calibration.unusable)
        raise ConfigError(f"the calibration of {run.titles[info.signature]} can't be used: {why}")
    if calibration.weights is not None or calibration.n_without_labels:
        raise ConfigError(
            f"the calibration of {run.titles[info.signature]} has labels drawn by strata of scores, and this "
            "correction needs labels drawn at random; correct the mean with labels of this run instead"
        )
    scores = scores_of(run, info.signature)
    _refuse_weights(scores)
    values = scores.known_values
    threshold = calibration.default_threshold
    passed = sum(reaches(value, threshold, calibration.scale) for value in values)
    result = rogan_gladen(passed, len(values), calibration.confusion(threshold), confidence=confidence)
    if result is None:
        raise ConfigError(f"{info.name} has no score to correct")
    title, notes = run.titles[info.signature], list[Note]()
    scored = set(scores.names)
    if shared := sum(pair.sample_id in scored for pair in calibration.pairs):
        notes.append(note("labels_in_run", "fact", title, labels=shared))
    if calibration.n_aligned_with:
        used, of = calibration.n_aligned_with, len(calibration.pairs)
        notes.append(note("corrected_by_aligned_labels", "warning", title, samples=used, of=of))
    if calibration.risk is not None:
        notes.append(note("corrected_by_choosing_labels", "warning", title, threshold=calibration.risk.threshold))
    if scores.groups is not None or calibration.decided_clusters is not None:
        notes.append(note("clusters_ignored", "caution", title))
    return RoganGladenResult(title=title, info=info, threshold=threshold, result=result, notes=tuple(notes))
