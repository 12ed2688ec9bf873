from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from evalstone.questions.base import Ask
from evalstone.questions.claims import ListClaims, verified
from evalstone.scorers.base import ContextScorer, Definition, reason_with
from evalstone.scorers.rag import Defined, require_passages, supported_share
from evalstone.types import Score, Skipped


@dataclass(frozen=True, kw_only=True)
class ContextRecall(Defined, ContextScorer):
    """How much of the reference answer the passages support.

        context recall = supported reference claims / reference claims          range [0, scale], higher is better

    It measures the retriever: could the right answer have been written from what was retrieved? `definition` names
    another system's formula, which gives the same number here: they differ in what is counted (sentences, claims) and
    where the score is undefined. Undefined when the reference makes no claim. Two judge calls. Source: Es et al. 2023
    (RAGAS), over sentences; @mastra/evals counts claims, as here.
    """

    name = "context_recall"
    interpretation = (
        (0.9, "the passages hold what the right answer needs"),
        (0.6, "a part of the right answer was not retrieved"),
        (0.0, "most of the right answer was not retrieved"),
    )
    advice = (
        "Look at the claims that no passage supports: is the document in the index at all? If it is, retrieve more "
        "passages, rewrite the query, or cut documents into larger pieces."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("supported / reference claims", supported_share),
        "ragas": Definition("supported / reference claims; ragas takes sentences", supported_share, "NaN"),
        "deepeval": Definition("supported / reference claims; deepeval takes sentences", supported_share, "0"),
        "mastra": Definition("min(1, supported / reference claims)", supported_share, "0"),
        "ragchecker": Definition("supported / reference claims (claim recall)", supported_share),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        require_passages(self)

    async def score(self, ask: Ask, *, reference: str, context: Sequence[str]) -> Score | Skipped:
        claims = await ask(ListClaims(text=reference))
        if not claims:
            return Skipped(self.undefined("the reference makes no claim"))
        verdicts = await verified(ask, claims, context)
        absent = [v.claim for v in verdicts if v.verdict != "supported"]
        reason = f"the passages support {len(verdicts) - len(absent)} of {len(verdicts)} claims of the reference"
        reason = reason_with(reason, ("not retrieved", absent))
        return Score(self.compute(verdicts) * self.scale, self.scale, reason, verdicts)
