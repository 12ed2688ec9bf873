"""How a run ends: one table of causes, with their exit codes, what is kept, and what a rerun does.

The command line takes its exit codes from it, `summary.json` names the ending, and docs/endings.md is made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from evalstone._core.display import count
from evalstone.errors import (
    BatchError,
    BudgetExceeded,
    EvalstoneError,
    JudgeRefused,
    JudgeUnavailable,
    RequestLimitReached,
    StorageError,
    TargetUnavailable,
)

if TYPE_CHECKING:
    from evalstone.results.run import Run
    from evalstone.stats.gates import GateVerdict


class ExitCode(IntEnum):
    """The exit codes of commands."""

    OK = 0
    CHECK_FAILED = 1
    USAGE = 2
    INCOMPLETE = 3
    INCONCLUSIVE = 4
    SCORES_FAILED = 5
    INTERRUPTED = 130
    BROKEN_PIPE = 141


EXIT_CODES = {
    ExitCode.OK: ("success", "the command is complete, and no check fails"),
    ExitCode.CHECK_FAILED: (
        "a check fails",
        "a check fails: a threshold is missed, data can't be read, scores have drifted, a ledger is damaged, or counts "
        "don't add up",
    ),
    ExitCode.USAGE: ("could not start", "the command can't start: a wrong option, file or setting, or a missing key"),
    ExitCode.INCOMPLETE: (
        "did not complete",
        "the command did not complete: the run ended early, no sample has a score (also if all failed), the judge gave "
        "no answers, or something could not be read or written",
    ),
    ExitCode.INCONCLUSIVE: ("inconclusive", "the samples don't decide a check"),
    ExitCode.SCORES_FAILED: ("complete, but some scores failed", "the command is complete, but some scores failed"),
    ExitCode.INTERRUPTED: ("interrupted", "the command was interrupted by Ctrl-C, SIGTERM or SIGHUP"),
    ExitCode.BROKEN_PIPE: ("nobody reads the output", "its output is piped to a command that stops reading"),
}
"""What each exit code means: in a few words for the help of a command, and in full."""
_FIRST = (
    ExitCode.INTERRUPTED,
    ExitCode.USAGE,
    ExitCode.CHECK_FAILED,
    ExitCode.INCOMPLETE,
    ExitCode.INCONCLUSIVE,
    ExitCode.SCORES_FAILED,
)
"""Which exit code a command has if several hold: the first of these."""


def first_code(codes: Iterable[ExitCode]) -> ExitCode:
    """The exit code of a command to which all of these apply."""
    given = set(codes)
    return next((code for code in _FIRST if code in given), ExitCode.OK)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A cause that ends a run, and what follows from it."""

    name: str | None
    """The name in `summary.json`, an `EndingName`; None if there is no run."""
    cause: str
    """What happens."""
    code: ExitCode
    """The exit code of `evalstone run` if no score failed and no threshold is missed."""
    broken_off: bool = False
    """Whether the scored samples depend on what broke the run off. They then decide no threshold: commands on the run
    return the exit code whatever the thresholds say."""
    out: str = "written"
    """What happens to the folder of `--out`."""
    kept: str
    """What happens to calls in flight. Finished ones are in the ledger."""
    rerun: str
    """What the same command does afterwards."""

    @property
    def saved_code(self) -> ExitCode:
        """The exit code of later commands on the run, which weren't interrupted themselves."""
        return ExitCode.INCOMPLETE if self.code is ExitCode.INTERRUPTED else self.code


_FINISHED = "completed and kept, within 60 seconds"
_RESUMES = "resumes"
_ASKS_FAILED = "resumes; failed samples are retried"

