"""Leases: who is asking what, and which run is being worked on by whom, so that processes on one ledger share the work.

A lease is a row with an end. Its holder puts the end off while it works; when the holder is gone the row runs out, or,
on the machine where it was made, is seen to be a dead process's and taken away at once. A run's lease has the run's id
in the place of a question, and no judge.
"""

from __future__ import annotations

import functools
import os
import platform
import secrets
from collections.abc import Collection, Iterable
from pathlib import Path

import sqlalchemy as sa

from evalstone.ledger.dialects import Dialect
from evalstone.ledger.rows import Key
from evalstone.ledger.statements import Statements, execute_all
from evalstone.ledger.tables import leases

SECONDS = 30.0
"""How long a lease holds when nobody puts its end off."""


def run_key(run: str) -> Key:
    """What the lease of a run is kept under."""
    return Key(run, "", 0)


def new_owner() -> str:
    """A name for who holds leases: place, process, and something random."""
    return f"{_place()} {os.getpid()} {secrets.token_hex(4)}"


@functools.cache
def _place() -> str:
    """Where a process number means the same process: the machine since it was started, and the container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return platform.node().replace(" ", "-") or "unnamed"


_abandoned: set[str] = set()
"""Owners of this process that are closed and could not give their leases back, as on a full disk."""


def _is_dead(owner: str) -> bool:
    """Whether an owner is closed, or a process of this machine that is no more. Where that cannot be told: no."""
    if owner in _abandoned:
        return True
    place, _, rest = owner.partition(" ")
    number = rest.partition(" ")[0]
    if os.name != "posix" or place != _place() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def _parameters(key: Key) -> dict[str, object]:
    return {"question": key.question, "judge": key.judge, "number": key.number}


class Leases:
    """The leases of one owner, in a ledger's table. Every method works within the caller's transaction."""

    def __init__(self, dialect: Dialect, statements: Statements, owner: str, seconds: float = SECONDS) -> None:
        self.owner, self.seconds = owner, seconds
        now = sa.literal_column(f"({dialect.now})", sa.Float)
        until = now + sa.bindparam("seconds", type_=sa.Float)
        self._statements = statements
        self._renew = sa.update(leases).where(leases.c.owner == owner).values(until=until)
        self._expired = sa.delete(leases).where(leases.c.until < now)

    def take(self, connection: sa.Connection, wanted: Collection[Key]) -> set[Key]:
        """Take the leases that nobody holds; those that were got. wanted: none that this owner holds already."""
        # In one order for all, so that no two processes wait for each other.
        rows = [{**_parameters(key), "owner": self.owner, "seconds": self.seconds} for key in sorted(wanted)]
        taken = execute_all(connection, self._statements.take_lease, rows)
        if taken == len(rows):
            return set(wanted)
        if not taken:
            return set()
        query = sa.select(leases.c.question, leases.c.judge, leases.c.number).where(leases.c.owner == self.owner)
        return {Key(*row) for row in connection.execute(query)} & set(wanted)

    def free(self, connection: sa.Connection, keys: Iterable[Key]) -> None:
        """Give leases of this owner back."""
        rows = [{"b_question": q, "b_judge": j, "b_number": n, "b_owner": self.owner} for q, j, n in keys]
        if rows:
            execute_all(connection, self._statements.free_lease, rows)

    def free_all(self, connection: sa.Connection) -> None:
        """Give all leases of this owner back."""
        connection.execute(sa.delete(leases).where(leases.c.owner == self.owner))

    def abandon(self) -> None:
        """Note that this owner is closed, for others of this process; other processes wait until its leases run out."""
        _abandoned.add(self.owner)

    def renew(self, connection: sa.Connection) -> None:
        """Put the end of all leases of this owner off."""
        connection.execute(self._renew, {"seconds": self.seconds})

    def bury(self, connection: sa.Connection) -> None:
        """Take away the leases that ran out, and those of processes that are gone."""
        owners = connection.scalars(sa.select(leases.c.owner).distinct()).all()
        if dead := [owner for owner in owners if _is_dead(owner)]:
            connection.execute(sa.delete(leases).where(leases.c.owner.in_(dead)))
        connection.execute(self._expired)
