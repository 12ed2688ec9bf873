"""Reading a judge's reply: text to JSON, JSON to a validated value. Strict about meaning, tolerant about wrapping.

What is forgiven: white space, a byte order mark, code fences, prose around one JSON object or list, raw line breaks and
LaTeX commands inside its strings, and the spellings of loose_json.py.
What is not: a cut-off object, a repeated key, two different objects, a missing or extra verdict. Those raise
ReplyError, whose text is shown to the judge when it is asked again. Nothing is repaired into a score.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from evalstone._core import loose_json
from evalstone._core.display import count
from evalstone._core.guards import is_array, is_mapping, is_object
from evalstone._core.prompts import clean
from evalstone.errors import ReplyError

if TYPE_CHECKING:
    import pydantic

T = TypeVar("T")

MAX_REPLY = 2_000_000
_MOST_BRACKETS = 50


def check_length(text: str) -> None:
    """Raise ReplyError if a reply is too long."""
    if len(text) > MAX_REPLY:
        raise ReplyError(f"the reply has {len(text):,} characters; at most {MAX_REPLY:,} are read", reply=text[:1000])


def parse_json(text: str) -> Any:
    """The only JSON object in a reply, or else the only list. Raises ReplyError if there is none, more than one, or a
    truncated one."""
    check_length(text)
    body = loose_json.with_latex(text.lstrip("\ufeff").strip())
    if not body:
        raise ReplyError("the reply is empty; a JSON object was expected", reply=text)
    try:
        objects = _objects(body)
        differ = any(other != objects[0] for other in objects[1:])
    except RecursionError:
        raise ReplyError("the JSON in the reply is nested too deeply", reply=text) from None
    except json.JSONDecodeError as error:
        cut = error.pos >= len(body.rstrip("` \n\r\t")) or error.msg.startswith("Unterminated")
        problem = "cut off" if cut else f"not valid: {error.msg} at character {error.pos}"
        raise ReplyError(f"the JSON object in the reply is {problem}", reply=text) from None
    except ValueError as error:
        raise ReplyError(f"the JSON object in the reply is not valid: {error}", reply=text) from None
    if not objects:
        raise ReplyError("the reply holds no complete JSON object; it may be cut off", reply=text)
    if differ:
        raise ReplyError(f"the reply holds {len(objects)} different JSON objects; exactly one was expected", reply=text)
    return objects[0]


def _objects(body: str) -> list[Any]:
    """The outermost JSON objects inside a text, and lists of objects; if there are none, the lists of texts,
    unless one is a part of a sentence.

    Braces that do not open as an object does, as in prose or a formula, are passed over. Inside an object that opens
    and cannot be read nothing is looked for: a part of a cut-off answer is not the answer. Raises ValueError for it.
    """
    objects: list[Any] = []
    texts: list[Any] = []
    place = prose = 0
    in_sentence = loosely = False
    while opening := loose_json.OPENING.search(body, place):
        start, inside = opening.span()
        before = body[place:start].rstrip(" \t")
        try:
            value, place = _loosely_decoded(body, start) if loosely else _DECODER.raw_decode(body, start)
        except json.JSONDecodeError:
            if not loosely:
                # So are the objects after this one: an error of the strict decoder takes as long as the text before it.
                loosely = True
                continue
            if opening[0] == "{" or body[inside] == "{":
                raise
            place, prose = inside, prose + 1  # brackets in prose, as in `["a" and so on`
            if prose > _MOST_BRACKETS:
                raise
            continue
        is_texts = is_array(value) and not any(isinstance(item, dict) for item in value)
        (texts if is_texts else objects).append(value)
        in_sentence = in_sentence or (is_texts and before != "" and before[-1] not in ":\n")
    return objects or ([] if in_sentence else texts)


def _loosely_decoded(body: str, start: int) -> tuple[Any, int]:
    """The object or list that begins at a place, in any spelling of loose_json.py, and the place of its end."""
    if (spelled := loose_json.as_json(body, start)) is None:
        return _DECODER.raw_decode(body, start)
    try:
        return _DECODER.decode(spelled[0]), spelled[1]
    except json.JSONDecodeError as error:
        raise json.JSONDecodeError(error.msg, body, start + error.pos) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        repeated = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"the key {_quoted(repeated)} stands twice in it")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_object, parse_constant=_no_constant)


@functools.cache
def _validator(kind: Any) -> tuple[Callable[[Any], Any], type[pydantic.ValidationError]]:
    """The function that validates data as a kind of value, and the error it raises."""
    import pydantic  # noqa: PLC0415 - importing it takes longer than importing evalstone

    return pydantic.TypeAdapter(kind).validator.validate_python, pydantic.ValidationError


def validated(kind: type[T], data: Any, where: str = "") -> T:
    """`data` as a value of `kind`. Raises ReplyError, which names the first invalid places and what was expected."""
    validate, invalid = _validator(kind)
    try:
        return validate(data)
    except invalid as error:
        problems: list[str] = []
        for item in error.errors(include_url=False, include_context=False)[:3]:
            place = ".".join([where] * bool(where) + [str(part) for part in item["loc"]])
            problems.append(f"{place or 'reply'}: {item['msg']}")
        raise ReplyError("; ".join(problems)) from None


def numbered(data: Any, items: int, *, of: str, what: str = "verdict") -> list[Any]:
    """The members of `{"1": …, "2": …}` in order, exactly one for each item.

    A list with one value per item is read as if it were numbered. Any other number of members, including zero, or a
    number that names no item raises ReplyError, as in `3 claims, 2 verdicts`.
    """
    if is_array(data):
        data = {str(number): member for number, member in enumerate(data, start=1)}
    if not is_mapping(data):
        raise ReplyError(f"an object with the keys 1 to {items} was expected, one for each {of}")
    expected = dict.fromkeys(str(number) for number in range(1, items + 1))
    missing = [key for key in expected if key not in data]
    extra = [key for key in data if key not in expected]
    if missing or extra:
        problem = f"{count(items, of)}, {count(len(data), what)}"
        problem += f"; missing: {', '.join(missing[:10])}" if missing else ""
        problem += f"; unknown: {', '.join(_quoted(key) for key in extra[:10])}" if extra else ""
        raise ReplyError(problem)
    return [data[key] for key in expected]


def member(data: Any, key: str) -> Any:
    """`data[key]` of a JSON object. Raises ReplyError if `data` is no object or lacks the key."""
    if not is_mapping(data) or key not in data:
        raise ReplyError(f"a JSON object with the key {key!r} was expected")
    return data[key]


def texts(data: Any, where: str) -> tuple[str, ...]:
    """A list of texts without the blank ones."""
    listed = validated(list[str], data, where)
    return tuple(text.strip() for text in listed if text.strip())


OPEN_PLACEHOLDER = re.compile(r"\s*[\[(\"']*(?:…|\.{3,}|<[^<>]{0,80}>)[\])\"']*\s*")
"""A placeholder for a text, in any field."""
PLACEHOLDER = re.compile(
    rf"{OPEN_PLACEHOLDER.pattern}|(?:[^\w*\u2600-\u27bf\U0001f000-\U0001faff]|_)+"
    r"|[\W_]*(?:(?:insert|write|your|the|a|an|one|short|brief)\s+){0,4}(?:text|string|reason|reasoning|explanation|sentence)"
    r"(?:\s+(?:goes\s+)?here)?[\W_]*",
    re.IGNORECASE,
)
"""A placeholder in a field that needs words: also punctuation alone, or the name of the field."""


def refuse_placeholders(
    data: Any,
    is_copied: Callable[[str], bool],
    words: Callable[[], Collection[str]],
    placeholder: re.Pattern[str] = PLACEHOLDER,
) -> None:
    """Raise ReplyError if a text of a reply was not written for the case at hand.

    Refused are placeholders (`…`, `<string>`, "reason"), texts for which `is_copied` is true, and texts that repeat a
    phrase up to their end, unless the material does so.

    Args:
        data: The reply as JSON data.
        is_copied: Whether a text is copied from the prompt.
        words: The texts that are valid although they look like placeholders.
        placeholder: Matches placeholders.
    """
    for text in _texts_in(data):
        if text and not text.isspace() and (problem := _problem_of(text, is_copied, words, placeholder)):
            raise ReplyError(f"{_place_of(text, data)}: {problem}")


def _problem_of(
    text: str, is_copied: Callable[[str], bool], words: Callable[[], Collection[str]], placeholder: re.Pattern[str]
) -> str:
    """Why a text of a reply is refused; empty if it isn't. The arguments are those of `refuse_placeholders`."""
    if len(text) <= _LONGEST_PLACEHOLDER and placeholder.fullmatch(text) and text not in words():
        return f"{_quoted(text)} is a placeholder; write your own words there"
    if is_copied(text):
        return f"{_quoted(text)} is copied from the prompt; judge the given material"
    if (unit := repeated_end(text.rstrip())) and not any(text[-LEAST_REPEATED:] in known for known in words()):
        return f"{REPEATS} ({_quoted(unit.strip())} again and again)"
    return ""


