"""Corrections: how a model is asked again after a malformed, truncated or repetitive reply."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from evalstone._core.parsing import REPEATS, repeated_end
from evalstone._core.prompts import clean
from evalstone._core.reasoning import answer_start
from evalstone.errors import JudgeError, ReplyError
from evalstone.models.provider import ChatMessage, Completion, RequestSettings
from evalstone.questions.base import Question
from evalstone.questions.ungrounded import UngroundedItems

A = TypeVar("A")

CUT_OFF = "the reply was cut off before its end"
SHORT_EXCERPT = 300
"""Characters of a truncated or repetitive reply that are shown to the model; more would invite repetition."""
FRESH_TEMPERATURE = 0.5
"""The minimum temperature of a correction that starts over: at 0, the model would give the same reply."""
SEED_STEP = 1_000_003
"""The difference between the seeds of two corrections. Seeds of repetitions differ by 1."""
MOST_STORED = 4000
"""Characters of a corrected reply that are stored."""
REPETITION_WINDOW = 4000
"""Characters at the end of a reply that are checked for repetition."""


def correction(
    opening: Sequence[ChatMessage],
    settings: RequestSettings,
    question: Question[Any],
    reply: str,
    error: str,
    number: int,
) -> tuple[Sequence[ChatMessage], RequestSettings]:
    """The messages and settings of a correction after an unusable reply. number: of the correction, from 1.

    The first correction shows the model its reply and the error. Later ones start over: they omit earlier replies,
    which the model might copy, and use a hint, another seed, and a temperature of at least 0.5.
    """
    expected = (
        "the JSON object that was asked for, complete" if question.json_schema is not None else "the answer asked for"
    )
    shorter = " Write shorter: each thing once, in one short sentence at most." if error.startswith(CUT_OFF) else ""
    # Leave out the repeated text: the model could take it for a part of the material.
    problem, repeats, _ = error.partition(REPEATS)
    if number == 1:
        request = (
            f"That reply cannot be used: {problem}{repeats}. Reply again with {expected}, and nothing else.{shorter}"
        )
        shown = [ChatMessage("assistant", clean(_excerpt(reply, error))), ChatMessage("user", clean(request))]
        return [*opening, *shown], settings
    *before, user = opening
    hint = f"An earlier reply could not be used: {problem}{repeats}. Reply with {expected}, and nothing else.{shorter}"
    restarted = replace(
        settings,
        seed=None if settings.seed is None else settings.seed + SEED_STEP * (number - 1),
        temperature=None if settings.temperature is None else max(settings.temperature, FRESH_TEMPERATURE),
    )
    return [*before, replace(user, content=f"{user.content}\n\n{clean(hint)}")], restarted


def sampling_settings(settings: RequestSettings) -> dict[str, Any]:
    """The temperature and seed of a correction that started over, for the answer's detail."""
    return {name: value for name in ("temperature", "seed") if (value := getattr(settings, name)) is not None}


def beginning(reply: str) -> str:
    """A corrected reply as it is stored."""
    return reply if len(reply) <= MOST_STORED else f"{reply[:MOST_STORED]}\n[…]"


def _excerpt(reply: str, error: str) -> str:
    """The part of a reply that helps to correct it, without reasoning: only the start if it repeats itself or was cut
    off."""
    reply = reply[answer_start(reply) :]
    if len(reply) > SHORT_EXCERPT and (error.startswith(CUT_OFF) or REPEATS in error):
        shown = reply[:SHORT_EXCERPT]
        # End at a complete item: the model could take half an item for a whole one.
        whole = _WHOLE_ITEMS.match(shown)
        return f"{whole[0].rstrip() if whole and 2 * len(whole[0]) > SHORT_EXCERPT else shown}\n[…]"
    return reply if len(reply) <= 4000 else f"{reply[:2000]}\n[…]\n{reply[-2000:]}"


def read_completion(
    question: Question[A], completion: Completion, settings: RequestSettings, drop: bool
) -> tuple[A, Mapping[str, Any] | None]:
    """The answer in a completion, and its detail. Raises ReplyError, also for a reply that was cut off, and
    JudgeDeclined.

    drop: whether a list may lose a few ungrounded items, because a correction has named such items, or none follows.
    """
    if completion.complete:
        try:
            if drop and not repetition(completion.text):
                return question.parse_grounded(completion.text, completion.alternatives)
            return question.parse_with_probabilities(completion.text, completion.alternatives), None
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


def names_items(question: Question[Any], reply: str) -> bool:
    """Whether the correction of a reply names list items that are not from the judged text."""
    try:
        question.parse(reply)
    except UngroundedItems:
        return not repetition(reply)
    except JudgeError:
        return False
    return False


_WHOLE_ITEMS = re.compile(r""".*(?:["}\]],|\n)""", re.DOTALL)
_QUOTES, _CLOSING = '" ', " \t\r\n\"'`]}.,"
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[^\n"]+')


def repetition(reply: str) -> str:
    """What a reply repeats over and over, in words; empty if it doesn't.

    Either it ends in at least eight copies of a text of up to 200 characters, 100 characters or more in total; or one
    sentence or item, ignoring digits, occurs at least six times and makes up half of the reply.
    """
    text = reply[-REPETITION_WINDOW:]
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
