"""Decision models as judges, alone or beside a judge that writes. Verifier models share what stands beside them.

`DecisionJudge("typesafe/jev-latest")` answers closed questions: it gives every possible label a probability, and writes
nothing. `DecisionOrText` sends open questions, such as for a list of claims, to another judge.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar

from pydantic_core import to_json

from evalstone._core.declarations import Range
from evalstone._core.display import joined
from evalstone._core.text import BYTES_PER_TOKEN
from evalstone.errors import ConfigError, JudgeDeclined, JudgeError, ReplyError
from evalstone.judges.base import Judge, JudgeSpec, MemberCalls
from evalstone.judges.composite import Composite
from evalstone.judges.model import converse
from evalstone.judges.parse import parse_member
from evalstone.models.catalog import provider_info, split_model
from evalstone.models.limits import NO_LIMITS, Limits
from evalstone.models.model import Model, protocol_class
from evalstone.models.prices import context_window, only_chats
from evalstone.models.provider import Completion, RequestSettings
from evalstone.models.typed_questions import MOST_OPTIONS
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question, QuestionSpec
from evalstone.questions.claims import ListClaims
from evalstone.questions.decisions import (
    Decided,
    answers,
    as_decisions,
    most_options,
    read_decisions,
    stored_decisions,
    stored_text,
)
from evalstone.questions.statements import ListStatements
from evalstone.types import Usage
from evalstone.types.context_limits import UNLIMITED, ContextLimits

if TYPE_CHECKING:
    from evalstone.models.decisions import DecisionProvider

A = TypeVar("A")

TOKENS_PER_DECISION = 400
"""The instructions and options of one decision have at most about as many tokens."""
SHARE_OF_WINDOW = 4
"""The instructions of the decisions in one request may take this part of the window."""


@dataclass(frozen=True, kw_only=True)
class _Decision(Completion, Generic[A]):
    """A decision model's response as a reply: the text that is stored, and the answer that it stands for."""

    answer: Decided[A]


def _read(_: Question[A], decision: _Decision[A], *__: object) -> tuple[A, Mapping[str, Any] | None]:
    """The answer and its detail, for `converse`."""
    return decision.answer.value, decision.answer.detail


class ClosedJudge(Judge):
    """A judge that answers some closed questions with probabilities, and writes nothing."""

    gap = "writes no text; name a judge that does"
    """What it can't do, and what to do about it."""

    @property
    def spec(self) -> str:
        """How it is named, such as on the command line."""
        return self.identity

    @abstractmethod
    def decides(self, asked: QuestionSpec) -> bool:
        """Whether it can answer questions of a kind, or such a question."""

    def check_questions(self, scorer: str, asked: Iterable[QuestionSpec]) -> None:
        _refuse(scorer, self, [each for each in asked if not self.decides(each)], self)


