from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias, cast

from evalstone._core import sync
from evalstone._core.declarations import check_settings
from evalstone._core.display import joined
from evalstone._core.prompts import Prompt
from evalstone._core.read_as import NOTHING, ReadAs
from evalstone.errors import ConfigError, EvalstoneError, OutcomeError, PromptError, invalid, unknown
from evalstone.judges.base import Judge, JudgeSpec
from evalstone.questions.base import Ask, QuestionSpec
from evalstone.questions.custom import AnswerAs, AnswerForm, GiveNumber, OwnQuestion, filled
from evalstone.questions.grade import Grade
from evalstone.scorers.base import JUDGE, is_absent
from evalstone.scorers.custom import PLACEHOLDERS, CustomScorer, as_material, inputs, is_field, template_prompt
from evalstone.scorers.needs import value_of
from evalstone.types import SAMPLE_FIELDS, Sample, Score, Skipped

STEPS = ("preprocess", "analyze", "score", "reason")


class NotScorable(EvalstoneError):
    """Returned or raised by a step that can't score the sample. The outcome is Skipped."""


def not_scorable(reason: str = "") -> NotScorable:
    """Return or raise this in a step that can't score the sample: `return not_scorable("nothing was refunded")`."""
    return NotScorable(reason)


@dataclass(frozen=True)
class SoFar:
    """The argument of a step: the sample with its passages, and the results of earlier steps."""

    sample: Sample
    preprocess: Any = None
    analyze: Any = None
    score: Any = None


@dataclass(frozen=True)
class StepResult:
    """The result of one step. prompt: the prompt for the judge; None for a function."""

    step: str
    answer: Any
    prompt: str | None = None


@dataclass(frozen=True)
class PromptStep:
    """A step that asks the judge.

    Attributes:
        template: A template. Its placeholders are filled with sample fields and the results of earlier steps:
            {{output}}, {{preprocess}}. It can be a function of a `SoFar`, `def` or `async def`, that returns a
            template. Text that the function inserts itself is not marked as data for the judge.
        answer: The type of the answer: a dataclass, a TypedDict, a pydantic model, a Literal, str, bool, a number, or a
            list of these; or a JSON schema, as a dictionary, for plain data. The answer of the score step is always a
            number from 0 to the scale.
        instructions: The beginning of the system message.
        judge: The judge of this step: a name, a table or a Judge. By default, the judge of the run.

    Raises:
        ConfigError: The template is neither text nor a function, the values of the type have no fixed shape, or the
            judge is unknown.
    """

    template: str | Callable[[SoFar], str | Awaitable[str]]
    answer: Any = str
    instructions: str = ""
    judge: Annotated[ReadAs[JudgeSpec | None, Judge | None], JUDGE] = NOTHING

    def __post_init__(self) -> None:
        check_settings(self, type(self).__name__)
        AnswerForm(self.answer)


Step: TypeAlias = Callable[[SoFar], Any] | PromptStep


