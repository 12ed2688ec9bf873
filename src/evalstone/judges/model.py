"""Language models as judges.

`ModelJudge("openai/gpt-5.1")` asks any model behind an OpenAI-compatible endpoint over the thin path in endpoint.py,
and the models of other providers through pydantic-ai (the extra `providers`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from evalstone.errors import CannotAnswerError, EndpointError, UsageError
from evalstone.judges.base import Judge, Reply, Turn, converse
from evalstone.judges.logprobs import Token, alternatives, geometric_mean
from evalstone.judges.prices import cost_of
from evalstone.judges.providers import PROVIDERS, split_model
from evalstone.judges.settings import check_setting
from evalstone.question import Answer, Question
from evalstone.types import Usage

A = TypeVar("A")

FORMATS = ("json_schema", "json_object", "text")
ALTERNATIVES = 20


@dataclass(frozen=True)
class ModelJudge(Judge):
    """A language model, named `provider/model`.

    base_url: of any OpenAI-compatible server. api_key: else the provider's environment variable. temperature, seed,
    max_tokens, reasoning_effort: passed on; None leaves one to the provider. A setting that an endpoint refuses is left
    out from then on. language: of the reasons; None for the language of the judged text. logprobs: ask for token
    probabilities, of which the geometric mean becomes the answer's confidence. retries: corrections of a reply that is
    no answer. timeout: seconds for one request. deadline: seconds for one question, waiting included.
    requests_a_minute, tokens_a_minute: not to be exceeded; without them the endpoint's refusals teach how much it
    takes. price: US dollars for a million input and output tokens, where the listed price is not yours. Raises
    UsageError for an unknown provider, or a setting of the wrong kind or out of range.
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
    requests_a_minute: int | None = field(default=None, compare=False)
    tokens_a_minute: int | None = field(default=None, compare=False)
    price: tuple[float, float] | None = field(default=None, compare=False)
    headers: Mapping[str, str] = field(default_factory=lambda: dict[str, str](), repr=False, compare=False)
    _refused: dict[str, Any] = field(default_factory=lambda: dict[str, Any](), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.init:
                check_setting(each.name, getattr(self, each.name))
        split_model(self.model)
        if self.price is not None:
            # A file's price is a list, which would not be a value.
            object.__setattr__(self, "price", tuple(self.price))

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
    def _provider(self) -> str:
        return split_model(self.model)[0]

    def _url(self) -> str:
        provider = PROVIDERS[self._provider]
        named = (os.environ.get(name) for name in provider.base_url_from)
        return (self.base_url or next(filter(None, named), None) or provider.base_url).rstrip("/")

    def _key(self) -> str:
        variable = PROVIDERS[self._provider].key
        return self.api_key or (os.environ.get(variable, "") if variable else "")

    def check(self) -> None:
        provider = PROVIDERS[self._provider]
        if self._url() and urlsplit(self._url()).scheme not in ("http", "https"):
            raise UsageError(f"base_url must start with http:// or https://, not {self._url()!r}")
        own = not provider.base_url or self._url() == provider.base_url
        if provider.key and own and not self._key():
            raise UsageError(f"{self.model} needs a key: set the environment variable {provider.key}")
        if not self._url():
            from evalstone.judges.pydantic_ai import require  # noqa: PLC0415 - an extra

            require()

    def opened(self) -> AbstractAsyncContextManager[object]:
        return self._endpoint() if self._url() else nullcontext()

    def met(self) -> Mapping[str, int]:
        return dict(self._endpoint().met) if self._url() else {}

    def _endpoint(self) -> Any:
        from evalstone.judges.endpoint import endpoint  # noqa: PLC0415 - aiohttp, which only model judges need

        key = self._key()
        headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **self.headers}
        return endpoint(
            self._url(),
            headers,
            timeout=self.timeout,
            deadline=self.deadline,
            requests_a_minute=self.requests_a_minute,
            tokens_a_minute=self.tokens_a_minute,
        )

    async def answer(self, question: Question[A]) -> Answer[A]:
        manner = f"Write every reason in {self.language or 'the language of the judged text'}."

        async def send(turns: list[Turn]) -> Reply:
            if self._url():
                return await self._send(question, turns)
            from evalstone.judges.pydantic_ai import send as through_library  # noqa: PLC0415 - an extra

            return await through_library(self, question, turns)

        async with self.opened():
            return await converse(question, send, judge=self.identity, retries=self.retries, manner=manner)

    async def _send(self, question: Question[Any], turns: list[Turn]) -> Reply:
        while True:
            payload = self._payload(question, turns)
            try:
                return self._read(question, await self._endpoint().post("/chat/completions", payload))
            except EndpointError as error:
                if not self._give_up_setting(payload, str(error)):
                    raise

    def _payload(self, question: Question[Any], turns: list[Turn]) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "model": split_model(self.model)[1],
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns],
        }
        settings = {
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
            "reasoning_effort": self.reasoning_effort,
            "logprobs": self.logprobs or question.weighed is not None or None,
            "top_logprobs": ALTERNATIVES if question.weighed is not None else None,
        }
        payload.update({k: v for k, v in settings.items() if v is not None and k not in self._refused})
        if "max_tokens" in self._refused and self.max_tokens is not None:
            payload["max_completion_tokens"] = self.max_tokens
        schema, form = question.schema(), self._refused.get("response_format", FORMATS[0])
        if schema is not None and form == "json_schema":
            wanted = {"name": question.kind, "strict": True, "schema": schema}
            payload["response_format"] = {"type": "json_schema", "json_schema": wanted}
        elif schema is not None and form == "json_object":
            payload["response_format"] = {"type": "json_object"}
        return payload

    def _give_up_setting(self, payload: Mapping[str, Any], told: str) -> bool:
        """Leave out, from now on, the setting that a refusal names; whether there was one."""
        if "HTTP 400" not in told and "HTTP 422" not in told:
            return False
        if "response_format" in payload and any(word in told for word in ("response_format", "json_schema", "schema")):
            used = payload["response_format"]["type"]
            self._refused["response_format"] = FORMATS[FORMATS.index(used) + 1]
            return True
        for name in ("temperature", "seed", "max_tokens", "reasoning_effort", "logprobs"):
            if name in payload and name in told:
                self._refused[name] = True
                if name == "logprobs":
                    self._refused["top_logprobs"] = True
                return True
        return False

    def _read(self, question: Question[Any], data: Mapping[str, Any]) -> Reply:
        usage, cost = self._taken(data)
        try:
            choice: Any = data["choices"][0]
            finish = choice.get("finish_reason")
            # What a filter stopped may have no message at all.
            message: Any = (choice.get("message") or {}) if finish == "content_filter" else choice["message"]
            content, refusal = message.get("content"), message.get("refusal")
        except (KeyError, IndexError, TypeError, AttributeError):
            told = f"{self.model} sent no choices: {str(data)[:200]}"
            raise EndpointError(told, usage=usage, cost=cost) from None
        if finish == "content_filter" or (refusal and not content):
            said = str(content or refusal or "")
            why = _line(str(refusal)) if refusal else "a content filter stopped the reply"
            raise CannotAnswerError(f"the model declined: {why}", reply=said, usage=usage, cost=cost)
        logprobs: Mapping[str, Any] = choice.get("logprobs") or {}
        tokens: Sequence[Token] = logprobs.get("content") or ()
        return Reply(
            text=str(content or ""),
            usage=usage,
            cost=cost,
            confidence=geometric_mean(tokens),
            alternatives=alternatives(tokens, question.weighed) if question.weighed else None,
            complete=finish != "length",
        )

    def _taken(self, data: Any) -> tuple[Usage, float | None]:
        """What a response says that it took, and its price; that is unknown when it does not say."""
        told: Any = cast("Mapping[str, Any]", data).get("usage") if isinstance(data, Mapping) else None
        usage = _usage(told)
        provider, model = split_model(self.model)
        return usage, cost_of(usage, provider=provider, model=model, price=self.price) if told else None


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:299] + "…"


def _usage(data: Mapping[str, Any] | None) -> Usage:
    given = data or {}
    details: Mapping[str, Any] = given.get("prompt_tokens_details") or {}
    return Usage(
        input=int(given.get("prompt_tokens") or 0),
        output=int(given.get("completion_tokens") or 0),
        cached=int(details.get("cached_tokens") or 0),
        requests=1,
    )
