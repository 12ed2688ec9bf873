"""Numbers in a judge's reply."""

from __future__ import annotations

import json
from typing import Any

from evalstone.errors import ReplyError

LARGEST = 1e100


def number_in(given: Any, where: str, *, bounded: bool = True) -> float:
    """A number, in [0, 1] when bounded; never clamped. Raises ReplyError for anything else, text and booleans too."""
    wanted = "a number from 0 to 1" if bounded else "a number"
    if isinstance(given, bool) or not isinstance(given, int | float) or not _fits(given, bounded):
        raise ReplyError(f"{where}: {wanted} was expected, not {json.dumps(given, ensure_ascii=False)[:60]}")
    return float(given)


def _fits(given: float, bounded: bool) -> bool:
    return 0 <= given <= 1 if bounded else abs(given) < LARGEST


def number_schema() -> dict[str, Any]:
    """The JSON schema of a number from 0 to 1."""
    return {"type": "number", "minimum": 0, "maximum": 1}
