"""The tools of a function that is a target: recorded, replayed or mocked.

`tools = Tools.record("calls.jsonl")`, later `Tools.replay("calls.jsonl")`; then `@tools` before each function.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeGuard, TypeVar, cast, overload

from evalstone._core import sync
from evalstone._core.code_identity import ANSWERED_BY, code_hash
from evalstone._core.display import excerpt, shortlist
from evalstone._core.guards import is_mapping
from evalstone.errors import ConfigError, TargetError, described, invalid, unknown
from evalstone.targets.tool_calls import Call, Source, ToolCalls, current, in_flight, inside, outside
from evalstone.targets.tool_recording import (
    RecordedCall,
    RecordedLine,
    Recorder,
    Recording,
    Replayed,
    argument_data,
    result_data,
)
from evalstone.types import Sample

F = TypeVar("F", bound=Callable[..., Any])
FORMS = "record:FILE or replay:FILE"


class Tools:
    """The tools of a target: functions whose calls evalstone observes, records, replays or mocks.

    `Tools()` calls the functions themselves; `Tools.record`, `Tools.replay` and `Tools.mock` are the other kinds. Wrap
    each function: `search = tools(search)`, or with the decorator `@tools`. It remains a function with the same
    signature, sync or async; wrap methods in their class. The `tools` setting of a target overrides the tools that its
    functions were wrapped with.

    If the target returns no messages, its calls become the tool calls of its answer. Calls are matched to their sample
    and trial in tasks, in `asyncio.to_thread` and in threads that are started with a copy of the context
    (`contextvars.copy_context().run`). A call in any other thread fails the answers in flight.
    """

    def __init__(self) -> None:
        self.source = Source()
        """The source that answers the calls."""
        self._names: dict[str, str] = {}

    @classmethod
    def record(cls, path: str | Path) -> Tools:
        """Call the functions, and write their calls to a file of JSON Lines.

        The calls of an answer are written before the answer counts. If the file already has the sample and trial, the
        new calls replace them. Nothing is recorded outside of a run.

        Raises:
            ConfigError: The file can't be written, or is not a recording.
        """
        return cls._of(_RecordSource(path))

    @classmethod
    def replay(cls, path: str | Path, *, strict: bool = False) -> Tools:
        """Answer from a recording, without calling any function.

        Calls are matched by name and arguments, and each recorded call answers one call. A call that was not recorded
        fails the sample and trial. Results are JSON data, so tuples come back as lists. Exceptions of builtin types are
        restored; others become exceptions of the nearest builtin type. Outside of a run, a call is an error.

        Args:
            path: The file that `record` wrote.
            strict: Require the recorded order, and that every recorded call is made.

        Raises:
            ConfigError: The file can't be read, or is not a recording.
        """
        return cls._of(_ReplaySource(path, strict=strict))

    @classmethod
    def mock(cls, mocks: Mapping[str, Any] | Callable[[Sample], Mapping[str, Any]]) -> Tools:
        """Answer from mocks, without calling the functions. A tool without a mock fails the sample and trial.

        Args:
            mocks: For each tool name, a function to call instead, an exception or exception type to raise, or a value
                to return. Or a function that returns such a mapping for a sample.

        Raises:
            ConfigError: It is neither.
        """
        return cls._of(_MockSource(mocks))

    @classmethod
    def _of(cls, source: Source) -> Tools:
        tools = cls()
        tools.source = source
        return tools

    @overload
    def __call__(self, function: F, *, name: str = "", ignore: Collection[str] = ()) -> F: ...
    @overload
    def __call__(self, *, name: str = "", ignore: Collection[str] = ()) -> Callable[[F], F]: ...
    def __call__(
        self, function: F | None = None, *, name: str = "", ignore: Collection[str] = ()
    ) -> F | Callable[[F], F]:
        """Wrap a function.

        Args:
            function: A function or method, sync or async.
            name: The name of the tool; by default, the function's name.
            ignore: Parameters that are neither recorded nor compared, such as a client or a context.

        Raises:
            ConfigError: The function can't be wrapped, the name belongs to another one, or a parameter is unknown.
        """
        if function is None:
            return cast("Callable[[F], F]", functools.partial(self, name=name, ignore=ignore))
        tool = _Tool(self, function, name, ignore)
        if (known := self._names.setdefault(tool.name, tool.place)) != tool.place:
            raise ConfigError(f"{known} and {tool.place} are both called {tool.name}; name one: @tools(name=…)")
        if tool.is_async:

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                with tool.calling(functools.partial(function, *args, **kwargs)) as (answer, returned):
                    result = answer()
                    return returned(await result if inspect.isawaitable(result) else result)

            setattr(call_async, ANSWERED_BY, self.source.identity)
            return cast("F", call_async)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with tool.calling(functools.partial(function, *args, **kwargs)) as (answer, returned):
                result = answer()
                if inspect.iscoroutine(result):
                    result.close()
                    raise tool.problem("is not an async function, but what answers it is")
                return returned(result)

        setattr(call, ANSWERED_BY, self.source.identity)
        return cast("F", call)


def parse_tools(value: Tools | str | None) -> Tools | None:
    """The tools in a setting of a target.

    Raises:
        ConfigError: The value is not a Tools, record:FILE or replay:FILE, or the file can't be used.
    """
    if value is None or isinstance(value, Tools):
        return value
    kind, _, path = value.partition(":") if isinstance(cast(object, value), str) else ("", "", "")
    kinds: dict[str, Callable[[str], Tools]] = {"record": Tools.record, "replay": Tools.replay}
    if kind not in kinds or not path.strip():
        hint = "; Tools.mock(…) makes mocks of them" if is_mapping(value) else ""
        raise ConfigError(invalid("tools", f"Tools, or {FORMS}", value, f"{excerpt(value)}{hint}"))
    return kinds[kind](path.strip())


def uses_tools(function: Callable[..., Any]) -> bool:
    """Whether a function can see a wrapped tool or a `Tools` among the names of its module and enclosing functions."""
    while isinstance(function, functools.partial):
        function = cast("Callable[..., Any]", function.func)
    code: Any = function if inspect.isroutine(function) else type(function).__call__
    code = inspect.unwrap(getattr(code, "__func__", code))
    try:
        seen = inspect.getclosurevars(code)
    except (TypeError, ValueError):
        return False
    scope = [*getattr(code, "__globals__", {}).values(), *seen.nonlocals.values()]
    return any(isinstance(each, Tools) or (inspect.isfunction(each) and ANSWERED_BY in vars(each)) for each in scope)


class _Tool:
    """A wrapped function."""

    def __init__(self, tools: Tools, function: Any, name: str, ignore: Collection[str]) -> None:
        self.tools, self.ignore, self.is_async = tools, ignore, sync.is_async(function)
        if not callable(function) or inspect.isclass(function) or isinstance(function, staticmethod | classmethod):
            raise ConfigError(
                f"a tool is a function, not {excerpt(cast(object, function))}; write @tools below @staticmethod, and "
                "wrap the methods of a class"
            )
        self.name = name or getattr(function, "__name__", "")
        if not self.name or self.name == "<lambda>":
            raise ConfigError(f"the tool {excerpt(function)} needs a name: tools(…, name=…)")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError(f"the tool {self.name} yields, which can't be recorded; wrap a function that returns")
        try:
            self._parameters = inspect.signature(function).parameters
            self._bind = inspect.signature(function).bind
        except (TypeError, ValueError):
            raise ConfigError(f"the parameters of the tool {self.name} can't be read; wrap it in a function") from None
        parameters = list(self._parameters)
        path = str(getattr(function, "__qualname__", self.name))
        self.place = f"{getattr(function, '__module__', '')}.{path}"
        in_class = path.rpartition(".")[0].rpartition(".")[2] not in ("", "<locals>")
        self._bound = int(in_class and parameters[:1] in (["self"], ["cls"]))
        """The number of leading arguments that are a method's object: 0 or 1."""
        if isinstance(ignore, str):
            raise ConfigError(f'ignore must be a list of parameters: ignore=["{ignore}"]')
        takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in self._parameters.values())
        for each in ignore:
            if each not in parameters and not takes_any:
                raise ConfigError(f"ignore of the tool {self.name}: ", unknown("parameter", each, parameters))

    @contextmanager
    def calling(self, live: functools.partial[Any]) -> Generator[tuple[Callable[[], Any], Callable[[Any], Any]]]:
        """The function to call for the result, and the function to pass it through. live: calls the tool's function."""
        if inside.get():
            yield live, _same
            return
        calls, call = current.get(), self._call(live)
        if (aside := outside.get()) is not None:
            yield (aside.source or self.tools.source).answer(call, None), _same
            return
        source = self.tools.source if calls is None or calls.source is None else calls.source
        if calls is None or not calls.open:
            self._check_place(calls)
            yield source.answer(call, None), _same
            return
        if calls.problem:
            raise TargetError(calls.problem)
        try:
            call.arguments = source.arguments(self.name, call.arguments)
            answer = source.answer(call, calls)
        except (TargetError, ValueError) as error:
            raise calls.fail(str(error)) from None
        calls.of_turn.append((source, call))

        def returned(result: Any) -> Any:
            try:
                call.result = source.result(result)
            except ValueError as error:
                raise calls.fail(
                    f"what the tool {self.name} returned can't be recorded: {error}; a tool must return JSON data: "
                    "dicts with text as keys, lists, text, numbers, true, false and None"
                ) from None
            return result

        with call.running(live=source.live):
            yield answer, returned

    def problem(self, problem: str) -> TargetError:
        """The error for a problem with the tool itself. It fails the answer, even if the target's code catches it."""
        calls, text = current.get(), f"the tool {self.name} {problem}"
        return TargetError(text) if calls is None else calls.fail(text)

    def _call(self, live: functools.partial[Any]) -> Call:
        arguments: dict[str, Any] = {}
        for name, value in list(self._bind(*live.args, **live.keywords).arguments.items())[self._bound :]:
            if self._parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                # A keyword may have the same name as a positional-only parameter.
                arguments |= {f"**{key}" if key in self._parameters else key: each for key, each in value.items()}
            else:
                arguments[name] = value
        for name in self.ignore:
            arguments.pop(name, None)
        own = live.args[self._bound :]
        return Call(self.name, live, own=own, arguments=arguments, is_async=self.is_async)

    def _check_place(self, calls: ToolCalls | None) -> None:
        """Raise TargetError for a call outside of an answer that may have been meant for one in flight."""
        if calls is not None:
            if (calls.source or self.tools.source).identity:
                raise TargetError(f"the tool {self.name} was called after the target had answered")
            return
        problem = (
            f"the tool {self.name} was called in a thread that doesn't know the sample; start it with a copy of the "
            "context: contextvars.copy_context().run, or asyncio.to_thread"
        )
        possible = list(in_flight)
        for answer_calls in possible:
            answer_calls.fail(problem)
        if any((answer_calls.source or self.tools.source).identity for answer_calls in possible):
            raise TargetError(problem)


