"""The seam between the ledger and its database: statements go straight to the driver, on SQLite and PostgreSQL alike.

Statements are SQL that both databases read, with parameters such as `:name`, and with these terms where they differ:

- `epoch()`: the seconds since 1970, by the clock that all processes share.
- `texts(:names)`: a query for the column `value` of a JSON list of texts.
- `keys(:keys)`: a query for the columns `question`, `judge` and `repeat_index` of a JSON list of keys.
- `FOR UPDATE SKIP LOCKED`: nothing on SQLite, which has one writer at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Protocol

from evalstone.errors import ConfigError, LedgerConnectionError, LedgerError, LedgerValueError
from evalstone.ledger import schema

Values = Mapping[str, Any]
UNENCODABLE = (UnicodeEncodeError, OverflowError)
"""What drivers raise for a value before the database sees it: text with a lone surrogate, or a number out of range."""
ROWS_AT_A_TIME = 500


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Database(ABC):
    """A connection to a database, and what is particular to SQLite or PostgreSQL."""

    single_writer: ClassVar[bool]
    """Whether a writing transaction blocks all other writers, and begins with waiting for them."""
    creating: ClassVar[Mapping[str, str]]
    """The words of `Table.created` where databases differ."""
    _columns: ClassVar[str]
    """A query for the tables of the database and their columns."""
    lock_schema: ClassVar[str] = ""
    """Blocks other processes from creating the tables, unless a writing transaction does that anyway."""
    lock_runs: ClassVar[str] = ""
    """Blocks other processes from adding runs, samples and labels, unless a writing transaction does that anyway."""
    lock_modes: ClassVar[str] = ""
    """Blocks other processes from adding failure modes, unless a writing transaction does that anyway."""

    location: str
    """The file, or the URL without a password."""
    error: tuple[type[Exception], ...]
    """What the driver raises."""
    connection: Any = None
    """The driver's connection; None once it is closed."""

    def __init__(self, *, read_only: bool) -> None:
        self.read_only, self._written = read_only, False

    @abstractmethod
    def connect(self) -> None:
        """Connect. Raises the driver's error."""

    @abstractmethod
    def execute(self, statement: str, values: Values | None = None) -> Cursor:
        """Execute a statement."""

    @abstractmethod
    def execute_many(self, statement: str, rows: Sequence[Values]) -> int:
        """Execute a statement for each row. Returns the number of rows that it changed."""

    @abstractmethod
    def stream(self, statement: str, values: Values | None = None) -> Iterable[Any]:
        """The rows of a query, read a few at a time. They must be read before the transaction ends."""

    def scalar(self, statement: str, values: Values | None = None) -> Any:
        """The first value of the first row; None without a row."""
        row = self.execute(statement, values).fetchone()
        return None if row is None else row[0]

    def scalars(self, statement: str, values: Values | None = None) -> list[Any]:
        """The first value of each row."""
        return [row[0] for row in self.execute(statement, values)]

    def columns(self) -> set[tuple[str, str]]:
        """The tables and columns that are there."""
        return {(table, column) for table, column in self.execute(self._columns)}

    def insert_missing(self, table: schema.Table, rows: Sequence[Values]) -> int:
        """Insert the rows whose keys are new, and return how many were."""
        return self.execute_many(table.insert, rows) if rows else 0

    def close(self) -> None:
        """Close the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    @contextmanager
    def transaction(self, *, writing: bool = False, snapshot: bool = False) -> Generator[Database]:
        """A transaction. Database errors become LedgerError, or ConfigError if it is the wrong database.

        Args:
            writing: Whether to wait for other writers before anything is read, so that what is read remains valid.
            snapshot: Whether all reads are of one moment, and not each of its own.
        """
        self.check_files()
        if self.connection is None:  # closed by `Ledger.reconnect`, which gave up
            raise LedgerConnectionError(f"the connection to the ledger {self.location} was lost")
        try:
            with self.committed(writing=writing, snapshot=snapshot):
                yield self
        except UNENCODABLE as error:
            raise LedgerValueError(f"the ledger {self.location} refuses a value: {error}") from None
        except self.error as error:
            raise self.explain(error, written=self._written) from None
        self._written = self._written or writing

    @contextmanager
    def committed(self, *, writing: bool = False, snapshot: bool = False) -> Generator[None]:
        """A transaction without `check_files`, which raises the driver's errors."""
        try:
            self._begin(writing=writing, snapshot=snapshot)
            yield
            self.connection.commit()
        except BaseException:
            with suppress(*self.error):
                self.connection.rollback()
            raise

    @abstractmethod
    def _begin(self, *, writing: bool, snapshot: bool) -> None: ...

    def rollback(self) -> None:
        """Undo what this transaction has written."""
        self.connection.rollback()

    def create(self) -> None:
        """Create the tables, in a transaction."""
        for table in schema.TABLES:
            for statement in table.created():
                self.execute(statement.format(**self.creating))

    @abstractmethod
    def configure(self, deadline: float) -> None:
        """Apply the settings of a ledger to a database that has been verified to be one. deadline: until when to wait
        for other processes, by `time.monotonic`."""

    @abstractmethod
    def read_back(self, run: str) -> None:
        """Read the records of a run as they are in the file. Raises the driver's error if they are damaged."""

    @abstractmethod
    def remember_files(self) -> None:
        """Remember the files at the path as those of this ledger, for `check_files`."""

    @abstractmethod
    def check_files(self, *, last: bool = False) -> None:
        """Raise LedgerError if the ledger's files were moved or deleted, so that writes would be lost. last: whether
        this is the last check."""

    @abstractmethod
    def wait_for(self, seconds: float) -> None:
        """Set how long a transaction waits for another process."""

    @abstractmethod
    def size(self) -> int:
        """The size of the ledger in bytes."""

    @abstractmethod
    def check(self) -> list[str]:
        """The damage that the database reports for its file; empty if there is none."""

    @abstractmethod
    def is_damage(self, error: Exception) -> bool:
        """Whether an error means that stored data can't be read."""

    @abstractmethod
    def compact(self) -> None:
        """Return the space of deleted rows to the file system."""

    @abstractmethod
    def may_write(self) -> bool:
        """Whether this process may change the ledger, as far as can be seen without trying. In a transaction."""

    @abstractmethod
    def may_pass(self, error: Exception) -> bool:
        """Whether the ledger could be opened a moment later."""

    @abstractmethod
    def explain(self, error: Exception, *, written: bool) -> LedgerError | ConfigError:
        """The error to raise for a database error, with an explanation and what to do about it.

        written: Whether the ledger was written to before, so that it has become unusable; otherwise, it may be the
            wrong database.
        """
