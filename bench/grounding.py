"""How often claims of a text are refused as invented, and how often those of another text are not.

    python bench/grounding.py ../shared/data/grounding

The claims are those that the lexical judge lists, and the text is the response that they are from, or another one of
the same file.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from evalstone._core.grounding import not_grounded
from evalstone.judges.lexical.claim_splitter import list_claims

MOST = 600


def main(folder: Path) -> None:
    """Print the rates of each file."""
    print(f"{'file':24}{'claims':>8}{'own refused':>14}{'others taken':>14}")
    for file in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            rows = [json.loads(line) for line, _ in zip(lines, range(MOST), strict=False)]
        claims = refused = taken = 0
        for row, other in zip(rows, rows[len(rows) // 2 :] + rows[: len(rows) // 2], strict=True):
            for claim in list_claims(row["response"]):
                claims += 1
                refused += bool(not_grounded(claim, row["response"], (row["query"],)))
                taken += not not_grounded(claim, other["response"], (other["query"],))
        print(f"{file.name.partition('.')[0]:24}{claims:8,}{refused / claims:14.2%}{taken / claims:14.2%}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
