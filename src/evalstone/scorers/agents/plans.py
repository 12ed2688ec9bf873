"""Plan quality and plan adherence: how good an agent's plan was, and whether the agent kept to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, cast

from evalstone._core.declarations import Range
from evalstone._core.display import count
from evalstone._core.guards import is_mapping, is_sequence
from evalstone._core.text import is_blank
from evalstone.errors import OutcomeError, invalid
from evalstone.questions.base import Ask
from evalstone.questions.conversation import ASSISTANT
from evalstone.questions.plans import Holds, JudgeExecution, JudgePlan, ListPlan, PlanReview
from evalstone.scorers.agents import OF_A_GOAL, TOOLS, ConversationSource, conversation_of, goal_of, require_both_sides
from evalstone.scorers.base import as_text
from evalstone.scorers.reasons import reason_with, shortened
from evalstone.types import Message, Score, Skipped

NO_PLAN = Skipped("the agent made no plan")
WORTH: Mapping[Holds, float] = {"yes": 1.0, "partly": 0.5, "no": 0.0}


async def plan_of(ask: Ask, messages: Sequence[Message], state: Any) -> tuple[str, ...]:
    """The steps of the plan: `plan` in the state, or else what the judge finds in the conversation. Empty if none.

    Raises OutcomeError for a plan in the state that is neither text nor a list.
    """
    plan: object = state.get("plan") if is_mapping(state) else None
    if plan is None:
        return await ask(ListPlan(conversation=conversation_of(messages, thinking=True)))
    if isinstance(plan, str):
        return () if is_blank(plan) else await ask(ListPlan(conversation=(f"{ASSISTANT}\n{plan}",)))
    if is_sequence(plan):
        return tuple(text for text in map(as_text, plan) if not is_blank(text))
    raise OutcomeError(invalid("plan in state", "text or a list of steps", plan, shortened(repr(plan), 60)))


def plan_worth(review: PlanReview) -> float:
    """The mean over the four criteria: 1 for yes, 0.5 for partly, 0 for no."""
    criteria = (review.complete, review.feasible, review.ordered, review.economical)
    return sum(WORTH[one.verdict] for one in criteria) / len(criteria)


class PlanQuality(ConversationSource):
    """How well the agent's plan suits the user's request.

        plan quality = (complete + feasible + ordered + economical) / 4          range [0, scale], higher is better

    Each criterion is 1 for yes, 0.5 for partly and 0 for no. Complete: the steps do everything that the task asks for.
    Feasible: the agent can take each step. Ordered: no step needs the result of a later one. Economical: no step is
    unnecessary. The outcome of the plan doesn't matter.

    The plan is `plan` in the sample's state (a list of steps, or a text), else what the agent says or thinks in its
    messages that it will do. The task is `goal` in the metadata, or else what the user asks for. Undefined when the
    agent made no plan. A conversation without a user message or an assistant message is an error. Two judge calls, the
    first shared with plan adherence; one for a list in the state. Source: our own; deepeval's PlanQuality is a number
    that the judge gives, 1 without a plan.

    Attributes:
        tools: The tools that were available: names, `name: description`, or objects with a `name` (or `id`) and a
            `description`.
    """

    name = "plan_quality"
    questions = (ListPlan, JudgePlan)
    required_fields = ("input", "messages")
    alternatives = OF_A_GOAL
    case_metadata = ("goal",)
    interpretation = (
        (0.9, "the plan does what was asked"),
        (0.6, "the plan is usable but has gaps"),
        (0.3, "the plan is unlikely to reach the goal"),
        (0.0, "the plan does not fit the task"),
    )
    advice = (
        "Read the problems under each criterion. Tell the agent its tools and their limits before it plans, ask for "
        "the steps and what each one needs, and have it check the plan against the request."
    )

    tools: Annotated[Sequence[str | Mapping[str, Any]], TOOLS] = ()

    async def score(
        self, ask: Ask, *, messages: Sequence[Message], metadata: Mapping[str, Any] | None = None, state: Any = None
    ) -> Score | Skipped:
        goal = goal_of(self, metadata, messages)
        require_both_sides(self, messages, " ".join(goal) or None)
        plan = await plan_of(ask, messages, state)
        if not plan:
            return NO_PLAN
        review = await ask(JudgePlan(task="\n".join(goal), plan=plan, tools=cast("tuple[str, ...]", self.tools)))
        criteria: dict[str, dict[str, Any]] = asdict(review)
        reason = reason_with(
            f"The plan of {count(len(plan), 'step')} is "
            + ", ".join(f"{name}: {criterion['verdict']}" for name, criterion in criteria.items()),
            *((f"not {name}", criterion["problems"]) for name, criterion in criteria.items()),
        )
        return Score(plan_worth(review) * self.scale, reason, evidence={"plan": plan, **criteria})


def out_of_order(positions: Sequence[int | None]) -> list[int]:
    """The fewest indexes to drop so that the remaining positions never decrease. None is ignored.

    The rest is a longest non-decreasing subsequence.
    """
    best: list[tuple[int, ...]] = []
    """The longest such subsequence that ends at each position, as indexes."""
    for index, position in enumerate(positions):
        if position is not None:
            before = [chain for chain in best if cast(int, positions[chain[-1]]) <= position]
            best.append((*max(before, key=len, default=()), index))
    in_order = max(best, key=len, default=())
    return [index for index, position in enumerate(positions) if position is not None and index not in in_order]


class PlanAdherence(ConversationSource):
    """How closely the agent followed its plan, in order, and did nothing else.

        plan adherence = (d + w · o) / (p + u)          range [0, scale], higher is better

    p is the number of steps in the plan, d the number done in order, and o the number done out of order. u is the
    number of tool calls that belong to no step, and w is `out_of_order`. A step is done if a tool call did it, or if a
    message says what the step was to say. Claiming that a step is done doesn't count. A step's position is the last
    passage that the judge cites for it; the fewest steps whose removal puts the others in plan order are out of order.

    The plan is `plan` in the sample's state (a list of steps, or a text), else what the agent says or thinks in its
    messages that it will do. Undefined when the agent made no plan. A conversation without a user message or an
    assistant message is an error. Two judge calls, the first shared with plan quality; one for a list in the state.
    Source: our own; deepeval's PlanAdherence is a number that the judge gives, 1 without a plan.

    Attributes:
        out_of_order: The credit for a step that was done out of order, in [0, 1].
    """

    name = "plan_adherence"
    questions = (ListPlan, JudgeExecution)
    required_fields = ("input", "messages")
    interpretation = (
        (0.9, "the agent followed its plan"),
        (0.6, "it skipped steps, or did something unplanned"),
        (0.0, "it did not follow its plan"),
    )
    advice = (
        "Read the steps that were not done and the calls that were not planned. If the agent was right, the plan was "
        "wrong: have it revise the plan when a tool returns something unexpected. If not, show it the plan at every "
        "step."
    )

    out_of_order: Annotated[float, Range(0, 1)] = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()

    async def score(self, ask: Ask, *, messages: Sequence[Message], state: Any = None) -> Score | Skipped:
        require_both_sides(self, messages, None)
        plan = await plan_of(ask, messages, state)
        if not plan:
            return NO_PLAN
        conversation = conversation_of(messages)
        execution = await ask(JudgeExecution(plan=plan, conversation=conversation))
        done = [verdict.verdict == "done" for verdict in execution.plan]
        late = out_of_order([max(v.passages) if v.verdict == "done" else None for v in execution.plan])
        # A panel may vote for one judge's steps and another judge's unplanned calls.
        cited = {number for verdict in execution.plan for number in verdict.passages}
        unplanned = [conversation[number - 1] for number in execution.unplanned if number not in cited]
        value = (sum(done) - len(late) + self.out_of_order * len(late)) / (len(plan) + len(unplanned))
        late_steps = [plan[index] for index in late]
        reason = reason_with(
            f"{sum(done)} of {count(len(plan), 'planned step')} done",
            ("out of order", late_steps),
            ("not done", [step for step, was_done in zip(plan, done, strict=True) if not was_done]),
            ("not planned", unplanned),
        )
        evidence = {"plan": execution.plan, "out_of_order": late_steps, "unplanned": unplanned}
        return Score(value * self.scale, reason, evidence=evidence)
