"""The TOML file that describes a run. Options on the command line override the file.

    data = "answers.jsonl"
    judge = "openai/gpt-5.1"                # or a table: [judge] model = "...", temperature = 0.2
    scorers = ["faithfulness", { name = "context_relevance", scale = 10, penalties = { unused = 0.2 } }]
    out = "results"
    ledger = "sqlite:///runs.db"
    budget = 5.0

    trials = 4
    target = "my_app:agent"                 # or a table: [target] address = "my_app:agent", timeout = 60

    require = ["contains"]                  # the best score in all samples

    [map]
    output = "answer"

    [fail_under]
    faithfulness = 0.8

Paths in a file are relative to that file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from evalstone._core.files import file_text, home_expanded, is_folder
from evalstone._core.redaction import masked
from evalstone._core.sizes import MOST_CONCURRENCY, MOST_TRIALS
from evalstone.errors import ConfigError, unknown
from evalstone.ledger.base import DEFAULT_LEDGER, NO_FILES

if TYPE_CHECKING:
    from pydantic import ValidationError

LISTS = ("scorers", "require", "tags")
LIMITS: Mapping[str, tuple[int, float]] = {
    "limit": (1, inf),
    "trials": (1, MOST_TRIALS),
    "concurrency": (1, MOST_CONCURRENCY),
    "budget": (0, inf),
    "top": (0, inf),
}
TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
}
"""The types of values, by pydantic's name of the error about another one."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The settings of a run, named like the options of `evalstone run`."""

    data: str
    scorers: list[str | dict[str, Any]] = field(default_factory=lambda: ["faithfulness", "context_relevance"])
    judge: str | dict[str, Any] = "lexical"
    target: str | dict[str, Any] | None = None
    trials: int = 1
    user: str | dict[str, Any] | list[str] | None = None
    limit: int | None = None
    map: dict[str, str | list[str]] = field(default_factory=dict[str, str | list[str]])
    keep_reasoning: bool = False
    out: str | None = None
    html: str | None = None
    markdown: str | None = None
    ledger: str = DEFAULT_LEDGER
    name: str = ""
    tags: list[str] = field(default_factory=list[str])
    concurrency: int = 32
    budget: float | None = None
    no_cache: bool = False
    batch: bool = False
    wait: bool = False
    fail_under: dict[str, float] = field(default_factory=dict[str, float])
    fail_over: dict[str, float] = field(default_factory=dict[str, float])
    require: list[str] = field(default_factory=list[str])
    gate: bool = False
    baseline: str | None = None
    max_regression: dict[str, float] = field(default_factory=dict[str, float])
    max_change: float | dict[str, float] | None = None
    allow_mismatch: bool = False
    missing: str | None = None
    top: int = 3
    experiment: dict[str, Any] | None = None
    """A matrix of targets, their parameters and datasets; see `cli.experiment`."""
    file: str = ""
    """The TOML file, if there is one."""
    in_file: frozenset[str] = frozenset()
    """The settings from the file that no option overrides."""

    def named(self, setting: str, beside: str = "") -> str:
        """A setting's name in messages: its key if it, or the setting `beside`, is in the file; else its option."""
        return setting if (beside or setting) in self.in_file else f"--{setting.replace('_', '-')}"

    @contextmanager
    def naming_file(self, *settings: str) -> Generator[None]:
        """Within the block, an error about these settings names the file if one of them is in it."""
        try:
            yield
        except ConfigError as error:
            if self.in_file.intersection(settings) and not str(error).startswith(f"{self.file}: "):
                error.located(f"{self.file}: ")
            raise


KEYS = tuple(setting.name for setting in fields(RunConfig) if setting.name not in ("in_file", "file"))
EXPERIMENT_KEYS = ("data", "targets", "parameters")


