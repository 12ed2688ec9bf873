"""The type of an attribute that a class of one's own may set as a class attribute, a field or a property.

    class Agent(Target):
        name = "agent"                      # or a field, name: str, or a property

Type checkers have no declaration for this. pyright refuses an attribute where a property is declared, and takes all
three where the type is a union with `Computed`; mypy takes all three where a property is declared. `MYPY` is true for
mypy alone, so that each gets its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

T = TypeVar("T", covariant=True)

MYPY: Literal[False] = False


class Computed(Protocol[T]):
    """A property, or a cached one, that computes a value of this type."""

    if TYPE_CHECKING:

        def __get__(self, instance: Any, owner: Any = None, /) -> T: ...
