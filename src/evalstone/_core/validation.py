"""Declarative validation of settings and stored values: the annotations of a dataclass say what each field may be."""

from __future__ import annotations

import functools
from typing import Any, TypeVar, cast, get_type_hints

from evalstone.errors import ConfigError, DataError

T = TypeVar("T")


def check_fields(value: object) -> None:
    """Check each field of a dataclass instance against its annotation, constraints in `Annotated` included.

    Meant for `__post_init__`.

    Raises:
        ConfigError: a field has another type or is out of range.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - its import takes longer than that of all of evalstone

    for name, adapter in _field_adapters(type(value)).items():
        try:
            adapter.validate_python(getattr(value, name))
        except ValidationError as error:
            raise ConfigError(_explain(error, name)) from None


def read_json(kind: type[T], text: str | bytes) -> T:
    """A dataclass instance from JSON text; keys that are no fields are ignored.

    Raises:
        DataError: the text is not JSON, or a value does not fit its field.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

    try:
        return TypeAdapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        raise DataError(_explain(error)) from None


@functools.cache
def _field_adapters(kind: type[Any]) -> dict[str, Any]:
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415

    config = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    hints = get_type_hints(kind, include_extras=True)
    return {name: cast("Any", TypeAdapter(hint, config=config)) for name, hint in hints.items()}


def _explain(error: Any, field: str = "") -> str:
    """The first problem, as in `pairs.1.value must be a finite number, not nan`."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(map(str, (*filter(None, [field]), *first["loc"])))
    if first["type"] == "missing":
        return f"{place} is missing"
    if not place:
        return str(first["msg"])
    return f"{place} {first['msg'].replace('Input should be', 'must be')}, not {first['input']!r:.60}"
