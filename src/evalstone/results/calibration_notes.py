"""What to know before relying on a calibration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstone.results.measures import accuracy_at, no_information_rate
from evalstone.results.run_notes import reasoning_note
from evalstone.stats.intervals import Interval
from evalstone.types import Note, note

if TYPE_CHECKING:
    from evalstone.results.calibration import Calibration

FEW_LABELS = 20


def unusable_note(area: Interval | None) -> Note | None:
    """Why audits and reports don't use a calibration with this AUROC; None if its 95% interval is above 0.5."""
    if area is None or area.low is None or area.high is None:
        return note("needs_both_labels", "warning")
    if area.low > 0.5:
        return None
    return note("not_above_chance", "warning", auroc=(area.estimate, area.low, area.high))


def flaw_of(calibration: Calibration) -> Note | None:
    """Why a calibration never replaces a flawless one; None if it has no flaw."""
    if calibration.unusable is not None:
        return calibration.unusable
    if calibration.only_verdict:
        return _one_verdict(calibration)
    if calibration.n_skipped + calibration.n_failed > len(calibration.pairs):
        return note("most_labels_unscored", "warning")
    return None


def notes_of(calibration: Calibration) -> Iterator[Note]:
    """What is missing, few or one-sided, and what the scores don't tell."""
    scores, truths = calibration.scores_and_truths
    yes, no = sum(truths), len(truths) - sum(truths)
    if not truths:
        yield note("annotators_split_everywhere", "warning")
    elif not yes or not no:
        yield note("labels_all_alike", "warning", label="yes" if yes else "no")
    elif min(yes, no) < FEW_LABELS:
        yield note("few_labels", "caution", yes=yes, no=no)
    if calibration.run_size is not None:
        covered = calibration.run_size - calibration.n_without_labels
        yield note("labels_weighted", "fact", labels=len(calibration.pairs), samples=covered)
        if calibration.n_without_labels:
            yield note(
                "strata_without_labels", "warning", samples=calibration.n_without_labels, of=calibration.run_size
            )
    elif calibration.n_by_score or calibration.n_by_hand or calibration.n_shared:
        yield note(
            "labels_not_at_random",
            "caution",
            by_score=calibration.n_by_score,
            by_hand=calibration.n_by_hand,
            shared=calibration.n_shared,
            of=len(calibration.pairs),
        )
    if calibration.clusters is not None:
        clusters = len(set(calibration.clusters))
        yield note("labels_clustered", "fact", labels=len(calibration.pairs), clusters=clusters)
    if len(scores) > 1 and len(set(scores)) == 1:
        yield note("no_discrimination", "warning")
    elif calibration.only_verdict:
        yield _one_verdict(calibration)
    area = calibration.auroc
    if area is not None and calibration.unusable is not None:
        yield replace(calibration.unusable, kind="calibration_not_used")
    if yes and no:
        yield from _uninformative(calibration)
    if area is not None and area.high is not None and area.high < 0.5:
        name, lower_is_better = calibration.scorer, calibration.lower_is_better
        yield note("ranks_opposite", "warning", name=name, lower_is_better=lower_is_better)
    if truths and calibration.undecided:
        yield note("annotators_split", "caution", samples=calibration.undecided)
    if calibration.n_skipped or calibration.n_failed:
        yield note("labeled_without_score", "caution", skipped=calibration.n_skipped, failed=calibration.n_failed)
    if calibration.n_unlabeled:
        labels = len(calibration.pairs) + calibration.n_skipped + calibration.n_failed + calibration.n_examples
        rows = calibration.n_unlabeled
        yield note("rows_without_label", "fact", rows=rows, of=rows + labels)
    if calibration.n_same_family:
        yield note("same_family_labeled", "caution", samples=calibration.n_same_family, of=len(calibration.pairs))
    if calibration.n_examples:
        yield note("examples_not_counted", "caution", samples=calibration.n_examples)
    if calibration.n_aligned_with:
        yield note("labels_used_to_align", "warning", samples=calibration.n_aligned_with, of=len(calibration.pairs))
    if calibration.risk is not None:
        yield note("labels_chose_threshold", "warning", threshold=calibration.risk.threshold)
    if calibration.stop_reason:
        yield note("calibration_ended_early", "warning", reason=calibration.stop_reason)
    if calibration.keeps_reasoning is not None:
        yield reasoning_note(None, kept=calibration.keeps_reasoning)


def _one_verdict(calibration: Calibration) -> Note:
    return note("one_verdict", "warning", verdict=calibration.only_verdict, threshold=calibration.default_threshold)


def _uninformative(calibration: Calibration) -> Iterator[Note]:
    """A note if the accuracy at the default threshold is not, or not provably, above the no-information rate."""
    threshold = calibration.default_threshold
    accuracy = accuracy_at(calibration, threshold)
    rate = no_information_rate(calibration)
    if rate is None or accuracy is None or accuracy.low is None or accuracy.high is None:
        return
    if accuracy.low <= rate.estimate:
        limits = (accuracy.estimate, accuracy.low, accuracy.high)
        yield note("uninformative_accuracy", "warning", threshold=threshold, accuracy=limits, rate=rate.estimate)
