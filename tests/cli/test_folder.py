"""What lies in the current folder, or beside the data, is not run unless it was named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalstone._core.addresses import import_from
from evalstone.errors import ConfigError
from tests.cli.conftest import Done, Evalstone
from tests.serving import serving

pytestmark = pytest.mark.slow

OPTIONAL = """
aiodns brotli brotlicffi zstandard uvloop orjson ujson simplejson pyarrow polars pandas psycopg psycopg2
greenlet winloop charset_normalizer cchardet chardet email_validator dotenv pydantic_settings logfire yaml tomli
ipykernel IPython colorama shellingham pygments gssapi backports typing_extensions _pytest conftest
sitecustomize usercustomize sphinx markupsafe attr numba cupy torch dask sparse jax array_api_compat
opentelemetry numpy scipy rapidfuzz aiohttp jinja2 rich click pydantic genai_prices evil
"""
DECOY = "with open({log!r}, 'a') as log: log.write(__name__ + '\\n')\n"
SCORER = """
from evalstone import Pipeline
import my_words

def length(so_far):
    import my_later
    return my_later.ONE

short = Pipeline(score=length, required_fields="output", name="short")
"""
GROUPS = ["pydantic", "rich.themes", "evalstone.scorers", "evalstone.judges", "evalstone.providers"]
ROW = {"id": "one", "output": "Paris is in France.", "input": "Where?", "context": ["Paris is in France."], "label": 1}


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evalstone", *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# Calls `python -m evalstone` with each argument in one process, which imports what they need once. A library that isn't
# installed is looked for by each command again, and modules of the test are imported again.
IN_TURN = """
import os, runpy, sys
del sys.path[0]
finders = sys.meta_path[:]
for arguments in sys.argv[1:]:
    sys.path.insert(0, os.getcwd())
    sys.argv[1:] = arguments.split()
    code = None
    try:
        runpy.run_module("evalstone", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    if os.getcwd() in sys.path or os.path.exists("log"):
        sys.exit(f"{arguments}: {sys.path[0]} is on the path, or a file of it was run")
    print(f"\\x1e{code or 0}\\x1f", end="", flush=True)
    print("\\x1e", end="", flush=True, file=sys.stderr)
    sys.meta_path[:] = finders
    for name in [name for name in sys.modules if name.startswith("my_")]:
        del sys.modules[name]
"""


def in_turn(folder: Path, *commands: str) -> list[Done]:
    """How each of these commands ended, which one process called in turn."""
    done = subprocess.run(
        [sys.executable, "-c", IN_TURN, *commands],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = [part.split("\x1e") for part in done.stdout.split("\x1f")[:-1]]
    errors = done.stderr.split("\x1e")[:-1]
    ended = [Done(int(code), out, error) for (out, code), error in zip(printed, errors, strict=True)]
    assert len(ended) == len(commands)
    return ended


@pytest.fixture(scope="session")
def before_us(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What `python -m` imports by itself, from the current folder too, before the module that it runs."""
    empty = tmp_path_factory.mktemp("empty")
    (empty / "first.py").write_text("import sys; print(*sys.modules)\n")
    done = subprocess.run([sys.executable, "-m", "first"], cwd=empty, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.fixture
def folder(tmp_path: Path, before_us: set[str]) -> Path:
    """A folder with data, and a decoy for each module of Python and each library; what is run goes to the log."""
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "run.toml").write_text('data = "data.jsonl"\nscorers = ["contains(expected=Paris)"]\n')
    for name in {*sys.stdlib_module_names, *OPTIONAL.split()} - before_us:
        (tmp_path / f"{name}.py").write_text(DECOY.format(log=str(tmp_path / "log")))
    package = tmp_path / "plugin-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("\n".join(f"[{group}]\nevil = evil:x" for group in GROUPS))
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-planted\n")
    return tmp_path


@pytest.mark.parametrize("arguments", ["--version", "run data.jsonl -s faithfulness --out res --html page.html"])
def test_no_file_of_the_folder_is_run(folder: Path, arguments: str) -> None:
    done = command(folder, *arguments.split())
    assert done.returncode == 0, done.stderr
    assert not (folder / "log").exists(), (folder / "log").read_text()
    assert "sk-planted" not in done.stdout + done.stderr


OTHERS = {
    "run data.jsonl -s faithfulness -j openai/gpt-5.1 --dry-run": 0,
    "run run.toml": 0,
    "run run.toml --dry-run": 0,
    "score -s contains(expected=Paris) --output Paris": 0,
    "scorers": 0,
    "scorers evil": 2,
    "judges": 0,
    "judges evil/m": 2,
    "audit data.jsonl --draw 1 --perturbation repeat": 0,
    "calibrate --labels data.jsonl": 0,
    "ledger info": 0,
}


def test_no_other_command_runs_one(folder: Path) -> None:
    for (arguments, code), done in zip(OTHERS.items(), in_turn(folder, *OTHERS), strict=True):
        assert (arguments, done.returncode) == (arguments, code), done.stderr
        assert "Traceback" not in done.stderr
        assert "sk-planted" not in done.stdout + done.stderr
    assert not (folder / "log").exists(), (folder / "log").read_text()


def test_a_judge_over_http_runs_none_either(folder: Path) -> None:
    with serving() as server:
        done = command(folder, "run", "data.jsonl", "-s", "faithfulness", "-j", "vllm/m", "--base-url", server.url)
    assert done.returncode == 0, done.stderr
    assert not (folder / "log").exists(), (folder / "log").read_text()


def plant_scorer(folder: Path) -> str:
    """A scorer's module that imports a sibling at once, and another when it is called; the line that names it."""
    (folder / "my_scorers.py").write_text(SCORER)
    (folder / "my_words.py").write_text("ONE = 1.0\n")
    (folder / "my_later.py").write_text("from my_words import ONE\n")
    return f"Scorer code: {folder / 'my_scorers.py'}\n"


NAMING = [
    "run data.jsonl -s my_scorers:short -q",
    "run data.jsonl -s my_scorers:short --dry-run",
    "score -s my_scorers:short --output Paris",
    "audit data.jsonl -s my_scorers:short --draw 1 -q --dry-run",
    "calibrate --labels data.jsonl -s my_scorers:short -q",
    "scorers my_scorers:short",
]


@pytest.mark.parametrize("commands", [NAMING, NAMING[:1], NAMING[4:5]], ids=["in turn", "run", "calibrate"])
def test_only_the_named_module_of_the_folder_is_run_and_what_it_imports(folder: Path, commands: list[str]) -> None:
    line = plant_scorer(folder)
    for done in in_turn(folder, *commands):
        assert done.stderr.startswith(line)
        assert done.stderr.count("Scorer code") == 1
        assert "Traceback" not in done.stderr
        assert "ModuleNotFoundError" not in done.stdout
    assert not (folder / "log").exists(), (folder / "log").read_text()


def test_a_file_names_modules_of_its_own_folder(folder: Path) -> None:
    below = folder / "below"
    below.mkdir()
    line = plant_scorer(below)
    (below / "run.toml").write_text('data = "../data.jsonl"\nscorers = ["my_scorers:short"]\n')
    *named_there, named_here = in_turn(
        folder,
        "run below/run.toml -q",
        "run below/run.toml -q --dry-run",
        "run below/run.toml -q -s my_scorers:short",
    )
    assert [(done.returncode, done.stderr) for done in named_there] == 2 * [(0, line)]
    assert not (folder / "log").exists(), (folder / "log").read_text()
    assert "no module my_scorers" in named_here.stderr


def test_an_installed_module_comes_before_one_of_the_folder(folder: Path) -> None:
    done = command(folder, "score", "-s", "json:short", "--output", "x")
    assert done.returncode == 2
    assert "json has no short" in done.stderr
    assert f"which comes before {folder / 'json.py'}: rename yours" in done.stderr
    assert not (folder / "log").exists()


def test_a_threshold_imports_no_module(folder: Path) -> None:
    line = plant_scorer(folder)
    arguments = ["run", "data.jsonl", "-q", "-s", "contains(expected=Paris)", "--min"]
    done = command(folder, *arguments, "my_scorers:short(x)=1")
    assert done.returncode == 2
    assert line not in done.stderr


def test_a_module_of_one_folder_is_not_taken_for_that_of_another(tmp_path: Path) -> None:
    before, name = sys.meta_path[:], f"own_{tmp_path.name}".replace("-", "_")
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / f"{name}.py").write_text("WHERE = __file__\n")
    try:
        assert str(first / f"{name}.py") == import_from(first, name).WHERE
        assert str(first / f"{name}.py") == import_from(first, name).WHERE
        with pytest.raises(ConfigError, match=f"{name} .* imported from {first}"):
            import_from(second, name)
        with pytest.raises(ModuleNotFoundError):
            import_from(second, "no_such_module")
        assert str(first) not in sys.path
    finally:
        sys.meta_path[:] = before
        sys.modules.pop(name, None)


