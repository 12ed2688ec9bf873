"""Providers' batch APIs: many questions given at once, answered within a day at half the price.

`batch_api(judge)` finds the one that a judge can be asked through.
"""

from __future__ import annotations

import io
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple, cast
from urllib.parse import quote

from evalstone.errors import ConfigError, DeliveryUnknown, JudgeError, ProviderError
from evalstone.judges.base import Judge
from evalstone.judges.model import ModelJudge, with_probabilities
from evalstone.judges.providers.base import ChatMessage, Completion, ModelSettings, at_batch_price, split_model
from evalstone.judges.providers.forms import ModelCapabilities
from evalstone.judges.providers.openai_compatible import Call, Endpoint
from evalstone.judges.providers.replies import as_list, as_object, one_line, parsed_json, shown, window_error
from evalstone.questions.base import Question
from evalstone.types import Usage

OFFERED = "models of openai/… and anthropic/…"

BATCH_API = "batch API"

UPLOAD = 600.0
"""Seconds for one transfer of a whole batch."""

RESULT_BYTES = 500_000_000
"""Of a file of results; more if the judge's `max_reply_bytes` is larger."""

MOST_PAGES = 1000
"""Of one listing."""

CLOCKS = timedelta(hours=1)
"""How far apart our clock and the provider's may be."""

_BREAKS = "\x85\u2028\u2029"
"""What some readers of lines take for the end of one, though JSON does not."""

_AGAIN = frozenset({0, 408, 409, 425, 429})


@dataclass(frozen=True)
class BatchState:
    """What a provider says of a batch. ended: how it ended; empty while it is under way. done: requests worked off.
    refused: why it was not worked on at all. files: where its results are."""

    remote: str
    ended: str
    done: int
    total: int
    refused: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """Whether a provider has a batch of which only our id is known. remote: its id there. possible: ids of batches that
    may be it, which cannot be told before they end. Neither: the provider does not have it."""

    remote: str | None = None
    possible: tuple[str, ...] = ()


class Result(NamedTuple):
    """What came of one request: the id that was sent with it, and the provider's answer as `{"status", "body"}` or
    `{"status", "error"}`, where status is an HTTP status, or 0 for a request that was not carried out."""

    custom_id: str
    body: dict[str, Any]


