"""ShareGPT's conversations: turns with `from` and `value`, which are read as messages in the common form."""

from __future__ import annotations

from evalstone.agents.formats.values import Entries


def is_message(item: Entries) -> bool:
    """Whether this is a turn of a conversation."""
    return "from" in item and "value" in item
