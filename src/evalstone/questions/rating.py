"""Scoring by a criterion in words, in the manner of G-Eval: evaluation steps, then a whole number on a stated scale."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from evalstone._core.parsing import TEXT, list_schema, member, object_schema, texts
from evalstone._core.prompts import Prompt
from evalstone.errors import ReplyError
from evalstone.questions.base import LabelProbabilities, Question
from evalstone.questions.custom import OwnQuestion, number
from evalstone.questions.verdict import reason_of

WRITE_STEPS = Prompt(
    instructions="""\
You turn a criterion for judging texts into three to six steps that an evaluator takes, one after the other, to judge
any case by it.

- Each step is one action: what to look for in which of the named parts of the case, or what to compare with what.
- Together they cover the criterion, and nothing that it does not ask for.
- The last step says how what was found decides between a low and a high score.
- A criterion on one part only ("the answer is polite") needs no step on the other parts.
- Use the language of the criterion.

Reply with a JSON object: {"steps": ["…", "…"]}""",
    template="{{criterion}}\n\nThe evaluator is shown these parts of each case:\n{{parts}}\n\nWrite the steps.",
)


@dataclass(frozen=True)
class WriteSteps(Question[tuple[str, ...]]):
    """The steps by which a case is judged by a criterion. It names no case, so that all samples share one answer."""

    kind: ClassVar[str] = "write_steps"

    criterion: str
    parts: tuple[str, ...]
    prompt: Prompt = WRITE_STEPS

    @property
    def prompt_used(self) -> Prompt:
        return self.prompt

    def schema(self) -> Mapping[str, Any]:
        return object_schema({"steps": list_schema(TEXT)})

    def interpret(self, data: Any) -> tuple[str, ...]:
        steps = texts(member(data, "steps"), "steps")
        if not steps:
            raise ReplyError("steps: at least one was expected")
        return steps

    def example(self) -> Any:
        return {
            "steps": ["Read the answer and note each place that bears on the criterion in one way or the other."] * 4
        }


@dataclass(frozen=True)
class Mark:
    """A whole number on the scale from 1, the judge's reason, and, where it gave them, each number's probability."""

    score: int
    reason: str = ""
    probabilities: Mapping[str, float] | None = None


def mark_prompt(criterion: str, steps: Sequence[str], levels: int, template: str) -> Prompt:
    """The prompt that asks for a mark. Steps that a judge wrote cannot bring a hole with them."""
    listed = "\n".join(f"{count}. {step.replace('{{', '{ {')}" for count, step in enumerate(steps, start=1))
    taken = f"Take these steps:\n{listed}\n\n" if steps else ""
    example = json.dumps({"reason": "…", "score": (1 + levels) // 2}, ensure_ascii=False)
    instructions = f"""\
You score one case by one criterion, in whole numbers from 1 to {levels}: 1 where the criterion is not met at all,
{levels} where it is met in full, and even steps between. What meets it but for a trifle is {levels - 1}, not {levels}.
Nothing but the criterion counts: what it does not ask for neither raises nor lowers the score.

The criterion:
{criterion}

{taken}Reply with a JSON object, the reason first: {example}
- reason: what decided, in one to three sentences, naming the words that did.
- score: a whole number from 1 to {levels}."""
    return Prompt(instructions, template)


@dataclass(frozen=True)
class MarkByCriterion(OwnQuestion[Mark]):
    """How well does a case meet a criterion, from 1 to `levels`? by_probability: the judge's odds are wanted too."""

    kind: ClassVar[str] = "mark_by_criterion"
    settings: ClassVar[tuple[str, ...]] = ("levels", "by_probability")

    levels: int
    by_probability: bool = False

    @property
    def weighed(self) -> LabelProbabilities | None:
        words = tuple(str(level) for level in range(1, self.levels + 1))
        return LabelProbabilities("score", words) if self.by_probability else None

    def schema(self) -> Mapping[str, Any]:
        return object_schema({"reason": TEXT, "score": {"type": "integer", "minimum": 1, "maximum": self.levels}})

    def interpret(self, data: Any) -> Mark:
        given = member(data, "score")
        value = number(given)
        if value is None or value % 1 or not 1 <= value <= self.levels:
            told = json.dumps(given, ensure_ascii=False)[:60]
            raise ReplyError(f"score: a whole number from 1 to {self.levels} was expected, not {told}")
        return Mark(int(value), reason_of(data))

    def weigh(self, answer: Mark, alternatives: Mapping[str, float]) -> Mark:
        """The mark with each mark's share of the probability that the marks have together.

        What is no mark, or no probability, is left out. Without one for the mark itself the answer stays as it is.
        """
        marks = [str(level) for level in range(1, self.levels + 1)]
        kept = {mark: alternatives[mark] for mark in marks if 0 < alternatives.get(mark, 0) <= 1}
        if str(answer.score) not in kept:
            return answer
        total = math.fsum(kept.values())
        return replace(answer, probabilities={mark: probability / total for mark, probability in kept.items()})

    def example(self) -> Any:
        return {"reason": "Two of the three things that were asked for are there.", "score": self.levels}
