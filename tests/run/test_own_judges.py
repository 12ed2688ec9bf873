"""A scorer may have a judge of its own; results, costs and comparisons name the judges that were asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import evalstone.questions
from evalstone import compare, evaluate, read_run, score, scorer, write_run
from evalstone.compat.spring import RelevancyEvaluator
from evalstone.errors import ConfigError
from evalstone.judges import Cascade, Judge, ModelJudge, Panel, ScriptedJudge
from evalstone.questions import ListClaims
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Ask, Question
from evalstone.results.estimate import JudgeEstimate, by_judge
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.scorers import Faithfulness, Hallucination, Pipeline, PromptStep, Scorer
from evalstone.types import Score
from tests.judge_names import bare
from tests.run.test_composites import Paid
from tests.serving import Response, completion, serving

ROWS = [{"input": "When?", "output": "Ada was born in 1815.", "context": ["Ada lived 1815-1852."]}]


class Named(Judge):
    """The lexical judge under another name."""

    name: str
    cacheable = False

    @property
    def identity(self) -> str:
        return self.name

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        value: Any = ("a claim",) if isinstance(question, ListClaims) else ()
        return JudgeAnswer(value=value, judge=self.identity)


class Counted(Scorer):
    """How many claims there are; what it asks stands in no code that could be read."""

    name = "counted"
    questions = (ListClaims,)

    async def score(self, ask: Ask, *, output: str) -> Score:
        kind: Any = getattr(evalstone.questions, "List" + "Claims")
        return Score(1 / len(await ask(kind(text=output))))


def test_a_scorer_s_judge_answers_in_place_of_the_run_s() -> None:
    run = evaluate(ROWS, [Faithfulness(judge="lexical"), Counted()], judge=Named(name="b"), ledger=None)
    assert [{bare(call.judge) for call in record.calls} for record in run] == [{"lexical@7"}, {"b"}]
    assert run["faithfulness"].judges == ("lexical@7",)
    assert bare(run["counted"].judges) == ("b",)
    assert bare(run.judge) == "b, lexical@7"
    assert "judges b, lexical@7" in bare(str(run))


@pytest.mark.parametrize(
    "spec", ["faithfulness(judge=lexical)", {"name": "faithfulness", "judge": "lexical"}, Faithfulness(judge="lexical")]
)
def test_a_judge_is_named_in_every_spelling_of_a_scorer(spec: Any) -> None:
    record = score(spec, ROWS[0], judge=ScriptedJudge([]))
    assert {call.judge for call in record.calls} == {"lexical@7"}


def test_an_evaluator_s_own_judge_is_asked_in_a_run() -> None:
    judge = ScriptedJudge([{"reason": "yes", "verdict": "yes"}])
    run = evaluate(ROWS, RelevancyEvaluator(judge), judge="lexical", ledger=None)
    assert len(judge.asked) == 1
    assert run.judge == judge.identity


def test_a_scorer_s_judge_is_checked_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        evaluate(ROWS, [Faithfulness(judge="openai/gpt-5.1"), "hallucination"], judge="lexical", ledger=None)


def test_the_run_s_judge_is_not_checked_where_every_scorer_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    run = evaluate(ROWS, Faithfulness(judge="lexical"), judge="openai/gpt-5.1", ledger=None)
    assert run.judge == "lexical@7"


def test_a_budget_needs_the_price_of_every_judge_that_is_asked() -> None:
    judge = ModelJudge("vllm/none", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ConfigError, match="a budget needs a price"):
        evaluate(ROWS, [Faithfulness(judge=judge)], judge="lexical", ledger=None, budget=1.0)


def test_a_judge_that_a_scorer_passes_itself_is_named() -> None:
    @scorer(questions=(ListClaims,))
    async def passing(*, output: str, ask: Any) -> float:
        return 1 / len(await ask(ListClaims(text=output), Named(name="c")))

    assert bare(evaluate(ROWS, passing, judge=Named(name="a"), ledger=None).judge) == "a, c"


def test_runs_whose_scorers_asked_different_judges_are_not_compared_silently(tmp_path: Any) -> None:
    one, other = (evaluate(ROWS * 2, Counted(), judge=Named(name=name), ledger=None) for name in "ab")
    with pytest.raises(ConfigError, match=r"the judges differ \(a#\w+, b#\w+\)"):
        compare(one, other)
    write_run(one, tmp_path)
    assert bare(read_run(tmp_path)["counted"].judges) == ("a",)
    both = evaluate(ROWS * 2, [Counted(), Faithfulness(judge="lexical")], judge=Named(name="a"), ledger=None)
    assert compare(one, both)["counted"] is not None


def test_the_plan_of_another_judge_is_another_run(tmp_path: Any) -> None:
    ledger = str(tmp_path / "l.db")
    ids = {
        evaluate(ROWS, Hallucination(judge=judge), judge="lexical", ledger=ledger).id
        for judge in (None, Named(name="a"), Named(name="b"))
    }
    assert len(ids) == 3


def test_a_batch_asks_one_judge() -> None:
    with pytest.raises(ConfigError, match=r"batch .*; faithfulness has"):
        evaluate(ROWS, Faithfulness(judge="lexical"), judge="openai/gpt-5.1", ledger="x.db", batch=True)


def test_errors_of_an_endpoint_that_two_judges_share_are_counted_once() -> None:
    def reply(body: Any, number: int) -> Any:
        return Response(500, "busy") if number == 1 else completion('{"claims": []}')

    with serving(reply) as server:
        plain, own = (ModelJudge("vllm/x", base_url=server.url, seed=seed) for seed in (None, 1))
        run = evaluate(ROWS, Faithfulness(judge=own), judge=plain, ledger=None)
    assert run.warnings == {"HTTP 500": 1}


def test_a_dry_run_lists_every_judge_that_the_run_then_asks_and_counts_shared_calls_of_each() -> None:
    cheap, dear, free = Paid("cheap"), Paid("dear"), Named(name="free")
    own = [Faithfulness(judge=dear), Hallucination(judge=dear), Counted(judge=free)]
    scorers = [*own, "faithfulness(scale=2)", "hallucination(scale=2)"]
    found = asyncio.run(estimate(plan_for(ROWS, scorers, judge=cheap)))
    run = evaluate(ROWS, scorers, judge=cheap, ledger=None)
    asked = Counter(bare(call.judge) for record in run for call in record.calls if call.source == "asked")
    assert {bare(one.judge): one.calls for one in found.judges} == asked == {"dear": 2, "cheap": 2, "free": 1}
    assert [(bare(one.judge), one.cost, one.usage.input > 0) for one in found.judges] == [
        ("dear", 1.0, True),
        ("free", 0.0, False),
        ("cheap", 1.0, True),
    ]
    shared = [sum(call.source == "shared" for call in record.calls) for record in run]
    assert [line.shared for line in found.scorers] == shared == [0, 2, 0, 0, 2]
    assert (found.calls, found.cost, bare(found.judge)) == (4, run.cost, "cheap, dear, free")
    assert by_judge([found, found])[0] == JudgeEstimate(
        judge=dear.identity, calls=4, usage=found.judges[0].usage + found.judges[0].usage, cost=2.0
    )


def test_a_dry_run_leaves_out_a_judge_that_no_scorer_asks_and_its_unknown_price() -> None:
    unpriced = ModelJudge("vllm/unpriced")
    found = asyncio.run(estimate(plan_for(ROWS, [Faithfulness(judge=Paid("own"))], judge=unpriced)))
    assert bare((found.judge, found.cost, [one.judge for one in found.judges])) == ("own", 1.0, ["own"])
    code = asyncio.run(estimate(plan_for(ROWS, "completeness", judge=unpriced)))
    assert (code.judge, code.cost, code.judges) == ("none", 0.0, ())
    both = asyncio.run(estimate(plan_for(ROWS, [Faithfulness(judge=Paid("own")), "hallucination"], judge=unpriced)))
    assert (both.cost, [one.cost for one in both.judges]) == (None, [1.0, None])


def test_a_dry_run_lists_the_members_of_composite_judges() -> None:
    judge = Cascade(Named(name="first"), Panel(Paid("one"), Paid("two")))
    found = asyncio.run(estimate(plan_for(ROWS, "faithfulness", judge=judge)))
    assert {bare(one.judge) for one in found.judges} == {"first", "one", "two"}
    assert found.calls == sum(one.calls for one in found.judges if one.cost)
    assert found.judge == judge.identity


def test_a_free_run_counts_the_calls_of_its_judges() -> None:
    found = asyncio.run(estimate(plan_for(ROWS, [Faithfulness(judge=Named(name="own")), "hallucination"])))
    assert (found.calls, found.cost) == (sum(one.calls for one in found.judges), 0.0)
    assert bare([one.judge for one in found.judges]) == ["own", "lexical@7"]


GRADE = {"reason": "so", "score": 1}


def test_a_step_s_judge_answers_in_place_of_the_run_s_and_is_named() -> None:
    own = ScriptedJudge([{"answer": "found"}], name="own")
    scorer = Pipeline(analyze=PromptStep("{{output}}?", judge=own), score=PromptStep("{{analyze}}?"), name="p")
    run = evaluate(ROWS, scorer, judge=ScriptedJudge([GRADE], name="shared"), ledger=None)
    assert [call.judge for record in run for call in record.calls] == ["own", "shared"]
    assert run["p"].judges == ("own", "shared")
    assert run.judge == "shared, own"
    assert run["p"].mean == 1


def test_a_run_s_judge_that_no_step_asks_is_not_needed() -> None:
    scorer = Pipeline(score=PromptStep("{{output}}?", judge=ScriptedJudge([GRADE], name="own")), name="p")
    run = evaluate(ROWS, scorer, judge="openai/gpt-5.1", ledger=None)
    assert (run.judge, run["p"].mean) == ("own", 1)


def test_a_step_s_judge_is_read_checked_and_kept_out_of_the_signature(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    step = PromptStep("{{output}}?", judge="openai/gpt-5.1")
    assert step.judge is not None
    assert step.judge.identity == "openai/gpt-5.1"
    assert Pipeline(score=step, name="p").signature == Pipeline(score=PromptStep("{{output}}?"), name="p").signature
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        evaluate(ROWS, Pipeline(score=step, name="p"), judge="lexical", ledger=None)
    with pytest.raises(ConfigError, match="p has a judge"):
        evaluate(ROWS, Pipeline(score=step, name="p"), judge="lexical", ledger=tmp_path / "answers.db", batch=True)
    with pytest.raises(ConfigError, match="lexicl"):
        PromptStep("{{output}}?", judge="lexicl")
