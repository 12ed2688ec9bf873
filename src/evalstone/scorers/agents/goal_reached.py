from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalstone.questions.base import Ask
from evalstone.questions.conversation import CheckGoal
from evalstone.scorers.agents import OF_A_GOAL, ConversationSource, conversation_of, goal_of, require_both_sides
from evalstone.scorers.base import share
from evalstone.scorers.reasons import reason_with
from evalstone.types import Message, Score

LONGEST_REQUEST = 2000
"""The most characters of the user's messages in the criterion. The conversation has all of them."""


class GoalReached(ConversationSource):
    """Whether the agent reached the user's goal.

        goal reached = criteria that were reached / criteria          range [0, scale], higher is better

    The criteria are `goal` in the sample's metadata: a text, or a list of texts that are judged separately. Each
    describes something to achieve; for rules that must never be broken, use multi_turn_judge or checks. Without a goal,
    the only criterion is everything that the user asks for in the messages. What counts is the final state. Tool
    results and the sample's `state` are evidence; the agent's claims are not. If the sample has a reference, it is the
    expected outcome, and the criteria are judged against it.

    The conversation is the sample's messages, or else its input and the steps of its trajectory, or else its input and
    output. Undefined without any of them. A conversation without an assistant message is an error. One judge call.
    Source: our own; ragas' AgentGoalAccuracy is 0 or 1 for the whole conversation, and deepeval's TaskCompletion and
    GoalAccuracy are numbers from the judge.
    """

    name = "goal_reached"
    questions = (CheckGoal,)
    required_fields = ("input", "messages")
    alternatives = OF_A_GOAL
    case_metadata = ("goal",)
    interpretation = (
        (1.0, "every criterion is reached, and the conversation shows it"),
        (0.5, "at least half of the criteria are reached"),
        (0.0, "the goal was not reached, or nothing shows that it was"),
    )
    advice = (
        "Read the criteria that failed, then those that are not shown: did the agent only claim success? Look at the "
        "errors that tools returned, and have the agent check its results before it answers."
    )

    async def score(
        self,
        ask: Ask,
        *,
        messages: Sequence[Message],
        metadata: Mapping[str, Any] | None = None,
        reference: str | None = None,
        state: Any = None,
    ) -> Score:
        criteria = goal_of(self, metadata, messages, longest=LONGEST_REQUEST)
        require_both_sides(self, messages, " ".join(criteria) or None)
        verdicts = await ask(
            CheckGoal(
                criteria=criteria, conversation=conversation_of(messages, state=state), expected_outcome=reference or ""
            )
        )
        reached = [v.verdict == "reached" for v in verdicts]
        reason = reason_with(
            f"{sum(reached)} of {len(verdicts)} {'criterion is' if len(verdicts) == 1 else 'criteria are'} reached",
            ("failed", [v.criterion for v in verdicts if v.verdict == "failed"]),
            ("not shown", [v.criterion for v in verdicts if v.verdict == "not_shown"]),
        )
        return Score(share(reached) * self.scale, reason, evidence=verdicts)
