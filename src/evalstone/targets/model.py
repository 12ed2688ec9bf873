"""Language models with a prompt as targets."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

from evalstone._core.declarations import Range
from evalstone._core.files import file_text
from evalstone._core.json import content_hash
from evalstone._core.prompts import Prompt
from evalstone._core.sizes import MOST_RETRIES
from evalstone._core.text import is_blank
from evalstone.errors import ConfigError, JudgeDeclined, TargetError
from evalstone.judges.model import HEADERS, PRICES, ModelJudge
from evalstone.models.provider import PROVIDERS, ChatMessage, Completion, ModelSettings, split_model
from evalstone.questions.base import Question
from evalstone.targets.base import INPUTS, Answer, Target, conversation, parameter_values
from evalstone.targets.retries import with_retries
from evalstone.targets.templates import check_placeholders, filled_text, lacking, placeholders
from evalstone.types import Message, Sample

_PLACEHOLDERS = ("input", "context", "instructions", "metadata")


_NO_PROMPT = Prompt("", "")


@dataclass(frozen=True)
class _FreeText(Question[str]):
    """A request for any text."""

    kind = "target"
    prompt: Prompt = _NO_PROMPT

    @cached_property
    def json_schema(self) -> Mapping[str, Any] | None:
        return None

    @property
    def form(self) -> str:
        return ""

    def from_json(self, data: Any) -> str:
        return str(data)


@dataclass(frozen=True, kw_only=True, repr=False)
class ModelTarget(Target):
    """A language model, named `provider/model` like a judge.

    Without a prompt, it gets the sample's messages up to the last user message, or else the input. If the model refuses
    to answer, its refusal is the answer.

    Raises:
        ConfigError: The provider is unknown, the prompt can't be read or has an unknown placeholder, or a setting is
            out of range.
    """

    model: str
    prompt: str = ""
    """A text with the placeholders `{input}`, `{context}`, `{instructions}`, `{metadata.NAME}`, or the path of a file
    with such a text. It replaces the last user message."""
    system: str = ""
    """The system prompt, also a text or a file; by default, the sample's instructions."""
    temperature: Annotated[float | None, Range(0, 2)] = None
    seed: int | None = None
    """The seed of the first trial. Each further trial uses the next number."""
    max_tokens: Annotated[int | None, Range(1)] = None
    reasoning_effort: str | None = None
    base_url: str | None = None
    """Base URL of an OpenAI-compatible server, instead of the provider's."""
    api_key: str | None = field(default=None, repr=False, compare=False)
    """The API key; None reads it from the provider's environment variable."""
    headers: Annotated[Mapping[str, str], HEADERS] = field(default_factory=dict[str, str], repr=False, compare=False)
    """HTTP headers added to every request."""
    prices: Annotated[tuple[float, float] | None, PRICES] = field(default=None, compare=False)
    """US dollars per million input and output tokens, instead of the listed prices."""
    retries: Annotated[int, Range(0, MOST_RETRIES)] = 3
    """The most retries of a request that may have been processed. Other requests are retried until `timeout`."""
    max_reply_bytes: Annotated[int, Range(1)] = 8_000_000
    """The most bytes of one reply, both as received and decompressed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("prompt", "system"):
            text = getattr(self, name)
            object.__setattr__(self, name, _text_of(text, name))
            check_placeholders(getattr(self, name), _PLACEHOLDERS, name)
        if self.prompt and not placeholders(self.prompt):
            raise ConfigError("prompt has no placeholder such as {input}, so that all samples would be asked alike")
        _ = self._judge

    @cached_property
    def _judge(self) -> ModelJudge:
        return ModelJudge(
            self.model,
            base_url=self.base_url,
            api_key=self.api_key,
            temperature=self.temperature,
            seed=self.seed,
            max_tokens=self.max_tokens,
            reasoning_effort=self.reasoning_effort,
            timeout=self.timeout,
            total_timeout=self.timeout,
            max_reply_bytes=self.max_reply_bytes,
            prices=self.prices,
            headers=self.headers,
        )

    @property
    def name(self) -> str:
        """The model with its settings; prompts as hashes."""
        judge = self._judge
        parts = [judge.url] if judge.url != PROVIDERS[split_model(self.model)[0]].base_url else []
        for name in ("temperature", "seed", "max_tokens", "reasoning_effort"):
            if (value := getattr(self, name)) is not None:
                parts.append(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}")
        parts += [f"{name}={content_hash(text)[:8]}" for name in ("prompt", "system") if (text := getattr(self, name))]
        parts += [f"headers={judge.routing}"] * bool(judge.routing)
        return f"{self.model}({', '.join(parts)})" if parts else self.model

    @property
    def inputs(self) -> tuple[str, ...]:
        """The sample fields in the prompts, and those that are sent before or instead of the prompt."""
        names = {name.partition(".")[0] for name in placeholders([self.prompt, self.system])} | {"messages"}
        names |= set() if self.prompt else {"input"}
        names |= set() if self.system else {"instructions"}
        return tuple(name for name in INPUTS if name in names)

    @property
    def keeps_threads(self) -> bool:
        """False: every call has the whole conversation."""
        return False

    def lacking(self, sample: Sample) -> list[str]:
        """The placeholders without a value. Without a prompt, the input if there are no messages."""
        absent = lacking([self.prompt, self.system], sample)
        return absent if self.prompt or conversation(sample) else ["input", *absent]

    def check(self, trials: int = 1) -> None:
        """Raise ConfigError for a missing API key, a setting that the provider doesn't support, or a model that doesn't
        write text."""
        self._judge.check()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        async with self._judge.opened():
            yield

    async def call(self, sample: Sample, *, trial: int, thread: str) -> Answer:
        """Send the prompt, and return the reply with its tokens and cost."""
        messages = self._messages(parameter_values(sample, trial=trial, thread=thread), sample)
        async with self._judge.opened() as provider:
            ask = partial(provider.complete, messages, _FreeText(), self._settings(trial))
            try:
                reply: Completion = await with_retries(ask, total_timeout=self.timeout, retries=self.retries)
            except JudgeDeclined as declined:
                if is_blank(declined.reply or ""):
                    raise TargetError(str(declined)) from None
                reply = Completion(declined.reply or "", declined.usage, declined.cost)
        trace = None if reply.complete else {"complete": False}  # it was stopped by max_tokens
        return Answer(output=reply.text, usage=reply.usage, cost=reply.cost, trace=trace)

    def _settings(self, trial: int) -> ModelSettings:
        return ModelSettings(
            temperature=self.temperature,
            seed=None if self.seed is None else self.seed + trial - 1,
            max_tokens=self.max_tokens,
            reasoning_effort=self.reasoning_effort,
        )

    def _messages(self, values: Mapping[str, Any], sample: Sample) -> list[ChatMessage]:
        turns: Sequence[Message] = values["messages"]
        system = filled_text(self.system, values) if self.system else sample.instructions or ""
        if any(message.tool_calls or message.role == "tool" for message in turns):
            raise TargetError('the messages have tool calls, which only a URL with api = "chat" can be sent')
        messages = [ChatMessage("system", system)] * bool(system)
        messages += [
            ChatMessage(message.role, message.content)
            for message in turns
            if message.role in ("user", "assistant") or (message.role == "system" and not system)
        ]
        if self.prompt:
            if messages and messages[-1].role == "user":
                messages.pop()
            messages.append(ChatMessage("user", filled_text(self.prompt, values)))
        return messages


def _text_of(setting: str, name: str) -> str:
    """The text of a prompt: the setting itself, or the content of the file that it names."""
    if not setting or "\n" in setting or "{" in setting:
        return setting
    path = Path(setting)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # too long for a path, or with a NUL
        is_file = False
    try:
        if is_file:
            return file_text(path)
    except OSError as error:
        raise ConfigError(f"{name}: {setting} can't be read: {error.strerror}") from None
    if name == "prompt" or (path.suffix in (".txt", ".md", ".prompt") and " " not in setting):
        raise ConfigError(
            f"{name}: there is no file {setting!r}, and it is no text with a placeholder such as {{input}}"
        )
    return setting
