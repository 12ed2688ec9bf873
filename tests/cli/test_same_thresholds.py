"""The same criteria give the same decisions at every door."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from evalstone import evaluate, gate, write_run
from evalstone._core.guards import is_array, is_object
from evalstone.cli.config_file import RunConfig
from evalstone.cli.options import declared
from evalstone.cli.results import gate as gate_command
from evalstone.errors import NotComparable
from evalstone.results.gate_criteria import CRITERIA
from evalstone.testing import Evalstone
from evalstone.testing.marks import Mark
from tests.cli.conftest import Evalstone as Command

ROOT = Path(__file__).parents[2]
SETTINGS = {*CRITERIA, "baseline", "alpha", "missing", "max_change", "allow_mismatch"}
"""What every door takes."""
DECIDING = SETTINGS | {"inconclusive"}
"""What every door takes whose verdict is an exit code or the result of a test."""


def inputs_of_action() -> set[str]:
    lines = (ROOT / "action" / "action.yml").read_text("utf-8").partition("\noutputs:")[0].splitlines()
    return {line.strip(" :").replace("-", "_") for line in lines if line.startswith("  ") and line[2] != " "}


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (inspect.signature(gate).parameters, SETTINGS),
        (inspect.signature(Evalstone.assert_gate).parameters, DECIDING),
        ({field.name for field in fields(Mark)}, DECIDING),
        ({one.name for one in declared(gate_command)}, DECIDING),
        ({one.name for one in declared(RunConfig) if one.in_file}, DECIDING),
        (inputs_of_action(), DECIDING),
    ],
    ids=["gate", "fixture", "mark", "gate command", "run and file", "action"],
)
def test_every_door_takes_every_criterion(names: Any, taken: set[str]) -> None:
    assert taken <= set(names)


def row(number: int, answer: str) -> dict[str, str]:
    return {"id": f"s{number}", "input": str(number), "output": answer, "reference": "yes"}


BEFORE = [row(n, "yes" if n % 10 else "no") for n in range(60)]
NOW = [row(n, "yes" if n % 6 else "no") for n in range(60)]
ASKED_OTHERWISE = [{**one, "input": f"{one['input']}?"} for one in BEFORE]
"""A baseline that only `allow_mismatch` admits."""
PARTLY_UNSCORED = [*NOW, *({"id": f"u{n}", "output": "yes"} for n in range(20))]
"""Samples of which only `missing` decides how many count."""
CASES: list[dict[str, Any]] = [
    {"min": {"exact_match": 0.6}, "max": {"ter": 0.5}},
    {"min": {"exact_match": 0.85}},
    {"min": {"exact_match": 0.84}, "alpha": None},
    {"pass_rate": {"exact_match": (1, 0.5)}, "require": ["exact_match"], "alpha": 0.01},
    {"max_regression": {"exact_match": 0.3}, "baseline": "before", "max_change": 1},
    {"max_regression": {"exact_match": 0.3}, "baseline": "before", "max_change": 0.5},
    {
        "min": {"exact_match": 0.6},
        "max_difference": {"exact_match": 0.6},
        "baseline": "before",
        "missing": "ignore",
        "allow_mismatch": True,
    },
]
SCORERS = ["exact_match", "ter"]


def options_of(criteria: dict[str, Any]) -> list[str]:
    """The criteria on the command line."""
    words: list[str] = []
    for name, value in criteria.items():
        flag = f"--{name.replace('_', '-')}"
        if name == "pass_rate":
            words += [word for key, (score, share) in value.items() for word in (flag, f"{key}@{score}={share}")]
        elif is_object(value):
            words += [word for key, number in value.items() for word in (flag, f"{key}={number}")]
        elif is_array(value):
            words += [word for key in value for word in (flag, key)]
        else:
            words += [flag] if value is True else [flag, "none" if value is None else str(value)]
    return words


def toml_of(criteria: dict[str, Any]) -> str:
    """The criteria in a configuration file."""
    lines = [f"scorers = {json.dumps(SCORERS)}", 'data = "now.jsonl"']
    for name, value in criteria.items():
        if is_object(value):
            pairs = (f"{key} = {json.dumps(number)}" for key, number in value.items())
            lines.append(f"{name} = {{ {', '.join(pairs)} }}")
        else:
            lines.append(f"{name} = {json.dumps('none' if value is None else value)}")
    return "\n".join(lines)


def rows_of(text: str) -> list[str]:
    """The rows of the table of checks."""
    lines = [" ".join(line.removeprefix("E ").split()) for line in text.splitlines()]
    return [line for line in lines if any(f" {mark}" in line for mark in ("✓ pass", "✕ fail", "? inconclusive"))
            and not line.startswith("Gate:")]  # fmt: skip


@pytest.fixture(scope="module")
def case_folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A folder for each case, with the runs that it is about, their data, and tests of them."""
    folders: list[Path] = []
    parent = tmp_path_factory.mktemp("doors")
    for number, criteria in enumerate(CASES):
        folders.append(folder := parent / f"case{number}")
        folder.mkdir()
        earlier = ASKED_OTHERWISE if "allow_mismatch" in criteria else BEFORE
        for name, rows in (("before", earlier), ("now", PARTLY_UNSCORED if "missing" in criteria else NOW)):
            data = folder / f"{name}.jsonl"
            data.write_text("".join(json.dumps(one) + "\n" for one in rows))
            write_run(evaluate(data, SCORERS, ledger=None), folder / name)
        fixture = {**criteria, **({"baseline": "BASELINE"} if "baseline" in criteria else {})}
        arguments = ", ".join(f"{name}={value!r}" for name, value in fixture.items()).replace("'BASELINE'", "BEFORE")
        (folder / f"test_doors_{number}.py").write_text(
            f"""
import pytest, evalstone as e

BEFORE = e.read_run({str(folder / "before")!r})
NOW = e.read_run({str(folder / "now")!r})

@pytest.mark.evalstone(
    dataset={str(folder / "now.jsonl")!r}, scorers={SCORERS!r}, {arguments}, inconclusive="report"
)
def test_mark():
    pass

def test_fixture(evalstone):
    evalstone.assert_gate(NOW, {arguments}, inconclusive="report")
"""
        )
    return folders


