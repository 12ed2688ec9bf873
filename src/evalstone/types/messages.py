"""Messages of a conversation, with their tool calls and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from evalstone._core.display import excerpt
from evalstone._core.validation import UnknownKind, is_kind
from evalstone._core.values import NamesArguments
from evalstone.errors import ConfigError, invalid

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
Origin: TypeAlias = Literal["request", "memory"]
ORIGINS: tuple[Origin, ...] = ("request", "memory")
FIELD_ROLES: Mapping[str, Role] = {"input": "user", "output": "assistant", "instructions": "system"}
"""The role whose messages have the text of a sample field."""


@dataclass(frozen=True, kw_only=True)
class ToolCall(metaclass=NamesArguments):
    """A tool call of an agent, with its result."""

    _usual: ClassVar[tuple[str, ...]] = ("name", "arguments")

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    result: Any = None
    id: str = ""
    state: Literal["result", "call", "error", "partial"] = "result"
    """"result": the call returned; "call": it has no result; "error": it failed; "partial": its arguments are
    incomplete, so it was never executed."""
    error: str | None = None


@dataclass(frozen=True)
class Usage(metaclass=NamesArguments):
    """The tokens of a message or answer, including retries after malformed replies."""

    input: int = 0
    output: int = 0
    cached: int = 0
    """The part of `input` that the provider read from its prompt cache."""
    requests: int = 0
    """The number of replies."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.requests + other.requests,
        )


NO_USAGE = Usage()


@dataclass(frozen=True, kw_only=True)
class Message(metaclass=NamesArguments):
    """One message of a conversation, with the tool calls in it.

    Raises:
        ConfigError: The role is unknown, or the content is not text.
    """

    _usual: ClassVar[tuple[str, ...]] = ("role", "content")

    role: Role
    content: str = ""
    tool_calls: Sequence[ToolCall] = ()
    reasoning: str | None = None
    attachments: Sequence[str] = ()
    """The kinds of attachments: "image", "audio", "video", "file", and the types of parts that are not known."""
    usage: Usage | None = None
    """The tokens of the message; None if unknown."""
    origin: Origin | None = field(default=None, compare=False)
    """Where a message that the agent was given comes from: its "request", or its "memory". None for a message that the
    agent wrote, and if unknown. Not compared, as it isn't content."""
    continued: bool = field(default=False, compare=False)
    """Whether it is a step of a longer message, which goes on in the next one. Not compared, as it isn't content."""
    notes: Sequence[str] = ()
    """What its reader has to say of it: parts of unknown types, two accounts of a tool call that differ. Each note
    begins with its reason, up to the first colon."""

    def __post_init__(self) -> None:
        if self.role not in ROLES and not isinstance(self.role, UnknownKind):
            raise ConfigError(invalid("message role", f"one of {', '.join(ROLES)}", self.role))
        if self.origin is not None and not is_kind(self.origin, ORIGINS):
            raise ConfigError(invalid("message origin", f"one of {', '.join(ORIGINS)}", self.origin))
        if not isinstance(self.content, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                invalid(
                    "message content", "text", self.content, f"{type(self.content).__name__}: {excerpt(self.content)}"
                )
            )
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))
        object.__setattr__(self, "attachments", tuple(self.attachments))
        object.__setattr__(self, "notes", tuple(self.notes))
