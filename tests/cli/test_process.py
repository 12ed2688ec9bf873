"""The command as a process of its own: standard output that can't be written, exit codes, and what startup imports."""

from __future__ import annotations

import errno
import json
import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest

from evalstone.cli.app import COMMANDS, GROUPS
from tests.cli.conftest import Evalstone

ROW = {"id": "one", "output": "Paris is in France.", "context": ["Paris is in France."]}
RUN = ["run", "data.jsonl", "-s", "faithfulness", "--out", "res"]
UNUSED = {"numpy", "scipy", "sqlite3", "aiohttp", "rich", "jinja2", "evalstone.api", "evalstone.judges"}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="redirections are those of POSIX")]


def shell(folder: Path, arguments: list[str], redirection: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    command = f'"{sys.executable}" -m evalstone {" ".join(arguments)} {redirection}'
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def folder_of_a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    assert shell(folder, RUN).returncode == 0
    return folder


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">&-", 3, "evalstone: cannot write to standard output: Bad file descriptor\n"),
        ("| true; exit ${PIPESTATUS[0]}", 141, ""),
    ],
)
def test_output_that_cannot_be_written_loses_no_results(
    tmp_path: Path, redirection: str, code: int, message: str
) -> None:
    done = shell(tmp_path, RUN, redirection)
    assert (done.returncode, done.stderr) == (code, message)
    assert len((tmp_path / "res" / "records.jsonl").read_text().splitlines()) == 1
    assert (tmp_path / "res" / "summary.json").exists()


@pytest.mark.parametrize("redirection", ["2>&-", "2>&1 >out.txt | true; exit ${PIPESTATUS[0]}"])
def test_messages_that_nobody_reads_lose_no_results_and_change_no_exit_code(tmp_path: Path, redirection: str) -> None:
    assert shell(tmp_path, [*RUN, "--verbose"], redirection).returncode == 0
    assert (tmp_path / "res" / "records.jsonl").exists()
    assert shell(tmp_path, [*RUN, "-q", "--max", "faithfulness=1"], redirection).returncode == 2
    assert shell(tmp_path, ["run", "nowhere.jsonl"], redirection).returncode == 2


def test_output_and_messages_that_nobody_reads_lose_no_results(tmp_path: Path) -> None:
    assert shell(tmp_path, [*RUN, "--verbose"], "2>&1 | true; exit ${PIPESTATUS[0]}").returncode == 141
    assert (tmp_path / "res" / "records.jsonl").exists()


@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 0), (["run"], 2), (["run", "nowhere.jsonl"], 2)])
def test_the_exit_code_is_the_process_own(tmp_path: Path, arguments: list[str], code: int) -> None:
    done = shell(tmp_path, arguments)
    assert done.returncode == code
    assert len(done.stdout.splitlines() + done.stderr.splitlines()) == 1


