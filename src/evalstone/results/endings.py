"""How a run ends: one table of causes, with their exit codes, what is kept, and what a rerun does.

The command line takes its exit codes from it, `summary.json` names the ending, and docs/endings.md is made from it.
"""

from __future__ import annotations

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
    FAILED_THRESHOLD = 1
    USAGE = 2
    FAILURES = 3
    INCONCLUSIVE = 4
    INTERRUPTED = 130
    BROKEN_PIPE = 141


EXIT_CODES = {
    ExitCode.OK: "the run is complete, or its gate is decided, and no threshold is missed",
    ExitCode.FAILED_THRESHOLD: "a threshold is missed",
    ExitCode.USAGE: "the command can't start: a wrong option, file or setting, or a missing key",
    ExitCode.FAILURES: "some scores failed, no sample was scored, the judge gave no answers, or the run ended early",
    ExitCode.INCONCLUSIVE: "a check is inconclusive",
    ExitCode.INTERRUPTED: "the command was interrupted",
}
"""What the exit codes of `run`, `report` and `gate` mean."""


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
        return ExitCode.FAILURES if self.code is ExitCode.INTERRUPTED else self.code


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
    cause="`--gate`: all thresholds are decided",
    code=ExitCode.OK,
    kept="completed and kept",
    rerun="resumes, and decides at once; without `--gate`, scores the other samples",
)
BUDGET = Ending(
    name="budget",
    cause="the next call may exceed `--budget`",
    code=ExitCode.FAILURES,
    kept="completed and kept; samples in progress are finished as far as the budget allows",
    rerun="resumes with a higher `--budget`",
)
MAX_REQUESTS = Ending(
    name="max_requests",
    cause="`max_requests` of the judge or the target is reached",
    code=ExitCode.FAILURES,
    kept="completed and kept",
    rerun="resumes, with as many requests again",
)
JUDGE_REFUSED = Ending(
    name="judge_refused",
    cause="the judge's endpoint refuses the key or the model (HTTP 401; 403 or 404 for all questions), requires "
    "payment (HTTP 402, or in words), or redirects",
    code=ExitCode.FAILURES,
    broken_off=True,
    kept=_FINISHED,
    rerun=_ASKS_FAILED,
)
JUDGE_UNAVAILABLE = Ending(
    name="judge_unavailable",
    cause="the judge fails on each of the first 10 questions, or doesn't answer 10 in a row",
    code=ExitCode.FAILURES,
    broken_off=True,
    kept=_FINISHED,
    rerun=_ASKS_FAILED,
)
TARGET_UNAVAILABLE = Ending(
    name="target_unavailable",
    cause="the target refuses the first call (HTTP 401, 403, 404 or a redirect; a model also for lack of credit), "
    "fails on each of the first 10 samples or can't be reached 10 times in a row",
    code=ExitCode.FAILURES,
    broken_off=True,
    kept=_FINISHED,
    rerun=_ASKS_FAILED,
)
BATCH = Ending(
    name="batch",
    cause="`--batch`: answers will come later, or the provider didn't accept a batch",
    code=ExitCode.FAILURES,
    broken_off=True,
    kept="the batches go on",
    rerun="collects the answers, and continues",
)
STORAGE = Ending(
    name="storage",
    cause="the ledger is deleted, its server stays down, or the disk is full",
    code=ExitCode.FAILURES,
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
    code=ExitCode.FAILURES,
    broken_off=True,
    kept="completed and kept; dropped if the task is canceled",
    rerun=_RESUMES,
)
ERROR = Ending(
    name="error",
    cause="any other error, such as a judge in your code that returns a wrong type",
    code=ExitCode.FAILURES,
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
    cause=EXIT_CODES[ExitCode.USAGE],
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


def exit_code(run: Run, verdict: GateVerdict = "pass", *, saved: bool = True) -> ExitCode:
    """The exit code of a command on a run.

    Args:
        run: the run.
        verdict: the verdict of the thresholds that the command tests.
        saved: whether the run was saved before; otherwise it ended in this command.
    """
    code = run.ending.saved_code if saved else run.ending.code
    scored = any(line.scored for line in run.summary)
    if run.ending.broken_off or (code and not scored):
        return code
    if verdict != "pass":
        return ExitCode.FAILED_THRESHOLD if verdict == "fail" else ExitCode.INCONCLUSIVE
    return code or (ExitCode.FAILURES if shortfall_of(run) else ExitCode.OK)


def shortfall_of(run: Run) -> str:
    """Why a run is no success although no threshold is missed, or ""."""
    if run.ending.code:
        return "the run ended early"
    if run.failed:
        return f"{count(run.failed, 'score')} failed"
    if not any(line.scored for line in run.summary):
        return "no sample was scored"
    # A scorer to which the judge gave no answers may have another one with scores.
    judged = [line for line in run.summary if line.judges or line.unanswered]
    if any(line.no_answer for line in judged) and not any(line.scored for line in judged):
        return "the judge gave no answers"
    return ""
