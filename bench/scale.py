"""What large runs cost, and that whoever scores them gets the same.

    python bench/scale.py --only read                     # 2.5 million samples by 4 scorers
    python bench/scale.py --only read --samples 100000
    .tools/ray/bin/python bench/scale.py --only same      # one process, 4 shards, Ray with 1 and 2 workers
    .tools/ray/bin/python bench/scale.py --only kills     # SIGKILL to workers and to whole runs
    .tools/ray/bin/python bench/scale.py --only kills --engine ray    # of Ray only, or of shards
    .tools/ray/bin/python bench/scale.py --only speed     # seconds of shards and of Ray, compared with one process
    .tools/ray/bin/python bench/scale.py --only large     # scorers in code: minutes, and memory of each worker
    python bench/scale.py --only limits                   # requests a minute and a budget of four shards

With --full, rows have the sizes of docs/scale.md, which take hours in all. Rows with .tools/ray (make .tools/ray/ready)
leave Ray out without it, and others PostgreSQL where it isn't installed.

`read`: bytes and time for each record, and the time and memory of the commands that read them. Each command is a
process of its own, so its peak memory is its own; so are the pages of `evalstone view` (`scale_view.py`). Runs are
written block by block: what was written is what a run of this size has, without the hours that scoring it takes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import scale_kills
import scale_limits
import scale_same
import scale_speed
from processes import Started

from evalstone import Record
from evalstone._core.storage import Location
from evalstone.results.block_writing import write_table
from evalstone.results.record_blocks import BLOCKS, CALLS, block_name
from evalstone.results.record_tables import ABOUT, KEEPS, Keep, record_tables
from evalstone.results.summary import ScorerInfo
from evalstone.stats.exact_sum import ExactSum
from evalstone.types import JudgeCall, Score, Skipped, Usage

np: Any = importlib.import_module("numpy")
pa: Any = importlib.import_module("pyarrow")
compute: Any = importlib.import_module("pyarrow.compute")
SCORERS = tuple(
    ScorerInfo(name=name, signature=f"{name}@1", scale=1.0, lower_is_better=False)
    for name in ("exact_match", "token_f1", "faithfulness", "answer_relevancy")
)
SAMPLES_PER_BLOCK = 25_000
REASON = "the answer makes no claim"
COMMANDS = {
    "report": ["report", "{a}"],
    "compare": ["compare", "{a}", "{b}"],
    "compare --unpaired": ["compare", "--unpaired", "{a}", "{b}"],
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
                outcome = Skipped(REASON)
            yield Record(
                sample_id=f"sample-{sample}",
                scorer=info.name,
                signature=info.signature,
                outcome=outcome,
                calls=calls,
                seconds=rng.random() / 1000 if place < 2 else rng.random(),
            )


def written(folder: Path, samples: int, keep: Keep, seed: int) -> int:
    """Write a run in blocks, record by record as runs do; returns its bytes."""
    shutil.rmtree(folder, ignore_errors=True)
    numbers = range(-(-samples // SAMPLES_PER_BLOCK))
    for number in numbers:
        first = number * SAMPLES_PER_BLOCK
        size = min(SAMPLES_PER_BLOCK, samples - first)
        _write(folder, number, *record_tables(records(first, size, seed), SCORERS, keep, plan="bench", block=number))
    return _finish(folder, samples, len(numbers), seed, keep)


def made(folder: Path, samples: int, seed: int) -> int:
    """Write a run in blocks with `--keep scores`, by columns: of 10^7 records in a minute. Returns its bytes.

    Scores are pass or fail, one of 21 or of any number, and 1 % are missing. A tenth of them differs between seeds.
    """
    shutil.rmtree(folder, ignore_errors=True)
    numbers = range(-(-samples // SAMPLES_PER_BLOCK))
    few = [*records(0, 200, 1)]  # of all kinds
    for number in numbers:
        size = min(SAMPLES_PER_BLOCK, samples - number * SAMPLES_PER_BLOCK)
        table, _ = record_tables(few, SCORERS, "scores", plan="bench", block=number)
        _write(folder, number, _columns(table, number * SAMPLES_PER_BLOCK, size, seed), None)
    return _finish(folder, samples, len(numbers), seed, "scores")


def _columns(few: Any, first: int, size: int, seed: int) -> Any:
    """A table of the records of some samples. few: one with the same schema."""
    step = len(SCORERS)
    values = _values(np.random.default_rng([first, 0]), size)
    changed = np.random.default_rng([first, seed])
    values = np.where(changed.random(values.shape) < 0.1, _values(changed, size), values)
    seconds = changed.integers(1, 1024, values.shape) / 1024  # their sum is exact
    missing, flat = np.isnan(values), values.ravel()
    said = json.loads(few.schema.metadata[ABOUT])
    for place, each in enumerate(said["scorers"]):
        of_scorer = values[~missing[:, place], place]
        bins = np.minimum(19, (20 * (of_scorer + 1e-9)).astype(int))
        asked = {"asked": size} if place > 1 else {}
        skipped = int(missing[:, place].sum())
        each["counts"] |= {
            "n_score": size - skipped,
            "n_skipped": skipped,
            "n_failed": 0,
            "unanswered": 0,
            "calls": asked,
            "reasons": {REASON: skipped} if skipped else {},
            "histogram": np.bincount(bins, minlength=20).tolist(),
        }
        each["sum"], each["seconds"] = ExactSum(of_scorer.tolist()).parts, [float(seconds[:, place].sum())]
    names = compute.cast(pa.array(np.repeat(np.arange(first, first + size), step)), pa.string())
    given: dict[str, Any] = {
        "sample_id": compute.binary_join_element_wise("sample", names, "-"),
        "value": pa.array(flat, mask=missing.ravel()),
        "scale": pa.array(np.ones(flat.size), mask=missing.ravel()),
        "seconds": pa.array(seconds.ravel()),
        "cost": pa.array(np.zeros(flat.size)),
        "reason": pa.array(np.where(missing.ravel(), REASON, None), pa.string()),
        "outcome": _words(missing.ravel(), "score", "skipped"),
        "kind": _words(missing.ravel(), "score", "undefined"),
        **{
            name: pa.DictionaryArray.from_arrays(
                np.tile(np.arange(step, dtype=np.int32), size), [getattr(info, own) for info in SCORERS]
            )
            for name, own in (("scorer", "name"), ("signature", "signature"))
        },
    }
    arrays = [given[field.name] if field.name in given else pa.nulls(flat.size, field.type) for field in few.schema]
    return pa.Table.from_arrays(arrays, schema=few.schema.with_metadata({ABOUT: json.dumps(said)}))


def _values(rng: Any, size: int) -> Any:
    """By sample, the scores of each scorer; NaN without one."""
    found = np.stack([rng.random(size) < 0.7, *(rng.integers(0, 21, size) / 20 for _ in range(2)), rng.random(size)], 1)
    return np.where(rng.random(found.shape) < 0.01, np.nan, found)


def _words(is_second: Any, *words: str) -> Any:
    return pa.DictionaryArray.from_arrays(is_second.astype(np.int32), [*words])


def _write(folder: Path, number: int, *tables: Any) -> None:
    for kind, table in zip((BLOCKS, CALLS), tables, strict=True):
        if table is not None:
            file = Location(str(folder / kind / block_name("bench", number)))
            file.write(lambda to, table=table, kind=kind: write_table(table, to, kind))


def _finish(folder: Path, samples: int, blocks: int, seed: int, keep: Keep) -> int:
    """Write the summary; returns the bytes of the blocks."""
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
        "blocks": {"plan": "bench", "number": blocks, "keep": keep},
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    return sum(file.stat().st_size for kind in (BLOCKS, CALLS) for file in (folder / kind).glob("*"))


def read(samples: int, folder: Path) -> None:
    """Bytes of a record, and what commands take on a run."""
    few = min(samples, 100_000)
    for keep in KEEPS:
        size = written(folder / keep, few, keep, 1)
        print(f"bytes of a record, --keep {keep:8} {size / few / len(SCORERS):8.1f}   ({few:,} samples)")
    runs = [folder / name for name in "ab"]
    for name in "ab":
        began = time.perf_counter()
        made(folder / name, samples, ord(name))
        each = (time.perf_counter() - began) / samples / len(SCORERS)
        print(f"made and wrote run {name}: {1e6 * each:.1f} us a record")
    for name, arguments in COMMANDS.items():
        command = [
            sys.executable,
            "-m",
            "evalstone",
            *(part.format(a=folder / "a", b=folder / "b") for part in arguments),
        ]
        one = Started(command).wait()
        took = f"{one.seconds:6.1f} s  {one.cpu:6.1f} s of CPU  {one.megabytes:6.0f} MB"
        print(f"{name:18} of {samples * len(SCORERS):,} records: {took}  (status {one.status})", flush=True)
    print("evalstone view:", flush=True)
    subprocess.run([sys.executable, str(Path(__file__).with_name("scale_view.py")), *map(str, runs)], check=True)


class Row(NamedTuple):
    """A row: what prints it, from a number of samples and a folder, and how many samples it has by default."""

    run: Callable[..., None]
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
    parser.add_argument("--engine", choices=scale_kills.ENGINES, help="of the row kills, only with this engine")
    given = parser.parse_args()
    if given.engine and given.only != ["kills"]:
        parser.error("--engine needs --only kills")
    with tempfile.TemporaryDirectory() as temporary:
        for name in given.only or ROWS:
            row, folder = ROWS[name], Path(given.folder or temporary)
            if name != "read":
                shutil.rmtree(folder / name, ignore_errors=True)
                (folder := folder / name).mkdir(parents=True)
            print(f"{name}:", flush=True)
            run = partial(row.run, engine=given.engine) if given.engine else row.run
            run(given.samples or (row.full if given.full else row.samples), folder)


if __name__ == "__main__":
    main()
