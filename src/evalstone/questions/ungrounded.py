"""Texts in a reply that don't come from the judged text: all are named, and a few of many can be left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalstone.errors import ReplyError


class UngroundedItems(ReplyError):
    """Texts in a reply don't come from the input that they quote or restate.

    The message names each of them, so that one correction can replace them all.

    Args:
        problems: Why each text doesn't come from its input, beginning with its place in the reply.
        advice: What the judge should do instead.
        kept: For a list whose ungrounded items may be dropped, the answer without them; otherwise None.
    """

    def __init__(self, problems: Sequence[str], advice: str, kept: tuple[Any, ...] | None = None) -> None:
        shown = [*problems[:MOST_EXPLAINED], *(problem.partition(":")[0] for problem in problems[MOST_EXPLAINED:])]
        super().__init__("; ".join(shown))
        self.problems, self.advice, self.kept = tuple(problems), advice, kept

    @classmethod
    def of_list(cls, problems: Sequence[str], advice: str, kept: Sequence[Any], total: int) -> UngroundedItems:
        """The error of a list with `total` items, of which only `kept` are grounded.

        The others may be dropped if they are at most a tenth of the list, or one of at least three items.
        """
        few = total >= LEAST_TO_DROP and total - len(kept) <= max(1, total // 10)
        return cls(problems, advice, tuple(kept) if few else None)


MOST_EXPLAINED = 10
"""The ungrounded texts of a reply that an error explains. It only names the places of any others."""
LEAST_TO_DROP = 3
