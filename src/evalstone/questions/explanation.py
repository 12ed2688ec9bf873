"""A judge-written explanation of a score that was already computed; asked only when a scorer has explain=True."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from evalstone._core.parsing import member, object_schema, text_schema, validated
from evalstone._core.prompts import Prompt
from evalstone.errors import ReplyError
from evalstone.questions.base import Question
from evalstone.questions.reply import LONGEST_TEXT

EXPLAIN = Prompt(
    instructions="""\
You explain a score to the people who built the judged system, in two or three plain sentences. The score is final: do
not compute it again and do not doubt it. Name what in the evidence changed it most, and what would improve it.""",
    template="{{measure}}\n\n{{evidence}}\n\nExplain this score.",
)


class Explain(Question[str]):
    """Two or three sentences on why a score is what it is."""

    kind = "explain"
    measure: str
    evidence: str
    prompt: Prompt = EXPLAIN

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return object_schema({"explanation": text_schema(LONGEST_TEXT)})

    def from_json(self, data: Any) -> str:
        text = validated(str, member(data, "explanation"), "explanation").strip()
        if not text:
            raise ReplyError("the explanation is empty")
        return text

    def example(self) -> Any:
        return {"explanation": " ".join(super().example().values()) + " and what would raise it. " * 3}
