"""The parts of a provider's HTTP response, read one by one."""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import pickle
import time
import zlib
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any, cast

import pytest

from evalstone.errors import ProviderError
from evalstone.models.replies import (
    ERROR_BYTES,
    FEWEST_VALUES,
    LARGE,
    LONGEST_RETRY_AFTER,
    MAX_TOKENS,
    ReplyTooLarge,
    as_count,
    as_list,
    as_object,
    as_text,
    is_count,
    one_line,
    parsed_json,
    read_content,
    read_error,
    redirect_error,
    retry_after,
    retry_delay,
    shown,
    too_many_values,
)


class Headers(dict[str, str]):
    """Headers that may occur twice, separated by a vertical bar here."""

    def getall(self, name: str) -> list[str]:
        return self[name].split("|")


class Response:
    """A response of aiohttp, as far as it is read. lock: whether it is held is noted at each chunk."""

    def __init__(self, *chunks: bytes, encoding: str = "", lock: asyncio.Lock | None = None) -> None:
        self.headers = Headers({"Content-Encoding": encoding} if encoding else {})
        self.content = self
        self.chunks, self.closed, self.lock, self.held = [*chunks], False, lock, list[bool]()

    async def readany(self) -> bytes:
        if self.lock is not None:
            self.held.append(self.lock.locked())
        return self.chunks.pop(0) if self.chunks else b""

    def at_eof(self) -> bool:
        return not self.chunks

    def close(self) -> None:
        self.closed = True


def read(response: Response, limit: int) -> bytes:
    return asyncio.run(read_content(cast(Any, response), limit, "host", response.lock or asyncio.Lock()))


@pytest.mark.parametrize("encoding", ["", "identity", "Identity"])
def test_a_plain_response_is_read_up_to_the_limit(encoding: str) -> None:
    assert read(Response(b"abc", b"de", encoding=encoding), 5) == b"abcde"
    response = Response(b"abc")
    response.headers["Content-Encoding"] = encoding
    assert read(response, 5) == b"abc"
    for chunks in ((b"abcdef",), (b"abc", b"def"), (b"abc", b"de", b"f", b"g")):
        response = Response(*chunks, encoding=encoding)
        with pytest.raises(ReplyTooLarge, match="more than 5 bytes"):
            read(response, 5)
        assert response.closed == (len(chunks) > 3)  # the rest isn't read


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [("gzip", gzip.compress), ("GZIP", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress)],
)
def test_a_compressed_response_is_read_up_to_the_limit_of_its_text(encoding: str, compress: Any) -> None:
    text = bytes(range(256)) * 4
    data = compress(text)
    pieces = [data[:5], data[5:9], data[9:]]
    assert read(Response(*pieces, encoding=encoding), len(text)) == text
    assert read(Response(data, b"after the end", encoding=encoding), 2 * len(text)) == text
    with pytest.raises(ReplyTooLarge):
        read(Response(*pieces, encoding=encoding), len(text) - 1)
    with pytest.raises(ProviderError, match="truncated"):
        read(Response(data[:-9], encoding=encoding), len(text))
    with pytest.raises(ProviderError, match="corrupt"):
        read(Response(b"no " + data, encoding=encoding), len(text))
    assert read(Response(encoding=encoding), 5) == b""
    with pytest.raises(ReplyTooLarge):  # what is sent counts, too
        read(Response(gzip.compress(b"a"), b"x" * 50, b"y" * 50, b"z", encoding="gzip"), 60)


@pytest.mark.parametrize("encoding", ["br", "gzip|gzip", "gzip, br"])
def test_another_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(ProviderError, match="content encoding"):
        read(Response(b"abc", encoding=encoding), 5)


def test_large_responses_are_read_one_at_a_time() -> None:
    text = bytes(LARGE + 10)

    async def reading(data: list[bytes], encoding: str = "") -> tuple[int, list[bool]]:
        response = Response(*data, encoding=encoding, lock=asyncio.Lock())
        read = await read_content(cast(Any, response), 2 * LARGE, "host", cast(asyncio.Lock, response.lock))
        assert not cast(asyncio.Lock, response.lock).locked()
        return len(read), response.held

    assert asyncio.run(reading([text[:10], text[10:LARGE]])) == (LARGE, [False, False, False])
    assert asyncio.run(reading([text[:LARGE], text[LARGE:]])) == (LARGE + 10, [False, False, True])
    assert asyncio.run(reading([gzip.compress(text)], "gzip")) == (LARGE + 10, [False, True])
    with pytest.raises(ReplyTooLarge):
        asyncio.run(reading([text, text]))


def test_an_error_response_is_read_if_it_is_short() -> None:
    def read_it(response: Response) -> bytes:
        return asyncio.run(read_error(cast(Any, response), "host"))

    assert read_it(Response(b"so", b" it is")) == b"so it is"
    assert read_it(Response(b"x" * ERROR_BYTES)) == b"x" * ERROR_BYTES
    assert read_it(Response(b"x" * (ERROR_BYTES + 1))) == read_it(Response(b"so", encoding="br")) == b""


