"""`evalstone mcp`, before it serves; what it serves is in tests/mcp."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Evalstone


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "there is no folder 'nowhere'"),
        ([], "there is no ledger .evalstone/ledger.db"),
        (["--ledger", "none.db"], "there is no ledger none.db"),
        (["--ledger", "none.db", "--judge", "openai/gpt-5.1"], "there is no ledger none.db"),
        ([".", "--judge", "openai/gpt-5.1"], "set the environment variable OPENAI_API_KEY"),
    ],
)
def test_the_server_does_not_start_without_what_it_serves(
    evalstone: Evalstone, arguments: list[str], said: str
) -> None:
    done = evalstone("mcp", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
