"""The way to providers without an OpenAI-compatible endpoint: pydantic-ai, the extra `providers`.

Only this module imports that library, and only when such a provider is asked.
"""

from __future__ import annotations

import asyncio
import importlib.util
import weakref
from typing import TYPE_CHECKING, Any

from evalstone.errors import ConfigError, JudgeDeclined, MissingDependency, ProviderError
from evalstone.judges.base import Reply, Turn
from evalstone.judges.providers.catalog import split_model
from evalstone.judges.providers.pricing import cost_of
from evalstone.questions.base import Question
from evalstone.types import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters

    from evalstone.judges.model import ModelJudge


def require() -> None:
    """Raise MissingDependency unless pydantic-ai is installed."""
    if importlib.util.find_spec("pydantic_ai") is None:
        raise MissingDependency("pydantic-ai", "providers")


async def send(judge: ModelJudge, question: Question[Any], turns: list[Turn], *, model: Model | None = None) -> Reply:
    """Put the turns to the judge's model (or to `model`). Raises ProviderError, and ConfigError for a refused key."""
    require()
    from pydantic_ai import direct, exceptions  # noqa: PLC0415
    from pydantic_ai.settings import ModelSettings  # noqa: PLC0415

    model = model or _model(judge)
    settings = ModelSettings(timeout=judge.timeout, max_retries=4)
    if judge.temperature is not None:
        settings["temperature"] = judge.temperature
    if judge.seed is not None:
        settings["seed"] = judge.seed
    if judge.max_tokens is not None:
        settings["max_tokens"] = judge.max_tokens
    try:
        response = await direct.model_request(
            model,
            _messages(turns),
            model_settings=settings,
            model_request_parameters=_parameters(question, model),
        )
    except (exceptions.ModelAuthenticationError, exceptions.ModelNotFoundError, exceptions.UserError) as error:
        raise ConfigError(f"{judge.model}: {error}") from None
    except (exceptions.ModelAPIError, exceptions.UnexpectedModelBehavior) as error:
        raise ProviderError(f"{judge.model}: {error}") from None
    return _reply(judge, response)


def _reply(judge: ModelJudge, response: ModelResponse) -> Reply:
    usage = Usage(
        input=response.usage.input_tokens or 0,
        output=response.usage.output_tokens or 0,
        cached=response.usage.cache_read_tokens or 0,
        requests=1,
    )
    provider, name = split_model(judge.model)
    cost = cost_of(usage, provider=provider, model=name, prices=judge.prices)
    if response.finish_reason == "content_filter":
        told = "the model declined: a content filter stopped the reply"
        raise JudgeDeclined(told, reply=response.text, usage=usage, cost=cost)
    return Reply(
        text=response.text or "",
        usage=usage,
        cost=cost,
        complete=response.finish_reason != "length",
    )


def _messages(turns: list[Turn]) -> list[ModelMessage]:
    from pydantic_ai.messages import (  # noqa: PLC0415
        ModelRequest,
        ModelResponse,
        SystemPromptPart,
        TextPart,
        UserPromptPart,
    )

    made: list[ModelMessage] = []
    for turn in turns:
        if turn.role == "assistant":
            made.append(ModelResponse(parts=[TextPart(turn.content)]))
        else:
            part = SystemPromptPart(turn.content) if turn.role == "system" else UserPromptPart(turn.content)
            made.append(ModelRequest(parts=[part]))
    return made


def _parameters(question: Question[Any], model: Model) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415
    from pydantic_ai.output import OutputObjectDefinition  # noqa: PLC0415

    schema = question.json_schema
    if schema is None or not model.profile.get("supports_json_schema_output"):
        return ModelRequestParameters()
    wanted = OutputObjectDefinition(json_schema=dict(schema), name=question.kind, strict=True)
    return ModelRequestParameters(output_mode="native", output_object=wanted)


_models: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str | None], Model]] = (
    weakref.WeakKeyDictionary()
)


def _model(judge: ModelJudge) -> Model:
    """The library's model of this name on the running loop, whose client belongs to that loop."""
    from pydantic_ai.exceptions import UserError  # noqa: PLC0415
    from pydantic_ai.models import infer_model  # noqa: PLC0415
    from pydantic_ai.providers import Provider, infer_provider, infer_provider_class  # noqa: PLC0415

    def provider_of(name: str) -> Provider[Any]:
        if judge.api_key is None:
            return infer_provider(name)
        kind: Any = infer_provider_class(name)
        return kind(api_key=judge.api_key)

    here = _models.setdefault(asyncio.get_running_loop(), {})
    key = (judge.model, judge.api_key)
    if key not in here:
        provider, name = split_model(judge.model)
        try:
            here[key] = infer_model(f"{provider}:{name}", provider_of)
        except (UserError, ImportError, ValueError) as error:
            raise ConfigError(f"{judge.model}: {error}") from None
    return here[key]
