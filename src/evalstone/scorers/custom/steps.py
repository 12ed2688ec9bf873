"""The steps of a pipeline: functions of what is there so far, and prompts with the type of their answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from evalstone._core.prompts import Prompt
from evalstone.errors import ConfigError, EvalstoneError
from evalstone.questions.base import Ask
from evalstone.questions.custom import AnswerAs, AnswerForm, GiveNumber, OwnQuestion, filled, number_form
from evalstone.scorers.custom.base import PLACEHOLDERS, as_material, inputs, own_prompt
from evalstone.types import Sample

STEPS = ("preprocess", "analyze", "score", "reason")


class NotScorable(EvalstoneError):
    """A step found that the sample cannot be scored; the outcome is Skipped. Return it or raise it."""


def not_scorable(reason: str = "") -> NotScorable:
    """What a step returns or raises when the sample cannot be scored: `return not_scorable("nothing was refunded")`."""
    return NotScorable(reason)


@dataclass(frozen=True)
class SoFar:
    """What a step is given: the sample, with its passages found, and the results of the steps before it."""

    sample: Sample
    preprocess: Any = None
    analyze: Any = None
    score: Any = None


@dataclass(frozen=True)
class StepResult:
    """What one step came to. prompt: what the judge was told and asked; None for a function."""

    step: str
    answer: Any
    prompt: str | None = None


@dataclass(frozen=True)
class PromptStep:
    """A step that asks the judge.

    template: its placeholders are filled with sample fields and results of earlier steps: {{output}}, {{preprocess}}.
    answer: the type of the answer: a dataclass, a TypedDict, a pydantic model, a Literal, str, bool, a number, a list
    of these. The score step has a number from 0 to the scale in any case. instructions: what the judge is told first.
    Raises ConfigError for a type whose values have no settled shape.
    """

    template: str
    answer: Any = str
    instructions: str = ""

    def __post_init__(self) -> None:
        AnswerForm(self.answer)


Step: TypeAlias = Callable[[SoFar], Any] | PromptStep


@dataclass(frozen=True)
class Steps:
    """The steps of a pipeline that there are, in their order. Raises ConfigError for one that is no step, or missing."""

    preprocess: Step | None = None
    analyze: Step | None = None
    score: Step | None = None
    reason: Step | None = None

    def __post_init__(self) -> None:
        if self.score is None:
            raise ConfigError("a pipeline needs a score step: a function, or a PromptStep")
        for name, step in self.taken():
            if not isinstance(step, PromptStep) and not callable(cast(object, step)):
                raise ConfigError(f"the step {name} must be a function or a PromptStep, not {type(step).__name__}")
        for name, kinds in (("score", (str, int, float)), ("reason", (str,))):
            step = getattr(self, name)
            if isinstance(step, PromptStep) and step.answer not in kinds:
                wanted = "a number" if name == "score" else "text"
                raise ConfigError(f"the answer of the step {name} is {wanted}; leave out answer={step.answer!r}")

    def taken(self) -> list[tuple[str, Step]]:
        """The names and steps that there are."""
        return [(name, step) for name in STEPS if (step := getattr(self, name)) is not None]

    def prompt(self, name: str, scale: float) -> Prompt | None:
        """The prompt of a step; None when it is a function. Raises PromptError for a placeholder that nothing fills."""
        step = getattr(self, name)
        if not isinstance(step, PromptStep):
            return None
        before = [earlier for earlier, _ in self.taken() if STEPS.index(earlier) < STEPS.index(name)]
        form = number_form(scale) if name == "score" else AnswerForm(step.answer).description()
        told = "\n\n".join(part for part in (step.instructions.strip(), form) if part)
        return own_prompt(step.template, told, placeholders=(*PLACEHOLDERS, *before))


async def result_of(step: Callable[[SoFar], Any], so_far: SoFar) -> Any:
    """What a function makes of what is there so far."""
    made = step(so_far)
    return await made if inspect.isawaitable(made) else made


async def asked(
    ask: Ask, name: str, step: PromptStep, prompt: Prompt, values: Mapping[str, Any], so_far: SoFar, scale: float
) -> StepResult:
    """What the judge answers to a prompt step."""
    earlier = {before: as_material(getattr(so_far, before)) for before in STEPS[: STEPS.index(name)]}
    given = filled(prompt, {**inputs(values), **earlier})
    question: OwnQuestion[Any]
    question = GiveNumber(given, prompt, scale) if name == "score" else AnswerAs(given, prompt, AnswerForm(step.answer))
    answer: Any = await ask(question)
    return StepResult(name, answer, "\n\n".join(part for part in question.render() if part))
