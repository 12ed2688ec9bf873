"""Scores, metrics and traces for OpenTelemetry: the extra `otel`. Nothing is emitted until `enable` or `export_otlp`.

docs/opentelemetry.md lists the spans, events, metrics and attributes.
"""

from evalstone._core.lazy import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__, __file__)
