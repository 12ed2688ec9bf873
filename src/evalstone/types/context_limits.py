"""The context limits of judges: how long one question may be."""

from __future__ import annotations

from dataclasses import dataclass, replace

LONGEST_REPLY = 4096
TOKENS_PER_VERDICT = 80


@dataclass(frozen=True)
class ContextLimits:
    """The maximum size of one question to a judge. Tokens are estimated by `estimated_tokens`."""

    tokens: int = 50_000
    """The maximum tokens of a question that can be split, without the reply."""
    items: int = 25
    """The maximum number of items with a verdict each."""
    whole: bool = False
    """Whether the judge is better at whole responses than at single sentences."""
    longest: int | None = None
    """The maximum tokens of any question, without the reply. A longer one is refused. None if unknown."""
    window: int | None = None
    """The context window, including the reply, for error messages; None if unknown."""

    def less(self, tokens: int) -> ContextLimits:
        """The limits of questions that are asked with this many tokens besides. They are at least 1."""
        longest = None if self.longest is None else max(1, self.longest - tokens)
        return replace(self, tokens=max(1, self.tokens - tokens), longest=longest)

    @classmethod
    def of_window(cls, window: int | None, max_tokens: int | None = None) -> ContextLimits:
        """The limits of a model with this context window, including the reply; None if unknown.

            longest = window - reply,   reply = max_tokens, or a quarter of the window, at most 4096
            items   = reply / 80

        80 tokens are for the verdict on an item, with its reason. All limits are at least 1; tokens and items are at
        most the defaults.
        """
        reply = max_tokens or (LONGEST_REPLY if window is None else min(LONGEST_REPLY, window // 4))
        items = max(1, min(cls.items, reply // TOKENS_PER_VERDICT))
        if window is None:
            return cls(items=items)
        longest = max(1, window - reply)
        return cls(min(cls.tokens, longest), items, longest=longest, window=window)


def narrowest(*limits: ContextLimits) -> ContextLimits:
    """The limits that fit all of several judges."""
    known = [limit for limit in limits if limit.longest is not None]
    shortest = min(known, key=lambda limit: limit.longest or 0, default=ContextLimits())
    return ContextLimits(
        tokens=min(limit.tokens for limit in limits),
        items=min(limit.items for limit in limits),
        whole=all(limit.whole for limit in limits),
        longest=shortest.longest,
        window=shortest.window,
    )


DEFAULT_LIMITS = ContextLimits()
"""The limits of judges that don't define their own."""
UNLIMITED = ContextLimits(tokens=10**9, items=10**9)
"""The limits of judges for which no text is too long."""
