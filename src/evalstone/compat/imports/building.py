"""Runs from the rows of a file: one for each system that answered.

The rows are read once and wait in temporary files, because only the last one tells which metrics and how many trials
there are. Summaries, intervals, versions of datasets and rows of the ledger are made by the code of ordinary runs. A
system is a target: its answers are put into the samples, and stored, as those of targets are.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from evalstone._core.display import excerpt
from evalstone._core.front_ends import Setting
from evalstone._core.json import content_hash, text_hash, value_of
from evalstone._core.run_ids import run_id
from evalstone._core.sizes import MOST_OUTCOMES, MOST_SCALE, MOST_TRIALS
from evalstone.compat.imports.checking import OurRun, Ours, checked
from evalstone.compat.imports.results import About, Event, Metric, Printed, Result, Row, failed, metric_name
from evalstone.datasets.blocks import SpooledSamples, line_blocks
from evalstone.datasets.identity import UniqueIds, Version
from evalstone.datasets.loading import MOST_IN_MEMORY
from evalstone.datasets.stored import content_with, field_texts, line_with, sample_of
from evalstone.datasets.writing import plain_line
from evalstone.errors import DataError, unknown
from evalstone.ledger import RunRow, StoredAnswer
from evalstone.ledger.base import TARGET, Operations, chunks, target_scope
from evalstone.ledger.store import Ledger
from evalstone.results.columns import KINDS, Columns
from evalstone.results.record_lines import RecordLines, line_end, line_form, redacted_lines
from evalstone.results.run import Run
from evalstone.results.spilling import SpillingList
from evalstone.results.summary import (
    ScorerCounts,
    ScorerInfo,
    ScorerSummary,
    SummaryBuilder,
    is_unanswered,
    scorer_titles,
)
from evalstone.run.answer_rows import TargetReply, answer_key
from evalstone.run.problems import named_judges
from evalstone.stats.exact_sum import ExactSum
from evalstone.targets import Answer
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
_NULL, _NO_SECONDS, _NO_EVIDENCE = "null", "0.0", "[]"
_SCORE, _UNDEFINED, _UNANSWERED, _FAILED, _TARGET_FAILED = map(str, range(len(KINDS)))
_KIND, _VALUE, _REASON, _ERROR, _SECONDS = 1, 2, 3, 5, 6
"""The places of parts of a result, as `_Stored` has them."""
_OF_OUTCOME = 7
"""The number of parts of a result without its judge's call."""
_NO_CALL = ("",) * 5
_PARTS, _RESULTS = "\x1f", "\x1e"
"""Between the parts of a result, and between results: characters that JSON escapes."""


class _Stored(NamedTuple):
    """The result of a metric in a row: texts, which are JSON but for the value, and go into the line of a record."""

    metric: str
    """The number of the metric."""
    kind: str
    """What there is, as its number in `KINDS`."""
    value: str
    """"" without a score."""
    reason: str
    evidence: str
    error: str
    seconds: str
    judge: str = ""
    answer: str = ""
    usage: str = ""
    cost: str = ""
    judge_seconds: str = ""
    """These are of the judge's call; "" without one."""

    @classmethod
    def without_score(cls, outcome: Skipped | Failed, metric: str = "0", seconds: str = _NO_SECONDS) -> _Stored:
        """The result of a metric without a score, and without a judge."""
        if isinstance(outcome, Skipped):
            return cls(metric, _UNDEFINED, "", plain_line(outcome.reason), _NULL, _NULL, seconds)
        kind = _TARGET_FAILED if outcome.by_target else _FAILED
        error = plain_line(outcome.stored_error)
        return cls(metric, kind, "", plain_line(outcome.reason), _NULL, error, seconds)


@dataclass
class _Spread:
    """What is known of a metric over all rows of the file."""

    metric: Metric
    number: int
    highest: float = 0.0
    same_threshold: bool = True


