"""Options: one declaration gives the command, its help, its key in a file and its completion."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import click
import pytest

from evalstone.cli import completion
from evalstone.cli.app import GROUPS, app
from evalstone.cli.command import Command, Commands
from evalstone.cli.config_file import RunConfig, keys
from evalstone.cli.options import Panel, argument, declared, option
from evalstone.cli.values import scorer_numbers
from evalstone.errors import ConfigError
from evalstone.ledger.copy import PARQUET_COLUMNS
from evalstone.ledger.scores import Source
from evalstone.results.calibration import Calibrator
from evalstone.results.missing_scores import Missing as MissingScores
from evalstone.stats import Objective
from evalstone.stats.multiple_testing import Correction
from tests.cli.conftest import Evalstone
from tests.cli.test_completion import completed


def commands(group: Commands = app) -> dict[str, Command]:
    """Every command by its name, with that of its group."""
    found: dict[str, Command] = {}
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, Commands):
            found |= {f"{name} {part}": one for part, one in commands(command).items()}
        elif isinstance(command, Command):
            found[name] = command
    return found


COMMANDS = commands()
ROOT = Path(__file__).parents[2]


def test_every_option_of_every_command_is_shown_once_in_its_panel() -> None:
    assert {name.partition(" ")[0] for name in COMMANDS if " " in name} == GROUPS.keys()
    for name, command in COMMANDS.items():
        shown = command.panels(click.Context(command))
        assert list(shown) == [panel for panel in get_args(Panel) if panel in shown]
        rows = [(row.declared, panel) for panel, listed in shown.items() for row in listed if row.declared]
        assert sorted((one.key, panel) for one, panel in rows) == sorted(
            (one.key, one.option.panel) for one in command.declared.values()
        ), name


def test_every_option_says_what_it_does() -> None:
    for name, command in COMMANDS.items():
        for one in command.declared.values():
            text = one.option.help
            assert text.strip() == text != "", (name, one.key)
            assert text.endswith((".", ")")), (name, one.key)
            assert not {"repeatable", "default:"} & set(text.lower().replace(".", "").split()), (name, one.key)


def test_every_parameter_of_a_command_is_an_option_of_it() -> None:
    for name, command in COMMANDS.items():
        parameters = set(inspect.signature(command.source).parameters)
        without = {"experiment", "file", "in_file"} if command.source is RunConfig else set[str]()
        assert {one.group or one.name for one in command.declared.values()} == parameters - without, name


def test_a_setting_of_a_run_is_a_key_unless_it_is_only_for_the_command_line() -> None:
    assert {one.name for one in declared(RunConfig)} - set(keys()) == {
        "base_url", "dry_run", "as_json", "quiet", "verbose", "otel", "shard",
    }  # fmt: skip
    assert set(keys()) - {one.name for one in declared(RunConfig)} == {"experiment"}


@pytest.mark.parametrize(
    ("command", "key", "words"),
    [
        ("run", "missing", get_args(MissingScores)),
        ("gate", "missing", get_args(MissingScores)),
        ("compare", "missing", get_args(MissingScores)),
        ("compare", "correction", get_args(Correction)),
        ("calibrate", "calibrator", get_args(Calibrator)),
        ("align", "objective", get_args(Objective)),
        ("ledger scores", "source", get_args(Source)),
        ("ledger export", "what", ("all", *PARQUET_COLUMNS, "labels")),
    ],
)
def test_the_words_of_an_option_are_those_that_its_command_knows(command: str, key: str, words: Any) -> None:
    (choices,) = (one.choices for one in COMMANDS[command].declared.values() if one.key == key)
    assert sorted(choices) == sorted(words)
    assert completed(f"{command} --{key} ") == sorted(words)


@pytest.mark.parametrize(
    ("line", "named", "told"),
    [
        ("compare a b --correction bonferroni", "--correction takes", "fdr_bh or none"),
        ("ledger export x.jsonl --what runs", "--what takes", "answers, records or labels"),
        ("run x.jsonl --out", "option '--out'", "evalstone run --help"),
        ("ledger recover --damaged x", "unknown option --damaged", "give FILE"),
        ("ledger recover --file x", "unknown option --file", "give FILE"),
    ],
)
def test_a_wrong_option_is_named_with_what_it_takes(evalstone: Evalstone, line: str, named: str, told: str) -> None:
    done = evalstone(*line.split())
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith(f"evalstone: {named}")
    assert told in done.stderr


def test_a_word_that_a_key_does_not_know_is_refused(tmp_path: Path, evalstone: Evalstone) -> None:
    (tmp_path / "eval.toml").write_text('data = "d.jsonl"\nmissing = "none"\n')
    done = evalstone("run", "eval.toml")
    assert done.returncode == 2
    assert done.stderr.startswith("evalstone: eval.toml: ")
    assert ": missing must" in done.stderr
    assert "'failed' or 'ignore'" in done.stderr
    (tmp_path / "eval.toml").write_text('data = "d.jsonl"\nquiet = true\n')
    assert "unknown key 'quiet'" in evalstone("run", "eval.toml").stderr


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of each kind."""

    file: Annotated[str, argument("FILE", "A file.")]
    names: Annotated[list[str], option("--name -n NAME", "Data", "A name.")] = field(default_factory=lambda: ["a", "b"])
    bounds: Annotated[dict[str, float], option("--bound X=Y", "Data", "A bound.", parse=scorer_numbers)] = field(
        default_factory=dict[str, float]
    )
    count: Annotated[int, option("--count N", "Running", "A count.", min=1)] = 3
    share: Annotated[float | None, option("--share X", "Running", "A share.", min=0, max=1)] = None
    table: Annotated[
        str | dict[str, Any] | None,
        option("--address A", "Target", "An address.", entry="address"),
        option("--size N", "Target", "A size.", entry="size", type=int, default="7"),
    ] = None
    word: Annotated[Literal["one", "two"], option("--word", "Output", "A word.")] = "one"
    fast: Annotated[bool, option("--fast/--slow", "Output", "Whether it is fast.")] = False
    plain: int = 0

    @classmethod
    def load(cls, **given: Any) -> Settings:
        """The settings as they were given."""
        return cls(**given)


