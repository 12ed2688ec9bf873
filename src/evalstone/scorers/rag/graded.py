"""Scorers from one verdict or one grade on a whole answer, with a threshold from which an answer passes.

A verdict is worth 1 for a yes and 0 for a no; a grade is the judge's number in [0, 1]. The scorers that count claims or
statements instead (faithfulness, answer_relevancy, factual_correctness) show which part of an answer is at fault.
"""

from __future__ import annotations

import asyncio
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from evalstone._core.declarations import Range
from evalstone._core.display import part_of
from evalstone._core.prompts import Prompt
from evalstone._core.text import sentences
from evalstone.errors import JudgeDeclined, PromptError, ReplyError
from evalstone.questions.base import Ask, Question, context_limits_of
from evalstone.questions.explanation import EXPLAIN
from evalstone.questions.grade import Grade, GradeAgainstReference, GradeGrounding, GradeRelevance
from evalstone.questions.parts import Chunk, Space, check_count
from evalstone.questions.verdict import (
    AgreesWithContext,
    ClaimSupported,
    CorrectAgainstReference,
    MiniCheck,
    YesNoUndecided,
    YesNoVerdict,
    best_choice,
)
from evalstone.scorers.base import Scorer
from evalstone.scorers.reasons import reason_with
from evalstone.scorers.sources import ContextScorer, TextSource
from evalstone.types import Score, Skipped

Q = TypeVar("Q", bound=Question[Any])

OnUndecided: TypeAlias = Literal["keep", "fail", "raise"]
WhenEmpty: TypeAlias = Literal["undecided", "fail"]
Layout: TypeAlias = Literal["instructed", "minicheck"]

NO_PASSAGES = "there are no passages"


@dataclass(frozen=True)
class Undecided:
    """The evidence of a sample that was scored 0 for want of a verdict. undecided: the judge's answer, if any."""

    undecided: Any = None


class GradedScorer(TextSource, ABC):
    """A scorer from one verdict or grade on a whole answer.

    Attributes:
        threshold: The share of the scale that an answer needs to pass, above 0 and at most 1. It doesn't change scores.
        prompt: A custom template with exactly the placeholders of the scorer's question, in single or double braces.
        on_undecided: What to do if the judge answers neither yes nor no, or declines: "keep" skips the sample, "fail"
            gives it 0, "raise" raises ReplyError.
        when_empty: What to do, without a judge call, if a required field is missing or blank, or there are no passages:
            "undecided" skips the sample, "fail" gives it 0.

    Raises:
        ConfigError: An option is out of range.
        PromptError: The placeholders of the template are missing or unknown.
    """

    excluded_from_signature: ClassVar[tuple[str, ...]] = (*Scorer.excluded_from_signature, "prompt")

    threshold: Annotated[float, Range(0, 1, exclusive=True)] = 0.5
    prompt: Prompt | str | None = None
    on_undecided: OnUndecided = "keep"
    when_empty: WhenEmpty = "undecided"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prompt is not None:
            try:
                kind, prompt = own_prompt(self.prompt, self.questions)
            except PromptError as error:
                raise PromptError(f"{self.name}: prompt: ", error) from None
            object.__setattr__(self, "prompt", prompt)
            object.__setattr__(self, "questions", (kind,))

    def prompts(self) -> tuple[Prompt, ...]:
        if not isinstance(self.prompt, Prompt):
            return super().prompts()
        return (self.prompt, EXPLAIN) if self.explain else (self.prompt,)

    def with_prompt(self, question: Q) -> Q:
        """Return the question with the custom template, if there is one."""
        return question if self.prompt is None else replace(question, prompt=self.prompt)  # type: ignore[type-var]

    def lacking(self, reason: str) -> Score | Skipped:
        return Score(0.0, reason, evidence=Undecided()) if self.when_empty == "fail" else Skipped(reason)

    def undecided(self, reason: str, answer: Any = None, *, reply: str | None = None) -> Score | Skipped:
        """Return the outcome of a sample on which the judge reached no verdict."""
        if self.on_undecided == "raise":
            raise ReplyError(f"{self.name} is undecided: {reason}", reply=reply)
        if self.on_undecided == "fail":
            return Score(0.0, f"undecided, counted as failed: {reason}", evidence=Undecided(answer))
        return Skipped(reason)

    async def graded(self, ask: Ask, question: Question[Any]) -> Score | Skipped:
        """Ask for a verdict or a grade and return its score."""
        try:
            answer: YesNoVerdict | Grade = await ask(self.with_prompt(question))
        except JudgeDeclined as error:
            return self.undecided(str(error), reply=error.reply)
        if isinstance(answer, Grade):
            value, result = answer.score, f"{answer.score:g}"
        else:
            value, result = float(answer.verdict == "yes"), answer.verdict
        if result == "undecided":
            return self.undecided(answer.reason or "the judge is undecided and gave no reason", answer)
        reason = answer.reason or f"the judge answered {result} and gave no reason"
        return Score(value * self.scale, reason, evidence=answer)