class _System:
    """The rows of one system, in the order of the file."""

    def __init__(self, identity: str, dataset: str) -> None:
        self.identity, self.dataset = identity, dataset
        self.cases = SpillingList[str](0, str, bytes.decode, in_memory=IN_MEMORY)
        """The cases as texts, as `_case_text` makes them."""
        self.answered = SpillingList[str](0, str, bytes.decode, in_memory=IN_MEMORY)
        """By row, what the line of the sample has with the answer (`sample_content`); "" without an answer."""
        self.replies = SpillingList[str](0, str, bytes.decode, in_memory=IN_MEMORY)
        """By row, the answer as the ledger has it; "" without one."""
        self.scores = SpillingList[str](0, str, bytes.decode, in_memory=IN_MEMORY)
        """By row, the results, and before them that of all other metrics; "" if these are undefined."""
        self.case_of, self.trial_of, self.seconds = array("q"), array("q"), array("d")
        """By row, the number of the case, that of the trial from 1, and the seconds of the answer."""
        self.trials = array("q")
        """By case, the highest number of a trial."""
        self.orders = array("q")
        """By case, its place among the others, as far as rows say it."""
        self.numbers: dict[str, int] = {}
        """The numbers of cases by key."""
        self.metrics: dict[int, ScorerCounts] = {}
        """By the number of a metric, in their order, what its judge's calls were."""
        self.counted: dict[int, tuple[int, ExactSum]] = {}
        """By metric, how many of its problems the tool counted, and the sum of what it counted."""
        self.usage, self.cost, self.answers, self.unpriced, self.failed = NO_USAGE, ExactSum(), 0, 0, 0
        self.scored = 0
        """How many of its failures have scores."""
        self.digest = hashlib.blake2b(digest_size=16)
        self._taken = set[tuple[int, int]]()

    def add(self, row: Row, asked: Mapping[str, str], answered: str, reply: str, scores: str) -> None:
        """Add a row. Raises DataError for a trial that another row has, or with a number that none can have.

        asked: The `field_texts` of its case. answered, reply, scores: What the lists of these have of it.
        """
        case = self._case(row, asked)
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
        self.answered.append(answered)
        self.replies.append(reply)
        self.scores.append(scores)
        for text in (row.case.id, row.case.content_hash, reply, scores):
            self.digest.update(text.encode("utf-8", "surrogatepass"))

    def _case(self, row: Row, asked: Mapping[str, str]) -> int:
        """The number of a row's case, which may be new."""
        number = self.numbers.get(row.key) if row.key else None
        if number is None:
            number = len(self.trials)
            self.cases.append(_case_text(row.case, asked))
            self.orders.append(row.order)
            self.trials.append(0)
            if row.key:
                self.numbers[row.key] = number
        return number