def test_no_file_of_the_folder_hides_a_library(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "rich.py").write_text("raise SystemExit('the wrong rich')")
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
def test_a_reader_that_closes_early_ends_a_command_quietly(folder_of_a_run: Path, command: str) -> None:
    done = shell(folder_of_a_run, command.split(), "| true; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stderr) == (141, "")


def test_the_table_of_commands_is_what_their_functions_say() -> None:
    for name, (module, help) in (pair for table in (COMMANDS, *GROUPS.values()) for pair in table.items()):
        if module:
            found = getattr(import_module(f"evalstone.cli.{module}"), name.replace("import", "import_"))
            assert (found.__doc__ or "").partition("\n")[0] == help


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys; sys.argv = ['evalstone', 'run', '--help']; from evalstone.cli import main; main()"
    done = subprocess.run([sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "click" in imported
    assert imported & UNUSED == set()


def test_a_command_with_texts_alone_starts_without_pydantic(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "evalstone", "runs", "--ledger", "none.db"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert re.fullmatch(r"No .* none\.db\.\n", done.stdout)
    assert imported & {"pydantic", "numpy"} == set()


def test_a_score_starts_without_the_readers_of_traces(tmp_path: Path) -> None:
    words = ["score", "--scorer", "exact_match", "--output", "Oslo", "--reference", "Oslo"]
    command = [sys.executable, "-X", "importtime", "-m", "evalstone", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.stdout.startswith("exact_match · 1 of 1\n")
    assert imported & {"difflib", "evalstone.agents.traces", "evalstone.agents.formats.spans"} == set()


def test_a_command_ends_without_a_search_for_garbage() -> None:
    ended = "import atexit, gc, sys; atexit.register(lambda: print(gc.get_freeze_count() > 10_000))"
    scorers = "sys.argv = ['evalstone', 'scorers', '--json']; from evalstone.cli import main; main()"
    command = [sys.executable, "-c", f"{ended}; {scorers}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"


def test_the_shell_completes_commands() -> None:
    command = Path(sys.executable).with_name("evalstone")
    asked = {"_EVALSTONE_COMPLETE": "bash_complete", "COMP_WORDS": "evalstone com", "COMP_CWORD": "1"}
    done = subprocess.run([command], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["plain,compare"]


BROKEN = """
import sys
sys.modules[sys.argv.pop(1)] = None
from evalstone.cli import main
main()
"""


@pytest.mark.parametrize("module", ["click", "rich.table"])
def test_an_error_that_nobody_foresaw_is_no_missed_threshold(tmp_path: Path, module: str) -> None:
    command = [sys.executable, "-c", BROKEN, module, "scorers"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert "unexpected error: ModuleNotFoundError: " in done.stderr
    assert "EVALSTONE_TRACEBACK=1" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    shown = {**os.environ, "EVALSTONE_TRACEBACK": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False, env=shown)
    assert done.returncode == 3
    assert done.stderr.startswith("Traceback (most recent")
    unread = subprocess.run(
        ["bash", "-c", f'"$0" "$@" {"2>&-"}', *command], cwd=tmp_path, capture_output=True, timeout=60, check=False
    )
    assert unread.returncode == 3


LIMITED = """
import resource, sys
sys.dont_write_bytecode = True
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from evalstone.cli import main
main()
"""


def test_a_full_disk_is_no_usage_error(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    assert evalstone(*RUN).returncode == 0
    command = [sys.executable, "-c", LIMITED, "2000", "report", "res", "--html", "big.html"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    told = f"evalstone: cannot write 'big.html': {os.strerror(errno.EFBIG)}\n"
    assert (done.returncode, done.stderr) == (3, told)
    assert evalstone("report", "res", "--html", "nowhere/big.html").returncode == 2
    (tmp_path / "l.db").write_text("no ledger, and long enough to be taken for a database" * 20)
    assert evalstone(*RUN, "--ledger", "l.db").returncode == 2
    assert evalstone(*RUN, "--ledger", "data.jsonl/l.db").returncode == 2


def test_a_ledger_that_another_process_keeps_locked_is_no_usage_error(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    assert evalstone(*RUN).returncode == 0
    with closing(sqlite3.connect(tmp_path / ".evalstone" / "ledger.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        code = "from evalstone.ledger import base; base.WAIT = 0.3; from evalstone.cli import main; main()"
        command = [sys.executable, "-c", code, *RUN]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert done.stderr == "evalstone: another process has locked the ledger .evalstone/ledger.db for 0.3 seconds\n"


@pytest.mark.parametrize("name", ["none", "None", ":memory:", "sqlite:///:memory:", "sqlite:///none"])
def test_a_ledger_named_none_is_no_file_of_that_name(tmp_path: Path, name: str, evalstone: Evalstone) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    done = evalstone(*RUN, "--ledger", name)
    assert done.returncode == 2
    file = name.removeprefix("sqlite:///")
    assert done.stderr == (
        f"evalstone: {file!r} would be a file of that name; expected a path, sqlite:///path/to/file.db or "
        "postgresql://user@host/database. Only Python goes without a ledger: ledger=None\n"
    )
    assert not (tmp_path / file).exists()


def test_a_ledger_in_a_file_of_settings_is_checked_before_it_is_placed(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    settings = tmp_path / "run.toml"
    settings.write_text('data = "data.jsonl"\nscorers = ["faithfulness"]\nledger = ":memory:"\n')
    done = evalstone("run", "run.toml")
    assert done.returncode == 2
    assert "':memory:' would be" in done.stderr


@pytest.mark.parametrize("ledger", ["~/l.db", "sqlite:///~/l.db"])
@pytest.mark.parametrize("door", ["option", "settings"])
def test_a_tilde_is_the_home_folder(tmp_path: Path, evalstone: Evalstone, ledger: str, door: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    settings = 'data = "data.jsonl"\nscorers = ["faithfulness"]\n'
    (tmp_path / "run.toml").write_text(settings + (f'ledger = "{ledger}"\n' if door == "settings" else ""))
    options = [f"--ledger={ledger}"] if door == "option" else []
    assert evalstone("run", "run.toml", *options, env={"HOME": str(tmp_path / "home")}).returncode == 0
    assert (tmp_path / "home" / "l.db").is_file()
    assert not (tmp_path / "~").exists()


def test_options_of_a_sqlite_url_are_refused(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    done = evalstone(*RUN, "--ledger", "sqlite:///l.db?mode=ro")
    assert done.returncode == 2
    assert "l.db?mode=ro: " in done.stderr
    assert "no options" in done.stderr
