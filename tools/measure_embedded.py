"""Measure the embedded judge on labelled grounding data; prints the table of docs/embedded-judge.md.

    python tools/measure_embedded.py --data DIR

DIR holds gzipped JSON lines with `group`, `context`, `response` and `label` (1: the response says something that the
context does not support). Sources are split in two halves by a hash of `group`: constants were chosen on "train" alone.
HaluEval is left out, since the length of its answers gives the label away.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalstone.judges.embedded.claims import list_claims
from evalstone.judges.embedded.index import index
from evalstone.judges.embedded.verdict import verify

DATA_SETS = (
    "ragtruth_qa",
    "ragtruth_summary",
    "ragtruth_data2txt",
    "mtrag_human",
    "factcheckgpt",
    "faithdial_audit",
    "summedits",
    "storysumm",
)
RESAMPLES = 300


@dataclass(frozen=True)
class Judged:
    """One response: where it is from, its label, the least and the mean support of its claims, and the verdict."""

    group: str
    positive: bool
    least: float
    mean: float
    flagged: bool


def half(group: str) -> str:
    """ "train" or "held out", the same for all responses to one source."""
    return "held out" if hashlib.sha256(group.encode()).digest()[0] % 2 else "train"


def judged(row: dict[str, Any]) -> Judged:
    """A row of data with what the judge makes of it; a response that claims nothing is fully supported."""
    passages = tuple(part for part in re.split(r"\n\s*\n", row["context"]) if part.strip())
    prepared = index(passages)
    found = [verify(claim, prepared) for claim in list_claims(row["response"])]
    supports = [one.support for one in found] or [1.0]
    flagged = any(one.verdict.verdict != "supported" for one in found)
    mean = sum(supports) / len(supports)
    return Judged(str(row["group"]), row["label"] == 1, min(supports), mean, flagged)


def auroc(scores: Sequence[float], positives: Sequence[bool]) -> float:
    """The chance that a positive has a higher score than a negative, ties counted half."""
    ranked = sorted(zip(scores, positives, strict=True))
    below = wins = 0.0
    at = 0
    while at < len(ranked):
        end = at
        while end < len(ranked) and ranked[end][0] == ranked[at][0]:
            end += 1
        tied = sum(positive for _, positive in ranked[at:end])
        negative = end - at - tied
        wins += tied * (below + negative / 2)
        below += negative
        at = end
    total = sum(positives)
    return wins / (total * (len(ranked) - total))


def interval(rows: Sequence[Judged]) -> tuple[float, float]:
    """The 95 % interval of the AUROC by least support: sources drawn again with replacement."""
    groups: defaultdict[str, list[Judged]] = defaultdict(list)
    for row in rows:
        groups[row.group].append(row)
    names, draw, found = sorted(groups), random.Random(0), list[float]()
    for _ in range(RESAMPLES):
        drawn = [row for name in draw.choices(names, k=len(names)) for row in groups[name]]
        labels = [row.positive for row in drawn]
        if any(labels) and not all(labels):
            found.append(auroc([-row.least for row in drawn], labels))
    found.sort()
    return found[int(0.025 * len(found))], found[int(0.975 * len(found))]


def line(name: str, part: str, rows: Sequence[Judged]) -> str:
    """One line of the table."""
    labels = [row.positive for row in rows]
    hits = sum(row.positive and row.flagged for row in rows)
    flagged, positive = sum(row.flagged for row in rows), sum(labels)
    passed = len(rows) - positive - (flagged - hits)
    low, high = interval(rows)
    cells = (
        name,
        part,
        f"{len(rows)} ({positive})",
        f"{auroc([-row.least for row in rows], labels):.3f} [{low:.3f}, {high:.3f}]",
        f"{auroc([-row.mean for row in rows], labels):.3f}",
        f"{(hits / positive + passed / (len(rows) - positive)) / 2:.3f}",
        f"{2 * hits / (flagged + positive):.3f}",
    )
    return f"| {' | '.join(cells)} |"


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a data file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for text in lines:
            if text.strip():
                yield json.loads(text)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the embedded judge on labelled grounding data.")
    parser.add_argument("--data", type=Path, required=True, help="folder with the gzipped JSON lines")
    folder: Path = parser.parse_args().data
    print("| data set | half | rows (positive) | AUROC, least [95 %] | AUROC, mean | balanced accuracy | F1 |")
    print("|---|---|---|---|---|---|---|")
    for name in DATA_SETS:
        rows = [judged(row) for row in read(folder / f"{name}.jsonl.gz")]
        for part in ("train", "held out"):
            print(line(name, part, [row for row in rows if half(row.group) == part]), flush=True)


if __name__ == "__main__":
    main()
