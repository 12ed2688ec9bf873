"""Runs from the rows of a file: one for each system that answered.

The rows are read once and wait in temporary files, because only the last one tells which metrics and how many trials
there are. Summaries, intervals, versions of datasets and rows of the ledger are made by the code of ordinary runs. A
system is a target: its answers are put into the samples, and stored, as those of targets are.
"""

from __future__ import annotations

import hashlib
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from evalstone._core.display import excerpt
from evalstone._core.front_ends import Setting
from evalstone._core.json import content_hash, value_of
from evalstone._core.sizes import MOST_OUTCOMES, MOST_SCALE, MOST_TRIALS
from evalstone.compat.imports.checking import OurRun, Ours, checked
from evalstone.compat.imports.results import About, Event, Metric, Printed, Result, Row, failed, metric_name
from evalstone.datasets.blocks import SpooledSamples, sample_blocks
from evalstone.datasets.identity import Version, made_unique
from evalstone.datasets.loading import MOST_IN_MEMORY
from evalstone.datasets.stored import record_line, sample_of, sample_row
from evalstone.errors import DataError, unknown
from evalstone.ledger import RunRow, StoredAnswer
from evalstone.ledger.base import TARGET, Operations, chunks, target_scope
from evalstone.ledger.store import Ledger
from evalstone.results.run import Run
from evalstone.results.spilling import SpillingList, SpillingRecords
from evalstone.results.stored_records import StoredRecords
from evalstone.results.summary import ScorerInfo, ScorerSummary, SummaryBuilder, scorer_titles
from evalstone.run.answer_rows import TargetReply, answer_key
from evalstone.run.problems import named_judges
from evalstone.stats.exact_sum import ExactSum
from evalstone.types import (
    NO_USAGE,
    Failed,
    JudgeCall,
    Note,
    Outcome,
    Paid,
    Record,
    Sample,
    Score,
    Skipped,
    StoredTarget,
    Usage,
    note,
)

IN_MEMORY = 2_000
"""The number of rows of a system that are kept in memory."""
ROWS_PER_WRITE, BLOCKS_PER_WRITE = 2_000, 16
_NO_ROW = -1


class _Stored(NamedTuple):
    """The result of a metric in a row, as JSON data."""

    metric: int
    """The number of the metric."""
    value: float | None
    problem: Sequence[Any] | None
    """As of `_problem`."""
    reason: str
    evidence: Any
    judged: Mapping[str, Any] | None
    seconds: float


@dataclass
class _Spread:
    """What is known of a metric over all rows of the file."""

    metric: Metric
    highest: float = 0.0
    same_threshold: bool = True


class _System:
    """The rows of one system, in the order of the file."""

    def __init__(self, identity: str, dataset: str) -> None:
        self.identity, self.dataset = identity, dataset
        self.cases = SpillingList[Sample](0, _written, _read, in_memory=IN_MEMORY)
        self.replies = SpillingList[str](0, str, bytes.decode, in_memory=IN_MEMORY)
        """By row, the answer as the ledger has it; "" without one."""
        self.scores = SpillingList[str](0, str, bytes.decode, in_memory=IN_MEMORY)
        """By row, the results as JSON, and why the system gave no answer."""
        self.case_of, self.trial_of, self.seconds = array("q"), array("q"), array("d")
        """By row, the number of the case, that of the trial from 1, and the seconds of the answer."""
        self.trials = array("q")
        """By case, the highest number of a trial."""
        self.orders = array("q")
        """By case, its place among the others, as far as rows say it."""
        self.numbers: dict[str, int] = {}
        """The numbers of cases by key."""
        self.metrics: dict[int, None] = {}
        """The numbers of its metrics, in their order."""
        self.counted: dict[int, tuple[int, ExactSum]] = {}
        """By metric, how many of its problems the tool counted, and the sum of what it counted."""
        self.usage, self.cost, self.answers, self.unpriced, self.failed = NO_USAGE, ExactSum(), 0, 0, 0
        self.digest = hashlib.blake2b(digest_size=16)
        self._taken = set[tuple[int, int]]()

    def add(self, row: Row, reply: str, scores: str) -> None:
        """Add a row. Raises DataError for a trial that another row has, or with a number that none can have."""
        case = self._case(row)
        trial = self.trials[case] + 1 if row.trial is None else row.trial
        if not 1 <= trial <= MOST_TRIALS:
            raise DataError(
                f"{row.place}: there is a trial {excerpt(trial)} of one case; it must be between 1 and {MOST_TRIALS:,}"
            )
        if row.trial is not None and (case, trial) in self._taken:
            raise DataError(f"{row.place}: trial {trial} of {excerpt(row.key)} is there twice")
        if row.trial is not None:
            self._taken.add((case, trial))
        self.trials[case] = max(self.trials[case], trial)
        self.case_of.append(case)
        self.trial_of.append(trial)
        self.seconds.append(row.seconds)
        self.replies.append(reply)
        self.scores.append(scores)
        for text in (row.case.id, reply, scores):
            self.digest.update(text.encode("utf-8", "surrogatepass"))

    def _case(self, row: Row) -> int:
        """The number of a row's case, which may be new."""
        number = self.numbers.get(row.key) if row.key else None
        if number is None:
            number = len(self.trials)
            self.cases.append(row.case)
            self.orders.append(row.order)
            self.trials.append(0)
            if row.key:
                self.numbers[row.key] = number
        return number


