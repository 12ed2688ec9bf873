"""The command as a process of its own: standard output that can't be written, exit codes, and what startup imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from evalstone.cli.app import COMMANDS, LEDGER_COMMANDS

ROW = {"id": "one", "output": "Paris is in France.", "context": ["Paris is in France."]}
RUN = ["run", "data.jsonl", "-s", "faithfulness", "--out", "res"]
UNUSED = {"numpy", "scipy", "sqlalchemy", "aiohttp", "rich", "jinja2", "evalstone.api", "evalstone.judges"}

pytestmark = pytest.mark.skipif(os.name == "nt", reason="redirections are those of POSIX")


def shell(folder: Path, arguments: list[str], redirection: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    command = f'"{sys.executable}" -m evalstone {" ".join(arguments)} {redirection}'
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("redirection", "reason"),
    [
        (">&-", "Bad file descriptor"),
        ("| true; exit ${PIPESTATUS[0]}", "Broken pipe"),
    ],
)
def test_output_that_cannot_be_written_loses_no_results(tmp_path: Path, redirection: str, reason: str) -> None:
    done = shell(tmp_path, RUN, redirection)
    assert done.returncode == 3
    assert done.stderr == f"evalstone: cannot write to standard output: {reason}\n"
    assert len((tmp_path / "res" / "records.jsonl").read_text().splitlines()) == 1
    assert (tmp_path / "res" / "summary.json").exists()


@pytest.mark.parametrize("redirection", ["2>&-", "2>&1 >out.txt | true; exit ${PIPESTATUS[0]}"])
def test_messages_that_nobody_reads_lose_no_results_and_change_no_exit_code(tmp_path: Path, redirection: str) -> None:
    assert shell(tmp_path, [*RUN, "--verbose"], redirection).returncode == 0
    assert (tmp_path / "res" / "records.jsonl").exists()
    assert shell(tmp_path, [*RUN, "-q", "--fail-over", "faithfulness=1"], redirection).returncode == 2
    assert shell(tmp_path, ["run", "nowhere.jsonl"], redirection).returncode == 2


def test_output_and_messages_that_nobody_reads_lose_no_results(tmp_path: Path) -> None:
    assert shell(tmp_path, [*RUN, "--verbose"], "2>&1 | true; exit ${PIPESTATUS[0]}").returncode == 3
    assert (tmp_path / "res" / "records.jsonl").exists()


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["run"], 2), (["run", "nowhere.jsonl"], 2)])
def test_the_exit_code_is_the_process_own(tmp_path: Path, arguments: list[str], code: int) -> None:
    done = shell(tmp_path, arguments)
    assert done.returncode == code
    assert len(done.stdout.splitlines() + done.stderr.splitlines()) == 1


def test_no_file_of_the_folder_hides_a_library(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "sqlalchemy.py").write_text("raise SystemExit('the wrong sqlalchemy')")
    command = [Path(sys.executable).with_name("evalstone"), *RUN]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "command",
    [
        *("--help", "run --help", "report last", "report last --html -", "compare last last --csv -", "scorers"),
        *("runs", "gate last --min faithfulness=0.1 --junit -", "drift last", "ledger info", "judges"),
        *("run data.jsonl --dry-run", "score -s contains --output x --reference x --json", "audit --list"),
    ],
)
def test_a_reader_that_closes_early_is_one_line_on_stderr(tmp_path: Path, command: str) -> None:
    assert shell(tmp_path, RUN).returncode == 0
    done = shell(tmp_path, command.split(), "| true; exit ${PIPESTATUS[0]}")
    assert done.stderr == "evalstone: cannot write to standard output: Broken pipe\n"
    assert done.returncode == 3


def test_the_table_of_commands_is_what_their_functions_say() -> None:
    for name, (module, help) in (COMMANDS | LEDGER_COMMANDS).items():
        if name != "ledger":
            found = getattr(import_module(f"evalstone.cli.{module}"), name.replace("import", "import_"))
            assert (found.__doc__ or "").partition("\n")[0] == help


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys; sys.argv = ['evalstone', 'run', '--help']; from evalstone.cli import main; main()"
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert imported & UNUSED == set()


def test_a_command_with_texts_alone_starts_without_pydantic(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "evalstone", "runs", "--ledger", "none.db"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.stdout == "No runs found in none.db.\n"
    assert imported & {"pydantic", "numpy", "sqlalchemy"} == set()


def test_the_shell_completes_commands() -> None:
    command = Path(sys.executable).with_name("evalstone")
    asked = {"_EVALSTONE_COMPLETE": "complete_bash", "COMP_WORDS": "evalstone com", "COMP_CWORD": "1"}
    done = subprocess.run([command], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["compare"]