COMPLETE = Ending(
    name="complete",
    cause="every sample is processed; with `--limit N`, the first N",
    code=ExitCode.OK,
    kept="-",
    rerun="starts a new run; judge answers are cached, the target answers again",
)
DECIDED = Ending(
    name="decided",
    cause="`--sequential`: all thresholds are decided",
    code=ExitCode.OK,
    kept="completed and kept",
    rerun="resumes, and decides at once; without `--sequential`, scores the other samples",
)
BUDGET = Ending(
    name="budget",
    cause="the next call may exceed `--budget`",
    code=ExitCode.INCOMPLETE,
    kept="completed and kept; samples in progress are finished as far as the budget allows",
    rerun="resumes with a higher `--budget`",
)
MAX_REQUESTS = Ending(
    name="max_requests",
    cause="`max_requests` of the judge or the target is reached",
    code=ExitCode.INCOMPLETE,
    kept="completed and kept",
    rerun="resumes, with as many requests again",
)
JUDGE_REFUSED = Ending(
    name="judge_refused",
    cause="the judge's endpoint refuses the key or the model (HTTP 401; 403 or 404 for all questions), requires "
    "payment (HTTP 402, or in words), or redirects",
    code=ExitCode.INCOMPLETE,
    broken_off=True,
    kept=_FINISHED,
    rerun=_ASKS_FAILED,
)
JUDGE_UNAVAILABLE = Ending(
    name="judge_unavailable",
    cause="the judge fails on each of the first 10 questions, or doesn't answer 10 in a row",
    code=ExitCode.INCOMPLETE,
    broken_off=True,
    kept=_FINISHED,
    rerun=_ASKS_FAILED,
)
TARGET_UNAVAILABLE = Ending(
    name="target_unavailable",
    cause="the target refuses the first call (HTTP 401, 403, 404 or a redirect; a model also for lack of credit), "
    "fails on each of the first 10 samples or can't be reached 10 times in a row",
    code=ExitCode.INCOMPLETE,
    broken_off=True,
    kept=_FINISHED,
    rerun=_ASKS_FAILED,
)
BATCH = Ending(
    name="batch",
    cause="`--batch` or `--batch-files`: answers will come later, or the provider didn't accept a batch",
    code=ExitCode.INCOMPLETE,
    broken_off=True,
    kept="the batches go on",
    rerun="collects the answers, and continues",
)
STORAGE = Ending(
    name="storage",
    cause="the ledger is deleted, its server stays down, or the disk is full",
    code=ExitCode.INCOMPLETE,
    broken_off=True,
    kept="lost",
    rerun="resumes, if the ledger is there again",
)
INTERRUPTED = Ending(
    name="interrupted",
    cause="Ctrl-C, SIGTERM, or a closed terminal (SIGHUP)",
    code=ExitCode.INTERRUPTED,
    broken_off=True,
    kept="completed and kept; a call that waits for a retry is dropped",
    rerun=_RESUMES,
)
STOPPED = Ending(
    name="stopped",
    cause="in Python: `StopSignal.request`, a canceled task, or an exception in `on_record` or `on_sample`",
    code=ExitCode.INCOMPLETE,
    broken_off=True,
    kept="completed and kept; dropped if the task is canceled",
    rerun=_RESUMES,
)
ERROR = Ending(
    name="error",
    cause="any other error, such as a judge in your code that returns a wrong type",
    code=ExitCode.INCOMPLETE,
    broken_off=True,
    kept=_FINISHED,
    rerun=_ASKS_FAILED,
)
KILLED = Ending(
    name="killed",
    cause="a second signal, `kill -9`, or a crash",
    code=ExitCode.INTERRUPTED,
    broken_off=True,
    out="without results",
    kept="lost: at most `--concurrency` of the judge and `--target-concurrency` of the target",
    rerun=_RESUMES,
)
NOT_STARTED = Ending(
    name=None,
    cause=EXIT_CODES[ExitCode.USAGE][1],
    code=ExitCode.USAGE,
    broken_off=True,
    out="unchanged",
    kept="-",
    rerun="fails again",
)
ENDINGS = (
    COMPLETE,
    DECIDED,
    BUDGET,
    MAX_REQUESTS,
    JUDGE_REFUSED,
    JUDGE_UNAVAILABLE,
    TARGET_UNAVAILABLE,
    BATCH,
    STORAGE,
    INTERRUPTED,
    STOPPED,
    ERROR,
    KILLED,
    NOT_STARTED,
)
_BY_NAME = {ending.name: ending for ending in ENDINGS}


def ending_named(name: str) -> Ending:
    """The ending with this name; for one that this version doesn't have, one that decides no threshold."""
    return _BY_NAME.get(name) or replace(ERROR, name=name, cause="a cause that a newer version of evalstone knows")


# In this order, because errors are subclasses of others.
_OF_ERRORS: tuple[tuple[type[BaseException], Ending], ...] = (
    (RequestLimitReached, MAX_REQUESTS),
    (BudgetExceeded, BUDGET),
    (JudgeRefused, JUDGE_REFUSED),
    (JudgeUnavailable, JUDGE_UNAVAILABLE),
    (TargetUnavailable, TARGET_UNAVAILABLE),
    (BatchError, BATCH),
    (StorageError, STORAGE),
)


def ending_of(error: BaseException) -> Ending:
    """The ending of a run that this error ended."""
    by_type = next((ending for kind, ending in _OF_ERRORS if isinstance(error, kind)), None)
    return by_type or (ERROR if isinstance(error, EvalstoneError) else STOPPED)


def code_of_judging(failed: int, stop_reason: str) -> ExitCode:
    """The exit code of a calibration or an audit: of its number of failed scores, and why it ended early, or ""."""
    if stop_reason:
        return ExitCode.INCOMPLETE
    return ExitCode.SCORES_FAILED if failed else ExitCode.OK


def exit_code(run: Run, verdict: GateVerdict = "pass", *, saved: bool = True) -> ExitCode:
    """The exit code of a command on a run.

    Args:
        run: the run.
        verdict: the verdict of the thresholds that the command tests.
        saved: whether the run was saved before; otherwise it ended in this command.
    """
    if run.ending.broken_off:
        return run.ending.saved_code if saved else run.ending.code
    code, _ = _shortfall(run)
    if run.ending.code and not any(line.n_score for line in run.summary):
        return code
    return first_code((_OF_VERDICTS[verdict], code))


_OF_VERDICTS: Mapping[GateVerdict, ExitCode] = {
    "pass": ExitCode.OK,
    "fail": ExitCode.CHECK_FAILED,
    "inconclusive": ExitCode.INCONCLUSIVE,
}


def shortfall_of(run: Run) -> str:
    """Why a run is no success although no threshold is missed, or ""."""
    return _shortfall(run)[1]


def _shortfall(run: Run) -> tuple[ExitCode, str]:
    """What a run lacks: its exit code, and why."""
    if run.ending.code:
        return ExitCode.INCOMPLETE, "the run ended early"
    if not any(line.n_score for line in run.summary):
        failed = f"{count(run.n_failed, 'score')} failed" if run.n_failed else "no sample was scored"
        return ExitCode.INCOMPLETE, failed
    # A scorer to which the judge gave no answers may have another one with scores.
    judged = [line for line in run.summary if line.judges or line.unanswered]
    if any(line.no_answer for line in judged) and not any(line.n_score for line in judged):
        return ExitCode.INCOMPLETE, "the judge gave no answers"
    if run.n_failed:
        return ExitCode.SCORES_FAILED, f"{count(run.n_failed, 'score')} failed"
    return ExitCode.OK, ""
