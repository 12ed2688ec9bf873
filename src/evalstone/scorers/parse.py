"""Scorers from what a command line or a file can hold: a name, a name with parameters, a table."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
from collections.abc import Collection, Mapping
from typing import Any, cast

from evalstone.errors import ConfigError, unknown
from evalstone.scorers.base import Scorer
from evalstone.scorers.custom import GEval, LLMClassifier

# An evaluator's options that mean nothing in a scorer: who is asked, and what becomes of its errors.
OF_THE_RUN = ("judge", "on_error")
KINDS: Mapping[str, type[Scorer]] = {"classify": LLMClassifier, "criteria": GEval}


def scorer_from(spec: str | Mapping[str, Any], known: Mapping[str, type[Scorer]]) -> Scorer:
    """A scorer from `faithfulness`, `context_relevance(scale=10)`, or {"name": "faithfulness", "scale": 10}.

    Your own: {"kind": "classify", "name": "polite", "question": "…"}, or `my_scorers:polite` for one in a module.
    A parameter that belongs to a scorer's evaluator goes there: {"name": "fact_check", "threshold": 0.9}.
    Hyphens count as underscores. Raises ConfigError for an unknown scorer or parameter, naming the nearest.
    """
    if isinstance(spec, str):
        if ":" in spec.partition("(")[0]:
            return _imported(spec)
        name, parameters = _parsed(spec)
    else:
        parameters = dict(spec)
        if "kind" in parameters:
            return _own(parameters.pop("kind"), parameters)
        name = parameters.pop("name", None)
        if not isinstance(name, str):
            raise ConfigError(f'a scorer\'s table needs a name, such as name = "faithfulness"; it has {sorted(spec)}')
    name = name.strip().replace("-", "_")
    if name in KINDS:
        return _own(name, parameters)
    if name not in known:
        raise ConfigError(unknown("scorer", name, known))
    return _made(name, known[name], parameters)


def _imported(path: str) -> Scorer:
    module, _, attribute = path.strip().partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"the scorer {path} cannot be imported: {error}") from None
    made = found() if inspect.isclass(found) and issubclass(found, Scorer) else found
    if not isinstance(made, Scorer):
        raise ConfigError(f"{path} is no scorer, but {type(made).__name__}")
    return made


def _own(name: Any, parameters: Mapping[str, Any]) -> Scorer:
    if name not in KINDS:
        raise ConfigError(unknown("kind of scorer", str(name), KINDS))
    return _made(name, KINDS[name], parameters)


def _made(name: str, kind: type[Scorer], parameters: Mapping[str, Any]) -> Scorer:
    fields = {f.name: f for f in dataclasses.fields(kind) if f.init}
    evaluator = fields.pop("evaluator", None)
    if evaluator is not None:
        return _made_with(name, kind, parameters, fields, evaluator.default)
    for parameter in parameters:
        if parameter not in fields:
            raise ConfigError(f"{name}: {unknown('parameter', parameter, fields)}")
    required = [
        f.name for f in fields.values() if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if absent := [parameter for parameter in required if parameter not in parameters]:
        raise ConfigError(f"{name} needs {' and '.join(absent)}: {name}({', '.join(f'{p}=…' for p in absent)})")
    try:
        return kind(**{parameter: _nested(kind, parameter, value) for parameter, value in parameters.items()})
    except TypeError as error:
        raise ConfigError(f"{name}: {error}") from None


def _made_with(
    name: str, kind: type[Scorer], parameters: Mapping[str, Any], fields: Collection[str], evaluator: Any
) -> Scorer:
    """A scorer that holds an evaluator; the parameters that it lacks itself are its evaluator's."""
    given = dict(parameters)
    if isinstance(given.get("evaluator"), type(evaluator)):
        evaluator = given.pop("evaluator")
    theirs = {f.name for f in dataclasses.fields(evaluator) if f.init and f.name not in OF_THE_RUN}
    for parameter in given:
        if parameter not in fields and parameter not in theirs:
            raise ConfigError(f"{name}: {unknown('parameter', parameter, {*fields, *theirs})}")
    try:
        changed = {parameter: value for parameter, value in given.items() if parameter not in fields}
        own = {parameter: value for parameter, value in given.items() if parameter in fields}
        own["evaluator"] = dataclasses.replace(evaluator, **changed)
        return kind(**own)
    except TypeError as error:
        raise ConfigError(f"{name}: {error}") from None


def _parsed(spec: str) -> tuple[str, dict[str, Any]]:
    name, bracket, rest = spec.partition("(")
    if not bracket:
        return name, {}
    told = f"{spec!r} cannot be read as a scorer; expected a form such as context_relevance(scale=10)"
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
            raise ConfigError(told)
        parameters = {k.arg: ast.literal_eval(k.value) for k in call.keywords if k.arg is not None}
    except (SyntaxError, ValueError, TypeError):
        raise ConfigError(told) from None
    if len(parameters) < len(call.keywords):
        raise ConfigError(f"{told}, with each parameter named once")
    return name, parameters


def _nested(kind: type[Scorer], parameter: str, value: Any) -> Any:
    """A table given for a parameter that is a dataclass of its own, as that dataclass."""
    field = next(f for f in dataclasses.fields(kind) if f.name == parameter)
    factory = field.default_factory
    if not isinstance(value, Mapping) or not (isinstance(factory, type) and dataclasses.is_dataclass(factory)):
        return cast(object, value)
    given = cast("Mapping[str, Any]", value)
    inner = {f.name for f in dataclasses.fields(factory)}
    for key in given:
        if key not in inner:
            raise ConfigError(f"{kind.name}: {parameter}: {unknown('parameter', str(key), inner)}")
    return factory(**given)
