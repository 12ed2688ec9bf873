"""An answer as data, as records keep it, read back as the type that its question has."""

from __future__ import annotations

import functools
import typing
from typing import Any, TypeVar, cast

from evalstone._core.parsing import validated
from evalstone.errors import ReplyError
from evalstone.questions.base import Question
from evalstone.questions.custom import AnswerAs

A = TypeVar("A")


def answer_from(question: Question[A], data: Any) -> A:
    """The answer that `plain` made this data of. Raises ReplyError when it is not one."""
    if isinstance(question, AnswerAs):
        return cast(A, _formed(question, data))
    return cast(A, validated(answer_type(type(question)), data, "answer"))


def _formed(question: AnswerAs, data: Any) -> Any:
    """An answer of the caller's own type: an object as it is, anything else under the name that a reply gives it."""
    try:
        return question.form.read({"reason": "", "answer": data})
    except ReplyError:
        return question.form.read(data)


@functools.cache
def answer_type(kind: type[Question[Any]]) -> Any:
    """The type of a kind of question's answers: what stands in the brackets of `Question[…]`, however far up."""
    found: dict[Any, Any] = {}
    for owner in reversed(kind.__mro__):
        for base in getattr(owner, "__orig_bases__", ()):
            origin, given = typing.get_origin(base), typing.get_args(base)
            if isinstance(origin, type) and issubclass(origin, Question):
                found[owner] = given[0]
    # From the root down, the last one that names a type and no variable is the one that holds.
    named = [given for given in found.values() if not isinstance(given, TypeVar)]
    if not named:
        raise ReplyError(f"{kind.__name__} does not say what type its answers have, so a record of one cannot be read")
    return named[-1]
