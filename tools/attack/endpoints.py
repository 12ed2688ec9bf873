"""What a hostile endpoint can do: floods, redirects, huge and odd replies, and echoes of what it was sent."""

from __future__ import annotations

import base64
import gzip
import json
import signal
import time
import zlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tools.attack.harness import (
    Process,
    Reply,
    Request,
    Result,
    completion,
    evalstone,
    good,
    http,
    judged,
    records,
    serving,
    write_samples,
)

FLOOD_SECONDS = 3.0
MOST_REQUESTS = 300
"""In that time, by 32 workers: the first attempts, and ten retries a second."""
MEGABYTES = 400.0
DATES = ("Wed, 01 Jan 1990 00:00:00 GMT", "Fri, 31 Feb 99999 99:99:99 GMT", "Wed, 01 Jan 0001 00:00:00 +9999")
RETRY_AFTER = ("0", "-1", "nan", "-inf", "1e-300", "0x0", "", "٣", *DATES)


def flood(folder: Path) -> Result:
    """Whatever Retry-After says, few requests are sent, and Ctrl-C ends the run."""
    broken: list[str] = []
    most, slowest = 0, 0.0
    for number, value in enumerate(RETRY_AFTER):
        work = folder / str(number)
        work.mkdir()
        write_samples(work, 100)
        status = (429, 503, 500)[number % 3]
        reply = http(status, {"error": {"message": "busy"}}, {"Retry-After": value, "retry-after-ms": value})
        with serving(lambda _, reply=reply: reply) as server:
            process = Process(work, *judged(server))
            while not server.requests and process.popen.poll() is None:
                time.sleep(0.01)
            time.sleep(FLOOD_SECONDS)
            sent = len(server.requests)
            process.send(signal.SIGINT)
            asked = time.monotonic()
            done = process.ended(15)
            slow, after = time.monotonic() - asked, len(server.requests) - sent
        most, slowest = max(most, sent), max(slowest, slow)
        if sent > MOST_REQUESTS:
            broken.append(f"{sent} requests in {FLOOD_SECONDS:g} s for HTTP {status} with Retry-After: {value}")
        if done.code not in (3, 130) or slow > 5 or after > 40:
            broken.append(f"Retry-After: {value}: code {done.code} {slow:.1f} s after Ctrl-C, {after} more requests")
    seen = (
        f"at most {most} requests in {FLOOD_SECONDS:g} s (100 samples, 32 at once); Ctrl-C ends it in {slowest:.1f} s"
    )
    return Result(len(RETRY_AFTER), seen, broken)


def redirects(folder: Path) -> Result:
    """Neither keys nor prompts follow a redirect."""
    broken: list[str] = []
    statuses = (300, 301, 302, 303, 307, 308)
    for status in statuses:
        work = folder / str(status)
        work.mkdir()
        write_samples(work, 20)
        with serving() as thief, serving() as server:
            target = thief.url.replace("127.0.0.1", "localhost") + "/chat/completions?key=x"
            server.behavior = lambda _, status=status, target=target: http(status, headers={"Location": target})
            (work / "eval.toml").write_text(
                'data = "data.jsonl"\nscorers = ["faithfulness"]\n[judge]\nmodel = "vllm/m"\n'
                f'base_url = "{server.url}"\nheaders = {{ "x-api-key" = "PLANTED-KEY-1" }}\n'
            )
            done = evalstone(work, "run", "eval.toml", environment={"OPENAI_API_KEY": "PLANTED-KEY-2"})
            if thief.requests:
                broken.append(f"HTTP {status}: {len(thief.requests)} requests reached the other host")
            if len(server.requests) > 40:
                broken.append(f"HTTP {status}: {len(server.requests)} requests before the run ended")
        if done.code not in (2, 3) or "localhost" not in done.stderr or "?key" in done.stderr:
            broken.append(f"HTTP {status}: code {done.code}, {done.stderr[-200:]}")
    return Result(len(statuses), "no request reached the other host", broken)


def _bomb() -> bytes:
    """A gigabyte of blanks in gzip, and once more in gzip."""
    packer = zlib.compressobj(9, wbits=31)
    blank = b" " * 2**20
    return b"".join([packer.compress(blank) for _ in range(1024)]) + packer.flush()


async def _endless(head: bytes, part: bytes) -> AsyncIterator[bytes]:
    yield head
    for _ in range(3 * 2**10):
        yield part


