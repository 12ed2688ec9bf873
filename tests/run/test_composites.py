"""What the engine promises holds for judges made of judges: their members' questions go its way, one by one."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import field
from pathlib import Path
from typing import Any

import pytest

from evalstone import (
    Cascade,
    LexicalJudge,
    ModelJudge,
    Panel,
    ReplayJudge,
    SelfConsistency,
    evaluate,
    read_run,
    write_run,
)
from evalstone._core.json import to_jsonable
from evalstone.errors import ConfigError, JudgeUnavailable, ProviderError, ProviderTimeout
from evalstone.judges import ScriptedJudge
from evalstone.judges.base import Judge
from evalstone.ledger import AsyncLedger
from evalstone.ledger.store import Ledger
from evalstone.questions import ClaimSupported, ListClaims, VerifyClaims
from evalstone.questions.answers import JudgeAnswer
from evalstone.questions.base import Question
from evalstone.run.budget import Budget
from evalstone.run.dry_run import estimate
from evalstone.run.planning import plan_for
from evalstone.run.session import AskScope, Session
from evalstone.types import JudgeCall, Record, Score, Usage
from tests.fakes import ROOT, Load, claims, verdicts
from tests.serving import Response, filled, obliging, serving

YES_NO = ClaimSupported(claim="c", context=("p",))
SAMPLES: list[dict[str, Any]] = [
    {"id": str(number), "input": "q", "output": f"Paris has {number} bridges.", "context": [f"{number} bridges."]}
    for number in range(12)
]


class Paid(Judge, eq=False, kw_only=False):
    """Says yes for half a dollar, as often as it is asked, and counts."""

    name: str
    broken: bool = False
    sure: float | None = None
    asked: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    load: Load = field(default_factory=Load)

    @property
    def identity(self) -> str:
        return self.name

    def price(self, usage: Usage) -> float:
        return 0.5

    async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
        self.asked.append((question.kind, repeat))
        with self.load:
            await asyncio.sleep(0.005)
        if self.broken:
            raise ProviderError("broken", cost=0.1, usage=Usage(1, 1, 0, 1))
        reply = json.dumps(filled(dict(question.json_schema or {}), question.render()[1]))
        return JudgeAnswer(
            value=question.parse(reply),
            judge=self.name,
            reply=reply,
            cost=0.5,
            usage=Usage(1, 1, 0, 1),
            probability=self.sure,
        )


def put(judge: Judge, *questions: Question[Any], ledger: Path | None = None, **settings: Any) -> list[Any]:
    """What a session makes of the questions, put at the same time."""

    async def work() -> list[Any]:
        if ledger is None:
            session = Session(judge, **settings)
            return await asyncio.gather(*map(session.ask, questions), return_exceptions=True)
        async with AsyncLedger(ledger) as book:
            session = Session(judge, ledger=book, **settings)
            return await asyncio.gather(*map(session.ask, questions), return_exceptions=True)

    return asyncio.run(work())


def test_members_answers_are_kept_and_the_combined_one_is_not(tmp_path: Path) -> None:
    one, two = Paid("one"), Paid("two")
    panel = Panel(one, two)
    ledger = tmp_path / "l.db"
    (first,) = put(panel, YES_NO, ledger=ledger)
    with Ledger(ledger) as book:
        kept = [
            name for name in (one.identity, two.identity, panel.identity) if book.answers(name, [YES_NO.fingerprint])
        ]
    assert kept == [one.identity, two.identity]
    (again,) = put(panel, YES_NO, ledger=ledger)
    assert again.source == "cached"
    assert (again.value, again.cost, [call.source for call in again.members]) == (first.value, 0.0, ["cached"] * 2)
    assert len(one.asked) == len(two.asked) == 1


def test_another_vote_and_another_threshold_over_the_same_members_ask_nothing(tmp_path: Path) -> None:
    one, two = Paid("one"), Paid("two")
    ledger = tmp_path / "l.db"
    put(Panel(one, two), YES_NO, ledger=ledger)
    put(Panel(two, one, vote="unanimous"), YES_NO, ledger=ledger)
    put(Cascade(one, two, threshold=1.0), YES_NO, ledger=ledger)
    put(one, YES_NO, ledger=ledger)
    assert len(one.asked) == len(two.asked) == 1


def test_repetitions_are_kept_under_their_numbers_and_the_first_is_the_ordinary_answer(tmp_path: Path) -> None:
    one = Paid("one")
    ledger = tmp_path / "l.db"
    put(one, YES_NO, ledger=ledger)
    put(SelfConsistency(one, repeats=3), YES_NO, ledger=ledger)
    put(SelfConsistency(one, repeats=5), YES_NO, ledger=ledger)
    assert [number for _, number in one.asked] == [0, 1, 2, 3, 4]


def test_equal_questions_to_a_panel_are_one_question_to_each_member() -> None:
    one, two = Paid("one"), Paid("two")
    answers = put(Panel(one, two), *[YES_NO] * 4)
    assert [answer.source for answer in answers] == ["asked", *["shared"] * 3]
    assert len(one.asked) == len(two.asked) == 1


def test_a_judge_that_sits_in_two_places_is_asked_once() -> None:
    one, two, three = Paid("one"), Paid("two"), Paid("three")
    (answer,) = put(Cascade(Panel(one, two), Panel(one, three), threshold=1.0), YES_NO)
    assert answer.detail["escalated"] == 0.0
    (answer,) = put(Panel(Panel(one, two), Panel(one, three)), YES_NO)
    assert len(one.asked) == 2  # once for each session
    assert answer.cost == pytest.approx(1.5)


def test_members_share_the_places_under_one_bound_and_none_is_held_by_the_panel() -> None:
    one, two = Paid("one"), Paid("two")
    nested = Cascade(Panel(one, two), Paid("three"))
    answers = put(nested, *(ListClaims(text=str(n)) for n in range(8)), concurrency=1)
    assert all(isinstance(answer, JudgeAnswer) for answer in answers)
    assert max(one.load.most, two.load.most) == 1


def test_steps_show_the_members_and_costs_add_up_once() -> None:
    panel = Panel(Paid("one"), Paid("two"), Paid("three", broken=True))

    async def ask() -> AskScope:
        scope = AskScope(Session(panel))
        await scope(YES_NO)
        await scope(YES_NO)
        return scope

    first, second = asyncio.run(ask()).calls
    assert (first.judge, first.cost, first.usage) == (panel.identity, pytest.approx(1.1), Usage(3, 3, 0, 3))
    assert [(call.judge.partition("#")[0], call.cost) for call in first.members] == [
        ("one", 0.5),
        ("two", 0.5),
        ("three", 0.1),
    ]
    assert (second.cost, second.source, [call.cost for call in second.members]) == (0.0, "shared", [0.0, 0.0, 0.0])


def test_a_panel_that_fails_leaves_a_step_with_its_members_and_others_who_wait_pay_nothing() -> None:
    panel = Panel(Paid("one"), Paid("two", broken=True))

    async def ask() -> list[AskScope]:
        session = Session(panel)
        scopes = [AskScope(session), AskScope(session)]
        await asyncio.gather(*(scope(YES_NO) for scope in scopes), return_exceptions=True)
        return scopes

    (first,), (second,) = (scope.calls for scope in asyncio.run(ask()))
    assert (first.answer, first.cost) == (None, 0.6)
    assert [call.judge for call in first.members] == [Paid("one").identity, Paid("two").identity]
    assert (second.cost, [call.cost for call in second.members]) == (0.0, [0.0, 0.0])


def test_a_member_that_fails_on_each_of_the_first_questions_is_not_asked_again() -> None:
    dead = Paid("dead", broken=True)
    panel = Panel(Paid("one"), Paid("two"), dead)
    questions = [ClaimSupported(claim=str(n), context=("p",)) for n in range(30)]
    answers = put(panel, *questions, concurrency=3)
    assert all(isinstance(answer, JudgeAnswer) for answer in answers)
    assert 10 <= len(dead.asked) <= 12
    (*_, last) = put(Panel(Paid("one"), Paid("dead", broken=True)), *questions, concurrency=3)
    assert isinstance(last, JudgeUnavailable)
    assert re.search("dead#.* failed .* 10 questions", str(last))


def errors_of(judge: Judge, *, count: int, known_working: bool = False) -> list[Any]:
    """What so many questions come to, asked one after the other in one session."""

    async def work() -> list[Any]:
        session = Session(judge)
        if known_working:
            answered = JudgeCall(question="q", fingerprint="f", judge=judge.identity, answer="yes")
            session.restore(Record(sample_id="s", scorer="x", signature="x", outcome=Score(1.0), calls=(answered,)))
        questions = [ClaimSupported(claim=str(number), context=("p",)) for number in range(count)]
        return [(await asyncio.gather(session.ask(each), return_exceptions=True))[0] for each in questions]

    return asyncio.run(work())


def test_a_member_that_is_down_says_so_anew_each_time_and_keeps_nothing() -> None:
    last = errors_of(Paid("dead", broken=True), count=14)[-4:]
    assert [type(error) for error in last] == [JudgeUnavailable] * 4
    assert [str(error) for error in last] == [str(last[0])] * 4
    assert len({len(list(traceback.walk_tb(error.__traceback__))) for error in last[1:]}) == 1
    assert len(set(map(id, last))) == 4


def test_an_endpoint_that_falls_silent_later_or_before_a_judge_of_known_worth_could_be_asked_is_down() -> None:
    class Silent(Paid):
        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            if len(self.asked) == 2:
                raise ProviderTimeout("gone")
            return await super().answer(question, repeat)

    later = errors_of(Silent("later"), count=13, known_working=True)
    assert [type(error) for error in later[2:12]] == [ProviderTimeout] * 10
    assert re.search("later#.* 10 questions; .*: gone", str(later[12]))
    failing = errors_of(Paid("known", broken=True), count=12, known_working=True)
    assert not any(isinstance(error, JudgeUnavailable) for error in failing)


def test_a_budget_is_over_all_members_and_ends_the_run() -> None:
    one, two = Paid("one"), Paid("two")
    run = evaluate(SAMPLES, ["faithfulness"], judge=Panel(one, two), ledger=None, budget=3.2, concurrency=1)
    assert re.search(r"about \$0.5000\) .* \$3.2 \(\$3.0000 spent\)$", run.stop_reason)
    assert len(one.asked) + len(two.asked) == 6
    assert len(run.records) == 2  # of three questions each: the claims of the first, and both members' verdicts
    with pytest.raises(ConfigError, match="price of vllm/x"):
        Budget(1.0, Cascade(one, Panel(two, ModelJudge("vllm/x"))))


def test_a_dry_run_asks_each_member_and_takes_what_the_ledger_has(tmp_path: Path) -> None:
    one, two = Paid("one"), Paid("two")
    panel, ledger = Panel(one, two, LexicalJudge()), tmp_path / "l.db"
    plan = plan_for(SAMPLES, ["faithfulness", "hallucination"], judge=panel)
    before = asyncio.run(estimate(plan, ledger=ledger))
    assert (before.calls, before.kinds) == (36, {"list_claims": 12, "verify_claims": 24})
    assert before.cost == pytest.approx(18.0)  # half a dollar a call
    evaluate(SAMPLES, ["faithfulness"], judge=one, ledger=ledger)
    after = asyncio.run(estimate(plan, ledger=ledger))
    assert after.calls == 12
    assert sum(line.cached for line in after.scorers) == 24


def test_a_dry_run_of_a_cascade_is_the_most_it_can_cost() -> None:
    sure = Paid("sure", sure=0.99)
    cascade = Cascade(sure, Paid("dear"))
    plan = plan_for(SAMPLES, ["faithfulness"], judge=cascade)
    assert asyncio.run(estimate(plan)).calls == 48
    run = evaluate(SAMPLES, ["faithfulness"], judge=cascade, ledger=None)
    assert len(sure.asked) == 24  # lists, too
    assert run.judge_stats[cascade.identity] == {
        "kind": "cascade",
        "questions": 12,  # about verdicts
        "escalated": 0.0,
        "share": 0.0,
        "share_interval": [0.0, pytest.approx(1 - 0.025 ** (1 / 12))],
        "fallback": Paid("dear").identity,
        "saved_calls": 12,
        "saved_cost": None,
    }


def test_questions_about_one_group_of_samples_are_no_independent_evidence_on_a_judge() -> None:
    data = [{**sample, "group": f"g{place % 3}"} for place, sample in enumerate(SAMPLES)]
    cascade, panel = Cascade(Paid("sure", sure=0.99), Paid("dear")), Panel(Paid("one"), Paid("two"))
    told = evaluate(data, ["faithfulness"], judge=cascade, ledger=None).judge_stats[cascade.identity]
    assert told["share_interval"] == [0.0, pytest.approx(1 - 0.025 ** (1 / 3))]
    told = evaluate(data, ["faithfulness"], judge=panel, ledger=None).judge_stats[panel.identity]
    assert told["agreement_interval"] == [pytest.approx(0.025 ** (1 / 3)), 1.0]


def test_a_summary_says_what_was_escalated_and_what_that_saved(tmp_path: Path) -> None:
    class Half(Paid):
        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            answer = await super().answer(question, repeat)
            odd = int(question.fingerprint, 16) % 2
            return JudgeAnswer(value=answer.value, judge=self.name, probability=1.0 if odd else 0.1, cost=0.0)

    cascade = Cascade(Half("half"), Paid("dear"))
    run = evaluate(SAMPLES, ["faithfulness", "hallucination"], judge=cascade, ledger=None)
    told = run.judge_stats[cascade.identity]
    assert told["questions"] == 12  # about verdicts, each once, though two scorers asked
    assert told["saved_calls"] == 12 - told["escalated"]
    assert told["saved_cost"] == pytest.approx(0.5 * told["saved_calls"])
    dear = [call for record in run for step in record.calls for call in step.members if call.judge.startswith("dear")]
    lists = {call.fingerprint for call in dear if call.question == "list_claims"}
    assert run.cost == pytest.approx(0.5 * (told["escalated"] + len(lists)))
    write_run(run, tmp_path)
    assert read_run(tmp_path).judge_stats == run.judge_stats
    summary = json.loads((tmp_path / "summary.json").read_text("utf-8"))
    assert summary["judge"]["identity"] == cascade.identity
    assert summary["judge_stats"][cascade.identity]["share"] == told["share"]


def test_a_summary_says_how_far_a_panel_agreed_and_who_was_silent() -> None:
    panel = Panel(Paid("one"), Paid("two"), Paid("dead", broken=True))
    run = evaluate(SAMPLES[:4], ["faithfulness"], judge=panel, ledger=None)
    told = run.judge_stats[panel.identity]
    assert (told["questions"], told["verdicts"], told["agreement"], told["entropy"]) == (8, 12, 1.0, 0.0)
    assert told["no_answer"] == {Paid("dead").identity: 4}
    assert run["faithfulness"].asked == 16
    repeated = evaluate(SAMPLES[:4], ["faithfulness"], judge=SelfConsistency(Paid("one"), repeats=3), ledger=None)
    assert repeated.judge_stats[f"self_consistency({Paid('one').identity}, repeats=3)"]["flip_rate"] == 0.0


def test_a_recorded_run_of_a_panel_is_scored_again_without_it_and_its_members_vote_anew(tmp_path: Path) -> None:
    panel = Panel(Paid("one"), Paid("two"), LexicalJudge(), vote="unanimous")
    run = evaluate(SAMPLES, ["faithfulness"], judge=panel, ledger=None)
    records = write_run(run, tmp_path) / "records.jsonl"
    replayed = evaluate(SAMPLES, ["faithfulness"], judge=ReplayJudge.from_records(records), ledger=None)
    assert [to_jsonable(one.outcome) for one in replayed.records] == [to_jsonable(one.outcome) for one in run.records]
    members = [ReplayJudge.from_records(records, judge=one.identity) for one in panel.members]
    again = evaluate(SAMPLES, ["faithfulness"], judge=Panel(*members, vote="unanimous"), ledger=None)
    assert again["faithfulness"].mean == run["faithfulness"].mean
    other = evaluate(SAMPLES, ["faithfulness"], judge=Panel(*members, vote="majority"), ledger=None)
    assert other["faithfulness"].mean == 1.0


def test_a_recorded_panel_before_a_second_judge_is_as_unsure_of_each_claim_as_it_was(tmp_path: Path) -> None:
    def saying(name: str, *words: str) -> ScriptedJudge:
        script = {"list_claims": claims("x", "y", "z"), "verify_claims": verdicts(*words)}
        return ScriptedJudge(script, name=name)

    panel = Panel(saying("a", *["supported"] * 3), saying("b", "supported", "contradicted", "supported"))
    dear = saying("dear", "supported")
    run = evaluate(SAMPLES[:1], ["faithfulness"], judge=Cascade(panel, dear), ledger=None)
    assert run["faithfulness"].mean == 1
    assert dear.asked[-1] == VerifyClaims(claims=("y",), context=("0 bridges.",))
    records = write_run(run, tmp_path) / "records.jsonl"
    first, then = (ReplayJudge.from_records(records, judge=one.identity) for one in (panel, dear))
    again = Cascade(first, then)
    replayed = evaluate(SAMPLES[:1], ["faithfulness"], judge=again, ledger=None)
    assert replayed.records[0].outcome == run.records[0].outcome


def test_one_endpoints_trouble_is_counted_once_for_all_its_models() -> None:
    def behaviour(request: dict[str, Any], count: int) -> Any:
        if count == 1:
            return Response(500, {"error": {"message": "busy"}})
        return obliging(request, count)

    with serving(behaviour) as server:
        panel = Panel(ModelJudge("vllm/a", base_url=server.url), ModelJudge("vllm/b", base_url=server.url))
        run = evaluate(SAMPLES[:1], ["faithfulness"], judge=panel, ledger=None)
    assert run.warnings == {"HTTP 500": 1}


KILLED = """
import sys
from evalstone import Cascade, SelfConsistency, ModelJudge, Panel, evaluate
url, ledger = sys.argv[1:]
a, b, c = (ModelJudge(f"vllm/{name}", base_url=url, temperature=0.7) for name in "abc")
judge = Cascade(Panel(a, SelfConsistency(b, repeats=3)), c, threshold=1.0)
samples = [{"id": str(n), "output": f"Paris has {n} bridges.", "context": ["p"]} for n in range(12)]
run = evaluate(samples, ["faithfulness"], judge=judge, ledger=ledger, concurrency=4)
print(run["faithfulness"].mean, run.n_failed)
"""


@pytest.mark.slow
def test_what_was_paid_for_survives_a_kill(tmp_path: Path) -> None:
    def behaviour(request: dict[str, Any], _: int) -> Any:
        return Response(body=obliging(request, 0), delay=0.02)

    def start(ledger: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", KILLED, server.url, str(ledger)]
        return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE)

    with serving(behaviour) as server:
        done = start(tmp_path / "undisturbed.db")
        printed, _ = done.communicate(timeout=60)
        asked = len(server.requests)
        killed = start(tmp_path / "l.db")
        deadline = time.monotonic() + 30
        while len(server.requests) < asked + 15 and time.monotonic() < deadline:
            time.sleep(0.005)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=60)
        again, _ = start(tmp_path / "l.db").communicate(timeout=60)
        total = len(server.requests) - asked
    assert killed.returncode == -signal.SIGKILL
    assert again == printed == "1.0 0\n"
    assert asked <= total <= asked + 4


def test_a_members_error_that_concerns_the_run_ends_it() -> None:
    class Wrong(Paid):
        async def answer(self, question: Question[Any], repeat: int = 0) -> JudgeAnswer[Any]:
            raise ConfigError("wrong key")

    with pytest.raises(ConfigError, match="wrong key"):
        evaluate(SAMPLES[:1], ["faithfulness"], judge=Panel(Wrong("one"), Paid("two")), ledger=None)
