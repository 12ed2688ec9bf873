"""The tool calls of one answer of a target, and the sources that answer them."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from evalstone._core.display import excerpt
from evalstone._core.json import strict_jsonable
from evalstone.errors import StorageError, TargetError
from evalstone.targets.tool_recording import RecordedCall, RecordedError, Replayed
from evalstone.types import Sample, ToolCall


class Call:
    """A tool call, before, during and after it runs.

    Args:
        tool: The name of the tool.
        live: The call of the function itself.
        own: The positional arguments, without the object of a method.
        arguments: All arguments by the names of the parameters.
        is_async: Whether the function is async.
    """

    def __init__(
        self,
        tool: str,
        live: functools.partial[Any],
        *,
        own: tuple[Any, ...],
        arguments: Mapping[str, Any],
        is_async: bool,
    ) -> None:
        self.tool, self.live, self.own, self.arguments, self.is_async = tool, live, own, arguments, is_async
        self.finished = False
        self.result: Any = None
        self.error: Exception | None = None
        self.seconds = 0.0

    @contextmanager
    def running(self, *, live: bool) -> Generator[None]:
        """Time the call, and keep the exception that it raises. live: whether the function itself is called."""
        started, before = time.perf_counter(), inside.set(live)
        try:
            yield
            self.finished = True
        except Exception as error:
            self.error, self.finished = error, True
            raise
        finally:
            inside.reset(before)
            self.seconds = time.perf_counter() - started

    def to_tool_call(self) -> ToolCall:
        """The call as part of a message."""
        error = None if self.error is None else f"{type(self.error).__name__}: {self.error}"
        state = "call" if not self.finished else "result" if error is None else "error"
        return ToolCall(name=self.tool, arguments=self.arguments, result=self.result, state=state, error=error)

    def recorded(self) -> RecordedCall:
        """The call as part of a recording."""
        return RecordedCall(
            tool=self.tool,
            arguments=self.arguments,
            seconds=self.seconds,
            finished=self.finished,
            result=self.result,
            error=None if self.error is None else RecordedError.of(self.error),
        )


class Source:
    """A source of answers to tool calls. This one calls the functions themselves."""

    identity = ""
    """The part of a target's name that identifies this source."""
    live = True
    """Whether the functions themselves are called."""
    file: Path | None = None
    """The file that is read or written, if any."""

    def arguments(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Arguments as JSON data. Raises ValueError if they can't be stored."""
        return {name: _shown(value) for name, value in arguments.items()}

    def result(self, result: Any) -> Any:
        """A result as JSON data. Raises ValueError if it can't be stored."""
        return _shown(result)

    def answer(self, call: Call, calls: ToolCalls | None) -> Callable[[], Any]:
        """The function to call for the result. calls: None outside of a run. Raises TargetError without a result."""
        return call.live

    async def keep(self, calls: ToolCalls, of_turn: Sequence[Call]) -> None:
        """Store the calls of an answer. of_turn: the calls that this source answered."""

    def missing(self, calls: ToolCalls) -> str:
        """The required calls that this answer didn't make, in words; "" for none."""
        return ""


def _shown(value: Any) -> Any:
    try:
        return strict_jsonable(value)
    except ValueError:
        return excerpt(value)


class ToolCalls:
    """The tool calls for one sample and trial; in a conversation, those of all turns.

    Args:
        sample: The sample that the target answers.
        trial: The number of the trial.
        thread: The id of this attempt.
        source: The source that answers every call, instead of the ones that the tools were wrapped with.
    """

    def __init__(self, sample: Sample, trial: int, thread: str, source: Source | None) -> None:
        self.sample, self.trial, self.thread, self.source = sample, trial, thread, source
        self.turn = self.began = 0
        """The number of the turn, and of the first turn of this attempt, from 1."""
        self.open = False
        """Whether the target is answering."""
        self.problem = ""
        """Why the answer doesn't count, even if the target's own code swallowed the error."""
        self.of_turn: list[tuple[Source, Call]] = []
        """The calls of this turn, in the order in which they started."""
        self.replayed: dict[Source, Replayed] = {}
        self.lock = threading.Lock()

    def answer_turn(self, sample: Sample) -> None:
        """Start the next turn. A resumed conversation may start with a later turn than the first."""
        spoken = sum(message.role == "user" for message in sample.messages)
        self.turn = max(self.turn + 1, spoken)
        self.began = self.began or self.turn
        self.sample, self.open, self.of_turn = sample, True, []

    @property
    def sources(self) -> list[Source]:
        """The sources that answer the calls."""
        if self.source is not None:
            return [self.source]
        return list(dict.fromkeys((*self.replayed, *(source for source, _ in self.of_turn))))

    def fail(self, problem: str) -> TargetError:
        """The error for a call without an answer. The first one fails the sample and trial."""
        self.problem = self.problem or problem
        return TargetError(problem)

    @property
    def transcript(self) -> tuple[ToolCall, ...]:
        """The calls of this turn as parts of a message."""
        return tuple(call.to_tool_call() for _, call in self.of_turn)


current: ContextVar[ToolCalls | None] = ContextVar("evalstone_tool_calls", default=None)
inside: ContextVar[bool] = ContextVar("evalstone_inside_tool", default=False)
"""Whether a tool's function is running. Tools that it calls itself are part of that call."""
in_flight: set[ToolCalls] = set()


class Outside(NamedTuple):
    """The state while a target is being set up or cleaned up, not answering."""

    source: Source | None
    """The source of the target."""


outside: ContextVar[Outside | None] = ContextVar("evalstone_outside_answer", default=None)


@contextmanager
def outside_answer(source: Source | None) -> Generator[None]:
    """Within the block, which sets up or cleans up a target, tools are called as outside of a run."""
    before = outside.set(Outside(source))
    try:
        yield
    finally:
        outside.reset(before)


@asynccontextmanager
async def tool_calls(sample: Sample, *, trial: int, thread: str, source: Source | None) -> AsyncGenerator[ToolCalls]:
    """The tool calls within the block, which is one answer of a target. The next answer of the same task with the same
    thread is the next turn of the conversation. sample: its messages are the conversation so far.

    Raises:
        TargetError: A call had no answer, whatever the block raises; or a recorded call was not made.
        StorageError: The calls can't be recorded.
    """
    calls = current.get()
    if calls is None or (calls.sample.id, calls.trial, calls.thread) != (sample.id, trial, thread):
        calls = ToolCalls(sample, trial, thread, source)
    calls.answer_turn(sample)
    current.set(calls)
    in_flight.add(calls)
    try:
        try:
            yield calls
        finally:
            calls.open = False
            in_flight.discard(calls)
            for each in calls.sources:
                await each.keep(calls, [call for used, call in calls.of_turn if used is each])
    except StorageError:
        raise
    except Exception as error:
        if calls.problem:
            raise TargetError(calls.problem) from error
        raise
    if problem := calls.problem or next(filter(None, (each.missing(calls) for each in calls.sources)), ""):
        raise TargetError(problem)
