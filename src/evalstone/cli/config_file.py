"""A run as a TOML file describes it; options on the command line override the file.

    data = "answers.jsonl"
    judge = "openai/gpt-5.1"                # or a table: [judge] model = "...", temperature = 0.2
    scorers = ["faithfulness", { name = "context_relevance", scale = 10, penalties = { unused = 0.2 } }]
    out = "results"
    ledger = "sqlite:///runs.db"
    budget = 5.0

    [map]
    output = "answer"

    [fail_under]
    faithfulness = 0.8

Paths in a file are relative to that file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalstone.errors import ConfigError, unknown
from evalstone.ledger.base import DEFAULT_LEDGER

DEFAULT_SCORERS = ("faithfulness", "context_relevance")


class RunConfig(BaseModel):
    """The settings of one run."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    data: str
    """Path of the samples."""
    scorers: list[str | dict[str, Any]] = Field(default=list(DEFAULT_SCORERS), min_length=1)
    """Names, specs such as `context_relevance(scale=10)`, or tables."""
    judge: str | dict[str, Any] = "lexical"
    """Name, spec or table of the judge."""
    limit: int | None = Field(default=None, ge=1)
    """Score only the first samples."""
    map: dict[str, str] = {}
    """Sample field to column."""
    out: str | None = None
    """Results folder."""
    html: str | None = None
    """File of the HTML report."""
    ledger: str = DEFAULT_LEDGER
    """Path or URL of the ledger."""
    name: str = ""
    """Name of the run."""
    tags: list[str] = []
    """Tags of the run."""
    concurrency: int = Field(default=32, ge=1)
    """Maximum number of concurrent judge calls."""
    budget: float | None = Field(default=None, ge=0)
    """Maximum cost in US dollars."""
    no_cache: bool = False
    """Whether to ignore cached judge answers."""
    batch: bool = False
    """Whether to use the provider's batch API."""
    wait: bool = False
    """Whether to wait until the batches are done."""
    fail_under: dict[str, float] = {}
    """Lowest acceptable mean by scorer, where higher is better."""
    fail_over: dict[str, float] = {}
    """Highest acceptable mean by scorer, where lower is better."""
    gate: bool = False
    """Whether the thresholds are tested sequentially while the run goes on."""
    top: int = Field(default=3, ge=0)
    """How many of the worst samples to show."""


def load_config(data: str, **options: Any) -> RunConfig:
    """The settings of a run from a data file or a TOML file, and the command line's options.

    Options that are None or empty leave the file's setting; mappings are merged. Raises ConfigError naming the file,
    the key, what was expected and what came.
    """
    settings: dict[str, Any] = _read(Path(data)) if data.endswith(".toml") else {"data": data}
    for name, value in options.items():
        if isinstance(value, Mapping) and isinstance(settings.get(name), dict):
            settings[name] |= value
        elif value is not None and value not in ([], {}):
            settings[name] = value
    try:
        return RunConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(f"{data}: {_explained(error, settings)}") from None


def _read(file: Path) -> dict[str, Any]:
    """The settings in a TOML file, with paths made relative to the current folder."""
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from None
    for key in ("data", "out", "html", "ledger"):
        if isinstance(path := settings.get(key), str) and "://" not in path and path != "-":
            settings[key] = str(file.parent / path)
    if "judge" in settings:
        settings["judge"] = _with_logs_beside(file, settings["judge"])
    return settings


def _with_logs_beside(file: Path, judge: Any) -> Any:
    """A judge's table with the paths of its logs, and those of its members, relative to the file."""
    if isinstance(judge, list):
        return [_with_logs_beside(file, member) for member in cast("list[Any]", judge)]
    if not isinstance(judge, dict):
        return judge
    table = {name: _with_logs_beside(file, value) for name, value in cast("dict[str, Any]", judge).items()}
    return {**table, "log": str(file.parent / table["log"])} if isinstance(table.get("log"), str) else table


def _explained(error: ValidationError, settings: Mapping[str, Any]) -> str:
    """What is wrong with each key: `concurrency should be a valid integer, not 'eight'`."""
    expected: dict[str, list[str]] = {}
    values: dict[str, object] = {}
    for found in error.errors():
        key = str(found["loc"][0])
        if found["type"] == "extra_forbidden":
            return unknown("key", key, RunConfig.model_fields)
        if found["type"] == "missing":
            return f"the key {key} is missing"
        # What follows in the location is an item's place, or else the member of a union that was tried.
        path = found["loc"][:2] if isinstance(settings[key], list | dict) else (key,)
        name = ".".join(map(str, path))
        values[name] = found["input"]
        expected.setdefault(name, []).append(found["msg"].removeprefix("Input should be "))
    problems = (f"{name} should be {' or '.join(texts)}, not {values[name]!r}" for name, texts in expected.items())
    return "; ".join(problems)
