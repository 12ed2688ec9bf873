"""Language models as judges, and the conversation that turns a question into an answer.

`ModelJudge("openai/gpt-5.1")` asks any model behind an OpenAI-compatible endpoint, and the models of other providers
through pydantic-ai (the extra `providers`).
"""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from evalstone.errors import ConfigError, JudgeDeclined, JudgeError, ReplyError
from evalstone.judges.base import Judge
from evalstone.judges.providers.base import (
    PROVIDERS,
    ChatMessage,
    Completion,
    ModelSettings,
    Provider,
    ReplySchema,
    split_model,
)
from evalstone.judges.providers.limits import NO_LIMITS, Backoff, Limits, TransientError
from evalstone.judges.providers.logprobs import alternatives_of, confidence_of
from evalstone.judges.providers.pricing import context_window, cost_of
from evalstone.judges.settings import Range, Rule, check_settings, is_number
from evalstone.questions.base import DEFAULT_LIMITS, Answer, ContextLimits, Question
from evalstone.types import NO_USAGE, Usage, total_cost

A = TypeVar("A")

ALTERNATIVES = 20
INSTRUCTION_TOKENS = 1500
LONGEST_REPLY = 4096
TOKENS_PER_VERDICT = 80
SAFETY = 0.75


def _are_prices(value: Any) -> bool:
    return value is None or (
        isinstance(value, list | tuple)
        and len(cast("Sequence[Any]", value)) == 2
        and all(is_number(each) and each >= 0 for each in cast("Sequence[Any]", value))
    )