@dataclass(frozen=True, kw_only=True)
class Built:
    """A run, and what the ledger needs besides."""

    run: Run
    cases: Iterable[Sample]
    """The samples of the dataset, once; of a target, without its answers."""
    answers: Iterable[StoredAnswer]
    """The answers of the target, once."""


class Building:
    """The rows of a file, until they are runs.

    Args:
        tool: The name of the tool.
        reading: The version of its reader. It is part of the signatures, and raised when scores are read otherwise.
        file: The name of the file.
        written: When the file was written, for tools that don't say when they ran.
        scales: The scales of metrics by name. They take precedence.
    """

    def __init__(
        self, tool: str, reading: int, *, file: str, written: datetime, scales: Mapping[str, float] | None = None
    ) -> None:
        self.tool, self.reading, self.file, self.written, self.scales = tool, reading, file, written, scales or {}
        self.about = About()
        self._notes: dict[Note, None] = {}
        self._printed: list[Printed] = []
        self._systems: dict[str, _System] = {}
        self._numbers: dict[Metric, int] = {}
        self._spreads: list[_Spread] = []
        self._failure = ""
        """Why the first row without an answer has none."""

    def add(self, event: Event) -> None:
        """Take what the reader yields. Raises DataError for a row that contradicts an earlier one."""
        match event:
            case Row():
                self._add_row(event)
            case About():
                new = {name: value for name, value in vars(event).items() if value and not getattr(self.about, name)}
                self.about = replace(self.about, **new)
            case Printed():
                self._printed.append(event)
            case Note():
                self._notes.setdefault(event)

    def _add_row(self, row: Row) -> None:
        if (system := self._systems.get(row.system)) is None:
            system = self._systems[row.system] = _System(row.system, row.dataset)
        reply = ""
        if row.system and row.answer is not None:
            reply = TargetReply(row.answer).to_json()
            system.answers += 1
            system.usage += row.answer.usage
            system.unpriced += row.answer.cost is None
            system.cost.add(row.answer.cost or 0.0)
        elif isinstance(row.problem, Failed):
            system.failed += 1
            self._failure = self._failure or excerpt(row.problem.error)
        stored: list[_Stored] = []
        for metric, result in row.scores.items():
            stored.append(one := self._stored(metric, result))
            system.metrics.setdefault(one.metric)
            if result.problem is not None and result.counted is not None:
                times, total = system.counted.setdefault(one.metric, (0, ExactSum()))
                total.add(result.counted)
                system.counted[one.metric] = times + 1, total
        system.add(row, reply, json.dumps([stored, None if row.problem is None else _problem(row.problem)]))

    def _stored(self, metric: Metric, result: Result) -> _Stored:
        number = self._numbers.setdefault(metric, len(self._spreads))
        if number == len(self._spreads):
            self._spreads.append(_Spread(metric))
        spread, judged = self._spreads[number], result.judged
        spread.same_threshold &= metric.threshold == spread.metric.threshold
        spread.highest = max(spread.highest, result.value or 0.0)
        return _Stored(
            number,
            result.value,
            None if result.problem is None else _problem(result.problem),
            result.reason,
            result.evidence,
            None if judged is None else {**vars(judged), "usage": vars(judged.usage)},
            result.seconds,
        )

    def built(self, *, name: str = "", tags: tuple[str, ...] = ()) -> list[Built]:
        """The run of each system.

        Raises:
            DataError: The file has no row, or no score, or too many of them.
            ConfigError: A scale is of no metric of the file.
        """
        if not self._systems:
            raise DataError("it has no results")
        if not self._spreads:
            raise DataError(
                "its results have no scores", *(("; the first row: ", self._failure) if self._failure else ())
            )
        names = list(dict.fromkeys(spread.metric.name for spread in self._spreads))
        for metric in self.scales:
            if metric not in names:
                raise DataError(Setting("scales"), ": ", unknown("metric", metric, names))
        infos = [self._info(spread) for spread in self._spreads]
        scored = [
            _Scored(system, {n: infos[n] for n in system.metrics}, self.tool) for system in self._systems.values()
        ]
        runs = [self._built(each, name, tags) for each in scored]
        ours = [each.ours() for each in scored]
        said = list(checked(self.tool, ours, self._printed))
        for place, of in enumerate(ours):
            found = [each for system, each in said if system in (None, of.system)]
            run = runs[place].run
            runs[place] = replace(runs[place], run=replace(run, cautions=(*run.cautions, *found)))
        return runs

    def _info(self, spread: _Spread) -> ScorerInfo:
        metric = spread.metric
        scale = self.scales.get(metric.name) or metric.scale
        if scale is None:
            power = math.ceil(math.log10(spread.highest)) if spread.highest > 1 else 0
            scale = 10.0**power if 10**power < MOST_SCALE else MOST_SCALE
            if power:
                values = {"tool": self.tool, "highest": spread.highest, "scale": scale}
                self._notes.setdefault(note("scale_assumed", "caution", metric.name, **values))
        settings = ", ".join(f"{key}={value}" for key, value in metric.settings)
        inner = "; ".join(filter(None, (settings, f"{self.tool}=={_as_version(self.about.version)}")))
        return ScorerInfo(
            name=metric.name,
            signature=f"{metric.name}({inner})@{self.reading}",
            scale=scale,
            lower_is_better=metric.lower_is_better,
            description=metric.description,
            tool=f"{self.tool} {_as_version(self.about.version)}".rstrip(),
            tool_threshold=metric.threshold if spread.same_threshold else None,
        )

    def _built(self, scored: _Scored, name: str, tags: tuple[str, ...]) -> Built:
        system = scored.system
        when = self._started()
        signatures = [info.signature for info in scored.infos.values()]
        scales = [info.scale for info in scored.infos.values()]
        known = [self.tool, self.reading, vars(self.about), system.identity, system.dataset, signatures, scales]
        system.digest.update(json.dumps(known).encode())
        id = f"{when:%Y%m%d-%H%M%S}-{system.digest.hexdigest()[:6]}"
        samples = scored.samples()
        target = None if not system.identity else _target(system, scored.trials, id)
        summary = scored.summary()
        names = {info.name for info in scored.infos.values()}
        cautions = [note("imported", tool=_tool_of(scored) or self.tool, file=self.file)]
        cautions += [each for each in self._notes if not each.scorer or each.scorer in names]
        if scored.missing:
            cautions.append(note("trials_absent", "caution", absent=scored.missing, trials=scored.trials))
        run = Run(
            id=id,
            dataset_name=system.dataset or metric_name(self.about.name, self.file),
            dataset_version=str(scored.version),
            n_samples=len(system.trials),
            judge=named_judges((), {}, summary)[0],
            judge_note="",
            scorers=tuple(scored.infos.values()),
            records=scored.records,
            summary=summary,
            started=when.isoformat(timespec="seconds"),
            seconds=self.about.seconds,
            cautions=tuple(cautions),
            samples=samples,
            target=target,
            name=name,
            tags=tags,
        )
        cost = run.recorded_cost
        run = replace(run, paid=Paid(total=cost, this_call=cost, records=run.judge_cost))
        return Built(run=run, cases=scored.cases(), answers=() if target is None else scored.answers(target, id))

    def _started(self) -> datetime:
        try:
            when = datetime.fromisoformat(self.about.started) if self.about.started else self.written
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            return self.written.astimezone(UTC)


