"""Pick the demo data from RAGTruth's question answering part; the same input gives the same file.

    python tools/make_demo_data.py --data DIR

DIR holds `ragtruth_qa.jsonl.gz`, gzipped JSON lines with `id`, `group`, `query`, `context`, `response`, `label` (1: the
response says something that the passages do not) and `model`. One answer is taken per question, ungrounded ones first
and the models in turn, and the result goes to src/evalstone/datasets/demo/ragtruth_qa.jsonl.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parents[1] / "src" / "evalstone" / "datasets" / "demo" / "ragtruth_qa.jsonl"
ANSWERS = 60
UNGROUNDED = 24
SHORTEST, LONGEST = 80, 1200
LONGEST_CONTEXT = 3500


def readable(row: dict[str, Any]) -> bool:
    """Whether a row is short enough to be read on a screen and long enough to say something."""
    return SHORTEST <= len(row["response"]) <= LONGEST and len(row["context"]) <= LONGEST_CONTEXT


def pick(rows: Sequence[dict[str, Any]], count: int, taken: set[str], models: Counter[str]) -> list[dict[str, Any]]:
    """Up to `count` rows, each of a question not taken before, the models that have fewest first."""
    left = sorted(rows, key=lambda row: hashlib.sha256(row["id"].encode()).digest())
    picked: list[dict[str, Any]] = []
    while len(picked) < count:
        free = [row for row in left if row["group"] not in taken]
        if not free:
            break
        row = min(free, key=lambda row: models[row["model"]])
        picked.append(row)
        taken.add(row["group"])
        models[row["model"]] += 1
    return picked


def sample(row: dict[str, Any]) -> dict[str, Any]:
    """A row as a sample of evalstone."""
    passages = [part.strip() for part in re.split(r"\n\s*\n", row["context"])]
    return {
        "id": row["id"],
        "input": row["query"].strip(),
        "output": row["response"].strip(),
        "context": [passage for passage in passages if passage],
        "metadata": {
            "model": row["model"],
            "label": "ungrounded" if row["label"] else "grounded",
            "source": "RAGTruth",
        },
    }


def main() -> None:
    """Write the demo data."""
    parser = argparse.ArgumentParser(description="Pick the demo data from RAGTruth.")
    parser.add_argument("--data", type=Path, required=True, help="folder with ragtruth_qa.jsonl.gz")
    folder: Path = parser.parse_args().data
    with gzip.open(folder / "ragtruth_qa.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, filter(str.strip, lines)) if readable(row)]
    taken, models = set[str](), Counter[str]()
    picked = pick([row for row in rows if row["label"]], UNGROUNDED, taken, models)
    picked += pick([row for row in rows if not row["label"]], ANSWERS - len(picked), taken, models)
    picked.sort(key=lambda row: row["id"])
    text = "".join(json.dumps(sample(row), ensure_ascii=False) + "\n" for row in picked)
    TARGET.write_text(text, encoding="utf-8")
    print(f"{len(picked)} answers, {sum(row['label'] for row in picked)} ungrounded, {len(text.encode()):,} bytes")
    print(dict(sorted(models.items())))


if __name__ == "__main__":
    main()
