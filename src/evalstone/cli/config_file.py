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

    [min]
    faithfulness = 0.8

Paths in a file are relative to that file.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_type_hints

from evalstone._core.addresses import beside
from evalstone._core.display import named
from evalstone._core.files import file_text, home_expanded, is_folder
from evalstone._core.front_ends import COMMAND_LINE, TOML, Setting
from evalstone._core.guards import is_array, is_object
from evalstone._core.redaction import masked
from evalstone._core.sizes import MOST_TRIALS
from evalstone.cli import completion, options
from evalstone.cli.completion import FILE, FOLDER
from evalstone.cli.options import Declared, Outputs, argument, declared, option
from evalstone.cli.thresholds import Thresholds
from evalstone.cli.values import positive
from evalstone.errors import ConfigError, Problem, absent, invalid, unknown
from evalstone.results.gate_criteria import CRITERIA

if TYPE_CHECKING:
    from pydantic import ValidationError

    from evalstone.datasets.reading import Reading

TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
}
"""The types of values, by pydantic's name of the error about another one."""


def _default_ledger() -> str:
    from evalstone.ledger.base import DEFAULT_LEDGER  # slow to import

    return DEFAULT_LEDGER


@dataclass(frozen=True, kw_only=True)
class RunConfig(Thresholds, Outputs):
    """The settings of a run, which are the options of `evalstone run` and the keys of the file."""

    data: Annotated[
        str,
        argument(
            "DATA",
            f"{options.SAMPLES}, or a TOML file that describes the run.",
            complete=FILE,
            is_path=True,
        ),
    ]
    scorers: Annotated[
        list[str | dict[str, Any]],
        option("--scorer -s SCORER", "Options", options.A_SCORER, complete=completion.scorers),
    ] = field(default_factory=lambda: ["faithfulness", "context_relevance"])
    name: Annotated[str, option("--name NAME", "Options", "Name of the run.")] = ""
    tags: Annotated[list[str], option("--tag TAG", "Options", "A tag of the run.")] = field(default_factory=list[str])
    ledger: Annotated[str, options.LEDGER] = field(default_factory=_default_ledger)
    map: Annotated[dict[str, str | list[str]], options.MAP] = field(default_factory=dict[str, str | list[str]])
    split: Annotated[dict[str, str], options.SPLIT] = field(default_factory=dict[str, str])
    encoding: Annotated[str | None, options.ENCODING] = None
    sheet: Annotated[str | None, options.SHEET] = None
    keep_reasoning: options.KeepReasoning = False
    limit: Annotated[int | None, option("--limit N", "Data", "Score only the first N samples.", min=1)] = None
    target: Annotated[
        str | dict[str, Any] | None,
        option(
            "--target ADDRESS",
            "Target",
            "The system to evaluate: my_app:agent, path/agent.py:agent, cmd:COMMAND, a URL, a model such as "
            "openai/gpt-5.1, or replay:RUN (a results folder, or a run in the ledger).",
            entry="address",
            complete=completion.models,
        ),
        option(
            "--target-version V",
            "Target",
            "The target's version. Later runs with the same version reuse its answers.",
            entry="version",
        ),
        option(
            "--target-timeout SECONDS",
            "Target",
            "Maximum time for one answer of the target.",
            entry="timeout",
            default="120",
            parse=positive,
        ),
        option(
            "--target-concurrency N",
            "Target",
            "Maximum number of concurrent target calls.",
            entry="max_concurrency",
            type=int,
            default="8",
            min=1,
        ),
        option(
            "--target-tools KIND:FILE",
            "Target",
            "Record or replay the tools of a function: record:FILE calls them and records the results, replay:FILE "
            "returns the recorded results.",
            entry="tools",
        ),
    ] = None
    trials: Annotated[
        int, option("--trials N", "Target", "How often the target answers each sample.", min=1, max=MOST_TRIALS)
    ] = 1
    user: Annotated[
        str | dict[str, Any] | list[str] | None,
        option(
            "--user USER",
            "Target",
            "The user in conversations with the target: a model such as openai/gpt-5.1, which pursues the goal in each "
            "sample's metadata, or a function such as my_app:user.",
            complete=completion.models,
        ),
    ] = None
    judge: Annotated[str | dict[str, Any], options.JUDGE] = "lexical"
    base_url: options.BaseUrl = None
    budget: options.Budget = None
    cache: options.Cache = True
    concurrency: options.Concurrency = 32
    batch: Annotated[
        bool,
        option("--batch/--no-batch", "Running", "Use the provider's batch API: half price, results within a day."),
    ] = False
    batch_files: Annotated[
        str | None,
        option(
            "--batch-files FOLDER",
            "Running",
            "Write the judge's requests to files here, for vllm run-batch or a provider's file upload, and read the "
            "results from files beside them.",
            complete=FOLDER,
            is_path=True,
        ),
    ] = None
    wait: Annotated[
        bool,
        option("--wait/--no-wait", "Running", "With --batch or --batch-files, wait until the batches are done."),
    ] = False
    dry_run: options.DryRun = False
    sequential: Annotated[
        bool,
        option(
            "--sequential/--no-sequential",
            "Thresholds",
            "Test the thresholds of means and regressions during the run, and stop once they are decided.",
        ),
    ] = False
    look: Annotated[
        int | None, option("--look N", "Statistics", "The number of this look at growing data.", default="1", min=1)
    ] = None
    out: options.Out = None
    keep: Annotated[
        Literal["all", "evidence", "scores"] | None,
        option(
            "--keep",
            "Output",
            "Write the records as Parquet, and all of each, all but the judge calls, or only the scores.",
        ),
    ] = None
    engine: Annotated[
        str | None,
        option(
            "--engine ENGINE",
            "Running",
            "Score blocks of samples on an engine: ray, or ray:ADDRESS of a cluster. Needs --out.",
        ),
    ] = None
    shard: Annotated[
        str | None,
        option(
            "--shard I/N",
            "Running",
            "Score only part I of N, from 1 on, into the results folder that all parts share. Then: evalstone merge.",
            in_file=False,
        ),
    ] = None
    top: options.Top = 3
    quiet: options.Quiet = False
    verbose: Annotated[
        bool, option("--verbose -v", "Output", "Print each score to stderr as it arrives.", in_file=False)
    ] = False
    otel: options.Otel = False
    experiment: dict[str, Any] | None = None
    """A matrix of targets, their parameters and datasets; see `cli.experiment`. It has no option."""
    file: str = ""
    """The TOML file, if there is one."""
    in_file: frozenset[str] = frozenset()
    """The settings from the file that no option overrides."""

    @classmethod
    def load(cls, data: str, **given: Any) -> RunConfig:
        """The settings of a run from a data file or a TOML file, and the options given on the command line.

        An option replaces the file's setting; mappings are merged; None keeps it. Raises ConfigError with the file, the
        key, the expected value and the actual one.
        """
        is_toml = data.endswith(".toml")
        settings: dict[str, Any] = _read(Path(data)) if is_toml else {"data": data}
        in_file = set(settings) if is_toml else set[str]()
        target: dict[str, Any] = given.get("target") or {}
        if target and "address" not in target and isinstance(settings.get("target"), str):
            settings["target"] = {"address": settings["target"]}
        elif "address" in target:
            settings.pop("target", None)  # its settings are for another target
        only_given = {one.name: given.pop(one.name) for one in declared(cls) if one.name in given and not one.in_file}
        for name, value in given.items():
            if isinstance(value, Mapping) and isinstance(settings.get(name), dict):
                settings[name] |= value
            elif value is not None:
                settings[name] = value
                in_file.discard(name)
        for name in in_file & CRITERIA.keys():
            if settings[name] in ({}, []):
                raise ConfigError(f"{data}: {name} is empty, so it checks nothing: name a scorer, or remove {name}")
        config = _checked(data, settings) if is_toml else cls(**settings)
        config = replace(config, **only_given, in_file=frozenset(in_file), file=data if is_toml else "")
        if not config.scorers:
            raise ConfigError(f"{data}: ", invalid("scorers", "a list of one or more scorers", []))
        for one in declared(cls):
            value = None if one.key in only_given or one.whole is None else getattr(config, one.key, None)
            if value is not None:
                _check_limits(f"{data}: {one.key}", one, value)
        return config

    @property
    def reading(self) -> Reading:
        """How the data is read. Raises ConfigError as `Reading` does."""
        from evalstone.datasets.reading import Reading

        return Reading(map=self.map, split=self.split, encoding=self.encoding, sheet=self.sheet)

    @property
    def batching(self) -> bool:
        """Whether the judge is asked in batches."""
        return self.batch or self.batch_files is not None

    def folder(self, setting: str) -> Path:
        """The folder of the modules that a setting names."""
        return Path(self.file).parent if setting in self.in_file else Path()

    def named(self, setting: str, beside: str = "") -> str:
        """A setting's name in messages: its key if it, or the setting `beside`, is in the file; else its option.
        A setting that is on by default is named as turned off."""
        one = next(one for one in declared(RunConfig) if one.name == setting)
        off = one.type is bool and one.default is True
        if (beside or setting) in self.in_file:
            return f"{setting} = false" if off else setting
        return one.flags[1] if off else one.flag

    @contextmanager
    def naming_file(self, *settings: str) -> Generator[None]:
        """Within the block, an error about these settings names the file if one of them is in it, and writes settings
        as the file's keys, if it has them."""
        try:
            yield
        except ConfigError as error:
            first = next((part.name for part in error.parts if isinstance(part, Setting)), "")
            if first in self.in_file:
                options = {one.name for one in declared(RunConfig) if not one.in_file}
                error.parts = (
                    "".join(
                        (COMMAND_LINE if isinstance(part, Setting) and part.name in options else TOML).written([part])
                        for part in error.parts
                    ),
                )
            if self.in_file.intersection(settings) and not str(error).startswith(f"{self.file}: "):
                error.located(f"{self.file}: ")
            raise


