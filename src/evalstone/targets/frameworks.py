"""Graphs, chains and agents of frameworks as targets, as they are: what each is given, and what it returned.

They are known by their methods. A library is only used if the user's own code has imported it.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, cast

from evalstone._core import sync
from evalstone._core.addresses import built
from evalstone._core.display import joined
from evalstone._core.guards import is_mapping, is_object
from evalstone._core.names import normal
from evalstone.agents.formats.values import plain
from evalstone.agents.messages import structured_text
from evalstone.datasets.columns import field_of
from evalstone.errors import ConfigError, DataError, TargetError
from evalstone.targets.answers import Answer, answer_of
from evalstone.targets.templates import chat_messages, response_items
from evalstone.types import Message

_OTHERS = ("context", "instructions", "metadata")
"""The fields of a sample that only a declared input gets: a state may have them for what the graph itself finds."""
_HISTORY = ("chathistory", "history")
"""Names of an entry for the messages before the question."""


class Runnable(Protocol):
    """A compiled graph of LangGraph, or a runnable of LangChain."""

    def invoke(self, *args: Any, **kwargs: Any) -> Any: ...


class PydanticAgent(Protocol):
    """An agent of pydantic-ai."""

    def run_sync(self, *args: Any, **kwargs: Any) -> Any: ...


class OpenAIAgent(Protocol):
    """An agent of the OpenAI Agents SDK."""

    def get_system_prompt(self, *args: Any, **kwargs: Any) -> Any: ...


FrameworkObject: TypeAlias = "Runnable | PydanticAgent | OpenAIAgent"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A function that asks an object of a framework: its `__call__`. Its signature has the sample fields that the
    object takes."""

    value: Any
    file: str = field(default="", compare=False)
    """The user's file in which the object was found."""

    @property
    def takes(self) -> Sequence[str]:
        """The parameters."""
        return ["messages"]

    @property
    def __signature__(self) -> inspect.Signature:
        needed = "messages" if "messages" in self.takes else "input"
        kind, empty = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
        return inspect.Signature(
            [inspect.Parameter(name, kind, default=empty if name == needed else None) for name in self.takes]
        )


@dataclass(frozen=True, kw_only=True)
class AskedRunnable(Asked):
    """A graph or a chain: an object with `ainvoke` or `invoke`."""

    given: Mapping[str, str] | str
    """The sample field of each entry of its input, or "history"; or of the whole input."""
    named: str
    context: Any = None
    """The context of a run, with its defaults, if a graph has one."""

    @property
    def takes(self) -> Sequence[str]:
        whole = [self.given] if isinstance(self.given, str) else [*self.given.values()]
        if "history" in whole:  # the question is the last message
            whole = ["messages", *(name for name in whole if name not in ("history", "input"))]
        return [*whole, "thread"] if _keeps_state(self.value) else whole

    async def __call__(self, *, thread: str = "", **fields: Any) -> object:
        """Ask it once. A graph that stores conversations already has what was said before in this one."""
        config = ({"configurable": {"thread_id": thread}},) if thread else ()
        is_stored, is_async = await self._stored(*config) if config else (False, True)
        if "messages" in fields and is_stored:
            fields["messages"] = fields["messages"][-1:]
        if not isinstance(self.given, str) and "history" in self.given.values():
            *before, last = fields.pop("messages")
            fields |= {"input": last.content, "history": tuple(each for each in before if each.role != "system")}
        values = {name: _value(value) for name, value in fields.items()}
        if isinstance(self.given, str):
            value = values[self.given]
        else:
            value = {name: values[field] for name, field in self.given.items() if field in values}
        settings = {} if self.context is None else {"context": self.context}
        ask = getattr(self.value, "ainvoke", None)
        ask = ask if callable(ask) and is_async else self.value.invoke
        return _answer(await sync.call_at_once(ask, value, *config, **settings), self.named)

    async def _stored(self, config: Mapping[str, Any]) -> tuple[bool, bool]:
        """Whether the graph has stored a state of the conversation, and whether its store can be awaited."""
        try:
            return bool((await self.value.aget_state(config)).values), True
        except NotImplementedError:  # SqliteSaver and others only work in a thread
            state = await sync.call_at_once(self.value.get_state, config)
            return bool(state.values), False


