"""Chat completions, the protocol of OpenAI-compatible endpoints (`POST /chat/completions`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from evalstone._core.guards import is_object
from evalstone._core.parsing import MAX_REPLY
from evalstone.errors import JudgeDeclined, ProviderError
from evalstone.models.catalog import PROVIDERS, split_model
from evalstone.models.endpoint import Endpoint, GenerationRefused, RequestRefused, endpoint_of, json_call
from evalstone.models.forms import SYSTEM, ModelCapabilities, with_form, without_system
from evalstone.models.provider import (
    PROBE,
    ChatMessage,
    ChatProvider,
    Completion,
    ReplyForm,
    RequestSettings,
    cached_beginning,
)
from evalstone.models.refusals import blocked_reply, is_blocked, is_cut_off
from evalstone.models.replies import as_list, as_object, as_text, is_count, shown
from evalstone.models.tokens import readable_tokens
from evalstone.types import NO_USAGE, Usage

if TYPE_CHECKING:
    from evalstone.models.model import LanguageModel


class ChatCompletions(ChatProvider):
    """A model behind an OpenAI-compatible endpoint."""

    def connect(self, model: LanguageModel) -> Endpoint:
        self.endpoint = endpoint_of(model)
        provider, name = split_model(model.model)
        at_openrouter = provider == "openrouter" or self.endpoint.url == PROVIDERS["openrouter"].base_url
        self._marks_cache = at_openrouter and name.lstrip("~").startswith("anthropic/")
        return self.endpoint

    async def _complete(
        self, messages: Sequence[ChatMessage], form: ReplyForm | None, settings: RequestSettings
    ) -> Completion:
        capabilities = self.endpoint.capabilities[self.name]
        level = capabilities.level(form)
        payload = chat_payload(self.name, messages, form, settings, capabilities)
        refused = capabilities.refused_of(settings) if capabilities.refused else ()
        learn = partial(capabilities.learn, form, payload)
        call = json_call("/chat/completions", self._marked(payload))
        try:
            content = await self.endpoint.request(call, self.model.count_request, learn)
            data = await self.endpoint.read(call, content, self._spent, learn)
        except GenerationRefused as error:
            return Completion(error.reply or "", replace(NO_USAGE, requests=1), error.cost, refused_settings=refused)
        capabilities.accept(form, level)
        completion = chat_completion(self.name, data, self.model.price)
        return replace(completion, refused_settings=refused) if refused else completion

    def _marked(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The request with a mark after the beginning that the provider should cache. OpenRouter needs one for Claude,
        as Anthropic does; other models are cached without."""
        beginning = cached_beginning()
        if not beginning or not self._marks_cache:
            return payload
        return {**payload, "messages": [_with_mark(message, beginning) for message in payload["messages"]]}

    async def probe(self) -> tuple[Usage, float | None]:
        payload = {"model": self.name, "messages": [{"role": "user", "content": PROBE}], "max_tokens": 1}
        try:
            call = json_call("/chat/completions", payload)
            content = await self.endpoint.request(call, self.model.count_request)
            data = await self.endpoint.read(call, content, self._spent)
        except RequestRefused:  # such as HTTP 400 for max_tokens: key and model were accepted
            return NO_USAGE, 0.0
        return chat_usage(data, self.model.price)

    def _spent(self, data: Mapping[str, Any]) -> tuple[Usage, float | None] | None:
        return chat_spent(data, self.model.price)


def _with_mark(message: Mapping[str, Any], beginning: str) -> Mapping[str, Any]:
    content: str = message["content"]
    if message["role"] != "user" or not content.startswith(beginning):
        return message
    rest = content[len(beginning) :]
    marked = {"type": "text", "text": beginning, "cache_control": {"type": "ephemeral"}}
    return {**message, "content": [marked, *[{"type": "text", "text": rest}] * bool(rest)]}


def chat_payload(
    model: str,
    messages: Sequence[ChatMessage],
    form: ReplyForm | None,
    settings: RequestSettings,
    capabilities: ModelCapabilities,
) -> dict[str, Any]:
    """The body of a chat completion request, without settings that the endpoint refuses."""
    messages = with_form(messages, form, capabilities.level(form))
    messages = without_system(messages) if SYSTEM in capabilities.refused else messages
    payload: dict[str, Any] = {"model": model, "messages": list(map(vars, messages))}
    for name, value in vars(settings).items():
        if value is not None and value is not False and name not in capabilities.refused:
            payload[name] = value
    if "max_tokens" in capabilities.refused and settings.max_tokens is not None:
        payload["max_completion_tokens"] = settings.max_tokens
    if (response_format := capabilities.response_format(form)) is not None:
        payload["response_format"] = response_format
    return payload


