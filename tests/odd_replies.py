"""Replies of endpoints with anything in them, for property-based tests: HTTP responses, and results of batches.

The only outcomes are an answer and an error of ours: `read_reply` and `read_batch` raise whatever else comes.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import math
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from hypothesis import strategies as st

from evalstone import ModelJudge
from evalstone.datasets.writing import json_line
from evalstone.errors import EvalstoneError, JudgeError, JudgeRefused, ProviderError
from evalstone.judges.corrections import read_completion
from evalstone.judges.model import opening_messages
from evalstone.ledger.base import Key, StoredAnswer, to_row
from evalstone.models.batch import batch_api
from evalstone.models.batch.base import BatchState
from evalstone.questions.answers import JudgeAnswer, failed_call, judge_call
from evalstone.questions.base import Question
from tests.fakes import QUESTION_KINDS, question_of
from tests.hostile_serving import HostileServer, Reply, chunked, http
from tests.serving import completion

LARGEST_COLUMN = 2**31 - 1
STATUSES = (200,) * 40 + (201, 204, 301, 307, 400, 401, 403, 404, 418, 422, 429, 500, 503, 599)
SETTLED = frozenset({301, 307, 401, 403, 404})
"""The statuses that say what is wrong with the endpoint, the key or the model, and end a run."""

TEXTS = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from(
    ["\ud800", "\x00", "\ufeff{}", "yes", "1", '{"a": 1', "<think>", "```json\n{}\n```", "NaN", "\u2028", "9" * 5000]
)
NUMBERS = (
    st.integers(-3, 200)
    | st.floats()
    | st.sampled_from([10**400, -(10**400), 2**63, 2**31, 1e308, -0.0, math.nan, math.inf, -math.inf, 10**4000])
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
NAMES = st.sampled_from(["token", "logprob", "top_logprobs", "bytes", "text", "type", "content", "message", "verdict"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | TEXTS, inner, max_size=4),
    max_leaves=12,
)
QUESTIONS: list[Question[Any]] = [question_of(kind, "Ada was born in 1815.") for kind in QUESTION_KINDS]
RETRY_AFTER = TEXTS | st.floats().map(str) | st.sampled_from(["Fri, 31 Dec 99999 23:59:59 GMT", "-1", "1e400"])
HEADERS = st.lists(
    st.tuples(st.sampled_from(["Retry-After", "retry-after-ms", "Location", "X-Odd"]), RETRY_AFTER)
    | st.tuples(st.just("Content-Encoding"), st.sampled_from(["gzip", "br", "deflate", "identity", "gzip, gzip", ""]))
    | st.tuples(st.just("Content-Type"), st.sampled_from(["text/html; charset=utf-16", "application/json", "x"])),
    max_size=3,
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every member of a JSON value: what it stands in, and its name or number there."""
    members: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        members = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        members = list(enumerate(cast("list[Any]", value)))
    container = cast(Any, value)
    return [(container, name) for name, _ in members] + [place for _, inner in members for place in _places(inner)]


def _odd(draw: st.DrawFn, value: Any) -> Any:
    """A JSON value of which up to three members are replaced or missing."""
    whole = {"": json.loads(json.dumps(value))}
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2, 3]))):
        container, name = draw(st.sampled_from(_places(whole)))
        if isinstance(container, dict) and name and draw(st.booleans()):
            del container[name]
        else:
            container[name] = draw(VALUES)
    return whole[""]


def _text(draw: st.DrawFn, value: Any) -> str:
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


