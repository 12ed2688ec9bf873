"""A small assistant whose answers are scored while it runs.

    uvicorn app:app

POST /ask with {"question": "…"} answers from the passages below; GET /stream?question=… does so word by word, as
server-sent events. Where the answers come from is not the point here: put your own agent in place of `answer`.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from evalstone import Live
from evalstone.live import Request, Response

PASSAGES = [
    "Parcels are delivered within three working days. Express parcels arrive on the next day.",
    "Shoes can be returned within 30 days. The refund is paid within a week.",
    "The shop in Lisbon is open from 9 to 18, and closed on Sundays.",
]

live = Live(
    ["faithfulness", "keyword_coverage"],
    judge="lexical",
    stream="shop-assistant",
    sampling=float(os.environ.get("SAMPLING", "0.1")),
    # Requests come first here; "low" scores on a machine without idle time, too.
    priority="low" if os.environ.get("PRIORITY") == "low" else "idle",
)


def retrieve(question: str) -> list[str]:
    """The passage that has the most words of the question."""
    words = set(question.lower().strip("?").split())
    return [max(PASSAGES, key=lambda passage: len(words & set(passage.lower().split())))]


async def answer(question: str) -> dict[str, Any]:
    """The answer, with the passages that it is from."""
    passages = retrieve(question)
    return {"answer": passages[0].split(". ")[0].rstrip(".") + ".", "passages": passages}


async def words(question: str) -> AsyncIterator[str]:
    """The answer, word by word."""
    for word in (await answer(question))["answer"].split():
        yield word


async def application(
    scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """A plain ASGI application; with a framework, this is `FastAPI()` or `Starlette()`."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["path"] == "/stream":
        question = parse_qs(scope["query_string"].decode())["question"][0]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        async for word in words(question):
            await send({"type": "http.response.body", "body": f"data: {word}\n\n".encode(), "more_body": True})
        await send({"type": "http.response.body"})
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    found = json.dumps(await answer(json.loads(body)["question"])).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(found)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": found})


def read(request: Request, response: Response) -> dict[str, Any]:
    """The sample in a request and its response. Called for what is drawn, and not while the client waits."""
    if request.path == "/stream":
        question = parse_qs(request.query)["question"][0]
        return {"input": question, "output": " ".join(response.events), "context": retrieve(question)}
    said = response.json()
    return {"input": request.json()["question"], "output": said["answer"], "context": said["passages"]}


app = live.asgi(application, read, paths=["/ask", "/stream"])
