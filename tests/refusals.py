"""What a setting may be, as the error for a wrong value says it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

from evalstone.errors import ConfigError


@contextmanager
def refused(field: str, allowed: str = "") -> Generator[None]:
    """The code within raises an error for this setting. allowed: what it may be."""
    with pytest.raises(ConfigError, match=field) as error:
        yield
    assert error.value.field == field
    assert error.value.allowed == allowed if allowed else error.value.allowed