def _bytes(draw: st.DrawFn, text: str) -> bytes:
    """A text as bytes, some of which are lost, changed or too deep."""
    match draw(st.sampled_from(range(18))):
        case 0:
            return text.encode("utf-16", "surrogatepass")
        case 1:
            return b"\xef\xbb\xbf" + text.encode(errors="surrogatepass")
        case 2:
            body = text.encode(errors="surrogatepass")
            return body[: draw(st.integers(0, len(body)))]
        case 3:
            body, place = text.encode(errors="surrogatepass"), draw(st.integers(0, len(text)))
            return body[:place] + draw(st.binary(max_size=6)) + body[place:]
        case 4:
            depth, pair = draw(st.sampled_from([50, 700, 900, 990, 5000])), draw(st.sampled_from(["[]", "{}"]))
            opening = "[" if pair == "[]" else '{"a":'
            nested = opening * depth + "1" + pair[1] * depth
            return text.replace("1815", nested).replace('"stop"', nested).encode(errors="surrogatepass")
        case 5:
            return text.replace("}", ', "choices": 1, "usage": 2}', 1).encode(errors="surrogatepass")
        case _:
            return text.encode(errors="surrogatepass")


@st.composite
def chat_bodies(draw: st.DrawFn, question: Question[Any]) -> bytes:
    """The body of a chat completion that answers a question, with odd parts."""
    example = _odd(draw, question.example())
    text = example if isinstance(example, str) else _text(draw, example)
    tokens = [{"token": each, "logprob": -0.1, "top_logprobs": [{"token": "1", "logprob": -0.5}]} for each in text[:5]]
    whole = completion(text, logprobs={"content": tokens}) | {"error": {"message": "temperature", "code": 1}}
    return _bytes(draw, _text(draw, _odd(draw, whole)))


@st.composite
def replies(draw: st.DrawFn) -> tuple[Question[Any], int, Reply]:
    """A question, and the status and the bytes of the reply to it."""
    question, status = draw(st.sampled_from(QUESTIONS)), draw(st.sampled_from(STATUSES))
    headers = [
        f"{name}: {''.join(value.splitlines())}".encode(errors="surrogatepass").decode(errors="surrogateescape")
        for name, value in draw(st.sampled_from([st.just([]), st.just([]), HEADERS]).flatmap(lambda one: one))
    ]
    body = draw(chat_bodies(question))
    if any(header == "Content-Encoding: gzip" for header in headers) and draw(st.booleans()):
        body = gzip.compress(body, 1)[: draw(st.sampled_from([None, None, 12, -1]))]
    if status == 200 and draw(st.sampled_from([False] * 15 + [True])):
        pieces = list(chunked([body[:5], body[5:]]))
        return question, status, pieces[: draw(st.integers(1, len(pieces)))]
    return question, status, http(body, *headers, status=status)


def check_kept(question: Question[Any], outcome: JudgeAnswer[Any] | JudgeError) -> None:
    """Raise for an outcome that no record or ledger could keep."""
    if isinstance(outcome, JudgeAnswer):
        call = judge_call(question, outcome)
        row = to_row(StoredAnswer.of(Key(question.fingerprint, outcome.judge), question.kind, outcome))
        for value in row.values():
            assert not isinstance(value, int) or 0 <= value <= LARGEST_COLUMN
            assert not isinstance(value, str) or (value.encode() is not None and "\x00" not in value)
    else:
        call = failed_call(question, outcome, "m")
        assert len(str(outcome)) < 5000
        str(outcome).encode(errors="strict")
    json_line(call).encode()
    assert call.cost is None or 0 <= call.cost < math.inf


def ask(server: HostileServer, question: Question[Any]) -> JudgeAnswer[Any]:
    """The answer of a judge whose endpoint is the server."""
    judge = ModelJudge(
        "vllm/m", base_url=server.url, retries=1, timeout=0.5, total_timeout=0.001, logprobs=True, prices=(1.0, 1.0)
    )
    return asyncio.run(judge.answer(question))


def read_reply(server: HostileServer, case: tuple[Question[Any], int, Reply]) -> str:
    """How a question ends that gets a reply: the name of what came."""
    question, status, reply = case
    server.reply = lambda _: reply
    try:
        outcome: JudgeAnswer[Any] | JudgeError = ask(server, question)
    except JudgeError as error:
        outcome = error
    except JudgeRefused:
        assert status in SETTLED
        return "JudgeRefused"
    check_kept(question, outcome)
    return type(outcome).__name__


