"""Questions for a judge, and its answers, as values.

A question has three parts: its reply type (reply.py), its prompt, and a class whose fields are its inputs. `Question`
has one reply of a dataclass type, `VerdictPerItem` has a verdict for each item of an input, and `ListOf` has a list
that the judge writes (items.py). Schema, validation, example and votes are derived from the reply type.

Equal questions have the same fingerprint. A question is therefore asked only once, answers can be cached and replayed,
and a judge that isn't a language model can answer the same question.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, cast, get_args, get_origin

from evalstone._core.declarations import Rule, check_argument
from evalstone._core.json import content_hash, to_jsonable
from evalstone._core.parsing import (
    PLACEHOLDER,
    bare,
    check_length,
    parse_json,
    refuse_placeholders,
    text_schema,
    validated,
)
from evalstone._core.prompts import Material, Prompt
from evalstone._core.reasoning import beside_reasoning, without_reasoning
from evalstone._core.text import STOPWORDS, estimated_tokens, sentences, words
from evalstone._core.values import Value
from evalstone.errors import ConfigError, JudgeError, ReplyError
from evalstone.models.provider import ReplyForm
from evalstone.questions.fitting import fitted, of_bare_text
from evalstone.questions.parts import too_long
from evalstone.questions.probabilities import LabelProbabilities
from evalstone.questions.reply import (
    LONGEST_TEXT,
    Counts,
    counts_of,
    explaining_keys,
    read_reply,
    schema_of,
    subject_of,
)
from evalstone.questions.schemas import example_of, form_of, has_labels, with_definitions, words_of
from evalstone.questions.ungrounded import UngroundedItems
from evalstone.types.context_limits import DEFAULT_LIMITS, ContextLimits

A = TypeVar("A")
FRAME_TOKENS = 200
"""Tokens of a request in addition to its messages: the judge's own instructions, the chat template, and the schema."""
FENCE_CHARACTERS = 100
"""The maximum length of the fences around one text of a prompt."""
TEXT_SCHEMA = text_schema(LONGEST_TEXT)


_KIND = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
KIND = Rule(
    "English letters, digits and underscores", lambda value: isinstance(value, str) and bool(_KIND.fullmatch(value))
)
"""Providers name the form of a reply by it."""
PROMPT = Rule("a Prompt, with instructions and a template", lambda value: isinstance(value, Prompt))


class _Prompted:
    """Attributes of every question. They are in a plain class so that subclasses determine the order of fields."""

    prompt: Prompt
    notes: ClassVar[str] = ""
    """Notes on the members of the reply, shown after the reply format."""
    placeholder: ClassVar[re.Pattern[str]] = PLACEHOLDER
    """Matches placeholders, which don't count as text in a reply."""
    bounded: bool = True
    """Whether numbers outside the range of the reply type are refused."""
    cited: bool = True
    """Whether labels need the citations and quotations that the reply type asks for."""
    headed: ClassVar[str] = ""
    """The input whose texts begin with a line that states their type. Each piece of a split text begins with it too."""
    numbered: ClassVar[bool] = False
    """Whether the reply has one member for each number of an item, so that no member names its subject."""
    repeatable: ClassVar[bool] = True
    """Whether a scorer that is repeated asks it again. Otherwise all repetitions share the first answer."""
    instead: ClassVar[str] = ""
    """For a question that can't be split: the scorers that measure nearly the same in parts."""


