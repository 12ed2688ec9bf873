"""The criteria for answers to a task, written once for all answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from evalstone._core.parsing import first_repeated
from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.errors import ReplyError
from evalstone.questions.items import ListOf
from evalstone.questions.markers import WorstFirst, YesNo


@dataclass(frozen=True)
class WrittenCriterion(NoTruthValue):
    """One criterion, and whether an answer has to meet it."""

    description: str
    required: Annotated[bool, YesNo("required"), WorstFirst()]


WRITE_CRITERIA = Prompt(
    instructions="""\
You write the criteria by which answers to a task are checked. You don't see the answers: the same criteria are used for
all of them.

- Each criterion is one statement about the answer that is either met or not, such as "It gives the year 1921". A
  stranger can tell from the answer alone.
- Take what the task asks for, and what a reference answer, if given, says about it. The reference is right. Its
  wording, order and length are no criteria.
- One requirement per criterion, three to eight in all, the most important first. No two say the same.
- Use the language of the task.

For each criterion give, in this order:
- description: the criterion.
- required:
  - "yes": an answer without it is wrong, or misses a main part of what the task asks for.
  - "no": an answer is better with it, and acceptable without.""",
    template="{{task}}\n\n{{reference}}\n\nWrite the criteria for answers to this task.",
    example="""\
Example. Task: "When was the museum founded, and what does entry cost?" Reference: "In 1921. Entry is 8 euros, free on
Sundays."
Reply: {"criteria": [{"description": "It says that the museum was founded in 1921.", "required": "yes"},
{"description": "It says that entry costs 8 euros.", "required": "yes"},
{"description": "It says that entry is free on Sundays.", "required": "no"}]}""",
)


USUAL = 5
"""The number of criteria in an example."""


class WriteCriteria(ListOf[WrittenCriterion]):
    """The criteria for answers to a task. They don't depend on an answer, so all answers to a task share them.

    task: what is asked. reference: the expected answer; may be empty. No criterion, or two that are equal, is a
    ReplyError.
    """

    kind = "write_criteria"
    key = "criteria"
    optional = ("reference",)
    repeatable = False
    task: str
    reference: str = ""
    prompt: Prompt = WRITE_CRITERIA

    def from_json(self, data: Any) -> tuple[WrittenCriterion, ...]:
        criteria = super().from_json(data)
        if not criteria:
            raise ReplyError("criteria: at least one was expected")
        if twice := first_repeated([each.description for each in criteria]):
            raise ReplyError(f"criteria: {twice!r} is listed twice; list each criterion once")
        return criteria

    def example(self) -> Any:
        texts = (f"The answer says what is asked for in part {n} of the task." for n in range(1, USUAL + 1))
        return {self.key: [{"description": text, "required": "yes"} for text in texts]}
