"""Questions whose prompt is the caller's own: a choice among words, an answer of a given type, a number."""

from __future__ import annotations

import json
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, cast

from evalstone._core.parsing import TEXT, choice_schema, member, object_schema
from evalstone._core.prompts import Material, Prompt
from evalstone.errors import ConfigError, ReplyError
from evalstone.questions.answer_form import AnswerForm
from evalstone.questions.base import Question
from evalstone.questions.verdict import reason_of

A = TypeVar("A")


@dataclass(frozen=True)
class OwnQuestion(Question[A], ABC):
    """A question with a template of the caller's. given: the name of each of its holes, and what fills it."""

    given: tuple[tuple[str, Material], ...]
    prompt: Prompt

    def __post_init__(self) -> None:
        self.prompt.check(name for name, _ in self.given)

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def inputs(self) -> dict[str, Material]:
        return dict(self.given)


@dataclass(frozen=True)
class Chosen:
    """The word that the judge chose, and its reason."""

    choice: str
    reason: str = ""


def choice_form(choices: Mapping[str, str]) -> str:
    """What a judge is told of the words to choose from, each with its meaning where there is one, and of the reply."""
    listed = "\n".join(f'- "{word}": {meaning}' if meaning else f'- "{word}"' for word, meaning in choices.items())
    example = json.dumps({"reason": "…", "verdict": next(iter(choices))}, ensure_ascii=False)
    return f"""\
Answer with exactly one of these words:
{listed}

Reply with a JSON object, the reason first: {example}
- reason: what decided, in one or two sentences, naming the words that did.
- verdict: one of the words above, as it is written there."""


def distinct_words(choices: Sequence[str]) -> tuple[str, ...]:
    """The words to choose from, without white space around them.

    Raises ConfigError unless there are two or more, none blank, and no two the same but for capitals.
    """
    given = cast("Sequence[object]", choices)
    words = [word.strip() for word in given if isinstance(word, str) and word.strip()]
    if len(words) < len(given) or len({word.casefold() for word in words}) < max(2, len(words)):
        raise ConfigError(f"choices must be two or more different words, not {list(given)}")
    return tuple(words)


@dataclass(frozen=True)
class Choose(OwnQuestion[Chosen]):
    """Which of some words answers the caller's question? White space around a word is no part of it."""

    kind: ClassVar[str] = "choose"
    settings: ClassVar[tuple[str, ...]] = ("choices",)

    choices: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "choices", distinct_words(self.choices))

    def schema(self) -> Mapping[str, Any]:
        return object_schema({"reason": TEXT, "verdict": choice_schema(self.choices)})

    def interpret(self, data: Any) -> Chosen:
        given = member(data, "verdict")
        said = given.strip().casefold() if isinstance(given, str) else None
        for choice in self.choices:
            if choice.casefold() == said:
                return Chosen(choice, reason_of(data))
        told = " or ".join(self.choices)
        raise ReplyError(f"verdict: {told} was expected, not {json.dumps(given, ensure_ascii=False)[:60]}")

    def example(self) -> Any:
        return {"reason": "The second sentence of the answer says it in so many words.", "verdict": self.choices[0]}


@dataclass(frozen=True)
class AnswerAs(OwnQuestion[Any]):
    """What is the answer to the caller's question, as a value of the caller's type?"""

    kind: ClassVar[str] = "answer_as"
    settings: ClassVar[tuple[str, ...]] = ("form",)

    form: AnswerForm

    def schema(self) -> Mapping[str, Any]:
        return self.form.schema()

    def interpret(self, data: Any) -> Any:
        return self.form.read(data)

    def example(self) -> Any:
        return self.form.example(self.fingerprint[:8])  # as answers to different questions differ


@dataclass(frozen=True)
class Number:
    """A number that the judge gave, and its reason."""

    score: float
    reason: str = ""


def number_form(high: float) -> str:
    """What a judge is told of the number to give."""
    return f"""\
Reply with a JSON object, the reason first: {{"reason": "…", "score": {high / 2:g}}}
- reason: what decided, in one to three sentences, naming the words that did.
- score: a number from 0 to {high:g}."""


@dataclass(frozen=True)
class GiveNumber(OwnQuestion[Number]):
    """Which number from 0 to `high` answers the caller's question? Any other is a ReplyError, never clamped."""

    kind: ClassVar[str] = "give_number"
    settings: ClassVar[tuple[str, ...]] = ("high",)

    high: float

    def schema(self) -> Mapping[str, Any]:
        return object_schema({"reason": TEXT, "score": {"type": "number", "minimum": 0, "maximum": self.high}})

    def interpret(self, data: Any) -> Number:
        given = member(data, "score")
        value = number(given)
        if value is None or not 0 <= value <= self.high:
            told = json.dumps(given, ensure_ascii=False)[:60]
            raise ReplyError(f"score: a number from 0 to {self.high:g} was expected, not {told}")
        return Number(value, reason_of(data))

    def example(self) -> Any:
        return {"reason": "Two of the three things that were asked for are there.", "score": self.high / 2}


def number(given: Any) -> float | None:
    """A number, also when it is written as text; None for anything else."""
    if isinstance(given, bool):
        return None
    if isinstance(given, str):
        try:
            return float(given)
        except ValueError:
            return None
    return given if isinstance(given, int | float) else None


def filled(prompt: Prompt, materials: Mapping[str, Material]) -> tuple[tuple[str, Material], ...]:
    """The materials that a prompt has holes for, in its order."""
    return tuple((name, _fixed(materials[name])) for name in prompt.holes)


def _fixed(material: Material) -> Material:
    if isinstance(material, str):
        return material
    texts: Sequence[str] = material
    return tuple(texts)
