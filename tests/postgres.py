"""A real PostgreSQL server for tests, on loopback, from the package that is installed; gone when the tests end."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PASSWORD = "open-sesame-4711"
PLACES = ("/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt")


@dataclass(frozen=True)
class Postgres:
    """A running server. `url`: its address, with the password. `control`: runs `pg_ctl` with these arguments."""

    url: str
    control: Callable[..., None]

    def run(self, statement: str) -> None:
        """Run a statement as the administrator."""
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def disconnect(self) -> None:
        """End the connections of all ledgers."""
        self.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'evalstone'")

    @contextmanager
    def stopped(self, mode: str = "fast") -> Generator[None]:
        """Stop the server for the time of the block."""
        self.control("-m", mode, "stop")
        try:
            yield
        finally:
            self.control("start")

    @contextmanager
    def schema(self) -> Generator[str]:
        """The URL of an empty schema of its own, which is dropped in the end."""
        name = f"test_{secrets.token_hex(6)}"
        self.run(f"CREATE SCHEMA {name}")
        try:
            yield f"{self.url}?options=-csearch_path%3D{name}"
        finally:
            self.run(f"DROP SCHEMA {name} CASCADE")


def programs() -> Path | None:
    """The folder with the server's programs, the newest there is; None where none is installed."""
    if (found := shutil.which("initdb")) and shutil.which("pg_ctl"):
        return Path(found).parent
    folders = [path.parent for place in PLACES for path in Path(place).glob("*/bin/initdb")]
    return max(
        folders,
        key=lambda folder: [int(part) for part in folder.parent.name.split(".") if part.isdecimal()],
        default=None,
    )


@contextmanager
def postgres(folder: Path) -> Generator[Postgres]:
    """Start a server with a data folder of its own, and stop it in the end. folder: where its programs lie."""
    # PostgreSQL refuses to run as root; the package makes a user for it, who must be able to reach the data.
    user = "postgres" if os.geteuid() == 0 else None
    home = Path(tempfile.mkdtemp(prefix="evalstone-postgres-"))
    try:
        if user:
            shutil.chown(home, user)
        (home / "password").write_text(PASSWORD)
        (home / "password").chmod(0o644)
        port = _free_port()
        data = str(home / "data")
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        secret = ["-U", "tester", "--auth=scram-sha-256", f"--pwfile={home / 'password'}"]
        _run([str(folder / "initdb"), "-D", data, "--no-sync", "--encoding=UTF8", "--no-locale", *secret], user, home)

        def control(*arguments: str) -> None:
            start = [str(folder / "pg_ctl"), "-D", data, "-l", str(home / "log"), "-w", "-o", settings]
            _run([*start, *arguments], user, home)

        control("start")
        try:
            yield Postgres(f"postgresql://tester:{PASSWORD}@127.0.0.1:{port}/postgres", control)
        finally:
            control("-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(command: list[str], user: str | None, home: Path) -> None:
    with (home / "output").open("w") as output:  # a pipe would stay open in the server, and never end
        done = subprocess.run(command, user=user, cwd=home, stdout=output, stderr=output, timeout=60, check=False)
    if done.returncode:
        log = home / "log"
        told = (home / "output").read_text() + (log.read_text() if log.exists() else "")
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {told}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
