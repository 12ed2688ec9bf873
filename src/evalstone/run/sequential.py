"""A gate that watches a run and stops it as soon as the verdict is clear.

Scores are tested in a random order that is fixed in advance, not in the order in which they arrive, because slow
samples may score differently. The error rates hold whenever the run stops, so samples that finish after the decision
count as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from evalstone.errors import ConfigError
from evalstone.results.columns import Entry
from evalstone.results.endings import DECIDED
from evalstone.results.largest_change import larger_change, larger_note
from evalstone.results.missing_scores import Missing, check_missing, counts
from evalstone.results.run import Run
from evalstone.results.scores import refuse_weights
from evalstone.results.summary import scorer_titles
from evalstone.run.baseline import Baseline, Difference
from evalstone.run.budget import StopSignal
from evalstone.run.plan import Plan, scorer_info
from evalstone.stats.betting import Value
from evalstone.stats.gates import Decision, GateVerdict, alpha_at_look, overall
from evalstone.stats.sequential import SequentialCriterion, SequentialGate, SequentialKind
from evalstone.types import Note, Record


@dataclass(frozen=True)
class _Watched:
    """A criterion of the gate."""

    title: str
    """The scorer's title."""
    criterion: SequentialCriterion
    difference: Difference | None = None
    """For a maximum regression."""


class RunGate:
    """A sequential gate: each scorer's mean must be at least its threshold, or at most if lower is better; and it must
    be worse than the baseline's by at most a margin, sample by sample.

    Args:
        plan: The plan of the run.
        thresholds: Scorer title to threshold.
        stop: Requested when all criteria are decided, or one has failed.
        baseline: The run that regressions are measured against.
        max_regression: Scorer title to the largest acceptable regression. At 0, the gate passes once the run is
            better than the baseline, and fails once it is worse.
        max_change: Scorer title to the largest possible change of a sample. It saves samples; declare it before you
            look at the scores.
        alpha: The probability of a wrong pass, and of a wrong fail, over all criteria and all later gates on the run.
            This gate is the first look and uses `alpha_at_look(alpha, 1)`.
        missing: How samples without a score count, as in `results.gate.gate`.
        allow_mismatch: Accept a baseline whose judge, scorers or cases differ.

    Raises:
        ConfigError: A threshold, a margin, a largest change, alpha or `missing` is invalid, samples are clustered or
            weighted, or the baseline is missing or not comparable.
    """

    def __init__(
        self,
        plan: Plan,
        thresholds: Mapping[str, float],
        stop: StopSignal,
        *,
        baseline: Run | None = None,
        max_regression: Mapping[str, float] | None = None,
        max_change: Mapping[str, float] | None = None,
        alpha: float = 0.05,
        missing: Missing = "worst",
        allow_mismatch: bool = False,
    ) -> None:
        check_missing(missing)
        margins, largest = max_regression or {}, max_change or {}
        infos = [scorer_info(scorer) for scorer in plan.scorers]
        titles = scorer_titles(infos)
        self._watched: dict[str, list[_Watched]] = {
            signature: [] for signature, title in titles.items() if title in thresholds or title in margins
        }
        for info in infos:
            title, signature = titles[info.signature], info.signature
            if title in thresholds:
                kind: SequentialKind = "max" if info.lower_is_better else "min"
                self._watched[signature].append(
                    _Watched(title, SequentialCriterion(title, thresholds[title], kind, high=info.scale))
                )
            if title in margins:
                of_sample = Difference(info, title, margins[title], largest.get(title))
                margin = margins[title] if info.lower_is_better else -margins[title]
                name, reach = f"{title}, difference from baseline", of_sample.reach
                criterion = SequentialCriterion(
                    name, margin, "max_regression", -reach, reach, lower_is_better=info.lower_is_better
                )
                self._watched[signature].append(_Watched(title, criterion, of_sample))
        self.alpha, self.look_alpha = alpha, alpha_at_look(alpha, 1)
        self.missing: Missing = missing
        every = [watched for of_scorer in self._watched.values() for watched in of_scorer]
        self._gate = SequentialGate([watched.criterion for watched in every], alpha=self.look_alpha)
        self._titles = {watched.criterion.name: watched.title for watched in every}
        self._larger: dict[str, Note] = {}
        """By criterion, the note on a sample that changes by more than declared."""
        self._stop = stop
        if plan.trials > 1:
            raise ConfigError(
                "trials of one sample are not independent and cannot be gated one by one; gate the finished run instead"
            )
        for sample in plan.dataset:
            if sample.cluster is not None:
                raise ConfigError(
                    f"sample {sample.id!r} is in group {sample.cluster!r}: clustered samples cannot be gated one by "
                    "one; gate the finished run instead"
                )
        weights = ((sample.id, sample.weight) for sample in plan.dataset)
        refuse_weights(weights, "a gate that stops the run", "gate the finished run instead (evalstone gate)")
        self.baseline: Baseline | None = None
        """The baseline; None without a maximum regression."""
        if margins:
            if baseline is None:
                raise ConfigError("a maximum regression needs a run to measure it against: a baseline")
            compared = {info.signature: info for info in infos if titles[info.signature] in margins}
            self.baseline = Baseline(baseline, plan, compared, missing, allow_mismatch=allow_mismatch)
        ids = [sample.id for sample in plan.dataset]
        self._order = [ids[place] for place in plan.random_order()]
        self._next = dict.fromkeys(self._watched, 0)
        self._waiting: dict[str, dict[str, Record]] = {signature: {} for signature in self._watched}

    def add(self, record: Record) -> None:
        """Add a record. The order doesn't matter."""
        scorer = record.signature
        if scorer not in self._watched:
            return
        waiting = self._waiting[scorer]
        waiting[record.sample_id] = record
        while self._next[scorer] < len(self._order) and self._order[self._next[scorer]] in waiting:
            first = waiting.pop(self._order[self._next[scorer]])
            self._next[scorer] += 1
            self._gate.add(dict(self._values(first)))
        if self._gate.settled or self._larger:
            self._stop.request("the gate is decided", DECIDED)

    def _values(self, record: Record) -> Iterator[tuple[str, Value]]:
        """The values of a sample by criterion, for those in which it counts."""
        for watched in self._watched[record.signature]:
            if watched.difference is None:
                if counts(Entry.of(record), self.missing):
                    yield watched.criterion.name, record.value
            elif self.baseline is not None and (pair := self.baseline.pair(record)) is not None:
                before, after = pair
                known = [] if before is None or after is None else [(record.sample_id, before, after)]
                if (larger := larger_change(known, reach := watched.difference.reach)) is not None:
                    self._larger.setdefault(watched.criterion.name, larger_note(reach, *larger))
                else:
                    yield watched.criterion.name, watched.difference.of(before, after)

    @property
    def waiting(self) -> int:
        """The number of scores that are not tested yet, because an earlier sample has no score."""
        return sum(record.value is not None for records in self._waiting.values() for record in records.values())

    def decisions(self) -> tuple[Decision, ...]:
        """The current decision on each criterion. It is a fail if a sample changes by more than declared."""
        return tuple(map(self._decision, self._gate.decisions()))

    def _decision(self, decision: Decision) -> Decision:
        titled = replace(decision, name=self._titles[decision.name])
        larger = self._larger.get(decision.name)
        return titled if larger is None else replace(titled, verdict="fail", notes=(*decision.notes, larger))

    @property
    def verdict(self) -> GateVerdict:
        """ "fail" if any criterion fails, else "inconclusive" if any is, else "pass"."""
        return overall(self.decisions())
