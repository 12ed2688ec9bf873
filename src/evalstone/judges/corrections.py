"""Replies that can't be used: what is wrong with them, and how a model is asked again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from evalstone._core.parsing import REPEATS, repeated_end
from evalstone._core.prompts import clean
from evalstone.errors import ReplyError
from evalstone.judges.providers.base import ChatMessage, Completion, ModelSettings
from evalstone.questions.base import Question

A = TypeVar("A")

CUT_OFF = "the reply was cut off before its end"
SHORT_EXCERPT = 300
"""Characters of a reply that are shown to the model where more of it would do harm."""
FRESH_TEMPERATURE = 0.5
"""Of a correction that starts afresh, at least: at 0 a model would say the same again."""
SEEDS_APART = 1_000_003
"""Between the seeds of two corrections; those of repetitions are 1 apart."""
LOOKED_AT = 4000


def correction(
    opening: Sequence[ChatMessage],
    settings: ModelSettings,
    question: Question[Any],
    reply: str,
    error: str,
    number: int,
) -> tuple[Sequence[ChatMessage], ModelSettings]:
    """The messages and settings that ask again after a reply that can't be used. number: of the correction, from 1.

    The first one shows the model its reply and what is wrong with it. Later ones start afresh, with a hint and without
    the replies so far, which a model would go on to copy: with another seed, and a temperature of 0.5 at least.
    """
    expected = (
        "the JSON object that was asked for, complete" if question.json_schema is not None else "the answer asked for"
    )
    shorter = " Write shorter: each thing once, in one short sentence at most." if error.startswith(CUT_OFF) else ""
    # What a reply repeats is not repeated here: a model would take the words of the error for some of the material.
    problem, repeats, _ = error.partition(REPEATS)
    if number == 1:
        request = (
            f"That reply cannot be used: {problem}{repeats}. Reply again with {expected}, and nothing else.{shorter}"
        )
        shown = [ChatMessage("assistant", clean(_excerpt(reply, error))), ChatMessage("user", clean(request))]
        return [*opening, *shown], settings
    *before, asked = opening
    hint = f"An earlier reply could not be used: {problem}{repeats}. Reply with {expected}, and nothing else.{shorter}"
    afresh = replace(
        settings,
        seed=None if settings.seed is None else settings.seed + SEEDS_APART * (number - 1),
        temperature=None if settings.temperature is None else max(settings.temperature, FRESH_TEMPERATURE),
    )
    return [*before, replace(asked, content=f"{asked.content}\n\n{clean(hint)}")], afresh


def drawn_afresh(settings: ModelSettings) -> dict[str, Any]:
    """What an answer says of a correction that started afresh: with which settings it was drawn."""
    return {name: value for name in ("temperature", "seed") if (value := getattr(settings, name)) is not None}


def _excerpt(reply: str, error: str) -> str:
    """As much of a reply as helps to mend it: little of one that repeats itself or was cut off."""
    if len(reply) > SHORT_EXCERPT and (error.startswith(CUT_OFF) or REPEATS in error):
        shown = reply[:SHORT_EXCERPT]
        # Up to the end of an item: a model would take half of one for a whole.
        whole = _WHOLE_ITEMS.match(shown)
        return f"{whole[0].rstrip() if whole and 2 * len(whole[0]) > SHORT_EXCERPT else shown}\n[…]"
    return reply if len(reply) <= 4000 else f"{reply[:2000]}\n[…]\n{reply[-2000:]}"


def read_completion(question: Question[A], completion: Completion, settings: ModelSettings) -> A:
    """The answer in a completion. Raises ReplyError, also for a reply that was cut off, and JudgeDeclined."""
    if completion.complete:
        try:
            return question.parse_with_probabilities(completion.text, completion.alternatives)
        except ReplyError as error:
            if not (repeated := repetition(completion.text)):
                raise
            raise ReplyError(f"{error}; {REPEATS} ({repeated})", reply=error.reply) from None
    repeated = repetition(completion.text)
    more = f"; {REPEATS} ({repeated})" if repeated else ""
    if settings.max_tokens is not None:
        advice = "" if repeated else "; raise it for longer replies"
        raise ReplyError(f"{CUT_OFF}, at the limit of {settings.max_tokens:,} tokens (max_tokens{advice}){more}")
    used = f" after {completion.usage.output:,} tokens" if completion.usage.output else ""
    raise ReplyError(f"{CUT_OFF},{used} at a limit of the endpoint (set max_tokens){more}")


_WHOLE_ITEMS = re.compile(r""".*(?:["}\]],|\n)""", re.DOTALL)
_QUOTES, _CLOSING = '" ', " \t\r\n\"'`]}.,"
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[^\n"]+')


def repetition(reply: str) -> str:
    """What a reply repeats again and again, in words; empty for one that doesn't.

    Its last 100 characters or more are one text of at most 200 characters, eight times or more; or one sentence or
    item, whatever its number, takes up half of the reply, six times or more.
    """
    text = reply[-LOOKED_AT:]
    for end in (text, text.rstrip(_CLOSING)):
        if unit := repeated_end(end):
            return f"{unit.strip()[:60]!r} again and again" if unit.strip() else "white space without end"
    pieces: dict[str, list[str]] = {}
    for piece in _PIECE.findall(text):
        pieces.setdefault(re.sub(r"\d+", "", piece).strip(), []).append(piece)
    for bare, equal in pieces.items():
        if len(equal) >= 6 and len(bare) >= 15 and 2 * len(equal) * len(bare) >= len(text):
            return f"{equal[0].strip(_QUOTES)[:60]!r} {len(equal)} times"
    return ""
