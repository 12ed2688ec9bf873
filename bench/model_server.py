"""A model server for benchmarks, on loopback: answers by the request's JSON schema, with latency and trouble as asked.

    python bench/model_server.py LATENCY_MS SHARE_429 SHARE_500 SHARE_CUT        (prints its URL when it is ready)

The schema is that of the response format, else of a tool, else one that stands in the prompt; without any the answer is
a word. Texts are words of the material that the prompt has between fences, if it has any, for claims that a judge
invents are refused. HTTP is read by hand, so that on a machine with two cores it is the client that is measured.
A decision model is served at …/systemone. GET …/stats tells how many requests there were.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
from collections.abc import Mapping
from typing import Any, cast

STATEMENT = "a statement of some words"
REASONS = {200: "OK", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error"}
FENCED = re.compile(r"<<([a-z_]+)(?: 1)?>>\n(.*?)\n<</", re.DOTALL)
NUMBERS = re.compile(r"^\d+\. ", re.MULTILINE)
MARKED = re.compile(f'"{STATEMENT} (?!reason)([a-z_]*) (\\d+)"')
LENGTH = re.compile(rb"^content-length:\s*(\d+)", re.IGNORECASE | re.MULTILINE)
JSON = json.JSONDecoder()


def filled(schema: Any, root: Any = None, key: str = "", item: int = 0) -> Any:
    """A value of a JSON schema: `yes` or the first choice, true, three items, numbers 1, numbered statements."""
    root = root or schema
    if "$ref" in schema:
        found = root
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = found[part]
        return filled(found, root, key, item)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return filled(schema[choice][0], root, key, item)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return "yes" if "yes" in schema["enum"] else schema["enum"][0]
    match schema.get("type", "object" if "properties" in schema else "string"):
        case "object":
            return {name: filled(inner, root, name, item) for name, inner in schema.get("properties", {}).items()}
        case "array":
            items = range(min(3, schema.get("maxItems", 3)))
            return [filled(schema.get("items", {}), root, key, item) for item in items]
        case "boolean":
            return True
        case "integer" | "number":
            return 1
        case _:
            return f"{STATEMENT} {key} {item}"


def schema_in(text: str) -> Any:
    """The first JSON schema that stands in a text."""
    for brace in re.finditer(r"\{(?=\s*\")", text):
        try:
            found, _ = JSON.raw_decode(text, brace.start())
        except ValueError:
            continue
        if "properties" in found:
            return found
    return None


def words_of(prompt: str) -> dict[str, list[str]]:
    """The words of each fenced material of a prompt, of several passages those of the first."""
    found = {name: NUMBERS.sub("", text).split() for name, text in reversed(FENCED.findall(prompt))}
    return {name: words for name, words in found.items() if words}


def restated(reply: str, known: Mapping[str, list[str]]) -> str:
    """A reply whose statements are words of the materials: of the one of their name, else of the usual one."""
    usual = next((known[name] for name in ("text", "answer", "passage") if name in known), next(iter(known.values())))

    def words(match: re.Match[str]) -> str:
        of = known.get(match[1], usual)
        return json.dumps(" ".join(of[min(int(match[2]), len(of) - 1) :][:12]))

    return MARKED.sub(words, reply)


def prompt_of(request: Mapping[str, Any]) -> str:
    """All text of a request's messages."""
    parts: list[str] = []
    for message in request["messages"]:
        content = message.get("content") or ""
        parts.append(content if isinstance(content, str) else " ".join(str(part.get("text", "")) for part in content))
    return "\n".join(parts)


