"""An application with OpenTelemetry whose answers are scored: each score is an event under the span that it is about.

    pip install ".[otel]"
    python examples/otel/score_events.py

The application is instrumented as any other: here by hand, with the SDK and processors that print. Its answers are
scored after the request, by the lexical judge. Leave out `setup` and its printing in an application that has its own
providers; `evalstone.otel.enable()` uses them.
"""

from __future__ import annotations

from typing import Any, cast

from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import format_span_id, format_trace_id

import evalstone.otel
from evalstone import Sample, score

PASSAGES = {"ada": "Ada Lovelace was born in London in 1815.", "alan": "Alan Turing was born in London in 1912."}
ANSWERS = {"ada": "Ada Lovelace was born in 1815.", "alan": "Alan Turing was born in 1921."}


class PrintedSpans(SpanProcessor):
    """Prints each span as it ends."""

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and not span.name.startswith(("score", "judge")):
            print(f"span   {format_span_id(span.context.span_id)}  {span.name}")


class PrintedEvents:
    """Prints each score event, with the span that it belongs to."""

    def on_emit(self, log_record: Any) -> None:
        event = log_record.log_record
        shown = event.attributes
        print(f"event  {format_span_id(event.span_id)}  {event.event_name}: {event.body}")
        print(f"       {shown['gen_ai.evaluation.explanation']}")

    def shutdown(self) -> None: ...
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


def setup() -> None:
    """What an application that uses OpenTelemetry has done already."""
    spans, events = TracerProvider(), LoggerProvider()
    spans.add_span_processor(PrintedSpans())
    events.add_log_record_processor(cast(Any, PrintedEvents()))
    trace.set_tracer_provider(spans)
    set_logger_provider(events)


def answer(who: str) -> Sample:
    """The application: it answers under a span, and keeps what is to be scored, with the span's IDs."""
    with trace.get_tracer("app").start_as_current_span(f"invoke_agent {who}") as span:
        ids = span.get_span_context()
        return Sample(
            input=f"When was {who} born?",
            output=ANSWERS[who],
            context=[PASSAGES[who]],
            metadata={"trace": {"trace_id": format_trace_id(ids.trace_id), "span_id": format_span_id(ids.span_id)}},
        )


if __name__ == "__main__":
    setup()
    with evalstone.otel.enable():
        for who in ANSWERS:
            score("faithfulness", answer(who))
