"""A model server for benchmarks, on loopback: answers by the request's JSON schema, with latency and trouble as asked.

python bench/model_server.py LATENCY_MS SHARE_429 SHARE_500 SHARE_CUT        (prints its URL when it is ready)
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

from aiohttp import web


def filled(schema: dict[str, Any]) -> Any:
    """A value of a JSON schema: first choices, true, three items, numbers 1."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: filled(inner) for name, inner in schema["properties"].items()}
        case "array":
            return [filled(schema["items"])] * min(3, schema.get("maxItems", 3))
        case "boolean":
            return True
        case "integer" | "number":
            return 1
        case _:
            return "a statement of some words"


async def main(latency: float, busy: float, broken: float, cut: float) -> None:
    rng = random.Random(1)
    known: dict[str, str] = {}

    async def complete(request: web.Request) -> web.Response:
        data = json.loads(await request.read())
        if latency:
            await asyncio.sleep(latency / 1000)
        draw = rng.random()
        if draw < busy:
            return web.Response(status=429, text='{"error": {"message": "busy"}}', headers={"Retry-After": "0.05"})
        if draw < busy + broken:
            return web.Response(status=500, text='{"error": {"message": "broken"}}')
        schema = data["response_format"]["json_schema"]["schema"]
        key = json.dumps(schema)
        content = known.setdefault(key, json.dumps(filled(schema)))
        if draw < busy + broken + cut:
            content = content[: len(content) // 2]
        message = {"role": "assistant", "content": content}
        usage = {"prompt_tokens": len(key) // 4, "completion_tokens": len(content) // 4}
        return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    application = web.Application()
    application.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    address: Any = runner.addresses[0]
    print(f"http://127.0.0.1:{address[1]}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*(float(argument) for argument in sys.argv[1:5])))
