"""Providers without an OpenAI-compatible endpoint, through pydantic-ai (the extra `providers`).

Only this module imports that library, and only when such a provider is used. It passes its own HTTP clients, which
don't follow redirects and read at most the model's `max_reply_bytes`. Bedrock's client can't be replaced.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Sequence, Set
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

from evalstone._core.redaction import register_url
from evalstone._core.text import BYTES_PER_TOKEN
from evalstone.errors import (
    ConfigError,
    EvalstoneError,
    JudgeDeclined,
    JudgeRefused,
    MissingDependency,
    ProviderError,
    ProviderTimeout,
    invalid,
)
from evalstone.models.catalog import provider_info, split_model
from evalstone.models.forms import (
    PROMPT,
    SCHEMA,
    SYSTEM,
    WITHOUT_BOUNDS,
    ModelCapabilities,
    has_bounds,
    with_form,
    without_bounds,
    without_system,
)
from evalstone.models.limits import TransientError, count_warning, received, shared, shared_limiter
from evalstone.models.provider import (
    PROBE,
    AccessRefused,
    ChatMessage,
    ChatProvider,
    Completion,
    Connection,
    CreditRefused,
    ReplyForm,
    RequestSettings,
    RequestTimeout,
    cached_beginning,
)
from evalstone.models.proxies import tls_error
from evalstone.models.refusals import (
    BLOCKED,
    MAY_BLOCK,
    Refusal,
    blocked_reason,
    blocked_reply,
    is_unpaid,
    may_pass,
    refusal_in,
    refusal_of,
    window_error,
)
from evalstone.models.replies import (
    LARGE,
    ReplyTooLarge,
    as_count,
    as_object,
    is_count,
    redirect_error,
    retry_after,
    retry_delay,
)
from evalstone.types import NO_USAGE, Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings as LibrarySettings

    from evalstone.models.model import LanguageModel


class FormRefused(ProviderError):
    """The provider refused a request permanently, maybe because of the reply format."""


def require() -> None:
    """Raise MissingDependency unless pydantic-ai is installed."""
    if importlib.util.find_spec("pydantic_ai") is None:
        raise MissingDependency("pydantic-ai", "providers")


class PydanticAI(ChatProvider):
    """A model of Anthropic, Google, Bedrock or Cohere.

    library_model: the pydantic-ai model to use, by default the one with the model's name.
    """

    def __init__(self, model: LanguageModel, library_model: LibraryModel | None = None) -> None:
        super().__init__(model)
        self._library_model = library_model
        self.capabilities = shared((ModelCapabilities, model.model, model.own_key), ModelCapabilities)

    def connect(self, model: LanguageModel) -> Connection:
        require()
        # The library's clients read keys, proxies and URLs from the environment.
        model.register_secrets()
        for url in (*getproxies().values(), *map(os.environ.get, provider_info(model.model).library_url_from)):
            register_url(url or "")
        return shared((PydanticAI, split_model(model.model)[0], model.own_key), Connection)

    @classmethod
    def check(cls, model: LanguageModel) -> None:
        require()
        if model.reasoning_effort or model.seed is not None or model.max_tokens or model.headers:
            _check(model, _library_model(model))  # slow: it imports the provider's library

    async def _complete(
        self, messages: Sequence[ChatMessage], form: ReplyForm | None, settings: RequestSettings
    ) -> Completion:
        own, name = self.model, self.model.model
        key = (PydanticAI, name, own.own_key, own.timeout, own.max_reply_bytes)
        model = self._library_model or shared(key, partial(_library_model, own))
        _check(own, model)
        limiter = shared_limiter((split_model(name)[0], own.own_key), own.request_limits)
        tokens = sum(len(message.content.encode("utf-8", "replace")) for message in messages) // BYTES_PER_TOKEN
        try:
            sent_at = await limiter.admit(tokens, until=time.monotonic() + own.total_timeout)
        except TimeoutError:
            raise ProviderTimeout(
                f"{name} asked to wait for longer than total_timeout={own.total_timeout:g} s"
            ) from None
        level = _level(form, model, self.capabilities)
        messages = without_system(messages) if SYSTEM in self.capabilities.refused else messages
        try:
            await own.count_request()
            async with asyncio.timeout(own.timeout):  # some of the library's clients have no timeout
                parameters = _parameters(form, level)
                response = await self._request(model, with_form(messages, form, level), settings, parameters)
        except TimeoutError:
            count_warning("timeouts")
            raise RequestTimeout("no answer", host=name) from None
        except FormRefused as error:
            # Other unsupported settings are known in advance.
            sent = {"messages": list(map(vars, messages)), "temperature": settings.temperature}
            sent = {name: value for name, value in sent.items() if value is not None}
            if self.capabilities.learn_from(form, level, sent, str(error)):
                raise TransientError(str(error), host=name, adapted=True) from None
            raise
        except TransientError as error:
            if error.rejected:
                limiter.refused(sent_at, error.retry_after)
            error.retry_after = max(error.retry_after or 0.0, limiter.retry_wait())
            raise
        else:
            limiter.answered()
            self.capabilities.accept(form, level)
        finally:
            limiter.release()
        unused = _unused(model) | self.capabilities.refused
        refused = ["temperature"] if settings.temperature is not None and "temperature" in unused else []
        if settings.logprobs:
            refused.append("logprobs")  # no provider here supports them
        return replace(self._completion(response), refused_settings=tuple(refused))

    async def _request(
        self,
        model: LibraryModel,
        messages: Sequence[ChatMessage],
        settings: RequestSettings,
        parameters: ModelRequestParameters | None = None,
    ) -> ModelResponse:
        """Send one request, and convert the library's errors."""
        from pydantic_ai import direct  # noqa: PLC0415 - an extra

        try:
            return await direct.model_request(
                model,
                _messages(messages),
                model_settings=self._settings(model, settings),
                model_request_parameters=parameters,
            )
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001 - the libraries may raise anything on a reply they can't read
            raise self._converted(error, messages) from None

    def _converted(self, error: Exception, messages: Sequence[ChatMessage]) -> EvalstoneError:
        """The evalstone error for an error of the library. messages: the request."""
        from pydantic_ai import exceptions  # noqa: PLC0415 - an extra

        name, status = self.model.model, getattr(error, "status_code", None)
        if (own := next((cause for cause in _causes(error) if isinstance(cause, EvalstoneError)), None)) is not None:
            return own
        if (refused := next(filter(None, (tls_error(cause, name) for cause in _causes(error))), None)) is not None:
            return refused
        if any(map(_is_timeout, _causes(error))):
            count_warning("timeouts")
            return RequestTimeout("no answer", host=name)
        if isinstance(error, exceptions.ContentFilterError):
            return JudgeDeclined(f"{BLOCKED}: {error}", cost=None)
        request = "\n".join(sent.content for sent in messages)
        if status is not None and (said := _refusal_in(getattr(error, "body", None))) is not None:
            if status in MAY_BLOCK and (reason := blocked_reason(said, request)):
                return JudgeDeclined(f"{BLOCKED}: {reason}")
            if is_unpaid(status, said, request):
                return CreditRefused(f"{name}: {error}")
        if isinstance(
            error, exceptions.ModelAuthenticationError | exceptions.ModelNotFoundError | exceptions.UserError
        ):
            message = f"{name}: {error}"
            return AccessRefused(message, status) if status in (403, 404) else JudgeRefused(message)
        if isinstance(error, exceptions.ModelHTTPError):
            if not may_pass(error.status_code):
                message = f"{name}: {error}"
                return window_error(message, request=request) or FormRefused(message)
            count_warning(f"HTTP {status}")
            wait = _asked_wait(error)
            return TransientError(f"HTTP {status}: {error}", host=name, retry_after=wait, rejected=status == 429)
        if isinstance(error, exceptions.ModelAPIError):
            count_warning("broken connections")
            return TransientError(str(error), host=name)
        if isinstance(error, exceptions.UnexpectedModelBehavior):
            return ProviderError(f"{name}: {error}", cost=None)
        return ProviderError(f"{name}: {type(error).__name__}: {error}", cost=None)

    async def probe(self) -> tuple[Usage, float | None]:
        model = self._library_model or _library_model(self.model)
        await self.model.count_request()
        try:
            async with asyncio.timeout(self.model.timeout):
                response = await self._request(model, [ChatMessage("user", PROBE)], RequestSettings(max_tokens=1))
        except TimeoutError:
            count_warning("timeouts")
            raise RequestTimeout("no answer", host=self.model.model) from None
        except (TransientError, ProviderTimeout):
            raise
        except ProviderError:  # such as HTTP 400 for max_tokens: key and model were accepted
            return NO_USAGE, 0.0
        return self._usage(response)

    def _settings(self, model: LibraryModel, settings: RequestSettings) -> LibrarySettings:
        from pydantic_ai.settings import ModelSettings as LibrarySettings  # noqa: PLC0415

        values: dict[str, Any] = {
            "temperature": settings.temperature,
            "seed": settings.seed,
            "max_tokens": settings.max_tokens,
            "thinking": settings.reasoning_effort,
            "extra_headers": self.model.sent_headers or None,
            "timeout": self.model.timeout,
            "max_retries": 0,  # the caller retries
        }
        unused = _unused(model) | self.capabilities.refused
        return LibrarySettings(
            **{name: value for name, value in values.items() if value is not None and name not in unused}
        )

    def _usage(self, response: ModelResponse) -> tuple[Usage, float | None]:
        """The usage that the library reports, and its cost; None if a count is invalid."""
        reported = response.usage
        counts: list[Any] = [reported.input_tokens or 0, reported.output_tokens or 0, reported.cache_read_tokens or 0]
        usage, written = Usage(*map(as_count, counts), requests=1), reported.cache_write_tokens or 0
        return usage, self.model.price(usage, written) if all(map(is_count, (*counts, written))) else None

    def _completion(self, response: ModelResponse) -> Completion:
        usage, cost = self._usage(response)
        if response.finish_reason == "content_filter":
            # The library's word for both: what a filter stopped, and what Claude refused.
            details = response.provider_details or {}
            finish = details.get("finish_reason") or details.get("block_reason") or "content_filter"
            message = "the model declined to reply" if finish == "refusal" else blocked_reply(finish)
            raise JudgeDeclined(message, reply=response.text, usage=usage, cost=cost)
        return Completion(
            received(response.text or ""),
            usage,
            cost,
            complete=response.finish_reason not in ("length", "error"),
            model=response.model_name or "",
        )


