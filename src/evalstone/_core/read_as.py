"""The type of a field that holds what it reads: `judge: ReadAs[JudgeSpec | None, Judge | None]` takes a name and is a
Judge once the value is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from typing import Self

Given = TypeVar("Given", contravariant=True)
Held = TypeVar("Held", covariant=True)


class ReadAs(Generic[Given, Held]):
    """A field of a dataclass that takes one type and holds another, into which `__post_init__` converts it.

    For type checkers, which take the type of a descriptor's `__set__` for the parameter. No field is one when it runs.
    """

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: Any) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: Any) -> Held: ...
        def __get__(self, instance: Any, owner: Any) -> Any: ...

        def __set__(self, instance: Any, value: Given) -> None: ...


NOTHING: Any = None
"""None as the default of such a field."""
EMPTY: Any = ()
"""No items as the default of such a field."""
