# ruff: noqa: S608 - statements are put together from our own names
"""Leases: which process is asking a question or working on a run, so that processes on one ledger share the work.

A lease is a row that expires unless its owner renews it. If the owner is gone, the lease expires; on the same machine,
it is dropped at once, because the process is known to be dead. The lease of a run has the run's id as its question, and
no judge.

Whoever asks questions has a lease of its own name. While it is the only one on a file, its leases of questions are in
its memory. Another one waits, before its first question, until those are rows: `join` and `meet`.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Collection

from evalstone._core.machine import machine
from evalstone.errors import LedgerError
from evalstone.ledger import schema
from evalstone.ledger.base import Key
from evalstone.ledger.database import Database

LEASE_SECONDS = 30.0
"""Seconds until a lease expires without renewal."""

_KEY = ", ".join(schema.answers.key)
_LEASE = f"""
    INSERT INTO leases ({_KEY}, owner, expires) SELECT {_KEY}, :owner, epoch() + :seconds FROM keys(:keys) AS wanted
    WHERE true ON CONFLICT
"""
_ACQUIRE = f"{_LEASE} DO NOTHING"
_HOLD = f"""
    {_LEASE} ({_KEY}) DO UPDATE SET expires = excluded.expires
    WHERE leases.owner = excluded.owner AND leases.expires < epoch()
