"""Targets by address.

    my_app:agent                        a function, a graph or an agent of an installed module, or of one in the
                                        current folder
    path/to/agent.py:answer             a function of a file
    cmd:python agent.py                 a command
    https://host/v1/chat/completions    an HTTP service
    openai/gpt-5.1                      a language model
    replay:results/run1                 the answers of a recorded run: its folder, or its ID or name in the ledger

A table has an address and settings. Only the kind of target that an address names is imported.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

from evalstone._core.addresses import file_of, find, is_address
from evalstone._core.code_identity import is_own_code
from evalstone._core.declarations import NAME, check_argument
from evalstone._core.display import excerpt, quoted
from evalstone._core.environment import expanded_url
from evalstone._core.files import is_folder
from evalstone._core.guards import is_mapping
from evalstone._core.redaction import masked, register_settings
from evalstone.errors import ConfigError, Problem, invalid, unknown
from evalstone.models.catalog import split_model
from evalstone.models.limits import Limits
from evalstone.targets.base import CONCURRENCY, Target
from evalstone.targets.function import FunctionTarget

if TYPE_CHECKING:
    from evalstone.targets.replay import RecordedRun

FORMS = "module:function, file.py:function, cmd:COMMAND, https://…, provider/model or replay:RUN"

_HOST = re.compile(r"(localhost|[\w-]+(\.[\w-]+)+):\d+(/|$)")
"""A host with a port, where a module with a function is expected."""

_LIMITS = ("max_concurrency", "requests_per_minute", "max_requests")


FindRun: TypeAlias = "Callable[[str], RecordedRun] | None"
"""A function that finds a run by its id or name; None without a ledger."""


def parse_target(spec: object, *, find_run: FindRun = None) -> Target:
    """A target from a function, an address, a table of settings with an `address` or `function`, or a Target.

    A table can have the settings of its kind of target, and the limits `max_concurrency`, `requests_per_minute` and
    `max_requests`.

    Args:
        spec: The target.
        find_run: Finds the run of `replay:RUN` if that is not a folder.

    Raises:
        ConfigError: There is no such target, or a setting is unknown or out of range.
    """
    if isinstance(spec, Target):
        if is_own_code(type(spec)):
            check_argument("name", spec.name, Annotated[str, NAME], type(spec).__name__)
        return spec
    register_settings(spec)
    if not is_mapping(spec):
        return _target(spec, {}, find_run)
    settings = {str(name): value for name, value in spec.items()}
    named = [name for name in ("address", "function") if settings.get(name) not in (None, "")]
    if len(named) != 1:
        what = "has both" if named else f"has {', '.join(sorted(settings)) or 'nothing'}"
        raise ConfigError(f"a target's table needs either an address or a function; it {what}")
    subject = settings.pop(named[0])
    others = {name: value for name, value in settings.items() if name not in ("address", "function")}
    return _target(subject, others, find_run)


def names_code(address: str) -> bool:
    """Whether a target's address names own code: `module:name` or `path/file.py:name`."""
    return is_address(address) and address.partition(":")[0].strip().lower() not in ("cmd", "replay")


def _target(address: object, settings: dict[str, Any], find_run: FindRun) -> Target:
    if not isinstance(address, str):
        return _of_value(address, settings)
    address = address.strip()
    scheme, _, rest = address.partition(":")
    if scheme.lower() == "cmd":
        from evalstone.targets.command import CommandTarget  # noqa: PLC0415

        return _built(CommandTarget, "command", rest.strip(), settings)
    url = expanded_url(address, "the target's address") if address.startswith("$") else address
    if url.lower().startswith(("http://", "https://")):
        from evalstone.targets.http import HTTPTarget  # noqa: PLC0415

        return _built(HTTPTarget, "url", address, settings)
    if scheme == "replay":
        return _replay(rest.strip(), settings, find_run)
    if ".py:" in address:
        return _of_value(find(address, "the target"), settings, address)
    if _is_command(address):
        raise ConfigError(f"{quoted(masked(address))} looks like a command; a command is written cmd:{masked(address)}")
    if address.endswith(".py"):
        raise ConfigError(f"name the function of the file: {address}:NAME")
    if _HOST.match(address):
        raise ConfigError(f"the URL {masked(address)} needs its scheme: http://{masked(address)}, or https://…")
    if "/" in scheme:
        return _model(address, settings)
    if is_address(address):
        return _of_value(find(address, "the target"), settings, address)
    raise ConfigError(_no_target(masked(address)))