@pytest.fixture(scope="module")
def tested(case_folders: list[Path]) -> dict[str, list[Any]]:
    """How the tests of all cases ended, in one process of pytest, by the name of their module."""
    folder = case_folders[0].parent
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", ".", "--junitxml=ended.xml"]
    environment = {**os.environ, "COLUMNS": "200"}  # whole tables
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    ended: dict[str, list[Any]] = {}
    for test in ElementTree.parse(folder / "ended.xml").iter("testcase"):
        ended.setdefault(test.attrib["classname"].rpartition(".")[2], []).append(test)
    return ended


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(CASES)), ids=["-".join(criteria) for criteria in CASES])
def test_every_door_decides_alike(
    evalstone: Command,
    case_folders: list[Path],
    tested: dict[str, list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    criteria, folder = CASES[number], case_folders[number]
    monkeypatch.setenv("COLUMNS", "200")  # whole tables
    monkeypatch.chdir(folder)
    before, now = (evaluate(f"{name}.jsonl", SCORERS, ledger=None) for name in ("before", "now"))
    asked: dict[str, Any] = {**criteria, **({"baseline": before} if "baseline" in criteria else {})}
    held = gate(now, **asked)
    wanted, decisions = held.verdict, [one.verdict for one in held.decisions]
    if "missing" in criteria:  # otherwise, a door could drop these
        others: list[dict[str, Any]] = [{**asked, "missing": "worst"}, {**asked, "allow_mismatch": False}]
        assert (wanted, gate(now, **others[0]).verdict) == ("pass", "inconclusive")
        with pytest.raises(NotComparable):
            gate(now, **others[1])
    code = {"pass": 0, "fail": 1, "inconclusive": 4}[wanted]

    def command(*words: str) -> tuple[int, str]:
        done = evalstone(*words)
        return done.returncode, done.stdout

    by_gate = command("gate", "now", "--json", "--look", "1", *options_of(criteria))
    assert by_gate[0] == code
    shown = json.loads(by_gate[1])
    assert (shown["verdict"], [one["verdict"] for one in shown["decisions"]]) == (wanted, decisions)
    assert [one["name"] for one in shown["decisions"]] == [one.name for one in held.decisions]
    table = rows_of(command("gate", "now", "--look", "1", *options_of(criteria))[1])
    scorers = [word for name in SCORERS for word in ("-s", name)]
    by_run = command("run", "now.jsonl", *scorers, *options_of(criteria))
    assert (by_run[0], rows_of(by_run[1])) == (code, table)
    Path("eval.toml").write_text(toml_of(criteria))
    by_file = command("run", "eval.toml")
    assert (by_file[0], rows_of(by_file[1])) == (code, table)
    assert action(folder, criteria) == (wanted, code)

    child = {"pass": None, "fail": "failure", "inconclusive": "skipped"}[wanted]
    tests = tested[f"test_doors_{number}"]
    assert [[one.tag for one in test if one.tag in ("failure", "error", "skipped")] for test in tests] == [
        [child] if child else []
    ] * 2
    if wanted == "fail":
        for test in tests:
            assert set(table) <= set(rows_of(test.find("failure").text))


def action(folder: Path, criteria: dict[str, Any]) -> tuple[str, int]:
    """The verdict and exit code of the action's own command line."""
    inputs = {"results": str(folder / "now"), "inconclusive": "report"}
    for name, value in criteria.items():
        words = options_of({name: value})
        inputs[name] = "\n".join(words[1::2]) if len(words) > 1 else "true"
    environment = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
    script = (
        "import evaluate as action; verdict, code, _ = action.checked(action.given('results'), 'report'); "
        "print('RESULT', verdict, code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT / "action")},
        check=True,
    )
    verdict, code = done.stdout.split("RESULT ")[1].split()
    return verdict, int(code)
