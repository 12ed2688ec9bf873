"""Evaluators with the interface of Spring AI: they pass or fail one response by a judge's verdict.

Each is a thin adapter for the scorer of the same `name`. It turns a request into a sample, scores it through the same
session, ledger and budget as every run, and compares the score with a threshold. The five scorers are described in
`evalstone.scorers.rag.graded`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias, cast, runtime_checkable

from evalstone._core.declarations import Range, Rule, check_settings
from evalstone._core.guards import is_sequence
from evalstone._core.prompts import Prompt
from evalstone._core.read_as import NOTHING, ReadAs
from evalstone._core.sync import run as run_blocking
from evalstone._core.text import is_blank
from evalstone._core.truth import NoTruthValue
from evalstone._core.values import Value
from evalstone.errors import (
    BudgetExceeded,
    ConfigError,
    DataError,
    JudgeError,
    OutcomeError,
    PromptError,
    ReplyError,
    invalid,
)
from evalstone.judges.base import Judge, JudgeSpec
from evalstone.judges.parse import parse_judge
from evalstone.questions.base import Question
from evalstone.scorers.rag.graded import (
    AnswerCorrectness,
    AnswerFaithfulness,
    AnswerRelevanceGrade,
    FactCheck,
    GradedScorer,
    Layout,
    OnUndecided,
    RelevancyCheck,
    WhenEmpty,
    default_prompt,
)
from evalstone.types import Failed, Record, Sample, Score, Skipped, Usage, reaches, total_cost
from evalstone.types.documents import document_text

__all__ = [
    "AnswerCorrectnessEvaluator",
    "AnswerFaithfulnessEvaluator",
    "AnswerRelevancyEvaluator",
    "EvaluationRequest",
    "EvaluationResponse",
    "Evaluator",
    "FactCheckingEvaluator",
    "JudgeEvaluator",
    "OnError",
    "RelevancyEvaluator",
    "Status",
    "UndecidedError",
]

OnError: TypeAlias = Literal["raise", "keep"]
Status: TypeAlias = Literal["passed", "failed", "undecided", "error"]

CONCURRENCY = 8
_JUDGE = Rule("a Judge or its name", lambda value: isinstance(value, Judge | str | Mapping))


class UndecidedError(ReplyError):
    """The judge did not decide, and the evaluator has on_undecided="raise"."""


@dataclass(frozen=True)
class EvaluationRequest:
    """One response to judge, and the texts to judge it by. Blank text is absent.

    Attributes:
        user_text: The user's question.
        data_list: The documents that the response is based on: texts, or objects or mappings with a `text`, `content`,
            `page_content` or `chunk`, like the documents of Spring AI, LlamaIndex, Haystack and LangChain. Only their
            texts are kept; blank documents and those without text (media) are left out. A single text is one document.
        response_content: The response to judge.
        reference: The correct answer.
        metadata: Anything else; never judged.

    Write Spring's short forms with names: `EvaluationRequest(user_text=…, response_content=…)` and
    `EvaluationRequest(data_list=…, response_content=…)`.

    Raises:
        ConfigError: A field has the wrong type, or there is no response.
    """

    user_text: str = ""
    data_list: Sequence[object] = ()
    # It has a default only because the fields before it have one.
    response_content: str = cast(str, None)
    reference: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __post_init__(self) -> None:
        if cast(object, self.response_content) is None:
            raise ConfigError(
                "response_content is missing: there is nothing to judge; with two values, write "
                "EvaluationRequest(user_text=…, response_content=…) or "
                "EvaluationRequest(data_list=…, response_content=…)"
            )
        for name in ("user_text", "response_content", "reference"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (name == "reference" and value is None):
                raise ConfigError(invalid(name, "text", value, type(value).__name__))
        documents = (self.data_list,) if isinstance(self.data_list, str) else self.data_list
        if not is_sequence(documents):
            raise ConfigError(invalid("data_list", "a list of documents", documents, type(documents).__name__))
        try:
            texts = [document_text(item, f"document {number}") for number, item in enumerate(documents, start=1)]
        except DataError as error:
            raise ConfigError(error) from None
        object.__setattr__(self, "data_list", tuple(text for text in texts if text is not None and not is_blank(text)))

    @property
    def documents(self) -> tuple[str, ...]:
        """The texts of the documents, in order."""
        return cast("tuple[str, ...]", self.data_list)


@dataclass(frozen=True)
class EvaluationResponse(NoTruthValue):
    """The outcome of one evaluation.

    Attributes:
        passed: True, False, or None if it was not decided. None is not a failure: test `passed is True` or `status`.
        score: The score, in [0, 1]; None if there is none.
        feedback: The reason, as text.
        metadata: Details of the evaluation; docs/spring.md lists the keys.

    Raises:
        OutcomeError: The score is not a finite number in [0, 1].
        ConfigError: `passed` is neither a bool nor None.
    """

    passed: bool | None
    score: float | None = None
    feedback: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __post_init__(self) -> None:
        if self.passed is not None and not isinstance(cast(object, self.passed), bool):
            raise ConfigError(invalid("passed", "True, False or None", self.passed))
        score = cast(object, self.score)
        if score is not None and (isinstance(score, bool) or not isinstance(score, int | float)):
            raise OutcomeError(invalid("a score", "a number", score, type(score).__name__))
        if score is not None and not 0 <= score <= 1:
            raise OutcomeError(invalid("an evaluator's score", "in [0, 1]", score))

    @property
    def is_pass(self) -> bool:
        """Whether it passed. Also False if it was not decided; `status` distinguishes the two."""
        return self.passed is True

    @property
    def status(self) -> Status:
        """passed, failed, undecided, or error if the judge gave no usable answer and on_error is "keep"."""
        if self.passed is None:
            return "error" if "error" in self.metadata else "undecided"
        return "passed" if self.passed else "failed"


@runtime_checkable
class Evaluator(Protocol):
    """Anything that passes or fails a response. To write your own, define these two methods."""

    def evaluate(self, request: EvaluationRequest) -> EvaluationResponse: ...

    async def aevaluate(self, request: EvaluationRequest) -> EvaluationResponse: ...


class JudgeEvaluator(Value):
    """An evaluator that asks a judge, through a scorer.

    Attributes:
        judge: A Judge, or its name or table as parse_judge reads it ("openai/gpt-5.1").
        threshold: In (0, 1]; a score that reaches it passes.
        prompt: Your own template, with exactly the placeholders of the scorer's question, in Spring's names or ours, in
            single or double braces; checked here.
        on_undecided: For a reply that is neither yes nor no: "keep" (passed is None), "fail" (a score of 0, and
            metadata["decided"] is False) or "raise" (UndecidedError).
        when_empty: For a request without what the evaluator needs, or with blank text for it, always without a judge
            call: "undecided", or "fail" (a score of 0, and metadata["decided"] is False).
        on_error: "raise" an error of the judge, or "keep" it (status "error").
        ledger: Where answers are stored, so that none is paid for twice. Each call of an evaluate method is then a run
            in it. None stores nothing.
        budget: US dollars that one call of an evaluate method may cost, at most.

    Raises:
        ConfigError: For options out of range.
        PromptError: For a template without the placeholders, or with others.
    """

    scorer: ClassVar[type[GradedScorer]]
    name: ClassVar[str]
    documents_are_reference: ClassVar[bool] = False
    """Whether the documents of a request without a reference are the ground truth, as in Spring AI Alibaba."""

    judge: Annotated[ReadAs[JudgeSpec | None, Judge | None], _JUDGE] = field(default=NOTHING, kw_only=False)
    threshold: Annotated[float, Range(0, 1, exclusive=True)] = 0.5
    prompt: Prompt | str | None = None
    on_undecided: OnUndecided = "keep"
    when_empty: WhenEmpty = "undecided"
    on_error: OnError = "raise"
    ledger: str | Path | None = None
    budget: Annotated[float | None, Range(0)] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name = cls.scorer.name

    def __post_init__(self) -> None:
        check_settings(self, self.name)
        if self.judge is not None:
            object.__setattr__(self, "judge", parse_judge(self.judge))
        if self.prompt is not None:
            plain = replace(self, judge=None, prompt=None).as_scorer()
            template = our_template(self.prompt, plain.questions)
            object.__setattr__(self, "prompt", template)
            object.__setattr__(self, "prompt", self.as_scorer().prompt)
        self.as_scorer()

    def as_scorer(self, *, scale: float = 1.0, explain: bool = False) -> GradedScorer:
        """Return the scorer behind this evaluator, for samples in a run. It is judged by the run's judge."""
        shared = {option.name for option in fields(self)} & {option.name for option in fields(self.scorer)}
        options: dict[str, Any] = {name: getattr(self, name) for name in shared}
        return self.scorer(scale=scale, explain=explain, **options)

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompts that this evaluator may ask with: your own, or those of its questions."""
        return self.as_scorer().prompts()

    def sample(self, request: EvaluationRequest, id: str = "request") -> Sample:
        """Return the sample that the scorer gets for a request."""
        reference = request.reference or ""
        if self.documents_are_reference and is_blank(reference):
            reference = "\n\n".join(request.documents)
        return Sample(
            id=id,
            input=request.user_text,
            output=request.response_content,
            context=request.documents,
            reference=reference,
        )

    def evaluate(self, request: EvaluationRequest) -> EvaluationResponse:
        """Judge one request. Raises ConfigError without a judge or a request, JudgeError unless errors are kept."""
        return run_blocking(self.aevaluate(request))

    def evaluate_all(
        self, requests: Iterable[EvaluationRequest], *, concurrency: int = CONCURRENCY
    ) -> list[EvaluationResponse]:
        """Judge many requests at once. Returns responses in the order of the requests."""
        return run_blocking(self.aevaluate_all(requests, concurrency=concurrency))

    async def aevaluate(self, request: EvaluationRequest) -> EvaluationResponse:
        """`evaluate` for asynchronous code."""
        return (await self.aevaluate_all([request]))[0]

    async def aevaluate_all(
        self, requests: Iterable[EvaluationRequest], *, concurrency: int = CONCURRENCY
    ) -> list[EvaluationResponse]:
        """`evaluate_all` for asynchronous code.

        At most `concurrency` judge calls are in flight, over all requests. The first error that is raised ends the run.
        """
        from evalstone.api import aevaluate  # noqa: PLC0415 - the engine, which building an evaluator does not need
        from evalstone.run.budget import StopSignal  # noqa: PLC0415 - the same

        if self.judge is None:
            raise ConfigError(f"{self.name} has no judge; pass one: {type(self).__name__}(judge=…)")
        samples: list[Sample] = []
        for number, request in enumerate(requests, start=1):
            if not isinstance(request, EvaluationRequest):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(invalid("request", "an EvaluationRequest", request, type(request).__name__))
            samples.append(self.sample(request, str(number)))
        if not samples:
            return []
        scorer = replace(self.as_scorer(), on_undecided="keep") if self.on_undecided == "raise" else self.as_scorer()
        stop, responses, errors = StopSignal(), dict[str, EvaluationResponse](), list[Exception]()

        def note(record: Record) -> None:
            try:
                responses[record.sample_id] = self.response(scorer, record)
            except (JudgeError, OutcomeError) as error:
                errors.append(error)
                stop.request(str(error))

        options: dict[str, Any] = {"judge": self.judge, "ledger": self.ledger, "budget": self.budget}
        run = await aevaluate(samples, scorer, concurrency=concurrency, stop=stop, on_record=note, **options)
        if errors:
            raise errors[0]
        if run.stop_reason:
            raise BudgetExceeded(run.stop_reason)
        return [responses[sample.id] for sample in samples]

    def response(self, scorer: GradedScorer, record: Record) -> EvaluationResponse:
        """Return the response to a request from the record of `as_scorer()` on its `sample`. Raises as `evaluate`."""
        outcome, calls = record.outcome, record.calls
        usage = sum((call.usage for call in calls), Usage())
        cost = total_cost(call.cost for call in calls)
        reply = calls[-1].reply if calls else None
        if isinstance(outcome, Failed) and self.on_error == "raise":
            if any(call.answer is None for call in calls):
                kind = JudgeError if outcome.reply is None else ReplyError
                raise kind(outcome.error, reply=outcome.reply, usage=usage, cost=cost, seconds=record.seconds)
            raise OutcomeError(outcome.error)
        score, evidence = (outcome.value, outcome.evidence) if isinstance(outcome, Score) else (None, ())
        feedback = outcome.reason
        if isinstance(outcome, Skipped) and calls and self.on_undecided == "raise":
            raise UndecidedError(f"{self.name} is undecided: {feedback}", reply=reply)
        prompts = {kind.kind: self.prompt or default_prompt(kind) for kind in scorer.questions}
        metadata: dict[str, Any] = {
            "evaluator": self.name,
            "threshold": self.threshold,
            "decided": score is not None and not (isinstance(evidence, dict) and "undecided" in evidence),
            "judge": cast(Judge, self.judge).identity,
            "prompt": cast(Prompt, prompts[calls[0].question]).fingerprint if calls else None,
            "questions": tuple(call.fingerprint for call in calls),
            "replies": tuple(call.reply for call in calls),
            "probabilities": tuple(call.probability for call in calls),
            "usage": usage,
            "cost": cost,
            "evidence": evidence,
            "seconds": record.seconds,
            **({"error": outcome.error} if isinstance(outcome, Failed) else {}),
        }
        passed = None if score is None else reaches(score, self.threshold)
        response = EvaluationResponse(passed, score, feedback, metadata)
        return replace(response, metadata={**metadata, "status": response.status})


class RelevancyEvaluator(JudgeEvaluator):
    """Passes a response that answers the user's text in agreement with the documents."""

    scorer = RelevancyCheck


