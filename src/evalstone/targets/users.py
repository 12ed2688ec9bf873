"""Users, who talk with a target: a list of messages, a function, or a judge that plays a person."""

from __future__ import annotations

import asyncio
import functools
import inspect
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar, cast

from evalstone._core import sync
from evalstone._core.addresses import find, is_address
from evalstone._core.code_identity import is_own_code, program_hash
from evalstone._core.computed import Computed
from evalstone._core.declarations import NAME, Range, Rule, check_argument, check_settings
from evalstone._core.display import excerpt
from evalstone._core.guards import is_list, is_mapping
from evalstone._core.json import content_hash
from evalstone._core.sizes import MOST_TURNS
from evalstone._core.text import is_blank
from evalstone._core.values import Value
from evalstone.errors import ConfigError, TargetError, invalid, unknown
from evalstone.judges.base import Judge, JudgeSpec, leaves
from evalstone.judges.lexical import LexicalJudge
from evalstone.judges.parse import parse_judge
from evalstone.questions.base import Question
from evalstone.questions.simulated_user import CHECK_USER, SAY_NEXT, CheckUser, SayNext
from evalstone.targets.base import conversation
from evalstone.targets.function import function_name, parameters_of
from evalstone.types import USER_METADATA, Message, Sample

A = TypeVar("A")

PARAMETERS = ("messages", "turn", "trial", "input", "metadata")
"""The parameters that a function that plays a user can have."""


class AskUser(Protocol):
    """How a simulated user asks its judge."""

    async def __call__(self, judge: Judge, question: Question[A]) -> A: ...


class User(Value):
    """Someone who talks to a target.

    Raises:
        ConfigError: A setting is out of range.
    """

    max_turns: Annotated[int, Range(1, MOST_TURNS)] = 10
    """The number of user messages after which the conversation ends."""

    def __post_init__(self) -> None:
        check_settings(self)

    if TYPE_CHECKING:

        @property
        def identity(self) -> str: ...  # pyright: ignore[reportRedeclaration]

        identity: str | Computed[str] = field(init=False)  # noqa: F811
    else:

        @property
        @abstractmethod
        def identity(self) -> str:
            """The name of the user in results: a class attribute, a field, or a property where it follows from fields.
            As far as can be detected, users with the same identity say the same."""

    @property
    def judges(self) -> tuple[Judge, ...]:
        """The judges that play the user."""
        return ()

    def lacking(self, sample: Sample) -> str:
        """A reason why the user can't talk about a sample, which lacks something; "" if it can.

        Raises ConfigError if it is there but has the wrong type.
        """
        return ""

    @abstractmethod
    async def say(self, sample: Sample, messages: Sequence[Message], turn: int, ask: AskUser) -> str | None:
        """Return the user's next message; None if they have nothing more to say.

        Args:
            sample: The sample, with its trial.
            messages: The conversation so far, without the reasoning in front of the target's answers.
            turn: The number of this user message, from 1.
            ask: Asks a judge.
        """

    async def left_part(self, sample: Sample, messages: Sequence[Message], ask: AskUser) -> str:
        """Return why the user fell out of their role in a conversation; "" if they didn't."""
        return ""


class ScriptedUser(User):
    """Sends the same messages in every conversation, after any messages of the sample.

    Raises:
        ConfigError: The script is empty, or a message is blank.
    """

    script: Sequence[str]

    def __post_init__(self) -> None:
        script = cast("Sequence[object]", self.script)
        if not script:
            raise ConfigError("the user's script is empty")
        for number, message in enumerate(script, start=1):
            if not isinstance(message, str) or is_blank(message):
                raise ConfigError(invalid(f"message {number} of the user's script", "text", message))
        object.__setattr__(self, "script", tuple(self.script))
        object.__setattr__(self, "max_turns", len(script) + 1)  # the sample may begin with one
        super().__post_init__()

    @property
    def identity(self) -> str:
        return f"script {content_hash(self.script)[:8]}"

    async def say(self, sample: Sample, messages: Sequence[Message], turn: int, ask: AskUser) -> str | None:
        said = turn - 1 - is_open(sample)
        return self.script[said] if said < len(self.script) else None


