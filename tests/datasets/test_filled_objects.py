"""Parquet, polars and Arrow give all objects in a column the same keys, and fill those that a row lacks with null."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstone import evaluate, load
from evalstone.types import Trajectory

# Any: their types are partly unknown.
polars: Any = importlib.import_module("polars")
pyarrow: Any = importlib.import_module("pyarrow")
parquet: Any = importlib.import_module("pyarrow.parquet")


def tables(rows: list[dict[str, Any]], folder: Path) -> Iterator[Any]:
    table = pyarrow.Table.from_pylist(rows)
    parquet.write_table(table, folder / "d.parquet")
    polars.DataFrame(rows).write_ndjson(folder / "d.ndjson")
    yield from (rows, table, polars.DataFrame(rows), folder / "d.parquet", folder / "d.ndjson")


def call(tool: str, arguments: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [{"function": {"name": tool, "arguments": arguments}}]},
        {"role": "assistant", "content": "a"},
    ]


@pytest.mark.parametrize("arguments", ["equal", "subset"])
def test_expected_arguments_match_those_of_the_call(tmp_path: Path, arguments: str):
    rows = [
        {
            "messages": call(tool, made),
            "expected_trajectory": [{"name": tool, "step_type": "tool_call", "tool_args": expected}],
        }
        for tool, made, expected in (
            ("clock", '{"zone": "CET", "at": {"day": 3}}', {"zone": "CET", "at": {"day": 3}}),
            ("weather", '{"city": "Bern", "at": {"hour": 4}}', {"city": "Bern", "at": {"hour": 4}}),
        )
    ]
    for source in tables(rows, tmp_path):
        run = evaluate(source, [f"tool_call_f1(arguments={arguments})", "trajectory_accuracy"], ledger=None)
        assert [record.value for record in run.records] == [1.0] * 4, source


def test_the_steps_of_a_trajectory_are_the_same(tmp_path: Path):
    rows = [
        {"output": "a", "trajectory": [step], "expected_trajectory": [step]}
        for step in (
            {"name": "clock", "step_type": "tool_call", "data": {"tool_args": {"zone": "CET"}}},
            {"name": "model", "step_type": "model_generation", "data": {"prompt_tokens": 3}},
        )
    ]
    for source in tables(rows, tmp_path):
        first, second = (sample.trajectory for sample in load(source))
        assert isinstance(first, Trajectory)
        assert isinstance(second, Trajectory)
        assert first.steps[0].data["tool_args"]["zone"] == "CET"
        assert (second.steps[0].data, second.steps[0].metadata) == ({"prompt_tokens": 3}, {})
        assert evaluate(source, ["trajectory_accuracy"], ledger=None)["trajectory_accuracy"].mean == 1.0


def test_grades_and_scores_of_documents_are_the_same(tmp_path: Path):
    rows = [
        {"output": "a", "retrieved": {"d1": 0.2, "d2": 0.9}, "relevant": {"d1": 2}},
        {"output": "b", "retrieved": {"d3": 0.2}, "relevant": {"d3": 1, "d4": 3}},
    ]
    for source in tables(rows, tmp_path):
        run = evaluate(source, ["precision_at_k(k=None)", "recall_at_k"], ledger=None)
        assert [record.value for record in run.records] == [0.5, 1.0, 1.0, 0.5], source
