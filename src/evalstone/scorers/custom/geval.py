from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from evalstone._core.declarations import TEXT, TEXTS, Range
from evalstone._core.prompts import Prompt
from evalstone.errors import ConfigError, PromptError
from evalstone.questions.base import Ask
from evalstone.questions.custom import filled
from evalstone.questions.rating import RateByCriterion, WriteSteps, rating_prompt
from evalstone.scorers.custom import DEFAULT_FIELDS, CustomScorer, inputs, template_prompt, with_fields
from evalstone.types import Score

MAX_LEVELS = 100


def share(rating: int, levels: int) -> float:
    """(rating - 1) / (levels - 1), in [0, 1]."""
    return (rating - 1) / (levels - 1)


def expected_share(probabilities: Mapping[str, float], levels: int) -> float:
    """The mean of the ratings' shares, weighted by their probabilities.

    It averages shares, not ratings: no share exceeds 1, whereas a mean of ratings may exceed the top one by rounding.
    """
    total = math.fsum(probability * share(int(rating), levels) for rating, probability in probabilities.items())
    return total / math.fsum(probabilities.values())


@dataclass(frozen=True)
class Rated:
    """The evidence of a G-Eval score. note: how the rating was computed, if a weighted one was requested."""

    rating: float
    steps: tuple[str, ...]
    probabilities: Mapping[str, float] | None = None
    note: str = ""


class GEval(CustomScorer, kw_only=False):
    """How well a sample meets a criterion written in plain language.

        geval = (rating - 1) / (levels - 1)          rating from 1 to levels; range [0, scale]
        weighted:  the rating is Σ p(i) · i / Σ p(i) over the ratings i whose probabilities the judge gave

    Higher is better, unless lower_is_better is set. The judge follows evaluation steps: yours, or steps that it writes
    from the criterion, once for all samples. If the judge returns no probabilities, the plain rating replaces the
    weighted one, and the evidence says so. One judge call, and one more per run to write the steps. Source: Liu et al.
    2023 (G-Eval).

    Attributes:
        text: The criterion.
        steps: The evaluation steps. None lets the judge write them; an empty list omits them.
        levels: The highest rating, from 2 to 100.
        weighted: Whether to weight the ratings by the judge's probabilities.
        fields: The sample fields that the judge sees: input, output, context, reference, messages, instructions.
    """

    excluded_from_signature = (*CustomScorer.excluded_from_signature, "text", "fields", "steps")
    questions = (WriteSteps, RateByCriterion)

    text: Annotated[str, TEXT]
    _: KW_ONLY
    steps: Annotated[Sequence[str] | None, TEXTS] = None
    levels: Annotated[int, Range(2, MAX_LEVELS)] = 5
    weighted: bool = False
    fields: Sequence[str] = DEFAULT_FIELDS

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.fields:
            raise ConfigError(f"{self.name}: fields is empty; the judge must see something")
        if placeholders := Prompt("", self.text).placeholders:
            message = f"the criterion has the placeholder {{{{{placeholders[0]}}}}}"
            raise PromptError(f"{self.name}: {message}; name the fields that are shown in fields=(…)")
        self.prompt.check(self.prompt.placeholders)
        if self.steps is not None:
            object.__setattr__(self, "questions", (RateByCriterion,))
        object.__setattr__(self, "required_fields", self.prompt.placeholders)

    @functools.cached_property
    def prompt(self) -> Prompt:
        """The prompt that asks for ratings. It has no steps if the judge is to write them."""
        return self._prompt(self.steps or ())

    def _prompt(self, steps: Sequence[str]) -> Prompt:
        template = with_fields("Score this case by the criterion.", self.fields)
        template_prompt(template, "")
        return rating_prompt(self.text.strip(), steps, self.levels, template)

    def description(self) -> str:
        return self.text

    async def score(self, ask: Ask, **fields: Any) -> Score:
        steps = (
            self.steps
            if self.steps is not None
            else await ask(WriteSteps(criterion=self.text.strip(), parts=tuple(self.fields)))
        )
        prompt = self._prompt(steps)
        answer = await ask(
            RateByCriterion(
                values=filled(prompt, inputs(fields)), prompt=prompt, levels=self.levels, by_probability=self.weighted
            )
        )
        value, rating, note = share(answer.score, self.levels), float(answer.score), ""
        if self.weighted and answer.probabilities:
            value = expected_share(answer.probabilities, self.levels)
            rating, note = 1 + value * (self.levels - 1), "weighted by the judge's probabilities"
        elif self.weighted:
            note = "the judge gave no probabilities; this is its plain rating"
        evidence = Rated(rating, tuple(steps), answer.probabilities, note)
        return Score(value * self.scale, answer.reason, evidence=evidence)
