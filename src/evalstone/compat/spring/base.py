"""What an evaluator is: one judged question on a request, a threshold, and a rule for what is not decided."""

from __future__ import annotations

import asyncio
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, cast, get_args, runtime_checkable

from evalstone._core.prompts import Prompt
from evalstone._core.sync import run
from evalstone.compat.spring.request import EvaluationRequest
from evalstone.compat.spring.response import EvaluationResponse
from evalstone.compat.spring.sitting import Sitting, together
from evalstone.compat.spring.template import default_prompt, own_prompt
from evalstone.errors import ConfigError, JudgeDeclined, JudgeError, ReplyError
from evalstone.judges.base import Judge
from evalstone.judges.parse import parse_judge
from evalstone.questions.base import Ask, Question
from evalstone.scorers.base import Scorer

OnUndecided: TypeAlias = Literal["keep", "raise", "fail"]
WhenEmpty: TypeAlias = Literal["undecided", "fail", "ask"]
OnError: TypeAlias = Literal["raise", "keep"]

CONCURRENCY = 8
FIELDS = {"user_text": "a user text", "data_list": "documents", "reference": "a reference"}


class UndecidedError(ReplyError):
    """The judge did not decide, and the evaluator has on_undecided="raise"."""


@runtime_checkable
class Evaluator(Protocol):
    """Anything that passes or fails a response. To write your own, define these two methods."""

    def evaluate(self, request: EvaluationRequest) -> EvaluationResponse: ...

    async def aevaluate(self, request: EvaluationRequest) -> EvaluationResponse: ...


@dataclass(frozen=True)
class Finding:
    """What the judged question came to. score: in [0, 1]; None when it was not decided.

    decided: False also where the evaluator's rules made a score of what was not decided.
    """

    score: float | None
    reason: str
    evidence: Any = ()
    decided: bool = True


