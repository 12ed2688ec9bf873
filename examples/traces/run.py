"""The whole example at once: starts `evalstone collect`, runs the agent, and scores what the agent exported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

AGENT = Path(__file__).with_name("agent.py")
SCORERS = ["--scorer", "faithfulness", "--scorer", "tool_called(tool=look_up)", "--scorer", "latency(limit=30)"]
EVALSTONE = [sys.executable, "-m", "evalstone"]


def main(folder: Path) -> None:
    """Collect the traces of one run of the agent, and score them."""
    receiver = subprocess.Popen(
        [*EVALSTONE, "collect", "--port", "0", "--out", "traces.jsonl"], stderr=subprocess.PIPE, text=True, cwd=folder
    )
    try:
        lines = receiver.stderr or []
        address = next((found for line in lines if (found := re.search(r"http://[\d.:]+", line))), None)
        if address is None:
            raise SystemExit("evalstone collect did not start")
        subprocess.run(
            [sys.executable, AGENT], check=True, env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": address[0]}
        )
    finally:
        receiver.terminate()
        print(receiver.communicate(timeout=60)[1], end="")
    subprocess.run([*EVALSTONE, "traces", "traces.jsonl"], check=True, cwd=folder)
    subprocess.run([*EVALSTONE, "run", "traces.jsonl", *SCORERS, "--out", "results"], check=True, cwd=folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
