"""Samples from the user's own code: a function, or an object that yields samples, by its address."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, cast

from evalstone._core.addresses import built, find, folder, is_address, of_kind
from evalstone._core.code_identity import is_own_code
from evalstone._core.guards import is_list, is_mapping
from evalstone.datasets.files import READABLE
from evalstone.datasets.tables import is_table
from evalstone.errors import ConfigError, DataError, EvalstoneError, described

LOADER = "a function of no arguments that returns or yields samples, or an iterable of samples"


def names_code(source: object) -> bool:
    """Whether a text is the address of samples, and not the path of a file.

    An existing file of that name comes first, and a name that ends like a data file is one.
    """
    if not isinstance(source, str) or not is_address(source):
        return False
    text = source.strip()
    return not text.lower().removesuffix(".gz").endswith(READABLE) and not (folder() / text).exists()


def samples_at(address: str) -> Any:
    """The samples at an address, as `load` takes them: what the function returned, or the object itself.

    Raises ConfigError if it can't be imported or isn't that; an iterable raises DataError for what its own code raises.
    """
    named = f"the loader {address}"
    value: Any = find(address, "the loader")
    if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value) or inspect.iscoroutine(value):
        raise ConfigError(of_kind(named, LOADER, "Dataset", value))
    if inspect.isclass(value) or not (callable(value) or _are_samples(value)):
        raise ConfigError(of_kind(named, LOADER, "Dataset", value))
    if not _are_samples(value):
        returned = built(named, value, {})
        if not _are_samples(returned):
            raise ConfigError(f"{named} must return samples or yield them, not {type(returned).__name__}")
        value = returned
    whole = is_list(value) or is_mapping(value) or is_table(value) or not is_own_code(type(value))
    return value if whole and not isinstance(value, Iterator) else _guarded(cast("Iterable[Any]", value), named)


def _are_samples(value: Any) -> bool:
    return is_table(value) or (isinstance(value, Iterable) and not isinstance(value, str | bytes | type))


def _guarded(items: Iterable[Any], named: str) -> Iterator[Any]:
    number = 0
    try:
        for item in items:
            number += 1
            yield item
    except (Exception, SystemExit) as error:
        if isinstance(error, EvalstoneError):
            raise
        raise DataError(f"{named} failed after {number} samples: {described(error)}") from error
