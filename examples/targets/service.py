"""An HTTP service with a request and a reply of its own, asked with a template and paths."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from evalstone import evaluate

PASSAGES = ["Ada Lovelace was born in 1815.", "Alan Turing was born in 1912.", "Grace Hopper was born in 1906."]
CASES = Path(__file__).with_name("cases.jsonl")


class Service(BaseHTTPRequestHandler):
    """Answers {"question": …} with the passage that shares the most words with it."""

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["question"]
        best = max(PASSAGES, key=lambda passage: len(set(question.split()) & set(passage.split())))
        reply = json.dumps({"result": {"text": best, "sources": [{"text": best}]}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing for every request."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    service = {
        "address": f"http://127.0.0.1:{server.server_port}/ask",
        "body": {"question": "{input}"},
        "output": "result.text",
        "context": "result.sources",
    }
    run = evaluate(CASES, ["contains", "faithfulness"], target=service, ledger=None)
    print(run)
    server.shutdown()
    server.server_close()