def _asked_wait(error: BaseException) -> float | None:
    """The seconds that the response behind an error asks to wait; None if it doesn't."""
    responses = (getattr(cause, "response", None) for cause in _causes(error))
    headers = next((found for each in responses if (found := getattr(each, "headers", None)) is not None), None)
    wait = None if headers is None else retry_after(headers)
    return retry_delay(json.dumps(getattr(error, "body", None), default=str).encode()) if wait is None else wait


def _refusal_in(body: object) -> Refusal | None:
    """What the body of an error says; None if it says nothing."""
    if isinstance(body, str | bytes):
        return refusal_in(body if isinstance(body, bytes) else body.encode())
    error = as_object(as_object(body).get("error")) or as_object(as_object(body).get("Error")) or as_object(body)
    return refusal_of({"error": {name.lower(): value for name, value in error.items()}})


_LIBRARY_NAMES = {"seed": "seed", "max_tokens": "max_tokens", "headers": "extra_headers"}


def _check(own: LanguageModel, model: LibraryModel) -> None:
    unused = _unused(model)
    dropped = [name for name, library_name in _LIBRARY_NAMES.items() if library_name in unused and getattr(own, name)]
    effort, profile = own.reasoning_effort, model.profile
    if effort and not (profile.get("supports_thinking") or profile.get("thinking_always_enabled")):
        dropped.append("reasoning_effort")
    if dropped:
        raise ConfigError(f"{own.model} doesn't support {dropped[0]}: remove it from the settings")
    if effort and effort not in _EFFORTS:
        raise ConfigError(
            invalid(f"reasoning_effort of {own.model}", f"{' or '.join(_EFFORTS)}", effort, f"{effort!r}")
        )


_EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")


def _unused(model: LibraryModel) -> Set[str]:
    """The settings that the library would silently drop for this model."""
    unused: Set[str] = getattr(model, "unsupported_settings", frozenset[str]())
    samples = ("anthropic_disallows_sampling_settings", "bedrock_disallows_sampling_settings")
    return unused | {"temperature"} if any(model.profile.get(name) for name in samples) else unused


def _messages(messages: Sequence[ChatMessage]) -> list[ModelMessage]:
    from pydantic_ai.messages import (  # noqa: PLC0415
        CachePoint,
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )

    beginning = cached_beginning()

    def part(message: ChatMessage) -> SystemPromptPart | UserPromptPart:
        if message.role == "system":
            return SystemPromptPart(message.content)
        if not beginning or not message.content.startswith(beginning):
            return UserPromptPart(message.content)
        # Anthropic and Bedrock cache only up to a mark. The library drops the mark for other providers.
        rest = message.content[len(beginning) :]
        return UserPromptPart([beginning, CachePoint(), *[rest] * bool(rest)])

    return [
        ModelResponse(parts=[TextPart(message.content)])
        if message.role == "assistant"
        else ModelRequest(parts=[part(message)])
        for message in messages
    ]


def _level(form: ReplyForm | None, model: LibraryModel, capabilities: ModelCapabilities) -> int:
    """The strictest format that the model supports. The library has no JSON mode."""
    level = capabilities.level(form)
    if form is None or level > WITHOUT_BOUNDS or not model.profile.get("supports_json_schema_output"):
        return PROMPT
    return level if has_bounds(form.schema) else WITHOUT_BOUNDS


