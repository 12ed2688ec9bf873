"""Questions and answers: what is asked of a judge, as a value, and what comes back.

A judged question is three things: its reply type (reply.py), its prompt, and a class whose fields are its inputs.
`Question` is for one reply of a dataclass type, `VerdictPerItem` for a verdict on each item of an input, and `ListOf`
for a list that the judge makes. Schema, validation, example and votes follow from the reply type.

Two equal questions have one fingerprint. That's why a question is asked only once, why answers can be reused and
replayed, and why a judge that is no language model can answer the same question.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast, get_args, get_origin

from evalstone._core.json import content_hash, strict_jsonable, to_jsonable
from evalstone._core.parsing import (
    PLACEHOLDER,
    bare,
    check_length,
    member,
    numbered_schema,
    object_schema,
    parse_json,
    refuse_placeholders,
    text_schema,
    texts,
    validated,
)
from evalstone._core.prompts import Material, Prompt
from evalstone.errors import ConfigError, JudgeError, OutcomeError, ReplyError
from evalstone.questions.reply import (
    LONGEST_TEXT,
    MOST_ITEMS,
    Quotes,
    Restates,
    check_list,
    list_schema,
    read_list,
    read_numbered,
    read_reply,
    reply_fields,
    schema_of,
    subject_of,
)
from evalstone.questions.schemas import example_of, fold_words, form_of, has_labels, words_of
from evalstone.types import NO_USAGE, JudgeCall, Usage

A = TypeVar("A")
V = TypeVar("V")
C = TypeVar("C", bound="Answer[Any] | JudgeCall")

BYTES_PER_TOKEN = 4
CHARACTERS_PER_ITEM = 90


@dataclass(frozen=True)
class LabelProbabilities:
    """The labels whose probabilities a question asks for: those that one key of the reply may have."""

    key: str
    labels: tuple[str, ...]


class _Prompted:
    """Attributes of every question. They stand in a plain class so that subclasses decide where their fields come."""

    prompt: Prompt
    notes: ClassVar[str] = ""
    """What is said about the members of the reply, after its form."""
    placeholder: ClassVar[re.Pattern[str]] = PLACEHOLDER
    """What is no text in a reply."""
    bounded: bool = True
    """Whether numbers outside the range that the reply type says are refused."""


@dataclass(frozen=True)
class Question(_Prompted, Generic[A]):
    """What a judge is asked, and how its reply becomes an `A`.

    Subclasses are frozen dataclasses with a `kind` and a field `prompt`. Every other field is an input (text, or a
    tuple of texts) with a placeholder of its name in the prompt's template; `settings` names fields that only shape the
    reading and have no placeholder. The schema, the validation and the example are derived from `A`, a dataclass with
    the markers of reply.py; another `A` needs `json_schema` and `from_json` of its own.
    """

    kind: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[tuple[str, ...]] = ()
    """The inputs that may be empty: the prompt then leaves them out, and a user's template may lack them."""

    def __post_init__(self) -> None:
        _check_placeholders(type(self), self.prompt)

    def inputs(self) -> dict[str, Material]:
        """What fills the prompt's placeholders."""
        return {name: getattr(self, name) for name in _input_names(type(self))}

    def render(self) -> tuple[str, str]:
        """The system and the user message that ask a language model this question."""
        return self.prompt.render(self.inputs(), f"{self.form}\n{self.notes}".strip(), self.optional)

    @property
    def form(self) -> str:
        """How the reply looks, in one line; empty when it is plain text."""
        form = _derived_form(type(self))
        return form.text if form else _form_text(self.json_schema)

    @functools.cached_property
    def fingerprint(self) -> str:
        """The question's identity: 32 hexadecimal digits over kind, prompt, form of the reply, inputs and settings."""
        content = [getattr(self, name) for name in (*_input_names(type(self)), *self.settings)]
        form = _derived_form(type(self))
        digest = form.digest if form else content_hash([self.json_schema, self.form, self.notes])
        return content_hash([self.kind, self.prompt.digest, digest, content])

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any] | None:
        """The JSON schema of the reply; None when the reply is plain text."""
        return schema_of(answer_type(type(self)), self, subject=self._subject() is None)

    def from_json(self, data: Any) -> A:
        """The answer in a parsed reply. Raises ReplyError when there is none."""
        return read_reply(answer_type(type(self)), data, self, subject=self._subject())

    def from_jsonable(self, data: Any) -> A:
        """The answer that `to_jsonable` made this data of. Raises ReplyError when it is not one."""
        return cast(A, validated(answer_type(type(self)), data, "answer"))

    def _subject(self) -> Any:
        """What the answer is on, where an input says so; None where nothing does."""
        subject = subject_of(answer_type(type(self)))
        return getattr(self, subject.name, None) if subject else None

    def parse(self, reply: str) -> A:
        """The answer in a raw reply. Raises ReplyError when there is none.

        A word out of a list is read in any case, with white space or quotes around it or a period after it.
        """
        check_length(reply)
        if (schema := self.json_schema) is None:
            return self.from_json(reply)
        data = parse_json(reply)
        try:
            if data == schema:
                raise ReplyError("the reply repeats the form; fill it in", reply=reply)
            refuse_placeholders(data, _copied(self.prompt), self._written_out, self.placeholder)
            try:
                return self.from_json(data)
            except ReplyError:
                if (folded := fold_words(data, schema)) == data:
                    raise
            return self.from_json(folded)
        except RecursionError:
            raise ReplyError("the JSON in the reply is nested too deeply", reply=reply) from None

    def _written_out(self) -> Collection[str]:
        """What no placeholder is, whatever it looks like: words of the form, and whole texts that are judged."""
        given = self.inputs().values()
        whole = [text for value in given for text in ((value,) if isinstance(value, str) else value)]
        return {*words_of(self.json_schema or {}), *map(str.strip, whole), *(text.strip(" \n.") for text in whole)}

    def parse_with_probabilities(self, reply: str, probabilities: Mapping[str, float] | None = None) -> A:
        """The answer in a raw reply, with the probabilities of its labels where the judge gives any."""
        answer = self.parse(reply)
        return self.with_probabilities(answer, probabilities) if probabilities else answer

    def with_probabilities(self, answer: A, probabilities: Mapping[str, float]) -> A:
        """The answer with the probabilities of the labels that could have stood in its place."""
        return answer

    @property
    def label_probabilities(self) -> LabelProbabilities | None:
        """The labels whose probabilities the judge should report; None for a question that doesn't use them."""
        return None

    @property
    def divisible_by(self) -> str | None:
        """The input whose items can be asked about in several questions; None for a question that can't be divided."""
        return None

    def example(self) -> Any:
        """A reply of typical length, as data: what a dry run assumes."""
        schema = self.json_schema
        return "Yes" if schema is None else example_of(schema, self.fingerprint[:8])