def memory(folder: Path) -> Result:
    """Huge replies are not read to their end."""
    bomb = _bomb()
    part = b" " * 2**20
    chunk = b"100000\r\n" + part + b"\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    cases: dict[str, Callable[[], Reply]] = {
        "a gzip bomb": lambda: http(body=bomb, headers={"Content-Encoding": "gzip"}),
        "a gzip bomb in gzip": lambda: http(body=gzip.compress(bomb), headers={"Content-Encoding": "gzip, gzip"}),
        "a gzip bomb as an error": lambda: http(400, bomb, {"Content-Encoding": "gzip"}),
        "an endless reply": lambda: _endless(head + b"Content-Length: 99999999999\r\n\r\n", part),
        "an endless chunked reply": lambda: _endless(head + b"Transfer-Encoding: chunked\r\n\r\n", chunk),
        "an endless error": lambda: _endless(head.replace(b"200", b"500") + b"\r\n", part),
        "endless headers": lambda: _endless(head, b"X-Header: x\r\n" * 10_000),
        "one endless header": lambda: _endless(head + b"X-Header: ", part),
        "endless JSON": lambda: _endless(head + b"\r\n", b'{"a":[' * 100_000),
    }
    broken: list[str] = []
    most = 0.0
    for number, (name, make) in enumerate(cases.items()):
        work = folder / str(number)
        work.mkdir()
        write_samples(work, 3)
        with serving(lambda _, make=make: make()) as server:
            done = evalstone(work, *judged(server), timeout=60)
        most = max(most, done.megabytes)
        if done.megabytes > MEGABYTES:
            broken.append(f"{name}: {done.megabytes:.0f} MB")
        if done.code not in (2, 3) or "Traceback" in done.text:
            broken.append(f"{name}: code {done.code} after {done.seconds:.0f} s, {done.stderr[-300:]}")
    return Result(len(cases), f"at most {most:.0f} MB", broken)


def _odd_replies(request: Request) -> list[bytes]:
    """Responses with HTTP 200 that no honest server sends."""
    whole = good(request).partition(b"\r\n\r\n")[2]
    answer: Any = json.loads(whole)

    def with_usage(usage: str) -> bytes:
        return json.dumps({**answer, "usage": "USAGE"}).replace('"USAGE"', usage).encode()

    def with_choice(**fields: Any) -> bytes:
        return json.dumps({**answer, "choices": [{**answer["choices"][0], **fields}]}).encode()

    def with_message(content: Any) -> bytes:
        return with_choice(message={"role": "assistant", "content": content})

    digits = "9" * 5000
    deep = "[" * 100_000 + "]" * 100_000
    numbers = [
        "1e400",
        "-1e400",
        "NaN",
        "true",
        "null",
        "[]",
        "{}",
        "1.5",
        "-1",
        '"7"',
        "1" + "0" * 30,
        digits,
        f"-{digits}",
    ]
    contents: list[Any] = [
        None,
        7,
        [],
        {},
        [7],
        [{"type": "text"}],
        [{"type": "text", "text": 7}],
        "\ud800",
        "\ufeff{}",
    ]
    contents += ["", " ", "\x00", "[]", "{}", "7", "null", '"x"', "NaN", digits, "{" * 10_000, "```json\n{}\n```", deep]
    contents += ['{"claims":' * 2_000 + "1" + "}" * 2_000, json.dumps({"a": 1}) * 50]
    odd_values: tuple[Any, ...] = ("x", None, 1e400, [7], [{}], [], {}, "x" * 10_000, "\x1b[31m")
    logprobs: list[Any] = [7, "x", [], [7], {"content": 7}, {"content": [7]}, {"content": [{}]}, {"content": {"a": 1}}]
    logprobs += [{"content": [{"token": 7, "logprob": odd, "top_logprobs": odd}]} for odd in odd_values]
    choices = ["[]", "{}", "7", "[7]", "[{}]", "null", deep, digits, '[{"message": 7}]', '[{"message": []}]']
    bodies = [
        *(with_usage(f'{{"prompt_tokens": {number}, "completion_tokens": {number}}}') for number in numbers),
        *(with_choice(logprobs=odd) for odd in logprobs),
        *(with_choice(finish_reason=odd) for odd in odd_values),
        *map(with_message, contents),
        *(f'{{"choices": {odd}}}'.encode() for odd in choices),
        *(b"", b" ", b"null", b"7", b"[]", b'"x"', b"{}", b"\xff\xfe", b"\x00" * 50, deep.encode()),
        *(b"<html>busy</html>", b"data: {}\n\n", b'{"error": {"message": 7}}', b'{"error": "x"}', b'{"error": null}'),
        *(whole, whole[:-5], whole * 2, b"\xef\xbb\xbf" + whole, whole.decode().encode("utf-16")),
    ]
    message = b'{"error": {"message": "' + b"x" * 100_000 + b'", "code": ' + digits.encode() + b"}}"
    headers = [{"Set-Cookie": "a=b" * 100}, {"Content-Encoding": "gzip"}, {"Content-Encoding": "odd"}]
    return [
        *map(partial(http, 200), bodies),
        *(http(200, whole, each) for each in (*headers, {"Content-Type": "text/plain; charset=odd"})),
        *(http(204), http(200, b"", length=False), http(700, b"x"), http(999, b""), http(100, b"")),
        *(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"HTTP/9.9 200 OK\r\n\r\n", b"nonsense\r\n\r\n"),
        *(http(status, body) for status in (400, 422) for body in (deep.encode(), message)),
    ]


