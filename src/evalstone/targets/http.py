"""HTTP services as targets: OpenAI's chat completions and Responses, or any JSON by a template and paths."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from evalstone._core.declarations import Range
from evalstone._core.display import shortlist
from evalstone._core.environment import expanded, expanded_url
from evalstone._core.guards import is_array
from evalstone._core.json import content_hash
from evalstone._core.observe import observer
from evalstone._core.redaction import (
    header_secrets,
    is_credential,
    is_distinct,
    masked_url,
    query_secrets,
    register,
    register_settings,
)
from evalstone._core.sizes import MOST_RETRIES
from evalstone.agents.formats.messages import read_messages
from evalstone.agents.formats.values import read_usage
from evalstone.datasets.cells import passages_in, scalar_text, unpacked
from evalstone.datasets.columns import value_at
from evalstone.datasets.json_rows import reply_json
from evalstone.errors import ConfigError, DataError, TargetError, invalid
from evalstone.models.catalog import PROVIDERS, url_parts
from evalstone.models.limits import NO_LIMITS, shared
from evalstone.models.model import HEADERS, PRICES
from evalstone.models.prices import cost_at, cost_of
from evalstone.models.provider import CreditRefused
from evalstone.models.refusals import refusal_in
from evalstone.models.replies import (
    as_list,
    as_object,
    read_aside,
    shown,
    too_many_values,
)
from evalstone.targets.answers import Answer, answer_of
from evalstone.targets.base import INPUTS, PARAMETERS, Target, conversation, parameter_values
from evalstone.targets.retries import with_retries
from evalstone.targets.templates import (
    chat_messages,
    check_placeholders,
    filled,
    lacking,
    placeholders,
    response_items,
)
from evalstone.types import NO_USAGE, Message, Sample, Usage

if TYPE_CHECKING:
    from evalstone.models.endpoint import Endpoint

APIS: Mapping[Literal["chat", "responses"], str] = {"chat": "/chat/completions", "responses": "/responses"}
"""The APIs that are known, and how their URLs end."""
PATHS = ("output", "context", "messages", "trajectory", "state", "metadata", "cost", "trace")
"""The fields of an answer that a path may point to."""


class HTTPTarget(Target):
    """A service that takes JSON by POST and replies with JSON. Redirects are not followed.

    Requests that fail with a broken connection, HTTP 408, 409, 425, 429 or 5xx are retried. Failures are not stored, so
    a resumed run asks again. HTTP 401, 403 and 404 end a run that has no answer yet.

    Raises:
        ConfigError: The URL is invalid, it is unknown what to send, or a setting is out of range.
    """

    url: str
    """`$NAME` and `${NAME}` are environment variables, `$$` is a dollar sign, as in `headers`."""
    api: Literal["chat", "responses", ""] = ""
    """"chat" (OpenAI chat completions) or "responses" (OpenAI Responses); by default, what the URL ends in. The request
    has the sample's instructions and its messages up to the last user message, or else its input."""
    model: str = ""
    """The model to name in the request."""
    body: Mapping[str, Any] | None = None
    """The request as JSON. The placeholders `{input}`, `{messages}`, `{context}`, `{instructions}`, `{metadata.NAME}`,
    `{trial}` and `{thread}` in its texts are filled in. With an API, it is added to the API's request."""
    output: str = ""
    """The path of the answer's text in the reply, such as `choices.0.text`: names and indexes from 0, separated by
    dots. A name applied to a list is read from each item. Without paths, the reply must have the fields of an Answer,
    or be what a known API returns."""
    context: str = ""
    """The path of the retrieved passages: texts, or objects with a text."""
    messages: str = ""
    """The path of the messages, in a known format."""
    trajectory: str = ""
    """The path of the steps that the agent took."""
    state: str = ""
    """The path of the final state."""
    metadata: str = ""
    """The path of other data for scorers."""
    cost: str = ""
    """The path of the cost in US dollars. By default, the cost is computed from the tokens if the prices are known."""
    trace: str = ""
    """The path of data to keep with the answer."""
    headers: Annotated[Mapping[str, str], HEADERS] = field(default_factory=dict[str, str], repr=False)
    """HTTP headers. `$NAME` and `${NAME}` are environment variables, `$$` is a dollar sign."""
    prices: Annotated[tuple[float, float] | None, PRICES] = None
    """US dollars per million input and output tokens, instead of the listed prices."""
    retries: Annotated[int, Range(0, MOST_RETRIES)] = 3
    """The most retries of a request that may have been processed. Other requests are retried until `timeout`."""
    max_reply_bytes: Annotated[int, Range(1)] = 8_000_000
    """The most bytes of one reply, both as received and decompressed. It may have a list or object per 32 bytes:
    250,000 by default."""

    def __post_init__(self) -> None:
        super().__post_init__()
        register_settings(self.body)
        _check_url(self.address)
        if not self.api:
            path = urlsplit(self.address).path.rstrip("/")
            object.__setattr__(self, "api", next((name for name, end in APIS.items() if path.endswith(end)), ""))
        if not self.api and self.body is None:
            known = " or ".join(f'api = "{name}"' for name in APIS)
            example = '{"question": "{input}"}'
            raise ConfigError(
                f"{self.shown} needs the form of its requests; in a [target] table or HTTPTarget, set {known}, or body "
                f"to an object such as {example}"
            )
        if self.body is not None:
            check_placeholders(self.body, PARAMETERS, "body")
            if not self.api and not placeholders(self.body):
                raise ConfigError("body has no placeholder such as {input}, so that all samples would be asked alike")

    @property
    def address(self) -> str:
        """The URL, with its environment variables expanded."""
        return expanded_url(self.url, "the target's url")

    @property
    def shown(self) -> str:
        """The URL without secrets."""
        return masked_url(self.address)

    @property
    def name(self) -> str:
        """The URL with the model, and a hash of the other settings that may change answers."""
        routes = sorted((name.lower(), text) for name, text in self.headers.items() if not is_credential(name))
        own_api = self.api and urlsplit(self.address).path.rstrip("/").endswith(APIS[self.api])
        settings = [self.body, [getattr(self, name) for name in PATHS], routes, "" if own_api else self.api]
        own_settings = settings != [None, [""] * len(PATHS), [], ""]
        if (path := urlsplit(self.url).path) != urlsplit(self.shown).path:  # what is masked may be no secret
            settings, own_settings = [*settings, path], True
        if words := [text for text in query_secrets(self.address) if not is_distinct(text)]:
            settings, own_settings = [*settings, words], True
        parts = [self.model] * bool(self.model)
        parts += [f"settings={content_hash(settings)[:8]}"] * own_settings
        return f"{self.shown}({', '.join(parts)})" if parts else self.shown

    @property
    def inputs(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The sample fields in the template; with an API, also the input, messages and instructions."""
        names = {name.partition(".")[0] for name in placeholders(self.body)}
        names |= {"input", "messages", "instructions"} if self.api else set()
        return tuple(name for name in INPUTS if name in names or (name == "input" and "messages" in names))

    @property
    def follows_conversations(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the request has the messages or the thread."""
        return bool(self.api) or not {"messages", "thread"}.isdisjoint(placeholders(self.body))

    @property
    def keeps_threads(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the request has the thread."""
        return "thread" in placeholders(self.body)

    def lacking(self, sample: Sample) -> list[str]:
        """The placeholders without a value. With an API, also the input if there are no messages."""
        absent = lacking(self.body, sample)
        return ["input", *absent] if self.api and not conversation(sample) else absent

    def check_keys(self) -> None:
        """Raise ConfigError for headers with an environment variable that is not set."""
        self._sent_headers()

    def _sent_headers(self) -> dict[str, str]:
        named = f"of {self.shown}"
        headers = {name: expanded(text, f"the header {name} {named}") for name, text in self.headers.items()}
        register(*header_secrets(headers))
        return headers

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        async with self._endpoint():
            yield

    def _endpoint(self) -> Endpoint:
        from evalstone.models.endpoint import Endpoint  # noqa: PLC0415 - aiohttp

        parts, headers = urlsplit(self.address), self._sent_headers()
        settings = (self.timeout, self.timeout, self.max_reply_bytes, NO_LIMITS)
        base = f"{parts.scheme}://{parts.netloc}"
        key = (Endpoint, "target", base, tuple(sorted(headers.items())), *settings)
        return shared(key, partial(Endpoint, base, headers, *settings))

    async def call(self, sample: Sample, *, trial: int, thread: str) -> Answer:
        """Send the request, and read the reply."""
        values = parameter_values(sample, trial=trial, thread=thread)
        data = json.dumps(self._request(values)).encode()
        async with self._endpoint() as endpoint:
            send = partial(self._send, endpoint, data)
            content = await with_retries(send, total_timeout=self.timeout, retries=self.retries)
        return await read_aside(len(content), self._read, content)

    def _request(self, values: Mapping[str, Any]) -> dict[str, Any]:
        added: dict[str, Any] = {} if self.body is None else filled(self.body, values)
        if not self.api:
            return added
        messages, instructions = values["messages"], values["instructions"]
        if any(message.role == "system" for message in messages):
            instructions = None  # they were read from there
        request: dict[str, Any] = {"model": self.model} if self.model else {}
        if self.api == "chat":
            system = [{"role": "system", "content": instructions}] if instructions else []
            request["messages"] = [*system, *chat_messages(messages)]
        else:
            request["input"] = response_items(messages)
            request |= {"instructions": instructions} if instructions else {}
        return {**request, **added}

    async def _send(self, endpoint: Endpoint, data: bytes) -> bytes:
        from evalstone.models.endpoint import Call, RequestTimeout  # noqa: PLC0415 - aiohttp

        parts = urlsplit(self.address)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        try:
            return await endpoint.request(Call("POST", path, data, headers=observer().headers()))
        except RequestTimeout as error:
            raise TargetError(str(error)) from None
        except CreditRefused as error:  # a service may say so about a sample, such as an order
            raise TargetError(error.problem) from None

    def _read(self, content: bytes) -> Answer:
        """The answer in a reply. Raises TargetError if there is none."""
        host = urlsplit(self.address).netloc
        if (most := too_many_values(content, self.max_reply_bytes)) is not None:
            problem = f"a reply of more than {most:,} lists and objects; max_reply_bytes allows more"
            raise TargetError(f"{host} sent {problem}")
        try:
            data = reply_json(content)
        except DataError as error:
            start = content[:200].decode(errors="replace").strip()
            problem = f"no valid JSON ({error}); it sent {start!r}" if start else "an empty reply"
            raise TargetError(f"{host} sent {problem}") from None
        reply = as_object(data)
        if reply.get("error") and not (self.output and value_at(data, self.output)[0]):
            raise TargetError(f"{host} sent an error: {refusal_in(content).message or shown(reply['error'])}")
        try:
            fields = {name: self._field(name, path, data) for name in PATHS if (path := getattr(self, name))}
            whole = fields.keys().isdisjoint(("output", "messages", "trajectory", "state"))
            answer = replace(self._of_reply(data) if whole else Answer(), **fields)
            if answer.usage == NO_USAGE and (usage := read_usage(reply.get("usage"))) is not None:
                answer = replace(answer, usage=replace(usage, requests=usage.requests or 1))
            return answer if answer.cost is not None else replace(answer, cost=self._cost(answer.usage))
        except ConfigError as error:
            raise TargetError(f"{host} sent a reply without an answer: ", error) from None

    def _field(self, name: str, path: str, data: Any) -> Any:
        """The value at the path of a field."""
        exists, value = value_at(data, path)
        if not exists:
            has = shortlist(map(str, as_object(data))) or type(data).__name__
            raise ConfigError(f"it has no {path}, where {name} is expected; it has {has}")
        if value is None:
            empty: dict[str, Any] = {"messages": (), "metadata": {}, "output": None if self.messages else ""}
            return empty.get(name)
        match name:
            case "output":
                text = scalar_text(value)
                if text is None:
                    raise ConfigError(
                        "the output: ", invalid(path, "text", value, f"{type(value).__name__} {shown(value)}")
                    )
                return text
            case "context":
                try:
                    return passages_in(value)
                except DataError as error:
                    raise DataError(f"{path}, the context, ", error) from None
            case "messages":
                try:
                    return _messages(value)
                except DataError as error:
                    raise DataError(f"{path}, the messages, ", error) from None
            case _:
                return value

    def _of_reply(self, data: Any) -> Answer:
        """The answer in a whole reply."""
        reply = as_object(data)
        if self.api == "chat":
            choice = as_object(next(iter(as_list(reply.get("choices"))), None))
            if not as_object(choice.get("message")):
                raise ConfigError(f"a chat completion has choices with a message, not {shown(data)}")
        elif self.api == "responses" and not as_list(reply.get("output")):
            raise ConfigError(f"a response has an output with items, not {shown(data)}")
        return answer_of(data) if self.api else Answer.of(data)

    def _cost(self, usage: Usage) -> float | None:
        """The cost of the tokens; None if the prices, or the input or output tokens, are unknown."""
        if not usage.input or not usage.output:
            return None
        if self.prices is not None:
            return cost_at(self.prices, usage)
        provider = next((n for n, info in PROVIDERS.items() if info.key and self._is_at(info.base_url)), "")
        return cost_of(usage, provider, self.model) if provider and self.model else None

    def _is_at(self, base_url: str) -> bool:
        return bool(base_url) and urlsplit(base_url).netloc == urlsplit(self.address).netloc


def _messages(value: Any) -> tuple[Message, ...]:
    items = unpacked(value)
    if not is_array(items):
        raise DataError(f"must be a list, not {shown(items)}")
    return read_messages(items)


def _check_url(url: str) -> None:
    """Raise ConfigError for an invalid URL. Possible keys in it are not shown."""
    try:
        parts = url_parts(url)
    except ValueError as error:
        raise ConfigError(f"the URL {masked_url(url)!r} can't be read: ", error) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"a URL starts with http:// or https:// and a host, not {masked_url(url)!r}")
    if "@" in parts.netloc:
        raise ConfigError(f"the URL of {parts.hostname} has a user or a password; give them in headers")
    if parts.fragment:
        raise ConfigError(f"the URL {masked_url(url)!r} has a fragment; leave it out")
