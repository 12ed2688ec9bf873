"""What a command line and a TOML file come to, before anything is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstone.cli.planning import configured, judge_spec, planned
from evalstone.errors import ConfigError, DataError
from evalstone.report import read_run
from tests.cli.test_commands import at, evalstone
from tests.serving import serving

ROW = {"id": "one", "input": "Where is Paris?", "output": "Paris is in France.", "context": ["Paris is in France."]}


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    return str(tmp_path / "data.jsonl")


def test_a_base_url_goes_into_the_judge_of_the_file(tmp_path: Path, data: str) -> None:
    (tmp_path / "eval.toml").write_text('data = "data.jsonl"\n[judge]\nmodel = "vllm/x"\ntemperature = 0.5\n')
    config = configured(str(tmp_path / "eval.toml"), judge=None, base_url="http://h/v1", mapping=[], minimum=[])
    assert config.judge == {"model": "vllm/x", "temperature": 0.5, "base_url": "http://h/v1"}
    with pytest.raises(ConfigError, match="--base-url goes with a model"):
        judge_spec("lexical", "http://h/v1")


def test_budget_fresh_and_worst_stand_in_a_file_too(tmp_path: Path, data: str) -> None:
    (tmp_path / "eval.toml").write_text('data = "data.jsonl"\nbudget = 1.5\nfresh = true\nworst = 0\n')
    config = configured(str(tmp_path / "eval.toml"), judge=None, base_url=None, mapping=[], minimum=[], worst=None)
    assert (config.budget, config.fresh, config.worst) == (1.5, True, 0)


def test_an_empty_column_leaves_a_field_out(data: str) -> None:
    config = configured(data, judge=None, base_url=None, mapping=["input="], minimum=[])
    assert next(iter(planned(config).dataset)).input is None


@pytest.mark.parametrize("floor", ["nan", "1.5", "-0.1", "inf"])
def test_a_minimum_that_cannot_be_met_is_refused(data: str, floor: str) -> None:
    config = configured(data, judge=None, base_url=None, mapping=[], minimum=[f"faithfulness={floor}"])
    with pytest.raises(ConfigError, match=r"must lie in \[0, 1\]"):
        planned(config)


def test_a_dry_run_needs_no_key_sees_fresh_and_checks_what_the_run_would(tmp_path: Path, data: str) -> None:
    dry = ("run", data, "-s", "faithfulness", "-j", "openai/gpt-5.1", "--dry-run")
    done = evalstone(tmp_path, *dry, "--budget", "0.000001")
    assert done.returncode == 0, done.stderr
    assert "2 calls" in done.stdout
    assert "above the budget" in done.stdout
    assert evalstone(tmp_path, *dry, "--min", "nope=1").returncode == 2
    with serving() as server:
        evalstone(tmp_path, "run", data, "-s", "faithfulness", "-j", "openai/gpt-5.1", env=at(server))
        again = evalstone(tmp_path, *dry, env=at(server))
        fresh = evalstone(tmp_path, *dry, "--fresh", env=at(server))
    assert "0 calls" in again.stdout
    assert "2 calls" in fresh.stdout


def test_an_empty_judge_is_no_judge(tmp_path: Path, data: str) -> None:
    done = evalstone(tmp_path, "run", data, "-s", "faithfulness", "--judge", "")
    assert done.returncode == 2
    assert "judge" in done.stderr


def test_a_question_that_was_refused_is_not_said_to_be_answered(tmp_path: Path) -> None:
    done = evalstone(tmp_path, "score", "-s", "toxicity", "--output", "x")
    assert "find_toxicity, not answered by lexical@3" in done.stdout


def test_results_with_missing_records_are_said_to_be_unfinished(tmp_path: Path, data: str) -> None:
    evalstone(tmp_path, "run", data, "-s", "faithfulness", "--out", "res")
    (tmp_path / "res" / "records.jsonl").write_text("")
    assert read_run(tmp_path / "res").stop_reason == "unfinished"
    shown = evalstone(tmp_path, "report", "res")
    assert shown.returncode == 3
    assert "0 of 1 samples" in shown.stdout


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("summary.json", "[]", "must hold an object"),
        ("records.jsonl", "{}\n", "line 1"),
        ("records.jsonl", '{"format": 1, "outcome": "score", "value": NaN, "scale": 1}\n', "line 1"),
    ],
)
def test_damaged_results_name_file_and_line(tmp_path: Path, data: str, file: str, text: str, told: str) -> None:
    evalstone(tmp_path, "run", data, "-s", "faithfulness", "--out", "res")
    (tmp_path / "res" / file).write_text(text)
    with pytest.raises(DataError, match=told) as error:
        read_run(tmp_path / "res")
    assert file in str(error.value)
