"""The ledger's batches: what was given to a provider, and what came back.

A batch is entered before it is submitted and marked with the provider's id after: a process that is killed in between
leaves an entry without that id, which says that the provider must be asked whether it has the batch. A question is in
one open batch of a judge at most, whichever process put it there.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from evalstone.ledger.batch_rows import BatchedQuestion, BatchRow, Place
from evalstone.ledger.leases import run_key
from evalstone.ledger.row_codec import storable
from evalstone.ledger.store import Ledger
from evalstone.ledger.tables import batch_questions as questions
from evalstone.ledger.tables import batches, leases
from evalstone.types import Usage

CHUNK = 400


def enter(ledger: Ledger, row: BatchRow, wanted: Sequence[BatchedQuestion]) -> set[str]:
    """Enter a batch with those questions that are in no open batch and as they were when last looked at.

    Returns their fingerprints; when there are none nothing is entered.
    """
    with ledger.transaction(writing=True) as connection:
        rows = [_question_row(each) | {"batch": row.id, "waiting": 1, "body": None} for each in wanted]
        seen = [each.batch for each in wanted]
        new = [row for row, batch in zip(rows, seen, strict=True) if not batch]
        old = [{f"new_{k}": v for k, v in row.items()} | {"seen": b} for row, b in zip(rows, seen, strict=True) if b]
        ledger.add(connection, questions, new)
        if old:
            connection.execute(_PUT_AGAIN, old)
        query = sa.select(questions.c.question).where(questions.c.batch == row.id)
        got = set(connection.scalars(query))
        if got:
            connection.execute(sa.insert(batches), _batch_row(row) | {"questions": len(got)})
    return got


def submitted(ledger: Ledger, batch: str, remote: str) -> None:
    """Note the provider's id of a batch."""
    with ledger.transaction(writing=True) as connection:
        connection.execute(sa.update(batches).where(batches.c.id == batch).values(remote=remote))


def withdraw(ledger: Ledger, batch: str) -> None:
    """Take a batch out that the provider does not have; its questions are open again, with what was known of them."""
    with ledger.transaction(writing=True) as connection:
        gone = connection.execute(sa.delete(batches).where(batches.c.id == batch, batches.c.remote.is_(None)))
        if gone.rowcount:
            connection.execute(sa.update(questions).where(questions.c.batch == batch).values(waiting=0))


def collect(ledger: Ledger, row: BatchRow, bodies: Mapping[str, str], *, missing: str | None) -> bool:
    """Close a batch, with the provider's answer to each question, all or nothing.

    row: with `collected`, `ended` and the cost that was paid. missing: what stands for the answer to a question that
    has none; None leaves such a question as it was before. False when another process was faster.
    """
    with ledger.transaction(writing=True) as connection:
        mine = sa.update(batches).where(batches.c.id == row.id, batches.c.collected.is_(None))
        done = connection.execute(mine.values(collected=row.collected, ended=row.ended, cost=row.cost))
        if not done.rowcount:
            return False
        came = [{"b_question": name, "b_batch": row.id, "sent": storable(body)} for name, body in bodies.items()]
        if came:
            connection.execute(_ANSWERED, came)
        rest = sa.update(questions).where(questions.c.batch == row.id, questions.c.waiting == 1)
        connection.execute(rest.values(waiting=0, body=missing))
    return True


def open_batches(ledger: Ledger, judge: str) -> list[BatchRow]:
    """A judge's batches that are not collected, the oldest first."""
    return _batches(ledger, batches.c.judge == judge, batches.c.collected.is_(None))


def batches_of(ledger: Ledger, judge: str) -> list[BatchRow]:
    """All of a judge's batches, the oldest first."""
    return _batches(ledger, batches.c.judge == judge)


def known_remotes(ledger: Ledger) -> set[str]:
    """The providers' ids of all batches."""
    with ledger.transaction() as connection:
        return set(connection.scalars(sa.select(batches.c.remote).where(batches.c.remote.is_not(None))))


