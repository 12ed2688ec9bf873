# ruff: noqa: S608 - statements are put together from our own names
"""Batches: what was submitted to a provider, and what came back.

A batch is added before it is submitted, and gets the provider's id after: a process killed in between leaves a row
without that id, which means that the provider must be asked for the batch. A question is in at most one open batch of a
judge, whichever process put it there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evalstone._core.json import storable
from evalstone._core.redaction import redacted
from evalstone.ledger.base import BatchedQuestion, BatchRow, Payment, chunks, from_row, to_row
from evalstone.ledger.schema import batch_questions, batches
from evalstone.ledger.store import Ledger

QUESTIONS_PER_READ = 400
_CHANGED = ", ".join(f"{name} = :{name}" for name in batch_questions.columns if name not in batch_questions.key)
_RETRY = f"""
    UPDATE batch_questions SET {_CHANGED}
    WHERE question = :question AND judge = :judge AND batch = :seen AND NOT waiting
"""
_ANSWERED = """
    DELETE FROM batch_questions WHERE batch = :batch AND question IN texts(:questions) AND EXISTS (
        SELECT 1 FROM answers
        WHERE answers.question = batch_questions.question AND answers.judge = batch_questions.judge AND repeat_index = 0
    )
"""
_ANSWER = "UPDATE batch_questions SET waiting = false, body = :body WHERE question = :question AND batch = :batch"


def enter(
    ledger: Ledger, row: BatchRow, candidates: Sequence[BatchedQuestion], *, unreadable: Collection[str] = ()
) -> set[str]:
    """Add a batch with those questions that are in no open batch, have not changed since they were read, and got no
    answer since.

    Args:
        ledger: The ledger.
        row: The batch.
        candidates: The questions, as they were read.
        unreadable: Those that have a stored answer, which no longer parses.

    Returns:
        The fingerprints of these questions. If there are none, no batch is added.
    """
    first, retried = list[dict[str, Any]](), list[dict[str, Any]]()
    for each in candidates:
        columns = to_row(each) | {"batch": row.id, "waiting": True, "body": None}
        (retried if each.batch else first).append(columns | {"seen": each.batch})
    with ledger.transaction(writing=True) as database:
        database.insert_missing(batch_questions, first)
        if retried:
            database.execute_many(_RETRY, retried)
        # After the insert: another run may have stored the answer and forgotten the question until then.
        asked = [each.question for each in candidates if each.question not in unreadable]
        database.execute(_ANSWERED, {"batch": row.id, "questions": json.dumps(asked)})
        entered = set(database.scalars("SELECT question FROM batch_questions WHERE batch = :batch", {"batch": row.id}))
        if entered:
            database.execute(batches.insert, to_row(row) | {"questions": len(entered)})
    return entered


def submitted(ledger: Ledger, batch: str, remote: str) -> None:
    """Store the provider's id of a batch."""
    with ledger.transaction(writing=True) as database:
        database.execute("UPDATE batches SET remote = :remote WHERE id = :batch", {"batch": batch, "remote": remote})


def withdraw(ledger: Ledger, batch: str) -> None:
    """Remove a batch that the provider does not have. Its questions are open again, with their history."""
    of = {"batch": batch}
    with ledger.transaction(writing=True) as database:
        if database.execute("DELETE FROM batches WHERE id = :batch AND remote IS NULL", of).rowcount:
            database.execute("UPDATE batch_questions SET waiting = false WHERE batch = :batch", of)


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
    close = "UPDATE batches SET collected = :collected, ended = :ended, cost = :cost WHERE id = :id"
    with ledger.transaction(writing=True) as database:
        # First, because `prune` locks the runs before anything else.
        database.execute("UPDATE runs SET cost = cost WHERE id = :run", {"run": row.run})
        if not database.execute(f"{close} AND collected IS NULL", to_row(row)).rowcount:
            return False
        payment = Payment(row.run)
        payment.add(row.cost)
        ledger.pay(payment)
        received = [
            {"question": name, "batch": row.id, "body": storable(redacted(body))} for name, body in bodies.items()
        ]
        if received:
            database.execute_many(_ANSWER, received)
        rest = "UPDATE batch_questions SET waiting = false, body = :missing WHERE batch = :batch AND waiting"
        database.execute(rest, {"batch": row.id, "missing": missing})
    return True


def batches_of(ledger: Ledger, judge: str, *, only_open: bool = False) -> list[BatchRow]:
    """A judge's batches, oldest first; `only_open`: those that are not collected."""
    some = " AND collected IS NULL" if only_open else ""
    query = f"SELECT {batches.names} FROM batches WHERE judge = :judge{some} ORDER BY created, id"
    with ledger.transaction() as database:
        return [from_row(BatchRow, batches.row(row)) for row in database.execute(query, {"judge": judge})]


def known_remotes(ledger: Ledger) -> set[str]:
    """The providers' ids of all batches."""
    with ledger.transaction() as database:
        return set(database.scalars("SELECT remote FROM batches WHERE remote IS NOT NULL"))


def question_batches(ledger: Ledger, judge: str) -> dict[str, tuple[str, bool]]:
    """The last batch of each of a judge's batched questions, and whether it is open, by fingerprint."""
    query = "SELECT question, batch, waiting FROM batch_questions WHERE judge = :judge"
    with ledger.transaction() as database:
        rows = database.execute(query, {"judge": judge})
        return {question: (batch, bool(waiting)) for question, batch, waiting in rows}


def batched_questions(ledger: Ledger, fingerprints: Collection[str], judge: str) -> dict[str, BatchedQuestion]:
    """A judge's questions that were put into batches, by fingerprint."""
    batched: dict[str, BatchedQuestion] = {}
    asked = "judge = :judge AND question IN texts(:questions)"
    query = f"SELECT {batch_questions.names} FROM batch_questions WHERE {asked}"
    with ledger.transaction() as database:
        for some in chunks(fingerprints, QUESTIONS_PER_READ):
            for row in database.execute(query, {"judge": judge, "questions": json.dumps(some)}):
                question = from_row(BatchedQuestion, batch_questions.row(row))
                batched[question.question] = question
    return batched


def is_worked_on(ledger: Ledger, run: str) -> bool:
    """Whether another process is working on a run."""
    with ledger.transaction(writing=True) as database:
        ledger.leases.drop_expired()
        owners = database.scalars("SELECT owner FROM leases WHERE question = :run AND judge = ''", {"run": run})
    return any(owner != ledger.leases.owner for owner in owners)


def forget(ledger: Ledger, run: str) -> None:
    """Delete the questions of a run's collected batches; the batches themselves stay."""
    closed = "SELECT id FROM batches WHERE run = :run AND collected IS NOT NULL"
    with ledger.transaction(writing=True) as database:
        database.execute(f"DELETE FROM batch_questions WHERE NOT waiting AND batch IN ({closed})", {"run": run})
