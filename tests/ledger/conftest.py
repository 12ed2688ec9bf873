"""Where the ledgers of these tests lie: in a file, and in a schema of a real PostgreSQL server where there is one."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.postgres import Postgres, postgres, programs


@pytest.fixture(scope="session")
def server() -> Generator[Postgres]:
    """A PostgreSQL server for all tests that want one."""
    pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    folder = programs()
    if folder is None:
        pytest.skip("no PostgreSQL server is installed: apt-get install postgresql")
    with postgres(folder) as started:
        yield started


@pytest.fixture
def postgres_url(server: Postgres) -> Generator[str]:
    """An empty schema of the server."""
    with server.schema() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a ledger, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/l.db"
    return str(request.getfixturevalue("postgres_url"))
