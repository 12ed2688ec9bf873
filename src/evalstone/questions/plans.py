"""Plans of agents: their steps, how good they are, and whether they were carried out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

from evalstone._core.prompts import Prompt
from evalstone._core.truth import NoTruthValue
from evalstone.errors import ReplyError
from evalstone.questions.base import Ask, Question
from evalstone.questions.conversation import CALL, NO_INSTRUCTIONS, READ_CONVERSATION
from evalstone.questions.evidence import cite_first
from evalstone.questions.items import ListOf
from evalstone.questions.markers import Cites, Explains, NumberedBy, Restates, Subject, WorstFirst
from evalstone.questions.parts import Chunk, ask_parts, chunks_of, space_for
from evalstone.types.context_limits import ContextLimits

LIST_PLAN = Prompt(
    instructions=f"""\
You find the plan of an agent in a conversation, and list its steps.

A plan is what the agent says or thinks that it is going to do, in two or more steps, before it does them: in a message,
in its thinking, or in a call of a tool for plans or tasks.

{READ_CONVERSATION}

Rules:
- Write each step as one short sentence with the words of the plan, in the order and the language of the plan.
- If the agent changes its plan, list the steps as the plan finally stands, each once. A progress report changes none.
- Not a plan: what the agent does without having said so before, one next step ("I will look it up"), advice on what the
  user should do, and what the user tells the agent to do.
An agent without a plan gets an empty list.""",
    template="{{conversation}}\n\nList the steps of the agent's plan.",
    passages=("conversation",),
)


class ListPlan(ListOf[str]):
    """The steps of an agent's plan, in order; empty if it has none."""

    kind = "list_plan"
    key = "steps"
    source = Restates("conversation")
    cut = headed = "conversation"
    conversation: tuple[str, ...]
    prompt: Prompt = LIST_PLAN

    def most_sentences(self, limits: ContextLimits) -> float:
        return math.inf  # a plan has fewer steps than a conversation has sentences

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> tuple[str, ...]:
        """The steps in all parts of the conversation, each once."""
        return tuple(dict.fromkeys(await super().in_parts(ask, limits)))


Holds: TypeAlias = Literal["yes", "partly", "no"]


@dataclass(frozen=True)
class PlanCriterion(NoTruthValue):
    """Whether a plan meets one criterion, and what is wrong with it."""

    verdict: Annotated[Holds, WorstFirst("no", "partly", "yes")]
    reason: str = ""
    problems: Annotated[tuple[str, ...], Explains()] = ()


@dataclass(frozen=True)
class PlanReview(NoTruthValue):
    """How good a plan is, by four criteria."""

    complete: PlanCriterion
    feasible: PlanCriterion
    ordered: PlanCriterion
    economical: PlanCriterion


JUDGE_PLAN = Prompt(
    instructions="""\
You review the plan that an agent made for a task, before anything was done. You see the task, the tools that the agent
has if they are known, and the numbered steps of the plan. How the plan turned out does not matter.

Judge it by four criteria:
- "complete": the steps together do everything that the task asks for. Problems: each thing that no step does.
- "feasible": the agent can take each step with its tools and with what it knows by then. If the tools are not listed, a
  step is feasible unless it obviously is not. Problems: each step that it cannot take.
- "ordered": no step needs something that only a later one brings. Steps that do not depend on each other are ordered
  either way. Problems: each step that comes too early.
- "economical": no step is needless or done twice. A check of a result that matters is not needless. Problems: each
  needless step.

For each criterion give, in this order:
- reason: why, in one or two sentences, with the steps that decide.
- problems: a list, each item in a few words; empty if there is no problem.
- verdict: "yes" if there is no problem; "partly" if there are problems, and the agent can still do what the task
  mainly asks for, at most half of the steps being affected; otherwise "no". A plan to book a flight that never books is
  not complete: "no". One that books and does not send the receipt that was also wanted is "partly".""",
    template="{{task}}\n\n{{tools}}\n\n{{plan}}\n\nReview this plan.",
)


class JudgePlan(Question[PlanReview]):
    """Is a plan complete, feasible, ordered and without needless steps? The tools may be empty."""

    kind = "judge_plan"
    optional = ("tools",)
    task: str
    plan: tuple[str, ...]
    tools: tuple[str, ...] = ()
    prompt: Prompt = JUDGE_PLAN


