"""The rows of each system while a file is read, and the samples and records that are made of them at its end.

What a row has waits as texts, which are JSON, in temporary files. The lines of samples and records are put together
from these, and columns and summaries from numbers.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

from evalstone._core.display import count, excerpt
from evalstone._core.json import encoder, text_hash, value_of
from evalstone._core.sizes import MOST_OUTCOMES, MOST_TRIALS
from evalstone._core.spilled_texts import SpilledTexts, SpillFile
from evalstone.compat.imports.checking import MetricNumbers, RunNumbers
from evalstone.compat.imports.results import Row, failed
from evalstone.datasets.blocks import SpooledSamples
from evalstone.datasets.identity import UniqueIds, Version, default_id
from evalstone.datasets.loading import MOST_IN_MEMORY
from evalstone.datasets.stored import content_with, field_texts, line_with, sample_of
from evalstone.datasets.writing import plain_line
from evalstone.errors import DataError
from evalstone.ledger import StoredAnswer
from evalstone.results.columns import KINDS, Columns
from evalstone.results.record_lines import RecordLines, line_end, line_form, redacted_lines
from evalstone.results.summary import ScorerCounts, ScorerInfo, ScorerSummary, SummaryBuilder, scorer_titles
from evalstone.run.answer_rows import TargetReply, answer_key, answer_row
from evalstone.stats.exact_sum import ExactSum
from evalstone.targets import Answer
from evalstone.types import (
    NO_USAGE,
    Failed,
    JudgeCall,
    Outcome,
    Record,
    Sample,
    Score,
    Skipped,
    StoredTarget,
    Usage,
)

SCORE, UNDEFINED, UNANSWERED, FAILED, TARGET_FAILED = map(str, range(len(KINDS)))
NULL, NO_SECONDS, NO_EVIDENCE = "null", "0.0", "[]"
NO_CALL = ("",) * 5
"""The parts of a result that are of its judge's call, without one."""
MOST_SPARSE, _MOST_SHARES = 1_000_000, 20
"""The most outcomes of a run, and for each that the file has, if there are more of them."""
_NO_ROW = -1
_ASCII = encoder()
_PARTS, _RESULTS = "\x1f", "\x1e"
"""Between the parts of a result, and between results: characters that JSON escapes."""


class StoredResult(NamedTuple):
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
    def without_score(
        cls, outcome: Skipped | Failed, metric: str = "0", seconds: str = NO_SECONDS, call: Sequence[str] = NO_CALL
    ) -> StoredResult:
        """The result of a metric without a score. call: The parts that are of its judge's call."""
        if isinstance(outcome, Skipped):
            return cls(metric, UNDEFINED, "", plain_line(outcome.reason), NULL, NULL, seconds, *call)
        kind = TARGET_FAILED if outcome.by_target else FAILED
        return cls(metric, kind, "", plain_line(outcome.reason), NULL, plain_line(outcome.stored_error), seconds, *call)


def results_text(of_others: StoredResult | None, results: Iterable[StoredResult]) -> str:
    """The results of a row as one text. of_others: That of all other metrics; None if these are undefined."""
    return _RESULTS.join([_PARTS.join(of_others or ()), *map(_PARTS.join, results)])


def _results_in(text: str) -> tuple[StoredResult | None, dict[str, StoredResult]]:
    """The results in a text, as `results_text` makes it: that of other metrics, and those by the number of a metric."""
    of_others, *texts = text.split(_RESULTS)
    results = [StoredResult._make(each.split(_PARTS)) for each in texts]
    other = StoredResult._make(of_others.split(_PARTS)) if of_others else None
    return other, {each.metric: each for each in results}


