"""A model server for bench/scale.py: equal requests have equal answers, and it knows when each request came.

    python bench/scale_server.py LATENCY_MS [--numbered]        (prints its URL when it is ready)

With --numbered, the reason of an answer is the number of its request, so that records say which request paid for them.
GET …/log returns for each request its time in seconds, a digest of it, and its tokens.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
import time
from collections.abc import Mapping
from typing import Any, cast

from model_server import STATEMENT, Connection, Model, filled, response


class Witness(Model):
    """What the server says, and what it was asked."""

    def __init__(self, *, numbered: bool) -> None:
        super().__init__(0, 0, 0)
        self.numbered = numbered
        self.seen: list[tuple[float, str, int]] = []

    def reply(self, body: bytes) -> bytes:
        self._digest = hashlib.blake2b(body, digest_size=8).hexdigest()
        answer = super().reply(body)
        usage = json.loads(answer.partition(b"\r\n\r\n")[2])["usage"]
        self.seen.append((time.time(), self._digest, usage["total_tokens"]))
        return answer

    def _filled(self, schema: Any) -> str:
        text = json.dumps(filled(_chosen(schema, random.Random(self._digest))))
        return text.replace(f"{STATEMENT} reason 0", f"request {self.requests}") if self.numbered else text


def _chosen(schema: Any, rng: random.Random) -> Any:
    """The schema with one value where it has a choice."""
    if isinstance(schema, Mapping):
        table = cast("Mapping[str, Any]", schema)
        if "enum" in table:
            return {"const": rng.choice(table["enum"])}
        return {name: _chosen(inner, rng) for name, inner in table.items()}
    return [_chosen(inner, rng) for inner in cast("list[Any]", schema)] if isinstance(schema, list) else schema


class Telling(Connection):
    """A connection that also gives the log."""

    def __init__(self, model: Witness, latency: float) -> None:
        super().__init__(model, latency)
        self._witness = model

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.split(b" ", 2)[1].endswith(b"/log"):
            self._transport.write(response(200, self._witness.seen))
        else:
            super()._answer(head, body)


async def main(latency: float, *, numbered: bool) -> None:
    model = Witness(numbered=numbered)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Telling(model, latency / 1000), "127.0.0.1", 0, backlog=1000)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), numbered="--numbered" in sys.argv))
