"""Redirects, replies of any size and replies with anything in them."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict

from evalstone import ModelJudge, evaluate
from evalstone.errors import ConfigError, JudgeDeclined, JudgeRefused, JudgeUnavailable, ProviderError, ReplyError
from evalstone.models.batch import batch_api
from evalstone.models.replies import MAX_TOKENS, ReplyTooLarge, read_content
from evalstone.questions import ListClaims
from evalstone.questions.answers import JudgeAnswer
from tests.hostile_serving import HostileServer, Reply, chunked, http, serving_hostile
from tests.refusals import refused
from tests.serving import completion

QUESTION = ListClaims(text="Ada was born in 1815.")
GOOD = completion('{"claims": ["a"]}')
ROWS = [{"id": str(n), "output": f"Ada was born in {n}.", "context": ["Ada lived."]} for n in range(20)]


def asked(reply: Reply, **settings: Any) -> tuple[JudgeAnswer[Any], HostileServer]:
    """What the reply of an endpoint is read as. Raises what the judge raises."""
    with serving_hostile(lambda _: reply) as started:
        settings = {"total_timeout": 0.2, "retries": 0, "prices": (1.0, 1.0), **settings}
        judge = ModelJudge("vllm/m", base_url=started.url, **settings)
        return asyncio.run(judge.answer(QUESTION)), started


@pytest.mark.parametrize(
    ("body", "told"), [(b"", "an empty reply"), (b"<html>\n\xff", "no JSON object: '<html>\\n\ufffd'")]
)
def test_a_reply_that_is_no_json_is_told_as_text(body: bytes, told: str) -> None:
    with pytest.raises(ProviderError) as error:
        asked(http(body))
    assert str(error.value).endswith(f" sent {told}")


@pytest.mark.parametrize("status", [200, 201, 206])
def test_every_status_of_a_success_has_a_reply(status: int) -> None:
    answer, _ = asked(http(json.dumps(GOOD).encode(), status=status))
    assert (answer.value, answer.cost) == (("a",), pytest.approx(120e-6))
    with pytest.raises(ProviderError, match="empty reply"):
        asked(http(b"", status=204))


@pytest.mark.parametrize(
    ("broken", "cost"),
    [
        ([b"HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\n{"], None),
        ([b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{"], None),
        ([b""], 120e-6),
    ],
)
def test_a_reply_that_breaks_off_is_asked_for_again_and_was_paid_for(broken: Reply, cost: float | None) -> None:
    with serving_hostile(lambda number: broken if number == 1 else http(json.dumps(GOOD).encode())) as server:
        judge = ModelJudge("vllm/m", base_url=server.url, total_timeout=5.0, prices=(1.0, 1.0))
        answer = asyncio.run(judge.answer(QUESTION))
    assert (answer.value, len(server.requests)) == (("a",), 2)
    assert answer.cost == (None if cost is None else pytest.approx(cost))


def test_a_path_that_is_not_there_may_be_a_wrong_base_url() -> None:
    with pytest.raises(JudgeRefused, match=r"HTTP 404.*base URL"):
        asked(http(b"not found", status=404))


# Redirects


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    with serving_hostile(lambda _: http(json.dumps(GOOD).encode())) as other:
        target = other.url.replace("http://", "http://user:pass@") + "/chat/completions?key=abc"
        judge: dict[str, Any] = {"api_key": "sk-1", "headers": {"x-api-key": "k", "X-Custom": "c"}}
        with pytest.raises(JudgeRefused, match=f"to http://127.0.0.1:.*HTTP {status}.*set base_url") as error:
            asked(http(b"", f"Location: {target}", status=status), **judge)
        assert other.requests == []
    assert not any(secret in str(error.value) for secret in ("user", "pass@", "abc"))


@pytest.mark.parametrize(
    "location", ["", "/v2", "//[::1", "javascript:alert(1)", "http://\x1b[31m\udcff"], ids=range(5)
)
def test_a_redirect_to_anything_is_an_error_in_words(location: str) -> None:
    with pytest.raises(JudgeRefused, match="redirects to"):
        asked(http(b"", f"Location: {location}", status=302))


def test_a_redirect_ends_a_run_at_once() -> None:
    with serving_hostile(lambda _: http(b"", "Location: http://other/", status=307)) as started:
        judge = ModelJudge("vllm/m", base_url=started.url)
        with pytest.raises(JudgeRefused, match="to http://other "):
            evaluate(ROWS, "faithfulness", judge=judge, concurrency=4, ledger=None)
    assert len(started.requests) <= 8


# Size


def bomb(encoding: str, size: int) -> bytes:
    compressor = zlib.compressobj(9, wbits={"gzip": 31, "deflate": 15}[encoding])
    blocks = itertools.repeat(b" " * 1_000_000, size // 1_000_000)
    return b"".join([*map(compressor.compress, blocks), compressor.flush()])


def endless(piece: bytes = b"x" * 65536) -> Iterator[bytes]:
    return chunked(itertools.repeat(piece))


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_bomb_is_not_decompressed(encoding: str) -> None:
    with pytest.raises(ReplyTooLarge, match="8,000,000 bytes; max_reply") as error:
        asked(http(bomb(encoding, 200_000_000), f"Content-Encoding: {encoding}"))
    assert error.value.cost is None


def test_of_a_bomb_no_more_is_decompressed_than_is_read() -> None:
    packed = bomb("gzip", 50_000_000)

    class Response:
        """A response whose body comes at once."""

        def __init__(self) -> None:
            self.headers = CIMultiDict({"Content-Encoding": "gzip"})
            self.content, self.pieces = self, [packed]

        async def readany(self) -> bytes:
            return self.pieces.pop() if self.pieces else b""

        def at_eof(self) -> bool:
            return not self.pieces

    response: Any = Response()
    tracemalloc.start()
    try:
        with pytest.raises(ReplyTooLarge) as error:
            asyncio.run(read_content(response, 3_000_000, "host", asyncio.Lock()))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    again = pickle.loads(pickle.dumps(error.value))
    assert (str(again), again.cost) == (str(error.value), None)


@pytest.mark.parametrize("headers", [[], ["Content-Encoding: gzip"]])
def test_an_endless_reply_is_given_up(headers: list[str]) -> None:
    # gzip: blocks of no content, which decompress to nothing for ever
    piece = b"\x00\x00\x00\xff\xff" * 10_000 if headers else b"x" * 65536
    start = gzip.compress(b"")[:10] if headers else b"{"
    with pytest.raises(ReplyTooLarge, match="more than 300,000 bytes"):
        asked(chunked(itertools.chain([start], itertools.repeat(piece)), *headers), max_reply_bytes=300_000)


def test_a_reply_that_is_too_large_is_asked_for_once_and_its_cost_is_unknown() -> None:
    with serving_hostile(lambda _: endless()) as started:
        judge = ModelJudge("vllm/m", base_url=started.url, max_reply_bytes=100_000, prices=(1.0, 1.0))
        with pytest.raises(JudgeUnavailable, match="max_reply_bytes"):
            evaluate(ROWS, "faithfulness", judge=judge, concurrency=2, ledger=None)
    assert len(started.requests) <= 12


@pytest.mark.parametrize("content", [b"", gzip.compress(b"{}")[:15], b"\xff" * 50], ids=["none", "cut", "broken"])
def test_compressed_data_that_is_broken_is_an_error_of_the_endpoint(content: bytes) -> None:
    with pytest.raises(ProviderError, match=r"127\.0\.0\.1") as error:
        asked(http(content, "Content-Encoding: gzip"))
    assert error.value.cost is None


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "x" * 5000], ids=lambda each: each[:20])
def test_an_encoding_that_was_not_asked_for_is_refused(encoding: str) -> None:
    with pytest.raises(ProviderError, match="only gzip") as error:
        asked(http(b"{}", f"Content-Encoding: {encoding}"))
    assert error.value.cost is None


def test_a_reply_in_gzip_and_in_many_pieces_is_read() -> None:
    padded = {**GOOD, "padding": os.urandom(2_000_000).hex()}
    content = gzip.compress(json.dumps(padded).encode(), 1)
    pieces = [content[i : i + 10_000] for i in range(0, len(content), 10_000)]
    answer, started = asked(chunked(pieces, "Content-Encoding: gzip"), total_timeout=20.0)
    assert answer.value == ("a",)
    assert answer.cost == pytest.approx(120 / 1e6)
    assert b"Accept-Encoding: gzip\r\n" in started.requests[0]


def test_the_limit_is_the_judge_s_and_no_part_of_its_identity() -> None:
    body = http(json.dumps({**GOOD, "padding": "x" * 1000}).encode())
    assert asked(body, max_reply_bytes=2000)[0].value == ("a",)
    with pytest.raises(ReplyTooLarge):
        asked(body, max_reply_bytes=1000)
    assert "max_reply" not in ModelJudge("vllm/m", max_reply_bytes=9).identity
    with refused("max_reply_bytes", "a whole number of 1 or more"):
        ModelJudge("vllm/m", max_reply_bytes=0)


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_an_error_reply_is_not_read_to_its_end(status: int) -> None:
    def pieces() -> Iterator[bytes]:
        yield f"HTTP/1.1 {status} X\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        while True:
            yield b"10000\r\n" + b"x" * 65536 + b"\r\n"

    with serving_hostile(lambda _: pieces()) as started:
        judge = ModelJudge("vllm/m", base_url=started.url, total_timeout=0.2)
        with pytest.raises((ProviderError, JudgeRefused), match=f"HTTP {status}"):
            asyncio.run(judge.answer(QUESTION))
        assert started.sent < 30_000_000  # what the sockets hold of each try


def test_headers_without_end_are_given_up() -> None:
    lines = itertools.chain([b"HTTP/1.1 200 OK\r\n"], (b"X-%d: %s\r\n" % (n, b"a" * 5000) for n in itertools.count()))
    with pytest.raises(ProviderError, match="gave no answer"):
        asked(lines)


MEASURED = """
import re, sys
from pathlib import Path
from evalstone import ModelJudge, evaluate
rows = [{"id": str(n), "output": f"Ada {n}.", "context": ["x"]} for n in range(100)]
try:
    evaluate(rows, "faithfulness", judge=ModelJudge("vllm/m", base_url=sys.argv[1]), concurrency=32, ledger=None)