class System:
    """The rows of one system, in the order of the file."""

    def __init__(self, identity: str, dataset: str, file: SpillFile) -> None:
        self.identity, self.dataset = identity, dataset
        self.file = file
        """Where they are written."""
        self.cases = SpilledTexts("cases", file)
        """The cases as texts, as `_case_text` makes them."""
        self.answered = SpilledTexts("samples", file)
        """By row, what the line of the sample has with the answer (`sample_content`); "" without an answer."""
        self.replies = SpilledTexts("answers", file)
        """By row, the answer as the ledger has it; "" without one."""
        self.scores = SpilledTexts("scores", file)
        """By row, its `results_text`."""
        self.case_of, self.trial_of, self.seconds = array("q"), array("q"), array("d")
        """By row, the number of the case, that of the trial from 1, and the seconds of the answer."""
        self.trials = array("q")
        """By case, the highest number of a trial."""
        self.orders = array("q")
        """By case, its place among the others, as far as rows say it."""
        self.numbers: dict[str, int] = {}
        """The numbers of cases by key."""
        self.has_names = False
        """Whether the file numbers trials, or has IDs of cases."""
        self.metrics: dict[int, ScorerCounts] = {}
        """By the number of a metric, in their order, what its judge's calls were."""
        self.counted: dict[int, tuple[int, ExactSum]] = {}
        """By metric, how many of its problems the tool counted, and the sum of what it counted."""
        self.usage, self.cost, self.answers, self.unpriced, self.failed = NO_USAGE, ExactSum(), 0, 0, 0
        self.scored = 0
        """How many of its failures have scores."""
        self.results = 0
        """How many results of metrics its rows name."""
        self.unanswered = 0
        """How many of its rows have a result for every other metric, too: that they have no answer."""
        self.digest = hashlib.blake2b(digest_size=16)
        self._taken = set[tuple[int, int]]()

    def counts(self, metric: int) -> ScorerCounts:
        """What is counted of a metric's judge calls. metric: its number."""
        if (counts := self.metrics.get(metric)) is None:
            counts = self.metrics[metric] = ScorerCounts()
        return counts

    def add_counted(self, metric: int, value: float) -> None:
        """Add what the tool counted for a problem. metric: its number."""
        times, total = self.counted.setdefault(metric, (0, ExactSum()))
        total.add(value)
        self.counted[metric] = times + 1, total

    def add(self, row: Row, scores: str) -> None:
        """Add a row. Raises DataError for a trial that another row has, or with a number that none can have.

        scores: Its `results_text`.
        """
        answered = reply = ""
        asked = field_texts(row.case)
        if row.system and row.answer is not None:
            answered, reply = _answer_texts(row, row.answer, asked)
            self.answers += 1
            if row.answer.usage is not NO_USAGE:
                self.usage += row.answer.usage
            self.unpriced += row.answer.cost is None
            self.cost.add(row.answer.cost or 0.0)
        elif isinstance(row.problem, Failed):
            self.failed += 1
            self.scored += any(result.value is not None for result in row.scores.values())
        case = self._case(row, asked)
        trial = self.trials[case] + 1 if row.trial is None else row.trial
        if not 1 <= trial <= MOST_TRIALS:
            raise DataError(
                f"{row.place}: there is a trial {excerpt(trial)} of one case; it must be between 1 and {MOST_TRIALS:,}"
            )
        if row.trial is not None and (case, trial) in self._taken:
            raise DataError(f"{row.place}: trial {trial} of {excerpt(row.key)} is there twice")
        if row.trial is not None:
            self.has_names = True
            self._taken.add((case, trial))
        self.trials[case] = max(self.trials[case], trial)
        self.case_of.append(case)
        self.trial_of.append(trial)
        self.seconds.append(row.seconds)
        self.answered.append(answered)
        self.replies.append(reply)
        self.scores.append(scores)
        self.results += len(row.scores)
        self.unanswered += row.problem is not None and not row.only_scores
        self.digest.update(f"{row.case.id}{row.case.content_hash}{reply}{scores}".encode("utf-8", "surrogatepass"))

    def _case(self, row: Row, asked: Mapping[str, str]) -> int:
        """The number of a row's case, which may be new. asked: Its `field_texts`."""
        number = self.numbers.get(row.key) if row.key else None
        if number is None:
            number = len(self.trials)
            self.cases.append(_case_text(row.case, asked))
            self.orders.append(row.order)
            self.trials.append(0)
            self.has_names |= row.case.id != default_id(row.case.content_hash)
            if row.key:
                self.numbers[row.key] = number
        return number

    def repeats(self) -> int:
        """How many cases are there again by chance, so that their rows are samples and no trials: those of a file in
        which most cases are there once."""
        again = sum(times > 1 for times in self.trials)
        return 0 if self.has_names or 2 * again >= len(self.trials) else again


class Content(NamedTuple):
    """What a run of a system consists of."""

    samples: Sequence[Sample]
    """With the answers."""
    version: str
    """That of the dataset."""
    records: RecordLines
    summary: tuple[ScorerSummary, ...]
    numbers: RunNumbers
    """What is compared with what the tool printed."""