def load_config(data: str, **options: Any) -> RunConfig:
    """The settings of a run from a data file or a TOML file, and the command line's options.

    Options that are None or empty keep the file's setting; mappings are merged. Raises ConfigError with the file, the
    key, the expected value and the actual one.
    """
    is_toml = data.endswith(".toml")
    settings: dict[str, Any] = _read(Path(data)) if is_toml else {"data": data}
    in_file = set(settings) if is_toml else set[str]()
    target: dict[str, Any] = options.get("target") or {}
    if target and "address" not in target and isinstance(settings.get("target"), str):
        settings["target"] = {"address": settings["target"]}
    elif "address" in target:
        settings.pop("target", None)  # its settings are for another target
    for name, value in options.items():
        if isinstance(value, Mapping) and isinstance(settings.get(name), dict):
            settings[name] |= value
        elif value is not None and value not in ([], {}):
            settings[name] = value
            in_file.discard(name)
    config = _checked(data, settings) if is_toml else RunConfig(**settings)
    config = replace(config, in_file=frozenset(in_file), file=data if is_toml else "")
    if not config.scorers:
        raise ConfigError(f"{data}: scorers must be a list of one or more scorers, not []")
    for name, (least, most) in LIMITS.items():
        if (value := getattr(config, name)) is not None and not (least <= value <= most and value < inf):
            kind = "finite" if name == "budget" else "whole"
            allowed = f", {least} or more" if most == inf else f" from {least} to {most}"
            raise ConfigError(f"{data}: {name} must be a {kind} number{allowed}, not {value!r}")
    return config


def _checked(file: str, settings: Mapping[str, Any]) -> RunConfig:
    from pydantic import ConfigDict, ValidationError, create_model  # slow to import

    settings = {name: _one_or_more(name, value) for name, value in settings.items()}
    hints = get_type_hints(RunConfig)
    keys: dict[str, Any] = {name: (hints[name], ...) for name in KEYS if name in settings}
    keys.setdefault("data", (str, ...))
    model = create_model("RunConfig", __config__=ConfigDict(strict=True, extra="forbid"), **keys)
    try:
        return RunConfig(**model.model_validate(settings).model_dump())
    except ValidationError as error:
        raise ConfigError(f"{file}: {_explained(error, settings)}") from None


def _one_or_more(name: str, value: Any) -> Any:
    """A single value where a list is expected, such as `scorers = "contains"`, as a list; any other value unchanged."""
    types = (str, dict) if name == "scorers" else (str,)
    return [value] if name in LISTS and type(value) in types else value


def _read(file: Path) -> dict[str, Any]:
    """The settings in a TOML file, with paths made relative to the current folder."""
    try:
        settings = tomllib.loads(file_text(file))
    except OSError as error:
        raise ConfigError(f"can't read {file}: {error.strerror or error}") from None
    except ValueError as error:
        raise ConfigError(f"{file}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply") from None
    for key in ("data", "out", "html", "markdown", "ledger"):
        not_paths = NO_FILES if key == "ledger" else ("", "-")
        if isinstance(path := settings.get(key), str) and "://" not in path and path.lower() not in not_paths:
            settings[key] = str(file.parent / home_expanded(path))
    if isinstance(run := settings.get("baseline"), str) and is_folder(folder := file.parent / home_expanded(run)):
        settings["baseline"] = str(folder)
    if "target" in settings:
        settings["target"] = _target_beside(file, settings["target"])
    if "user" in settings:
        settings["user"] = _user_beside(file, settings["user"])
    if isinstance(experiment := settings.get("experiment"), dict):
        _place_experiment(file, settings, cast("dict[str, Any]", experiment))
    if "judge" in settings:
        settings["judge"] = _with_logs_beside(file, settings["judge"])
    return settings


