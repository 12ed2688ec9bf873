"""Anthropic's Message Batches.

A batch there carries no mark of ours that a listing shows; only its results do, in their ids. So one that was made in
the moment in which we were stopped is recognized when it has ended: until then it is one that may be ours.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from evalstone.errors import ConfigError, JudgeDeclined, ProviderError
from evalstone.judges.base import Reply, Turn
from evalstone.judges.providers.batch.base import (
    UPLOAD,
    BatchApi,
    BatchState,
    Finding,
    Result,
    as_count,
    as_list,
    as_object,
    id_of,
    objects,
    segment,
)
from evalstone.judges.providers.capabilities import ModelCapabilities
from evalstone.judges.providers.openai_compatible import Call, Endpoint, endpoint
from evalstone.judges.providers.pricing import cost_of
from evalstone.questions.base import Question
from evalstone.types import Usage

VERSION = "2023-06-01"
LONGEST_REPLY, SHORTER_REPLY = 16_384, 4_096
PAGE = 1000
CLOCKS = timedelta(hours=1)
"""How far apart our clock and the provider's may be."""

_BOUNDS = frozenset({"minimum", "maximum", "maxItems", "minItems", "maxLength", "minLength", "pattern"})
_STATUS = {"invalid_request_error": 400, "authentication_error": 401, "permission_error": 403, "not_found_error": 404}