class Question(_Prompted, Value, Generic[A]):
    """A question for a judge, whose reply is parsed as an `A`.

    Subclasses have a `kind` and a field `prompt`; they are frozen dataclasses, without a decorator. Every other field
    is an input (a text, or a tuple of texts) with a placeholder of the same name in the prompt's template. `settings`
    names the fields without a placeholder, which only affect parsing.

    If `A` is a dataclass, the schema, the validation and the example are derived from it. Its fields may have markers
    of `evalstone.questions`, such as `WorstFirst` and `Cites`. Any other `A` needs its own `json_schema` and
    `from_json`.
    """

    kind: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ()
    optional: ClassVar[tuple[str, ...]] = ()
    """The inputs that may be empty. The prompt then omits them. A custom template doesn't need their placeholders."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            check_argument("kind", cls.kind, Annotated[str, KIND], cls.__name__)

    def __post_init__(self) -> None:
        kind, prompt = type(self), getattr(self, "prompt", None)
        if not hasattr(kind, "kind"):
            name = kind.__name__
            raise ConfigError(f'the question {name} has no kind; add one to the class, such as kind = "{name.lower()}"')
        if not isinstance(prompt, Prompt):
            check_argument("prompt", prompt, Annotated[Any, PROMPT], kind.__name__)
        else:
            _check_placeholders(kind, prompt)

    def inputs(self) -> dict[str, Material]:
        """The inputs that fill the prompt's placeholders."""
        return {name: getattr(self, name) for name in _input_names(type(self))}

    def render(self) -> tuple[str, str]:
        """The system message and the user message that ask a language model this question."""
        return self._messages

    @functools.cached_property
    def _messages(self) -> tuple[str, str]:
        return self.prompt.render(self.inputs(), f"{self.form}\n{self.notes}".strip(), self.optional)

    @property
    def form(self) -> str:
        """The reply format in one line; empty for plain text."""
        form = self._derived()
        return form.text if form else _form_text(self.json_schema)

    @functools.cached_property
    def reply_form(self) -> ReplyForm | None:
        """The form of the reply, for a model; None for plain text."""
        if self._derived():
            return self._derived_reply_form(self._names_subject(), self._counts())
        schema = self.json_schema
        return None if schema is None else ReplyForm(self.kind, schema, self.form)

    @functools.cached_property
    def fingerprint(self) -> str:
        """The question's identity: a hash of kind, prompt, reply format, inputs and settings, 32 hexadecimal digits."""
        content = [getattr(self, name) for name in (*_input_names(type(self)), *self.settings)]
        form = self._derived()
        digest = form.digest if form else content_hash([self.json_schema, self.form, self.notes])
        return content_hash([self.kind, self.prompt.digest, digest, content])

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any] | None:
        """The JSON schema of the reply; None for plain text."""
        form = self.reply_form
        return None if form is None else form.schema

    @classmethod
    @functools.lru_cache(maxsize=1024)
    def _derived_reply_form(cls, subject: bool, counts: Counts) -> ReplyForm:
        """The form of a reply to the questions of this class whose inputs have these numbers of items. subject: whether
        the judge names the subject."""
        form, question = cls._derived(), _Counted(counts)
        schema = cls._schema_around(cls._inner_schema(question, subject=subject), question)
        return ReplyForm(cls.kind, schema, form.text if form else "")

    @classmethod
    @functools.cache
    def _derived(cls) -> _Form | None:
        """The reply format of a class of questions; None for a class that defines its own schemas.

        The number of items is not a part of it: it follows from the inputs, which have their own hash.
        """
        if cls.json_schema is not Question.json_schema:
            return None
        try:
            schema = cls.typical_schema()
        except (ConfigError, NameError):  # no schema can be derived from this type, so only code can answer
            return _Form("", content_hash([{"type": str(cls._reply_type())}, getattr(cls, "key", "")]))
        inner = TEXT_SCHEMA if cls._reply_type() is str else cls._inner_schema(_Counted(), subject=cls._may_name())
        text = _form_text(schema)
        return _Form(text, content_hash([inner, getattr(cls, "key", ""), text, cls.notes]))

    @classmethod
    def typical_schema(cls) -> Mapping[str, Any]:
        """The derived schema of a reply to a question of this class whose inputs have one item each.

        Raises ConfigError, or NameError for a type inside a function, if no schema can be derived.
        """
        one_of_each = _Counted()
        inner = TEXT_SCHEMA if cls._reply_type() is str else cls._inner_schema(one_of_each, subject=cls._may_name())
        return cls._schema_around(inner, one_of_each)

    @classmethod
    @functools.cache
    def explaining(cls) -> frozenset[str]:
        """The keys in a reply that only explain its labels: the reason, the citations and quotations that labels need,
        and fields that are marked `Explains`."""
        reply = cls._reply_type()
        return frozenset({"reason", *(explaining_keys(reply) if is_dataclass(reply) else ())})

    @classmethod
    def _may_name(cls) -> bool:
        """Whether a reply to questions of this class names its subject."""
        subject = None if cls.numbered else subject_of(cls._reply_type())
        return subject is not None and subject.name not in _input_names(cls)

    def _names_subject(self) -> bool:
        """Whether the judge names the subject."""
        return not self.numbered and self._subject() is None

    @classmethod
    def _reply_type(cls) -> Any:
        """The type from which the schema is derived."""
        return answer_type(cls)

    @classmethod
    def _inner_schema(cls, question: Any, *, subject: bool = True) -> Mapping[str, Any]:
        """The schema of the reply type. subject: whether the judge names the subject."""
        return schema_of(cls._reply_type(), question, subject=subject)

    @classmethod
    def _schema_around(cls, schema: Mapping[str, Any], question: Any) -> Mapping[str, Any]:
        """The schema of a whole reply to a question of this class, around the schema of its reply type."""
        return with_definitions(schema)

    def _counts(self) -> Counts:
        """The inputs whose number of items is a part of the schema, and these numbers."""
        return counts_of(self._reply_type(), self)

    def from_json(self, data: Any) -> A:
        """The answer in a parsed reply. Raises ReplyError if it is invalid."""
        return read_reply(answer_type(type(self)), data, self, subject=self._subject())

    def from_jsonable(self, data: Any) -> A:
        """The answer that `to_jsonable` converted to this data. Raises ReplyError if it is invalid."""
        return validated(answer_type(type(self)), data, "answer")

    def _subject(self) -> Any:
        """The subject of the answer, if an input states it; otherwise None."""
        subject = subject_of(answer_type(type(self)))
        return getattr(self, subject.name, None) if subject else None

    def parse(self, reply: str) -> A:
        """Parse the answer in a raw reply, after the reasoning in front of it. Raises ReplyError if it is invalid.

        Labels are matched ignoring case, surrounding white space and quotes, and a trailing period. If a text before a
        closing tag in the middle of a line is another answer, the reply is invalid: the tag, and what follows it, may
        be quoted from the judged text.
        """
        check_length(reply)
        answer = self.from_text(without_reasoning(reply))
        for text in beside_reasoning(reply, inline=True):
            with contextlib.suppress(JudgeError):
                if "{" in text and self.from_text(text) != answer:
                    break
        else:
            return answer
        raise ReplyError("the reply holds different answers before and after a closing tag; give one", reply=reply)

    def from_text(self, text: str) -> A:
        """The answer in a reply without reasoning. Raises ReplyError if it is invalid."""
        if (form := self.reply_form) is None:
            return self.from_json(text)
        schema = form.schema
        try:
            data = parse_json(text)
        except ReplyError:
            if "{" in text or "[" in text or (data := of_bare_text(text, schema)) is None:
                raise
        try:
            if data == schema:
                raise ReplyError("the reply repeats the form; fill it in", reply=text)
            refuse_placeholders(data, self._is_copied, self._not_placeholders, self.placeholder)
            try:
                return self.from_json(data)
            except ReplyError:
                if repr(same := fitted(data, schema)) == repr(data):  # 1.0 is equal to 1
                    raise
            return self.from_json(same)
        except RecursionError:
            raise ReplyError("the JSON in the reply is nested too deeply", reply=text) from None

    def _is_copied(self, text: str) -> bool:
        """Whether a text in a reply was copied from the prompt, and its words are not in the inputs."""
        if " " not in text or bare(text) not in _copied(self.prompt, self.notes):
            return False
        input_words = set(itertools.chain.from_iterable(map(words, self._input_texts())))
        return not input_words.issuperset(set(words(text)) - STOPWORDS)

    def _input_texts(self) -> list[str]:
        """The texts of all inputs."""
        values = self.inputs().values()
        return [text for value in values for text in ((value,) if isinstance(value, str) else value)]

    def _not_placeholders(self) -> Collection[str]:
        """Texts that are never placeholders, whatever they look like: the schema's words, and whole inputs."""
        inputs = self._input_texts()
        return {*words_of(self.json_schema or {}), *map(str.strip, inputs), *(text.strip(" \n.") for text in inputs)}

    def parse_with_probabilities(self, reply: str, probabilities: Mapping[str, float] | None = None) -> A:
        """Parse the answer in a raw reply, and add the probabilities of its labels if the judge returns any."""
        answer = self.parse(reply)
        return self.with_probabilities(answer, probabilities) if probabilities else answer

    def parse_grounded(
        self, reply: str, probabilities: Mapping[str, float] | None = None
    ) -> tuple[A, Mapping[str, Any] | None]:
        """Parse the answer in a raw reply, without the items of its list that are not from the judged text, if there
        are few of them. Also returns the `dropped` items and their problems, as the detail of the answer.

        This reads replies that were accepted, and those to a correction that named such items.
        """
        try:
            return self.parse_with_probabilities(reply, probabilities), None
        except UngroundedItems as error:
            if error.kept is None:
                raise
            answer = cast(A, error.kept)
            detail = {"dropped": list(error.problems)}
            return self.with_probabilities(answer, probabilities) if probabilities else answer, detail

    def with_probabilities(self, answer: A, probabilities: Mapping[str, float]) -> A:
        """The answer with the probabilities of the possible labels."""
        return answer

    @property
    def label_probabilities(self) -> LabelProbabilities | None:
        """The labels whose probabilities the judge should return; None if the question doesn't use them."""
        return None

    def doubt(self, reply: str) -> str:
        """Why the question should be asked once more although the reply is valid; empty if it shouldn't."""
        return ""

    def citation_note(self, value: Any) -> str:
        """Which citations in an answer's value hardly fit, for its record; empty if there are none. The answer counts
        as it is."""
        return ""

    @property
    def divisible_by(self) -> str | None:
        """The input whose items can be split between several questions; None if the question can't be split."""
        return None

    def example(self) -> Any:
        """A reply of typical length, as data, for dry runs."""
        schema = self.json_schema
        return "Yes" if schema is None else example_of(schema, self.fingerprint[:8])

    def size(self) -> int:
        """The maximum number of tokens of a request with this question: everything except the reply."""
        own_form = "" if self._derived() else json.dumps(self.json_schema)
        return FRAME_TOKENS + sum(map(estimated_tokens, (*self.render(), own_form)))

    def within(self, tokens: int | None) -> bool:
        """Whether the question has at most this many tokens. None means any number."""
        # A character has at most four tokens. Most questions are short enough for this estimate, without rendering.
        return tokens is None or FRAME_TOKENS + 4 * self.most_characters <= tokens or self.size() <= tokens

    @functools.cached_property
    def most_characters(self) -> int:
        """An upper bound for the characters of the messages, without rendering them."""
        prompt = self.prompt
        fixed = (prompt.instructions, prompt.examples, prompt.template, self.form, self.notes)
        characters = sum(map(len, fixed)) + FENCE_CHARACTERS
        for value in self.inputs().values():
            characters += len(value) if isinstance(value, str) else sum(map(len, value))
            characters += FENCE_CHARACTERS * (1 if isinstance(value, str) else len(value) + 1)
        return characters

    def fits(self, limits: ContextLimits) -> bool:
        """Whether the question fits a judge with these limits, so that it isn't split by `in_parts`."""
        return self.within(limits.longest)

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> A:
        """Ask smaller questions of this kind and merge their answers.

        Args:
            ask: How to ask each of them.
            limits: The limits of the judge.

        Raises:
            QuestionTooLong: The smallest part is too long, or there are too many parts; raised before anything is
                asked. This base class always raises it, because an answer as a whole can't be merged from parts.
        """
        raise too_long(self, limits)


