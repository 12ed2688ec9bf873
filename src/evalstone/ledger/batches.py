"""Batches: what was submitted to a provider, and what came back.

A batch is added before it is submitted, and gets the provider's id after: a process killed in between leaves a row
without that id, which means that the provider must be asked for the batch. A question is in at most one open batch of a
judge, whichever process put it there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from evalstone._core.redaction import redacted
from evalstone.ledger.base import BatchedQuestion, BatchRow, Payment, chunks, from_row, storable, to_row
from evalstone.ledger.schema import batch_questions as questions
from evalstone.ledger.schema import batches, leases, runs
from evalstone.ledger.store import Ledger

QUESTIONS_PER_READ = 400


def enter(ledger: Ledger, row: BatchRow, candidates: Sequence[BatchedQuestion]) -> set[str]:
    """Add a batch with those questions that are in no open batch and have not changed since they were read.

    Returns:
        The fingerprints of these questions. If there are none, no batch is added.
    """
    first, retried = list[dict[str, Any]](), list[dict[str, Any]]()
    for each in candidates:
        columns = to_row(each) | {"batch": row.id, "waiting": True, "body": None}
        (retried if each.batch else first).append(columns | {"seen": each.batch})
    with ledger.transaction(writing=True) as connection:
        ledger.insert_missing(connection, questions, first)
        if retried:
            connection.exec_driver_sql(ledger.dialect.sql.retry_question, retried)
        entered = set(connection.scalars(sa.select(questions.c.question).where(questions.c.batch == row.id)))
        if entered:
            ledger.insert_missing(connection, batches, [to_row(row) | {"questions": len(entered)}])
    return entered


def submitted(ledger: Ledger, batch: str, remote: str) -> None:
    """Store the provider's id of a batch."""
    with ledger.transaction(writing=True) as connection:
        connection.execute(sa.update(batches).where(batches.c.id == batch).values(remote=remote))


def withdraw(ledger: Ledger, batch: str) -> None:
    """Remove a batch that the provider does not have. Its questions are open again, with their history."""
    with ledger.transaction(writing=True) as connection:
        deleted = connection.execute(sa.delete(batches).where(batches.c.id == batch, batches.c.remote.is_(None)))
        if deleted.rowcount:
            connection.execute(sa.update(questions).where(questions.c.batch == batch).values(waiting=False))


def collect(ledger: Ledger, row: BatchRow, bodies: Mapping[str, str], *, missing: str | None) -> bool:
    """Close a batch, store the provider's response to each question, and add its price to the cost of its run, in one
    transaction.

    Args:
        row: The batch with `collected`, `ended` and the price paid.
        bodies: Responses by the question's fingerprint.
        missing: Stands in for the response to a question that has none; None leaves such a question as it was.

    Returns:
        False if another process collected it first.
    """
    with ledger.transaction(writing=True) as connection:
        # First, because `prune` locks the runs before anything else.
        connection.execute(sa.update(runs).where(runs.c.id == row.run).values(cost=runs.c.cost))
        is_open = sa.update(batches).where(batches.c.id == row.id, batches.c.collected.is_(None))
        values = to_row(row)
        closed = connection.execute(is_open.values({name: values[name] for name in ("collected", "ended", "cost")}))
        if not closed.rowcount:
            return False
        payment = Payment(row.run)
        payment.add(row.cost)
        ledger.pay(connection, payment)
        received = [
            {"question": name, "batch": row.id, "body": storable(redacted(body))} for name, body in bodies.items()
        ]
        if received:
            connection.exec_driver_sql(ledger.dialect.sql.answer_question, received)
        rest = sa.update(questions).where(questions.c.batch == row.id, questions.c.waiting.is_(True))
        connection.execute(rest.values(waiting=False, body=missing))
    return True


def batches_of(ledger: Ledger, judge: str, *, only_open: bool = False) -> list[BatchRow]:
    """A judge's batches, oldest first; `only_open`: those that are not collected."""
    query = sa.select(batches).where(batches.c.judge == judge).order_by(batches.c.created, batches.c.id)
    if only_open:
        query = query.where(batches.c.collected.is_(None))
    with ledger.transaction() as connection:
        return [from_row(BatchRow, row) for row in connection.execute(query)]


def known_remotes(ledger: Ledger) -> set[str]:
    """The providers' ids of all batches."""
    with ledger.transaction() as connection:
        return set(connection.scalars(sa.select(batches.c.remote).where(batches.c.remote.is_not(None))))


def question_batches(ledger: Ledger, judge: str) -> dict[str, tuple[str, bool]]:
    """The last batch of each of a judge's batched questions, and whether it is open, by fingerprint."""
    query = sa.select(questions.c.question, questions.c.batch, questions.c.waiting).where(questions.c.judge == judge)
    with ledger.transaction() as connection:
        return {question: (batch, waiting) for question, batch, waiting in connection.execute(query)}


def batched_questions(ledger: Ledger, fingerprints: Collection[str], judge: str) -> dict[str, BatchedQuestion]:
    """A judge's questions that were put into batches, by fingerprint."""
    batched: dict[str, BatchedQuestion] = {}
    with ledger.transaction() as connection:
        for some in chunks(fingerprints, QUESTIONS_PER_READ):
            query = sa.select(questions).where(questions.c.judge == judge, questions.c.question.in_(some))
            for row in connection.execute(query):
                batched[row.question] = from_row(BatchedQuestion, row)
    return batched


def is_worked_on(ledger: Ledger, run: str) -> bool:
    """Whether another process is working on a run."""
    with ledger.transaction(writing=True) as connection:
        ledger.drop_expired(connection)
        owners = sa.select(leases.c.owner).where(leases.c.question == run, leases.c.judge == "")
        return any(owner != ledger.owner for owner in connection.scalars(owners))


def forget(ledger: Ledger, run: str) -> None:
    """Delete the questions of a run's collected batches; the batches themselves stay."""
    closed = sa.select(batches.c.id).where(batches.c.run == run, batches.c.collected.is_not(None))
    with ledger.transaction(writing=True) as connection:
        connection.execute(sa.delete(questions).where(questions.c.batch.in_(closed), questions.c.waiting.is_(False)))
