"""The trace of a request, from the tracer of the application."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, NamedTuple


class Trace(NamedTuple):
    """The trace of a request."""

    trace_id: str | None = None
    span_id: str | None = None
    declined: bool = False
    """Whether its tracer decided not to record it."""


_NO_TRACE = Trace()


def current_trace() -> Trace:
    """The application's current OpenTelemetry span, if it has one."""
    otel: Any = sys.modules.get("opentelemetry.trace")
    if otel is None:
        return _NO_TRACE
    with contextlib.suppress(Exception):
        context = otel.get_current_span().get_span_context()
        if context.trace_id:
            return Trace(f"{context.trace_id:032x}", f"{context.span_id:016x}", not context.trace_flags & 1)
    return _NO_TRACE