def _tool_of(scored: _Scored) -> str:
    return next((info.tool for info in scored.infos.values()), "")


def _as_version(text: str) -> str:
    """A version as a signature has it."""
    return "".join(character if character.isalnum() or character in "._+-" else "-" for character in text)[:40]


def _target(system: _System, trials: int, run: str) -> StoredTarget:
    seconds = sorted(each for each in system.seconds if each)
    latency: dict[str, float] = {}
    if seconds:
        latency = {"mean": math.fsum(seconds) / len(seconds), "p50": _at(seconds, 0.5), "p95": _at(seconds, 0.95)}
    return StoredTarget(
        identity=system.identity,
        trials=trials,
        scope=target_scope(system.identity, run),
        answers=system.answers,
        failed=system.failed,
        cost=None if system.unpriced == system.answers else system.cost.value,
        usage=system.usage,
        seconds=latency,
    )


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class _Scored:
    """The samples and records of a system, in the order of the cases, their trials and the metrics.

    Args:
        system: Its rows.
        infos: Its scorers, by the numbers of their metrics.
        tool: The name of the tool.
    """

    def __init__(self, system: _System, infos: Mapping[int, ScorerInfo], tool: str) -> None:
        self.system, self.infos, self.tool = system, infos, tool
        self.trials = max(system.trials)
        number = len(system.trials) * self.trials
        if number * len(infos) > MOST_OUTCOMES:
            raise DataError(f"it has {number * len(infos):,} outcomes; a run can have at most {MOST_OUTCOMES:,}")
        self.missing = number - len(system.case_of)
        self.version = Version()
        """That of the dataset, once the samples are there."""
        self._order = array("q", sorted(range(len(system.trials)), key=system.orders.__getitem__))
        signatures = [info.signature for info in infos.values()]
        self.records = SpillingRecords(signatures, number)
        self._titles = scorer_titles([*infos.values()])
        self._builders = {
            signature: SummaryBuilder(info) for signature, info in zip(signatures, infos.values(), strict=True)
        }
        self._rows = array("q", [_NO_ROW]) * number
        """By case and trial, the row."""
        places = array("q", self._order)
        for place, case in enumerate(self._order):
            places[case] = place
        for row, (case, trial) in enumerate(zip(system.case_of, system.trial_of, strict=True)):
            self._rows[places[case] * self.trials + trial - 1] = row

    def cases(self) -> Iterator[Sample]:
        """The samples without the answers of a target."""
        system = self.system
        return made_unique((f"case {place}", system.cases.at(case)) for place, case in enumerate(self._order, 1))

    def samples(self) -> Sequence[Sample]:
        """The samples with the answers. Meanwhile, the records and the version are made."""
        return _held(self._answered(), len(self._rows))

    def summary(self) -> tuple[ScorerSummary, ...]:
        """The summary of each scorer, once the samples are there."""
        return tuple(builder.summary() for builder in self._builders.values())

    def ours(self) -> OurRun:
        """What is compared with what the tool printed."""
        metrics = (
            Ours(
                metric=builder.info.name,
                scores=builder.counts.n_score,
                failed=builder.counts.n_failed,
                sum=math.fsum(builder.values),
                counted=self.system.counted.get(number, (0, ExactSum()))[0],
                counted_sum=self.system.counted.get(number, (0, ExactSum()))[1].value,
            )
            for number, builder in zip(self.infos, self._builders.values(), strict=True)
        )
        return OurRun(system=self.system.identity, rows=len(self.system.case_of), metrics=tuple(metrics))

    def _cells(self, cases: Iterable[Sample]) -> Iterator[tuple[Sample, int]]:
        """Each case and trial, and its row."""
        for number, case in enumerate(cases):
            for trial in range(self.trials):
                sample = case if self.trials == 1 else replace(case, trial=trial + 1)
                yield sample, self._rows[number * self.trials + trial]

    def _answered(self) -> Iterator[Sample]:
        for number, (sample, row) in enumerate(self._cells(_observed(self.cases(), self.version))):
            reply = "" if row == _NO_ROW else self.system.replies.at(row)
            if reply and (answer := TargetReply.from_json(reply).answer) is not None:
                sample = answer.fill(sample, seconds=self.system.seconds[row])
            for cell, record in enumerate(self._records(sample, row), number * len(self.infos)):
                self._builders[record.signature].add(record)
                self.records.put(cell, record)
            yield sample

    def _records(self, sample: Sample, row: int) -> Iterator[Record]:
        stored: list[Any] = []
        of_row: list[Any] | None = None
        if row != _NO_ROW:
            stored, of_row = value_of(self.system.scores.at(row))
        what = "trial of this sample" if row == _NO_ROW else "score of this sample"
        absent: Outcome = Skipped(f"{self.tool} has no such {what}")
        if of_row is not None and not stored:
            absent = _outcome_of(of_row)
        results = {each[0]: _Stored(*each) for each in stored}
        for number, info in self.infos.items():
            result = results.get(number)
            judged = None if result is None else result.judged
            yield Record(
                sample_id=sample.id,
                scorer=self._titles[info.signature],
                signature=info.signature,
                outcome=absent if result is None else _outcome(result, info.scale),
                calls=() if judged is None else (_call(judged, info, sample, self.tool),),
                seconds=0.0 if result is None else result.seconds,
                group=sample.cluster,
                trial=sample.trial,
                weight=sample.weight,
            )

    def answers(self, target: StoredTarget, run: str) -> Iterator[StoredAnswer]:
        """The answers as rows of the ledger."""
        for sample, row in self._cells(self.cases()):
            if row == _NO_ROW or not (reply := self.system.replies.at(row)):
                continue
            key, answer = answer_key(sample, target.inputs, target.scope), TargetReply.from_json(reply).answer
            yield StoredAnswer(
                question=key.question,
                judge=key.judge,
                repeat_index=key.repeat_index,
                kind=TARGET,
                reply=reply,
                usage=NO_USAGE if answer is None else answer.usage,
                cost=None if answer is None else answer.cost,
                seconds=self.system.seconds[row],
                probability=None,
                run=run,
            )


