"""The file format of OpenAI's batch API, which other providers and servers share: requests and results as JSON Lines.

A request is `{"custom_id", "method", "url", "body"}`. A result is `{"id", "custom_id", "response", "error"}`, where the
response is `{"status_code", "request_id", "body"}` or null. Results come in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evalstone.models.batch.base import BatchApi, Result, objects, refused
from evalstone.models.chat_completions import chat_completion, chat_payload, chat_usage
from evalstone.models.forms import ModelCapabilities
from evalstone.models.provider import ChatMessage, Completion, ReplyForm, RequestSettings
from evalstone.models.refusals import error_inside, refusal_of
from evalstone.models.replies import as_count, as_object, as_text
from evalstone.types import Usage

CHAT_COMPLETIONS = "/v1/chat/completions"


class ChatBatches(BatchApi):
    """Batches of chat completions in OpenAI's format."""

    def payload(
        self,
        form: ReplyForm | None,
        messages: Sequence[ChatMessage],
        settings: RequestSettings,
        capabilities: ModelCapabilities,
    ) -> dict[str, Any]:
        return chat_payload(self.name, messages, form, settings, capabilities)

    def line(self, custom_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        return {"custom_id": custom_id, "method": "POST", "url": CHAT_COMPLETIONS, "body": payload}

    def read(self, body: Mapping[str, Any]) -> Completion:
        return chat_completion(self.name, body, self.model.price)

    def usage(self, body: Mapping[str, Any]) -> tuple[Usage, float | None]:
        return chat_usage(body, self.model.price)


def chat_results(lines: Iterable[bytes], limit: int) -> Iterator[Result]:
    """The results in the lines of a file. limit: `max_reply_bytes`."""
    return map(_result, objects(lines, limit))


def merge(results: dict[str, Result], result: Result) -> None:
    """Add a result to those of the requests. Of several of one request, the first answer counts, or else the last
    error."""
    if results.setdefault(result.custom_id, result).body["status"] != 200:
        results[result.custom_id] = result


def _result(line: Mapping[str, Any]) -> Result:
    response = as_object(line.get("response"))
    custom_id, body = as_text(line.get("custom_id")), as_object(response.get("body"))
    status = as_count(response.get("status_code"))
    if status == 200 and (inside := error_inside(body)) is not None:
        return Result(custom_id, refused(*inside))
    if status == 200 and body:
        return Result(custom_id, {"status": 200, "body": body})
    said = refusal_of(response.get("body")) or refusal_of({"error": line.get("error")})
    return Result(custom_id, refused(status if status != 200 else 0, said))
