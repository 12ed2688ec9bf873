"""How fast a run goes and how it takes trouble: faithfulness on 500 records, two judge calls each, 32 at once.

    python bench/engine.py [--records 500] [--latency-ms 0] [--url http://127.0.0.1:8399/v1]

Without --url a model server is started in a process of its own (bench/model_server.py). Prints one line a setting: an
endpoint without trouble, and one with 10% HTTP 429, 5% HTTP 500 and 5% replies that are cut in half. Imports and the
making of samples are not counted; the ledger's writes are.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evalstone import ModelJudge, Run, Sample, evaluate, score

HERE = Path(__file__).parent
WORDS = ("river", "bridge", "city", "engine", "report", "council", "winter", "garden", "market", "signal", "paper")
TROUBLE = (0.10, 0.05, 0.05)


def text(rng: random.Random, words: int) -> str:
    """Sentences of 14 random words."""
    drawn = [rng.choice(WORDS) for _ in range(words)]
    return " ".join(" ".join(drawn[i : i + 14]).capitalize() + "." for i in range(0, words, 14))


def samples(count: int) -> list[Sample]:
    """Questions with three passages of 80 words and an answer of 40."""
    rng = random.Random(20240607)
    return [
        Sample(id=str(n), input=text(rng, 14), output=text(rng, 40), context=[text(rng, 80) for _ in range(3)])
        for n in range(count)
    ]


def cpu() -> float:
    """Seconds of processor time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(name: str, records: list[Sample], judge: ModelJudge, ledger: Path | None) -> Run:
    """Run once and print the line."""
    wall, before = time.perf_counter(), cpu()
    run = evaluate(records, "faithfulness", judge=judge, concurrency=32, ledger=ledger)
    wall, used = time.perf_counter() - wall, cpu() - before
    line = run["faithfulness"]
    asked = line.asked
    print(
        f"{name:26} {len(records) / wall:7.0f} records/s  {1000 * used / max(asked, 1):5.2f} ms CPU a call  "
        f"{line.n_score}/{len(records)} scored, mean {line.mean}, {line.n_failed} failed",
        flush=True,
    )
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--url", help="of a model server that is already there")
    options = parser.parse_args()
    records = samples(options.records)
    shares = {"no trouble": (0.0, 0.0, 0.0), "429, 500 and cut replies": TROUBLE}
    for name, share in {"no trouble": shares["no trouble"]}.items() if options.url else shares.items():
        server = None if options.url else start(options.latency_ms, share)
        try:
            url = options.url or server_url(server)
            judge = ModelJudge("vllm/bench", base_url=url, api_key="none")
            with tempfile.TemporaryDirectory() as folder:
                score("faithfulness", output="warm up", context=["x"], judge=judge, ledger=Path(folder) / "warm.db")
                measured(f"{name}, no ledger", records, judge, None)
                measured(f"{name}, ledger", records, judge, Path(folder) / "l.db")
        finally:
            if server is not None:
                server.kill()
                server.wait()


def start(latency: float, trouble: tuple[float, float, float]) -> subprocess.Popen[str]:
    """A model server in a process of its own."""
    shares = [str(share) for share in trouble]
    command = [sys.executable, str(HERE / "model_server.py"), str(latency), *shares]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def server_url(server: subprocess.Popen[str] | None) -> str:
    """The URL that a server prints when it is ready."""
    if server is None or server.stdout is None:
        raise RuntimeError("no server was started")
    return server.stdout.readline().strip()


if __name__ == "__main__":
    main()
