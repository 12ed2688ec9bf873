"""What a sample costs and how long its judge takes, whoever asked first."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalstone import Judge, JudgeCall, LexicalJudge, Record, Score, ScriptedJudge, calibrate
from evalstone.judges import Cascade, LoggingJudge, Panel, SelfConsistency
from evalstone.ledger.store import Ledger
from evalstone.results import compare_judges
from evalstone.run.call_prices import price_of_samples
from evalstone.types import Usage
from tests.serving import serving

LEXICAL, YES = LexicalJudge(), ScriptedJudge(lambda _: {"reason": "", "verdict": "yes"}, name="yes")


class AtOnce(Judge):
    """A judge of the user's that asks two others at the same time."""

    asks_at_once = True
    members = (LEXICAL, YES)

    @property
    def identity(self) -> str:
        return "at once"

    async def answer(self, question: Any, repeat: int = 0) -> Any:
        raise NotImplementedError


ROWS = [
    {"id": str(n), "output": f"It is {n}.", "context": [f"It is {n + n % 2}."], "label": n % 2, "input": "?"}
    for n in range(8)
]


def decide(request: dict[str, Any], _: int) -> dict[str, Any]:
    answers = {name: {"type": "noul", "noul": 0.75} for name in request["questions"]}
    return {"model": "m", "answers": answers, "usage": {"input_tokens": 1000, "output_tokens": 0}}


def call(
    name: str, cost: float | None = 0.5, seconds: float = 2.0, judge: str = "m", members: tuple[JudgeCall, ...] = ()
) -> JudgeCall:
    usage = Usage(requests=0 if members else 1)
    return JudgeCall(
        question="q", fingerprint=name, judge=judge, answer=1, usage=usage, cost=cost, seconds=seconds, members=members
    )


def again(call: JudgeCall, source: Any = "shared") -> JudgeCall:
    members = tuple(again(member, source) for member in call.members)
    return replace(call, cost=0.0, seconds=0.0, usage=Usage(), source=source, members=members)


def price(
    *records: tuple[JudgeCall, ...], judge: Judge = LEXICAL, ledger: Path | None = None
) -> tuple[float | None, float | None]:
    listed = [
        Record(sample_id=str(n), scorer="s", signature="s@1", outcome=Score(1.0), calls=calls)
        for n, calls in enumerate(records)
    ]
    return asyncio.run(price_of_samples(listed, [judge], ledger))


@pytest.mark.slow
def test_the_price_and_the_time_of_a_sample_are_the_same_once_its_answers_are_in_the_ledger(tmp_path: Path) -> None:
    rows = [*ROWS, {**ROWS[0], "id": "same question"}]
    with serving(decide) as server:
        judges = [f"systemone/a({server.url}, prices=[0.1, 0])", f"systemone/b({server.url}, prices=[1, 0])"]
        first, second = (
            [calibrate(rows, "fact_check", judge=judge, ledger=tmp_path / "l.db") for judge in judges] for _ in "ab"
        )
        asked = len(server.requests)
        alone = calibrate(rows, "fact_check", judge=judges[0], ledger=None)
        unpriced = calibrate(rows, "fact_check", judge=f"systemone/c({server.url})", ledger=tmp_path / "l.db")
    assert asked == 2 * len(ROWS)
    assert [made.cost for made in first] == pytest.approx([1e-4, 1e-3])
    assert [(made.cost, made.seconds) for made in second] == [(made.cost, made.seconds) for made in first]
    assert all(made.seconds for made in first)
    assert alone.cost == pytest.approx(1e-4)
    assert unpriced.cost is None
    assert unpriced.seconds
    tables = [compare_judges(made) for made in (first, second)]
    assert tables[0].judges == tables[1].judges
    assert "-: unknown" not in str(tables[1])
    with Ledger(tmp_path / "l.db") as ledger, ledger.transaction(writing=True):  # as answers of a batch
        ledger.database.execute("UPDATE answers SET seconds = 0", {})
    with serving(decide):
        third = calibrate(rows, "fact_check", judge=judges[0], ledger=tmp_path / "l.db")
    assert third.cost == pytest.approx(1e-4)
    assert third.seconds is None


def test_calls_count_once_in_a_sample_and_in_each_sample_that_shares_them() -> None:
    one, other = call("1"), call("2", 0.25, 1.0)
    assert price((one, again(one), other), (again(one),)) == pytest.approx((0.625, 2.5))
    assert price((one,), ()) == (0.5, 2.0)  # of the samples that were judged
    assert price(()) == (None, None)
    assert price((one,), (call("3", None),)) == (None, 2.0)
    assert price((one,), (again(other, "cached"),)) == (None, None)  # an answer without a ledger
    assert price((one,), (call("3", seconds=0.0),)) == (0.5, None)


@pytest.mark.parametrize(
    ("judge", "seconds"),
    [
        (Panel(LEXICAL, YES), 3.0),
        (SelfConsistency(YES, repeats=2), 3.0),
        (Cascade(LEXICAL, YES, threshold=0.9), 5.0),
        (AtOnce(), 3.0),
    ],
)
def test_members_that_are_asked_at_once_take_as_long_as_the_slowest(judge: Judge, seconds: float) -> None:
    whole = call("1", judge=judge.identity, members=(call("1", 0.1, 3.0, "a"), call("1", 0.2, 2.0, "b")))
    assert price((whole,), judge=judge) == pytest.approx((0.3, seconds))
    assert price((whole,), (again(whole),), judge=judge) == pytest.approx((0.3, seconds))
    outer = Cascade(judge, LEXICAL, threshold=0.5)
    inner = call("1", judge=outer.identity, members=(whole, call("2", 0.3, 1.0, "c")))
    assert price((inner,), judge=outer) == pytest.approx((0.6, seconds + 1))
    logged = LoggingJudge(judge, "unused.jsonl")
    assert price((replace(whole, judge=logged.identity),), judge=logged) == pytest.approx((0.3, seconds))


def test_a_panel_of_judges_that_cost_nothing_has_a_time() -> None:
    yes = ScriptedJudge(lambda _: {"reason": "", "verdict": "yes"}, name="yes")
    made = calibrate(ROWS, "fact_check", judge=Panel("lexical", yes), ledger=None)
    assert made.cost == 0
    assert made.seconds