@dataclass(frozen=True, kw_only=True)
class AskedPydanticAgent(Asked):
    """An agent of pydantic-ai. Its instructions are its own."""

    async def __call__(self, *, messages: Sequence[Message]) -> object:
        """Ask it the last message, with those before as its history."""
        *before, last = (message for message in messages if message.role != "system")
        library: Any = sys.modules["pydantic_ai.messages"]
        history = library.ModelMessagesTypeAdapter.validate_python(list(_pydantic_messages(before)))
        if history:  # the library leaves the system prompt out if there is a history
            parts = await self.value.system_prompt_parts(message_history=history)
            history = [library.ModelRequest(parts=parts)] * bool(parts) + history
        return await self.value.run(last.content, message_history=history or None)


@dataclass(frozen=True, kw_only=True)
class AskedOpenAIAgent(Asked):
    """An agent of the OpenAI Agents SDK. Its instructions are its own."""

    async def __call__(self, *, messages: Sequence[Message]) -> object:
        """Run it with the conversation."""
        library: Any = sys.modules["agents"]
        items = response_items(message for message in messages if message.role != "system")
        return await library.Runner.run(self.value, items)


def asked(value: Any, named: str, file: str) -> AskedRunnable | AskedPydanticAgent | AskedOpenAIAgent:
    """A function that asks an object that can't be called itself. named: its address or its class. file: where it was
    found.

    Raises:
        ConfigError: It is no graph, chain or agent of a known framework, or it is unknown what to give it.
    """
    if _has(value, "run", "run_sync", "iter", "output_validator") and "pydantic_ai.messages" in sys.modules:
        if value.deps_type not in (object, type(None)):
            call = "await bot.run(input, deps=…)"
            raise ConfigError(f"the target {named} needs deps of its own: {_wrap(call, 'async def')}")
        return AskedPydanticAgent(value=value, file=file)
    if _has(value, "get_system_prompt", "get_all_tools") and hasattr(sys.modules.get("agents"), "Runner"):
        return AskedOpenAIAgent(value=value, file=file)
    if _has(value, "ainvoke") or _has(value, "invoke"):
        given, context = _given(value, named), _context(value, named)
        return AskedRunnable(value=value, file=file, given=given, named=named, context=context)
    if _has(value, "compile", "add_node", "add_edge"):
        raise ConfigError(f"the target {named} is not compiled: name what its compile() returns")
    raise ConfigError(f"the target {named} can't be called: {_wrap(f'{_name(named)}.invoke(…)')}")


def _has(value: object, *methods: str) -> bool:
    return not inspect.isclass(value) and all(callable(getattr(value, name, None)) for name in methods)


def _name(named: str) -> str:
    """What the object may be called in code. named: its address, or its class."""
    name = named.rpartition(":")[2].rpartition(".")[2]
    return name if name.islower() else "graph"


def _wrap(call: str, how: str = "def") -> str:
    return f"wrap it in a function, such as {how} agent(*, input): return {call}"


