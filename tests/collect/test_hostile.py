"""Export requests that are broken, or hostile: each is read, or refused with a reason."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone.agents.notes import Notes
from evalstone.agents.traces import samples_of
from evalstone.collect.protobuf import Signal
from evalstone.collect.server import JSON, PROTOBUF, _read  # pyright: ignore[reportPrivateUsage]
from evalstone.datasets import load
from evalstone.datasets.json_rows import parse_json
from evalstone.datasets.traces import records_of
from evalstone.errors import DataError
from tests.collect.test_server import encoded, receiving
from tests.fakes import awaited
from tests.traced import chat, message, span, spans

REQUESTS: list[dict[str, Any]] = [
    json.loads(path.read_text("utf-8").splitlines()[0])
    for path in sorted((Path(__file__).parents[1] / "agents" / "traces").glob("*.jsonl"))
]
EXPORTED = [request for request in REQUESTS if "resourceSpans" in request or "resourceLogs" in request]


def nested(depth: int, kind: str) -> dict[str, Any]:
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(depth):
        inner = [value] if kind == "arrayValue" else [{"key": "k", "value": value}]
        value = {kind: {"values": inner}}
    return value


VALUES: list[Any] = [
    None, True, 0, -1, 0.5, 1e308, 10**25, "", "\x00", "\ud800", "9" * 30, [], {}, [[]], [None], [{}],
    '[{"role": 1}]', '[{"role": "user", "parts": [{"type": "text"}]}]', "[" * 5000 + "]" * 5000, "[" * 5000,
    {"intValue": "9" * 40}, {"intValue": 2**80}, {"doubleValue": "NaN"}, {"doubleValue": 1e400}, {"bytesValue": "!"},
    {"arrayValue": {"values": {}}}, {"kvlistValue": {"values": [{"key": 5}]}}, {"stringValue": 5, "intValue": "1"},
    nested(50, "arrayValue"), nested(100, "kvlistValue"),
    {"arrayValue": {"values": [0] * 5000}},
    "0" * 32, "f" * 32, "ZZZZ", "18446744073709551615", "253402300799999999999", "-5", [1, 2], [1e300, 1e300],
    "9999-12-31T23:59:59.999999+00:00", "0001-01-01T00:00:00+14:00",
]  # fmt: skip


@functools.cache
def whole_body(number: int, content_type: str) -> bytes:
    request = EXPORTED[number]
    return encoded(request, signal_of(request)) if content_type == PROTOBUF else json.dumps(request).encode()


def signal_of(request: dict[str, Any]) -> Signal:
    return "traces" if "resourceSpans" in request else "logs"


def bytes_changed(choose: random.Random, number: int, content_type: str) -> bytes:
    """A request with flipped, lost, repeated and foreign bytes."""
    whole = whole_body(number, content_type)
    body = bytearray(whole)
    for _ in range(choose.choice((1, 1, 2, 8))):
        at, size = choose.randrange(len(body) + 1), choose.randrange(100)
        match choose.randrange(5):
            case 0 if at < len(body):
                body[at] ^= 1 << choose.randrange(8)
            case 1:
                del body[at:]
            case 2:
                del body[at : at + size]
            case 3:
                body[at:at] = body[at : at + size]
            case _:
                start = choose.randrange(len(whole))
                body[at:at] = whole[start : start + size]
    return bytes(body)


def values_changed(choose: random.Random, number: int, content_type: str) -> bytes:
    """A request with other values."""
    data = json.loads(whole_body(number, content_type))
    for _ in range(choose.choice((1, 2, 4))):
        at: Any = data
        while isinstance(at, dict | list) and at:
            key: Any = choose.choice(list(at)) if isinstance(at, dict) else choose.randrange(len(at))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            if choose.random() < 0.1 or not isinstance(at[key], dict | list):
                at[key] = json.loads(json.dumps(choose.choice(VALUES)))
                break
            at = at[key]  # pyright: ignore[reportUnknownVariableType]
    return json.dumps(data).encode()


@awaited
async def test_what_is_accepted_can_be_read_from_the_file_by_whoever_is_called_late(tmp_path: Path) -> None:
    def load_below(calls: int) -> None:
        if calls:
            load_below(calls - 1)
        else:
            assert load(path).samples

    path = tmp_path / "t.jsonl"
    codes = set[int]()
    async with receiving(path) as (_, url, session):
        for depth in range(100, 260, 4):
            value = '{"kvlistValue":{"values":[{"key":"k","value":' * depth + "null" + "}]}}" * depth
            body = json.dumps(spans(span(depth, "chat", chat([message("user", "q")], "a", k="deep"))))
            body = body.replace('{"stringValue": "deep"}', value)
            headers = {"Content-Type": JSON}
            async with session.post(f"{url}/v1/traces", data=body, headers=headers) as reply:
                codes.add(reply.status)
    assert codes == {200, 400}
    load_below(100)


@pytest.mark.parametrize(
    ("change", "content_type"), [(bytes_changed, JSON), (bytes_changed, PROTOBUF), (values_changed, JSON)]
)
@pytest.mark.parametrize("seed", range(3))
def test_a_broken_request_is_read_or_refused(change: Callable[..., bytes], content_type: str, seed: int) -> None:
    choose = random.Random(seed)
    read = 0
    for _ in range(100):
        number = choose.randrange(len(EXPORTED))
        body, signal = change(choose, number, content_type), signal_of(EXPORTED[number])
        try:
            parts, records, _ = _read(body, content_type, signal)
        except DataError:
            continue
        read += 1
        assert {part.trace for part in parts} == {record.trace for record in records}
        for part in parts:
            of_trace = records_of(parse_json(part.body.decode()), "the file")
            assert [each.name for each in of_trace] == [each.name for each in records if each.trace == part.trace]
            samples_of(of_trace, Notes())
    assert 0 < read < 100
