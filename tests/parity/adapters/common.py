"""What the adapters share: a case's sample, its options, and the recorded answers.

Only shapes and words are translated; every number comes out of the scorers. The recorded package compares some verdict
words exactly and others trimmed and in lower case; the same is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

from evalstone.questions.base import Question
from evalstone.scorers import Scorer
from evalstone.scorers.text import WHITE
from evalstone.types import Message, Sample, ToolCall

Case: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Said:
    """What the recorded judge says to one question of ours, try by try.

    about: the fields by which the question is told from others of its kind.
    """

    kind: type[Question[Any]]
    replies: Sequence[Any]
    about: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to(self, question: Question[Any]) -> bool:
        """Whether it was said to this question."""
        return type(question) is self.kind and all(getattr(question, name) == v for name, v in self.about.items())


Adapted: TypeAlias = tuple[Scorer, Sample, Sequence[Said]]
Adapter: TypeAlias = Callable[[Case], Adapted]


MASTRA: Final = "mastra"
OLDER = "mastra_0_13"
"""The definitions by which our scorers compute what the package does, and its older version where that differs."""


STATES: Mapping[str, Any] = {"result": "result", "call": "call", "output-error": "error", "partial-call": "partial"}


def texts_of(case: Case, side: str) -> list[str]:
    """The texts of the messages on one side of a case: those recorded one by one, or its only text."""
    messages: Sequence[str] | None = case.get(f"{side}_messages")
    text: str | None = case.get(side)
    return list(messages) if messages is not None else [] if text is None else [text]


def calls_of(case: Case) -> list[ToolCall]:
    """The tool calls of a case."""
    calls: Sequence[Mapping[str, Any]] = case.get("tool_calls") or ()
    return [
        ToolCall(
            id=call.get("id", ""),
            name=call["name"],
            arguments=call.get("args") or {},
            result=call.get("result"),
            state="error" if call.get("isError") else STATES[call["state"]],
        )
        for call in calls
    ]


def messages_of(case: Case, calls: Sequence[ToolCall]) -> tuple[Message, ...]:
    """The messages of a case as they were recorded. The tool calls are in the last one of the assistant."""
    asked = [Message(role="user", content=text) for text in texts_of(case, "input")]
    answered = [Message(role="assistant", content=text) for text in texts_of(case, "output")]
    if calls:
        last = answered.pop() if answered else Message(role="assistant")
        answered.append(replace(last, tool_calls=calls))
    return (*asked, *answered)


def sample_of(case: Case, **fields: Any) -> Sample:
    """The sample of a case, with its input and output as a reader of messages takes them; `fields` win."""
    given: dict[str, Any] = {
        "id": case["id"],
        "input": _last(texts_of(case, "input")),
        "output": _last(texts_of(case, "output")),
        "reference": case.get("ground_truth"),
        "messages": messages_of(case, calls_of(case)),
    }
    return Sample(**{**given, **fields})


def _last(texts: Sequence[str]) -> str | None:
    """The last text that is not blank, else the last one."""
    return next((text for text in reversed(texts) if text.strip()), texts[-1] if texts else None)


def output_of(case: Case) -> str:
    """The answer of a case; empty where it has none."""
    return case.get("output") or ""


def scale_of(case: Case) -> float:
    """The recorded scale. 0 counts as 1: a scale of 0 measures nothing, and ours refuses it when it is built.

    Where the recorded package kept the 0, `check_score` expects a score of ours, and 0 in the recording.
    """
    return float(case["options"].get("scale") or 1)


def context_options(case: Case) -> dict[str, Any]:
    """The passages as the scorer's own: a fixed list, or a function, which wins."""
    options = case["options"]
    for name in ("get_context_returns", "context_extractor_returns"):
        if name in options:
            return {"context_from": partial(_given, options[name])}
    return {"context": options["context"]} if "context" in options else {}


def _given(passages: Sequence[str], _: Sample) -> Sequence[str]:
    return passages


def folded(word: object) -> str:
    """A verdict word as the package compares it where it trims, as JavaScript does, and lowers."""
    return str(word).strip(WHITE).lower()


def as_recorded(word: object, other: str = "no") -> str:
    """A yes or no as it was recorded, in whatever spelling; any other word is what the package takes it for."""
    return str(word) if folded(word) in ("yes", "no") else other
