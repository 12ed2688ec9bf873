"""What telemetry costs a run: processor time per score, with it off, enabled with the SDK, and exported over OTLP.

    python bench/otel.py [--rounds 5] [--records 2000]

The rounds are interleaved, and the best of each is printed. The endpoint is a process of its own that drops what it
gets. `contains` is code alone, with a span, an event and two metrics per score; `faithfulness`
has two judge calls more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import engine
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

import evalstone.otel
from evalstone import evaluate

ENDPOINT = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def with_sdk() -> AbstractContextManager[None]:
    """Spans, events and metrics are made, and go nowhere."""
    return evalstone.otel.enable(TracerProvider(), MeterProvider([InMemoryMetricReader()]), LoggerProvider())


def lost(message: str) -> None:
    raise SystemExit(message)


CONDITIONS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "off": nullcontext,
    "enabled": with_sdk,
    "exported": lambda: evalstone.otel.export_otlp(on_loss=lost),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=2000)
    options = parser.parse_args()
    endpoint = subprocess.Popen([sys.executable, "-c", ENDPOINT], stdout=subprocess.PIPE, text=True)
    assert endpoint.stdout is not None
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{int(endpoint.stdout.readline())}"
    try:
        for scorer, records in (("contains(expected=Ada)", options.records), ("faithfulness", options.records // 5)):
            samples = [{"id": str(n), "output": f"Ada {n} was.", "context": [f"Ada {n} was."]} for n in range(records)]
            best = dict.fromkeys(CONDITIONS, (float("inf"), float("inf")))
            for _ in range(options.rounds):
                for name, condition in CONDITIONS.items():
                    used, wall = engine.cpu(), time.perf_counter()
                    with condition():
                        evaluate(samples, scorer, ledger=None)
                    took = (engine.cpu() - used) / records * 1e6, (time.perf_counter() - wall) / records * 1e6
                    best[name] = min(best[name], took)
            print(f"{scorer}: {records} records, best of {options.rounds} rounds")
            for name, (used, wall) in best.items():
                print(f"  {name:9} {used:7.0f} µs of processor time a record, {wall:7.0f} µs in all")
    finally:
        endpoint.terminate()
        endpoint.wait()


if __name__ == "__main__":
    main()
