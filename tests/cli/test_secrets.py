"""A key in every place that can have one, an endpoint that sends everything back, and a search of every output."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, quote_plus

import pytest

from evalstone import Failed, ModelJudge, Panel, Score, Scorer, evaluate, parse_judge
from evalstone.datasets import load
from evalstone.ledger.store import Ledger, LedgerSamples
from evalstone.results.files import write_run
from evalstone.run.plan import Plan
from tests.cli.conftest import Done, Evalstone
from tests.serving import Response, Server, completion, obliging, serving

KEYS = {
    "environment": "sk-env-0f4c&<8>\"e'1",
    "inline": "sk-inline-77b2a",
    "table": "sk-table-9d3e\\5%",
    "header": "hdr-51aa+/=c0",
    "unnamed header": "Zx81kqPw0aLm42vTr9-000b",
    "scorer": "sk-scorer-e8821",
    "proxy": "pr0xy-p@ss",
}
LONGEST_PART = 10
"""How much of a key may not be shown either, such as the part before the end of a text that was cut."""
PLAIN = {"X-Team": "eu", "X-Debug": "true"}
ROWS = [
    {"id": f"s{n}", "input": f"Question {n}?", "output": f"Answer {n} is true in the eu.", "context": [f"Passage {n}."]}
    for n in range(3)
]
ENVIRONMENT = {"OPENAI_API_KEY": KEYS["environment"]}


def forms(secret: str) -> set[str]:
    """How a text can hold a secret."""
    texts = {secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret)[1:-1])[1:-1], repr(secret)[1:-1]}
    texts |= {quote(secret), quote(secret, safe=""), quote_plus(secret), html.escape(secret)}
    return texts | {base64.b64encode(f"me:{secret}".encode()).decode()}


def leaks(text: str, secrets: Mapping[str, str] = KEYS) -> list[str]:
    """The places whose secrets a text holds."""
    return [
        place
        for place, secret in secrets.items()
        if secret[:LONGEST_PART] in text or any(form in text for form in forms(secret))
    ]


def check_files(folder: Path, *planted: str) -> None:
    """Search every file in a folder but those in which the keys were planted."""
    for file in folder.rglob("*"):
        if file.is_file() and file.name not in planted:
            assert not leaks(file.read_bytes().decode("utf-8", "replace")), file


def check(done: Done, *codes: int) -> Done:
    """A command ended with one of these exit codes, and printed no key."""
    assert done.returncode in codes, done
    assert not leaks(done.stdout + done.stderr), done
    assert "Traceback" not in done.stderr
    return done


class Echo:
    """A server that sends the request back, in a way of its own."""

    def __init__(self, answer: Callable[[str, dict[str, Any]], Any]) -> None:
        self.answer = answer
        self.server: Server

    def __call__(self, request: dict[str, Any], _: int) -> Any:
        headers = dict(self.server.headers[-1])
        for name, value in headers.items():
            if value.startswith("Basic "):
                headers[name] += " " + base64.b64decode(value[6:]).decode()
        text = json.dumps(headers)
        body = json.dumps(request)[:500]
        return self.answer(f"{text} {html.escape(text)} {quote(text)} {quote_plus(text)} {body}", request)


def error(status: int) -> Callable[[str, dict[str, Any]], Any]:
    return lambda text, _: Response(status, {"error": {"message": text}}, headers={"Retry-After": "0"})


def reply(text: str, request: dict[str, Any]) -> Any:
    """A good reply whose texts are the request."""
    good = obliging(request, 0)
    content = json.loads(good["choices"][0]["message"]["content"])
    return completion(json.dumps(with_text(content, text)))


def with_text(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {name: with_text(inner, text) for name, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [with_text(inner, text) for inner in cast("list[Any]", value)]
    return text if value == "a statement" else value


def refusal(text: str, _: dict[str, Any]) -> Any:
    return {"choices": [{"message": {"content": "", "refusal": text}, "finish_reason": "stop"}]}


ANSWERS: dict[str, Callable[[str, dict[str, Any]], Any]] = {
    "error 400": error(400),
    "error 401": error(401),
    "error 403": error(403),
    "error 500": error(500),
    "cut error": lambda text, _: Response(400, {"error": {"message": "y" * 286 + text[text.find("sk-") :]}}),
    "reply": reply,
    "refusal": refusal,
    "no object": lambda text, _: f"<html>{text}</html>",
    "odd object": lambda text, _: {"choices": {text: [text]}},
    "malformed reply": lambda text, _: completion(text),
    "malformed verdict": lambda text, _: completion(
        json.dumps({"verdict": text, "claims": {text: 1}, "verdicts": text})
    ),
}


def plant(folder: Path, url: str) -> None:
    """Data, and a run of which every judge has a key of its own."""
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "labels.jsonl").write_text(
        "".join(json.dumps({"id": row["id"], "label": n % 2}) + "\n" for n, row in enumerate(ROWS))
    )
    common = {"base_url": url, "total_timeout": 0.3, "retries": 1}
    headers = {"X-Goog-Api-Key": KEYS["header"], "X-Thing": KEYS["unnamed header"], **PLAIN}
    table = {"model": "vllm/b", "api_key": KEYS["table"], **common}
    judges = [{"model": "openai/a", **common}, table, {"model": "vllm/c", "headers": headers, **common}]
    own = f"vllm/d({url}, api_key={KEYS['scorer']}, total_timeout=0.3, retries=1)"
    settings = {
        "data": "data.jsonl",
        "judge": {"panel": judges, "log": "log.jsonl"},
        "scorers": ["faithfulness", {"name": "context_relevance", "judge": own}],
    }
    (folder / "run.toml").write_text("\n".join(f"{name} = {toml(value)}" for name, value in settings.items()))


def toml(value: Any) -> str:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return "{ " + ", ".join(f"{json.dumps(name)} = {toml(inner)}" for name, inner in items) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, cast("list[Any]", value))) + "]"
    return json.dumps(value)


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Send requests through a proxy that needs a password; it is the server itself."""

    def use(url: str) -> None:
        address = url.removeprefix("http://").removesuffix("/v1")
        monkeypatch.setenv("http_proxy", f"http://me:{quote(KEYS['proxy'], safe='')}@{address}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)

    return use


@pytest.mark.parametrize("answer", ANSWERS)
def test_no_key_is_printed_or_stored_whatever_an_endpoint_sends_back(
    evalstone: Evalstone, tmp_path: Path, proxied: Callable[[str], None], answer: str
) -> None:
    echo = Echo(ANSWERS[answer])
    with serving(echo) as echo.server:
        plant(tmp_path, url := echo.server.url)
        proxied(url)
        inline = f"vllm/m({url}, api_key={KEYS['inline']}, total_timeout=0.3, retries=1)"
        ledger = ["--ledger", "l.db"]
        reports = ["--html", "run.html", "--markdown", "run.md"]
        check(evalstone("run", "run.toml", *ledger, "--dry-run", env=ENVIRONMENT), 0)
        done = check(evalstone("run", "run.toml", *ledger, "--out", "res", *reports, env=ENVIRONMENT), 0, 2, 3)
        sent = json.dumps(echo.server.headers)
        asked_all = not answer.startswith("error 40") or answer == "error 400"
        assert set(leaks(sent)) == ({*KEYS} - {"inline"} if asked_all else {"environment", "scorer", "proxy"})
        check(evalstone("run", "data.jsonl", "-s", "faithfulness", "-j", inline, *ledger, "-v", "--json"), 0, 2, 3)
        assert leaks(json.dumps(echo.server.headers[-1])) == ["inline", "proxy"]
        passage = ["--output", "An answer.", "--context", "A passage."]
        check(evalstone("score", "-s", "faithfulness", "-j", inline, *passage, *ledger), 0, 2, 3)
        check(evalstone("score", "-s", "faithfulness", "-j", inline, *passage, "--json", *ledger), 0, 2, 3)
        check(evalstone("audit", "data.jsonl", "-j", inline, *ledger, "--draw", "1", "--html", "a.html"), 0, 2, 3)
        labels = ["--data", "data.jsonl", "-j", inline, *ledger, "--out", "cal.json", "--svg", "c.svg", "--json"]
        check(evalstone("calibrate", "labels.jsonl", *labels), 0, 2, 3)
        check(evalstone("judges", inline, *ledger), 0)
        if done.returncode != 2:
            exports = ["--csv", "run.csv", "--junit", "run.xml", "--html", "again.html"]
            check(evalstone("report", "res", *exports), 0, 3)
            check(evalstone("report", "res"), 0, 3)
            check(evalstone("report", "last", *ledger, "--json"), 0, 3)
        check(evalstone("runs", *ledger), 0)
        check(evalstone("runs", *ledger, "--json"), 0)
        check(evalstone("ledger", "info", *ledger), 0)
        check(evalstone("ledger", "export", "rows.jsonl", *ledger), 0)
        check(evalstone("ledger", "verify", *ledger), 0)
    check_files(tmp_path, "run.toml")


def test_that_a_key_was_sent_back_is_said(evalstone: Evalstone, tmp_path: Path) -> None:
    echo = Echo(reply)
    with serving(echo) as echo.server:
        plant(tmp_path, echo.server.url)
        done = check(evalstone("run", "run.toml", "--ledger", "l.db", "--out", "res", env=ENVIRONMENT), 0)
    assert re.search(r"a secret in \d+ responses; .*\*\*\*\.", done.stdout)
    assert "retried" not in done.stdout
    assert "***" in (tmp_path / "res" / "records.jsonl").read_text("utf-8")


def test_redaction_moves_no_score_and_asks_nothing_again(evalstone: Evalstone, tmp_path: Path) -> None:
    echo = Echo(reply)
    values, asked = list[list[float]](), list[int]()
    with serving(echo) as echo.server:
        for number, key in enumerate(("k", KEYS["inline"], KEYS["inline"])):
            judge = ["-j", f"vllm/m({echo.server.url}, api_key={key})", "--ledger", f"l{bool(number)}.db"]
            scorers = ["-s", "faithfulness", "-s", "context_relevance"]
            (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
            check(evalstone("run", "data.jsonl", *scorers, *judge, "--out", str(number)), 0)
            lines = (tmp_path / str(number) / "records.jsonl").read_text("utf-8").splitlines()
            values.append([json.loads(line)["value"] for line in lines])
            asked.append(len(echo.server.requests))
    assert values[0] == values[1] == values[2]
    assert asked[1] == asked[2] > asked[0] > 0
    assert KEYS["inline"] not in (tmp_path / "1" / "records.jsonl").read_text("utf-8")


def test_ordinary_values_take_no_word_from_a_text(evalstone: Evalstone, tmp_path: Path) -> None:
    problem = "the eu team is EMPTY: postgres and true are none"
    echo = Echo(lambda _, __: Response(400, {"error": {"message": problem}}))
    with serving(echo) as echo.server:
        headers = json.dumps(PLAIN)
        judge = {"model": "vllm/m", "base_url": echo.server.url, "api_key": "EMPTY", "headers": json.loads(headers)}
        run = evaluate(ROWS, "faithfulness", judge=judge, ledger=None)
    outcome = run.records[0].outcome
    assert isinstance(outcome, Failed)
    assert problem in outcome.error


SHORT = "k1"
FAILING = [
    ["run", "data.jsonl", "-j", "openai/x(api_key=KEY"],
    ["run", "data.jsonl", "-j", "openai/x(api_key='KEY, seed=1)"],
    ["run", "data.jsonl", "-j", "openai/x(api_key=KEY, temprature=1)"],
    ["run", "data.jsonl", "-j", "openai/x(api_key=KEY, temperature=9)"],
    ["run", "data.jsonl", "-j", "openai/x(api_key=KEY, api_key=KEY)"],
    ["run", "data.jsonl", "-j", "openai/x(api-key=KEY)"],
    ["run", "data.jsonl", "-j", "openai/x(seed=1, api_key=KEY, lexical)"],
    ["run", "data.jsonl", "-j", "openai/x(api_key=KEY, prices=[1,,2])"],
    ["run", "data.jsonl", "-j", "opneai/x(api_key=KEY)"],
    ["run", "data.jsonl", "-j", "lexical(api_key=KEY)"],
    ["run", "data.jsonl", "-j", "panel(openai/x(api_key=KEY), openai/x(api_key=KEY))"],
    ["run", "data.jsonl", "-j", "vllm/x(http://me:KEY@127.0.0.1:1/v1)"],
    ["run", "data.jsonl", "-j", "vllm/x(http://KEY@127.0.0.1:1/v1)"],
    ["run", "data.jsonl", "-j", "vllm/x(http://127.0.0.1:1/v1?key=KEY)"],
    ["run", "data.jsonl", "-j", "vllm/x(base_url=ftp://me:KEY@host/v1)"],
    ["run", "data.jsonl", "-j", "vllm/x", "--base-url", "http://me:KEY@127.0.0.1:1/v1"],
    ["run", "data.jsonl", "-j", "vllm/x", "--base-url", "http://[me:KEY@127.0.0.1:1/v1"],
    ["run", "data.jsonl", "-j", "vllm/x", "--base-url", "http://me:KEY@h\u2100/v1"],
    ["run", "data.jsonl", "-j", "panel", "--base-url", "http://me:KEY@127.0.0.1:1/v1"],
    ["run", "data.jsonl", "--ledger", "mysql://me:KEY@host/db"],
    ["run", "data.jsonl", "--ledger", "postgresql://me:KEY@127.0.0.1:x/db"],
    ["run", "data.jsonl", "--ledger", "postgresql://me:KEY@127.0.0.1:1/db"],
    ["run", "data.jsonl", "--ledger", "postgresql://me@127.0.0.1:1/db?password=KEY"],
    ["run", "data.jsonl", "--ledger", "postgresql://me@127.0.0.1:1/db?sslpassword=KEY&nonsense=1"],
    ["run", "data.jsonl", "--concurrency", "postgresql://me:KEY@host/db"],
    ["run", "data.jsonl", "postgresql://me:KEY@host/db"],
    ["run", "data.jsonl", "--ledgr=postgresql://me:KEY@host/db"],
    ["run", "postgresql://me:KEY@host/db"],
    ["run", "data.jsonl", "-s", "faithfulness(judge=openai/x(api_key=KEY)"],
    ["run", "data.jsonl", "-s", "faithfulness(judge=openai/x(api_key=KEY, nothing=1))"],
    ["postgresql://me:KEY@host/db"],
    ["judges", "openai/x(api_key=KEY"],
    ["ledger", "info", "--ledger", "postgresql://me:KEY@127.0.0.1:1/db"],
    ["ledger", "verify", "--ledger", "postgresql://me:KEY@127.0.0.1:1/db"],
    ["ledger", "recover", "nothing.db", "--into", "postgresql://me:KEY@127.0.0.1:1/db"],
    ["ledger", "export", "postgresql://me:KEY@host/db"],
    ["report", "last", "--ledger", "postgresql://me:KEY@127.0.0.1:1/db"],
    ["report", "postgresql://me:KEY@host/db"],
    ["runs", "--ledger", "postgresql://me:KEY@127.0.0.1:1/db"],
    ["annotate", "last", "--ledger", "postgresql://me:KEY@127.0.0.1:1/db"],
]


@pytest.mark.parametrize("key", [KEYS["inline"], SHORT])
@pytest.mark.parametrize("arguments", FAILING, ids=" ".join)
def test_what_cannot_be_read_is_quoted_without_its_key(
    evalstone: Evalstone, tmp_path: Path, arguments: list[str], key: str
) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    done = evalstone(*(text.replace("KEY", key) for text in arguments))
    assert done.returncode != 0
    assert done.stderr
    assert not leaks(done.stdout + done.stderr, {"command line": key}), done.stderr


TABLES = [
    'judge = { model = 1, api_key = "KEY" }',
    'judge = { model = { api_key = "KEY" } }',
    'judge = [{ api_key = "KEY" }]',
    'judge = { panel = { model = "vllm/x", api_key = "KEY" } }',
    'judge = { api_key = "KEY" }',
    'judge = { model = "vllm/x", headers = { "X-Api-Key" = "KEY\\n" } }',
    'judge = { model = "vllm/x", headers = { "X-Api-Key" = "KEY", "X" = 1 } }',
    'judge = { model = "vllm/x", base_url = ["http://me:KEY@host/v1"] }',
    'judge = { model = "vllm/x", log = { api_key = "KEY" } }',
    'ledger = ["postgresql://me:KEY@host/db"]',
    'ledger = "postgresql://me:KEY@host:port/db"',
    'judge = { model = "vllm/x", api_key = "KEY" ',
    'scorers = [{ name = "faithfulness", judge = { model = "vllm/x", api_key = "KEY", nothing = 1 } }]',
    'scorers = [{ name = "faithfulness", judge = { api_key = "KEY" } }]',
    'api_key = "KEY"',
]


@pytest.mark.parametrize("key", [KEYS["inline"], SHORT])
@pytest.mark.parametrize("line", TABLES)
def test_a_file_that_cannot_be_read_is_quoted_without_its_key(
    evalstone: Evalstone, tmp_path: Path, line: str, key: str
) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    (tmp_path / "run.toml").write_text(f'data = "data.jsonl"\n{line.replace("KEY", key)}\n')
    done = evalstone("run", "run.toml")
    assert done.returncode == 2
    assert not leaks(done.stdout + done.stderr, {"file": key}), done.stderr


@pytest.mark.slow
def test_an_interrupted_run_names_no_key(tmp_path: Path) -> None:
    if os.name == "nt":
        pytest.skip("signals are those of POSIX")
    echo = Echo(lambda text, request: Response(body=reply(text, request), delay=0.05))
    with serving(echo) as echo.server:
        plant(tmp_path, echo.server.url)
        command = [sys.executable, "-m", "evalstone", "run", "run.toml", "--ledger", "l.db", "--concurrency", "1"]
        process = subprocess.Popen(
            command, cwd=tmp_path, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            while len(echo.server.requests) < 3 and process.poll() is None:
                pass
            process.send_signal(signal.SIGINT)
            printed = b"".join(process.communicate(timeout=30)).decode()
        finally:
            process.kill()
    assert process.returncode == 130
    assert not leaks(printed)
    check_files(tmp_path, "run.toml")


class Leaking(Scorer):
    """A scorer whose own code raises an error with a key in it."""

    name = "leaking"

    def score(self, *, output: str) -> Score:
        raise RuntimeError(f"{output} failed with {KEYS['inline']} and api_key={SHORT}")


def test_no_text_that_reaches_python_holds_a_key(tmp_path: Path) -> None:
    echo = Echo(error(400))
    with serving(echo) as echo.server:
        judge = ModelJudge(
            "vllm/m", base_url=echo.server.url, api_key=KEYS["inline"], headers={"X-Key": KEYS["header"]}
        )
        run = evaluate(ROWS, ["faithfulness", Leaking()], judge=judge, ledger=tmp_path / "l.db")
    write_run(run, tmp_path / "res")
    check_files(tmp_path)
    texts = [str(run), repr(run), repr(judge), repr(Panel(judge, ModelJudge("openai/x"))), repr(parse_judge(judge))]
    texts += [repr(Plan(load(list(run.samples or ())), (Leaking(),), judge))]
    texts += [repr(LedgerSamples(f"postgresql://me:{KEYS['proxy']}@host/db", "v"))]
    for record in run.records:
        assert isinstance(record.outcome, Failed)
        texts += [record.outcome.error, record.outcome.traceback or "", repr(record)]
    assert any("***" in text for text in texts)
    assert not leaks("\n".join(texts))
    for make in (
        lambda: ModelJudge("vllm/m", base_url=f"http://me:{SHORT}@h/v1"),
        lambda: ModelJudge("vllm/m", base_url=f"http://h/v1?key={SHORT}"),
        lambda: parse_judge({"model": 1, "api_key": SHORT}),
        lambda: Ledger(f"mysql://me:{SHORT}@host/db"),
    ):
        with pytest.raises(Exception, match=r".") as raised:
            make()
        shown = "".join(traceback.format_exception_only(raised.value))
        assert SHORT not in shown


class OwnJudge(ModelJudge):
    """A judge of the user's own, which names its secret."""

    @property
    def secrets(self) -> Any:
        return ("my-0wn-secret",) if self.reasoning_effort else "my-0wn-secret"


@pytest.mark.parametrize("effort", ["low", None], ids=["several", "one text"])
def test_the_secrets_that_a_users_judge_names_are_redacted(tmp_path: Path, effort: str | None) -> None:
    echo = Echo(lambda _, __: Response(400, {"error": {"message": "bad my-0wn-secret"}}))
    with serving(echo) as echo.server:
        judge = OwnJudge("vllm/m", base_url=echo.server.url, reasoning_effort=effort)
        run = evaluate(ROWS, "faithfulness", judge=judge, ledger=None)
    write_run(run, tmp_path)
    assert "bad ***" in str(run.records[0])
    assert "my-0wn" not in (tmp_path / "records.jsonl").read_text("utf-8")


# ---- terminal escapes ----

ESCAPES = "\x1b]52;c;aGk=\x07 \x1b]8;;http://x\x1b\\y \x1b[2J\x1b[31m \x9b31m \x9d52;c;x\x9c \u202e\u2066 \r\x08 \x7f"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printed_safely(done: Done) -> Done:
    assert not RAW.search(done.stdout.replace("\r\n", "\n")), repr(done.stdout)
    assert not RAW.search(done.stderr), repr(done.stderr)
    return done


@pytest.mark.parametrize(
    "answer", ["error 400", "error 401", "error 500", "reply", "refusal", "no object", "malformed reply"]
)
@pytest.mark.slow
def test_no_escape_of_an_endpoint_or_of_data_reaches_the_terminal(
    evalstone: Evalstone, tmp_path: Path, answer: str
) -> None:
    rows = [{**row, "id": f"{row['id']}{ESCAPES}", "output": f"{row['output']}{ESCAPES}"} for row in ROWS]
    name = "d" + ESCAPES.replace("/", "").replace("\x00", "") + ".jsonl"
    (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving(lambda request, _: ANSWERS[answer](ESCAPES, request)) as server:
        name_of_model = re.sub(r"[\s(),=]", "", ESCAPES)
        judge = "vllm/m(total_timeout=0.3, retries=1)"
        to = ["--base-url", server.url, "--ledger", f"l{ESCAPES[:5]}.db"]
        refused = printed_safely(evalstone("run", name, "-s", "faithfulness", "-j", f"vllm/{name_of_model}", *to))
        assert (refused.returncode, "must be one line of visible text" in refused.stderr) == (2, True)
        options = ["-s", "faithfulness", "-j", judge, *to]
        more = ["--out", f"res{ESCAPES[:5]}", "-v"]
        for option in ("--name", "--tag"):
            assert printed_safely(evalstone("run", name, *options, option, f"n{ESCAPES}")).returncode == 2
        done = printed_safely(evalstone("run", name, *options, *more))
        printed_safely(evalstone("run", name, *options, "--json", "-q"))
        printed_safely(evalstone("run", name, *options, "--markdown", "-", "-q"))
        printed_safely(evalstone("run", name, *options, "--dry-run"))
        printed_safely(evalstone("score", *options, "--output", ESCAPES, "--context", ESCAPES))
        printed_safely(evalstone("judges", judge))
        printed_safely(evalstone("audit", name, *options, "--draw", "1"))
    assert done.returncode == (0 if answer == "reply" else 3), done.stderr
    if done.returncode == 2:
        return
    ledger = ["--ledger", f"l{ESCAPES[:5]}.db"]
    printed_safely(evalstone("report", "last", *ledger))
    printed_safely(evalstone("report", "last", *ledger, "--html", f"{ESCAPES[:5]}.html"))
    printed_safely(evalstone("report", "last", *ledger, "--csv", "-"))
    printed_safely(evalstone("report", "last", *ledger, "--junit", "-"))
    printed_safely(evalstone("runs", *ledger))
    printed_safely(evalstone("runs", *ledger, "--json"))
    printed_safely(evalstone("ledger", "info", *ledger))
    printed_safely(evalstone("ledger", "verify", *ledger))
    printed_safely(evalstone("ledger", "export", f"{ESCAPES[:5]}.jsonl", *ledger))
    printed_safely(evalstone("ledger", "import", f"{ESCAPES[:5]}.jsonl", "--ledger", f"other{ESCAPES[:5]}.db"))
    printed_safely(evalstone("ledger", "recover", f"l{ESCAPES[:5]}.db", "--into", f"new{ESCAPES[:5]}.db"))
    printed_safely(evalstone("annotate", "last", *ledger, typed=f"y {ESCAPES}\nx\x1b[31m\nq\n"))


@pytest.mark.parametrize(
    "arguments",
    [
        [ESCAPES], ["run", ESCAPES], ["run", "x", ESCAPES], ["run", f"--{ESCAPES}"],
        ["run", "x", "--concurrency", ESCAPES],
        ["run", "x", "-j", ESCAPES], ["run", "x", "-s", ESCAPES], ["run", "x", "--ledger", f"mysql://{ESCAPES}"],
        ["run", "x.toml"], ["run", "y.toml"], ["run", "z.toml"], ["scorers", ESCAPES], ["scorers", "--from", ESCAPES],
        ["ledger", ESCAPES], ["ledger", "export", ESCAPES], ["report", ESCAPES], ["runs", ESCAPES], ["power", ESCAPES],
        ["run", "x", "--map", ESCAPES], ["run", "x", "--min", ESCAPES], ["calibrate", ESCAPES],
        ["audit", ESCAPES],
        ["compare", ESCAPES, ESCAPES], ["gate", ESCAPES], ["drift", ESCAPES, ESCAPES], ["annotate", ESCAPES],
    ],
)  # fmt: skip
def test_no_escape_in_an_argument_or_a_file_reaches_the_terminal(
    evalstone: Evalstone, tmp_path: Path, arguments: list[str]
) -> None:
    text = json.dumps(ESCAPES)
    (tmp_path / "x.toml").write_text(f"data = 'x'\njudge = {text}\n")
    (tmp_path / "y.toml").write_text(f"data = 'x'\n{text} = 1\n")
    (tmp_path / "z.toml").write_text(f"data = 'x'\nlimit = {text}\n")
    assert printed_safely(evalstone(*arguments)).returncode != 0


UNCAUGHT = """
import asyncio, logging, sys, threading, warnings
from evalstone.cli import app, main
from evalstone._core.redaction import register

register(KEY)
TEXT = KEY + ESCAPES

def broken(*_, **__):
    warnings.warn(TEXT)
    logging.getLogger("library").error(TEXT)
    thread = threading.Thread(target=exec, args=("raise ValueError(TEXT)", globals()))
    thread.start()
    thread.join()
    raise RuntimeError(TEXT)

app.app.main = broken
main()
"""


@pytest.mark.parametrize("shown", ["", "1"])
def test_what_python_itself_prints_holds_neither_key_nor_escape(tmp_path: Path, shown: str) -> None:
    code = f"KEY, ESCAPES = {KEYS['inline']!r}, {ESCAPES!r}{UNCAUGHT}"
    environment = {**os.environ, "EVALSTONE_TRACEBACK": shown}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 3
    assert ("Traceback (most recent" in done.stderr.rpartition("ValueError")[2]) is bool(shown)
    assert done.stderr.count("***") == 4
    for kind in ("UserWarning", "ValueError", "RuntimeError"):
        assert kind in done.stderr
    assert not leaks(done.stderr)
    assert not RAW.search(done.stderr), done.stderr