except Exception as error:
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    print(type(error).__name__, int(peak[1]) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from Linux")
@pytest.mark.parametrize("kind", ["endless", "bomb"])
@pytest.mark.slow
def test_a_run_stays_small_whatever_an_endpoint_sends(kind: str, tmp_path: Path) -> None:
    packed = http(bomb("gzip", 500_000_000), "Content-Encoding: gzip")
    with serving_hostile(lambda _: packed if kind == "bomb" else endless()) as started:
        command = [sys.executable, "-c", MEASURED, started.url]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    name, megabytes = done.stdout.split()
    assert name == "JudgeUnavailable"
    assert int(megabytes) < 300


# Contents


def reply_with(**members: Any) -> bytes:
    return http(json.dumps({**GOOD, **members}).encode())


@pytest.mark.parametrize(
    "count", [10**400, 10**19, MAX_TOKENS + 1, -1, True, "100", None, [], {}, 1e308, float("nan"), float("inf")]
)
def test_a_count_that_is_none_loses_no_answer_and_makes_its_cost_unknown(count: Any, tmp_path: Path) -> None:
    answer, _ = asked(reply_with(usage={"prompt_tokens": count, "completion_tokens": 20}))
    assert (answer.value, answer.usage.input, answer.usage.output, answer.cost) == (("a",), 0, 20, None)
    usage = {"prompt_tokens": 100, "completion_tokens": count, "prompt_tokens_details": {"cached_tokens": count}}
    answer, _ = asked(reply_with(usage=usage))
    assert (answer.value, answer.usage.input, answer.usage.output, answer.cost) == (("a",), 100, 0, None)


def test_an_answer_with_odd_counts_is_kept_in_a_ledger(tmp_path: Path) -> None:
    reply = completion('{"claims": []}')
    reply["usage"] = {"prompt_tokens": 10**300, "completion_tokens": 1e400}
    with serving_hostile(lambda _: http(json.dumps(reply).encode())) as started:
        judge = ModelJudge("vllm/m", base_url=started.url)
        for _ in range(2):
            evaluate(ROWS[:1], "faithfulness", judge=judge, ledger=tmp_path / "l.db", cache=True)
    assert len(started.requests) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + json.dumps(GOOD).encode(),
        json.dumps(GOOD).encode("utf-16"),
        json.dumps({**GOOD, "id": "x"}).encode().replace(b'"x"', b'"\xff\xfe"'),
        json.dumps(GOOD).encode()[:-1] + b', "created": ' + b"9" * 5000 + b"}",
        json.dumps(GOOD).encode()[:-1] + b', "a": NaN, "b": -Infinity, "c": 1e999, "id": 1, "id": 2}',
        json.dumps({**GOOD, "system_fingerprint": "\x00\ud800"}).encode(),
    ],
)
def test_what_stands_beside_a_good_answer_loses_none(body: bytes) -> None:
    answer, _ = asked(http(body))
    assert (answer.value, answer.cost) == (("a",), pytest.approx(120 / 1e6))


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('{"message":', "}"), ('{"error":', "}")])
@pytest.mark.parametrize("depth", [100_000, 990, 900, 700])
def test_deep_json_is_an_error_of_the_question_or_passed_over(opening: str, closing: str, depth: int) -> None:
    nested, whole = opening * depth + "1" + closing * depth, json.dumps(GOOD)
    bodies = [
        nested,
        whole[:-1] + f', "extra": {nested}}}',
        whole[:-1] + f', "choices": {nested}}}',
        json.dumps(completion("X")).replace('"X"', nested),
        json.dumps(completion(nested)),
        json.dumps(completion(f'{{"claims": {nested}}}')),
        whole.replace('"stop"', '"stop", "logprobs": {"content": ' + nested + "}"),
    ]
    for body in bodies:
        with contextlib.suppress(ReplyError, ProviderError):
            assert asked(http(body.encode()))[0].value == ("a",)
    for error in (nested, f'{{"message": {nested}}}', f'{{"detail": [{{"loc": [{nested}]}}]}}'):
        with pytest.raises(ProviderError, match="HTTP 400"):
            asked(http(f'{{"error": {error}}}'.encode(), status=400))


