"""Calibrations: a judge's scores compared with human labels, with a fitted threshold and recalibration."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

from evalstone._core.display import count
from evalstone._core.file_format import CALIBRATION_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd
from evalstone._core.guards import is_object
from evalstone._core.json import to_jsonable
from evalstone._core.validation import read_data
from evalstone.errors import ConfigError, DataError, invalid, unknown
from evalstone.report.frames import Framed, SampleRows
from evalstone.report.shown import Shown
from evalstone.results.calibration_notes import flaw_of, notes_of, unusable_note
from evalstone.results.disagreements import Disagreement, disagreements_of
from evalstone.results.judge_verdict import JudgeVerdict, verdict_of
from evalstone.results.measures import CALIBRATORS, FOLDS, measure
from evalstone.results.members import MemberComparison, compare_by_votes, compare_with_members
from evalstone.results.scores import clusters_of
from evalstone.stats.calibration import (
    Isotonic,
    Platt,
    Recalibration,
    best_threshold,
    brier_score,
    counts_on_new_cases,
    cross_validated,
    folds,
    platt,
)
from evalstone.stats.classification import MEASURES, Confusion, MeasureName, auroc
from evalstone.stats.intervals import Interval
from evalstone.stats.selective_risk import SelectiveRisk
from evalstone.stats.weighted_agreement import weighted_auroc
from evalstone.stats.weighted_mean import unequal
from evalstone.types import TOLERANCE, Note, reaches

if TYPE_CHECKING:
    from evalstone.report.view import View


Calibrator: TypeAlias = Literal["auto", "platt", "isotonic"]
"""The mapping from scores to probabilities: Platt's logistic curve, isotonic regression, or the better of the two."""


@dataclass(frozen=True)
class LabeledScore:
    """The judge's score and the human labels of one sample, on the scorer's scale."""

    sample_id: str
    """The sample's id."""
    value: float
    """The judge's score."""
    labels: tuple[float | None, ...]
    """One label per annotator, None if missing; at least one is present."""
    slices: Mapping[str, str] = field(default_factory=dict[str, str])
    """The sample's value of each field in `slice_by`."""
    weight: float = 1.0
    """The number of samples of the labeled run that it stands for, if samples were drawn by strata."""
    cluster: str = ""
    """What it has in common with samples that depend on it: their group or their texts. "" if it stands alone."""

    @property
    def label(self) -> float:
        """The mean of the labels: the human score."""
        present = [label for label in self.labels if label is not None]
        return math.fsum(present) / len(present)

    def truth(self, label_threshold: float, scale: float = 1.0) -> bool | None:
        """Whether most labels reach the threshold; None for a tie."""
        votes = [reaches(label, label_threshold, scale) for label in self.labels if label is not None]
        return None if 2 * sum(votes) == len(votes) else 2 * sum(votes) > len(votes)


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The score from which a sample counts as yes, fitted to labels."""

    value: float
    """The threshold, on the scorer's scale."""
    objective: MeasureName
    """The measure it maximizes, such as "balanced_accuracy"."""
    in_sample: float
    """The measure on the samples the threshold was fitted to; optimistic."""
    on_new: Confusion | None
    """The confusion counts to expect on as many new samples; None with fewer than two positives or two negatives."""


