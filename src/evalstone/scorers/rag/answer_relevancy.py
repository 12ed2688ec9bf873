from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from evalstone.errors import ConfigError
from evalstone.questions.base import Ask
from evalstone.questions.statements import JudgeStatements, ListStatements, StatementVerdict
from evalstone.scorers.base import Definition, reason_with, require_number
from evalstone.scorers.rag import Defined
from evalstone.types import Score, Skipped

DEFAULT_WEIGHT = 0.3


def addressing_share(verdicts: Sequence[StatementVerdict], weight: float) -> float:
    """(yes + weight · partly) / all, for at least one verdict."""
    full = sum(v.addresses == "yes" for v in verdicts)
    partly = sum(v.addresses == "partly" for v in verdicts)
    return (full + weight * partly) / len(verdicts)


def not_off_topic_share(verdicts: Sequence[StatementVerdict], _: float) -> float:
    """(yes + partly) / all, for at least one verdict."""
    return addressing_share(verdicts, 1.0)


@dataclass(frozen=True, kw_only=True)
class AnswerRelevancy(Defined):
    """How much of the answer addresses the question.

        answer relevancy = (addressing + w · partly addressing) / statements,   w = 0.3          range [0, scale]

    Higher is better. Relevancy is not correctness: a wrong answer to the question addresses it. `definition` applies
    another system's formula to the same answers. Undefined for an answer without statements. Two judge calls. Source:
    @mastra/evals. ragas has another measure of this name, by embeddings.

    Attributes:
        uncertainty_weight: The weight w of a statement that partly addresses the question, in [0, 1].
    """

    name = "answer_relevancy"
    interpretation = (
        (0.9, "the answer stays on the question"),
        (0.6, "some of it is off topic"),
        (0.3, "much of it is off topic"),
        (0.0, "the answer does not address the question"),
    )
    advice = "Ask the model to answer first and keep background short; check that the question reaches it unchanged."
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("(addressing + w · partly) / statements, w = 0.3", addressing_share),
        "deepeval": Definition("(addressing + partly) / statements", not_off_topic_share, "1"),
        "mastra": Definition("(addressing + w · partly) / statements, w = 0.3", addressing_share, "0"),
    }

    uncertainty_weight: float = DEFAULT_WEIGHT

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number(self, "uncertainty_weight", high=1)
        if self.definition == "deepeval" and self.uncertainty_weight != DEFAULT_WEIGHT:
            raise ConfigError(f"{self.name}: the deepeval definition has no uncertainty_weight; leave it out")

    async def score(self, ask: Ask, *, input: str, output: str) -> Score | Skipped:
        statements = await ask(ListStatements(answer=output))
        if not statements:
            return Skipped(self.undefined("the answer makes no statement"))
        verdicts = await ask(JudgeStatements(question=input, statements=statements))
        value = self.compute(verdicts, self.uncertainty_weight) * self.scale
        return Score(value, self.scale, _reason(verdicts), verdicts)


def _reason(verdicts: Sequence[StatementVerdict]) -> str:
    off_topic = [v.statement for v in verdicts if v.addresses == "no"]
    partly = sum(v.addresses == "partly" for v in verdicts)
    full = len(verdicts) - len(off_topic) - partly
    reason = f"{full} of {len(verdicts)} statements address the question, {partly} partly"
    return reason_with(reason, ("off topic", off_topic))
