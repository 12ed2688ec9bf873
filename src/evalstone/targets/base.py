"""Targets: systems that answer samples, with one call per sample and trial."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from evalstone._core.computed import Computed
from evalstone._core.declarations import Range, check_settings
from evalstone._core.display import joined
from evalstone._core.values import Value, require_callable
from evalstone.agents.reasoning import answered_messages
from evalstone.models.limits import Limits
from evalstone.types import Message, Sample

INPUTS = ("input", "messages", "context", "instructions", "metadata")
"""The sample fields that a target can get. Fields about the expected answer are not among them."""
PARAMETERS = (*INPUTS, "trial", "thread")
CONCURRENCY = 8
"""The default limit on concurrent calls of a target."""


class Target(Value):
    """A system that answers samples.

    Raises:
        ConfigError: A setting is out of range.
    """

    version: str = ""
    """The version of the system. With a version, later runs reuse its answers. Without one, only a resumed run does,
    because changes of the system can't be detected."""
    timeout: Annotated[float, Range(0, exclusive=True)] = 120.0
    """Maximum seconds for one answer."""
    limits: Limits = field(default_factory=lambda: Limits(max_concurrency=CONCURRENCY))
    """Limits on concurrent calls and on calls per minute."""
    files_per_call: ClassVar[int] = 1
    """How many files a call opens, such as connections. The limit on open files lowers the concurrency."""

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...  # pyright: ignore[reportRedeclaration]

        name: str | Computed[str] = field(init=False)  # noqa: F811
    else:

        @property
        @abstractmethod
        def name(self) -> str:
            """The name of the target in results, one line: a class attribute, a field, or a property where it follows
            from fields."""

    inputs: ClassVar[tuple[str, ...]] = INPUTS
    """The sample fields that it gets."""
    required: ClassVar[tuple[str, ...]] = ()
    """The sample fields that it requires."""
    holds_conversations: ClassVar[bool] = False
    """Whether one call returns a whole conversation, with any number of turns."""
    follows_conversations: ClassVar[bool] = True
    """Whether it can follow a conversation: it gets the messages or a thread."""
    keeps_threads: ClassVar[bool] = True
    """Whether it may remember a conversation on its own. After a crash, such a conversation starts over."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**{"repr": False, **options})
        require_callable(cls, "call", "async def call(self, sample, *, trial, thread)", 1, "trial", "thread")

    def __post_init__(self) -> None:
        check_settings(self)

    def __repr__(self) -> str:
        # Without the settings: a command or a URL may hold a secret, which the name masks.
        return f"<{type(self).__name__} {self.identity}>"

    @property
    def identity(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}" if self.version else self.name

    def lacking(self, sample: Sample) -> list[str]:
        """The fields that the target requires and the sample lacks."""
        values = {name: getattr(sample, name) for name in self.required if name != "messages"}
        absent = [name for name, value in values.items() if value is None]
        return [*absent, "messages"] if "messages" in self.required and not conversation(sample) else absent

    def check(self, trials: int = 1) -> None:
        """Raise ConfigError for problems that would make every call fail, before the first call, except those of keys.
        trials: the number of trials."""

    def check_keys(self) -> None:
        """Raise ConfigError for a key that a call needs and that is missing, or can't be sent."""

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Keep connections open for a run."""
        yield

    @asynccontextmanager
    async def conversation(self, sample: Sample) -> AsyncGenerator[Prepared]:
        """Around the calls for the turns of a conversation."""
        yield Prepared(self.call, sample)

    @abstractmethod
    async def call(self, sample: Sample, *, trial: int, thread: str) -> object:
        """Ask the system once, and return what it returned.

        Args:
            sample: What to answer.
            trial: Which of several trials this is, from 1.
            thread: The id of a conversation that nobody has used before.

        Raises:
            TargetUnreachable: It can't be reached, which says nothing about how it answers.
            TargetRefused: It refuses access, or doesn't exist. This ends the run unless it has answered before.
                Anything else that is raised fails this sample and trial.
        """


@dataclass
class Prepared:
    """A target that is set up for one trial or conversation."""

    call: Callable[..., Awaitable[object]]
    """`Target.call`, once everything is set up."""
    sample: Sample
    """The sample as the target gets it."""
    state: Any = None
    """The final state, once the conversation has ended."""


def conversation(sample: Sample) -> tuple[Message, ...]:
    """The conversation that a target continues: the sample's messages up to the last user message, since the rest is a
    recorded answer. Without a user message, the input is appended as one."""
    last = max((index for index, message in enumerate(sample.messages) if message.role == "user"), default=None)
    if last is not None:
        return tuple(sample.messages[: last + 1])
    own = () if sample.input is None else (Message(role="user", content=sample.input),)
    return (*sample.messages, *own)


def parameter_values(sample: Sample, *, trial: int, thread: str) -> dict[str, Any]:
    """The value of each parameter of a target. Earlier answers have no reasoning in front, as clients of models send
    them."""
    values = {name: getattr(sample, name) for name in INPUTS}
    return {**values, "messages": answered_messages(conversation(sample)), "trial": trial, "thread": thread}


def absent(target: Target, sample: Sample) -> str:
    """A reason why a target can't answer a sample, which lacks a field; "" if it can."""
    lacking = target.lacking(sample)
    return f"the target needs {joined(lacking)}, which the sample lacks" if lacking else ""
