"""What is unpacked of a request: as long as a request may be, and nothing beyond it."""

from __future__ import annotations

import gzip
import threading
import tracemalloc
import zlib
from types import SimpleNamespace
from typing import Any

import pytest

from evalstone.collect import bodies
from evalstone.collect.bodies import Bodies, Busy, TooLong
from evalstone.errors import DataError
from tests.fakes import awaited

LIMIT = 1000


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "row_limit", lambda: LIMIT)


def unzipped(data: bytes) -> bytes:
    with Bodies().hold() as body:
        return body.unzipped(data)


def test_what_is_as_long_as_a_request_may_be_is_unpacked_and_not_a_byte_more() -> None:
    assert unzipped(gzip.compress(b"x" * LIMIT)) == b"x" * LIMIT
    with pytest.raises(TooLong):
        unzipped(gzip.compress(b"x" * (LIMIT + 1)))
    half = gzip.compress(b"x" * (LIMIT // 2))
    assert len(unzipped(half + half)) == LIMIT
    with pytest.raises(TooLong):
        unzipped(half + half + half)


@pytest.mark.parametrize("piece", [1, LIMIT // 4, 1 << 20])
def test_what_is_too_long_is_not_unpacked_further(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(bodies, "_PIECE", piece)
    bomb = gzip.compress(b"x" * 5_000_000)
    tracemalloc.start()
    with pytest.raises(TooLong):
        unzipped(bomb)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2_000_000


@pytest.mark.parametrize("piece", [1, 7, LIMIT, LIMIT + 1])
def test_what_is_unpacked_piece_by_piece_is_whole(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(bodies, "_PIECE", piece)
    assert unzipped(gzip.compress(b"x" * LIMIT)) == b"x" * LIMIT


@pytest.mark.parametrize(
    "data",
    [b"", b"plain", gzip.compress(b"cut")[:-1], gzip.compress(b"one") + b"rest", zlib.compress(b"without a header")],
    ids=["empty", "plain", "cut", "more", "zlib"],
)
def test_what_is_not_compressed_or_not_complete_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match="gzip"):
        unzipped(data)


@pytest.mark.parametrize(("sizes", "fits"), [((400, 600), True), ((400, 601), False)])
@awaited
async def test_a_request_that_does_not_say_its_length_is_read_up_to_the_limit(
    sizes: tuple[int, ...], fits: bool
) -> None:
    parts = [b"x" * size for size in sizes]

    async def readany() -> bytes:
        return parts.pop(0) if parts else b""

    request: Any = SimpleNamespace(content_length=None, content=SimpleNamespace(readany=readany))
    with Bodies().hold() as body:
        if fits:
            assert len(await body.read(request)) == LIMIT
        else:
            with pytest.raises(TooLong):
                await body.read(request)


@pytest.mark.parametrize(("length", "fits"), [(LIMIT, True), (LIMIT + 1, False)])
@awaited
async def test_a_request_that_says_that_it_is_too_long_is_not_read(length: int, fits: bool) -> None:
    parts = [b"x" * LIMIT]

    async def readany() -> bytes:
        return parts.pop() if parts else b""

    request: Any = SimpleNamespace(content_length=length, content=SimpleNamespace(readany=readany))
    with Bodies().hold() as body:
        if fits:
            assert len(await body.read(request)) == LIMIT
        else:
            with pytest.raises(TooLong):
                await body.read(request)
            assert parts


def test_nothing_is_a_request_too() -> None:
    assert unzipped(gzip.compress(b"")) == b""


def test_the_room_of_a_request_that_is_refused_is_free_again() -> None:
    held = Bodies()
    with held.hold() as first, held.hold() as second:
        for _ in range(bodies.MOST_IN_MEMORY):
            first.unzipped(gzip.compress(b"x" * LIMIT))
        with pytest.raises(Busy):
            second.unzipped(gzip.compress(b"x"))
    assert held.size == 0


def test_two_requests_at_once_do_not_both_take_the_last_room(monkeypatch: pytest.MonkeyPatch) -> None:
    held, refused = Bodies(), list[bool]()

    def take() -> None:
        try:
            held.add(bodies.MOST_IN_MEMORY * LIMIT)
        except Busy:
            refused.append(True)

    def slowly() -> int:
        if not other.ident:
            other.start()
            other.join(0.1)
        return LIMIT

    other = threading.Thread(target=take)
    monkeypatch.setattr(bodies, "row_limit", slowly)
    take()
    other.join()
    assert (held.size, refused) == (bodies.MOST_IN_MEMORY * LIMIT, [True])
