"""A gate that watches a run and stops it as soon as the verdict is clear.

Scores are tested in a random order that is fixed in advance, not in the order in which they arrive, because slow
samples may score differently. The error rates hold whenever the run stops, so samples that finish after the decision
count as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from evalstone.errors import ConfigError
from evalstone.results.endings import DECIDED
from evalstone.results.missing_scores import Missing, check_missing, counts
from evalstone.results.scores import refuse_weights
from evalstone.results.summary import scorer_titles
from evalstone.run.budget import StopSignal
from evalstone.run.plan import Plan, scorer_info
from evalstone.stats.gates import Decision, Verdict, alpha_at_look, overall
from evalstone.stats.sequential import SequentialGate, Target
from evalstone.types import Record


class RunGate:
    """A sequential gate: each scorer's mean must be at least its threshold, or at most if lower is better.

    Args:
        plan: The plan of the run.
        thresholds: Scorer signature to threshold.
        stop: Requested when all thresholds are decided, or one has failed.
        alpha: The probability of a wrong pass, and of a wrong fail, over all thresholds and all later gates on the run.
            This gate is the first look and uses `alpha_at_look(alpha, 1)`.
        missing: How samples without a score count, as in `results.gate.gate`.

    Raises:
        ConfigError: A threshold, alpha or `missing` is invalid, or samples are clustered or weighted.
    """

    def __init__(
        self,
        plan: Plan,
        thresholds: Mapping[str, float],
        stop: StopSignal,
        *,
        alpha: float = 0.05,
        missing: Missing = "worst",
    ) -> None:
        check_missing(missing)
        watched = [scorer_info(scorer) for scorer in plan.scorers if scorer.signature in thresholds]
        titles = scorer_titles([scorer_info(scorer) for scorer in plan.scorers])
        self._titles = {info.signature: titles[info.signature] for info in watched}
        targets = [
            Target(
                self._titles[info.signature],
                thresholds[info.signature],
                "at_most" if info.lower_is_better else "at_least",
                high=info.scale,
            )
            for info in watched
        ]
        self.alpha = alpha_at_look(alpha, 1)
        self.missing: Missing = missing
        self._gate = SequentialGate(targets, alpha=self.alpha)
        self._stop = stop
        if plan.trials > 1:
            raise ConfigError(
                "trials of one sample are not independent and cannot be gated one by one; gate the finished run instead"
            )
        for sample in plan.dataset:
            if sample.group is not None:
                raise ConfigError(
                    f"sample {sample.id!r} is in group {sample.group!r}: clustered samples cannot be gated one by one; "
                    "gate the finished run instead"
                )
        weights = ((sample.id, sample.weight) for sample in plan.dataset)
        refuse_weights(weights, "a gate that stops the run", "gate the finished run instead (evalstone gate)")
        ids = [sample.id for sample in plan.dataset]
        self._order = [ids[place] for place in plan.random_order()]
        self._next = dict.fromkeys(self._titles, 0)
        self._waiting: dict[str, dict[str, Record]] = {signature: {} for signature in self._titles}

    def add(self, record: Record) -> None:
        """Add a record. The order doesn't matter."""
        scorer = record.scorer
        if (title := self._titles.get(scorer)) is None:
            return
        waiting = self._waiting[scorer]
        waiting[record.sample] = record
        while self._next[scorer] < len(self._order) and self._order[self._next[scorer]] in waiting:
            first = waiting.pop(self._order[self._next[scorer]])
            self._next[scorer] += 1
            if counts(first, self.missing):
                self._gate.add({title: first.value})
        if self._gate.settled:
            self._stop.request("the gate is decided", DECIDED)

    @property
    def waiting(self) -> int:
        """The number of scores that are not tested yet, because an earlier sample has no score."""
        return sum(record.value is not None for records in self._waiting.values() for record in records.values())

    def decisions(self) -> tuple[Decision, ...]:
        """The current decision on each threshold."""
        return self._gate.decisions()

    @property
    def verdict(self) -> Verdict:
        """ "fail" if any threshold fails, else "inconclusive" if any is, else "pass"."""
        return overall(self.decisions())