@functools.cache
def answer_type(kind: type[Question[Any]]) -> Any:
    """The type of a question's answers: the `A` of its `Question[A]`. Raises ConfigError if the class has none."""
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


def answer_problem(question: Question[Any], value: object) -> str | None:
    """What an answer must be, if a value isn't one; None if it is, or if the type of answers can't be checked."""
    kind = answer_type(type(question))
    reads_itself = any("from_jsonable" in vars(base) for base in type(question).__mro__ if base is not Question)
    if reads_itself or isinstance(kind, TypeVar):
        return None
    expected = type_name(kind)
    try:
        same: object = question.from_jsonable(to_jsonable(value))
    except ReplyError as error:
        return f"{expected} ({error})" if isinstance(value, get_origin(kind) or kind) else expected
    except (NameError, TypeError, ValueError):  # there is no schema of this type
        return None
    return None if same == value else expected


def type_name(kind: Any) -> str:
    """A type as it is written, without modules: `tuple[ClaimVerdict, ...]`."""
    if get_origin(kind) is Literal:
        return f"Literal[{', '.join(map(repr, get_args(kind)))}]"
    if not (args := get_args(kind)):
        return "..." if kind is ... else getattr(kind, "__name__", str(kind))
    return f"{type_name(get_origin(kind))}[{', '.join(map(type_name, args))}]"


