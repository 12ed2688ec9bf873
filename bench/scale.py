"""What large runs cost, and that whoever scores them gets the same.

    python bench/scale.py --only read                     # 2.5 million samples by 4 scorers
    python bench/scale.py --only read --samples 100000
    .tools/ray/bin/python bench/scale.py --only same      # one process, 4 shards, Ray with 1 and 2 workers
    .tools/ray/bin/python bench/scale.py --only kills     # SIGKILL to workers and to whole runs
    .tools/ray/bin/python bench/scale.py --only speed     # seconds of shards and of Ray, compared with one process
    .tools/ray/bin/python bench/scale.py --only large     # scorers in code: minutes, and memory of each worker
    python bench/scale.py --only limits                   # requests a minute and a budget of four shards

With --full, rows have the sizes of docs/scale.md, which take hours in all. Rows with .tools/ray (make .tools/ray/ready)
leave Ray out without it, and others PostgreSQL where it isn't installed.

`read`: bytes and time for each record, and the time and memory of the commands that read them. Each command is a
process of its own, so its peak memory is its own. Runs are written block by block: what was written is what a run of
this size has, without the hours that scoring it takes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import scale_kills
import scale_limits
import scale_same
import scale_speed

from evalstone import Record
from evalstone._core.storage import Location
from evalstone.results.block_writing import write_table
from evalstone.results.record_blocks import BLOCKS, CALLS, block_name
from evalstone.results.record_tables import ABOUT, KEEPS, Keep, record_tables
from evalstone.results.summary import ScorerInfo
from evalstone.types import JudgeCall, Score, Skipped, Usage

SCORERS = tuple(
    ScorerInfo(name=name, signature=f"{name}@1", scale=1.0, lower_is_better=False)
    for name in ("exact_match", "token_f1", "faithfulness", "answer_relevancy")
)
SAMPLES_PER_BLOCK = 25_000
COMMANDS = {
    "report": ["report", "{a}"],
    "compare": ["compare", "{a}", "{b}"],
    "gate": ["gate", "{a}", "--min", "token_f1=0.1"],
}


def records(first: int, number: int, seed: int) -> Iterator[Record]:
    """The records of some samples: two scorers without a judge, and two with one."""
    rng = random.Random(seed * 1_000_003 + first)
    for sample in range(first, first + number):
        for place, info in enumerate(SCORERS):
            value = float(rng.random() < 0.7) if place == 0 else rng.randint(0, 20) / 20
            calls: tuple[JudgeCall, ...] = ()
            outcome: Any = Score(value, f"{round(value * 20)} of 20 tokens are the same", evidence=[])
            if place > 1:
                claims = [
                    {"claim": f"Order {rng.randrange(10**6)} was shipped on day {rng.randrange(365)}.", "verdict": word}
                    for word in ("supported", "contradicted", "not_mentioned")[: rng.randint(1, 3)]
                ]
                calls = (
                    JudgeCall(
                        question="verify_claims",
                        fingerprint=f"{rng.getrandbits(128):032x}",
                        judge="openai/mock-model",
                        answer=claims,
                        reply=json.dumps(claims),
                        usage=Usage(rng.randint(300, 900), rng.randint(20, 120), 0, 1),
                        cost=rng.randint(100, 900) * 1e-7,
                        seconds=rng.random(),
                    ),
                )
                outcome = Score(value, f"{len(claims)} claims", evidence=claims)
            if rng.random() < 0.01:
                outcome = Skipped("the answer makes no claim")
            yield Record(
                sample_id=f"sample-{sample}",
                scorer=info.name,
                signature=info.signature,
                outcome=outcome,
                calls=calls,
                seconds=rng.random() / 1000 if place < 2 else rng.random(),
            )


def written(folder: Path, samples: int, keep: Keep, seed: int) -> int:
    """Write a run in blocks; returns its bytes. All blocks but those of the first 100,000 samples have the records of
    the first block, with the IDs of other samples: making them all would take an hour."""
    shutil.rmtree(folder, ignore_errors=True)
    numbers = range(-(-samples // SAMPLES_PER_BLOCK))
    first_tables: Any = None
    for number in numbers:
        first = number * SAMPLES_PER_BLOCK
        size = min(SAMPLES_PER_BLOCK, samples - first)
        if first < 100_000 or size < SAMPLES_PER_BLOCK:
            tables = record_tables(records(first, size, seed), SCORERS, keep, plan="bench", block=number)
            first_tables = first_tables or tables
        else:
            tables = tuple(renamed(table, first, number) for table in first_tables)
        for kind, table in zip((BLOCKS, CALLS), tables, strict=True):
            if table is not None:
                file = Location(str(folder / kind / block_name("bench", number)))
                file.write(lambda to, table=table, kind=kind: write_table(table, to, kind))
    summary: dict[str, Any] = {
        "format": "run/1",
        "id": f"bench-{seed}",
        "kind": "evaluation",
        "dataset": {"name": "bench", "version": "0" * 32, "samples": samples},
        "judge": {"identity": "openai/mock-model", "note": "", "cautions": []},
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "resumed": 0,
        "scorers": [info.to_stored() for info in SCORERS],
        "blocks": {"plan": "bench", "number": len(numbers)},
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    return sum(file.stat().st_size for kind in (BLOCKS, CALLS) for file in (folder / kind).glob("*"))


def renamed(table: Any, first: int, number: int) -> Any:
    """The table of another block, with the same records of other samples."""
    if table is None:
        return None
    names = [f"sample-{first + row // len(SCORERS)}" for row in range(table.num_rows)]
    table = table.set_column(0, "sample_id", [names])
    said = json.loads(table.schema.metadata[ABOUT])
    return table.replace_schema_metadata({ABOUT: json.dumps({**said, "block": number})})


def measured(command: Sequence[str]) -> tuple[float, float, int]:
    """The seconds, peak megabytes and exit status of a process."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - began, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def read(samples: int, folder: Path) -> None:
    """Bytes of a record, and what commands take on a run."""
    few = min(samples, 100_000)
    for keep in KEEPS:
        size = written(folder / keep, few, keep, 1)
        print(f"bytes of a record, --keep {keep:8} {size / few / len(SCORERS):8.1f}   ({few:,} samples)")
    for name in "ab":
        began = time.perf_counter()
        written(folder / name, samples, "scores", ord(name))
        each = (time.perf_counter() - began) / samples / len(SCORERS)
        print(f"made and wrote run {name}: {1e6 * each:.1f} us a record")
    for name, arguments in COMMANDS.items():
        command = [
            sys.executable,
            "-m",
            "evalstone",
            *(part.format(a=folder / "a", b=folder / "b") for part in arguments),
        ]
        seconds, megabytes, status = measured(command)
        print(
            f"{name:8} of {samples * len(SCORERS):,} records: {seconds:6.1f} s  {megabytes:6.0f} MB  (status {status})"
        )


