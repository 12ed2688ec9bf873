"""Reply types: JSON schema, validation and label order are derived from one dataclass.

A reply type is a frozen dataclass whose fields are the keys of the reply. Markers (markers.py) add what types can't
express:

    @dataclass(frozen=True)
    class ClaimVerdict:
        claim: Annotated[str, Subject()]
        verdict: Annotated[Literal["yes", "no", "unclear"], WorstFirst("no", "unclear", "yes")]
        passages: Annotated[tuple[int, ...], Cites("context")] = ()
        reason: str = ""

Keys in a reply are in this order: the subject of the verdict if the judge names it, the reason, everything else, and
the labels. Models judge better if they give the reason before the verdict. A label is a word from a fixed list, a yes
or no, or a number; judges vote on labels. Reasons, citations and free texts are not labels, because two different ones
can both be right.

Every key is required in a reply, whatever defaults the dataclass has, unless it is marked `MayOmit`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
import typing
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypeAlias, TypeVar, cast, get_args, get_origin

from evalstone._core.guards import is_array, is_mapping, is_object
from evalstone._core.parsing import (
    REASON,
    bare,
    choice_schema,
    member,
    numbered,
    numbered_schema,
    object_schema,
    text_schema,
    texts,
    validated,
)
from evalstone._core.prompts import clean
from evalstone._core.text import is_blank
from evalstone.errors import ConfigError, ReplyError
from evalstone.questions.fitting import named_number
from evalstone.questions.markers import (
    NUMBERING,
    Between,
    Cites,
    Explains,
    Key,
    MayOmit,
    NotInReply,
    NumberedBy,
    Quotes,
    Restates,
    Subject,
    Unordered,
    WorstFirst,
    YesNo,
)
from evalstone.questions.ungrounded import UngroundedItems

M = TypeVar("M")

Counts: TypeAlias = tuple[tuple[str, int], ...]
"""Inputs of a question, and the number of items in each."""


@dataclass(frozen=True)
class LabelOrder:
    """The possible values of a label, and their order."""

    worst_first: tuple[Any, ...] = ()
    """The values, least favorable first; empty for numbers, and if the values aren't fixed."""
    number: bool = False
    """Whether the label is a number, higher is better."""
    whole: bool = False
    """Whether it is a whole number."""
    ordered: bool = True
    """False if no order is known."""


@dataclass(frozen=True)
class ReplyField:
    """One field of a reply type."""

    name: str
    type: Any
    markers: Mapping[type, Any]

    def marker(self, kind: type[M]) -> M | None:
        """The field's marker of this kind."""
        return self.markers.get(kind)

    @property
    def key(self) -> str:
        """The field's name in the reply."""
        marker = self.marker(Key) or self.marker(YesNo)
        return marker.key if marker else self.name

    @property
    def label(self) -> LabelOrder | None:
        """The order of the field's values; None if the field isn't a label."""
        if Subject in self.markers or NotInReply in self.markers:
            return None
        order = self.marker(WorstFirst)
        if get_origin(self.type) is Literal or self.type is bool:
            values = get_args(self.type) or (False, True)
            return LabelOrder(order.labels or values) if order else LabelOrder(values, ordered=False)
        if self.type in (int, float):
            return LabelOrder(number=True, whole=self.type is int, ordered=order is not None)
        return LabelOrder(ordered=False) if Unordered in self.markers else None


@functools.cache
def reply_fields(kind: type[Any]) -> tuple[ReplyField, ...]:
    """The fields of a reply type, in the order of the reply; empty for other types.

    Raises NameError if an annotation can't be resolved.
    """
    if not dataclasses.is_dataclass(kind):
        return ()
    hints = typing.get_type_hints(kind, include_extras=True)
    fields: list[ReplyField] = []
    for name in (field.name for field in dataclasses.fields(kind)):
        bare, *markers = get_args(hints[name]) if hasattr(hints[name], "__metadata__") else (hints[name],)
        fields.append(ReplyField(name, bare, {type(marker): marker for marker in markers}))
    return tuple(sorted(fields, key=_place_in_reply))


