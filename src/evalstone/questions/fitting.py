"""Fit a reply to its schema, where another spelling can mean only one thing.

    words     "Not mentioned", "not-mentioned", **supported**, "yes!"      case, spaces, hyphens, quotes and markup
    keys      "Verdicts", "passage", "1.", "claim 1"                       the same, and number; a number with a word
    missing   no reason, no citations                                      "" and []
    verdicts  "yes" for {"verdict": "yes"}                                 where everything else may be missing
    numbers   2, "2", "passages 1 and 2", ["passage 2"], "none", null      a list of citations
    lists     [{…}], a bare list, {"1": …} without the key around it       where the schema has one place for it
    wrappers  {"response": {…}}                                            an object around one that has all keys
    items     {"claim": "…"}                                               the text of an object that has one
    lists     {"1": …, "2": …} for a list                                  the numbers in order
    fractions "4/5"                                                        if the highest number is 5
    names     {"rating": 4} for a score, {"facts": […]} for claims         see _SAME
    signs     "✅ supported", "❌ no"                                      if the sign and the word agree
    words     refund, "Score: 4", "Reason: …\\nScore: 4"                   a reply without JSON; see of_bare_text

Anything else is unchanged, and is refused. A verdict is never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evalstone._core.guards import is_array, is_mapping
from evalstone.questions.schemas import Node, resolved

_EDGES = " \t\r\n\"'`*_.:\u201c\u201d\u2018\u2019\u00ab\u00bb"
_EDGES_OF_TEXT = " \t\r\n*_`"
_GAPS = re.compile(r"[\s_-]+")
_NO_NUMBER = re.compile(r"\W*(?:none|n/?a)?\W*", re.IGNORECASE)
_BETWEEN_NUMBERS = re.compile(r"\s*(?:[,;&]|\band\b)\s*")
_NAMED_NUMBER = re.compile(r"[^\w-]*(?!(?:not?|none|non)\b)(?:[^\W\d]+[\s_#.:-]*)?(\d{1,6})\W*", re.IGNORECASE)
"""A number with at most one word before it: `claim 1`, `[1]`."""
_BARE_NUMBER = re.compile(r"[\s*_`\"']*(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\.?[\s*_`\"']*", re.ASCII)
_FRACTION = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(?:/|out of)\s*(\d{1,9})\s*", re.ASCII)
_LABELS = ("answer", "final answer", "verdict", "final verdict")
_REASONS = ("reason", "reasoning", "explanation")
_LABEL = re.compile(r"^[ \t*_#>-]*([A-Za-z][A-Za-z_ ]{0,20})[*_ ]*:", re.MULTILINE)
_SAME = (frozenset({"score", "rating", "grade"}), frozenset({"claims", "facts", "statements"}))
"""Names of one thing: a reply with one of them instead of another means that one. "answer" isn't a name of the verdict,
because it may repeat the judged answer."""
_SIGNED = re.compile(r"\s*(?:(?P<check>[✅✔☑])|[❌✗✘✖])\ufe0f?\s*(?P<word>[^\W_].*)", re.DOTALL)
_GOOD, _BAD = ("yes", "true", "supported"), ("no", "false", "contradicted", "not mentioned")


def fitted(data: Any, schema: Node) -> Any:
    """The reply in the form of the schema. It is equal to the data if nothing could be fitted."""
    return _fitted(data, schema, schema.get("$defs", {}))


def of_bare_text(text: str, schema: Node) -> Any:
    """The reply that a text without JSON stands for: the word or the number of the only key that can't be missing. The
    key may be named in front of it, as in `Score: 4`, and a reason on other lines. None for any other text."""
    defined, inner = schema.get("$defs", {}), schema.get("properties", {})
    needed = [key for key, node in inner.items() if _if_absent(key, resolved(node, defined)) is None]
    if len(needed) != 1:
        return None
    (key,) = needed
    if (members := _labeled(text, key, inner)) is None:
        return None
    node, text = resolved(inner[key], defined), members[key]
    if node.get("type") in ("integer", "number"):
        number = _BARE_NUMBER.fullmatch(text)
        return _object({**members, key: number[1]}, inner, defined) if number else None
    word = _word_in(known := _words(node, defined), text)
    return _object({**members, key: word}, inner, defined) if word in known else None


def _labeled(text: str, key: str, inner: Mapping[str, Node]) -> dict[str, str] | None:
    """The texts of a key and of the reason, by the labels that begin lines; without any, the whole text is that of the
    key. None if something is in front of the first label, or a label repeats, or the key has none."""
    names = dict.fromkeys((_plain(key), *_same_names(key), *_LABELS), key)
    if "reason" in inner:
        names.update(dict.fromkeys(_REASONS, "reason"))
    labels = [label for label in _LABEL.finditer(text) if _plain(label[1]) in names]
    if not labels:
        return {key: text}
    ends = [*(label.start() for label in labels[1:]), len(text)]
    members = {
        names[_plain(label[1])]: text[label.end() : end].strip(_EDGES_OF_TEXT)
        for label, end in zip(labels, ends, strict=True)
    }
    return members if key in members and len(members) == len(labels) and not text[: labels[0].start()].strip() else None


def _same_names(key: str) -> frozenset[str]:
    """The other names of what a key of a schema names."""
    return next((names for names in _SAME if key in names), frozenset[str]()) - {key}


def _fitted(data: Any, node: Node, defined: Mapping[str, Node]) -> Any:
    if isinstance(data, str) and (words := _words(node, defined)):
        return _word_in(words, data)
    node = resolved(node, defined)
    for option in node.get("anyOf", ()):
        if (changed := _fitted(data, option, defined)) != data:
            return changed
    if "properties" in node:
        return _object(data, node["properties"], defined)
    if isinstance(data, str) and "maximum" in node and (fraction := _FRACTION.fullmatch(data)):
        return fraction[1] if float(fraction[2]) == node["maximum"] else data
    if node.get("type") == "array":
        return _list(data, node.get("items", {}), defined)
    return data


def _object(data: Any, inner: Mapping[str, Node], defined: Mapping[str, Node]) -> Any:
    if is_array(data):
        if len(data) == 1 and _names_all_of(data[0], inner):
            return _object(data[0], inner, defined)
        if len(inner) == 1 and "1" not in inner:
            ((key, node),) = inner.items()
            return {key: _fitted(data, node, defined)}
        # Read as if it were numbered.
        return [_fitted(item, inner.get(str(number), {}), defined) for number, item in enumerate(data, start=1)]
    if isinstance(data, str):
        return _verdict(data, inner, defined)
    if not is_mapping(data):
        return data
    members = _with_known_keys(data, inner)
    if len(inner) == 1 and not members.keys() & inner.keys():
        ((key, node),) = inner.items()
        numbers = resolved(node, defined).get("properties", {})
        if "1" in numbers and _with_known_keys(members, numbers).keys() == numbers.keys():
            return {key: _fitted(members, node, defined)}
    if len(members) == 1 and not members.keys() & inner.keys():
        (wrapped,) = members.values()
        if _names_all_of(wrapped, inner):
            return _object(wrapped, inner, defined)
    for key, node in inner.items():
        if members.get(key) is None and (absent := _if_absent(key, resolved(node, defined))) is not None:
            members[key] = absent
    return {key: _fitted(value, inner.get(key, {}), defined) for key, value in members.items()}


def _verdict(text: str, inner: Mapping[str, Node], defined: Mapping[str, Node]) -> Any:
    """The object whose only key that can't be missing has this word; the text itself if there is none."""
    needed = [key for key, node in inner.items() if _if_absent(key, resolved(node, defined)) is None]
    if len(needed) != 1 or (word := _word_in(known := _words(inner[needed[0]], defined), text)) not in known:
        return text
    return _object({needed[0]: word}, inner, defined)


