"""The password of a ledger on a server reaches no output of a command, and no row."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from evalstone.ledger.schema import TABLES
from evalstone.ledger.store import Ledger
from tests.batch_serving import serving_batches
from tests.cli.conftest import Evalstone
from tests.ledger.conftest import postgres_url, server
from tests.postgres import PASSWORD, Postgres
from tests.serving import completion, obliging, serving

__all__ = ["postgres_url", "server"]

ROWS = [{"id": f"s{n}", "output": f"Answer {n}.", "context": [f"Passage {n}."]} for n in range(3)]
SPECIAL = "p@ss/'w0rd%&\"ü"
FORMS = (PASSWORD, SPECIAL, quote(SPECIAL), quote(SPECIAL, safe=""), json.dumps(SPECIAL)[1:-1], repr(SPECIAL)[1:-1])


def echo(request: dict[str, object], _: int) -> object:
    """A good reply that holds the passwords."""
    content = json.loads(obliging(request, 0)["choices"][0]["message"]["content"])
    text = f"It says {PASSWORD} {SPECIAL} {quote(SPECIAL)}"
    return completion(json.dumps(content).replace("a statement", json.dumps(text)[1:-1]))


def stored(url: str) -> str:
    """Every row of a ledger."""
    with Ledger(url) as ledger, ledger.transaction() as connection:
        rows = [row for table in TABLES for row in connection.execute(f"SELECT * FROM {table.name}")]
    assert rows
    return "\n".join(str(tuple(row)) for row in rows)


def everything(evalstone: Evalstone, folder: Path, ledger: str) -> str:
    """All that some commands print and write."""
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    at = ["--ledger", ledger]
    with serving(echo) as model:
        run = ["run", "data.jsonl", "-s", "faithfulness", "-j", "vllm/m", "--base-url", model.url, *at]
        commands = [
            [*run, "--out", "res", "--html", "run.html"],
            [*run, "--dry-run"],
            ["report", "last", *at, "--json"],
            ["runs", *at],
            ["ledger", "info", *at],
            ["ledger", "verify", *at],
            ["ledger", "export", "rows.jsonl", *at],
            ["report", "nothing", *at],
        ]
        done = [evalstone(*command) for command in commands]
    assert [one.returncode for one in done] == [0] * 7 + [2]
    files = [file for file in folder.rglob("*") if file.is_file() and file.name != "data.jsonl"]
    return "\n".join([*(one.stdout + one.stderr for one in done), *(file.read_text("utf-8") for file in files)])


@pytest.mark.parametrize("place", ["url", "query", "environment"])
def test_the_password_is_in_no_output_and_no_row(
    evalstone: Evalstone, tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    url = postgres_url if place == "url" else postgres_url.replace(f":{PASSWORD}@", "@")
    if place == "query":
        url += f"&password={PASSWORD}"
    if place == "environment":
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
    text = everything(evalstone, tmp_path, url)
    assert "***" in text
    assert PASSWORD not in text + stored(postgres_url)


def test_a_password_of_special_characters_is_in_no_output_and_no_row(
    evalstone: Evalstone, tmp_path: Path, postgres_url: str, server: Postgres
) -> None:
    literal = "'" + SPECIAL.replace("'", "''") + "'"
    server.run(f"CREATE ROLE special SUPERUSER LOGIN PASSWORD {literal}")
    try:
        url = postgres_url.replace(f"tester:{PASSWORD}", f"special:{quote(SPECIAL, safe='')}")
        text = everything(evalstone, tmp_path, url) + stored(url)
        assert [form for form in FORMS[1:] if form in text] == []
    finally:
        server.run("REASSIGN OWNED BY special TO tester; DROP ROLE special")


def test_the_command_that_collects_a_batch_is_shown_without_secrets(
    evalstone: Evalstone, tmp_path: Path, postgres_url: str
) -> None:
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    judge = "openai/gpt-4o(api_key=sk-b4tch-key, total_timeout=5)"
    with serving_batches() as batches:
        batches.holding = True
        run = ["run", "data.jsonl", "-s", "faithfulness", "-j", judge, "--batch", "--ledger", postgres_url]
        done = evalstone(*run, env={"OPENAI_BASE_URL": f"{batches.url}/v1"})
    assert done.returncode == 3
    command = (
        "evalstone run data.jsonl -s faithfulness -j 'openai/gpt-4o(api_key=***, total_timeout=5)' --batch --ledger"
    )
    assert f"{command} 'postgresql://tester:***@127.0.0.1" in done.stderr
    assert PASSWORD not in done.stderr + stored(postgres_url)
    assert "sk-b4tch" not in done.stderr + stored(postgres_url)