def _place_in_reply(field: ReplyField) -> int:
    if Subject in field.markers:
        return 0
    return 1 if field.key == "reason" else 3 if field.label else 2


@functools.cache
def label_orders(kind: type[Any]) -> Mapping[str, LabelOrder]:
    """The labels of a reply type, by field."""
    try:
        return {field.name: label for field in reply_fields(kind) if (label := field.label)}
    except NameError:  # the type is defined inside a function, so its annotations can't be resolved
        return {}


@functools.cache
def subject_of(kind: type[Any]) -> ReplyField | None:
    """The field with the subject of a verdict of this type."""
    return next((field for field in reply_fields(kind) if Subject in field.markers), None)


@functools.cache
def has_probability(kind: type[Any]) -> bool:
    """Whether answers of this type have a `probability` that is no part of the reply."""
    try:
        return any(field.name == "probability" and NotInReply in field.markers for field in reply_fields(kind))
    except NameError:  # as in `label_orders`
        return False


@functools.cache
def explaining_keys(kind: type[Any]) -> frozenset[str]:
    """The keys in a reply of this type, and of the types inside it, that only explain its labels: citations and
    quotations that labels need, and what is marked `Explains`."""
    keys = set[str]()
    for field in reply_fields(kind):
        if Explains in field.markers or _evidence(field):
            keys.add(field.key)
        elif dataclasses.is_dataclass(inner := _inner(field.type)):
            keys |= explaining_keys(cast("type[Any]", inner))
    return frozenset(keys)


def schema_of(kind: type[Any], question: Any, *, subject: bool = True) -> Mapping[str, Any]:
    """The JSON schema of a reply type. subject: whether the judge names the subject.

    Raises ConfigError if the type isn't a dataclass.
    """
    if not dataclasses.is_dataclass(kind):
        raise ConfigError(f"{kind} can't be a reply type: use a dataclass, or define json_schema and from_json")
    return _object_schema(kind, subject, counts_of(kind, question))


def counts_of(kind: type[Any], question: Any) -> Counts:
    """The numbers of items in the inputs of a question that the schema of a reply type depends on."""
    return tuple((name, len(getattr(question, name))) for name in _counted_inputs(kind))


@functools.cache
def _counted_inputs(kind: type[Any]) -> tuple[str, ...]:
    """The inputs whose number of items is a part of the schema."""
    names: dict[str, None] = {}
    for field in reply_fields(kind):
        if counted := field.marker(NumberedBy) or field.marker(Cites):
            names[counted.input] = None
        inner = _inner(field.type)
        if dataclasses.is_dataclass(inner):
            names.update(dict.fromkeys(_counted_inputs(inner)))
    return tuple(names)


@functools.lru_cache(maxsize=1024)
def _object_schema(kind: type[Any], with_subject: bool, counts: Counts) -> Mapping[str, Any]:
    fields = _fields_in_reply(kind, with_subject)
    schema = object_schema({field.key: _field_schema(field, dict(counts)) for field in fields})
    numbered = [field for field in fields if NumberedBy in field.markers]
    if numbered:
        schema["$defs"] = {field.key: _object_schema(_inner(field.type), False, counts) for field in numbered}
    return schema


@functools.cache
def _fields_in_reply(kind: type[Any], with_subject: bool) -> tuple[ReplyField, ...]:
    left_out = {NotInReply} if with_subject else {NotInReply, Subject}
    return tuple(field for field in reply_fields(kind) if not left_out & field.markers.keys())


