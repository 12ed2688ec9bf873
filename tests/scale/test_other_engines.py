"""The examples of other engines in docs/scale.md run, where these are installed (`make test-engines`, and
`make test-ray` for Ray Data)."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import evalstone

pytest.importorskip("pyarrow")

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text("utf-8")
SCORERS = ["exact_match", "rouge_l"]
NEEDED = {"pyspark": "Spark", "daft": "Daft", "ray": "Ray"}


def example(engine: str) -> str:
    (code,) = re.findall(rf"<!-- no test: needs {engine}.*?-->\n```text\n(.*?)```", PAGE, re.DOTALL)
    return code


@pytest.mark.parametrize("module", NEEDED)
def test_the_example_is_python(module: str) -> None:
    compile(example(NEEDED[module]), "docs/scale.md", "exec")


@pytest.mark.parametrize("number", [0, 3])
def test_the_function_of_the_daft_example_takes_any_batch(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pa: Any = importlib.import_module("pyarrow")

    def same(function: object) -> object:
        return function

    def batch(**_: object) -> Any:
        return same

    class Column(list[str]):
        def to_arrow(self) -> Any:
            return pa.array(self, pa.string())

    daft = MagicMock()
    daft.func.batch = batch
    monkeypatch.setitem(sys.modules, "daft", daft)
    names: dict[str, Any] = {}
    exec(example("Daft").partition("\nsamples = ")[0], names)
    ids = Column(f"q{at}" for at in range(number))
    found = names["records"](ids, Column(["Paris"] * number), Column(["Paris"] * number)).to_pylist()
    assert [[(one["sample_id"], one["scorer"]) for one in each] for each in found] == [
        [(id, scorer) for scorer in SCORERS] for id in ids
    ]


@pytest.mark.slow
@pytest.mark.parametrize("module", NEEDED)
def test_the_example_scores_like_a_run(module: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(module) is None or (module == "pyspark" and shutil.which("java") is None):
        pytest.skip(f"{NEEDED[module]} isn't installed")
    rows = [{"id": f"q{n}", "output": f"Paris {n % 3}", "reference": "Paris 1"} for n in range(60)]
    (tmp_path / "samples.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pa, pq = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.parquet"))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "samples.parquet")
    quiet = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SCARF_NO_ANALYTICS": "true"}
    quiet |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    done = subprocess.run(
        [sys.executable, "-c", example(NEEDED[module])],
        cwd=tmp_path,
        env={**os.environ, **quiet},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = (
        pq.read_table(tmp_path / "results").select(["sample_id", "scorer", "value"]).to_pylist()
    )
    run = evalstone.evaluate(rows, SCORERS, ledger=None)
    expected = [{"sample_id": one.sample_id, "scorer": one.scorer, "value": one.value} for one in run.records]
    assert sorted(found, key=str) == sorted(expected, key=str)