def _held(samples: Iterator[Sample], number: int) -> Sequence[Sample]:
    """Samples in memory, or if they are many, in a temporary file."""
    return tuple(samples) if number < MOST_IN_MEMORY else SpooledSamples.of(samples)


def _observed(samples: Iterable[Sample], version: Version) -> Iterator[Sample]:
    for sample in samples:
        version.add(sample)
        yield sample


def _written(sample: Sample) -> str:
    return json.dumps([sample.content_hash, sample_row(sample)])


def _read(text: bytes) -> Sample:
    known, row = value_of(text.decode())
    sample = sample_of(row)
    vars(sample)["content_hash"] = known  # which would be calculated again
    return sample


def _problem(problem: Skipped | Failed) -> list[str | None]:
    """An outcome without a score as JSON data: its reason; and of a failure, its reply and kind."""
    return [problem.reason] if isinstance(problem, Skipped) else [problem.error, problem.reply, problem.exception]


def _outcome_of(problem: Sequence[Any]) -> Skipped | Failed:
    return Skipped(*problem) if len(problem) == 1 else Failed(*problem)


def _outcome(result: _Stored, scale: float) -> Outcome:
    if result.problem is not None:
        return _outcome_of(result.problem)
    value = result.value
    if value is None:
        return failed("NoScore", "the file has no score")
    if not 0 <= value <= scale:
        return failed("OutOfRange", f"the score {value:g} is not between 0 and {scale:g}")
    return Score(value, result.reason, scale=scale, evidence=result.evidence or ())


