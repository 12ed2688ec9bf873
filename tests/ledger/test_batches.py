"""What the ledger remembers of batches, in a file and in PostgreSQL alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalstone.ledger import batches
from evalstone.ledger.base import BatchedQuestion, BatchRow
from evalstone.ledger.maintenance import PruneCounts, prune
from evalstone.ledger.store import Ledger
from evalstone.types import Usage
from tests.ledger.rows import answer, run


def row(name: str, *, judge: str = "j", run: str = "r1") -> BatchRow:
    created = f"2026-01-01T00:00:0{name}+00:00"
    return BatchRow(
        id=name,
        api="openai",
        judge=judge,
        run=run,
        questions=9,
        metadata={"settings": ["seed"]},
        cost=1.0,
        created=created,
    )


def question(name: str, **more: Any) -> BatchedQuestion:
    return BatchedQuestion(question=name, judge="j", **more)


def closed(batch: BatchRow, cost: float = 0.25) -> BatchRow:
    return replace(batch, collected="2026-01-02T00:00:00+00:00", ended="completed", cost=cost)


def test_a_question_is_in_one_open_batch_of_a_judge_whichever_process_put_it_there(url: str) -> None:
    asked = [question(name) for name in ("a", "b")]
    with Ledger(url) as one, Ledger(url) as two:
        assert batches.enter(one, row("1"), asked[:1]) == {"a"}
        assert batches.enter(two, row("2"), asked) == {"b"}
        assert batches.enter(two, row("3"), asked) == set()
        found = batches.batches_of(one, "j", only_open=True)
        assert [(each.id, each.questions) for each in found] == [("1", 1), ("2", 1)]
        assert batches.batches_of(one, "another", only_open=True) == []
        assert batches.question_batches(two, "j") == {"a": ("1", True), "b": ("2", True)}


def test_a_batch_comes_back_as_it_was_entered_and_is_collected_once(url: str) -> None:
    with Ledger(url) as ledger:
        batches.enter(ledger, row("1"), [question("a"), question("b")])
        batches.submitted(ledger, "1", "remote-1")
        found = batches.batches_of(ledger, "j", only_open=True)
        assert found == [replace(row("1"), questions=2, remote="remote-1")]
        assert batches.known_remotes(ledger) == {"remote-1"}
        assert batches.collect(ledger, closed(found[0]), {"a": "told\x00"}, missing="nothing")
        assert not batches.collect(ledger, closed(found[0], 9.0), {"a": "other"}, missing=None)
        assert batches.batches_of(ledger, "j", only_open=True) == []
        assert batches.batches_of(ledger, "j") == [closed(found[0])]
        known = batches.batched_questions(ledger, ["a", "b", "c"], "j")
        assert {name: (each.body, each.waiting) for name, each in known.items()} == {
            "a": ("told\\u0000", False),
            "b": ("nothing", False),
        }


def test_a_question_is_put_again_with_what_was_wrong_and_only_as_it_was_last_seen(url: str) -> None:
    usage = Usage(1, 2, 3, 4)
    tried = question("a", batch="1", attempts=1, reply="no", error="no JSON", usage=usage, cost=None)
    with Ledger(url) as ledger:
        batches.enter(ledger, row("1"), [question("a")])
        assert batches.enter(ledger, row("2"), [tried]) == set()
        batches.collect(ledger, closed(row("1")), {"a": "told"}, missing=None)
        assert batches.enter(ledger, row("2"), [replace(tried, batch="0")]) == set()
        assert batches.enter(ledger, row("2"), [question("a")]) == set()
        assert batches.enter(ledger, row("2"), [tried]) == {"a"}
        assert batches.batched_questions(ledger, ["a"], "j") == {"a": replace(tried, batch="2", waiting=True)}


def test_a_batch_that_never_reached_the_provider_is_taken_out_and_its_questions_are_open_again(url: str) -> None:
    with Ledger(url) as ledger:
        batches.enter(ledger, row("1"), [question("a", attempts=1, reply="no", error="e")])
        batches.enter(ledger, row("2"), [question("b")])
        batches.submitted(ledger, "2", "remote-2")
        for name in ("1", "2"):
            batches.withdraw(ledger, name)
        assert [each.id for each in batches.batches_of(ledger, "j")] == ["2"]
        assert batches.question_batches(ledger, "j") == {"a": ("1", False), "b": ("2", True)}
        again = batches.batched_questions(ledger, ["a"], "j")["a"]
        assert (again.body, again.attempts, again.reply) == (None, 1, "no")


def test_a_finished_run_lets_go_of_its_questions_and_keeps_its_batches(url: str) -> None:
    with Ledger(url) as ledger:
        for name, owner in (("1", "r1"), ("2", "r1"), ("3", "other")):
            batches.enter(ledger, row(name, run=owner), [question(f"q{name}")])
        for name in ("1", "3"):
            batches.collect(ledger, closed(row(name)), {f"q{name}": "told"}, missing=None)
        batches.forget(ledger, "r1")
        assert set(batches.question_batches(ledger, "j")) == {"q2", "q3"}
        assert len(batches.batches_of(ledger, "j")) == 3


def test_a_question_that_was_answered_since_it_was_read_is_not_put_again(url: str) -> None:
    """A process that slept in between, while another run finished and let go of its questions."""
    answered = answer(1, judge="j")
    again, other = question(answered.question), question("other")
    with Ledger(url) as ledger:
        batches.enter(ledger, row("1"), [again])
        batches.collect(ledger, closed(row("1")), {again.question: "told"}, missing=None)
        tried = batches.batched_questions(ledger, [again.question], "j")[again.question]
        ledger.write([answered])
        assert batches.enter(ledger, row("2"), [tried]) == set()
        batches.forget(ledger, "r1")
        assert batches.enter(ledger, row("3"), [again, other]) == {"other"}
        assert batches.enter(ledger, row("4"), [again]) == set()
        assert [each.id for each in batches.batches_of(ledger, "j")] == ["1", "3"]
        unreadable = {again.question}
        assert batches.enter(ledger, row("5"), [again], unreadable=unreadable) == unreadable


def test_the_batches_of_a_run_go_with_it_and_those_of_others_stay(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.start_run(run("r1"))
        ledger.leases.release_all()
        for name, owner in (("1", "r1"), ("2", "r1"), ("3", "other")):
            batches.enter(ledger, row(name, run=owner), [question(f"q{name}")])
        batches.collect(ledger, closed(row("1")), {"q1": "told"}, missing=None)
        for delete, left in ((False, {"q1", "q2", "q3"}), (True, {"q3"})):
            assert prune(ledger, unfinished=True, delete=delete) == PruneCounts(1, 0, 0, 0, batches=1)
            assert set(batches.question_batches(ledger, "j")) == left
        assert [each.id for each in batches.batches_of(ledger, "j")] == ["3"]


def test_a_run_is_worked_on_while_another_holds_its_lease(url: str) -> None:
    with Ledger(url) as one, Ledger(url) as two:
        assert not batches.is_worked_on(two, "r1")
        one.start_run(run())
        assert batches.is_worked_on(two, "r1")
        assert not batches.is_worked_on(one, "r1")
        one.leases.release_all()
        assert not batches.is_worked_on(two, "r1")
