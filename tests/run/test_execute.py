"""Whole runs through the Python interface."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import evalstone
from evalstone import ConfigError, ModelJudge, Sample, Score, Scorer, ScriptedJudge, Skipped, aevaluate, evaluate, score
from evalstone.compat.spring import FactCheckingEvaluator
from evalstone.errors import JudgeRefused, LedgerError
from evalstone.ledger import AsyncLedger
from evalstone.ledger.store import Ledger
from evalstone.questions import VerifyClaims
from evalstone.scorers import Faithfulness
from evalstone.types import Failed, Record
from tests.serving import Response, completion, obliging, serving

SAMPLES = [
    Sample(id="one", input="Where is Paris?", output="Paris is in France.", context=["Paris is in France."]),
    Sample(id="two", input="Where is Rome?", output="Rome is in Italy.", context=["Rome is a city."]),
    Sample(id="three", input="Where is Oslo?", output="Oslo is in Norway."),
]


class Length(Scorer):
    """The number of words, at most ten."""

    name = "length"

    def score(self, *, output: str) -> Score:
        return Score(min(len(output.split()), 10) / 10 * self.scale)


class Broken(Scorer):
    """Raises."""

    name = "broken"
    depth: int = 0

    def score(self, *, output: str) -> Score:
        if self.depth:
            return Broken(depth=self.depth - 1).score(output=output)
        raise ZeroDivisionError("no luck")


class Beyond(Scorer):
    """Gives a number that is no score."""

    name = "beyond"

    def score(self, *, output: str) -> Score:
        return Score(float("nan") if output else 0.0)


def test_a_run_has_a_record_for_each_sample_and_scorer_in_order(tmp_path: Path) -> None:
    run = evaluate(SAMPLES, ["faithfulness", Length()], ledger=tmp_path / "l.db")
    assert [(r.sample_id, r.signature.partition("(")[0].partition("@")[0]) for r in run] == [
        (sample, scorer) for sample in ("one", "two", "three") for scorer in ("faithfulness", "length")
    ]
    assert run["faithfulness"].n_score == 2
    assert run["faithfulness"].n_skipped == 1
    assert run["length"].mean == pytest.approx(0.4)


def test_a_long_traceback_is_cut_to_where_the_error_was_raised() -> None:
    failed = score(Broken(depth=60), output="a").outcome
    assert isinstance(failed, Failed)
    assert failed.traceback is not None
    assert "repeated 16 more times]" in failed.traceback  # after 3, before the one that raises
    assert failed.traceback.endswith("ZeroDivisionError: no luck")


def test_a_missing_field_skips_a_sample_and_says_which() -> None:
    run = evaluate(SAMPLES, "faithfulness", ledger=None)
    outcome = run.records[2].outcome
    assert outcome == Skipped("faithfulness needs context (or tool results in messages)")


def test_a_scorer_that_raises_fails_its_records_and_nothing_else() -> None:
    run = evaluate(SAMPLES, [Broken(), Length(), Beyond()], ledger=None)
    assert run["broken"].n_failed == 3
    failed = run.records[0].outcome
    line = Broken.score.__code__.co_firstlineno + 3
    assert failed == Failed(f"ZeroDivisionError: no luck ({Path(__file__).name}, line {line})")
    assert isinstance(failed, Failed)
    assert failed.exception == "ZeroDivisionError"
    assert failed.traceback is not None
    lines = failed.traceback.splitlines()
    assert lines[1].strip().startswith(f'File "{__file__}"')
    assert lines[-1] == "ZeroDivisionError: no luck"
    assert Record.from_dict(run.records[0].to_dict()).outcome.traceback == failed.traceback  # pyright: ignore
    assert run["length"].n_score == 3
    assert run["beyond"].n_failed == 3
    assert run.n_failed == 6


def test_a_question_the_judge_cannot_answer_is_a_skip_with_the_reason() -> None:
    run = evaluate(SAMPLES, "toxicity", ledger=None)
    outcome = run.records[0].outcome
    assert isinstance(outcome, Skipped)
    assert "lexical judge" in outcome.reason


def test_shared_questions_are_asked_once_between_scorers() -> None:
    with serving() as server:
        judge = evalstone.ModelJudge("vllm/test", base_url=server.url)
        run = evaluate(SAMPLES[:2], ["faithfulness", "hallucination"], judge=judge, ledger=None)
    assert len(server.requests) == 4
    assert run["faithfulness"].mean == 1.0
    assert run["hallucination"].mean == 0.0


def test_the_same_call_again_asks_nothing_and_gives_the_same_numbers(tmp_path: Path) -> None:
    with serving() as server:
        judge = evalstone.ModelJudge("vllm/test", base_url=server.url, prices=(1.0, 1.0))
        first = evaluate(SAMPLES, ["faithfulness"], judge=judge, ledger=tmp_path / "l.db")
        asked = len(server.requests)
        second = evaluate(SAMPLES, ["faithfulness"], judge=judge, ledger=tmp_path / "l.db")
        assert len(server.requests) == asked
    assert second["faithfulness"].mean == first["faithfulness"].mean
    assert first.cost is not None
    assert first.cost > 0
    assert second.cost == 0.0


def test_records_name_their_scorer_as_the_run_takes_it(tmp_path: Path) -> None:
    scorers = ["contains(expected=Paris)", "contains(expected=Oslo)", "exact_match"]
    sample = {"id": "a", "output": "Paris", "reference": "Oslo"}
    run = evaluate([sample], scorers, ledger=tmp_path / "l.db")
    names = [*scorers[:2], "exact_match"]
    assert [record.scorer for record in run] == names
    assert [run[record.scorer].info.signature for record in run] == [record.signature for record in run]
    read = evalstone.read_run(evalstone.write_run(run, tmp_path / "r"))
    assert [(record.scorer, record.signature) for record in read] == [(one.scorer, one.signature) for one in run]
    (alone,) = evaluate([sample], scorers[:1], ledger=None)
    assert alone.scorer == "contains"


def test_answers_of_a_model_are_stored_whatever_their_price(tmp_path: Path) -> None:
    with serving() as server:
        judge = evalstone.ModelJudge("vllm/test", base_url=server.url, prices=(0.0, 0.0))
        runs = [evaluate(SAMPLES, ["faithfulness"], judge=judge, ledger=tmp_path / "l.db") for _ in range(2)]
        asked = len(server.requests)
    assert asked == sum(call.source == "asked" for record in runs[0].records for call in record.calls)
    assert all(call.source != "asked" for record in runs[1].records for call in record.calls)
    assert [run.cost for run in runs] == [0.0, 0.0]


def test_answers_of_judges_without_a_model_are_not_stored(tmp_path: Path) -> None:
    for _ in range(2):
        run = evaluate(SAMPLES, ["faithfulness"], judge="lexical", ledger=tmp_path / "l.db")
        assert not any(call.source == "cached" for record in run.records for call in record.calls)


def test_an_unfinished_run_is_taken_up_where_it_stood(tmp_path: Path) -> None:
    def failing_late(request: dict[str, Any], number: int) -> Any:
        return Response(401, {"error": {"message": "expired"}}) if number > 3 else obliging(request, number)

    samples = [Sample(id=str(n), output=f"answer {n}", context=["p"]) for n in range(6)]
    with serving(failing_late) as server:
        judge = evalstone.ModelJudge("vllm/test", base_url=server.url)
        with pytest.raises(JudgeRefused, match="401"):
            evaluate(samples, "faithfulness", judge=judge, ledger=tmp_path / "l.db", concurrency=1)
        with Ledger(tmp_path / "l.db") as ledger:
            row = ledger.run("last")
            assert row is not None
            before = ledger.records(row.id)
        server.behaviour = obliging
        run = evaluate(samples, "faithfulness", judge=judge, ledger=tmp_path / "l.db")
        assert run.id == row.id
        assert run.resumed == len(before)
        assert (run.started, run.started <= run.resumed_at) == (row.started, True)
        assert f"was resumed ({run.resumed_at[:10]} " in str(run)
        assert evalstone.read_run(run.id, ledger=tmp_path / "l.db").resumed_at == run.resumed_at
        assert run["faithfulness"].n_score == 6
        assert len(server.requests) <= 12 + 2


def test_a_budget_is_the_whole_runs_however_often_it_is_taken_up(tmp_path: Path) -> None:
    samples = [Sample(id=str(n), output=f"answer {n}", context=["p"]) for n in range(40)]
    price, answer = 0.002, 120 / 1e6
    with serving() as server:
        judge = evalstone.ModelJudge("vllm/test", base_url=server.url, prices=(1.0, 1.0))

        def run(budget: float) -> evalstone.Run:
            return evaluate(
                samples, "faithfulness", judge=judge, ledger=tmp_path / "l.db", budget=budget, concurrency=1
            )

        first, *_, last = [run(price) for _ in range(5)]
        assert len(server.requests) * answer <= price
        assert 0 < len(first) <= len(last) < 40
        assert "budget of $0.002 ($0.001" in last.stop_reason
        assert run(1.0).complete


def test_failures_that_are_all_that_is_left_do_not_take_the_judge_for_dead(tmp_path: Path) -> None:
    def too_long_for_some(request: dict[str, Any], number: int) -> Any:
        if "LONG" in json.dumps(request["messages"]):
            return Response(400, {"error": {"message": "maximum context length exceeded"}})
        return obliging(request, number)

    samples = [Sample(id=str(n), output=f"{'LONG' if n < 12 else 'short'} {n}", context=["p"]) for n in range(16)]
    with serving(too_long_for_some) as server:
        judge = evalstone.ModelJudge("vllm/test", base_url=server.url)
        good = samples[12:]
        evaluate(good, "faithfulness", judge=judge, ledger=tmp_path / "l.db", concurrency=1)
        again = evaluate([*good, *samples[:12]], "faithfulness", judge=judge, ledger=tmp_path / "l.db", concurrency=1)
    assert (again["faithfulness"].n_score, again["faithfulness"].n_failed) == (4, 12)


def test_a_run_that_was_killed_before_its_end_is_taken_up_though_only_failures_are_left(tmp_path: Path) -> None:
    def hopeless(request: dict[str, Any], number: int) -> Any:
        return completion("no") if "odd" in json.dumps(request["messages"]) else obliging(request, number)

    samples = [Sample(id=str(n), output=f"{'odd' if n else 'fine'} {n}", context=["p"]) for n in range(12)]
    with serving(hopeless) as server:
        judge = evalstone.ModelJudge("vllm/test", base_url=server.url, retries=0)
        run = evaluate(samples, "faithfulness", judge=judge, ledger=tmp_path / "l.db", concurrency=1)
        with Ledger(tmp_path / "l.db") as ledger, ledger.transaction(writing=True) as connection:
            connection.execute("UPDATE runs SET finished = NULL")
        again = evaluate(samples, "faithfulness", judge=judge, ledger=tmp_path / "l.db", concurrency=1)
    assert (again.id, again.resumed) == (run.id, 1)
    assert (again["faithfulness"].n_score, again["faithfulness"].n_failed) == (1, 11)


@pytest.mark.parametrize(
    "change", ["cell = cell + 1000", "signature = 'other@1', body = replace(body, 'length', 'other')"]
)
def test_a_record_that_was_changed_by_hand_is_made_again(tmp_path: Path, change: str) -> None:
    samples = [Sample(id=str(n), output="a" * n) for n in range(1, 4)]
    first = evaluate(samples, Length(), ledger=tmp_path / "l.db")
    with Ledger(tmp_path / "l.db") as ledger, ledger.transaction(writing=True) as database:
        database.execute("UPDATE runs SET finished = NULL")
        database.execute(f"UPDATE records SET {change} WHERE cell = 1")
    again = evaluate(samples, Length(), ledger=tmp_path / "l.db")
    assert (again.id, again.resumed) == (first.id, 2)
    assert [record.value for record in again.records] == [record.value for record in first.records]


@pytest.mark.slow
def test_a_run_with_trouble_at_the_endpoint_scores_every_record(tmp_path: Path) -> None:
    def troubled(request: dict[str, Any], number: int) -> Any:
        match number % 20:
            case 3 | 13:
                return Response(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.01"})
            case 7:
                return Response(500, {"error": {"message": "oops"}})
            case 11:
                whole = obliging(request, number)["choices"][0]["message"]["content"]
                return completion(whole[: len(whole) // 2])
            case _:
                return obliging(request, number)

    samples = [Sample(id=str(n), input="q", output=f"answer {n}", context=["p", "q"]) for n in range(40)]
    with serving(troubled) as server:
        judge = evalstone.ModelJudge("vllm/test", base_url=server.url)
        scorers = ["faithfulness", "context_precision", "answer_relevancy"]
        run = evaluate(samples, scorers, judge=judge, ledger=tmp_path / "l.db", concurrency=8)
    assert [line.n_score for line in run.summary] == [40, 40, 40]
    assert server.most_at_once <= 8
    assert run.warnings["HTTP 429"] > run.warnings["HTTP 500"] > 0
    assert run.warnings["malformed replies"] > 0


def test_runs_at_the_same_time_over_one_judge_count_their_own_warnings() -> None:
    failed: set[str] = set()

    def behave(request: dict[str, Any], _: int) -> Any:
        text = json.dumps(request["messages"])
        if "trouble" in text and text not in failed:
            failed.add(text)
            return Response(503, {"error": {"message": "busy"}})
        return Response(body=obliging(request, 0), delay=0.05)

    with serving(behave) as server:
        judge = ModelJudge("vllm/m", base_url=server.url)

        async def both() -> list[Any]:
            texts = (["fine 1", "fine 2", "fine 3"], ["trouble 1", "trouble 2"])
            samples = ([{"output": text} for text in some] for some in texts)
            return await asyncio.gather(
                *(aevaluate(some, ["toxicity"], judge=judge, ledger=None, concurrency=1) for some in samples)
            )

        clean, troubled = asyncio.run(both())
        again = evaluate([{"output": "fine 4"}], ["toxicity"], judge=judge, ledger=None)
    assert clean.warnings == again.warnings == {}
    assert troubled.warnings == {"HTTP 503": 2}
    assert len(server.requests) < 1.35 * 200


def test_it_works_inside_a_running_loop_and_from_synchronous_code_within_it() -> None:
    async def inside() -> tuple[evalstone.Run, evalstone.Run]:
        return await aevaluate(SAMPLES, "faithfulness", ledger=None), evaluate(SAMPLES, "faithfulness", ledger=None)

    first, second = asyncio.run(inside())
    assert [r.outcome for r in first] == [r.outcome for r in second]


def test_records_are_told_as_they_are_made() -> None:
    told: list[Record] = []
    run = evaluate(SAMPLES, "faithfulness", ledger=None, on_record=told.append)
    assert {r.sample_id for r in told} == {r.sample_id for r in run}


def test_one_sample_in_one_line() -> None:
    record = score("faithfulness", output="Paris is in France.", context=["Paris is in France."])
    assert record.value == 1.0
    assert [call.question for call in record.calls] == ["list_claims", "verify_claims"]


def test_evaluators_and_classes_and_parameters_are_scorers_too() -> None:
    judge = ScriptedJudge({"claim_supported": {"reason": "r", "verdict": "yes"}})
    run = evaluate(
        SAMPLES[:1],
        [
            FactCheckingEvaluator(),
            Length,
            "context_relevance(scale=10)",
            {"name": "hallucination", "scale": 5},
        ],
        judge=judge,
        ledger=None,
    )
    assert [info.name for info in run.scorers] == ["fact_check", "length", "context_relevance", "hallucination"]
    assert [info.scale for info in run.scorers] == [1, 1, 10, 5]


@pytest.mark.parametrize(
    ("scorers", "told"),
    [
        ("fathfulness", "did you mean faithfulness"),
        ("context_relevance(scal=10)", "did you mean scale"),
        ("faithfulness(scale=0)", "scale must be a number above 0"),
        ("faithfulness(", "can't be parsed as a scorer"),
        (["faithfulness", "faithfulness"], "named twice"),
        ([], "no scorer was named"),
        ([3], "a scorer is a name"),
        ("context_recall", r"needs reference and context \(or tool results in messages\); reference is absent"),
    ],
)
def test_a_wrong_call_is_said_before_anything_is_asked(scorers: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        evaluate(SAMPLES, scorers, ledger=None)


@pytest.mark.parametrize(
    ("scorer", "row", "told"),
    [
        ("tool_call_accuracy", {"input": "q"}, "expected_trajectory is absent"),
        ("pairwise(compare_to=other)", {"input": "q"}, "other in metadata is absent"),
        ("recall_at_k", {"input": "q"}, "relevant in metadata is absent"),
        ("topic_adherence", {"input": "q"}, "topics in metadata is absent"),
    ],
)
def test_a_target_is_not_called_for_a_scorer_that_lacks_what_no_answer_has(scorer: str, row: Any, told: str) -> None:
    def agent(*, input: str) -> str:
        pytest.fail("called")

    with pytest.raises(ConfigError, match=told):
        evaluate([row], scorer, target=agent, judge=ScriptedJudge([]), ledger=None)


def test_a_target_may_give_what_stands_in_for_a_field() -> None:
    rows = [{"input": "q", "expected_trajectory": ["search"]}]

    def agent(*, input: str) -> dict[str, Any]:
        return {"output": "a", "trajectory": [{"name": "search", "step_type": "tool_call"}]}

    assert evaluate(rows, "tool_call_accuracy", target=agent, ledger=None)["tool_call_accuracy"].mean == 1


def test_passages_of_a_function_are_not_enough_without_an_answer() -> None:
    scorer = Faithfulness(context_from=lambda _: ["p"])
    with pytest.raises(ConfigError, match="faithfulness needs output; output is absent"):
        evaluate([{"input": "q"}], scorer, judge=ScriptedJudge([]), ledger=None)


def test_concurrency_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="concurrency"):
        evaluate(SAMPLES, "faithfulness", ledger=None, concurrency=0)


def test_a_run_prints_as_a_table_and_reads_back_from_its_dictionaries() -> None:
    run = evaluate(SAMPLES, ["faithfulness", Length(scale=10)], ledger=None)
    assert "faithfulness" in str(run)
    assert "95% CI" in str(run)
    records = [Record.from_dict(json.loads(json.dumps(row))) for row in run.to_dicts()]
    again = evalstone.Run.from_dict(json.loads(json.dumps(run.to_dict())), records)
    assert [line.to_dict() for line in again.summary] == [line.to_dict() for line in run.summary]
    assert str(again) == str(run)


def test_every_step_of_a_record_has_question_answer_and_judge() -> None:
    run = evaluate(SAMPLES, "faithfulness", ledger=None)
    step = run.records[0].calls[1]
    assert step.question == "verify_claims"
    assert step.judge == "lexical@7"
    assert step.answer[0]["verdict"] == "supported"
    assert len(step.fingerprint) == 32


def test_a_function_of_the_sample_gives_the_passages_and_wins() -> None:
    def passages(sample: Sample) -> Sequence[str]:
        return ["Oslo is in Norway."]

    run = evaluate(SAMPLES, [Faithfulness(context_from=passages, context=["no"])], ledger=None)
    assert [r.value for r in run] == [0.0, 0.0, 1.0]


def test_a_run_is_a_table_of_pandas_and_of_polars() -> None:
    pytest.importorskip("pandas", reason="the extra `pandas` is not installed")
    pytest.importorskip("polars", reason="the extra `polars` is not installed")
    run = evaluate(SAMPLES, ["faithfulness"], ledger=None)
    for table in (run.to_pandas(), run.to_polars()):
        assert list(table["sample_id"]) == ["one", "two", "three"]
        assert list(table["outcome"]) == ["score", "score", "skipped"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ledger": 3}, "a ledger is a path"),
        ({"ledger": True}, "a ledger is a path"),
        ({"concurrency": "x"}, "concurrency must be a whole number"),
        ({"budget": "x"}, "budget must be 0 or more"),
        ({"judge": None}, "judge"),
        ({"judge": 3}, "judge"),
    ],
)
def test_an_option_of_the_wrong_kind_is_said_and_leaves_no_file(
    options: dict[str, Any], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=told):
        evaluate(SAMPLES, "faithfulness", **cast("dict[str, Any]", {"ledger": None, **options}))
    assert list(tmp_path.iterdir()) == []


def test_scorers_none_is_no_scorer() -> None:
    with pytest.raises(ConfigError, match="not NoneType"):
        evaluate(SAMPLES, cast(Any, None), ledger=None)


def test_a_misspelt_field_or_option_of_score_is_refused() -> None:
    with pytest.raises(ConfigError, match="mean context"):
        score("faithfulness", output="x", contxt=["y"])  # pyright: ignore[reportCallIssue]
    with pytest.raises(ConfigError, match="not both"):
        score("faithfulness", SAMPLES[0], output="z")
    with pytest.raises(ConfigError, match="jugde"):
        score("faithfulness", SAMPLES[0], jugde="lexical")  # pyright: ignore[reportCallIssue]


def test_many_claims_are_verified_in_batches() -> None:
    def judge(question: Any) -> Any:
        if question.kind == "list_claims":
            return {"claims": question.text.split(". ")}
        verdict = {"reason": "r", "passages": [1], "verdict": "supported"}
        return {"verdicts": {str(n): verdict for n in range(1, len(question.claims) + 1)}}

    scripted = ScriptedJudge(judge)
    record = score("faithfulness", output=" ".join(f"Claim {n}." for n in range(60)), context=["p"], judge=scripted)
    assert record.value == 1.0
    assert [len(q.claims) for q in scripted.asked if isinstance(q, VerifyClaims)] == [25, 25, 10]


def test_a_record_that_cannot_be_stored_is_in_the_results_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = list[str]()

    async def full(self: AsyncLedger, run: str, records: list[tuple[int, Record, str]]) -> None:
        refused.extend(record.sample_id for _, record, _ in records)
        raise LedgerError("no room")

    monkeypatch.setattr(AsyncLedger, "keep_records", full)
    with pytest.raises(LedgerError, match="no room") as raised:
        evaluate([Sample(id=str(n), output="a") for n in range(40)], Length(), ledger=tmp_path / "l.db", concurrency=1)
    assert sorted(record.sample_id for record in raised.value.run.records) == sorted(refused)
    assert raised.value.run.stop_reason == "no room"


def test_a_run_that_is_cancelled_is_stored_with_this_reason(tmp_path: Path) -> None:
    async def cancelled() -> None:
        begun = asyncio.Event()

        @evalstone.scorer
        async def waiting(*, output: str) -> float:
            if output == SAMPLES[0].output:
                return 1.0
            begun.set()
            await asyncio.Event().wait()
            return 0.0

        run = asyncio.create_task(aevaluate(SAMPLES, waiting, ledger=tmp_path / "l.db", concurrency=1))
        await begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(cancelled())
    stored = evalstone.read_run("last", ledger=tmp_path / "l.db")
    assert (stored.stop_reason, stored.complete) == ("canceled", False)
