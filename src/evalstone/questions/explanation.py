"""A judge-written explanation of a score that was already computed; asked only when a scorer has explain=True."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalstone._core.parsing import TEXT, member, object_schema, validated
from evalstone._core.prompts import Prompt
from evalstone.errors import ReplyError
from evalstone.questions.base import Question

EXPLAIN = Prompt(
    instructions="""\
You explain a score to the people who built the judged system, in two or three plain sentences. The score is final: do
not compute or doubt it. Name what in the evidence moved it most, and what would raise it.

Reply with a JSON object: {"explanation": "…"}""",
    template="{{measure}}\n\n{{evidence}}\n\nExplain this score.",
)


@dataclass(frozen=True)
class Explain(Question[str]):
    """Two or three sentences on why a score is what it is."""

    kind = "explain"
    measure: str
    evidence: str
    prompt: Prompt = EXPLAIN

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return object_schema({"explanation": TEXT})

    def from_json(self, data: Any) -> str:
        text = validated(str, member(data, "explanation"), "explanation").strip()
        if not text:
            raise ReplyError("the explanation is empty")
        return text

    def example(self) -> Any:
        return {"explanation": " ".join(super().example().values()) + " and what would raise it. " * 3}
