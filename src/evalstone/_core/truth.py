"""What is good, and what can't be said: verdicts as True, False or None, and results that `if` and `assert` refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, NoReturn

PASSED: Mapping[str, bool | None] = {
    "pass": True,
    "fail": False,
    "better": True,
    "equivalent": True,
    "worse": False,
    "stable": True,
    "no drift so far": True,
    "drifted": False,
    "inconclusive": None,
    "too few": None,
}
"""Whether a verdict is a good one; None if it is undecided."""


def all_passed(parts: Iterable[bool | None]) -> bool | None:
    """Whether all of them passed: False if any didn't, None if there are none or any is undecided."""
    every = set(parts)
    return False if False in every else True if every == {True} else None


class NoTruthValue:
    """A result that can't be tested as a condition: as an object it would be true, also if it stands for a failure.

    A result that says whether something is good has `passed`: True, False, or None while that is undecided.

    Raises:
        TypeError: It is tested as a condition. The message names what to test instead.
    """

    _tested_by: ClassVar[str] = "one of its fields"
    """What to test instead, without `passed`."""

    def __bool__(self) -> NoReturn:
        tested = ".passed" if hasattr(self, "passed") else self._tested_by
        raise TypeError(f"{type(self).__name__} has no truth value; test {tested}")
