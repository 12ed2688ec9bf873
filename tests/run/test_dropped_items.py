"""Runs in which a judge's list lost an item that is not from the judged text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    Cascade,
    Failed,
    ModelJudge,
    Panel,
    ReplayJudge,
    Run,
    Sample,
    ScriptedJudge,
    SelfConsistency,
    StopSignal,
    evaluate,
    read_run,
)
from evalstone.judges import Judge
from evalstone.results.files import write_run
from evalstone.results.run_notes import DROPPED_ITEMS
from evalstone.results.views.run import run_view
from tests.batch_serving import BatchServer, schema_of
from tests.run.batch_runs import BOTH, Call
from tests.serving import asked_in, completion, filled, serving

GROUNDED = ["The fleet has two ships.", "The harbor is small."]
REPLY = {"claims": [*GROUNDED, "It sank in 1902."]}
WHY = "claims.3: 'It sank in 1902.' is not from the text, which doesn't have: 1902"
NOTE = "The judges listed 1 item not found in the judged text, even after a correction."
SAMPLE = Sample(id="fleet", output="The fleet has two ships. The harbor is small.", context=["The harbor is small."])


def reply_to(request: dict[str, Any]) -> str:
    """Claims with an invented one, and a verdict on each claim of which only the last is supported."""
    schema = schema_of(request)
    if "claims" in schema["properties"]:
        return json.dumps(REPLY)
    return json.dumps(filled(schema, asked_in(request)))


def dropped_of(run: Run) -> list[Any]:
    details = [call.detail or {} for record in run.records for call in record.calls]
    return [detail["dropped"] for detail in details if "dropped" in detail]


def numbers_of(run: Run) -> list[Any]:
    return [(record.signature, record.value, [call.answer for call in record.calls]) for record in run.records]


def test_a_dropped_item_stands_in_the_record_and_is_counted_once_for_scorers_that_share_the_list() -> None:
    with serving(lambda request, _: completion(reply_to(request))) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        run = evaluate([SAMPLE], ["faithfulness", "hallucination"], judge=judge, ledger=None)
    assert [record.value for record in run.records] == [1.0, 0.0]
    assert run.records[0].calls[0].answer == GROUNDED
    assert dropped_of(run) == [[WHY]] * 2
    assert run.warnings[DROPPED_ITEMS] == 1
    assert NOTE in " ".join(str(run).split())
    shown = run_view(run)
    assert [warning for warning in shown.warnings if warning.startswith(NOTE)]
    assert not [fact for fact in shown.facts if DROPPED_ITEMS in fact.text]


def test_a_run_without_dropped_items_says_nothing_of_them() -> None:
    with serving() as server:
        run = evaluate([SAMPLE], "faithfulness", judge=ModelJudge("vllm/m", base_url=server.url), ledger=None)
    assert DROPPED_ITEMS not in run.warnings
    assert "even after a correction" not in str(run)


def test_a_stored_reply_gives_the_same_answer_and_the_same_drop(tmp_path: Path) -> None:
    with serving(lambda request, _: completion(reply_to(request))) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)
        first = evaluate([SAMPLE], "faithfulness", judge=judge, ledger=tmp_path / "l.db")
        write_run(first, tmp_path / "run")
        asked = len(server.requests)
        again = evaluate([SAMPLE], "faithfulness", judge=judge, ledger=tmp_path / "l.db")
        assert len(server.requests) == asked
    replayed = evaluate(
        [SAMPLE], "faithfulness", judge=ReplayJudge.from_records(tmp_path / "run" / "records.jsonl"), ledger=None
    )
    saved = read_run(tmp_path / "run")
    for run in (again, replayed, saved):
        assert numbers_of(run) == numbers_of(first)
        assert dropped_of(run) == [[WHY]]
        assert run.warnings[DROPPED_ITEMS] == 1
        assert NOTE in " ".join(str(run).split())
    assert all(call.source == "cached" for record in again.records for call in record.calls)


def test_a_resumed_run_counts_what_was_dropped_before_the_interruption(tmp_path: Path) -> None:
    stop = StopSignal()
    samples = [
        Sample(id=str(n), output=f"{SAMPLE.output} Number {n} is here.", context=SAMPLE.context) for n in range(9)
    ]

    def on_record(record: Any) -> None:
        stop.request("enough")

    with serving(lambda request, _: completion(reply_to(request))) as server:
        settings: dict[str, Any] = {"judge": ModelJudge("vllm/m", base_url=server.url), "ledger": tmp_path / "l.db"}
        first = evaluate(samples, "faithfulness", stop=stop, on_record=on_record, concurrency=1, **settings)
        assert 0 < len(first) < 9
        run = evaluate(samples, "faithfulness", **settings)
    assert run.resumed == len(first)
    assert run.warnings[DROPPED_ITEMS] == 9


@BOTH
def test_batches_drop_what_a_correction_did_not_mend(server: BatchServer, run: Call, model: str) -> None:
    server.behaviour = reply_to
    done = [run(samples=[SAMPLE], model=model) for _ in range(4)][-1]
    assert done.complete
    assert len(server.batches) == 3
    corrected = next(iter(server.batches[1].requests.values()))
    assert WHY in corrected["messages"][-1]["content"]
    again = run(samples=[SAMPLE], model=model)
    for each in (done, again):
        assert [record.value for record in each.records] == [1.0]
        assert each.records[0].calls[0].answer == GROUNDED
        assert dropped_of(each) == [[WHY]]
        assert each.warnings[DROPPED_ITEMS] == 1
    assert len(server.batches) == 3


def test_a_batch_drops_nothing_before_a_correction_has_named_it(server: BatchServer, run: Call) -> None:
    replies = iter(["I cannot say", json.dumps(REPLY)])

    def behave(request: dict[str, Any]) -> str:
        return next(replies, None) or reply_to(request)

    server.behaviour = behave
    done = [run(samples=[SAMPLE]) for _ in range(5)][-1]
    assert done.complete
    assert len(server.batches) == 4
    assert dropped_of(done) == [[WHY]]


def test_a_batch_without_corrections_drops_at_once(server: BatchServer, run: Call) -> None:
    server.behaviour = reply_to
    done = [run(samples=[SAMPLE], settings={"retries": 0}) for _ in range(3)][-1]
    assert done.complete
    assert (len(server.batches), dropped_of(done)) == (2, [[WHY]])


@pytest.mark.parametrize("invented", [2, 30])
def test_a_list_with_more_inventions_fails_and_names_them(invented: int) -> None:
    bad = [f"Ship {number} sank." for number in range(50, 50 + invented)]
    judge = ScriptedJudge({"list_claims": {"claims": [*GROUNDED, *bad]}})
    run = evaluate([SAMPLE], "faithfulness", judge=judge, ledger=None)
    outcome = run.records[0].outcome
    assert isinstance(outcome, Failed)
    assert all(f"claims.{number}" in outcome.error for number in range(3, 3 + invented))
    assert len(judge.asked) == 1
    assert run.records[0].calls[0].usage.requests == 4
    assert DROPPED_ITEMS not in run.warnings


SUPPORTED = {"reason": "Passage 1 says it.", "verdict": "supported", "passages": [1]}


def scripted(name: str, claims: list[str]) -> ScriptedJudge:
    """A judge without a confidence that lists these claims, of which the passages support the first two."""
    verdicts = {"verdicts": {str(number): SUPPORTED for number in range(1, 3)}}
    return ScriptedJudge({"list_claims": {"claims": claims}, "verify_claims": verdicts}, name=name)


COMPOSED: list[tuple[Callable[[Judge, Judge], Judge], bool]] = [
    (lambda one, other: Cascade(one, other), False),
    (lambda one, other: Cascade(other, one), True),
    (lambda one, other: Panel(one, other), True),
    (lambda one, other: Panel(other, one), False),
    (lambda one, other: Panel(Cascade(one, other), ScriptedJudge([], name="third"), quorum=1), False),
    (lambda one, other: SelfConsistency(one, repeats=3), True),
]


@pytest.mark.parametrize(("compose", "dropped"), COMPOSED)
def test_what_was_dropped_from_an_answer_that_is_not_used_is_not_counted(
    compose: Callable[[Judge, Judge], Judge], dropped: bool
) -> None:
    one, other = scripted("one", REPLY["claims"]), scripted("other", GROUNDED)
    run = evaluate([SAMPLE], "faithfulness", judge=compose(one, other), ledger=None)
    assert [record.value for record in run.records] == [1.0]
    assert run.warnings.get(DROPPED_ITEMS, 0) == dropped
    assert dropped_of(run) == [[WHY]] * dropped