class SystemRun:
    """The samples and records of a system, in the order of the cases, their trials and the metrics.

    Args:
        system: Its rows.
        infos: Its scorers, by the numbers of their metrics.
        tool: The name of the tool.

    Raises DataError for more outcomes than a run can have.
    """

    def __init__(self, system: System, infos: Mapping[int, ScorerInfo], tool: str) -> None:
        self.system, self.infos, self.tool = system, infos, tool
        self.repeats = system.repeats()
        self.trials = 1 if self.repeats else max(system.trials)
        self.n_samples = len(system.case_of) if self.repeats else len(system.trials)
        number = self.n_samples * self.trials
        outcomes = number * len(infos)
        if outcomes > MOST_OUTCOMES:
            raise DataError(f"it has {outcomes:,} outcomes; a run can have at most {MOST_OUTCOMES:,}")
        present = system.results + system.unanswered * len(infos)
        if outcomes > max(MOST_SPARSE, present * _MOST_SHARES):
            raise DataError(
                f"{count(self.n_samples, 'case')}, {count(self.trials, 'trial')} and {count(len(infos), 'metric')} "
                f"make {count(outcomes, 'outcome')}, of which the file has only {present:,}"
            )
        self.missing = number - len(system.case_of)
        self._version = Version()
        self._order, starts = self._ordered()
        signatures = [info.signature for info in infos.values()]
        self._columns = Columns(signatures, number)
        self._records = RecordLines(self._columns, system.file)
        titles = scorer_titles([*infos.values()])
        self._builders = {number: SummaryBuilder(info, system.metrics[number]) for number, info in infos.items()}
        self._scorers = [
            (str(number), _Lines(info, titles[info.signature]), self._builders[number])
            for number, info in infos.items()
        ]
        """By metric, its number, the lines of its records, and its summary."""
        skipped = (Skipped(f"{tool} has no such {what} of this sample") for what in ("score", "trial"))
        self._absent = [*map(StoredResult.without_score, skipped)]
        """The results of a metric that a row doesn't have, and of a row that isn't there."""
        self._rows = array("q", [_NO_ROW]) * number
        """By case and trial, the row."""
        for row, (case, trial) in enumerate(zip(system.case_of, system.trial_of, strict=True)):
            self._rows[starts[case] + trial - 1] = row

    def _ordered(self) -> tuple[array[int], array[int]]:
        """The case of each sample, and by case, where its trials begin among those of all."""
        system, order, begin = self.system, array("q"), 0
        starts = array("q", system.trials)
        for case in sorted(range(len(starts)), key=system.orders.__getitem__):
            samples = system.trials[case] if self.repeats else 1
            starts[case] = begin
            begin += samples * self.trials
            order.extend(repeat(case, samples))
        return order, starts

    def cases(self) -> Iterator[str]:
        """The samples as lines, without the answers of a target."""
        return (line_with(case.id, case.content) for case in self._cases())

    def content(self) -> Content:
        """What the rows are as a run. Called once: the records are made while the samples are read."""
        lines, records, version = self._answered(), self._records, self._version
        in_memory = len(self._rows) < MOST_IN_MEMORY
        samples = tuple(sample_of(value_of(line)) for line in lines) if in_memory else SpooledSamples.of_lines(lines)
        summary = tuple(builder.summary() for builder in self._builders.values())
        return Content(samples, str(version), records, summary, self._numbers())

    def _numbers(self) -> RunNumbers:
        """What is compared with what the tool printed."""
        metrics = (
            MetricNumbers(
                metric=builder.info.name,
                scores=builder.counts.n_score,
                failed=builder.counts.n_failed,
                sum=math.fsum(builder.values),
                counted=self.system.counted.get(number, (0, ExactSum()))[0],
                counted_sum=self.system.counted.get(number, (0, ExactSum()))[1].value,
            )
            for number, builder in self._builders.items()
        )
        return RunNumbers(system=self.system.identity, rows=len(self.system.case_of), metrics=tuple(metrics))

    def answers(self, target: StoredTarget, run: str) -> Iterator[StoredAnswer]:
        """The answers as rows of the ledger."""
        for case, trial, row in self._cells(self._cases()):
            if row == _NO_ROW or not (reply := self.system.replies.at(row)):
                continue
            key = answer_key(Sample(id=case.id, trial=trial), target.inputs, target.scope)
            answer = value_of(reply)["answer"]
            usage = Usage(**answer["usage"]) if "usage" in answer else NO_USAGE
            seconds = self.system.seconds[row]
            yield answer_row(key, reply, usage=usage, cost=answer.get("cost"), seconds=seconds, run=run)

    def _cases(self) -> Iterator[_Case]:
        """The cases in their order, with IDs of their own."""
        ids = UniqueIds()
        for place, number in enumerate(self._order, 1):
            case = _Case.of(self.system.cases.at(number))
            if self.repeats and self.system.trials[number] > 1 and case.group is None:
                case = case._replace(group=case.id)
            id = ids.add(f"case {place}", case.id, case.content_hash)
            yield case if id == case.id else case._replace(id=id)

    def _cells(self, cases: Iterable[_Case]) -> Iterator[tuple[_Case, int | None, int]]:
        """Each case and trial, and its row."""
        for number, case in enumerate(cases):
            for trial in range(self.trials):
                yield case, None if self.trials == 1 else trial + 1, self._rows[number * self.trials + trial]

    def _answered(self) -> Iterator[str]:
        for number, (case, trial, row) in enumerate(self._cells(self._cases())):
            if trial in (None, 1):
                self._version.add(case.id, case.content_hash)
            self._add_records(number, case, trial, row)
            content = "" if row == _NO_ROW else self.system.answered.at(row)
            yield line_with(case.id, content or case.content, trial)

    def _add_records(self, number: int, case: _Case, trial: int | None, row: int) -> None:
        """Add the records of a case and trial."""
        others: StoredResult | None = None
        results: Mapping[str, StoredResult] = {}
        if row != _NO_ROW:
            others, results = _results_in(self.system.scores.at(row))
        otherwise = others or self._absent[row == _NO_ROW]
        group = case.id if case.group is None and trial is not None else case.group
        sample, canonical, end = plain_line(case.id), _ASCII(case.id), line_end(trial, group, case.weight)
        texts, values, kinds, seconds = list[str](), list[float](), bytearray(), list[float]()
        for name, lines, builder in self._scorers:
            result = results.get(name, otherwise)
            score = float(result.value) if result.value else math.nan
            if result.value and not 0 <= score <= lines.scale:
                error = failed("OutOfRange", f"the score {score:g} is not between 0 and {lines.scale:g}")
                result = StoredResult.without_score(error, result.metric, result.seconds, result[-len(NO_CALL) :])
                score = math.nan
            if result.kind == SCORE:
                builder.add_score(score, group, case.weight)
            elif result.kind in (UNDEFINED, UNANSWERED):
                builder.add_missing(value_of(result.reason), case.weight, failed=False)
            else:
                builder.add_missing(value_of(result.error)["message"], case.weight, failed=True)
            texts.append(lines.line(result, sample, canonical, end))
            values.append(score)
            kinds.append(int(result.kind))
            seconds.append(float(result.seconds))
        self._records.extend(redacted_lines(texts))
        self._columns.put_case(number, case.id, trial, group, case.weight, values, bytes(kinds), seconds)


