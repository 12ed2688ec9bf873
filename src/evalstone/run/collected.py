"""The records of a run so far, and what is said of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalstone._core import sync
from evalstone.agents.reasoning import answered, has_reasoning
from evalstone.judges.base import Judge, cautioning
from evalstone.results.judge_stats import JudgeStats
from evalstone.results.spilling import SpillingRecords
from evalstone.results.summary import WITHOUT, ScorerSummary, SummaryBuilder
from evalstone.run.plan import Plan, scorer_info
from evalstone.run.problems import problems
from evalstone.run.same_family import families_of, same_family_notes
from evalstone.types import Drawn, Note, Record, Sample

if TYPE_CHECKING:
    from evalstone.run.target_session import TargetSession


class Collected:
    """The records of a plan, by the numbers of their cells: those of a sample and trial follow each other, in the order
    of the scorers."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.records = SpillingRecords([scorer.signature for scorer in plan.scorers], len(plan.dataset) * plan.trials)
        self.scorers = tuple(scorer_info(scorer) for scorer in plan.scorers)
        self.cautions: tuple[Note, ...] = ()
        """The judges' notes on the scored samples, once `find_cautions` has looked for them."""
        self._summaries = {info.signature: SummaryBuilder(info) for info in self.scorers}
        self._judge_stats = JudgeStats() if any(judge.members for judge in plan.judges) else None
        self._has_reasoning, self._reasoned = False, 0

    def add(self, index: int, record: Record, line: str | None = None) -> None:
        """Add the record of a cell. line: its `record_line`, if it is known."""
        self._summaries[record.signature].add(record)
        if self._judge_stats is not None:
            self._judge_stats.add(record)
        self.records.put(index, record, line)

    def look_at(self, sample: Sample) -> None:
        """Note whether a sample that is scored begins with reasoning."""
        self._has_reasoning = self._has_reasoning or has_reasoning(sample)

    def open_in(self, place: int) -> int:
        """The number of scorers without a record of a sample and trial. place: its number in the plan."""
        return sum(not self.records.has(index) for index in self._cells(place))

    def records_of(self, place: int) -> dict[str, Record]:
        """All records of a sample and trial, by scorer. None of them may be missing."""
        return {record.scorer: record for record in map(self.records.at, self._cells(place))}

    def _cells(self, place: int) -> range:
        return range(place * len(self.scorers), (place + 1) * len(self.scorers))

    # ---- What is said of them ----

    def summary(self) -> tuple[ScorerSummary, ...]:
        """The summary of each scorer."""
        return tuple(builder.summary() for builder in self._summaries.values())

    def judge_stats(self) -> dict[str, Any]:
        """How the members of composite judges voted; empty without a composite judge."""
        return {} if self._judge_stats is None else self._judge_stats.to_dict()

    async def find_cautions(self, answers: TargetSession | None) -> None:
        """Ask the judges that were asked for notes on the scored samples. answers: those of the target."""
        asked = {
            identity.partition(WITHOUT)[0] for builder in self._summaries.values() for identity in builder.counts.judges
        }
        judges = [judge for judge in self.plan.judges if judge.identity in asked]
        if cautioning(*judges) or any(map(families_of, judges)):
            self.cautions = await sync.call_at_once(self._cautions_of, judges, answers)

    def _cautions_of(self, judges: Sequence[Judge], answers: TargetSession | None) -> tuple[Note, ...]:
        keep = self.plan.keep_reasoning
        sources = cautioning(*judges)
        notes = {
            each.identity: each.cautions(s if keep else answered(s) for s in self._scored(answers)) for each in sources
        }
        found: list[Note] = []
        for judge in judges:
            found += (note for source in judge.with_cautions() for note in notes[source.identity])
            found += same_family_notes(judge, self.plan.target, self._scored(answers))
        return tuple(dict.fromkeys(found))

    async def count_reasoning(self, answers: TargetSession | None, *, resumed: bool) -> None:
        """Count the scored outputs that begin with reasoning, if this process has seen one, or not all of them."""
        if self._has_reasoning or resumed:
            self._reasoned = await sync.call_at_once(lambda: sum(map(has_reasoning, self._scored(answers))))

    def _scored(self, answers: TargetSession | None) -> Iterator[Sample]:
        """The samples with at least one record, with the target's answers."""
        for place, sample in enumerate(self.plan.cases()):
            if self.open_in(place) == len(self.scorers):
                continue
            if answers is None:
                yield sample
            elif answers.samples.has(place):
                yield answers.samples.at(place)

    def warnings(self, retried: Mapping[str, int], summary: Sequence[ScorerSummary]) -> dict[str, int]:
        """The problems of the run, with their counts. retried: the errors that were retried."""
        dropped: dict[tuple[str, str, int], int] = {}  # scorers share the calls whose items were dropped
        for builder in self._summaries.values():
            dropped.update(builder.counts.dropped)
        reasoned, keep = self._reasoned, self.plan.keep_reasoning
        return problems(retried, summary, sum(dropped.values()), reasoned, keep_reasoning=keep)

    def drawn(self) -> Drawn:
        """The random order, and the number of samples that each scorer has scored in it without a gap."""
        tested: dict[str, int] = {}
        order = self.plan.random_order()
        for place, info in enumerate(self.scorers):
            scored = (self.records.has(sample * len(self.scorers) + place) for sample in order)
            tested[info.signature] = sum(1 for _ in itertools.takewhile(bool, scored))
        return Drawn(seed=self.plan.fingerprint, tested=tested)
