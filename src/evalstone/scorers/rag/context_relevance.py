"""Context relevance, usage and statement relevancy: what the passages have to do with the question and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, cast

from evalstone._core.declarations import Range, check_settings
from evalstone._core.display import part_of
from evalstone._core.values import NamesArguments
from evalstone.questions.base import Ask
from evalstone.questions.relevance import LEVELS, JudgePassageStatements, PassageRatings, RatePassages, RelevanceLevel
from evalstone.scorers.base import share
from evalstone.scorers.definitions import OURS, REQUEST, DefinedText, Definition
from evalstone.scorers.rag import passage_numbers, require_passages
from evalstone.scorers.reasons import listed, reason_with
from evalstone.scorers.sources import ContextScorer, TextSource
from evalstone.types import Score, Skipped

WEIGHTS: Mapping[RelevanceLevel, float] = {"high": 1.0, "medium": 0.7, "low": 0.3, "none": 0.0}


@dataclass(frozen=True, kw_only=True)
class Penalties(metaclass=NamesArguments):
    """The penalties of context relevance.

    Attributes:
        unused: For each unused passage of level high.
        missing: For each missing piece of information.
        missing_limit: The most that missing information costs in total.
    """

    unused: Annotated[float, Range(0)] = 0.1
    missing: Annotated[float, Range(0)] = 0.15
    missing_limit: Annotated[float, Range(0)] = 0.5

    def __post_init__(self) -> None:
        check_settings(self, type(self).__name__)

    def of(self, ratings: PassageRatings) -> tuple[float, float]:
        """The penalties for unused passages and for missing information."""
        unused = sum(r.level == "high" and not r.used for r in ratings.passages) * self.unused
        return unused, min(len(ratings.missing) * self.missing, self.missing_limit)


def relevance(ratings: PassageRatings, weights: Mapping[RelevanceLevel, float], penalties: Penalties) -> float:
    """max(0, mean weight of the levels - both penalties), for at least one rating."""
    base = sum(weights[r.level] for r in ratings.passages) / len(ratings.passages)
    unused, missing = penalties.of(ratings)
    return max(0.0, base - unused - missing)


class ContextRelevance(DefinedText, ContextScorer):
    """How relevant the passages are to the question, minus penalties for unused and missing information.

        base    = mean over passages of: high 1, medium 0.7, low 0.3, none 0
        unused  = 0.1 for each passage of level high that the answer did not use
        missing = 0.15 for each piece of information that no passage has, at most 0.5
        context relevance = max(0, base - unused - missing)          range [0, scale], higher is better

    With an empty list of passages, nothing irrelevant was retrieved: the score is the full scale, and the reason says
    so. Undefined when the judge rates no passage. One judge call. Source: @mastra/evals.

    Attributes:
        penalties: The penalties `unused` and `missing`, and `missing_limit`, the most that missing information costs.
        high: The weight of a passage of level high.
        medium: The weight of a passage of level medium.
        low: The weight of a passage of level low.
        none: The weight of a passage of level none.
    """

    name = "context_relevance"
    version = 2
    questions = (RatePassages,)
    interpretation = (
        (0.8, "the passages fit the question"),
        (0.5, "some passages do not help, or something is missing"),
        (0.2, "mostly off topic"),
        (0.0, "the passages do not help with the question"),
    )
    advice = (
        "Many low or none: improve retrieval, or split documents into smaller chunks. High but unused: the model "
        "overlooks them; put them first, or pass fewer. Missing information: extend the index or the query."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("max(0, base - unused - missing)"),
        "mastra": Definition("the same; blank texts are judged", blank=("input", "output"), sides=REQUEST),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    penalties: Penalties | Mapping[str, float] = field(default_factory=Penalties)
    high: Annotated[float, Range(0, 1)] = WEIGHTS["high"]
    medium: Annotated[float, Range(0, 1)] = WEIGHTS["medium"]
    low: Annotated[float, Range(0, 1)] = WEIGHTS["low"]
    none: Annotated[float, Range(0, 1)] = WEIGHTS["none"]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_passages(self)

    async def score(self, ask: Ask, *, input: str, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return Score(self.scale, "No passages: nothing irrelevant was retrieved.")
        ratings = await ask(RatePassages(question=input, answer=output, context=tuple(context)))
        weights: Mapping[RelevanceLevel, float] = {level: getattr(self, level) for level in LEVELS}
        penalties = cast(Penalties, self.penalties)
        value = relevance(ratings, weights, penalties) * self.scale
        return Score(value, _reason(ratings, penalties), evidence=ratings)


def _reason(ratings: PassageRatings, penalties: Penalties) -> str:
    parts: list[str] = []
    for level in LEVELS:
        if numbers := [str(r.passage) for r in ratings.passages if r.level == level]:
            parts.append(f"{level}: passage {', '.join(numbers)}")
    used = [str(r.passage) for r in ratings.passages if r.used]
    parts.append(f"used: {', '.join(used)}" if used else "none was used")
    for_unused, for_missing = penalties.of(ratings)
    if unused := [str(r.passage) for r in ratings.passages if r.level == "high" and not r.used]:
        parts.append(f"-{for_unused:.2g} for high but unused: {', '.join(unused)}")
    if ratings.missing:
        parts.append(f"-{for_missing:.2g} for missing: {listed(ratings.missing)}")
    return "; ".join(parts) + "."


class ContextUsage(DefinedText, ContextScorer):
    """How many of the passages are used in the answer.

        context usage = passages used / passages          range [0, scale], higher is better

    A passage is used if the answer repeats, rewords or draws on something in it. Undefined without passages. One judge
    call, shared with context_relevance. Source: @mastra/evals 0.13, where it is called contextual recall; today's
    context_recall uses the reference answer instead.
    """

    name = "context_usage"
    questions = (RatePassages,)
    interpretation = (
        (0.8, "nearly every passage was used"),
        (0.4, "some passages were not used"),
        (0.0, "most passages were not used"),
    )
    advice = (
        "Unused passages that are relevant were overlooked: put them first, or pass fewer. Unused passages that are "
        "irrelevant waste tokens: retrieve fewer, or rerank. context_relevance shows which are which."
    )
    definitions: ClassVar[Mapping[str, Definition]] = {
        "evalstone": Definition("passages used / passages"),
        "mastra": Definition("the same; blank texts are judged", undefined="0", blank=("input", "output")),
    }
    definition: Literal["evalstone", "mastra"] = OURS

    async def score(self, ask: Ask, *, input: str, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return self.undefined("there are no passages")
        ratings = (await ask(RatePassages(question=input, answer=output, context=tuple(context)))).passages
        reason = passage_numbers("used", [(r.passage, r.used) for r in ratings])
        return Score(share([r.used for r in ratings]) * self.scale, reason, evidence=ratings)


class ContextStatementRelevancy(ContextScorer, TextSource):
    """How much of the passages is relevant to the question.

        context statement relevancy = relevant statements / statements          range [0, scale]

    Higher is better. context_relevance rates whole passages; this also sees how much of a good passage is off topic.
    Undefined without passages, or when the judge finds no statement in them. One judge call.
    Source: @mastra/evals 0.13 (ContextRelevancy), after deepeval's contextual relevancy.
    """

    name = "context_statement_relevancy"
    questions = (JudgePassageStatements,)
    interpretation = (
        (0.7, "the passages stick to the question"),
        (0.4, "about half is off topic"),
        (0.0, "mostly off topic"),
    )
    advice = "Split documents into smaller chunks, so that each passage has less off-topic text; then rerank."

    async def score(self, ask: Ask, *, input: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return Skipped("there are no passages")
        statements = await ask(JudgePassageStatements(question=input, context=tuple(context)))
        if not statements:
            return Skipped("the judge found no statement in the passages")
        off_topic = [s.statement for s in statements if not s.relevant]
        reason = f"{part_of(len(statements) - len(off_topic), len(statements), 'statement')} relevant to the question"
        reason = reason_with(reason, ("off topic", off_topic))
        return Score(share([s.relevant for s in statements]) * self.scale, reason, evidence=statements)