class Pipeline(CustomScorer, init=False):
    """A score computed in up to four steps. Each step sees the results of earlier steps.

        pipeline = what the score step returns          range [0, scale]; a value outside is an error, never clipped

    Higher is better, unless lower_is_better is set. Undefined if a step returns or raises `not_scorable`. One judge
    call for each step that is a prompt. Source: @mastra/evals (createScorer); here the score must be in range, and the
    order of the steps is fixed.

    Args:
        preprocess: A function of a `SoFar`, `def` or `async def`, or a `PromptStep`. `analyze`, `score` and `reason`
            accept the same. The score step is required and returns a number in [0, scale], True (the scale), False (0)
            or a Score. Any step may return or raise `not_scorable(reason)`.
        required_fields: The sample fields that are required in addition to those in the templates.

    Raises:
        ConfigError: There is no score step, or a value is not a step.
        PromptError: A placeholder is unknown.
    """

    steps: tuple[tuple[str, Step], ...]
    fields: tuple[str, ...]

    def __init__(
        self,
        preprocess: Step | None = None,
        analyze: Step | None = None,
        score: Step | None = None,
        reason: Step | None = None,
        *,
        name: str = "",
        required_fields: Sequence[str] = (),
        scale: float = 1.0,
        lower_is_better: bool = False,
        version: int = 1,
        context: Sequence[str] | None = None,
        context_from: Callable[[Sample], Sequence[str]] | None = None,
    ) -> None:
        steps = zip(STEPS, (preprocess, analyze, score, reason), strict=True)
        vars(self).update(steps=tuple((step_name, step) for step_name, step in steps if step is not None))
        vars(self).update(name=name, scale=scale, explain=False, lower_is_better=lower_is_better, version=version)
        vars(self).update(context=context, context_from=context_from)
        vars(self).update(fields=())  # of the prompts, which need a valid name
        _check_steps(self.steps)
        super().__post_init__()
        placeholders = [p for prompt in self.prompts() for p in prompt.placeholders if is_field(p)]
        named = [required_fields] if isinstance(required_fields, str) else required_fields
        for field in named:
            if field not in SAMPLE_FIELDS:
                raise ConfigError(unknown("sample field", field, SAMPLE_FIELDS))
        object.__setattr__(self, "fields", tuple(dict.fromkeys([*named, *placeholders])))
        object.__setattr__(self, "required_fields", self.fields)
        kinds = [GiveNumber if step == "score" else AnswerAs for step in self.step_prompts]
        object.__setattr__(self, "questions", tuple(dict.fromkeys(kinds)))

    @functools.cached_property
    def step_prompts(self) -> Mapping[str, Prompt]:
        """The prompts by step name. For a template that is a function, only the instructions."""
        prompts: dict[str, Prompt] = {}
        for name, step in self.steps:
            if isinstance(step, PromptStep):
                instructions = step.instructions.strip()
                prompts[name] = Prompt(instructions, "")
                if isinstance(step.template, str):
                    prompts[name] = template_prompt(step.template, instructions, placeholders=self._known(name))
        return prompts

    def _known(self, name: str) -> tuple[str, ...]:
        """The placeholders that a step's template can have."""
        before = [step for step, _ in self.steps if STEPS.index(step) < STEPS.index(name)]
        return (*PLACEHOLDERS, *before)

    @property
    def judges(self) -> tuple[Judge, ...]:
        return tuple(step.judge for _, step in self.steps if isinstance(step, PromptStep) and step.judge is not None)

    @property
    def asks_shared_judge(self) -> bool:
        return any(isinstance(step, PromptStep) and step.judge is None for _, step in self.steps)

    def questions_to(self, judge: Judge | None) -> Sequence[QuestionSpec]:
        return [
            self._question(name, step, self.step_prompts[name], dict.fromkeys(self.step_prompts[name].placeholders, ""))
            for name, step in self.steps
            if isinstance(step, PromptStep) and step.judge == judge
        ]

    def description(self) -> str:
        step = dict(self.steps)["score"]
        source = step.template if isinstance(step, PromptStep) else step
        return source if isinstance(source, str) else getattr(source, "__name__", "pipeline").strip("<>")

    def changed_parameters(self) -> Iterator[tuple[str, Any]]:
        for name, value in super().changed_parameters():
            if name not in ("steps", "fields"):
                yield name, value
        for name, step in self.steps:
            function = step.template if isinstance(step, PromptStep) else step
            if not isinstance(function, str):
                yield name, function
            if isinstance(step, PromptStep) and name != "score" and step.answer is not str:
                yield f"{name}_answer", AnswerForm(step.answer).json_schema

    def prompts(self) -> tuple[Prompt, ...]:
        return tuple(self.step_prompts.values())

    def values(self, sample: Sample) -> dict[str, Any]:
        values = super().values(sample)
        context = self.passages_for(sample)
        complete = sample if context is None or context == sample.context else replace(sample, context=context)
        return {**values, "sample": complete}

    async def score(self, ask: Ask, *, sample: Sample, **fields: Any) -> Score | Skipped:
        so_far = SoFar(sample)
        results: dict[str, StepResult] = {}
        for name, step in self.steps:
            try:
                results[name] = result = await self._result(ask, name, step, fields, so_far)
            except NotScorable as error:
                return Skipped(f"not scorable (step {name}){': ' * bool(str(error))}{error}")
            if name != "reason":
                so_far = replace(so_far, **{name: self._number(result.answer) if name == "score" else result.answer})
        reason = results["reason"].answer if "reason" in results else getattr(results["score"].answer, "reason", "")
        if not isinstance(reason, str):
            raise OutcomeError(f"{self.name}: the reason step must return text, not {_type_name(reason)}")
        return Score(so_far.score, reason.strip(), evidence=tuple(results.values()))

    async def _result(self, ask: Ask, name: str, step: Step, fields: Mapping[str, Any], so_far: SoFar) -> StepResult:
        if not isinstance(step, PromptStep):
            result: Any = await sync.call(step, so_far)
            if isinstance(result, NotScorable):
                raise result
            if isinstance(result, Skipped):
                raise NotScorable(result.reason)
            return StepResult(name, result)
        earlier = {before: as_material(getattr(so_far, before)) for before in STEPS[: STEPS.index(name)]}
        prompt = self.step_prompts[name]
        if not isinstance(step.template, str):
            prompt = await self._written(name, step.template, so_far)
            shown = [p for p in prompt.placeholders if is_field(p)]
            fields = {p: value for p in shown if not is_absent(value := value_of(so_far.sample, p))}
            if lacking := [p for p in shown if p not in fields]:
                raise OutcomeError(f"{self.name}: the prompt of the step {name} needs {joined(lacking)}")
        question = self._question(name, step, prompt, {**inputs(fields), **earlier})
        # A run's `ask` takes a judge; a stand-in for it, as in a test, may not.
        answer: Any = await (ask(question) if step.judge is None else cast(Any, ask)(question, step.judge))
        return StepResult(name, answer, "\n\n".join(part for part in question.render() if part))

    def _question(self, name: str, step: PromptStep, prompt: Prompt, texts: Mapping[str, Any]) -> OwnQuestion[Any]:
        """The question of a step. texts: by the names of placeholders."""
        values = filled(prompt, texts)
        if name == "score":
            return GiveNumber(values=values, prompt=prompt, high=self.scale)
        return AnswerAs(values=values, prompt=prompt, answer=AnswerForm(step.answer))

    async def _written(self, name: str, write: Callable[[SoFar], Any], so_far: SoFar) -> Prompt:
        """The prompt that a function returns. Raises OutcomeError for an invalid one."""
        template: Any = await sync.call(write, so_far)
        if isinstance(template, NotScorable):
            raise template
        if not isinstance(template, str):
            raise OutcomeError(
                f"{self.name}: ",
                invalid(f"the prompt of the step {name}", "text", template, _type_name(template)),
            )
        try:
            return template_prompt(template, self.step_prompts[name].instructions, placeholders=self._known(name))
        except PromptError as error:
            raise OutcomeError(f"{self.name}: the prompt of the step {name}: ", error) from None

    def _number(self, answer: Any) -> float:
        """The number that a score step returned: True is the scale, False 0.

        Raises OutcomeError for anything but a bool or a number in [0, scale].
        """
        if isinstance(answer, Grade):
            return answer.score
        if isinstance(answer, Score) and answer.scale not in (None, self.scale):
            scales = f"the score step's scale is {answer.scale:g}, the pipeline's {self.scale:g}"
            raise OutcomeError(f"{self.name}: {scales}")
        return Score(answer.value if isinstance(answer, Score) else answer, scale=self.scale).value


def _type_name(value: object) -> str:
    return type(value).__name__


def _check_steps(steps: Sequence[tuple[str, object]]) -> None:
    """Raise ConfigError if there is no score step, or a value is not a step."""
    if "score" not in dict(steps):
        raise ConfigError("a pipeline needs a score step: a function, or a PromptStep")
    for name, step in steps:
        if not isinstance(step, PromptStep) and not callable(step):
            raise ConfigError(invalid(f"the step {name}", "a function or a PromptStep", step, type(step).__name__))
    for name, types in (("score", (str, int, float)), ("reason", (str,))):
        step = dict(steps).get(name)
        if isinstance(step, PromptStep) and step.answer not in types:
            expected = "a number" if name == "score" else "text"
            raise ConfigError(f"the answer of the step {name} is always {expected}; remove answer={step.answer!r}")