class AnthropicBatches(BatchApi):
    """Batches of messages at api.anthropic.com, or where ANTHROPIC_BASE_URL says."""

    most_requests = 100_000
    most_bytes = 256_000_000

    def check(self) -> None:
        if not self.judge.key():
            raise ConfigError(f"{self.judge.model} needs a key: set the environment variable ANTHROPIC_API_KEY")

    def endpoint(self) -> Endpoint:
        judge = self.judge
        url = os.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
        headers = {"x-api-key": judge.key(), "anthropic-version": VERSION, **judge.headers}
        return endpoint(f"{url.rstrip('/')}/v1", headers, timeout=judge.timeout, deadline=judge.deadline)

    def payload(self, question: Question[Any], turns: list[Turn], refusals: ModelCapabilities) -> dict[str, Any]:
        judge, refused = self.judge, refusals.settings
        longest = SHORTER_REPLY if "max_tokens" in refused else LONGEST_REPLY
        made: dict[str, Any] = {
            "model": self.model,
            "max_tokens": judge.max_tokens or longest,
            "messages": [{"role": turn.role, "content": turn.content} for turn in turns if turn.role != "system"],
        }
        if system := "\n\n".join(turn.content for turn in turns if turn.role == "system"):
            made["system"] = system
        if judge.temperature is not None and "temperature" not in refused:
            made["temperature"] = judge.temperature
        schema = question.json_schema
        if schema is not None and "output_config" not in refused:
            made["output_config"] = {"format": {"type": "json_schema", "schema": _unbounded(schema)}}
        return made

    def line(self, custom_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        return {"custom_id": custom_id, "params": payload}

    def learn(self, question: Question[Any], sent: Mapping[str, Any], told: Mapping[str, Any]) -> bool:
        said = str(told.get("error", ""))
        if told["status"] != 400:
            return False
        if "output_config" in sent and any(word in said for word in ("output_config", "output format", "schema")):
            self.refusals.settings.add("output_config")
            return True
        for name in ("temperature", "max_tokens"):
            if name in sent and name in said:
                again = name not in self.refusals.settings
                self.refusals.settings.add(name)
                return again or name == "temperature"
        return False

    async def submit(self, batch: str, lines: Sequence[bytes]) -> str:
        body = b'{"requests":[' + b",".join(lines) + b"]}"
        call = Call("POST", "/messages/batches", body, timeout=max(UPLOAD, self.judge.timeout), once=True)
        return self.made_by(await self.endpoint().exchange(call))

    async def find(self, batch: str, *, since: datetime, requests: int, known: Iterable[str]) -> Finding:
        possible: list[str] = []
        async for told in self._listed(since - CLOCKS):
            state = _state(told)
            if state.remote in set(known) or state.total != requests:
                continue
            if not state.ended:
                possible.append(state.remote)
            elif any(result.custom_id.startswith(f"{batch}-") for result in await self.results(state)):
                return Finding(state.remote)
        return Finding(possible=tuple(possible))

    async def _listed(self, since: datetime) -> AsyncIterator[dict[str, Any]]:
        after = ""
        while True:
            page = await self.get_object(
                f"/messages/batches?limit={PAGE}" + (f"&after_id={segment(after)}" if after else "")
            )
            found = [as_object(each) for each in as_list(page.get("data"))]
            for told in found:
                if _made(told) < since:
                    return
                yield told
            if not found or not page.get("has_more"):
                return
            after = id_of(found[-1])

    async def state(self, remote: str) -> BatchState:
        return _state(await self.get_object(f"/messages/batches/{segment(remote)}"))

    async def results(self, state: BatchState) -> list[Result]:
        path = f"/messages/batches/{segment(state.remote)}/results"
        return list(_results(await self.get_file(path)))

    def read(self, question: Question[Any], body: Mapping[str, Any]) -> Reply:
        usage, cost = self.taken(body)
        if not isinstance(body.get("content"), list):
            raise ProviderError(f"{self.judge.model} sent no message: {str(body)[:200]}", usage=usage, cost=cost)
        blocks = [as_object(each) for each in as_list(body.get("content"))]
        text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
        stopped = body.get("stop_reason")
        if stopped == "refusal":
            raise JudgeDeclined("the model declined to reply", reply=text, usage=usage, cost=cost)
        return Reply(text, usage, cost, complete=stopped not in ("max_tokens", "model_context_window_exceeded"))

    def taken(self, body: Mapping[str, Any]) -> tuple[Usage, float | None]:
        told = as_object(body.get("usage"))
        cached = as_count(told.get("cache_read_input_tokens"))
        fresh = as_count(told.get("input_tokens")) + as_count(told.get("cache_creation_input_tokens"))
        usage = Usage(fresh + cached, as_count(told.get("output_tokens")), cached, 1)
        prices = self.judge.prices
        return usage, cost_of(usage, provider="anthropic", model=self.model, prices=prices) if told else None


def _state(told: Mapping[str, Any]) -> BatchState:
    counts = {name: as_count(count) for name, count in as_object(told.get("request_counts")).items()}
    total = sum(counts.values())
    ended = "ended" if told.get("processing_status") == "ended" else ""
    return BatchState(id_of(told), ended, total - counts.get("processing", 0), total)


def _results(content: bytes) -> Iterator[Result]:
    for line in objects(content):
        result, custom_id = as_object(line.get("result")), str(line.get("custom_id"))
        if result.get("type") == "succeeded":
            yield Result(custom_id, {"status": 200, "body": as_object(result.get("message"))})
            continue
        error = as_object(result.get("error"))
        error = as_object(error.get("error")) or error
        status = _STATUS.get(str(error.get("type")), 500) if error else 0
        yield Result(custom_id, {"status": status, "error": str(error.get("message") or result.get("type"))})


def _unbounded(schema: Any) -> Any:
    """A schema without the bounds that structured output refuses there; the reply is checked against them anyway."""
    if isinstance(schema, Mapping):
        members = cast("Mapping[str, Any]", schema)
        # A property may be called as a bound is; a bound's value is no schema.
        kept = [name for name in members if name not in _BOUNDS or isinstance(members[name], Mapping)]
        return {name: _unbounded(members[name]) for name in kept}
    if isinstance(schema, list | tuple):
        return [_unbounded(inner) for inner in cast("Sequence[Any]", schema)]
    return schema


def _made(told: Mapping[str, Any]) -> datetime:
    try:
        made = datetime.fromisoformat(str(told.get("created_at")))
    except ValueError:
        raise ProviderError(f"a batch without created_at came: {str(told)[:200]}") from None
    return made if made.tzinfo else made.replace(tzinfo=UTC)
