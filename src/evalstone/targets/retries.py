"""Retries of requests to targets after transient errors, and the errors of providers as errors of targets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from evalstone._core.display import count
from evalstone.errors import (
    ConfigError,
    JudgeRefused,
    PromptTooLong,
    ProviderError,
    ProviderTimeout,
    TargetError,
    TargetRefused,
    TargetUnreachable,
)
from evalstone.models.limits import Backoff, TransientError
from evalstone.models.provider import CreditRefused

T = TypeVar("T")
CHECK = "check the address, and the key or the headers"


async def with_retries(request: Callable[[], Awaitable[T]], *, total_timeout: float, retries: int) -> T:
    """The result of a request. After a transient error, it is retried up to `retries` times; a request that was
    certainly not processed is retried until the time is up.

    Raises:
        TargetUnreachable: There was no answer after all retries.
        TargetRefused: The credentials, the address or the name of the model are wrong, or the account has no credit.
        TargetError: The request was rejected permanently, or the reply can't be read.
    """
    backoff, paid = Backoff(total_timeout), 0
    while True:
        try:
            return await request()
        except TransientError as error:
            paid += not (error.rejected or error.adapted)
            if paid > retries:
                raise TargetUnreachable(
                    f"{error.host} gave no answer in {count(paid, 'attempt')}; the last: {error}"
                ) from None
            try:
                await backoff.wait(error)
            except ProviderTimeout as gave_up:
                raise TargetUnreachable(str(gave_up)) from None
        except PromptTooLong as error:
            raise TargetError(error.problem) from None  # a target has no context_window
        except ProviderError as error:
            # The cost of a request that timed out is unknown; other requests were not sent.
            unreachable = isinstance(error, ProviderTimeout) and error.cost is not None
            raise (TargetUnreachable if unreachable else TargetError)(str(error)) from None
        except CreditRefused as error:
            raise TargetRefused(str(error)) from None
        except (ConfigError, JudgeRefused) as error:
            raise TargetRefused(error.problem).advised(CHECK) from None
