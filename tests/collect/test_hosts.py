"""The names by which a receiver on loopback may be called."""

from __future__ import annotations

import json
from pathlib import Path

import aiohttp
import pytest

from evalstone.collect import hosts
from evalstone.collect.server import JSON
from tests.collect.test_server import ONE, receiver_of, receiving
from tests.fakes import awaited


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:4318", "localhost:", "LOCALHOST.:1", "127.0.0.1:99", "[::1]:4318", "[::1]"]
)
@awaited
async def test_a_receiver_on_loopback_takes_requests_to_loopback(tmp_path: Path, host: str) -> None:
    async with (
        receiving(tmp_path / "t.jsonl") as (_, url, session),
        session.post(f"{url}/v1/traces", json=ONE, headers={"Host": host}) as reply,
    ):
        assert reply.status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:4318", "127.0.0.1.evil.example", "localhost@evil", ""])
@pytest.mark.parametrize("path", ["traces", "logs"])
@awaited
async def test_a_receiver_on_loopback_refuses_other_names(tmp_path: Path, path: str, host: str) -> None:
    async with (
        receiving(tmp_path / "t.jsonl") as (receiver, url, session),
        session.post(f"{url}/v1/{path}", data=b"{}", headers={"Host": host, "Content-Type": JSON}) as reply,
    ):
        assert (reply.status, receiver.refused) == (403, 1)
        told = json.loads(await reply.read())
    assert told["code"] == 7
    assert told["message"] == (
        f"Host is {host!r}, but this receiver listens on loopback only, as 127.0.0.1, ::1, localhost; to be called by "
        "another name, start it with this name as --host"
    )
    assert (tmp_path / "t.jsonl").read_bytes() == b""


@awaited
async def test_a_receiver_that_others_reach_takes_any_name(tmp_path: Path) -> None:
    receiver = receiver_of(tmp_path / "t.jsonl")
    url = (await receiver.start("0.0.0.0", 0)).replace("0.0.0.0", "127.0.0.1")
    headers = {"Host": "collector.example"}
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{url}/v1/traces", json=ONE, headers=headers) as reply,
        ):
            assert reply.status == 200
    finally:
        await receiver.stop()


def test_the_name_that_a_receiver_was_started_with_is_one_of_its_names() -> None:
    names = hosts.allowed("My-Box.local", ["127.0.1.1"])
    assert hosts.refused(["my-box.local:4318"], names) == hosts.refused(["127.0.1.1"], names) == ""
    assert hosts.refused(["other.local"], names)
    assert hosts.allowed("db", ["127.0.0.1", "10.0.0.7"]) == hosts.allowed("::", ["::"]) == frozenset()


def test_an_address_with_the_name_of_its_interface_is_loopback() -> None:
    assert "::1%lo" in hosts.allowed("localhost", ["127.0.0.1", "::1%lo"])


def test_a_request_without_a_host_is_from_no_browser() -> None:
    assert hosts.refused([], hosts.allowed("127.0.0.1", ["127.0.0.1"])) == ""
