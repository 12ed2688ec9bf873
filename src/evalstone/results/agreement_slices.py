"""How often a judge agrees with people in each slice of the labeled samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalstone.results.slices import ABSENT, slice_order
from evalstone.stats.intervals import Interval
from evalstone.types import reaches

if TYPE_CHECKING:
    from evalstone.results.calibration import Calibration
    from evalstone.stats.slices import SliceFinding


@dataclass(frozen=True, kw_only=True)
class SliceAgreement:
    """The judge's verdicts on a slice, at the scorer's default threshold."""

    field: str
    """The metadata field, or the name of the function."""
    key: str
    """The value that the samples share."""
    accuracy: Interval
    """The share of verdicts that agree with the labels. The intervals of all slices hold together."""
    kappa: Interval | None
    """Cohen's kappa of verdicts and labels; its intervals hold together too. None if all of both are the same."""
    false_yes: int
    """Verdicts of yes where people say no."""
    false_no: int
    """Verdicts of no where people say yes."""
    finding: SliceFinding | None
    """The accuracy compared with that of the other samples, with p-values corrected (Holm) over all slices; None for
    slices with fewer than five samples inside or outside."""

    @property
    def worse(self) -> bool:
        """Whether the accuracy is significantly lower than on the other samples."""
        return self.finding is not None and self.finding.adjusted_p_value <= 1 - self.accuracy.confidence


def agreement_by_slice(calibration: Calibration) -> tuple[SliceAgreement, ...]:
    """The judge's agreement with the labels in each slice, sorted by field and key; empty without `slice_by`."""
    from evalstone.stats.slices import slice_by, worst_slices  # noqa: PLC0415 - numpy, which only slices need

    scale = calibration.scale
    known = ((pair, pair.truth(calibration.label_threshold, scale)) for pair in calibration.pairs)
    decided = [(pair, truth) for pair, truth in known if truth is not None]
    fields = list(dict.fromkeys(field for pair, _ in decided for field in pair.slices))
    if not fields:
        return ()
    truths = [truth for _, truth in decided]
    verdicts = [reaches(pair.value, calibration.default_threshold, scale) for pair, _ in decided]
    right = [float(verdict == truth) for verdict, truth in zip(verdicts, truths, strict=True)]
    keys = {field: [pair.slices.get(field, ABSENT) for pair, _ in decided] for field in fields}
    together = sum(len(set(column)) for column in keys.values())
    groups = calibration.decided_clusters
    parts = {field: slice_by(right, column, together=together, groups=groups) for field, column in keys.items()}
    findings = {(finding.field, finding.key): finding for finding in worst_slices(right, parts, groups=groups)}
    slices = [
        SliceAgreement(
            field=field,
            key=str(part.key),
            accuracy=part.interval,
            kappa=_kappa(
                [(verdicts[place], truths[place]) for place in part.indexes],
                None if groups is None else [groups[place] for place in part.indexes],
                together,
            ),
            false_yes=sum(verdicts[place] and not truths[place] for place in part.indexes),
            false_no=sum(truths[place] and not verdicts[place] for place in part.indexes),
            finding=findings.get((field, part.key)),
        )
        for field, of_field in parts.items()
        for part in of_field
    ]
    return tuple(sorted(slices, key=lambda one: (one.field, *slice_order(one.key))))


def _kappa(pairs: Sequence[tuple[bool, bool]], groups: Sequence[str] | None, together: int) -> Interval | None:
    """Cohen's kappa of verdicts and truths, with an interval that holds together with those of the other slices."""
    from evalstone.stats.agreement import cohen_kappa  # noqa: PLC0415 - numpy, which only slices need

    verdicts, truths = zip(*pairs, strict=True)
    found = cohen_kappa(verdicts, truths, groups=groups, confidence=1 - 0.05 / together)
    return None if found is None else replace(found, confidence=0.95)
