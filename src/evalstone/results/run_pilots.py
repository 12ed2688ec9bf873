"""Runs as pilots: what the scores of one run, or of two, say about the differences that another run can detect.

Two pilot runs over the same samples give the standard deviation of the differences. With one pilot run, the two runs
are assumed to have independent scores, whose differences have √2 times the standard deviation of the scores. This
overestimates the number of samples if good samples stay good and bad samples stay bad. For clustered samples, groups
are counted, with the group sizes of the pilot.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalstone.results.missing_scores import kinds_that_count
from evalstone.results.of_scorer import OfScorer
from evalstone.results.scores import group_labels, scores_of
from evalstone.stats.packed_scores import only_has, varies

if TYPE_CHECKING:
    from evalstone.results.run import Run
    from evalstone.results.summary import ScorerInfo
    from evalstone.stats.pilot import Pilot


@dataclass(frozen=True)
class ScorerPilot(OfScorer):
    """What a pilot says about the differences between two runs in one scorer."""

    pilot: Pilot | None
    """None if it has too few scores."""
    varies: bool
    """Whether its scores differ."""


def single_pilot(run: Run, *, varying: bool = False) -> Iterator[ScorerPilot]:
    """The pilot of each scorer; with `varying`, only of those whose scores differ."""
    for info in run.scorers:
        # A score that is undefined in both runs is left out of a comparison.
        columns = _trial_means(run, info) if run.trials > 1 else _values(run, info)
        if (differ := varies(columns["values"])) < varying:
            continue
        from evalstone.stats.pilot import Pilot  # noqa: PLC0415 - numpy

        scores = (columns["values"], *itertools.chain(columns["ends"] or ()))
        pass_fail = all(only_has(each, (0.0, info.scale)) for each in scores)
        pilot = Pilot.of(**columns, scale=info.scale, paired=False, pass_fail=pass_fail)
        del columns, scores  # those of the next one may be large, too
        yield ScorerPilot(title=run.titles[info.signature], info=info, pilot=pilot, varies=differ)


def _values(run: Run, info: ScorerInfo) -> dict[str, Any]:
    """A scorer's values and groups, as arguments of `Pilot.of`. A missing score may have any value."""
    columns = run.columns
    rows = columns.rows(info.signature, kinds_that_count("failed"))
    groups = columns.groups(rows)
    labels = None if groups is None else group_labels(columns.keys(rows), groups)
    return {"values": columns.values(rows), "groups": labels, "ends": None}


def _trial_means(run: Run, info: ScorerInfo) -> dict[str, Any]:
    """The means over the trials of each sample, as arguments of `Pilot.of`: the number of samples is planned, with the
    same number of trials each."""
    scores = scores_of(run, info.signature, "worst").by_sample
    clustered = scores.groups is not None
    scores = scores.at([row for row in range(len(scores)) if row not in scores.undefined])
    groups = scores.groups or [None] * len(scores)
    return {
        "values": scores.values,
        "groups": group_labels(scores.names, groups) if clustered else None,
        "ends": scores.all_ends,
    }


def paired_pilot(a: Run, b: Run, allow_mismatch: bool) -> Iterator[ScorerPilot]:
    from evalstone.results.comparable_runs import pair_runs  # noqa: PLC0415 - not for what one run can detect

    for pair in pair_runs(a, b, allow_mismatch=allow_mismatch, missing="worst")[0]:
        pilot = pair.pilot(pair.info.scale)
        varies = pilot is not None and pilot.deviation > 0
        yield ScorerPilot(title=pair.title, info=pair.info, pilot=pilot, varies=varies)


def detectable_note(run: Run) -> str:
    """Sentences on the differences that a run of this size can detect.

    "" if scores are weighted; without scorers with too few scores.
    """
    if run.columns.has_weights and any(scores_of(run, each.signature).unequal_weights for each in run.scorers):
        return ""
    parts: list[str] = []
    impossible: list[str] = []
    for scores in single_pilot(run, varying=True):
        if scores.pilot is None:
            continue
        smallest = scores.pilot.detectable()
        if smallest is None:
            impossible.append(scores.title)
        else:
            parts.append(f"{smallest:.2g} in {scores.title}")
    sentences: list[str] = []
    if parts:
        sentences.append(
            f"Minimum detectable difference: a second run over the same samples would detect {', '.join(parts)} with "
            "80% power, and usually less, since the scores of two runs are correlated."
        )
    if impossible:
        sentences.append(
            f"Minimum detectable difference in {', '.join(impossible)}: none that the scale allows. More samples are "
            "needed."
        )
    return " ".join(sentences)
