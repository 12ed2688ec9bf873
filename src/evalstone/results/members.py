"""A composite judge compared with its members on the same labels: is it worth its calls?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evalstone._core.json import to_jsonable
from evalstone._core.truth import PASSED, NoTruthValue
from evalstone.errors import ConfigError
from evalstone.results.scores import clusters_of
from evalstone.stats.intervals import Interval, mean_interval
from evalstone.types import reaches

if TYPE_CHECKING:
    from evalstone.results.calibration import Calibration
    from evalstone.stats.panels import PanelVotes

CompositeVerdict: TypeAlias = Literal["better", "worse", "inconclusive"]


@dataclass(frozen=True, kw_only=True)
class MemberAccuracy:
    """A member's accuracy, and how much more accurate the composite judge is."""

    judge: str
    """The member's identity."""
    accuracy: Interval
    """The member's accuracy at the scorer's default threshold."""
    difference: Interval
    """The composite judge's accuracy minus the member's. The intervals of all members hold together."""


@dataclass(frozen=True, kw_only=True)
class MemberComparison(NoTruthValue):
    """A composite judge and its members, on the labeled samples that all of them scored."""

    judge: str
    """The composite judge's identity."""
    n: int
    """The number of samples with a truth and a score by each judge."""
    accuracy: Interval
    """The composite judge's accuracy at the scorer's default threshold."""
    members: tuple[MemberAccuracy, ...]
    """The members, the most accurate first."""
    by_votes: bool
    """Whether the scores of the members are those of their votes on the panel's questions, rather than those of each
    member alone, which may have listed other claims."""
    votes: PanelVotes | None
    """What the votes of a panel are worth; None for other judges, and if no member errs."""

    @property
    def verdict(self) -> CompositeVerdict:
        """Whether the composite judge is significantly more accurate than every member ("better"), significantly less
        accurate than one ("worse"), or neither. The most accurate member is not known for sure, so a comparison with
        the one that is best on these labels alone would be biased."""
        limits = [(member.difference.low or 0.0, member.difference.high or 0.0) for member in self.members]
        if min(low for low, _ in limits) > 0:
            return "better"
        return "worse" if min(high for _, high in limits) < 0 else "inconclusive"

    @property
    def passed(self) -> bool | None:
        """True if the composite judge is better than every member, False if it is worse than one; None if neither can
        be said."""
        return PASSED[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {**to_jsonable(self), "verdict": self.verdict}


def compare_with_members(composite: Calibration, members: Sequence[Calibration]) -> MemberComparison | None:
    """Compare a composite judge with its members, on the labeled samples that all of them scored.

    Args:
        composite: the calibration of a panel, a cascade or a self-consistency judge.
        members: the calibrations of its members, of the same scorer with the same labels.

    Returns:
        The comparison; None if no sample has a truth and a score by each judge.

    Raises:
        ConfigError: there are no members, or a member's calibration is of another scorer or has other labels.
    """
    if not members:
        raise ConfigError("need the calibration of at least one member")
    (ours, *theirs), groups = common_verdicts((composite, *members))
    alone = dict(zip((one.judge for one in members), theirs, strict=True))
    return _comparison(composite, ours, alone, groups, by_votes=False)


def compare_by_votes(panel: Calibration) -> MemberComparison | None:
    """Compare a panel with its members by their votes on its questions, on the samples for which each has a score.

    Returns:
        The comparison; None for any other judge, or if no sample has a truth and a score by each member.
    """
    truths = {pair.sample_id: pair.truth(panel.label_threshold, panel.scale) for pair in panel.pairs}
    known = [
        (place, truth)
        for place, pair in enumerate(panel.pairs)
        if (truth := truths[pair.sample_id]) is not None and all(of[place] is not None for of in panel.votes.values())
    ]
    if not panel.votes:
        return None

    def right(scores: Sequence[float | None]) -> list[bool]:
        return [panel.says_yes(scores[place] or 0.0) == truth for place, truth in known]

    ours = right([pair.value for pair in panel.pairs])
    groups = clusters_of([panel.pairs[place] for place, _ in known])
    return _comparison(panel, ours, {member: right(of) for member, of in panel.votes.items()}, groups, by_votes=True)


def _comparison(
    composite: Calibration,
    ours: Sequence[bool],
    members: Mapping[str, Sequence[bool]],
    groups: Sequence[str] | None,
    *,
    by_votes: bool,
) -> MemberComparison | None:
    """ours, members: whether the verdict on each sample is right."""
    from evalstone.stats.panels import effective_votes  # noqa: PLC0415 - numpy

    accuracy = accuracy_of(ours, groups)
    if accuracy is None:
        return None
    compared = [
        member
        for name, own in members.items()
        if (member := _compared(name, own, ours, groups, len(members))) is not None
    ]
    wrong = [[not verdict for verdict in of_sample] for of_sample in zip(*members.values(), strict=True)]
    return MemberComparison(
        judge=composite.judge,
        n=len(ours),
        accuracy=accuracy,
        members=tuple(sorted(compared, key=lambda member: -member.accuracy.estimate)),
        by_votes=by_votes,
        votes=effective_votes(wrong, groups=groups) if composite.judge.startswith("panel(") else None,
    )


def accuracy_of(right: Sequence[bool], groups: Sequence[str] | None) -> Interval | None:
    """The share of right verdicts with its interval; None without any."""
    return mean_interval([float(each) for each in right], low=0.0, high=1.0, groups=groups)


def common_verdicts(calibrations: Sequence[Calibration]) -> tuple[list[list[bool]], Sequence[str] | None]:
    """For each of several judges, whether its verdict is right on each sample with a truth and a score by all of them,
    and the clusters of these samples; None if they are independent.

    Raises:
        ConfigError: A calibration is of another scorer, or has other labels, than the first one.
    """
    first, *others = calibrations
    for other in others:
        if other.signature != first.signature:
            raise ConfigError(f"{other.judge} was calibrated with {other.signature}, not with {first.signature}")
        if (other.labels_id, other.dataset_version) != (first.labels_id, first.dataset_version):
            raise ConfigError(f"{other.judge} was calibrated with other labels than {first.judge}")
    truths = {pair.sample_id: pair.truth(first.label_threshold, first.scale) for pair in first.pairs}
    right = [_right(one, truths) for one in calibrations]
    samples = [sample for sample in right[0] if all(sample in of for of in right)]
    pairs = {pair.sample_id: pair for pair in first.pairs}
    return [[of[sample] for sample in samples] for of in right], clusters_of([pairs[sample] for sample in samples])


def _right(calibration: Calibration, truths: dict[str, bool | None]) -> dict[str, bool]:
    """Whether the judge's verdict on each sample with a truth is right."""
    threshold, scale = calibration.default_threshold, calibration.scale
    known = ((pair, truths.get(pair.sample_id)) for pair in calibration.pairs)
    return {
        pair.sample_id: reaches(pair.value, threshold, scale) == truth for pair, truth in known if truth is not None
    }


def _compared(
    judge: str, member: Sequence[bool], composite: Sequence[bool], groups: Sequence[str] | None, members: int
) -> MemberAccuracy | None:
    """None without a sample."""
    from evalstone.stats.comparison import compare_pairs  # noqa: PLC0415 - numpy

    accuracy = accuracy_of(member, groups)
    ours, theirs = list(map(float, member)), list(map(float, composite))
    pairs = compare_pairs(ours, theirs, confidence=1 - 0.05 / members, groups=groups)
    return (
        None
        if accuracy is None or pairs is None
        else MemberAccuracy(judge=judge, accuracy=accuracy, difference=pairs.difference)
    )
