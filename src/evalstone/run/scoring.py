"""One scorer on one sample: the place where whatever may go wrong becomes an outcome."""

from __future__ import annotations

import time
from collections.abc import Iterator

from evalstone.errors import ConfigError, EvalstoneError, JudgeDeclined, JudgeError, LedgerError, RunAborted
from evalstone.run.session import Recording, Session
from evalstone.scorers import Scorer
from evalstone.types import Failed, Outcome, Record, Sample, Skipped

_OF_THE_RUN = (ConfigError, LedgerError, RunAborted)


async def score_sample(scorer: Scorer, sample: Sample, session: Session) -> Record:
    """The record of one sample and scorer.

    A question that the judge declines makes the outcome Skipped, every other error Failed. An error inside an
    ExceptionGroup counts like the error itself.

    Raises:
        ConfigError, LedgerError, RunAborted: They concern the run and not the sample.
    """
    recording = Recording(session)
    started = time.perf_counter()
    try:
        outcome: Outcome = await scorer.run(recording, sample)
    except _OF_THE_RUN:
        await recording.close()
        raise
    except Exception as error:  # noqa: BLE001 - a scorer's own code may raise anything, and must not end the run
        outcome = _outcome(error)
    await recording.close()
    if recording.aborted is not None:
        # The scorer's own code caught it.
        raise recording.aborted
    return Record(
        sample=sample.id,
        scorer=scorer.signature,
        outcome=outcome,
        steps=tuple(recording.calls),
        seconds=time.perf_counter() - started,
        group=sample.group,
    )


def _outcome(error: Exception) -> Outcome:
    """What an error means for the sample. Raises the first one in a group that concerns the run."""
    errors = list(_flat(error))
    for each in errors:
        if isinstance(each, _OF_THE_RUN):
            raise each
    if all(isinstance(each, JudgeDeclined) for each in errors):
        return Skipped(str(errors[0]))
    first = next(each for each in errors if not isinstance(each, JudgeDeclined))
    if isinstance(first, JudgeError):
        return Failed(str(first), first.reply)
    return Failed(str(first) if isinstance(first, EvalstoneError) else f"{type(first).__name__}: {first}")


def _flat(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for each in error.exceptions:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            yield from _flat(each)  # pyright: ignore[reportUnknownArgumentType]
    else:
        yield error