def _call(judged: Mapping[str, Any], info: ScorerInfo, sample: Sample, tool: str) -> JudgeCall:
    judge = metric_name(judged["judge"], "")
    return JudgeCall(
        question=info.name,
        fingerprint=content_hash([sample.id, info.signature]),
        judge=f"{judge} by {tool}" if judge else f"the judge of {tool}",
        answer=judged["answer"],
        usage=Usage(**judged["usage"]),
        cost=judged["cost"],
        seconds=judged["seconds"],
    )


def keep(built: Built, ledger: Ledger) -> bool:
    """Write a run into a ledger. Returns False if it is there already: its ID is a hash of what was imported. One that
    is there in part, because its import was killed, is finished."""
    run, row = built.run, ledger.run(built.run.id)
    if row is not None and row.finished is not None:
        return False
    if row is None:
        plan = content_hash(["import", run.id])
        cost = run.recorded_cost
        ledger.start_run(
            RunRow(run.id, plan, run.started, None, run.metadata(), cost=cost or 0.0, unpriced=int(cost is None))
        )
    if ledger.samples(run.dataset_version) != run.n_samples:
        for blocks in chunks(sample_blocks(built.cases), BLOCKS_PER_WRITE):
            ledger.write_blocks(run.dataset_version, blocks)
    for answers in chunks(built.answers, ROWS_PER_WRITE):
        ledger.apply(Operations(answers=answers))
    lines = run.records.texts() if isinstance(run.records, StoredRecords) else map(record_line, run.records)
    cell = 0
    for records in chunks(zip(run.records, lines, strict=True), ROWS_PER_WRITE):
        rows = [(run.id, place, record, line) for place, (record, line) in enumerate(records, cell)]
        ledger.apply(Operations(records=[*rows]))
        cell += len(records)
    ledger.finish_run(run.id, datetime.now(UTC).isoformat(timespec="seconds"), run.to_dict())
    return True