def _same(result: Any) -> Any:
    return result


def _file(path: str | Path) -> Path:
    if not isinstance(cast(object, path), str | Path) or not str(path):
        raise ConfigError(f"a recording of tool calls is a file, not {excerpt(path)}")
    return Path(path).absolute()  # the target's code may change the current folder


class _FileSource(Source):
    """A source with a file. Calls are compared, so their arguments must have a JSON form."""

    def arguments(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        data: dict[str, Any] = {}
        for name, value in arguments.items():
            try:
                data[name] = argument_data(value)
            except ValueError as error:
                raise ValueError(
                    f"the argument {name} of the tool {tool} can't be recorded: {error}; "
                    f'leave it out with @tools(ignore=["{name}"])'
                ) from None
        return data


class _RecordSource(_FileSource):
    def __init__(self, path: str | Path) -> None:
        self.identity = f"record:{path}"
        self.file = _file(path)
        self._recorder = Recorder(self.file)

    def result(self, result: Any) -> Any:
        return result_data(result)

    async def keep(self, calls: ToolCalls, of_turn: Sequence[Call]) -> None:
        line = RecordedLine(
            sample_id=calls.sample.id,
            trial=calls.trial,
            thread=calls.thread,
            turn=calls.turn,
            began=calls.began,
            calls=tuple(call.recorded() for call in of_turn),
        )
        await sync.call(self._recorder.add, line)


class _ReplaySource(_FileSource):
    live = False

    def __init__(self, path: str | Path, *, strict: bool) -> None:
        self.file = _file(path)
        self._recording, self._strict = Recording(self.file), strict
        self.identity = f"{'strict ' if strict else ''}replay:{path}@{self._recording.digest}"

    def answer(self, call: Call, calls: ToolCalls | None) -> Callable[[], Any]:
        if calls is None:
            raise TargetError(f"the tool {call.tool} is replayed, and was called outside of an answer of a target")
        with calls.lock:
            recorded = self._replayed(calls).match(call.tool, call.arguments, in_order=self._strict)
        if recorded.finished:
            return functools.partial(_restored, recorded)
        if not call.is_async:
            raise TargetError(f"the tool {call.tool} had not returned when it was recorded")
        return asyncio.Event().wait  # never returns, as when it was recorded; the target's code gives up on it

    def missing(self, calls: ToolCalls) -> str:
        return self._replayed(calls).rest(calls.turn) if self._strict else ""

    def _replayed(self, calls: ToolCalls) -> Replayed:
        if self not in calls.replayed:
            calls.replayed[self] = self._recording.of(calls.sample.id, calls.trial, calls.began)
        return calls.replayed[self]


def _restored(recorded: RecordedCall) -> Any:
    if recorded.error is not None:
        raise recorded.error.restored()
    return recorded.result


class _MockSource(Source):
    live = False

    def __init__(self, mocks: Mapping[str, Any] | Callable[[Sample], Mapping[str, Any]]) -> None:
        if not isinstance(mocks, Mapping) and not callable(mocks):
            raise ConfigError(f"mocks are a mapping of tools, or a function of a sample, not {excerpt(mocks)}")
        self._mocks = cast("Mapping[str, object] | Callable[[Sample], object]", mocks)
        self.identity = f"mock:{code_hash(mocks)[:16]}"

    def answer(self, call: Call, calls: ToolCalls | None) -> Callable[[], Any]:
        mocks = self._of_sample(self._mocks, calls, call.tool) if callable(self._mocks) else self._mocks
        if call.tool not in mocks:
            raise TargetError(f"the tool {call.tool} has no mock; mocks: {shortlist(map(str, mocks)) or 'none'}")
        mock = mocks[call.tool]
        if _is_error(mock) or not callable(mock):
            return functools.partial(_fixed, mock)
        try:
            inspect.signature(mock).bind(*call.own, **call.live.keywords)
        except TypeError as error:
            raise TargetError(f"the mock of the tool {call.tool} doesn't take its arguments: ", error) from None
        except ValueError:  # the parameters of some builtins can't be read
            pass
        return functools.partial(mock, *call.own, **call.live.keywords)

    def _of_sample(self, mocks: Callable[[Sample], object], calls: ToolCalls | None, tool: str) -> Mapping[str, object]:
        if calls is None:
            raise TargetError(f"the tool {tool} has mocks by sample, and was called outside of an answer of a target")
        try:
            mocked = mocks(calls.sample)
        except Exception as error:  # whatever the user's own function raises
            raise TargetError(f"the mocks of sample {calls.sample.id!r} can't be read: {described(error)}") from error
        if not is_mapping(mocked):
            raise TargetError(f"the mocks of sample {calls.sample.id!r} must be a mapping, not {excerpt(mocked)}")
        return mocked


def _is_error(mock: object) -> TypeGuard[Exception | type[Exception]]:
    return isinstance(mock, Exception) or (inspect.isclass(mock) and issubclass(mock, Exception))


def _fixed(mock: object) -> object:
    if _is_error(mock):
        raise copy.copy(mock)
    return copy.deepcopy(mock)  # the target's code may change it
