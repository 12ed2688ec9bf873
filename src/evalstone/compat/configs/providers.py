"""promptfoo's providers as targets and judges."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from evalstone._core.guards import is_array, is_number, is_object
from evalstone._core.installed import page
from evalstone._core.redaction import header_secrets
from evalstone.compat.configs.gaps import Gaps
from evalstone.compat.configs.nunjucks import UnsupportedTemplate, as_text, converted
from evalstone.errors import ConfigError
from evalstone.models.catalog import PROVIDERS
from evalstone.targets import parse_target

ECHO = "echo"
"""The provider that answers with its prompt."""
_NAMES: Mapping[str, str] = {"togetherai": "together", "ollama": "ollama", "fireworks": "fireworks", "google": "google"}
_FORMS = ("chat", "completion", "messages", "responses")
"""What may be between a provider and its model. The form of a request is evalstone's."""
_NO_MODELS = frozenset(
    (
        *("embedding", "embeddings", "image", "moderation", "assistant", "realtime", "video", "speech", "live"),
        *("transcription", "agents", "chatkit", "codex", *_FORMS),
    )
)
_SETTINGS: Mapping[str, str] = {
    "temperature": "temperature",
    "seed": "seed",
    "max_tokens": "max_tokens",
    "maxTokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "num_predict": "max_tokens",
    "reasoning_effort": "reasoning_effort",
    "apiBaseUrl": "base_url",
    "apiKey": "api_key",
    "headers": "headers",
}
_ENVIRONMENT = re.compile(r"\{\{-?\s*env(?:\.(\w+)|\[\s*['\"](\w+)['\"]\s*\])\s*-?\}\}")
_PATH = re.compile(r"(?:json|data|response)?((?:\??\.?\[(?:\d+|'[\w-]+'|\"[\w-]+\")\]|\??\.[\w-]+|\A[\w-]+)+)")
_STEP = re.compile(r"[\w-]+")


def model_of(identity: str) -> str | None:
    """The model of a provider's id, as `provider/model`; None if it isn't one that evalstone knows."""
    provider, _, rest = identity.partition(":")
    provider = _NAMES.get(provider, provider)
    form, colon, model = rest.partition(":")
    if colon and form in _FORMS:
        rest = model
    if (
        provider not in PROVIDERS
        or PROVIDERS[provider].decides
        or not rest
        or rest.partition(":")[0] in _NO_MODELS
        or rest.endswith("-sdk")
    ):
        return None
    return f"{provider}/{rest}"


def target_of(provider: Mapping[str, Any], gaps: Gaps, place: str) -> dict[str, Any] | None:
    """The settings of a provider's target, without its prompt; None, with a gap, if there is none."""
    identity: str = provider["id"]
    if (model := model_of(identity)) is None:
        gaps.add(f"the provider {identity}", _why_absent(identity), place)
        return None
    settings: dict[str, Any] = {"address": model}
    config = provider.get("config")
    for name, value in config.items() if is_object(config) else ():
        if name == "apiKeyEnvar":
            settings["api_key"] = f"${as_text(value)}"
        elif name == "apiHost":
            settings["base_url"] = f"https://{as_text(value)}/v1"
        elif name == "reasoning" and is_object(value) and isinstance(value.get("effort"), str):
            settings["reasoning_effort"] = value["effort"]
        elif (known := _SETTINGS.get(name)) is None:
            gaps.add(f"{name} of a provider", "this setting isn't taken over", f"{identity}, {place}")
        elif known == "api_key" and not _ENVIRONMENT.fullmatch(as_text(value)):
            gaps.add(
                "apiKey of a provider",
                "a key isn't copied: set the variable of the environment",
                f"{identity}, {place}",
            )
        elif known == "headers" and is_object(value):
            if headers := _headers(value, gaps, f"{identity}, {place}"):
                settings[known] = headers
        else:
            settings[known] = _with_environment(value)
    for name in ("prompts", "transform", "delay"):
        if provider.get(name):
            gaps.add(f"{name} of a provider", "this setting isn't taken over", f"{identity}, {place}")
    return _checked(settings, gaps, identity, place)


