"""Fact check: do the documents support every sentence of the response?

    score = min over sentences of max over chunks of s,     s = 1 for a yes, 0 for a no          in [0, 1]
    passed = score >= threshold (0.5); higher is better

s is the probability of a yes where the judge gives one. A judge that weighs whole responses, as the lexical one does,
is asked once, about the whole response, and the score is its probability that the documents support all of it.

One sentence that no chunk supports fails the response. A chunk is all documents together, unless they are longer than
`longest` characters. A sentence is undecided when no chunk supports it and a chunk is undecided on it; the response is,
when no sentence failed and one is undecided, when it has no sentence, and without documents (nothing is asked
then). One judge call a sentence and chunk, or one in all. Source: FactCheckingEvaluator of Spring AI, which asks once
about the whole response; the minimum and the maximum are MiniCheck's (Tang et al. 2024), there over probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, TypeAlias, cast, get_args

from evalstone._core.text import sentences
from evalstone.compat.spring.base import Finding, JudgeEvaluator
from evalstone.compat.spring.request import EvaluationRequest
from evalstone.compat.spring.scorer import ContextEvaluatorScorer
from evalstone.compat.spring.sitting import together
from evalstone.errors import ConfigError
from evalstone.judges.base import Judge
from evalstone.questions.base import Ask, Question, room_of
from evalstone.questions.claims import chunked
from evalstone.questions.verdict import VERDICT_FORM, Choice, ClaimSupported, MiniCheck, Verdict
from evalstone.scorers.base import listed
from evalstone.types import Score, Skipped

Layout: TypeAlias = Literal["instructed", "minicheck"]

_RANK: Mapping[Verdict, int] = {"no": 0, "undecided": 1, "yes": 2}


@dataclass(frozen=True)
class ClaimCheck:
    """One sentence of the response, or all of it, and whether a chunk of the documents supports it.

    probability: that of a yes, in [0, 1], where the judge gives one.
    """

    claim: str
    verdict: Verdict
    reason: str = ""
    probability: float | None = None

    @property
    def support(self) -> float:
        """The probability of a yes; without one, 1 for a yes and 0 for anything else."""
        return float(self.verdict == "yes") if self.probability is None else self.probability


def best(choices: Sequence[Choice]) -> Choice:
    """The choice of the chunk that supports a claim most: yes before undecided before no, then the more probable one.
    At least one is given."""
    return max(choices, key=lambda choice: (_RANK[choice.verdict], choice.probability or 0.0))


def worst(verdicts: Sequence[Verdict]) -> float | None:
    """The score of the claim that is supported least: 0 for any no, else None for any undecided, else 1."""
    if "no" in verdicts:
        return 0.0
    return None if "undecided" in verdicts else 1.0


@dataclass(frozen=True)
class FactCheckingEvaluator(JudgeEvaluator):
    """Passes a response whose every sentence the documents support.

    by_sentence: False asks once about the whole response, as Spring AI does; a judge that weighs whole responses is
    always asked so. longest: characters of documents in one question, at most. layout:
    "minicheck" asks in the two bare lines that Bespoke-MiniCheck was trained on.
    """

    name = "fact_check"
    questions = (ClaimSupported, MiniCheck)
    form = VERDICT_FORM

    _: KW_ONLY
    by_sentence: bool = True
    longest: int = 100_000
    layout: Layout = "instructed"

    @classmethod
    def for_bespoke_minicheck(
        cls, judge: Judge | str | Mapping[str, Any] | None = None, **options: Any
    ) -> FactCheckingEvaluator:
        """For a judge that is Bespoke-MiniCheck: its trained layout, sentence by sentence, plain replies."""
        return cls(judge, layout="minicheck", **options)

    def __post_init__(self) -> None:
        if self.layout not in get_args(Layout):
            raise ConfigError(f"{self.name}: layout must be 'instructed' or 'minicheck', not {self.layout!r}")
        longest = cast(object, self.longest)
        if not isinstance(longest, int) or isinstance(longest, bool) or longest < 1:
            raise ConfigError(f"{self.name}: longest must be at least 1 character, not {longest!r}")
        if not isinstance(cast(object, self.by_sentence), bool):
            raise ConfigError(f"{self.name}: by_sentence must be True or False, not {self.by_sentence!r}")
        super().__post_init__()

    @property
    def kinds(self) -> tuple[type[Question[Any]], ...]:
        return (ClaimSupported,) if self.layout == "instructed" else (MiniCheck,)

    def needs(self, request: EvaluationRequest) -> tuple[str, ...]:
        return ("data_list",)

    async def judged(self, ask: Ask, request: EvaluationRequest) -> Finding:
        whole = request.response_content.strip()
        apart = tuple(dict.fromkeys(sentences(whole)))
        at_once = self.layout == "instructed" and room_of(ask).whole
        asked = bool(apart) or bool(whole and not self.by_sentence)
        claims = apart if self.by_sentence and not at_once else (whole,) * asked
        if not claims:
            return Finding(None, "the response makes no claim")
        checks = tuple(await together(self._check(ask, claim, request.documents) for claim in claims))
        score = worst([check.verdict for check in checks])
        return Finding(score if score is None else min(check.support for check in checks), _reason(checks), checks)

    async def _check(self, ask: Ask, claim: str, documents: tuple[str, ...]) -> ClaimCheck:
        at_once = self.layout == "instructed" and room_of(ask).whole
        parts = (documents,) if at_once else tuple(chunk.texts for chunk in chunked(documents, self.longest))
        choice = best(await together(self._ask(ask, claim, part) for part in parts))
        return ClaimCheck(claim, choice.verdict, choice.reason, choice.probability)

    async def _ask(self, ask: Ask, claim: str, part: tuple[str, ...]) -> Choice:
        if self.layout == "minicheck":
            return await ask(MiniCheck(document="\n".join(part), claim=claim, prompt=self.prompt_for(MiniCheck)))
        return await ask(ClaimSupported(claim=claim, context=part, prompt=self.prompt_for(ClaimSupported)))

    def as_scorer(self, *, scale: float = 1.0, explain: bool = False) -> FactCheck:
        return FactCheck(evaluator=replace(self, judge=None), scale=scale, explain=explain)


def _reason(checks: Sequence[ClaimCheck]) -> str:
    """What the judge said of a single claim; of several, which ones fell."""
    if len(checks) == 1 and checks[0].reason:
        return checks[0].reason
    supported = sum(check.verdict == "yes" for check in checks)
    told = f"{supported} of {len(checks)} claims are supported"
    for verdict, word in (("no", "not supported"), ("undecided", "undecided")):
        fallen = [check.claim for check in checks if check.verdict == verdict]
        told += f"; {word}: {listed(fallen)}" if fallen else ""
    return told + "."


@dataclass(frozen=True, kw_only=True)
class FactCheck(ContextEvaluatorScorer):
    """Whether the passages support every sentence of the answer."""

    name = "fact_check"
    asks = (ClaimSupported,)
    bands = ((0.5, "the passages support every sentence"), (0.0, "a sentence is not supported by the passages"))
    advice = "Read the sentences that are not supported. For the share of supported claims, use faithfulness."

    evaluator: FactCheckingEvaluator = FactCheckingEvaluator()

    async def score(self, ask: Ask, *, output: str, context: Sequence[str]) -> Score | Skipped:
        return await self.found(ask, EvaluationRequest(data_list=context, response_content=output))