@dataclass(frozen=True, kw_only=True)
class Built:
    """A run, and what the ledger needs besides."""

    run: Run
    records: RecordLines
    """Those of the run."""
    cases: Iterable[str]
    """The samples of the dataset as lines (`sample_line`), once; of a target, without its answers."""
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
        self._spreads: dict[Metric, _Spread] = {}
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
        answered = reply = ""
        asked = field_texts(row.case)
        if row.system and row.answer is not None:
            answered, reply = _answer_texts(row, row.answer, asked)
            system.answers += 1
            system.usage += row.answer.usage
            system.unpriced += row.answer.cost is None
            system.cost.add(row.answer.cost or 0.0)
        elif isinstance(row.problem, Failed):
            system.failed += 1
            system.scored += any(result.value is not None for result in row.scores.values())
            self._failure = self._failure or excerpt(row.problem.error)
        of_others = "" if row.problem is None or row.only_scores else _PARTS.join(_Stored.without_score(row.problem))
        results = [self._stored(system, metric, result) for metric, result in row.scores.items()]
        system.add(row, asked, answered, reply, _RESULTS.join((of_others, *results)))

    def _stored(self, system: _System, metric: Metric, result: Result) -> str:
        if (spread := self._spreads.get(metric)) is None:
            spread = self._spreads[metric] = _Spread(metric, len(self._spreads))
        number, problem, value = spread.number, result.problem, result.value
        if (counts := system.metrics.get(number)) is None:
            counts = system.metrics[number] = ScorerCounts()
        if metric is not spread.metric:
            spread.same_threshold &= metric.threshold == spread.metric.threshold
        if value is not None and value > spread.highest:
            spread.highest = value
        if problem is not None and result.counted is not None:
            times, total = system.counted.setdefault(number, (0, ExactSum()))
            total.add(result.counted)
            system.counted[number] = times + 1, total
        if problem is None and value is None:
            problem = failed("NoScore", "the file has no score")
        seconds = repr(result.seconds)
        stored: Sequence[str]
        if problem is None:
            evidence = plain_line(result.evidence) if result.evidence else _NO_EVIDENCE
            stored = (str(number), _SCORE, repr(value), plain_line(result.reason), evidence, _NULL, seconds)
        else:
            stored = _Stored.without_score(problem, str(number), seconds)[:_OF_OUTCOME]
        if (judged := result.judged) is None:
            return _PARTS.join((*stored, *_NO_CALL))
        unanswered = isinstance(problem, Skipped) and is_unanswered(judged.answer)
        judge, written = _judge_of(judged.judge, self.tool)
        counts.add_call(judge, judged.answer, judged.usage, judged.cost, unanswered=unanswered)
        cost = _NULL if judged.cost is None else repr(judged.cost)
        if unanswered:
            stored = (stored[0], _UNANSWERED, *stored[2:])
        call = (written, plain_line(judged.answer), _usage_text(judged.usage), cost, repr(judged.seconds))
        return _PARTS.join((*stored, *call))

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
        names = list(dict.fromkeys(metric.name for metric in self._spreads))
        for metric in self.scales:
            if metric not in names:
                raise DataError(Setting("scales"), ": ", unknown("metric", metric, names))
        infos = [self._info(spread) for spread in self._spreads.values()]
        scored = [_Scored(system, {n: infos[n] for n in system.metrics}, self.tool) for system in self._ordered()]
        runs = [self._built(each, name, tags) for each in scored]
        ours = [each.ours() for each in scored]
        said = list(checked(self.tool, ours, self._printed))
        for place, of in enumerate(ours):
            found = [each for system, each in said if system in (None, of.system)]
            run = runs[place].run
            runs[place] = replace(runs[place], run=replace(run, cautions=(*run.cautions, *found)))
        return runs

    def _ordered(self) -> list[_System]:
        """The systems as the file lists them, then those that it doesn't list."""
        places = {name: place for place, name in enumerate(self.about.systems)}
        return sorted(self._systems.values(), key=lambda system: places.get(system.identity, len(places)))

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
        id = run_id(when, system.digest.hexdigest())
        samples = scored.samples()
        target = None if not system.identity else _target(system, scored.trials, id)
        summary = scored.summary()
        names = {info.name for info in scored.infos.values()}
        cautions = [note("imported", tool=_tool_of(scored) or self.tool, file=self.file)]
        cautions += [each for each in self._notes if not each.scorer or each.scorer in names]
        if system.scored:
            cautions.append(note("scored_without_answer", "caution", tool=self.tool, rows=system.scored))
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
        return Built(
            run=run,
            records=scored.records,
            cases=scored.cases(),
            answers=() if target is None else scored.answers(target, id),
        )

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


