"""The reasoning that a model writes in front of its answer, in one text with it.

Servers without a parser for it send it between tags, such as <think> and </think>. If the chat template opens the
block, only the closing tag is sent. Models in the harmony format write channels: `analysis`, `commentary`, and the
answer in `final`.

In a judge's reply, whatever stands before the last closing tag is reasoning, unless JSON comes first: what follows JSON
is about it, and may quote a tag from the judged text. In an answer that is scored, only a block at its very start is
reasoning, because the answer itself may be about such tags.
"""

from __future__ import annotations

import bisect
import contextlib
import json
import re
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from evalstone._core import loose_json
from evalstone.errors import ReplyError

_NAMES = r"(?i:(?:seed:)?(?:ant)?think(?:ing)?|thoughts?|reasoning)"
_OPENING = re.compile(
    rf"<(?:{_NAMES})>|\[THINK\]|◁think▷|<\|START_THINKING\|>|<\|inner_prefix\|>|<\|channel>thought\b"
    r"|<\|begin_of_thought\|>|<\|channel\|>\s*(?:analysis|commentary)\b"
)
_CLOSING = re.compile(
    rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|inner_suffix\|>|<channel\|>|<\|end_of_thought\|>"
    r"|<\|channel\|>\s*final\b[^<]{0,80}(?:<\|constrain\|>[^<]{0,80})?<\|message\|>"
)
_OPENING_LINE = re.compile(rf"^[\ufeff \t]*(?:{_OPENING.pattern})", re.MULTILINE)
_CLOSING_LINE = re.compile(rf"^[ \t]*(?:{_CLOSING.pattern})[ \t]*\r?$", re.MULTILINE)
_UNMARKED = re.compile(
    r"\s*(?:analysis(?=[^\s:,.]).*?assistantfinal(?:json\b)?"
    r"|Here(?: i|')s my thought process:.*?Here(?: i|')s my response:)",
    re.DOTALL,
)
"""Channels of a server that leaves out the special tokens between them, "analysisI should … assistantfinalYes", and the
words of Granite."""
_MARK = re.compile(
    r"<\|(?:start\|>\s*assistant|return\|>|end\|>|(?:START|END)_(?:RESPONSE|TEXT)\|>|(?:begin|end)_of_(?:box|solution)\|>)"
)
_JSON_START = re.compile(
    r"(?:[\ufeff\s]|`{3,}\w*+|<(?:answer|output|response)>|<\|(?:START_RESPONSE|begin_of_(?:box|solution))\|>)*(?:\{|\[\s*+[{\"'“])"
)
"""JSON, with at most a code fence or other marks before it."""
_OPENED = re.compile(rf"<(?:{_NAMES})\b")
"""An opening tag, also one with attributes: what stands before its closing tag is a part of a document."""
_BLANK = re.compile(r"(?:[\ufeff\s]|<\|start\|>assistant)*")
_FENCE = re.compile(r"^[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_DECODER = json.JSONDecoder(strict=False)
_MOST_OBJECTS, _MOST_LOOSE = 1000, 50


class Split(NamedTuple):
    """An answer, and the reasoning in front of it; "" if there is none."""

    reasoning: str
    answer: str


def without_reasoning(reply: str) -> str:
    """A judge's reply without the reasoning in front of its answer.

    Raises:
        ReplyError: The reply ends in its reasoning, or has nothing after it.
    """
    if not _may_have_tags(reply):
        return reply
    objects = _objects(reply)
    start = _answer_start(reply, objects)
    body = reply[start:]
    if any(not _inside(start + opening.start(), objects) for opening in _OPENING_LINE.finditer(body)):
        raise ReplyError("the reply ends in the middle of its reasoning", reply=reply)
    if not start:
        return reply
    body = _MARK.sub("", body)
    if not body.strip():
        raise ReplyError("the reply has reasoning, but no answer after it", reply=reply)
    return body


def answer_start(reply: str) -> int:
    """The place of the answer in a judge's reply: after the first closing tag with JSON right after it, or else after
    the last one that isn't inside a JSON object; 0 without one, or if the reply begins with JSON."""
    return _answer_start(reply, _objects(reply)) if _may_have_tags(reply) else 0


def beside_reasoning(reply: str, *, inline: bool = False) -> list[str]:
    """The texts in front of a judge's answer that no opening tag marks as reasoning. They may also be an answer that
    quotes a closing tag. inline: only those before a tag in the middle of a line, where models rarely end their
    reasoning."""
    texts = list[str]()
    place, start = 0, answer_start(reply)
    for closing in _CLOSING.finditer(reply, 0, start):
        text = reply[place : closing.start()]
        opening = _OPENING.search(text)
        if not inline or (not opening and text.rpartition("\n")[2].strip()):
            texts.append(text[: opening.start()] if opening else text)
        place = closing.end()
    return texts


def split_reasoning(answer: str) -> Split:
    """Split an answer that is to be scored.

    Its reasoning is the blocks at its start, the last one up to the end of the text if it isn't closed, or whatever
    stands before a closing tag that is a line of its own and has no opening tag. A closing tag in a code block, in
    either of them, is quoted.
    """
    if not _may_have_tags(answer):
        return Split("", answer)
    start, fences = 0, [fence.start() for fence in _FENCE.finditer(answer)]
    while opening := _OPENING.match(answer, _next(answer, start)):
        closings = _CLOSING.finditer(answer, opening.end())
        closing = next(closings, None)
        if closing and _in_code(closing, opening.end(), fences):
            closing = next((it for it in closings if not _in_code(it, opening.end(), fences)), closing)
        start = closing.end() if closing else len(answer)
    if not start:
        lines = (line for line in _CLOSING_LINE.finditer(answer) if not _in_code(line, 0, fences))
        line = _UNMARKED.match(answer) or next(lines, None)
        if line is None or _OPENING.search(answer, 0, line.end()) or _OPENED.search(answer, 0, line.end()):
            return Split("", answer)
        start = line.end()
    reasoning = _CLOSING.sub("", _OPENING.sub("", answer[:start])).strip()
    return Split(reasoning, _MARK.sub("", answer[start:]).strip())


def _in_code(tag: re.Match[str], start: int, fences: Sequence[int]) -> bool:
    """Whether a tag is in a code block that begins after a place and ends after the tag."""
    before, after = bisect.bisect_left(fences, start), bisect.bisect_left(fences, tag.start())
    return (after - before) % 2 == 1 and (len(fences) - after) % 2 == 1


def begins_with_reasoning(answer: str) -> bool:
    """Whether an answer has reasoning in front, even a block that is empty."""
    return split_reasoning(answer).answer is not answer


def _may_have_tags(text: str) -> bool:
    return (
        "<" in text
        or "[/THINK]" in text
        or "[THINK]" in text
        or "◁" in text
        or "assistantfinal" in text
        or " my response:" in text
    )


def _next(text: str, place: int) -> int:
    """The place of the next character that isn't white space, or of the token in front of a channel."""
    blank = _BLANK.match(text, place)
    return blank.end() if blank else place


def _answer_start(reply: str, objects: Sequence[tuple[int, int]]) -> int:
    if _JSON_START.match(reply):
        return 0
    ends = [closing.end() for closing in _CLOSING.finditer(reply)]
    if unmarked := _UNMARKED.match(reply):
        ends.append(unmarked.end())
    start = 0
    for end in sorted(ends):
        if not _inside(end - 1, objects):
            start = end
            if _JSON_START.match(reply, end):
                break
    return start


def _inside(place: int, objects: Sequence[tuple[int, int]]) -> bool:
    before = bisect.bisect_right(objects, place, key=itemgetter(0))
    return before > 0 and place < objects[before - 1][1]


def _objects(text: str) -> list[tuple[int, int]]:
    """The spans of the complete JSON objects in a text that has tags. Tags in them are part of their strings."""
    spans = list[tuple[int, int]]()
    if not (_CLOSING.search(text) or _OPENING.search(text)):
        return spans
    place = text.find("{")
    for number in range(_MOST_OBJECTS):
        if place < 0:
            break
        end = _object_end(text, place, loosely=number < _MOST_LOOSE)
        if end is not None:
            spans.append((place, end))
        place = text.find("{", end or place + 1)
    return spans


def _object_end(text: str, start: int, *, loosely: bool) -> int | None:
    """The end of the JSON object that begins at a place; None if it isn't one. loosely: in any spelling of
    loose_json.py."""
    with contextlib.suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(text, start)[1]
    if loosely and loose_json.OPENING.match(text, start) and (spelled := loose_json.as_json(text, start)):
        with contextlib.suppress(ValueError, RecursionError):
            _DECODER.decode(spelled[0])
            return spelled[1]
    return None