@st.composite
def batch_cases(draw: st.DrawFn) -> tuple[str, Question[Any], bytes]:
    """A provider, a question, and a file of batch results or an object that tells of a batch."""
    model, question = (
        draw(st.sampled_from(["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])),
        draw(st.sampled_from(QUESTIONS)),
    )
    example = question.example()
    text = example if isinstance(example, str) else json.dumps(example)
    message = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": {"input_tokens": 9}}
    line: dict[str, Any] = {
        "custom_id": "b-1",
        "response": {"status_code": 200, "body": completion(text)},
        "error": {"message": "no", "error": {"type": "invalid_request_error"}},
        "result": {"type": "succeeded", "message": message, "error": {"type": "x", "message": 1}},
        "id": "batch_1", "status": "failed", "processing_status": "ended", "created_at": "2026-01-01T00:00:00Z",
        "request_counts": {"total": 1, "completed": 1}, "errors": {"data": [{"message": "x"}]}, "data": [],
        "output_file_id": "f", "metadata": {"evalstone_batch": "b"}, "has_more": True,
    }  # fmt: skip
    lines = [_bytes(draw, _text(draw, _odd(draw, line))) for _ in range(draw(st.integers(1, 3)))]
    return model, question, b"\n".join(lines)


def _results_in_a_folder(judge: ModelJudge, content: bytes) -> list[Any]:
    """The same results in a file of a folder; none if it has those of more than one request."""
    batch = "0" * 16
    with tempfile.TemporaryDirectory() as folder:
        api = batch_api(judge, folder)
        own = content.replace(b'"b-1"', f'"{batch}-{1:032x}"'.encode())
        Path(folder, f"evalstone-{batch}.results.jsonl").write_bytes(own)
        try:
            state = asyncio.run(api.state(f"evalstone-{batch}.requests.jsonl", 1))
        except ProviderError:
            return []
        assert (state.ended != "", state.done <= 1) == (True, True)
        return asyncio.run(api.results(state))


def read_batch(server: HostileServer, case: tuple[str, Question[Any], bytes]) -> str:
    """How a file of results is read: the name of what came last."""
    model, question, content = case
    server.reply = lambda _: http(content)
    judge = ModelJudge(model, api_key="k", total_timeout=0.001, timeout=0.5, prices=(1.0, 1.0))
    api, last = batch_api(judge), "none"

    async def work() -> Any:
        async with api.opened():
            found: list[Any] = [await api.results(BatchState("b", "ended", 1, 1, files=("f",)))]
            for call in (api.state("b", 1), api.find("b", since=datetime.now(UTC), requests=1, known=())):
                found += await asyncio.gather(call, return_exceptions=True)
            return found

    results, *others = asyncio.run(work())
    for other in others:
        if isinstance(other, BaseException) and not isinstance(other, EvalstoneError):
            raise other
    for result in [*results, *_results_in_a_folder(judge, content)]:
        paid = api.paid(result.body)
        assert paid is None or 0 <= paid < math.inf
        sent = api.payload(question.reply_form, [], judge.settings_for(question), api.capabilities)
        assert api.learn(question.reply_form, sent, result.body) in (True, False)
        assert api.may_pass(result.body) in (True, False)
        assert json.dumps(result.body)
        try:
            reply = api.reply(opening_messages(question), result.body)
            value, _ = read_completion(question, reply, judge.settings_for(question), False)
            outcome: JudgeAnswer[Any] | JudgeError = JudgeAnswer(
                value=value, judge="m", reply=reply.text, usage=reply.usage, cost=reply.cost
            )
        except JudgeError as error:
            outcome = error
        check_kept(question, outcome)
        last = type(outcome).__name__
    return last
