"""What a run has paid is added up in its row, whoever pays and however often a transaction is repeated."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace

from evalstone.ledger import AsyncLedger
from evalstone.ledger.base import BatchedQuestion, BatchRow, Operations, Payment
from evalstone.ledger.batches import collect, enter
from evalstone.ledger.store import Ledger
from tests.ledger.rows import answer, run


def cost(ledger: Ledger, name: str = "r1") -> tuple[float, int, float | None]:
    row = ledger.run(name)
    assert row is not None
    return row.cost, row.unpriced, row.paid


def test_a_payment_is_added_once_however_often_its_transaction_is_repeated(url: str) -> None:
    with closing(Ledger(url)) as ledger:
        ledger.start_run(run())
        first, second = Payment("r1"), Payment("r1")
        first.add(0.25)
        second.add(0.5)
        for payment in (first, first, second, second):
            ledger.apply(Operations(answers=[answer(1)], payment=payment))
        assert cost(ledger) == (0.75, 0, 0.75)


def test_a_call_without_a_known_price_makes_what_was_paid_unknown_but_not_what_is_known(url: str) -> None:
    with closing(Ledger(url)) as ledger:
        ledger.start_run(run())
        payment = Payment("r1")
        payment.add(0.25)
        payment.add(None)
        ledger.apply(Operations(payment=payment))
        assert cost(ledger) == (0.25, 1, None)


def test_two_ledgers_that_pay_for_one_run_lose_no_payment(url: str) -> None:
    async def pays(number: int) -> None:
        async with AsyncLedger(url) as ledger:
            for turn in range(20):
                ledger.pay("r1", 0.25)
                await ledger.keep_answer(answer(100 * number + turn))

    async def both() -> None:
        await asyncio.gather(pays(1), pays(2))

    with closing(Ledger(url)) as ledger:
        ledger.start_run(run())
    asyncio.run(both())
    with closing(Ledger(url)) as ledger:
        assert cost(ledger) == (10.0, 0, 10.0)


def test_what_was_paid_is_durable_without_an_answer_and_free_calls_write_nothing(url: str) -> None:
    async def pays() -> None:
        async with AsyncLedger(url) as ledger:
            ledger.pay("r1", 0.0)
            assert ledger._idle.is_set()  # pyright: ignore[reportPrivateUsage]
            ledger.pay("r1", 0.25)
            await ledger.keep_payments()
            with closing(Ledger(url)) as other:
                assert cost(other)[0] == 0.25

    with closing(Ledger(url)) as ledger:
        ledger.start_run(run())
    asyncio.run(pays())


def test_the_price_of_a_batch_is_added_to_its_run_by_the_process_that_closes_it_and_only_once(url: str) -> None:
    batch = BatchRow(
        id="b1", api="openai", judge="j", run="r1", questions=1, metadata={}, cost=0.5, created="2026-01-01"
    )
    with closing(Ledger(url)) as ledger, closing(Ledger(url)) as other:
        ledger.start_run(run("r1"))
        other.start_run(run("r2"))
        enter(ledger, batch, [BatchedQuestion(question="q1", judge="j")])
        assert cost(ledger)[0] == 0.0
        closed = replace(batch, collected="2026-01-02", ended="completed", cost=0.25)
        assert collect(other, closed, {}, missing=None)
        assert not collect(ledger, closed, {}, missing=None)
        assert (cost(ledger, "r1")[0], cost(ledger, "r2")[0]) == (0.25, 0.0)
