"""A weighted data file, from `run` to `gate`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Evalstone

# Every fourth sample is heavy. In the second version, half of the heavy ones that failed pass.
FAILED = {"a": (0, 4, 8, 12, 16, 20, 24, 28), "b": (0, 4, 8, 12)}


@pytest.fixture
def runs(tmp_path: Path, evalstone: Evalstone) -> Evalstone:
    """The command, in a folder with the results a and b."""
    for name, failed in FAILED.items():
        rows = [
            {
                "id": f"s{place}",
                "output": "no" if place in failed else "yes",
                "reference": "yes",
                "weight": 1 if place % 4 else 10,
            }
            for place in range(60)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        assert evalstone("run", f"{name}.jsonl", "--scorer", "exact_match", "--out", name).returncode == 0
    return evalstone


def test_weights_go_from_the_data_through_every_command(tmp_path: Path, runs: Evalstone) -> None:
    told = runs("report", "a").stdout
    # 15 samples of weight 10 and 45 of weight 1; 8 of the heavy ones fail.
    assert "weighted mean" in told
    assert "0.590" in told
    assert re.search(r"60 samples .* as 25 ", told)
    (line,) = json.loads((tmp_path / "a" / "summary.json").read_text())["scorers"]
    assert (line["n_score"], round(line["mean"], 3), round(line["effective"], 1)) == (60, 0.59, 24.6)
    records = [json.loads(text) for text in (tmp_path / "a" / "records.jsonl").read_text().splitlines()]
    assert [record["weight"] for record in records[:2]] == [10, 1]

    compared = json.loads(runs("compare", "a", "b", "--json").stdout)["scorers"][0]
    assert (round(compared["mean_a"], 3), round(compared["mean_b"], 3)) == (0.59, 0.795)
    assert (compared["wins"], compared["mcnemar"]) == (4, None)

    gated = runs("gate", "a", "--min", "exact_match=0.8")
    assert gated.returncode == 1
    assert "60 (as about 25 " in gated.stdout
    assert runs("gate", "b", "--min", "exact_match=0.3").returncode == 0
    refused = runs("power", "a")
    assert (refused.returncode, "no weighted form" in refused.stderr) == (2, True)


def test_a_gate_that_stops_the_run_refuses_weights(runs: Evalstone) -> None:
    done = runs("run", "a.jsonl", "--scorer", "exact_match", "--sequential", "--min", "exact_match=0.5")
    assert done.returncode == 2
    assert "no weighted form" in done.stderr
    assert "(evalstone gate)" in done.stderr


def test_a_wrong_weight_is_named_with_its_line(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "data.jsonl").write_text(
        '{"id": "a", "output": "x", "weight": 2}\n{"id": "b", "output": "y", "weight": 0}\n'
    )
    done = evalstone("run", "data.jsonl", "--scorer", "exact_match")
    assert done.returncode == 2
    assert "data.jsonl: line 2: " in done.stderr
    assert re.search("weight .* above 0, not 0", done.stderr)
