"""An answer as data, as records keep it, read back as the type that its question has."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from evalstone._core.parsing import validated
from evalstone.errors import ReplyError
from evalstone.questions.base import Question, answer_type
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
        return question.form.from_json({"reason": "", "answer": data})
    except ReplyError:
        return question.form.from_json(data)