def _are_headers(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(isinstance(text, str) for item in cast("Mapping[Any, Any]", value).items() for text in item)


_PRICES = Rule("None or two numbers of 0 or more, dollars for a million input and output tokens", _are_prices)
_HEADERS = Rule("a mapping of text to text", _are_headers)


@dataclass(frozen=True)
class ModelJudge(Judge):
    """A language model, named `provider/model`.

    A setting, or a form of reply, that an OpenAI-compatible endpoint refuses is left out from then on. Raises
    ConfigError for an unknown provider and for a setting of the wrong kind or out of range; `check` raises it for a
    setting that the provider can't take.
    """

    model: str

    base_url: str | None = None
    """Base URL of an OpenAI-compatible server, in place of the provider's."""

    api_key: str | None = field(default=None, repr=False, compare=False)
    """The key; None takes it from the provider's environment variable."""

    temperature: Annotated[float | None, Range(0, 2)] = 0.0
    seed: int | None = None
    max_tokens: Annotated[int | None, Range(1)] = None
    reasoning_effort: str | None = None
    """Passed on as they are; None leaves a setting to the provider."""

    language: str | None = None
    """The language of the reasons; None for that of the judged text."""

    logprobs: bool = False
    """Ask for token probabilities and take the answer's confidence from them."""

    retries: Annotated[int, Range(0)] = field(default=3, compare=False)
    """How often a malformed reply is shown to the model with its error and asked for again."""

    timeout: Annotated[float, Range(0, exclusive=True)] = field(default=120.0, compare=False)
    """Seconds for one request."""

    total_timeout: Annotated[float, Range(0, exclusive=True)] = field(default=600.0, compare=False)
    """Seconds for one question, waits between attempts included: no attempt begins later."""

    limits: Limits = field(default=NO_LIMITS, compare=False)
    """Limits of its own. Without them the endpoint's refusals teach how much it takes."""

    context_window: Annotated[int | None, Range(1)] = field(default=None, compare=False)
    """Tokens that the model takes in, in place of the listed number. Longer passages are read in parts."""

    prices: Annotated[tuple[float, float] | None, _PRICES] = field(default=None, compare=False)
    """US dollars for a million input and output tokens, in place of the listed ones."""

    headers: Annotated[Mapping[str, str], _HEADERS] = field(
        default_factory=lambda: dict[str, str](), repr=False, compare=False
    )
    """HTTP headers added to every request."""

    def __post_init__(self) -> None:
        check_settings(self)
        split_model(self.model)
        if self.prices is not None:
            # Prices from a file are a list, which can't be compared and hashed.
            object.__setattr__(self, "prices", tuple(self.prices))

    @property
    def identity(self) -> str:
        """The model's name, and every setting that may change its answers."""
        settings = [
            f"{name}={getattr(self, name)}"
            for name, default in (
                ("temperature", 0.0),
                ("seed", None),
                ("max_tokens", None),
                ("reasoning_effort", None),
                ("language", None),
                ("logprobs", False),
            )
            if getattr(self, name) != default
        ]
        url = self.url
        if url != PROVIDERS[self._provider].base_url:
            parts = urlsplit(url)
            settings.insert(0, f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")
        return f"{self.model}({', '.join(settings)})" if settings else self.model

    @property
    def context_limits(self) -> ContextLimits:
        window = context_window(*split_model(self.model)) if self.context_window is None else self.context_window
        return limits_of_window(window, self.max_tokens)

    @property
    def _provider(self) -> str:
        return split_model(self.model)[0]

    @property
    def url(self) -> str:
        """The base URL of the OpenAI-compatible endpoint; empty if the model has none."""
        info = PROVIDERS[self._provider]
        from_environment = (os.environ.get(name) for name in info.base_url_from)
        return (self.base_url or next(filter(None, from_environment), None) or info.base_url).rstrip("/")

    @property
    def key(self) -> str:
        """The provider's key; empty if there is none."""
        variable = PROVIDERS[self._provider].key
        return self.api_key or (os.environ.get(variable, "") if variable else "")

    @property
    def instructions(self) -> str:
        """What is added to every question's instructions."""
        return f"Write every reason in {self.language or 'the language of the judged text'}."

    def check(self) -> None:
        info, url = PROVIDERS[self._provider], self.url
        if url and urlsplit(url).scheme not in ("http", "https"):
            raise ConfigError(f"base_url must start with http:// or https://, not {url!r}")
        if info.key and url in ("", info.base_url) and not self.key:
            raise ConfigError(f"{self.model} needs a key: set the environment variable {info.key}")
        if url:
            return
        self.check_supported()
        from evalstone.judges.providers.pydantic_ai import require  # noqa: PLC0415 - an extra

        require()

    def check_supported(self) -> None:
        """Raise ConfigError for a setting that the provider can't take."""
        for name in () if self.url else PROVIDERS[self._provider].unsupported:
            if getattr(self, name):
                raise ConfigError(f"{self._provider} can't take {name}: leave it out of the judge {self.model}")

    def price(self, usage: Usage) -> float | None:
        provider, model = split_model(self.model)
        return cost_of(usage, provider=provider, model=model, prices=self.prices)

    @property
    def connection(self) -> object | None:
        return self.provider().connection

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.key, *self.headers.values())))

    def warnings(self) -> Mapping[str, int]:
        return self.provider().warnings()

    def opened(self) -> AbstractAsyncContextManager[object]:
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[Provider]:
        with _divided(self.limits)[0].opened(self.identity):
            async with self.provider() as provider:
                yield provider

    def provider(self) -> Provider:
        """The model's provider on the running loop."""
        limits = _divided(self.limits)[1]
        if not (url := self.url):
            from evalstone.judges.providers.pydantic_ai import PydanticAI  # noqa: PLC0415 - an extra

            return PydanticAI(
                self.model,
                api_key=self.api_key,
                headers=self.headers,
                timeout=self.timeout,
                total_timeout=self.total_timeout,
                limits=limits,
                price=self.price,
            )
        from evalstone.judges.providers.openai_compatible import ChatCompletions  # noqa: PLC0415 - aiohttp

        key = self.key
        return ChatCompletions(
            split_model(self.model)[1],
            url,
            {**({"Authorization": f"Bearer {key}"} if key else {}), **self.headers},
            timeout=self.timeout,
            total_timeout=self.total_timeout,
            limits=limits,
            price=self.price,
        )

    def settings_for(self, question: Question[Any], repeat: int = 0) -> ModelSettings:
        """The settings of a request: each repetition with another seed, and the probabilities a question wants."""
        weighed = question.label_probabilities is not None
        return ModelSettings(
            temperature=self.temperature,
            seed=None if self.seed is None else self.seed + repeat,
            max_tokens=self.max_tokens,
            reasoning_effort=self.reasoning_effort,
            logprobs=self.logprobs or weighed,
            top_logprobs=ALTERNATIVES if weighed else None,
        )

    async def answer(self, question: Question[A], repeat: int = 0) -> Answer[A]:
        with _divided(self.limits)[0].opened(self.identity) as limiter:
            limiter.count(self.identity)
            async with self.provider() as provider:
                return await converse(
                    question,
                    provider.complete,
                    judge=self.identity,
                    settings=self.settings_for(question, repeat),
                    retries=self.retries,
                    total_timeout=self.total_timeout,
                    instructions=self.instructions,
                )


@functools.lru_cache(maxsize=256)
def _divided(limits: Limits) -> tuple[Limits, Limits]:
    """The limit on questions, which is the judge's own, and those on requests, which the provider shares out."""
    return Limits(max_requests=limits.max_requests), replace(limits, max_requests=None)


