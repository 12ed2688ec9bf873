"""Errors that user code raises, and their tracebacks."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import TracebackType

from evalstone._core.redaction import masked
from evalstone.errors import described
from evalstone.types import Failed

_OURS = ("evalstone", "asyncio", "concurrent", "contextlib", "functools")
"""Modules whose frames don't belong to user code: evalstone, and the standard library between it and user code."""
TRACEBACK_FRAMES = 20
"""The number of innermost frames that are kept."""


def failed(error: BaseException, prefix: str = "") -> Failed:
    """The outcome of an error in user code."""
    return Failed(prefix + described(error), exception=type(error).__name__, traceback=_traceback(error))


def _traceback(error: BaseException) -> str:
    """The traceback, starting at the first frame of user code."""
    frames = list(frames_of(error))
    first = next((frame for frame in frames if not is_ours(frame)), frames[-1] if frames else None)
    return masked("".join(traceback.format_exception(type(error), error, first, limit=-TRACEBACK_FRAMES)).rstrip())


def frames_of(error: BaseException) -> Iterator[TracebackType]:
    """The frames of an error, outermost first."""
    frame = error.__traceback__
    while frame is not None:
        yield frame
        frame = frame.tb_next


def is_ours(frame: TracebackType) -> bool:
    """Whether a frame belongs to evalstone, or to the standard library between it and user code."""
    return str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0] in _OURS
