"""How much of a model's context window one question may take."""

from __future__ import annotations

from evalstone.questions.base import ROOM, ContextLimits

INSTRUCTIONS = 1500
LONGEST_REPLY = 4096
REPLY_TO_ONE = 80
SAFETY = 0.75


def room_for(window: int | None, max_tokens: int | None = None) -> ContextLimits:
    """The room for passages in a window, and the items that a reply has room for; never more than the usual.

        tokens = 0.75 (window - reply - 1500),   reply = max_tokens, or a quarter of the window, 4096 at most
        items  = reply / 80

    1500 tokens are for instructions and items, 80 for the verdict on an item with its reason, and a quarter is left
    free because tokens are estimated. window: in tokens, None when it is not known. Both are 1 at least.
    """
    reply = max_tokens or (LONGEST_REPLY if window is None else min(LONGEST_REPLY, window // 4))
    items = max(1, min(ROOM.items, reply // REPLY_TO_ONE))
    if window is None:
        return ContextLimits(items=items)
    return ContextLimits(max(1, min(ROOM.tokens, int(SAFETY * (window - reply - INSTRUCTIONS)))), items)
