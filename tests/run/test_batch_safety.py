"""What a kill, a budget, a busy provider or a wrong call leave of a run through batches."""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    ConfigError,
    LexicalJudge,
    ModelJudge,
    Sample,
    evaluate,
)
from evalstone.errors import BatchError, JudgeRefused, ProviderError
from evalstone.ledger import batches
from evalstone.ledger.maintenance import info
from evalstone.ledger.store import Ledger
from evalstone.models.batch import base, batch_api
from evalstone.models.batch.base import Finding
from evalstone.run.budget import StopSignal
from tests.batch_serving import BatchServer
from tests.hostile_serving import http, serving_hostile
from tests.run.batch_runs import A_QUESTION, ANTHROPIC, BOTH, KEY, OPENAI, SAMPLES, Call


def test_a_batch_that_was_made_though_its_making_was_not_answered_is_found_and_not_made_again(
    server: BatchServer, run: Call
) -> None:
    server.holding, server.cut = True, 1
    assert run().batches == ("batch_0",)
    assert len(server.batches) == 1
    assert server.batches[0].metadata.keys() == {"evalstone_batch"}


def lost_batch(folder: Path, model: str = OPENAI) -> str:
    """What a process leaves that was killed an hour ago, while it submitted: the entry without the provider's id."""
    with Ledger(folder / "l.db") as ledger:
        (row,) = batches.batches_of(ledger, ModelJudge(model).identity, only_open=True)
        with ledger.transaction(writing=True) as connection:
            an_hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
            connection.execute(f"UPDATE batches SET remote = NULL, created = '{an_hour_ago}'")
    return row.id


def test_a_batch_that_was_not_found_is_not_submitted_again_before_the_provider_can_be_expected_to_list_it(
    server: BatchServer, run: Call, tmp_path: Path
) -> None:
    server.holding = True
    run()
    with Ledger(tmp_path / "l.db") as ledger, ledger.transaction(writing=True) as connection:
        connection.execute("UPDATE batches SET remote = NULL")
    made, server.batches = server.batches, []
    assert "(not known yet" in run().stop_reason
    assert not server.batches
    server.batches = made
    assert run().batches == ("batch_0",)