def default_prompt(kind: type[Question[Any]]) -> Prompt:
    """The default prompt of a kind of question."""
    return kind.prompt  # type: ignore[attr-defined]


def own_prompt(prompt: Prompt | str, kinds: Sequence[type[Question[Any]]]) -> tuple[type[Question[Any]], Prompt]:
    """Return the kind of question that a template fits, and the template as a prompt.

    Raises PromptError, about the first kind, for a template that fits none.
    """
    errors: list[PromptError] = []
    for kind in kinds:
        default = default_prompt(kind)
        names = default.placeholders
        try:
            if isinstance(prompt, str):
                return kind, Prompt.parse(prompt, placeholders=names, optional=kind.optional, fenced=default.fenced)
            prompt.check(names, kind.optional)
            return kind, prompt
        except PromptError as error:
            errors.append(error)
    raise errors[0]


class RelevancyCheck(GradedScorer, ContextScorer):
    """Whether the answer addresses the question in agreement with the passages.

        relevancy check = 1 for a yes, 0 for a no          range [0, scale], higher is better

    An answer that declines gets a yes if the passages don't say what was asked for. A system that always declines
    therefore scores 1 if its retriever finds nothing. Undefined when the judge answers neither yes nor no, for a blank
    question, and without passages. One judge call.
    Source: RelevancyEvaluator of Spring AI, the same question in our words.
    """

    name = "relevancy_check"
    questions = (AgreesWithContext,)
    interpretation = (
        (1.0, "the answer agrees with the passages"),
        (0.0, "the answer does not agree with the passages"),
    )
    advice = "Read the judge's reason. A missing passage is a retrieval problem; an unsupported sentence, the model's."

    async def score(self, ask: Ask, *, input: str, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return self.lacking(NO_PASSAGES)
        return await self.graded(ask, AgreesWithContext(question=input, answer=output, context=tuple(context)))


class AnswerCorrectness(GradedScorer):
    """Whether the answer says what the reference answer says.

        answer correctness = 1 for a yes, 0 for a no          range [0, scale], higher is better

    Undefined when the judge answers neither yes nor no, and for a blank question or reference. One judge call.
    Source: AnswerCorrectnessEvaluator of Spring AI Alibaba, which asks for agreement with the context.
    """

    name = "answer_correctness"
    questions = (CorrectAgainstReference,)
    interpretation = (
        (1.0, "the answer is correct according to the reference"),
        (0.0, "the answer is not correct according to the reference"),
    )
    advice = "Compare the answer with the reference: is the answer wrong, or is the reference too narrow?"

    async def score(self, ask: Ask, *, input: str, output: str, reference: str) -> Score | Skipped:
        return await self.graded(ask, CorrectAgainstReference(question=input, answer=output, reference=reference))


class AnswerFaithfulness(GradedScorer, ContextScorer):
    """A judge's grade for how faithful the answer is to the passages.

        answer faithfulness = the judge's grade          range [0, scale], higher is better

    The judge is asked for 1, 0.75, 0.5, 0.25 or 0, or, with a custom template, for any number from 0 to 1. 0.75 is the
    grade of an answer in which only unimportant details go beyond the passages. An answer that asserts nothing gets 1,
    so a system that always declines scores 1: read the score next to one of whether questions are answered, such as
    answer_relevancy. A grade that is not a number in [0, 1] is sent back for correction, then Failed. Undefined when
    the judge declines, and without passages. One judge call. Source: AnswerFaithfulnessEvaluator of Spring AI Alibaba,
    which passes any grade above 0.
    """

    name = "answer_faithfulness"
    questions = (GradeGrounding,)
    interpretation = (
        (0.75, "at most unimportant details go beyond the passages"),
        (0.5, "something important is in no passage"),
        (0.0, "most of the answer is not supported by the passages"),
    )
    advice = "To see which claims are unsupported, use faithfulness: it lists them, with the passages that decide each."

    threshold: Annotated[float, Range(0, 1, exclusive=True)] = 0.75

    async def score(self, ask: Ask, *, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return self.lacking(NO_PASSAGES)
        return await self.graded(ask, GradeGrounding(answer=output, context=tuple(context)))


class AnswerRelevanceGrade(GradedScorer):
    """A judge's grade for how well the answer addresses the question, or matches the reference.

        answer relevance grade = the judge's grade          range [0, scale], higher is better

    With a reference, the answer is graded against it. Without one, the grade only says how well the answer addresses
    the question, and a wrong answer can still address it. These are different measures: don't mix them in one mean. A
    custom template selects the measure by its placeholders; if it has a reference, every sample needs one. The judge is
    asked for 1, 0.75, 0.5, 0.25 or 0, or, with a custom template, for any number from 0 to 1. A grade that is not a
    number in [0, 1] is sent back for correction, then Failed. Undefined when the judge declines, and for a
    blank question. One judge call. Source: AnswerRelevancyEvaluator of Spring AI Alibaba, which passes any grade above
    0.
    """

    name = "answer_relevance_grade"
    questions = (GradeRelevance, GradeAgainstReference)
    interpretation = (
        (0.75, "the answer gives the main point"),
        (0.5, "the answer gives part of it"),
        (0.0, "the main point is missing"),
    )
    advice = "To see which statements are off topic, use answer_relevancy: it lists them."

    threshold: Annotated[float, Range(0, 1, exclusive=True)] = 0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.prompt, Prompt) and "reference" in self.prompt.placeholders:
            object.__setattr__(self, "required_fields", ("input", "output", "reference"))

    async def score(self, ask: Ask, *, input: str, output: str, reference: str = "") -> Score | Skipped:
        by_reference = bool(reference)
        if isinstance(self.prompt, Prompt):
            by_reference = "reference" in self.prompt.placeholders
        if not by_reference:
            return await self.graded(ask, GradeRelevance(question=input, answer=output))
        return await self.graded(ask, GradeAgainstReference(question=input, answer=output, reference=reference))


@dataclass(frozen=True)
class ClaimCheck:
    """One sentence of the answer, or all of it, and whether a chunk of the passages supports it.

    Attributes:
        probability: The probability of a yes, in [0, 1], if the judge returns one.
    """

    claim: str
    verdict: YesNoUndecided
    reason: str = ""
    probability: float | None = None

    @property
    def support(self) -> float:
        """The probability of a yes; without one, 1 for a yes and 0 for anything else."""
        return float(self.verdict == "yes") if self.probability is None else self.probability


def lowest_support(checks: Sequence[ClaimCheck]) -> float | None:
    """The lowest support of a claim; None if no claim failed and one is undecided."""
    verdicts = {check.verdict for check in checks}
    if "undecided" in verdicts and "no" not in verdicts:
        return None
    return min(check.support for check in checks)


class FactCheck(GradedScorer, ContextScorer):
    """Whether the passages support every sentence of the answer.

        fact check = min over sentences of max over chunks of s,     s = 1 for a yes, 0 for a no
        range [0, scale], higher is better

    s is the probability of a yes if the judge returns one. A judge that scores whole answers, such as the lexical
    judge, is asked once about the whole answer. The score is then its probability that the passages support all of it.

    A sentence that asserts nothing counts as supported, so a system that always declines scores 1: read the score next
    to one of whether questions are answered, such as answer_relevancy.

    An answer fails if no chunk supports one of its sentences. A chunk is all passages together, unless they exceed
    `longest` characters or the judge's context window. A sentence is undecided if no chunk supports it and at least one
    chunk is undecided. Undefined when no sentence failed and one is undecided, when the answer has no sentence, and
    without passages. One judge call for each sentence and chunk, or one in total. All but the first read the passages
    from the provider's prompt cache, where it has one. Source: FactCheckingEvaluator of
    Spring AI, which asks once about the whole answer; the minimum and the maximum are from MiniCheck (Tang et al.
    2024), where they are taken over probabilities.

    Attributes:
        by_sentence: False asks once about the whole answer, as Spring AI does.
        longest: The maximum number of characters of passages in one question.
        layout: "minicheck" asks in the two-line format that Bespoke-MiniCheck was trained on.
    """

    name = "fact_check"
    questions = (MiniCheck, ClaimSupported)
    interpretation = ((0.5, "the passages support every sentence"), (0.0, "at least one sentence is not supported"))
    advice = "Read the sentences that are not supported. For the share of supported claims, use faithfulness."

    by_sentence: bool = True
    longest: Annotated[int, Range(1)] = 100_000
    layout: Layout = "instructed"

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", (MiniCheck if self.layout == "minicheck" else ClaimSupported,))
        super().__post_init__()

    async def score(self, ask: Ask, *, output: str, context: Sequence[str]) -> Score | Skipped:
        if not context:
            return self.lacking(NO_PASSAGES)
        answer = output.strip()
        around = sentences_around(sentences(answer))
        claims = tuple(around)
        whole = self.layout == "instructed" and context_limits_of(ask).whole
        if whole or not self.by_sentence:
            claims = (answer,) if claims or (answer and not self.by_sentence) else ()
        if not claims:
            return self.undecided("the response makes no claim")
        chunks = [Chunk(tuple(context))] if whole else Space(self.longest, measure=len).chunks(context)
        try:
            checks = tuple(
                await asyncio.gather(*(self._check(ask, claim, around.get(claim, ""), chunks) for claim in claims))
            )
        except JudgeDeclined as error:
            return self.undecided(str(error), reply=error.reply)
        value = lowest_support(checks)
        if value is None:
            return self.undecided(_reason(checks), checks)
        return Score(value * self.scale, _reason(checks), evidence=checks)

    async def _check(self, ask: Ask, claim: str, around: str, chunks: Sequence[Chunk]) -> ClaimCheck:
        questions = [
            MiniCheck(document="\n".join(chunk.texts), claim=claim)
            if self.layout == "minicheck"
            else ClaimSupported(claim=claim, context=chunk.texts, sentences_around=around)
            for chunk in chunks
        ]
        check_count(questions[0], len(questions))
        choice = best_choice(await asyncio.gather(*(ask(self.with_prompt(question)) for question in questions)))
        return ClaimCheck(claim, choice.verdict, choice.reason, choice.probability)


def sentences_around(sentences: Sequence[str]) -> dict[str, str]:
    """The sentences before and after each distinct sentence, at its first occurrence."""
    around: dict[str, str] = {}
    for index, sentence in enumerate(sentences):
        neighbors = (*sentences[max(0, index - 1) : index], *sentences[index + 1 : index + 2])
        around.setdefault(sentence, " […] ".join(neighbors))
    return around


def _reason(checks: Sequence[ClaimCheck]) -> str:
    """The judge's reason for a single claim; for several, which ones fail."""
    if len(checks) == 1 and checks[0].reason:
        return checks[0].reason
    return reason_with(
        f"{part_of(sum(check.verdict == 'yes' for check in checks), len(checks), 'claim')} supported",
        ("not supported", [check.claim for check in checks if check.verdict == "no"]),
        ("undecided", [check.claim for check in checks if check.verdict == "undecided"]),
    )