class FactCheckingEvaluator(JudgeEvaluator):
    """Passes a response whose every sentence the documents support.

    Attributes:
        by_sentence: False asks once about the whole response, as Spring AI does; so does a judge that weighs whole
            responses, always.
        longest: Characters of documents in one question, at most.
        layout: "minicheck" asks in the two bare lines that Bespoke-MiniCheck was trained on.
    """

    scorer = FactCheck

    by_sentence: bool = True
    longest: int = 100_000
    layout: Layout = "instructed"

    @classmethod
    def for_bespoke_minicheck(cls, judge: JudgeSpec | None = None, **options: Any) -> FactCheckingEvaluator:
        """Return an evaluator for Bespoke-MiniCheck as the judge: its trained layout, one sentence at a time."""
        return cls(judge, layout="minicheck", **options)


class AnswerCorrectnessEvaluator(JudgeEvaluator):
    """Passes a response that says what the reference answer says on everything the user asked for.

    Without a reference the documents take its place, as in Spring AI Alibaba, whose request has no field for it.
    """

    scorer = AnswerCorrectness
    documents_are_reference = True


class AnswerFaithfulnessEvaluator(JudgeEvaluator):
    """Passes a response that sticks to the documents."""

    scorer = AnswerFaithfulness

    threshold: float = 0.75


