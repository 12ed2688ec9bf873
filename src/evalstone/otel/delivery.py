"""The HTTP session of the exporters, which detects failed deliveries. The SDK counts redirects, web pages and partly
rejected requests as delivered."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

_REPLIES: dict[str, tuple[Any, str]] = {
    "TRACES": (ExportTraceServiceResponse, "rejected_spans"),
    "METRICS": (ExportMetricsServiceResponse, "rejected_data_points"),
    "LOGS": (ExportLogsServiceResponse, "rejected_log_records"),
}


class Delivery(requests.Session):
    """The HTTP session of one exporter.

    Args:
        signal: TRACES, METRICS or LOGS.
        trouble: Called with what went wrong with a request, in words.
    """

    def __init__(self, signal: str, trouble: Callable[[str], None]) -> None:
        super().__init__()
        self._reply, self._field = _REPLIES[signal]
        self._trouble = trouble
        self.rejected = 0
        """The number of spans, data points or events that the endpoint rejected in accepted requests."""

    def request(self, method: str, url: str | bytes, *arguments: Any, **settings: Any) -> requests.Response:
        """Send a request. Raises RequestException without a response, or for one that isn't from an OTLP endpoint."""
        host = _host(str(url))
        try:
            response = super().request(method, url, *arguments, **{**settings, "allow_redirects": False})
        except requests.RequestException as error:
            self._trouble(f"{host}: {_reason(error)}")
            raise
        if not response.ok or response.is_redirect:
            self._trouble(f"{host} answered HTTP {response.status_code} {response.reason or ''}".rstrip())
        elif _kind(response) == "text/html":
            self._trouble(f"{host} answered with a web page; is it an endpoint of OTLP?")
        else:
            self._count(response, host)
            return response
        if response.ok:  # or the SDK would count it as delivered
            raise requests.RequestException(f"HTTP {response.status_code} is no answer of OTLP")
        return response

    def _count(self, response: requests.Response, host: str) -> None:
        """Count what the endpoint rejected in a request."""
        if _kind(response) != "application/x-protobuf":
            return
        try:
            said = self._reply.FromString(response.content).partial_success
        except DecodeError:
            return  # it took the request, which the status says
        if rejected := max(0, getattr(said, self._field)):
            self.rejected += rejected
            self._trouble(f"{host} rejected a part: {said.error_message or 'no reason given'}")


def own_credentials(signal: str) -> bool:
    """Whether the variables name a credential provider, which has its own session."""
    names = (f"OTEL_PYTHON_EXPORTER_OTLP_HTTP_{each}CREDENTIAL_PROVIDER" for each in ("", f"{signal}_"))
    return any(map(os.environ.get, names))


def _host(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else url


def _kind(response: requests.Response) -> str:
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def _reason(error: requests.RequestException) -> str:
    """The innermost reason: `[Errno 111] Connection refused`."""
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    cause: Any = error.args[0] if error.args else error
    return str(getattr(cause, "reason", None) or cause).rpartition(": ")[2]
