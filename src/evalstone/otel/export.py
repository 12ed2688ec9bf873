"""The SDK of OpenTelemetry with its exporters over OTLP/HTTP: the one module that imports both."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import unquote

from opentelemetry import metrics, trace
from opentelemetry._logs import get_logger_provider, set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from evalstone._core.display import count, joined, safe
from evalstone._core.redaction import header_secrets, masked, register, register_url
from evalstone.errors import ConfigError, invalid
from evalstone.otel.attributes import EXPLANATION
from evalstone.otel.delivery import Delivery, own_credentials
from evalstone.otel.switch import enable
from evalstone.otel.telemetry import Telemetry

SIGNALS = ("TRACES", "METRICS", "LOGS")
PROTOCOL = "http/protobuf"
ENDPOINT, DEFAULT_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318"
QUEUE = 32_768
"""The queue size for spans and for score events, unless OTEL_BSP_MAX_QUEUE_SIZE or OTEL_BLRP_MAX_QUEUE_SIZE is set. A
fast run makes more than the SDK's 2,048 before the first batch is sent."""
HOPELESS_SECONDS = 1.0
"""How long to wait at the end if nothing has been exported by then."""
LAST_SECONDS = 0.2
"""How much longer to wait for requests in flight."""
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CAPTURED = ("TRUE", "SPAN_ONLY", "SPAN_AND_EVENT")
EACH_COUNTED = ("span", "score event")
_logger = logging.getLogger(__name__)


@contextmanager
def exporting(*, content: bool, flush_seconds: float, on_loss: Callable[[str], None] | None) -> Generator[None]:
    """`evalstone.otel.export_otlp`."""
    with _providers(SIGNALS, flush_seconds, on_loss) as (tracers, meters, loggers):
        _set_global(tracers, meters, loggers)
        with enable(tracers, meters, loggers, content=content or os.environ.get(CAPTURE, "").upper() in CAPTURED):
            yield


@contextmanager
def exporting_scores(*, flush_seconds: float) -> Generator[Telemetry]:
    """Export scores only, without spans and the metrics of other libraries."""
    with _providers(("METRICS", "LOGS"), flush_seconds, None) as (tracers, meters, loggers):
        yield Telemetry(tracers, meters, loggers)


@contextmanager
def _providers(
    signals: Collection[str], flush_seconds: float, on_loss: Callable[[str], None] | None
) -> Generator[tuple[TracerProvider, MeterProvider, LoggerProvider]]:
    """Providers that export these signals, unless the environment turns one off. The end waits for the export."""
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "evalstone"}))
    troubles, exporters = _Troubles(), list[_Counting]()
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    loggers = LoggerProvider(resource=resource, shutdown_on_exit=False)
    try:
        readers: list[MetricReader] = []
        if "TRACES" in signals and _exports("TRACES"):
            exporters.append(_Counting(OTLPSpanExporter, "TRACES", troubles, "span"))
            tracers.add_span_processor(_Spans(exporters[-1]))
        if "LOGS" in signals and _exports("LOGS"):
            exporters.append(_Counting(OTLPLogExporter, "LOGS", troubles, "score event"))
            loggers.add_log_record_processor(_Events(exporters[-1]))
        if "METRICS" in signals and _exports("METRICS"):
            exporters.append(
                _Counting(OTLPMetricExporter, "METRICS", troubles, "batch of metrics", "batches of metrics")
            )
            readers.append(PeriodicExportingMetricReader(cast(MetricExporter, exporters[-1])))
        meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        shut_down = _ShutDown(tracers.shutdown, loggers.shutdown, meters.shutdown)
    except BaseException:  # as of an exporter that a variable is wrong for
        troubles.close()
        raise
    try:
        yield tracers, meters, loggers
    finally:
        in_time = shut_down.within(flush_seconds, exporters, troubles)
        missing = [lost for exporter in exporters if (lost := exporter.lost)]
        if missing:
            otherwise = "the queue was full" if in_time else f"not done within {flush_seconds:g} s"
            why = safe(masked(troubles.first), EXPLANATION) or otherwise
            (on_loss or _logger.warning)(f"not exported to OpenTelemetry: {joined(missing)} ({why})")
        if in_time:
            troubles.close()  # what goes on without being waited for would be logged in vain


