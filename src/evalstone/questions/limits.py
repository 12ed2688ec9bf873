"""How much one question to a judge may hold."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_REPLY = 4096
TOKENS_PER_VERDICT = 80


@dataclass(frozen=True)
class ContextLimits:
    """What one question to a judge may hold at most, in tokens as `estimated_tokens` has them."""

    tokens: int = 50_000
    """Tokens of a question that can be asked in parts: everything but the reply."""
    items: int = 25
    """Items that are judged one by one."""
    whole: bool = False
    """A response is better asked about at once than sentence by sentence."""
    longest: int | None = None
    """Tokens of any question, everything but the reply; a longer one is refused. None where nobody knows."""
    window: int | None = None
    """Tokens of question and reply together, for messages; None where nobody knows."""

    @classmethod
    def of_window(cls, window: int | None, max_tokens: int | None = None) -> ContextLimits:
        """The limits of a model that takes so many tokens, reply included; None where nobody knows.

            longest = window - reply,   reply = max_tokens, or a quarter of the window, 4096 at most
            items   = reply / 80

        80 tokens are for the verdict on an item with its reason. At least 1 of each, and never more than the defaults.
        """
        reply = max_tokens or (LONGEST_REPLY if window is None else min(LONGEST_REPLY, window // 4))
        items = max(1, min(cls.items, reply // TOKENS_PER_VERDICT))
        if window is None:
            return cls(items=items)
        longest = max(1, window - reply)
        return cls(min(cls.tokens, longest), items, longest=longest, window=window)


def narrowest(*limits: ContextLimits) -> ContextLimits:
    """What each of several judges can take."""
    known = [one for one in limits if one.longest is not None]
    shortest = min(known, key=lambda one: one.longest or 0, default=ContextLimits())
    return ContextLimits(
        tokens=min(one.tokens for one in limits),
        items=min(one.items for one in limits),
        whole=all(one.whole for one in limits),
        longest=shortest.longest,
        window=shortest.window,
    )


DEFAULT_LIMITS = ContextLimits()
"""The limits of a judge that says nothing else."""
