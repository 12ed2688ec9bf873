"""Language models as judges, and the conversation that turns a question into an answer.

`ModelJudge("openai/gpt-5.1")` asks any model behind an OpenAI-compatible endpoint, and the models of other providers
through pydantic-ai (the extra `providers`).
"""

from __future__ import annotations

import functools
import math
import os
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast
from urllib.parse import urlsplit

from evalstone._core.environment import expanded, expanded_url
from evalstone._core.json import content_hash
from evalstone._core.parsing import MAX_REPLY
from evalstone._core.redaction import header_secrets, is_credential
from evalstone._core.sizes import MOST_RETRIES
from evalstone.errors import ConfigError, JudgeDeclined, JudgeError, PromptTooLong, ReplyError
from evalstone.judges.base import Judge, register_secrets
from evalstone.judges.corrections import correction, read_completion, sampling_settings
from evalstone.judges.providers.base import (
    PROVIDERS,
    ChatMessage,
    Completion,
    ModelSettings,
    Provider,
    cache_write_price,
    context_window,
    cost_of,
    split_model,
    url_parts,
    writes_no_text,
)
from evalstone.judges.providers.families import other_kind, usual_temperature
from evalstone.judges.providers.limits import (
    NO_LIMITS,
    Backoff,
    Limiter,
    Limits,
    TransientError,
    pay_for_attempt,
    shared_limiter,
)
from evalstone.judges.providers.logprobs import alternatives_of, confidence_of, label_confidence
from evalstone.judges.providers.refusals import cut_error
from evalstone.judges.providers.replies import read_aside
from evalstone.judges.settings import Range, Rule, check_settings, is_number
from evalstone.questions.base import JudgeAnswer, Question
from evalstone.questions.limits import ContextLimits
from evalstone.questions.ungrounded import UngroundedItems
from evalstone.types import NO_USAGE, Usage, total_cost

A = TypeVar("A")

ALTERNATIVES, FEW_ALTERNATIVES = 20, 5
"""The number of alternatives requested for each token. Some endpoints return at most 5."""


def _are_prices(value: Any) -> bool:
    return value is None or (
        isinstance(value, list | tuple)
        and len(cast("Sequence[Any]", value)) == 2
        and all(is_number(price) and price >= 0 for price in cast("Sequence[Any]", value))
    )


def _are_headers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(text, str) and _HEADER_NAME.fullmatch(name) and not _CONTROL.search(text)
        for name, text in cast("Mapping[Any, Any]", value).items()
    )


_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f]")
_KEY = re.compile("[!-~]*")


PRICES = Rule("None or two numbers of 0 or more, dollars per million input and output tokens", _are_prices)
HEADERS = Rule("a mapping of names to text without line breaks or other control characters", _are_headers)


