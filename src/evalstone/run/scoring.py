"""Scoring one sample: what a scorer returns or raises, as a record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from evalstone._core import sync
from evalstone._core.json import strict_jsonable
from evalstone._core.observe import observer
from evalstone.errors import EvalstoneError, JudgeDeclined, JudgeError, OutcomeError
from evalstone.run.session import ENDING_THE_RUN, AskScope, Session
from evalstone.run.user_code import failed, frames_of, is_ours
from evalstone.scorers import Scorer
from evalstone.types import Failed, JudgeCall, Outcome, Record, Sample, Score, Skipped


async def score_sample(scorer: Scorer, sample: Sample, session: Session, title: str = "") -> Record:
    """The record of one sample and scorer.

    title: the scorer's title among those that score the sample; by default its name.

    The outcome is Skipped if the judge declines a question, and Failed for any other error. Errors in an
    ExceptionGroup count as the errors themselves.

    An error of one of the types below that user code raises fails only the sample.

    Raises:
        ConfigError: The configuration of the run is wrong, as a judge or evalstone says.
        StorageError: The ledger can't be read or written.
        RunAborted: The judge or the target can't answer any sample.
    """
    with observer().score(scorer, sample) as observed:
        observed.result(record := await _scored(scorer, sample, session, title))
    return record


async def _scored(scorer: Scorer, sample: Sample, session: Session, title: str) -> Record:
    scope = AskScope(session, scorer.judge, scorer.require_declared)
    started = time.perf_counter()
    result: Outcome | Exception | asyncio.CancelledError
    try:
        result = _plain(await scorer.run(scope, session.scored(sample)))
        _require_awaited(scorer, scope)
    except Exception as error:  # noqa: BLE001 - custom scorers may raise anything
        result = error
        if "'coroutine'" in str(error):  # Python's words for using the answer, such as its attributes
            try:
                _require_awaited(scorer, scope)
            except OutcomeError as cause:
                result = cause
    except asyncio.CancelledError as error:
        if sync.is_being_cancelled():
            raise
        result = error  # raised by what the scorer awaited
    await scope.close()
    if scope.aborted is not None:  # even if the scorer caught it
        raise scope.aborted
    outcome = _outcome(result) if isinstance(result, BaseException) else result
    return record_of(scorer, sample, outcome, title, tuple(scope.calls), time.perf_counter() - started)


def _require_awaited(scorer: Scorer, scope: AskScope) -> None:
    """Raise OutcomeError if a question was not asked because `ask` was called without `await`."""
    if kinds := scope.not_awaited():
        raise OutcomeError(
            f"{scorer.name} called ask without await ({', '.join(kinds)}); write await ask(…) in an async def score"
        )


def record_of(
    scorer: Scorer,
    sample: Sample,
    outcome: Outcome,
    title: str = "",
    calls: tuple[JudgeCall, ...] = (),
    seconds: float = 0.0,
) -> Record:
    """The record of an outcome. title: as for `score_sample`."""
    return Record(
        sample_id=sample.id,
        scorer=title or scorer.name,
        signature=scorer.signature,
        outcome=outcome,
        calls=calls,
        seconds=seconds,
        group=sample.cluster,
        trial=sample.trial,
        weight=sample.weight,
    )


def _plain(outcome: Score | Skipped) -> Score | Skipped:
    """The outcome with its evidence as JSON data, so that a saved run equals the original.

    Raises:
        OutcomeError: The evidence can't be written as JSON: a number is NaN or infinite, or it contains itself.
    """
    if not isinstance(outcome, Score):
        return Skipped(outcome.reason)  # not a subclass
    try:
        evidence = strict_jsonable(outcome.evidence)
    except ValueError as error:
        raise OutcomeError("the evidence cannot be written as JSON: ", error) from None
    return Score(outcome.value, outcome.reason, scale=outcome.scale, evidence=evidence)


def _outcome(error: Exception | asyncio.CancelledError) -> Outcome:
    """The outcome of a sample whose scorer raised an error. Raises an error that concerns the whole run."""
    errors = list(_flat(error))
    for each in errors:
        if isinstance(each, ENDING_THE_RUN) and all(map(is_ours, (*frames_of(error), *frames_of(each)))):
            raise each
    if all(isinstance(each, JudgeDeclined) for each in errors):
        return Skipped(str(errors[0]))
    first = next(each for each in errors if not isinstance(each, JudgeDeclined))
    if isinstance(first, JudgeError):
        return Failed(str(first), first.reply)
    if isinstance(first, EvalstoneError):
        return Failed(str(first))
    return failed(first)


def _flat(error: Exception | asyncio.CancelledError) -> Iterator[Exception | asyncio.CancelledError]:
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            yield from _flat(each)  # pyright: ignore[reportUnknownArgumentType]
    else:
        yield error
