"""Providers without an OpenAI-compatible endpoint, through pydantic-ai (the extra `providers`).

Only this module imports that library, and only when such a provider is asked.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalstone.errors import ConfigError, JudgeDeclined, MissingDependency, ProviderError, ProviderTimeout
from evalstone.judges.providers.base import ChatMessage, Completion, ModelSettings, Provider, ReplySchema, split_model
from evalstone.judges.providers.limits import Limits, TransientError, shared_limiter
from evalstone.types import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings as LibrarySettings

BYTES_PER_TOKEN = 4
RETRYABLE = frozenset({408, 409, 425, 429})


def require() -> None:
    """Raise MissingDependency unless pydantic-ai is installed."""
    if importlib.util.find_spec("pydantic_ai") is None:
        raise MissingDependency("pydantic-ai", "providers")


class PydanticAI(Provider):
    """A model of Anthropic, Google, Bedrock or Cohere.

    name: `provider/model`. price: US dollars for a number of tokens. model: a model of the library, in place of the one
    that the name stands for.
    """

    def __init__(
        self,
        name: str,
        *,
        api_key: str | None,
        headers: Mapping[str, str],
        timeout: float,
        total_timeout: float,
        limits: Limits,
        price: Callable[[Usage], float | None],
        model: Model | None = None,
    ) -> None:
        require()
        self.name, self.api_key, self.headers, self.price = name, api_key, headers, price
        self.timeout, self.total_timeout, self.limits = timeout, total_timeout, limits
        self._model = model

    @property
    def connection(self) -> object:
        return _retried()

    def warnings(self) -> Mapping[str, int]:
        return dict(_retried())

    async def complete(
        self, messages: Sequence[ChatMessage], json_schema: ReplySchema | None, settings: ModelSettings
    ) -> Completion:
        from pydantic_ai import direct, exceptions  # noqa: PLC0415 - an extra

        model = self._model or _shared_model(self.name, self.api_key)
        if settings.reasoning_effort and not model.profile.get("supports_thinking"):
            raise ConfigError(f"{self.name} can't take reasoning_effort: leave it out of the judge")
        limiter = shared_limiter((split_model(self.name)[0], self.api_key), self.limits)
        tokens = sum(len(message.content.encode("utf-8", "replace")) for message in messages) // BYTES_PER_TOKEN
        try:
            sent_at = await limiter.admit(tokens, until=time.monotonic() + self.total_timeout)
        except TimeoutError:
            raise ProviderTimeout(f"{self.name} asks everyone to wait for too long") from None
        try:
            response = await direct.model_request(
                model,
                _messages(messages),
                model_settings=self._settings(settings),
                model_request_parameters=_parameters(json_schema, model),
            )
        except (exceptions.ModelAuthenticationError, exceptions.ModelNotFoundError, exceptions.UserError) as error:
            raise ConfigError(f"{self.name}: {error}") from None
        except exceptions.ModelHTTPError as error:
            if error.status_code not in RETRYABLE and error.status_code < 500:
                raise ProviderError(f"{self.name}: {error}") from None
            _retried()[f"HTTP {error.status_code}"] += 1
            if error.status_code == 429:
                limiter.refused(sent_at, None)
            raise TransientError(f"HTTP {error.status_code}: {error}", host=self.name) from None
        except exceptions.ModelAPIError as error:
            _retried()["broken connections"] += 1
            raise TransientError(str(error), host=self.name) from None
        except exceptions.UnexpectedModelBehavior as error:
            raise ProviderError(f"{self.name}: {error}") from None
        else:
            limiter.answered()
        finally:
            limiter.release()
        return self._completion(response)

    def _settings(self, settings: ModelSettings) -> LibrarySettings:
        from pydantic_ai.settings import ModelSettings as LibrarySettings  # noqa: PLC0415

        values: dict[str, Any] = {
            "temperature": settings.temperature,
            "seed": settings.seed,
            "max_tokens": settings.max_tokens,
            "thinking": settings.reasoning_effort,
            "extra_headers": dict(self.headers) or None,
            "timeout": self.timeout,
            "max_retries": 0,  # the conversation with the judge retries
        }
        return LibrarySettings(**{name: value for name, value in values.items() if value is not None})

    def _completion(self, response: ModelResponse) -> Completion:
        usage = Usage(
            input=response.usage.input_tokens or 0,
            output=response.usage.output_tokens or 0,
            cached=response.usage.cache_read_tokens or 0,
            requests=1,
        )
        cost = self.price(usage)
        if response.finish_reason == "content_filter":
            message = "the model declined: a content filter stopped the reply"
            raise JudgeDeclined(message, reply=response.text, usage=usage, cost=cost)
        return Completion(response.text or "", usage, cost, complete=response.finish_reason != "length")


def _messages(messages: Sequence[ChatMessage]) -> list[ModelMessage]:
    from pydantic_ai.messages import (  # noqa: PLC0415
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )

    parts = {"system": SystemPromptPart, "user": UserPromptPart}
    return [
        ModelResponse(parts=[TextPart(message.content)])
        if message.role == "assistant"
        else ModelRequest(parts=[parts[message.role](message.content)])
        for message in messages
    ]


def _parameters(json_schema: ReplySchema | None, model: Model) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415
    from pydantic_ai.output import OutputObjectDefinition  # noqa: PLC0415

    if json_schema is None or not model.profile.get("supports_json_schema_output"):
        return ModelRequestParameters()
    output = OutputObjectDefinition(json_schema=dict(json_schema.schema), name=json_schema.name, strict=True)
    return ModelRequestParameters(output_mode="native", output_object=output)


_models: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str | None], Model]] = (
    weakref.WeakKeyDictionary()
)
_warnings: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Counter[str]] = weakref.WeakKeyDictionary()


def _retried() -> Counter[str]:
    return _warnings.setdefault(asyncio.get_running_loop(), Counter())


def _shared_model(judge: str, api_key: str | None) -> Model:
    """The library's model of this name on the running loop, to which its client belongs."""
    from pydantic_ai.exceptions import UserError  # noqa: PLC0415
    from pydantic_ai.models import infer_model  # noqa: PLC0415
    from pydantic_ai.providers import Provider as LibraryProvider  # noqa: PLC0415
    from pydantic_ai.providers import infer_provider, infer_provider_class  # noqa: PLC0415

    def provider_of(name: str) -> LibraryProvider[Any]:
        if api_key is None:
            return infer_provider(name)
        kind: Any = infer_provider_class(name)
        return kind(api_key=api_key)

    models = _models.setdefault(asyncio.get_running_loop(), {})
    if (judge, api_key) not in models:
        provider, name = split_model(judge)
        try:
            models[judge, api_key] = infer_model(f"{provider}:{name}", provider_of)
        except (UserError, ImportError, ValueError) as error:
            raise ConfigError(f"{judge}: {error}") from None
    return models[judge, api_key]
