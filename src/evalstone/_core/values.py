"""Values: classes whose subclasses are frozen dataclasses by themselves.

What a scorer, a question, a judge, a target or a user does follows from its fields. They make its identity: results of
different parameters are never taken for one another. A parameter outside of the fields would be in no identity, so a
subclass can't have one.
"""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from inspect import get_annotations, getattr_static
from typing import TYPE_CHECKING, Any, Protocol, cast, dataclass_transform

from evalstone._core.display import count, joined
from evalstone.errors import ConfigError, unknown

if TYPE_CHECKING:
    _Meta = ABCMeta
else:
    _Meta = type(Protocol)  # a class may then derive from a protocol, too

_OPTIONS = ("eq", "init", "kw_only", "repr")
_FIXED = {"frozen", "match_args", "order", "slots", "unsafe_hash", "weakref_slot"}
"""Options of `@dataclass` that values don't have."""


class NamesArguments(type):
    """The class of classes that people make values of: an argument that is unknown or missing is a ConfigError that
    names it, instead of Python's TypeError."""

    if not TYPE_CHECKING:  # a type checker reads the parameters of `__init__`

        @property
        def __signature__(cls) -> inspect.Signature:
            signature = inspect.signature(cls.__init__)
            return signature.replace(parameters=[*signature.parameters.values()][1:])

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().__call__(*args, **kwargs)
            except TypeError:
                if (problem := _problem(cls, args, kwargs)) is None:
                    raise
            raise problem


class ValueMeta(NamesArguments, _Meta):
    """The class of values. It refuses a second `@dataclass`, which would lose what `field(…)` says about the fields, an
    option that values don't have, and a field that is set on the class, which would change nothing."""

    __instancecheck__ = ABCMeta.__instancecheck__  # values are no protocols, whose checks are slower
    __subclasscheck__ = ABCMeta.__subclasscheck__

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **options: Any) -> Any:
        if fixed := sorted(options.keys() & _FIXED):
            raise ConfigError(f"{name}: values have no option {fixed[0]}, only {joined(_OPTIONS)}")
        return super().__new__(mcls, name, bases, namespace, **options)

    def __setattr__(cls, name: str, value: Any) -> None:
        if name == "__dataclass_params__" and name in vars(cls):
            raise ConfigError(f"{cls.__name__} is a dataclass without a decorator: remove @dataclass")
        kind: Any = cls
        if "__dataclass_fields__" in vars(cls) and name in {each.name for each in fields(kind)}:
            raise ConfigError(f"{name} is a field: set on {cls.__name__}, it would change nothing; pass {name}=…")
        super().__setattr__(name, value)


def as_value(cls: type[Any], *, kw_only: bool = True, init: bool = True, eq: bool = True, repr: bool = True) -> None:
    """Make a class a frozen dataclass.

    Args:
        cls: The class.
        kw_only: Whether its fields are keyword-only.
        init: False for a class that sets all fields in an `__init__` of its own, or of a parent.
        eq: Whether values with equal fields are equal. False for values that are equal to themselves alone.
        repr: Whether the fields are shown.

    Raises:
        ConfigError: It has an `__init__`, or inherits one that it would lose; an `InitVar`, a field with a mutable
            default, one without a type, or one that no `__init__` sets.
    """
    name = cls.__name__
    if init:
        _check_no_init(cls)
    documented = cls.__doc__
    required = _required_in_place_of_a_property(cls)
    for each in required:
        setattr(cls, each, field())  # else what is inherited would be its default
    if not eq and "__eq__" not in vars(cls):
        setattr(cls, "__eq__", object.__eq__)  # noqa: B010 - a parent's compares the parent's fields only
        setattr(cls, "__hash__", object.__hash__)  # noqa: B010
    try:
        dataclass(frozen=True, kw_only=kw_only, init=init, eq=eq, repr=repr)(cls)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} can't be a frozen dataclass: {error}") from None
    for each in required:
        type.__setattr__(cls, each, Required(each))  # else it could not be set, where the property would be in the way
    cls.__doc__ = documented  # else the dataclass writes its parameters there, which would be shown as what it is
    for each in fields(cls):
        setter = next((base for base in cls.__mro__ if each.name in vars(base)), None)
        if setter is None or isinstance(setter_value := vars(setter)[each.name], Required):
            continue
        if setter_value is not each.default:
            raise ConfigError(
                f"{name}: the field {each.name} would not be what {setter.__name__} sets: declare it in {name} with a "
                f"type, {each.name}: TYPE = VALUE"
            )
    shown = {each.name for each in fields(cls)}
    for each, declared in vars(cls)["__dataclass_fields__"].items():
        if each not in shown and "InitVar" in str(declared.type):  # the others are class variables
            raise ConfigError(f"{name}: {each} is an InitVar, which is not in its identity: declare it as a field")
    if (
        not init
        and (unset := get_annotations(cls).keys() & {each.name for each in fields(cls)})
        and "__init__" not in vars(cls)
    ):
        raise ConfigError(f"{name} has init=False and no __init__, which would set {joined(sorted(unset))}")


