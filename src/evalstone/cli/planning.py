"""From a command line to a checked plan."""

from __future__ import annotations

import math
from typing import Any, cast

from evalstone.api import plan_for
from evalstone.cli.config_file import DEFAULT_SCORERS, RunConfig, numbers, overridden, pairs, read_config
from evalstone.errors import ConfigError, unknown
from evalstone.judges.parse import table_of
from evalstone.report.files import prepare
from evalstone.run.plan import Plan


def judge_spec(judge: Any, base_url: str | None) -> Any:
    """The judge that is named, with the base URL put into it. Raises ConfigError for a URL without a model."""
    if base_url is None:
        return judge
    if isinstance(judge, dict):
        return {**cast("dict[str, Any]", judge), "base_url": base_url}
    if "/" not in str(judge):
        raise ConfigError("--base-url goes with a model as --judge, such as vllm/my-model")
    table = table_of(str(judge))
    if "model" not in table:
        raise ConfigError(
            "--base-url goes with one model; several have a base_url each: vllm/my-model(base_url=http://…)"
        )
    return {**table, "base_url": base_url}


def configured(
    data: str,
    *,
    judge: str | None,
    base_url: str | None,
    mapping: list[str],
    minimum: list[str],
    **given: Any,
) -> RunConfig:
    """The run that a command line asks for. Raises ConfigError for an option that cannot be read."""
    config = read_config(data) if data.endswith(".toml") else RunConfig(data=data)
    floors = {name: _number(value, name) for name, value in pairs(minimum, "--min", "SCORER=MEAN").items()}
    config = overridden(
        config,
        judge=judge_spec(config.judge if judge is None else judge, base_url),
        map={**config.map, **pairs(mapping, "--map", "FIELD=COLUMN", blank=True)},
        minimum={**config.minimum, **numbers(floors, "--min")},
        **given,
    )
    return config if config.scorers else overridden(config, scorers=DEFAULT_SCORERS)


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--min {name} takes a number, not {text!r}") from None


def planned(config: RunConfig, *, asking: bool = True) -> Plan:
    """The plan of a run, checked, with the results folder ready. asking=False leaves the judge's key unchecked."""
    plan = plan_for(config.data, config.scorers, judge=config.judge, mapping=config.map)
    if config.wait and not config.batch:
        raise ConfigError("--wait goes with --batch: without it nothing is left to wait for")
    if config.gate and (config.batch or not config.minimum):
        raise ConfigError("--gate decides each --min while the run goes: it needs one, and does not go with --batch")
    if config.batch:
        if config.fresh:
            raise ConfigError("--batch and --fresh exclude each other: the answers of a batch are read from the ledger")
        from evalstone.judges.providers.batch import batch_api  # noqa: PLC0415 - aiohttp, which only a model needs

        batch_api(plan.judge)
    plan.check(asking=asking and not config.batch)
    scales = {scorer.name: scorer.scale for scorer in plan.scorers}
    for name, floor in config.minimum.items():
        if name not in scales:
            raise ConfigError(f"--min: {unknown('scorer', name, scales)}")
        if not (math.isfinite(floor) and 0 <= floor <= scales[name]):
            raise ConfigError(f"--min {name} must lie in [0, {scales[name]:g}], not {floor}")
    if config.out is not None:
        prepare(config.out)
    return plan
