"""What someone who comes from another tool types, and is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Evalstone


def test_a_command_line_and_a_file_refuse_an_option_of_another_system_with_ours(
    evalstone: Evalstone, tmp_path: Path
) -> None:
    (tmp_path / "d.jsonl").write_text('{"output": "x"}\n')
    (tmp_path / "t.toml").write_text('data = "d.jsonl"\nscorers = [{ name = "toxicity", strict_mode = true }]\n')
    for command in (["t.toml"], ["d.jsonl", "--scorer", "toxicity(strict_mode=true)"]):
        done = evalstone("run", *command)
        assert done.returncode == 2
        assert "deepeval's strict_mode" in done.stderr
        assert " --pass-rate toxicity@1=0.9 " in done.stderr


def test_the_command_shows_the_options_of_a_scorer_a_call_and_an_option(evalstone: Evalstone) -> None:
    shown = evalstone("scorers", "--from", "deepeval", "FaithfulnessMetric").stdout
    assert all(word in shown for word in ("definition='deepeval_strict'", "penalize_ambiguous_claims", "strict_mode"))
    assert "prompt_instructions" not in shown
    shown = evalstone("scorers", "--from", "ragas", "RunConfig").stdout
    assert "max_workers" in shown
    assert "every metric" not in shown
    shown = evalstone("scorers", "--from", "deepeval", "truths_extraction_limit").stdout
    assert shown.count("absent") == 2
    assert "RunConfig" in evalstone("scorers", "--from", "ragas").stdout


def test_every_kind_of_name_is_listed_and_a_tool_is_known_by_its_package(evalstone: Evalstone) -> None:
    shown = " ".join(evalstone("scorers", "--from", "@mastra/evals").stdout.split())
    for title, name in (("Functions", "expectEvals"), ("Settings", "toolMocks"), ("Commands", "mastra dev")):
        assert name in shown.partition(f"{title}: ")[2].partition(". ")[0]
    assert "createBiasScorer" in evalstone("scorers", "--from", "mastra", "bias").stdout
    done = evalstone("scorers", "contains", "regex")
    assert (done.returncode, "name one scorer" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        (["promptfoo", "--grader"], "--judge openai/gpt-5.1"),
        (["promptfoo", "--repeat", "3"], "--trials 3"),
        (["inspect", "--limit"], "--limit 100"),
        (["spring", "ReactAgent"], "evaluate(target=…)"),
        (["spring", "@Tool"], "tool_call_f1"),
        (["mlflow", "mlflow.genai.datasets"], "load(source=…)"),
    ],
)
def test_the_command_knows_options_as_the_tool_has_them(evalstone: Evalstone, words: list[str], ours: str) -> None:
    done = evalstone("scorers", "--from", *words)
    assert (done.returncode, ours in done.stdout) == (0, True), done.stderr


def test_an_unknown_option_is_no_name_of_a_scorer(evalstone: Evalstone) -> None:
    done = evalstone("scorers", "--grader")
    assert (done.returncode, done.stderr) == (2, "evalstone: unknown option --grader; see evalstone scorers --help\n")
    assert "did you mean --json?" in evalstone("scorers", "--jsn").stderr
    assert json.loads(evalstone("scorers", "--from", "promptfoo", "--grader", "--json").stdout)["system"] == "promptfoo"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("refernceTone", "no name of mastra is like 'refernceTone'; did you mean referenceTone?"),
        ("zzz", "no name of mastra is like 'zzz'; see evalstone scorers --from mastra"),
    ],
)
def test_the_command_refuses_a_name_that_the_system_does_not_have(evalstone: Evalstone, name: str, told: str) -> None:
    done = evalstone("scorers", "--from", "mastra", name)
    assert (done.returncode, told in done.stderr) == (2, True)


def test_a_run_refuses_a_scorer_by_its_name_in_another_system_with_ours(evalstone: Evalstone, tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"output": "x"}\n')
    done = evalstone("run", "d.jsonl", "--scorer", "createToxicityScorer")
    assert done.returncode == 2
    assert "is toxicity(definition='mastra') here; see evalstone scorers --from mastra" in done.stderr