class Required:
    """A field without a default in a class that inherits a property of the same name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, value: object, owner: object = None) -> object:
        return self if value is None else vars(value)[self._name]

    def __set__(self, value: object, content: object) -> None:
        vars(value)[self._name] = content


def _required_in_place_of_a_property(cls: type[Any]) -> list[str]:
    """The fields that a class declares without a default, and for which it inherits a property."""
    declared = [name for name, kind in get_annotations(cls).items() if "ClassVar" not in str(kind)]
    inherited: dict[str, object] = {name: getattr_static(cls, name, None) for name in declared if name not in vars(cls)}
    return [name for name, each in inherited.items() if hasattr(type(each), "__get__") and not inspect.isroutine(each)]


def _problem(cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ConfigError | None:
    """What is wrong with the arguments of a value, or with its class; None if they aren't what is wrong."""
    name = cls.__name__
    if lacking := sorted(getattr(cls, "__abstractmethods__", ())):
        base = next(base for base in reversed(cls.__mro__) if lacking[0] in getattr(base, "__abstractmethods__", ()))
        if base is cls:
            return ConfigError(f"{name} is a base class: derive a class that defines {joined(lacking)}")
        return ConfigError(f"{name} lacks {joined(lacking)}, which every {base.__name__} defines")
    parameters = [*inspect.signature(cls.__init__).parameters.values()][1:]
    known = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD]
    if len(known) == len(parameters) and (strange := [each for each in kwargs if each not in known]):
        return ConfigError(f"{name}: ", unknown("parameter", strange[0], known))
    places = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    if len(args) > len(places) and not any(each.kind is each.VAR_POSITIONAL for each in parameters):
        written = [*places, *(f"{each}=…" for each in _by_name(cls, parameters, len(args) - len(places)))]
        passed = count(len(args), "value")
        return ConfigError(
            f"{name} takes its parameters by name: write {name}({', '.join(written)}), not {passed} without a name"
        )
    passed = {*places[: len(args)], *kwargs}
    required = [each.name for each in parameters if each.default is each.empty and each.name in known]
    if missing := [each for each in required if each not in passed]:
        return ConfigError(f"{name} needs {joined(missing)}")
    return None


def _by_name(cls: Any, parameters: Sequence[inspect.Parameter], number: int) -> list[str]:
    """The parameters that so many values without a name were probably meant for: those that the class names in
    `_usual`, or else the required ones and its own."""
    named = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    required = [each.name for each in parameters if each.name in named and each.default is each.empty]
    declared: Mapping[str, Any] = vars(cast("type[Any]", cls))
    usual: Sequence[str] = declared.get("_usual", ())
    if usual:
        return list(usual)
    own = [each for each in get_annotations(cls) if each in named]
    return [*dict.fromkeys([*required, *own, *named])][: max(number, len(required))]


def require_callable(cls: type[Any], method: str, signature: str, arguments: int, *names: str) -> None:
    """Check that a method which a class defines can be called with so many arguments, and those with these names.

    signature: how it is written, for the error.

    Raises:
        ConfigError: It can't.
    """
    defined = vars(cls).get(method)
    if not inspect.isfunction(defined):
        return
    try:
        inspect.signature(defined).bind(*range(arguments + 1), **dict.fromkeys(names))
    except TypeError as error:
        raise ConfigError(f"{cls.__name__}.{method} can't be called: {error}; write {signature}") from None


def _check_no_init(cls: type[Any]) -> None:
    """Raise ConfigError for a class with an `__init__`, or one that inherits an `__init__` that is not generated."""
    name = cls.__name__
    owner: Any = next(base for base in cls.__mro__ if "__init__" in vars(base))
    if owner is cls:
        raise ConfigError(
            f"{name} defines __init__, whose parameters would not be in its identity: declare each parameter as a "
            "field, such as limit: int = 5, and compute what follows from them in __post_init__, after "
            "super().__post_init__()"
        )
    if isinstance(owner, ValueMeta) and not vars(owner)["__dataclass_params__"].init:
        raise ConfigError(f"{name} would lose {owner.__name__}.__init__, which sets its fields: add init=False")
    if owner is not object and not is_dataclass(owner) and not getattr(owner, "_is_protocol", False):
        raise ConfigError(
            f"{name} would lose {owner.__name__}.__init__, whose parameters would not be in its identity: declare each "
            f"parameter as a field of {name}, such as limit: int = 5"
        )


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Value(metaclass=ValueMeta):
    """A base class whose subclasses are frozen dataclasses with keyword-only fields, without a decorator."""

    def __init_subclass__(
        cls, *, kw_only: bool = True, init: bool = True, eq: bool = True, repr: bool = True, **more: Any
    ) -> None:
        super().__init_subclass__(**more)
        as_value(cls, kw_only=kw_only, init=init, eq=eq, repr=repr)
