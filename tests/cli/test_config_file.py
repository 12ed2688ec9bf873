"""The settings of a file: where its paths lead, what options replace, and what is refused with which name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from evalstone.cli.config_file import RunConfig
from evalstone.errors import ConfigError

Load: TypeAlias = Callable[..., RunConfig]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a file with these lines in the folder `sub`, of another folder that has a run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("sub/before", "last"):
        (tmp_path / name).mkdir(parents=True)

    def loaded(lines: str, **given: Any) -> RunConfig:
        (tmp_path / "sub" / "eval.toml").write_text(lines if "data" in lines else f'data = "d.jsonl"\n{lines}', "utf-8")
        return RunConfig.load("sub/eval.toml", **given)

    return loaded


def at(settings: Any, path: str) -> Any:
    """The value at a path of names and indices."""
    for name in path.split("."):
        settings = settings[int(name) if name.isdigit() else name]
    return settings


@pytest.mark.parametrize(
    ("line", "path", "expected"),
    [
        ("", "data", "sub/d.jsonl"),
        ('data = "~/d.jsonl"', "data", "HOME/d.jsonl"),
        ('data = "/d.jsonl"', "data", "/d.jsonl"),
        ('data = "-"', "data", "-"),
        ('data = "s3://b/d.jsonl"', "data", "s3://b/d.jsonl"),
        ('data = "my_app:samples"', "data", "my_app:samples"),
        ('out = "o"', "out", "sub/o"),
        ('html = "-"', "html", "-"),
        ('ledger = "l.db"', "ledger", "sub/l.db"),
        ('ledger = "None"', "ledger", "None"),
        ('ledger = "sqlite:///l.db"', "ledger", "sqlite:///l.db"),
        ('baseline = "before"', "baseline", "sub/before"),
        ('baseline = "last"', "baseline", "last"),
        ('target = "replay:before"', "target", "replay:sub/before"),
        ('target = "replay:last"', "target", "replay:last"),
        ('[target]\naddress = "replay:before"', "target.address", "replay:sub/before"),
        ('[target]\naddress = "a:b"\ntools = "record:~/t.jsonl"', "target.tools", "record:HOME/t.jsonl"),
        ('[target]\naddress = "a:b"\ntools = "replay: t.jsonl"', "target.tools", "replay:sub/t.jsonl"),
        ('[target]\naddress = "a:b"\ntools = "record:"', "target.tools", "record:"),
        ('judge = { model = "lexical", log = "l" }', "judge.log", "sub/l"),
        ('judge = { panel = ["lexical", { model = "lexical", log = "l" }] }', "judge.panel.1.log", "sub/l"),
        ('user = { judge = { model = "a/b", log = "l" } }', "user.judge.log", "sub/l"),
        ('[experiment]\ndata = ["a.jsonl", "b.jsonl"]', "experiment.data.1", "sub/b.jsonl"),
        ('[experiment]\ndata = ["a.jsonl", "b.jsonl"]', "data", "sub/a.jsonl"),
        ('[experiment]\ntargets = ["replay:before"]', "experiment.targets.0", "replay:sub/before"),
    ],
)
def test_the_paths_of_a_file_are_relative_to_it(
    load: Load, tmp_path: Path, line: str, path: str, expected: str
) -> None:
    assert at(vars(load(line)), path) == expected.replace("HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("line", "given", "target"),
    [
        ('target = "a:b"', {"timeout": 5.0}, {"address": "a:b", "timeout": 5.0}),
        ('[target]\naddress = "a:b"\ntimeout = 7', {"timeout": 5.0}, {"address": "a:b", "timeout": 5.0}),
        ('[target]\naddress = "a:b"\ntimeout = 7', {"version": "1"}, {"address": "a:b", "timeout": 7, "version": "1"}),
        ('[target]\naddress = "a:b"\ntimeout = 7', {"address": "c:d"}, {"address": "c:d"}),
        ('target = "a:b"', {"address": "c:d", "version": "1"}, {"address": "c:d", "version": "1"}),
    ],
)
def test_options_of_a_target_are_those_of_the_target_that_is_called(
    load: Load, line: str, given: dict[str, Any], target: dict[str, Any]
) -> None:
    assert load(line, target=given).target == target


def test_what_is_in_the_file_is_known_until_an_option_replaces_it(load: Load) -> None:
    lines = 'scorers = ["contains(expected=x)"]\ncache = false\nbudget = 1.0\n[min]\ncontains = 0.5\n'
    config = load(lines)
    assert config.in_file == {"data", "scorers", "cache", "budget", "min"}
    names = ("cache", "budget", "concurrency", "wait")
    assert [config.named(name) for name in names] == ["cache = false", "budget", "--concurrency", "--wait"]
    assert (config.folder("scorers"), config.folder("judge")) == (Path("sub"), Path())
    changed = load(lines, scorers=["faithfulness"], cache=False, budget=None, min={"faithfulness": 0.25}, quiet=True)
    assert changed.in_file == {"data", "budget", "min"}
    assert changed.min == {"contains": 0.5, "faithfulness": 0.25}
    assert (changed.named("cache"), changed.folder("scorers"), changed.quiet) == ("--no-cache", Path(), True)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("require = []", "require is empty, so it checks nothing: name a scorer, or remove require"),
        ("min = {}", "min is empty, so it checks nothing: name a scorer, or remove min"),
        ("scorers = []", "scorers must be a list of one or more scorers, not []"),
        ("limit = 0", "limit must be a whole number, 1 or more, not 0"),
        ("trials = 0", "trials must be a whole number from 1 to "),
        ("trials = 100000000", "trials must be a whole number from 1 to "),
        ("budget = inf", "budget must be a finite number, 0 or more, not inf"),
        ("budget = -0.5", "budget must be a finite number, 0 or more, not -0.5"),
        ('limit = "3"', "limit must be a whole number, not '3'"),
        ("shard = 1", "unknown key 'shard'; did you mean the option --shard?"),
        ("no_cache = true", "unknown key 'no_cache'; did you mean cache?"),
        ("evaluators = []", "unknown key 'evaluators'; did you mean scorers?"),
        ("[experiment]\nmodels = []", "[experiment]: unknown key 'models'; known: data, parameters, targets"),
        ('data = "d"\n[experiment]\ndata = "e"', "it has data and [experiment] data; keep one of them"),
        ('[judge]\nmodel = "a/b"\n[judge.api_key]\nx = 1\n[user]\n[tags]\n', "tags must be a list, not {}"),
    ],
)
def test_a_wrong_setting_of_a_file_is_named(load: Load, line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(line)
    assert str(raised.value).startswith(f"sub/eval.toml: {problem}")


@pytest.mark.parametrize("line", ["limit = 1", "trials = 1", "budget = 0", "budget = 0.0", "concurrency = 10000"])
def test_the_limits_of_a_setting_are_within_it(load: Load, line: str) -> None:
    name, _, value = line.partition(" = ")
    assert getattr(load(line), name) == float(value)


def test_a_key_in_a_wrong_setting_is_not_shown(load: Load) -> None:
    with pytest.raises(ConfigError) as raised:
        load('judge = [{ model = "a/b", api_key = "open-sesame-4711" }]')
    assert "judge must be text or a table, not " in str(raised.value)
    assert "sesame" not in str(raised.value)


def test_an_error_about_a_setting_names_the_file_once_and_an_option_as_one(load: Load) -> None:
    config = load("budget = 1.0")
    for text, expected in (("x", "sub/eval.toml: x"), ("sub/eval.toml: x", "sub/eval.toml: x")):
        with pytest.raises(ConfigError) as raised, config.naming_file("budget"):
            raise ConfigError(text)
        assert str(raised.value) == expected
    with pytest.raises(ConfigError, match=r"^x$"), config.naming_file("concurrency"):
        raise ConfigError("x")


@pytest.mark.parametrize("line", ['baseline = "a\\u0000b"', 'judge = { model = "a", headers = ["\\u0000"] }'])
def test_a_nul_character_is_refused_with_its_key(load: Load, line: str) -> None:
    with pytest.raises(ConfigError, match=f"{line.partition(' ')[0]} has a NUL character"):
        load(line)