class FunctionUser(User):
    """A function that returns the user's next message, or None when the user has nothing more to say.

    Its parameters can be messages, turn (from 1), trial, input and metadata. A plain function runs in a thread. Its
    code is part of its identity, so that stored conversations with another user are not reused.

    Raises:
        ConfigError: A parameter is none of these, or the function can't be called this way.
    """

    function: Callable[..., Any]
    timeout: Annotated[float, Range(0, exclusive=True)] = 120.0
    """Maximum seconds for one message."""
    _identity: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        function: Any = self.function
        if inspect.isclass(function):
            raise ConfigError(invalid("the user", "a function", function))
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError(f"the user {self._name} yields; return one message instead")
        for parameter in self._parameters.values():
            known = parameter.name in PARAMETERS and parameter.kind is not parameter.POSITIONAL_ONLY
            if not known and parameter.default is parameter.empty:
                raise ConfigError(f"the user {self._name} has an ", unknown("parameter", parameter.name, PARAMETERS))
        # Computed now, because calls may change the function's state.
        settings = f"max_turns={self.max_turns}; {program_hash(function)[:8]}"
        object.__setattr__(self, "_identity", f"{self._name} ({settings})")

    @functools.cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return parameters_of(self.function)

    @property
    def _name(self) -> str:
        return function_name(self.function)

    @property
    def identity(self) -> str:
        return self._identity

    async def say(self, sample: Sample, messages: Sequence[Message], turn: int, ask: AskUser) -> str | None:
        values = {
            "messages": tuple(messages),
            "turn": turn,
            "trial": sample.trial or 1,
            "input": sample.input,
            "metadata": sample.metadata,
        }
        arguments = {name: value for name, value in values.items() if name in self._parameters}
        clock = asyncio.timeout(self.timeout)
        try:
            async with clock:
                return await sync.call_at_once(self.function, **arguments)
        except TimeoutError:
            if clock.expired():
                raise TargetError(f"no message within {self.timeout:g} s") from None
            raise


class SimulatedUser(User):
    """A judge that plays a person with a goal.

    Each sample's metadata describe the role: `goal` (a text, or a list of texts), and optionally `persona` (text) and
    `facts` (a text, a list of texts, or an object of names and values). The person knows nothing else. After the
    conversation, the judge checks each of the person's messages. If the person fell out of the role, the trial is
    Skipped, because the target answered somebody who isn't in the dataset.

    Raises:
        ConfigError: The judge is unknown, or can't write messages.
    """

    judge: Annotated[JudgeSpec, Rule("a judge", lambda _: True)]
    """The judge that plays the person: a name, a table or a Judge. Not the lexical judge."""
    check: bool = True
    """Whether to check the person's messages, in one more call per conversation."""
    _judge: Judge = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        judge = parse_judge(self.judge)
        if any(isinstance(leaf, LexicalJudge) for leaf in leaves(judge)):
            raise ConfigError("the lexical judge can't play a user; name a language model, such as openai/gpt-5.1")
        object.__setattr__(self, "_judge", judge)

    @property
    def identity(self) -> str:
        prompts = (SAY_NEXT, CHECK_USER) if self.check else (SAY_NEXT,)
        fingerprints = ", ".join(prompt.fingerprint for prompt in prompts)
        return f"{self._judge.identity} as user (max_turns={self.max_turns}; {fingerprints})"

    @property
    def judges(self) -> tuple[Judge, ...]:
        return (self._judge,)

    def lacking(self, sample: Sample) -> str:
        goal, _, _ = _part(sample)
        return "" if goal else "the simulated user needs a goal, which the sample's metadata lacks"

    async def say(self, sample: Sample, messages: Sequence[Message], turn: int, ask: AskUser) -> str | None:
        goal, persona, facts = _part(sample)
        said = await ask(
            self._judge, SayNext(goal=goal, persona=persona, facts=facts, conversation=tuple(said_in(messages)))
        )
        if said.finished and turn > 1:
            return None
        if is_blank(said.message):
            raise TargetError("it said nothing, and was not finished")
        return said.message

    async def left_part(self, sample: Sample, messages: Sequence[Message], ask: AskUser) -> str:
        goal, persona, facts = _part(sample)
        recorded = conversation(sample)  # the dataset's own messages need no check
        played = tuple(message.content for message in messages[len(recorded) :] if message.role == "user")
        if not self.check or not played:
            return ""
        question = CheckUser(
            goal=goal, persona=persona, facts=facts, conversation=tuple(said_in(messages)), messages=played
        )
        for verdict in await ask(self._judge, question):
            if not verdict.in_character:
                return f"the simulated user left its part with {excerpt(verdict.message)}: {verdict.reason}"
        return ""


