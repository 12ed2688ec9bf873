"""Values: classes whose subclasses are frozen dataclasses by themselves.

What a scorer, a question, a judge, a target or a user does follows from its fields. They make its identity: results of
different parameters are never taken for one another. A parameter outside of the fields would be in no identity, so a
subclass can't have one.
"""

from __future__ import annotations

from abc import ABCMeta
from dataclasses import dataclass, field, fields
from typing import Any, dataclass_transform

from evalstone.errors import ConfigError


class ValueMeta(ABCMeta):
    """The class of values. It refuses a second `@dataclass`, which would lose what `field(…)` says about the fields."""

    def __setattr__(cls, name: str, value: Any) -> None:
        if name == "__dataclass_params__" and name in vars(cls):
            raise ConfigError(f"{cls.__name__} is a dataclass without a decorator: remove @dataclass")
        super().__setattr__(name, value)


def as_value(cls: type[Any], *, kw_only: bool = True, init: bool = True, eq: bool = True, repr: bool = True) -> None:
    """Make a class a frozen dataclass.

    Args:
        cls: The class.
        kw_only: Whether its fields are keyword-only.
        init: False for a class that sets all fields in an `__init__` of its own.
        eq: Whether values with equal fields are equal.
        repr: Whether the fields are shown.

    Raises:
        ConfigError: It has an `__init__`, an `InitVar`, a field with a mutable default or one without a type.
    """
    name = cls.__name__
    if init and "__init__" in vars(cls):
        raise ConfigError(
            f"{name} defines __init__, whose parameters would not be in its identity: declare each parameter as a "
            "field, such as limit: int = 5, and compute what follows from them in __post_init__"
        )
    try:
        dataclass(frozen=True, kw_only=kw_only, init=init, eq=eq, repr=repr)(cls)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name} can't be a frozen dataclass: {error}") from None
    shown = {each.name for each in fields(cls)}
    for each, declared in vars(cls)["__dataclass_fields__"].items():
        if each not in shown and "InitVar" in str(declared.type):  # the others are class variables
            raise ConfigError(f"{name}: {each} is an InitVar, which is not in its identity: declare it as a field")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Value(metaclass=ValueMeta):
    """A base class whose subclasses are frozen dataclasses with keyword-only fields, without a decorator."""

    def __init_subclass__(
        cls, *, kw_only: bool = True, init: bool = True, eq: bool = True, repr: bool = True, **more: Any
    ) -> None:
        super().__init_subclass__(**more)
        as_value(cls, kw_only=kw_only, init=init, eq=eq, repr=repr)