def http_target_of(
    provider: Mapping[str, Any], prompt: str, placeholder: Callable[[str], str], gaps: Gaps, place: str
) -> dict[str, Any] | None:
    """The settings of an HTTP provider's target; None, with a gap, if it needs more than JSON by POST.

    Args:
        provider: The provider.
        prompt: The prompt in our form, which is put in place of `{{prompt}}`.
        placeholder: The placeholder of a variable.
        gaps: What has no counterpart.
        place: Where the provider is.
    """
    config = provider.get("config")
    settings = config if is_object(config) else {}
    url = as_text(settings.get("url")) or provider["id"]
    method = as_text(settings.get("method")) or "POST"
    what = f"the provider {url}"
    body = settings.get("body")
    if not url.startswith(("http://", "https://", "{{")) or method.upper() != "POST" or not is_object(body):
        gaps.add(what, "a target by HTTP sends JSON by POST, with a body that is a table", place)
        return None

    def filled(value: Any) -> Any:
        if isinstance(value, str):
            return converted(value, lambda name: "\0" if name == "prompt" else placeholder(name)).replace(
                "{\0}", prompt
            )
        if is_object(value):
            return {name: filled(each) for name, each in value.items()}
        return [filled(each) for each in value] if is_array(value) else value

    try:
        target: dict[str, Any] = {"address": _with_environment(url), "body": filled(body)}
    except UnsupportedTemplate as error:
        gaps.add(what, f"its body has a template with more than a name: {error}", place)
        return None
    if is_object(headers := settings.get("headers")):
        others = {name: value for name, value in headers.items() if name.lower() != "content-type"}
        if kept := _headers(others, gaps, place):
            target["headers"] = kept
    if (transform := settings.get("transformResponse") or settings.get("responseParser")) is not None:
        match = _PATH.fullmatch(as_text(transform).strip())
        if match is None:
            gaps.add(
                f"{what}: transformResponse", "it is code, which isn't run: write output, the path of the text", place
            )
        else:
            target["output"] = ".".join(_STEP.findall(match[1]))
    for name in settings:
        if name not in ("url", "method", "body", "headers", "transformResponse", "responseParser"):
            gaps.add(f"{what}: {name}", "this setting isn't taken over", place)
    return target


def _headers(headers: Mapping[str, Any], gaps: Gaps, place: str) -> dict[str, str]:
    """Headers with `$NAME` in place of `{{ env.NAME }}`. A key that is written out is a gap."""
    kept: dict[str, str] = {}
    for name, value in headers.items():
        text = as_text(value)
        if any(header_secrets({name: text})) and not _ENVIRONMENT.search(text):
            gaps.add(
                f"the header {name}", "a key isn't copied: add the header with $NAME, and set this variable", place
            )
        else:
            kept[name] = _with_environment(text)
    return kept


def _with_environment(value: Any) -> Any:
    """A setting with `$NAME` in place of `{{ env.NAME }}`."""
    if isinstance(value, str):
        return _ENVIRONMENT.sub(lambda match: f"${{{match[1] or match[2]}}}", value.replace("$", "$$"))
    if is_object(value):
        return {name: _with_environment(as_text(each)) for name, each in value.items()}
    return value


def _checked(settings: dict[str, Any], gaps: Gaps, identity: str, place: str) -> dict[str, Any]:
    """The settings without those that evalstone refuses for the model."""
    for name in ("temperature", "max_tokens", "seed"):
        if name in settings and not is_number(settings[name]):
            gaps.add(f"{name} of a provider", "it is no number", f"{identity}, {place}")
            del settings[name]
    for name in [name for name in settings if name not in ("address", "api_key", "base_url")]:
        value = settings[name]
        if name == "headers" and is_object(value):
            value = dict.fromkeys(value, "x")  # the variables in them needn't be set yet
        try:
            parse_target({"address": settings["address"], name: value})
        except ConfigError as error:
            gaps.add(f"{name} of a provider", str(error), f"{identity}, {place}")
            del settings[name]
    return settings


def _why_absent(identity: str) -> str:
    provider = identity.partition(":")[0]
    if identity == ECHO:
        return "it answers with its prompt, which works with one prompt and without other providers"
    if provider in ("python", "file", "golang", "ruby") or identity.endswith((".py", ".js", ".ts", ".mjs")):
        return f"it is code, which isn't run: write a function, --target my_app:answer ({page('targets')})"
    if provider == "exec":
        return f"commands aren't taken over: --target 'cmd:COMMAND' ({page('targets')})"
    return (
        "evalstone has no such provider; any OpenAI-compatible server is vllm/MODEL with a base_url "
        f"({page('targets')})"
    )
