"""Questions with the caller's own prompt: a choice, a number, or an answer of any type."""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar, cast

from evalstone._core.guards import is_mapping
from evalstone._core.json import strict_jsonable
from evalstone._core.parsing import OPEN_PLACEHOLDER, REASON, choice_schema, member, object_schema, validated
from evalstone._core.prompts import Material, Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.errors import ConfigError, ReplyError, invalid
from evalstone.questions.base import Question
from evalstone.questions.grade import Grade
from evalstone.questions.markers import NotInReply, Unordered
from evalstone.questions.probabilities import LabelProbabilities, shares
from evalstone.questions.reply import number_in, reason_of
from evalstone.questions.schema_types import type_of

A = TypeVar("A")


class OwnQuestion(Question[A]):
    """A question with the caller's template. values: the name and the value of each placeholder."""

    values: tuple[tuple[str, Material], ...]
    prompt: Prompt

    def __post_init__(self) -> None:
        self.prompt.check(name for name, _ in self.values)

    def inputs(self) -> dict[str, Material]:
        return dict(self.values)


@dataclass(frozen=True)
class Chosen(NoTruthValue):
    """The word that the judge chose, its reason, and the probability of each word if known."""

    choice: Annotated[str, Unordered()]
    reason: str = ""
    probabilities: Annotated[Mapping[str, float] | None, NotInReply()] = None


def choice_form(choices: Mapping[str, str]) -> str:
    """The instructions that list the choices, with their meanings."""
    listed = "\n".join(f'- "{word}": {meaning}' if meaning else f'- "{word}"' for word, meaning in choices.items())
    return f"The verdict is exactly one of these words:\n{listed}"


def distinct_words(choices: Sequence[str]) -> tuple[str, ...]:
    """The choices without surrounding white space.

    Raises ConfigError for fewer than two choices, blank ones, or two that only differ in case.
    """
    words = [word.strip() for word in cast("Sequence[object]", choices) if isinstance(word, str) and word.strip()]
    if len(words) < len(choices) or len({word.casefold() for word in words}) < max(2, len(words)):
        raise ConfigError(invalid("choices", "two or more different words", choices, str(list(choices))))
    return tuple(words)


class Choose(OwnQuestion[Chosen]):
    """Which of several choices answers the caller's question? White space around a choice is stripped.

    by_probability: Whether the probabilities of the choices are requested.
    """

    kind = "choose"
    settings = ("choices", "by_probability")
    notes = """\
- reason: why, in one or two sentences, with the words of the material that decide.
- verdict: one of the words above, as it is written there."""
    choices: tuple[str, ...]
    by_probability: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "choices", distinct_words(self.choices))

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return object_schema({"reason": REASON, "verdict": choice_schema(self.choices)})

    @property
    def label_probabilities(self) -> LabelProbabilities | None:
        return LabelProbabilities("verdict", self.choices) if self.by_probability else None

    def with_probabilities(self, answer: Chosen, probabilities: Mapping[str, float]) -> Chosen:
        """The choice with the normalized probabilities of all choices.

        Other words and invalid probabilities are ignored. If the choice itself has no probability, nothing is added.
        """
        known = shares(probabilities, self.choices, answer.choice)
        return answer if known is None else replace(answer, probabilities=known)

    def from_json(self, data: Any) -> Chosen:
        verdict = member(data, "verdict")
        if verdict in self.choices:
            return Chosen(verdict, reason_of(data))
        shown = json.dumps(verdict, ensure_ascii=False)[:60]
        raise ReplyError(f"verdict: {' or '.join(self.choices)} was expected, not {shown}")


class AnswerAs(OwnQuestion[Any]):
    """What is the answer to the caller's question, as a value of the caller's type?"""

    kind = "answer_as"
    settings = ("answer",)
    placeholder = OPEN_PLACEHOLDER
    answer: AnswerForm

    @property
    def form(self) -> str:
        return self.answer.text

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return self.answer.json_schema

    def from_json(self, data: Any) -> Any:
        return self.answer.from_json(data)

    def from_jsonable(self, data: Any) -> Any:
        # Objects are recorded as they are; any other value without the "answer" key of the reply.
        try:
            return self.answer.from_json({"reason": "", "answer": data})
        except ReplyError:
            return self.answer.from_json(data)


class GiveNumber(OwnQuestion[Grade]):
    """Which number from 0 to `high` answers the caller's question? Any other number is a ReplyError."""

    kind = "give_number"
    settings = ("high",)
    notes = "- reason: why, in one to three sentences, with the words of the material that decide."
    high: float

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return object_schema({"reason": REASON, "score": {"type": "number", "minimum": 0, "maximum": self.high}})

    def from_json(self, data: Any) -> Grade:
        return Grade(number_in(member(data, "score"), "score", 0, self.high), reason_of(data))


def filled(prompt: Prompt, inputs: Mapping[str, Material]) -> tuple[tuple[str, Material], ...]:
    """The inputs for a prompt's placeholders, in the order of the prompt."""
    values = ((name, inputs[name]) for name in prompt.placeholders)
    return tuple((name, value if isinstance(value, str) else tuple(value)) for name, value in values)


