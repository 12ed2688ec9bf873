"""Code of the application that raises what is no Exception."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

import pytest

from evalstone import Record, Sample, Scorer
from evalstone.live import Request, Response, sender
from tests.live import scoring as own
from tests.live.conftest import Start
from tests.live.test_asgi import app, asked
from tests.live.test_live import SAMPLE, answered, found, numbers


class Terminated(BaseException):
    """What a signal handler of the application's own raises."""


ERRORS = [asyncio.CancelledError, GeneratorExit]
ENDING = [SystemExit, KeyboardInterrupt, Terminated]


class Unreadable:
    """A value whose text raises an error."""

    def __init__(self, error: type[BaseException]) -> None:
        self._error = error

    def __str__(self) -> str:
        raise self._error("no")


@pytest.mark.parametrize("error", ERRORS)
def test_what_a_filter_and_a_value_raise_does_not_look_like_the_end_of_the_request(
    start: Start, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    def refuse(_: object) -> bool:
        raise error("no")

    filtering = start(filter=refuse)
    assert not filtering.submit(**SAMPLE)
    assert numbers(filtering).filtered == 1
    assert f"is not scored: {error.__name__}" in caplog.text
    live = start(stream="values")
    assert live.submit(output=Unreadable(error), entity=Unreadable(error))  # pyright: ignore[reportArgumentType]
    (row,) = found(live)
    assert (row.state, row.entity) == ("failed", None)

    @live.watch
    def answer(input: dict[Any, str]) -> str:
        return "In Rome."

    assert answer({"key": "Where?"}) == "In Rome."


@pytest.mark.parametrize("error", ENDING)
def test_what_a_signal_handler_raises_while_a_filter_is_called_ends_the_application(
    start: Start, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def end(*_: object) -> None:
        raise error(7)

    def stopped(_: object) -> bool:
        signal.raise_signal(signal.SIGTERM)
        return True

    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(error):
            start(filter=stopped).submit(**SAMPLE)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("error", [*ERRORS, *ENDING])
def test_what_a_value_raises_outside_the_request_is_a_failed_score_and_ends_nothing(
    start: Start, error: type[BaseException]
) -> None:
    def read(request: Request, response: Response) -> dict[str, Any]:
        return {"output": Unreadable(error)} if request.text == "odd" else {**SAMPLE}

    live = start()
    asked(live.asgi(app, read), "odd", "even")
    assert sorted(row.state for row in found(live)) == ["failed", "score"]


@pytest.mark.parametrize("error", [*ERRORS, *ENDING])
def test_what_on_record_raises_is_logged_and_the_next_samples_are_scored(
    start: Start, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    seen: list[str] = []

    async def fail(record: Record, sample: Sample, scorer: Scorer) -> None:
        seen.append(str(sample.output))
        raise error("no")

    live = start(on_record=fail, concurrency=2)
    for number in range(5):
        live.submit(**answered(number))
    assert numbers(live).n_score == 5
    assert sorted(seen) == [f"In Rome {number}." for number in range(5)], "each once"
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("live: on_record")
    assert error.__name__ in said


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_a_submission_that_is_interrupted_leaves_the_stream_as_it_was(start: Start) -> None:
    interrupted = [True]

    def interrupt(_: object) -> bool:
        if interrupted and interrupted.pop():
            raise KeyboardInterrupt
        return True

    live = start(filter=interrupt)
    with pytest.raises(KeyboardInterrupt):
        live.submit(**SAMPLE)
    assert live.submit(**SAMPLE)
    assert numbers(live).n_score == 1


@pytest.mark.parametrize("error", [*ERRORS, *ENDING])
def test_what_a_scorer_raises_fails_its_sample_alone(start: Start, error: type[BaseException]) -> None:
    async def ending(output: str) -> float:
        if "odd" in output:
            raise error("no")
        return 1.0

    def plain(output: str) -> float:
        if "odd" in output:
            raise error("no")
        return 1.0

    live = start([ending, plain])
    live.submit(output="odd")
    live.submit(output="even")
    ended = found(live)
    assert sorted(row.state for row in ended) == ["failed", "failed", "score", "score"]
    assert [error.__name__ in str(row.record) for row in ended if row.state == "failed"] == [True, True]
    if error is KeyboardInterrupt:
        assert {row.cost for row in ended if row.state == "failed"} == {None}  # what it has asked isn't known


def test_a_scorer_that_exits_does_not_end_its_worker(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    live = start(own.exiting, process=True)
    live.submit(**SAMPLE)
    (row,) = found(live)
    assert (row.state, row.takeovers, caplog.messages) == ("failed", 0, [])
    assert "SystemExit: 4" in str(row.record)


def test_a_worker_thread_whose_loop_ends_is_replaced(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sender, "FIRST_PAUSE", 0.01)
    ending = [True]

    async def end() -> None:
        raise KeyboardInterrupt

    async def once(output: str) -> float:
        if ending and ending.pop():
            await asyncio.create_task(end())
        return 1.0

    live = start(once)
    live.submit(**SAMPLE)
    assert live.flush(60)
    assert numbers(live).n_score == 1
    assert [message.endswith("it is restarted") for message in caplog.messages] == [True]
