"""The tasks that score samples, and how they end together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from evalstone.errors import StorageError

if TYPE_CHECKING:
    from evalstone.run.session import Session

LAST_CALLS = 60.0
"""The maximum number of seconds for which calls in flight are awaited after an error."""


async def finish(
    workers: Collection[asyncio.Task[None]],
    session: Session,
    on_error: Callable[[BaseException], str],
    keeping: Collection[asyncio.Task[None] | None] = (),
) -> None:
    """Wait for all workers. The first error, or a cancellation, ends them all and is raised.

    After an error, no more calls are made, and those in flight are awaited, because they will be paid for. After a
    cancellation they are canceled, as after a StorageError, because their answers can't be stored.

    Args:
        workers: Tasks that call judges and targets through the session.
        session: The session.
        on_error: Called at once with what ends the workers; returns why no more calls are made.
        keeping: Workers that are storing records, which an error doesn't cancel.
    """
    everything, ledger = asyncio.gather(*workers), session.calls.ledger
    everything.add_done_callback(lambda done: done.cancelled() or done.exception())  # also if it isn't awaited
    try:
        await (everything if ledger is None else ledger.ends_with(everything))
    except BaseException as error:
        reason = on_error(error)
        try:
            if isinstance(error, Exception) and not isinstance(error, StorageError):
                session.end(reason)
                await asyncio.wait(workers, timeout=LAST_CALLS)
        finally:
            for worker in workers:
                if worker not in keeping or isinstance(error, asyncio.CancelledError):
                    worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        raise
