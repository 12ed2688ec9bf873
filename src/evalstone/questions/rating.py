"""Rating by a criterion, as in G-Eval: evaluation steps, then a whole number on a scale."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from evalstone._core.parsing import REASON, member, object_schema
from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.errors import ReplyError
from evalstone.questions.custom import OwnQuestion
from evalstone.questions.items import ListOf
from evalstone.questions.markers import NotInReply, WorstFirst
from evalstone.questions.probabilities import LabelProbabilities, shares
from evalstone.questions.reply import number_in, reason_of

WRITE_STEPS = Prompt(
    instructions="""\
You turn a criterion for judging texts into three to six steps that an evaluator takes, one after the other, to judge
any case by it.

- Each step is one action: what to look for in which of the named parts of the case, or what to compare with what.
- Together they cover the criterion, and nothing that it does not ask for.
- The last step says how the findings decide between a low and a high score.
- A criterion about one part only ("the answer is polite") needs no step about the other parts.
- Use the language of the criterion.""",
    template="{{criterion}}\n\n{{parts}}\n\nThe parts are what the evaluator sees of each case. Write the steps.",
)


class WriteSteps(ListOf[str]):
    """The evaluation steps for a criterion. They don't depend on the sample, so all samples share one answer."""

    kind = "write_steps"
    key = "steps"
    criterion: str
    parts: tuple[str, ...]
    prompt: Prompt = WRITE_STEPS

    def from_json(self, data: Any) -> tuple[str, ...]:
        steps = super().from_json(data)
        if not steps:
            raise ReplyError("steps: at least one was expected")
        return steps

    def typical_count(self, characters: int) -> int:
        return 4


@dataclass(frozen=True)
class Rating(NoTruthValue):
    """A whole number on a scale from 1, the judge's reason, and the probability of each number if known."""

    score: Annotated[int, WorstFirst()]
    reason: str = ""
    probabilities: Annotated[Mapping[str, float] | None, NotInReply()] = None


def rating_prompt(criterion: str, steps: Sequence[str], levels: int, template: str) -> Prompt:
    """The prompt that asks for a rating. Steps that a judge wrote can't add a placeholder."""
    listed = "\n".join(f"{count}. {step.replace('{{', '{ {')}" for count, step in enumerate(steps, start=1))
    procedure = f"Take these steps:\n{listed}" if steps else ""
    between = f", with even steps between. What meets it except for a small thing is {levels - 1}, not {levels}."
    instructions = f"""\
You score one case by one criterion, in whole numbers from 1 to {levels}: {levels} if the criterion is fully met,
1 if it is not met{" at all" + between if levels > 2 else ", or only in part."}
Only the criterion counts: what it does not ask for neither raises nor lowers the score.

The criterion:
{criterion}

{procedure}"""
    return Prompt(instructions.strip(), template)


class RateByCriterion(OwnQuestion[Rating]):
    """How well does a case meet a criterion, from 1 to `levels`? by_probability: request their probabilities."""

    kind = "score_by_criterion"
    settings = ("levels", "by_probability")
    notes = "- reason: why, in one to three sentences, with the words of the material that decide."
    levels: int
    by_probability: bool = False

    @property
    def label_probabilities(self) -> LabelProbabilities | None:
        return LabelProbabilities("score", self._labels) if self.by_probability else None

    @property
    def _labels(self) -> tuple[str, ...]:
        return tuple(str(level) for level in range(1, self.levels + 1))

    @functools.cached_property
    def json_schema(self) -> Mapping[str, Any]:
        return object_schema({"reason": REASON, "score": {"type": "integer", "minimum": 1, "maximum": self.levels}})

    def from_json(self, data: Any) -> Rating:
        score = number_in(member(data, "score"), "score", 1, self.levels, whole=True)
        return Rating(int(score), reason_of(data))

    def with_probabilities(self, answer: Rating, probabilities: Mapping[str, float]) -> Rating:
        """The rating with the normalized probabilities of the levels.

        Other labels and invalid probabilities are ignored. If the rating itself has no probability, nothing is added.
        """
        known = shares(probabilities, self._labels, str(answer.score))
        return answer if known is None else replace(answer, probabilities=known)
