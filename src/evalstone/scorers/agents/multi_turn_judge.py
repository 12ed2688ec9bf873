from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from evalstone._core.declarations import TEXT
from evalstone._core.display import count
from evalstone._core.text import is_blank
from evalstone.agents.messages import texts
from evalstone.errors import OutcomeError
from evalstone.questions.alignment import CheckConversation
from evalstone.questions.base import Ask
from evalstone.scorers.definitions import OURS, Defined, Definition
from evalstone.types import Message, Score, Skipped


class MultiTurnJudge(Defined):
    """Whether the assistant meets a criterion over the whole conversation.

        multi turn judge = 1 if the criterion is met, else 0          range [0, scale], higher is better

    The judge sees only the assistant's turns, in order, without blank ones. When in doubt, the criterion is not met.
    Undefined for a sample without messages or a criterion, and when the assistant says nothing. One judge call. Source:
    @mastra/evals.

    Attributes:
        criterion: The criterion; by default `criterion` in the sample's metadata.
    """

    name = "multi_turn_judge"
    questions = (CheckConversation,)
    required_fields = ("messages", "metadata.criterion")
    supplied_by: ClassVar[Mapping[str, tuple[str, ...]]] = {"metadata.criterion": ("criterion",)}
    case_metadata = ("criterion",)
    interpretation = ((1.0, "the criterion is met"), (0.0, "the criterion is not met, or it is unclear"))
    advice = "Read the turns that the reason names. If a criterion asks for two things, split it into two scorers."
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("1 if the criterion is met, else 0"),
        "mastra": Definition("the same; an assistant that says nothing is judged", blank=("messages",)),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    criterion: Annotated[str | None, TEXT] = None

    async def score(
        self, ask: Ask, *, messages: Sequence[Message], metadata: Mapping[str, Any] | None = None
    ) -> Score | Skipped:
        criterion = self.criterion or (metadata or {}).get("criterion")
        if not isinstance(criterion, str):
            raise OutcomeError(f"{self.name}: the criterion in metadata must be text")
        turns = tuple(turn.strip() for turn in texts(messages, "assistant") if not is_blank(turn))
        if not turns and "messages" not in self.reads_blank:
            return Skipped("the assistant says nothing")
        verdict = await ask(CheckConversation(criterion=criterion, turns=turns))
        result = "met" if verdict.met else "not met"
        reason = f"Over {count(len(turns), 'turn')}, it is {result}: {criterion}"
        reason += f" ({verdict.reason})" if verdict.reason else ""
        return Score(self.scale if verdict.met else 0.0, reason, evidence=verdict)
