"""A worker's threads: one piece after the other, errors to whom they belong, no thread left."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from concurrent.futures import CancelledError, Future

import pytest

from evalstone._core.sync import Worker


def gone(name: str) -> bool:
    """Whether no thread of this name is left, after a moment's patience."""
    deadline = time.monotonic() + 5
    while any(thread.name == name for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.005)
    return all(thread.name != name for thread in threading.enumerate())


def test_pieces_are_done_one_after_the_other_on_one_thread() -> None:
    worker, done = Worker("in-order"), list[tuple[int, str]]()

    def piece(number: int) -> int:
        time.sleep(0.01 if number == 0 else 0)
        done.append((number, threading.current_thread().name))
        return number

    futures = [worker.submit(piece, number) for number in range(20)]
    assert [future.result(5) for future in futures] == list(range(20))
    assert done == [(number, "in-order") for number in range(20)]
    worker.close()
    assert gone("in-order")


def test_what_was_submitted_before_the_end_is_still_done() -> None:
    worker = Worker("to-the-end")
    first, last = worker.submit(time.sleep, 0.05), worker.submit(lambda: "done")
    worker.close()
    assert (first.result(5), last.result(5)) == (None, "done")
    assert gone("to-the-end")


def test_an_error_is_raised_where_the_result_is_asked_for_and_the_work_goes_on() -> None:
    worker = Worker("errors")

    def broken() -> None:
        raise OSError("no room")

    failed, after = worker.submit(broken), worker.submit(lambda: 1)
    with pytest.raises(OSError, match="no room"):
        failed.result(5)
    assert after.result(5) == 1
    worker.close()


def test_a_piece_that_is_cancelled_before_its_turn_is_passed_over() -> None:
    worker, turn, done = Worker("cancelled"), threading.Event(), list[str]()
    worker.submit(turn.wait, 5)
    given_up = worker.submit(done.append, "given up")
    kept = worker.submit(done.append, "kept")
    assert given_up.cancel()
    turn.set()
    kept.result(5)
    with pytest.raises(CancelledError):
        given_up.result(5)
    assert done == ["kept"]
    worker.close()


def test_a_worker_that_is_dropped_leaves_no_thread() -> None:
    worker = Worker("dropped")
    worker.submit(lambda: None).result(5)
    del worker
    gc.collect()
    assert gone("dropped")


def test_a_worker_that_had_no_work_leaves_no_thread() -> None:
    Worker("idle").close()
    assert gone("idle")


def test_several_threads_work_side_by_side_and_all_end() -> None:
    worker, all_here = Worker("several", 3), threading.Barrier(3, timeout=10)
    futures = [worker.submit(all_here.wait) for _ in range(6)]
    assert sorted(future.result(10) for future in futures) == [0, 0, 1, 1, 2, 2]
    worker.close()
    assert gone("several")


def test_what_a_function_was_given_is_let_go_once_it_is_done() -> None:
    class Given:
        pass

    worker, given = Worker("let-go"), Given()
    left = weakref.ref(given)
    worker.submit(isinstance, given, Given).result(10)
    del given
    deadline = time.monotonic() + 10
    while left() is not None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert left() is None
    worker.close()


def test_a_function_may_be_submitted_while_its_thread_starts_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, done, start = Worker("reentered", 2), list[str](), threading.Thread.start
    inner = list[Future[None]]()

    def interrupted(thread: threading.Thread) -> None:  # as by a signal's handler
        if thread.name == "reentered" and not done:
            done.append("begun")
            inner.append(worker.submit(done.append, "inner"))
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    outer = threading.Thread(target=lambda: worker.submit(done.append, "outer").result(10), daemon=True)
    outer.start()
    outer.join(20)
    inner[0].result(10)
    assert sorted(done) == ["begun", "inner", "outer"]
    worker.close()


def test_threads_without_a_limit_are_used_again() -> None:
    worker = Worker("reused", None)
    for _ in range(60):
        worker.submit(lambda: None).result(10)
    # A thread may not be idle yet when its result is there, which leaves one more for the next function.
    assert [thread.name for thread in threading.enumerate()].count("reused") < 30
    worker.close()
    assert gone("reused")


@pytest.mark.parametrize("threads", [1, 3, None])
def test_a_thread_that_can_not_be_started_is_started_by_the_next_submission(
    monkeypatch: pytest.MonkeyPatch, threads: int | None
) -> None:
    worker = Worker("refused", threads)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        for _ in range(4):
            with pytest.raises(RuntimeError, match="new thread"):
                worker.submit(lambda: None)
    assert worker.submit(lambda: "done").result(10) == "done"
    worker.close()
    assert gone("refused")


def test_work_waits_for_the_threads_there_are_where_no_other_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, turn = Worker("fewer", 2), threading.Event()
    first = worker.submit(turn.wait, 10)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        second = worker.submit(lambda: "second")
    both = threading.Barrier(2, timeout=10)
    later = [worker.submit(both.wait) for _ in range(2)]  # the second thread is started now
    turn.set()
    assert (first.result(10), second.result(10)) == (True, "second")
    assert sorted(future.result(10) for future in later) == [0, 1]
    worker.close()
    assert gone("fewer")


def test_a_worker_starts_no_more_threads_than_it_may_though_many_submit_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, start = list[str](), threading.Thread.start

    def slowly(thread: threading.Thread) -> None:
        if thread.name == "limited":
            started.append(thread.name)
            time.sleep(0.02)  # others submit meanwhile
        start(thread)

    worker, together = Worker("limited", 2), threading.Barrier(8, timeout=10)

    def submit() -> None:
        together.wait()
        worker.submit(lambda: None).result(10)

    monkeypatch.setattr(threading.Thread, "start", slowly)
    submitting = [threading.Thread(target=submit) for _ in range(8)]
    for each in submitting:
        each.start()
    for each in submitting:
        each.join(10)
    assert started == ["limited"] * 2
    worker.close()


def refuse(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