EXPERIMENT_KEYS = ("data", "targets", "parameters")


def keys() -> tuple[str, ...]:
    """The keys of the file."""
    return (*dict.fromkeys(one.name for one in declared(RunConfig) if one.in_file), "experiment")


def _check_limits(setting: str, one: Declared, value: float) -> None:
    low, high = one.option.min, one.option.max
    if value < inf and (low is None or value >= low) and (high is None or value <= high):
        return
    allowed = "" if low is None else f", {low} or more" if high is None else f" from {low} to {high}"
    raise ConfigError(invalid(setting, f"a {('whole' if one.whole else 'finite')} number{allowed}", value))


def _checked(file: str, settings: Mapping[str, Any]) -> RunConfig:
    from pydantic import ConfigDict, ValidationError, create_model  # slow to import

    settings = {name: _one_or_more(name, value) for name, value in settings.items()}
    hints = get_type_hints(RunConfig)
    needed: dict[str, Any] = {name: (hints[name], ...) for name in keys() if name in settings or name == "data"}
    model = create_model("RunConfig", __config__=ConfigDict(strict=True, extra="forbid"), **needed)
    try:
        return RunConfig(**model.model_validate(settings).model_dump())
    except ValidationError as error:
        raise ConfigError(f"{file}: {_explained(error, settings)}") from None


