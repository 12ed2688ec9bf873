from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from evalstone import Failed, evaluate
from evalstone._core.environment import expanded, expanded_words
from evalstone._core.redaction import masked
from evalstone.errors import ConfigError
from evalstone.judges import parse_judge
from evalstone.judges.model import ModelJudge
from evalstone.ledger.base import file_of
from evalstone.ledger.store import Ledger
from evalstone.targets import parse_target
from evalstone.targets.http import HTTPTarget


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-0c1d2e3f4a5b6c7d")
    monkeypatch.setenv("MY_HOST", "router.example")
    monkeypatch.delenv("NOT_SET", raising=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$MY_KEY", "sk-0c1d2e3f4a5b6c7d"),
        ("Bearer ${MY_KEY}x", "Bearer sk-0c1d2e3f4a5b6c7dx"),
        ("a$$MY_KEY", "a$MY_KEY"),
        ("costs 5$", "costs 5$"),
        ("$1", "$1"),
        ("plain", "plain"),
    ],
)
def test_variables_are_expanded(text: str, value: str) -> None:
    assert expanded(text, "api_key") == value


def test_the_value_of_a_variable_is_secret() -> None:
    expanded("$MY_KEY", "api_key")
    assert "0c1d2e3f" not in masked("HTTP 401: sk-0c1d2e3f4a5b6c7d")


def test_keys_headers_and_urls_of_judges_are_expanded() -> None:
    headers = {"X-Route": "$MY_HOST", "Authorization": "Bearer $MY_KEY"}
    judge = ModelJudge("vllm/x", base_url="https://$MY_HOST/v1", api_key="$MY_KEY", headers=headers)
    assert (judge.url, judge.key) == ("https://router.example/v1", "sk-0c1d2e3f4a5b6c7d")
    assert judge.sent_headers == {"X-Route": "router.example", "Authorization": "Bearer sk-0c1d2e3f4a5b6c7d"}
    plain = ModelJudge("vllm/x", base_url="https://router.example/v1", headers={"X-Route": "router.example"})
    assert judge.identity == plain.identity
    assert "0c1d2e3f" not in repr(judge)
    line = parse_judge("vllm/x(base_url='https://$MY_HOST/v1', api_key='$MY_KEY')")
    assert isinstance(line, ModelJudge)
    assert (line.url, line.key) == ("https://router.example/v1", "sk-0c1d2e3f4a5b6c7d")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"api_key": "$NOT_SET"}, "api_key of vllm/x"),
        ({"base_url": "http://${NOT_SET}/v1"}, "base_url of vllm/x"),
        ({"headers": {"X-Key": "$NOT_SET"}}, "the header X-Key of vllm/x"),
    ],
)
def test_a_variable_that_is_not_set_names_the_setting(settings: dict[str, Any], named: str) -> None:
    problem = "needs the environment variable NOT_SET, which is not set; write $$ for a dollar sign"
    with pytest.raises(ConfigError) as raised:
        ModelJudge("vllm/x", **settings)
    assert str(raised.value) == f"{named} {problem}"


def test_urls_of_targets_are_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_AGENT", host := "https://agent.example")
    target = parse_target({"address": "$MY_AGENT/v1/chat/completions", "headers": {"X-Key": "$MY_KEY"}})
    assert isinstance(target, HTTPTarget)
    assert (target.api, target.shown) == ("chat", f"{host}/v1/chat/completions")
    with pytest.raises(ConfigError, match=r"target.* NOT_SET"):
        parse_target("$NOT_SET/chat/completions")


def test_the_url_of_a_ledger_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MY_LEDGER", str(tmp_path / "a.db"))
    with Ledger("$MY_LEDGER"):
        assert (tmp_path / "a.db").exists()
    assert file_of(f"sqlite:///{tmp_path}/$$x.db") == Path(f"{tmp_path}/$x.db")
    monkeypatch.setenv("MY_LEDGER", "postgresql://ada:pass-0c1d2e3f@db.example/l")
    assert file_of("$MY_LEDGER") is None
    assert "pass-0c1d2e3f" not in masked("password pass-0c1d2e3f failed")
    with pytest.raises(ConfigError, match=r"ledger.* NOT_SET"):
        Ledger("postgresql://ada:$NOT_SET@db.example/l")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ask --host $MY_HOST", ["ask", "--host", "router.example"]),
        ("ask '$MY_HOST' $$MY_HOST", ["ask", "$MY_HOST", "$MY_HOST"]),
        ("ask \"it's ${MY_HOST}\" '$A'", ["ask", "it's router.example", "$A"]),
        ('ask "a\\"$MY_HOST" \\$MY_HOST', ["ask", 'a"router.example', "$MY_HOST"]),
        ("ask --x=$SPACED", ["ask", "--x=two words' \"$MY_KEY"]),
        ("awk $1 $(date)", ["awk", "$1", "$(date)"]),
    ],
)
def test_variables_of_a_command_are_expanded_as_in_a_shell_and_never_split(
    command: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPACED", "two words' \"$MY_KEY")
    assert expanded_words(command, "the command") == words


def test_the_values_in_a_command_are_in_no_name_and_no_record(tmp_path: Path) -> None:
    code = "import sys; print('{\"output\": \"' + sys.argv[1][-4:] + '\"}')"
    (tmp_path / "agent.py").write_text(code)
    command = f"cmd:{sys.executable} {tmp_path}/agent.py --key=$MY_KEY"
    run = evaluate([{"input": "Which?", "reference": "6c7d"}], "contains", target=command, ledger=None)
    assert run["contains"].mean == 1
    assert run.target is not None
    parse_target({"address": "http://localhost/v1/responses", "headers": {"Authorization": "Bearer $MY_KEY"}})
    assert parse_target("cmd:python agent.py --key $MY_KEY").name == "cmd:python agent.py --key $MY_KEY"
    assert "0c1d2e3f" not in repr((run, [*run]))
    failed = evaluate(
        [{"input": "Which?"}], "contains(expected=x)", target=f"cmd:{sys.executable} $MY_KEY", ledger=None
    )
    outcome = failed[0].outcome
    assert isinstance(outcome, Failed)
    assert "can't open file" in outcome.error
    assert "0c1d2e3f" not in outcome.error
    with pytest.raises(
        ConfigError, match=r"^the command of the target needs the environment variable NOT_SET, which is"
    ):
        evaluate([{"input": "Which?"}], "contains(expected=x)", target="cmd:python $NOT_SET", ledger=None)