@functools.cache
def answer_type(kind: type[Question[Any]]) -> Any:
    """The type of a question's answers: the `A` of its `Question[A]`. Raises ConfigError when the class has none."""
    for base in getattr(kind, "__orig_bases__", ()):
        origin, args = get_origin(base) or base, get_args(base)
        if origin is Question and args:
            return args[0]
        if origin is not Question and issubclass(origin, Question):
            general = answer_type(cast("type[Question[Any]]", origin))
            if isinstance(general, TypeVar):
                return args[0]
            return general[args] if getattr(general, "__parameters__", ()) else general
    raise ConfigError(f"{kind.__name__} doesn't say what its answers are: derive it from Question[…]")


class VerdictPerItem(Question[tuple[V, ...]], Generic[V]):
    """One verdict for each item of one input, in order.

    items: the input. noun: what an error calls an item, by default the subject of `V`. The reply is
    `{"verdicts": {"1": …, "2": …}}`; a missing verdict, or one too many, is a ReplyError.
    """

    items: ClassVar[str]
    noun: ClassVar[str] = ""

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        verdict = schema_of(_item_type(type(self)), self, subject=False)
        return object_schema({"verdicts": numbered_schema(verdict, len(getattr(self, self.items)))})

    def from_json(self, data: Any) -> tuple[V, ...]:
        return read_numbered(_item_type(type(self)), member(data, "verdicts"), self, self.items, self.noun)

    @property
    def divisible_by(self) -> str | None:
        subject = subject_of(_item_type(type(self)))
        # Verdicts on numbers can't be put together again: each part would count from 1.
        return None if subject and subject.type is int else self.items