def _field_schema(field: ReplyField, counts: Mapping[str, int]) -> Mapping[str, Any]:
    if by := field.marker(NumberedBy):
        return numbered_schema(field.key, counts[by.input])
    if cites := field.marker(Cites):
        count = _rounded(counts[cites.input])
        number = {"type": "integer", "minimum": 1, "maximum": max(1, count)}
        return {"type": "array", "items": number, "maxItems": min(count, MOST_CITED)}
    if field.key == "reason":
        return REASON
    if YesNo in field.markers:
        return choice_schema(["yes", "no"])
    schema = _type_schema(field.type, counts)
    if between := field.marker(Between):
        bounds = {"minimum": between.low, "maximum": between.high}
        schema = {**schema, **({"enum": list(between.anchors)} if between.anchors else bounds)}
    return schema


def _rounded(count: int) -> int:
    """A number of passages. From 10 on, it is rounded up to 10, 20, 50, 100 and so on, so that schemas differ less."""
    power = 10 ** (len(str(count)) - 1)
    return count if power == 1 else next(step * power for step in (1, 2, 5, 10) if step * power >= count)


def _inner(kind: Any) -> Any:
    """The item type of a list or tuple; any other type unchanged."""
    return get_args(kind)[0] if get_origin(kind) in (list, tuple) else kind


MOST_ITEMS = 100
"""A list written by a judge must be shorter. A model that writes as many items probably doesn't stop by itself."""
MOST_CITED = 20
LONGEST_TEXT = 1000
"""The maximum length of a text in a reply, other than a reason, in characters."""

_SCHEMAS: Mapping[Any, Mapping[str, Any]] = {
    str: text_schema(LONGEST_TEXT),
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
}


def _type_schema(kind: Any, counts: Mapping[str, int]) -> Mapping[str, Any]:
    if kind in _SCHEMAS:
        return _SCHEMAS[kind]
    if get_origin(kind) is Literal:
        return choice_schema(get_args(kind))
    if _inner(kind) is not kind:
        return list_schema(_type_schema(_inner(kind), counts))
    return _object_schema(kind, True, tuple(counts.items()))


