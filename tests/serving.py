"""A model server for tests, on loopback: OpenAI's chat completions, or other JSON, with whatever trouble a test asks
for."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from aiohttp import web


@dataclass(frozen=True)
class Response:
    """What the server sends: a status, a body, headers."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=lambda: dict[str, str]())
    delay: float = 0.0


Behaviour: TypeAlias = "Callable[[dict[str, Any], int], Response | Any]"


def completion(text: str, *, finish: str = "stop", **more: Any) -> dict[str, Any]:
    """A chat completion with this text."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 40}}
    return {"choices": [{"message": message, "finish_reason": finish, **more}], "usage": usage}


_FENCED = re.compile(r"<<([a-z_]+)(?: 1)?>>\n(.*?)\n<</", re.DOTALL)
_NUMBERS = re.compile(r"^\d+\. ", re.MULTILINE)


def asked_in(request: dict[str, Any]) -> str:
    """The first user message of a request, which has the material."""
    return next((message["content"] for message in request["messages"] if message["role"] == "user"), "")


def filled(schema: dict[str, Any], asked: str = "") -> Any:
    """A value of a JSON schema: first choices, true, three items, numbers 1, reasons that say "a statement".

    Other texts are words of a material in the user message: of the one that has the text's name, else of the one that
    lists are usually made of. No two items of a list begin at the same word. Of several passages the first is taken.
    """
    materials = {name: _NUMBERS.sub("", text) for name, text in reversed(_FENCED.findall(asked))}
    return _filled(resolved(schema), materials)


def resolved(schema: Any, defined: Mapping[str, Any] | None = None) -> Any:
    """A schema with its definitions where they are referred to."""
    if isinstance(schema, list):
        return [resolved(one, defined) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast("dict[str, Any]", schema)
    defined = node.get("$defs", {}) if defined is None else defined
    if "$ref" in node:
        return resolved((defined or {})[node["$ref"].rpartition("/")[2]], defined)
    return {key: resolved(value, defined) for key, value in node.items() if key != "$defs"}


def _filled(schema: dict[str, Any], materials: Mapping[str, str], key: str = "", number: int = 0) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: _filled(inner, materials, name, number) for name, inner in schema["properties"].items()}
        case "array":
            items = range(min(3, schema.get("maxItems", 3)))
            return [_filled(schema["items"], materials, key, item) for item in items]
        case "boolean":
            return True
        case "integer" | "number":
            return 1
        case _:
            return "a statement" if key == "reason" else _excerpt(materials, key, number)


def _excerpt(materials: Mapping[str, str], key: str, number: int) -> str:
    """Twelve words of a material, from the word of this number on."""
    known = (materials[name] for name in (key, "text", "answer", "passage") if materials.get(name))
    words = next(known, next(iter(materials.values()), "")).split()
    return " ".join(words[min(number, len(words) - 1) :][:12]) if words else "a statement"


def obliging(request: dict[str, Any], _: int) -> dict[str, Any]:
    """Answer any question by its schema, with words of its material."""
    schema = request["response_format"]["json_schema"]["schema"]
    return completion(json.dumps(filled(schema, asked_in(request))))


class Server:
    """A running server: its URL, and the requests it got."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.at_once = 0
        self.most_at_once = 0

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request as the test's behaviour says."""
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            data = cast("dict[str, Any]", await request.json())
            self.requests.append(data)
            self.headers.append(dict(request.headers))
            made = self.behaviour(data, len(self.requests))
            response = made if isinstance(made, Response) else Response(body=made)
            await asyncio.sleep(response.delay)
            body = response.body if isinstance(response.body, str) else json.dumps(response.body)
            return web.Response(status=response.status, text=body, headers=response.headers)
        finally:
            self.at_once -= 1


_ports = set[int]()


def listener() -> socket.socket:
    """A socket that listens on a port that no server of this process has had.

    What is known about an endpoint, such as that it accepts the key, is kept for the life of the process.
    """
    refused = list[socket.socket]()
    while (found := socket.create_server(("127.0.0.1", 0))).getsockname()[1] in _ports:
        refused.append(found)
    for one in refused:
        one.close()
    _ports.add(found.getsockname()[1])
    return found


@contextmanager
def on_a_thread(serve: Callable[[Callable[[], None], asyncio.Event], Coroutine[Any, Any, None]]) -> Generator[None]:
    """Run a server on a thread of its own, for as long as the block lasts.

    serve: calls the function once it listens, and ends what it has open once the event is set.
    """
    ready, stop, started = threading.Event(), asyncio.Event(), list[asyncio.AbstractEventLoop]()

    async def main() -> None:
        started.append(asyncio.get_running_loop())
        await serve(ready.set, stop)

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    if not ready.wait(10):
        raise RuntimeError("the test server did not start")
    try:
        yield
    finally:
        started[0].call_soon_threadsafe(stop.set)
        thread.join(10)


@contextmanager
def serving(behaviour: Behaviour = obliging) -> Generator[Server]:
    """A server on a thread of its own, for as long as the block lasts."""
    server = Server(behaviour)

    async def serve(ready: Callable[[], None], stop: asyncio.Event) -> None:
        application = web.Application(client_max_size=50_000_000)
        for path in ("chat/completions", "responses", "ask", "embeddings", "systemone", "decisions"):
            application.router.add_post(f"/v1/{path}", server.handle)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.SockSite(runner, listener()).start()
        address = cast("tuple[str, int]", runner.addresses[0])
        server.url = f"http://127.0.0.1:{address[1]}/v1"
        ready()
        await stop.wait()
        await runner.cleanup()

    with on_a_thread(serve):
        yield server
