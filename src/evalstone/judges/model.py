"""Language models as judges, and the conversation that turns a question into an answer.

`ModelJudge("openai/gpt-5.1")` asks any model behind an OpenAI-compatible endpoint, and the models of other providers
through pydantic-ai (the extra `providers`).
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from evalstone._core.declarations import Range
from evalstone._core.parsing import MAX_REPLY
from evalstone._core.sizes import MOST_RETRIES
from evalstone.errors import JudgeDeclined, JudgeError, PromptTooLong, ReplyError
from evalstone.judges.base import Judge
from evalstone.judges.corrections import beginning, correction, read_completion, sampling_settings
from evalstone.judges.logprobs import alternatives_of, label_probability, probability_of
from evalstone.models.catalog import split_model
from evalstone.models.families import usual_temperature
from evalstone.models.limits import Backoff, TransientError, pay_for_attempt
from evalstone.models.model import LanguageModel
from evalstone.models.prices import context_window
from evalstone.models.provider import ChatMessage, Completion, ReplyForm, RequestSettings
from evalstone.models.refusals import check_whole
from evalstone.models.replies import read_aside
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.questions.ungrounded import UngroundedItems
from evalstone.types import NO_USAGE, Usage, total_cost
from evalstone.types.context_limits import ContextLimits

A = TypeVar("A")

ALTERNATIVES, FEW_ALTERNATIVES = 20, 5
"""The number of alternatives requested for each token. Some endpoints return at most 5."""


class ModelJudge(LanguageModel, Judge):
    """A language model as a judge, named `provider/model`: `ModelJudge("openai/gpt-5.1")`.

    If an endpoint refuses a setting or a reply format, later requests omit it. Answers list such settings in
    `refused_settings`.

    Raises ConfigError for an unknown provider, and for a setting of the wrong type or out of range. `check` raises it
    for a setting that the provider doesn't support.
    """

    temperature: Annotated[float | Literal["auto"] | None, Range(0, 2)] = "auto"

    language: str | None = None
    """The language of the judge's reasons. None uses the language of the judged text."""

    logprobs: bool | None = None
    """Whether to request token probabilities, from which the answer's probability is computed. True requests them for
    every question, False for none. None requests them for questions that use the probabilities of their labels."""

    retries: Annotated[int, Range(0, MOST_RETRIES)] = field(default=3, compare=False)
    """The maximum number of corrections of a malformed reply. The first one shows the model its reply and the error;
    later ones start over."""

    context_window: Annotated[int | None, Range(1)] = None
    """The context window in tokens, including the reply. None uses the value that genai-prices lists. A question that
    doesn't fit is split, or fails if it can't be split."""

    identity_settings: ClassVar[tuple[str, ...]] = (
        *LanguageModel.identity_settings,
        "language",
        "logprobs",
        "context_window",
    )

    def is_usual(self, name: str, value: Any) -> bool:
        if name == "temperature":
            # Recommendations change, so where there is one, the temperature is named even if it is 0.
            return value == 0 == usual_temperature(self.model, self.reasoning_effort)
        return super().is_usual(name, value)

    @property
    def context_limits(self) -> ContextLimits:
        """The limits of one question, computed from the context window and `max_tokens`."""
        window = context_window(*split_model(self.model)) if self.context_window is None else self.context_window
        return ContextLimits.of_window(window, self.max_tokens)

    @property
    def instructions(self) -> str:
        """Text added to the instructions of questions that ask for a reason."""
        return f"Write every reason in {self.language or 'the language of the judged text'}."

    def settings_for(self, question: Question[Any], repeat: int = 0) -> RequestSettings:
        """The settings of a request, with the repetition's seed and the probabilities that the question uses."""
        labels = question.label_probabilities
        logprobs = self.logprobs or (self.logprobs is None and labels is not None)
        alternatives = None if labels is None else FEW_ALTERNATIVES if len(labels.labels) <= 3 else ALTERNATIVES
        return self.request_settings(repeat, logprobs=logprobs, top_logprobs=alternatives if logprobs else None)

    def reported(self, question: Question[Any], refused: Collection[str]) -> tuple[str, ...]:
        """The refused settings of a request that the user chose: probabilities also if the question requires them."""
        labels = question.label_probabilities
        chosen = self.logprobs or (labels is not None and labels.required)
        return tuple(name for name in refused if chosen or name != "logprobs")

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        async with self.opened() as opened:
            opened.check_requests()
            answer = await converse(
                question,
                opened.provider.complete,
                judge=opened.identity,
                settings=self.settings_for(question, repeat),
                retries=self.retries,
                total_timeout=self.total_timeout,
                instructions=self.instructions,
            )
        if not answer.refused_settings:
            return answer
        return replace(answer, refused_settings=self.reported(question, answer.refused_settings))


Complete: TypeAlias = Callable[[Sequence[ChatMessage], ReplyForm | None, RequestSettings], Awaitable[Completion | None]]
"""`ChatProvider.complete`, or the same for a script, which returns None if it has no more replies."""

Read: TypeAlias = Callable[..., tuple[Any, Mapping[str, Any] | None]]
"""As `read_completion`: from a question, a completion, its settings, and whether items may be dropped."""
_DEFAULTS = RequestSettings()