def _texts_in(data: Any) -> Collection[str]:
    """The different texts in a JSON object or list."""
    found: dict[str, None] = {}
    nested = [data]
    for values in nested:
        for value in values.values() if is_object(values) else values:
            kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
            if kind is str:
                found[value] = None
            elif kind is dict or kind is list:
                nested.append(value)
    return found


def _place_of(text: str, data: Any) -> str:
    """The path to a text in a JSON object or list, or rather its end. Its keys are untrusted."""
    nested: list[tuple[str, Any]] = [("", data)]
    for path, values in nested:
        for key, value in values.items() if is_object(values) else enumerate(values, start=1):
            place = f"{path}.{key}"[-200:]
            if value == text:
                return clean(place.removeprefix("."))
            if is_object(value) or is_array(value):
                nested.append((place, value))
    return ""


REPEATS = "it repeats itself"
LONGEST_UNIT, LEAST_REPEATS, LEAST_REPEATED = 200, 8, 100


def repeated_end(text: str) -> str:
    """The phrase of at most 200 characters that a text repeats at its end, at least eight times and over at least 100
    characters; empty if there is none."""
    if len(text) < LEAST_REPEATED:
        return ""
    # A repetition can only start where the last characters occur once more.
    place = len(text) - _TAIL
    tail, first = text[place:], max(0, place - min(LONGEST_UNIT, len(text) // LEAST_REPEATS))
    before = place
    while (before := text.rfind(tail, first, before + _TAIL - 1)) >= 0:
        period = place - before
        size = max(period * LEAST_REPEATS, LEAST_REPEATED)
        if len(text) >= size and text[-size:-period] == text[-size + period :]:
            return text[-period:]
    return ""


_TAIL = 12


_LONGEST_PLACEHOLDER = 100


def bare(text: str) -> str:
    """The letters and digits of a text, casefolded."""
    if text.isascii():  # in a quarter of the time, and each text of a reply is compared with the prompt
        return text.encode().translate(_LOWER, _NO_ASCII_LETTERS).decode()
    return _NO_LETTERS.sub("", text.casefold())


def first_repeated(texts: Sequence[str]) -> str:
    """The first text that is equal to an earlier one, but for case, white space and punctuation; empty if none is."""
    seen = set[str]()
    for text in texts:
        if (key := bare(text)) in seen:
            return text
        seen.add(key)
    return ""


_NO_LETTERS = re.compile(r"[\W_]+")
_LOWER = bytes(range(256)).lower()
_NO_ASCII_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object that has exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def numbered_schema(item: str, count: int) -> dict[str, Any]:
    """The JSON schema of `{"1": item, …}` with exactly `count` members. item: its name under "$defs".

    Providers count a schema's tokens: written out for each number, that of 25 verdicts would have 2,000.
    """
    return object_schema({str(number): {"$ref": f"#/$defs/{item}"} for number in range(1, count + 1)})


def text_schema(longest: int) -> dict[str, Any]:
    """The JSON schema of a text with a maximum length in characters."""
    return {"type": "string", "maxLength": longest}


LONGEST_REASON = 500
REASON: Mapping[str, Any] = text_schema(LONGEST_REASON)


def choice_schema(choices: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of one of several words."""
    return {"type": "string", "enum": list(choices)}


def _quoted(key: str) -> str:
    return repr(key if len(key) <= 40 else key[:39] + "…")