Price: TypeAlias = Callable[[Usage, int], float | None]
"""The cost of a usage, of which so many input tokens were written to a cache."""


def chat_completion(model: str, data: Mapping[str, Any], price: Price) -> Completion:
    """The completion in a response. Raises JudgeDeclined if the model declined, ProviderError if there is none."""
    usage, cost, read_tokens = _spent(data, price)
    choice = as_object(next(iter(as_list(data.get("choices"))), None))
    finish = choice.get("finish_reason")
    message = as_object(choice.get("message"))
    content, refusal = _text(message.get("content")), message.get("refusal")
    blocked = is_blocked(finish)
    if blocked or finish == "refusal" or (refusal and not content):
        what = blocked_reply(finish) if blocked else "the model declined"
        declined = f"{what}: {shown(refusal)}" if refusal else what
        reply = content or as_text(refusal) or (shown(refusal) if refusal else "")
        raise JudgeDeclined(declined, reply=reply[:MAX_REPLY], usage=usage, cost=cost)
    if not message:
        raise ProviderError(f"{model} sent no choices: {shown(data)}", usage=usage, cost=cost)
    return Completion(
        text=content,
        usage=usage,
        cost=cost,
        complete=not is_cut_off(finish),
        tokens=readable_tokens(as_object(choice.get("logprobs")).get("content")),
        model=as_text(data.get("model")),
        read_tokens=read_tokens,
    )


def _counts(value: Any) -> dict[str, int]:
    """The valid token counts of an object, by name."""
    return {name: int(count) for name, count in value.items() if is_count(count)} if is_object(value) else {}


_CACHED = ("prompt_cache_hit_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""Other names of the cached tokens, of DeepSeek and of gateways to Anthropic."""
_CACHED_IN_PROMPT = ("prompt_cache_hit_tokens", "cached_tokens")
"""Other names of cached tokens that are a part of prompt_tokens, of DeepSeek, Together and Moonshot."""


def _text(content: Any) -> str:
    """The text of a message. Some servers send it in parts, next to parts with reasoning."""
    if isinstance(content, str):
        return content
    parts = map(as_object, as_list(content))
    texts = [as_text(part.get("text")) for part in parts if part.get("type", "text") in ("text", "output_text")]
    return "".join(texts)


def chat_spent(data: Mapping[str, Any], price: Price) -> tuple[Usage, float | None] | None:
    """The usage in a response, and its cost; None if the response has no usage."""
    return chat_usage(data, price) if as_object(data.get("usage")) else None


def chat_usage(data: Mapping[str, Any], price: Price) -> tuple[Usage, float | None]:
    """The usage in a response, and its cost; the cost is None if the response has no usage."""
    return _spent(data, price)[:2]


def _spent(data: Mapping[str, Any], price: Price) -> tuple[Usage, float | None, int]:
    """The usage in a response, its cost, and the tokens of the prompt at most: all counts are added, as some servers
    leave cached ones out of prompt_tokens."""
    reported = as_object(data.get("usage"))
    counts, details = _counts(reported), _counts(reported.get("prompt_tokens_details"))
    prompt, output, total = (counts.get(name, 0) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    cached = details.get("cached_tokens", 0)
    read_tokens = prompt + cached + sum([counts.get(name, 0) for name in _CACHED])
    cached = cached or min(prompt, max([counts.get(name, 0) for name in _CACHED_IN_PROMPT]))
    reasoning = _counts(reported.get("completion_tokens_details")).get("reasoning_tokens", 0)
    beside = total - prompt - output
    if cached > prompt or (0 < cached == beside != reasoning):
        prompt += cached  # some gateways count cached tokens beside prompt_tokens
    # Some providers count the tokens of reasoning beside completion_tokens, but all of them in the total.
    output = max(output, total - prompt, output + reasoning if reasoning > output else 0)
    usage = Usage(prompt, output, cached, 1)
    known = "prompt_tokens" in counts and ("completion_tokens" in counts or "completion_tokens" not in reported)
    cost = price(usage, min(details.get("cache_write_tokens", 0), prompt)) if known else None
    return usage, cost, read_tokens
