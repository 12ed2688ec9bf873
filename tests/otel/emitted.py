"""What evalstone emits, kept in memory by the real SDK."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

import evalstone.otel

DURATION = "gen_ai.client.inference.duration"


@dataclass(frozen=True)
class Event:
    """A log record."""

    name: str
    body: str
    severity: str
    trace_id: int
    span_id: int
    attributes: Mapping[str, Any]

    @property
    def parent(self) -> tuple[int, int]:
        """The IDs of its trace and span."""
        return self.trace_id, self.span_id


class _Events:
    """A processor of log records. The SDK's exporter in memory has changed its name."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_emit(self, log_record: Any) -> None:
        """Keep a record."""
        one = log_record.log_record
        attributes = dict(one.attributes)
        self.events.append(
            Event(one.event_name, one.body, one.severity_number.name, one.trace_id, one.span_id, attributes)
        )

    def shutdown(self) -> None:
        """Nothing to do."""

    def force_flush(self, timeout_millis: int = 0) -> bool:
        """Nothing to do."""
        return True


class Emitted:
    """Providers that keep what goes through them."""

    def __init__(self) -> None:
        self._spans, self._events, self._reader = InMemorySpanExporter(), _Events(), InMemoryMetricReader()
        self.tracers, self.loggers = TracerProvider(shutdown_on_exit=False), LoggerProvider(shutdown_on_exit=False)
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.loggers.add_log_record_processor(cast(Any, self._events))

    def enabled(self, *, content: bool = False) -> AbstractContextManager[None]:
        """With everything going here."""
        return evalstone.otel.enable(self.tracers, self.meters, self.loggers, content=content)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended."""
        return list(self._spans.get_finished_spans())

    @property
    def events(self) -> list[Event]:
        """The events, in the order in which they were emitted."""
        return self._events.events

    def named(self, prefix: str) -> list[ReadableSpan]:
        """The spans with names that begin so."""
        return [span for span in self.spans if span.name.startswith(prefix)]

    def metric(self, name: str) -> dict[frozenset[tuple[str, Any]], Any]:
        """The data points of a metric by their attributes."""
        data = self._reader.get_metrics_data()
        if data is None:
            return {}
        each = (m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics if m.name == name)
        return {
            frozenset((point.attributes or {}).items()): point for metric in each for point in metric.data.data_points
        }


def ids(span: ReadableSpan) -> tuple[int, int]:
    """The IDs of a span's trace and of the span."""
    own = cast(SpanContext, span.context)
    return own.trace_id, own.span_id


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    """The IDs of the trace and span above a span."""
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """The attributes of a span."""
    return dict(span.attributes or {})


def gen_ai(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    """The attributes of the conventions for generative AI, under their names without `gen_ai.`."""
    return {
        name.removeprefix("gen_ai."): value for name, value in (attributes or {}).items() if name.startswith("gen_ai.")
    }
