"""The IDs of runs."""

from __future__ import annotations

from datetime import datetime

_DIGITS = 12
"""The hexadecimal digits after the time: of 10,000 runs that began in the same second, two have the same ID with a
probability of 2e-7."""
RUN_ID = rf"\d{{8}}-\d{{6}}-[0-9a-f]{{{_DIGITS}}}"
"""The pattern of an ID."""


def run_id(began: datetime, digits: str) -> str:
    """The ID of a run: `20261128-130500-c8f2261d9a04`.

    began: When it began. digits: At least 12 hexadecimal digits, at random, or of a hash of what the run is of.
    """
    return f"{began:%Y%m%d-%H%M%S}-{digits[:_DIGITS]}"
