"""Language models with a prompt as targets."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from evalstone._core.declarations import Range
from evalstone._core.display import quoted
from evalstone._core.files import file_text
from evalstone._core.json import content_hash
from evalstone._core.sizes import MOST_RETRIES
from evalstone._core.text import is_blank
from evalstone.errors import ConfigError, JudgeDeclined, TargetError
from evalstone.models.model import LanguageModel
from evalstone.models.provider import ChatMessage, Completion
from evalstone.targets.answers import Answer
from evalstone.targets.base import INPUTS, Target, conversation, parameter_values
from evalstone.targets.retries import with_retries
from evalstone.targets.templates import check_placeholders, filled_text, lacking, placeholders
from evalstone.types import Message, Sample

_PLACEHOLDERS = ("input", "context", "instructions", "metadata")


class ModelTarget(Target):
    """A language model.

    Without a prompt, it gets the sample's messages up to the last user message, or else the input. If the model refuses
    to answer, its refusal is the answer.

    Raises:
        ConfigError: The provider is unknown, the prompt can't be read or has an unknown placeholder, or a setting is
            out of range.
    """

    model: LanguageModel | str
    """The model, or its name. Its `timeout` and `total_timeout` are those of the target."""
    prompt: str = ""
    """A text with the placeholders `{input}`, `{context}`, `{instructions}`, `{metadata.NAME}`, or the path of a file
    with such a text. It replaces the last user message."""
    system: str = ""
    """The system prompt, also a text or a file; by default, the sample's instructions."""
    retries: Annotated[int, Range(0, MOST_RETRIES)] = 3
    """The most retries of a request that may have been processed. Other requests are retried until `timeout`."""
    _model: LanguageModel = field(init=False, repr=False, compare=False)
    """The model, with the timeout of the target."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("prompt", "system"):
            text = getattr(self, name)
            object.__setattr__(self, name, _text_of(text, name))
            check_placeholders(getattr(self, name), _PLACEHOLDERS, name)
        if self.prompt and not placeholders(self.prompt):
            raise ConfigError("prompt has no placeholder such as {input}, so that all samples would be asked alike")
        model = LanguageModel(self.model) if isinstance(self.model, str) else self.model
        object.__setattr__(self, "_model", replace(model, timeout=self.timeout, total_timeout=self.timeout))

    @property
    def name(self) -> str:
        """The identity of the model, with prompts as hashes."""
        texts = ((name, getattr(self, name)) for name in ("prompt", "system"))
        parts = ", ".join(f"{name}={content_hash(text)[:8]}" for name, text in texts if text)
        return f"{self._model.identity} with {parts}" if parts else self._model.identity

    @property
    def inputs(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The sample fields in the prompts, and those that are sent before or instead of the prompt."""
        names = {name.partition(".")[0] for name in placeholders([self.prompt, self.system])} | {"messages"}
        names |= set() if self.prompt else {"input"}
        names |= set() if self.system else {"instructions"}
        return tuple(name for name in INPUTS if name in names)

    @property
    def keeps_threads(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """False: every call has the whole conversation."""
        return False

    def lacking(self, sample: Sample) -> list[str]:
        """The placeholders without a value. Without a prompt, the input if there are no messages."""
        absent = lacking([self.prompt, self.system], sample)
        return absent if self.prompt or conversation(sample) else ["input", *absent]

    def check(self, trials: int = 1) -> None:
        """Raise ConfigError for a setting that the protocol doesn't support, or a model that doesn't write text."""
        self._model.check_usable()

    def check_keys(self) -> None:
        """Raise ConfigError for an API key that is missing or can't be sent, and for what the provider's library, which
        may need the key, refuses."""
        self._model.check()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        async with self._model.opened():
            yield

    async def call(self, sample: Sample, *, trial: int, thread: str) -> Answer:
        """Send the prompt, and return the reply with its tokens and cost."""
        messages = self._messages(parameter_values(sample, trial=trial, thread=thread), sample)
        async with self._model.opened() as opened:
            ask = partial(opened.provider.complete, messages, None, self._model.request_settings(trial - 1))
            try:
                reply: Completion = await with_retries(ask, total_timeout=self.timeout, retries=self.retries)
            except JudgeDeclined as declined:
                if is_blank(declined.reply or ""):
                    raise TargetError(str(declined)) from None
                reply = Completion(declined.reply or "", declined.usage, declined.cost)
        trace = None if reply.complete else {"complete": False}  # it was stopped by max_tokens
        return Answer(output=reply.text, usage=reply.usage, cost=reply.cost, trace=trace)

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
            f"{name}: there is no file {quoted(setting)}, and it is no text with a placeholder such as {{input}}"
        )
    return setting
