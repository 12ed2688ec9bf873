"""Python functions as targets."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, cast

from evalstone._core import sync
from evalstone._core.display import excerpt
from evalstone._core.text import is_blank
from evalstone.errors import ConfigError, DataError, invalid, unknown
from evalstone.targets.answers import Answer, NoAnswer
from evalstone.targets.base import INPUTS, PARAMETERS, Prepared, Target, parameter_values
from evalstone.targets.tool_calls import Source, outside_answer, tool_calls
from evalstone.targets.tools import Tools, parse_tools, uses_tools
from evalstone.types import Message, Sample, ToolCall


class FunctionTarget(Target):
    """A Python function as a target; a plain one runs in a thread.

    Args:
        function: Its parameters name what it gets: input, messages, context, instructions, metadata, trial, thread. It
            returns text, an `Answer`, or what a known framework returns.
        prepare: Called with the sample before each trial, to set up what the function works on.
        finish: Called with the sample after each trial, also after a failed one; what it returns, unless None, is the
            answer's `state`.
        tools: What answers its tools, in place of what they were wrapped with: `Tools`, or record:FILE or replay:FILE.

    Raises:
        ConfigError: A parameter is none of these; or the tools can't be used, as `Tools.record` and `.replay` say.
    """

    function: Callable[..., Any]
    prepare: Callable[[Sample], Any] | None = None
    finish: Callable[[Sample], Any] | None = None
    tools: Tools | str | None = None
    label: str = ""
    """The target's name; by default that of the function with its module."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", parse_tools(self.tools))
        super().__post_init__()
        for name in ("function", "prepare", "finish"):
            value = getattr(self, name)
            if not callable(value) and (value is not None or name == "function"):
                raise ConfigError(invalid(name, "a function", value, f"{type(value).__name__}: {excerpt(value)}"))
        if inspect.isclass(self.function):
            raise ConfigError(f"the target {self.name} is a class; give an instance that can be called, or a function")
        if inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function):
            raise ConfigError(f"the target {self.name} yields; return one answer instead")
        for parameter in self._parameters.values():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) or (
                parameter.name not in PARAMETERS and parameter.default is not parameter.empty
            ):
                continue
            if parameter.name not in PARAMETERS or parameter.kind is parameter.POSITIONAL_ONLY:
                problem = unknown("parameter", parameter.name, PARAMETERS)
                raise ConfigError(f"the target {self.name} has an ", problem)

    @functools.cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return parameters_of(self.function)

    @property
    def name(self) -> str:
        """The label, or the function's module and name."""
        return self.label or function_name(self.function)

    @property
    def identity(self) -> str:
        """Name, version and tools."""
        source = self._source
        return super().identity + (f" with tools {source.identity}" if source is not None and source.identity else "")

    @property
    def _source(self) -> Source | None:
        """The source that answers its tool calls; None for the sources that the tools were wrapped with."""
        tools = parse_tools(self.tools)
        return None if tools is None else tools.source

    @functools.cached_property
    def _accepted(self) -> tuple[str, ...]:
        parameters = self._parameters
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            return PARAMETERS
        return tuple(name for name in PARAMETERS if name in parameters)

    @property
    def inputs(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The sample fields among the function's parameters. With the messages, also the input, their substitute."""
        accepted = {*self._accepted, "input"} if "messages" in self._accepted else self._accepted
        return tuple(name for name in INPUTS if name in accepted)

    @property
    def required(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Its parameters without a default."""
        parameters = self._parameters
        return tuple(n for n in self.inputs if n in parameters and parameters[n].default is inspect.Parameter.empty)

    @property
    def follows_conversations(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether it takes the messages or the thread."""
        return any(name in self._accepted for name in ("messages", "thread"))

    @property
    def keeps_threads(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether it takes the thread, or something is set up for it."""
        return "thread" in self._accepted or self.prepare is not None or self.finish is not None

    async def call(self, sample: Sample, *, trial: int, thread: str) -> object:
        """Set up, call the function, and clean up."""
        async with self.conversation(sample) as prepared:
            result = await prepared.call(prepared.sample, trial=trial, thread=thread)
        return result if prepared.state is None else replace(Answer.of(result), state=prepared.state)

    @asynccontextmanager
    async def conversation(self, sample: Sample) -> AsyncGenerator[Prepared]:
        """Set up before the first turn, and clean up after the last."""
        sample = replace(sample, metadata=copy.deepcopy(sample.metadata))  # it may be changed by the function
        prepared = Prepared(self._invoke, sample)
        try:
            if self.prepare is not None:
                with outside_answer(self._source):
                    await sync.call_at_once(self.prepare, sample)
            yield prepared
        except BaseException:
            if self.finish is not None:
                with suppress(Exception), outside_answer(self._source):  # the first error is the cause
                    await sync.call_at_once(self.finish, sample)
            raise
        with outside_answer(self._source):
            prepared.state = None if self.finish is None else await sync.call_at_once(self.finish, sample)

    async def _invoke(self, sample: Sample, *, trial: int, thread: str) -> object:
        """Call the function alone."""
        values = parameter_values(sample, trial=trial, thread=thread)
        arguments = {name: values[name] for name in self._accepted if name in self.required or values[name] is not None}
        async with tool_calls(sample, trial=trial, thread=thread, source=self._source) as calls:
            result: object = await sync.call_at_once(self.function, **arguments)
        return _with_tool_calls(result, calls.transcript) if calls.transcript or self._uses_tools else result

    @functools.cached_property
    def _uses_tools(self) -> bool:
        """Whether an answer without calls means that no tool was called."""
        return self._source is not None or uses_tools(self.function)


def _with_tool_calls(result: object, calls: Sequence[ToolCall]) -> object:
    """A function's result, with its tool calls added if it has no messages."""
    try:
        answer = Answer.of(result)
    except DataError as problem:
        if not calls:
            return result  # rejected later, like any other
        if not isinstance(problem, NoAnswer):
            raise
        answer = problem.answer
    if answer.messages:
        return answer
    called = [Message(role="assistant", tool_calls=calls)] if calls else []
    said = [] if is_blank(answer.output or "") else [Message(role="assistant", content=answer.output or "")]
    return replace(answer, messages=[*called, *said])


def function_name(function: Any) -> str:
    """The module and name of a function, or of the class of a callable object."""
    while isinstance(function, functools.partial):
        function = cast(Any, function).func
    kind = function if hasattr(function, "__qualname__") else cast(Any, type(function))
    return f"{kind.__module__}:{kind.__qualname__}"


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function. Raises ConfigError if they can't be read."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise ConfigError(f"the parameters of {function!r} can't be read; wrap it in a function") from None