class Row(NamedTuple):
    """A row: what prints it, from a number of samples and a folder, and how many samples it has by default."""

    run: Callable[[int, Path], None]
    samples: int
    full: int


ROWS = {
    "read": Row(read, 2_500_000, 2_500_000),
    "same": Row(scale_same.same, scale_same.SAMPLES, scale_same.FULL),
    "kills": Row(scale_kills.kills, scale_kills.SAMPLES, scale_kills.FULL),
    "speed": Row(scale_speed.speed, scale_speed.SAMPLES, scale_speed.FULL),
    "large": Row(scale_speed.large, scale_speed.LARGE, scale_speed.LARGE_FULL),
    "limits": Row(scale_limits.limits, scale_limits.SAMPLES, scale_limits.FULL),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[*ROWS], action="append")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--full", action="store_true", help="the sizes of docs/scale.md")
    parser.add_argument("--folder", help="where the runs are written, and kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for name in given.only or ROWS:
            row, folder = ROWS[name], Path(given.folder or temporary)
            if name != "read":
                shutil.rmtree(folder / name, ignore_errors=True)
                (folder := folder / name).mkdir(parents=True)
            print(f"{name}:", flush=True)
            row.run(given.samples or (row.full if given.full else row.samples), folder)


if __name__ == "__main__":
    main()
