"""Emitting scores, metrics and traces through the OpenTelemetry providers of the application."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from evalstone._core.observe import NOBODY, observe, observer
from evalstone.errors import MissingDependency

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from evalstone.otel.telemetry import Telemetry
    from evalstone.scorers import Scorer
    from evalstone.types import Record, Sample


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
    telemetry = telemetry_class()(tracer_provider, meter_provider, logger_provider, content=content)
    observe(telemetry)
    return telemetry


def disable() -> None:
    """Stop emitting."""
    observe(NOBODY)


def emit(record: Record, sample: Sample, scorer: Scorer | None = None) -> None:
    """Emit one score as an event, and count it: a score of a saved run, for example.

    A score that was made while `enable` was active isn't emitted again.

    The event's parent is the span in `sample.metadata["trace"]`; without one, the current span.

    Args:
        record: The score.
        sample: What was scored.
        scorer: What scored it, for the label of the score and the scorer's parameters.

    Raises:
        MissingDependency: opentelemetry is not installed.
    """
    kind, current = telemetry_class(), observer()
    (current if isinstance(current, kind) else kind()).emit(record, sample, scorer)


def telemetry_class() -> type[Telemetry]:
    """The class that emits. Raises MissingDependency if opentelemetry is not installed."""
    try:
        from evalstone.otel.telemetry import Telemetry  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing(error) from None
    return Telemetry


def missing(error: ModuleNotFoundError) -> Exception:
    """The error to raise for a failed import: MissingDependency if the missing module is opentelemetry's."""
    return MissingDependency("opentelemetry", "otel") if (error.name or "").startswith("opentelemetry") else error
