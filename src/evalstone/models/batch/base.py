"""Batches: many requests in one submission, which are answered later."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote

from evalstone._core.guards import is_object
from evalstone.errors import DeliveryUnknown, JudgeDeclined, JudgeError, ProviderError
from evalstone.models.catalog import split_model
from evalstone.models.endpoint import Call, Endpoint
from evalstone.models.forms import ModelCapabilities
from evalstone.models.model import LanguageModel
from evalstone.models.prices import at_batch_price
from evalstone.models.provider import ChatMessage, Completion, ReplyForm, RequestSettings
from evalstone.models.refusals import BLOCKED, MAY_BLOCK, Refusal, blocked_reason, check_whole, may_pass, window_error
from evalstone.models.replies import as_list, as_object, one_line, parsed_json, shown, too_many_values
from evalstone.types import Usage

SUPPORTED = "a model of openai/… or anthropic/…, or files of requests with one of an OpenAI-compatible endpoint"

BATCH_API = "batch API"

TRANSFER_TIMEOUT = 600.0
"""Seconds for one upload or download of a whole batch."""

RESULT_BYTES = 500_000_000
"""The maximum size of a result file, or the model's `max_reply_bytes` if that is larger."""

MOST_PAGES = 1000
"""The maximum number of pages of one listing."""

CLOCK_SKEW = timedelta(hours=1)
"""The maximum difference between the local clock and the provider's."""

_BREAKS = "\x85\u2028\u2029"
"""Characters that some programs treat as line breaks, although JSON doesn't."""


@dataclass(frozen=True)
class BatchState:
    """The state of a batch at its provider."""

    remote: str
    """The provider's id of the batch."""
    ended: str
    """The final status; empty while the batch is in progress."""
    done: int
    """The number of processed requests."""
    total: int
    """The number of all requests."""
    refused: str = ""
    """Why the whole batch was refused."""
    files: tuple[str, ...] = ()
    """The ids of the result files."""
    note: str = ""
    """What else to know about a batch in progress."""


@dataclass(frozen=True)
class Finding:
    """The result of a search for a batch whose submission was interrupted.

    remote: the provider's id of the batch. possible: the ids of batches that may be it; that shows only when they end.
    If both are empty, the provider doesn't have the batch.
    """

    remote: str | None = None
    possible: tuple[str, ...] = ()


class Result(NamedTuple):
    """The result of one request: its id, and the response as `{"status", "body"}` or `{"status", "error"}`, the latter
    with `blocked`, the reason, if the provider blocked the text.

    The status is an HTTP status, or 0 for a request that was not processed.
    """

    custom_id: str
    body: dict[str, Any]


def refused(status: int, said: Refusal | None) -> dict[str, Any]:
    """The body of a `Result` for an error; with `blocked` if the provider blocked the text."""
    if said is None:
        return {"status": status, "error": "no reason given"}
    reason = blocked_reason(said) if status in MAY_BLOCK else ""
    message = said.message or shown(", ".join(sorted(said.codes)))
    return {"status": status, "error": message, **({"blocked": reason} if reason else {})}


