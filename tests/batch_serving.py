"""The batch APIs of two providers for tests, on loopback: what they are sent, how they end, and trouble on request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

from aiohttp import web

from tests.serving import Response, asked_in, completion, filled, listener, on_a_thread

Behaviour: TypeAlias = "Callable[[dict[str, Any]], Any]"
"""What a model says to one request: text, a Response that refuses it, or None for a request that is not carried out."""


def schema_of(request: dict[str, Any]) -> dict[str, Any]:
    """The JSON schema that a request of either provider asks for."""
    if "response_format" in request:
        return request["response_format"]["json_schema"]["schema"]
    return request["output_config"]["format"]["schema"]


def willing(request: dict[str, Any]) -> str:
    """An answer to any question, by its schema, with words of its material."""
    return json.dumps(filled(schema_of(request), asked_in(request)))


@dataclass
class Made:
    """A batch at the provider. requests: by custom id. status: OpenAI's words for both."""

    id: str
    requests: dict[str, dict[str, Any]]
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    status: str = "in_progress"
    errors: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    results: dict[str, Any] = field(default_factory=dict[str, Any])


class BatchServer:
    """A running server. holding: batches stay under way until `finish`. cut: how often a batch is made and the answer
    to that is HTTP 502. stuck: how often there is no answer to that at all. busy: how often a request for a batch is
    refused with HTTP 429."""

    def __init__(self, behaviour: Behaviour = willing) -> None:
        self.behaviour = behaviour
        self.batches: list[Made] = []
        self.files: dict[str, bytes] = {}
        self.headers: list[dict[str, str]] = []
        self.calls: list[str] = []
        self.holding = False
        self.cut = 0
        self.stuck = 0
        self.busy = 0
        self.url = ""

    @property
    def requests(self) -> list[dict[str, Any]]:
        """All requests of all batches."""
        return [request for batch in self.batches for request in batch.requests.values()]

    def finish(self, *, status: str = "completed", only: int | None = None) -> None:
        """End all batches that are under way; with `only`, that many requests of each are carried out."""
        for batch in self.batches:
            if batch.status == "in_progress":
                for name, request in list(batch.requests.items())[:only]:
                    batch.results[name] = self.behaviour(request)
                batch.status = status

    def refuse(self, message: str) -> None:
        """End all batches that are under way as ones that were not worked on."""
        for batch in self.batches:
            if batch.status == "in_progress":
                batch.status, batch.errors = "failed", [{"code": "invalid", "message": message}]

    def made(self, requests: dict[str, dict[str, Any]], metadata: dict[str, str] | None = None) -> Made:
        batch = Made(f"batch_{len(self.batches)}", requests, metadata or {})
        self.batches.append(batch)
        if not self.holding:
            self.finish()
        return batch

    def trouble(self) -> web.Response | None:
        """What is answered instead of the batch that was asked for."""
        if self.busy:
            self.busy -= 1
            return web.json_response({"error": {"message": "slow down"}}, status=429, headers={"Retry-After": "0.01"})
        return None

    # OpenAI

    async def upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        file = cast(web.FileField, form["file"])
        assert file.filename.endswith(".jsonl")
        name = f"file-{len(self.files)}"
        self.files[name] = file.file.read()
        return web.json_response({"id": name, "object": "file", "purpose": "batch"})

    async def create(self, request: web.Request) -> web.Response:
        if told := self.trouble():
            return told
        wanted = await request.json()
        assert wanted["endpoint"] == "/v1/chat/completions"
        assert wanted["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[wanted["input_file_id"]].splitlines()]
        assert all(line["method"] == "POST" and line["url"] == "/v1/chat/completions" for line in lines)
        batch = self.made({line["custom_id"]: line["body"] for line in lines}, wanted["metadata"])
        return await self.answered(self.openai(batch))

    async def answered(self, told: dict[str, Any]) -> web.Response:
        if self.stuck:
            self.stuck -= 1
            await asyncio.sleep(30)
        if self.cut:
            self.cut -= 1
            return web.json_response({"error": {"message": "bad gateway"}}, status=502)
        return web.json_response(told)

    async def list_openai(self, request: web.Request) -> web.Response:
        return self.page(request.query.get("after"), int(request.query["limit"]), self.openai)

    def page(self, after: str | None, limit: int, told: Callable[[Made], dict[str, Any]]) -> web.Response:
        newest = self.batches[::-1]
        start = next((i + 1 for i, batch in enumerate(newest) if batch.id == after), 0)
        page = newest[start : start + limit]
        return web.json_response({"data": [told(b) for b in page], "has_more": start + limit < len(newest)})

    async def retrieve_openai(self, request: web.Request) -> web.Response:
        return self.retrieved(request, self.openai)

    def retrieved(self, request: web.Request, told: Callable[[Made], dict[str, Any]]) -> web.Response:
        for batch in self.batches:
            if batch.id == request.match_info["id"]:
                return web.json_response(told(batch))
        return web.json_response({"error": {"message": "No batch found"}}, status=404)

    def openai(self, batch: Made) -> dict[str, Any]:
        good = [name for name, said in batch.results.items() if isinstance(said, str)]
        bad = len(batch.results) - len(good)
        ended = batch.status not in ("in_progress", "failed")
        return {
            "id": batch.id,
            "status": batch.status,
            "metadata": batch.metadata,
            "created_at": int(batch.created.timestamp()),
            "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
            "output_file_id": f"out-{batch.id}" if ended and good else None,
            "error_file_id": f"err-{batch.id}" if ended and len(good) < len(batch.requests) else None,
            "request_counts": {"total": len(batch.requests), "completed": len(good), "failed": bad},
        }

    async def content(self, request: web.Request) -> web.Response:
        kind, _, name = request.match_info["id"].partition("-")
        batch = next(batch for batch in self.batches if batch.id == name)
        lines = [self.openai_line(custom_id, batch) for custom_id in reversed(batch.requests)]
        wanted = [line for line in lines if isinstance(batch.results.get(line["custom_id"]), str) is (kind == "out")]
        return web.Response(text="".join(json.dumps(line) + "\n" for line in wanted))

    def openai_line(self, custom_id: str, batch: Made) -> dict[str, Any]:
        said, line = batch.results.get(custom_id), {"id": "r", "custom_id": custom_id}
        if isinstance(said, str):
            return {**line, "response": {"status_code": 200, "body": completion(said)}, "error": None}
        if isinstance(said, Response):
            body = {"error": {"message": said.body}} if isinstance(said.body, str) else said.body
            return {**line, "response": {"status_code": said.status, "body": body}, "error": None}
        return {**line, "response": None, "error": {"code": "batch_expired", "message": "This request expired"}}

    # Anthropic

    async def create_messages(self, request: web.Request) -> web.Response:
        if told := self.trouble():
            return told
        wanted = await request.json()
        assert all(set(each["params"]) >= {"model", "max_tokens", "messages"} for each in wanted["requests"])
        batch = self.made({each["custom_id"]: each["params"] for each in wanted["requests"]})
        return await self.answered(self.anthropic(batch))

    async def list_messages(self, request: web.Request) -> web.Response:
        return self.page(request.query.get("after_id"), int(request.query["limit"]), self.anthropic)

    async def retrieve_messages(self, request: web.Request) -> web.Response:
        return self.retrieved(request, self.anthropic)

    def anthropic(self, batch: Made) -> dict[str, Any]:
        ended, good = batch.status != "in_progress", sum(isinstance(said, str) for said in batch.results.values())
        errored = len(batch.results) - good
        left = len(batch.requests) - len(batch.results)
        counts = {"processing": 0 if ended else left, "succeeded": good, "errored": errored, "canceled": 0}
        return {
            "id": batch.id,
            "type": "message_batch",
            "created_at": batch.created.isoformat().replace("+00:00", "Z"),
            "processing_status": "ended" if ended else "in_progress",
            "request_counts": {**counts, "expired": left if ended else 0},
            "results_url": f"http://elsewhere.invalid/{batch.id}" if ended else None,
        }

    async def results(self, request: web.Request) -> web.Response:
        batch = next(batch for batch in self.batches if batch.id == request.match_info["id"])
        lines = [
            {"custom_id": name, "result": self.result(batch.results.get(name))} for name in reversed(batch.requests)
        ]
        return web.Response(text="\n".join(map(json.dumps, lines)))

    def result(self, said: Any) -> dict[str, Any]:
        if said is None:
            return {"type": "expired"}
        if isinstance(said, Response) and said.status == 200:
            return {"type": "succeeded", "message": said.body}
        if isinstance(said, Response):
            kind = "invalid_request_error" if said.status == 400 else "api_error"
            return {"type": "errored", "error": {"type": "error", "error": {"type": kind, "message": str(said.body)}}}
        usage = {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 20}
        content = [{"type": "text", "text": said}]
        return {"type": "succeeded", "message": {"content": content, "stop_reason": "end_turn", "usage": usage}}


@contextmanager
def serving_batches(behaviour: Behaviour = willing) -> Generator[BatchServer]:
    """A server on a thread of its own, for as long as the block lasts."""
    server = BatchServer(behaviour)

    async def serve(ready: Callable[[], None], stop: asyncio.Event) -> None:
        @web.middleware
        async def noted(request: web.Request, handler: Any) -> web.StreamResponse:
            server.headers.append(dict(request.headers))
            server.calls.append(f"{request.method} {request.path}")
            return cast(web.StreamResponse, await handler(request))

        application = web.Application(client_max_size=50_000_000, middlewares=[noted])
        application.add_routes(
            [
                web.post("/v1/files", server.upload),
                web.get("/v1/files/{id}/content", server.content),
                web.post("/v1/batches", server.create),
                web.get("/v1/batches", server.list_openai),
                web.get("/v1/batches/{id}", server.retrieve_openai),
                web.post("/v1/messages/batches", server.create_messages),
                web.get("/v1/messages/batches", server.list_messages),
                web.get("/v1/messages/batches/{id}", server.retrieve_messages),
                web.get("/v1/messages/batches/{id}/results", server.results),
            ]
        )
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.SockSite(runner, listener()).start()
        server.url = f"http://127.0.0.1:{cast('tuple[str, int]', runner.addresses[0])[1]}"
        ready()
        await stop.wait()
        await runner.cleanup()

    with on_a_thread(serve):
        yield server
