"""The base classes of providers: one request to one model, and its reply."""

from __future__ import annotations

import asyncio
import functools
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from evalstone._core.json import content_hash
from evalstone.errors import JudgeDeclined, JudgeRefused, ProviderError, ProviderTimeout
from evalstone.models.catalog import split_model
from evalstone.models.limits import TransientError
from evalstone.types import NO_USAGE, Usage

if TYPE_CHECKING:
    from evalstone.models.model import LanguageModel

T = TypeVar("T")

REFUSALS = 10
"""Refused requests in a row after which the key and the model are checked again."""
PROBE = "Reply with the word ok."
NO_KEY = "no key was sent: set api_key"
"""Advice about HTTP 401 for a request without a key."""
ADD_CREDIT = "add credit to the account or raise its limit"
NO_CREDIT = f"{ADD_CREDIT}; if it reserves whole replies, set max_tokens"
"""What to do if the account or the key has no credit left. Routers refuse what the longest reply might cost."""


@dataclass(frozen=True)
class ChatMessage:
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class RequestSettings:
    """The settings of one request. None uses the provider's default.

    logprobs: request token probabilities. top_logprobs: the number of alternatives requested for each token.
    """

    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    logprobs: bool = False
    top_logprobs: int | None = None


@dataclass(frozen=True, eq=False)
class ReplyForm:
    """The JSON that a reply must be."""

    name: str
    """A short name, such as that of a question's kind. What an endpoint accepts is learned by name."""
    schema: Mapping[str, Any]
    text: str = ""
    """The form in one line, for prompts to models without structured output."""

    @functools.cached_property
    def digest(self) -> str:
        """The hash of the schema."""
        return content_hash(self.schema)


@dataclass(frozen=True)
class Completion:
    """A model's raw reply."""

    text: str
    usage: Usage = NO_USAGE
    cost: float | None = 0.0
    """US dollars; None if unknown."""
    probability: float | None = None
    """The probability that the reply is right, in [0, 1]. If there are `tokens`, it is computed from them."""
    complete: bool = True
    """False if the reply was truncated."""
    alternatives: Mapping[str, float] | None = None
    """The probabilities of the labels that a question asks for. If there are `tokens`, they are computed from them."""
    tokens: Sequence[Mapping[str, Any]] = ()
    """The tokens of the reply with their probabilities, if the provider returns them."""
    refused_settings: tuple[str, ...] = ()
    """Settings that the endpoint refuses, so they were not sent."""
    model: str = ""
    """The model that replied, as named by the provider."""
    read_tokens: int = 0
    """The tokens of the prompt that the model read, as the provider counts them, cached ones included; 0 if unknown."""


class CreditRefused(JudgeRefused):
    """The endpoint wants to be paid first."""

    advice = NO_CREDIT


class AccessRefused(JudgeRefused):
    """HTTP 403 or 404: the key, model or base URL is wrong, or this one request was blocked."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.advice = "check the key, the model's name and the base URL"
        self.status = status

    def __reduce__(self) -> tuple[type[AccessRefused], tuple[str, int]]:
        return type(self), (self.problem, self.status)


class RequestTimeout(TransientError):
    """A request timed out. It may have been processed and charged. busy: whether other requests were in flight."""

    busy = False


def request_timeout(
    host: str, timeout: float, max_tokens: int | None, *, busy: bool = False, writes: bool = True
) -> ProviderTimeout:
    """The error of a request that timed out. It isn't retried: it would time out again, and might be charged twice.

    busy: whether other requests were in flight. writes: whether the model writes text.
    """
    shorter = "set max_tokens" if max_tokens is None else f"lower max_tokens (now {max_tokens})"
    advice = f"raise timeout (now {timeout:g} s)" + (f" or {shorter}" if writes else "")
    message = f"{host} gave no answer within {timeout:g} s: {advice}"
    if busy:
        message += "; other requests were in flight, so a lower concurrency may help"
    return ProviderTimeout(message, cost=None)


class Connection:
    """State shared by all models behind an endpoint, on one event loop. Enter it while it is in use."""

    def __init__(self) -> None:
        self._refusals_left: Counter[str] = Counter()
        self._checks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def accepted(self, model: str) -> None:
        """Record that the endpoint answered, so its key and model are right."""
        self._refusals_left[model] = REFUSALS

    async def refused(
        self, model: str, error: AccessRefused, probe: Callable[[], Awaitable[tuple[Usage, float | None]]]
    ) -> ProviderError:
        """The error of a single request that an endpoint blocks, although the key and the model are right.

        Gateways block some texts, such as SQL. If the endpoint hasn't answered any request yet, or none since ten
        refusals, a short probe checks the key and the model. Raises the probe's JudgeRefused if one of them is wrong.
        """
        usage, cost = NO_USAGE, 0.0
        async with self._checks[model]:
            if not self._refusals_left[model]:
                usage, cost = await probe()
                self.accepted(model)
            self._refusals_left[model] -= 1
        message = f"{error.problem}; other requests with this key and model are answered, so the text may be blocked"
        return ProviderError(message, usage=usage, cost=cost)

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close the connection once nobody uses it."""


