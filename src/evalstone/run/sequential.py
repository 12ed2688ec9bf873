"""A gate that is looked at while a run goes, and ends it as soon as the answer is clear.

Samples are judged in a random order, and are looked at in that order whichever is done first: one that takes long may
not be passed over, for what takes long may well score differently. The error rates hold whenever the run stops.
"""

from __future__ import annotations

from collections.abc import Mapping

from evalstone.errors import ConfigError
from evalstone.run.budget import Stop
from evalstone.run.plan import Plan
from evalstone.stats.gates import Decision, Verdict, overall
from evalstone.stats.sequential import SequentialGate, Target
from evalstone.types import Record

DECIDED = "the gate is decided"


class RunGate:
    """Watches a run: each scorer's mean is to be at least so much, at most so much where lower is better.

    plan: of the run. bars: scorer name to mean. stop: is requested once every bar is decided, or one has failed.
    error: the chance of a wrong pass, and of a wrong fail, over all bars. Raises ConfigError for an impossible bar or
    error, and for samples in groups.
    """

    def __init__(self, plan: Plan, bars: Mapping[str, float], stop: Stop, *, error: float = 0.05) -> None:
        watched = [scorer for scorer in plan.scorers if scorer.name in bars]
        self._names = {scorer.signature: scorer.name for scorer in watched}
        self._gate = SequentialGate(
            [
                Target(s.name, bars[s.name], "at_most" if s.lower_is_better else "at_least", 0.0, s.scale)
                for s in watched
            ],
            alpha=error,
        )
        self._stop = stop
        ids: list[str] = []
        for sample in plan.dataset:
            if sample.group is not None:
                raise ConfigError(
                    f"sample {sample.id!r} is in group {sample.group!r}: samples that hang together cannot be gated "
                    "one by one; let the run end and gate it then"
                )
            ids.append(sample.id)
        self._order = [ids[place] for place in plan.random_order()]
        self._next = 0
        self._waiting: dict[str, dict[str, float | None]] = {}

    def add(self, record: Record) -> None:
        """One more record of the run, in whatever order they come."""
        name = self._names.get(record.scorer)
        if name is None:
            return
        self._waiting.setdefault(record.sample, {})[name] = record.value
        while self._next < len(self._order) and self._whole(self._order[self._next]):
            values = self._waiting.pop(self._order[self._next])
            self._next += 1
            if not self._gate.settled:
                self._gate.add({name: value for name, value in values.items() if value is not None})
        if self._gate.settled:
            self._stop.request(DECIDED)

    def _whole(self, sample: str) -> bool:
        return len(self._waiting.get(sample, ())) == len(self._names)

    def decisions(self) -> tuple[Decision, ...]:
        """Where each bar stands."""
        return self._gate.decisions()

    @property
    def verdict(self) -> Verdict:
        """ "fail" if any bar fails, else "inconclusive" if any is, else "pass"."""
        return overall(self.decisions())
