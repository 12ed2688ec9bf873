"""Align a judge: choose from labels how it is asked, and how its probabilities are read.

The judge is asked in several ways about the labeled samples: as it is, with other wordings, and with worked examples.
Examples are from a part of the labels that is used for nothing else. `stats.nested_selection` chooses between the
answers and estimates the gain. Each way asks about each sample once; the answers are in the ledger.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from evalstone._core import sync
from evalstone._core.declarations import TEXTS, Range, check_argument
from evalstone._core.display import joined
from evalstone._core.front_ends import Setting
from evalstone._core.json import content_hash
from evalstone._core.sizes import MOST_EXAMPLES
from evalstone.datasets import Dataset, Samples
from evalstone.datasets.columns import ColumnMapping
from evalstone.errors import ConfigError, DataError, JudgeError, invalid
from evalstone.judge_quality.calibrate import JudgeOptions, LabelConfig, default_threshold, texts_of
from evalstone.judges.aligned import (
    Aligned,
    AlignmentFile,
    alignments_in,
    mapped_answer,
    positive_share,
    reads_examples,
    reads_instructions,
)
from evalstone.judges.base import Judge, JudgeSpec
from evalstone.ledger.base import DEFAULT_LEDGER
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.decisions import answered_with, distributions, options_of
from evalstone.results.alignment import Alignment, AlignmentEstimate, Measured, TriedWay
from evalstone.results.calibration import LabeledScore
from evalstone.results.labels import LabeledSamples
from evalstone.results.run import Run
from evalstone.results.scores import group_labels
from evalstone.run.budget import Budget, StopSignal
from evalstone.run.dry_run import estimate
from evalstone.run.planning import judge_for
from evalstone.run.replay_session import ReplaySession, Reread
from evalstone.run.scoring import score_sample
from evalstone.scorers import Scorer, parse_scorers
from evalstone.scorers.base import ScorerSpec
from evalstone.stats.calibration import Scaled
from evalstone.stats.intervals import Interval, mean_interval
from evalstone.stats.nested_selection import Candidate, HeldOut, Objective, Selection, nested_selection
from evalstone.stats.weighted_agreement import weighted_auroc, weighted_measures
from evalstone.types import (
    AlignedQuestion,
    Asking,
    Note,
    Record,
    Sample,
    WorkedExample,
    note,
    reaches,
    sample_hash,
    total_cost,
)

WORDINGS: Mapping[str, str] = {
    "strict": "If you are in doubt, the right label is {negative}.",
    "lenient": "If you are in doubt, the right label is {positive}.",
}
"""Wordings by name: a sentence that is added to the prompt's own."""
SHARE_OF_EXAMPLES, MOST_IN_POOL = 0.2, 40
"""The share of labels that examples are chosen from, and the most of them."""
LONGEST_EXAMPLE = 6000
"""Characters of the longest sample that is shown as an example."""
COVERS = 0.25
"""How much a length or a slice that no example covers yet counts, beside a disagreement from 0 to 1."""
FEWEST_LABELS = 20
CUTS = tuple(round(0.05 * step, 2) for step in range(1, 20))
"""The thresholds that are tried if a sample has several labels."""