def limits_of_window(window: int | None, max_tokens: int | None = None) -> ContextLimits:
    """How much one question may contain in a context window of this many tokens (None: unknown).

        tokens = 0.75 (window - reply - 1500),   reply = max_tokens, or a quarter of the window, 4096 at most
        items  = reply / 80

    1500 tokens are for instructions and items, 80 for the verdict on an item with its reason, and a quarter is left
    free because tokens are estimated. At least 1 of each, and never more than the defaults of ContextLimits.
    """
    reply = max_tokens or (LONGEST_REPLY if window is None else min(LONGEST_REPLY, window // 4))
    items = max(1, min(DEFAULT_LIMITS.items, reply // TOKENS_PER_VERDICT))
    if window is None:
        return ContextLimits(items=items)
    return ContextLimits(max(1, min(DEFAULT_LIMITS.tokens, int(SAFETY * (window - reply - INSTRUCTION_TOKENS)))), items)


Complete: TypeAlias = Callable[[Sequence[ChatMessage], ReplySchema | None, ModelSettings], Awaitable[Completion | None]]
"""`Provider.complete`, or a script's: None means that it has nothing more to say."""

_DEFAULTS = ModelSettings()


async def converse(
    question: Question[A],
    complete: Complete,
    *,
    judge: str,
    settings: ModelSettings = _DEFAULTS,
    retries: int = 3,
    total_timeout: float = math.inf,
    instructions: str = "",
) -> Answer[A]:
    """Ask a model and read its reply: the one loop that retries.

    After a transient error the request is sent again, until `total_timeout`. A malformed reply, or one that was cut
    off, is shown to the model with its error, `retries` times at most.

    Raises:
        JudgeDeclined: the model declined, to the end.
        ReplyError: no reply was an answer; the last one's error.
        JudgeError: any other failure. All of them have what all attempts took, and the last raw reply.
    """
    spent = _Spent()
    backoff = Backoff(total_timeout)
    messages = opening = opening_messages(question, instructions)
    schema = reply_schema(question)
    failure: JudgeError | None = None
    while True:
        try:
            try:
                completion = await complete(messages, schema, settings)
            except TransientError as error:
                await backoff.wait(error)
                continue
        except JudgeError as error:
            spent.charge(error)
            raise
        if completion is None:
            break
        backoff.attempts = 0
        completion = with_probabilities(question, completion)
        spent.add(completion)
        try:
            value = read_completion(question, completion)
        except (ReplyError, JudgeDeclined) as error:
            failure = error
            if spent.replies > retries or backoff.expired:
                break
            messages = correction_messages(opening, question, completion.text, str(error))
            continue
        return Answer(
            value=value,
            judge=judge,
            reply=completion.text,
            usage=spent.usage,
            cost=total_cost(spent.costs),
            seconds=spent.seconds,
            confidence=completion.confidence,
            alternatives=completion.alternatives,
        )
    raise spent.charge(failure or JudgeError(f"{judge} has no answer to {question.kind}"))


class _Spent:
    """What the attempts at one question took, and the last raw reply."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.usage = NO_USAGE
        self.costs: list[float | None] = []
        self.reply: str | None = None

    @property
    def replies(self) -> int:
        return len(self.costs)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def add(self, completion: Completion) -> None:
        self.usage += completion.usage
        self.costs.append(completion.cost)
        self.reply = completion.text

    def charge(self, error: JudgeError) -> JudgeError:
        """Add all this to an error, beside what its own attempt took."""
        error.usage = self.usage + (error.usage or NO_USAGE)
        error.cost = total_cost([*self.costs, error.cost])
        error.seconds = self.seconds
        error.reply = self.reply if error.reply is None else error.reply
        return error


def reply_schema(question: Question[Any]) -> ReplySchema | None:
    """The JSON schema of a question's reply; None for plain text."""
    return None if question.json_schema is None else ReplySchema(question.kind, question.json_schema)


def opening_messages(question: Question[Any], instructions: str = "") -> list[ChatMessage]:
    """The messages that ask a question for the first time."""
    system, user = question.render()
    system = f"{system}\n{instructions}" if system and instructions else system
    return [ChatMessage("system", system)] * bool(system) + [ChatMessage("user", user)]


def correction_messages(
    opening: list[ChatMessage], question: Question[Any], reply: str, error: str
) -> list[ChatMessage]:
    """The messages that show a model its reply and what is wrong with it, and ask again."""
    form = (
        "the JSON object that was asked for, complete" if question.json_schema is not None else "the answer asked for"
    )
    correction = f"That reply cannot be used: {error}. Reply again with {form}, and nothing else."
    excerpt = reply if len(reply) <= 4000 else reply[:2000] + "\n[…]\n" + reply[-2000:]
    return [*opening, ChatMessage("assistant", excerpt), ChatMessage("user", correction)]


def with_probabilities(question: Question[Any], completion: Completion) -> Completion:
    """The completion with what its tokens' probabilities say: its confidence, and the words that a question weighs."""
    if not (tokens := completion.tokens):
        return completion
    alternatives = (
        None if question.label_probabilities is None else alternatives_of(tokens, question.label_probabilities)
    )
    return replace(completion, confidence=confidence_of(question, tokens), alternatives=alternatives, tokens=())


def read_completion(question: Question[A], completion: Completion) -> A:
    """The answer in a completion. Raises ReplyError, also for a reply that was cut off, and JudgeDeclined."""
    if not completion.complete:
        raise ReplyError("the reply was cut off before its end")
    return question.parse_with_probabilities(completion.text, completion.alternatives)
