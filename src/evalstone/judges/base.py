"""The base class of judges, and how composite judges call their members."""

from __future__ import annotations

import inspect
import json
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, cast, dataclass_transform
from weakref import WeakKeyDictionary

from evalstone._core.code_identity import brief, class_hash, is_own_code
from evalstone._core.computed import Computed
from evalstone._core.declarations import NAME, check_argument
from evalstone._core.display import excerpt
from evalstone._core.guards import is_list
from evalstone._core.json import content_hash
from evalstone._core.plugins import distributions_of
from evalstone._core.redaction import is_credential, register
from evalstone._core.text import BYTES_PER_TOKEN
from evalstone._core.values import Required, ValueMeta, as_value, require_callable
from evalstone.errors import ConfigError, JudgeError, ReplyError, invalid
from evalstone.models.limits import NO_LIMITS, Limits, shared_limiter
from evalstone.questions.answers import JudgeAnswer, failed_call, judge_call
from evalstone.questions.base import Question, QuestionSpec, answer_problem
from evalstone.types import NO_USAGE, JudgeCall, Note, Sample, Usage, total_cost
from evalstone.types.context_limits import DEFAULT_LIMITS, ContextLimits

A = TypeVar("A")


if TYPE_CHECKING:

    @dataclass(frozen=True)
    class _Identified:
        @property
        def identity(self) -> str: ...  # pyright: ignore[reportRedeclaration]

        identity: str | Computed[str] = field(init=False)  # noqa: F811
