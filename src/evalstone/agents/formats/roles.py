"""The roles of messages in several libraries, and of the items without a role between messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalstone._core.names import normal
from evalstone.agents.formats.parts import ITEM_ROLES
from evalstone.agents.formats.values import entries_of
from evalstone.types.messages import ROLES, Role

ROLE_KEYS = ("role", "from", "type")
_ROLE_NAMES: Mapping[str, Role] = {
    **{role: role for role in ROLES},
    "human": "user",
    "ai": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "developer": "system",
    "function": "tool",
}
_ROLE_TYPES: Mapping[str, str] = {
    **{name: name for name in ("human", "ai", "system", "tool")},
    **{f"{name}messagechunk": name for name in ("human", "ai", "system", "tool")},
}


def role_of(item: Mapping[str, Any]) -> Role | None:
    """The role of a message; None if it has no known role."""
    for key in ROLE_KEYS:
        name = item.get(key) if item.get(key) != "signal" else _signal_role(item)
        if isinstance(name, str):
            known = _ROLE_TYPES.get(name.lower()) if key == "type" else name.lower()
            if known is not None and known in _ROLE_NAMES:
                return _ROLE_NAMES[known]
    return None


def item_role(item: Mapping[str, Any]) -> Role | None:
    """The role of an item of OpenAI's Responses API that has none; None for messages."""
    kind = normal(str(item.get("type", "")))
    return None if role_of(item) and kind != "additionaltools" else ITEM_ROLES.get(kind)


def _signal_role(item: Mapping[str, Any]) -> Any:
    """The role of a message with Mastra's role `signal`: its tag, else its type."""
    in_content: Any = entries_of(item.get("content")).get("metadata")
    tags = entries_of(entries_of(item.get("metadata") or in_content).get("signal"))
    return tags.get("tagName") or tags.get("type") or item.get("type")