def places(ledger: Ledger, judge: str) -> dict[str, Place]:
    """Where each of a judge's batched questions is, by fingerprint."""
    query = sa.select(questions.c.question, questions.c.batch, questions.c.waiting).where(questions.c.judge == judge)
    with ledger.transaction() as connection:
        return {question: Place(batch, bool(waiting)) for question, batch, waiting in connection.execute(query)}


def batched_questions(ledger: Ledger, names: Collection[str], judge: str) -> dict[str, BatchedQuestion]:
    """What is known of a judge's questions that were put into batches, by fingerprint."""
    found: dict[str, BatchedQuestion] = {}
    with ledger.transaction() as connection:
        listed = list(names)
        for start in range(0, len(listed), CHUNK):
            for row in connection.execute(_QUESTIONS, {"judge": judge, "names": listed[start : start + CHUNK]}):
                found[row.question] = _question_of(row)
    return found


def is_worked_on(ledger: Ledger, run: str) -> bool:
    """Whether another owner of leases is working on a run now."""
    with ledger.transaction(writing=True) as connection:
        ledger.leases.bury(connection)
        key = run_key(run)
        held = sa.select(leases.c.owner).where(leases.c.question == key.question, leases.c.judge == key.judge)
        return any(owner != ledger.leases.owner for owner in connection.scalars(held))


def forget(ledger: Ledger, run: str) -> None:
    """Let go of the questions of a run's collected batches; the batches themselves stay."""
    closed = sa.select(batches.c.id).where(batches.c.run == run, batches.c.collected.is_not(None))
    with ledger.transaction(writing=True) as connection:
        connection.execute(sa.delete(questions).where(questions.c.batch.in_(closed), questions.c.waiting == 0))


_QUESTIONS = sa.select(questions).where(
    questions.c.judge == sa.bindparam("judge"),
    questions.c.question.in_(sa.bindparam("names", expanding=True)),
)
_PUT_AGAIN = (
    sa.update(questions)
    .where(
        questions.c.question == sa.bindparam("new_question"),
        questions.c.judge == sa.bindparam("new_judge"),
        questions.c.waiting == 0,
        questions.c.batch == sa.bindparam("seen"),
    )
    .values(
        {
            column.name: sa.bindparam(f"new_{column.name}")
            for column in questions.columns
            if column.name not in ("question", "judge")
        }
    )
)
_ANSWERED = (
    sa.update(questions)
    .where(questions.c.question == sa.bindparam("b_question"), questions.c.batch == sa.bindparam("b_batch"))
    .values(waiting=0, body=sa.bindparam("sent"))
)


def _batches(ledger: Ledger, *conditions: Any) -> list[BatchRow]:
    query = sa.select(batches).where(*conditions).order_by(batches.c.made, batches.c.id)
    with ledger.transaction() as connection:
        return [_batch_of(row) for row in connection.execute(query)]


def _batch_row(row: BatchRow) -> dict[str, Any]:
    told = {column.name: getattr(row, column.name) for column in batches.columns}
    return told | {"about": json.dumps(dict(row.about))}


def _batch_of(row: Any) -> BatchRow:
    told: dict[str, Any] = {column.name: getattr(row, column.name) for column in batches.columns}
    return BatchRow(**{**told, "about": json.loads(row.about)})


def _question_row(row: BatchedQuestion) -> dict[str, Any]:
    return {
        "question": row.question,
        "judge": row.judge,
        "attempts": row.attempts,
        "reply": None if row.reply is None else storable(row.reply),
        "error": None if row.error is None else storable(row.error),
        "input_tokens": row.usage.input,
        "output_tokens": row.usage.output,
        "cached_tokens": row.usage.cached,
        "requests": row.usage.requests,
        "cost": row.cost,
    }


def _question_of(row: Any) -> BatchedQuestion:
    return BatchedQuestion(
        question=row.question,
        judge=row.judge,
        batch=row.batch,
        waiting=bool(row.waiting),
        attempts=row.attempts,
        reply=row.reply,
        error=row.error,
        usage=Usage(row.input_tokens, row.output_tokens, row.cached_tokens, row.requests),
        cost=row.cost,
        body=row.body,
    )