class _Lines:
    """The lines of a scorer's records.

    Args:
        info: The scorer.
        title: Its title in the run.
    """

    def __init__(self, info: ScorerInfo, title: str) -> None:
        self.scale, self._signature = info.scale, _ASCII(info.signature)
        self._forms: dict[tuple[str, bool], str] = {}
        self._info, self._title = info, title

    def line(self, result: StoredResult, sample: str, canonical: str, end: str) -> str:
        """The line of a result, in which secrets aren't replaced yet.

        sample: The ID of the sample as JSON. canonical: In ASCII. end: `line_end` of the sample.
        """
        _, kind, value, reason, evidence, error, seconds, judge, answer, usage, cost, judge_seconds = result
        form = self._forms.get((kind, judge != ""))
        if form is None:
            form = self._forms[kind, judge != ""] = self._form(kind, has_call=judge != "")
        if not judge:
            return form % (sample, value or NULL, reason, evidence, seconds, NO_SECONDS, error, end)
        fingerprint = f'"{text_hash(f"[{canonical},{self._signature}]")}"'
        call = (fingerprint, judge, answer, usage, cost, judge_seconds)
        return form % (sample, value or NULL, reason, evidence, *call, seconds, cost, error, end)

    def _form(self, kind: str, *, has_call: bool) -> str:
        outcome: Outcome = Failed("")
        if kind == SCORE:
            outcome = Score(0.0, scale=self.scale)
        elif kind in (UNDEFINED, UNANSWERED):
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
    known = _ASCII([case.id, case.content_hash, case.group, case.weight])
    return f"{known}{_PARTS}{content_with(texts)}"


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
