"""Names of columns and of fields of formats, which tools write in different ways."""

from __future__ import annotations

import functools
import re

_SEPARATORS = re.compile(r"[-_\s]+")


@functools.lru_cache(maxsize=1024)
def normal(name: str) -> str:
    """A name without case and separators: `User_Input` and `userInput` are the same."""
    return _SEPARATORS.sub("", name).casefold()
