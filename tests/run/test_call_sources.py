"""A call is asked, shared or cached: the summary, the records and the dry run count alike."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    BatchOptions,
    Cascade,
    Judge,
    ModelJudge,
    Panel,
    Run,
    ScriptedJudge,
    evaluate,
    read_run,
    score,
    write_run,
)
from evalstone.questions import ListClaims
from evalstone.questions.base import Ask
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.scorers.base import Scorer
from evalstone.types import Failed, Score
from tests.run.batch_runs import Call
from tests.run.test_composites import YES_NO, Paid, put
from tests.serving import completion, serving

SAMPLES: list[dict[str, Any]] = [
    {"id": f"q{n}", "output": f"Ada was {n}.", "context": [f"Ada was {n}."]} for n in range(6)
]
BOTH = ["faithfulness", "hallucination"]
Counts = tuple[int, int, int]


def malformed(*_: Any) -> Any:
    return completion("no JSON")


def counted(run: Run) -> list[Counts]:
    return [(line.asked, line.shared, line.cached) for line in run.summary]


def in_records(run: Run) -> list[Counts]:
    sources = {info.signature: [0, 0, 0] for info in run.scorers}
    for record in run.records:
        for call in record.calls:
            for leaf in call.leaves():
                sources[record.signature][["asked", "shared", "cached"].index(leaf.source)] += 1
    return [(asked, shared, cached) for asked, shared, cached in sources.values()]


def expected(scorers: list[str], judge: Judge, ledger: Path) -> list[Counts]:
    work = asyncio.run(estimate(plan_for(SAMPLES, scorers, judge=judge), ledger=ledger))
    return [(line.asked, line.shared, line.cached) for line in work.scorers]


class Twice(Scorer):
    """Asks for the claims twice."""

    name = "twice"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        return Score(float(await ask(ListClaims(text=output)) == await ask(ListClaims(text=output))))


JUDGES = pytest.mark.parametrize(
    ("judge", "calls"),
    [(Paid("one"), 2), (Panel(Paid("one"), Paid("two")), 3), (Panel(Paid("one"), Paid("two"), Paid("three")), 4)],
    ids=["a judge", "a panel of two", "a panel of three"],
)
"""`calls`: those of a sample. Claims are listed by the first member alone."""


@JUDGES
def test_a_second_scorer_shares_and_a_second_run_has_cached_answers(judge: Judge, calls: int, tmp_path: Path) -> None:
    ledger, of_all = tmp_path / "l.db", calls * len(SAMPLES)
    before = expected(BOTH, judge, ledger)
    first = evaluate(SAMPLES, BOTH, judge=judge, ledger=ledger)
    assert before == counted(first) == in_records(first) == [(of_all, 0, 0), (0, of_all, 0)]
    before = expected(BOTH, judge, ledger)
    again = evaluate(SAMPLES, BOTH, judge=judge, ledger=ledger)
    assert before == counted(again) == in_records(again) == [(0, 0, of_all), (0, of_all, 0)]
    assert again.cost == 0


def test_what_one_scorer_left_in_the_ledger_is_cached_for_the_first_that_asks_and_shared_for_the_next(
    tmp_path: Path,
) -> None:
    ledger, one, both = tmp_path / "l.db", Paid("one"), Panel(Paid("one"), Paid("two"))
    evaluate(SAMPLES, "faithfulness", judge=one, ledger=ledger)
    before = expected(BOTH, both, ledger)
    run = evaluate(SAMPLES, BOTH, judge=both, ledger=ledger)
    assert before == counted(run) == in_records(run) == [(6, 0, 12), (0, 18, 0)]


def test_without_the_cache_calls_are_shared_and_none_is_cached(tmp_path: Path) -> None:
    judge, ledger = Paid("one"), tmp_path / "l.db"
    evaluate(SAMPLES, BOTH, judge=judge, ledger=ledger)
    assert counted(evaluate(SAMPLES, BOTH, judge=judge, ledger=ledger, cache=False)) == [(12, 0, 0), (0, 12, 0)]
    assert counted(evaluate(SAMPLES, BOTH, judge=judge, ledger=None)) == [(12, 0, 0), (0, 12, 0)]


def test_a_cascade_counts_the_calls_of_its_members() -> None:
    run = evaluate(SAMPLES, BOTH, judge=Cascade(Paid("sure", sure=0.99), Paid("dear")), ledger=None)
    assert counted(run) == in_records(run) == [(12, 0, 0), (0, 12, 0)]


def test_an_equal_question_of_another_sample_is_shared() -> None:
    twice = [{**SAMPLES[0], "id": name} for name in "ab"]
    run = evaluate(twice, "faithfulness", judge=Paid("one"), ledger=None, concurrency=1)
    assert counted(run) == in_records(run) == [(2, 2, 0)]


def test_a_shared_failure_says_so_and_counts_once() -> None:
    with serving(malformed) as server:
        judge = ModelJudge("vllm/small", base_url=server.url, prices=(1.0, 2.0), retries=0)
        run = evaluate(SAMPLES[:1], BOTH, judge=judge, ledger=None)
    assert len(server.requests) == 1
    assert all(isinstance(record.outcome, Failed) for record in run)
    assert [call.source for record in run for call in record.calls] == ["asked", "shared"]
    assert counted(run) == [(1, 0, 0), (0, 0, 0)]


def test_a_question_that_a_judge_declines_without_a_request_is_no_call() -> None:
    run = evaluate(SAMPLES[:1], "faithfulness", judge=ScriptedJudge([None]), ledger=None)
    assert counted(run) == [(0, 0, 0)]


def test_saved_results_have_the_three_counts(tmp_path: Path) -> None:
    ledger = tmp_path / "l.db"
    evaluate(SAMPLES, "faithfulness", judge=Paid("one"), ledger=ledger)
    run = evaluate(SAMPLES, BOTH, judge=Paid("one"), ledger=ledger)
    write_run(run, tmp_path / "out")
    records = [json.loads(line) for line in (tmp_path / "out" / "records.jsonl").read_text().splitlines()]
    by_scorer = {record["scorer"].split("(")[0]: {step["source"] for step in record["calls"]} for record in records}
    assert by_scorer == {"faithfulness": {"cached"}, "hallucination": {"shared"}}
    lines = json.loads((tmp_path / "out" / "summary.json").read_text())["scorers"]
    counts = [{name: line[name] for name in ("asked", "shared", "cached")} for line in lines]
    assert counts == [{"asked": 0, "shared": 0, "cached": 12}, {"asked": 0, "shared": 12, "cached": 0}]
    assert counted(read_run(tmp_path / "out")) == counted(run)


@pytest.mark.usefixtures("server")
def test_rounds_of_a_batch_count_each_call_once(run: Call) -> None:
    for _ in range(2):
        run(*BOTH)
    done = run(*BOTH)
    assert counted(done) == in_records(done) == [(8, 0, 0), (0, 8, 0)]
    again = run(*BOTH)
    assert counted(again) == in_records(again) == [(0, 0, 8), (0, 8, 0)]


@pytest.mark.usefixtures("server")
def test_rounds_of_a_batch_that_continue_in_one_process_tell_shared_from_cached(run: Call) -> None:
    for _ in range(2):
        run("faithfulness")  # the claims are in the ledger, the verdicts in a batch
    done = run("hallucination", "faithfulness(scale=2)", batch=BatchOptions(wait=True))
    assert counted(done) == in_records(done) == [(0, 0, 8), (0, 8, 0)]


@pytest.mark.usefixtures("server")
def test_a_scorer_that_asks_twice_in_a_batch_shares_its_own_call(run: Call) -> None:
    run(Twice())
    assert counted(run(Twice())) == [(4, 4, 0)]
    assert counted(run(Twice())) == [(0, 4, 4)]


def test_one_score_says_where_its_answers_are_from(tmp_path: Path) -> None:
    sample: dict[str, Any] = {"output": "Ada was 7.", "context": ["Ada was 7."]}
    sources = [
        [call.source for call in score("faithfulness", **sample, judge=Paid("one"), ledger=tmp_path / "l.db").calls]
        for _ in range(2)
    ]
    assert sources == [["asked", "asked"], ["cached", "cached"]]


def test_a_combined_answer_is_asked_if_a_member_was(tmp_path: Path) -> None:
    one, both = Paid("one"), Panel(Paid("one"), Paid("two"))
    sources: list[str] = []
    for judge in (one, both, both):
        (answer,) = put(judge, YES_NO, ledger=tmp_path / "l.db")
        sources.append(answer.source)
    assert sources == ["asked", "asked", "cached"]