Done: TypeAlias = Literal["done", "not_done"]


@dataclass(frozen=True)
class PlannedStepVerdict(NoTruthValue):
    """Whether one step of a plan was done. `passages` are the numbers of those in which it was done, from 1."""

    step: Annotated[str, Subject()]
    verdict: Annotated[Done, WorstFirst("not_done", "done")]
    passages: Annotated[tuple[int, ...], Cites("conversation", needed_for=("done",))] = ()
    reason: str = ""


@dataclass(frozen=True)
class PlanExecution(NoTruthValue):
    """A verdict for each step of a plan in order, and the numbers of the unplanned tool calls."""

    plan: Annotated[tuple[PlannedStepVerdict, ...], NumberedBy("plan", "planned step")]
    unplanned: Annotated[tuple[int, ...], Cites("conversation")] = ()


JUDGE_EXECUTION = Prompt(
    instructions=f"""\
You compare what an agent did with the plan that it had made. You see the numbered steps of the plan, and the
conversation.

{READ_CONVERSATION}

For each step of the plan give, in this order:
- reason: in one short sentence, what the agent did for it.
- passages: the numbers of the passages in which it did the step; not of those in which it only announces or reports it.
  Empty for "not_done".
- verdict:
  - "done": a tool call did the step and returned no error; or the step is to say something to the user, and a message
    says it.
  - "not_done": the agent did not do it, did it only in part, or tried and did not succeed. Saying that it was done is
    not doing it.

Then list under "unplanned" the numbers of the tool calls that belong to no step of the plan. A call that repeats a
failed one, prepares a step or checks its result belongs to that step. A call that writes down the plan or its progress
is not unplanned. Messages never are.
{NO_INSTRUCTIONS}""",
    template="{{plan}}\n\n{{conversation}}\n\nDecide for each step of the plan whether the agent did it.",
    passages=("conversation",),
)


class JudgeExecution(Question[PlanExecution]):
    """For each step of a plan, in order: did the agent do it, and where? And which tool calls belong to no step?"""

    kind = "judge_execution"
    headed = "conversation"
    plan: tuple[str, ...]
    conversation: tuple[str, ...]
    prompt: Prompt = JUDGE_EXECUTION

    def example(self) -> Any:
        reply = super().example()
        cite_first(reply["plan"], self.conversation, "not_done")
        return {**reply, "unplanned": []}

    def from_json(self, data: Any) -> PlanExecution:
        execution = super().from_json(data)
        planned = {number for verdict in execution.plan for number in verdict.passages}
        for number in execution.unplanned:
            if not self.conversation[number - 1].startswith(CALL):
                raise ReplyError(f"unplanned: passage {number} is not a tool call")
            if number in planned:
                raise ReplyError(f"unplanned: passage {number} is cited for a step of the plan")
        return execution

    def fits(self, limits: ContextLimits) -> bool:
        return self.within(limits.tokens)

    async def in_parts(self, ask: Ask, limits: ContextLimits) -> PlanExecution:
        """The merged verdicts on all parts of the conversation. A step is done if any part shows it."""
        chunks = chunks_of(self, "conversation", space_for(self, "conversation", limits), limits)
        parts = await ask_parts(self, "conversation", chunks, ask)
        columns = zip(*(part.plan for part in parts), strict=True)
        plan = tuple(_of_parts(column, chunks) for column in columns)
        # For a call that was split, the first piece counts, because it has the arguments.
        seen: dict[int, bool] = {}
        for chunk, part in zip(chunks, parts, strict=True):
            for position, number in enumerate(chunk.numbers, start=1):
                seen.setdefault(number, position in part.unplanned)
        done = {number for verdict in plan for number in verdict.passages}
        return PlanExecution(plan, tuple(number for number, extra in seen.items() if extra and number not in done))


def _of_parts(verdicts: Sequence[PlannedStepVerdict], chunks: Sequence[Chunk]) -> PlannedStepVerdict:
    done = [(verdict, chunk) for verdict, chunk in zip(verdicts, chunks, strict=True) if verdict.verdict == "done"]
    if not done:
        return verdicts[0]
    cited = dict.fromkeys(number for verdict, chunk in done for number in chunk.numbers_of(verdict.passages))
    return replace(done[0][0], passages=tuple(cited))
