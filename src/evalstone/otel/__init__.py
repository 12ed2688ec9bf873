"""Scores, metrics and traces for OpenTelemetry: the extra `otel`. Nothing is emitted until `enable` or `export_otlp`.

docs/opentelemetry.md lists the spans, events, metrics and attributes.
"""

from __future__ import annotations

import atexit
import os
import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from evalstone._core.observe import NOBODY, observe, observer
from evalstone.errors import MissingDependency

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from evalstone.otel.telemetry import Telemetry
    from evalstone.scorers import Scorer
    from evalstone.types import Record, Sample

__all__ = ["disable", "emit", "emit_otlp", "enable", "export_otlp"]

FLUSH_SECONDS = 5.0
_SETUP = threading.Lock()
_EXPORTING: dict[int, Telemetry] = {}
"""What `emit_otlp` has set up, by process: in this one, unless it was forked since."""


def enable(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    *,
    content: bool = False,
) -> AbstractContextManager[None]:
    """Emit every score of this process as an event, with spans and metrics of runs, judge calls and target calls.

    Stays until `disable`, or, as a context manager, until the end of the block: `with enable(): evaluate(…)`.

    Args:
        tracer_provider: Where spans go; by default the application's global provider.
        meter_provider: Where metrics go; by default the application's global provider.
        logger_provider: Where score events go; by default the application's global provider.
        content: Whether spans have the messages to and from models and targets.

    Raises:
        MissingDependency: opentelemetry is not installed.
    """
    telemetry = _telemetry()(tracer_provider, meter_provider, logger_provider, content=content)
    observe(telemetry)
    return telemetry


def disable() -> None:
    """Emit nothing any more."""
    observe(NOBODY)


def emit(record: Record, sample: Sample, scorer: Scorer | None = None) -> None:
    """Emit one score as an event, and count it: a score of a saved run, for example.

    A score that was made while `enable` was on has been emitted already, and isn't emitted again.

    The event's parent is the span in `sample.metadata["trace"]`; without one, the current span.

    Args:
        record: The score.
        sample: What was scored.
        scorer: What scored it, for the label of the score and the scorer's parameters.

    Raises:
        MissingDependency: opentelemetry is not installed.
    """
    kind, current = _telemetry(), observer()
    (current if isinstance(current, kind) else kind()).emit(record, sample, scorer)


def emit_otlp(record: Record, sample: Sample, scorer: Scorer | None = None) -> None:
    """`emit`, for a process without its own providers: `Live(…, on_record=evalstone.otel.emit_otlp)`.

    It exports score events, and the metrics of scores and outcomes, as configured by the standard `OTEL_…` variables,
    until the process ends. The scoring itself is not traced. In a process that has called `enable` or `export_otlp`,
    this is `emit`.

    Raises:
        MissingDependency: The SDK or the exporter is not installed.
        ConfigError: A variable asks for another protocol or exporter.
    """
    if isinstance(observer(), _telemetry()):
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
        raise _missing(error) from None
    export.check_environment()
    return export


def _telemetry() -> type[Telemetry]:
    try:
        from evalstone.otel.telemetry import Telemetry  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    return Telemetry


def _missing(error: ModuleNotFoundError) -> Exception:
    return MissingDependency("opentelemetry", "otel") if (error.name or "").startswith("opentelemetry") else error
