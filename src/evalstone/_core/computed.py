"""The type of an attribute that a class of one's own may set as a class attribute, a field or a property.

    class Agent(Target):
        name = "agent"                      # or a field, name: str, or a property

Type checkers have no declaration for this. mypy takes all three where a property is declared, and pyright where the
type is a union with `Computed`. So it is declared twice: first for mypy, to which the first declaration counts, and
then for pyright, to which the last one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

T = TypeVar("T", covariant=True)


class Computed(Protocol[T]):
    """A property, or a cached one, that computes a value of this type."""

    if TYPE_CHECKING:

        def __get__(self, instance: Any, owner: Any = None, /) -> T: ...
