"""Errors of code that is not ours: whose frames are in a traceback, and how it is kept."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import TracebackType

from evalstone._core.redaction import masked
from evalstone.errors import described
from evalstone.types import Failed

_OURS = ("evalstone", "asyncio", "concurrent", "contextlib", "functools")
"""Modules whose frames are not those of the user's code: evalstone, and what calls are made through."""
TRACEBACK_FRAMES = 20
"""The most frames of a traceback that are kept: its innermost."""


def failed(error: BaseException, prefix: str = "") -> Failed:
    """The outcome of an error of the user's code."""
    return Failed(prefix + described(error), exception=type(error).__name__, traceback=_traceback(error))


def _traceback(error: BaseException) -> str:
    """The traceback from the first frame of the user's code on; that of evalstone's own frames says nothing more."""
    frames = list(frames_of(error))
    first = next((frame for frame in frames if not is_ours(frame)), frames[-1] if frames else None)
    return masked("".join(traceback.format_exception(type(error), error, first, limit=-TRACEBACK_FRAMES)).rstrip())


def frames_of(error: BaseException) -> Iterator[TracebackType]:
    """The frames of an error, the outermost first."""
    frame = error.__traceback__
    while frame is not None:
        yield frame
        frame = frame.tb_next


def is_ours(frame: TracebackType) -> bool:
    """Whether a frame is one of evalstone's code, or of what calls are made through."""
    return str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0] in _OURS