def check_environment() -> None:
    """Raise ConfigError if a standard variable asks for something unsupported. Secrets in the variables are masked from
    then on."""
    for signal in ("", *(f"{signal}_" for signal in SIGNALS)):
        variable = f"OTEL_EXPORTER_OTLP_{signal}PROTOCOL"
        if (protocol := os.environ.get(variable, PROTOCOL).strip() or PROTOCOL) != PROTOCOL:
            raise ConfigError(f"{variable} is {safe(protocol, 40)}; evalstone exports over {PROTOCOL} alone")
        pairs = (pair.partition("=") for pair in os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}HEADERS", "").split(","))
        register(*header_secrets({unquote(name).strip(): unquote(value).strip() for name, _, value in pairs}))
        register_url(os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT", ""))
    for signal in SIGNALS:
        _exports(signal)


def endpoints() -> Mapping[str, str]:
    """The endpoints of the signals that are exported, by the variables that set them."""
    found: dict[str, str] = {}
    for signal in filter(_exports, SIGNALS):
        own = f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"
        variable = own if own in os.environ else ENDPOINT
        found[variable] = os.environ.get(variable, DEFAULT_ENDPOINT)
    return found


def _exports(signal: str) -> bool:
    """Whether a signal is exported."""
    variable = f"OTEL_{signal}_EXPORTER"
    match os.environ.get(variable, "").strip():
        case "" | "otlp":
            return True
        case "none":
            return False
        case other:
            raise ConfigError(invalid(variable, "otlp or none", other, safe(other, 40)))


def _set_global(tracers: TracerProvider, meters: MeterProvider, loggers: LoggerProvider) -> None:
    """Set the providers as the global ones, so that spans of a target in this process are exported too."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(tracers)
    if type(metrics.get_meter_provider()).__name__ == "_ProxyMeterProvider":
        metrics.set_meter_provider(meters)
    if type(get_logger_provider()).__name__ == "ProxyLoggerProvider":
        set_logger_provider(loggers)


class _ShutDown:
    """Shuts down providers, each in its own thread. The threads are started early and wait, because none can be started
    while Python exits."""

    def __init__(self, *work: Callable[[], object]) -> None:
        self._begin = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(each,), name="evalstone-otel", daemon=True) for each in work
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, work: Callable[[], object]) -> None:
        self._begin.wait()
        work()

    @property
    def _going_on(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def within(self, seconds: float, exporters: Sequence[_Counting], troubles: _Troubles) -> bool:
        """Export the rest within this many seconds, or HOPELESS_SECONDS if nothing gets through. Returns whether it
        finished in time."""
        began = time.monotonic()
        self._begin.set()
        while self._going_on:
            hopeless = troubles.first and not any(exporter.sent for exporter in exporters)
            left = began + (min(seconds, HOPELESS_SECONDS) if hopeless else seconds) - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(left, 0.01))
        if not self._going_on:
            return True
        for exporter in exporters:
            exporter.shutdown()  # ends its wait for the next attempt
        for thread in self._threads:
            thread.join(LAST_SECONDS)
        return False


class _Troubles(logging.Handler):
    """Keeps the first warning of the SDK and the exporters, which repeat it for every batch, instead of printing it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""
        self._library = logging.getLogger("opentelemetry")
        self._propagated, self._library.propagate = self._library.propagate, False
        self._library.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.say(" ".join(filter(None, (record.getMessage(), str(error or "")))))

    def say(self, text: str) -> None:
        """Record a problem."""
        self.first = self.first or text

    def close(self) -> None:
        """Restore their logging."""
        self._library.removeHandler(self)
        self._library.propagate = self._propagated
        super().close()


class _Counting:
    """An exporter that counts items to export, and delivered ones."""

    def __init__(
        self,
        exporter: type[OTLPSpanExporter | OTLPLogExporter | OTLPMetricExporter],
        signal: str,
        troubles: _Troubles,
        noun: str,
        plural: str = "",
    ) -> None:
        self._delivery = None if own_credentials(signal) else Delivery(signal, troubles.say)
        self._exporter: Any = exporter(session=self._delivery)
        self._noun, self._plural = noun, plural
        self._counted, self._lock = 0, threading.Lock()
        self._closed = False
        self.sent = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exporter, name)

    def made(self) -> None:
        """Count an item to export."""
        with self._lock:
            self._counted += 1

    @property
    def lost(self) -> str:
        """The undelivered items, in words; "" if everything was delivered."""
        left = self._counted - self.sent
        return f"{left:,} of {count(self._counted, self._noun, self._plural)}" if left else ""

    def export(self, batch: Any, *arguments: Any, **more: Any) -> Any:
        """Export a batch."""
        if self._noun not in EACH_COUNTED:
            self.made()
        before = self._rejected
        result = self._exporter.export(batch, *arguments, **more)
        if result.name == "SUCCESS":
            rejected = self._rejected - before
            self.sent += len(batch) - rejected if self._noun in EACH_COUNTED else not rejected
        return result

    @property
    def _rejected(self) -> int:
        return 0 if self._delivery is None else self._delivery.rejected

    def shutdown(self, *arguments: Any, **more: Any) -> None:
        """Stop exporting."""
        if not self._closed:
            self._closed = True
            self._exporter.shutdown()


class _Spans(BatchSpanProcessor):
    """Exports spans in batches, each of them counted."""

    def __init__(self, exporter: _Counting) -> None:
        size = None if "OTEL_BSP_MAX_QUEUE_SIZE" in os.environ else QUEUE
        super().__init__(cast(SpanExporter, exporter), max_queue_size=size)
        self._counting = exporter

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self._counting.made()
        super().on_end(span)


class _Events(BatchLogRecordProcessor):
    """Exports events in batches, each of them counted."""

    def __init__(self, exporter: _Counting) -> None:
        size = None if "OTEL_BLRP_MAX_QUEUE_SIZE" in os.environ else QUEUE
        super().__init__(cast(Any, exporter), max_queue_size=size)
        self._counting = exporter

    def on_emit(self, log_record: Any) -> None:
        self._counting.made()
        super().on_emit(log_record)