def odd_replies(folder: Path) -> Result:
    """An odd reply costs its own sample at most; the others are scored."""
    write_samples(folder, 1)
    with serving() as server:
        evalstone(folder, *judged(server))
        odd = len(_odd_replies(server.requests[0]))
    rows: list[dict[str, Any]] = []
    for n in range(odd):
        rows += [
            {"id": f"{kind}{n}", "output": f"{kind} {n}.", "context": [f"{kind} {n}."]} for kind in ("good", "odd")
        ]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def reply(request: Request) -> bytes:
        text = request.json()["messages"][1]["content"]
        if "odd " not in text:
            return good(request)
        number = int("".join(char for char in text.partition("odd ")[2][:4] if char.isdigit()))
        return _odd_replies(request)[number]

    (folder / "eval.toml").write_text(
        'data = "data.jsonl"\nscorers = ["faithfulness"]\nout = "out"\n[judge]\nmodel = "vllm/m"\n'
        'base_url = "URL"\nretries = 0\ntimeout = 2\ntotal_timeout = 3\nlogprobs = true\nprices = [1, 1]\n'
    )
    with serving(reply) as server:
        (folder / "eval.toml").write_text((folder / "eval.toml").read_text().replace("URL", server.url))
        done = evalstone(folder, "run", "eval.toml", "--concurrency", "8")
    broken = [] if done.code in (0, 3) and "Traceback" not in done.text else [f"code {done.code}: {done.stderr[-400:]}"]
    scored = failed = 0
    if (folder / "out").exists():
        for record in records(folder):
            is_score = record["outcome"] == "score"
            scored, failed = scored + is_score, failed + (not is_score)
            if record["sample_id"].startswith("good") and not is_score:
                broken.append(f"{record['sample_id']}: {record['error']}")
            own = ("Error: '", "object has no attribute", "OverflowError", "RecursionError", "TypeError")
            if any(name in str(record["error"]) for name in own):
                broken.append(f"{record['sample_id']}: {str(record['error'])[:200]}")
    return Result(odd, f"{scored} of {2 * odd} samples scored, {failed} failed or skipped", broken)


PLACES = {
    "environment": "sk-planted+environment/1=",
    "inline": "sk-planted-inline-2",
    "header": "sk-planted-header-3",
    "toml": "sk-planted-toml-4",
    "database": "planted%Password-5",
    "userinfo": "planted-userinfo-6",
    "query": "planted-query-7",
    "proxy": "planted-proxy-8",
}


def _forms(secret: str) -> set[str]:
    """How a secret may be written."""
    return {
        secret,
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        base64.b64encode(secret.encode()).decode(),
        base64.b64encode(f"user:{secret}".encode()).decode(),
    }