_cached_beginning: ContextVar[str] = ContextVar("cached_beginning", default="")


@contextmanager
def caching(beginning: str) -> Generator[None]:
    """Inside this context, requests whose user message has this beginning ask the provider to cache it, where that has
    to be asked for."""
    token = _cached_beginning.set(beginning)
    try:
        yield
    finally:
        _cached_beginning.reset(token)


def cached_beginning() -> str:
    """The beginning of the user message that the provider should cache; empty if there is none."""
    return _cached_beginning.get()


class Provider(ABC):
    """One model of one provider.

    Args:
        connection: What all models behind the endpoint share.
        name: The model.
        timeout: The timeout of a request in seconds.
    """

    writes: ClassVar[bool] = False
    """Whether the model writes text, so that fewer tokens take less time."""

    def __init__(self, connection: Connection, name: str, timeout: float) -> None:
        self.connection, self.name, self.timeout = connection, name, timeout

    @abstractmethod
    async def probe(self) -> tuple[Usage, float | None]:
        """Send a tiny request, and return its usage and cost. Raises JudgeRefused for a wrong key or model."""

    async def sent(self, request: Awaitable[T], max_tokens: int | None = None) -> T:
        """The result of a request.

        Raises:
            TransientError: Another attempt may succeed.
            ProviderTimeout: The request timed out.
            ProviderError: The provider refused the request permanently.
            JudgeRefused: The key or the model is wrong. A request that is blocked by itself is a ProviderError.
        """
        try:
            try:
                result = await request
            except AccessRefused as error:
                raise await self.connection.refused(self.name, error, self.probe) from None
        except RequestTimeout as error:  # of the request, or of the probe
            raise request_timeout(error.host, self.timeout, max_tokens, busy=error.busy, writes=self.writes) from None
        except CreditRefused as error:
            if not self.writes:
                error.advised(ADD_CREDIT)
            raise
        except JudgeDeclined:  # the key and the model are right
            self.connection.accepted(self.name)
            raise
        self.connection.accepted(self.name)
        return result


class ChatProvider(Provider):
    """A language model, which replies to messages."""

    writes = True

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(self.connect(model), split_model(model.model)[1], model.timeout)
        self.model = model

    @abstractmethod
    def connect(self, model: LanguageModel) -> Connection:
        """The connection to the model's endpoint on the running loop."""

    @classmethod
    def check(cls, model: LanguageModel) -> None:
        """Raise ConfigError for a setting that the model doesn't support, or if a library is missing. It is called
        before the run, after the checks that all protocols share."""

    def complete(
        self, messages: Sequence[ChatMessage], form: ReplyForm | None, settings: RequestSettings
    ) -> Coroutine[Any, Any, Completion]:
        """Send one request. It asks for a reply in this form; None is any text.

        Raises:
            JudgeDeclined: The model declined to reply.
            EvalstoneError: What `sent` raises.
        """
        return self.sent(self._complete(messages, form, settings), settings.max_tokens)

    @abstractmethod
    async def _complete(
        self, messages: Sequence[ChatMessage], form: ReplyForm | None, settings: RequestSettings
    ) -> Completion:
        """Send one request.

        Raises:
            RequestTimeout: The request timed out.
            AccessRefused: The endpoint answered with HTTP 403 or 404.
            ProviderError: The response has no reply.
            EvalstoneError: What `complete` raises.
        """