class AnswerRelevancyEvaluator(JudgeEvaluator):
    """Passes a response that addresses the user's text or, with a reference answer, agrees with it.

    Without a reference, the documents take its place: in Spring AI Alibaba, they contain the ground truth here.
    """

    scorer = AnswerRelevanceGrade
    documents_are_reference = True

    threshold: float = 0.75


# Spring's names for our placeholders. Spring AI Alibaba passes the reference as context, so `context` is last there.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "question": ("query", "user_text", "input"),
    "answer": ("response", "student_answer", "actual_output", "response_content", "output"),
    "context": ("document", "documents", "data_list"),
    "document": ("context", "documents", "data_list"),
    "claim": ("response", "response_content"),
    "reference": ("correct_answer", "expected_output", "reference_output", "reference_answer", "context"),
}
_BRACES = {
    True: re.compile(r"(\{\{\s*)([A-Za-z_][A-Za-z0-9_]*)(\s*\}\})"),
    False: re.compile(r"((?<![\\{])\{\s*)([A-Za-z_][A-Za-z0-9_]*)(\s*\})"),
}


def our_template(prompt: Prompt | str, kinds: Sequence[type[Question[Any]]]) -> Prompt | str:
    """Return a template with evalstone's names in its placeholders, for the kind of question that it fits best.

    A text is read with single or double braces, whichever fits better. Raises PromptError, with the missing and the
    unknown placeholders as they are written.
    """
    text = prompt if isinstance(prompt, str) else prompt.template
    if not text.strip():
        raise PromptError("the template is empty")
    styles = (True, False) if isinstance(prompt, str) else (True,)
    readings = [_Reading(text, doubled, kind) for doubled in styles for kind in kinds]
    reading = min(readings, key=lambda reading: (len(reading.missing), not reading.names, len(reading.extra)))
    reading.check()
    # With single braces, a name in double braces is text in single braces, as in Python's format strings.
    escaped = text if reading.doubled else _BRACES[True].sub(r"\\{\2\\}", text)
    renamed = _BRACES[reading.doubled].sub(lambda match: match[1] + reading.names[match[2]] + match[3], escaped)
    if isinstance(prompt, str):
        return renamed
    return replace(prompt, template=renamed, passages=tuple(reading.names.get(name, name) for name in prompt.passages))