@dataclass(frozen=True, kw_only=True)
class Calibration(Framed, Shown):
    """One judge and one scorer, compared with human labels."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"allow_inf_nan": False}

    judge: str
    """The judge's identity."""
    scorer: str
    """The scorer's name."""
    signature: str
    """The scorer's signature."""
    scale: float
    """Scores lie in [0, scale]."""
    lower_is_better: bool
    """Whether a lower score is better."""
    default_threshold: float
    """The score from which a sample counts as yes by default."""
    label_threshold: float
    """The label from which the truth is yes, on the scorer's scale."""
    dataset_name: str
    """The name of the dataset."""
    dataset_version: str
    """The version of the dataset: a hash of its samples."""
    pairs: tuple[LabeledScore, ...]
    """The labeled samples with a score."""
    n_unlabeled: int = 0
    """Rows of the labels without one, which are not judged: an empty cell, null, NaN, or a word such as n/a."""
    n_skipped: int = 0
    """Labeled samples that were skipped."""
    n_failed: int = 0
    """Labeled samples that failed."""
    n_examples: int = 0
    """Labeled samples with a score that are not counted, because the judge is shown them as examples."""
    n_aligned_with: int = 0
    """Labeled samples with a score with which the judge was aligned."""
    n_by_score: int = 0
    """Labeled samples with a score that were chosen by the judge's score: where it was uncertain, or within strata."""
    n_by_hand: int = 0
    """Labeled samples with a score that were chosen by hand."""
    n_shared: int = 0
    """Labeled samples with a score that were chosen because another run has labels of them."""
    n_same_family: int = 0
    """Labeled samples with a score that a model of the judge's family answered, by their metadata `model`."""
    run_size: int | None = None
    """The number of samples of the labeled run, if labels were drawn by strata of its scores and are weighted; None if
    they are taken as they are."""
    stop_reason: str = ""
    """Why the run stopped early; "" when it completed."""
    columns: tuple[str, ...] = ()
    """The columns of labels."""
    words: Mapping[str, float] = field(default_factory=dict[str, float])
    """The value in [0, 1] that each label word was read as."""
    threshold: Threshold | None = None
    """The fitted threshold; None if all truths are the same."""
    recalibration: Recalibration | None = None
    """The fitted mapping from score / scale to the probability of yes; None if all truths are the same."""
    created: str = ""
    """When it was created, in UTC (ISO 8601)."""
    labels: str = ""
    """The name of the labels' file, or "in memory"."""
    labels_id: str = ""
    """A hash of the labels' location and columns, and of whether reasoning was kept. Calibrations with different ones
    are stored side by side."""
    run: str = ""
    """The ID of the run that scored the samples; "" if it is in no ledger."""
    keeps_reasoning: bool | None = None
    """Whether the reasoning in front of outputs was scored; None if no output has any."""
    cost: float | None = field(default=None, compare=False)
    """US dollars that a sample costs if its judge is asked anew, on average: what its answers cost when they were
    given. None if no judge was asked, or if the price of an answer is unknown."""
    seconds: float | None = field(default=None, compare=False)
    """How long the judge calls of a sample take, one after the other, as a median: the time that its answers took when
    they were given. None if no judge was asked, or if a time is unknown, as that of an answer from a batch."""
    votes: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict[str, tuple[float | None, ...]])
    """For a panel, by member, the score of each of the `pairs` by the member's votes on the panel's questions; None
    where they lead to none. Empty for any other judge."""
    risk: SelectiveRisk | None = None
    """For a cascade whose threshold was chosen on these labels: how often the samples that its primary decides alone
    are judged wrongly."""
    per_judge: tuple[Calibration, ...] = field(default=(), compare=False)
    """With `per_judge`, the calibration of each member of a composite judge. Each is stored by itself."""

    def __post_init__(self) -> None:
        if not 0 < self.scale < math.inf:
            raise DataError(invalid("scale", "above 0", self.scale))
        if len({len(pair.labels) for pair in self.pairs}) != 1:
            raise DataError("pairs: need at least one, each with one label per column")
        for member, scores in self.votes.items():
            if len(scores) != len(self.pairs):
                raise DataError(f"votes of {member}: {len(scores)} scores, {count(len(self.pairs), 'pair')}")
            if outside := [score for score in scores if score is not None and not self._is_in_range(score)]:
                raise DataError(f"votes of {member}: {outside[0]} is not in [0, {self.scale:g}]")
        for pair in self.pairs:
            present = [label for label in pair.labels if label is not None]
            if not present:
                raise DataError(f"sample {pair.sample_id!r} has no label")
            if not 0 < pair.weight < math.inf:
                raise DataError(f"sample {pair.sample_id!r}: ", invalid("weight", "above 0", pair.weight))
            for number in (pair.value, *present):
                if not self._is_in_range(number):
                    raise DataError(f"sample {pair.sample_id!r}: {number} is not in [0, {self.scale:g}]")

    def _is_in_range(self, number: float) -> bool:
        return -TOLERANCE * self.scale <= number <= self.scale * (1 + TOLERANCE)

    @functools.cached_property
    def decided(self) -> tuple[tuple[float, bool], ...]:
        """Score / scale and truth of the samples whose annotators are not tied."""
        truths = ((pair.value / self.scale, pair.truth(self.label_threshold, self.scale)) for pair in self.pairs)
        return tuple((value, truth) for value, truth in truths if truth is not None)

    @property
    def scores_and_truths(self) -> tuple[list[float], list[bool]]:
        """`decided` as two lists."""
        return [value for value, _ in self.decided], [truth for _, truth in self.decided]

    @property
    def undecided(self) -> int:
        """Samples whose annotators are tied."""
        return len(self.pairs) - len(self.decided)

    @functools.cached_property
    def weights(self) -> tuple[float, ...] | None:
        """How many samples of the labeled run each pair stands for; None if all stand for equally many."""
        weights = tuple(pair.weight for pair in self.pairs)
        return None if unequal(weights) is None else weights

    @functools.cached_property
    def decided_weights(self) -> tuple[float, ...] | None:
        """The `weights` of the pairs in `decided`."""
        if self.weights is None:
            return None
        return tuple(pair.weight for pair in self.pairs if pair.truth(self.label_threshold, self.scale) is not None)

    @functools.cached_property
    def clusters(self) -> tuple[str, ...] | None:
        """The cluster of each pair, one of its own if it stands alone; None if all pairs are independent."""
        return clusters_of(self.pairs)

    @functools.cached_property
    def decided_clusters(self) -> tuple[str, ...] | None:
        """The clusters of the pairs in `decided`; None if all are independent."""
        return clusters_of([pair for pair in self.pairs if pair.truth(self.label_threshold, self.scale) is not None])

    @property
    def n_without_labels(self) -> int:
        """The samples of the labeled run in strata of which no sample has a label and a score."""
        return 0 if self.run_size is None else self.run_size - round(math.fsum(pair.weight for pair in self.pairs))

    @functools.cached_property
    def auroc(self) -> Interval | None:
        """The area under the ROC curve with its 95% interval; None without positives or without negatives."""
        if self.decided_weights is not None or self.decided_clusters is not None:
            return weighted_auroc(*self.scores_and_truths, self.decided_weights, groups=self.decided_clusters)
        return auroc(*self.scores_and_truths)

    def confusion(self, threshold: float) -> Confusion:
        """The confusion counts of the judge's verdicts at a threshold on the scorer's scale."""
        return Confusion.of((reaches(value, threshold / self.scale), truth) for value, truth in self.decided)

    @functools.cached_property
    def unusable(self) -> Note | None:
        """Why audits and reports don't use this calibration; None if the 95% interval of the AUROC is above 0.5."""
        return unusable_note(self.auroc)

    @property
    def only_verdict(self) -> Literal["yes", "no", ""]:
        """The one verdict on all samples at the default threshold; "" if they differ, or with a single sample."""
        counts = self.confusion(self.default_threshold)
        if counts.n < 2 or 0 < counts.tp + counts.fp < counts.n:
            return ""
        return "yes" if counts.tp + counts.fp else "no"

    @property
    def flaw(self) -> Note | None:
        """Why this calibration never replaces a flawless one: it is unusable, all its verdicts are the same, or most
        labeled samples have no score. None if it has no flaw."""
        return flaw_of(self)

    @functools.cached_property
    def verdict(self) -> JudgeVerdict:
        """What the judge can be used for: single samples, a ranking of systems, or neither."""
        return verdict_of(self)

    @property
    def passed(self) -> bool | None:
        """Whether the judge agrees with people well enough to be used, at least to rank systems; None if the labels
        don't tell."""
        return self.verdict.passed

    @functools.cached_property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """The samples on which the judge's verdict is not that of people, the most confident errors first."""
        return disagreements_of(self)

    @functools.cached_property
    def notes(self) -> tuple[Note, ...]:
        """What to know before relying on it."""
        return tuple(notes_of(self))

    @functools.cached_property
    def members(self) -> MemberComparison | None:
        """A composite judge compared with its members: those of `per_judge`, or else those of a panel by their votes.
        None without members, or if no sample has a truth and a score by each judge."""
        return compare_with_members(self, self.per_judge) if self.per_judge else compare_by_votes(self)

    def sample_rows(self) -> SampleRows:
        """One row per labeled sample with a score, in the order of the labels."""
        from evalstone.results.views.sample_rows import calibration_rows  # noqa: PLC0415 - only who exports needs it

        return calibration_rows(self)

    def says_yes(self, value: float) -> bool:
        """Whether the judge's verdict at the scorer's default threshold is yes, for a score in [0, scale]."""
        return reaches(value, self.default_threshold, self.scale)

    def probability(self, value: float) -> float | None:
        """The probability that people say yes, for a score in [0, scale]; None if no mapping was fitted."""
        return None if self.recalibration is None else self.recalibration(value / self.scale)

    def __repr__(self) -> str:
        return f"<Calibration of {self.scorer} by {self.judge}: {count(len(self.pairs), 'labeled sample')}>"

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The report that `evalstone calibrate` shows."""
        from evalstone.results.views.calibration import calibration_view  # noqa: PLC0415 - only showing it needs it

        return calibration_view(self, front_end)

    def to_dict(self) -> dict[str, Any]:
        """The calibration with its notes and measures as plain data; `from_dict` reads it back, without its members."""
        names = [item.name for item in dataclasses.fields(self) if item.name != "per_judge"]
        values = {name: to_jsonable(getattr(self, name)) for name in names}
        return {
            "format": CALIBRATION_FORMAT,
            **values,
            "undecided": self.undecided,
            "verdict": self.verdict.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
            "measures": to_jsonable(measure(self)),
            "members": None if self.members is None else self.members.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Calibration:
        """Create a calibration from its plain data. Its notes and measures are not read; they are computed again.

        Unknown fields are ignored. A recalibration of an unknown kind is None.

        Raises:
            DataError: the data has another format, or a value doesn't fit its field.
        """
        CALIBRATION_FORMAT.check(data)
        if (stored := data.get("recalibration")) is not None:
            kind = _RECALIBRATIONS.get(str(stored.get("kind", "platt"))) if is_object(stored) else Platt
            data = {**data, "recalibration": None if kind is None else read_data(kind, stored)}
        return read_data(cls, data)


_RECALIBRATIONS: Mapping[str, type[Platt | Isotonic]] = {"platt": Platt, "isotonic": Isotonic}


# ---- Fitting ----


def check_names(objective: MeasureName, calibrator: Calibrator) -> None:
    """Check the names of an objective and a calibrator.

    Raises:
        ConfigError: a name is unknown.
    """
    if objective not in MEASURES:
        raise ConfigError(unknown("objective", objective, MEASURES))
    if calibrator not in get_args(Calibrator):
        raise ConfigError(unknown("calibrator", calibrator, get_args(Calibrator)))


def fit(
    calibration: Calibration, *, objective: MeasureName = "balanced_accuracy", calibrator: Calibrator = "auto"
) -> Calibration:
    """Fit the threshold and the recalibration to the pairs. Both stay None if all truths are the same.

    Args:
        calibration: the pairs.
        objective: the measure that the threshold maximizes, a key of MEASURES.
        calibrator: "auto" uses Platt scaling or isotonic regression, whichever has the lower cross-validated Brier
            score. (By ECE, always predicting the base rate would win.)

    Returns:
        The calibration with both.

    Raises:
        ConfigError: the objective or the calibrator is unknown.
    """
    check_names(objective, calibrator)
    scores, truths = calibration.scores_and_truths
    if len(set(truths)) < 2:
        return calibration
    groups = calibration.decided_clusters
    parts = folds(truths, FOLDS, groups=groups)
    threshold = None
    if (best := best_threshold(scores, truths, objective)) is not None:
        on_new = counts_on_new_cases(scores, truths, objective, groups=groups)
        threshold = Threshold(value=best[0] * calibration.scale, objective=objective, in_sample=best[1], on_new=on_new)
    recalibration = _recalibration(scores, truths, parts, calibrator)
    return dataclasses.replace(calibration, threshold=threshold, recalibration=recalibration)


def _recalibration(
    scores: Sequence[float], truths: Sequence[bool], parts: Sequence[Sequence[int]], calibrator: Calibrator
) -> Recalibration:
    if calibrator != "auto":
        return CALIBRATORS[calibrator](scores, truths)
    if not parts:
        return platt(scores, truths)
    briers = {
        name: brier_score(cross_validated(fit_one, scores, truths, parts), truths)
        for name, fit_one in CALIBRATORS.items()
    }
    return CALIBRATORS[min(briers, key=lambda name: briers[name] or 0.0)](scores, truths)
