"""Names of judges of a test's own, without the hashes of their code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast


def bare(value: Any) -> Any:
    """A name without the hash of its judge's code; lists, tuples and mappings by their items."""
    if isinstance(value, str):
        return re.sub(r"#[0-9a-f]{8}", "", value)
    if isinstance(value, Mapping):
        return {bare(key): bare(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        items = [bare(item) for item in cast("list[Any]", value)]
        return items if isinstance(value, list) else tuple(items)
    return value