def _replay(run: str, settings: dict[str, Any], find_run: FindRun) -> Target:
    from evalstone.targets.replay import ReplayTarget  # noqa: PLC0415

    if run and not is_folder(run):
        if find_run is None:
            raise ConfigError(
                f"there is no results folder {quoted(run)} to replay, and no ledger to look for such a run in"
            )
        return _built(ReplayTarget, "run", find_run(run), settings)
    return _built(ReplayTarget, "folder", run, settings)


def _no_target(value: object) -> Problem:
    allowed = f"a function or an address ({FORMS})"
    return invalid("target", allowed, value).worded(f"a target is {allowed}, not {excerpt(value)}")


def _model(name: str, settings: dict[str, Any]) -> Target:
    from evalstone.models.model import LanguageModel  # noqa: PLC0415
    from evalstone.targets.model import ModelTarget  # noqa: PLC0415

    split_model(name)
    own = {each.name for each in dataclasses.fields(ModelTarget) if each.init}
    names = [each.name for each in dataclasses.fields(LanguageModel) if each.init and each.name not in own]
    names.remove("total_timeout")  # a target has one timeout
    model = LanguageModel(name, **{key: value for key, value in settings.items() if key in names})
    rest = {key: value for key, value in settings.items() if key not in names}
    return ModelTarget(model=model, **_arguments(ModelTarget, rest, "model", known=names))


def _is_command(address: str) -> bool:
    """Whether this is the command line of a program, or the path of one that isn't Python."""
    first, *more = address.split() or [""]
    path = first.startswith((".", "/", "~")) and not first.endswith(".py") and ".py:" not in address
    return path or (bool(more) and shutil.which(first) is not None)


def _of_value(value: Any, settings: dict[str, Any], address: str = "") -> Target:
    """A target from a function, a callable object, a class of callable objects, an object of a framework, or a Target.
    address: where it was found."""
    if inspect.isclass(value) and issubclass(value, Target):
        arguments = _arguments(value, settings)
        try:
            return value(**arguments)
        except TypeError as error:
            raise ConfigError(f"the target {address or value.__name__} can't be made: ", error) from None
    if isinstance(value, Target):
        return dataclasses.replace(value, **_arguments(type(value), settings)) if settings else value
    if inspect.isclass(value) and any("__call__" in vars(each) for each in cast("type[Any]", value).__mro__):
        try:
            value = value()
        except TypeError as error:
            name = address or cast("type[Any]", value).__name__
            raise ConfigError(
                f"the target {name} is a class that needs arguments ({error}); give an instance"
            ) from None
    if not callable(value):
        kind = cast("type[Any]", type(value))
        if kind.__module__ == "builtins":
            raise ConfigError(_no_target(value))
        from evalstone.targets.frameworks import asked  # noqa: PLC0415

        file = file_of(address) if address else ""
        address = address or f"{kind.__module__}:{kind.__qualname__}"
        value = asked(value, address, file)
    label = {"label": address} if address and "label" not in settings else {}
    return _built(FunctionTarget, "function", value, {**label, **settings})


def _built(kind: type[Target], subject: str, value: Any, settings: Mapping[str, Any]) -> Target:
    return cast("Callable[..., Target]", kind)(**{subject: value}, **_arguments(kind, settings, subject))


def _arguments(
    kind: type[Target], settings: Mapping[str, Any], subject: str = "", known: Sequence[str] = ()
) -> dict[str, Any]:
    """The settings as arguments, with the limits combined into one. known: other settings, for errors."""
    names = [each.name for each in dataclasses.fields(kind) if each.init and each.name != subject]
    arguments: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in names and name not in _LIMITS:
            near = [each for each in (*names, *known, *_LIMITS) if each != "limits"]
            raise ConfigError("the target has an ", unknown("setting", name, near))
        (arguments if name in names else limits)[name] = value
    if limits:
        if "limits" in arguments:
            raise ConfigError(f"give the limits of the target once: limits or {', '.join(limits)}")
        arguments["limits"] = Limits(**{"max_concurrency": CONCURRENCY, **limits})
    return arguments