def _names_all_of(item: object, inner: Mapping[str, Node]) -> bool:
    return is_mapping(item) and inner.keys() <= _with_known_keys(item, inner).keys()


def _with_known_keys(members: Mapping[str, Any], inner: Mapping[str, Node]) -> dict[str, Any]:
    """The members with the schema's spelling of their keys; unchanged if two of them would have the same key."""
    known = {_plain(key): key for key in inner}
    for key in (key for key, node in inner.items() if node.get("type") == "array"):
        known.setdefault(_plain(key)[:-1] if key.endswith("s") else f"{_plain(key)}s", key)
    renamed: dict[str, Any] = {}
    for key, value in members.items():
        new = key if key in inner else known.get(_plain(key))
        if new is None and "1" in inner and (number := _NAMED_NUMBER.fullmatch(key)):
            new = number[1] if number[1] in inner else None
        if (new := new or key) in renamed:
            return dict(members)
        renamed[new] = value
    for key in inner.keys() - renamed.keys():
        same = [name for name in renamed if name not in inner and _plain(name) in _same_names(key)]
        if len(same) == 1 and inner.keys().isdisjoint(_same_names(key)):
            renamed[key] = renamed.pop(same[0])
    return renamed


def _if_absent(key: str, node: Node) -> Any:
    """The value of a key that is missing or null, if it says nothing about the verdict; None if it must be there."""
    if key == "reason" and node.get("type") == "string":
        return ""
    return [] if node.get("type") == "array" and node.get("items", {}).get("type") == "integer" else None