@dataclass(frozen=True)
class ModelJudge(Judge):
    """A language model as a judge, named `provider/model`: `ModelJudge("openai/gpt-5.1")`.

    If an endpoint refuses a setting or a reply format, later requests omit it. Answers list such settings in
    `refused_settings`.

    Raises ConfigError for an unknown provider, and for a setting of the wrong type or out of range. `check` raises it
    for a setting that the provider doesn't support.
    """

    model: str

    base_url: str | None = None
    """Base URL of an OpenAI-compatible server, without user name, password or query. None uses the provider's own. In
    this setting, `api_key` and `headers`, `$NAME` and `${NAME}` are environment variables, `$$` is a dollar sign."""

    api_key: str | None = field(default=None, repr=False, compare=False)
    """The API key. None reads it from the provider's environment variable."""

    temperature: Annotated[float | Literal["auto"] | None, Range(0, 2)] = "auto"
    """"auto" is 0, or what the vendor of a reasoning model recommends (`FAMILIES`). The attribute has the result."""

    seed: int | None = None
    max_tokens: Annotated[int | None, Range(1)] = None
    reasoning_effort: str | None = None
    """How long a reasoning model thinks, as the provider names it. Like the three settings above, it is passed to the
    provider unchanged; None uses the provider's default."""

    language: str | None = None
    """The language of the judge's reasons. None uses the language of the judged text."""

    logprobs: bool | None = None
    """Whether to request token probabilities, from which the answer's confidence is computed. True requests them for
    every question, False for none. None requests them for questions that use the probabilities of their labels."""

    retries: Annotated[int, Range(0, MOST_RETRIES)] = field(default=3, compare=False)
    """The maximum number of corrections of a malformed reply. The first one shows the model its reply and the error;
    later ones start over."""

    timeout: Annotated[float, Range(0, exclusive=True)] = field(default=120.0, compare=False)
    """Timeout of one request, in seconds."""

    total_timeout: Annotated[float, Range(0, exclusive=True)] = field(default=600.0, compare=False)
    """Timeout of one question, in seconds, including waits between attempts. No attempt starts after it."""

    max_reply_bytes: Annotated[int, Range(1)] = field(default=8_000_000, compare=False)
    """The maximum size of an HTTP response in bytes, compressed and decompressed. If a response is larger, the question
    fails."""

    limits: Limits = field(default=NO_LIMITS, compare=False)
    """Concurrency and rate limits. Without them, evalstone adapts to the endpoint's HTTP 429 responses."""

    context_window: Annotated[int | None, Range(1)] = None
    """The context window in tokens, including the reply. None uses the value that genai-prices lists. A question that
    doesn't fit is split, or fails if it can't be split."""

    prices: Annotated[tuple[float, float] | None, PRICES] = field(default=None, compare=False)
    """US dollars per million input and output tokens. None uses the prices that genai-prices lists."""

    headers: Annotated[Mapping[str, str], HEADERS] = field(default_factory=dict[str, str], repr=False, compare=False)
    """HTTP headers added to every request."""

    routing: str = field(init=False, repr=False, default="")
    """A hash of the headers that may affect routing: all except those with credentials."""

    def __post_init__(self) -> None:
        check_settings(self)
        split_model(self.model)
        if self.temperature == "auto":
            object.__setattr__(self, "temperature", usual_temperature(self.model, self.reasoning_effort))
        register_secrets(self)
        if self.base_url:
            self.check_url(expanded_url(self.base_url, self._named("base_url")))
        routes = sorted((name.lower(), text) for name, text in self.sent_headers.items() if not is_credential(name))
        if routes:
            object.__setattr__(self, "routing", content_hash(routes))
        if self.prices is not None:
            # A configuration file has a list, which can't be hashed.
            object.__setattr__(self, "prices", tuple(self.prices))

    @property
    def identity(self) -> str:
        """The model's name, and every setting that may change its answers; headers as a 128-bit hash."""
        info = PROVIDERS[split_model(self.model)[0]]
        others = (os.environ.get(variable) for variable in info.library_url_from)
        settings = self._settings
        if (url := self.url or next(filter(None, others), "")) != info.base_url:
            parts = urlsplit(url)
            settings = (f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}", *settings)
        return f"{self.model}({', '.join(settings)})" if settings else self.model

    @functools.cached_property
    def _settings(self) -> tuple[str, ...]:
        """The settings in the identity, without the URL. Cached, because every answer needs them."""
        settings: list[str] = []
        # Recommendations change, so where there is one, the temperature is named even if it is 0.
        recommended = usual_temperature(self.model, self.reasoning_effort) != 0
        for name, default in _IN_IDENTITY:
            value = getattr(self, name)
            if value != default or (name == "temperature" and recommended):
                whole = isinstance(value, float) and value.is_integer()  # 1.0 and 1 are one setting
                settings.append(f"{name}={int(value) if whole else value}")
        if self.routing:
            settings.append(f"headers={self.routing}")
        return tuple(settings)

    @property
    def context_limits(self) -> ContextLimits:
        """The limits of one question, computed from the context window and `max_tokens`."""
        window = context_window(*split_model(self.model)) if self.context_window is None else self.context_window
        return ContextLimits.of_window(window, self.max_tokens)

    @property
    def url(self) -> str:
        """The base URL of the OpenAI-compatible endpoint; empty if there is none. Raises ConfigError for an invalid
        URL."""
        info = PROVIDERS[split_model(self.model)[0]]
        url = expanded_url(self.base_url, self._named("base_url")) if self.base_url else None
        for variable in info.base_url_from:
            url = url or os.environ.get(variable)
        return _readable(url.rstrip("/")) if url else info.base_url

    @property
    def key(self) -> str:
        """The API key; empty if there is none."""
        variable = PROVIDERS[split_model(self.model)[0]].key
        return self.own_key or (os.environ.get(variable, "") if variable else "")

    @property
    def own_key(self) -> str | None:
        """The API key in `api_key`, with its environment variables expanded; None if the setting is missing."""
        return expanded(self.api_key, self._named("api_key")) if self.api_key else self.api_key

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers, with their environment variables expanded."""
        return {name: expanded(text, self._named(f"the header {name}")) for name, text in self.headers.items()}

    def _named(self, setting: str) -> str:
        return f"{setting} of {self.model}"

    @property
    def instructions(self) -> str:
        """Text added to the instructions of questions that ask for a reason."""
        return f"Write every reason in {self.language or 'the language of the judged text'}."

    def check(self) -> None:
        info, url = PROVIDERS[split_model(self.model)[0]], self.url
        self.check_key()
        if url:
            self.check_url(url)
        self.check_kind()
        if info.key and url in ("", info.base_url) and not self.key:
            raise ConfigError(f"{self.model} needs a key: set the environment variable {info.key}")
        if url:
            return
        self.check_supported()
        from evalstone.judges.providers.pydantic_ai import check_model, require  # noqa: PLC0415 - an extra

        require()
        if self.reasoning_effort or self.seed is not None or self.max_tokens or self.headers:
            check_model(self)  # slow: it imports the provider's library

    def check_url(self, url: str) -> None:
        """Raise ConfigError for an unusable base URL. The error doesn't show the URL if it may contain a key."""
        if "?" in url or "#" in url:
            raise ConfigError(f"the base_url of {self.model} has a query or a fragment; use only the part up to /v1")
        if "@" in url:
            hint = "pass the key as api_key or in headers"
            raise ConfigError(f"the base_url of {self.model} has a user name or password; {hint}")
        parts = urlsplit(_readable(url))
        if parts.scheme not in ("http", "https"):
            raise ConfigError(f"base_url must start with http:// or https://, not {url!r}")
        if not parts.hostname:
            raise ConfigError(f"base_url must have a host, as in http://host:8000/v1, not {url!r}")

    def check_key(self) -> None:
        """Raise ConfigError for a key that can't be sent. The error doesn't show its characters."""
        if not _KEY.fullmatch(key := self.key):
            source = "api_key" if self.api_key else PROVIDERS[split_model(self.model)[0]].key
            position = next(number for number, char in enumerate(key, start=1) if not _KEY.fullmatch(char))
            kind = "white space" if key[position - 1].isspace() else "an invalid character"
            raise ConfigError(
                f"the key of {self.model} in {source} contains {kind} at position {position} of {len(key)}"
            )

    def check_kind(self) -> None:
        """Raise ConfigError for a model that doesn't chat, by its name or its listed prices. A model with its own
        `prices` or `base_url` may be any."""
        provider, name = split_model(self.model)
        if self.prices is not None or self.url not in ("", PROVIDERS[provider].base_url):
            return
        hint = "choose a model that chats, or set prices if this one does"
        if kind := other_kind(self.model):
            raise ConfigError(f"{self.model} doesn't chat: by its name, it is {kind}; {hint}")
        if writes_no_text(provider, name):
            kinds = "embedding, decision, transcription and speech models"
            prices = f"it has a listed price for its input, but none for output, like {kinds}"
            raise ConfigError(f"{self.model} doesn't chat: {prices}; {hint}")

    def check_supported(self) -> None:
        """Raise ConfigError for a setting that the provider doesn't support."""
        provider = split_model(self.model)[0]
        for name in () if self.url else PROVIDERS[provider].unsupported:
            if getattr(self, name):
                raise ConfigError(f"{provider} doesn't support {name}: remove it from the judge {self.model}")

    def price(self, usage: Usage, written: int = 0) -> float | None:
        """The cost of these tokens in US dollars; None if the price is unknown.

        written: The input tokens that the provider wrote to its prompt cache, which may cost more.
        """
        if self.prices is not None:
            return (usage.input * self.prices[0] + usage.output * self.prices[1]) * 1e-6
        model = split_model(self.model)
        cost = cost_of(usage, *model)
        return cost if cost is None or not written else cost + written * cache_write_price(*model)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The API key, keys that the provider's library reads from the environment, and headers with credentials."""
        variables = PROVIDERS[split_model(self.model)[0]].library_keys
        return tuple(filter(None, (self.key, *map(os.environ.get, variables), *header_secrets(self.sent_headers))))

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Provider]:
        provider = self.provider()
        async with provider.connection, _UNLIMITED if self.limits.max_requests is None else self._limiter():
            yield provider

    def count_request(self) -> None:
        """Count an HTTP request that is sent now. Raises RequestLimitReached if `max_requests` is reached."""
        if self.limits.max_requests is not None:
            self._limiter().count(self.identity)

    def _limiter(self) -> Limiter:
        """The limiter that counts a run's requests for `max_requests`. Judges of one endpoint share the others."""
        return shared_limiter(self.identity, Limits(max_requests=self.limits.max_requests))

    @property
    def request_limits(self) -> Limits:
        """The limits that judges with the same endpoint share."""
        return self.limits if self.limits.max_requests is None else replace(self.limits, max_requests=None)

    def provider(self) -> Provider:
        """The model's provider on the running loop."""
        if url := self.url:
            from evalstone.judges.providers.openai_compatible import ChatCompletions  # noqa: PLC0415 - aiohttp

            return ChatCompletions(self, url)
        register_secrets(self)  # the environment may have changed
        from evalstone.judges.providers.pydantic_ai import PydanticAI  # noqa: PLC0415 - an extra

        return PydanticAI(self)

    def settings_for(self, question: Question[Any], repeat: int = 0) -> ModelSettings:
        """The settings of a request, with the repetition's seed and the probabilities that the question uses."""
        labels = question.label_probabilities
        logprobs = self.logprobs or (self.logprobs is None and labels is not None)
        return ModelSettings(
            temperature=cast("float | None", self.temperature),
            seed=None if self.seed is None else self.seed + repeat,
            max_tokens=self.max_tokens,
            reasoning_effort=self.reasoning_effort,
            logprobs=logprobs,
            top_logprobs=(FEW_ALTERNATIVES if len(labels.labels) <= 3 else ALTERNATIVES)
            if logprobs and labels
            else None,
        )

    async def answer(self, question: Question[A], repeat: int = 0) -> JudgeAnswer[A]:
        async with self.opened() as provider:
            if self.limits.max_requests is not None:
                self._limiter().check(self.identity)
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
def _readable(url: str) -> str:
    """The URL. Raises ConfigError if its host or port can't be parsed."""
    try:
        url_parts(url)
    except ValueError as error:
        without_user = re.sub("//[^/]*@", "//", url)
        raise ConfigError(f"the base_url {without_user!r} is invalid: {error}") from None
    return url