def _one_or_more(name: str, value: Any) -> Any:
    """A single value where a list is expected, such as `scorers = "contains"`, as a list; any other value unchanged."""
    members = next((one.of_list for one in declared(RunConfig) if one.name == name), ())
    return [value] if type(value) in members else value


def _read(file: Path) -> dict[str, Any]:
    """The settings in a TOML file, with paths made relative to the current folder."""
    import tomllib  # slow to import

    from evalstone.ledger.base import NO_FILES

    try:
        settings = tomllib.loads(file_text(file))
    except OSError as error:
        raise ConfigError(f"can't read {file}: {error.strerror or error}") from None
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{file}: ", error) from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply") from None
    for key, value in settings.items():
        if _has_nul(value):
            raise ConfigError(f"{file}: {named(key)} has a NUL character")
    for key in (one.name for one in declared(RunConfig) if one.option.is_path):
        not_paths = NO_FILES if key == "ledger" else ("", "-")
        if key == "data" and _names_code(file, settings.get(key)):
            continue
        if isinstance(path := settings.get(key), str) and "://" not in path and path.lower() not in not_paths:
            settings[key] = str(file.parent / home_expanded(path))
    if isinstance(run := settings.get("baseline"), str) and is_folder(folder := file.parent / home_expanded(run)):
        settings["baseline"] = str(folder)
    if "target" in settings:
        settings["target"] = _target_beside(file, settings["target"])
    if isinstance(user := settings.get("user"), dict) and "judge" in user:
        judge = _with_files_beside(file, cast("dict[str, Any]", user)["judge"])
        settings["user"] = {**cast("dict[str, Any]", user), "judge": judge}
    if isinstance(experiment := settings.get("experiment"), dict):
        _place_experiment(file, settings, cast("dict[str, Any]", experiment))
    if "judge" in settings:
        settings["judge"] = _with_files_beside(file, settings["judge"])
    return settings