def _list(data: Any, item: Node, defined: Mapping[str, Node]) -> Any:
    kind = resolved(item, defined).get("type")
    if kind == "integer":
        listed: list[Any] = data if is_array(data) else [data]
        if isinstance(data, str):
            listed = [] if _NO_NUMBER.fullmatch(data) else _BETWEEN_NUMBERS.split(data)
        return list(map(_number, listed)) if isinstance(data, list | int | str) else data
    if is_array(data):
        items = data
    elif is_mapping(data):
        if list(map(named_number, data)) != list(range(1, len(data) + 1)):
            return data
        items = list(data.values())
    else:
        return data
    return [_text(each) if kind == "string" else _fitted(each, item, defined) for each in items]


def _number(value: Any) -> Any:
    """The number in a text with one number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    number = named_number(value) if isinstance(value, str) else None
    return value if number is None else number


def named_number(text: str) -> int | None:
    """The number in a text that is a number with at most one word before it; None for any other text."""
    number = _NAMED_NUMBER.fullmatch(text)
    return int(number[1]) if number else None


def _text(value: Any) -> Any:
    """The text of an object with one text."""
    if is_mapping(value):
        found = [text for text in value.values() if isinstance(text, str)]
        return found[0] if len(found) == 1 else value
    return value


def _words(node: Node, defined: Mapping[str, Node]) -> list[str]:
    """The enum words that a text at this node may be."""
    node = resolved(node, defined)
    inner = (word for option in node.get("anyOf", ()) for word in _words(option, defined))
    return [*(word for word in node.get("enum", ()) if isinstance(word, str)), *inner]


def _word_in(known: Sequence[str], text: str) -> str:
    """The only word that a text spells; the text itself if there is none, or several."""
    signed = _SIGNED.fullmatch(text)
    if signed and _plain(signed["word"]) in (_GOOD if signed["check"] else _BAD):
        text = signed["word"]
    for bare in (str.strip, _without_edges, _plain):
        matches = [word for word in known if bare(word).casefold() == bare(text).casefold()]
        if len(matches) == 1:
            return matches[0]
    return text


def _without_edges(text: str) -> str:
    return text.rstrip(f"{_EDGES}!").lstrip(_EDGES)  # `!yes` may mean no


def _plain(text: str) -> str:
    return _GAPS.sub(" ", _without_edges(text)).casefold()
