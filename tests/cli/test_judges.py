"""`evalstone judges`, and judges made of judges on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstone.cli.config_file import read_config
from evalstone.cli.planning import judge_spec
from evalstone.errors import ConfigError
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.providers.base import PROVIDERS
from tests.cli.test_commands import evalstone
from tests.serving import serving

ROW = {"id": "one", "input": "Where is Paris?", "output": "Paris is in France.", "context": ["Paris is in France."]}


def test_all_judges_are_listed_with_their_keys_and_no_key_is_shown(tmp_path: Path) -> None:
    done = evalstone(tmp_path, "judges", env={"OPENAI_API_KEY": "sk-hidden"})
    assert done.returncode == 0, done.stderr
    assert "sk-hidden" not in done.stdout
    lines = done.stdout.splitlines()
    for provider, how in PROVIDERS.items():
        (line,) = [line for line in lines if line.startswith(f"{provider}/MODEL")]
        assert how.key in line
    (openai,) = [line for line in lines if line.startswith("openai/MODEL")]
    assert openai.split()[1:3] == ["OPENAI_API_KEY", "set"]
    assert any(line.startswith("cascade(lexical, openai/gpt-5.1, threshold=0.9)") for line in lines)
    assert any(line.startswith("lexical") for line in lines)


def test_a_judge_is_explained_with_its_members_and_whether_they_can_be_asked(tmp_path: Path) -> None:
    spec = "panel(lexical, openai/gpt-4.1-mini, vllm/x(prices=[1, 2]), vote=mean)"
    done = evalstone(tmp_path, "judges", spec)
    told = " ".join(done.stdout.split())
    assert "a panel of 3 judges, by mean probability" in told
    assert "openai/gpt-4.1-mini: $0.4 and $1.6 for a million input and output tokens; cannot be asked" in told
    assert "set the environment variable OPENAI_API_KEY" in told
    assert "vllm/x: $1 and $2 for a million input and output tokens; can be asked" in told
    assert "free; can be asked" in told


def test_what_is_no_judge_is_refused(tmp_path: Path) -> None:
    done = evalstone(tmp_path, "judges", "panell(lexical, openai/x)")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean panel" in done.stderr


def test_a_run_with_a_cascade_names_it_and_says_what_it_saved(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    with serving() as server:
        spec = f"cascade(lexical, vllm/x(base_url={server.url}), threshold=0.5)"
        done = evalstone(tmp_path, "run", "data.jsonl", "-s", "faithfulness", "-j", spec, "--out", "res")
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    identity = json.loads((tmp_path / "res" / "summary.json").read_text())["judge"]["identity"]
    assert f"judged by {identity}" in told
    assert f"{identity}: 1 of 2 questions escalated (50%), 1 calls of vllm/x({server.url}) saved" in told
    again = evalstone(tmp_path, "report", "res")
    assert "1 of 2 questions escalated (50%)" in " ".join(again.stdout.split())


def test_a_log_lies_beside_its_file_and_a_dry_run_writes_none(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    table = 'judge = {panel = ["lexical", {model = "vllm/x", log = "x.jsonl"}], log = "p.jsonl", max_requests = 1}'
    (tmp_path / "sub" / "eval.toml").write_text(f'data = "data.jsonl"\nscorers = ["faithfulness"]\n{table}\n')
    config = read_config(tmp_path / "sub" / "eval.toml")
    assert config.judge["log"] == str(tmp_path / "sub" / "p.jsonl")
    assert config.judge["panel"][1]["log"] == str(tmp_path / "sub" / "x.jsonl")
    done = evalstone(tmp_path, "run", "sub/eval.toml", "--dry-run")
    # The claims are asked of the first member alone; both limits and logs are left alone.
    assert "1 calls" in done.stdout
    assert "Would ask: 1 verify_claims" in done.stdout
    assert sorted(path.name for path in (tmp_path / "sub").iterdir()) == ["data.jsonl", "eval.toml"]


def test_one_scores_steps_show_the_members(tmp_path: Path) -> None:
    with serving() as server:
        spec = f"cascade(lexical, vllm/x(base_url={server.url}), threshold=0.5)"
        given = ("--output", "Paris is in France.", "--context", "Paris is in France.")
        done = evalstone(tmp_path, "score", "-s", "faithfulness", "-j", spec, *given)
    lines = [line for line in done.stdout.splitlines() if line.startswith("    ")]
    assert any("list_claims, answered by vllm/x" in line for line in lines)
    assert any("verify_claims, answered by lexical" in line for line in lines)


def test_a_base_url_goes_into_one_model() -> None:
    assert judge_spec("vllm/x(seed=1)", "http://h/v1") == {"model": "vllm/x", "seed": 1, "base_url": "http://h/v1"}
    with pytest.raises(ConfigError, match="--base-url goes with one model"):
        judge_spec("panel(vllm/a, vllm/b)", "http://h/v1")


def test_a_judge_of_judges_is_calibrated_beside_each_of_its_judges_alone(tmp_path: Path) -> None:
    rows = [{"output": "x y", "context": [text], "label": label} for text, label in (("x y", "yes"), ("z", "no"))]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with serving() as server:
        spec = f"cascade(lexical, vllm/x(base_url={server.url}))"
        asking = ("calibrate", "--labels", "labels.jsonl", "-s", "fact_check", "-j", spec)
        done = evalstone(tmp_path, *asking, "--alone")
        both = evalstone(tmp_path, *asking, "--alone", "--budget", "1")
        explained = evalstone(tmp_path, "judges", spec)
    assert done.returncode == 0, done.stderr
    for told in (done.stdout.partition("beside its judges alone")[2], explained.stdout.partition("calibrated here")[2]):
        lines = [line.split()[0] for line in told.splitlines() if "fact_check" in line]
        assert [name.partition("(")[0] for name in lines] == ["cascade", LexicalJudge().identity, "vllm/x"]
    assert "Not calibrated here" not in explained.stdout
    assert both.returncode == 2
    assert "--alone calibrates several judges" in both.stderr