class Model:
    """What the server says, and how often it was asked."""

    def __init__(self, busy: float, broken: float, cut: float) -> None:
        self.busy, self.broken, self.cut = busy, broken, cut
        self.requests = 0
        self._rng = random.Random(1)
        self._known: dict[str, str] = {}

    def reply(self, body: bytes) -> bytes:
        """The HTTP response to the request for a completion."""
        self.requests += 1
        draw = self._rng.random()
        if draw < self.busy:
            return response(429, {"error": {"message": "busy"}}, b"Retry-After: 0.05\r\n")
        if draw < self.busy + self.broken:
            return response(500, {"error": {"message": "broken"}})
        request = json.loads(body)
        message, said = self._message(request, halved=draw < self.busy + self.broken + self.cut)
        usage = {
            "prompt_tokens": len(body) // 4,
            "completion_tokens": said // 4,
            "total_tokens": (len(body) + said) // 4,
        }
        called = "tool_calls" in message
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if called else "stop"}
        about = {"id": f"r{self.requests}", "object": "chat.completion", "created": 1, "model": request.get("model")}
        return response(200, {**about, "choices": [choice], "usage": usage})

    def decided(self, body: bytes) -> bytes:
        """The HTTP response to the request for decisions: .8 for the first option of each."""
        self.requests += 1
        request = json.loads(body)
        answers = {name: decision(question) for name, question in request["questions"].items()}
        usage = {"input_tokens": len(body) // 4, "output_tokens": 0}
        return response(200, {"model": request["model"], "answers": answers, "usage": usage})

    def _message(self, request: Mapping[str, Any], *, halved: bool) -> tuple[dict[str, Any], int]:
        form: Mapping[str, Any] = request.get("response_format") or {}
        tools = request.get("tools")
        if form.get("type") == "json_schema":
            text = self._filled(form["json_schema"]["schema"])
            if STATEMENT in text and (known := words_of(prompt_of(request))):
                text = restated(text, known)
        elif tools:
            text = self._filled(tools[0]["function"]["parameters"])
        else:
            schema = schema_in(prompt_of(request))
            text = "yes" if schema is None else self._filled(schema)
        text = text[: len(text) // 2] if halved else text
        if not tools or form:
            return {"role": "assistant", "content": text}, len(text)
        function = {"name": tools[0]["function"]["name"], "arguments": text}
        call = {"id": f"c{self.requests}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}, len(text)

    def _filled(self, schema: Any) -> str:
        key = json.dumps(schema)
        if key not in self._known:
            self._known[key] = json.dumps(filled(schema))
        return self._known[key]


def decision(question: Mapping[str, Any]) -> dict[str, Any]:
    """An answer to a typed question: .8 for its first option, the rest for the others."""
    if question["type"] == "noul":
        return {"type": "noul", "noul": 0.8}
    criteria = question["criteria"]
    options = criteria if question["type"] == "choice" else map(str, range(len(criteria)))
    rest = 0.2 / (len(criteria) - 1)
    return {"type": question["type"], "probabilities": {name: 0.8 if not n else rest for n, name in enumerate(options)}}


def response(status: int, data: Any, headers: bytes = b"") -> bytes:
    """An HTTP response with JSON in it."""
    body = json.dumps(data).encode()
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + headers + b"\r\n" + body


class Connection(asyncio.Protocol):
    """One client's connection, on which requests come one after the other."""

    def __init__(self, model: Model, latency: float) -> None:
        self._model, self._latency = model, latency
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            length = LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < whole:
                return
            body, self._buffer = self._buffer[end + 4 : whole], self._buffer[whole:]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        path = head.split(b" ", 2)[1]
        if path.endswith(b"/stats"):
            self._transport.write(response(200, {"requests": self._model.requests}))
        elif not path.endswith((b"/chat/completions", b"/systemone")):
            self._transport.write(response(404, {"error": {"message": f"there is no {path.decode()}"}}))
        elif self._latency:
            reply = self._reply(path, body)
            asyncio.get_running_loop().call_later(self._latency, self._transport.write, reply)
        else:
            self._transport.write(self._reply(path, body))

    def _reply(self, path: bytes, body: bytes) -> bytes:
        return self._model.decided(body) if path.endswith(b"/systemone") else self._model.reply(body)


async def main(latency: float, busy: float, broken: float, cut: float) -> None:
    model = Model(busy, broken, cut)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(model, latency / 1000), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*(float(argument) for argument in sys.argv[1:5])))
