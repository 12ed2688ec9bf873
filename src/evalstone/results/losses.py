"""Where low answers of a RAG system are lost: in retrieval, or in generation.

    low       = goodness of the answer's score below 0.5
    retrieval = the answer is low, and its passages lack what it needs
    generation = the answer is low, and its passages had what it needs

The answer's score is the first of `ANSWERS` that the run has, and that of the passages the first of `PASSAGES`.
Passages lack what the answer needs if the goodness of their score is below 0.5. Without a score for the passages, the
place of the loss is unknown; without a score for the answer, it isn't counted as low. Scores of passages that are
judged by the answer, such as context_precision, can't tell: no passage is useful for an answer that is made up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from evalstone.results.summary import ScorerInfo
from evalstone.types import Note, Record, note

if TYPE_CHECKING:
    from evalstone.results.run import Run

Loss: TypeAlias = Literal["retrieval", "generation", "unknown"]
LOW = 0.5
"""The goodness below which an answer is low, and below which its passages lack what it needs."""
ANSWERS = (
    "factual_correctness", "answer_correctness", "answer_similarity", "faithfulness", "hallucination",
    "answer_faithfulness", "fact_check",
)  # fmt: skip
"""The scorers of answers, those that compare with a reference first."""
PASSAGES = ("context_recall", "recall_at_k", "hit_rate_at_k")
"""The scorers of passages that don't depend on the answer."""


@dataclass(frozen=True)
class LossRule:
    """How a run tells where answers are lost: by the scores of these two scorers."""

    answer: ScorerInfo
    passages: ScorerInfo

    @classmethod
    def of(cls, scorers: Iterable[ScorerInfo]) -> LossRule | None:
        """The rule for a run with these scorers; None if one of the two scores is not among theirs."""
        by_name: dict[str, ScorerInfo] = {}
        for info in scorers:
            by_name.setdefault(info.name, info)
        answer = next((by_name[name] for name in ANSWERS if name in by_name), None)
        passages = next((by_name[name] for name in PASSAGES if name in by_name), None)
        return None if answer is None or passages is None else cls(answer, passages)

    def loss(self, answer: float | None, passages: float | None) -> Loss | None:
        """Where an answer is lost by its two scores; None if it isn't low, or has no score."""
        if answer is None or self.answer.goodness(answer) >= LOW:
            return None
        if passages is None:
            return "unknown"
        return "retrieval" if self.passages.goodness(passages) < LOW else "generation"

    def loss_in(self, records: Iterable[Record]) -> Loss | None:
        """Where the answer with these records is lost."""
        values = {record.signature: record.value for record in records}
        return self.loss(values.get(self.answer.signature), values.get(self.passages.signature))


def loss_note(run: Run) -> Note | None:
    """Where the low answers of a run are lost; None if it doesn't have the scorers for that, or has no low answer."""
    rule = LossRule.of(run.scorers)
    if rule is None:
        return None
    passages: dict[int, float | None] = dict(_values(run, rule.passages))
    losses, unscored, answers = Counter[Loss | None](), 0, 0
    for case, value in _values(run, rule.answer):
        answers += 1
        unscored += value is None
        losses[rule.loss(value, passages.get(case))] += 1
    low = sum(losses[loss] for loss in ("retrieval", "generation", "unknown"))
    if not low:
        return None
    return note(
        "losses",
        "fact",
        answers=answers,
        unscored=unscored,
        low=low,
        retrieval=losses["retrieval"],
        generation=losses["generation"],
        unknown=losses["unknown"],
        answer=run.titles[rule.answer.signature],
        passages=run.titles[rule.passages.signature],
        low_limit=rule.answer.scale * LOW,
        lower_is_better=rule.answer.lower_is_better,
        lacking_limit=rule.passages.scale * LOW,
    )


def _values(run: Run, info: ScorerInfo) -> Iterable[tuple[int, float | None]]:
    """The number of each sample (or trial) with its score."""
    rows = run.columns.rows(info.signature)
    return zip(run.columns.cases(rows), run.columns.values(rows), strict=True)