class ListOf(Question[tuple[V, ...]], Generic[V]):
    """A list that the judge makes, of texts or of a reply type. Blank texts are dropped.

    key: its name in the reply. source: which input texts are from, word for word or in other words. How many items a
    dry run assumes follows from the length of the inputs.
    """

    key: ClassVar[str]
    source: ClassVar[Quotes | Restates | None] = None

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        kind = _item_type(type(self))
        return object_schema({self.key: list_schema(_TEXT if kind is str else schema_of(kind, self))})

    def from_json(self, data: Any) -> tuple[V, ...]:
        kind, listed = _item_type(type(self)), member(data, self.key)
        if kind is not str:
            return read_list(kind, listed, self, self.key)
        items = texts(listed, self.key)
        check_list(items, self.key)
        for number, item in enumerate(items, start=1):
            problem = self.source.problem(item, self) if self.source else ""
            if len(item) >= LONGEST_TEXT and isinstance(self.source, Restates):
                problem = f"it has {len(item):,} characters; each must stay under {LONGEST_TEXT:,}"
            if problem:
                raise ReplyError(f"{self.key}.{number}: {problem}")
        return cast("tuple[V, ...]", items)

    def typical_count(self, characters: int) -> int:
        """How many items judges list for inputs of so many characters."""
        return characters // CHARACTERS_PER_ITEM

    def example(self) -> Any:
        text = "".join(value if isinstance(value, str) else "".join(value) for value in self._sources())
        count = min(max(1, self.typical_count(len(text))), MOST_ITEMS - 1)
        step = max(1, len(text) // count)
        excerpts = [text[i * step :][:CHARACTERS_PER_ITEM].strip() for i in range(count)]
        excerpts = list(filter(None, excerpts))
        item: Any = example_of(self.json_schema["properties"][self.key]["items"], self.fingerprint[:8])
        if isinstance(item, str):
            return {self.key: excerpts}
        quoting = [field.key for field in reply_fields(_item_type(type(self))) if Quotes in field.markers]
        return {self.key: [{**item, **dict.fromkeys(quoting, excerpt)} for excerpt in excerpts]}

    def _sources(self) -> Iterable[Material]:
        """The inputs that the items come from."""
        inputs = self.inputs()
        markers = [field.marker(Quotes) for field in reply_fields(_item_type(type(self)))]
        if source := self.source or next(filter(None, markers), None):
            return [inputs[source.input if isinstance(source, Quotes) else source.inputs[0]]]
        return inputs.values()


@functools.cache
def _item_type(kind: type[Question[Any]]) -> Any:
    return get_args(answer_type(kind))[0]


def is_votable(question: Question[Any]) -> bool:
    """Whether answers to a question have labels outside the lists that a judge makes.

    Plain text counts as a label: the only question with such a reply asks for yes or no.
    """
    return question.json_schema is None or has_labels(question.json_schema)


class _OneOfEach:
    """Stands for a question that has one item of each input."""

    def __getattr__(self, name: str) -> tuple[str, ...]:
        return ("",)


@dataclass(frozen=True)
class _Form:
    """How the replies to a class of questions look, in words, and the hash of all that they are derived from."""

    text: str
    digest: str


@functools.cache
def _derived_form(kind: type[Question[Any]]) -> _Form | None:
    """The form of the replies to a class of questions; None for a class that makes its schemas itself.

    How many items a schema is for follows from the inputs, which would be hashed twice at every question.
    """
    if kind.json_schema is Question.json_schema:
        reply = answer_type(kind)
    elif kind.json_schema in (VerdictPerItem.json_schema, ListOf.json_schema):
        reply = _item_type(kind)
    else:
        return None
    try:
        subject = None if kind.json_schema is VerdictPerItem.json_schema else subject_of(reply)
        named = subject is not None and subject.name not in _input_names(kind)
        schema = _TEXT if reply is str else schema_of(reply, _OneOfEach(), subject=named)
    except (ConfigError, NameError):  # no schema follows from this type, so that only code can answer
        return _Form("", content_hash([{"type": str(reply)}, getattr(kind, "key", "")]))
    whole: Mapping[str, Any] = schema
    if kind.json_schema is VerdictPerItem.json_schema:
        whole = object_schema({"verdicts": numbered_schema(schema, 1)})
    elif kind.json_schema is ListOf.json_schema:
        whole = object_schema({cast(Any, kind).key: list_schema(schema)})
    text = _form_text(whole)
    return _Form(text, content_hash([schema, getattr(kind, "key", ""), text, kind.notes]))


def _form_text(schema: Mapping[str, Any] | None) -> str:
    return "" if schema is None else f"Reply with a JSON object of this form: {form_of(schema)}"


@functools.lru_cache(maxsize=512)
def _copied(prompt: Prompt) -> Collection[str]:
    """The reasons in a prompt's worked example, bare: a reply that has one of them was copied."""
    return frozenset(bare(json.loads(text)) for text in _REASON.findall(prompt.example))


_REASON = re.compile(r'"reason": ("(?:[^"\\]|\\.)*")')
_TEXT = text_schema(LONGEST_TEXT)


@functools.cache
def _input_names(kind: type[Question[Any]]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name != "prompt" and f.name not in kind.settings)


@functools.lru_cache(maxsize=512)
def _check_placeholders(kind: type[Question[Any]], prompt: Prompt) -> None:
    prompt.check(_input_names(kind), kind.optional)


@dataclass(frozen=True, kw_only=True)
class Answer(Generic[A]):
    """A judge's answer and what it took.

    Raises:
        OutcomeError: A cost, a count, a time or a probability is NaN or infinite, the cost is below 0, or the value or
            the detail has no form as JSON.
    """

    value: A
    """The typed answer."""
    judge: str
    """The identity of the judge."""
    reply: str | None = None
    """The raw reply; None when the judge is no language model."""
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    """US dollars; None when the price is unknown."""
    seconds: float = 0.0
    """Wall time, waiting for retries included."""
    confidence: float | None = None
    """The probability in [0, 1] that the answer is right, when the judge gives one."""
    alternatives: Mapping[str, float] | None = None
    """The probabilities of the question's labels, when it asks for them and the judge gives them."""
    refused_settings: tuple[str, ...] = ()
    """The judge's settings that its endpoint refused, so that this answer was given without them."""
    cached: bool = False
    """Nothing was asked for it."""
    members: tuple[JudgeCall, ...] = ()
    """Of a composite judge: what its members answered."""
    detail: Mapping[str, Any] | None = None
    """Of a composite judge: how the members' answers became one."""

    def __post_init__(self) -> None:
        counts = (self.usage.input, self.usage.output, self.usage.cached, self.usage.requests)
        for number in (self.cost, self.seconds, self.confidence, *counts, *(self.alternatives or {}).values()):
            if number is not None and not math.isfinite(number):
                raise OutcomeError(f"{self.judge}: a cost, a count, a time or a probability of its answer is {number}")
        if self.cost is not None and self.cost < 0:
            raise OutcomeError(f"{self.judge}: the cost of its answer is {self.cost}, below 0")
        if self.reply is None or self.detail is not None:  # what was read from a reply has one
            try:
                strict_jsonable([self.value, self.detail])
            except ValueError as error:
                raise OutcomeError(f"{self.judge}: its answer cannot be written as JSON: {error}") from None


def item_confidences(question: Question[Any], answer: Answer[Any]) -> tuple[float | None, ...] | None:
    """How sure a judge was of each item of its answer; None where it doesn't say, or the question can't be divided.

    Taken from the votes of a panel or of repetitions, or from the verdicts themselves. The same stored answer gives the
    same confidences, so a resumed run divides its questions as before.
    """
    if question.divisible_by is None:
        return None
    verdicts = cast("tuple[Any, ...]", answer.value)
    votes: Sequence[Mapping[str, Any]] = (answer.detail or {}).get("verdicts", ())
    if votes:
        sure = {str(vote["at"]).partition(".")[0]: vote.get("probability", vote.get("agreement")) for vote in votes}
        return tuple(sure.get(str(number)) for number in range(1, len(verdicts) + 1))
    own = tuple(getattr(verdict, "confidence", None) for verdict in verdicts)
    return own if any(one is not None for one in own) else None


def judge_call(question: Question[A], answer: Answer[A], repeat_index: int = 0) -> JudgeCall:
    """A question and its answer, as a record keeps them."""
    return JudgeCall(
        question=question.kind,
        fingerprint=question.fingerprint,
        judge=answer.judge,
        answer=to_jsonable(answer.value),
        usage=answer.usage,
        cost=answer.cost,
        seconds=answer.seconds,
        confidence=answer.confidence,
        cached=answer.cached,
        reply=answer.reply,
        alternatives=answer.alternatives,
        refused_settings=answer.refused_settings,
        repeat_index=repeat_index,
        members=answer.members,
        detail=answer.detail,
    )


def failed_call(question: Question[Any], error: JudgeError, judge: str, repeat_index: int = 0) -> JudgeCall:
    """A question that got no answer, with what asking it took."""
    return JudgeCall(
        question=question.kind,
        fingerprint=question.fingerprint,
        judge=judge,
        answer=None,
        usage=error.usage or NO_USAGE,
        cost=error.cost,
        seconds=error.seconds,
        reply=error.reply,
        repeat_index=repeat_index,
        members=tuple(error.members),
        detail={"error": str(error)},
    )


def as_cached(call: C) -> C:
    """The answer, or the call, for a repeated question: it took nothing, and neither did its members'."""
    members = tuple(map(as_cached, call.members))
    return replace(call, usage=NO_USAGE, cost=0.0, seconds=0.0, cached=True, members=members)


@dataclass(frozen=True)
class ContextLimits:
    """What one question to a judge may hold at most."""

    tokens: int = 25_000
    """Tokens of passages."""
    items: int = 25
    """Items that are judged one by one."""
    whole: bool = False
    """A response is better asked about at once than sentence by sentence."""

    def characters(self, passages: Sequence[str]) -> int:
        """How many characters of such passages fit, at about four bytes to a token."""
        size = sum(len(passage.encode("utf-8", "replace")) for passage in passages)
        return max(1, int(self.tokens * BYTES_PER_TOKEN * sum(map(len, passages)) / size)) if size else self.tokens


DEFAULT_LIMITS = ContextLimits()
"""The limits of a judge that says nothing else."""


class Ask(Protocol):
    """How a scorer asks a question: `claims = await ask(ListClaims(text=output))`."""

    async def __call__(self, question: Question[A]) -> A: ...


def context_limits_of(ask: Ask) -> ContextLimits:
    """What one question may hold that is put this way."""
    return getattr(ask, "context_limits", DEFAULT_LIMITS)
