"""What the shell completes, and how completion is installed."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete, get_completion_class

from evalstone.cli import completion
from evalstone.cli.app import COMMANDS, app
from evalstone.judge_quality.perturbations import PERTURBATIONS
from evalstone.models.catalog import PROVIDERS
from evalstone.models.prices import listed_models
from evalstone.scorers import SCORERS
from evalstone.scorers.other_systems import SYSTEMS
from tests.cli.conftest import Evalstone


def completed(line: str) -> list[str]:
    """What the shell offers for the last word of a line: values, and the kinds of paths."""
    *words, beginning = line.split(" ")
    shell = ShellComplete(app, {}, "evalstone", completion.VARIABLE)
    return sorted(item.value if item.type == "plain" else item.type for item in shell.get_completions(words, beginning))


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("", COMMANDS),
        ("re", ["report"]),
        ("ledger ", ["export", "import", "info", "prune", "recover", "scores", "verify"]),
        ("skill install ", ["dir"]),
        ("skill show references/c", ["references/ci.md"]),
        ("run --ma", ["--map", "--markdown", "--max", "--max-change", "--max-difference", "--max-regression"]),
        ("run ", ["file"]),
        ("run d.jsonl --html ", ["file"]),
        ("run d.jsonl --out ", ["dir"]),
        ("run d.jsonl --scorer faith", ["faithfulness"]),
        ("run d.jsonl -s ", SCORERS),
        ("run d.jsonl --min faith", ["faithfulness="]),
        ("run d.jsonl --map outp", ["output="]),
        ("run d.jsonl -j ", ["lexical", "sentences", "onnx:", *(f"{name}/" for name in PROVIDERS)]),
        ("run d.jsonl --target ope", ["openai/", "openrouter/"]),
        ("run d.jsonl --target vl", ["vllm/"]),
        ("run d.jsonl --judge openai/gpt-4.1-m", ["openai/gpt-4.1-mini"]),
        ("run d.jsonl --judge opena", ["openai-decisions/", *(f"openai/{name}" for name in listed_models("openai"))]),
        ("run d.jsonl --judge typ", ["typesafe/"]),
        ("run d.jsonl --target typ", []),
        ("run d.jsonl --budget ", []),
        ("scorers --from ", SYSTEMS),
        ("scorers halluc", ["hallucination"]),
        ("judges le", ["lexical"]),
        ("calibrate --objective bal", ["balanced_accuracy"]),
        ("align --objective ", ["accuracy", "brier"]),
        ("align -s answer_co", ["answer_correctness"]),
        ("audit --perturbation ", [*PERTURBATIONS, *{one.family for one in PERTURBATIONS.values()}]),
        ("traces t.jsonl --where e", ["entity=", "error="]),
        ("--show-completion ", ["bash", "fish", "powershell", "zsh"]),
        ("unknown ", COMMANDS),
    ],
)
def test_the_shell_completes(line: str, offered: list[str]) -> None:
    assert completed(line) == sorted(offered)


def test_runs_in_the_ledger_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstone: Evalstone
) -> None:
    assert completed("report ") == ["dir", "last"]
    (tmp_path / "d.jsonl").write_text(json.dumps({"output": "x", "reference": "x"}) + "\n")
    for name, ledger in (("first", "a.db"), ("second", "b.db"), ("second", "b.db")):
        run = ("run", "d.jsonl", "-s", "exact_match", "--name", name, "--ledger", ledger, "--no-cache", "-q", "--json")
        done = evalstone(*run)
        assert done.returncode == 0, done.stderr
    ids = [row["run"] for row in map(json.loads, evalstone("runs", "--ledger", "b.db", "--json").stdout.splitlines())]
    for typed, words in (
        ("report --ledger b.db ", sorted(["dir", "last", "second", *ids])),
        ("compare --ledger a.db last fi", ["dir", "first"]),
        ("gate last --ledger a.db --baseline la", ["dir", "last"]),
    ):
        assert completed(typed) == words


def test_a_ledger_that_cannot_be_read_completes_nothing_and_is_not_created(
    tmp_path: Path, evalstone: Evalstone
) -> None:
    (tmp_path / "broken.db").write_bytes(b"?" * 1000)
    for ledger, words in (
        ("broken.db", ["dir"]),
        ("none", ["dir"]),
        ("new.db", ["dir", "last"]),
        ("postgresql://127.0.0.1:1/x", ["dir", "last"]),
    ):
        assert completed(f"report --ledger {ledger} ") == words
    assert not (tmp_path / "new.db").exists()


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    if (bash := shutil.which("bash")) is None or os.name == "nt":
        pytest.skip("needs bash")
    command = Path(sys.executable).with_name("evalstone")
    script = subprocess.run([command, "--show-completion", "bash"], capture_output=True, text=True, check=True).stdout
    typed = 'COMP_WORDS=(evalstone run d.jsonl --judge lex); COMP_CWORD=4; _evalstone_completion "$0"'
    ask = f'{script}\n{typed}; echo "${{COMPREPLY[*]}}"'
    done = subprocess.run(
        [bash, "--norc", "-c", ask, command], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("lexical\n", "")


@pytest.mark.parametrize(
    ("shell", "file", "start", "line"),
    [
        ("bash", ".bash_completions/evalstone.sh", ".bashrc", "source {file}"),
        (
            "zsh",
            ".zsh_completions/evalstone.zsh",
            ".zshrc",
            "(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}; source {file}",
        ),
        ("fish", ".config/fish/completions/evalstone.fish", "", ""),
    ],
)
def test_completion_is_installed_where_the_shell_reads_it(
    tmp_path: Path, evalstone: Evalstone, shell: str, file: str, start: str, line: str
) -> None:
    home = tmp_path / "home of one"
    home.mkdir()
    if start:
        (home / start).write_bytes(b"alias ll='ls -l' # \xff")
    for own in ([shell], []):  # named, or the user's own; twice changes nothing
        done = evalstone("--install-completion", *own, env={"HOME": str(home), "SHELL": f"/usr/bin/{shell}"})
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Written to {home / file}. ")
    assert (home / file).read_text() == evalstone("--show-completion", shell).stdout
    assert "_EVALSTONE_COMPLETE=" in (home / file).read_text()
    if start:
        added = line.format(file=f"'{home / file}'")
        assert (home / start).read_bytes() == b"alias ll='ls -l' # \xff\n" + f"{added}\n".encode()


def test_powershell_reads_completion_from_its_profile(tmp_path: Path, evalstone: Evalstone) -> None:
    if os.name == "nt":
        pytest.skip("uses a shell script in place of PowerShell")
    if get_completion_class("powershell") is None:
        assert "install --upgrade click" in evalstone("--install-completion", "powershell").stderr
        pytest.skip("needs click 8.5")
    profile, program = tmp_path / "config" / "profile.ps1", tmp_path / "bin" / "pwsh"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{profile}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    path = {"HOME": str(tmp_path), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    done = evalstone("--install-completion", "powershell", env=path)
    assert (done.returncode, done.stderr) == (0, "")
    script = tmp_path / ".evalstone-completion.ps1"
    assert profile.read_text() == f". '{script}'\n"
    assert script.read_text().startswith("Register-ArgumentCompleter")
    without = evalstone("--install-completion", "powershell", env={**path, "PATH": ""})
    assert (without.returncode, "--show-completion" in without.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "shell", "told"),
    [
        (("--show-completion", "powershel"), "/bin/bash", "did you mean powershell?"),
        (("--install-completion",), "/bin/tcsh", "unknown shell 'tcsh'"),
        (("--install-completion",), "", "SHELL is not set"),
    ],
)
def test_a_shell_that_cannot_complete_is_refused(
    evalstone: Evalstone, arguments: tuple[str, ...], shell: str, told: str
) -> None:
    done = evalstone(*arguments, env={"SHELL": shell})
    assert (done.returncode, told in done.stderr) == (2, True)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / ".zsh_completions").write_text("")
    done = evalstone("--install-completion", "zsh", env={"HOME": str(tmp_path)})
    assert done.returncode == 2
    assert done.stderr.startswith(f"evalstone: cannot write {tmp_path / '.zsh_completions'}: ")
