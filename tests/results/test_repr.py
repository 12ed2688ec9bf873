"""The repr of results, data and systems: one short line, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstone import Live, compare, drift, evaluate, gate, power
from evalstone.datasets import load
from evalstone.targets import FunctionTarget, parse_target

ROWS = [{"id": str(n), "input": "x", "output": "a" if n % 3 else "b", "reference": "a"} for n in range(30)]


def answer(input: str) -> str:
    return input


def test_a_result_says_what_it_is_in_one_line() -> None:
    run = evaluate(ROWS, ["exact_match"], ledger=None)
    later = evaluate([{**row, "output": "a"} for row in ROWS], ["exact_match"], ledger=None)
    assert repr(run) == f"<Run {run.id}: 30 records of 1 scorer>"
    assert repr(compare(run, later)) == "<Comparison of A, B: 1 comparison>"
    assert repr(gate(run, min={"exact_match": 0.1})) == f"<Gate of {run.id}: pass, 1 check>"
    again = evaluate(ROWS, ["exact_match"], ledger=None)
    assert repr(drift(run, again)) == f"<DriftResult of {run.id} and {again.id}: 1 scorer>"
    assert repr(power(run, difference=0.1)).endswith(" of 0.1 at 80%: 1 scorer>")


def test_a_dataset_of_any_size_is_one_line(tmp_path: Path) -> None:
    assert repr(load(ROWS)).endswith(" in memory: 30 samples>")
    (tmp_path / "one.jsonl").write_text('{"output": "a", "api_key": "sk-0123456789abcdef"}\n', "utf-8")
    assert repr(load(tmp_path / "one.jsonl")).endswith(" one.jsonl: 1 sample>")


@pytest.mark.parametrize(
    "spec",
    [
        "cmd:env API_TOKEN=abcdef123456 agent --token=abcdef123456 --password abcdef123456",
        {"address": "https://example.org/chat?api_key=abcdef123456", "api": "chat"},
        {"address": "https://example.org/chat", "api": "chat", "headers": {"Authorization": "Bearer abcdef123456"}},
        {"address": "openai/gpt-5.1", "api_key": "abcdef123456"},
    ],
)
def test_a_target_shows_its_name_and_no_secret(spec: object) -> None:
    target = parse_target(spec)
    assert repr(target) == str(target) == f"<{type(target).__name__} {target.identity}>"
    assert "abcdef123456" not in repr(target)


def test_a_function_as_a_target_shows_its_name_and_version() -> None:
    assert repr(FunctionTarget(function=answer, version="2")).endswith("answer@2>")


def test_live_scoring_shows_its_stream(tmp_path: Path) -> None:
    with Live("contains(expected=a)", stream="shop", sampling=1.0, ledger=tmp_path / "l.db", process=False) as live:
        assert repr(live) == "<Live shop: 1 scorer>"
