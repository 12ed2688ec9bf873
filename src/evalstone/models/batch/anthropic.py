"""Anthropic's Message Batches.

A batch listing shows nothing that identifies evalstone's batches; only the ids of the results do. If a run is
interrupted during a submission, its batch can therefore only be identified after the batch has ended.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evalstone.errors import ConfigError, JudgeDeclined, ProviderError
from evalstone.models.batch.base import (
    BATCH_API,
    CLOCK_SKEW,
    TRANSFER_TIMEOUT,
    BatchState,
    Finding,
    ProviderBatches,
    Result,
    id_of,
    objects,
    refused,
    segment,
)
from evalstone.models.endpoint import Call, Endpoint, endpoint_of
from evalstone.models.forms import PROMPT, WITHOUT_BOUNDS, ModelCapabilities, with_form, without_bounds
from evalstone.models.provider import ChatMessage, Completion, ReplyForm, RequestSettings
from evalstone.models.refusals import is_cut_off, refusal_of
from evalstone.models.replies import as_count, as_list, as_object, as_text, is_count, read_aside, shown
from evalstone.types import Usage

VERSION = "2023-06-01"
LONGEST_REPLY, SHORTER_REPLY = 16_384, 4_096
PAGE = 1000
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
}
"""The statuses of errors by their type. Any other error may pass."""


class AnthropicBatches(ProviderBatches):
    """Message batches at api.anthropic.com, or at the URL in ANTHROPIC_BASE_URL."""

    kind = "anthropic"
    most_requests = 100_000
    most_bytes = 256_000_000

    def check(self) -> None:
        self.model.check_supported()
        self.model.check_key()
        self.model.check_url(self.url)
        if self.model.reasoning_effort:
            raise ConfigError("Anthropic's batches don't support reasoning_effort: remove it from the settings")
        if not self.model.key:
            raise ConfigError(f"{self.model.model} needs a key: set the environment variable ANTHROPIC_API_KEY")

    @property
    def url(self) -> str:
        """The base URL, up to /v1."""
        return (os.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com").rstrip("/") + "/v1"

    def endpoint(self) -> Endpoint:
        headers = {"anthropic-version": VERSION}
        return endpoint_of(self.model, url=self.url, key_header="x-api-key", headers=headers)

    def payload(
        self,
        form: ReplyForm | None,
        messages: Sequence[ChatMessage],
        settings: RequestSettings,
        capabilities: ModelCapabilities,
    ) -> dict[str, Any]:
        refused = capabilities.refused
        level = max(capabilities.level(form), WITHOUT_BOUNDS)  # structured outputs refuse bounds
        if form is None or level > WITHOUT_BOUNDS:
            level = PROMPT  # there is no JSON mode
            messages = with_form(messages, form, level)
        longest = SHORTER_REPLY if "max_tokens" in refused else LONGEST_REPLY
        payload: dict[str, Any] = {
            "model": self.name,
            "max_tokens": settings.max_tokens or longest,
            "messages": [vars(message) for message in messages if message.role != "system"],
        }
        if system := "\n\n".join(message.content for message in messages if message.role == "system"):
            payload["system"] = system
        if settings.temperature is not None and "temperature" not in refused:
            payload["temperature"] = settings.temperature
        if form is not None and level == WITHOUT_BOUNDS:
            schema = without_bounds(form.schema)
            payload["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        return payload

    def line(self, custom_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        return {"custom_id": custom_id, "params": payload}

    def learn(self, form: ReplyForm | None, sent: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
        message = str(result.get("error", ""))
        if result["status"] != 400:
            return False
        level = WITHOUT_BOUNDS if "output_config" in sent else PROMPT
        again = "max_tokens" not in self.capabilities.refused or "max_tokens" not in message
        return self.capabilities.learn_from(form, level, sent, message) and again

    async def submit(self, batch: str, lines: Sequence[bytes]) -> str:
        body = b'{"requests":[' + b",".join(lines) + b"]}"
        call = Call(
            "POST",
            "/messages/batches",
            body,
            timeout=max(TRANSFER_TIMEOUT, self.model.timeout),
            idempotent=False,
            feature=BATCH_API,
        )
        return self.created_id(await self.endpoint().request_with_retries(call))

    async def find(self, batch: str, *, since: datetime, requests: int, known: Iterable[str]) -> Finding:
        possible: list[str] = []
        async for data in self.listed(f"/messages/batches?limit={PAGE}", "after_id"):
            if _created(data) < since - CLOCK_SKEW:
                break
            state = _state(data)
            if state.remote in set(known) or state.total != requests:
                continue
            if not state.ended:
                possible.append(state.remote)
            elif any(result.custom_id.startswith(f"{batch}-") for result in await self.results(state)):
                return Finding(state.remote)
        return Finding(possible=tuple(possible))

    async def state(self, remote: str, requests: int) -> BatchState:
        return _state(await self.get_object(f"/messages/batches/{segment(remote)}"))

    async def results(self, state: BatchState) -> list[Result]:
        path = f"/messages/batches/{segment(state.remote)}/results"
        content = await self.get_file(path)
        return await read_aside(len(content), _results, content, self.model.max_reply_bytes)

    def read(self, body: Mapping[str, Any]) -> Completion:
        usage, cost = self.usage(body)
        if not isinstance(body.get("content"), list):
            raise ProviderError(f"{self.model.model} sent no message: {shown(body)}", usage=usage, cost=cost)
        blocks = map(as_object, as_list(body.get("content")))
        text = "".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")
        stop_reason = body.get("stop_reason")
        if stop_reason == "refusal":
            raise JudgeDeclined("the model declined to reply", reply=text, usage=usage, cost=cost)
        return Completion(text, usage, cost, complete=not is_cut_off(stop_reason))

    def usage(self, body: Mapping[str, Any]) -> tuple[Usage, float | None]:
        data = as_object(body.get("usage"))
        known = all(is_count(data.get(name)) for name in ("input_tokens", "output_tokens"))
        cached = as_count(data.get("cache_read_input_tokens"))
        written = as_count(data.get("cache_creation_input_tokens"))
        uncached = as_count(data.get("input_tokens")) + written
        usage = Usage(uncached + cached, as_count(data.get("output_tokens")), cached, 1)
        return usage, self.model.price(usage, written) if known else None


def _state(data: Mapping[str, Any]) -> BatchState:
    counts = {name: as_count(count) for name, count in as_object(data.get("request_counts")).items()}
    total = sum(counts.values())
    ended = "ended" if data.get("processing_status") == "ended" else ""
    return BatchState(id_of(data), ended, total - counts.get("processing", 0), total)


def _results(content: bytes, limit: int) -> list[Result]:
    # splitlines would hold a second copy in memory
    return list(map(_result, objects(io.BytesIO(content), limit)))


def _result(line: Mapping[str, Any]) -> Result:
    result, custom_id = as_object(line.get("result")), as_text(line.get("custom_id"))
    if result.get("type") == "succeeded":
        return Result(custom_id, {"status": 200, "body": as_object(result.get("message"))})
    error = as_object(result.get("error"))
    error = as_object(error.get("error")) or error
    status = _STATUS.get(as_text(error.get("type")), 500) if error else 0
    return Result(custom_id, refused(status, refusal_of({"error": error or {"message": result.get("type")}})))


def _created(data: Mapping[str, Any]) -> datetime:
    try:
        created = datetime.fromisoformat(as_text(data.get("created_at")))
    except ValueError:
        raise ProviderError(f"Anthropic sent a batch without a valid created_at: {shown(data)}") from None
    return created if created.tzinfo else created.replace(tzinfo=UTC)