_IN_IDENTITY = tuple(
    (setting.name, 0.0 if setting.name == "temperature" else setting.default)
    for setting in fields(ModelJudge)
    if setting.name
    in ("temperature", "seed", "max_tokens", "reasoning_effort", "language", "logprobs", "context_window")
)


Complete: TypeAlias = Callable[[Sequence[ChatMessage], Question[Any], ModelSettings], Awaitable[Completion | None]]
"""`Provider.complete`, or the same for a script, which returns None if it has no more replies."""

_DEFAULTS = ModelSettings()
_UNLIMITED = nullcontext()


async def converse(
    question: Question[A],
    complete: Complete,
    *,
    judge: str,
    settings: ModelSettings = _DEFAULTS,
    retries: int = 3,
    total_timeout: float = math.inf,
    instructions: str = "",
) -> JudgeAnswer[A]:
    """Ask a model and parse its reply. All retries happen in this loop.

    After a transient error, the request is sent again, until `total_timeout`. A request that timed out is not sent
    again, because it would time out again. A malformed or truncated reply gets up to `retries` corrections (see
    `correction`). If `Question.doubt` doubts a reply, the question is asked once more, and the new reply is used. If a
    reply to a correction that named ungrounded items, or the last reply, still has a few of them, they are dropped.

    Every error has the usage and cost of all attempts, and the last raw reply.

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
    try:
        while True:
            try:
                completion = await complete(messages, question, settings)
                if completion is not None:
                    check_whole(judge, messages, completion)
            except TransientError as error:
                usage += _usage_of(error)
                lost = total_cost([lost, error.cost])
                if error.cost != 0:
                    pay_for_attempt(error.cost, _size(messages))
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
                pay_for_attempt(costs[-1], _size(messages))
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
                value, dropped = await read_aside(size, read_completion, question, completion, settings, drop)
                answer = JudgeAnswer(
                    value=value,
                    judge=judge,
                    reply=reply,
                    usage=usage,
                    cost=total_cost([*costs, lost]),
                    seconds=time.perf_counter() - started,
                    confidence=completion.confidence,
                    alternatives=completion.alternatives,
                    refused_settings=completion.refused_settings,
                    detail={**(detail or {}), **dropped} if dropped else detail,
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
            messages, settings = correction(opening, first, question, reply, str(failure), len(costs))
            detail = None if settings == first else sampling_settings(settings)
            pay_for_attempt(costs[-1], _size(messages))
    except JudgeError as error:
        # Add usage and cost of the earlier attempts.
        error.usage = usage + _usage_of(error)
        error.cost = total_cost([*costs, lost, error.cost])
        error.seconds = time.perf_counter() - started
        error.reply = reply if error.reply is None else error.reply
        raise


def opening_messages(question: Question[Any], instructions: str = "") -> list[ChatMessage]:
    """The messages of the first request for a question."""
    system, user = question.render()
    system = f"{system}\n{instructions}" if instructions and '"reason"' in question.form else system
    return [ChatMessage("system", system)] * bool(system) + [ChatMessage("user", user)]


def _usage_of(error: JudgeError) -> Usage:
    return error.usage or NO_USAGE


def _size(messages: Sequence[ChatMessage]) -> int:
    return sum(len(message.content.encode("utf-8", "replace")) for message in messages)


def check_whole(judge: str, messages: Sequence[ChatMessage], completion: Completion) -> None:
    """Raise PromptTooLong if the server cut the prompt."""
    spent = {"reply": completion.text[:MAX_REPLY], "usage": completion.usage, "cost": completion.cost}
    prompt = (message.content for message in messages)
    if (error := cut_error(judge, prompt, completion.read_tokens, **spent)) is not None:
        raise error


def with_probabilities(question: Question[Any], completion: Completion) -> Completion:
    """The completion with the confidence and the label probabilities computed from its tokens."""
    if not (tokens := completion.tokens):
        return completion
    labels = question.label_probabilities
    alternatives = None if labels is None else alternatives_of(tokens, labels)
    confidence = None if labels is None or not alternatives else label_confidence(tokens, labels, alternatives)
    confidence = confidence_of(question, tokens) if confidence is None else confidence
    return replace(completion, confidence=confidence, alternatives=alternatives, tokens=())
