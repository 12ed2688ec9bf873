"""Leases: which process is asking which question or working on which run, so processes on one ledger share the work.

A lease is a row that expires. Its owner renews it while it works. When the owner is gone the lease expires, or is
dropped at once if its process is known to be dead, which is possible on the same machine. The lease of a run has the
run's id in place of a question, and no judge.
"""

from __future__ import annotations

import functools
import os
import platform
import secrets
from collections.abc import Collection, Iterable
from pathlib import Path

import sqlalchemy as sa

from evalstone.ledger.dialects import Dialect, execute_rows
from evalstone.ledger.rows import Key
from evalstone.ledger.schema import leases

SECONDS = 30.0
"""How long a lease lasts without renewal."""

_INSERT = (
    "INSERT INTO leases (question, judge, repeat_index, owner, expires) "
    "VALUES (:question, :judge, :repeat_index, :owner, ({now}) + :seconds) ON CONFLICT DO NOTHING"
)
_DELETE = (
    "DELETE FROM leases "
    "WHERE question = :question AND judge = :judge AND repeat_index = :repeat_index AND owner = :owner"
)


def run_key(run: str) -> Key:
    """The key of a run's lease."""
    return Key(run, "", 0)


@functools.cache
def _machine() -> str:
    """Where a process number means the same process: the machine since it booted, and the container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node().replace(" ", "-") or "unnamed"


_abandoned: set[str] = set()
"""Closed owners of this process that could not release their leases, for example on a full disk."""


def _is_dead(owner: str) -> bool:
    """Whether an owner is closed, or a process of this machine that is gone. False where that can't be known."""
    if owner in _abandoned:
        return True
    machine, _, rest = owner.partition(" ")
    pid = rest.partition(" ")[0]
    if os.name != "posix" or machine != _machine() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


class Leases:
    """The leases of one owner. Every method works within the caller's transaction."""

    def __init__(self, dialect: Dialect) -> None:
        # Machine, process, and a random part.
        self.owner = f"{_machine()} {os.getpid()} {secrets.token_hex(4)}"
        self.seconds = SECONDS
        now = sa.literal_column(f"({dialect.now})", sa.Float)
        expires = now + sa.bindparam("seconds", type_=sa.Float)
        self._insert = dialect.text(_INSERT.format(now=dialect.now))
        self._delete = dialect.text(_DELETE)
        self._renew = sa.update(leases).where(leases.c.owner == self.owner).values(expires=expires)
        self._expired = sa.delete(leases).where(leases.c.expires < now)

    def acquire(self, connection: sa.Connection, keys: Collection[Key]) -> set[Key]:
        """Acquire the leases that nobody holds, and return their keys. keys: none that this owner already holds."""
        # Every process uses the same order, so no two of them wait for each other.
        rows = [{**key._asdict(), "owner": self.owner, "seconds": self.seconds} for key in sorted(keys)]
        count = execute_rows(connection, self._insert, rows)
        if count == len(rows):
            return set(keys)
        if not count:
            return set()
        query = sa.select(leases.c.question, leases.c.judge, leases.c.repeat_index).where(leases.c.owner == self.owner)
        return {Key(*row) for row in connection.execute(query)} & set(keys)

    def release(self, connection: sa.Connection, keys: Iterable[Key]) -> None:
        """Give leases of this owner back."""
        rows = [{**key._asdict(), "owner": self.owner} for key in keys]
        if rows:
            execute_rows(connection, self._delete, rows)

    def abandon(self) -> None:
        """Mark this owner as closed for others in this process. Other processes wait for its leases to expire."""
        _abandoned.add(self.owner)

    def renew(self, connection: sa.Connection) -> None:
        """Extend all leases of this owner."""
        connection.execute(self._renew, {"seconds": self.seconds})

    def drop_expired(self, connection: sa.Connection) -> None:
        """Delete expired leases, and those of dead processes."""
        owners = connection.scalars(sa.select(leases.c.owner).distinct()).all()
        if dead := [owner for owner in owners if _is_dead(owner)]:
            connection.execute(sa.delete(leases).where(leases.c.owner.in_(dead)))
        connection.execute(self._expired)