class DecisionJudge(Model["DecisionProvider"], ClosedJudge):
    """A decision model as a judge, named `provider/model`: `DecisionJudge("typesafe/jev-latest")`.

    It answers closed questions: those whose reply has nothing but labels, which are words from a list, a yes or no, or
    numbers from a short scale (`questions/decisions.py`). All labels of a question are decided in one request. A
    label is the likeliest option; a grade from 0 to 1 is the mean over its levels. The probabilities are the model's
    own: how often they are right is what `calibrate` measures. There is no reason.

    `JudgeAnswer.alternatives` has the probability of each option, `probability` that of the least certain label.
    Open questions raise JudgeDeclined.

    Raises ConfigError for an unknown provider, and for a setting of the wrong type or out of range. `check` raises it
    for a provider whose models write text.
    """

    context_window: Annotated[int | None, Range(1)] = None
    """The context window in tokens. None uses the value that genai-prices lists. A question that doesn't fit is split,
    or fails if it can't be split."""

    identity_settings: ClassVar[tuple[str, ...]] = ("context_window",)

    @property
    def context_limits(self) -> ContextLimits:
        window = context_window(*split_model(self.model)) if self.context_window is None else self.context_window
        if window is None:
            return ContextLimits()
        share = window // SHARE_OF_WINDOW
        longest, items = max(1, window - share), max(1, min(ContextLimits.items, share // TOKENS_PER_DECISION))
        return ContextLimits(min(ContextLimits.tokens, longest), items, longest=longest, window=window)

    @property
    def url(self) -> str:
        """The base URL before `/v1`, however it is written: the path of the protocol follows it."""
        return super().url.removesuffix("/v1")

    def check_kind(self) -> None:
        if not provider_info(self.model).decides:
            raise ConfigError(
                f"{self.model} writes text: it is no decision model; use ModelJudge, or a model such as "
                "typesafe/jev-latest, openai-decisions/gpt-6-luna or systemone/NAME with a base_url"
            )
        is_hosted = self.url == provider_info(self.model).base_url
        if self.prices is None and is_hosted and only_chats(*split_model(self.model)):
            hint = "choose a model that decides, or set prices if this one does"
            raise ConfigError(f"{self.model} doesn't decide: by its listed prices, it only chats; {hint}")

    def decides(self, asked: QuestionSpec) -> bool:
        return answers(asked)

    def estimated_usage(self, question: Question[Any], size: int | None = None) -> Usage:
        if (closed := as_decisions(question)) is None:
            return super().estimated_usage(question, size)
        sizes = [len(to_json(part)) for part in (closed.state, *map(vars, closed.decisions))]
        return Usage(sum(sizes) // BYTES_PER_TOKEN, 0, 0, 1)

    def provider(self) -> DecisionProvider:
        self.check_kind()
        from evalstone.models.decisions import DecisionProvider  # noqa: PLC0415 - aiohttp

        return protocol_class(self.protocol, DecisionProvider)(self)

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        if (closed := as_decisions(question)) is None:
            hint = f"name a judge that does, as in decision({self.model}, text=openai/gpt-5.1)"
            raise JudgeDeclined(f"{self.identity} writes no text, so it can't answer {question.kind}; {hint}")

        async def complete(*_: object) -> _Decision[A]:
            decided = await opened.provider.decide(closed.state, closed.decisions)
            try:
                answer = read_decisions(question, decided.probabilities)
            except ReplyError as error:
                error.usage, error.cost = decided.usage, decided.cost
                raise
            return _Decision(
                stored_text(question, closed, decided.probabilities),
                decided.usage,
                decided.cost,
                probability=answer.probability,
                alternatives=answer.alternatives,
                model=decided.model,
                answer=answer,
            )

        async with self.opened() as opened:
            opened.check_requests()
            return await converse(
                question,
                complete,
                judge=opened.identity,
                settings=RequestSettings(),
                retries=0,
                total_timeout=self.total_timeout,
                read=_read,
            )

    def read(
        self, question: Question[A], reply: str, alternatives: Mapping[str, float] | None
    ) -> tuple[A, Mapping[str, Any] | None]:
        if (answer := stored_decisions(question, reply, asked=True)) is None:
            raise ReplyError(f"the stored answer is not to what is asked for this {question.kind}", reply=reply)
        return answer.value, answer.detail


class SentenceJudge(Judge):
    """Lists the claims and statements of a text by splitting it into sentences: offline, free, without a model.

    Named `sentences`. It splits as the lexical judge does, and raises JudgeDeclined for every other question.
    """

    cacheable = False
    deterministic = True
    note = "claims and statements are the sentences and clauses of the text, as it has them"

    KINDS: ClassVar[tuple[type[Question[Any]], ...]] = (ListClaims, ListStatements)
    NAMES: ClassVar[tuple[str, ...]] = tuple(kind.kind for kind in KINDS)

    @property
    def identity(self) -> str:
        return "sentences@1"

    @property
    def context_limits(self) -> ContextLimits:
        return UNLIMITED

    def check_questions(self, scorer: str, asked: Iterable[QuestionSpec]) -> None:
        if names := list(dict.fromkeys(each.kind for each in asked if each.kind not in self.NAMES)):
            raise ConfigError(
                f"{scorer} asks {joined(names)}, and {self.identity} only splits texts into sentences; name a judge "
                "that decides, as in decision(typesafe/jev-latest, text=sentences)"
            )

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        from evalstone.judges.lexical.answers import answer_to  # noqa: PLC0415 - slow to import, for runs without it

        if not isinstance(question, self.KINDS):
            raise JudgeDeclined(f"{self.identity} only splits texts into sentences; it can't answer {question.kind}")
        started = time.perf_counter()
        value, _, _ = answer_to(question)
        # Nothing about the sentences of a text is unsure, so a cascade keeps them.
        return JudgeAnswer(value=value, judge=self.identity, probability=1.0, seconds=time.perf_counter() - started)


class DecisionOrText(Composite, init=False):
    """What a decision model or a verifier model can answer goes to it, and the rest to a judge that writes.

    `DecisionOrText("typesafe/jev-latest", text="openai/gpt-5.1")`, named `decision(typesafe/jev-latest,
    text=openai/gpt-5.1)`. A decision model or a verifier model that is named as the judge of a run is
    `decision(MODEL, text=sentences)`: claims are the sentences of a text. Scorers with other questions for the second
    judge are then refused before the run.

    Raises ConfigError if `decides` is neither a decision model nor a verifier model.
    """

    decides: ClosedJudge
    """Answers closed questions: a `DecisionJudge`, or those about claims: an `OnnxJudge`."""
    text: Judge
    """Answers all others."""

    def __init__(self, decides: JudgeSpec, text: JudgeSpec = "sentences", *, limits: Limits = NO_LIMITS) -> None:
        judge = parse_member("decides", decides)
        if isinstance(judge, DecisionOrText):  # a model by its name
            judge = judge.decides
        if not isinstance(judge, ClosedJudge):
            models = "a decision model, such as typesafe/jev-latest, or a verifier model, such as onnx:models/nli"
            raise ConfigError(f"decision takes {models}; {judge.identity} is neither")
        object.__setattr__(self, "decides", judge)
        object.__setattr__(self, "text", parse_member("text", text))
        object.__setattr__(self, "limits", limits)
        self.derive(self.decides, self.text)

    @property
    def identity(self) -> str:
        """Both judges' identities."""
        return f"decision({self.decides.identity}, text={self.text.identity})"

    @property
    def description(self) -> str:
        return f"{self.decides.identity} decides, and {self.text.identity} answers the other questions"

    @property
    def context_limits(self) -> ContextLimits:
        return replace(super().context_limits, whole=self.decides.context_limits.whole)

    def check_questions(self, scorer: str, asked: Iterable[QuestionSpec]) -> None:
        rest = [each for each in asked if not self.decides.decides(each)]
        if isinstance(self.text, SentenceJudge):
            _refuse(scorer, self, [each for each in rest if each.kind not in SentenceJudge.NAMES], self.decides)
        else:
            self.text.check_questions(scorer, rest)

    async def decide(self, question: Question[A], ask: MemberCalls) -> JudgeAnswer[A]:
        judge = self.decides if self.decides.decides(question) else self.text
        try:
            answer = await ask(judge, question)
        except JudgeError as error:
            raise self.failure(ask, str(error), [error]) from None
        votes = (answer.detail or {}).get("verdicts")
        detail = {"by": judge.identity, **({"verdicts": votes} if votes else {})}
        combined = self.combined(ask, answer.value, answer.probability, detail, [answer])
        return replace(combined, alternatives=answer.alternatives)


def _refuse(scorer: str, judge: Judge, asked: Iterable[QuestionSpec], decides: ClosedJudge) -> None:
    """Raise ConfigError for questions that a judge can't answer. decides: its model."""
    asked = list(asked)
    for each in asked:
        if (options := most_options(each)) > MOST_OPTIONS:
            raise ConfigError(
                f"{scorer} asks {each.kind} with {options} options, and {decides.spec} takes at most {MOST_OPTIONS}; "
                f"name a judge that writes, as in decision({decides.spec}, text=openai/gpt-5.1)"
            )
    if names := list(dict.fromkeys(each.kind for each in asked)):
        raise ConfigError(
            f"{scorer} asks {joined(names)}, and {judge.identity} {decides.gap}, as in "
            f"decision({decides.spec}, text=openai/gpt-5.1)"
        )