def is_votable(asked: QuestionSpec) -> bool:
    """Whether answers to a question, or to those of a kind, have labels outside lists written by the judge.

    Plain text counts as a label, because the only question with a plain-text reply asks for yes or no. False for a kind
    from whose type no schema can be derived: it depends on the question.
    """
    if not isinstance(asked, type):
        schema = asked.json_schema
    else:
        try:
            schema = asked.typical_schema()
        except (ConfigError, NameError):
            return False
    return schema is None or has_labels(schema)


class _Counted:
    """A stand-in for a question with so many items in its inputs, by default one in each."""

    def __init__(self, counts: Counts = ()) -> None:
        self._counts = dict(counts)

    def __getattr__(self, name: str) -> Sequence[Any]:
        return range(self._counts.get(name, 1))


@dataclass(frozen=True)
class _Form:
    """The reply format of a class of questions as text, and the hash of everything that determines it."""

    text: str
    digest: str


def _form_text(schema: Mapping[str, Any] | None) -> str:
    if schema is None:
        return ""
    form = form_of(schema)
    numbered = ", with one member for each number" if '"2": …' in form else ""
    return f"Reply with a JSON object of this form{numbered}: {form}"


@functools.lru_cache(maxsize=512)
def _copied(prompt: Prompt, notes: str) -> Collection[str]:
    """The normalized texts in the reply of a prompt's worked example, and those that define its words and keys. A reply
    with one of them was copied."""
    texts = [json.loads(text) for text, colon in _STRING.findall(prompt.example.partition("Reply:")[2]) if not colon]
    for definition in _DEFINITION.findall(f"{prompt.instructions}\n{notes}"):
        whole = " ".join(definition.split())
        texts += (text for text in (whole, *sentences(whole)) if len(words(text)) >= LEAST_COPIED)
    return frozenset(bare(text) for text in texts if " " in text)


_DEFINITION = re.compile(r"^- \"?[\w ]+\"?: (.*(?:\n(?!- |\n).*)*)", re.MULTILINE)
"""What a prompt says of a word or key: `- "yes": the answer …`."""
LEAST_COPIED = 9
"""The fewest words of a definition that count as copied. A short one may also be a reason."""
_STRING = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?')


@functools.cache
def _input_names(kind: type[Question[Any]]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name != "prompt" and f.name not in kind.settings)


@functools.lru_cache(maxsize=512)
def _check_placeholders(kind: type[Question[Any]], prompt: Prompt) -> None:
    prompt.check(_input_names(kind), kind.optional)


QuestionSpec: TypeAlias = type[Question[Any]] | Question[Any]
"""A kind of question, or an example of a question if its answer depends on more than its kind."""


class Ask(Protocol):
    """How a scorer asks a question: `claims = await ask(ListClaims(text=output))`."""

    async def __call__(self, question: Question[A]) -> A: ...


def context_limits_of(ask: Ask) -> ContextLimits:
    """The context limits of questions asked through `ask`."""
    return getattr(ask, "context_limits", DEFAULT_LIMITS)