async def converse(
    question: Question[A],
    complete: Complete,
    *,
    judge: str,
    settings: RequestSettings = _DEFAULTS,
    retries: int = 3,
    total_timeout: float = math.inf,
    instructions: str = "",
    read: Read = read_completion,
) -> JudgeAnswer[A]:
    """Ask a model and parse its reply with `read`. All retries happen in this loop.

    After a transient error, the request is sent again, until `total_timeout`. A request that timed out is not sent
    again, because it would time out again. A malformed or truncated reply gets up to `retries` corrections (see
    `correction`). If `Question.doubt` doubts a reply, the question is asked once more, and the new reply is used. If a
    reply to a correction that named ungrounded items, or the last reply, still has a few of them, they are dropped.

    Every error has the usage and cost of all attempts, and the last raw reply. Answers and errors also have the replies
    that were corrected, with what was wrong with them.

    Raises:
        BudgetExceeded: A correction doesn't fit into the budget.
        JudgeDeclined: The model declined to reply. This isn't retried.
        ReplyError: No reply could be parsed. The message is about the last one.
        JudgeError: Any other failure.
    """
    started, usage, reply = time.perf_counter(), NO_USAGE, None
    costs: list[float | None] = []
    """Of the replies."""
    lost: float | None = 0.0
    """Of failed attempts that the endpoint charged for."""
    backoff = Backoff(total_timeout)
    messages = opening = opening_messages(question, instructions)
    first, detail = settings, None
    failure: JudgeError | None = None
    doubtful: JudgeAnswer[A] | None = None
    corrections: list[Mapping[str, str]] = []
    try:
        while True:
            try:
                completion = await complete(messages, question.reply_form, settings)
                if completion is not None:
                    check_whole(judge, messages, completion)
            except TransientError as error:
                usage += _usage_of(error)
                lost = total_cost([lost, error.cost])
                if error.cost != 0:
                    await pay_for_attempt(error.cost, _size(messages))
                await backoff.wait(error)
                continue
            except PromptTooLong as error:
                if failure is None:
                    raise
                # The question alone fits; only the correction is too long. Start over without the earlier reply.
                usage += _usage_of(error)
                costs.append(error.cost)
                if doubtful is not None:
                    return replace(doubtful, usage=usage, cost=total_cost([*costs, lost]))
                if len(costs) > retries or backoff.expired:
                    raise failure from None
                messages, settings = correction(opening, first, question, reply or "", str(failure), len(costs))
                detail = None if settings == first else sampling_settings(settings)
                await pay_for_attempt(costs[-1], _size(messages))
                continue
            if completion is None:
                if doubtful is not None:
                    return replace(doubtful, usage=usage, cost=total_cost([*costs, lost]))
                raise failure or JudgeError(f"{judge} has no answer to {question.kind}")
            backoff.attempts = 0
            completion = with_probabilities(question, completion)
            usage, reply = usage + completion.usage, completion.text[:MAX_REPLY]
            costs.append(completion.cost)
            last = len(costs) > retries or backoff.expired
            try:
                drop = last or isinstance(failure, UngroundedItems)
                size = len(completion.text)
                value, dropped = await read_aside(size, read, question, completion, settings, drop)
                answer = JudgeAnswer(
                    value=value,
                    judge=judge,
                    reply=reply,
                    usage=usage,
                    cost=total_cost([*costs, lost]),
                    seconds=time.perf_counter() - started,
                    probability=completion.probability,
                    alternatives=completion.alternatives,
                    refused_settings=completion.refused_settings,
                    detail={**(detail or {}), **(dropped or {}), **_corrected(corrections)} or None,
                    response_model=completion.model,
                )
                if not (doubt := question.doubt(reply)):
                    return answer
                answer = replace(answer, detail={**(answer.detail or {}), "doubt": doubt})
                if last or doubtful is not None:
                    return answer
                doubtful, failure = answer, ReplyError(doubt)
            except (ReplyError, JudgeDeclined) as error:
                if last:
                    raise
                failure = error
            problem = str(failure)
            corrections = [*corrections, {"reply": beginning(reply), "error": problem}]
            messages, settings = correction(opening, first, question, reply, problem, len(costs))
            detail = None if settings == first else sampling_settings(settings)
            await pay_for_attempt(costs[-1], _size(messages))
    except JudgeError as error:
        # Add usage and cost of the earlier attempts.
        error.usage = usage + _usage_of(error)
        error.cost = total_cost([*costs, lost, error.cost])
        error.seconds = time.perf_counter() - started
        error.reply = reply if error.reply is None else error.reply
        error.corrections = tuple(corrections)
        raise


def opening_messages(question: Question[Any], instructions: str = "") -> list[ChatMessage]:
    """The messages of the first request for a question."""
    system, user = question.render()
    added = instructions if instructions and '"reason"' in question.form else ""
    return [*_system_message(system, added), ChatMessage("user", user)]


@functools.lru_cache(maxsize=512)
def _system_message(system: str, added: str) -> tuple[ChatMessage, ...]:
    """The system message of all questions of a kind; none if it is empty."""
    text = f"{system}\n{added}" if added else system
    return (ChatMessage("system", text),) if text else ()


def _corrected(corrections: list[Mapping[str, str]]) -> Mapping[str, Any]:
    """The corrections as a part of an answer's detail."""
    return {"corrections": corrections} if corrections else {}


def _usage_of(error: JudgeError) -> Usage:
    return error.usage or NO_USAGE


def _size(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.content.encode("utf-8", "replace")) for message in messages)


def with_probabilities(question: Question[Any], completion: Completion) -> Completion:
    """The completion with its probability and the label probabilities computed from its tokens."""
    if not (tokens := completion.tokens):
        return completion
    labels = question.label_probabilities
    alternatives = None if labels is None else alternatives_of(tokens, labels)
    probability = None if labels is None or not alternatives else label_probability(tokens, labels, alternatives)
    probability = probability_of(question, tokens) if probability is None else probability
    return replace(completion, probability=probability, alternatives=alternatives, tokens=())