def _place_experiment(file: Path, settings: dict[str, Any], experiment: dict[str, Any]) -> None:
    """Make the paths of an experiment relative to the file, and its first dataset that of the settings."""
    for key in experiment:
        if key not in EXPERIMENT_KEYS:
            raise ConfigError(f"{file}: [experiment]: {unknown('key', key, EXPERIMENT_KEYS)}")
    if "data" in experiment:
        if "data" in settings:
            raise ConfigError(f"{file}: it has data and [experiment] data; keep one of them")
        data: Any = experiment["data"]
        files = cast("list[Any]", data) if isinstance(data, list) else [data]
        if all(isinstance(path, str) for path in files):
            experiment["data"] = files = [str(file.parent / home_expanded(str(path))) for path in files]
        settings["data"] = next((path for path in files if isinstance(path, str)), "")
    if isinstance(targets := experiment.get("targets"), list):
        experiment["targets"] = [_target_beside(file, target) for target in cast("list[Any]", targets)]


def _target_beside(file: Path, target: Any) -> Any:
    if isinstance(target, str):
        return _beside(file, target)
    if not isinstance(target, dict):
        return target
    table = cast("dict[str, Any]", target)
    placed = {name: place(file, text) for name, place in _PLACED.items() if isinstance(text := table.get(name), str)}
    return {**table, **placed}


def _tools_beside(file: Path, tools: str) -> str:
    """The tools of a target with their file relative to the file that names the target."""
    kind, separator, recording = tools.partition(":")
    return f"{kind}:{file.parent / home_expanded(recording.strip())}" if separator and recording.strip() else tools


def _user_beside(file: Path, user: Any) -> Any:
    if isinstance(user, str):
        return _beside(file, user)
    if not isinstance(user, dict):
        return user
    table = cast("dict[str, Any]", user)
    placed = {name: _with_logs_beside(file, table[name]) for name in ("judge",) if name in table}
    if isinstance(function := table.get("function"), str):
        placed["function"] = _beside(file, function)
    return {**table, **placed}


def _beside(file: Path, address: str) -> str:
    """A target's address with its file or folder, if it names one, relative to the file that names the target."""
    code, is_code, function = address.rpartition(".py:")
    if is_code:
        return f"{file.parent / f'{code}.py'}:{function}"
    kind, _, folder = address.partition(":")
    return (
        f"replay:{placed}" if kind == "replay" and (placed := file.parent / home_expanded(folder)).is_dir() else address
    )


_PLACED = {"address": _beside, "tools": _tools_beside}
"""The settings of a target that contain a path."""


def _with_logs_beside(file: Path, judge: Any) -> Any:
    """A judge's table with the paths of its logs, and those of its members, relative to the file."""
    if isinstance(judge, list):
        return [_with_logs_beside(file, member) for member in cast("list[Any]", judge)]
    if not isinstance(judge, dict):
        return judge
    table = {name: _with_logs_beside(file, value) for name, value in cast("dict[str, Any]", judge).items()}
    return (
        {**table, "log": str(file.parent / home_expanded(table["log"]))} if isinstance(table.get("log"), str) else table
    )


def _explained(error: ValidationError, settings: Mapping[str, Any]) -> str:
    """What is wrong with each key: `concurrency must be a whole number, not 'eight'`."""
    expected: dict[str, dict[str, None]] = {}
    values: dict[str, object] = {}
    for problem in error.errors():
        key = str(problem["loc"][0])
        if problem["type"] == "extra_forbidden":
            return unknown("key", key, KEYS)
        if problem["type"] == "missing":
            return f"the key {key} is missing"
        # The rest of the location is an item's index or key, or else the member of a union that was tried.
        value, inner = settings[key], problem["loc"][1] if problem["loc"][1:] else None
        name = key
        if isinstance(value, list) and isinstance(inner, int):
            name, value = f"item {inner + 1} of {key}", problem["input"]
        elif isinstance(value, dict) and inner in value:
            name, value = f"{key}.{inner}", problem["input"]
        values[name] = value
        expected.setdefault(name, {})[TYPES.get(problem["type"], problem["msg"])] = None
    problems = (
        f"{name} must be {' or '.join(texts)}, not {masked(values[name])!r}" for name, texts in expected.items()
    )
    return "; ".join(problems)