@dataclass(frozen=True)
class JudgeEvaluator(ABC):
    """An evaluator that asks a judge.

    judge: who is asked: a Judge, or its name or table as parse_judge reads it ("openai/gpt-5.1"). threshold: in (0, 1];
    a score that reaches it passes. prompt: your own template, with exactly the placeholders of the evaluator's
    question, in Spring's names or ours, in single or double braces; checked here. on_undecided: what becomes of a reply
    that is neither yes nor no: "keep" (passed is None), "fail" (a score of 0, and metadata["decided"] is False) or
    "raise" (UndecidedError). when_empty: what becomes of a request without what the evaluator needs: "undecided" or
    "fail", both without a judge call, or "ask". on_error: whether a JudgeError is raised or kept (status
    "error"). Raises ConfigError for options out of range and PromptError for the template.
    """

    name: ClassVar[str]
    questions: ClassVar[tuple[type[Question[Any]], ...]]
    form: ClassVar[str]

    judge: Judge | str | Mapping[str, Any] | None = None
    _: KW_ONLY
    threshold: float = 0.5
    prompt: Prompt | str | None = None
    on_undecided: OnUndecided = "keep"
    when_empty: WhenEmpty = "undecided"
    on_error: OnError = "raise"

    @abstractmethod
    async def judged(self, ask: Ask, request: EvaluationRequest) -> Finding:
        """Ask the evaluator's question, and do the arithmetic on the answer."""

    @abstractmethod
    def needs(self, request: EvaluationRequest) -> tuple[str, ...]:
        """The fields of this request without which there is nothing to ask."""

    @abstractmethod
    def as_scorer(self, *, scale: float = 1.0, explain: bool = False) -> Scorer:
        """This evaluator as a scorer of samples. The judge is the run's, not this evaluator's."""

    def __post_init__(self) -> None:
        if self.judge is not None:
            object.__setattr__(self, "judge", self._named_judge(self.judge))
        threshold = cast(object, self.threshold)
        number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
        if not (number and math.isfinite(self.threshold) and 0 < self.threshold <= 1):
            raise ConfigError(f"{self.name}: threshold must be above 0 and at most 1, not {threshold!r}")
        for option, allowed in (("on_undecided", OnUndecided), ("when_empty", WhenEmpty), ("on_error", OnError)):
            if getattr(self, option) not in get_args(allowed):
                told = " or ".join(repr(value) for value in get_args(allowed))
                raise ConfigError(f"{self.name}: {option} must be {told}, not {getattr(self, option)!r}")
        if self.prompt is not None:
            object.__setattr__(self, "prompt", own_prompt(self.prompt, self.kinds, self.form))

    def _named_judge(self, judge: object) -> Judge:
        if not isinstance(judge, Judge | str | Mapping):
            raise ConfigError(f"{self.name}: judge must be a Judge or its name, not {type(judge).__name__}: {judge!r}")
        return parse_judge(cast("Judge | str | Mapping[str, Any]", judge))

    @property
    def kinds(self) -> tuple[type[Question[Any]], ...]:
        """The kinds of question that this evaluator may ask."""
        return self.questions

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompts that this evaluator may ask with: your own, or those of its questions."""
        if self.prompt is not None:
            return (cast(Prompt, self.prompt),)
        return tuple(default_prompt(kind) for kind in self.kinds)

    def prompt_for(self, kind: type[Question[Any]]) -> Prompt:
        """The prompt that this evaluator puts a kind of question with."""
        return default_prompt(kind) if self.prompt is None else cast(Prompt, self.prompt)

    async def finding(self, ask: Ask, request: EvaluationRequest) -> Finding:
        """What the judge finds, under the evaluator's rules for empty requests and undecided replies."""
        absent = [FIELDS[name] for name in self.needs(request) if not _present(getattr(request, name))]
        if absent and self.when_empty != "ask":
            reason = f"{self.name} needs {' and '.join(absent)}; nothing was asked"
            return Finding(0.0 if self.when_empty == "fail" else None, reason, decided=False)
        reply: str | None = None
        try:
            found = await self.judged(ask, request)
        except JudgeDeclined as error:
            reply, found = error.reply, Finding(None, str(error))
        if found.score is not None:
            return found
        if self.on_undecided == "raise":
            raise UndecidedError(f"{self.name} is undecided: {found.reason}", reply=reply)
        if self.on_undecided == "fail":
            return replace(found, score=0.0, reason=f"undecided, counted as failed: {found.reason}", decided=False)
        return replace(found, decided=False)

    def evaluate(self, request: EvaluationRequest) -> EvaluationResponse:
        """Judge one request. Raises ConfigError without a judge or a request, JudgeError as on_error says."""
        return run(self.aevaluate(request))

    def evaluate_all(
        self, requests: Iterable[EvaluationRequest], *, concurrency: int = CONCURRENCY
    ) -> list[EvaluationResponse]:
        """Judge many requests at once; responses in the order of the requests."""
        return run(self.aevaluate_all(requests, concurrency=concurrency))

    async def aevaluate(self, request: EvaluationRequest) -> EvaluationResponse:
        """`evaluate` for code that is asynchronous itself."""
        return (await self.aevaluate_all([request]))[0]

    async def aevaluate_all(
        self, requests: Iterable[EvaluationRequest], *, concurrency: int = CONCURRENCY
    ) -> list[EvaluationResponse]:
        """`evaluate_all` for code that is asynchronous itself.

        concurrency: judge calls under way at any time, at most, over all requests. The first error that is raised ends
        the others.
        """
        judge, asked = self._checked(requests, concurrency)
        limit = asyncio.Semaphore(concurrency)
        async with judge.opened():
            return await together(self._respond(Sitting(judge, limit), request) for request in asked)

    def _checked(
        self, requests: Iterable[EvaluationRequest], concurrency: int
    ) -> tuple[Judge, Sequence[EvaluationRequest]]:
        if self.judge is None:
            raise ConfigError(f"{self.name} has no judge; pass one: {type(self).__name__}(judge=…)")
        if concurrency < 1:
            raise ConfigError(f"concurrency must be at least 1, not {concurrency}")
        asked = tuple(requests)
        for request in asked:
            if not isinstance(request, EvaluationRequest):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"request must be an EvaluationRequest, not {type(request).__name__}")
        judge = cast(Judge, self.judge)
        judge.check()
        return judge, asked

    async def _respond(self, sitting: Sitting, request: EvaluationRequest) -> EvaluationResponse:
        started = time.perf_counter()
        failure: JudgeError | None = None
        try:
            found = await self.finding(sitting, request)
        except UndecidedError:
            raise
        except JudgeError as error:
            if self.on_error == "raise":
                raise
            failure, found = error, Finding(None, str(error), decided=False)
        passed = None if found.score is None else found.score >= self.threshold
        metadata = {
            "evaluator": self.name,
            "threshold": self.threshold,
            "decided": found.decided,
            **sitting.told(failure),
            "evidence": found.evidence,
            "seconds": time.perf_counter() - started,
        }
        response = EvaluationResponse(passed, found.score, found.reason, metadata)
        return replace(response, metadata={**metadata, "status": response.status})


def _present(value: str | Sequence[str] | None) -> bool:
    return bool(value.strip() if isinstance(value, str) else value)