class _Lines:
    """The lines of a scorer's records.

    Args:
        info: The scorer.
        title: Its title in the run.
    """

    def __init__(self, info: ScorerInfo, title: str) -> None:
        self.scale, self._signature = info.scale, json.dumps(info.signature)
        self._forms: dict[tuple[str, bool], str] = {}
        self._info, self._title = info, title

    def line(self, stored: Sequence[str], sample: str, canonical: str, end: str) -> str:
        """The line of a result, in which secrets aren't replaced yet.

        stored: The parts of a `_Stored`. sample: The ID of the sample as JSON. canonical: In ASCII. end: `line_end` of
        the sample.
        """
        _, kind, value, reason, evidence, error, seconds, judge, answer, usage, cost, judge_seconds = stored
        form = self._forms.get((kind, judge != ""))
        if form is None:
            form = self._forms[kind, judge != ""] = self._form(kind, has_call=judge != "")
        if not judge:
            return form % (sample, value or _NULL, reason, evidence, seconds, _NO_SECONDS, error, end)
        fingerprint = f'"{text_hash(f"[{canonical},{self._signature}]")}"'
        call = (fingerprint, judge, answer, usage, cost, judge_seconds)
        return form % (sample, value or _NULL, reason, evidence, *call, seconds, cost, error, end)

    def _form(self, kind: str, *, has_call: bool) -> str:
        outcome: Outcome = Failed("")
        if kind == _SCORE:
            outcome = Score(0.0, scale=self.scale)
        elif kind in (_UNDEFINED, _UNANSWERED):
            outcome = Skipped("")
        call = JudgeCall(question=self._info.name, fingerprint="", judge="", answer=None)
        return line_form(
            Record(
                sample_id="",
                scorer=self._title,
                signature=self._info.signature,
                outcome=outcome,
                calls=(call,) * has_call,
            )
        )


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
        self._columns = Columns(signatures, number)
        self.records = RecordLines(self._columns)
        titles = scorer_titles([*infos.values()])
        self._builders = {number: SummaryBuilder(info, system.metrics[number]) for number, info in infos.items()}
        self._scorers = [
            (str(number), _Lines(info, titles[info.signature]), self._builders[number])
            for number, info in infos.items()
        ]
        """By metric, its number, the lines of its records, and its summary."""
        skipped = (Skipped(f"{tool} has no such {what} of this sample") for what in ("score", "trial"))
        self._absent = [*map(_Stored.without_score, skipped)]
        """The results of a metric that a row doesn't have, and of a row that isn't there."""
        self._rows = array("q", [_NO_ROW]) * number
        """By case and trial, the row."""
        places = array("q", self._order)
        for place, case in enumerate(self._order):
            places[case] = place
        for row, (case, trial) in enumerate(zip(system.case_of, system.trial_of, strict=True)):
            self._rows[places[case] * self.trials + trial - 1] = row

    def cases(self) -> Iterator[str]:
        """The samples as lines, without the answers of a target."""
        return (line_with(case.id, case.content) for case in self._cases())

    def samples(self) -> Sequence[Sample]:
        """The samples with the answers. Meanwhile, the records and the version are made."""
        if len(self._rows) < MOST_IN_MEMORY:
            return tuple(sample_of(value_of(line)) for line in self._answered())
        return SpooledSamples.of_lines(self._answered())

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
            for number, builder in self._builders.items()
        )
        return OurRun(system=self.system.identity, rows=len(self.system.case_of), metrics=tuple(metrics))

    def _cases(self) -> Iterator[_Case]:
        """The cases in their order, with IDs of their own."""
        ids = UniqueIds()
        for place, number in enumerate(self._order, 1):
            case = _Case.of(self.system.cases.at(number))
            yield case._replace(id=ids.add(f"case {place}", case.id, case.content_hash))

    def _cells(self, cases: Iterable[_Case]) -> Iterator[tuple[_Case, int | None, int]]:
        """Each case and trial, and its row."""
        for number, case in enumerate(cases):
            for trial in range(self.trials):
                yield case, None if self.trials == 1 else trial + 1, self._rows[number * self.trials + trial]

    def _answered(self) -> Iterator[str]:
        for number, (case, trial, row) in enumerate(self._cells(self._cases())):
            if trial in (None, 1):
                self.version.add(case.id, case.content_hash)
            self._add_records(number, case, trial, row)
            content = "" if row == _NO_ROW else self.system.answered.at(row)
            yield line_with(case.id, content or case.content, trial)

    def _add_records(self, number: int, case: _Case, trial: int | None, row: int) -> None:
        """Add the records of a case and trial."""
        of_others, stored = "", list[str]()
        if row != _NO_ROW:
            of_others, *stored = self.system.scores.at(row).split(_RESULTS)
        results = {(parts := each.split(_PARTS))[0]: parts for each in stored}
        absent = self._absent[row == _NO_ROW]
        group = case.id if case.group is None and trial is not None else case.group
        sample, canonical, end = plain_line(case.id), json.dumps(case.id), line_end(trial, group, case.weight)
        texts, values, kinds, seconds = list[str](), list[float](), bytearray(), list[float]()
        for name, lines, builder in self._scorers:
            if (one := results.get(name)) is None:
                one = of_others.split(_PARTS) if of_others else absent
            if value := one[_VALUE]:
                score = float(value)
                if 0 <= score <= lines.scale:
                    builder.add_score(score, group, case.weight)
                else:
                    error = failed("OutOfRange", f"the score {score:g} is not between 0 and {lines.scale:g}")
                    score, without = math.nan, _Stored.without_score(error)
                    one = _Stored(*one)._replace(
                        kind=without.kind, value="", reason=without.reason, evidence=_NULL, error=without.error
                    )
                    builder.add_missing(error.error, case.weight, failed=True)
            else:
                score = math.nan
                if one[_KIND] in (_UNDEFINED, _UNANSWERED):
                    builder.add_missing(value_of(one[_REASON]), case.weight, failed=False)
                else:
                    builder.add_missing(value_of(one[_ERROR])["message"], case.weight, failed=True)
            texts.append(lines.line(one, sample, canonical, end))
            values.append(score)
            kinds.append(int(one[_KIND]))
            seconds.append(float(one[_SECONDS]))
        for line in redacted_lines(texts):
            self.records.append(line)
        self._columns.put_case(number, case.id, trial, group, case.weight, values, bytes(kinds), seconds)

    def answers(self, target: StoredTarget, run: str) -> Iterator[StoredAnswer]:
        """The answers as rows of the ledger."""
        for case, trial, row in self._cells(self._cases()):
            if row == _NO_ROW or not (reply := self.system.replies.at(row)):
                continue
            key = answer_key(Sample(id=case.id, trial=trial), target.inputs, target.scope)
            answer = value_of(reply)["answer"]
            yield StoredAnswer(
                question=key.question,
                judge=key.judge,
                repeat_index=key.repeat_index,
                kind=TARGET,
                reply=reply,
                usage=Usage(**answer["usage"]) if "usage" in answer else NO_USAGE,
                cost=answer.get("cost"),
                seconds=self.system.seconds[row],
                probability=None,
                run=run,
            )


