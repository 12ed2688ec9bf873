"""Standard output that can't represent every character, as pipes and logs on Windows, and files that can't be renamed
or deleted while they are open, as there: the same exit codes and files."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evalstone.cli.app import COMMANDS, GROUPS
from evalstone.datasets import demo
from tests.cli.conftest import Evalstone
from tests.windows import behave_as_windows

pytestmark = pytest.mark.slow

ENCODINGS = ["cp1252", "cp437", "cp932", "latin-1", "ascii"]
# For each command: its arguments, its exit code in UTF-8, and what is typed.
CALLS: dict[str, tuple[str, int, str]] = {
    "run": ("run data.jsonl -s faithfulness -s contains --out out --min contains=0.5", 0, ""),
    "run --sequential": ("run data.jsonl -s contains --out g --sequential --min contains=0.9", 4, ""),
    "score": ("score -s contains --output Zürich→日本 --reference 日本", 0, ""),
    "demo": ("demo", 0, ""),
    "check": ("check data.jsonl", 0, ""),
    "init": ("init a.jsonl --kind rag", 2, ""),
    "ci": ("ci ci.toml --baseline a --allow-mismatch", 0, ""),
    "scorers": ("scorers", 0, ""),
    "scorers NAME": ("scorers faithfulness", 0, ""),
    "judges": ("judges", 0, ""),
    "rubrics": ("rubrics data.jsonl --out rubrics.jsonl", 2, ""),
    "import": ("import results.json", 0, ""),
    "merge": ("merge m", 0, ""),
    "report": ("report a", 0, ""),
    "report --csv": ("report a --csv -", 0, ""),
    "compare": ("compare a b", 0, ""),
    "drift": ("drift a a", 0, ""),
    "gate": ("gate a --min contains=0.99", 4, ""),
    "power": ("power a --baseline b --difference 0.2", 0, ""),
    "runs": ("runs", 0, ""),
    "annotate": ("annotate a --count 1", 0, "1\n\n"),
    "calibrate": ("calibrate --labels data.jsonl --label label", 0, ""),
    "align": ("align --labels many.jsonl --label label -s fact_check", 4, ""),
    "audit": ("audit data.jsonl -s faithfulness", 0, ""),
    "traces": ("traces traces.jsonl", 2, ""),
    "live coverage": ("live coverage", 2, ""),
    "live drift": ("live drift a", 2, ""),
    "ledger info": ("ledger info", 0, ""),
    "ledger scores": ("ledger scores", 0, ""),
    "ledger export": ("ledger export rows.jsonl", 0, ""),
    "ledger prune": ("ledger prune --older-than 1", 0, ""),
    "ledger verify": ("ledger verify", 0, ""),
    "ledger recover": ("ledger recover .evalstone/ledger.db --into other.db", 0, ""),
    "ledger import": ("ledger import nowhere.jsonl", 2, ""),
    "skill install": ("skill install Zürich→日本 --force", 0, ""),
    "skill show": ("skill show", 0, ""),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test of the module keeps its runs for the others."""
    return tmp_path_factory.mktemp("encodings") / "runs"


@pytest.fixture
def folder(tmp_path: Path, evalstone: Evalstone, runs: Path) -> Path:
    """A folder with data, two runs of them, a shard and a ledger."""
    if runs.exists():
        return shutil.copytree(runs, tmp_path, dirs_exist_ok=True)
    words = ["Zürich", "日本", "naïve λ", "5 € → 6 €", "emoji 🎉"]
    for name in "ab":
        rows = [
            {"id": f"{n}→", "output": f"{word} is {name}.", "reference": word if n else "→",
             "context": [f"{word} is a."], "label": n % 2}
            for n, word in enumerate(words * 2)
        ]  # fmt: skip
        data = tmp_path / f"{name}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        done = evalstone("run", data.name, "-s", "contains", "-s", "faithfulness", "--out", name)
        assert done.returncode == 0, done.stderr
    imported = Path(__file__).parents[1] / "compat" / "imports" / "promptfoo" / "results.json"
    (tmp_path / "results.json").write_text(imported.read_text("utf-8").replace("Capitals", "Zürich→日本"), "utf-8")
    (tmp_path / "data.jsonl").write_bytes((tmp_path / "a.jsonl").read_bytes())
    (tmp_path / "ci.toml").write_text(
        'data = "a.jsonl"\nscorers = ["contains"]\nalpha = "none"\n[min]\ncontains = 0.5\n'
    )
    many = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    numbered = ({**row, "id": f"{row['id']}{n}"} for n in range(3) for row in many)
    (tmp_path / "many.jsonl").write_text("".join(json.dumps(row) + "\n" for row in numbered), encoding="utf-8")
    done = evalstone("run", "data.jsonl", "-s", "contains", "--out", "m", "--shard", "1/1")
    assert done.returncode == 0, done.stderr
    shutil.copytree(tmp_path, runs)
    return tmp_path


@pytest.fixture
def short_demo(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the demo those answers alone that have a character of their own: all sixty take a second per encoding."""
    named: list[str] = []
    seen = {chr(code) for code in range(128)}
    for line in demo.DEMO_DATA.read_text(encoding="utf-8").splitlines(keepends=True):
        characters = {*json.dumps(json.loads(line), ensure_ascii=False)}
        if not characters <= seen:
            named.append(line)
            seen |= characters
    short = tmp_path_factory.mktemp("demo") / demo.DEMO_DATA.name
    short.write_text("".join(named), encoding="utf-8")
    monkeypatch.setattr(demo, "DEMO_DATA", short)


def test_every_command_is_called_here() -> None:
    names = {f"{name} {part}".strip() for name in COMMANDS for part in GROUPS.get(name, [""])}
    called = {call.partition(" --")[0].removesuffix(" NAME") for call in CALLS}
    assert names - called == {"collect", "mcp", "view"}  # servers


@pytest.mark.usefixtures("short_demo")
@pytest.mark.parametrize("command", CALLS)
def test_no_encoding_changes_an_exit_code(
    folder: Path, evalstone: Evalstone, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    arguments, code, typed = CALLS[command]
    for encoding in ("utf-8", *ENCODINGS):
        stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for _ in range(2))
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stdout)
            patched.setattr(sys, "stderr", stderr)
            behave_as_windows(patched)
            done = evalstone(*arguments.split(), typed=typed)
        errors = stderr.buffer.getvalue()
        assert (encoding, done.returncode, errors) == (encoding, code, errors)
        assert stdout.buffer.getvalue() or code == 2


def test_characters_that_an_encoding_lacks_are_replaced_by_similar_ones(folder: Path) -> None:
    (folder / "one.csv").write_text("id,output,reference\nx→,Zürich 日本,Zürich\n", encoding="utf-8")
    command = [sys.executable, "-m", "evalstone", "run", "one.csv", "-s", "contains", "--top", "1"]
    env = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "^ higher is better" in done.stdout.decode("cp1252")