_DROPPED = frozenset({"title", "default", "minLength", "maxLength", "uniqueItems", "discriminator", "examples"})
_DECISIONS = frozenset({"integer", "number", "boolean"})


@dataclass(frozen=True)
class AnswerForm:
    """The reply format for answers of a type with a fixed structure.

    type: a dataclass, TypedDict, pydantic model, Literal, str, number, bool, or a list of these; or a JSON schema as a
    mapping, whose values are plain data. The reply for an object type is the object. For any other type, it has the key
    "answer", after a "reason" if the answer is a number, boolean or enum word. Raises ConfigError for a type without a
    fixed structure.
    """

    type: Any

    def __post_init__(self) -> None:
        kind = self.type
        if is_mapping(kind):
            object.__setattr__(self, "type", type_of(kind))
        try:
            hash(self.type)
        except TypeError:
            raise ConfigError(f"{self.type!r} can't be the type of an answer: it isn't a type") from None
        _schema(self.type)

    @property
    def json_schema(self) -> Mapping[str, Any]:
        """The JSON schema of a reply: strict, with an object at its root."""
        return _schema(self.type)

    def from_json(self, data: Any) -> Any:
        """The answer in a parsed reply. Raises ReplyError if it is invalid."""
        if _is_object(self.type):
            answer = validated(_portable(self.type), data)
        else:
            answer = validated(_portable(self.type), member(data, "answer"), "answer")
        try:
            strict_jsonable(answer)
        except ValueError as error:  # such as for 1e999
            raise ReplyError(f"the answer cannot be written as JSON: {error}") from None
        return answer

    @functools.cached_property
    def text(self) -> str:
        """The format as text. It contains the schema, because that has the descriptions of the fields."""
        schema = json.dumps(self.json_schema, ensure_ascii=False)
        return f"Reply with one JSON object that fits this JSON schema: {schema}"


@functools.lru_cache(maxsize=256)
def _portable(kind: Any) -> Any:
    """The type with TypedDicts that pydantic supports. Before Python 3.12, it refuses those of `typing`."""
    if typing.is_typeddict(kind) and type(kind).__module__ == "typing":
        from typing_extensions import TypedDict  # noqa: PLC0415 - comes with pydantic, which is slow to import

        hints = typing.get_type_hints(kind, include_extras=True)
        make: Any = TypedDict
        return make(kind.__name__, {name: _portable(hint) for name, hint in hints.items()}, total=kind.__total__)
    origin = typing.get_origin(kind)
    inner: tuple[Any, ...] = typing.get_args(kind)
    if origin in (list, tuple) and inner:
        generic: Any = origin
        return generic[tuple(_portable(one) for one in inner)]
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_portable(one) for one in inner)]  # noqa: UP007 - built at runtime
    return kind


@functools.lru_cache(maxsize=256)
def _raw(kind: Any) -> dict[str, Any]:
    import pydantic  # noqa: PLC0415 - its import takes longer than that of all of evalstone
    from pydantic.errors import PydanticUserError  # noqa: PLC0415

    try:
        return pydantic.TypeAdapter(_portable(kind)).json_schema()
    except PydanticUserError as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"{_name(kind)} can't be the type of an answer: {reason}") from None


@functools.lru_cache(maxsize=256)
def _schema(kind: Any) -> Mapping[str, Any]:
    raw = _raw(kind)
    strict: dict[str, Any] = _strict({key: value for key, value in raw.items() if key != "$defs"}, kind)
    defined = {name: _strict(inner, kind) for name, inner in raw.get("$defs", {}).items()}
    if not _is_object(kind):
        decides = strict.get("type") in _DECISIONS or "enum" in strict
        strict = object_schema({"reason": REASON, "answer": strict} if decides else {"answer": strict})
    return {**strict, "$defs": defined} if defined else strict


def _is_object(kind: Any) -> bool:
    """Whether answers of a type are JSON objects."""
    return _raw(kind).get("type") == "object"


def _strict(node: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """A schema for strict mode: all properties required, no others allowed, unsupported keywords dropped."""
    if "prefixItems" in node or not node:
        raise ConfigError(f"{_name(kind)} can't be the type of an answer: every part needs a fixed type")
    schema: dict[str, Any] = {}
    for key, value in node.items():
        match key:
            case "properties":
                schema[key] = {name: _strict(inner, kind) for name, inner in value.items()}
            case "items":
                schema[key] = _strict(value, kind)
            case "anyOf" | "oneOf":
                schema["anyOf"] = [_strict(inner, kind) for inner in value]
            case "const":
                schema["enum"] = [value]
            case _ if key not in _DROPPED:
                schema[key] = value
            case _:
                pass
    if schema.get("type") == "object":
        if "properties" not in schema:
            raise ConfigError(
                f"{_name(kind)} can't be the type of an answer: a dict with free keys has no strict schema; "
                "use a list of objects that have the key as a field"
            )
        schema.update(required=list(schema["properties"]), additionalProperties=False)
    return schema


def _name(kind: Any) -> str:
    return str(kind) if typing.get_origin(kind) else getattr(kind, "__qualname__", str(kind))
