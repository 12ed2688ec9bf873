"""Pipeline: a score in up to four steps, each a function or a prompt: preprocess, analyze, score, reason.

    pipeline = what the score step gives          range [0, scale]; a value outside is an error, never clamped

Higher is better, unless lower_is_better is set. Undefined when a step declares the sample not scorable. One judge call
for each step that is a prompt. Source: @mastra/evals (createScorer); here the score step's value must be in range, and
the order of the steps is fixed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from evalstone._core.prompts import Prompt
from evalstone.errors import OutcomeError
from evalstone.questions.base import Ask
from evalstone.questions.custom import AnswerAs, GiveNumber, Number
from evalstone.scorers.custom.base import PLACEHOLDERS, CustomScorer, check_needs
from evalstone.scorers.custom.steps import (
    NotScorable,
    PromptStep,
    SoFar,
    Step,
    StepResult,
    Steps,
    asked,
    result_of,
)
from evalstone.types import Sample, Score, Skipped


@dataclass(frozen=True, init=False)
class Pipeline(CustomScorer):
    """A score in up to four steps, each of which sees the results of those before it.

    preprocess, analyze, score, reason: each a function of a `SoFar`, `def` or `async def`, or a `PromptStep`. The score
    step is needed, and gives a number in [0, scale] or a Score. Any step may return or raise `not_scorable(reason)`.
    needs: the sample fields without which there is no score, beside those that the templates have placeholders for.
    Raises ConfigError without a score step, and PromptError for a placeholder that nothing fills.
    """

    steps: Steps
    fields: tuple[str, ...]

    def __init__(
        self,
        preprocess: Step | None = None,
        analyze: Step | None = None,
        score: Step | None = None,
        reason: Step | None = None,
        *,
        name: str = "",
        needs: Sequence[str] = (),
        scale: float = 1.0,
        lower_is_better: bool = False,
        version: int = 1,
        context: Sequence[str] | None = None,
        context_from: Callable[[Sample], Sequence[str]] | None = None,
    ) -> None:
        given = {
            "steps": Steps(preprocess, analyze, score, reason),
            "name": name,
            "scale": scale,
            "explain": False,
            "lower_is_better": lower_is_better,
            "version": version,
            "context": context,
            "context_from": context_from,
        }
        for field, value in given.items():
            object.__setattr__(self, field, value)
        super().__post_init__()
        names = [name for prompt in self.prompts.values() for name in prompt.placeholders if name in PLACEHOLDERS]
        object.__setattr__(self, "fields", check_needs([*([needs] if isinstance(needs, str) else needs), *names]))
        kinds = [GiveNumber if name == "score" else AnswerAs for name in self.prompts]
        object.__setattr__(self, "asks", tuple(dict.fromkeys(kinds)))

    @functools.cached_property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts of the steps that have one, by the step's name."""
        made = {name: self.steps.prompt(name, self.scale) for name, _ in self.steps.taken()}
        return {name: prompt for name, prompt in made.items() if prompt is not None}

    @property
    def needs(self) -> tuple[str, ...]:
        return self.fields

    def meaning(self) -> str:
        step = self.steps.score
        return step.template if isinstance(step, PromptStep) else getattr(step, "__name__", "pipeline").strip("<>")

    def changed(self) -> Iterator[tuple[str, Any]]:
        for name, value in super().changed():
            if name not in ("steps", "fields"):
                yield name, value
        yield from ((name, step) for name, step in self.steps.taken() if not isinstance(step, PromptStep))

    def _prompts(self) -> list[Any]:
        return list(self.prompts.values())

    def values(self, sample: Sample) -> dict[str, Any]:
        found = super().values(sample)
        context = found.get("context")
        whole = sample if context is None or context == sample.context else replace(sample, context=context)
        return {**found, "sample": whole}

    async def score(self, ask: Ask, *, sample: Sample, **given: Any) -> Score | Skipped:
        so_far = SoFar(sample)
        done: list[StepResult] = []
        for name, step in self.steps.taken():
            try:
                result = await self._take(ask, name, step, given, so_far)
            except NotScorable as told:
                return _skipped(name, told)
            if isinstance(result.answer, NotScorable | Skipped):
                return _skipped(name, result.answer)
            done.append(result)
            if name != "reason":
                so_far = replace(so_far, **{name: self._value(result.answer) if name == "score" else result.answer})
        return self._outcome({result.step: result.answer for result in done}, so_far.score, tuple(done))

    async def _take(self, ask: Ask, name: str, step: Step, given: Mapping[str, Any], so_far: SoFar) -> StepResult:
        if isinstance(step, PromptStep):
            return await asked(ask, name, step, self.prompts[name], given, so_far, self.scale)
        return StepResult(name, await result_of(step, so_far))

    def _value(self, answer: Any) -> float:
        """The number that a score step came to. Raises OutcomeError for anything but a number in [0, scale]."""
        if isinstance(answer, Number):
            return answer.score
        if isinstance(answer, Score) and answer.scale != self.scale:
            raise OutcomeError(
                f"{self.name}: the score step's scale is {answer.scale:g}, the pipeline's {self.scale:g}"
            )
        return Score(cast(Any, answer.value if isinstance(answer, Score) else answer), self.scale).value

    def _outcome(self, answers: Mapping[str, Any], value: float, done: tuple[StepResult, ...]) -> Score:
        scored = answers["score"]
        reason = answers.get("reason", scored.reason if isinstance(scored, Number | Score) else "")
        if not isinstance(reason, str):
            raise OutcomeError(f"{self.name}: the reason step must give text, not {type(reason).__name__}")
        return Score(value, self.scale, reason.strip(), done)


def _skipped(step: str, told: NotScorable | Skipped) -> Skipped:
    reason = told.reason if isinstance(told, Skipped) else str(told)
    return Skipped(f"not scorable, says the step {step}" + (f": {reason}" if reason else ""))