class _Reading:
    """A template read with double or single braces: its names, and the missing and unknown placeholders."""

    def __init__(self, text: str, doubled: bool, kind: type[Question[Any]]) -> None:
        self.text, self.doubled, self.kind = text, doubled, kind
        self.placeholders = placeholders = default_prompt(kind).placeholders
        self.names = {match[2]: self._our_name(match[2]) for match in _BRACES[doubled].finditer(text)}
        self.missing = sorted(set(placeholders) - set(self.names.values()) - set(kind.optional))
        self.extra = sorted(name for name, ours in self.names.items() if ours not in placeholders)

    def _our_name(self, name: str) -> str:
        known = (placeholder for placeholder in self.placeholders if name in ALIASES.get(placeholder, ()))
        return name if name in self.placeholders else next(known, name)

    def _braced(self, name: str) -> str:
        return "{{" + name + "}}" if self.doubled else "{" + name + "}"

    def check(self) -> None:
        """Raise PromptError unless the template has exactly the placeholders, under our names or Spring's."""
        problems: list[str] = []
        if self.missing:
            springs = any(name not in self.placeholders for name in self.names)
            aliases = [f" (or {self._braced(ALIASES[m][0])})" if springs and m in ALIASES else "" for m in self.missing]
            shown = [self._braced(name) + alias for name, alias in zip(self.missing, aliases, strict=True)]
            problems.append(f"the template lacks {', '.join(shown)}")
        other = _Reading(self.text, not self.doubled, self.kind)
        if strays := [other._braced(name) for name, ours in other.names.items() if ours in self.missing]:
            style, read = ("single", "double") if self.doubled else ("double", "single")
            verb = "stands" if len(strays) == 1 else "stand"
            problems.append(f"{', '.join(strays)} {verb} in {style} braces, where placeholders are read in {read} ones")
        if self.extra:
            aliases = [alias for name in self.missing for alias in ALIASES.get(name, ())]
            hints: list[str] = []
            for name in self.extra:
                near = difflib.get_close_matches(name.lower(), [*self.placeholders, *aliases], n=1, cutoff=0.5)
                known = ", ".join(map(self._braced, near or sorted(self.placeholders)))
                hints.append(f"{self._braced(name)}; {f'did you mean {known}?' if near else f'known: {known}'}")
            noun = "a placeholder" if len(self.extra) == 1 else "placeholders"
            problems.append(f"the template has {noun} that nothing fills: {'; '.join(hints)}")
        if problems:
            raise PromptError("; ".join(problems))