class BatchApi(ABC):
    """Where a model's batches are submitted and their results come from."""

    kind: ClassVar[str]
    """A name for it. It is stored with each batch, which only the same kind can collect."""
    most_requests: ClassVar[int]
    """The maximum number of requests in a batch."""
    most_bytes: ClassVar[int]
    """The maximum size of a batch in bytes."""
    lists_at_once: ClassVar[bool] = False
    """Whether `find` finds every batch that was submitted, even if that was just now."""
    submits: ClassVar[str] = "submitted"
    """What is done with the requests of a new batch, as a participle."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.name = split_model(model.model)[1]
        self.capabilities = ModelCapabilities()
        """What the model supports, learned from refusals."""

    @abstractmethod
    def check(self) -> None:
        """Raise ConfigError for problems that can be detected before the submission, such as a missing key."""

    @abstractmethod
    def payload(
        self,
        form: ReplyForm | None,
        messages: Sequence[ChatMessage],
        settings: RequestSettings,
        capabilities: ModelCapabilities,
    ) -> dict[str, Any]:
        """The body of a request, without settings that the model doesn't support."""

    @abstractmethod
    def line(self, custom_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """One entry of a batch."""

    @abstractmethod
    async def submit(self, batch: str, lines: Sequence[bytes]) -> str:
        """Submit a batch, and return the provider's id. Raises DeliveryUnknown if it may or may not have arrived."""

    @abstractmethod
    async def find(self, batch: str, *, since: datetime, requests: int, known: Iterable[str]) -> Finding:
        """Look for a batch by evalstone's id.

        Args:
            batch: evalstone's id of the batch.
            since: The earliest time of its submission.
            requests: The number of its requests.
            known: The provider's ids of other batches.
        """

    @abstractmethod
    async def state(self, remote: str, requests: int) -> BatchState:
        """The current state of a batch. requests: the number of its requests."""

    @abstractmethod
    async def results(self, state: BatchState) -> list[Result]:
        """The results of a batch that ended, in any order. Unreadable lines are skipped."""

    @abstractmethod
    def read(self, body: Mapping[str, Any]) -> Completion:
        """The completion in a response, at the regular price. Raises JudgeDeclined, or ProviderError if it has none."""

    @abstractmethod
    def usage(self, body: Mapping[str, Any]) -> tuple[Usage, float | None]:
        """The usage in a response, and its cost at the regular price; None if it has no usage."""

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[object]:
        """A context that holds the connection open."""

    def price(self, cost: float | None) -> float | None:
        """The cost of a request in a batch, given its regular cost."""
        return at_batch_price(cost)

    def shown(self, remote: str) -> str:
        """A batch's name for people."""
        return remote

    def request(
        self, custom_id: str, form: ReplyForm | None, messages: Sequence[ChatMessage], settings: RequestSettings
    ) -> bytes:
        """One entry of a batch, as a JSON line."""
        entry = self.line(custom_id, self.payload(form, messages, settings, self.capabilities))
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
        for character in "" if line.isascii() else _BREAKS:
            line = line.replace(character, f"\\u{ord(character):04x}")
        return line.encode()

    def reply(self, messages: Sequence[ChatMessage], result: Mapping[str, Any]) -> Completion:
        """The completion in a result. Raises JudgeDeclined if the model declined, or ProviderError if it has none, or
        if the prompt was too long.

        messages: those of the request.
        """
        if blocked := result.get("blocked"):
            raise JudgeDeclined(f"{BLOCKED}: {blocked}")
        if result["status"] != 200:
            refusal = self.refusal(result)
            request = "\n".join(message.content for message in messages)
            raise window_error(refusal, request=request) or ProviderError(refusal)
        try:
            completion = self.read(result["body"])
            check_whole(self.model.identity, messages, completion)
        except JudgeError as error:
            error.cost = self.price(error.cost)
            raise
        return replace(completion, cost=self.price(completion.cost))

    def paid(self, result: Mapping[str, Any]) -> float | None:
        """The cost of a result in US dollars; None if unknown."""
        return self.price(self.usage(as_object(result["body"]))[1]) if result["status"] == 200 else 0.0

    def refusal(self, result: Mapping[str, Any]) -> str:
        """The error message of a result without a completion."""
        message = one_line(str(result.get("error", "")))
        if not result["status"]:
            return f"the batch ended without an answer: {message}"
        return f"{self.model.model} refused the request (HTTP {result['status']}: {message})"

    def may_pass(self, result: Mapping[str, Any]) -> bool:
        """Whether the same request may have a different result next time. Without credit, the next batch isn't
        accepted, which ends the run."""
        return result["status"] in (0, 200, 402) or may_pass(result["status"])

    def learn(self, form: ReplyForm | None, sent: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
        """Learn from the refusal of a payload. Returns whether later requests will be different."""
        return self.capabilities.learn(form, sent, result["status"], self.refusal(result))


class ProviderBatches(BatchApi):
    """Batches at a provider. Every call raises what `Endpoint.request_with_retries` raises."""

    @abstractmethod
    def endpoint(self) -> Endpoint:
        """The provider's endpoint on the running loop."""

    def opened(self) -> AbstractAsyncContextManager[object]:
        return self.endpoint()

    def created_id(self, content: bytes) -> str:
        """The provider's id of a batch that was just created. Raises DeliveryUnknown if the response has none."""
        try:
            return id_of(self.endpoint().parsed(content))
        except ProviderError as error:
            raise DeliveryUnknown(str(error)) from None

    async def get_object(self, path: str) -> dict[str, Any]:
        """The JSON object at a path."""
        return self.endpoint().parsed(await self.endpoint().request_with_retries(Call("GET", path)))

    async def listed(self, path: str, cursor: str) -> AsyncIterator[dict[str, Any]]:
        """The objects in a paginated listing. cursor: the query parameter with the id of the last object of a page."""
        after = ""
        for _ in range(MOST_PAGES):
            page = await self.get_object(f"{path}&{cursor}={segment(after)}" if after else path)
            entries = list(map(as_object, as_list(page.get("data"))))
            for entry in entries:
                yield entry
            if not entries or not page.get("has_more"):
                return
            after = id_of(entries[-1])
        raise ProviderError(f"{self.endpoint().host} lists more than {MOST_PAGES:,} pages of batches")

    async def get_file(self, path: str) -> bytes:
        """The file at a path. It may be as large as a batch."""
        most_bytes = max(RESULT_BYTES, self.model.max_reply_bytes)
        call = Call("GET", path, timeout=max(TRANSFER_TIMEOUT, self.model.timeout), most_bytes=most_bytes)
        return await self.endpoint().request_with_retries(call)


def segment(text: str) -> str:
    """A text as one URL path segment, so that an id can't lead to another path."""
    return quote(text, safe="")


def id_of(reply: Mapping[str, Any]) -> str:
    """The id of a batch or a file. Raises ProviderError if there is none."""
    value = reply.get("id")
    if not isinstance(value, str) or not value.strip("."):
        raise ProviderError(f"the provider sent a batch or a file without an id: {shown(reply)}")
    return value


def objects(lines: Iterable[bytes], limit: int) -> Iterator[dict[str, Any]]:
    """The JSON objects in the lines of a JSON Lines file. Other lines are skipped; their requests count as unanswered.
    So do lines with more lists and objects than a reply of `limit` bytes may have."""
    for line in lines:
        try:
            value = parsed_json(line) if line.strip() and too_many_values(line, limit) is None else None
        except ValueError:
            continue
        if is_object(value):
            yield value