HELP = {
    "file": "A file.",
    "names": "A name. Repeatable.  [default: a, b]",
    "bounds": "A bound. Repeatable.",
    "count": "A count.  [default: 3; at least 1]",
    "share": "A share.  [0 to 1]",
    "table.address": "An address.",
    "table.size": "A size.  [default: 7]",
    "word": "A word.  [default: one]",
    "fast": "Whether it is fast.",
}


def test_a_declaration_gives_the_help() -> None:
    rows = {one.key: one for one in declared(Settings)}
    assert "plain" not in rows
    assert {key: one.help() for key, one in rows.items()} == HELP
    assert [rows[key].metavar for key in ("names", "word", "fast", "file")] == ["NAME", "one|two", "", "FILE"]
    assert [one.flag for one in rows.values()][:4] == ["FILE", "--name", "--bound", "--count"]


def test_only_what_is_given_reaches_the_settings() -> None:
    loaded: list[Settings] = []

    def command(settings: Settings) -> int:
        loaded.append(settings)
        return 0

    command.__annotations__ = {"settings": Settings, "return": int}
    made = Command("x", command, "")
    given = [
        "f",
        "-n",
        "c",
        "--bound",
        "a=1",
        "--bound",
        "b=0.5",
        "--count",
        "4",
        "--size",
        "2",
        "--word",
        "two",
        "--fast",
    ]
    for line in (given, ["f"]):
        with made.make_context("x", list(line)) as context:
            assert made.invoke(context) == 0
    assert loaded == [
        Settings(
            file="f",
            names=["c"],
            bounds={"a": 1.0, "b": 0.5},
            count=4,
            table={"size": 2},
            word="two",
            fast=True,
        ),
        Settings(file="f"),
    ]
    for wrong in (["--count", "0"], ["--share", "2"], ["--size", "two"], ["--word", "three"], ["--bound", "a"]):
        with made.make_context("x", ["f", *wrong]) as context, pytest.raises(ConfigError, match=wrong[0]):
            made.invoke(context)


@pytest.mark.slow
def test_the_option_of_the_contributing_page_works(tmp_path: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Add an option\n")[2].partition("```diff\n")[2]
    shutil.copytree(ROOT / "src" / "evalstone", tmp_path / "evalstone")
    for hunk in page.partition("\n```")[0].split("+++ b/src/")[1:]:
        path, _, diff = hunk.strip("\n").partition("\n")
        lines = diff.splitlines()
        before = "\n".join(line[1:] for line in lines if line.startswith(" "))
        text = (tmp_path / path).read_text("utf-8")
        assert text.count(before) == 1, path
        (tmp_path / path).write_text(text.replace(before, "\n".join(line[1:] for line in lines)), "utf-8")
    rows = "".join(json.dumps({"id": str(number), "output": "x", "reference": "x"}) + "\n" for number in range(3))
    (tmp_path / "d.jsonl").write_text(rows)
    (tmp_path / "eval.toml").write_text('data = "d.jsonl"\nscorers = ["exact_match"]\nskip = 2\n')

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "evalstone", *arguments]
        env = {**os.environ, "PYTHONPATH": str(tmp_path), **variables}
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, check=False)

    for options, scored in (((), 1), (("--skip", "1"), 2)):
        done = run("run", "eval.toml", *options, "--json")
        assert (done.returncode, json.loads(done.stdout)["scorers"][0]["n_score"]) == (0, scored), done.stderr
    assert "--skip takes" in run("run", "eval.toml", "--skip", "-1").stderr
    assert "--skip N" in run("run", "--help").stdout.partition("\nData:\n")[2].partition("\nTarget:\n")[0]
    line = {"COMP_WORDS": "evalstone run --sk", "COMP_CWORD": "2", completion.VARIABLE: "bash_complete"}
    assert run(**line).stdout == "plain,--skip\n"
    (tmp_path / "eval.toml").write_text('data = "d.jsonl"\nskip = -1\n')
    assert ": skip must" in run("run", "eval.toml").stderr


@pytest.mark.parametrize("command", ["run", "audit", "rubrics"])
def test_help_names_every_kind_of_data(command: str, evalstone: Evalstone) -> None:
    shown = " ".join(evalstone(command, "--help").stdout.partition("Arguments:\n")[2].split())
    assert shown.startswith("DATA Samples (JSON, JSONL, CSV, Parquet, Excel, or my_app:samples)")
