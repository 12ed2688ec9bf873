"""HTTP services as targets: what they are sent, how their replies are read, and what becomes of their failures."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from evalstone import Failed, Sample, Skipped, evaluate
from evalstone.errors import ConfigError, TargetUnavailable
from evalstone.targets import HTTPTarget, parse_target
from evalstone.types import Message, ToolCall
from tests.hostile_serving import Reply, chunked, http, serving_hostile
from tests.serving import Response, completion, serving

BORN = "contains(expected='1815')"
CASES = [{"id": f"q{n}", "input": f"When was Ada born? ({n})", "context": ["Ada was born in 1815."]} for n in range(3)]
SAMPLE = Sample(
    id="s",
    input="And Bob?",
    instructions="Be brief.",
    context=["a", "b"],
    metadata={"user": {"id": 7}, "tags": ["x"]},
    messages=[
        Message(role="user", content="And Ada?"),
        Message(
            role="assistant",
            tool_calls=[ToolCall(name="look_up", arguments={"name": "Ada"}, result={"year": 1815}, id="c1")],
        ),
        Message(role="user", content="And Bob?"),
        Message(role="assistant", content="a recorded answer"),
    ],
)
ASK = "https://host.example/ask"
CHAT = completion("Born in 1815.")
RESPONSE: dict[str, Any] = {
    "object": "response",
    "error": None,
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "In 1815.", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 40}},
}


def failures(target: Any, n: int = 1) -> list[str]:
    run = evaluate(CASES[:n], BORN, target=target, ledger=None)
    return [record.outcome.error for record in run if isinstance(record.outcome, Failed)]


def test_chat_completions_by_the_url() -> None:
    with serving(lambda request, n: CHAT) as server:
        target = {"address": f"{server.url}/chat/completions", "model": "m", "prices": [1.0, 10.0]}
        run = evaluate([SAMPLE], BORN, target=target, ledger=None)
    assert run["contains"].mean == 1
    assert server.requests[0] == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "And Ada?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"name": "Ada"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": '{"year": 1815}'},
            {"role": "user", "content": "And Bob?"},
        ],
    }
    assert run.target is not None
    assert (run.target.usage.input, run.target.usage.output, run.target.usage.cached) == (100, 20, 40)
    assert run.cost == pytest.approx(300e-6)
    answered = next(iter(run.samples or ()))
    assert [message.content for message in answered.messages] == [
        "And Ada?",
        "",
        "And Bob?",
        "Born in 1815.",
    ]


def test_the_responses_api_with_more_in_the_request() -> None:
    with serving(lambda request, n: RESPONSE) as server:
        body = {"reasoning": {"effort": "low"}, "metadata": {"case": "{metadata.user.id}"}}
        target = {"address": f"{server.url}/responses", "model": "m", "body": body}
        run = evaluate([SAMPLE], BORN, target=target, ledger=None)
    assert server.requests[0] == {
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "And Ada?"},
            {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": '{"name": "Ada"}'},
            {"type": "function_call_output", "call_id": "c1", "output": '{"year": 1815}'},
            {"role": "user", "content": "And Bob?"},
        ],
        "reasoning": {"effort": "low"},
        "metadata": {"case": 7},
    }
    assert run["contains"].mean == 1
    assert run.target is not None
    assert (run.target.usage.input, run.target.usage.cached) == (100, 40)


def test_a_template_and_paths() -> None:
    reply = {
        "answer": {"text": "In 1815.", "price": 0.25},
        "docs": [{"page": {"text": "one"}}, {"page": {"text": "two"}}],
        "rows": [1, 2],
        "trace": "t1",
    }
    with serving(lambda request, n: reply) as server:
        target = {
            "address": f"{server.url}/ask?v=2",
            "body": {
                "q": "{input}",
                "said": "1: {{ input }} {metadata.tags} \\{input\\} { n }",
                "messages": "{messages}",
                "docs": "{context}",
                "n": ["{trial}", 3, None],
                "user": "{metadata.user}",
            },
            "output": "answer.text",
            "context": "docs.page.text",
            "cost": "answer.price",
            "state": "rows",
            "trace": "trace",
        }
        run = evaluate([SAMPLE], BORN, target=target, trials=2, ledger=None)
    sent = min(server.requests, key=lambda request: request["n"][0])
    assert len(sent.pop("messages")) == 4
    assert sent == {
        "q": "And Bob?",
        "said": '1: And Bob? ["x"] {input} { n }',
        "docs": ["a", "b"],
        "n": [1, 3, None],
        "user": {"id": 7},
    }
    answered = next(iter(run.samples or ()))
    assert (answered.output, answered.context, answered.state) == ("In 1815.", ("one", "two"), [1, 2])
    assert answered.metadata["target"]["trace"] == "t1"
    assert run.cost == pytest.approx(0.5)


def test_a_template_without_paths_reads_the_fields_of_an_answer() -> None:
    with serving(lambda request, n: {"output": "In 1815.", "state": {"a": 1}}) as server:
        run = evaluate(CASES[:1], BORN, target={"address": f"{server.url}/ask", "body": {"q": "{input}"}}, ledger=None)
    assert next(iter(run.samples or ())).state == {"a": 1}


def test_headers_take_secrets_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_AGENT_KEY", "key-1234567890abcdef")
    headers = {"Authorization": "Bearer $MY_AGENT_KEY", "X-Team": "${USER_OF_TEST}-$$x"}
    monkeypatch.setenv("USER_OF_TEST", "ann")
    with serving(lambda request, n: {"output": "your key is key-1234567890abcdef"}) as server:
        target = {"address": f"{server.url}/ask", "body": {"q": "{input}"}, "headers": headers}
        run = evaluate(CASES[:1], BORN, target=target, ledger=None)
        assert server.headers[0]["Authorization"] == "Bearer key-1234567890abcdef"
        assert server.headers[0]["X-Team"] == "ann-$x"
        assert next(iter(run.samples or ())).output == "your key is ***"
        assert run.target is not None
        assert "1234567890" not in run.target.identity
        assert "1234567890" not in repr(parse_target(target))
        monkeypatch.delenv("MY_AGENT_KEY")
        with pytest.raises(ConfigError, match=r"Authorization .*AGENT_KEY"):
            evaluate(CASES, BORN, target=target, ledger=None)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_service_that_lets_nobody_in_ends_the_run(status: int) -> None:
    with (
        serving(lambda request, n: Response(status, {"error": {"message": "no"}})) as server,
        pytest.raises(TargetUnavailable, match=rf"used: .*HTTP {status}: no.*check the"),
    ):
        evaluate(CASES, BORN, target=f"{server.url}/chat/completions", ledger=None)


def test_a_service_that_has_answered_refuses_one_sample_alone() -> None:
    def reply(request: dict[str, Any], n: int) -> Any:
        return Response(404, "no such thing") if "(1)" in str(request) else CHAT

    with serving(reply) as server:
        target = {"address": f"{server.url}/chat/completions", "max_concurrency": 1}
        (error,) = failures(target, 3)
    assert "404: no such thing" in error


def test_what_cannot_be_reached_fails_and_is_asked_again_by_a_resumed_run(tmp_path: Any) -> None:
    down = True

    def reply(request: dict[str, Any], n: int) -> Any:
        return Response(503, "busy") if down and "(1)" in str(request) else CHAT

    with serving(reply) as server:
        target = {"address": f"{server.url}/chat/completions", "retries": 1, "version": "1"}
        run = evaluate(CASES, BORN, target=target, ledger=tmp_path / "l.db")
        (failure,) = [record.outcome for record in run if isinstance(record.outcome, Failed)]
        assert "2 attempts" in failure.error
        assert "HTTP 503: busy" in failure.error
        asked = len(server.requests)
        down = False
        assert evaluate(CASES, BORN, target=target, ledger=tmp_path / "l.db")["contains"].mean == 1
        assert len(server.requests) == asked + 1


def test_a_rate_limit_is_waited_for() -> None:
    with serving(lambda request, n: Response(429, "slow down", {"Retry-After": "0"}) if n < 4 else CHAT) as server:
        assert not failures({"address": f"{server.url}/chat/completions", "retries": 0})


def test_nobody_there_ends_the_run_and_says_so() -> None:
    target = {"address": "http://127.0.0.1:9/chat/completions", "timeout": 2, "max_concurrency": 32}
    cases = [{"id": str(n), "input": "x"} for n in range(60)]
    with pytest.raises(TargetUnavailable, match=r"127.0.0.1:9; is the server"):
        evaluate(cases, BORN, target=target, ledger=None)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (http(b""), "sent an empty reply"),
        (http(b"<html>Hello</html>"), r"sent no valid JSON .*; it sent '<html>Hello</html>'"),
        (http(b"data: {}\n\n", "Content-Type: text/event-stream"), r"sent no valid JSON .*; it sent 'data: \{\}'"),
        pytest.param(http(b"[" * 100_000), r"sent no valid JSON \(line 1: nested too deeply", id="deep"),
        (http(b'{"output": "1815", "cost": NaN}'), r"\(line 1: 'NaN' is no finite number\)"),
        (http(b'{"output": "1815",\n "cost": 1e400}'), r"\(line 2: '1e400' is no finite number\)"),
        (http(b'{"output": "1815",\n "output": "1816"}'), r"\(line 2: duplicate key 'output' in one object\)"),
        (http(b'{"output": "caf\xe9"}'), r"\(line 1: not UTF-8 \(byte 0xe9\)\)"),
        (http(b'{"error": {"message": "over quota"}}'), "sent an error: over quota"),
        (http(b'{"error": "over quota"}'), "sent an error: over quota"),
        (
            http(b'{"choices": []}'),
            r"sent a reply without an answer: a chat completion has choices with a message, not",
        ),
        (http(b'"text"'), "a chat completion has choices with a message, not text"),
        (http(b'{"choices": [{"message": {"role": "assistant", "content": 3}}]}'), "content must be text or a list"),
        (http(b'{"detail": "q is missing"}', status=422), "HTTP 422"),
        (http(b"", "Location: http://elsewhere.example/x?key=1", status=307), "redirects to http://elsewhere.example"),
        pytest.param(  # its bytes have the time in them, and workers have to collect tests of the same names
            http(gzip.compress(b" " * 50_000_000), "Content-Encoding: gzip"),
            "more than 8,000,000 bytes; max_reply_bytes",
            id="bomb",
        ),
        (http(b"not gzip", "Content-Encoding: gzip"), "corrupt compressed reply"),
    ],
)
def test_a_reply_that_is_no_answer_fails_its_sample(reply: bytes, problem: str) -> None:
    good = http(json.dumps(CHAT).encode())
    # the first sample is answered, so that the service is known to work
    with serving_hostile(lambda n: good if n == 1 else reply) as server:
        target = {"address": f"{server.url}/chat/completions", "max_concurrency": 1, "retries": 0}
        (error,) = failures(target, 2)
    assert error.startswith("the target failed: ")
    assert re.search(problem, error), error


def test_endless_and_dripping_replies_end() -> None:
    def endless(n: int) -> Reply:
        return chunked(itertools.repeat(b" " * 65536))

    def drip(n: int) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n"
        for _ in range(100):
            time.sleep(0.05)
            yield b" "

    with serving_hostile(endless) as server:
        (error,) = failures({"address": f"{server.url}/chat/completions", "max_reply_bytes": 1_000_000})
        assert "more than 1,000,000 bytes" in error
    with serving_hostile(drip) as server:
        (error,) = failures({"address": f"{server.url}/chat/completions", "timeout": 0.5})
        assert error.endswith("no answer within 0.5 s")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ({"reply": {}}, "it has no reply.text, where output is expected; it has reply, docs"),
        ({"reply": {"text": ["a"]}}, "the output: reply.text must be text, not list"),
        ({"reply": {"text": "x"}, "docs": [{"url": "u"}]}, "passage 1 must be text or an object with text"),
        ({"error": "no index"}, "sent an error: no index"),
    ],
)
def test_a_path_that_leads_nowhere_fails_with_what_is_there(reply: Any, problem: str) -> None:
    reply = {**reply, **({} if "error" in reply else {"docs": reply.get("docs", [])})}
    with serving(lambda request, n: reply) as server:
        target = {"address": f"{server.url}/ask", "body": {"q": "{input}"}, "output": "reply.text", "context": "docs"}
        (error,) = failures(target)
    assert problem in error


@pytest.mark.parametrize(
    ("usage", "tokens", "cost"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 5}, 105, 110e-6),
        ({"promptTokens": 100, "completionTokens": 5}, 105, 110e-6),
        ({"input_tokens": 100, "output_tokens": 5, "cache_read_input_tokens": 50}, 155, 160e-6),  # beside the input
        ({"prompt_tokens": 100}, 100, None),
    ],
)
def test_the_cost_is_that_of_all_tokens_that_are_reported(usage: Any, tokens: int, cost: float | None) -> None:
    with serving(lambda request, n: {"text": "1815", "usage": usage}) as server:
        target = {"address": f"{server.url}/ask", "body": {"q": "{input}"}, "output": "text", "prices": [1.0, 2.0]}
        run = evaluate(CASES[:1], BORN, target=target, ledger=None)
    assert run.target is not None
    assert (run.target.usage.input + run.target.usage.output, run.target.usage.requests) == (tokens, 1)
    assert run.target.cost == (cost if cost is None else pytest.approx(cost))


def test_a_sample_without_what_the_template_needs_is_skipped() -> None:
    with serving(lambda request, n: {"output": "1815"}) as server:
        cases = [{"id": "a", "input": "x", "metadata": {"user": "u"}}, {"id": "b", "input": "x"}]
        target = {"address": f"{server.url}/ask", "body": {"q": "{input}", "u": "{metadata.user}"}}
        run = evaluate(cases, BORN, target=target, ledger=None)
    assert len(server.requests) == 1
    assert isinstance(run.records[1].outcome, Skipped)
    assert parse_target(target).lacking(Sample(input="x")) == ["metadata.user"]
    body = {name: f"{{{name}}}" for name in ("messages", "trial", "thread")}
    asking = parse_target({"address": "https://host.example/ask", "body": body})
    assert asking.lacking(Sample(input="x")) == []
    assert asking.lacking(Sample(output="x")) == ["messages"]


def test_a_template_is_part_of_the_identity() -> None:
    url = f"{ASK}?code=secret-code-123"
    names = {
        parse_target({"address": url, "body": {"q": "{input}"}, **more}).name
        for more in ({}, {"output": "a"}, {"body": {"p": "{input}"}}, {"headers": {"X-Route": "b"}}, {"model": "m"})
    }
    assert len(names) == 5
    assert all(name.startswith(f"{ASK}?code=***(") for name in names)
    secret = parse_target({"address": url, "body": {"q": "{input}"}, "headers": {"Authorization": "Bearer x"}})
    assert secret.name in names
    chat = "https://host.example/v1/chat/completions"
    assert parse_target(chat).name == chat


def test_a_secret_in_the_body_is_hidden_in_an_answer_that_repeats_it() -> None:
    with serving(lambda request, n: {"output": f"got {request['auth']['token']}"}) as server:
        target = HTTPTarget(url=f"{server.url}/ask", body={"q": "{input}", "auth": {"token": "b0dy-s3cret"}})
        run = evaluate([{"input": "x"}], BORN, target=target, ledger=None)
    assert server.requests[0]["auth"] == {"token": "b0dy-s3cret"}
    assert next(iter(run.samples or ())).output == "got ***"


@pytest.mark.parametrize("parameter", ["code", "key", "token", "session_id"])
def test_a_hidden_parameter_that_may_be_no_secret_is_part_of_the_identity(parameter: str) -> None:
    def name(text: str) -> str:
        return parse_target({"address": f"{ASK}?{parameter}={text}", "api": "chat"}).name

    assert name("de") == name("de") != name("fr")
    assert name("s3cret-1") == name("s3cret-2")
    assert name("fr").startswith(f"{ASK}?{parameter}=***(")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"address": "https://host.example/ask"},
            "https://host.example/ask needs the form of its requests; in a",
        ),
        ({"api": "chatt"}, "api must be 'chat', 'responses' or ''"),
        ({"body": {"q": "{imput}"}}, "body has an unknown placeholder 'imput'; did you mean input?"),
        ({"body": {"q": "input"}}, "body has no placeholder such as"),
        ({"api": "chat", "address": "https://me:pw@host.example/"}, "has a user or a password; give them in headers"),
        ({"api": "chat", "address": "https://"}, "starts with http:// or https:// and a host"),
        ({"api": "chat", "address": "https://host.example:0/"}, "can't be read"),
        ({"api": "chat", "headers": {"a": "b\n"}}, "headers must be a mapping of names to text"),
        ({"api": "chat", "retries": -1}, "retries must be a whole number from 0 to 1000"),
        ({"api": "chat", "modell": "m"}, "the target has an unknown setting 'modell'; did you mean model?"),
        ({"body": "{input}"}, "body must be a mapping"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem.replace("(", r"\(")):
        parse_target({"address": "https://host.example/ask", **settings})