@pytest.mark.parametrize(
    "choices", [None, [], {}, "text", 1, [None], ["x"], [[]], [{}], [{"message": None}], [{"message": "x"}], {"0": 1}]
)
def test_choices_that_are_none_are_an_error_with_a_cost(choices: Any) -> None:
    with pytest.raises(ProviderError, match="sent no choices") as error:
        asked(reply_with(choices=choices))
    assert error.value.cost == pytest.approx(120 / 1e6)


@pytest.mark.parametrize("content", [None, 5, True, {}, [1, None, {"type": "text", "text": 7}], [[["a"]]]])
def test_a_content_that_is_no_text_is_an_empty_reply(content: Any) -> None:
    with pytest.raises(ReplyError, match="empty"):
        asked(reply_with(choices=[{"message": {"content": content, "role": "x"}}]))


def test_a_refusal_that_is_no_text_is_a_decline() -> None:
    message = {"content": None, "refusal": {"why": ["because"] * 1000}}
    with pytest.raises(JudgeDeclined, match="because"):
        asked(reply_with(choices=[{"message": message}]))


ODD_TOKENS: list[Any] = [
        {"token": "a", "logprob": -0.1, "bytes": [10**400, -5, "x"]},
        {"token": ["a"], "logprob": -(10**200), "top_logprobs": []},
        {"token": None, "logprob": 10**400},
        {"logprob": True, "top_logprobs": [{"logprob": -0.1, "token": {}, "top_logprobs": "x"}]},
        {"logprob": -0.1, "top_logprobs": {"a": 1}},
        None, 1, "x", [],
]  # fmt: skip


