"""Runs from the rows of a file: one for each system that answered.

The rows are read once and wait in temporary files, because only the last one tells which metrics and how many trials
there are. Summaries, intervals, versions of datasets and rows of the ledger are made by the code of ordinary runs. A
system is a target: its answers are put into the samples, and stored, as those of targets are.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from evalstone._core.display import excerpt, shortlist
from evalstone._core.front_ends import Setting
from evalstone._core.json import content_hash
from evalstone._core.run_ids import run_id
from evalstone._core.sizes import MOST_SCALE
from evalstone._core.spilled_texts import SpillFile
from evalstone.compat.imports.checking import checked
from evalstone.compat.imports.results import (
    MOST_METRICS,
    MOST_SYSTEMS,
    About,
    Judged,
    Metric,
    OfSystem,
    PartEvent,
    Printed,
    Restart,
    Result,
    Row,
    failed,
    metric_name,
    too_many_systems,
)
from evalstone.compat.imports.systems import (
    NO_CALL,
    NO_EVIDENCE,
    NULL,
    SCORE,
    UNANSWERED,
    Content,
    StoredResult,
    System,
    SystemRun,
    results_text,
)
from evalstone.datasets.blocks import line_blocks
from evalstone.datasets.writing import plain_line
from evalstone.errors import DataError, unknown
from evalstone.ledger import RunRow, StoredAnswer
from evalstone.ledger.base import Operations, chunks, target_scope
from evalstone.ledger.store import Ledger
from evalstone.results.record_lines import RecordLines
from evalstone.results.run import Run
from evalstone.results.summary import ScorerCounts, ScorerInfo, is_unanswered
from evalstone.run.problems import named_judges
from evalstone.types import Failed, Note, Paid, Skipped, StoredTarget, Usage, note

ROWS_PER_WRITE, BLOCKS_PER_WRITE = 2_000, 16


@dataclass
class _Spread:
    """What is known of a metric over all rows of the file."""

    metric: Metric
    number: int
    highest: float = 0.0
    same_threshold: bool = True


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
        reader_version: The version of its reader, which is that of the scorers.
        file: The name of the file.
        written: When the file was written, for tools that don't say when they ran.
        spilled: Where the rows are that memory can't hold. All that is imported at once shares it.
        scales: The scales of metrics by name. They take precedence.
    """

    def __init__(
        self,
        tool: str,
        reader_version: int,
        *,
        file: str,
        written: datetime,
        spilled: SpillFile,
        scales: Mapping[str, float] | None = None,
    ) -> None:
        self.tool, self.reader_version, self.file, self.written = tool, reader_version, file, written
        self._spilled = spilled
        self.scales: Mapping[str, float] = scales or {}
        self._restart()

    def _restart(self) -> None:
        """Forget what the reader has yielded."""
        self.about = About()
        self._abouts: dict[str, About] = {}
        self._notes: dict[Note, None] = {}
        self._system_notes: dict[str, dict[Note, None]] = {}
        self._printed: list[Printed] = []
        self._systems: dict[str, System] = {}
        self._spreads: dict[Metric, _Spread] = {}
        self._failure = ""
        """Why the first row without an answer has none."""

    def add(self, event: PartEvent) -> None:
        """Take what the reader yields. Raises DataError for a row that contradicts an earlier one."""
        match event:
            case Row():
                self._add_row(event)
            case About():
                self.about = _filled(self.about, event)
            case OfSystem(system, said):
                if isinstance(said, About):
                    self._abouts[system] = _filled(self._abouts.get(system, About()), said)
                else:
                    self._system_notes.setdefault(system, {}).setdefault(said)
            case Printed():
                self._printed.append(event)
            case Note():
                self._notes.setdefault(event)
            case Restart():
                self._restart()

    def _add_row(self, row: Row) -> None:
        if (system := self._systems.get(row.system)) is None:
            if len(self._systems) == MOST_SYSTEMS:
                raise DataError(f"{row.place}: ", too_many_systems())
            system = self._systems[row.system] = System(row.system, row.dataset, self._spilled)
        if row.answer is None and not self._failure and isinstance(row.problem, Failed):
            self._failure = excerpt(row.problem.error)
        of_others = None if row.problem is None or row.only_scores else StoredResult.without_score(row.problem)
        results = [self._stored(system, metric, result) for metric, result in row.scores.items()]
        system.add(row, results_text(of_others, results))

    def _stored(self, system: System, metric: Metric, result: Result) -> StoredResult:
        """A result as a text. It is counted for its metric and for the system."""
        number, problem, value = self._number(metric, result.value), result.problem, result.value
        counts, call, unanswered = system.counts(number), NO_CALL, False
        if problem is not None and result.counted is not None:
            system.add_counted(number, result.counted)
        if problem is None and value is None:
            problem = failed("NoScore", "the file has no score")
        if (judged := result.judged) is not None:
            unanswered = isinstance(problem, Skipped) and is_unanswered(judged.answer)
            call = self._call(counts, judged, unanswered=unanswered)
        seconds = repr(result.seconds)
        if problem is not None:
            stored = StoredResult.without_score(problem, str(number), seconds, call)
            return stored._replace(kind=UNANSWERED) if unanswered else stored
        evidence = plain_line(result.evidence) if result.evidence else NO_EVIDENCE
        reason = plain_line(result.reason)
        return StoredResult(str(number), SCORE, repr(value), reason, evidence, NULL, seconds, *call)

    def _number(self, metric: Metric, value: float | None) -> int:
        """The number of a metric, which may be new. value: One of its scores, which tells its scale."""
        if (spread := self._spreads.get(metric)) is None:
            if len(self._spreads) == MOST_METRICS:
                raise DataError(f"more than {MOST_METRICS:,} metrics: the last one is {excerpt(metric.name)}")
            spread = self._spreads[metric] = _Spread(metric, len(self._spreads))
        if metric is not spread.metric:
            spread.same_threshold &= metric.threshold == spread.metric.threshold
        if value is not None and value > spread.highest:
            spread.highest = value
        return spread.number

    def _call(self, counts: ScorerCounts, judged: Judged, *, unanswered: bool) -> tuple[str, str, str, str, str]:
        """The parts of a result that are of its judge's call, which is counted."""
        judge, written = _judge_of(judged.judge, self.tool)
        counts.add_call(judge, judged.answer, judged.usage, judged.cost, unanswered=unanswered)
        cost = NULL if judged.cost is None else repr(judged.cost)
        return written, plain_line(judged.answer), _usage_text(judged.usage), cost, repr(judged.seconds)

    @property
    def metric_names(self) -> list[str]:
        """The names of the metrics that the file has so far."""
        return list(dict.fromkeys(metric.name for metric in self._spreads))

    def built(self, *, name: str = "", tags: tuple[str, ...] = ()) -> list[Built]:
        """The run of each system that has scores.

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
        check_scales(self.scales, self.metric_names)
        infos = [self._info(spread) for spread in self._spreads.values()]
        scored = [system for system in self._ordered() if system.metrics]
        self._note_left_out(scored)
        of_systems = [SystemRun(system, {n: infos[n] for n in system.metrics}, self.tool) for system in scored]
        contents = [each.content() for each in of_systems]
        checks = list(checked(self.tool, [content.numbers for content in contents], self._printed))
        runs: list[Built] = []
        for each, content in zip(of_systems, contents, strict=True):
            notes = [check for system, check in checks if system in (None, each.system.identity)]
            runs.append(self._built(each, content, notes, name, tags))
        return runs

    def _note_left_out(self, scored: Iterable[System]) -> None:
        """Note the systems of which there are no scores, as of an evaluation that crashed: they have no run."""
        names = dict.fromkeys((*self._systems, *self._abouts, *self._system_notes))
        for system in scored:
            names.pop(system.identity, None)
        if names:
            what = shortlist(name or "unnamed system" for name in names)
            self._notes.setdefault(note("systems_left_out", "caution", systems=len(names), what=what))

    def _ordered(self) -> list[System]:
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
        possible = metric.threshold is not None and 0 <= metric.threshold <= scale
        settings = ", ".join(f"{key}={value}" for key, value in metric.settings)
        inner = "; ".join(filter(None, (settings, f"{self.tool}=={_as_version(self.about.version)}")))
        return ScorerInfo(
            name=metric.name,
            signature=f"{metric.name}({inner})@{self.reader_version}",
            scale=scale,
            lower_is_better=metric.lower_is_better,
            description=metric.description,
            tool=self._tool_and_version,
            tool_threshold=metric.threshold if possible and spread.same_threshold else None,
        )

    def _built(
        self, system_run: SystemRun, content: Content, checks: list[Note], name: str, tags: tuple[str, ...]
    ) -> Built:
        system = system_run.system
        about = _filled(self._abouts.get(system.identity, About()), self.about)
        when = self._started(about)
        signatures = [info.signature for info in system_run.infos.values()]
        scales = [info.scale for info in system_run.infos.values()]
        known = [self.tool, self.reader_version, vars(about), system.identity, system.dataset, signatures, scales]
        system.digest.update(json.dumps(known).encode())
        id = run_id(when, system.digest.hexdigest())
        target = None if not system.identity else _target(system, system_run.trials, id)
        run = Run(
            id=id,
            dataset_name=system.dataset or metric_name(about.name, self.file),
            dataset_version=content.version,
            n_samples=system_run.n_samples,
            judge=named_judges((), {}, content.summary)[0],
            judge_note="",
            scorers=tuple(system_run.infos.values()),
            records=content.records,
            summary=content.summary,
            started=when.isoformat(timespec="seconds"),
            seconds=about.seconds,
            cautions=(*self._cautions(system_run), *checks),
            samples=content.samples,
            target=target,
            name=name,
            tags=tags,
        )
        cost = run.recorded_cost
        run = replace(run, paid=Paid(total=cost, this_call=cost, records=run.judge_cost))
        return Built(
            run=run,
            records=content.records,
            cases=system_run.cases(),
            answers=() if target is None else system_run.answers(target, id),
        )

    def _cautions(self, system_run: SystemRun) -> Iterator[Note]:
        """What has to be known of a run, but for what the tool printed."""
        yield note("imported", tool=self._tool_and_version, file=self.file)
        names = {info.name for info in system_run.infos.values()}
        notes = {**self._notes, **self._system_notes.get(system_run.system.identity, {})}
        yield from (each for each in notes if not each.scorer or each.scorer in names)
        if system_run.system.scored:
            yield note("scored_without_answer", "caution", tool=self.tool, rows=system_run.system.scored)
        if repeats := system_run.repeats:
            yield note(
                "cases_repeated", cases=repeats, rows=system_run.n_samples - len(system_run.system.trials) + repeats
            )
        if system_run.missing:
            yield note("trials_absent", "caution", absent=system_run.missing, trials=system_run.trials)

    @property
    def _tool_and_version(self) -> str:
        return f"{self.tool} {_as_version(self.about.version)}".rstrip()

    def _started(self, about: About) -> datetime:
        try:
            when = datetime.fromisoformat(about.started) if about.started else self.written
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            return self.written.astimezone(UTC)


def _filled(about: About, later: About) -> About:
    """What is known, with what a later part has of what it lacks."""
    known = vars(about)
    new = {name: value for name, value in vars(later).items() if value and not known[name]}
    return replace(about, **new) if new else about


def check_scales(scales: Iterable[str], metrics: Collection[str]) -> None:
    """Raise DataError for a scale of a metric that isn't among these."""
    for metric in scales:
        if metric not in metrics:
            raise DataError(Setting("scales"), ": ", unknown("metric", metric, metrics))


def _as_version(text: str) -> str:
    """A version as a signature has it."""
    return "".join(character if character.isalnum() or character in "._+-" else "-" for character in text)[:40]


def _target(system: System, trials: int, run: str) -> StoredTarget:
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


@functools.lru_cache(1000)
def _judge_of(name: str, tool: str) -> tuple[str, str]:
    """The judge of a tool's call, and the same as JSON. name: The model, as the tool names it."""
    named = metric_name(name, "")
    judge = f"{named} by {tool}" if named else f"not recorded by {tool}"
    return judge, plain_line(judge)


@functools.lru_cache(1000)
def _usage_text(usage: Usage) -> str:
    return plain_line(vars(usage))


def write_to_ledger(built: Built, ledger: Ledger, imported: datetime) -> bool:
    """Write a run into a ledger. Returns False if it is there already: its ID is a hash of what was imported. One that
    is there in part, because its import was killed, is finished.

    imported: When it was imported, which is the same for all runs of an import.
    """
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
    ledger.finish_run(run.id, imported.isoformat(timespec="seconds"), run.to_dict())
    return True