class _Case(NamedTuple):
    """A case: what its line has, and what its records need."""

    id: str
    content_hash: str
    group: str | None
    weight: float | None
    content: str
    """Its `sample_content`."""

    @classmethod
    def of(cls, text: str) -> _Case:
        """The case in a text, as `_case_text` makes it."""
        known, _, content = text.partition(_PARTS)
        id, content_hash, group, weight = value_of(known)
        return cls(id, content_hash, group, weight, content)


def _case_text(case: Sample, texts: Mapping[str, str]) -> str:
    """The text of a case for `_Case.of`. texts: Its `field_texts`."""
    known = [case.id, case.content_hash, case.group, case.weight]
    return f"{json.dumps(known)}{_PARTS}{content_with(texts)}"


def _answer_texts(row: Row, answer: Answer, asked: Mapping[str, str]) -> tuple[str, str]:
    """What the line of a sample has with the answer (`sample_content`), and the answer as the ledger has it. What the
    three have in common is written once. asked: The `field_texts` of the case."""
    filled = answer.fill(row.case, seconds=row.seconds)
    texts, values = field_texts(filled, row.case, asked), vars(answer)
    same = {
        name: text
        for name, text in texts.items()
        if name in values and getattr(filled, name) is values[name] and text.isascii()
    }
    return content_with(texts), TargetReply(answer).to_json(same)


@functools.lru_cache(1000)
def _judge_of(name: str, tool: str) -> tuple[str, str]:
    """The judge of a tool's call, and the same as JSON. name: The model, as the tool names it."""
    named = metric_name(name, "")
    judge = f"{named} by {tool}" if named else f"the judge of {tool}"
    return judge, plain_line(judge)


@functools.lru_cache(1000)
def _usage_text(usage: Usage) -> str:
    return plain_line(vars(usage))


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
        for blocks in chunks(line_blocks(built.cases), BLOCKS_PER_WRITE):
            ledger.write_blocks(run.dataset_version, blocks)
    for answers in chunks(built.answers, ROWS_PER_WRITE):
        ledger.apply(Operations(answers=answers))
    signatures = [info.signature for info in run.scorers]
    cell = 0
    for lines in chunks(built.records.texts(), ROWS_PER_WRITE):
        rows = [(run.id, place, signatures[place % len(signatures)], line) for place, line in enumerate(lines, cell)]
        ledger.apply(Operations(records=rows))
        cell += len(lines)
    ledger.finish_run(run.id, datetime.now(UTC).isoformat(timespec="seconds"), run.to_dict())
    return True
