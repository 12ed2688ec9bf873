"""OpenAI's batch API: upload a file of requests, create a batch from it, download files of results.

The metadata of a batch contains evalstone's id, so a batch whose submission was interrupted can be found in the
listing.
"""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from evalstone._core.guards import is_number
from evalstone.models.batch.base import (
    BATCH_API,
    CLOCK_SKEW,
    TRANSFER_TIMEOUT,
    BatchState,
    Finding,
    ProviderBatches,
    Result,
    id_of,
    segment,
)
from evalstone.models.batch.chat import CHAT_COMPLETIONS, ChatBatches, chat_results, merge
from evalstone.models.endpoint import Call, Endpoint, endpoint_of
from evalstone.models.replies import as_count, as_list, as_object, as_text, read_aside, shown

MARK = "evalstone_batch"
PAGE = 100
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class OpenAIBatches(ChatBatches, ProviderBatches):
    """Batches of chat completions at api.openai.com, or at a compatible `base_url`."""

    kind = "openai"
    most_requests = 50_000
    most_bytes = 200_000_000

    def check(self) -> None:
        self.model.check()

    def endpoint(self) -> Endpoint:
        return endpoint_of(self.model)

    async def submit(self, batch: str, lines: Sequence[bytes]) -> str:
        request = {
            "input_file_id": await self._upload(f"evalstone-{batch}.jsonl", lines),
            "endpoint": CHAT_COMPLETIONS,
            "completion_window": "24h",
            "metadata": {MARK: batch},
        }
        call = Call("POST", "/batches", json.dumps(request).encode(), idempotent=False, feature=BATCH_API)
        return self.created_id(await self.endpoint().request_with_retries(call))

    async def _upload(self, name: str, lines: Sequence[bytes]) -> str:
        body, content_type = _form(name, lines)
        # Uploading a file twice is harmless: files cost nothing.
        headers = {"Content-Type": content_type}
        timeout = max(TRANSFER_TIMEOUT, self.model.timeout)
        call = Call("POST", "/files", body, headers, timeout=timeout, feature=BATCH_API)
        return id_of(self.endpoint().parsed(await self.endpoint().request_with_retries(call)))

    async def find(self, batch: str, *, since: datetime, requests: int, known: Iterable[str]) -> Finding:
        earliest = (since - CLOCK_SKEW).timestamp()
        async for data in self.listed(f"/batches?limit={PAGE}", "after"):
            if as_object(data.get("metadata")).get(MARK) == batch:
                return Finding(id_of(data))
            created: Any = data.get("created_at")
            if is_number(created) and 0 < created < earliest:
                break
        return Finding()

    async def state(self, remote: str, requests: int) -> BatchState:
        data = await self.get_object(f"/batches/{segment(remote)}")
        status = as_text(data.get("status"))
        counts = as_object(data.get("request_counts"))
        files = tuple(filter(None, (as_text(data.get(name)) for name in ("output_file_id", "error_file_id"))))
        done = as_count(counts.get("completed")) + as_count(counts.get("failed"))
        refused = _refusal(data) if status == "failed" and not files else ""
        ended = status if status in _ENDED else ""
        return BatchState(remote, ended, done, as_count(counts.get("total")), refused, files)

    async def results(self, state: BatchState) -> list[Result]:
        results: dict[str, Result] = {}
        for file in state.files:
            content = await self.get_file(f"/files/{segment(file)}/content")
            for result in await read_aside(len(content), _results, content, self.model.max_reply_bytes):
                merge(results, result)
        return list(results.values())


def _results(content: bytes, limit: int) -> list[Result]:
    # splitlines would hold a second copy in memory
    return list(chat_results(io.BytesIO(content), limit))


def _refusal(data: Mapping[str, Any]) -> str:
    errors = map(as_object, as_list(as_object(data.get("errors")).get("data")))
    reasons = dict.fromkeys(shown(error.get("message") or error.get("code")) for error in errors)
    return "; ".join(list(reasons)[:3]) or "no reason given"


def _form(name: str, lines: Sequence[bytes]) -> tuple[bytes, str]:
    """A multipart form with a file and its purpose, and the form's content type."""
    boundary = secrets.token_hex(16)
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--{boundary}\r\n'
    head += f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
    head += "Content-Type: application/jsonl\r\n\r\n"
    body = b"".join((head.encode(), b"\n".join(lines), f"\r\n--{boundary}--\r\n".encode()))
    return body, f"multipart/form-data; boundary={boundary}"