"""
_RELEASE = f"DELETE FROM leases WHERE owner = :owner AND ({_KEY}) IN keys(:keys)"
_RELEASE_ALL = "DELETE FROM leases WHERE owner = :owner"
_RENEW = "UPDATE leases SET expires = epoch() + :seconds WHERE owner = :owner"
_RUN_OWNER = "SELECT owner FROM leases WHERE question = :run AND judge = ''"
_ALONE, _SHARING = "alone", "sharing"
"""The judge in the lease that whoever asks questions has of its own name: whether its other leases are in its memory,
or rows."""
_abandoned: set[str] = set()
"""Closed owners of this process that could not release their leases, for example on a full disk."""


class Leases:
    """The leases of one open ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.owner = f"{machine()} {os.getpid()} {secrets.token_hex(4)}"
        """The owner of these leases."""
        self.seconds = LEASE_SECONDS
        self.run: str | None = None
        """The run that this ledger works on."""
        self.alone = False
        """Whether leases of questions are in memory, because nobody else asks questions on this file."""
        self.repeats = False
        """Whether operations may be repeated, because a connection was lost."""
        self._name: Key | None = None
        """The lease of this ledger's own name, once it asks questions."""
        self._in_memory = set[Key]()
        self._seen = 0
        """SQLite's number of the state in which there was nobody else."""

    def acquire(self, keys: Collection[Key]) -> set[Key]:
        """Within a transaction: acquire the leases that no owner holds, and return their keys. This owner must not hold
        any of `keys`."""
        # All processes lock rows in the same order, so there are no deadlocks.
        count = self._database.execute(_ACQUIRE, self._values(keys)).rowcount
        if count == len(keys) or (count == 0 and not self.repeats):
            return set(keys) if count else set()
        ours = self._database.execute(f"SELECT {_KEY} FROM leases WHERE owner = :owner", {"owner": self.owner})
        return {Key(*row) for row in ours} & set(keys)

    def acquire_run(self, run: str) -> bool:
        """Within a transaction: acquire the lease of a run. Returns whether no other process has it."""
        return bool(self.acquire([Key(run, "")]))

    def acquire_in_memory(self, keys: Collection[Key], released: Collection[Key]) -> set[Key]:
        """While this ledger is alone: release leases, acquire others, and return the keys of those that it didn't
        have."""
        self._in_memory.difference_update(released)
        acquired = set(keys) - self._in_memory
        self._in_memory |= acquired
        return acquired

    def hold(self, *keys: Key) -> None:
        """Within a transaction: acquire leases, or renew them if they are this ledger's and have expired. Those of
        others stay."""
        self._database.execute(_HOLD, self._values(keys))

    def renew(self, leased: Collection[Key] = ()) -> bool:
        """Within a transaction: extend all leases of this ledger, and acquire those of its name, its run and `leased`
        again if they are gone. Others drop them once they have expired, such as while this process was suspended.

        Returns:
            Whether another process has the run now.
        """
        self._database.execute(_RENEW, {"owner": self.owner, "seconds": self.seconds})
        own = () if self._name is None else (self._name,)
        self.hold(*leased, *own, *(() if self.run is None else (Key(self.run, ""),)))
        return self.run is not None and self._database.scalar(_RUN_OWNER, {"run": self.run}) != self.owner

    def release(self, keys: Collection[Key]) -> None:
        """Within a transaction: release those of these leases that are this ledger's."""
        if keys:
            self._database.execute(_RELEASE, {"keys": json.dumps(list(keys)), "owner": self.owner})

    def release_run(self, run: str) -> None:
        """Within a transaction: release the lease of a run."""
        self.release([Key(run, "")])

    def release_all(self) -> None:
        """Release all of this ledger's leases."""
        try:
            with self._database.transaction(writing=True):
                self._database.execute(_RELEASE_ALL, {"owner": self.owner})
        except LedgerError:
            # Other ledgers of this process know that this one is closed. Other processes wait for the leases to expire.
            _abandoned.add(self.owner)
            raise

    def drop_expired(self) -> None:
        """Within a transaction: delete the expired leases of others, and those of dead processes."""
        owners = self._database.scalars("SELECT DISTINCT owner FROM leases")
        for dead in filter(_is_dead, owners):
            self._database.execute(_RELEASE_ALL, {"owner": dead})
        # Its own have expired if it was suspended: then it renews them.
        self._database.execute("DELETE FROM leases WHERE expires < epoch() AND owner <> :owner", {"owner": self.owner})

    def has_worker(self, run: str) -> bool:
        """Within a transaction: whether a process works on a run."""
        owner = self._database.scalar(f"{_RUN_OWNER} AND expires > epoch()", {"run": run})
        return owner is not None and not _is_dead(owner)

    # ---- Alone, or with others ----

    def join(self) -> None:
        """Prepare to ask questions: lease this ledger's own name. Others on the same file learn of it in `meet`; until
        none of them `is_awaited`, no question may be asked."""
        with self._database.transaction(writing=True) as database:
            self.drop_expired()
            self.alone = database.single_writer and not self._others(_ALONE, _SHARING)
            self._seen = self._state() if self.alone else 0
            self._name = Key(self.owner, _ALONE if self.alone else _SHARING)
            self.hold(self._name)

    def is_awaited(self) -> bool:
        """Whether another one has its leases in memory, because it doesn't know yet that it isn't alone."""
        if self.alone:
            return False
        with self._database.transaction(writing=True):
            self.drop_expired()
            return self._others(_ALONE)

    def meet(self) -> bool:
        """If another one has joined, write the leases in memory as rows. Returns whether this ledger is alone."""
        if not self.alone or self._state() == self._seen:
            return self.alone
        alone, sharing = Key(self.owner, _ALONE), Key(self.owner, _SHARING)
        with self._database.transaction(writing=True):
            seen, joined = self._state(), self._others(_ALONE, _SHARING)
            if joined:
                self.release([alone])
                self.hold(sharing, *self._in_memory)
            else:
                self.hold(alone)  # it is gone if another process took this one for dead
        self._seen, self.alone, self._name = seen, not joined, sharing if joined else alone
        return self.alone

    def _others(self, *judges: str) -> bool:
        """Whether another one has a lease of its own name with one of these judges."""
        query = "SELECT count(*) FROM leases WHERE owner <> :owner AND judge IN texts(:judges)"
        return self._database.scalar(query, {"owner": self.owner, "judges": json.dumps(judges)}) > 0

    def _state(self) -> int:
        """A number that changes with every commit of another connection to the file."""
        try:
            return self._database.scalar("PRAGMA data_version")
        except self._database.error as error:
            raise self._database.explain(error, written=True) from None

    def _values(self, keys: Collection[Key]) -> dict[str, object]:
        return {"keys": json.dumps(sorted(keys)), "owner": self.owner, "seconds": self.seconds}


def _is_dead(owner: str) -> bool:
    """Whether an owner is closed, or a dead process of this machine. False if that can't be determined."""
    if owner in _abandoned:
        return True
    host, _, rest = owner.partition(" ")
    pid = rest.partition(" ")[0]
    if os.name != "posix" or host != machine() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False