TABLE = """
data = "talks.jsonl"
scorers = [{name = "per_turn", scorer = "by_table:brevity", turn = 2}]
"""


@pytest.mark.parametrize("form", ["by_option", "by_table"])
def test_a_function_beside_the_data_is_applied_per_turn(tmp_path: Path, form: str) -> None:
    (tmp_path / f"{form}.py").write_text("def brevity(*, output):\n    return 1 / len(output)\n")
    turns = [{"input": "Hi", "output": "Hello"}, {"input": "Bye", "output": "Bye!"}]
    (tmp_path / "talks.jsonl").write_text(json.dumps({"id": "c1", "turns": turns}) + "\n")
    (tmp_path / "run.toml").write_text(TABLE)
    named = ["talks.jsonl", "-s", "per_turn(scorer='by_option:brevity', turn=2)"]
    data = ["run.toml"] if form == "by_table" else named
    done = command(
        tmp_path, "run", *data, "-q", "--out", "results", "--alpha", "none", "--min", "brevity in turn 2=0.25"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"Scorer code: {tmp_path / form}.py") == 1
    (record,) = map(json.loads, (tmp_path / "results/records.jsonl").read_text().splitlines())
    assert record["value"] == 0.25
    assert record["scorer"] == "brevity in turn 2"
    assert record["signature"].startswith("brevity in turn 2(")


@pytest.mark.parametrize("name", ["per_turn", "per_step", "repeated"])
def test_a_scorer_that_applies_another_has_the_range_of_that(name: str, evalstone: Evalstone) -> None:
    told = evalstone("scorers", name).stdout
    assert "Range            that of" in told
    assert "Judge calls" not in told
    assert f"Signature        {name}(scorer=…)@1" in told