def _pydantic_messages(messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
    """Messages as pydantic-ai has them as data."""
    names: dict[str, str] = {}
    for message in chat_messages(messages):
        content, calls = message["content"], message.get("tool_calls", [])
        match message["role"]:
            case "tool":
                call_id = message["tool_call_id"]
                part = {"part_kind": "tool-return", "tool_name": names[call_id], "tool_call_id": call_id}
                yield {"kind": "request", "parts": [{**part, "content": content}]}
            case "assistant":
                names |= {call["id"]: call["function"]["name"] for call in calls}
                parts = [{"part_kind": "text", "content": content}] if content or not calls else []
                parts += [
                    {
                        "part_kind": "tool-call",
                        "tool_name": call["function"]["name"],
                        "args": call["function"]["arguments"],
                        "tool_call_id": call["id"],
                    }
                    for call in calls
                ]
                yield {"kind": "response", "parts": parts}
            case _:
                yield {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": content}]}


# ---- What a graph or a chain is given ----


def _keeps_state(value: Any) -> bool:
    """Whether it is a graph that stores the state of a conversation under a thread."""
    return getattr(value, "checkpointer", None) not in (None, False) and _has(value, "aget_state")


def _context(value: Any, named: str) -> Any:
    """The context of a graph's runs with its defaults; None without one, or if it is a dictionary, which a graph may do
    without. Raises ConfigError if a field has no default."""
    kind: Any = getattr(value, "context_schema", None)
    if kind is None or typing.is_typeddict(kind):
        return None
    try:
        return kind()
    except Exception:  # noqa: BLE001 - the user's class
        call = f"{_name(named)}.invoke(…, context={kind.__name__}(…))"
        raise ConfigError(f"the target {named} needs a context of its own: {_wrap(call)}") from None


def _given(value: Any, named: str) -> Mapping[str, str] | str:
    """The sample fields for its input, by its own schema. Raises ConfigError if it has none, or another one."""
    kind: Any = getattr(value, "InputType", None)
    names = _names_in(kind)
    if names:
        builder = getattr(value, "builder", None)
        return _of_fields(names, (), named, is_state=kind is getattr(builder, "state_schema", kind))
    if _has(value, "get_input_jsonschema"):
        schema = built(f"the input schema of {named}", value.get_input_jsonschema, {}, "read")
        schema = cast("Mapping[str, Any]", schema.get("$defs", {})).get(_reference(schema), schema)
        properties = schema.get("properties")
        if is_object(properties) and set(properties) != {"root"}:
            return _of_fields(properties, schema.get("required", ()), named, is_state=False)
        root = properties["root"] if is_object(properties) else schema
        if is_object(root) and root.keys() <= {"title", "description", "default"}:
            return "input"  # it takes anything, such as the text that a chain passes on
        kinds = {option.get("type") for option in schema.get("anyOf", [schema]) if is_object(option)}
        if {"string", "array"} <= kinds:
            return "messages"
        if kinds == {"string"}:
            return "input"
    call = f'{_name(named)}.invoke({{"question": input}})'
    raise ConfigError(f"the target {named} has no schema that says what it takes: {_wrap(call)}")


def _reference(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).removeprefix("#/$defs/")


def _names_in(kind: Any) -> list[str]:
    """The names of the fields of a class for data; none for other types."""
    if is_mapping(fields := getattr(kind, "model_fields", None)):
        return [str(name) for name in fields]
    if dataclasses.is_dataclass(kind):
        return [each.name for each in dataclasses.fields(kind) if each.init]
    return list(kind.__annotations__) if typing.is_typeddict(kind) else []


def _of_fields(names: Collection[str], required: Iterable[str], named: str, *, is_state: bool) -> Mapping[str, str]:
    """The sample field of each entry that is given: the messages or the question; of an input that isn't the graph's
    whole state, also the others that a sample has."""
    questions = [name for name in names if field_of(name) == "input"]
    asked = [name for name in ("messages", "input") if name in names][: 1 if is_state else 2] or questions
    given = {name: "messages" if name == "messages" else "input" for name in asked}
    if "messages" not in given and (history := [name for name in names if normal(name) in _HISTORY]):
        given[history[0]] = "history"
    if not is_state:
        given |= {name: field for name in names if (field := field_of(name)) in _OTHERS}
    if not asked or len({*given.values()}) < len(given) or any(name not in given for name in required):
        entries = ", ".join(f'"{name}": {"input" if name in questions else "…"}' for name in names)
        call = f"{_name(named)}.invoke({{{entries}}})"
        raise ConfigError(f"the target {named} takes {joined([*names])}, of which a sample lacks some: {_wrap(call)}")
    return given


def _value(value: Any) -> Any:
    """A field of a sample as frameworks take it."""
    if not isinstance(value, tuple):
        return value
    items = cast("tuple[Any, ...]", value)
    return chat_messages(items) if any(isinstance(each, Message) for each in items) else list(items)


def _answer(result: object, named: str) -> object:
    """The answer in a state without messages, by the names of its entries; anything else as it is."""
    if not is_mapping(result):
        return result
    if "__interrupt__" in result:
        raise TargetError(f"{named} was interrupted: it waits for a person")
    if "messages" in result:
        return result
    entries = {str(name): value for name, value in result.items() if value is not None}
    said = [name for name in entries if field_of(name) == "output"]
    retrieved = [name for name in entries if field_of(name) == "context"]
    if not said:
        said = [name for name, value in entries.items() if isinstance(value, str) and field_of(name) is None]
    if len(said) != 1 or len(retrieved) > 1:
        found = joined(said if len(said) > 1 else retrieved if len(retrieved) > 1 else [*map(str, result)])
        raise DataError(f"{named} returned {found}, and it is unknown what the answer is: {_wrap('Answer(output=…)')}")
    answer = _said(entries[said[0]])
    return replace(answer, context=entries[retrieved[0]]) if retrieved else answer


def _said(value: Any) -> Answer:
    """An answer from its text, its message, or its data."""
    if isinstance(value, str):
        return Answer(output=value)
    return answer_of(value) if hasattr(value, "content") else Answer(output=structured_text(plain(value), ()))
