"""What the values of settings may be, declared by annotations.

    temperature: Annotated[float | None, Range(0, 2)] = 0.0
    tokenize: Literal["13a", "intl"] = "13a"

`check_settings(self)` in the `__post_init__` of a frozen dataclass checks each field against its annotation,
`check_argument` checks one argument of a function. `allowed_values` is the same declaration in words, for pages.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, Union, cast, get_args, get_origin

from evalstone._core.display import excerpt, is_line
from evalstone._core.front_ends import Setting
from evalstone._core.guards import is_number, is_sequence, is_whole
from evalstone._core.redaction import masked
from evalstone._core.text import is_blank
from evalstone._core.validation import is_kind
from evalstone.errors import ConfigError, invalid

_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True)
class Range:
    """The range of a number. exclusive: whether `least` itself is out of range."""

    least: float = -math.inf
    most: float = math.inf
    exclusive: bool = False

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most and not (self.exclusive and value == self.least)

    def __str__(self) -> str:
        least, most = (str(limit) if isinstance(limit, int) else f"{limit:g}" for limit in (self.least, self.most))
        if self.most < math.inf:
            return f" above {least} and up to {most}" if self.exclusive else f" from {least} to {most}"
        if self.least > -math.inf:
            return f" above {least}" if self.exclusive else f" of {least} or more"
        return ""


@dataclass(frozen=True)
class Rule:
    """What a value must be. words: for errors and pages. read: converts a value that holds, such as a list to a tuple;
    it may raise ConfigError."""

    words: str
    holds: Callable[[Any], bool]
    read: Callable[[Any], Any] | None = None


def _is_written(value: Any) -> bool:
    return isinstance(value, str) and not is_blank(value)


def _is_anything(_: Any) -> bool:
    return True


ANYTHING = Rule("", _is_anything)
"""A value that needs no check, or that another function reads."""
TEXT = Rule("text that is not blank", _is_written)
TEXTS = Rule(
    "a list of texts that are not blank",
    lambda value: is_sequence(value) and all(map(_is_written, value)),
    tuple,
)


NAME = Rule(
    "one line of visible text",
    lambda value: isinstance(value, str) and is_line(value),
)
"""What names a run, a dataset, a judge or a stream."""


def check_settings(value: Any, label: str = "") -> None:
    """Check each field of a dataclass value against its annotation. A list becomes the tuple that its field holds.

    In a class of the user's own, plain types are not checked, except true or false: a value may behave like what is
    named, such as numpy's numbers. Each `Literal` and each rule in `Annotated` is.

    Raises:
        ConfigError: A field is invalid. The message and the error's fields have its name, what it must be, and its
            value unless the field has `repr=False`.
    """
    for name, default, rule, secret in _declared(cast(Any, type(value))):
        setting = getattr(value, name)
        if setting is default:
            continue
        if not rule.holds(setting):
            _refuse(name, setting, rule, label, secret=secret)
        if rule.read is not None and (read := rule.read(setting)) is not setting:
            object.__setattr__(value, name, read)


def check_argument(name: str, value: Any, declared: Any, label: str = "") -> Any:
    """Check an argument against an annotation: `check_argument("trials", trials, Annotated[int, Range(1, 100)])`.

    Returns it as a field would hold it: a list as a tuple.

    Raises:
        ConfigError: It is invalid, as in `check_settings`.
    """
    rule = _rule_for(declared)
    if not rule.holds(value):
        _refuse(name, value, rule, label)
    return value if rule.read is None else rule.read(value)


def check_flags(**flags: object) -> None:
    """Check arguments that turn something on or off, by name. Raises ConfigError for anything but True and False."""
    for name, value in flags.items():
        check_argument(name, value, bool)


def allowed_values(kind: Any) -> dict[str, str]:
    """The fields of a dataclass that can be passed, each with what it may be, or "" if that is anything.

    What isn't checked in a class of the user's own is in the words of its type.
    """
    return {
        declared.name: declared.rule.words or next(filter(None, _type_words(kind, declared.name)), "")
        for declared in _declared(kind)
    }


def _refuse(name: str, value: Any, rule: Rule, label: str = "", *, secret: bool = False) -> NoReturn:
    kind = type(value).__name__
    known = None if secret else masked(value)
    shown = f"this {kind}" if secret else f"{excerpt(known)} ({kind})"
    setting = name if label else Setting(name)  # an argument of a function is a setting of every front end
    raise ConfigError(f"{label}{': ' * bool(label)}", invalid(setting, rule.words, known, shown))


class _Declared(NamedTuple):
    """A field, and what it must be. secret: whether its value must not be shown."""

    name: str
    default: Any
    rule: Rule
    secret: bool


@functools.cache
def _declared(kind: Any) -> Sequence[_Declared]:
    """The fields of a dataclass that can be passed."""
    fields = [field for field in dataclasses.fields(kind) if field.init]
    return [_Declared(field.name, field.default, _field_rule(kind, field.name), not field.repr) for field in fields]


def _field_rule(kind: type[Any], name: str) -> Rule:
    """What a field must be: the first rule of the class that declares it and of those whose field it declares again."""
    rules = (_rule_of(base, field) for base, field in _declarations(kind, name))
    return next((rule for rule in rules if rule is not ANYTHING), ANYTHING)


def _type_words(kind: type[Any], name: str) -> Iterator[str]:
    """What a field is by its type, as the classes declare it."""
    for base, field in _declarations(kind, name):
        yield _rule(_hint_of(base, field)).words


def _declarations(kind: type[Any], name: str) -> Iterable[tuple[type[Any], dataclasses.Field[Any]]]:
    """The class that declares a field, and those whose field it declares again, each with the field."""
    return {  # a field that a subclass inherits is the same object in both
        id(field): (base, field)
        for base in kind.__mro__
        if (field := vars(base).get("__dataclass_fields__", {}).get(name)) is not None
    }.values()


@functools.cache
def _rule_of(owner: type[Any], field: dataclasses.Field[Any]) -> Rule:
    is_ours, hint = owner.__module__.partition(".")[0] == _PACKAGE, _hint_of(owner, field)
    return _rule(hint) if is_ours or _is_explicit(hint) else ANYTHING


def _hint_of(owner: type[Any], field: dataclasses.Field[Any]) -> Any:
    """The type of a field; Any if it is known to type checkers only, or inside a function."""
    if not isinstance(field.type, str):
        return field.type
    names = getattr(sys.modules.get(owner.__module__), "__dict__", {})
    try:
        return eval(field.type, names, vars(owner))  # noqa: S307 - as typing.get_type_hints does for a whole class
    except (NameError, AttributeError, TypeError, SyntaxError):
        return Any


def _is_explicit(hint: Any) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return all(_is_explicit(option) for option in get_args(hint) if option is not type(None))
    return hint is bool or get_origin(hint) in (Annotated, Literal)


@functools.lru_cache(maxsize=256)
def _rule_for(hint: Any) -> Rule:
    return _rule(hint)


_WORDS: Mapping[Any, str] = {
    bool: "true or false",
    str: "text",
    Mapping: "a mapping",
    dict: "a mapping",
    Callable: "a function",
}
_PLURALS = {str: "texts", float: "numbers", int: "whole numbers"}


def _rule(hint: Any, allowed: Range = Range()) -> Rule:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        hint, *rest = arguments
        extra = next((each for each in rest if isinstance(each, Range | Rule)), ANYTHING)
        return _rule(hint, extra) if isinstance(extra, Range) else _with_rule(hint, extra)
    if origin in (Union, types.UnionType):
        options = [option for option in arguments if option is not type(None)]
        return _any_of([_rule(option, allowed) for option in options], optional=len(options) < len(arguments))
    if origin is Literal:
        return Rule(_either(list(map(repr, arguments))), lambda value: is_kind(value, arguments))
    kind = cast("type[Any]", origin or hint)
    if kind in (int, float):
        is_right = is_whole if kind is int else is_number
        words = "a whole number" if kind is int else "a number" if str(allowed) else "a finite number"
        return Rule(f"{words}{allowed}", lambda value: is_right(value) and value in allowed)
    if kind in (tuple, list, Sequence):
        is_fixed = kind is tuple and arguments
        return _list_rule(arguments if is_fixed else (*arguments, ...), is_tuple=kind is not list)
    if not _can_be_checked(kind):
        return ANYTHING
    article = "an" if kind.__name__[0] in "AEIO" else "a"
    return Rule(_WORDS.get(kind) or f"{article} {kind.__name__}", lambda value: isinstance(value, kind))


def _with_rule(hint: Any, rule: Rule) -> Rule:
    """The rule, or None where the annotation has it. Messages don't speak of None, which stands for leaving it out."""
    return _any_of([rule], optional=True) if type(None) in get_args(hint) else rule