def test_a_response_that_is_too_large_has_an_unknown_cost_and_can_be_copied() -> None:
    error = ReplyTooLarge("host", 1000)
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.cost) == (str(error), None)
    assert str(error).startswith("host sent")
    assert "1,000 bytes; max_reply" in str(error)


def test_lists_and_objects_are_counted_outside_of_texts() -> None:
    many = b"[" * FEWEST_VALUES
    assert too_many_values(many, 0) is None
    assert too_many_values(many + b"{", 0) == FEWEST_VALUES
    assert too_many_values(b'"' + many + b'{"', 0) is None
    assert too_many_values(b'"' + many + b'{\\""', 0) is None
    assert too_many_values(b'"a\\\\"' + many + b"{", 0) == FEWEST_VALUES
    assert too_many_values(b'"a\\""' + many + b"{", 0) == FEWEST_VALUES
    assert too_many_values(many + b"{", 100_000_000) is None


def test_json_is_read_whatever_is_in_it() -> None:
    assert parsed_json(b'\xef\xbb\xbf{"a": "\xff"}') == {"a": "\ufffd"}
    assert parsed_json(b'{"a": ' + b"1" * 5000 + b', "b": 12}') == {"a": math.inf, "b": 12}
    assert parsed_json(json.dumps({"a": [{"b": "x" * 200_000}]}).encode()) == {"a": [{"b": "x" * 200_000}]}
    for broken in (b"", b"{", b"[" * 200_000):
        with pytest.raises(ValueError, match=r"."):
            parsed_json(broken)


def test_values_of_another_type_are_as_good_as_missing() -> None:
    for value in (None, 0, 1.5, "a", True, ["a"], {"a": 1}):
        assert as_object(value) == (value if isinstance(value, dict) else {})
        assert as_list(value) == (value if isinstance(value, list) else [])
        assert as_text(value) == (value if isinstance(value, str) else "")


def test_a_token_count_is_a_number_in_range() -> None:
    for value in (0, 7, 7.0, MAX_TOKENS):
        assert is_count(value)
        assert (as_count(value), type(as_count(value))) == (value, int)
    for value in (-1, MAX_TOKENS + 1, math.inf, math.nan, True, "7", None, [7]):
        assert not is_count(value)
        assert as_count(value) == 0


def test_what_is_shown_is_one_short_line() -> None:
    assert one_line(" a\n\tb  c ") == "a b c"
    assert one_line("x" * 300) == "x" * 300
    assert one_line("x" * 301) == "x" * 299 + "…"
    assert one_line(" " * 2000 + "x") == ""
    assert one_line("a\ud800\x00b") == "a\\ud800\\u0000b"
    assert (shown("a\nb"), shown(["a"]), len(shown([["x" * 500] * 50] * 50)) <= 300) == ("a b", "['a']", True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "0.5"}, 0.5),
        ({"Retry-After": "-5"}, 0),
        ({"Retry-After": "99999"}, LONGEST_RETRY_AFTER),
        ({"retry-after-ms": "250", "Retry-After": "7"}, 0.25),
        ({"retry-after-ms": "soon"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "Mon, 99 Jan 99999 99:99:99 GMT"}, None),
        ({"Retry-After": formatdate(0, usegmt=True)}, 0),
    ],
)
def test_the_time_to_wait_is_in_the_headers(headers: Mapping[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_the_time_to_wait_may_be_a_date() -> None:
    assert retry_after({"Retry-After": formatdate(time.time() + 100, usegmt=True)}) == pytest.approx(100, abs=5)


@pytest.mark.parametrize(
    ("content", "seconds"),
    [
        (b'{"retryDelay": "37s"}', 37),
        (b'{"retryDelay":"1.5s"}', 1.5),
        (b'{"retryDelay":\n "9999999s"}', LONGEST_RETRY_AFTER),
        (b'{"retryDelay": "soon"}', None),
        (b'{"retryDelay": 37}', None),
        (b"{}", None),
    ],
)
def test_the_time_to_wait_may_be_in_an_error(content: bytes, seconds: float | None) -> None:
    assert retry_delay(content) == seconds


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("https://user:key@other.example/v1?key=secret", "https://other.example"),
        ("http://other.example", "http://other.example"),
        ("/v2/chat", "https://host.example:8000"),
        ("https://[", "an invalid URL"),
    ],
)
def test_a_redirect_names_the_server_only(location: str, target: str) -> None:
    error = redirect_error("host", 301, "https://host.example:8000/v1/chat", location)
    sentence = "host redirects to {} (HTTP 301), and redirects are not followed; set base_url to the final URL"
    assert str(error) == sentence.format(target)
