"""An experiment file: every combination of targets, parameters and datasets, one run each."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Evalstone

CODE = """
import os
from evalstone.errors import RunAborted

def agent(*, input, temperature=0.0, style="plain"):
    with open("calls", "a") as file:
        print(temperature, style, input, file=file)
    if style == "boom" and os.path.exists("broken"):
        raise RunAborted("down")
    return "right" if temperature == 0 else f"wrong {style}"

def strict(*, input, heat):
    return "right"

async def other(*, input, temperature=0.0):
    return "right"

def rigid(*, input):
    return "right"
"""


@pytest.fixture
def app(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The module of the targets."""
    name = f"exp_{abs(hash(request.node.name)):x}"
    (tmp_path / f"{name}.py").write_text(CODE)
    for file, number in (("easy", 3), ("hard", 4)):
        rows = [{"id": f"{file}{n}", "input": f"{file} {n}"} for n in range(number)]
        (tmp_path / f"{file}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return name


def written(folder: Path, experiment: str, more: str = "") -> None:
    common = f'scorers = ["contains(expected=right)"]\nout = "out"\n{more}\n'
    (folder / "e.toml").write_text(f"{common}[experiment]\n{experiment}\n")


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []


def cells(folder: Path) -> dict[str, float]:
    found = {file.parent.name: json.loads(file.read_text()) for file in sorted(folder.glob("out/*/summary.json"))}
    return {name: summary["scorers"][0]["mean"] for name, summary in found.items()}


def test_every_combination_is_a_run_with_a_folder_and_a_row(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    targets = f'targets = ["{app}:agent", {{ name = "next", address = "{app}:other", version = "2" }}]\n'
    written(tmp_path, f'data = ["easy.jsonl", "hard.jsonl"]\n{targets}parameters.temperature = [0.0, 0.7]')
    done = evalstone("run", "e.toml", "-q")
    assert done.returncode == 0, done.stderr
    assert cells(tmp_path) == {
        "agent,temperature=0.0,easy": 1.0,
        "agent,temperature=0.0,hard": 1.0,
        "agent,temperature=0.7,easy": 0.0,
        "agent,temperature=0.7,hard": 0.0,
        "next,temperature=0.0,easy": 1.0,
        "next,temperature=0.0,hard": 1.0,
        "next,temperature=0.7,easy": 1.0,
        "next,temperature=0.7,hard": 1.0,
    }
    assert len(calls(tmp_path)) == 14
    assert done.stderr == f"Target code: {tmp_path / app}.py\n"
    identities = {json.loads(file.read_text())["target"]["identity"] for file in tmp_path.glob("out/*/summary.json")}
    assert f"{app}:agent(temperature=0.7)" in identities
    assert f"{app}:other(temperature=0.0)@2" in identities
    assert all(name in done.stdout for name in cells(tmp_path))
    compare = next(line for line in done.stdout.splitlines() if line.startswith("evalstone compare") and "easy" in line)
    compared = evalstone(*compare.split()[1:])
    assert compared.returncode == 0, compared.stderr


def test_each_run_says_which_cell_of_which_experiment_it_is(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    written(
        tmp_path, f'data = ["easy.jsonl", "hard.jsonl"]\ntargets = "{app}:agent"\nparameters.temperature = [0.0, 0.7]'
    )
    for name in ("e", "named"):
        assert evalstone("run", "e.toml", "-q", *(["--name", "named"] if name == "named" else [])).returncode == 0
        stored = json.loads((tmp_path / "out" / "temperature=0.7,hard" / "summary.json").read_text())["cell"]
        factors = {"temperature": 0.7, "data": "hard"}
        assert stored == {"experiment": name, "name": "temperature=0.7,hard", "factors": factors}


def test_an_interruption_after_the_last_call_of_a_cell_stops_the_experiment(
    evalstone: Evalstone, app: str, tmp_path: Path
) -> None:
    lines = [
        "import os, signal",
        "def agent(*, input, style='a'):",
        "    with open('calls', 'a') as file: print(style, file=file)",
        "    if os.path.exists('interrupt') and input.endswith('2'): os.kill(os.getpid(), signal.SIGINT)",
        "    return 'right'",
    ]
    name = f"{app}_own"
    (tmp_path / f"{name}.py").write_text("\n".join(lines))
    written(tmp_path, f'data = "easy.jsonl"\ntargets = "{name}:agent"\nparameters.style = ["a", "b"]')
    (tmp_path / "interrupt").touch()
    done = evalstone("run", "e.toml", "-q")
    assert (done.returncode, calls(tmp_path)) == (130, ["a"] * 3)
    assert "Interrupted: 1 of 2 cells is complete; rerun the same command to resume." in done.stderr
    (tmp_path / "interrupt").unlink()
    done = evalstone("run", "e.toml", "-q")
    assert (done.returncode, calls(tmp_path)) == (0, [*"aaabbb"])


def test_a_cell_with_failures_says_why(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    (tmp_path / "moody.py").write_text('def ask(*, input, bad=False): return input if not bad else {}["key"]\n')
    written(tmp_path, 'data = "easy.jsonl"\ntargets = ["moody:ask"]\nparameters.bad = [false, true]')
    done = evalstone("run", "e.toml", "-q")
    assert done.returncode == 3, done.stderr
    (why,) = (line for line in done.stdout.splitlines() if line.startswith("bad=true: "))
    assert why.startswith("bad=true: 3 × ")
    assert "KeyError: 'key'" in why
    assert why.endswith("(moody.py, line 1)")


def test_a_dry_run_and_json_name_the_cells(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    written(tmp_path, f'data = ["easy.jsonl", "hard.jsonl"]\ntargets = ["{app}:agent"]')
    done = evalstone("run", "e.toml", "--dry-run", "--trials", "2", "--scorer", "latency(limit=1)")
    assert re.findall(r"^latency .* (\d+)$", done.stdout, re.MULTILINE) == ["0", "0"]
    done = evalstone("run", "e.toml", "--dry-run", "--trials", "2")
    assert done.returncode == 0, done.stderr
    assert "Target calls: 6" in done.stdout
    assert "Target calls: 8" in done.stdout
    assert calls(tmp_path) == []
    done = evalstone("run", "e.toml", "--json", "-q")
    assert {name: run["dataset"]["samples"] for name, run in json.loads(done.stdout)["runs"].items()} == {
        "easy": 3,
        "hard": 4,
    }


def test_data_and_target_may_stand_outside_of_the_table(evalstone: Evalstone, app: str, tmp_path: Path) -> None:
    more = f'name = "heat"\ndata = "easy.jsonl"\ntarget = "{app}:agent"'
    written(tmp_path, "parameters.temperature = [0.0, 0.7]", more)
    done = evalstone("run", "e.toml", "-q")
    assert done.returncode == 0, done.stderr
    assert cells(tmp_path) == {"temperature=0.0": 1.0, "temperature=0.7": 0.0}
    names = [json.loads(file.read_text())["name"] for file in sorted(tmp_path.glob("out/*/summary.json"))]
    assert names == ["heat temperature=0.0", "heat temperature=0.7"]


@pytest.mark.parametrize(
    ("address", "parameters", "identities"),
    [
        ("ollama/llama3", "temperature = [0.0, 0.7]", ("llama3(temperature=0)", "llama3(temperature=0.7)")),
        # without its parameter this one is no target
        ("http://127.0.0.1:9/ask", 'api = ["chat"]', ("http://127.0.0.1:9/ask(",)),
    ],
)
def test_parameters_are_settings_of_targets_that_are_no_functions(
    evalstone: Evalstone, app: str, tmp_path: Path, address: str, parameters: str, identities: tuple[str, ...]
) -> None:
    written(tmp_path, f'data = "easy.jsonl"\ntargets = ["{address}"]\nparameters.{parameters}')
    done = evalstone("run", "e.toml", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert all(identity in done.stdout for identity in identities)


@pytest.mark.parametrize(("name", "folder"), [("./x.sh", "x.sh"), ("..", "target"), (".hidden", "hidden")])
def test_a_cell_is_a_visible_folder_of_its_own(
    evalstone: Evalstone, app: str, tmp_path: Path, name: str, folder: str
) -> None:
    written(tmp_path, f'data = "easy.jsonl"\ntargets = [{{ name = "{name}", address = "{app}:agent" }}]')
    assert evalstone("run", "e.toml", "-q").returncode == 0
    assert set(cells(tmp_path)) == {folder}


def test_an_interrupted_experiment_goes_on_and_a_complete_one_begins_anew(
    evalstone: Evalstone, app: str, tmp_path: Path
) -> None:
    written(tmp_path, f'data = "easy.jsonl"\ntargets = ["{app}:agent"]\nparameters.style = ["a", "boom", "c"]')

    def run() -> Done:
        return evalstone("run", "e.toml", "-q")

    for total in (9, 18):
        (tmp_path / "broken").touch()
        assert run().returncode == 3
        assert 3 < len(calls(tmp_path)) <= total
        first = len([line for line in calls(tmp_path) if " a " in line])
        (tmp_path / "broken").unlink()
        assert run().returncode == 0
        assert len([line for line in calls(tmp_path) if " a " in line]) == first == total // 3
        assert len([line for line in calls(tmp_path) if " c " in line]) == total // 3
    assert len(cells(tmp_path)) == 3


@pytest.mark.parametrize(
    ("experiment", "more", "problem"),
    [
        (
            'targets = ["APP:agent"]\nparameter.x = [1]\ndata = "easy.jsonl"',
            "",
            "[experiment]: unknown key",
        ),
        ('targets = []\ndata = "easy.jsonl"', "", "[experiment] targets must be a list of one or more texts or tables"),
        ('targets = [3]\ndata = "easy.jsonl"', "", "must be a list of one or more texts or tables, not [3]"),
        ('targets = ["APP:agent"]\ndata = [1]', "", "[experiment] data must be a list"),
        (
            'data = "easy.jsonl"\ntargets = ["APP:agent"]\nparameters.style = [inf]',
            "",
            "[experiment] a parameter must be JSON data, not inf",
        ),
        ('data = "easy.jsonl"\nparameters.x = [1]', "", "parameters require a target; add target"),
        (
            'data = "easy.jsonl"\ntargets = ["APP:agent"]\nparameters.style = ["a"]\nparameters.heat = [1]',
            "",
            "unknown parameter 'heat'",
        ),
        ('data = "easy.jsonl"\ntargets = ["APP:rigid"]\nparameters.heat = [1]', "", "unknown parameter 'heat'"),
        (
            'data = "easy.jsonl"\ntargets = ["APP:strict"]\nparameters.heat = [1]',
            "",
            "metadata, thread, trial; a parameter of an experiment needs a default",
        ),
        ('data = "easy.jsonl"\ntargets = ["APP:agent"]\nparameters.input = ["x"]', "", "the parameter input is set by"),
        (
            'data = "easy.jsonl"\ntargets = ["APP:agent", "APP:agent"]',
            "",
            "two cells of the experiment are called",
        ),
        (
            'data = "easy.jsonl"\ntargets = ["APP:agent"]',
            'target = "APP:rigid"',
            "has a target and [experiment]",
        ),
        (
            'data = "easy.jsonl"\ntargets = ["APP:agent"]',
            'data = "hard.jsonl"',
            "e.toml: it has data and [experiment] data; keep one of them",
        ),
        ('data = "easy.jsonl"\ntargets = ["APP:agent"]', 'require = "contains"', "require can't be used with an"),
        ('data = "easy.jsonl"\ntargets = ["APP:agent", "APP:none"]', "", "has no none"),
        ('targets = ["APP:agent"]', "", "the key data is missing"),
        (
            'data = "easy.jsonl"\ntargets = ["cmd:echo 3"]\nparameters.timeout = [1, 2]',
            "",
            "the cells timeout=1 and timeout=2 are the same run: they differ only in settings that aren't part of the "
            "target's identity; give each its own version",
        ),
        (
            'data = "easy.jsonl"\ntargets = ["APP:agent", "cmd:echo"]\nparameters.style = ["a"]',
            "",
            "[experiment] echo: the target has an unknown setting 'style'",
        ),
    ],
)
def test_a_wrong_table_is_refused_before_anything_is_called(
    evalstone: Evalstone, app: str, tmp_path: Path, experiment: str, more: str, problem: str
) -> None:
    written(tmp_path, experiment.replace("APP", app), more.replace("APP", app))
    done = evalstone("run", "e.toml", "-q")
    assert done.returncode == 2
    assert problem in done.stderr
    assert "--" not in done.stderr
    assert calls(tmp_path) == []


def test_an_experiment_names_its_file_for_its_own_settings_but_not_for_options(
    evalstone: Evalstone, app: str, tmp_path: Path
) -> None:
    written(tmp_path, f'data = "easy.jsonl"\ntargets = ["{app}:agent"]')
    for option, value in (("--judge", "gpt5"), ("--scorer", "containss")):
        done = evalstone("run", "e.toml", "-q", option, value)
        assert (done.returncode, done.stderr.startswith("evalstone: unknown ")) == (2, True), done.stderr
    written(tmp_path, f'data = "easy.jsonl"\ntargets = ["{app}:none"]')
    assert evalstone("run", "e.toml", "-q").stderr.startswith("evalstone: e.toml: ")


@pytest.mark.parametrize("name", ["..", ".", "../../x", "é" * 300])
def test_no_cell_is_written_beside_the_folder_of_the_results(
    evalstone: Evalstone, app: str, tmp_path: Path, name: str
) -> None:
    other = f'{{ name = "b", address = "{app}:agent", version = "2" }}'
    targets = f'[{{ name = "{name}", address = "{app}:agent" }}, {other}]'
    before = {path.name for path in tmp_path.iterdir()}
    written(tmp_path, f'data = "easy.jsonl"\ntargets = {targets}')
    done = evalstone("run", "e.toml", "-q")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} - before <= {
        "e.toml",
        "out",
        "calls",
        ".evalstone",
        "__pycache__",
    }
    cells = [path for path in (tmp_path / "out").iterdir() if path.is_dir()]
    assert len(cells) == len(list((tmp_path / "out").iterdir())) == 2
    assert all((cell / "records.jsonl").is_file() for cell in cells)


def test_cells_whose_long_parameters_begin_alike_have_folders_of_their_own(
    evalstone: Evalstone, app: str, tmp_path: Path
) -> None:
    styles = json.dumps(["word " * 100 + end for end in "ab"])
    written(tmp_path, f'data = "easy.jsonl"\ntargets = ["{app}:agent"]\nparameters.style = {styles}')
    assert evalstone("run", "e.toml", "-q").returncode == 0
    assert len(list((tmp_path / "out").iterdir())) == 2