def secrets(folder: Path) -> Result:
    """A key is in no output and no file, also when the endpoint echoes it."""

    def echo(request: Request) -> bytes:
        said = json.dumps(dict(request.headers)) + request.path
        statuses = (400, 200, 401, 200, 500, 403)
        status = statuses[request.number % len(statuses)]
        if status == 200:
            return http(200, completion(said if request.number % 4 == 1 else json.dumps({"claims": [said], "x": said})))
        return http(status, {"error": {"message": said, "code": said}})

    p = PLACES
    environment = {
        "OPENAI_API_KEY": p["environment"], "OPENAI_BASE_URL": "", "ANTHROPIC_API_KEY": p["environment"],
    }  # fmt: skip
    proxied = {**environment, "http_proxy": f"http://user:{p['proxy']}@127.0.0.1:9", "NO_PROXY": ""}
    write_samples(folder, 12)
    (folder / "toml").mkdir()
    database = f"postgresql://user:{quote(p['database'])}@127.0.0.1:9/db"
    in_query = f"postgresql://127.0.0.1:9/db?user=u&password={p['database']}"
    commands: list[tuple[list[str], dict[str, str]]] = []
    with serving(echo) as server:
        environment["OPENAI_BASE_URL"] = proxied["OPENAI_BASE_URL"] = server.url
        host = server.url.removeprefix("http://")
        (folder / "eval.toml").write_text(
            'data = "data.jsonl"\nscorers = ["faithfulness"]\nout = "toml/out"\nledger = "toml.db"\n'
            f'[judge]\nmodel = "vllm/m"\nbase_url = "{server.url}"\napi_key = "{p["toml"]}"\nretries = 1\n'
            f'total_timeout = 2\nheaders = {{ "x-api-key" = "{p["header"]}", '
            f'"Authorization" = "Bearer {p["header"]}" }}\n'
        )
        (folder / "broken.toml").write_text((folder / "eval.toml").read_text() + f'api_kee = "{p["toml"]}"\n')
        run = ["run", "data.jsonl", "--scorer", "faithfulness", "--verbose"]
        inline = f"openai/gpt-5.1(api_key={p['inline']}, total_timeout=2)"
        panel = f"panel(openai/a(api_key={p['inline']}, total_timeout=2), lexical)"
        for judge in (inline, panel, f"openai/a(api_kee={p['inline']})", f"openai/a(api_key={p['inline']}", "openai/a"):
            commands += [([*run, "--judge", judge, "--out", f"out{len(commands)}"], environment)]
            commands += [
                (
                    ["score", "--scorer", "faithfulness", "--judge", judge, "--output", "x", "--context", "x"],
                    environment,
                )
            ]
        commands += [
            (["run", "eval.toml", "--verbose"], {}),
            (["run", "eval.toml", "--dry-run"], {}),
            (["run", "broken.toml"], {}),
            ([*run, "--judge", "lexical", "--ledger", database], {}),
            ([*run, "--judge", "lexical", "--ledger", in_query], {}),
            ([*run, "--judge", "lexical", "--ledger", f"mysql://user:{p['database']}@h/db"], {}),
            (["ledger", "info", "--ledger", database], {}),
            (["runs", "--ledger", database], {}),
            ([*run, "--judge", "vllm/m", "--base-url", f"http://user:{p['userinfo']}@{host}"], environment),
            ([*run, "--judge", "openai/m", "--base-url", f"http://user:{p['userinfo']}@{host}"], environment),
            ([*run, "--judge", "vllm/m", "--base-url", f"{server.url}?key={p['query']}"], environment),
            ([*run, "--judge", "vllm/m", "--base-url", f"ftp://user:{p['userinfo']}@h/?key={p['query']}"], environment),
            ([*run, "--judge", "openai/m(total_timeout=2)"], proxied),
            (["judges", inline], environment),
            (["report", "toml/out", "--html", "page.html", "--csv", "table.csv", "--junit", "junit.xml"], {}),
            (["ledger", "export", "dump.jsonl", "--ledger", "toml.db"], {}),
            (["ledger", "info"], environment),
            (["runs", "--ledger", "toml.db"], {}),
        ]  # fmt: skip
        texts = [evalstone(folder, *command, environment=variables, timeout=30).text for command, variables in commands]
        planted_in_requests = any(
            p["toml"] in str(one.headers) or p["header"] in str(one.headers) for one in server.requests
        )
    inputs = {folder / "eval.toml", folder / "broken.toml"}
    stored = [path for path in folder.rglob("*") if path.is_file() and path not in inputs]
    broken = [] if planted_in_requests else ["the keys were not sent, so nothing was tried"]
    for name, secret in PLACES.items():
        for form in _forms(secret):
            for (command, _), text in zip(commands, texts, strict=True):
                if form in text:
                    broken.append(
                        f"{name}: printed by {' '.join(command)[:120]}: …{text[max(0, text.index(form) - 80) :][:160]}"
                    )
            broken += [
                f"{name}: in {path.relative_to(folder)}" for path in stored if form.encode() in path.read_bytes()
            ]
    return Result(len(commands), f"{len(PLACES)} keys, {len(stored)} files and {len(texts)} outputs searched", broken)


ATTACKS = {
    "Request flood": flood,
    "Redirects": redirects,
    "Huge replies": memory,
    "Odd replies": odd_replies,
    "Secrets": secrets,
}
