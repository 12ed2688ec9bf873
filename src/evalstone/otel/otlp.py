"""Emitting scores, metrics and traces over OTLP, for processes without OpenTelemetry providers of their own."""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from evalstone._core.observe import observer
from evalstone.otel.switch import emit, missing, telemetry_class

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from evalstone.otel.telemetry import Telemetry
    from evalstone.scorers import Scorer
    from evalstone.types import Record, Sample

FLUSH_SECONDS = 5.0
_SETUP = threading.Lock()
_EXPORTING: dict[int, Telemetry] = {}
"""The exports that `emit_otlp` has set up, by process ID, since a forked process needs its own."""


def emit_otlp(record: Record, sample: Sample, scorer: Scorer | None = None) -> None:
    """`emit`, for a process without its own providers: `Live(…, on_record=evalstone.otel.emit_otlp)`.

    It exports score events, and the metrics of scores and outcomes, as configured by the standard `OTEL_…` variables,
    until the process ends. The scoring itself is not traced. In a process that has called `enable` or `export_otlp`,
    this is `emit`.

    Raises:
        MissingDependency: The SDK or the exporter is not installed.
        ConfigError: A variable asks for another protocol or exporter.
    """
    if isinstance(observer(), telemetry_class()):
        emit(record, sample, scorer)
        return
    with _SETUP:
        if os.getpid() not in _EXPORTING:
            block = _checked_export().exporting_scores(flush_seconds=FLUSH_SECONDS)
            _EXPORTING[os.getpid()] = block.__enter__()
            atexit.register(block.__exit__, None, None, None)
    _EXPORTING[os.getpid()].emit(record, sample, scorer)


def export_otlp(
    *, content: bool = False, flush_seconds: float = FLUSH_SECONDS, on_loss: Callable[[str], None] | None = None
) -> AbstractContextManager[None]:
    """Enable, and export over OTLP/HTTP as configured by the standard `OTEL_…` variables, until the end of the block.

    For processes without their own providers: this sets the global ones. If the endpoint can't be reached, the code in
    the block neither fails nor slows down.

    Args:
        content: As for `enable`; the variable OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for it too.
        flush_seconds: How long the end of the block waits until everything is exported.
        on_loss: Called at the end with a sentence, if something could not be exported; by default it is logged.

    Raises:
        MissingDependency: The SDK or the exporter is not installed.
        ConfigError: A variable asks for another protocol or exporter.
    """
    return _checked_export().exporting(content=content, flush_seconds=flush_seconds, on_loss=on_loss)


def _checked_export() -> ModuleType:
    """The module that exports, after a check of the environment variables."""
    try:
        from evalstone.otel import export  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing(error) from None
    export.check_environment()
    return export
