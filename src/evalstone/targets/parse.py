"""Targets by address."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from evalstone._core.display import excerpt
from evalstone.errors import ConfigError
from evalstone.judges.providers.limits import Limits
from evalstone.targets.base import CONCURRENCY, FunctionTarget, Target

FORMS = "module:function"
_LIMITS = ("max_concurrency", "requests_per_minute", "max_requests")


def parse_target(spec: object) -> Target:
    """A target from a function, an address, a table of settings with an `address` or `function`, or a Target.

    Raises:
        ConfigError: There is no such target, or a setting is unknown or out of range.
    """
    if isinstance(spec, Target):
        return spec
    if isinstance(spec, Mapping):
        settings = dict(cast("Mapping[str, Any]", spec))
        address = settings.pop("address", None) or settings.pop("function", None)
        return _target(address, settings)
    return _target(spec, {})


def _target(address: object, settings: dict[str, Any]) -> Target:
    limits = {name: settings.pop(name) for name in _LIMITS if name in settings}
    if limits:
        settings["limits"] = Limits(**{"max_concurrency": CONCURRENCY, **limits})
    if callable(address):
        return FunctionTarget(function=address, **settings)
    if isinstance(address, str) and ":" in address:
        return FunctionTarget(function=_imported(address), label=address, **settings)
    raise ConfigError(f"a target is a function or an address ({FORMS}), not {excerpt(address)}")


def _imported(address: str) -> Any:
    """What `module:name` names. The current folder is searched first, as for `python -m`."""
    module, _, path = address.partition(":")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        value: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise ConfigError(f"the target {address} can't be imported: {error}") from None
        raise ConfigError(f"there is no module {module}, which the target {address} names") from None
    for name in path.split("."):
        if not hasattr(value, name):
            raise ConfigError(f"the module {module} has no {path}, which the target {address} names")
        value = getattr(value, name)
    return value
