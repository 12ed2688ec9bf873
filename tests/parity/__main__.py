"""`python -m tests.parity FILE…`: our scorers on recorded cases. `--edge` compares the kind of outcome, not scores."""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from tests.parity.cases import INVENTIONS, Verdict, check_all, covered, read_cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--edge", action="store_true", help="the files hold edge cases with a policy each")
    options = parser.parse_args()
    cases = [case for file in options.files for case in read_cases(file)]
    by_scorer: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in check_all(cases, edge=options.edge):
        by_scorer[verdict.case["scorer"]].append(verdict)
    for name, verdicts in sorted(by_scorer.items()):
        print(f"{name} {sum(v.equal for v in verdicts)}/{len(verdicts)}")
        for verdict in verdicts:
            if not verdict.equal:
                print(f"  {verdict.told}")
    without = sorted({case["scorer"] for case in cases if not covered(case)})
    if without:
        print(f"no scorer of ours yet: {', '.join(without)}")
    verdicts = [verdict for some in by_scorer.values() for verdict in some]
    different = sum(not verdict.equal for verdict in verdicts)
    refused = [verdict for verdict in verdicts if verdict.equal and verdict.invention]
    for invention in INVENTIONS:
        if names := [verdict.case["id"] for verdict in refused if verdict.invention is invention]:
            print(f"{len(names)} refused, for {invention.what}: {', '.join(names)}")
    print(f"{len(verdicts) - different - len(refused)} equal, {len(refused)} refused, {different} different")
    return 1 if different else 0


raise SystemExit(main())
