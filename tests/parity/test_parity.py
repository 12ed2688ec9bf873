"""Our scorers give the numbers that @mastra/evals gave, for the same judgements."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.parity.cases import check_all, covered, read_cases

BUNDLED = Path(__file__).parent / "data"
WHOLE = Path(os.environ.get("EVALSTONE_PARITY", Path(__file__).parents[3] / "shared" / "parity"))


def different(file: Path, *, edge: bool) -> list[str]:
    verdicts = check_all(read_cases(file), edge=edge)
    assert verdicts, f"{file} holds no case that a scorer covers"
    return [verdict.told for verdict in verdicts if not verdict.equal]


def test_bundled_cases_give_the_recorded_scores() -> None:
    assert different(BUNDLED / "scores.jsonl", edge=False) == []


def test_bundled_edge_cases_end_as_their_policy_says() -> None:
    assert different(BUNDLED / "edge.jsonl", edge=True) == []


def test_every_bundled_case_is_covered() -> None:
    cases = [case for name in ("scores", "edge") for case in read_cases(BUNDLED / f"{name}.jsonl")]
    assert [case["scorer"] for case in cases if not covered(case)] == []


@pytest.mark.skipif(not WHOLE.is_dir(), reason=f"the whole set of recorded cases is not at {WHOLE}")
@pytest.mark.parametrize(("name", "edge"), [("scores", False), ("edge", True)])
def test_the_whole_set_holds(name: str, edge: bool) -> None:
    assert different(WHOLE / f"{name}.jsonl", edge=edge) == []
