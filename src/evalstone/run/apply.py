"""One scorer on one sample: the place where whatever may go wrong becomes an outcome."""

from __future__ import annotations

import time

from evalstone.errors import ConfigError, EvalstoneError, JudgeDeclined, JudgeError, LedgerError, RunAborted
from evalstone.run.session import Asker, Transcript
from evalstone.scorers.base import Scorer
from evalstone.types import Failed, Outcome, Record, Sample, Skipped


async def apply(scorer: Scorer, sample: Sample, asker: Asker) -> Record:
    """The record of one sample and scorer.

    A judge that cannot answer makes it Skipped, any other error Failed. ConfigError, LedgerError and RunAborted are
    raised: they concern the run, not the sample.
    """
    transcript = Transcript(asker)
    started = time.perf_counter()
    try:
        outcome: Outcome = await scorer.run(transcript, sample)
    except (ConfigError, LedgerError, RunAborted):
        raise
    except JudgeDeclined as error:
        outcome = Skipped(str(error))
    except JudgeError as error:
        outcome = Failed(str(error), error.reply)
    except EvalstoneError as error:
        outcome = Failed(str(error))
    except Exception as error:  # noqa: BLE001 - a scorer's own code may raise anything, and must not end the run
        outcome = Failed(f"{type(error).__name__}: {error}")
    if transcript.ended is not None:
        # The scorer's own code caught it, or it came in a group of errors.
        raise transcript.ended
    return Record(
        sample=sample.id,
        scorer=scorer.signature,
        outcome=outcome,
        steps=tuple(transcript.steps),
        seconds=time.perf_counter() - started,
        group=sample.group,
    )