async def aalign(
    labels: Samples | Mapping[str, Any],
    scorer: ScorerSpec = "faithfulness",
    *,
    data: Samples | None = None,
    judge: JudgeSpec = "lexical",
    wording: str | Iterable[str] = (),
    examples: int = 4,
    objective: Objective = "accuracy",
    label: str | Iterable[str] = (),
    positive: str | Iterable[str] = (),
    label_range: tuple[float, float] | None = None,
    label_threshold: float | None = None,
    slice_by: str | Iterable[str] = (),
    map: ColumnMapping | None = None,
    keep_reasoning: bool = False,
    budget: float | None = None,
    cache: bool = True,
    concurrency: int = 32,
    ledger: str | Path | None = DEFAULT_LEDGER,
    progress: bool = False,
    stop: StopSignal | None = None,
) -> Alignment:
    """Choose from labels how a judge is asked by a scorer, and estimate what that gains.

    Candidates are the judge as it is, other wordings, worked examples, a threshold for its probabilities, and mappings
    of them. The gain is that on labels that had no part in the choice, by nested cross-validation. `Alignment.save`
    writes a file for `Aligned` and for `openai/gpt-5.1(align=align.json)`, if the gain is shown to be above 0.

    Args:
        labels: as for `calibrate`.
        scorer: one scorer, as for `evaluate`.
        data: the samples that the labels belong to.
        judge: as for `evaluate`.
        wording: other instructions for the scorer's question, which replace those of its prompt; "strict" or "lenient"
            adds a sentence on doubtful cases to them.
        examples: the maximum number of worked examples, from 0 to 16. Tried are 2, 4, 8 … up to it. Judges that don't
            write get none.
        objective: what is to be high: "accuracy", or "brier" for a low Brier score of the probabilities.
        label: the columns of labels, one per annotator.
        positive: labels that mean yes, if they aren't known words.
        label_range: the lowest and highest number that annotators could give.
        label_threshold: labels of at least this value count as yes, on the scorer's scale. By default, half the scale.
        slice_by: metadata fields whose values examples should cover.
        map: maps sample fields to column names.
        keep_reasoning: whether a model's reasoning in front of an output is scored as a part of it.
        budget: maximum cost in US dollars.
        cache: whether to use cached answers from the ledger.
        concurrency: maximum number of judge calls in flight.
        ledger: as for `evaluate`. None stores nothing.
        progress: whether to show a progress bar.
        stop: a signal that stops it. `stop_reason` then says so, and nothing is chosen.

    Raises:
        DataError: labels can't be read, or there are fewer than 20 with a truth.
        JudgeError: no labeled sample was scored.
        ConfigError: an argument is invalid, or nothing of the scorer can be aligned for this judge.
    """
    task = AlignmentTask.of(
        labels,
        scorer,
        data=data,
        judge=judge,
        wording=wording,
        examples=examples,
        objective=objective,
        config=LabelConfig(
            label=texts_of(label),
            positive=texts_of(positive),
            label_range=label_range,
            label_threshold=label_threshold,
        ),
        slice_by=texts_of(slice_by),
        options=JudgeOptions(
            concurrency=concurrency,
            cache=cache,
            budget=budget,
            map=map,
            keep_reasoning=keep_reasoning,
            progress=progress,
            stop=stop,
        ),
    )
    return await task.aligned(ledger)


align = sync.blocking(aalign)


@dataclass(frozen=True)
class _Way:
    """One way to ask the judge."""

    wording: str | None = None
    """The instructions, or the name of one of WORDINGS; None for those of the prompt."""
    examples: int = 0

    @property
    def name(self) -> str:
        """The wording by its name, or its beginning."""
        return "default" if self.wording is None else self.wording