def _parameters(form: ReplyForm | None, level: int) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415
    from pydantic_ai.output import OutputObjectDefinition  # noqa: PLC0415

    if form is None or level == PROMPT:
        return ModelRequestParameters()
    schema = dict(form.schema if level == SCHEMA else without_bounds(form.schema))
    output = OutputObjectDefinition(json_schema=schema, name=form.name, strict=True)
    return ModelRequestParameters(output_mode="native", output_object=output)


def _library_model(own: LanguageModel) -> LibraryModel:
    """The pydantic-ai model for a model of ours. Its HTTP client belongs to the running loop."""
    from pydantic_ai.exceptions import UserError  # noqa: PLC0415
    from pydantic_ai.models import infer_model  # noqa: PLC0415
    from pydantic_ai.providers import Provider as LibraryProvider  # noqa: PLC0415
    from pydantic_ai.providers import infer_provider_class  # noqa: PLC0415

    def provider_of(name: str) -> LibraryProvider[Any]:
        kind: Any = infer_provider_class(name)
        arguments: dict[str, Any] = {} if own.own_key is None else {"api_key": own.own_key}
        if provider != "bedrock":
            arguments["http_client"] = _http_client(provider, own)
        return kind(**arguments)

    provider, name = split_model(own.model)
    try:
        return infer_model(f"{provider}:{name}", provider_of)
    except ConfigError:
        raise
    except (UserError, ImportError, ValueError) as error:
        raise ConfigError(f"{own.model}: ", error) from None


def _http_client(provider: str, own: LanguageModel) -> Any:
    """A client that doesn't follow redirects and limits the size of responses, for the provider's HTTP library."""
    library: Any = importlib.import_module("httpx" if provider == "cohere" else "httpx2")
    large, limit = asyncio.Lock(), own.max_reply_bytes

    class Bounded(library.AsyncByteStream):
        """The body of a response up to the limit."""

        def __init__(self, stream: Any, host: str) -> None:
            self.stream, self.host = stream, host

        def __aiter__(self) -> AsyncGenerator[bytes]:
            return _bounded(self.stream, limit, self.host, large)

        async def aclose(self) -> None:
            await self.stream.aclose()

    async def on_request(request: Any) -> None:
        request.headers["Accept-Encoding"] = "identity"  # httpx has no limit on decompression

    async def on_response(response: Any) -> None:
        host = response.url.netloc.decode("ascii", "replace")
        if 300 <= response.status_code < 400:
            location = response.headers.get("Location", "")
            raise redirect_error(host, response.status_code, str(response.url), location)
        if (encoding := response.headers.get("Content-Encoding", "identity")).lower() != "identity":
            message = f"{host} sent a reply with the content encoding {encoding[:60]!r}, which was not asked for"
            raise ProviderError(message, cost=None)
        response.stream = Bounded(response.stream, host)

    return library.AsyncClient(
        timeout=library.Timeout(own.timeout, pool=None),
        limits=library.Limits(max_connections=1000, max_keepalive_connections=100),
        event_hooks={"request": [on_request], "response": [on_response]},
    )


async def _bounded(stream: AsyncIterable[bytes], limit: int, host: str, large: asyncio.Lock) -> AsyncGenerator[bytes]:
    size = 0
    async with AsyncExitStack() as stack:
        async for chunk in stream:
            size += len(chunk)
            if size > limit:
                raise ReplyTooLarge(host, limit)
            if size > LARGE >= size - len(chunk):
                await stack.enter_async_context(large)
            yield chunk


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(20):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _is_timeout(error: BaseException) -> bool:
    """Whether a library timed out waiting for a response. Connection timeouts don't count: nothing was sent."""
    name = type(error).__name__
    return isinstance(error, TimeoutError) or ("Timeout" in name and "Connect" not in name)