def list_schema(item: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of a list written by the judge."""
    return {"type": "array", "items": item, "maxItems": MOST_ITEMS}


def check_list(items: Sequence[Any], where: str, *, repeats: bool = False) -> None:
    """Raise ReplyError for a list that is too long, or that repeats itself: at least half of 8 or more items.

    repeats: whether repeated items are allowed.
    """
    if len(items) >= MOST_ITEMS:
        raise ReplyError(f"{where}: the list has {len(items)} items; a list ends before {MOST_ITEMS}, each item once")
    if not repeats and len(items) >= _FEW and 2 * len(set(map(repr, items))) <= len(items):
        raise ReplyError(f"{where}: the list repeats itself; list each item once")


_FEW = 8


def check_quoted(quotes: Sequence[str], source: str, where: str) -> None:
    """Raise ReplyError if at least half of 8 or more quotations occur more often than in their source."""
    if len(quotes) < _FEW:
        return
    text, times = bare(source), Counter(map(bare, quotes))
    if 2 * sum(max(0, count - text.count(quote)) for quote, count in times.items()) >= len(quotes):
        raise ReplyError(f"{where}: the list repeats itself; quote each part of the text once")


def read_reply(kind: type[Any], data: Any, question: Any, where: str = "", subject: Any = None) -> Any:
    """Parse a value of a reply type. subject: its subject, if it isn't a part of the reply.

    Raises ReplyError with the invalid fields, as in "verdict 2.reason: Field required".
    """
    return _reader(kind, subject is None).read(data, question, where, subject)


def read_list(kind: type[Any], data: Any, question: Any, where: str) -> tuple[Any, ...]:
    """Parse a list written by the judge. Raises UngroundedItems with all items whose texts don't come from their
    inputs, and any other ReplyError."""
    reader = _reader(kind, True)
    if is_array(data):
        check_list(data, where)
    values: list[Any] = []
    ungrounded: list[UngroundedItems] = []
    rows = zip(data, validated(list[reader.plain], data, where), strict=True)
    for number, (item, row) in enumerate(rows, start=1):
        try:
            values.append(reader.finish(row, item, question, f"{where}.{number}"))
        except UngroundedItems as error:
            ungrounded.append(error)
    if ungrounded:
        raise UngroundedItems.of_list(*_merged(ungrounded), values, len(data))
    return tuple(values)


def read_numbered(
    kind: type[Any], data: Any, question: Any, input: str, noun: str = "", what: str = "verdict"
) -> tuple[Any, ...]:
    """Parse `{"1": …, "2": …}`, with one value per item of one of the question's inputs, in order."""
    items: Sequence[Any] = getattr(question, input)
    subject = subject_of(kind)
    noun = noun or (subject.name if subject else "item")
    if subject and subject.type is int:
        items = range(1, len(items) + 1)
    values = numbered(_by_number(data, items), len(items), of=noun, what=what)
    _refuse_other_order(kind, values, items, noun, what)
    rows = zip(items, values, strict=True)
    read = _reader(kind, False).read
    values: list[Any] = []
    ungrounded: list[UngroundedItems] = []
    for number, (item, value) in enumerate(rows, start=1):
        try:
            values.append(read(value, question, f"{what} {number}", item))
        except UngroundedItems as error:
            ungrounded.append(error)
    if ungrounded:
        raise UngroundedItems(*_merged(ungrounded))
    return tuple(values)


def _merged(ungrounded: Sequence[UngroundedItems]) -> tuple[Sequence[str], str]:
    """The problems and the advice of several errors."""
    return [problem for error in ungrounded for problem in error.problems], ungrounded[0].advice


def _by_number(data: Any, items: Sequence[Any]) -> Any:
    """The values by number if their keys are the texts of all the items; unchanged for any other keys."""
    if not is_mapping(data):
        return data
    numbers = {bare(item): str(number) for number, item in enumerate(items, start=1) if isinstance(item, str)}
    named = [numbers.get(bare(key), "") for key in data]
    if len(numbers) < len(items) or sorted(named) != sorted(numbers.values()):
        return data
    return dict(zip(named, data.values(), strict=True))


_NUMBER_KEYS = frozenset({"number", "num", "nr", "no", "index", "id", "item", "claim", "statement"})
_KEY_PARTS = re.compile(r"[\W_]+")


def _refuse_other_order(kind: type[Any], values: Sequence[Any], items: Sequence[Any], noun: str, what: str) -> None:
    """Raise ReplyError if a verdict names another item than the one at its place, by its text or its number."""
    known = _keys_of(kind)
    members = [value if is_object(value) else {} for value in values]
    if all(map(known.issuperset, members)):
        return
    extras = [{key: other for key, other in value.items() if key not in known} for value in members]
    item_texts = {bare(item): item for item in items if isinstance(item, str)}
    number_keys = _NUMBER_KEYS.union(noun.casefold().split())
    numbers: list[set[int]] = []
    for item, extra in zip(items, extras, strict=True):
        named = [bare(NUMBERING.sub("", other)) for other in extra.values() if isinstance(other, str)]
        named = [text for text in named if text in item_texts]
        given = {} if named else {key: _number(other) for key, other in extra.items()}
        given = {key: number for key, number in given.items() if number is not None}
        numbers.append({n for key, n in given.items() if not number_keys.isdisjoint(_KEY_PARTS.split(key.casefold()))})
        if named and (not isinstance(item, str) or bare(item) not in named):
            raise _OtherOrder(what, len(numbers))
    from_zero = all(given == {place} for place, given in enumerate(numbers))
    for number, given in enumerate(numbers, start=1):
        if not from_zero and not given <= {number}:
            raise _OtherOrder(what, number)


class _OtherOrder(ReplyError):
    def __init__(self, what: str, number: int) -> None:
        super().__init__(f"{what} {number} names another item; give the verdicts in the order of the items")


def _number(value: object) -> int | None:
    """The number that a value is or names, as in `claim 2`."""
    if isinstance(value, str):
        return named_number(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@functools.cache
def _keys_of(kind: type[Any]) -> frozenset[str]:
    """The keys of a reply type, without its subject."""
    return frozenset(field.key for field in reply_fields(kind) if not field.marker(Subject))


Convert: TypeAlias = "Callable[[Any, Any, str], Any]"


class _Reader:
    """Parses replies of one type. Pydantic validates the plain fields in one call, as a TypedDict."""

    def __init__(self, kind: type[Any], fields: Sequence[ReplyField]) -> None:
        # Before Python 3.12, pydantic doesn't support typing.TypedDict.
        from pydantic import StrictInt  # noqa: PLC0415 - slow to import
        from typing_extensions import TypedDict  # noqa: PLC0415 - comes with pydantic, slow to import

        self.kind = kind
        self.nested = [field for field in fields if _is_nested(field)]
        self.omissible: list[tuple[str, Any]] = []
        self.converters: list[tuple[str, str, Convert]] = []
        members: dict[str, Any] = {}
        for field in (field for field in fields if field not in self.nested):
            inner = _inner(field.type)
            wire = Literal["yes", "no"] if YesNo in field.markers else inner if inner is field.type else list[inner]
            wire = list[StrictInt] if Cites in field.markers else wire  # true is not passage 1
            members[field.key] = wire
            if omitted := field.marker(MayOmit):
                members[field.key] = NotRequired[wire]
                self.omissible.append((field.key, omitted.default))
            if convert := _converter(field):
                self.converters.append((field.name, field.key, convert))
        make: Any = TypedDict
        self.plain: Any = make(kind.__name__, members)
        subject = subject_of(kind)
        self.subject = subject.name if subject else ""
        self.checked = [field for field in fields if {Quotes, Restates} & field.markers.keys()]
        self.evidence = [(field, marker) for field in fields if (marker := _evidence(field)) is not None]
        self.verdict = next((field for field in fields if field.label), None)

    def read(self, data: Any, question: Any, where: str, subject: Any) -> Any:
        return self.finish(validated(self.plain, data, where), data, question, where, subject)

    def finish(self, values: dict[str, Any], data: Any, question: Any, where: str, subject: Any = None) -> Any:
        """Convert and check a value after pydantic has validated its plain fields."""
        for key, default in self.omissible:
            values.setdefault(key, default)
        for name, key, convert in self.converters:
            values[name] = convert(values.pop(key), question, where)
        ungrounded: list[UngroundedItems] = []
        for field in self.nested:
            omitted = field.marker(MayOmit)
            if omitted and field.key not in data:
                values[field.name] = omitted.default
            else:
                place = f"{where}.{field.key}" if where else field.key
                try:
                    values[field.name] = _nested(field, member(data, field.key), question, place)
                except UngroundedItems as error:
                    ungrounded.append(error)
        label = values[self.verdict.name] if self.verdict else None
        for field, needed_for in self.evidence:
            if label not in needed_for:
                values[field.name] = values[field.name] if Cites in field.markers else ""
            elif not question.cited:
                pass
            elif not values[field.name]:
                what = "cites the passages that decide it" if Cites in field.markers else "quotes the words"
                raise ReplyError(f"{where or field.key}: {label!r} {what}; {field.key} is empty")
            elif cites := field.marker(Cites):
                cited = values[field.name]
                if all(is_blank(getattr(question, cites.input)[number - 1]) for number in cited):
                    shown = ", ".join(map(str, cited))
                    raise ReplyError(f"{where or field.key}: {label!r} cites {shown}, and nothing is in there")
        for field in self.checked:
            if values[field.name] or not _evidence(field):
                try:
                    _check_source(field, values[field.name], question, where)
                except UngroundedItems as error:
                    ungrounded.append(error)
        if ungrounded:
            raise UngroundedItems(*_merged(ungrounded))
        if subject is not None and self.subject:
            values[self.subject] = subject
        return self.kind(**values)


def _evidence(field: ReplyField) -> Collection[str] | None:
    """The labels that need a citation or quotation in this field; None for any other field."""
    marker = field.marker(Cites) or field.marker(Quotes)
    return marker.needed_for or None if marker else None


def _check_source(field: ReplyField, value: str | Sequence[str], question: Any, where: str) -> None:
    """Raise UngroundedItems for texts that don't come from their input."""
    marker = field.marker(Quotes) or field.marker(Restates)
    if marker is None:
        return
    place = f"{where}.{field.key}" if where else field.key
    places = [(place, value)] if isinstance(value, str) else [(f"{place}.{n}", text) for n, text in enumerate(value, 1)]
    problems = [f"{place}: {problem}" for place, text in places if (problem := marker.problem(text, question))]
    if problems:
        raise UngroundedItems(problems, marker.advice)


@functools.cache
def _reader(kind: type[Any], with_subject: bool) -> _Reader:
    return _Reader(kind, _fields_in_reply(kind, with_subject))


def _is_nested(field: ReplyField) -> bool:
    inner = _inner(field.type)
    is_texts = inner is str and inner is not field.type
    return is_texts or dataclasses.is_dataclass(inner) or Between in field.markers


def _converter(field: ReplyField) -> Convert | None:
    """The conversion from a validated value to the answer's value; None if they are the same."""
    if YesNo in field.markers:
        return lambda value, question, where: value == "yes"
    if cites := field.marker(Cites):
        return functools.partial(_cited, cites.input)
    if get_origin(field.type) is tuple:
        return lambda value, question, where: tuple(value)
    return (lambda value, question, where: value) if field.name != field.key else None


def _cited(input: str, numbers: list[int], question: Any, where: str) -> tuple[int, ...]:
    total = len(getattr(question, input))
    for number in numbers:
        if not 1 <= number <= total:
            noun = "passage" if input == "context" else "item"
            there = f"is 1 {noun}" if total == 1 else f"are {total} {noun}s"
            raise ReplyError(f"{where or 'the reply'} cites {noun} {number}; there {there}")
    return tuple(dict.fromkeys(numbers))


def _nested(field: ReplyField, data: Any, question: Any, where: str) -> Any:
    if between := field.marker(Between):
        low, high = (between.low, between.high) if question.bounded else (None, None)
        return float(number_in(data, where, low, high))
    inner = _inner(field.type)
    if by := field.marker(NumberedBy):
        return read_numbered(inner, data, question, by.input, by.noun, by.what)
    if inner is str:
        listed = texts(data, where)
        check_list(listed, where)
        return listed
    return read_reply(inner, data, question, where) if inner is field.type else read_list(inner, data, question, where)


LARGEST = 1e100


def number_in(value: Any, where: str, low: float | None = 0, high: float | None = 1, *, whole: bool = False) -> float:
    """A number from `low` to `high`, which may be written as text. None for one of them allows any number. Numbers are
    never clamped.

    whole: only accept whole numbers. Raises ReplyError for anything else, including booleans.
    """
    number = value
    if isinstance(value, str) and "_" not in value:
        with contextlib.suppress(ValueError):
            number = float(value)
    least, most = (-LARGEST, LARGEST) if low is None or high is None else (low, high)
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    if is_number and least <= number <= most and not (whole and number % 1):
        return number
    span = "" if low is None or high is None else f" from {low:g} to {high:g}"
    shown = clean(json.dumps(value, ensure_ascii=False)[:60])
    raise ReplyError(f"{where}: a {'whole ' if whole else ''}number{span} was expected, not {shown}")


def reason_of(data: Any) -> str:
    """The judge's reason; `feedback` is the name that Spring AI Alibaba's templates ask for."""
    reason = data.get("reason", data.get("feedback"))
    if reason is None:
        return ""
    if not isinstance(reason, str):
        raise ReplyError(f"reason: text was expected, not {type(reason).__name__}")
    return reason.strip()