else:
    _Identified = object


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Judge(_Identified, metaclass=ValueMeta):
    """Anything that can answer a question: a language model, code, a recording, or a combination of judges.

    Judges are values, not connections: frozen, picklable and comparable. A subclass is a frozen dataclass, without a
    decorator; its parameters are its fields. A judge of your own needs one method, `answer`. With `cacheable = False`,
    no ledger keeps its answers.
    """

    cacheable: bool = True
    """Whether answers are stored in the ledger: those of a model, whatever its price. A judge without a model costs
    nothing, and gives its answers again sooner than they are read."""

    deterministic: bool = False
    """Whether the judge gives the same answer each time, so repeating a question is pointless."""

    members: tuple[Judge, ...] = ()
    """The judges that a composite judge calls. Empty for every other judge."""

    asks_at_once: bool = False
    """Whether a composite judge calls its members at the same time, so that an answer takes as long as the slowest."""

    note: str = ""
    """One sentence for reports: what this judge is and what it can't see."""

    limits: Limits = NO_LIMITS
    """Limits for calls to this judge. A judge without members applies them itself: `async with
    self.limits.admitted(self.identity): …`."""

    def __init_subclass__(
        cls, *, kw_only: bool = True, init: bool = True, eq: bool = True, repr: bool = True, **more: Any
    ) -> None:
        super().__init_subclass__(**more)
        as_value(cls, kw_only=kw_only, init=init, eq=eq, repr=repr)
        require_callable(cls, "answer", "async def answer(self, question, repeat=0)", 2)
        require_callable(cls, "combine", "async def combine(self, question, ask)", 2)
        if is_own_code(cls):
            _OwnIdentity.add_to(cls)

    if not TYPE_CHECKING:

        @property
        def identity(self) -> str:
            """The judge's name in the ledger and in reports. Judges with equal identities give interchangeable answers.

            By default, the name of its class with the settings that aren't at their default. A field with
            `compare=False`, such as a timeout, is no such setting. A judge of your own may have another name: a class
            attribute, a field, or a property. Its identity ends with a hash of its code all the same:
            `MyJudge(strict=True)#5c1d77b2`. That of a plug-in also has the version of its package:
            `AcmeJudge#5c1d77b2@acme-eval==1.2.0`.
            """
            kind, settings = type(self), list[str]()
            for each in fields(cast(Any, self)):
                value = getattr(self, each.name)
                default = each.default if each.default_factory is MISSING else each.default_factory()
                if each.compare and value != default and each.name != "limits" and not is_credential(each.name):
                    settings.append(f"{each.name}={_shown(value)}")
            return f"{kind.__name__}({', '.join(settings)})" if settings else kind.__name__

    @abstractmethod
    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        """Answer a question.

        Args:
            question: The question.
            repeat: The repetition of the same question, from 0. A judge with a fixed seed uses a different seed for
                each.

        Raises:
            JudgeDeclined: The judge can't answer this question.
            JudgeError: The judge failed to answer.
        """

    async def combine(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        """Combine the members' answers. Only called for judges with members.

        Args:
            question: The question.
            ask: Calls a member and records the call: `await ask(member, question)`. Call members in no other way.

        Raises:
            JudgeDeclined: The members declined, or their answers can't be combined.
            JudgeError: Too few members answered.
        """
        raise NotImplementedError(f"{type(self).__name__} has no members to combine")

    def read(
        self, question: Question[A], reply: str, alternatives: Mapping[str, float] | None
    ) -> tuple[A, Mapping[str, Any] | None]:
        """The value and the detail of an answer whose `reply` and `alternatives` were stored. Raises ReplyError if the
        reply no longer fits the question."""
        return question.parse_grounded(reply, alternatives)

    def check_questions(self, scorer: str, asked: Iterable[QuestionSpec]) -> None:
        """Raise ConfigError if the judge can't answer a question that a scorer asks. By default, it declines such
        questions when they are asked.

        asked: Kinds of question, and examples of questions whose answer depends on more than their kind.
        """

    def check_scorers(self, signatures: Sequence[str]) -> None:
        """Raise ConfigError if the judge was aligned for another scorer than those with these signatures. By default,
        the members are checked."""
        for member in self.members:
            member.check_scorers(signatures)

    def price(self, usage: Usage) -> float | None:
        """The cost of these tokens in US dollars; None if the price is unknown."""
        return None if self.cacheable else 0.0

    def estimated_usage(self, question: Question[Any], size: int | None = None) -> Usage:
        """The estimated tokens of a question and of a reply of usual length, at four bytes per token.

        size: The number of bytes of the messages; None for those of the question.
        """
        if size is None:
            size = sum(len(text.encode()) for text in question.render())
        prompt = size + len(json.dumps(question.json_schema or {}))
        return Usage(prompt // BYTES_PER_TOKEN, len(json.dumps(question.example())) // BYTES_PER_TOKEN, 0, 1)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never be printed or stored, such as an API key. They are shown as `***`."""
        return ()

    def cautions(self, samples: Iterable[Sample]) -> tuple[Note, ...]:
        """Notes on samples that this judge doesn't suit, such as those in another language than it was trained on. By
        default, those of the members. A judge of your own says it in a text: `note("of_judge", "warning", text=…)`."""
        listed = cautioning(*self.members)
        every = list(samples) if len(listed) > 1 else samples
        return tuple(dict.fromkeys(note for judge in listed for note in judge.cautions(every)))

    def with_cautions(self) -> tuple[Judge, ...]:
        """The judges whose `cautions` are those of this one: itself, if its class defines them, else those of its
        members."""
        return (self,) if type(self).cautions is not Judge.cautions else cautioning(*self.members)

    def opened(self) -> AbstractAsyncContextManager[object]:
        """A context that holds the judge's connections open; each run enters it once."""
        return nullcontext(self) if self.limits == NO_LIMITS else shared_limiter(self.identity, self.limits)

    @property
    def context_limits(self) -> ContextLimits:
        """How long one question to this judge may be. Longer questions are split if possible."""
        return DEFAULT_LIMITS

    def check(self) -> None:
        """Raise ConfigError for problems that can be detected before the first call, such as a missing API key."""


JudgeSpec: TypeAlias = str | Mapping[str, Any] | Judge
"""A name such as "lexical", "openai/gpt-5.1" or "my_app:judge", a table of settings, or a Judge."""


def _shown(value: Any) -> str:
    """A setting in an identity."""
    if isinstance(value, Judge):
        return value.identity
    if is_list(value) and any(isinstance(each, Judge) for each in value):
        return f"[{', '.join(map(_shown, value))}]"
    return content_hash(value)[:8] if isinstance(value, str) and not NAME.holds(value) else brief(value)


class _OwnIdentity:
    """The identity of judges of a class outside evalstone: what the class says, and a hash of its code.

    What a judge answers follows from its code. Answers of other code are never taken for those of the judge.
    """

    def __init__(self, said: Any) -> None:
        self.said = said

    @classmethod
    def add_to(cls, kind: type[Judge]) -> None:
        said = inspect.getattr_static(kind, "identity")
        if not isinstance(said, cls):
            type.__setattr__(kind, "identity", cls(said))  # also where it is a field

    def __get__(self, judge: Judge | None, kind: type[Judge] | None = None) -> Any:
        if judge is None:
            return self
        getter = getattr(self.said, "__get__", None)
        said = vars(judge).get("identity", self.said) if getter is None else getter(judge, kind)
        check_argument("identity", said, Annotated[str, NAME], type(judge).__name__)
        mark = f"#{_code_of(type(judge))}"
        return f"{said.removesuffix(mark)}{mark}"

    def __set__(self, judge: Judge, value: object) -> None:
        if hasattr(self.said, "__get__") and not isinstance(self.said, Required):
            raise AttributeError("the identity of a judge can't be set")
        vars(judge)["identity"] = value


_CODE: WeakKeyDictionary[type[Judge], str] = WeakKeyDictionary()


def _code_of(kind: type[Judge]) -> str:
    """A hash of the code of a judge's class, as it was when it was first needed, and the versions of its plug-ins."""
    if (known := _CODE.get(kind)) is None:
        known = _CODE[kind] = "@".join([class_hash(kind)[:8], *distributions_of(kind.__mro__)])
    return known


class NoJudge(Judge):
    """The judge of a run without one. Every question to it is an error."""

    cacheable = False

    @property
    def identity(self) -> str:
        return "none"

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        raise ConfigError(f"a scorer asks {question.kind}, and judge is None; name a judge, such as lexical")


def register_secrets(judge: Judge) -> None:
    """Register a judge's secrets, so that they are never printed or stored."""
    secrets: object = judge.secrets
    register(*((secrets,) if isinstance(secrets, str) else judge.secrets))


class MemberCalls:
    """Calls the members of a composite judge. `calls` lists every call in order of completion, including failed ones.

    repeat: the repetition of the composite judge itself. It is added to the repetition of every member call, so a
    repeated composite judge gets new answers from its members. A judge that calls the same member several times must
    itself choose repetitions that differ between its own repetitions.
    """

    def __init__(
        self, ask: Callable[[Question[Any], Judge, int], Awaitable[JudgeAnswer[Any]]] | None = None, repeat: int = 0
    ) -> None:
        """Call members through `ask`, such as that of a run's session. None calls them directly."""
        self._ask = ask or answer_directly
        self.repeat = repeat
        self.calls: list[JudgeCall] = []
        self._started = time.perf_counter()

    def totals(self) -> dict[str, Any]:
        """Usage, cost, wall time and calls so far, as keyword arguments of an answer or an error."""
        return {
            "usage": sum((call.usage for call in self.calls), NO_USAGE),
            "cost": total_cost(call.cost for call in self.calls),
            "seconds": time.perf_counter() - self._started,
            "members": tuple(self.calls),
        }

    async def __call__(self, judge: Judge, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        """Call a member. Raises what the member raises."""
        repeat += self.repeat
        try:
            answer = await self._ask(question, judge, repeat)
        except JudgeError as error:
            self.calls.append(failed_call(question, error, judge.identity, repeat))
            raise
        self.calls.append(judge_call(question, answer, repeat))
        return answer


async def awaited_answer(judge: Judge, question: Question[A], returned: Awaitable[JudgeAnswer[A]]) -> JudgeAnswer[A]:
    """The answer that a method of a judge returned, once it is there.

    Raises:
        ConfigError: It is no JudgeAnswer, or nothing to await.
        ReplyError: Its value is no answer to the question.
    """
    waits = inspect.isawaitable(cast("object", returned))
    answer: JudgeAnswer[A] = await returned if waits else cast(Any, returned)
    if not waits or not isinstance(cast("object", answer), JudgeAnswer):
        method = "combine" if judge.members else "answer"
        expected = f"{type(judge).__name__}.{method} must be an async def that returns a JudgeAnswer"
        raise ConfigError(f"{expected}; it gave a value of type {type(answer).__name__}")
    if is_own_code(type(judge)) and (problem := answer_problem(question, answer.value)) is not None:
        shown = f"{excerpt(answer.value)} ({type(answer.value).__name__})"
        raise ReplyError(f"{judge.identity}: {invalid(f'the answer to {question.kind}', problem, answer.value, shown)}")
    return answer


async def answer_directly(question: Question[A], judge: Judge, repeat: int = 0) -> JudgeAnswer[A]:
    """Call a judge directly, without a ledger or a budget."""
    return await judge.answer(question, repeat)


def leaves(*judges: Judge) -> tuple[Judge, ...]:
    """The judges without members among these judges, their members, and so on; each once."""
    nested = (leaf for judge in judges for leaf in (leaves(*judge.members) if judge.members else (judge,)))
    return tuple({leaf.identity: leaf for leaf in nested}.values())


def cautioning(*judges: Judge) -> tuple[Judge, ...]:
    """The judges that have notes on samples among these judges and their members; each once."""
    return tuple({one.identity: one for judge in judges for one in judge.with_cautions()}.values())
