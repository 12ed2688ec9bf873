"""Drift of live scores: are a scorer's scores of live traffic worse than those of a baseline?

Each scorer has at least two tests: of the mean of its scores, and of the share of samples with a score. Without the
second one, a judge that fails on hard samples would leave a good mean. `evalstone.stats.mean_watch` has the test, and
the meaning of its error rate.

A unit is a conversation (`group` in a sample's metadata), else a trace, else a single score. It is closed `settle`
after its first submission, and its value is the mean of its scores at that time: later ones would change the data of
earlier looks. A score that isn't finished by then counts as missing, because the slow samples may be the hard ones. A
backlog has the same effect, so the number of these scores is part of the result. Units are ordered by their first
submission, so that slow ones are not left out.

Scores that vary with the hour or the weekday have no constant mean. `cycle` tests the means of whole cycles, counted
from the start of the watch. Without it, a bad night is a drop, and an alarm has a note that says so.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalstone._core.display import count, excerpt, joined
from evalstone._core.file_format import LIVE_DRIFT_FORMAT
from evalstone._core.front_ends import PYTHON, FrontEnd, Setting, WordingPart
from evalstone._core.json import to_jsonable
from evalstone._core.times import utc_time
from evalstone._core.truth import PASSED, NoTruthValue, all_passed
from evalstone._core.validation import check_time
from evalstone.errors import ConfigError, NotComparable, invalid
from evalstone.ledger.base import existing
from evalstone.report.notes import clause_of
from evalstone.report.shown import Shown
from evalstone.results.of_scorer import OfScorer
from evalstone.results.run import Run
from evalstone.results.scores import refuse_weights
from evalstone.results.summary import ScorerInfo, find_scorer, scorer_titles
from evalstone.stats.intervals import check_number
from evalstone.types import Note, Score, note, scorer_name

if TYPE_CHECKING:
    from evalstone.ledger.scores import WatchedScore
    from evalstone.ledger.store import Ledger
    from evalstone.report.view import View
    from evalstone.stats.mean_watch import MeanWatch, WatchVerdict

SETTLE = timedelta(minutes=10)


@dataclass(frozen=True, kw_only=True)
class WatchedMean(NoTruthValue):
    """One test of a scorer: a mean that is watched."""

    _tested_by = ".watch.passed"

    of: str
    """"score", "scored" (the share of samples with a score), or with `two_sided` also "score, rising"."""
    watch: MeanWatch
    """The verdict and its figures. For "score, rising", and for scorers where lower is better, they are of scale -
    score, so that lower is worse."""
    alarm: datetime | None
    """The start of the unit that raised the first alarm."""
    changed: datetime | None
    """An estimate of when the mean changed."""


@dataclass(frozen=True, kw_only=True)
class ScorerWatch(OfScorer):
    """One scorer's drift between a baseline and live scores."""

    verdict: WatchVerdict
    """"drifted" if any test raised an alarm; "too few" if there is too little data for an alarm on the mean of scores;
    else "no drift so far"."""
    mean: float | None
    """The mean of the live scores over units; None without scores."""
    baseline: float | None
    """The mean of the baseline over units; None without scores."""
    tests: tuple[WatchedMean, ...]
    """The tests; without one of scores where the baseline has none."""
    units: int
    """The number of closed units."""
    waiting: int
    """The number of units that are not closed yet, or that began in an incomplete cycle."""
    late: int
    """The number of samples that came after their unit was closed and are ignored."""
    unfinished: int
    """The number of scores that were not finished when their unit was closed and count as missing, whether they came
    later or are still pending."""
    alarm_by_unfinished: bool
    """Whether the share of samples with a score raised an alarm only because of these."""

    @property
    def passed(self) -> bool | None:
        """False if it drifted, True if it hasn't so far; None if there is too little data."""
        return PASSED[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        tests = [
            {"of": one.of, **to_jsonable(one.watch), "alarm": _iso(one.alarm), "changed": _iso(one.changed)}
            for one in self.tests
        ]
        return {**to_jsonable(self), "tests": tests}


@dataclass(frozen=True, kw_only=True)
class LiveDrift(Shown):
    """Whether live scores became worse than a baseline: a sequence with one entry per scorer."""

    baseline: str
    """The baseline: the ID of a run, or a period."""
    stream: str
    """The name of the `Live`."""
    since: datetime | None
    """The start of the watch; None for the time of the first score."""
    alpha: float
    """The chance of any false alarm, over all scorers and the whole watch."""
    cycle: timedelta | None
    """The length of a cycle, such as a day or a week: only whole cycles are tested. None treats all times alike."""
    notes: tuple[Note, ...]
    """Reasons to doubt the comparison."""
    scorers: tuple[ScorerWatch, ...]

    @property
    def passed(self) -> bool | None:
        """True if no scorer drifted so far, False if any did; None if neither can be said."""
        return all_passed(one.passed for one in self.scorers)

    def __getitem__(self, scorer: str) -> ScorerWatch:
        """A scorer's drift, by title, signature or name. Raises ConfigError for an unknown or ambiguous one."""
        info = find_scorer(scorer, [one.info for one in self.scorers])
        return next(one for one in self.scorers if one.info == info)

    def __iter__(self) -> Iterator[ScorerWatch]:
        return iter(self.scorers)

    def view(self, front_end: FrontEnd = PYTHON) -> View:
        """The table that `evalstone live drift` shows."""
        from evalstone.live.views import drift_view  # noqa: PLC0415 - only showing it needs it

        return drift_view(self, front_end)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, as `evalstone live drift --json` prints it."""
        return {
            "format": LIVE_DRIFT_FORMAT,
            "baseline": self.baseline,
            "stream": self.stream,
            "since": _iso(self.since),
            "alpha": self.alpha,
            "cycle_seconds": None if self.cycle is None else self.cycle.total_seconds(),
            "notes": [note.to_dict() for note in self.notes],
            "scorers": [one.to_dict() for one in self.scorers],
        }


def drift(
    baseline: Run | str | Path | tuple[datetime, datetime],
    *,
    stream: str | None = None,
    scorers: Iterable[str] = (),
    since: datetime | None = None,
    alpha: float = 0.05,
    tolerance: float | None = None,
    two_sided: bool = False,
    settle: timedelta = SETTLE,
    cycle: timedelta | None = None,
    allow_mismatch: bool = False,
    ledger: str | Path | None = None,
) -> LiveDrift:
    """Whether live scores have ever been worse than a baseline by more than a tolerance.

    The chance of any false alarm is at most alpha, over all scorers, their tests, and all looks: check as often as you
    like, with the same baseline, options and `since`. It includes the uncertainty of the baseline. Units must be
    independent, and without `cycle`, their expected scores must not vary with the time of day or the weekday.

    Args:
        baseline: A run, its ID or name in the ledger, or its results folder; or an earlier period of the same live
            scores, at whose end the watch starts.
        stream: The stream of the `Live`; optional if the ledger has only one stream.
        scorers: Names or signatures of the scorers to watch; by default all that both have.
        since: The start of the watch; by default the first score.
        alpha: The error rate, in (0, 0.5). Each scorer has an equal part, and so has each of its tests.
        tolerance: A mean that is worse by at most this share of the scale is no drift; None is 0.02.
        two_sided: Also watch for better scores, at half the error rate for each direction.
        settle: How long to wait for a trace or conversation, from its first score.
        cycle: The length of a cycle of the scores, such as a day or a week. Only the means of whole cycles from the
            start of the watch are tested, so that a bad hour of every day is no drift. None: the expected score is
            the same at all times, so a few bad hours are drift.
        allow_mismatch: Also watch scorers with another judge than in the baseline, or with only some outputs scored
            with their reasoning; the notes say so.
        ledger: Where the live scores are; by default `.evalstone/ledger.db`.

    Raises:
        ConfigError: There is no such ledger, stream or scorer; the baseline is unknown or has no score; the judges or
            the scored reasoning differ; the samples of the baseline are weighted; a period of a scorer whose direction
            is unknown without `two_sided`; or an option is out of range.
        LedgerError: The ledger can't be read.
    """
    from evalstone.ledger.live import only_stream  # noqa: PLC0415 - the ledger
    from evalstone.ledger.store import Ledger  # noqa: PLC0415

    check_number(Setting("alpha"), alpha)
    if not 0 < alpha < 0.5:
        raise ConfigError(invalid(Setting("alpha"), "above 0 and below 0.5, such as 0.05", alpha))
    if tolerance is not None:
        check_number(Setting("tolerance"), tolerance)
        if not 0 <= tolerance < 1:
            raise ConfigError(invalid(Setting("tolerance"), "a share of the scale, at least 0 and below 1", tolerance))
    if settle <= timedelta(0):
        raise ConfigError(invalid("settle", "above 0", settle, str(settle)))
    if cycle is not None and cycle <= timedelta(0):
        raise ConfigError(invalid("cycle", "above 0", cycle, str(cycle)))
    check_time("since", since)
    source = _read_baseline(baseline, ledger)
    with Ledger(existing(ledger), read_only=True) as opened:
        stream = only_stream(opened, (" with ", Setting("stream", ...))) if stream is None else stream
        watching = _Watching(
            opened,
            stream,
            tolerance,
            two_sided,
            settle.total_seconds(),
            None if cycle is None else cycle.total_seconds(),
        )
        if isinstance(source, Run):
            before: _RunBaseline | _PeriodBaseline = _RunBaseline(source, watching)
        else:
            before = _PeriodBaseline(*source, watching)
            since = before.begin(since)
        here = [info for info in before.infos if watching.has(info)]
        if not here:
            raise ConfigError(
                f"{stream} has no scores by a scorer of the baseline ("
                f"{joined([info.signature for info in before.infos])}"
                "); scores are compared if their signatures are equal"
            )
        chosen = list(dict.fromkeys(find_scorer(one, here) for one in scorers)) or here
        mismatches = [each for info in chosen for each in before.mismatches(info, since)]
        if mismatches and not allow_mismatch:
            anyway = Setting("allow_mismatch", True)
            raise NotComparable(
                clause_of(mismatches[0]), "; ", anyway, " watches them anyway", mismatches=tuple(mismatches)
            )
        titles = scorer_titles(chosen)
        units = {info.signature: before.units(info) for info in chosen}
        every = list(itertools.chain.from_iterable(units.values()))
        if not any(unit.shares for unit in every):
            # A period that was mistyped would otherwise be a watch that never raises an alarm.
            why = before.waits
            if unfinished := sum(unit.unfinished for unit in every):
                late = f"; {count(unfinished, 'score')} came after their unit was closed ("
                why = *why, late, Setting("settle"), ")"
            by = joined(list(titles.values()))
            raise ConfigError(f"the baseline {before.label} has no score{before.place} by {by}", why)
        result = [
            watching.watch(info, titles[info.signature], units[info.signature], since, alpha / len(chosen))
            for info in chosen
        ]
    notes = [*before.notes, *mismatches]
    if cycle is None and any(one.verdict == "drifted" for one in result):
        notes.append(note("times_taken_as_alike", "caution"))
    return LiveDrift(
        baseline=before.label,
        stream=stream,
        since=since,
        alpha=alpha,
        cycle=cycle,
        notes=tuple(notes),
        scorers=tuple(result),
    )


def _is_stream(name: str, ledger: str | Path | None) -> bool:
    """Whether the ledger is there and has live scores of this stream."""
    from evalstone.ledger.base import DEFAULT_LEDGER, is_there  # noqa: PLC0415 - the ledger
    from evalstone.ledger.live import streams  # noqa: PLC0415
    from evalstone.ledger.store import Ledger  # noqa: PLC0415

    if not is_there(url := DEFAULT_LEDGER if ledger is None else ledger):
        return False
    with Ledger(str(url), read_only=True) as opened:
        return name in streams(opened)


def _read_baseline(
    baseline: Run | str | Path | tuple[datetime, datetime], ledger: str | Path | None
) -> Run | tuple[datetime, datetime]:
    given: object = baseline
    if isinstance(given, Run):
        return given
    if isinstance(given, str | Path):
        from evalstone.run.saved import read_run  # noqa: PLC0415 - only a run that is named is read

        try:
            return read_run(given, ledger=ledger)
        except ConfigError as error:
            if error.kind == "missing" and _is_stream(str(given), ledger):
                stream = Setting("stream", str(given))
                raise ConfigError(error, "; that is a stream: name it with ", stream, ", and a baseline") from None
            raise
    match given:
        case (datetime() as start, datetime() as end):
            check_time("the start of the baseline", start)
            check_time("the end of the baseline", end)
            return start, end
        case _:
            raise ConfigError(
                "baseline must be a run, its ID or name in the ledger, its results folder, or a period: a start and an "
                f"end as datetimes; not {excerpt(given)}"
            )


@dataclass
class _Unit:
    """A trace, a conversation or a single score: its number of samples, and their scores as shares of the scale."""

    began: float = 0.0
    samples: int = 0
    shares: list[float] = field(default_factory=list[float])
    unfinished: int = 0
    """The number of samples that got a score later, or have none yet."""
    cycle: int = 0
    """The number of the cycle in which it began."""


@dataclass(frozen=True)
class _Closed:
    units: list[_Unit]
    waiting: int
    late: int


@dataclass(frozen=True)
class _Watching:
    """The watch of a stream."""

    ledger: Ledger
    stream: str
    tolerance: float | None
    two_sided: bool
    settle: float
    cycle: float | None

    def has(self, info: ScorerInfo) -> bool:
        from evalstone.ledger.live import scores  # noqa: PLC0415 - the ledger

        return bool(scores(self.ledger, stream=self.stream, signature=info.signature, limit=1))

    def infos(self) -> list[ScorerInfo]:
        """The scorers of the stream, without a run that says which way is better."""
        from evalstone.ledger.live import counts, scores  # noqa: PLC0415 - the ledger
        from evalstone.scorers import SCORERS  # noqa: PLC0415

        infos: list[ScorerInfo] = []
        for signature in dict.fromkeys(each.signature for each in counts(self.ledger, self.stream)[0]):
            name = scorer_name(signature)
            rows = scores(self.ledger, stream=self.stream, signature=signature, limit=1000)
            scale = next((row.scale for row in rows if row.scale is not None), 1.0)
            kind = SCORERS.get(name)
            if kind is None and not self.two_sided:
                raise ConfigError(
                    f"whether higher or lower is better for {name} is known from runs only: name a run as the "
                    "baseline, or watch both directions (",
                    Setting("two_sided", True),
                    ")",
                )
            infos.append(
                ScorerInfo(
                    name=name,
                    signature=signature,
                    scale=scale,
                    lower_is_better=kind is not None and kind.lower_is_better,
                )
            )
        return infos

    def other_judges(self, baseline: Run, info: ScorerInfo) -> Iterator[Note]:
        """How the judges of the baseline and of the latest live score differ, if they do."""
        from evalstone.ledger.scores import newest_record  # noqa: PLC0415 - the ledger

        newest = newest_record(self.ledger, self.stream, info.signature)
        before = baseline[info.signature].judges
        now = () if newest is None else tuple(dict.fromkeys(call.judge for call in newest.calls))
        if now and before and not set(now) <= set(before):
            yield note("judged_by_another", "warning", name=info.name, before=tuple(before), now=now)

    def mixed_reasoning(self, info: ScorerInfo, since: datetime | None, kept: bool | None = None) -> Iterator[Note]:
        """The note that outputs were scored partly with and partly without their reasoning since a time, if so.
        kept: whether those of a baseline outside of the stream were scored with it; None without such reasoning."""
        from evalstone.ledger.live import kept_reasoning  # noqa: PLC0415 - the ledger

        start = None if since is None else since.timestamp()
        seen = kept_reasoning(self.ledger, self.stream, info.signature, start)
        if seen | {kept} >= {True, False}:
            yield note("reasoning_mixed", "warning", name=info.name)

    def closed(self, info: ScorerInfo, since: float | None, until: float | None = None) -> _Closed:
        """The units of a period that are closed now."""
        from evalstone.ledger.scores import watched_scores  # noqa: PLC0415 - the ledger

        rows = watched_scores(self.ledger, self.stream, info.signature, since=since, until=until)
        return units_of(rows, self.settle, time.time())

    def watch(
        self, info: ScorerInfo, title: str, before: Sequence[_Unit], since: datetime | None, alpha: float
    ) -> ScorerWatch:
        start = None if since is None else since.timestamp()
        now = self._whole_cycles(self.closed(info, start), start)
        scored = [unit for unit in now.units if unit.shares]
        means = [_better(_mean(unit.shares), info) for unit in scored]
        means_before = [_better(_mean(unit.shares), info) for unit in before if unit.shares]
        parts = [("score", means_before, means, scored)]
        if self.two_sided:
            parts.append(("score, rising", [1 - x for x in means_before], [1 - x for x in means], scored))
        parts.append(("scored", _scored(before), _scored(now.units), now.units))
        watched = (self._test(*part, alpha / len(parts), 1.0 if part[0] == "scored" else info.scale) for part in parts)
        tests = tuple(test for test in watched if test is not None)
        verdicts = [test.watch.verdict for test in tests]
        unfinished = sum(unit.unfinished for unit in now.units)
        by_unfinished = False
        if unfinished and any(test.of == "scored" and test.watch.verdict == "drifted" for test in tests):
            in_time = _scored(now.units, all_in_time=True)
            without = self._test("scored", _scored(before), in_time, now.units, alpha / len(parts), 1.0)
            by_unfinished = without is not None and without.watch.verdict != "drifted"
        few = not tests or tests[0].of != "score" or tests[0].watch.verdict == "too few"
        return ScorerWatch(
            title=title,
            info=info,
            verdict="drifted" if "drifted" in verdicts else "too few" if few else "no drift so far",
            mean=info.scale * _better(_mean(means), info) if means else None,
            baseline=info.scale * _better(_mean(means_before), info) if means_before else None,
            tests=tests,
            units=len(now.units),
            waiting=now.waiting,
            late=now.late,
            unfinished=unfinished,
            alarm_by_unfinished=by_unfinished,
        )

    def _whole_cycles(self, found: _Closed, start: float | None) -> _Closed:
        """The units of complete cycles, numbered from the start of the watch; the others wait."""
        if self.cycle is None or not found.units:
            return found
        start = found.units[0].began if start is None else start
        complete = int((time.time() - self.settle - start) // self.cycle)
        for unit in found.units:
            unit.cycle = int((unit.began - start) // self.cycle)
        units = [unit for unit in found.units if unit.cycle < complete]
        return replace(found, units=units, waiting=found.waiting + len(found.units) - len(units))

    def _test(
        self, of: str, before: Sequence[float], now: Sequence[float], units: Sequence[_Unit], alpha: float, scale: float
    ) -> WatchedMean | None:
        from evalstone.stats.mean_watch import watch_mean  # noqa: PLC0415 - numpy

        tolerance = None if self.tolerance is None else scale * self.tolerance
        watch = watch_mean(
            [scale * x for x in before],
            [scale * x for x in now],
            scale=scale,
            tolerance=tolerance,
            alpha=alpha,
            cycles=None if self.cycle is None else [unit.cycle for unit in units],
        )
        if watch is None:
            return None
        alarm, changed = (
            None if place is None else utc_time(units[place].began) for place in (watch.alarm, watch.changed)
        )
        return WatchedMean(of=of, watch=watch, alarm=alarm, changed=changed)


class _RunBaseline:
    """The scores of a run as a baseline.

    Raises:
        ConfigError: Its samples are weighted.
    """

    place = ""
    waits: tuple[WordingPart, ...] = ()

    def __init__(self, run: Run, watching: _Watching) -> None:
        refuse_weights(((each.sample_id, each.weight) for each in run.records), "a watch")
        self.label, self.infos = run.id, list(run.scorers)
        self.notes: list[Note] = []
        self._run, self._watching = run, watching

    def mismatches(self, info: ScorerInfo, since: datetime | None) -> Iterator[Note]:
        """Why a scorer's scores in the run and in the stream are not comparable."""
        yield from self._watching.other_judges(self._run, info)
        yield from self._watching.mixed_reasoning(info, since, self._run.keeps_reasoning)

    def units(self, info: ScorerInfo) -> list[_Unit]:
        """A scorer's units."""
        return _of_run(self._run, info)


class _PeriodBaseline:
    """The live scores of an earlier period as a baseline.

    Raises:
        ConfigError: It ends before it begins.
    """

    def __init__(self, start: datetime, end: datetime, watching: _Watching) -> None:
        if not start < end:
            raise ConfigError(f"the baseline must end after it begins, not from {start} to {end}")
        self.label, self.infos, self.notes = f"{start.isoformat()}..{end.isoformat()}", watching.infos(), list[Note]()
        cycle = None if watching.cycle is None else timedelta(seconds=watching.cycle)
        if cycle is not None and (end - start) % cycle:
            self.notes.append(note("cycles_not_whole", "caution", covers=str(end - start), cycle=str(cycle)))
        self.place = f" of {watching.stream}"
        self._start, self._end, self._watching, self._waiting = start, end, watching, 0

    def begin(self, since: datetime | None) -> datetime:
        """The start of the watch. Raises ConfigError if that is before the end of the baseline."""
        if since is not None and since < self._end:
            raise ConfigError(f"the watch must begin when the baseline has ended ({self._end}), not at {since}")
        return self._end if since is None else since

    def mismatches(self, info: ScorerInfo, since: datetime | None) -> Iterator[Note]:
        """Why a scorer's scores in the period and after it are not comparable."""
        yield from self._watching.mixed_reasoning(info, self._start)

    def units(self, info: ScorerInfo) -> list[_Unit]:
        """A scorer's units that are closed."""
        closed = self._watching.closed(info, self._start.timestamp(), self._end.timestamp())
        self._waiting += closed.waiting
        return closed.units

    @property
    def waits(self) -> tuple[WordingPart, ...]:
        """How many units are not closed yet, for a message."""
        return (f"; {count(self._waiting, 'unit')} not closed yet (", Setting("settle"), ")") if self._waiting else ()


def units_of(rows: Iterable[WatchedScore], settle: float, now: float) -> _Closed:
    """The closed units of these rows, which are in the order of submission; in the order of their first submissions.

    A score counts if it was submitted and finished before its unit closed. All others submitted by then count as
    missing, so that nothing that happens later changes the unit.
    """
    units: dict[tuple[str, str], _Unit] = {}
    late = 0
    for row in rows:
        key = ("group", row.group) if row.group else ("trace", row.trace) if row.trace else ("score", row.id)
        unit = units.setdefault(key, _Unit(row.submitted))
        closes = unit.began + settle
        if row.submitted > closes:
            late += 1
            continue
        unit.samples += 1
        if row.finished is not None and row.finished <= closes:
            if row.share is not None:
                unit.shares.append(row.share)
        elif row.share is not None or row.finished is None:
            unit.unfinished += 1
    closed = [unit for unit in units.values() if unit.began + settle <= now]
    return _Closed(closed, len(units) - len(closed), late)


def _of_run(run: Run, info: ScorerInfo) -> list[_Unit]:
    """The units of a run: groups of samples, and trials of one."""
    units: dict[tuple[str, str], _Unit] = {}
    for record in run.records:
        if record.signature == info.signature:
            key = ("group", record.group) if record.group is not None else ("sample", record.sample_id)
            unit = units.setdefault(key, _Unit())
            unit.samples += 1
            if isinstance(record.outcome, Score):
                unit.shares.append(record.outcome.fraction)
    return list(units.values())


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _scored(units: Sequence[_Unit], *, all_in_time: bool = False) -> list[float]:
    """The share of each unit's samples with a score. all_in_time: as if all had been finished in time."""
    return [(len(unit.shares) + all_in_time * unit.unfinished) / unit.samples for unit in units]


def _better(share: float, info: ScorerInfo) -> float:
    """A share of the scale, reversed if lower is better, so that higher is better; applied again, the original."""
    return 1 - share if info.lower_is_better else share