def _has_nul(value: Any) -> bool:
    """Whether a text has the character that no path, address or text for a model can have."""
    if is_array(value) or is_object(value):
        return any(map(_has_nul, value.values() if is_object(value) else value))
    return isinstance(value, str) and "\0" in value


def _names_code(file: Path, data: Any) -> bool:
    """Whether data are the address of own code, which is looked for beside the file."""
    from evalstone.datasets.own_code import names_code  # slow to import

    with beside(file.parent):
        return names_code(data)


def _place_experiment(file: Path, settings: dict[str, Any], experiment: dict[str, Any]) -> None:
    """Make the paths of an experiment relative to the file, and its first dataset that of the settings."""
    for key in experiment:
        if key not in EXPERIMENT_KEYS:
            raise ConfigError(f"{file}: [experiment]: ", unknown("key", key, EXPERIMENT_KEYS))
    if "data" in experiment:
        if "data" in settings:
            raise ConfigError(f"{file}: it has data and [experiment] data; keep one of them")
        data: Any = experiment["data"]
        files = cast("list[Any]", data) if isinstance(data, list) else [data]
        if all(isinstance(path, str) for path in files):
            experiment["data"] = files = [
                path if _names_code(file, path) else str(file.parent / home_expanded(path)) for path in files
            ]
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


def _beside(file: Path, address: str) -> str:
    """A target's address with the folder of a run, if it names one, relative to the file that names the target."""
    kind, _, folder = address.partition(":")
    return (
        f"replay:{placed}" if kind == "replay" and (placed := file.parent / home_expanded(folder)).is_dir() else address
    )


_PLACED = {"address": _beside, "tools": _tools_beside}
"""The settings of a target that contain a path."""


def _with_files_beside(file: Path, judge: Any) -> Any:
    """A judge's table with the paths of its log and its alignment, and those of its members, relative to the file."""
    if isinstance(judge, list):
        return [_with_files_beside(file, member) for member in cast("list[Any]", judge)]
    if not isinstance(judge, dict):
        return judge
    table = {name: _with_files_beside(file, value) for name, value in cast("dict[str, Any]", judge).items()}
    paths = {name: value for name in ("log", "align") if isinstance(value := table.get(name), str)}
    return table | {name: str(file.parent / home_expanded(path)) for name, path in paths.items()}


def _unknown_key(key: str) -> Problem:
    """An unknown key, with what may be meant: another key, or what an option sets."""
    for one in declared(RunConfig):
        if one.option.flags and f"--{key.replace('_', '-')}" in one.flags:
            if one.in_file:
                return unknown("key", key, keys(), meant=(one.key,))
            return unknown("key", key, keys(), meant=(f"the option {one.flag}",))
    return unknown("key", key, keys(), meant=options.MEANT.get(key, ()))


def _explained(error: ValidationError, settings: Mapping[str, Any]) -> str | Problem:
    """What is wrong with each key: `concurrency must be a whole number, not 'eight'`."""
    expected: dict[str, dict[str, None]] = {}
    values: dict[str, object] = {}
    for problem in error.errors():
        key = str(problem["loc"][0])
        if problem["type"] == "extra_forbidden":
            return _unknown_key(key)
        if problem["type"] == "missing":
            return absent(key, f"the key {key} is missing")
        # The rest of the location is an item's index or key, or else the member of a union that was tried.
        value, inner = settings[key], problem["loc"][1] if problem["loc"][1:] else None
        name = key
        if isinstance(value, list) and isinstance(inner, int):
            name, value = f"item {inner + 1} of {key}", problem["input"]
        elif isinstance(value, dict) and inner in value:
            name, value = f"{key}.{inner}", problem["input"]
        values[name] = value
        words: str = problem.get("ctx", {}).get("expected", problem["msg"])
        if key == "pass_rate" and inner is not None:  # the same for what is no list, and for what is in it
            expected[name] = {"a score and a share, such as [0.8, 0.9]": None}
            values[name] = value if not isinstance(settings[key], dict) else settings[key][inner]
            continue
        expected.setdefault(name, {})[TYPES.get(problem["type"], words)] = None
    problems = (
        f"{name} must be {' or '.join(texts)}, not {masked(values[name])!r}" for name, texts in expected.items()
    )
    return "; ".join(problems)
