"""The decorator of live scoring: a function's arguments and its result make a sample."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from evalstone._core import sync
from evalstone.errors import ConfigError, unknown
from evalstone.live.frames import Content, copied
from evalstone.live.tracing import Trace, current_trace
from evalstone.targets.answers import Answer
from evalstone.targets.base import INPUTS

if TYPE_CHECKING:
    from evalstone.live.client import Live

F = TypeVar("F", bound=Callable[..., Any])


class WatchedFields(TypedDict, total=False):
    """The parameter of a watched function for each field of the sample."""

    input: str
    messages: str
    context: str
    instructions: str
    metadata: str


def watched(live: Live, function: F, entity: str | None, fields: Mapping[str, Any]) -> F:
    """The function, with its calls submitted. Raises ConfigError as `Live.watch`."""
    if not callable(function):
        raise ConfigError(f"live.watch takes a function, not {type(function).__name__}")
    signature = inspect.signature(function)
    name = getattr(function, "__name__", None) or sync.name_of(function).rpartition(".")[2]
    for field, parameter in fields.items():
        if field not in INPUTS:
            raise ConfigError(unknown("field of a watched function", field, INPUTS))
        if parameter not in signature.parameters:
            raise ConfigError(f"{name} has no parameter {parameter!r}, only {', '.join(signature.parameters)}")
    mapped = {field: field for field in INPUTS if field in signature.parameters} | dict(fields)
    if not mapped:
        raise ConfigError(
            f'no parameter of {name} is one of {", ".join(INPUTS)}; name one: @live.watch(input="question")'
        )
    watch = _Watch(live, signature, mapped, name if entity is None else entity)

    if sync.is_async_generator(function):

        async def answered_in_parts(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            call, parts = watch.call(args, kwargs), list[Any]()
            source = function(*args, **kwargs)
            step = source.asend(None)
            try:
                while True:
                    part = await step
                    call.keep(parts, part)
                    try:
                        sent = yield part
                    except Exception as error:  # noqa: BLE001 - the consumer's, for the function
                        step = source.athrow(error)
                    else:
                        step = source.asend(sent)
            except StopAsyncIteration:
                call.ended(parts, in_parts=True)
            finally:
                await source.aclose()

        wrapper: Callable[..., Any] = answered_in_parts
    elif sync.is_generator(function):

        def generated_in_parts(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            call, parts = watch.call(args, kwargs), list[Any]()
            source = function(*args, **kwargs)
            step = functools.partial(source.send, None)
            try:
                while True:
                    part = step()
                    call.keep(parts, part)
                    try:
                        sent = yield part
                    except Exception as error:  # noqa: BLE001 - the consumer's, for the function
                        step = functools.partial(source.throw, error)
                    else:
                        step = functools.partial(source.send, sent)
            except StopIteration as end:
                call.ended(parts, in_parts=True)
                return end.value
            finally:
                source.close()

        wrapper = generated_in_parts
    elif sync.is_async(function):

        async def answered(*args: Any, **kwargs: Any) -> Any:
            call = watch.call(args, kwargs)
            result = await function(*args, **kwargs)
            call.ended(result)
            return result

        wrapper = answered
    else:

        def reporting(*args: Any, **kwargs: Any) -> Any:
            call = watch.call(args, kwargs)
            result = function(*args, **kwargs)
            call.ended(result)
            return result

        wrapper = reporting
    return cast("F", functools.wraps(function)(wrapper))


class _Watch:
    def __init__(self, live: Live, signature: inspect.Signature, mapped: Mapping[str, str], entity: str) -> None:
        self.live, self.signature, self.mapped, self.entity = live, signature, mapped, entity
        needed = [
            (place, each) for place, each in enumerate(signature.parameters.values()) if each.name in mapped.values()
        ]
        self._all = any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for _, each in needed)
        self._needed = frozenset[int | str](name for place, each in needed for name in (place, each.name))

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        trace = current_trace()
        return _Call(self, args, kwargs, trace, self.live.draw(trace))

    def kept(self, argument: int | str, value: Any) -> Any:
        """An argument, by position or name; a copy if it becomes a field."""
        return copied(value) if self._all or argument in self._needed else value

    def fields(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return {field: bound.arguments[parameter] for field, parameter in self.mapped.items()}


class _Call:
    """One call of a watched function."""

    __slots__ = ("_drawn", "_fields", "_started", "_trace", "_watch")

    def __init__(self, watch: _Watch, args: tuple[Any, ...], kwargs: dict[str, Any], trace: Trace, drawn: int) -> None:
        self._watch, self._trace, self._drawn = watch, trace, drawn
        self._fields: Callable[[], dict[str, Any]] = dict
        if drawn or watch.live.filters:
            # Copied now, because the function may change its arguments.
            args = tuple(watch.kept(place, value) for place, value in enumerate(args))
            kwargs = {name: watch.kept(name, value) for name, value in kwargs.items()}
            self._fields = functools.partial(watch.fields, args, kwargs)
        self._started = time.perf_counter()

    def keep(self, parts: list[Any], part: Any) -> None:
        """Keep a part of a stream if the call may be scored."""
        if self._drawn or self._watch.live.filters:
            parts.append(part)

    def ended(self, result: Any, *, in_parts: bool = False) -> None:
        """Submit the call with its result."""
        watch, seconds = self._watch, time.perf_counter() - self._started

        def content() -> Content:
            fields, answer = self._fields(), result
            if in_parts:
                if others := [part for part in result if not isinstance(part, str)]:
                    raise TypeError(f"a watched generator must yield text, not {type(others[0]).__name__}")
                answer = "".join(result)
            elif not isinstance(_first(result), str | Mapping | None):
                answer = Answer.of(result, by="the function")  # here, since the worker doesn't know the class
            return Content(fields, answer, answered=True, seconds=seconds)

        watch.live.offer(content, self._trace, self._drawn, entity=watch.entity)


def _first(result: Any) -> Any:
    """The first item of a list, which stands for the others; any other value unchanged."""
    if isinstance(result, Sequence) and not isinstance(result, str):
        return next(iter(cast("Sequence[Any]", result)), None)
    return result