class BatchApi(ABC):
    """The batch API of one judge's provider. Every call raises what Endpoint.request_with_retries raises.

    most_requests, most_bytes: of one batch. capabilities: what is left out of the requests from now on.
    """

    most_requests: ClassVar[int]
    most_bytes: ClassVar[int]

    def __init__(self, judge: ModelJudge) -> None:
        self.judge = judge
        self.model = split_model(judge.model)[1]
        self.capabilities = ModelCapabilities()

    @abstractmethod
    def check(self) -> None:
        """Raise ConfigError for what can be known to be wrong before anything is submitted, such as a missing key."""

    @abstractmethod
    def endpoint(self) -> Endpoint:
        """The provider's endpoint on the running loop."""

    @abstractmethod
    def payload(
        self,
        question: Question[Any],
        messages: Sequence[ChatMessage],
        settings: ModelSettings,
        capabilities: ModelCapabilities,
    ) -> dict[str, Any]:
        """The body of a request, without what was refused."""

    @abstractmethod
    def line(self, custom_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """A request as one of a batch."""

    @abstractmethod
    async def submit(self, batch: str, lines: Sequence[bytes]) -> str:
        """Submit a batch; its id at the provider. Raises DeliveryUnknown if it may or may not have arrived."""

    @abstractmethod
    async def find(self, batch: str, *, since: datetime, requests: int, known: Iterable[str]) -> Finding:
        """Look for a batch of ours with so many requests, made no earlier than `since`, among those at the provider
        that are not known already."""

    @abstractmethod
    async def state(self, remote: str) -> BatchState:
        """What has become of a batch."""

    @abstractmethod
    async def results(self, state: BatchState) -> list[Result]:
        """The results of a batch that ended, in any order. Lines that cannot be read are left out."""

    @abstractmethod
    def read(self, body: Mapping[str, Any]) -> Completion:
        """The completion in a response, at the usual price. Raises JudgeDeclined for a decline, else ProviderError."""

    @abstractmethod
    def usage(self, body: Mapping[str, Any]) -> tuple[Usage, float | None]:
        """The tokens that a response reports and their cost at the usual price; None if it reports none."""

    def opened(self) -> AbstractAsyncContextManager[object]:
        """What is needed while batches are asked about."""
        return self.endpoint()

    def request(
        self, custom_id: str, question: Question[Any], messages: Sequence[ChatMessage], settings: ModelSettings
    ) -> bytes:
        """A question as one request of a batch, on one line."""
        made = self.line(custom_id, self.payload(question, messages, settings, self.capabilities))
        line = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
        for character in "" if line.isascii() else _BREAKS:
            line = line.replace(character, f"\\u{ord(character):04x}")
        return line.encode()

    def reply(self, question: Question[Any], result: Mapping[str, Any]) -> Completion:
        """The completion in a result. Raises JudgeDeclined for a decline, ProviderError for anything else."""
        if result["status"] != 200:
            refusal = self.refusal(result)
            raise window_error(refusal, asked="\n".join(question.render())) or ProviderError(refusal)
        try:
            completion = with_probabilities(question, self.read(result["body"]))
        except JudgeError as error:
            error.cost = at_batch_price(error.cost)
            raise
        return replace(completion, cost=at_batch_price(completion.cost))

    def paid(self, result: Mapping[str, Any]) -> float | None:
        """What a result cost in US dollars; None if that is unknown."""
        return at_batch_price(self.usage(as_object(result["body"]))[1]) if result["status"] == 200 else 0.0

    def refusal(self, result: Mapping[str, Any]) -> str:
        """The error of a result that holds no completion."""
        message = one_line(str(result.get("error", "")))
        if not result["status"]:
            return f"the batch ended without an answer: {message}"
        return f"{self.judge.model} refused the request (HTTP {result['status']}: {message})"

    def may_pass(self, result: Mapping[str, Any]) -> bool:
        """Whether the same request may have another result the next time."""
        return result["status"] in _AGAIN or result["status"] >= 500 or result["status"] == 200

    def learn(self, question: Question[Any], sent: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
        """Leave out from now on what a refusal of the sent payload names. Returns whether it named anything."""
        return self.capabilities.learn(question.kind, sent, result["status"], self.refusal(result))

    def created_id(self, content: bytes) -> str:
        """The provider's id of the batch it has just created. Raises DeliveryUnknown if the answer doesn't say."""
        try:
            return id_of(self.endpoint().parsed(content))
        except ProviderError as error:
            raise DeliveryUnknown(str(error)) from None

    async def get_object(self, path: str) -> dict[str, Any]:
        """The JSON object at a path."""
        return self.endpoint().parsed(await self.endpoint().request_with_retries(Call("GET", path)))

    async def listed(self, path: str, cursor: str) -> AsyncIterator[dict[str, Any]]:
        """The objects that a path lists, over all its pages; cursor is the parameter that names the last one seen."""
        after = ""
        for _ in range(MOST_PAGES):
            page = await self.get_object(f"{path}&{cursor}={segment(after)}" if after else path)
            entries = [as_object(each) for each in as_list(page.get("data"))]
            for entry in entries:
                yield entry
            if not entries or not page.get("has_more"):
                return
            after = id_of(entries[-1])
        raise ProviderError(f"{self.endpoint().host} lists more than {MOST_PAGES:,} pages of batches")

    async def get_file(self, path: str) -> bytes:
        """The file at a path, which may be as large as a batch."""
        most_bytes = max(RESULT_BYTES, self.judge.max_reply_bytes)
        call = Call("GET", path, timeout=max(UPLOAD, self.judge.timeout), most_bytes=most_bytes)
        return await self.endpoint().request_with_retries(call)


def segment(text: str) -> str:
    """A text as one segment of a path: what a provider calls a batch leads nowhere else."""
    return quote(text, safe="")


def id_of(reply: Mapping[str, Any]) -> str:
    """What a provider calls a batch or a file. Raises ProviderError where it does not say."""
    value = reply.get("id")
    if not isinstance(value, str) or not value.strip("."):
        raise ProviderError(f"a batch or a file without an id came: {shown(reply)}")
    return value


def objects(content: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects on the lines of a text; lines that hold none are passed over."""
    for line in io.BytesIO(content):  # not splitlines, which would hold all of it twice
        try:
            found = parsed_json(line) if line.strip() else None
        except ValueError:
            # What has no readable result is asked again, as what has no result at all.
            continue
        if isinstance(found, dict):
            yield cast("dict[str, Any]", found)


def batch_api(judge: Judge) -> BatchApi:
    """The batch API of a judge, not checked yet. Raises ConfigError for a judge without one."""
    if not isinstance(judge, ModelJudge):
        raise ConfigError(f"the judge {judge.identity} has no batch API; {OFFERED} have one")
    provider, _ = split_model(judge.model)
    if provider == "openai":
        from evalstone.judges.providers.batch.openai import OpenAIBatches  # noqa: PLC0415 - only the one that is used is loaded

        return OpenAIBatches(judge)
    if provider == "anthropic" and judge.base_url is None:
        from evalstone.judges.providers.batch.anthropic import AnthropicBatches  # noqa: PLC0415

        return AnthropicBatches(judge)
    raise ConfigError(f"{judge.identity} has no batch API that evalstone knows; {OFFERED} have one")