def _any_of(rules: Sequence[Rule], *, optional: bool) -> Rule:
    if any(rule is ANYTHING for rule in rules):
        return ANYTHING
    words = _either([rule.words for rule in rules])

    def holds(value: Any) -> bool:
        return (optional and value is None) or any(rule.holds(value) for rule in rules)

    def read(value: Any) -> Any:
        rule = None if optional and value is None else next(rule for rule in rules if rule.holds(value))
        return value if rule is None or rule.read is None else rule.read(value)

    return Rule(words, holds, read if any(rule.read is not None for rule in rules) else None)


def _list_rule(arguments: Sequence[Any], *, is_tuple: bool) -> Rule:
    """A list of any length, or of the length that a tuple has."""
    kinds = [argument for argument in arguments if argument is not Ellipsis] or [Any]
    length = len(kinds) if is_tuple and Ellipsis not in arguments else None
    rules = list(map(_rule, kinds))
    items = _plural(kinds[0]) if len(set(kinds)) == 1 else "items"

    def paired(value: Sequence[Any]) -> Iterable[tuple[Rule, Any]]:
        return zip(rules if length else itertools.repeat(rules[0]), value, strict=False)

    def holds(value: Any) -> bool:
        return (
            is_sequence(value)
            and length in (None, len(value))
            and all(rule.holds(item) for rule, item in paired(value))
        )

    def read(value: Any) -> Any:
        converted = (item if rule.read is None else rule.read(item) for rule, item in paired(value))
        return tuple(converted) if is_tuple else list(converted)

    return Rule(f"{length} {items}" if length else f"a list of {items}", holds, read)


def _plural(hint: Any) -> str:
    if get_origin(hint) in (tuple, list, Sequence):
        return f"lists of {_plural(get_args(hint)[0])}"
    return _PLURALS.get(hint, "items")


def _can_be_checked(kind: Any) -> bool:
    """Whether `isinstance` takes a type, and tells it from others: not a protocol, nor what is no class, nor object."""
    try:
        isinstance(None, kind)
    except TypeError:
        return False
    return kind is not object


def _either(words: Sequence[str]) -> str:
    """The words as alternatives: "a number, text or a function"."""
    *rest, last = words
    return f"{', '.join(rest)} or {last}" if rest else last