@pytest.mark.parametrize("token", ODD_TOKENS, ids=range(len(ODD_TOKENS)))
def test_odd_probabilities_lose_no_answer(token: Any) -> None:
    for logprobs in ({"content": [token] * 3}, {"content": token}, token):
        choice = {**GOOD["choices"][0], "logprobs": logprobs}
        assert asked(reply_with(choices=[choice]), logprobs=True)[0].value == ("a",)


def test_a_reply_with_lone_surrogates_is_shown_to_the_model_and_asked_for_again() -> None:
    replies = [completion("\ud800 no json \x00"), GOOD]
    with serving_hostile(lambda n: http(json.dumps(replies[n - 1]).encode())) as started:
        judge = ModelJudge("vllm/m", base_url=started.url)
        assert asyncio.run(judge.answer(QUESTION)).value == ("a",)
    assert "no json" in started.requests[1].decode()


def test_a_plain_text_reply_has_a_length_that_is_read() -> None:
    with pytest.raises(ReplyError, match="most 2,000,000 are") as error:
        asked(reply_with(choices=[{"message": {"content": "x" * 2_500_000}}]))
    assert len(error.value.reply or "") < 2001


# Configuration


def test_the_base_url_of_a_batch_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = ModelJudge("anthropic/claude-opus-4-8", api_key="k", headers={"Authorization": "Bearer x"})
    for url, message in [
        ("http://[::1", "is invalid"),
        ("http://u:p@h", "has a user name or password"),
        ("h:1", "must start"),
    ]:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        with pytest.raises(ConfigError, match=message):
            batch_api(judge).check()


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://h:99999/v1", "http://h:x/v1", "http://a b/v1", "http://x..y/v1"]
)
def test_a_base_url_that_cannot_be_read_is_refused_before_the_run(url: str) -> None:
    with pytest.raises(ConfigError, match=r"base_url .* invalid"):
        ModelJudge("vllm/m", base_url=url).check()
    with pytest.raises(ConfigError, match="must have a host"):
        ModelJudge("vllm/m", base_url="http:///v1").check()


def test_a_reply_has_a_limit_on_lists_and_objects() -> None:
    with pytest.raises(ProviderError, match=r"10,000 lists .*max_reply") as error:
        asked(reply_with(extra=[[] for _ in range(20_000)]), max_reply_bytes=320_000)
    assert error.value.cost is None  # it was paid for, but the usage in it wasn't read


def test_a_large_reply_is_read_like_a_small_one() -> None:
    large = completion(json.dumps({"claims": [QUESTION.text]}) + "\n" * 150_000)
    answer, _ = asked(http(json.dumps(large).encode()))
    assert answer.value == (QUESTION.text,)