def is_open(sample: Sample) -> bool:
    """Whether the dataset has the first user message."""
    return any(message.role == "user" for message in conversation(sample))


def said_in(messages: Sequence[Message]) -> list[str]:
    """The texts of a conversation with their speakers, as the user sees it: without tool calls and their results."""
    speakers = {"user": "Person", "assistant": "Assistant"}
    said = ((message.role, message.content) for message in messages if message.role in speakers)
    return [f"{speakers[role]}: {text}" for role, text in said if not is_blank(text)]


def _part(sample: Sample) -> tuple[str, str, tuple[str, ...]]:
    """The goal, persona and facts in the metadata. Raises ConfigError for another type."""
    goal, persona, facts = (sample.metadata.get(name) for name in USER_METADATA)
    criteria = [goal] if isinstance(goal, str) else [] if goal is None else goal
    if not is_list(criteria) or not all(isinstance(one, str) for one in criteria):
        raise ConfigError(
            f"sample {excerpt(sample.id)}: ", invalid("goal in the metadata", "a text or a list of texts", goal)
        )
    if persona is not None and not isinstance(persona, str):
        raise ConfigError(f"sample {excerpt(sample.id)}: ", invalid("persona in the metadata", "text", persona))
    if is_mapping(facts):
        facts = [f"{name}: {value}" for name, value in facts.items()]
    listed = [facts] if isinstance(facts, str) else [] if facts is None else facts
    if not is_list(listed) or not all(isinstance(one, str) for one in listed):
        raise ConfigError(
            f"sample {excerpt(sample.id)}: ", invalid("facts in the metadata", "texts or an object", facts)
        )
    return "\n".join(criteria).strip(), persona or "", tuple(listed)


_KINDS = "a list of messages, a function (my_app:user), a model (openai/gpt-5.1), a judge or a table"
_SETTINGS = ("judge", "function", "script", "max_turns", "check", "timeout")


def parse_user(spec: object) -> User:
    """A user from a list of messages, a function, the name of a judge, a table of settings, or a User.

    An address, `module:name` or `path/file.py:name`, names a function, or else a User or a judge.

    Raises:
        ConfigError: There is no such function or judge, or a setting is unknown or out of range.
    """
    match spec:
        case User():
            if is_own_code(type(spec)):
                check_argument("identity", spec.identity, Annotated[str, NAME], type(spec).__name__)
            return spec
        case str():
            if not {"/", ":", "("} & set(spec) and spec != "lexical":
                raise ConfigError(invalid("user", _KINDS, spec).worded(f"a user is {_KINDS}, not {excerpt(spec)}"))
            if not is_address(spec):
                return _built({"judge": spec})
            value = find(spec, "the user")
            return parse_user(value) if isinstance(value, User | Judge) else _built({"function": value})
        case Judge():
            return SimulatedUser(judge=spec)
        case Mapping():
            return _built({str(name): value for name, value in cast("Mapping[Any, Any]", spec).items()})
        case list() | tuple():
            return ScriptedUser(script=cast("list[str]", spec))
        case _ if callable(spec):
            return FunctionUser(function=spec)
        case _:
            raise ConfigError(invalid("user", _KINDS, spec).worded(f"a user is {_KINDS}, not {excerpt(spec)}"))


def _built(settings: dict[str, Any]) -> User:
    for name in settings:
        if name not in _SETTINGS:
            more = "; settings of the judge go into a table [user.judge]" if "judge" in settings else ""
            raise ConfigError("the user has an ", unknown("setting", name, _SETTINGS), more)
    kinds = [name for name in ("judge", "function", "script") if name in settings]
    if len(kinds) != 1:
        raise ConfigError(f"a user's table needs one of judge, function and script; it has {', '.join(settings)}")
    if kinds == ["function"]:
        function = settings["function"]
        settings["function"] = find(function, "the user") if isinstance(function, str) else function
    kind: Any = {"judge": SimulatedUser, "function": FunctionUser, "script": ScriptedUser}[kinds[0]]
    if "check" in settings and kind is not SimulatedUser:
        raise ConfigError("check is a setting of a user that a judge plays")
    if "timeout" in settings and kind is not FunctionUser:
        raise ConfigError("timeout is a setting of a user that is a function")
    if "max_turns" in settings and kind is ScriptedUser:
        raise ConfigError("a script has as many turns as messages; leave out max_turns")
    return kind(**settings)