def test_a_process_that_slept_before_it_submitted_asks_nothing_that_another_run_got_answered_meanwhile(
    server: BatchServer, run: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter = batches.enter

    def slept(*args: Any, **options: Any) -> set[str]:
        monkeypatch.setattr(batches, "enter", enter)
        assert [run("hallucination") for _ in range(3)][-1].complete
        return enter(*args, **options)

    monkeypatch.setattr(batches, "enter", slept)
    assert run("faithfulness").stop_reason == "answers came in the meantime"
    assert run("faithfulness").complete
    assert len(server.requests) == 8


@BOTH
def test_a_process_killed_after_the_provider_got_the_batch_does_not_pay_twice(
    server: BatchServer, run: Call, model: str, tmp_path: Path
) -> None:
    server.holding = True
    run(model=model)
    lost_batch(tmp_path, model)
    again = run(model=model)
    assert again.batches
    assert len(server.batches) == 1
    server.finish()
    assert run(model=model).batches == ("batch_1",)
    server.finish()
    assert run(model=model).complete
    assert len(server.requests) == 8


@BOTH
def test_a_process_killed_before_the_provider_got_the_batch_submits_it_the_next_time(
    server: BatchServer, run: Call, model: str, tmp_path: Path
) -> None:
    server.holding = True
    run(model=model)
    lost_batch(tmp_path, model)
    server.batches.clear()
    assert run(model=model).batches == ("batch_0",)
    assert len(server.requests) == 4


def test_a_batch_of_someone_else_that_might_be_ours_is_waited_for_and_then_told_apart(
    server: BatchServer, run: Call, tmp_path: Path
) -> None:
    server.holding = True
    run(model=ANTHROPIC)
    ours = lost_batch(tmp_path, ANTHROPIC)
    batch = server.batches[0]
    batch.requests = {f"other-{n}": request for n, request in enumerate(batch.requests.values())}
    waits = run(model=ANTHROPIC)
    assert f"{ours} (not known yet" in waits.stop_reason
    assert len(server.batches) == 1
    server.finish()
    assert run(model=ANTHROPIC).batches == ("batch_1",)


def test_a_batch_that_a_running_process_is_submitting_is_left_to_it(
    server: BatchServer, run: Call, tmp_path: Path
) -> None:
    server.holding = True
    first = run()
    lost_batch(tmp_path)
    server.batches.clear()
    with Ledger(tmp_path / "l.db") as other:
        assert other.resume(other.runs()[0].plan) is not None
        assert not run().complete
        assert not server.batches
        other.leases.release_all()
    assert run().batches == ("batch_0",)
    assert first.id


def test_a_batch_made_with_another_key_is_not_taken_for_lost(server: BatchServer, run: Call) -> None:
    run()
    server.batches.clear()
    with pytest.raises(JudgeRefused, match=r"batch_0: .* key .*batch"):
        run()


def test_a_provider_that_is_busy_is_asked_again(server: BatchServer, run: Call) -> None:
    server.busy = 2
    assert run().batches == ("batch_0",)


def test_under_a_budget_samples_are_begun_that_can_be_paid_for_to_the_end_counting_all_rounds_of_the_run(
    server: BatchServer, run: Call
) -> None:
    server.holding = True
    assert re.search(r"\$0.003 .* batch_0 \(1 submitted", run(budget=0.003).stop_reason)
    assert re.search(r"\$0.003 .* batch_0 \(0 of 1 ", run(budget=0.003).stop_reason)
    assert len(server.requests) == 1
    server.holding = False
    server.finish()
    ended = [run(budget=0.003) for _ in range(8)][-1]
    assert ended.stop_reason.endswith("$0.003 is spent")
    assert ended.batches == ()
    assert 0 < len(ended) < 4
    assert 2 * len(ended) <= len(server.requests) < 8
    assert sum(record.cost or 0.0 for record in ended) == pytest.approx(2 * len(ended) * A_QUESTION)
    whole = [run(budget=1.0) for _ in range(3)][-1]
    assert whole.complete
    assert len(server.requests) == 8
    assert whole.cost == pytest.approx(8 * A_QUESTION)


def test_an_open_batch_leaves_no_key_in_the_ledger_and_no_text_beside_the_samples(
    server: BatchServer, run: Call, tmp_path: Path
) -> None:
    server.holding = True
    run()
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert KEY.encode() not in written
    with Ledger(tmp_path / "l.db") as ledger:
        assert info(ledger).open_batches == 1
        with ledger.transaction(writing=True) as connection:
            connection.execute("DELETE FROM samples")
        ledger.compact()
    assert b"Answer number" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert any(headers.get("Authorization") == f"Bearer {KEY}" for headers in server.headers)


def test_results_that_cannot_be_read_or_are_not_ours_are_as_if_they_were_absent(
    server: BatchServer, run: Call, tmp_path: Path
) -> None:
    server.holding = True
    run()
    batch = server.batches[0]
    name = next(iter(batch.requests))
    batch.requests = {name: batch.requests[name], "../../etc/passwd": {}, "other-abc": {}}
    batch.results = {name: "{}", "../../etc/passwd": "{}", "other-abc": "{}"}
    batch.status = "completed"
    assert run().batches == ("batch_1",)
    assert len(server.batches[1].requests) == 4
    with Ledger(tmp_path / "l.db") as ledger:
        assert len(batches.question_batches(ledger, ModelJudge(OPENAI).identity)) == 4


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (LexicalJudge(), {}, "lexical@.* can.t be asked in batches; use a model of openai/… or anthropic/…"),
    (ModelJudge("vllm/x", base_url="http://h/v1"), {}, "evalstone supports no batch API for vllm/x"),
    (ModelJudge(ANTHROPIC, base_url="http://h/v1"), {}, "evalstone supports no batch API for"),
    (ModelJudge(OPENAI), {"ledger": None}, "batch needs a ledger"),
    (ModelJudge(OPENAI), {"batch": "yes"}, "batch is true, false or BatchOptions, not str: 'yes'"),
    (ModelJudge(OPENAI), {"cache": False}, "cannot be combined with cache=False"),
    (ModelJudge(OPENAI), {}, "needs a key: set the environment variable OPENAI_API_KEY"),
    (ModelJudge(ANTHROPIC), {}, "needs a key: set the environment variable ANTHROPIC_API_KEY"),
    (ModelJudge(OPENAI, api_key="k"), {"budget": -1}, "the budget must be 0 or more"),
    (ModelJudge("openai/nobody-knows", api_key="k"), {"budget": 1}, "a budget needs a price"),
]


