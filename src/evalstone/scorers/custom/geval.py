"""GEval: how well a sample meets a criterion in words, on a scale of whole numbers, in the manner of G-Eval.

    criteria = (mark - 1) / (levels - 1)          mark from 1 to levels; range [0, scale]
    weighted:  the mark is Σ p(i) · i / Σ p(i) over the marks i whose probabilities the judge gave

Higher is better, unless lower_is_better is set. The judge takes evaluation steps: yours, or steps that it writes once
from the criterion, in a question that names no sample, so that all samples share it. Where a judge gives no
probabilities, a weighted score is the plain one, and its evidence says so. One judge call, and one more in a run for
the steps. Source: Liu et al. 2023 (G-Eval).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, cast

from evalstone._core.prompts import Prompt
from evalstone.errors import ConfigError, PromptError
from evalstone.questions.base import Ask
from evalstone.questions.custom import filled
from evalstone.questions.explanation import EXPLAIN
from evalstone.questions.rating import WRITE_STEPS, RateByCriterion, WriteSteps, rating_prompt
from evalstone.scorers.custom.base import SHOWN, CustomScorer, inputs, own_prompt, with_fields
from evalstone.types import Score

MOST_LEVELS = 100


def share(mark: int, levels: int) -> float:
    """How far up a mark stands between 1 and `levels`, from 0 to 1."""
    return (mark - 1) / (levels - 1)


def expected_share(probabilities: Mapping[str, float], levels: int) -> float:
    """The mean of the marks' shares, each weighted by its part of the probability that the marks have together.

    As no share exceeds 1, the mean of shares cannot either, where that of the marks may miss by the last digit.
    """
    weighed = math.fsum(probability * share(int(mark), levels) for mark, probability in probabilities.items())
    return weighed / math.fsum(probabilities.values())


@dataclass(frozen=True)
class Marked:
    """What a criterion's score came of. note: how the mark was taken, where a weighted one was asked for."""

    mark: float
    steps: tuple[str, ...]
    probabilities: Mapping[str, float] | None = None
    note: str = ""


@dataclass(frozen=True)
class GEval(CustomScorer):
    """How well a sample meets a criterion in words.

    text: the criterion. steps: how to judge by it; None has the judge write them, an empty list does without. levels:
    how many marks there are, from 2 to 100. weighted: weigh the marks by the judge's probabilities. fields: what is
    shown of a sample: input, output, context, reference, messages, instructions.
    """

    unsigned: ClassVar[tuple[str, ...]] = (*CustomScorer.unsigned, "text", "fields", "steps")

    text: str
    _: KW_ONLY
    steps: Sequence[str] | None = None
    levels: int = 5
    weighted: bool = False
    fields: Sequence[str] = SHOWN

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.levels, bool) or not isinstance(cast(object, self.levels), int):
            raise ConfigError(f"{self.name}: levels must be a whole number, not {self.levels!r}")
        if not 2 <= self.levels <= MOST_LEVELS:
            raise ConfigError(f"{self.name}: levels must be from 2 to {MOST_LEVELS}, not {self.levels}")
        if not self.text.strip():
            raise ConfigError(f"{self.name}: the criterion is empty")
        if isinstance(self.steps, str):
            raise ConfigError(f"{self.name}: steps are a list of texts, not one text")
        object.__setattr__(self, "fields", tuple(self.fields))
        if not self.fields:
            raise ConfigError(f"{self.name}: fields is empty; the judge must be shown something")
        if self.steps is not None:
            object.__setattr__(self, "steps", tuple(self.steps))
            for step in cast("Sequence[object]", self.steps):
                if not isinstance(step, str) or not step.strip():
                    raise ConfigError(f"{self.name}: a step must be a text that is not blank, not {step!r}")
        object.__setattr__(self, "asks", (WriteSteps,) * (self.steps is None) + (RateByCriterion,))
        if placeholders := Prompt("", self.text).placeholders:
            told = f"the criterion has the placeholder {{{{{placeholders[0]}}}}}"
            raise PromptError(f"{self.name}: {told}; name the fields that are shown in fields=(…)")
        self.prompt.check(self.prompt.placeholders)

    @functools.cached_property
    def prompt(self) -> Prompt:
        """The prompt that marks are asked with, but for steps that the judge has yet to write."""
        return self._prompt(self.steps or ())

    def _prompt(self, steps: Sequence[str]) -> Prompt:
        template = with_fields("Score this case by the criterion.", self.fields)
        own_prompt(template, "")
        return rating_prompt(self.text.strip(), steps, self.levels, template)

    @property
    def needs(self) -> tuple[str, ...]:
        return self.prompt.placeholders

    def meaning(self) -> str:
        return self.text

    def _prompts(self) -> list[Any]:
        return [*([WRITE_STEPS] if self.steps is None else []), self.prompt, *([EXPLAIN] if self.explain else [])]

    async def score(self, ask: Ask, **given: Any) -> Score:
        written = self.steps if self.steps is not None else await ask(WriteSteps(self.text.strip(), tuple(self.fields)))
        prompt = self._prompt(written)
        mark = await ask(RateByCriterion(filled(prompt, inputs(given)), prompt, self.levels, self.weighted))
        value, taken, note = share(mark.score, self.levels), float(mark.score), ""
        if self.weighted and mark.probabilities:
            value = expected_share(mark.probabilities, self.levels)
            taken, note = 1 + value * (self.levels - 1), "weighted by the judge's probabilities"
        elif self.weighted:
            note = "the judge gave no probabilities; this is its plain mark"
        evidence = Marked(taken, tuple(written), mark.probabilities, note)
        return Score(value * self.scale, self.scale, mark.reason, evidence)