@dataclass(frozen=True, kw_only=True)
class AlignmentTask:
    """What is to be aligned with which labels."""

    scorer: Scorer
    judge: Judge
    labeled: LabeledSamples
    label_threshold: float
    truths: Mapping[str, bool]
    """By sample id, whether the label means yes. Ties are left out."""
    human: Mapping[str, float]
    """By sample id, the mean label."""
    pool: tuple[Sample, ...]
    """The samples that examples are chosen from."""
    rest: tuple[Sample, ...]
    """The others, by which the judge is compared."""
    ways: tuple[_Way, ...]
    slice_by: tuple[str, ...]
    objective: Objective
    options: JudgeOptions
    source: str
    """The name of the labels."""
    notes: tuple[Note, ...] = ()

    @classmethod
    def of(
        cls,
        labels: Samples | Mapping[str, Any],
        scorer: ScorerSpec,
        *,
        config: LabelConfig | None = None,
        options: JudgeOptions | None = None,
        data: Samples | None = None,
        judge: JudgeSpec = "lexical",
        wording: str | Iterable[str] = (),
        examples: int = 4,
        objective: Objective = "accuracy",
        slice_by: tuple[str, ...] = (),
    ) -> AlignmentTask:
        """Read the labels. Arguments and errors are those of `align`."""
        check_argument("examples", examples, Annotated[int, Range(0, MOST_EXAMPLES)])
        if objective not in ("accuracy", "brier"):
            raise ConfigError(invalid(Setting("objective"), "accuracy or brier", objective))
        scorers = parse_scorers(scorer)
        if len(scorers) != 1:
            raise ConfigError(f"align takes one scorer, not {len(scorers)}")
        chosen = scorers[0]
        if not chosen.asks_shared_judge:
            reason = "it names its own judge" if chosen.may_ask else "it asks no judge"
            raise ConfigError(f"{chosen.name} can't be aligned: {reason}")
        parsed = judge_for((chosen,), judge)
        aligned_for = {each.signature for each in alignments_in(parsed)}
        if isinstance(parsed, Aligned) or chosen.signature in aligned_for:
            raise ConfigError(f"{parsed.identity} is aligned already; name the judge without align")
        options = options or JudgeOptions()
        labeled, threshold = (config or LabelConfig()).read(labels, chosen, data=data, map=options.map)
        pairs = {name: LabeledScore(name, 0.0, row) for name, row in labeled.labels.items()}
        found = {name: pair.truth(threshold, chosen.scale) for name, pair in pairs.items()}
        truths = {name: truth for name, truth in found.items() if truth is not None}
        yes = sum(truths.values())
        if len(truths) < FEWEST_LABELS or min(yes, len(truths) - yes) < 2:
            raise DataError(
                f"align needs at least {FEWEST_LABELS} labels, 2 or more of them yes and 2 or more no; these are "
                f"{yes} yes and {len(truths) - yes} no"
            )
        wordings = _wordings(texts_of(wording))
        reads = reads_examples(parsed)
        if wordings and not reads_instructions(parsed):
            raise ConfigError(f"{parsed.identity} reads no instructions, so that another wording changes nothing")
        counts = _counts(examples) if reads else ()
        samples = [sample for sample in labeled.dataset if sample.id in truths]
        pool = _pool(samples, truths, labeled.clusters, max(counts, default=0))
        taken = {sample.id for sample in pool}
        return cls(
            scorer=chosen,
            judge=parsed,
            labeled=labeled,
            label_threshold=threshold,
            truths=truths,
            human={name: pair.label for name, pair in pairs.items()},
            pool=tuple(pool),
            rest=tuple(sample for sample in samples if sample.id not in taken),
            ways=tuple(_Way(each, number) for each in (None, *wordings) for number in (0, *(counts if pool else ()))),
            slice_by=slice_by,
            objective=objective,
            options=options,
            source="labels in memory" if not isinstance(labels, str | Path) else Path(labels).name,
            notes=tuple(_notes(labeled, len(labeled.labels) - len(truths), reads=reads or not examples)),
        )

    def of_samples(self, samples: Sequence[Sample]) -> Dataset:
        """Some of the samples as a dataset."""
        return Dataset(samples, self.labeled.dataset.name)

    async def estimated(self, ledger: str | Path | None) -> AlignmentEstimate:
        """The calls that `aligned` makes at most, without making any.

        Examples aren't known yet, so their length is that of the questions.
        """
        everything = self.of_samples((*self.pool, *self.rest))
        plan = self.options.plan("alignment", everything, [self.scorer], self.judge)
        first = await estimate(plan, ledger=ledger if self.options.cache else None)
        # Answers in the ledger are to the judge as it is asked now, not in other ways.
        every = await estimate(self.options.plan("alignment", self.of_samples(self.rest), [self.scorer], self.judge))
        per_call = every.usage.input / every.calls if every.calls else 0.0
        extra = sum(1 + way.examples for way in self.ways[1:])
        ways = len(self.ways) - 1
        cost = first.cost
        if extra and first.calls + every.calls:
            cost = total_cost((first.cost, None if every.cost is None else every.cost * extra))
        return AlignmentEstimate(
            judge=self.judge.identity,
            scorer=self.scorer.name,
            samples=len(self.pool) + len(self.rest),
            compared=len(self.rest),
            ways=len(self.ways),
            calls=first.calls + ways * every.calls,
            input_tokens=round(first.usage.input + per_call * every.calls * extra),
            output_tokens=first.usage.output + ways * every.usage.output,
            cost=cost,
        )

    async def aligned(self, ledger: str | Path | None) -> Alignment:
        """Ask, choose, and estimate the gain."""
        budget = Budget.of(self.options.budget, self.judge)
        runs: list[Run] = []

        async def asked(judge: Judge, samples: Sequence[Sample]) -> Run:
            run = await self.options.run(
                "alignment", self.of_samples(samples), [self.scorer], judge, ledger, budget=budget
            )
            runs.append(run)
            return run

        first = await asked(self.judge, (*self.pool, *self.rest))
        if first.stop_reason:
            return self._ended(runs)
        if not any(record.value is not None for record in first.records):
            reasons = first.summary[0].reasons
            raise JudgeError(f"no labeled sample was scored{f': {reasons[0][0]}' if reasons else ''}")
        seen = await _Seen.of(self, first)
        chosen: dict[_Way, AlignedQuestion] = {}
        candidates = [await seen.candidate(first, seen.question)]
        ordered = seen.examples()
        notes = [*self.notes, *seen.notes]
        if max((way.examples for way in self.ways), default=0) > len(ordered):
            notes.append(note("few_examples", "caution", examples=len(ordered)))
        ways = [self.ways[0]]
        for way in self.ways[1:]:
            if way.examples > len(ordered):
                continue
            chosen[way] = seen.in_way(way, ordered)
            judge = Aligned(self.judge, self._file(chosen[way]))
            run = await asked(judge, self.rest)
            if run.stop_reason:
                return self._ended(runs)
            ways.append(way)
            candidates.append(await seen.candidate(run, chosen[way]))
        if len(ways) == 1 and not candidates[0].probabilities and not candidates[0].at:
            raise ConfigError(
                f"there is nothing to choose for {self.scorer.name} and {self.judge.identity}: no other wording, no "
                "examples, and no probabilities of its labels"
            )
        truths = [self.truths[sample.id] for sample in self.rest]
        clusters = self.labeled.clusters
        names = group_labels((each.id for each in self.rest), (clusters[each.id] or None for each in self.rest))
        groups = None if len(set(names)) == len(names) else names
        found = nested_selection(candidates, truths, objective=self.objective, groups=groups)
        if found is None:
            raise DataError("align needs at least 2 labels that mean yes and 2 that mean no, beside those for examples")
        pick = found.chosen
        question = seen.question if pick.candidate == 0 else chosen[ways[pick.candidate]]
        default = _measured(truths, found.default, groups)
        notes += default.chance_notes
        return Alignment(
            **self._about(runs),
            chosen=None if pick.is_default else seen.mapped(question, pick),
            wording=ways[pick.candidate].name,
            gain=found.gain,
            wins=found.wins,
            losses=found.losses,
            edge=found.edge,
            default=default,
            aligned=_measured(truths, found.held_out, groups),
            tried=tuple(
                TriedWay(
                    wording=way.name,
                    examples=way.examples,
                    accuracy=sum(a == b for a, b in zip(each.verdicts, truths, strict=True)) / len(truths),
                    unscored=sum(verdict is None for verdict in each.verdicts),
                    picked=found.picks.get(place, 0),
                )
                for place, (way, each) in enumerate(zip(ways, candidates, strict=True))
            ),
            tried_thresholds=bool(candidates[0].at),
            notes=tuple(notes),
        )

    def _file(self, chosen: AlignedQuestion) -> AlignmentFile:
        return AlignmentFile(
            judge=self.judge.identity, scorer=self.scorer.name, signature=self.scorer.signature, chosen=chosen
        )

    def _about(self, runs: Sequence[Run]) -> dict[str, Any]:
        """What every alignment of this task says."""
        return {
            "judge": self.judge.identity,
            "scorer": self.scorer.name,
            "signature": self.scorer.signature,
            "objective": self.objective,
            "dataset_name": self.labeled.dataset.name,
            "dataset_version": self.labeled.dataset.version,
            "labels": self.source,
            "columns": self.labeled.columns,
            "n_pool": len(self.pool),
            "n_compared": len(self.rest),
            "labeled": tuple(sample_hash(sample) for sample in (*self.pool, *self.rest)),
            "labels_hash": content_hash(
                sorted(
                    [sample_hash(sample), list(self.labeled.labels[sample.id])] for sample in (*self.pool, *self.rest)
                )
            ),
            "n_failed": runs[0].summary[0].n_failed,
            "cost": total_cost(record.cost for run in runs for record in run.records),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }

    def _ended(self, runs: Sequence[Run]) -> Alignment:
        return Alignment(**self._about(runs), stop_reason=runs[-1].stop_reason)


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """What the judge was asked about each labeled sample, and what its labels mean."""

    task: AlignmentTask
    question: AlignedQuestion
    """The kind of question that decides, as it is asked now."""
    asked: Mapping[str, tuple[Question[Any], ...]]
    """By sample id, the questions of that kind."""
    records: Mapping[str, Record]
    scores: Mapping[str, float]
    """By label, the score of a sample whose labels are all this one."""
    has_one: bool
    """Whether each sample has one label."""
    notes: tuple[Note, ...] = ()

    @classmethod
    async def of(cls, task: AlignmentTask, run: Run) -> _Seen:
        """Find the kind of question whose labels decide the score. Raises ConfigError if there is none, or several."""
        scorer = task.scorer
        samples = {sample.id: sample for sample in (*task.pool, *task.rest)}
        records = {record.sample_id: record for record in run.records}
        asked: dict[str, tuple[Question[Any], ...]] = {}
        kinds: dict[tuple[str, str], Question[Any]] = {}
        for name, record in records.items():
            session = ReplaySession(record.calls, keeps_reasoning=task.options.keep_reasoning, asking=run.asking)
            await _scored(scorer, samples[name], session)
            asked[name] = tuple(each for each in session.questions.values() if options_of(each))
            kinds.update({(each.kind, each.prompt.digest): each for each in asked[name]})
        if not kinds:
            raise ConfigError(f"{scorer.name} can't be aligned: it asks nothing whose answer is a label")
        if len({kind for kind, _ in kinds}) > 1:
            names = joined(sorted({kind for kind, _ in kinds}))
            raise ConfigError(f"{scorer.name} can't be aligned: it asks several questions with labels, {names}")
        (kind, digest) = next(iter(kinds))
        if len(kinds) > 1 or digest not in {prompt.digest for prompt in scorer.prompts()}:
            raise ConfigError(
                f"{scorer.name} can't be aligned: its prompt depends on the sample, or the judge writes a part of it"
            )
        one = {name: len(each) == 1 and len(options_of(each[0])) == 1 for name, each in asked.items() if each}
        typical = next((name for name, is_one in one.items() if is_one), next(iter(one)))
        scores = await _scores_of_labels(task, samples[typical], records[typical], run.asking, kind)
        threshold = default_threshold(scorer) / scorer.scale
        positive = tuple(label for label, score in scores.items() if reaches(score, threshold))
        if not positive or len(positive) == len(scores):
            positive = ()
        many = sum(not is_one for is_one in one.values())
        return cls(
            task=task,
            question=AlignedQuestion(kind=kind, prompt=digest, positive=() if _are_numbers(scores) else positive),
            asked=asked,
            records=records,
            scores=scores,
            has_one=not many,
            notes=(note("several_labels", "fact", samples=many, of=len(one)),) if many and task.pool else (),
        )

    def examples(self) -> list[WorkedExample]:
        """The labeled samples of the pool that are worth showing, the best first.

        Classes take turns. Of a class, those come first whose score is far from the label, and whose length and slices
        no other example has.
        """
        task, scale = self.task, self.task.scorer.scale
        left: list[tuple[Sample, float, WorkedExample, tuple[object, ...]]] = []
        lengths = sorted(self._length(sample) for sample in task.pool if self._is_one(sample))
        for sample in task.pool:
            if not self._is_one(sample) or (length := self._length(sample)) > LONGEST_EXAMPLE:
                continue
            value = self.records[sample.id].value
            human = task.human[sample.id] / scale
            away = 1.0 if value is None else abs(value / scale - human)
            label = min(
                (each for each in self.scores if (self.scores[each] >= 0.5) is (human >= 0.5)),
                key=lambda each: abs(self.scores[each] - human),
                default="",
            )
            if label:
                covers = (3 * lengths.index(length) // len(lengths), *map(sample.metadata.get, task.slice_by))
                inputs = self.asked[sample.id][0].inputs()
                left.append((sample, away, WorkedExample(inputs=inputs, label=label), covers))
        chosen: list[WorkedExample] = []
        covered: list[set[object]] = [set() for _ in range(1 + len(task.slice_by))]
        last: bool | None = None
        while left and len(chosen) < max(way.examples for way in task.ways):
            turn = [each for each in left if last is None or task.truths[each[0].id] is not last] or left
            best = max(turn, key=lambda each: each[1] + COVERS * _new(each[3], covered))
            left.remove(best)
            chosen.append(best[2])
            last = task.truths[best[0].id]
            for values, value in zip(covered, best[3], strict=True):
                values.add(str(value))
        return chosen

    def in_way(self, way: _Way, examples: Sequence[WorkedExample]) -> AlignedQuestion:
        """The question in one of the ways."""
        wording = way.wording
        if (named := WORDINGS.get(wording or "")) is not None:
            sentence = named.format(positive=self._named(best=True), negative=self._named(best=False))
            question = next(each[0] for each in self.asked.values() if each)
            wording = f"{question.prompt.instructions}\n\n{sentence}".strip()
        return replace(self.question, wording=wording, examples=tuple(examples[: way.examples]))

    def _named(self, *, best: bool) -> str:
        """The label with the highest or the lowest score."""
        label = (max if best else min)(self.scores, key=lambda each: self.scores[each])
        return f'"{label}"'

    def mapped(self, question: AlignedQuestion, pick: Selection) -> AlignedQuestion:
        """The question with a chosen mapping of its probabilities; without one, nothing is mapped."""
        mapped = replace(question, threshold=pick.threshold, temperature=pick.temperature, corners=pick.corners)
        return mapped if mapped.maps else replace(mapped, positive=())

    async def candidate(self, run: Run, question: AlignedQuestion) -> Candidate:
        """What the judge said in a run of the samples that are compared."""
        task, scorer = self.task, self.task.scorer
        records = {record.sample_id: record for record in run.records}
        mine = [(sample, records.get(sample.id)) for sample in task.rest]
        verdicts = [None if record is None else self._verdict(record) for _, record in mine]
        if not self.question.positive:
            return Candidate(verdicts=verdicts)
        if self.has_one:
            shares = [None if record is None else self._share(sample, record) for sample, record in mine]
            return Candidate(verdicts=verdicts, probabilities=shares if any(s is not None for s in shares) else ())
        if not any(call.alternatives for _, record in mine if record is not None for call in record.calls):
            return Candidate(verdicts=verdicts)
        scored = await self._rescored(mine, run.asking, Scaled(0.3, 2.0))
        values = [None if record is None or record.value is None else record.value / scorer.scale for _, record in mine]
        if all(_is_mapped(before, after) for before, after in zip(values, scored, strict=True)):
            return Candidate(verdicts=verdicts, probabilities=values)
        threshold = default_threshold(scorer) / scorer.scale
        at = {
            cut: [
                None if value is None else reaches(value, threshold)
                for value in await self._rescored(mine, run.asking, Scaled(cut))
            ]
            for cut in CUTS
            if cut != 0.5
        }
        return Candidate(verdicts=verdicts, at=at)

    async def _rescored(
        self, mine: Sequence[tuple[Sample, Record | None]], asking: Asking, mapping: Scaled
    ) -> list[float | None]:
        """The scores, divided by the scale, with mapped probabilities."""
        chosen = replace(self.question, threshold=mapping.threshold, temperature=mapping.temperature)
        found: list[float | None] = []
        for sample, record in mine:
            value = None
            if record is not None:
                session = ReplaySession(
                    record.calls,
                    keeps_reasoning=self.task.options.keep_reasoning,
                    asking=asking,
                    reread=_mapping(chosen),
                )
                value = (await _scored(self.task.scorer, sample, session)).value
            found.append(None if value is None else value / self.task.scorer.scale)
        return found

    def _verdict(self, record: Record) -> bool | None:
        scorer = self.task.scorer
        return None if record.value is None else reaches(record.value, default_threshold(scorer), scorer.scale)

    def _share(self, sample: Sample, record: Record) -> float | None:
        """The probability of a yes for a sample with one label."""
        if record.value is None or not (asked := self.asked.get(sample.id)):
            return None
        call = next((call for call in record.calls if call.fingerprint == asked[0].fingerprint), None)
        shares = None if call is None else distributions(asked[0], call.alternatives)
        return None if shares is None else positive_share(shares[0], self.question.positive)

    def _is_one(self, sample: Sample) -> bool:
        asked = self.asked.get(sample.id, ())
        return len(asked) == 1 and len(options_of(asked[0])) == 1 and asked[0].prompt.fenced

    def _length(self, sample: Sample) -> int:
        values = self.asked[sample.id][0].inputs().values()
        return sum(len(value) if isinstance(value, str) else sum(map(len, value)) for value in values)


async def _scored(scorer: Scorer, sample: Sample, session: ReplaySession) -> Record:
    try:
        return await score_sample(scorer, sample, session)
    finally:
        await session.close()


def _measured(truths: Sequence[bool], judged: HeldOut, groups: Sequence[str] | None) -> Measured:
    """How well what was judged agrees with the labels."""
    pairs = zip(judged.verdicts, truths, strict=True)
    verdicts = [not truth if verdict is None else verdict for verdict, truth in pairs]
    measures = weighted_measures(verdicts, truths, groups=groups)
    accuracy, balanced = cast(Interval, measures["accuracy"]), measures["balanced_accuracy"]  # there are cases
    if judged.probabilities is None or judged.unmapped is None:
        return Measured(accuracy=accuracy, balanced_accuracy=balanced)
    squares = [(p - truth) ** 2 for p, truth in zip(judged.probabilities, truths, strict=True)]
    return Measured(
        accuracy=accuracy,
        balanced_accuracy=balanced,
        brier=mean_interval(squares, low=0.0, high=1.0, groups=groups),
        auroc=weighted_auroc(list(judged.unmapped), list(truths), groups=groups),
    )


def _mapping(chosen: AlignedQuestion) -> Reread:
    def reread(question: Question[Any], answer: JudgeAnswer[Any]) -> JudgeAnswer[Any]:
        if question.kind != chosen.kind or (mapped := mapped_answer(chosen, question, answer)) is None:
            return answer
        return replace(answer, value=mapped.value, probability=mapped.probability, alternatives=mapped.alternatives)

    return reread


async def _scores_of_labels(
    task: AlignmentTask, sample: Sample, record: Record, asking: Asking, kind: str
) -> dict[str, float]:
    """By label, the score of a sample, divided by the scale, if all of its labels are this one. Labels without a score
    are left out."""
    replayed = partial(ReplaySession, record.calls, keeps_reasoning=task.options.keep_reasoning, asking=asking)
    questions = replayed()
    await _scored(task.scorer, sample, questions)
    asked = next(each for each in questions.questions.values() if each.kind == kind)
    found: dict[str, float] = {}
    for label in options_of(asked)[0]:

        def answered(question: Question[Any], answer: JudgeAnswer[Any], label: str = label) -> JudgeAnswer[Any]:
            if question.kind != kind:
                return answer
            value = answered_with(question, [label] * len(options_of(question)))
            return replace(answer, value=value, alternatives=None)

        value = (await _scored(task.scorer, sample, replayed(reread=answered))).value
        if value is not None:
            found[label] = value / task.scorer.scale
    return found


def _is_mapped(before: float | None, after: float | None) -> bool:
    """Whether a score follows the mapping of probabilities, so that it is one."""
    if before is None or after is None:
        return before is after
    return math.isclose(Scaled(0.3, 2.0)(before), after, abs_tol=1e-6)


def _are_numbers(labels: Iterable[str]) -> bool:
    return all(label.replace(".", "", 1).isdecimal() for label in labels)


def _new(values: Sequence[object], covered: Sequence[set[object]]) -> int:
    return sum(str(value) not in known for value, known in zip(values, covered, strict=True))


def _counts(most: int) -> tuple[int, ...]:
    """The numbers of examples that are tried: 2, 4, 8 … up to the maximum."""
    counts = [number for number in (2, 4, 8, 16) if number < most]
    return (*counts, most) if most else ()


def _pool(
    samples: Sequence[Sample], truths: Mapping[str, bool], clusters: Mapping[str, str], most: int
) -> list[Sample]:
    """The samples that examples are chosen from: at random, the same share of each class, whole clusters at a time."""
    if not most:
        return []
    size = min(max(round(SHARE_OF_EXAMPLES * len(samples)), 2 * most), MOST_IN_POOL, len(samples) // 3)
    groups: dict[object, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(clusters[sample.id] or ("alone", sample.id), []).append(sample)
    order = list(groups.values())
    random.Random(0).shuffle(order)
    share = sum(truths.values()) / len(truths)
    wanted = {True: round(size * share), False: size - round(size * share)}
    chosen: list[Sample] = []
    for members in order:
        if len(chosen) + len(members) <= size and wanted[truths[members[0].id]] > 0:
            chosen += members
            for member in members:
                wanted[truths[member.id]] -= 1
    return chosen


def _wordings(texts: Sequence[str]) -> list[str]:
    """The wordings, without blanks around them. Raises ConfigError for a blank one, and for a repeated one."""
    check_argument("wording", texts, Annotated[Any, TEXTS])
    stripped = [text.strip() for text in texts]
    if len(set(stripped)) < len(stripped):
        raise ConfigError("a wording is named twice")
    return stripped


def _notes(labeled: LabeledSamples, ties: int, *, reads: bool) -> Iterable[Note]:
    if ties:
        yield note("annotators_split", "caution", samples=ties)
    if labeled.n_unlabeled:
        rows = labeled.n_unlabeled + len(labeled.labels)
        yield note("rows_without_label", "fact", rows=labeled.n_unlabeled, of=rows)
    if any(labeled.clusters.values()):
        alone = sum(not cluster for cluster in labeled.clusters.values())
        clusters = alone + len({cluster for cluster in labeled.clusters.values() if cluster})
        yield note("labels_clustered", "fact", labels=len(labeled.labels), clusters=clusters)
    if labeled.strata is not None:
        yield note("labels_of_strata", "caution")
    if not reads:
        yield note("no_examples_read", "fact")