@pytest.mark.parametrize(("judge", "more", "told"), REFUSED)
def test_what_cannot_go_through_batches_is_refused_before_anything_is_sent(
    judge: Any, more: dict[str, Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    given: dict[str, Any] = {"ledger": tmp_path / "l.db", "batch": True, **more}
    with pytest.raises(ConfigError, match=told):
        evaluate(SAMPLES, "faithfulness", judge=judge, **given)


def test_a_run_interrupted_at_random_between_its_calls_pays_for_each_question_once(
    server: BatchServer, run: Call, tmp_path: Path
) -> None:
    rng = random.Random(5)
    samples = [Sample(id=str(n), output=f"Output {n}.", context=[f"Passage {n}."]) for n in range(12)]
    calls = 0
    while not (done := run(samples=samples)).complete and (calls := calls + 1) < 40:
        server.holding = rng.random() < 0.7
        if rng.random() < 0.5:
            with Ledger(tmp_path / "l.db") as ledger, ledger.transaction(writing=True) as connection:
                connection.execute("UPDATE batches SET remote = NULL WHERE collected IS NULL")
        if rng.random() < 0.6:
            server.finish()
    assert done.complete
    assert done.summary[0].n_score == 12
    assert len(server.requests) == 24
    assert done.cost == pytest.approx(24 * A_QUESTION)


def test_a_batch_that_waits_to_be_submitted_is_given_up_when_the_run_is_stopped(server: BatchServer, run: Call) -> None:
    stop, server.busy = StopSignal(), 1000

    def watch() -> None:
        deadline = time.monotonic() + 20
        while server.calls.count("POST /v1/batches") < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
        stop.request("enough")

    watcher = threading.Thread(target=watch)
    watcher.start()
    stopped = run(stop=stop)
    watcher.join()
    assert (stopped.stop_reason, stopped.batches, server.batches) == ("enough", (), [])
    server.busy = 0
    assert [run().complete for _ in range(3)][-1]
    assert [len(batch.requests) for batch in server.batches] == [4, 4]


@BOTH
def test_no_redirect_of_a_batch_is_followed(monkeypatch: pytest.MonkeyPatch, run: Call, model: str) -> None:
    reply = http(b"", "Location: http://user@other/?key=1", status=307)
    with serving_hostile(lambda _: reply) as started:
        for provider in ("OPENAI", "ANTHROPIC"):
            monkeypatch.setenv(f"{provider}_API_KEY", "k")
            monkeypatch.setenv(f"{provider}_BASE_URL", started.url)
        with pytest.raises(JudgeRefused, match="to http://other "):
            run(model=model)
    assert len(started.requests) == 1


def test_a_file_of_results_has_a_limit_of_its_own(
    monkeypatch: pytest.MonkeyPatch, server: BatchServer, run: Call
) -> None:
    run()
    monkeypatch.setattr(base, "RESULT_BYTES", 100)
    with pytest.raises(BatchError, match=r"batch_0: .* 1,000 bytes; max_"):
        run(settings={"max_reply_bytes": 1000})
    assert run().batches == ("batch_1",)


def test_a_list_of_batches_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    page = http(json.dumps({"data": [{"id": "b", "created_at": 2**33}], "has_more": True}).encode())
    monkeypatch.setattr(base, "MOST_PAGES", 5)
    with serving_hostile(lambda _: page) as started:
        api = batch_api(ModelJudge("openai/x", base_url=started.url, api_key="k"))

        async def find() -> Finding:
            async with api.opened():
                return await api.find("b", since=datetime.now(UTC), requests=1, known=())

        with pytest.raises(ProviderError, match="5 pages of batches"):
            asyncio.run(find())
    assert len(started.requests) == 5
