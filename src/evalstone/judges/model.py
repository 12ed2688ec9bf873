"""Language models as judges.

`ModelJudge("openai/gpt-5.1")` asks any model behind an OpenAI-compatible endpoint over the thin path in endpoint.py,
and the models of other providers through pydantic-ai (the extra `providers`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from evalstone.errors import ConfigError, JudgeDeclined, ProviderError
from evalstone.judges.base import Judge, Reply, Turn, converse
from evalstone.judges.providers.capabilities import ModelCapabilities
from evalstone.judges.providers.catalog import PROVIDERS, split_model
from evalstone.judges.providers.context_limits import room_for
from evalstone.judges.providers.logprobs import Token, alternatives, confidence_of
from evalstone.judges.providers.pricing import cost_of, window_of
from evalstone.judges.providers.settings import check_setting, is_number
from evalstone.questions.base import Answer, ContextLimits, Question
from evalstone.types import Usage

A = TypeVar("A")

ALTERNATIVES = 20


@dataclass(frozen=True)
class ModelJudge(Judge):
    """A language model, named `provider/model`.

    base_url: of any OpenAI-compatible server. api_key: else the provider's environment variable. temperature, seed,
    max_tokens, reasoning_effort: passed on; None leaves one to the provider. A setting, or a form of reply, that an
    endpoint refuses is left out from then on. language: of the reasons; None for the language of the judged text.
    logprobs: ask for token probabilities, from which the answer's confidence is taken (logprobs.py). retries:
    corrections of a reply that is no answer. timeout: seconds for one request. deadline: seconds for one question,
    waiting included. requests_per_minute, tokens_per_minute: not to be exceeded; without them the endpoint's refusals teach
    how much it takes. context_window: tokens that the model takes in, where the listed number is missing or not yours;
    longer passages are read in parts. prices: US dollars for a million input and output tokens, where the listed ones
    are not yours. Raises ConfigError for an unknown provider, or a setting of the wrong kind or out of range.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False, compare=False)
    temperature: float | None = 0.0
    seed: int | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    language: str | None = None
    logprobs: bool = False
    retries: int = field(default=3, compare=False)
    timeout: float = field(default=120.0, compare=False)
    deadline: float = field(default=600.0, compare=False)
    requests_per_minute: int | None = field(default=None, compare=False)
    tokens_per_minute: int | None = field(default=None, compare=False)
    context_window: int | None = field(default=None, compare=False)
    prices: tuple[float, float] | None = field(default=None, compare=False)
    headers: Mapping[str, str] = field(default_factory=lambda: dict[str, str](), repr=False, compare=False)

    def __post_init__(self) -> None:
        for each in fields(self):
            check_setting(each.name, getattr(self, each.name))
        split_model(self.model)
        if self.prices is not None:
            # A file's prices are a list, which would not be a value.
            object.__setattr__(self, "prices", tuple(self.prices))

    @property
    def identity(self) -> str:
        """The model's name, and every setting that may change its answers."""
        told = [
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
        url = self._url()
        if url != PROVIDERS[self._provider].base_url:
            parts = urlsplit(url)
            told.insert(0, f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")
        return f"{self.model}({', '.join(told)})" if told else self.model

    @property
    def context_limits(self) -> ContextLimits:
        provider, model = split_model(self.model)
        window = window_of(provider, model) if self.context_window is None else self.context_window
        return room_for(window, self.max_tokens)

    @property
    def _provider(self) -> str:
        return split_model(self.model)[0]

    def _url(self) -> str:
        provider = PROVIDERS[self._provider]
        named = (os.environ.get(name) for name in provider.base_url_from)
        return (self.base_url or next(filter(None, named), None) or provider.base_url).rstrip("/")

    def key(self) -> str:
        """The provider's key; empty where there is none."""
        variable = PROVIDERS[self._provider].key
        return self.api_key or (os.environ.get(variable, "") if variable else "")

    @property
    def manner(self) -> str:
        """What is added to every question's instructions."""
        return f"Write every reason in {self.language or 'the language of the judged text'}."

    def check(self) -> None:
        provider = PROVIDERS[self._provider]
        if self._url() and urlsplit(self._url()).scheme not in ("http", "https"):
            raise ConfigError(f"base_url must start with http:// or https://, not {self._url()!r}")
        own = not provider.base_url or self._url() == provider.base_url
        if provider.key and own and not self.key():
            raise ConfigError(f"{self.model} needs a key: set the environment variable {provider.key}")
        if not self._url():
            from evalstone.judges.providers.pydantic_ai import require  # noqa: PLC0415 - an extra

            require()

    def price(self, usage: Usage) -> float | None:
        provider, model = split_model(self.model)
        return cost_of(usage, provider=provider, model=model, prices=self.prices)

    @property
    def connection(self) -> object | None:
        return self.endpoint() if self._url() else None

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.key(), *self.headers.values())))

    def opened(self) -> AbstractAsyncContextManager[object]:
        return self.endpoint() if self._url() else nullcontext()

    def warnings(self) -> Mapping[str, int]:
        return dict(self.endpoint().met) if self._url() else {}

    def endpoint(self) -> Any:
        """The OpenAI-compatible endpoint on the running loop."""
        from evalstone.judges.providers.openai_compatible import endpoint  # noqa: PLC0415 - aiohttp, which only model judges need

        key = self.key()
        headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **self.headers}
        return endpoint(
            self._url(),
            headers,
            timeout=self.timeout,
            deadline=self.deadline,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
        )

    async def answer(self, question: Question[A], repeat: int = 0) -> Answer[A]:
        if repeat and self.seed is not None:
            reseeded = replace(self, seed=self.seed + repeat)
            return replace(await reseeded.answer(question), judge=self.identity)
        async with self.opened() as endpoint:

            async def send(turns: list[Turn]) -> Reply:
                if endpoint is not None:
                    return await self._send(endpoint, question, turns)
                from evalstone.judges.providers.pydantic_ai import send as through_library  # noqa: PLC0415 - an extra

                return await through_library(self, question, turns)

            return await converse(question, send, judge=self.identity, retries=self.retries, manner=self.manner)

    async def _send(self, endpoint: Any, question: Question[Any], turns: list[Turn]) -> Reply:
        refusals = endpoint.refusals(split_model(self.model)[1])
        while True:
            payload = self.payload(question, turns, refusals)
            try:
                return self.reply_of(question, await endpoint.post("/chat/completions", payload))
            except ProviderError as error:
                if not refusals.learn(question, payload, str(error)):
                    raise

    def payload(self, question: Question[Any], turns: list[Turn], refusals: ModelCapabilities) -> dict[str, Any]:
        """The chat completion request that puts the turns to the model, without what was refused."""
        payload: dict[str, Any] = {
            "model": split_model(self.model)[1],
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
        }
        settings = {
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "reasoning_effort": self.reasoning_effort,
            "logprobs": self.logprobs or question.label_probabilities is not None or None,
            "top_logprobs": ALTERNATIVES if question.label_probabilities is not None else None,
        }
        payload.update({k: v for k, v in settings.items() if v is not None and k not in refusals.settings})
        if "max_tokens" in refusals.settings and self.max_tokens is not None:
            payload["max_completion_tokens"] = self.max_tokens
        if (form := refusals.response_format(question)) is not None:
            payload["response_format"] = form
        return payload

    def reply_of(self, question: Question[Any], data: Mapping[str, Any]) -> Reply:
        """The reply that a chat completion holds. Raises JudgeDeclined for a decline, and ProviderError for what is
        no chat completion."""
        usage, cost = self.taken(data)
        try:
            choice: Any = data["choices"][0]
            finish = choice.get("finish_reason")
            # What a filter stopped may have no message at all.
            message: Any = (choice.get("message") or {}) if finish == "content_filter" else choice["message"]
            content, refusal = message.get("content"), message.get("refusal")
        except (KeyError, IndexError, TypeError, AttributeError):
            told = f"{self.model} sent no choices: {str(data)[:200]}"
            raise ProviderError(told, usage=usage, cost=cost) from None
        if finish == "content_filter" or (refusal and not content):
            said = str(content or refusal or "")
            why = _line(str(refusal)) if refusal else "a content filter stopped the reply"
            raise JudgeDeclined(f"the model declined: {why}", reply=said, usage=usage, cost=cost)
        logprobs: Mapping[str, Any] = choice.get("logprobs") or {}
        tokens: Sequence[Token] = logprobs.get("content") or ()
        return Reply(
            text=str(content or ""),
            usage=usage,
            cost=cost,
            confidence=confidence_of(question, tokens),
            alternatives=alternatives(tokens, question.label_probabilities) if question.label_probabilities else None,
            complete=finish != "length",
        )

    def taken(self, data: Any) -> tuple[Usage, float | None]:
        """What a response says that it took, and its price; that is unknown when it does not say."""
        told = _object(_object(data).get("usage"))
        usage = _usage(told)
        provider, model = split_model(self.model)
        known = is_number(told.get("prompt_tokens"))
        return usage, cost_of(usage, provider=provider, model=model, prices=self.prices) if known else None


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:299] + "…"


def _usage(data: Mapping[str, Any]) -> Usage:
    details = _object(data.get("prompt_tokens_details"))
    return Usage(
        input=_count(data.get("prompt_tokens")),
        output=_count(data.get("completion_tokens")),
        cached=_count(details.get("cached_tokens")),
        requests=1,
    )


def _object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _count(value: Any) -> int:
    """A count of tokens; 0 for what is none. A reply may be good though it counts badly."""
    return int(value) if is_number(value) and value > 0 else 0
