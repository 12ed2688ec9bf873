"""An evaluation inside loops of every kind and from many threads: same numbers, nothing asked twice, nothing left."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from evalstone import Run, Score, aevaluate, ascore, evaluate, score
from tests.environments.conftest import judge_of, samples, scored
from tests.serving import Server

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="open files are counted in /proc"),
]

Runner = Callable[[Coroutine[Any, Any, Any]], Any]


def in_debug_mode(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work, debug=True)


def under_uvloop(work: Coroutine[Any, Any, Any]) -> Any:
    uvloop = pytest.importorskip("uvloop")
    return uvloop.run(work)


def with_eager_tasks(work: Coroutine[Any, Any, Any]) -> Any:
    factory: Any = getattr(asyncio, "eager_task_factory", None)
    if factory is None:
        work.close()
        pytest.skip("tasks start eagerly from Python 3.12 on")

    async def eagerly() -> Any:
        asyncio.get_running_loop().set_task_factory(factory)
        return await work

    return asyncio.run(eagerly())


LOOPS = [asyncio.run, in_debug_mode, under_uvloop, with_eager_tasks]


@pytest.fixture(params=LOOPS, ids=lambda loop: loop.__name__)
def loop(request: pytest.FixtureRequest) -> Runner:
    """A way to run a coroutine, which has run one before: uvloop opens a pipe that it keeps."""
    request.param(asyncio.sleep(0))
    return request.param


def test_a_run_on_a_loop_of_any_kind_is_the_same_run(loop: Runner, server: Server, tmp_path: Path) -> None:
    before = len(server.requests)
    run: Run = loop(aevaluate(samples(10), "faithfulness", judge=judge_of(server), ledger=tmp_path / "l.db"))
    assert (scored(run), run["faithfulness"].mean) == (10, 1.0)
    assert len(server.requests) - before == 20


def test_code_that_never_waits_goes_its_way_on_a_loop_of_any_kind(loop: Runner, server: Server) -> None:
    facts = [{"id": str(n), "output": f"Paris has {n} bridges.", "context": ["Paris has 3 bridges."]} for n in range(5)]
    run: Run = loop(aevaluate(facts, ["faithfulness", "hallucination"], judge="lexical", ledger=None))
    assert (scored(run), run["hallucination"].n_score) == (5, 5)


def test_one_sample_after_another_on_a_loop_of_any_kind(loop: Runner, server: Server) -> None:
    async def several() -> list[Any]:
        wanted = (
            ascore("faithfulness", judge=judge_of(server), output=f"o {n}", context=["passage"], ledger=None)
            for n in range(8)
        )
        return [record.outcome for record in await asyncio.gather(*wanted)]

    assert all(isinstance(outcome, Score) for outcome in loop(several()))


def test_the_synchronous_form_works_in_a_cell_of_a_notebook_whose_loop_is_running(
    loop: Runner, server: Server, tmp_path: Path
) -> None:
    async def cell() -> tuple[int, bool]:
        run = evaluate(samples(5), "faithfulness", judge=judge_of(server), ledger=tmp_path / "l.db")
        one = score("faithfulness", judge=judge_of(server), output="o", context=["passage"], ledger=tmp_path / "l.db")
        return scored(run), isinstance(one.outcome, Score)

    assert loop(cell()) == (5, True)


def test_the_synchronous_form_works_in_a_callback_of_a_running_loop(server: Server) -> None:
    async def notebook() -> Run:
        done: asyncio.Future[Run] = asyncio.get_running_loop().create_future()

        def callback() -> None:
            done.set_result(evaluate(samples(5), "faithfulness", judge=judge_of(server), ledger=None))

        asyncio.get_running_loop().call_soon(callback)
        return await done

    assert scored(asyncio.run(notebook())) == 5


def test_one_judge_serves_one_loop_after_another_as_each_test_of_pytest_asyncio_has_its_own(
    server: Server, tmp_path: Path
) -> None:
    judge, before = judge_of(server), len(server.requests)
    for _ in range(3):
        with asyncio.Runner() as runner:
            run = runner.run(aevaluate(samples(4), "faithfulness", judge=judge, ledger=tmp_path / "l.db"))
        assert scored(run) == 4
    assert len(server.requests) - before == 8


def test_eight_threads_on_one_new_ledger_ask_nothing_twice(server: Server, tmp_path: Path) -> None:
    before = len(server.requests)

    def one(_: int) -> Run:
        return evaluate(samples(10), "faithfulness", judge=judge_of(server), ledger=tmp_path / "l.db")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(one, range(8)))
    assert [(scored(run), run["faithfulness"].mean) for run in runs] == [(10, 1.0)] * 8
    assert len(server.requests) - before == 20


def test_loops_in_several_threads_share_one_judge_and_one_ledger(server: Server, tmp_path: Path) -> None:
    judge, before = judge_of(server), len(server.requests)

    def one(_: int) -> Run:
        return asyncio.run(aevaluate(samples(10), "faithfulness", judge=judge, ledger=tmp_path / "l.db"))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(one, range(4)))
    assert [scored(run) for run in runs] == [10] * 4
    assert len(server.requests) - before == 20


def test_a_web_application_evaluates_in_its_handlers(server: Server, tmp_path: Path) -> None:
    async def handler(request: web.Request) -> web.Response:
        run = await aevaluate(samples(3, request.query["word"]), "faithfulness", judge=judge_of(server), ledger=ledger)
        return web.json_response({"scored": scored(run)})

    async def serve_and_call() -> list[dict[str, int]]:
        application = web.Application()
        application.router.add_get("/", handler)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address: Any = runner.addresses[0]

        async def call(client: aiohttp.ClientSession, word: str) -> dict[str, int]:
            async with client.get(f"http://127.0.0.1:{address[1]}/", params={"word": word}) as response:
                return await response.json()

        try:
            async with aiohttp.ClientSession() as client:
                return await asyncio.gather(*(call(client, word) for word in "abcab"))
        finally:
            await runner.cleanup()

    ledger, before = tmp_path / "l.db", len(server.requests)
    assert asyncio.run(serve_and_call()) == [{"scored": 3}] * 5
    # Nine answers are taken apart and verified, each once.
    assert len(server.requests) - before == 9 + 9


@pytest.mark.slow
def test_a_run_that_is_cancelled_at_any_moment_leaves_nothing_and_is_taken_up(server: Server, tmp_path: Path) -> None:
    async def within(seconds: float) -> int:
        try:
            async with asyncio.timeout(seconds):
                run = await aevaluate(
                    samples(30), "faithfulness", judge=judge_of(server), ledger=tmp_path / "l.db", concurrency=4
                )
        except TimeoutError:
            return 0
        return scored(run)

    before = len(server.requests)
    for seconds in (0.0, 0.001, 0.003, 0.01, 0.03, 0.05, 0.1):
        assert asyncio.run(within(seconds)) in (0, 30)
    assert asyncio.run(within(60.0)) == 30
    # Each of the seven that were stopped may have had four questions under way.
    assert 60 <= len(server.requests) - before <= 60 + 7 * 4


def test_a_run_that_is_cancelled_twice_still_closes_its_ledger(server: Server, tmp_path: Path) -> None:
    async def impatient() -> None:
        work = aevaluate(samples(30), "faithfulness", judge=judge_of(server), ledger=tmp_path / "l.db", concurrency=4)
        task = asyncio.create_task(work)
        await asyncio.sleep(0.1)
        for _ in range(8):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(impatient())
