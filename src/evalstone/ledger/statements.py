"""The statements of a ledger's every turn, as text compiled once.

SQLAlchemy looks a statement up, builds its parameters and prepares its result anew each time it is executed, which
takes longer than the database does for the few rows of a turn; given as text it goes to the driver as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from evalstone.ledger import tables
from evalstone.ledger.dialects import Dialect

Rows = Sequence[Mapping[str, Any]]

MOST = 400
"""How many answers are looked up at once, at most."""


class Statements:
    """What a turn executes, in the words of one kind of database; parameters are named as the columns are."""

    def __init__(self, dialect: Dialect, engine: sa.Engine) -> None:
        self._dialect = engine.dialect
        now = sa.literal_column(f"({dialect.now})", sa.Float)
        until = now + sa.bindparam("seconds", type_=sa.Float)
        lease: dict[str, Any] = {name: sa.bindparam(name) for name in ("question", "judge", "number", "owner")}
        take = dialect.insert(tables.leases).values({**lease, "until": until}).on_conflict_do_nothing()
        same = tables.all_of(tables.leases, *tables.KEYS[tables.leases], "owner")
        self.put_answer = self._text(_upsert(dialect, tables.answers))
        self.put_record = self._text(_upsert(dialect, tables.records))
        self.take_lease = self._text(take)
        self.free_lease = self._text(sa.delete(tables.leases).where(same))
        self.look = functools.cache(self._look)

    def _look(self, count: int) -> str:
        """The answers of one judge and number to so many questions, `q0` and on."""
        answers = tables.answers
        questions: list[Any] = [sa.bindparam(f"q{place}") for place in range(count)]
        query = sa.select(answers).where(
            answers.c.judge == sa.bindparam("judge"),
            answers.c.number == sa.bindparam("number"),
            answers.c.question.in_(questions),
        )
        return self._text(query)

    def _text(self, statement: Any) -> str:
        return str(statement.compile(dialect=self._dialect))


def looking(judge: str, number: int, questions: Sequence[str]) -> dict[str, Any]:
    """The parameters of `look`, for a number of questions that is a power of two: the last one is repeated, so that few
    texts are made."""
    count = 1 << (len(questions) - 1).bit_length()
    padded = [*questions, *[questions[-1]] * (count - len(questions))]
    return {"judge": judge, "number": number, **{f"q{place}": question for place, question in enumerate(padded)}}


def execute_all(connection: sa.Connection, statement: str, rows: Rows) -> int:
    """Execute a statement for each of some rows; how many rows of the table it changed."""
    options = {"preserve_rowcount": True}
    return connection.exec_driver_sql(statement, list(rows), execution_options=options).rowcount


def _upsert(dialect: Dialect, table: sa.Table) -> Any:
    columns = tables.columns(table)
    statement = dialect.insert(table).values({name: sa.bindparam(name) for name in columns})
    keys = tables.KEYS[table]
    changed = {name: statement.excluded[name] for name in columns if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)
