"""What a run is asked to do, from a TOML file and from the command line; the command line wins.

    data = "answers.jsonl"
    judge = "openai/gpt-5.1"                # or a table: [judge] model = "…", temperature = 0.2, prices = [1.25, 10.0]
                                            # or judges of judges: "cascade(lexical, openai/gpt-5.1, threshold=0.9)"
    scorers = ["faithfulness", { name = "context_relevance", scale = 10, penalties = { unused = 0.2 } }]
    out = "results"
    ledger = "sqlite:///runs.db"
    concurrency = 32
    budget = 5.0                            # US dollars
    fresh = false
    gate = false                            # true decides [min] by a gate, and stops when it is clear
    batch = true                            # through the provider's batch API; wait = true stays until it is done
    worst = 3                               # samples to show

    [map]
    output = "answer"

    [min]
    faithfulness = 0.8

Paths in a file are relative to that file.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from evalstone.api import DEFAULT_LEDGER
from evalstone.errors import ConfigError, unknown

DEFAULT_SCORERS = ("faithfulness", "context_relevance")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run, as asked for. `minimum`: by scorer name, the mean below which the run does not pass."""

    data: str
    scorers: tuple[Any, ...] = ()
    judge: Any = "lexical"
    out: str | None = None
    ledger: str = DEFAULT_LEDGER
    concurrency: int = 32
    map: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    minimum: Mapping[str, float] = field(default_factory=lambda: dict[str, float]())
    budget: float | None = None
    fresh: bool = False
    gate: bool = False
    batch: bool = False
    wait: bool = False
    worst: int = 3


_KINDS: Mapping[str, tuple[type, ...]] = {
    "data": (str,),
    "scorers": (list,),
    "judge": (str, dict),
    "out": (str,),
    "ledger": (str,),
    "concurrency": (int,),
    "map": (dict,),
    "min": (dict,),
    "budget": (int, float),
    "fresh": (bool,),
    "gate": (bool,),
    "batch": (bool,),
    "wait": (bool,),
    "worst": (int,),
}


def read_config(path: str | Path) -> RunConfig:
    """A run from a TOML file. Raises ConfigError naming the file, the key, what came and what was expected."""
    file = Path(path)
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {file}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from None
    for key, value in data.items():
        if key not in _KINDS:
            raise ConfigError(f"{file}: {unknown('key', key, _KINDS)}")
        if not isinstance(value, _KINDS[key]) or (isinstance(value, bool) and bool not in _KINDS[key]):
            wanted = " or ".join(kind.__name__ for kind in _KINDS[key])
            raise ConfigError(f"{file}: {key} must be {wanted}, not {type(value).__name__}")
    if "data" not in data:
        raise ConfigError(f"{file}: the key data, with the path of the samples, is missing")
    settings = dict(data)
    settings["data"] = _beside(file, data["data"])
    settings["scorers"] = tuple(data.get("scorers", ()))
    settings["minimum"] = numbers(settings.pop("min", {}), str(file))
    if "judge" in data:
        settings["judge"] = _logs_beside(file, data["judge"])
    if "out" in data:
        settings["out"] = _beside(file, data["out"])
    if "ledger" in data and "://" not in data["ledger"]:
        settings["ledger"] = _beside(file, data["ledger"])
    return RunConfig(**settings)


def _logs_beside(file: Path, judge: Any) -> Any:
    """A judge's table with the paths of its logs, and those of its members, relative to the file."""
    if isinstance(judge, list):
        return [_logs_beside(file, one) for one in cast("list[Any]", judge)]
    if not isinstance(judge, dict):
        return judge
    table = {name: _logs_beside(file, value) for name, value in cast("dict[str, Any]", judge).items()}
    return {**table, "log": _beside(file, table["log"])} if isinstance(table.get("log"), str) else table


def _beside(file: Path, path: str) -> str:
    return str(file.parent / path)


def numbers(given: Mapping[str, Any], where: str) -> dict[str, float]:
    """Scorer names to numbers. Raises ConfigError for a value that is no number."""
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"{where}: the minimum of {name} must be a number, not {value!r}")
    return {name.replace("-", "_"): float(value) for name, value in given.items()}


def pairs(texts: list[str], option: str, form: str, *, blank: bool = False) -> dict[str, str]:
    """`["output=answer"]` as a mapping; blank allows `output=`. Raises ConfigError without an equals sign, or twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and (value or blank)):
            raise ConfigError(f"{option} takes {form}, not {text!r}")
        if (before := found.setdefault(name.strip(), value.strip())) != value.strip():
            raise ConfigError(f"{option} {name.strip()} is asked for twice: {before} and {value.strip()}")
    return found


def overridden(config: RunConfig, **given: Any) -> RunConfig:
    """The config with those values put in that are not None and not empty."""
    changed = {name: value for name, value in given.items() if value is not None and value not in ((), {})}
    return dataclasses.replace(config, **changed)
